/* Rounds of training behind which directions are estimated again: from whose updates, and whether what the
 * step says of them goes on from the step before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/audit/rounds/replay.h"
#include "common/base/mem.h"
#include "coordinator/core/coord.h"
#include "grouping/flexcfl.h"
#include "round/drift.h"

bool kedgei_refreshes(const struct kedgei_job *job, const struct kedgei_round *round)
{
    return !round->pretrain && kedge_job_spec_refreshes(&job->spec, round->number);
}

bool kedgei_drifted(const struct kedgei_round *round)
{
    return round->step && kedge_job_spec_drifted(((const struct kedge_st_step *)round->step->body)->drift);
}

/* ---- verify ---- */

/* The direction with which the group of this row was made. */
static const struct kedge_hash *made_of(const struct kedge_st_step_group *row)
{
    return kedge_hash_is_zero(&row->made) ? &row->direction : &row->made;
}

void kedgei_check_refreshed(struct kedgei_audit *a, const struct kedgei_job *job,
                            const struct kedgei_round *round, const struct kedgei_fact *fact)
{
    const struct kedge_st_step *s = fact->body;
    bool refreshes = kedgei_refreshes(job, round);
    struct kedgei_findings *f = &a->findings;
    if (s->drift > 0 && !refreshes) {
        kedgei_error(f, KEDGE_AUDIT_STEP, &a->main, fact->index,
                     "round %u states a drift of %g, but estimates no directions", round->number, s->drift);
    }
    for (uint32_t i = 0; i < s->group_count; i++) {
        const struct kedge_st_step_group *g = &s->groups[i];
        const struct kedgei_fact *earlier =
            kedgei_makes_groups(round) || round == job->rounds ? NULL : round[-1].step;
        const struct kedge_st_step_group *last = earlier ? kedgei_step_group(earlier, i) : NULL;
        if (g->split_of || !kedge_hash_is_zero(&g->whole) || (last && last->merged_into)) {
            continue; /* reshape.c */
        }
        bool follows = last ? kedge_hash_eq(made_of(last), made_of(g)) : kedge_hash_is_zero(&g->made);
        bool twice = !kedge_hash_is_zero(&g->made) && kedge_hash_eq(&g->made, &g->direction);
        if (!follows || twice) {
            kedgei_error(f, KEDGE_AUDIT_STEP, &a->main, fact->index,
                         "group %u: \"made\" is not the direction with which it was made", i);
        }
        if (last && !refreshes && !kedge_hash_eq(&last->direction, &g->direction)) {
            kedgei_error(f, KEDGE_AUDIT_STEP, &a->main, fact->index,
                         "group %u: its direction is not that of the round before", i);
        }
    }
}

/* ---- whose updates ---- */

struct member {
    const struct kedge_st_group_assigned *last;
    uint64_t entry; /* where it stands */
    uint32_t place;
};

/* All sites of a tenant that had a group when the round closed. */
static int add_members(const struct kedgei_replay *r, const struct kedgei_decision *d, uint32_t place,
                       struct member **members, size_t *count, size_t *cap)
{
    const struct kedgei_log *log = &r->a->tenants[d->job->tenants[place]];
    const uint64_t end = kedgei_anchored_before(log, d->round->step->index);
    char text[KEDGE_IDEM_KEY_MAX + 2];
    const size_t len = (size_t)snprintf(text, sizeof text, "group-assigned/%s/", d->job->id.s);
    for (size_t i = kedgei_log_lower(log, kedge_view_of(text, len)); i < log->key_count; i++) {
        const struct kedgei_key_row *row = kedgei_key_at(log, i);
        if (row->key.len <= len || memcmp(row->key.ptr, text, len) != 0) {
            break;
        }
        const uint64_t index = row->index;
        const struct kedgei_fact *fact = kedgei_fact_at(log, index);
        const struct kedge_st_group_assigned *g = fact->body;
        if (index >= end || kedgei_group_before(log, &g->job, &g->site, end) != fact) {
            continue; /* not the one in force */
        }
        if (*count == *cap) {
            size_t more = *cap ? 2 * *cap : 64;
            struct member *items = kedge_mem_resize(*members, more, sizeof *items);
            if (!items) {
                return KEDGE_E_NOMEM;
            }
            *members = items;
            *cap = more;
        }
        (*members)[(*count)++] = (struct member){g, index, place};
    }
    return KEDGE_OK;
}

static int compare_members(const void *pa, const void *pb)
{
    const struct member *a = pa, *b = pb;
    int c = (a->place > b->place) - (a->place < b->place);
    return c ? c : kedge_id_cmp(&a->last->site, &b->last->site);
}

