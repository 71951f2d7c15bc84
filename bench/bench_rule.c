/* Rules as a host runs them, whole vectors in one call. Values are drawn around a common direction, as
 * updates of one round are. */
#include "bench/bench_rule.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "aggregation/mean.h"
#include "aggregation/rule/rule.h"
#include "aggregation/simd.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "tests/fixtures/whole_updates.h"

enum { UPDATES = 50, PARAMETERS = 10 * 1000 * 1000 / 4, RUNS = 5, SCALE_BITS = 20 };

struct arena {
    int32_t *vectors[UPDATES];
    float *base, *out;
    uint64_t sink;
};

static void close_arena(struct arena *arena)
{
    for (int k = 0; k < UPDATES; k++) {
        kedge_mem_free(arena->vectors[k]);
    }
    kedge_mem_free(arena->base);
    kedge_mem_free(arena->out);
}

static int open_arena(struct arena *arena)
{
    *arena = (struct arena){.base = kedge_mem_new(PARAMETERS, sizeof(float)),
                            .out = kedge_mem_new(PARAMETERS, sizeof(float))};
    bool ok = arena->base && arena->out;
    for (int k = 0; k < UPDATES && ok; k++) {
        arena->vectors[k] = kedge_mem_new(PARAMETERS, sizeof(int32_t));
        ok = arena->vectors[k] != NULL;
        struct kedge_rng rng, common;
        kedge_rng_init(&rng, 1, KEDGE_RNG_SIM, 1, (uint64_t)k);
        kedge_rng_init(&common, 1, KEDGE_RNG_SIM, 2, 0);
        for (size_t i = 0; i + 1 < PARAMETERS && ok; i += 2) {
            const uint64_t own = kedge_rng_u64(&rng), all = kedge_rng_u64(&common);
            arena->vectors[k][i] = ((int32_t)(uint32_t)own >> 12) + ((int32_t)(uint32_t)all >> 13);
            arena->vectors[k][i + 1] =
                ((int32_t)(uint32_t)(own >> 32) >> 12) + ((int32_t)(uint32_t)(all >> 32) >> 13);
        }
    }
    for (size_t i = 0; i < PARAMETERS && ok; i++) {
        arena->base[i] = 1.0f / (float)(i + 1);
        arena->out[i] = 0; /* touches every page */
    }
    if (!ok) {
        close_arena(arena);
        return KEDGE_E_NOMEM;
    }
    return KEDGE_OK;
}

static int run_reading(struct arena *arena)
{
    for (int k = 0; k < UPDATES; k++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < PARAMETERS; i += 2) {
            uint64_t two;
            memcpy(&two, arena->vectors[k] + i, sizeof two);
            sum += two;
        }
        arena->sink += sum;
    }
    return KEDGE_OK;
}

static int run_rule(struct arena *arena, const char *name)
{
    static int64_t gram[UPDATES * UPDATES];
    const int32_t *const *vectors = (const int32_t *const *)arena->vectors;
    const struct kedge_rule *rule = kedge_rule_find(name);
    uint64_t base[UPDATES], weight[UPDATES], divisor = 0;
    uint32_t maxima[UPDATES];
    double norm_sq[UPDATES];
    kedge_rule_base(rule, NULL, UPDATES, base);
    int err = measure_of(rule, vectors, UPDATES, PARAMETERS, norm_sq, maxima, gram);
    const struct kedge_rule_inputs inputs = {
        .count = UPDATES, .weight = base, .norm_sq = norm_sq, .gram = gram, .maxima = maxima};
    err = err ? err : kedge_rule_weigh(rule, &rule->defaults, &inputs, weight, &divisor);
    if (rule->kind == KEDGE_RULE_COORDINATE) {
        return err ? err
                   : kedge_rule_tile(rule, &rule->defaults, arena->base, vectors, weight, UPDATES, 0,
                                     PARAMETERS, SCALE_BITS, arena->out);
    }
    struct kedge_mean_source sources[UPDATES];
    size_t count = 0;
    for (int k = 0; k < UPDATES && !err; k++) {
        if (weight[k] > 0) {
            sources[count++] = (struct kedge_mean_source){vectors[k], weight[k]};
        }
    }
    return err ? err
               : kedge_mean_tile(arena->base, sources, count, 0, PARAMETERS, SCALE_BITS, divisor, arena->out);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double cpu_s(void)
{
    struct timespec t = {0, 0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { FUNCTIONS = 4 };

int kedge_bench_rules(struct kedge_bench_rules *ret)
{
    static const char *const names[FUNCTIONS] = {"median", "trimmed-mean", "krum", NULL};
    double seconds[FUNCTIONS][RUNS], rate[FUNCTIONS];
    struct arena arena;
    int err = open_arena(&arena);
    if (err) {
        return err;
    }
    for (int run = 0; run < RUNS && !err; run++) {
        for (int f = 0; f < FUNCTIONS && !err; f++) {
            double start = cpu_s();
            err = names[f] ? run_rule(&arena, names[f]) : run_reading(&arena);
            seconds[f][run] = cpu_s() - start;
        }
    }
    volatile uint64_t keep = arena.sink;
    (void)keep;
    close_arena(&arena);
    for (int f = 0; f < FUNCTIONS && !err; f++) {
        qsort(seconds[f], RUNS, sizeof(double), compare_doubles);
        rate[f] = 1e-6 * UPDATES * PARAMETERS / seconds[f][RUNS / 2];
    }
    if (!err) {
        *ret = (struct kedge_bench_rules){rate[0], rate[1], rate[2], rate[3]};
    }
    return err;
}

#ifdef KEDGE_BENCH_MAIN
#include <stdio.h>

int main(void)
{
    for (enum kedge_simd simd = KEDGE_SIMD_SCALAR; simd <= KEDGE_SIMD_LAST; simd++) {
        struct kedge_bench_rules r;
        if (kedge_simd_set(simd) || kedge_bench_rules(&r)) {
            printf("%s: not available\n", kedge_simd_name(simd));
            continue;
        }
        printf("%-6s median %.0f, trimmed mean %.0f, Krum %.0f, reading %.0f M parameters x updates/s\n",
               kedge_simd_name(simd), r.median, r.trimmed_mean, r.krum, r.reading);
    }
    return 0;
}
#endif
