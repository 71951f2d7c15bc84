/* Closing a round, group by group: what each update weighs, the aggregate, the server's step. */
#include <string.h>

#include "chain/compute/aggregate.h"
#include "chain/compute/step.h"
#include "common/base/mem.h"
#include "common/tensor/safetensors.h"
#include "coordinator/daemon/close.h"
#include "coordinator/daemon/host.h"

static int sink_to_blob(void *arg, struct kedge_view bytes)
{
    return kedge_blob_writer_write(arg, bytes, NULL);
}

int kedgei_close_blob_begin(struct kedge_host *h, uint64_t len, struct kedge_blob_writer **ret,
                            struct kedge_sink *ret_sink, struct kedge_diag *d)
{
    int err = kedge_blob_writer_open(h->main.blobs, len, ret, d);
    *ret_sink = (struct kedge_sink){sink_to_blob, err ? NULL : *ret};
    return err;
}

int kedgei_close_blob_end(struct kedge_blob_writer *writer, int err, struct kedge_hash *ret,
                          struct kedge_diag *d)
{
    if (err) {
        kedge_blob_writer_abort(writer);
        return err;
    }
    return kedge_blob_writer_finish(writer, ret, NULL, d);
}

uint32_t kedgei_close_place(const struct kedge_job *job, uint32_t tenant)
{
    uint32_t place = 0;
    while (place < job->params.tenant_count && job->params.tenants[place] != tenant) {
        place++;
    }
    return place;
}

static bool is_of(const struct close_input *in, uint32_t group)
{
    return !in->left_out && in->group == group;
}

/* What the update's statement says besides its samples. */
static int read_facts(struct kedge_host *h, const struct close_input *in, struct kedge_strategy_input *facts,
                      struct kedge_diag *d)
{
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    struct kedge_buf entry, payload;
    struct kedge_dsse_entry dsse;
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
    int err = st ? kedge_ledger_get(h->tenants[in->tenant].log.ledger, in->in.leaf, &entry) : KEDGE_E_NOMEM;
    err = err ? err : kedge_dsse_decode(kedge_buf_view(&entry), &payload, &dsse);
    err = err ? err : kedge_statement_decode(kedge_buf_view(&payload), st, d);
    if (!err && st->kind != KEDGE_ST_UPDATE) {
        err = KEDGE_E_CORRUPT;
    }
    if (!err) {
        facts->steps = st->u.update.steps;
        facts->loss = st->u.update.loss;
    }
    kedge_buf_deinit(&entry);
    kedge_buf_deinit(&payload);
    kedge_mem_free(st);
    return err;
}

/* The group's inputs in site order; *ret is the caller's to free. */
int kedgei_close_gather(const struct kedge_host *h, const struct close_work *w, uint32_t group,
                        struct kedge_compute_input **ret, size_t *ret_count)
{
    struct kedge_compute_input *inputs = kedge_mem_new(w->input_count + 1, sizeof *inputs);
    size_t n = 0;
    for (size_t i = 0; inputs && i < w->input_count; i++) { /* in site order: (tenant, site) ascending */
        const struct close_input *in = &w->inputs[i];
        if (is_of(in, group)) {
            uint32_t place = kedgei_close_place(w->job, in->tenant);
            inputs[n++] = (struct kedge_compute_input){
                .update = in->file,
                .tenant = place,
                .is_root = kedge_job_spec_is_root(&w->job->spec, place, &h->sites[in->site].id),
                .facts.samples = in->in.weight,
                .facts.staleness = w->result->round - in->round};
        }
    }
    *ret = inputs;
    *ret_count = n;
    return inputs ? KEDGE_OK : KEDGE_E_NOMEM;
}

int kedgei_close_weigh(struct kedge_host *h, struct close_work *w, uint32_t group, bool cold)
{
    const struct kedge_job_spec *spec = &w->job->spec;
    struct kedge_compute_input *inputs = NULL;
    struct kedge_compute_weights weights = {.rule = spec->rule};
    size_t n = 0, at = 0;
    int err = kedgei_close_gather(h, w, group, &inputs, &n);
    weights.weight = err ? NULL : kedge_mem_new(n + 1, sizeof *weights.weight);
    err = err ? err : weights.weight ? KEDGE_OK : KEDGE_E_NOMEM;
    for (size_t i = 0; !cold && !kedge_job_spec_weighs_samples(spec) && i < w->input_count && !err; i++) {
        if (is_of(&w->inputs[i], group)) {
            err = read_facts(h, &w->inputs[i], &inputs[at++].facts, &w->models.diag);
        }
    }
    if (!err && n > 0) {
        err = kedge_compute_weigh(spec, &w->job->layout, cold, inputs, n, &weights, &w->models.diag);
    }
    w->result->members[group] = (uint32_t)n;
    w->result->trained[group] = n > 0;
    w->rule[group] = weights.rule;
    w->divisor[group] = weights.divisor;
    at = 0;
    for (size_t i = 0; !err && i < w->input_count; i++) {
        if (is_of(&w->inputs[i], group)) {
            w->inputs[i].weight = weights.weight[at++];
        }
    }
    kedge_mem_free(weights.weight);
    kedge_mem_free(inputs);
    return err ? kedge_diag_set(&w->models.diag, err, "weights of group %u: %s", group,
                                w->models.diag.text[0] ? w->models.diag.text : kedge_strerror(err))
               : KEDGE_OK;
}

