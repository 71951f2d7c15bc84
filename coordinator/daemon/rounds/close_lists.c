/* Closing a round: which input counted how much, was refused or left out, in one list for each
 * aggregate and tenant.
 *
 * Every accepted input stands in exactly one list, also one that counts for nothing, with the
 * reason. That is what an auditor holds against the tenants' ledgers: an update that was left out
 * silently would be in a ledger and in no list. */
#include "coordinator/daemon/rounds/close.h"

#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"

/* Rows of a group that has no aggregate in this round (nobody trained it) go into the list of the
 * first one that has: each row needs some list, and the row itself says its group. */
static uint32_t list_of(const struct close_work *w, uint32_t group)
{
    const struct kedge_round_result *r = w->close.result;
    if (group < w->groups && r->trained[group]) {
        return group;
    }
    uint32_t g = 0;
    while (g + 1 < w->groups && !r->trained[g]) {
        g++;
    }
    return g;
}

/* Rows of inputs. A refusal here is one by the close: the update was accepted at the door, but the
 * groups were kept or it has nothing to group by (an update that is zero). It weighs 0 and says
 * why. */
static void set_used_rows(struct kedge_host *h, struct close_work *w)
{
    bool cold = w->close.result->kind == KEDGE_TASK_PRETRAIN;
    for (size_t i = 0; i < w->close.input_count; i++) {
        struct kedge_close_input *in = &w->close.inputs[i];
        struct close_row *c = &w->rows[w->row_count++];
        uint32_t group = in->left_out ? 0 : in->group;
        c->tenant = in->tenant;
        c->row.site = h->sites[in->site].id;
        c->list_group = list_of(w, group);
        c->row.use = in->left_out ? KEDGE_USE_REFUSED : cold ? KEDGE_USE_GROUPED : KEDGE_USE_AGGREGATED;
        c->row.group = group;
        c->row.leaf = in->in.leaf;
        c->row.weight = in->left_out ? 0 : in->weight;
        c->row.round = in->round == w->close.result->round ? 0 : in->round;
        c->row.to = in->to;
        memcpy(c->row.update.b, in->in.update.b, KEDGE_HASH_LEN);
        if (in->left_out) {
            snprintf(c->row.reason, sizeof c->row.reason, "%s",
                     kedge_err_code(w->close.result->kept ? KEDGE_E_TIMEOUT : KEDGE_E_ARG));
        }
    }
    for (size_t i = 0; i < w->close.evaluation_count; i++) {
        const struct kedge_close_evaluation *e = &w->close.evaluations[i];
        struct close_row *c = &w->rows[w->row_count++];
        c->tenant = e->tenant;
        c->row = (struct kedge_input_row){.site = h->sites[e->site].id,
                                          .use = KEDGE_USE_EVALUATED,
                                          .group = e->group,
                                          .leaf = e->leaf,
                                          .weight = e->samples};
    }
    if (w->close.result->kept) { /* one list for all, of the first group, where there is anything to list */
        w->close.result->trained[0] = w->row_count > 0;
    }
}

/* Leaf hashes, and the lists of rows that were made before the groups were known: the group that a row was
 * refused in may be gone with the groups that were made since. */
static int finish_rows(struct kedge_host *h, struct close_work *w)
{
    for (size_t i = 0; i < w->row_count; i++) {
        struct close_row *c = &w->rows[i];
        c->row.group = c->row.group < w->groups ? c->row.group : 0;
        c->list_group = list_of(w, c->row.group);
        bool in_ledger = c->row.use != KEDGE_USE_REFUSED || c->row.leaf > 0;
        if (in_ledger) {
            int err =
                kedge_ledger_leaf_hash(h->tenants[c->tenant].log.ledger, c->row.leaf, &c->row.leaf_hash);
            if (err) {
                return err;
            }
        }
    }
    return KEDGE_OK;
}

/* The rows of one tenant in the list of one group; adds its line to the aggregate. */
static int put_list(struct kedge_host *h, const struct close_work *w, uint32_t tenant,
                    struct kedge_st_aggregate *a, struct kedge_diag *d)
{
    struct kedge_input_row *rows KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(w->row_count, sizeof *rows);
    struct kedge_st_aggregate_tenant line = {.id = h->tenants[tenant].salted};
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    size_t n = 0;
    kedge_buf_init(&text, KEDGE_INPUT_LIST_MAX);
    for (size_t i = 0; rows && i < w->row_count; i++) {
        const struct close_row *c = &w->rows[i];
        if (c->tenant != tenant || c->list_group != a->group) {
            continue;
        }
        bool used =
            c->row.use
            == (w->close.result->kind == KEDGE_TASK_PRETRAIN ? KEDGE_USE_GROUPED : KEDGE_USE_AGGREGATED);
        rows[n++] = c->row;
        line.accepted += used;
        line.weight_sum += used ? c->row.weight : 0;
        line.refused += c->row.use == KEDGE_USE_REFUSED;
    }
    KEDGE_TRY(rows ? KEDGE_OK : KEDGE_E_NOMEM);
    if (n > 0) {
        kedge_input_rows_sort(rows, n);
        KEDGE_TRY(kedge_input_list_encode(rows, n, &text));
        struct kedge_view part = kedge_buf_view(&text);
        KEDGE_TRY(kedge_blobs_put(h->tenants[tenant].log.blobs, &part, 1, &line.list, d));
        a->tenants[a->tenant_count++] = line;
        a->count += line.accepted;
        a->weight_sum += line.weight_sum;
    }
    return KEDGE_OK;
}

/* One statement for each group that was trained, naming the rule by which its model was made, which
 * may differ from group to group. */
static int make_aggregates(struct kedge_host *h, struct close_work *w, struct kedge_diag *d)
{
    struct kedge_round_result *r = w->close.result;
    int err = finish_rows(h, w);
    r->aggregates = kedge_mem_new(w->groups + 1, sizeof *r->aggregates);
    err = r->aggregates ? err : KEDGE_E_NOMEM;
    for (uint32_t g = 0; g < w->groups && !err; g++) {
        if (!r->trained[g]) {
            continue;
        }
        struct kedge_st_aggregate *a = &r->aggregates[r->aggregate_count++];
        a->job = w->job->spec.name;
        a->round = r->round;
        a->group = g;
        a->scale = w->job->spec.scale;
        a->base = r->before[g];
        bool cold = r->kind == KEDGE_TASK_PRETRAIN;
        snprintf(a->rule, sizeof a->rule, "%s",
                 r->kept ? KEDGE_RULE_KEPT
                 : cold && r->round > 0
                     ? KEDGE_RULE_RECLUSTER
                     : kedge_job_spec_aggregate_rule(&w->job->spec, cold, w->close.rule[g]).s);
        for (uint32_t i = 0; i < w->job->params.tenant_count && !err; i++) {
            err = put_list(h, w, w->job->params.tenants[i], a, d);
        }
    }
    return err;
}

int kedgei_close_lists(struct kedge_host *h, struct close_work *w, struct kedge_diag *d)
{
    set_used_rows(h, w);
    return make_aggregates(h, w, d);
}
