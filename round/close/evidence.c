/* Groups that begin as many, and become one where their sites say that they are no worse off: no threshold of
 * directions decides it, but the loss of a trial model on the sites' own test samples. Where nothing tells
 * sites apart this ends with one model; where something does, with a group for each kind. A pair that does
 * not join now may do so later, so that there is a way back to one model for as long as the job lasts.
 *
 * By the same samples sites that have trained say whether what they made of the model serves them better than
 * the model: where labels are unevenly spread, a site's own training is worth more than any group. */
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "round/close/flexcfl.h"
#include "round/reshape.h"

/* The others' tenants and groups, item by item. */
struct members {
    uint32_t *tenant, *group;
};

/* Deinit also after an error. into: what each group has become part of. */
static int members_init(const struct kedge_close *c, const uint32_t *into, struct members *m)
{
    *m = (struct members){kedge_mem_new(c->other_count + 1, sizeof *m->tenant),
                          kedge_mem_new(c->other_count + 1, sizeof *m->group)};
    if (!m->tenant || !m->group) {
        return KEDGE_E_NOMEM;
    }
    for (size_t i = 0; i < c->other_count; i++) {
        m->tenant[i] = c->others[i].place;
        m->group[i] = into[c->others[i].former];
    }
    return KEDGE_OK;
}

static void members_deinit(struct members *m)
{
    kedge_mem_free(m->tenant);
    kedge_mem_free(m->group);
}

/* A model between those of the two, by which their sites will judge. */
static int try_pair(struct kedge_close *c, const struct members *m, uint32_t a, uint32_t b)
{
    struct kedge_round_result *r = c->result;
    const struct kedge_hash models[] = {r->after[a], r->after[b]};
    uint32_t into[KEDGE_GROUPS_MAX];
    uint64_t of_all[KEDGE_GROUPS_MAX];
    for (uint32_t g = 0; g < r->groups; g++) {
        into[g] = g == b ? a : g;
    }
    int err =
        kedge_compute_merge_weights(c->spec, m->tenant, m->group, c->other_count, into, r->groups, a, of_all);
    if (err) {
        return err;
    }
    const uint64_t weight[] = {of_all[a], of_all[b]};
    err = kedgei_blend(c, KEDGE_DECISION_TRIAL, a, models, weight, 2, &r->trial[a]);
    r->trial[b] = r->trial[a];
    r->tried_with[a] = b + 1;
    r->tried_with[b] = a + 1;
    return err;
}

static int try_pairs(struct kedge_close *c, const uint32_t *into)
{
    struct members m;
    uint32_t with[KEDGE_GROUPS_MAX];
    int err = members_init(c, into, &m);
    err = err ? err : kedgei_find_pairs(c, with);
    for (uint32_t g = 0; g < c->result->groups && !err; g++) {
        err = with[g] > g ? try_pair(c, &m, g, with[g]) : KEDGE_OK;
    }
    members_deinit(&m);
    return err;
}

/* ---- one model first: cuts ---- */

/* Who trained for the group and was in it is of one part or the other; a site that has left it meanwhile is
 * of neither. */
static void choose_side(const struct kedge_close *c, uint32_t from, const bool *moves, bool is_new,
                        bool *chosen)
{
    memset(chosen, 0, c->input_count * sizeof *chosen);
    for (size_t i = 0; i < c->other_count; i++) {
        const struct kedge_close_other *o = &c->others[i];
        if (o->former == from && o->input < c->input_count) {
            chosen[o->input] = moves[i] == is_new;
        }
    }
}

static int try_parts(struct kedge_close *c, uint32_t from, uint32_t to, const bool *moves)
{
    struct kedge_round_result *r = c->result;
    bool *chosen = kedge_mem_new(c->input_count + 1, sizeof *chosen);
    int err = chosen ? KEDGE_OK : KEDGE_E_NOMEM;
    for (int is_new = 0; is_new < 2 && !err; is_new++) {
        const uint32_t part = is_new ? to : from;
        choose_side(c, from, moves, is_new, chosen);
        err = kedgei_try_part(c, from, chosen, part, &r->trial[part]);
        r->tried_with[part] = (is_new ? from : to) + 1;
    }
    kedge_mem_free(chosen);
    return err;
}

