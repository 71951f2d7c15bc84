/* Closing a round, group by group: what each update weighs, the aggregate, the server's step. */
#include "common/base/mem.h"
#include "common/tensor/safetensors.h"
#include "round/close/impl.h"
#include "round/control.h"
#include "round/step.h"

static bool is_of(const struct kedge_close_input *in, uint32_t group)
{
    return !in->left_out && in->group == group;
}

/* The group's inputs in site order, and room for their weights; both the caller's to free, also behind an
 * error. */
static int gather(const struct kedge_close *c, uint32_t group, struct kedge_compute_input **ret,
                  uint64_t **ret_weight, size_t *ret_count)
{
    struct kedge_compute_input *inputs = kedge_mem_new(c->input_count + 1, sizeof *inputs);
    uint64_t *weight = kedge_mem_new(c->input_count + 1, sizeof *weight);
    size_t n = 0;
    for (size_t i = 0; inputs && weight && i < c->input_count; i++) {
        const struct kedge_close_input *in = &c->inputs[i];
        if (is_of(in, group)) {
            weight[n] = in->weight;
            inputs[n++] = (struct kedge_compute_input){.update = in->file,
                                                       .tenant = in->place,
                                                       .is_root = in->is_root,
                                                       .facts.samples = in->in.weight,
                                                       .facts.staleness = c->result->round - in->round};
        }
    }
    *ret = inputs;
    *ret_weight = weight;
    *ret_count = n;
    return inputs && weight ? KEDGE_OK : KEDGE_E_NOMEM;
}

int kedgei_close_weigh(struct kedge_close *c, uint32_t group, bool cold)
{
    struct kedge_compute_input *inputs;
    struct kedge_compute_weights weights = {.rule = c->spec->rule};
    size_t n = 0, at = 0;
    int err = gather(c, group, &inputs, &weights.weight, &n);
    for (size_t i = 0; !cold && !kedge_job_spec_weighs_samples(c->spec) && i < c->input_count && !err; i++) {
        if (is_of(&c->inputs[i], group)) {
            err = c->host.facts(c->host.arg, &c->inputs[i], &inputs[at++].facts, c->d);
        }
    }
    if (!err && n > 0) {
        err = kedge_compute_weigh(c->spec, c->layout, cold, inputs, n, &weights, c->d);
    }
    c->result->members[group] = (uint32_t)n;
    c->result->trained[group] = n > 0;
    c->rule[group] = weights.rule;
    c->divisor[group] = weights.divisor;
    at = 0;
    for (size_t i = 0; !err && i < c->input_count; i++) {
        if (is_of(&c->inputs[i], group)) {
            c->inputs[i].weight = weights.weight[at++];
        }
    }
    kedge_mem_free(weights.weight);
    kedge_mem_free(inputs);
    return err ? kedge_diag_set(c->d, err, "weights of group %u: %s", group,
                                c->d->text[0] ? c->d->text : kedge_strerror(err))
               : KEDGE_OK;
}

static int aggregate(struct kedge_close *c, uint32_t group)
{
    struct kedge_round_result *r = c->result;
    struct kedge_compute_input *inputs;
    struct kedge_compute_weights weights = {.rule = c->rule[group], .divisor = c->divisor[group]};
    char base[KEDGE_PATH_MAX];
    struct kedge_close_file file;
    size_t n = 0;
    int err = gather(c, group, &inputs, &weights.weight, &n);
    if (!err && n > 0) {
        err = c->host.path(c->host.arg, &r->before[group], base);
        err = err ? err
                  : c->host.begin(c->host.arg, kedge_safetensors_file_len(c->layout, KEDGE_DTYPE_F32), &file,
                                  c->d);
        if (!err) {
            err = kedge_compute_aggregate(c->spec, c->layout, base, inputs, n, &weights, c->limit, file.sink,
                                          c->d);
            err = c->host.end(c->host.arg, &file, err, &r->aggregate[group], c->d);
        }
    }
    kedge_mem_free(weights.weight);
    kedge_mem_free(inputs);
    return err;
}

/* SCAFFOLD: the server's control variate steps with the updates that made the aggregate. */
static int step_control(struct kedge_close *c, uint32_t group, const char *const *paths,
                        struct kedge_sink model, struct kedge_sink state)
{
    struct kedge_compute_input *inputs;
    uint64_t *weight;
    size_t n = 0;
    int err = gather(c, group, &inputs, &weight, &n);
    err = err ? err
              : kedge_compute_control_step(c->spec, c->layout, paths[0], paths[1], paths[2], inputs, n, model,
                                           state, c->d);
    kedge_mem_free(inputs);
    kedge_mem_free(weight);
    return err;
}

/* From `before` and `aggregate` to `stepped`, and the state with it. */
static int step(struct kedge_close *c, uint32_t group)
{
    struct kedge_round_result *r = c->result;
    const uint64_t len = kedge_safetensors_file_len(c->layout, KEDGE_DTYPE_F32);
    char before[KEDGE_PATH_MAX], after[KEDGE_PATH_MAX], state[KEDGE_PATH_MAX];
    bool begins = kedge_hash_is_zero(&r->state_before[group]);
    const char *const paths[] = {before, after, begins ? NULL : state};
    struct kedge_close_file model, next;
    int err = c->host.path(c->host.arg, &r->before[group], before);
    err = err ? err : c->host.path(c->host.arg, &r->aggregate[group], after);
    err = err ? err : c->host.path(c->host.arg, &r->state_before[group], state);
    err = err ? err : c->host.begin(c->host.arg, len, &model, c->d);
    if (err) {
        return err;
    }
    int next_err = c->host.begin(c->host.arg, len * kedge_server_states(c->spec->server), &next, c->d);
    err = next_err ? next_err
          : kedge_job_spec_has_control(c->spec)
              ? step_control(c, group, paths, model.sink, next.sink)
              : kedge_compute_server(c->spec, r->round, c->layout, paths[0], paths[1], paths[2], model.sink,
                                     next.sink, c->d);
    err = c->host.end(c->host.arg, &model, err, &r->stepped[group], c->d);
    return next_err ? err : c->host.end(c->host.arg, &next, err, &r->state_after[group], c->d);
}

int kedgei_close_group(struct kedge_close *c, uint32_t group, bool cold)
{
    struct kedge_round_result *r = c->result;
    r->aggregate[group] = r->before[group];
    r->state_after[group] = r->state_before[group];
    int err = aggregate(c, group);
    r->stepped[group] = r->aggregate[group];
    if (!err && !cold && r->trained[group] && kedge_server_states(c->spec->server) > 0) {
        err = step(c, group);
    }
    r->after[group] = r->stepped[group];
    return err;
}
