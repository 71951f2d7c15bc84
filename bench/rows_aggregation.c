/* Rows of the mean, the Gram matrix and grouping. */
#include <stdio.h>

#include "bench/bench_aggregation.h"
#include "bench/bench_gram.h"
#include "bench/bench_torch.h"
#include "bench/rows.h"
#include "common/base/err.h"
#include "common/base/try.h"

/* Share of what can be read that the mean must reach. */
static const double MEAN_SHARE = 0.75;

static void mean_row(struct row *r, const char *name, const struct kedge_bench_mean *m)
{
    const double target = MEAN_SHARE * m->read;
    *r =
        (struct row){name, "GB/s", m->mean, m->read, target, true, m->mean >= target && m->mean >= m->passes};
}

int kedge_row_mean_kernel(struct row rows[ROWS_MAX], int *ret_count)
{
    struct kedge_bench_mean one, two;
    KEDGE_TRY(kedge_bench_aggregation_mean(1, KEDGE_BENCH_PAGES_LARGE, &one));
    KEDGE_TRY(kedge_bench_aggregation_mean(2, KEDGE_BENCH_PAGES_LARGE, &two));
    mean_row(&rows[0], "mean-kernel", &one);
    mean_row(&rows[1], "mean-kernel-2-threads", &two);
    *ret_count = 2;
    return KEDGE_OK;
}

/* Ours before and after theirs: the machine's speed drifts. In small pages, as theirs. */
int kedge_row_mean_vs_torch(struct row rows[ROWS_MAX], int *ret_count)
{
    struct kedge_bench_mean before, after;
    double torch;
    int err = kedge_bench_aggregation_mean(1, KEDGE_BENCH_PAGES_SMALL, &before);
    err = err ? err : kedge_bench_torch(&torch);
    if (err == KEDGE_E_NOT_FOUND) {
        fprintf(stderr, "kedge-bench: mean-vs-torch: skipped: there is no Python with torch\n");
        return KEDGE_OK;
    }
    err = err ? err : kedge_bench_aggregation_mean(1, KEDGE_BENCH_PAGES_SMALL, &after);
    if (!err) {
        const double mean = (before.mean + after.mean) / 2;
        rows[0] = (struct row){"mean-vs-torch", "GB/s", mean, torch, torch, true, mean >= torch};
        *ret_count = 1;
    }
    return err;
}

int kedge_row_gram_vs_sgemm(struct row rows[ROWS_MAX], int *ret_count)
{
    struct kedge_bench_gram g;
    int err = kedge_bench_gram(&g);
    if (err == KEDGE_E_NOT_FOUND) {
        fprintf(stderr, "kedge-bench: gram-vs-sgemm: skipped: there is no libopenblas.so.0\n");
        return KEDGE_OK;
    }
    if (!err) {
        /* sgemm finds its floats made, too: so the products alone first, then all from the updates on. */
        rows[0] = (struct row){"gram-vs-sgemm", "GMAC/s", g.products,           g.sgemm,
                               g.sgemm,         true,     g.products >= g.sgemm};
        rows[1] =
            (struct row){"gram-from-updates", "GMAC/s", g.gram, g.sgemm, g.sgemm, true, g.gram >= g.sgemm};
        *ret_count = 2;
    }
    return err;
}

int kedge_row_grouping_100x45mb(struct row rows[ROWS_MAX], int *ret_count)
{
    struct kedge_bench_grouping g;
    int err = kedge_bench_grouping(&g);
    if (!err) {
        const double target = 1.5 * g.products;
        rows[0] = (struct row){
            "grouping-100x45mb", "s", g.grouping, g.products, target, false, g.right && g.grouping <= target};
        *ret_count = 1;
    }
    return err;
}
