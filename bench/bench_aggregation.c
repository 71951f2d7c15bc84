/* The mean kernel against what this machine can read, and against plain float sums, all in one run, on one
 * thread or two, each with its part of the coordinates. 45 MB x 10 sources; figures count source bytes only
 * and are medians. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "aggregation/mean.h"
#include "aggregation/simd.h"
#include "bench/bench_aggregation.h"
#include "common/base/mem.h"
#include "common/base/rng.h"

enum {
    SOURCES = 10,
    COORDINATES = 45 * 1000 * 1000 / 4,
    RUNS = 9,
    SCALE_BITS = 20,
    FLOAT_TILE = 2048,
    READS = 4,
    FUNCTIONS = 3 + READS,
    THREADS_MAX = 2,
};

#define GIGABYTES (1e-9 * SOURCES * COORDINATES * sizeof(int32_t))

#if defined(__x86_64__)
#include <immintrin.h>
#define WIDE __attribute__((target("avx2")))
#else
#define WIDE
#endif

struct arena {
    int32_t *values[SOURCES]; /* read as float by the float baselines: small numbers either way */
    float *floats[SOURCES];   /* the same memory */
    float *base;
    float *out;
    uint64_t weight[SOURCES];
};

/* Coordinates first … first + n - 1, a thread's part; first and n are multiples of 16 but for the last n. */
typedef int bench_fn(struct arena *arena, size_t first, size_t n, uint64_t *sink);

/* (a) What one thread can read: the sum of everything as 64-bit words, one, two, five or ten streams side by
 * side. The fastest is the limit; on the machines tried five and ten are half as fast again as one. */
#if defined(__x86_64__)
WIDE static inline __attribute__((always_inline)) uint64_t read_streams(int32_t *const *values, size_t first,
                                                                        size_t n, int streams)
{
    __m256i a = _mm256_setzero_si256();
    __m256i b = a;
    for (size_t i = first; i + 16 <= first + n; i += 16) {
        for (int k = 0; k < streams; k++) {
            const __m256i *v = (const __m256i *)(values[k] + i);
            a = _mm256_add_epi64(a, _mm256_loadu_si256(v));
            b = _mm256_add_epi64(b, _mm256_loadu_si256(v + 1));
        }
    }
    uint64_t lanes[4];
    _mm256_storeu_si256((__m256i *)lanes, _mm256_add_epi64(a, b));
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}
#else
static uint64_t read_streams(int32_t *const *values, size_t first, size_t n, int streams)
{
    uint64_t sum = 0;
    for (size_t i = first; i < first + n; i++) {
        for (int k = 0; k < streams; k++) {
            sum += (uint64_t)(int64_t)values[k][i];
        }
    }
    return sum;
}
#endif

/* streams is a constant in each of these, so the loop over them unrolls. */
#define READ_ALL(streams)                                                                           \
    WIDE static int read_all_##streams(struct arena *arena, size_t first, size_t n, uint64_t *sink) \
    {                                                                                               \
        for (int k = 0; k < SOURCES; k += (streams)) {                                              \
            *sink += read_streams(arena->values + k, first, n, streams);                            \
        }                                                                                           \
        return KEDGE_OK;                                                                            \
    }
READ_ALL(1)
READ_ALL(2)
READ_ALL(5)
READ_ALL(10)

/* (b) The integer mean. */
static int mean_integer(struct arena *arena, size_t first, size_t n, uint64_t *sink)
{
    struct kedge_mean_source sources[SOURCES];
    uint64_t sum = 0;
    for (int k = 0; k < SOURCES; k++) {
        sources[k] = (struct kedge_mean_source){.values = arena->values[k], .weight = arena->weight[k]};
        sum += arena->weight[k];
    }
    int err = kedge_mean_tile(arena->base, sources, SOURCES, first, n, SCALE_BITS, sum, arena->out + first);
    *sink += (uint64_t)(arena->out[first] > 0.0f);
    return err;
}

/* (c1) Float sums the usual way: w += a * x, one pass per source. */
WIDE static int sum_passes(struct arena *arena, size_t first, size_t n, uint64_t *sink)
{
    float *out = arena->out + first;
    memcpy(out, arena->base + first, n * sizeof *out);
    for (int k = 0; k < SOURCES; k++) {
        const float *x = arena->floats[k] + first;
        const float a = 1.0f / (float)(k + 3);
        for (size_t i = 0; i < n; i++) {
            out[i] += a * x[i];
        }
    }
    *sink += (uint64_t)(out[0] > 0.0f);
    return KEDGE_OK;
}

