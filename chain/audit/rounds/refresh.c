/* Rounds of training behind which directions are estimated again, and from whose updates. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/audit/rounds/replay.h"
#include "common/base/mem.h"
#include "coordinator/core/coord.h"

bool kedgei_refreshes(const struct kedgei_job *job, const struct kedgei_round *round)
{
    return !round->pretrain && kedge_job_spec_refreshes(&job->spec, round->number);
}

bool kedgei_drifted(const struct kedgei_round *round)
{
    return round->step && kedge_job_spec_drifted(((const struct kedge_st_step *)round->step->body)->drift);
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
            err = kedgei_inputs_add(ret, members[i].place, &row);
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
