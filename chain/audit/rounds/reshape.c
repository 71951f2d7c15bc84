/* Groups that a close cuts in two, or of which it makes one of several: what the step says by itself, and
 * every decision in it once more. docs/record.md, "Groups that are cut and joined". */
#include <string.h>

#include "chain/audit/facts/erased.h"
#include "common/base/mem.h"
#include "grouping/flexcfl.h"
#include "round/meet.h"
#include "round/reshape.h"

/* A step and the one before it, NULL: there is none, or groups were made in this round. */
struct pair {
    const struct kedge_st_step *now, *last;
};

static struct pair pair_of(const struct kedgei_job *job, const struct kedgei_round *round,
                           const struct kedgei_fact *fact)
{
    bool first = kedgei_makes_groups(round) || round == job->rounds || !round[-1].step;
    return (struct pair){fact->body, first ? NULL : round[-1].step->body};
}

static const struct kedge_st_step_group *row_in(const struct kedge_st_step *s, uint32_t g)
{
    return s && g < s->group_count ? &s->groups[g] : NULL;
}

static bool was_merged(const struct pair *p, uint32_t g)
{
    const struct kedge_st_step_group *last = row_in(p->last, g);
    return last && last->merged_into > 0;
}

static bool merges_now(const struct pair *p, uint32_t g)
{
    return p->now->groups[g].merged_into > 0 && !was_merged(p, g);
}

static bool is_joined(const struct pair *p, uint32_t g)
{
    bool joined = merges_now(p, g);
    for (uint32_t k = 0; k < p->now->group_count; k++) {
        joined = joined || (merges_now(p, k) && p->now->groups[k].merged_into == g + 1);
    }
    return joined;
}

/* The part that was cut off from g, 0: none; numbered from 1. */
static uint32_t part_of(const struct kedge_st_step *s, uint32_t g)
{
    uint32_t part = 0;
    for (uint32_t k = 0; k < s->group_count; k++) {
        part = s->groups[k].split_of == g + 1 ? k + 1 : part;
    }
    return part;
}

bool kedgei_is_joined(const struct kedgei_job *job, const struct kedgei_round *round,
                      const struct kedgei_fact *step, uint32_t group)
{
    struct pair p = pair_of(job, round, step);
    return group < p.now->group_count && is_joined(&p, group);
}

const struct kedge_hash *kedgei_direction_of(const struct kedgei_fact *step, uint32_t group)
{
    const struct kedge_st_step_group *row = kedgei_step_group(step, group);
    const struct kedge_st_step_group *with =
        row && row->merged_into > 0 ? kedgei_step_group(step, row->merged_into - 1) : row;
    return with ? &with->direction : NULL;
}

/* The direction that was estimated of a group before it was cut, if it was. */
static const struct kedge_hash *estimate_in(const struct kedge_st_step_group *row)
{
    return kedge_hash_is_zero(&row->whole) ? &row->direction : &row->whole;
}

const struct kedge_hash *kedgei_estimate_of(const struct kedgei_job *job, const struct kedgei_round *round,
                                            uint32_t group)
{
    struct pair p = pair_of(job, round, round->step);
    const struct kedge_st_step_group *row = row_in(p.now, group);
    bool estimated = row && !row->split_of && !was_merged(&p, group);
    return estimated ? estimate_in(row) : NULL;
}

/* ---- verify ---- */

static bool follows_target(const struct pair *p, uint32_t g)
{
    const struct kedge_st_step_group *row = &p->now->groups[g], *with = row_in(p->now, row->merged_into - 1);
    if (!with || row->merged_into - 1 >= g || with->merged_into
        || !kedge_hash_eq(&row->after, &with->after)) {
        return false;
    }
    return merges_now(p, g)
           || (kedge_hash_eq(&row->direction, &with->direction) && kedge_hash_eq(&row->made, &with->made)
               && kedge_hash_eq(&row->aggregate, &row->before));
}

