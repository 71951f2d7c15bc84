/* Groups that begin as many, and become one where their sites say that they are no worse off: no threshold of
 * directions decides it, but the loss of a trial model on the sites' own test samples. Where nothing tells
 * sites apart this ends with one model; where something does, with a group for each kind. A pair that does
 * not join now may do so later, so that there is a way back to one model for as long as the job lasts.
 *
 * By the same samples sites that have trained say whether what they made of the model serves them better than
 * the model: where labels are unevenly spread, a site's own training is worth more than any group. */
#include <string.h>

#include "common/base/mem.h"
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

static int close_evidence(struct kedge_close *c)
{
    const struct kedge_round_result *r = c->result;
    uint32_t into[KEDGE_GROUPS_MAX];
    bool any = false, was_tried = false;
    for (uint32_t g = 0; g < r->groups; g++) {
        into[g] = g;
        was_tried = was_tried || c->result->tried_before[g] > 0;
    }
    int err = was_tried ? kedgei_judge_trials(c, into, &any) : KEDGE_OK;
    const bool asked = was_tried || (r->round > 0 && kedge_job_spec_asks_own(c->spec, r->round - 1));
    err = err || !asked ? err : kedgei_judge_personal(c);
    err = err || !any ? err : kedgei_join(c, into);
    if (err) {
        return err;
    }
    kedgei_follow_merged(c->result);
    return kedge_job_spec_tries_after(c->spec, r->round, any) ? try_pairs(c, into) : KEDGE_OK;
}

const struct kedgei_grouping kedgei_evidence = {.make = kedgei_make_flexcfl, .close = close_evidence};
