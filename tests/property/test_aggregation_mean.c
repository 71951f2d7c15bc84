/* Random jobs against the definition in 128-bit arithmetic: the order of sources, the split into tiles
 * and batches and the instruction set change no bit. SEED=n repeats one seed. */
#include <stdio.h>

#include "aggregation/mean.h"
#include "aggregation/quantise.h"
#include "tests/unit/aggregation/support.h"

enum { N_MAX = 12000, SOURCES_MAX = 24, SEEDS = 60, SHIFT_MAX = 300 };

struct job {
    size_t n;
    size_t count;
    unsigned scale_bits;
    int32_t limit;
    uint64_t weight_sum;
    struct kedge_mean_source sources[SOURCES_MAX];
};

static int32_t values[SOURCES_MAX][N_MAX + SHIFT_MAX];
static float base[N_MAX];
static float expect[N_MAX];
static float out[N_MAX];

static void draw_job(struct job *job, struct kedge_rng *rng)
{
    static const int bits[] = {1, 8, 16, 31, 34};
    job->n = (size_t)kedge_rng_below(rng, kedge_rng_below(rng, 3) == 0 ? 40 : N_MAX);
    job->count = 1 + (size_t)kedge_rng_below(rng, SOURCES_MAX);
    job->scale_bits = (unsigned)kedge_rng_below(rng, KEDGE_SCALE_BITS_MAX + 1);
    job->limit = (int32_t)(1 + kedge_rng_below(rng, (1u << 23) - 1));
    const uint64_t most = UINT64_C(1) << bits[kedge_rng_below(rng, 5)];
    fill_floats(rng, base, job->n, 2.0);
    const bool alike =
        kedge_rng_below(rng, 2) == 0; /* where the sources stand in their cache lines and pages */
    const size_t shift = (size_t)kedge_rng_below(rng, SHIFT_MAX);
    for (size_t k = 0; k < job->count; k++) {
        int32_t *at = values[k] + (alike ? shift : (size_t)kedge_rng_below(rng, SHIFT_MAX));
        fill_ints(rng, at, job->n, job->limit);
        job->sources[k] = (struct kedge_mean_source){at, kedge_rng_below(rng, most)};
    }
    job->sources[0].weight++;
    int err = kedge_mean_weight_sum(job->sources, job->count, job->limit, &job->weight_sum);
    ck_assert_int_eq(err, KEDGE_OK);
}

static void compute_naively(const struct job *job)
{
    for (size_t i = 0; i < job->n; i++) {
        int128 sum = 0;
        for (size_t k = 0; k < job->count; k++) {
            sum += (int128)job->sources[k].weight * job->sources[k].values[i];
        }
        double divisor = (double)job->weight_sum * (double)(UINT64_C(1) << job->scale_bits);
        expect[i] = (float)((double)base[i] + (double)sum / divisor);
    }
}

static void shuffle_sources(struct job *job, struct kedge_rng *rng)
{
    for (size_t k = 0; k < job->count; k++) {
        size_t l = k + (size_t)kedge_rng_below(rng, job->count - k);
        struct kedge_mean_source keep = job->sources[k];
        job->sources[k] = job->sources[l];
        job->sources[l] = keep;
    }
}

static void check_once(const struct job *job, struct kedge_rng *rng, uint64_t seed)
{
    memset(out, 0x11, sizeof out);
    for (size_t at = 0; at < job->n;) {
        size_t n = 1 + (size_t)kedge_rng_below(rng, kedge_rng_below(rng, 2) == 0 ? 100 : job->n);
        n = n < job->n - at ? n : job->n - at;
        int err = kedge_mean_tile(base, job->sources, job->count, at, n, job->scale_bits, job->weight_sum,
                                  out + at);
        ck_assert_int_eq(err, KEDGE_OK);
        at += n;
    }
    for (size_t i = 0; i < job->n; i++) {
        if (memcmp(&out[i], &expect[i], sizeof *out) != 0) {
            ck_abort_msg("SEED=%llu %s: coordinate %zu", (unsigned long long)seed,
                         kedge_simd_name(kedge_simd_get()), i);
        }
    }
}

START_TEST(mean_equals_definition)
{
    const char *given = getenv("SEED");
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        uint64_t use = given ? strtoull(given, NULL, 10) : seed;
        struct kedge_rng rng = new_stream(use);
        struct job job;
        draw_job(&job, &rng);
        compute_naively(&job);
        FOR_EACH_SIMD(simd)
        {
            shuffle_sources(&job, &rng);
            check_once(&job, &rng, use);
        }
        if (given) {
            break;
        }
    }
}
END_TEST

/* Quantise, average, and come within half a unit of the real mean, the unit being 2^-scale_bits. */
START_TEST(quantised_mean_is_close)
{
    static float after[SOURCES_MAX][N_MAX];
    static double exact[N_MAX];
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct kedge_rng rng = new_stream(1000 + seed);
        const size_t n = 1 + (size_t)kedge_rng_below(&rng, 2000);
        const size_t count = 1 + (size_t)kedge_rng_below(&rng, SOURCES_MAX);
        struct kedge_mean_source sources[SOURCES_MAX];
        uint64_t weights = 0;
        fill_floats(&rng, base, n, 1.0);
        memset(exact, 0, sizeof exact);
        for (size_t k = 0; k < count; k++) {
            fill_floats(&rng, after[k], n, 1.0);
            ck_assert_int_eq(kedge_quantise(base, after[k], n, 20, 2.0, values[k], NULL), KEDGE_OK);
            ck_assert_int_eq(kedge_update_check(values[k], n, 2 << 20, NULL), KEDGE_OK);
            sources[k] = (struct kedge_mean_source){values[k], 1 + kedge_rng_below(&rng, 1000)};
            weights += sources[k].weight;
            for (size_t i = 0; i < n; i++) {
                exact[i] += (double)sources[k].weight * (double)after[k][i];
            }
        }
        ck_assert_int_eq(kedge_mean_tile(base, sources, count, 0, n, 20, weights, out), KEDGE_OK);
        for (size_t i = 0; i < n; i++) {
            double off = (double)out[i] - exact[i] / (double)weights;
            ck_assert(off < 0x1p-21 + 0x1p-24 && off > -(0x1p-21 + 0x1p-24));
        }
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {mean_equals_definition, quantised_mean_is_close, NULL};
    return run_tests("property/aggregation/mean", tests);
}
