/* The recorded inputs of decisions: rows of lists, in the order in which decisions take them. */
#include "chain/audit/rounds/replay_inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/core/coord.h"

int kedgei_inputs_add(struct kedgei_inputs *in, uint32_t place, const struct kedge_input_row *row)
{
    KEDGE_TRY_MEM(kedge_mem_grow(&in->items, &in->cap, in->count, 32, sizeof *in->items));
    in->items[in->count++] = (struct kedgei_input){*row, place};
    return KEDGE_OK;
}

void kedgei_inputs_deinit(struct kedgei_inputs *in)
{
    kedge_mem_free(in->items);
    *in = (struct kedgei_inputs){.items = NULL};
}

int kedgei_inputs_cmp_sites(const struct kedgei_input *a, const struct kedgei_input *b)
{
    const int c = (a->place > b->place) - (a->place < b->place);
    return c ? c : kedge_id_cmp(&a->row.site, &b->row.site);
}

static int compare_inputs(const void *pa, const void *pb)
{
    const struct kedgei_input *a = pa, *b = pb;
    int c = (a->place > b->place) - (a->place < b->place);
    return c ? c : kedge_input_row_cmp(&a->row, &b->row);
}

/* By tenant's place in the spec, then by site: the coordinator's order, on which draws and sums depend.
 * Lists are sorted already; several of them together are not. */
void kedgei_inputs_sort(struct kedgei_inputs *in)
{
    if (in->count > 1) {
        qsort(in->items, in->count, sizeof *in->items, compare_inputs);
    }
}

/* Which rows of a list. */
enum wanted { ALL_ROWS, THAT_COUNT, OF_TRIALS };

/* A row of an update that counts in the close, of one group or (KEDGE_GROUP_NONE) of any. Groups are made
 * of all pre-trainings, also of those that point nowhere. A pre-training that was refused because its
 * update is zero still belongs to the clustering's input, where it gets no group. */
static bool is_wanted(const struct kedgei_round *round, uint32_t group, const struct kedge_input_row *row)
{
    bool left_out = row->use == KEDGE_USE_REFUSED && !kedge_hash_is_zero(&row->leaf_hash)
                    && strcmp(row->reason, kedge_err_code(KEDGE_E_ARG)) == 0;
    bool counts = row->use == (round->pretrain ? KEDGE_USE_GROUPED : KEDGE_USE_AGGREGATED);
    return group == KEDGE_GROUP_NONE ? counts || (round->pretrain && left_out)
                                     : counts && row->group == group;
}

/* Adds the rows that are wanted of the list that entry `at` of the main chain names. A list that cannot
 * be read is NOT_FOUND here: verify names what is wrong with it, and telling it once more for each
 * decision would bury the cause. */
static int read_list(const struct kedgei_audit *a, const struct kedgei_job *job,
                     const struct kedgei_round *round, const struct kedge_hash *tenant,
                     const struct kedge_hash *digest, uint64_t at, enum wanted wanted, uint32_t group,
                     struct kedgei_inputs *ret)
{
    const struct kedgei_log *log = kedgei_job_tenant(a, job, tenant);
    struct kedgei_findings ignored = {.items = NULL}; /* verify names what is wrong with lists */
    struct kedge_input_list list;
    uint32_t place = 0;
    int err = KEDGE_OK;
    if (!log || !kedgei_list_read(a, log, digest, at, &list, &ignored)) {
        bool nomem = ignored.nomem;
        kedgei_findings_deinit(&ignored);
        return nomem ? KEDGE_E_NOMEM : KEDGE_E_NOT_FOUND;
    }
    while (&a->tenants[job->tenants[place]] != log) {
        place++;
    }
    for (uint32_t i = 0; i < list.count && !err; i++) {
        const struct kedge_input_row *row = &list.rows[i];
        if (wanted == ALL_ROWS || (wanted == OF_TRIALS && row->use == KEDGE_USE_EVALUATED)
            || (wanted == THAT_COUNT && is_wanted(round, group, row))) {
            err = kedgei_inputs_add(ret, place, &list.rows[i]);
        }
    }
    kedge_input_list_deinit(&list);
    return err;
}

int kedgei_candidates_of(const struct kedgei_audit *a, const struct kedgei_job *job,
                         const struct kedgei_round *round, struct kedgei_inputs *ret)
{
    const struct kedge_st_round_opened *o = round->opened->body;
    int err = KEDGE_OK;
    for (uint32_t t = 0; t < o->tenant_count && !err; t++) {
        err = read_list(a, job, round, &o->tenants[t].id, &o->tenants[t].list, round->opened->index, ALL_ROWS,
                        KEDGE_GROUP_NONE, ret);
    }
    kedgei_inputs_sort(ret);
    return err;
}