/* A part that was cut off begins as what it was cut from. */
static bool continues(const struct pair *p, uint32_t g)
{
    const struct kedge_st_step_group *row = &p->now->groups[g], *from = row_in(p->now, row->split_of - 1);
    bool is_free = !row_in(p->last, g) || was_merged(p, g);
    return from && is_free && !from->split_of && !from->merged_into && !row->merged_into
           && !kedge_hash_is_zero(&from->whole) && kedge_hash_is_zero(&row->whole)
           && kedge_hash_is_zero(&row->made) && kedge_hash_is_zero(&from->made)
           && kedge_hash_eq(&row->before, &from->before) && kedge_hash_eq(&row->aggregate, &from->aggregate)
           && kedge_hash_eq(&row->stepped, &from->stepped) && kedge_hash_eq(&row->after, &from->after)
           && kedge_hash_eq(&row->state_before, &from->state_before)
           && kedge_hash_eq(&row->state_after, &from->state_after);
}

/* One group that had been part of another: it stays that, or its number is a new part's; a target that
 * becomes part of a third is the only change. */
static bool stays_merged(const struct pair *p, uint32_t g)
{
    const struct kedge_st_step_group *row = &p->now->groups[g], *last = row_in(p->last, g);
    if (!was_merged(p, g) || row->split_of) {
        return true;
    }
    const struct kedge_st_step_group *target = row_in(p->now, last->merged_into - 1);
    return row->merged_into == last->merged_into
           || (target && merges_now(p, last->merged_into - 1) && row->merged_into == target->merged_into);
}

void kedgei_check_reshaped(struct kedgei_audit *a, const struct kedgei_job *job,
                           const struct kedgei_round *round, const struct kedgei_fact *fact)
{
    struct pair p = pair_of(job, round, fact);
    if (kedge_job_spec_splits(&job->spec)) {
        kedgei_check_cuts(a, job, round, fact);
        return;
    }
    bool may = kedgei_refreshes(job, round) && !kedge_job_spec_drifted(p.now->drift) && p.last;
    bool any_cut = false, any_merge = false, fits = true;
    for (uint32_t g = 0; g < p.now->group_count; g++) {
        const struct kedge_st_step_group *row = &p.now->groups[g];
        bool cut = row->split_of > 0, whole = !kedge_hash_is_zero(&row->whole);
        any_cut = any_cut || cut;
        any_merge = any_merge || merges_now(&p, g);
        fits = fits && (!cut || (may && continues(&p, g))) && whole == (part_of(p.now, g) > 0);
        fits = fits && (!row->merged_into || follows_target(&p, g)) && stays_merged(&p, g);
        fits = fits && (p.last || !row->merged_into);
    }
    fits = fits && !(any_cut && (any_merge || job->spec.options.silhouette >= 1))
           && (!any_merge || (may && job->spec.options.merge < 1));
    if (!fits) {
        kedgei_error(&a->findings, KEDGE_AUDIT_STEP, &a->main, fact->index,
                     "round %u: groups are cut or joined in a way that no rule of job \"%s\" gives",
                     round->number, job->id.s);
    }
}

void kedgei_check_moved(struct kedgei_audit *a, const struct kedgei_job *job, const struct kedgei_log *log,
                        const struct kedgei_fact *fact, const struct kedgei_fact *before)
{
    const struct kedge_st_group_assigned *g = fact->body, *last = before ? before->body : NULL;
    const struct kedgei_round *round = kedgei_round_find(job, g->round);
    struct kedgei_findings *f = &a->findings;
    if (!last || last->round > g->round || !kedge_hash_eq(&last->update, &g->update)) {
        kedgei_error(f, KEDGE_AUDIT_GROUP, log, fact->index,
                     "group of site \"%s\": does not rest on the update of its last group", g->site.s);
        return;
    }
    if (!round || !round->step) {
        kedgei_error_if_settled(a, f, KEDGE_AUDIT_GROUP, log, fact->index,
                                "group of site \"%s\": round %u has no result", g->site.s, g->round);
        return;
    }
    struct pair p = pair_of(job, round, round->step);
    const struct kedge_st_step_group *from = row_in(p.now, last->group), *to = row_in(p.now, g->group);
    bool fits =
        from && to
        && (g->how == KEDGE_GROUP_MERGE ? merges_now(&p, last->group) && from->merged_into == g->group + 1
                                        : to->split_of == last->group + 1);
    bool next = round + 1 < job->rounds + job->round_count;
    if (!fits || fact->index < kedgei_anchored_before(log, round->step->index)
        || (next && fact->index >= kedgei_anchored_after(log, round[1].opened->index))) {
        kedgei_error(
            f, KEDGE_AUDIT_GROUP, log, fact->index,
            "site \"%s\" went from group %u to %u by %s, which round %u does not give, or not in time",
            g->site.s, last->group, g->group, kedge_group_how_name(g->how), g->round);
    }
}