WIDE static void add_eight(const float *const x[8], const float a[8], size_t n, float *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        float low = (a[0] * x[0][i] + a[1] * x[1][i]) + (a[2] * x[2][i] + a[3] * x[3][i]);
        float high = (a[4] * x[4][i] + a[5] * x[5][i]) + (a[6] * x[6][i] + a[7] * x[7][i]);
        out[i] += low + high;
    }
}

WIDE static void add_two(const float *const x[2], const float a[2], size_t n, float *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] += a[0] * x[0][i] + a[1] * x[1][i];
    }
}

/* (c2) The best plain C float sum: tiles in cache, eight sources then two. */
static int sum_fused(struct arena *arena, size_t first, size_t n, uint64_t *sink)
{
    float a[SOURCES];
    for (int k = 0; k < SOURCES; k++) {
        a[k] = 1.0f / (float)(k + 3);
    }
    for (size_t at = first; at < first + n; at += FLOAT_TILE) {
        size_t tile = first + n - at < FLOAT_TILE ? first + n - at : FLOAT_TILE;
        const float *x[SOURCES];
        for (int k = 0; k < SOURCES; k++) {
            x[k] = arena->floats[k] + at;
        }
        memcpy(arena->out + at, arena->base + at, tile * sizeof(float));
        add_eight(x, a, tile, arena->out + at);
        add_two(x + 8, a + 8, tile, arena->out + at);
    }
    *sink += (uint64_t)(arena->out[first] > 0.0f);
    return KEDGE_OK;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Time of this thread's own: on a machine that others share, waiting for a turn is no work of the kernel. */
static uint64_t cpu_ns(void)
{
    struct timespec t = {0, 0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* A thread's part of one measurement. */
struct part {
    bench_fn *fn;
    struct arena *arena;
    size_t first, n;
    uint64_t sink;
    double seconds;
    int err;
};

static void *run_part(void *arg)
{
    struct part *part = arg;
    const uint64_t start = cpu_ns();
    part->err = part->fn(part->arena, part->first, part->n, &part->sink);
    part->seconds = 1e-9 * (double)(cpu_ns() - start);
    return NULL;
}

/* The longest of the threads' own times. */
static int run_parts(bench_fn *fn, struct arena *arena, unsigned threads, double *ret_seconds)
{
    struct part parts[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    const size_t step = COORDINATES / threads / 16 * 16;
    int err = KEDGE_OK;
    unsigned begun = 0;
    for (unsigned t = 0; t < threads && !err; t++) {
        parts[t] = (struct part){.fn = fn, .arena = arena, .first = t * step, .n = step};
        parts[t].n += t + 1 == threads ? COORDINATES - threads * step : 0;
        if (t + 1 == threads) {
            run_part(&parts[t]); /* this thread is the last */
        } else if (pthread_create(&ids[t], NULL, run_part, &parts[t]) != 0) {
            err = KEDGE_E_NOMEM;
        } else {
            begun++;
        }
    }
    for (unsigned t = 0; t < begun; t++) {
        (void)pthread_join(ids[t], NULL);
    }
    double longest = 0;
    volatile uint64_t keep = 0;
    for (unsigned t = 0; t < threads && !err; t++) {
        longest = parts[t].seconds > longest ? parts[t].seconds : longest;
        keep = keep + parts[t].sink;
        err = parts[t].err;
    }
    *ret_seconds = longest;
    return err;
}

/* One untimed call, then rounds in which every function runs once, so that a noisy neighbour hits them
 * all. */
static int measure(bench_fn *const fns[FUNCTIONS], struct arena *arena, unsigned threads,
                   double seconds[FUNCTIONS])
{
    double all[FUNCTIONS][RUNS];
    for (int run = -1; run < RUNS; run++) {
        for (size_t f = 0; f < FUNCTIONS; f++) {
            double took;
            int err = run_parts(fns[f], arena, threads, &took);
            if (err) {
                return err;
            }
            if (run >= 0) {
                all[f][run] = took;
            }
        }
    }
    for (size_t f = 0; f < FUNCTIONS; f++) {
        qsort(all[f], RUNS, sizeof(double), compare_doubles);
        seconds[f] = all[f][RUNS / 2];
    }
    return KEDGE_OK;
}

static void close_arena(struct arena *arena)
{
    for (int k = 0; k < SOURCES; k++) {
        kedge_mem_free(arena->values[k]);
    }
    kedge_mem_free(arena->base);
    kedge_mem_free(arena->out);
}

/* New memory, in pages of 2 MiB where the system gives such: with ten streams side by side, looking up a page
 * per 4 KiB costs more than it does one stream. */
static void *new_vector(size_t count, enum kedge_bench_pages pages)
{
    enum { SMALL_PAGE = 4096 };
    void *p = kedge_mem_new(count, sizeof(int32_t));
    if (p && pages == KEDGE_BENCH_PAGES_LARGE) {
        const uintptr_t from = ((uintptr_t)p + SMALL_PAGE - 1) & ~(uintptr_t)(SMALL_PAGE - 1);
        const size_t skipped = (size_t)(from - (uintptr_t)p);
        (void)madvise((void *)from, count * sizeof(int32_t) - skipped, MADV_HUGEPAGE); /* a wish */
    }
    return p;
}

static int open_arena(struct arena *arena, enum kedge_bench_pages pages)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 1, KEDGE_RNG_SIM, 0, 0);
    *arena = (struct arena){0};
    arena->base = new_vector(COORDINATES, pages);
    arena->out = new_vector(COORDINATES, pages);
    bool ok = arena->base && arena->out;
    for (int k = 0; k < SOURCES && ok; k++) {
        arena->values[k] = new_vector(COORDINATES, pages);
        arena->floats[k] = (float *)(void *)arena->values[k];
        arena->weight[k] = 1 + kedge_rng_below(&rng, 5000);
        ok = arena->values[k] != NULL;
        for (size_t i = 0; i < COORDINATES && ok; i++) {
            /* also a normal number when read as float: exponent and sign of about +-0.01 */
            uint32_t bits = (uint32_t)kedge_rng_u64(&rng);
            arena->values[k][i] = (int32_t)((bits & 0x807fffffu) | 0x3c000000u);
        }
    }
    for (size_t i = 0; i < COORDINATES && ok; i++) {
        arena->base[i] = (float)(kedge_rng_unit(&rng) - 0.5);
        arena->out[i] = 0.0f; /* touches every page */
    }
    if (!ok) {
        close_arena(arena);
        return KEDGE_E_NOMEM;
    }
    return KEDGE_OK;
}

int kedge_bench_aggregation_mean(unsigned threads, enum kedge_bench_pages pages, struct kedge_bench_mean *ret)
{
    static bench_fn *const fns[FUNCTIONS] = {mean_integer, sum_passes, sum_fused,  read_all_1,
                                             read_all_2,   read_all_5, read_all_10};
    double seconds[FUNCTIONS];
    struct arena arena;
    int err = threads == 0 || threads > THREADS_MAX ? KEDGE_E_ARG : open_arena(&arena, pages);
    if (err) {
        return err;
    }
    err = measure(fns, &arena, threads, seconds);
    close_arena(&arena);
    if (!err) {
        double read = seconds[3];
        for (int i = 4; i < FUNCTIONS; i++) {
            read = seconds[i] < read ? seconds[i] : read;
        }
        *ret = (struct kedge_bench_mean){.mean = GIGABYTES / seconds[0],
                                         .read = GIGABYTES / read,
                                         .passes = GIGABYTES / seconds[1],
                                         .fused = GIGABYTES / seconds[2]};
    }
    return err;
}

#ifdef KEDGE_BENCH_MAIN
#include <stdio.h>

int main(void)
{
    for (enum kedge_simd simd = KEDGE_SIMD_SCALAR; simd <= KEDGE_SIMD_LAST; simd++) {
        if (kedge_simd_set(simd)) {
            printf("%s: not available\n", kedge_simd_name(simd));
            continue;
        }
        for (unsigned threads = 1; threads <= THREADS_MAX; threads++) {
            struct kedge_bench_mean m;
            if (kedge_bench_aggregation_mean(threads, KEDGE_BENCH_PAGES_LARGE, &m)) {
                printf("%s: not measured\n", kedge_simd_name(simd));
                return 1;
            }
            printf("%-6s %u thread%s mean %.1f ms = %.1f GB/s; read %.1f GB/s: ratio %.2f; float, one source "
                   "per "
                   "pass %.1f, fused %.1f GB/s\n",
                   kedge_simd_name(simd), threads, threads == 1 ? ": " : "s:", 1e3 * GIGABYTES / m.mean,
                   m.mean, m.read, m.mean / m.read, m.passes, m.fused);
        }
    }
    return 0;
}
#endif
