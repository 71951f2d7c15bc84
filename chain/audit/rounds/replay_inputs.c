/* The recorded inputs of decisions: rows of lists, in the order in which decisions take them. */
#include "chain/audit/rounds/replay.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "round/compute.h"

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

static bool is_wanted(const struct kedgei_decision *d, const struct kedge_input_row *row)
{
    bool left_out = row->use == KEDGE_USE_REFUSED && !kedge_hash_is_zero(&row->leaf_hash)
                    && strcmp(row->reason, kedge_err_code(KEDGE_E_ARG)) == 0;
    switch (d->kind) {
    case KEDGEI_GROUPING:
        return row->use == KEDGE_USE_GROUPED || left_out;
    case KEDGEI_DIRECTION:
        return row->use == KEDGE_USE_GROUPED && row->group == d->group;
    case KEDGEI_AGGREGATE:
        return row->use == (d->round->pretrain ? KEDGE_USE_GROUPED : KEDGE_USE_AGGREGATED)
               && row->group == d->group;
    case KEDGEI_SPLIT:
        return row->use == KEDGE_USE_AGGREGATED && row->group == d->group;
    case KEDGEI_MEETING:
        return row->use == KEDGE_USE_AGGREGATED;
    case KEDGEI_NEAREST:
    case KEDGEI_INITIAL:
    case KEDGEI_SELECTION:
    case KEDGEI_ASSIGNED:
    case KEDGEI_MIXING:
    case KEDGEI_SERVER:
    case KEDGEI_DRIFT:
    case KEDGEI_RESHAPE:
    case KEDGEI_JOINED:
        break;
    }
    return false;
}

int kedgei_inputs_read(const struct kedgei_replay *r, const struct kedgei_decision *d,
                       struct kedgei_inputs *ret, struct kedgei_findings *f)
{
    struct kedgei_findings ignored = {.items = NULL}; /* verify names what is wrong with lists */
    int err = KEDGE_OK;
    if (d->kind == KEDGEI_RESHAPE || (d->kind == KEDGEI_DIRECTION && !d->round->pretrain)) {
        return kedgei_signs_read(r, d, ret);
    }
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        const struct kedgei_fact *fact = d->round->aggregates[g];
        const struct kedge_st_aggregate *agg = fact ? fact->body : NULL;
        for (uint32_t t = 0; agg && t < agg->tenant_count && !err; t++) {
            const struct kedgei_log *log = kedgei_job_tenant(r->a, d->job, &agg->tenants[t].id);
            struct kedge_input_list list;
            uint32_t place = 0;
            if (!log || !kedgei_list_read(r->a, log, &agg->tenants[t].list, fact->index, &list, &ignored)) {
                err = KEDGE_E_NOT_FOUND;
                continue;
            }
            while (&r->a->tenants[d->job->tenants[place]] != log) {
                place++;
            }
            for (uint32_t i = 0; i < list.count && !err; i++) {
                if (is_wanted(d, &list.rows[i])) {
                    err = kedgei_inputs_add(ret, place, &list.rows[i]);
                }
            }
            kedge_input_list_deinit(&list);
        }
    }
    f->nomem = f->nomem || ignored.nomem;
    kedgei_findings_deinit(&ignored);
    kedgei_inputs_sort(ret);
    return !err && ret->count == 0 ? KEDGE_E_NOT_FOUND : err;
}

int kedgei_candidates_read(const struct kedgei_replay *r, const struct kedgei_decision *d,
                           struct kedgei_inputs *ret, struct kedgei_findings *f)
{
    const struct kedge_st_round_opened *o = d->round->opened->body;
    struct kedgei_findings ignored = {.items = NULL};
    int err = KEDGE_OK;
    for (uint32_t place = 0; place < d->job->spec.tenant_count && !err; place++) {
        const struct kedgei_log *log = &r->a->tenants[d->job->tenants[place]];
        for (uint32_t t = 0; t < o->tenant_count && !err; t++) {
            struct kedge_input_list list;
            if (!kedge_hash_eq(&log->salted, &o->tenants[t].id)) {
                continue;
            }
            if (!kedgei_list_read(r->a, log, &o->tenants[t].list, d->round->opened->index, &list, &ignored)) {
                err = KEDGE_E_NOT_FOUND;
                break;
            }
            for (uint32_t i = 0; i < list.count && !err; i++) {
                err = kedgei_inputs_add(ret, place, &list.rows[i]);
            }
            kedge_input_list_deinit(&list);
        }
    }
    f->nomem = f->nomem || ignored.nomem;
    kedgei_findings_deinit(&ignored);
    return err;
}

struct kedgei_decision kedgei_as_aggregate(const struct kedgei_decision *d)
{
    struct kedgei_decision as = *d;
    as.kind = KEDGEI_AGGREGATE;
    return as;
}