/* ---- replay ---- */

/* What the models of these groups weigh, by the sites that they had when the round closed. */
static int weigh_joined(const struct kedgei_replay *r, const struct kedgei_decision *d, const uint32_t *into,
                        size_t groups, uint64_t *weight)
{
    struct kedgei_inputs in = {.items = NULL};
    struct kedgei_decision all = *d;
    all.group = KEDGE_GROUP_NONE;
    int err = kedgei_members_read(r, &all, false, &in);
    uint32_t *tenant = kedge_mem_new(in.count + 1, sizeof *tenant),
             *group = kedge_mem_new(in.count + 1, sizeof *group);
    err = err ? err : tenant && group ? KEDGE_OK : KEDGE_E_NOMEM;
    for (size_t i = 0; i < in.count && !err; i++) {
        tenant[i] = in.items[i].place;
        group[i] = in.items[i].row.group;
    }
    err = err ? err
              : kedge_compute_merge_weights(&d->job->spec, tenant, group, in.count, into, groups, d->group,
                                            weight);
    kedge_mem_free(in.items);
    kedge_mem_free(tenant);
    kedge_mem_free(group);
    return err;
}

void kedgei_replay_joined(const struct kedgei_replay *r, struct kedgei_decision *d, struct kedgei_findings *f)
{
    const struct pair p = pair_of(d->job, d->round, d->round->step);
    struct kedge_diag diag = {.err = KEDGE_OK};
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *models[KEDGE_GROUPS_MAX];
    uint32_t into[KEDGE_GROUPS_MAX];
    uint64_t of_all[KEDGE_GROUPS_MAX], weight[KEDGE_GROUPS_MAX];
    struct kedge_hasher *hasher = NULL;
    struct kedge_sink sink;
    struct kedge_hash digest;
    size_t n = 0;
    for (uint32_t g = 0; g < p.now->group_count; g++) {
        into[g] = merges_now(&p, g) ? p.now->groups[g].merged_into - 1 : g;
    }
    int err = weigh_joined(r, d, into, p.now->group_count, of_all);
    for (uint32_t g = 0; g < p.now->group_count && !err; g++) {
        const struct kedge_st_step_group *row = &p.now->groups[g];
        if (into[g] == d->group) {
            models[n] = paths[n];
            weight[n] = of_all[g];
            err = kedge_blobs_path(r->a->main.blobs,
                                   kedge_hash_is_zero(&row->stepped) ? &row->aggregate : &row->stepped,
                                   paths[n++]);
        }
    }
    err = err ? err : kedgei_replay_sink(&hasher, &sink);
    err = err ? err : kedge_compute_blend(&d->job->layout, models, weight, n, sink, &diag);
    if (err) {
        kedgei_replay_failed(r, d, d->round->step->index, "model of joined groups", err, &diag, f);
    } else {
        kedge_hasher_final(hasher, &digest);
        kedgei_replay_add(d, digest.b, sizeof digest.b);
        kedgei_replay_compare(r, d, KEDGE_AUDIT_REPLAY_STEP, d->round->step->index, d->group, &digest,
                              &p.now->groups[d->group].after, f);
    }
    kedge_hasher_free(hasher);
}

static void other(const struct kedgei_replay *r, const struct kedgei_decision *d, const char *what,
                  struct kedgei_findings *f)
{
    kedgei_error(f, KEDGE_AUDIT_REPLAY_GROUPING, &r->a->main, d->round->step->index,
                 "job \"%s\", round %u, group %u: %s", d->job->id.s, d->round->number, d->group, what);
}

