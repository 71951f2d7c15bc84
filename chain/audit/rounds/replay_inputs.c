/* The recorded inputs of decisions: rows of lists, in the order in which decisions take them. */
#include "chain/audit/rounds/replay_inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "coordinator/core/coord.h"

int kedgei_inputs_add(struct kedgei_inputs *in, uint32_t place, const struct kedge_input_row *row)
{
    if (in->count == in->cap) {
        size_t cap = in->cap ? 2 * in->cap : 32;
        struct kedgei_input *items = kedge_mem_resize(in->items, cap, sizeof *items);
        if (!items) {
            return KEDGE_E_NOMEM;
        }
        in->items = items;
        in->cap = cap;
    }
    in->items[in->count++] = (struct kedgei_input){*row, place};
    return KEDGE_OK;
}

void kedgei_inputs_deinit(struct kedgei_inputs *in)
{
    kedge_mem_free(in->items);
    *in = (struct kedgei_inputs){.items = NULL};
}

static int compare_inputs(const void *pa, const void *pb)
{
    const struct kedgei_input *a = pa, *b = pb;
    int c = (a->place > b->place) - (a->place < b->place);
    return c ? c : kedge_input_row_cmp(&a->row, &b->row);
}

void kedgei_inputs_sort(struct kedgei_inputs *in)
{
    if (in->count > 1) {
        qsort(in->items, in->count, sizeof *in->items, compare_inputs);
    }
}

/* A row of an update that counts in the close, of one group or (KEDGE_GROUP_NONE) of any. Groups are made of
 * all pre-trainings, also of those that point nowhere. */
static bool is_wanted(const struct kedgei_round *round, uint32_t group, const struct kedge_input_row *row)
{
    bool left_out = row->use == KEDGE_USE_REFUSED && !kedge_hash_is_zero(&row->leaf_hash)
                    && strcmp(row->reason, kedge_err_code(KEDGE_E_ARG)) == 0;
    bool counts = row->use == (round->pretrain ? KEDGE_USE_GROUPED : KEDGE_USE_AGGREGATED);
    return group == KEDGE_GROUP_NONE ? counts || (round->pretrain && left_out)
                                     : counts && row->group == group;
}

static int read_list(const struct kedgei_audit *a, const struct kedgei_job *job,
                     const struct kedgei_round *round, const struct kedgei_fact *aggregate, uint32_t tenant,
                     uint32_t group, struct kedgei_inputs *ret)
{
    const struct kedge_st_aggregate *agg = aggregate->body;
    const struct kedgei_log *log = kedgei_job_tenant(a, job, &agg->tenants[tenant].id);
    struct kedgei_findings ignored = {.items = NULL}; /* verify names what is wrong with lists */
    struct kedge_input_list list;
    uint32_t place = 0;
    int err = KEDGE_OK;
    if (!log || !kedgei_list_read(a, log, &agg->tenants[tenant].list, aggregate->index, &list, &ignored)) {
        bool nomem = ignored.nomem;
        kedgei_findings_deinit(&ignored);
        return nomem ? KEDGE_E_NOMEM : KEDGE_E_NOT_FOUND;
    }
    while (&a->tenants[job->tenants[place]] != log) {
        place++;
    }
    for (uint32_t i = 0; i < list.count && !err; i++) {
        if (is_wanted(round, group, &list.rows[i])) {
            err = kedgei_inputs_add(ret, place, &list.rows[i]);
        }
    }
    kedge_input_list_deinit(&list);
    return err;
}

int kedgei_inputs_of_close(const struct kedgei_audit *a, const struct kedgei_job *job,
                           const struct kedgei_round *round, uint32_t group, struct kedgei_inputs *ret)
{
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        const struct kedgei_fact *fact = round->aggregates[g];
        const struct kedge_st_aggregate *agg = fact ? fact->body : NULL;
        for (uint32_t t = 0; agg && t < agg->tenant_count && !err; t++) {
            err = read_list(a, job, round, fact, t, group, ret);
        }
    }
    kedgei_inputs_sort(ret);
    return !err && ret->count == 0 ? KEDGE_E_NOT_FOUND : err;
}

/* ---- whose updates ---- */

struct member {
    const struct kedge_st_group_assigned *last;
    uint64_t entry; /* where it stands */
    uint32_t place;
};

/* All sites of a tenant that had a group when the round closed. */
static int add_members(const struct kedgei_audit *a, const struct kedgei_job *job,
                       const struct kedgei_round *round, uint32_t place, struct member **members,
                       size_t *count, size_t *cap)
{
    const struct kedgei_log *log = &a->tenants[job->tenants[place]];
    const uint64_t end = kedgei_anchored_before(log, round->step->index);
    char text[KEDGE_IDEM_KEY_MAX + 2];
    const size_t len = (size_t)snprintf(text, sizeof text, "group-assigned/%s/", job->id.s);
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

int kedgei_members_of_close(const struct kedgei_audit *a, const struct kedgei_job *job,
                            const struct kedgei_round *round, uint32_t group, bool speaking,
                            struct kedgei_inputs *ret)
{
    struct member *members = NULL;
    size_t n = 0, cap = 0;
    int err = KEDGE_OK;
    for (uint32_t place = 0; place < job->spec.tenant_count && !err; place++) {
        err = add_members(a, job, round, place, &members, &n, &cap);
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
        kedge_coord_select_by_quota(job->spec.seed, round->number, scratch + 2 * n, (uint32_t)n, 0, scratch,
                                    selected);
    }
    for (size_t i = 0; i < n && !err; i++) {
        const struct kedge_st_group_assigned *g = members[i].last;
        if ((selected[i] || !speaking) && (group == KEDGE_GROUP_NONE || g->group == group)) {
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
