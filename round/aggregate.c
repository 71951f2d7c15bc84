/* Opens the files, weighs, then runs the pure kernels tile by tile.
 *
 * Weights are found in a fixed order: what the strategy gives, the rule's base, the tenants' cap, then the
 * rule itself. The cap comes before a robust rule, so that no tenant has more of a say in what that rule
 * takes for usual. The order is a part of the result, which auditors compute again by the same functions. */
#include "round/aggregate.h"

#include <string.h>

#include "aggregation/gram.h"
#include "aggregation/mean.h"
#include "aggregation/norm.h"
#include "aggregation/share_cap.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "round/compute_impl.h"

enum { TILE = KEDGEI_TENSORS_TILE_MAX, HELD = KEDGEI_TENSORS_HELD_MAX };

/* ---- mean ---- */

/* The sum of many updates over a tile: exact in 64 bits, and handed on as two rows of 32. Encrypted files
 * cannot be mapped, and only so many of them are decrypted at once; integers can be added in parts without
 * any rounding, which sums of floating-point numbers could not. */
struct sum {
    int64_t *total;
    int32_t *low, *high;
};

/* The sums wrap as unsigned numbers, whose order of addition does not matter. kedge_mean_weight_sum has made
 * sure that the true sum fits, so what stands there in the end is right whatever stood there in between. */