/* Which groups are alike, by the directions that were estimated. */
static int replay_merges(const struct kedgei_replay *r, struct kedgei_decision *d, bool *ret_any,
                         struct kedge_diag *diag, struct kedgei_findings *f)
{
    const struct pair p = pair_of(d->job, d->round, d->round->step);
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *directions[KEDGE_GROUPS_MAX];
    uint32_t into[KEDGE_GROUPS_MAX];
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < p.now->group_count && !err; g++) {
        const struct kedge_hash *now = kedgei_estimate_of(d->job, d->round, g);
        directions[g] = now ? paths[g] : NULL;
        err = now ? kedge_blobs_path(r->a->main.blobs, now, paths[g]) : KEDGE_OK;
    }
    err = err ? err
              : kedge_compute_merges(&d->job->layout, &d->job->spec, directions, p.now->group_count, into,
                                     ret_any, diag);
    for (uint32_t g = 0; g < p.now->group_count && !err; g++) {
        kedgei_replay_add_number(d, into[g]);
        d->group = g;
        if (directions[g] && (into[g] != g ? into[g] + 1 : 0) != p.now->groups[g].merged_into) {
            other(r, d, "it is recorded as part of other groups than the directions give", f);
        }
    }
    return err;
}

/* The direction of the updates of one part. */
static void replay_part(const struct kedgei_replay *r, struct kedgei_decision *d,
                        const struct kedge_compute_sites *sites, const uint32_t *part, uint32_t of,
                        const struct kedge_hash *recorded, struct kedgei_findings *f)
{
    struct kedge_blob_at *files = kedge_mem_new(sites->count, sizeof *files);
    uint32_t *tenant = kedge_mem_new(sites->count, sizeof *tenant);
    struct kedge_compute_sites members = {.files = files, .tenant = tenant};
    struct kedge_diag diag = {.err = KEDGE_OK};
    struct kedge_hasher *hasher = NULL;
    struct kedge_sink sink;
    struct kedge_hash digest;
    for (size_t i = 0; files && tenant && i < sites->count; i++) {
        if (part[i] == of) {
            tenant[members.count] = sites->tenant[i];
            files[members.count++] = sites->files[i];
        }
    }
    int err = files && tenant ? kedgei_replay_sink(&hasher, &sink) : KEDGE_E_NOMEM;
    err = err ? err : kedge_compute_direction(&d->job->layout, &members, &d->job->spec, sink, &diag);
    if (err) {
        kedgei_replay_failed(r, d, d->round->step->index, "direction of a part", err, &diag, f);
    } else {
        kedge_hasher_final(hasher, &digest);
        kedgei_replay_add(d, digest.b, sizeof digest.b);
        kedgei_replay_compare(r, d, KEDGE_AUDIT_REPLAY_DIRECTION, d->round->step->index, d->group, &digest,
                              recorded, f);
    }
    kedge_hasher_free(hasher);
    kedge_mem_free(files);
    kedge_mem_free(tenant);
}

/* Whether one group is cut, where there is a number for its part. */
static int replay_cut(const struct kedgei_replay *r, struct kedgei_decision *d, bool has_room, bool *ret_cut,
                      struct kedge_diag *diag, struct kedgei_findings *f)
{
    const struct kedge_st_step *now = d->round->step->body;
    struct kedgei_inputs in = {.items = NULL};
    struct kedge_compute_sites sites = {.count = 0};
    uint32_t *part = NULL;
    bool is_cut = false;
    int err = has_room ? kedgei_signs_read(r, d, &in) : KEDGE_OK;
    err = err || in.count == 0 ? err : kedgei_inputs_sites(&in, &sites);
    part = kedge_mem_new(in.count + 1, sizeof *part);
    err = err ? err : part ? KEDGE_OK : KEDGE_E_NOMEM;
    if (!err && in.count > 0) {
        err = kedge_compute_cut(&d->job->layout, &d->job->spec, &sites, part, &is_cut, diag);
    }
    const uint32_t to = part_of(now, d->group);
    if (!err && is_cut != (to > 0)) {
        other(r, d,
              is_cut ? "its sites' updates cut it in two, which is not recorded"
                     : "it is recorded as cut in two, its sites' updates do not give that",
              f);
    }
    if (!err && is_cut && to > 0) {
        replay_part(r, d, &sites, part, 0, &now->groups[d->group].direction, f);
        replay_part(r, d, &sites, part, 1, &now->groups[to - 1].direction, f);
    }
    kedgei_replay_add_number(d, is_cut);
    *ret_cut = is_cut;
    kedge_mem_free(in.items);
    kedge_mem_free(part);
    kedgei_inputs_sites_free(&sites);
    return err;
}