int kedgei_members_read(const struct kedgei_replay *r, const struct kedgei_decision *d, bool chosen,
                        struct kedgei_inputs *ret)
{
    struct member *members = NULL;
    size_t n = 0, cap = 0;
    int err = KEDGE_OK;
    for (uint32_t place = 0; place < d->job->spec.tenant_count && !err; place++) {
        err = add_members(r, d, place, &members, &n, &cap);
    }
    if (n > 1) {
        qsort(members, n, sizeof *members, compare_members);
    }
    uint32_t *scratch = kedge_mem_new(3 * n + 1, sizeof *scratch);
    bool *selected = kedge_mem_new(n + 1, sizeof *selected);
    err = err ? err : scratch && selected ? KEDGE_OK : KEDGE_E_NOMEM;
    for (size_t i = 0; i < n && !err; i++) {
        scratch[2 * n + i] = members[i].place;
    }
    if (!err && n > 0) {
        kedge_coord_select_by_quota(d->job->spec.seed, d->round->number, scratch + 2 * n, (uint32_t)n, 0,
                                    scratch, selected);
    }
    for (size_t i = 0; i < n && !err; i++) {
        const struct kedge_st_group_assigned *g = members[i].last;
        if ((selected[i] || !chosen) && (d->group == KEDGE_GROUP_NONE || g->group == d->group)) {
            const struct kedge_input_row row = {
                .site = g->site, .group = g->group, .leaf = members[i].entry, .update = g->update};
            err = kedgei_inputs_add(ret, r->a, d->job, members[i].place, &row);
        }
    }
    kedge_mem_free(members);
    kedge_mem_free(scratch);
    kedge_mem_free(selected);
    return err;
}

int kedgei_signs_read(const struct kedgei_replay *r, const struct kedgei_decision *d,
                      struct kedgei_inputs *ret)
{
    return kedgei_members_read(r, d, true, ret);
}

/* A group of which no update is there, or all point nowhere, keeps its direction. */
void kedgei_replay_estimate(const struct kedgei_replay *r, struct kedgei_decision *d,
                            struct kedgei_findings *f)
{
    const uint64_t at = d->round->step->index;
    const struct kedge_hash *last = kedgei_direction_of(d->round[-1].step, d->group);
    const struct kedge_hash *recorded = kedgei_estimate_of(d->job, d->round, d->group);
    struct kedge_diag diag = {.err = KEDGE_OK};
    struct kedgei_inputs in = {.items = NULL};
    struct kedge_compute_sites members = {.count = 0};
    struct kedge_hasher *hasher = NULL;
    struct kedge_sink sink;
    struct kedge_hash digest;
    int err = kedgei_signs_read(r, d, &in);
    bool stays = !err && in.count == 0;
    if (!err && !stays) {
        err = kedgei_inputs_sites(&in, &members);
        err = err ? err : kedgei_replay_sink(&hasher, &sink);
        err = err ? err : kedge_compute_direction(&d->job->layout, &members, &d->job->spec, sink, &diag);
        stays = err == KEDGE_E_NO_DIRECTION;
    }
    if (err && !stays) {
        kedgei_replay_failed(r, d, at, "direction", err, &diag, f);
    } else if (last && recorded) {
        digest = *last;
        if (!stays) {
            kedge_hasher_final(hasher, &digest);
        }
        kedgei_replay_add(d, digest.b, sizeof digest.b);
        kedgei_replay_compare(r, d, KEDGE_AUDIT_REPLAY_DIRECTION, at, d->group, &digest, recorded, f);
    }
    kedge_hasher_free(hasher);
    kedge_mem_free(in.items);
    kedgei_inputs_sites_free(&members);
}

/* ---- how far ---- */

void kedgei_replay_drift(const struct kedgei_replay *r, struct kedgei_decision *d, struct kedgei_findings *f)
{
    const struct kedge_st_step *step = d->round->step->body;
    struct kedge_diag diag = {.err = KEDGE_OK};
    char paths[2][KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *made[KEDGE_GROUPS_MAX], *now[KEDGE_GROUPS_MAX];
    double drift = 0;
    size_t n = 0;
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < step->group_count && !err; g++) {
        const struct kedge_st_step_group *last = kedgei_step_group(d->round[-1].step, g);
        const struct kedge_hash *estimate = kedgei_estimate_of(d->job, d->round, g);
        if (last && estimate) {
            made[n] = paths[0][g];
            now[n++] = paths[1][g];
            err = kedge_blobs_path(r->a->main.blobs, made_of(last), paths[0][g]);
            err = err ? err : kedge_blobs_path(r->a->main.blobs, estimate, paths[1][g]);
        }
    }
    err = err ? err : kedge_compute_drift(&d->job->layout, made, now, n, &drift, &diag);
    if (err) {
        kedgei_replay_failed(r, d, d->round->step->index, "drift of groups", err, &diag, f);
        return;
    }
    uint64_t bits;
    memcpy(&bits, &drift, sizeof bits);
    kedgei_replay_add_number(d, bits);
    if (drift < step->drift || drift > step->drift) {
        kedgei_error(f, KEDGE_AUDIT_REPLAY_DIRECTION, &r->a->main, d->round->step->index,
                     "job \"%s\", round %u: a drift of %.17g is recorded, the directions give %.17g",
                     d->job->id.s, d->round->number, step->drift, drift);
    }
}