static int sum_many(struct kedgei_tensors *t, const struct kedge_mean_source *rows, size_t first, size_t n,
                    const struct sum *sum, struct kedge_diag *d)
{
    memset(sum->total, 0, n * sizeof *sum->total);
    for (size_t from = 0; from < t->count; from += HELD) {
        size_t to = t->count - from < HELD ? t->count : from + HELD;
        int err = kedgei_tensors_seek(t, from, to, first, n, d);
        if (err) {
            return err;
        }
        for (size_t k = from; k < to; k++) {
            const int32_t *values = t->tile[k];
            for (size_t i = 0; i < n; i++) {
                sum->total[i] =
                    (int64_t)((uint64_t)sum->total[i] + rows[k].weight * (uint64_t)(int64_t)values[i]);
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        sum->low[i] = (int32_t)(sum->total[i] & INT32_MAX);
        sum->high[i] = (int32_t)(sum->total[i] >> 31); /* |sum| < 2^62: kedge_mean_weight_sum */
    }
    return KEDGE_OK;
}

/* The usual case hands the kernel one row for each update. Where sum_many had to run it has added them up
 * already, weights included, and the kernel gets two rows whose weights put low and high half together
 * again: sum = low + 2^31 · high. */
static int mean_tile(struct kedgei_tensors *updates, const float *base, struct kedge_mean_source *rows,
                     const struct sum *sum, size_t first, size_t n, unsigned scale, uint64_t divisor,
                     float *out, struct kedge_diag *d)
{
    if (sum->total) {
        const struct kedge_mean_source two[] = {{sum->low, 1}, {sum->high, UINT64_C(1) << 31}};
        int err = sum_many(updates, rows, first, n, sum, d);
        return err ? err : kedge_mean_tile(base + first, two, 2, 0, n, scale, divisor, out);
    }
    int err = kedgei_tensors_seek(updates, 0, updates->count, first, n, d);
    for (size_t i = 0; i < updates->count && !err; i++) {
        rows[i].values = updates->tile[i];
    }
    return err ? err : kedge_mean_tile(base + first, rows, updates->count, 0, n, scale, divisor, out);
}

/* Memory that a mean needs besides; `sum` only for more encrypted updates than are decrypted at once. */
static int mean_memory(const struct kedgei_tensors *updates, struct sum *ret)
{
    *ret = (struct sum){.total = NULL};
    if (updates->sealed_count <= HELD) {
        return KEDGE_OK;
    }
    size_t n = KEDGE_BLOB_CHUNK / sizeof(int32_t);
    *ret = (struct sum){kedge_mem_new(n, sizeof *ret->total), kedge_mem_new(n, sizeof *ret->low),
                        kedge_mem_new(n, sizeof *ret->high)};
    return ret->total && ret->low && ret->high ? KEDGE_OK : KEDGE_E_NOMEM;
}

/* An update of a job with control variates has more values than the model: tiles go by the update's layout,
 * and end where the model ends. */
static int mean_run(const struct kedge_layout *layout, struct kedgei_tensors *updates, const float *base,
                    struct kedge_mean_source *rows, unsigned scale, uint64_t divisor, struct kedge_sink sink,
                    struct kedge_diag *d)
{
    struct sum sum;
    float *tile = kedge_mem_new(TILE, sizeof *tile);
    int err = mean_memory(updates, &sum);
    err = tile && !err ? kedgei_write_header(layout, KEDGE_DTYPE_F32, sink)
                       : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for a mean");
    for (size_t first = 0, n; first < layout->values_count && !err; first += n) {
        n = kedgei_tensors_tile(updates, first);
        n = layout->values_count - first < n ? (size_t)(layout->values_count - first)
                                             : n; /* not what is behind */
        err = mean_tile(updates, base, rows, &sum, first, n, scale, divisor, tile, d);
        if (!err) {
            err = sink.write(sink.arg, kedge_view_of(tile, n * sizeof *tile));
        }
    }
    kedge_mem_free(sum.total);
    kedge_mem_free(sum.low);
    kedge_mem_free(sum.high);
    kedge_mem_free(tile);
    return err;
}

/* ---- coordinate rules ---- */

static int coordinate_tiles(const struct kedge_job_spec *spec, struct kedgei_tensors *updates,
                            const float *base, const struct kedge_compute_weights *w, float *tile,
                            struct kedge_sink sink, struct kedge_diag *d)
{
    KEDGE_TRY(kedgei_write_header(updates->layout, KEDGE_DTYPE_F32, sink));
    for (size_t first = 0, n; first < updates->layout->values_count; first += n) {
        n = kedgei_tensors_tile(updates, first);
        KEDGE_TRY(kedgei_tensors_seek(updates, 0, updates->count, first, n, d));
        KEDGE_TRY(kedge_rule_tile(w->rule, &spec->rule_params, base + first,
                                  (const int32_t *const *)updates->tile, w->weight, updates->count, 0, n,
                                  spec->scale, tile));
        KEDGE_TRY(sink.write(sink.arg, kedge_view_of(tile, n * sizeof *tile)));
    }
    return KEDGE_OK;
}

static int coordinate_run(const struct kedge_job_spec *spec, struct kedgei_tensors *updates,
                          const float *base, const struct kedge_compute_weights *w, struct kedge_sink sink,
                          struct kedge_diag *d)
{
    float *tile = kedge_mem_new(TILE, sizeof *tile);
    int err = tile ? coordinate_tiles(spec, updates, base, w, tile, sink, d)
                   : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for a rule");
    kedge_mem_free(tile);
    return err;
}

/* ---- weights ---- */

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

/* ---- the result ---- */

/* Sources of a mean; those that weigh nothing are left out, and so are never read: a rule that discarded an
 * update need not have its file. The sum of weights times the largest value must stay below what 64 bits
 * hold; a rule with a Gram matrix has held its weights against the largest values themselves, so it is
 * asked with 1. */
static int mean_sources(const struct kedge_compute_input *inputs, size_t count,
                        const struct kedge_compute_weights *w, int32_t limit,
                        struct kedge_compute_input *used, struct kedge_mean_source *rows, size_t *ret_count,
                        struct kedge_diag *d)
{
    uint64_t sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (w->weight[i] > 0) {
            rows[n].weight = w->weight[i];
            used[n++] = inputs[i];
        }
    }
    bool nobody = n == 0 && w->rule->needs_root; /* nobody is trusted: the model stays */
    int err = nobody ? KEDGE_OK : kedge_mean_weight_sum(rows, n, w->rule->needs_gram ? 1 : limit, &sum);
    *ret_count = n;
    return err ? kedge_diag_set(d, err, "weights of %zu updates: %s", count, kedge_strerror(err)) : KEDGE_OK;
}

/* A coordinate rule sorts the values of all updates, also of those that weigh nothing, since its guarantee
 * counts them; a mean reads those with weight only. */
int kedge_compute_aggregate(const struct kedge_job_spec *spec, const struct kedge_layout *layout,
                            const struct kedge_blob_at *of_base, const struct kedge_compute_input *inputs,
                            size_t count, const struct kedge_compute_weights *weights, int32_t limit,
                            struct kedge_sink sink, struct kedge_diag *reterr)
{
    struct kedgei_tensors updates = {.count = 0}, base = {.count = 0};
    struct kedge_layout update_layout = {.count = 0};
    struct kedge_mean_source *rows = kedge_mem_new(count + 1, sizeof *rows);
    struct kedge_compute_input *used = kedge_mem_new(count + 1, sizeof *used);
    bool coordinate = weights->rule->kind == KEDGE_RULE_COORDINATE;
    size_t n = count;
    int err = rows && used ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for a mean");
    if (!err && !coordinate) {
        err = mean_sources(inputs, count, weights, limit, used, rows, &n, reterr);
    }
    if (!err) {
        err = kedge_job_spec_update_layout(spec, layout, &update_layout, reterr);
    }
    if (!err) {
        err = kedgei_tensors_open(&update_layout, KEDGE_DTYPE_I32,
                                  coordinate ? &inputs[0].update : &used[0].update, sizeof *inputs, n,
                                  &updates, reterr);
    }
    if (!err) {
        err = kedgei_tensors_open(layout, KEDGE_DTYPE_F32, of_base, sizeof *of_base, 1, &base, reterr);
    }
    if (!err && coordinate) {
        err = coordinate_run(spec, &updates, base.values[0], weights, sink, reterr);
    } else if (!err) {
        err = mean_run(layout, &updates, base.values[0], rows, spec->scale, weights->divisor, sink, reterr);
    }
    kedgei_tensors_close(&updates);
    kedgei_tensors_close(&base);
    kedge_layout_deinit(&update_layout);
    kedge_mem_free(rows);
    kedge_mem_free(used);
    return err;
}