/* Groups in which nobody trained have no model to try their parts by. */
static int cut_groups(struct kedge_close *c, struct kedgei_signs *s, const bool *may, uint32_t *part,
                      bool *moves)
{
    struct kedge_round_result *r = c->result;
    const uint32_t groups = r->groups;
    KEDGE_TRY(kedgei_choose_signs(c, s->chosen));
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t to;
        bool is_cut = false;
        if (!may[g] || !r->trained[g] || r->merged_into[g] || r->joined[g] || r->split_of[g]
            || !kedgei_has_number(c)) {
            continue;
        }
        KEDGE_TRY(kedgei_signs_of(c, s, g));
        KEDGE_TRY(kedgei_cut_by_halves(c, g, &s->of, part, &is_cut));
        if (is_cut) {
            KEDGE_TRY(kedgei_cut_group(c, &s->of, part, g, &to, moves));
            KEDGE_TRY(try_parts(c, g, to, moves));
        }
    }
    return KEDGE_OK;
}

static int try_cuts(struct kedge_close *c, const bool *may)
{
    struct kedgei_signs s;
    uint32_t *part = kedge_mem_new(c->other_count + 1, sizeof *part);
    bool *moves = kedge_mem_new(c->other_count + 1, sizeof *moves);
    int err = kedgei_signs_init(c, &s);
    err = err || (part && moves) ? err : KEDGE_E_NOMEM;
    err = err ? err : kedgei_assignments(c, c->other_count);
    err = err ? err : cut_groups(c, &s, may, part, moves);
    kedgei_signs_deinit(&s);
    kedge_mem_free(part);
    kedge_mem_free(moves);
    return err;
}

/* ---- the close ---- */

/* Groups that are not part of another one. */
static uint32_t count_live(const struct kedge_round_result *r)
{
    uint32_t live = 0;
    for (uint32_t g = 0; g < r->groups; g++) {
        live += !r->merged_into[g];
    }
    return live;
}

/* The next trials of a job that began as one group. Parts that stay apart are cut again at once, so that many
 * kinds of sites are found in a few rounds. When all cuts have been taken back there is nothing more to find,
 * and it is asked whether groups that have gone apart before would be better off as one; so it is where
 * nothing can be cut any more. */
static int try_from_one(struct kedge_close *c, const uint32_t *into)
{
    const struct kedge_round_result *r = c->result;
    const bool is_due = kedge_job_spec_cuts_after(c->spec, r->round);
    bool may[KEDGE_GROUPS_MAX] = {false}, stay = false, had_parts = false, is_tried = false;
    for (uint32_t g = 0; g < r->groups; g++) {
        const uint32_t with = r->tried_before[g];
        const bool is_part = with > 0 && kedgei_are_parts(r, g, with - 1);
        const bool stays = is_part && into[g] == g && into[with - 1] == with - 1;
        may[g] = is_due || stays;
        stay = stay || stays;
        had_parts = had_parts || is_part;
    }
    if (r->round >= c->spec->rounds) {
        return KEDGE_OK;
    }
    const bool takes_turns =
        !is_due || c->spec->options.trial_every < 2; /* else pairs would never be tried */
    if (had_parts && !stay && takes_turns && count_live(r) > 1) {
        return try_pairs(c, into);
    }
    int err = is_due || stay ? try_cuts(c, may) : KEDGE_OK;
    for (uint32_t g = 0; g < r->groups; g++) {
        is_tried = is_tried || r->tried_with[g] > 0;
    }
    return err || is_tried || !is_due ? err : try_pairs(c, into);
}

static int close_evidence(struct kedge_close *c)
{
    const struct kedge_round_result *r = c->result;
    uint32_t into[KEDGE_GROUPS_MAX] = {0};
    bool any = false, was_tried = false;
    for (uint32_t g = 0; g < r->groups; g++) {
        into[g] = g;
        was_tried = was_tried || c->result->tried_before[g] > 0;
    }
    int err = was_tried ? kedgei_judge_trials(c, into, &any) : KEDGE_OK;
    const bool asked = was_tried || (r->round > 0 && kedge_job_spec_asks_own(c->spec, r->round - 1));
    err = err || !asked ? err : kedgei_judge_personal(c);
    err = err || !any ? err : kedgei_join(c, into);
    if (!err && kedge_job_spec_begins_as_one(c->spec)) {
        err = try_from_one(c, into);
    } else if (!err && kedge_job_spec_tries_after(c->spec, r->round, any)) {
        err = try_pairs(c, into);
    }
    if (!err) {
        kedgei_follow_merged(c->result);
    }
    return err;
}

const struct kedgei_grouping kedgei_evidence = {.make = kedgei_make_flexcfl, .close = close_evidence};
