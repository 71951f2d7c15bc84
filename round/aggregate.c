/* What the updates of a group weigh; the vectors that come of it are made in result.c.
 *
 * Weights are found in a fixed order: what the strategy gives, the rule's base, the tenants' cap, then the
 * rule itself. The cap comes before a robust rule, so that no tenant has more of a say in what that rule
 * takes for usual. The order is a part of the result, which auditors compute again by the same functions. */
#include "round/aggregate.h"

#include <string.h>

#include "aggregation/gram.h"
#include "aggregation/norm.h"
#include "aggregation/share_cap.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "round/compute_impl.h"

enum { HELD = KEDGEI_TENSORS_HELD_MAX };

/* What the group's files tell, for the rules that ask. */
struct vectors {
    struct kedgei_tensors files;
    double *norm_sq;
    int64_t *gram;
    uint32_t *maxima;
};

static int no_memory(struct kedge_diag *d)
{
    return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for the weights of a round");
}

static void close_vectors(struct vectors *v)
{
    kedgei_tensors_close(&v->files);
    kedge_mem_free(v->norm_sq);
    kedge_mem_free(v->gram);
    kedge_mem_free(v->maxima);
}

/* Opened at most once for a group, by the first rule that asks. The bound is that of tiles side by side: a
 * rule that compares all updates needs one tile of each in memory. */
static int open_vectors(const struct kedge_layout *layout, const struct kedge_compute_input *inputs,
                        size_t count, struct vectors *v, struct kedge_diag *d)
{
    if (v->files.count > 0) {
        return KEDGE_OK;
    }
    if (count > HELD) {
        return kedge_diag_set(d, KEDGE_E_ARG, "%zu updates of a group, this job's rule takes at most %d",
                              count, HELD);
    }
    return kedgei_tensors_open(layout, KEDGE_DTYPE_I32, &inputs[0].update, sizeof *inputs, count, &v->files,
                               d);
}

static int find_norms(struct vectors *v, struct kedge_diag *d)
{
    size_t count = v->files.count;
    struct kedge_norm *norms = kedge_mem_new(count, sizeof *norms);
    v->norm_sq = v->norm_sq ? v->norm_sq : kedge_mem_new(count, sizeof *v->norm_sq);
    int err = norms && v->norm_sq ? KEDGE_OK : no_memory(d);
    for (size_t first = 0, n; first < v->files.layout->values_count && !err; first += n) {
        n = kedgei_tensors_tile(&v->files, first);
        err = kedgei_tensors_seek(&v->files, 0, count, first, n, d);
        for (size_t i = 0; i < count && !err; i++) {
            kedge_norm_add(&norms[i], v->files.tile[i], n);
        }
    }
    for (size_t i = 0; i < count && !err; i++) {
        v->norm_sq[i] = kedge_norm_value(&norms[i]);
    }
    kedge_mem_free(norms);
    return err;
}

/* The same of any number of updates, without keeping their files: a part of them at a time. Only a rule that
 * needs all vectors side by side bounds how many there are (open_vectors). */
static int find_norms_of_many(const struct kedge_layout *layout, const struct kedge_compute_input *inputs,
                              size_t count, struct vectors *v, struct kedge_diag *d)
{
    v->norm_sq = kedge_mem_new(count, sizeof *v->norm_sq);
    int err = v->norm_sq ? KEDGE_OK : no_memory(d);
    for (size_t at = 0, n; at < count && !err; at += n) {
        n = count - at < HELD ? count - at : HELD;
        struct vectors part = {.norm_sq = v->norm_sq + at};
        err = open_vectors(layout, inputs + at, n, &part, d);
        if (!err) {
            err = find_norms(&part, d);
        }
        part.norm_sq = NULL; /* is v's */
        close_vectors(&part);
    }
    return err;
}

static int find_gram(struct vectors *v, struct kedge_diag *d)
{
    size_t count = v->files.count;
    v->gram = kedge_mem_new(count * count, sizeof *v->gram);
    v->maxima = kedge_mem_new(count, sizeof *v->maxima);
    return v->gram && v->maxima ? kedgei_gram_of(&v->files, v->maxima, v->gram, d) : no_memory(d);
}

/* What the strategy gives each update, in ret->weight. A cold start weighs all alike, and so does a rule
 * whose guarantee counts sites (rule->samples), for a site states its own number of samples. FedNova is
 * bounded here: a site states its own number of steps, too, and one large number would lengthen the step of
 * all. */
