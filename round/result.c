/* The vector that comes of a group's weighted updates: opens the files, checks them once, then runs the pure
 * kernels tile by tile, over as many threads as the sink permits (shards.h). Each thread has tiles of its
 * own; what they share is only read. */
#include <string.h>

#include "aggregation/mean.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "round/compute_impl.h"
#include "round/shards.h"

enum { TILE = KEDGEI_TENSORS_TILE_MAX, HELD = KEDGEI_TENSORS_HELD_MAX };

/* ---- what the threads work on ---- */

/* The sum of many updates over a tile: exact in 64 bits, and handed on as two rows of 32. Encrypted files
 * cannot be mapped, and only so many of them are decrypted at once; integers can be added in parts without
 * any rounding, which sums of floating-point numbers could not. */
struct sum {
    int64_t *total;
    int32_t *low, *high;
};

/* What one thread has for itself. */
struct part {
    struct kedgei_tensors *updates; /* `own`, or those that were opened */
    struct kedgei_tensors own;
    struct kedge_mean_source *rows; /* of a mean */
    struct sum sum;                 /* of a mean over more encrypted updates than are decrypted at once */
};

struct result {
    const struct kedge_job_spec *spec;
    const struct kedge_compute_weights *weights;
    struct kedgei_tensors updates;
    uint64_t values; /* of the model */
    const float *base;
    struct kedge_sink sink;
    struct part parts[KEDGE_CUT_THREADS_MAX];
    unsigned threads;
};

static bool is_coordinate(const struct result *r)
{
    return r->weights->rule->kind == KEDGE_RULE_COORDINATE;
}

/* An update of a job with control variates has more values than the model: tiles go by the update's layout,
 * and end where the model ends. */
static size_t tile_len(void *arg, uint64_t first)
{
    const struct result *r = arg;
    const size_t n = kedgei_tensors_tile(&r->updates, (size_t)first);
    return r->values - first < n ? (size_t)(r->values - first) : n;
}

static int put_tile(void *arg, uint64_t first, size_t n, const void *out)
{
    const struct result *r = arg;
    (void)first;
    return r->sink.write(r->sink.arg, kedge_view_of(out, n * sizeof(float)));
}

/* ---- mean ---- */

/* The sums wrap as unsigned numbers, whose order of addition does not matter. kedge_mean_weight_sum has made
 * sure that the true sum fits, so what stands there in the end is right whatever stood there in between. */