static int aggregate_group(struct kedge_host *h, struct close_work *w, uint32_t group)
{
    struct kedge_round_result *r = w->result;
    struct kedge_compute_input *inputs = NULL;
    struct kedge_compute_weights weights = {.rule = w->rule[group], .divisor = w->divisor[group]};
    char base[KEDGE_PATH_MAX];
    struct kedge_blob_writer *writer;
    struct kedge_sink sink;
    size_t n = 0, at = 0;
    int err = kedgei_close_gather(h, w, group, &inputs, &n);
    weights.weight = err ? NULL : kedge_mem_new(n + 1, sizeof *weights.weight);
    err = err ? err : weights.weight ? KEDGE_OK : KEDGE_E_NOMEM;
    for (size_t i = 0; !err && i < w->input_count; i++) {
        if (is_of(&w->inputs[i], group)) {
            weights.weight[at++] = w->inputs[i].weight;
        }
    }
    if (!err && n > 0) {
        err = kedge_blobs_path(h->main.blobs, &r->before[group], base);
        err = err ? err : kedgei_close_blob_begin(h, w->job->model_len, &writer, &sink, &w->models.diag);
        if (!err) {
            err = kedge_compute_aggregate(&w->job->spec, &w->job->layout, base, inputs, n, &weights,
                                          w->job->limit, sink, &w->models.diag);
            err = kedgei_close_blob_end(writer, err, &r->aggregate[group], &w->models.diag);
        }
    }
    kedge_mem_free(weights.weight);
    kedge_mem_free(inputs);
    return err;
}

/* From `before` and `aggregate` to `stepped`, and the state with it. */
static int step_group(struct kedge_host *h, struct close_work *w, uint32_t group)
{
    struct kedge_round_result *r = w->result;
    struct kedge_diag *d = &w->models.diag;
    char before[KEDGE_PATH_MAX], aggregate[KEDGE_PATH_MAX], state[KEDGE_PATH_MAX];
    struct kedge_blob_writer *model_writer = NULL, *state_writer = NULL;
    struct kedge_sink model_sink, state_sink;
    bool begins = kedge_hash_is_zero(&r->state_before[group]);
    int err = kedge_blobs_path(h->main.blobs, &r->before[group], before);
    err = err ? err : kedge_blobs_path(h->main.blobs, &r->aggregate[group], aggregate);
    err = err ? err : kedge_blobs_path(h->main.blobs, &r->state_before[group], state);
    err = err ? err : kedgei_close_blob_begin(h, w->job->model_len, &model_writer, &model_sink, d);
    err = err ? err
              : kedgei_close_blob_begin(h, w->job->model_len * kedge_server_states(w->job->spec.server),
                                        &state_writer, &state_sink, d);
    if (!err && kedge_job_spec_has_control(&w->job->spec)) {
        err = kedgei_close_control(h, w, group, before, aggregate, begins ? NULL : state, model_sink,
                                   state_sink);
    } else if (!err) {
        err = kedge_compute_server(&w->job->spec, &w->job->layout, before, aggregate, begins ? NULL : state,
                                   model_sink, state_sink, d);
    }
    if (model_writer) {
        err = kedgei_close_blob_end(model_writer, err, &r->stepped[group], d);
    }
    if (state_writer) {
        err = kedgei_close_blob_end(state_writer, err, &r->state_after[group], d);
    }
    return err;
}

int kedgei_close_group(struct kedge_host *h, struct close_work *w, uint32_t group, bool cold)
{
    struct kedge_round_result *r = w->result;
    r->aggregate[group] = r->before[group];
    r->state_after[group] = r->state_before[group];
    int err = aggregate_group(h, w, group);
    r->stepped[group] = r->aggregate[group];
    if (!err && !cold && r->trained[group] && kedge_server_states(w->job->spec.server) > 0) {
        err = step_group(h, w, group);
    }
    r->after[group] = r->stepped[group];
    return err;
}