static int weigh_strategy(const struct kedge_job_spec *spec, const struct kedge_layout *layout,
                          bool cold_start, const struct kedge_compute_input *inputs, size_t count,
                          struct vectors *v, struct kedge_compute_weights *ret, struct kedge_diag *d)
{
    bool by_norm = spec->strategy->weigh == kedge_weigh_qffl;
    if (cold_start || !spec->rule->samples) {
        return kedge_weigh_equal(&spec->options, NULL, count, spec->learning_rate, ret->weight,
                                 &ret->divisor);
    }
    if (by_norm && !layout) {
        return KEDGE_E_NOT_FOUND;
    }
    struct kedge_strategy_input *facts = kedge_mem_new(count, sizeof *facts);
    int err = facts ? KEDGE_OK : no_memory(d);
    if (!err && by_norm) {
        err = find_norms_of_many(layout, inputs, count, v, d);
    }
    const double unit = 1.0 / (double)(UINT64_C(1) << spec->scale);
    for (size_t i = 0; i < count && !err; i++) {
        facts[i] = inputs[i].facts;
        facts[i].rate = spec->batch_auto ? facts[i].rate : 0; /* else that of the spec, whatever is stated */
        facts[i].norm_sq = by_norm ? v->norm_sq[i] * unit * unit : 0;
    }
    if (!err && spec->strategy->weigh == kedge_weigh_fednova) {
        err = kedge_weigh_fednova_bounded(facts, count, KEDGE_FEDNOVA_MEDIANS, ret->weight, &ret->divisor);
    } else if (!err) {
        err = spec->strategy->weigh(&spec->options, facts, count, spec->learning_rate, ret->weight,
                                    &ret->divisor);
    }
    kedge_mem_free(facts);
    return err;
}

static int cap_shares(const struct kedge_job_spec *spec, const struct kedge_compute_input *inputs,
                      size_t count, struct kedge_compute_weights *ret)
{
    uint32_t *tenants = kedge_mem_new(count, sizeof *tenants);
    for (size_t i = 0; tenants && i < count; i++) {
        tenants[i] = inputs[i].tenant;
    }
    int err = tenants ? kedge_strategy_cap(ret->weight, tenants, count, spec->tenant_share_max, &ret->divisor)
                      : KEDGE_E_NOMEM;
    kedge_mem_free(tenants);
    return err;
}

/* Weights of the rule's own, from those it was given. Where it needs a root, that is input number `count`.
 * The rule reads its base weights while it writes the new ones, so it gets a copy. */
static int weigh_rule(const struct kedge_job_spec *spec, const struct kedge_layout *layout,
                      const struct kedge_compute_input *inputs, size_t count, struct vectors *v,
                      struct kedge_compute_weights *ret, struct kedge_diag *d)
{
    bool by_files = ret->rule->needs_norms || ret->rule->needs_gram, root = ret->rule->needs_root;
    if (by_files && !layout) {
        return KEDGE_E_NOT_FOUND;
    }
    if (by_files) {
        KEDGE_TRY(open_vectors(layout, inputs, count + root, v, d));
    }
    if (ret->rule->needs_norms && !v->norm_sq) {
        KEDGE_TRY(find_norms(v, d));
    }
    if (ret->rule->needs_gram) {
        KEDGE_TRY(find_gram(v, d));
    }
    uint64_t *base = kedge_mem_new(count, sizeof *base);
    if (!base) {
        return no_memory(d);
    }
    memcpy(base, ret->weight, count * sizeof *base);
    const struct kedge_rule_inputs all = {.count = count,
                                          .weight = base,
                                          .divisor = ret->divisor,
                                          .scale_bits = spec->scale,
                                          .norm_sq = v->norm_sq,
                                          .gram = v->gram,
                                          .maxima = v->maxima,
                                          .has_root = root};
    int err = kedge_rule_weigh(ret->rule, &spec->rule_params, &all, ret->weight, &ret->divisor);
    kedge_mem_free(base);
    return err;
}

/* The order of the four steps is explained above. `why` collects what a step says of its failure, so that
 * the caller's diagnosis names the round's updates first. */
int kedgei_weigh(const struct kedge_job_spec *spec, const struct kedge_layout *layout, bool cold_start,
                 const struct kedge_compute_input *inputs, size_t count, struct kedge_compute_weights *ret,
                 struct kedge_diag *reterr)
{
    struct vectors v = {.norm_sq = NULL};
    struct kedge_diag why = {.text = ""};
    ret->rule = spec->rule;
    int err = weigh_strategy(spec, layout, cold_start, inputs, count, &v, ret, &why);
    if (!err) {
        kedge_rule_base(spec->rule, ret->weight, count, ret->weight);
    }
    if (!err && spec->tenant_share_max < KEDGE_SHARE_ONE) {
        err = cap_shares(spec, inputs, count, ret);
    }
    if (!err) {
        ret->rule = kedge_rule_effective(spec->rule, &spec->rule_params, ret->weight, count);
    }
    if (!err && ret->rule->kind != KEDGE_RULE_MEAN) {
        err = weigh_rule(spec, layout, inputs, count, &v, ret, &why);
    }
    close_vectors(&v);
    return err ? kedge_diag_set(reterr, err, "weights of %zu updates: %s", count,
                                why.text[0] ? why.text : kedge_strerror(err))
               : KEDGE_OK;
}