static int sum_many(const struct part *p, size_t first, size_t n, struct kedge_diag *d)
{
    struct kedgei_tensors *t = p->updates;
    const struct sum *sum = &p->sum;
    memset(sum->total, 0, n * sizeof *sum->total);
    for (size_t from = 0; from < t->count; from += HELD) {
        size_t to = t->count - from < HELD ? t->count : from + HELD;
        KEDGE_TRY(kedgei_tensors_seek(t, from, to, first, n, d));
        for (size_t k = from; k < to; k++) {
            const int32_t *values = t->tile[k];
            for (size_t i = 0; i < n; i++) {
                sum->total[i] =
                    (int64_t)((uint64_t)sum->total[i] + p->rows[k].weight * (uint64_t)(int64_t)values[i]);
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
static int mean_tile(void *arg, unsigned thread, uint64_t first, size_t n, void *out, struct kedge_diag *d)
{
    const struct result *r = arg;
    const struct part *p = &r->parts[thread];
    const float *base = r->base + first;
    if (p->sum.total) {
        const struct kedge_mean_source two[] = {{p->sum.low, 1}, {p->sum.high, UINT64_C(1) << 31}};
        KEDGE_TRY(sum_many(p, (size_t)first, n, d));
        return kedge_mean_tile(base, two, 2, 0, n, r->spec->scale, r->weights->divisor, out);
    }
    KEDGE_TRY(kedgei_tensors_seek(p->updates, 0, p->updates->count, (size_t)first, n, d));
    for (size_t i = 0; i < p->updates->count; i++) {
        p->rows[i].values = p->updates->tile[i];
    }
    return kedge_mean_tile(base, p->rows, p->updates->count, 0, n, r->spec->scale, r->weights->divisor, out);
}

/* Memory that a mean needs besides; `sum` only for more encrypted updates than are decrypted at once. */
static int mean_memory(const struct kedgei_tensors *updates, struct sum *ret)
{
    if (updates->sealed_count <= HELD) {
        return KEDGE_OK;
    }
    size_t n = KEDGE_BLOB_CHUNK / sizeof(int32_t);
    *ret = (struct sum){kedge_mem_new(n, sizeof *ret->total), kedge_mem_new(n, sizeof *ret->low),
                        kedge_mem_new(n, sizeof *ret->high)};
    return ret->total && ret->low && ret->high ? KEDGE_OK : KEDGE_E_NOMEM;
}

/* ---- coordinate rules ---- */

static int coordinate_tile(void *arg, unsigned thread, uint64_t first, size_t n, void *out,
                           struct kedge_diag *d)
{
    const struct result *r = arg;
    struct kedgei_tensors *updates = r->parts[thread].updates;
    KEDGE_TRY(kedgei_tensors_seek(updates, 0, updates->count, (size_t)first, n, d));
    return kedge_rule_tile(r->weights->rule, &r->spec->rule_params, r->base + first,
                           (const int32_t *const *)updates->tile, r->weights->weight, updates->count, 0, n,
                           r->spec->scale, out);
}

/* ---- threads ---- */

/* Rows have their weights already; their values are set tile by tile. */
static int open_part(struct result *r, unsigned thread, const struct kedge_mean_source *rows,
                     struct kedge_diag *d)
{
    struct part *p = &r->parts[thread];
    const size_t count = r->updates.count;
    if (thread > 0) {
        KEDGE_TRY(kedgei_tensors_share(&r->updates, &p->own, d));
    }
    p->updates = thread > 0 ? &p->own : &r->updates;
    if (is_coordinate(r)) {
        return KEDGE_OK;
    }
    p->rows = kedge_mem_new(count + 1, sizeof *p->rows);
    if (!p->rows || mean_memory(&r->updates, &p->sum) != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for a mean");
    }
    memcpy(p->rows, rows, count * sizeof *rows);
    return KEDGE_OK;
}

static void close_parts(struct result *r)
{
    for (unsigned i = 0; i < r->threads; i++) {
        struct part *p = &r->parts[i];
        kedge_mem_free(p->rows);
        kedge_mem_free(p->sum.total);
        kedge_mem_free(p->sum.low);
        kedge_mem_free(p->sum.high);
        kedgei_tensors_close(&p->own);
    }
}

static int run(struct result *r, const struct kedge_layout *layout, const struct kedge_mean_source *rows,
               struct kedge_diag *d)
{
    const struct kedge_cut *cut = &r->sink.cut;
    const size_t most = r->values < TILE ? (size_t)r->values : TILE;
    const struct kedgei_tiles tiles = {.arg = r,
                                       .values = r->values,
                                       .tile_bytes = most * sizeof(float),
                                       .length = tile_len,
                                       .make = is_coordinate(r) ? coordinate_tile : mean_tile,
                                       .take = put_tile};
    int err = KEDGE_OK;
    const unsigned threads = kedgei_tensors_threads(&r->updates, kedgei_shards_threads(cut, r->values));
    while (r->threads < threads && !err) {
        err = open_part(r, r->threads++, rows, d);
    }
    if (!err) {
        err = kedgei_write_header(layout, KEDGE_DTYPE_F32, r->sink);
    }
    if (!err) {
        err = kedgei_shards_run(cut, threads, &tiles, d);
    }
    close_parts(r);
    return err;
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
    struct result r = {.spec = spec, .weights = weights, .values = layout->values_count, .sink = sink};
    struct kedgei_tensors base = {.count = 0};
    struct kedge_layout update_layout = {.count = 0};
    struct kedge_mean_source *rows = kedge_mem_new(count + 1, sizeof *rows);
    struct kedge_compute_input *used = kedge_mem_new(count + 1, sizeof *used);
    const struct kedge_compute_input *from = is_coordinate(&r) ? inputs : used;
    size_t n = count;
    int err = rows && used ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOMEM, "out of memory for a mean");
    if (!err && from == used) {
        err = mean_sources(inputs, count, weights, limit, used, rows, &n, reterr);
    }
    if (!err) {
        err = kedge_job_spec_update_layout(spec, layout, &update_layout, reterr);
    }
    if (!err) {
        err = kedgei_tensors_open(&update_layout, KEDGE_DTYPE_I32, &from->update, sizeof *from, n, &r.updates,
                                  reterr);
    }
    if (!err) {
        err = kedgei_tensors_open(layout, KEDGE_DTYPE_F32, of_base, sizeof *of_base, 1, &base, reterr);
    }
    if (!err) {
        r.base = base.values[0];
        err = run(&r, layout, rows, reterr);
    }
    kedgei_tensors_close(&r.updates);
    kedgei_tensors_close(&base);
    kedge_layout_deinit(&update_layout);
    kedge_mem_free(rows);
    kedge_mem_free(used);
    return err;
}
