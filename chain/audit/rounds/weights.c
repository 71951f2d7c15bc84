#include "chain/audit/rounds/weights.h"

#include <stdlib.h>
#include <string.h>

#include "aggregation/share_cap.h"
#include "chain/audit/rounds/buffer.h"
#include "common/base/mem.h"
#include "round/regroup.h"

bool kedgei_weights_facts(const struct kedgei_log *log, const struct kedge_input_row *row,
                          struct kedge_strategy_input *ret)
{
    const struct kedgei_fact *fact = row->leaf < log->count ? kedgei_fact_at(log, row->leaf) : NULL;
    const struct kedge_st_update *u = fact && fact->kind == KEDGE_ST_UPDATE ? fact->body : NULL;
    if (u) {
        *ret = (struct kedge_strategy_input){
            .samples = u->samples, .steps = u->steps, .rate = u->learning_rate, .loss = u->loss};
    }
    return u != NULL;
}

bool kedgei_weights_derived(const struct kedge_job_spec *spec)
{
    return spec->tenant_share_max < KEDGE_SHARE_ONE || spec->rule->kind != KEDGE_RULE_MEAN
           || !kedge_job_spec_weighs_samples(spec);
}

void kedgei_weights_add(struct kedgei_weights *w, const struct kedgei_log *log, uint32_t place,
                        const struct kedge_input_row *row, struct kedgei_findings *f)
{
    if (w->count == w->cap) {
        size_t cap = w->cap ? 2 * w->cap : 64;
        struct kedgei_weighed *rows = kedge_mem_resize(w->rows, cap, sizeof *rows);
        if (!rows) {
            f->nomem = true;
            w->unknown = true;
            return;
        }
        w->rows = rows;
        w->cap = cap;
    }
    w->rows[w->count++] = (struct kedgei_weighed){*row, log, place};
}

static int compare_rows(const void *pa, const void *pb)
{
    const struct kedgei_weighed *a = pa, *b = pb;
    int c = (a->place > b->place) - (a->place < b->place);
    return c ? c : kedge_input_row_cmp(&a->row, &b->row);
}

/* The rows' facts in site order; false when one names no statement. */
static bool gather(struct kedgei_weights *w, const struct kedge_job_spec *spec, uint32_t round,
                   struct kedge_compute_input *inputs)
{
    bool whole = !w->unknown;
    qsort(w->rows, w->count, sizeof *w->rows, compare_rows);
    for (size_t i = 0; i < w->count && whole; i++) {
        inputs[i].tenant = w->rows[i].place;
        inputs[i].is_root = kedge_job_spec_is_root(spec, w->rows[i].place, &w->rows[i].row.site);
        whole = kedgei_weights_facts(w->rows[i].log, &w->rows[i].row, &inputs[i].facts);
        inputs[i].facts.staleness = kedgei_staleness(round, &w->rows[i].row);
    }
    return whole;
}

static void check_rule(const struct kedgei_audit *a, const struct kedgei_job *job, bool cold_start,
                       const struct kedgei_fact *aggregate, const struct kedge_rule *rule,
                       struct kedgei_findings *f)
{
    const struct kedge_st_aggregate *g = aggregate->body;
    struct kedge_rule_name name = kedge_job_spec_aggregate_rule(&job->spec, cold_start, rule);
    if (strcmp(name.s, g->rule) != 0) {
        kedgei_error(f, KEDGE_AUDIT_AGGREGATE, &a->main, aggregate->index,
                     "rule \"%s\"; with these updates it is \"%s\"", g->rule, name.s);
    }
}

static void compare_weights(const struct kedgei_audit *a, const struct kedgei_fact *aggregate,
                            const struct kedgei_weights *w, const uint64_t *weight, struct kedgei_findings *f)
{
    for (size_t i = 0; i < w->count; i++) {
        const struct kedge_input_row *row = &w->rows[i].row;
        if (row->weight != weight[i]) {
            kedgei_error(f, KEDGE_AUDIT_ROW, &a->main, aggregate->index,
                         "row of \"%s\" of \"%s\", leaf %llu: its weight is %llu, its rule gives %llu",
                         row->site.s, w->rows[i].log->name, (unsigned long long)row->leaf,
                         (unsigned long long)row->weight, (unsigned long long)weight[i]);
        }
    }
}

void kedgei_weights_check(const struct kedgei_audit *a, const struct kedgei_job *job, bool cold_start,
                          const struct kedgei_fact *aggregate, struct kedgei_weights *w,
                          struct kedgei_findings *f)
{
    const struct kedge_st_aggregate *g = aggregate->body;
    struct kedge_diag d = {.text = ""};
    struct kedge_compute_weights weights = {.weight = kedge_mem_new(w->count + 1, sizeof *weights.weight)};
    struct kedge_compute_input *inputs = kedge_mem_new(w->count + 1, sizeof *inputs);
    if (!weights.weight || !inputs) {
        f->nomem = true;
    } else if (w->count > 0 && gather(w, &job->spec, g->round, inputs)) {
        int err = kedge_compute_weigh(&job->spec, NULL, cold_start, inputs, w->count, &weights, &d);
        f->nomem = f->nomem || err == KEDGE_E_NOMEM;
        if (!err || err == KEDGE_E_NOT_FOUND) { /* not found: files decide, replay looks */
            check_rule(a, job, cold_start, aggregate, weights.rule, f);
        }
        if (!err) {
            compare_weights(a, aggregate, w, weights.weight, f);
        } else if (err != KEDGE_E_NOT_FOUND && err != KEDGE_E_NOMEM) {
            kedgei_error(f, KEDGE_AUDIT_ROW, &a->main, aggregate->index, "%s", d.text);
        }
    }
    kedge_mem_free(weights.weight);
    kedge_mem_free(inputs);
    kedge_mem_free(w->rows);
    *w = (struct kedgei_weights){.rows = NULL};
}

void kedgei_weights_check_regrouped(const struct kedgei_audit *a, const struct kedgei_job *job,
                                    const struct kedgei_round *round, const struct kedgei_fact *aggregate,
                                    struct kedgei_weights *w, struct kedgei_findings *f)
{
    const struct kedge_st_aggregate *g = aggregate->body;
    const struct kedge_st_step *last = round[-1].step->body; /* a round of training: not the first */
    uint64_t *weight = kedge_mem_new(w->count + 1, sizeof *weight);
    uint32_t *then = kedge_mem_new(3 * (w->count + 1), sizeof *then);
    uint32_t *tenant = then ? then + w->count + 1 : NULL, *group = tenant ? tenant + w->count + 1 : NULL;
    if (w->count > 1) {
        qsort(w->rows, w->count, sizeof *w->rows, compare_rows);
    }
    for (size_t i = 0; group && i < w->count; i++) {
        const struct kedgei_weighed *row = &w->rows[i];
        then[i] = kedgei_group_then(row->log, &job->id, &row->row);
        tenant[i] = row->place;
        group[i] = g->group;
    }
    int err = !weight || !group ? KEDGE_E_NOMEM
              : w->unknown      ? KEDGE_E_NOT_FOUND
                           : kedge_compute_regroup_weigh(tenant, then, group, w->count, last->group_count,
                                                         g->group, weight);
    f->nomem = f->nomem || err == KEDGE_E_NOMEM;
    if (!err) {
        compare_weights(a, aggregate, w, weight, f);
    }
    kedge_mem_free(weight);
    kedge_mem_free(then);
    kedge_mem_free(w->rows);
    *w = (struct kedgei_weights){.rows = NULL};
}