/* Sites that a close moves have a statement of it. Where they go is that statement's to say right. */
static int replay_moves(const struct kedgei_replay *r, struct kedgei_decision *d, struct kedge_diag *diag,
                        struct kedgei_findings *f)
{
    const struct pair p = pair_of(d->job, d->round, d->round->step);
    struct kedgei_inputs in = {.items = NULL};
    struct kedgei_decision all = *d;
    bool next = d->round + 1 < d->job->rounds + d->job->round_count;
    all.group = KEDGE_GROUP_NONE;
    int err = next ? kedgei_members_read(r, &all, false, &in) : KEDGE_OK;
    for (size_t i = 0; i < in.count && !err; i++) {
        const struct kedge_input_row *row = &in.items[i].row;
        const struct kedgei_log *log = &r->a->tenants[d->job->tenants[in.items[i].place]];
        const uint32_t from = row->group, part = part_of(p.now, from);
        const struct kedgei_fact *then = kedgei_group_behind(log, &d->job->id, &row->site, row->leaf);
        const struct kedge_st_group_assigned *moved = then ? then->body : NULL;
        bool must = from < p.now->group_count && merges_now(&p, from);
        d->group = from;
        if (part > 0 && !kedgei_erased(r->a, log, &row->update)) {
            char paths[2][KEDGE_PATH_MAX];
            const char *const both[2] = {paths[0], paths[1]};
            const struct kedge_blob_at at = kedgei_input_at(&in.items[i]);
            uint32_t nearest = 0;
            double cosine;
            err = kedge_blobs_path(r->a->main.blobs, &p.now->groups[from].direction, paths[0]);
            err =
                err ? err : kedge_blobs_path(r->a->main.blobs, &p.now->groups[part - 1].direction, paths[1]);
            err = err ? err : kedge_compute_nearest(&d->job->layout, &at, both, 2, &nearest, &cosine, diag);
            err = err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
            must = !err && nearest == 1;
        }
        bool has = moved && moved->round == d->round->number
                   && (moved->how == KEDGE_GROUP_SPLIT || moved->how == KEDGE_GROUP_MERGE);
        if (!err && must && !has) {
            other(r, d, "a site of it was not given the group to which the close moves it", f);
        }
    }
    kedge_mem_free(in.items);
    return err;
}

void kedgei_replay_reshape(const struct kedgei_replay *r, struct kedgei_decision *d,
                           struct kedgei_findings *f)
{
    const struct pair p = pair_of(d->job, d->round, d->round->step);
    const uint32_t most = kedge_job_spec_groups_most(&d->job->spec);
    struct kedge_diag diag = {.err = KEDGE_OK};
    uint32_t used = 0, cuts = 0;
    bool any = false, is_cut = false;
    int err = p.last ? replay_merges(r, d, &any, &diag, f) : KEDGE_OK;
    for (uint32_t g = 0; p.last && g < p.last->group_count; g++) {
        used += p.last->groups[g].merged_into == 0;
    }
    for (uint32_t g = 0; p.last && !any && g < p.last->group_count && !err; g++) {
        if (kedgei_estimate_of(d->job, d->round, g) && d->job->spec.options.silhouette < 1) {
            d->group = g;
            err = replay_cut(r, d, used + cuts < most, &is_cut, &diag, f);
            cuts += is_cut;
        }
    }
    err = err ? err : replay_moves(r, d, &diag, f);
    if (err) {
        kedgei_replay_failed(r, d, d->round->step->index, "groups cut and joined", err, &diag, f);
    }
    d->group = KEDGE_GROUP_NONE;
}

uint32_t kedgei_chosen_among(const struct kedgei_decision *d, uint32_t groups, uint32_t ret[KEDGE_GROUPS_MAX])
{
    const struct kedge_st_group_assigned *g = d->fact->body;
    const struct kedge_st_step_group *row = kedgei_step_group(d->round->step, g->group);
    ret[0] = g->group;
    if (g->how == KEDGE_GROUP_SPLIT && row && row->split_of) {
        ret[0] = row->split_of - 1;
        ret[1] = g->group;
        return 2;
    }
    for (uint32_t i = 0; i < groups && i < KEDGE_GROUPS_MAX; i++) {
        ret[i] = i;
    }
    return groups > 0 ? groups : 1;
}