static int read_close(const struct kedgei_audit *a, const struct kedgei_job *job,
                      const struct kedgei_round *round, enum wanted wanted, uint32_t group,
                      struct kedgei_inputs *ret)
{
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        const struct kedgei_fact *fact = round->aggregates[g];
        const struct kedge_st_aggregate *agg = fact ? fact->body : NULL;
        for (uint32_t t = 0; agg && t < agg->tenant_count && !err; t++) {
            err = read_list(a, job, round, &agg->tenants[t].id, &agg->tenants[t].list, fact->index, wanted,
                            group, ret);
        }
    }
    kedgei_inputs_sort(ret);
    return err;
}

int kedgei_inputs_of_close(const struct kedgei_audit *a, const struct kedgei_job *job,
                           const struct kedgei_round *round, uint32_t group, struct kedgei_inputs *ret)
{
    int err = read_close(a, job, round, THAT_COUNT, group, ret);
    return !err && ret->count == 0 ? KEDGE_E_NOT_FOUND : err;
}

int kedgei_evaluations_of_close(const struct kedgei_audit *a, const struct kedgei_job *job,
                                const struct kedgei_round *round, struct kedgei_inputs *ret)
{
    return read_close(a, job, round, OF_TRIALS, KEDGE_GROUP_NONE, ret);
}

/* ---- whose updates ---- */

/* All sites of a tenant that had a group when the round closed. From the table of keys, which has a
 * site's assignments side by side, and not from all entries: of each site only the assignment in force
 * when the round closed counts. */
static int add_members(const struct kedgei_audit *a, const struct kedgei_job *job,
                       const struct kedgei_round *round, uint32_t place, struct kedgei_inputs *ret)
{
    const struct kedgei_log *log = &a->tenants[job->tenants[place]];
    const uint64_t end = kedgei_anchored_before(log, round->step->index);
    char text[KEDGE_IDEM_KEY_MAX + 2];
    const size_t len = (size_t)snprintf(text, sizeof text, "group-assigned/%s/", job->id.s);
    int err = KEDGE_OK;
    for (size_t i = kedgei_log_lower(log, kedge_view_of(text, len)); i < log->key_count && !err; i++) {
        const struct kedgei_key_row *key = kedgei_key_at(log, i);
        if (key->key.len <= len || memcmp(key->key.ptr, text, len) != 0) {
            break;
        }
        const uint64_t index = key->index;
        const struct kedgei_fact *fact = kedgei_fact_at(log, index);
        const struct kedge_st_group_assigned *g = fact->body;
        if (index < end && kedgei_group_before(log, &g->job, &g->site, end) == fact) { /* it is in force */
            const struct kedge_input_row row = {
                .site = g->site, .group = g->group, .leaf = index, .update = g->update};
            err = kedgei_inputs_add(ret, place, &row);
        }
    }
    return err;
}

/* Who speaks for the groups: as many as groups are made from, of each tenant as equal a number as there
 * are. The same draw as the coordinator's, by the job's seed and the round, so nobody can choose which
 * updates a group's direction is estimated from. */
static int choose_speaking(const struct kedgei_job *job, const struct kedgei_round *round,
                           const struct kedgei_inputs *in, bool *ret_chosen)
{
    const size_t n = in->count;
    uint32_t *scratch = kedge_mem_new(3 * n + 1, sizeof *scratch);
    KEDGE_TRY_MEM(scratch);
    for (size_t i = 0; i < n; i++) {
        scratch[2 * n + i] = in->items[i].place;
    }
    kedge_coord_select_by_quota(job->spec.seed, round->number, scratch + 2 * n, (uint32_t)n, 0, scratch,
                                ret_chosen);
    kedge_mem_free(scratch);
    return KEDGE_OK;
}

int kedgei_members_of_close(const struct kedgei_audit *a, const struct kedgei_job *job,
                            const struct kedgei_round *round, uint32_t group, bool speaking,
                            struct kedgei_inputs *ret)
{
    int err = KEDGE_OK;
    for (uint32_t place = 0; place < job->spec.tenant_count && !err; place++) {
        err = add_members(a, job, round, place, ret);
    }
    kedgei_inputs_sort(ret);
    if (err || ret->count == 0 || !speaking) {
        return err;
    }
    bool *chosen = kedge_mem_new(ret->count, sizeof *chosen);
    err = chosen ? choose_speaking(job, round, ret, chosen) : KEDGE_E_NOMEM;
    size_t count = 0;
    for (size_t i = 0; i < ret->count && !err; i++) {
        if (chosen[i] && (group == KEDGE_GROUP_NONE || ret->items[i].row.group == group)) {
            ret->items[count++] = ret->items[i];
        }
    }
    ret->count = err ? ret->count : count;
    kedge_mem_free(chosen);
    return err;
}
