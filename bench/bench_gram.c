/* Both take turns with their baselines in one run and count this thread's own time. OpenBLAS is loaded only
 * here: its threads would stand in other rows' measurements. */
#include "bench/bench_gram.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "aggregation/gram.h"
#include "aggregation/gram_impl.h"
#include "common/base/err.h"
#include "common/base/mem.h"
#include "grouping/flexcfl.h"
#include "tests/fixtures/whole_updates.h"

enum {
    COUNT = 100,
    GRAM_DIMENSION = 400 * 1000, /* 160 MB of integers and as many of floats: not for any cache */
    GRAM_TURNS = 5,
    GROUPING_DIMENSION = 45 * 1000 * 1000 / 4,
    GROUPING_TURNS = 2,
    GROUPS = 4,
    FREE_MB = 8000, /* what the grouping takes: 4.5 GB of updates, 2.4 GB scaled, and some */
};

/* The calling convention of CBLAS: http://www.netlib.org/blas/#_cblas */
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112, UPPER = 121 };
typedef void sgemm_fn(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a,
                      int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void ssyrk_fn(int order, int uplo, int trans, int n, int k, float alpha, const float *a, int lda,
                      float beta, float *c, int ldc);
typedef void threads_fn(int threads);

struct blas {
    sgemm_fn *sgemm;
    ssyrk_fn *ssyrk;
};

static double cpu_seconds(void)
{
    struct timespec t = {0, 0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void keep_least(double *least, double seconds)
{
    if (*least == 0 || seconds < *least) {
        *least = seconds;
    }
}

static int open_blas(struct blas *blas)
{
    threads_fn *set_threads = NULL;
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        return KEDGE_E_NOT_FOUND;
    }
    /* POSIX promises that dlsym's pointer fits a function's; ISO C has no conversion for it. */
    *(void **)&blas->sgemm = dlsym(library, "cblas_sgemm");
    *(void **)&blas->ssyrk = dlsym(library, "cblas_ssyrk");
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    if (!blas->sgemm || !blas->ssyrk || !set_threads) {
        return KEDGE_E_NOT_FOUND;
    }
    set_threads(1);
    return KEDGE_OK;
}

/* Updates of GROUPS kinds: a pattern of its kind and noise of its own. */
static void fill_update(int32_t *q, size_t n, size_t i)
{
    uint64_t noise = 0x9e3779b97f4a7c15u * (i + 1);
    uint64_t kind = 0xbf58476d1ce4e5b9u * (i % GROUPS + 1);
    for (size_t k = 0; k < n; k++) { /* xorshift64: Marsaglia, "Xorshift RNGs", 2003 */
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        kind ^= kind << 13;
        kind ^= kind >> 7;
        kind ^= kind << 17;
        q[k] = (int32_t)(noise >> 44) - (1 << 19) + (int32_t)(kind >> 44) - (1 << 19);
    }
}

static void free_updates(int32_t *updates[COUNT])
{
    for (size_t i = 0; i < COUNT; i++) {
        kedge_mem_free(updates[i]);
    }
}

static int make_updates(int32_t *updates[COUNT], size_t n)
{
    memset(updates, 0, COUNT * sizeof *updates);
    for (size_t i = 0; i < COUNT; i++) {
        updates[i] = kedge_mem_new(n, sizeof *updates[i]);
        if (!updates[i]) {
            free_updates(updates);
            return KEDGE_E_NOMEM;
        }
        fill_update(updates[i], n, i);
    }
    return KEDGE_OK;
}

static size_t tile_size(void)
{
    return kedge_gram_scratch(COUNT) / KEDGEI_GRAM_LINE * KEDGEI_GRAM_LINE;
}

/* Scaled vectors for n coordinates. */
static int16_t *new_tiles(size_t n)
{
    const size_t size = (n / KEDGE_GRAM_TILE + 2) * tile_size();
    int16_t *x = kedge_mem_new(size, sizeof *x);
    for (size_t i = 0; x && i < size; i++) {
        x[i] = (int16_t)((int)(i * 40503 % (2 * KEDGE_GRAM_ONE + 1)) - KEDGE_GRAM_ONE);
    }
    return x;
}

/* The upper triangle of one tile, as kedge_gram_tile adds it, without what fetches the next. */
static void add_products(const int16_t *x, int64_t *gram)
{
    int64_t cells[KEDGEI_GRAM_CELLS];
    kedgei_gram_block *block = kedgei_gram_choose_block();
    for (size_t i = 0; i < COUNT; i += KEDGEI_GRAM_ROWS) {
        for (size_t j = i; j < COUNT; j += KEDGEI_GRAM_COLUMNS) {
            block(x + i * KEDGEI_GRAM_STRIDE, x + j * KEDGEI_GRAM_STRIDE, KEDGE_GRAM_TILE, cells);
            for (size_t k = 0; k < KEDGEI_GRAM_CELLS; k++) {
                const size_t row = i + k / KEDGEI_GRAM_COLUMNS, column = j + k % KEDGEI_GRAM_COLUMNS;
                if (row <= column && column < COUNT) {
                    gram[row * COUNT + column] += cells[k];
                }
            }
        }
    }
}

/* The products alone over n coordinates that were scaled before: tile after tile of `tiles`. */
static double time_products(int16_t *tiles, size_t n, int64_t *gram)
{
    const size_t past = (size_t)((uintptr_t)tiles / sizeof *tiles % KEDGEI_GRAM_LINE);
    const int16_t *x = tiles + (past == 0 ? 0 : KEDGEI_GRAM_LINE - past);
    const double start = cpu_seconds();
    for (size_t done = 0; done < n; done += KEDGE_GRAM_TILE, x += tile_size()) {
        add_products(x, gram);
    }
    return cpu_seconds() - start;
}

struct gram_arena {
    int32_t *updates[COUNT];
    float *floats;
    float *product;
    int64_t *gram;
    int16_t *tiles;
    uint32_t maxima[COUNT];
};

static int gram_turns(struct gram_arena *a, const struct blas *blas, struct kedge_bench_gram *ret)
{
    const int k = GRAM_DIMENSION, n = COUNT;
    const double half = 1e-9 * COUNT * (COUNT + 1) / 2 * GRAM_DIMENSION;
    double gram = 0, products = 0, sgemm = 0, ssyrk = 0;
    int err = KEDGE_OK;
    for (int turn = 0; turn <= GRAM_TURNS && !err; turn++) {
        double start = cpu_seconds();
        blas->sgemm(ROW_MAJOR, NO_TRANS, TRANS, n, n, k, 1, a->floats, k, a->floats, k, 0, a->product, n);
        keep_least(&sgemm, cpu_seconds() - start);
        start = cpu_seconds();
        err = gram_of((const int32_t *const *)a->updates, COUNT, GRAM_DIMENSION, a->maxima, a->gram);
        keep_least(&gram, cpu_seconds() - start);
        start = cpu_seconds();
        blas->ssyrk(ROW_MAJOR, UPPER, NO_TRANS, n, k, 1, a->floats, k, 0, a->product, n);
        keep_least(&ssyrk, cpu_seconds() - start);
        keep_least(&products, time_products(a->tiles, GRAM_DIMENSION, a->gram));
    }
    *ret = (struct kedge_bench_gram){.gram = half / gram,
                                     .products = half / products,
                                     .sgemm = 1e-9 * COUNT * COUNT * GRAM_DIMENSION / sgemm,
                                     .ssyrk = half / ssyrk};
    return err;
}

int kedge_bench_gram(struct kedge_bench_gram *ret)
{
    struct blas blas;
    struct gram_arena a = {.floats = NULL};
    int err = open_blas(&blas);
    if (err) {
        return err;
    }
    a.floats = kedge_mem_new((size_t)COUNT * GRAM_DIMENSION, sizeof *a.floats);
    a.product = kedge_mem_new((size_t)COUNT * COUNT, sizeof *a.product);
    a.gram = kedge_mem_new((size_t)COUNT * COUNT, sizeof *a.gram);
    a.tiles = new_tiles(GRAM_DIMENSION);
    err =
        a.floats && a.product && a.gram && a.tiles ? make_updates(a.updates, GRAM_DIMENSION) : KEDGE_E_NOMEM;
    for (size_t i = 0; i < COUNT && !err; i++) {
        for (size_t k = 0; k < GRAM_DIMENSION; k++) {
            a.floats[i * GRAM_DIMENSION + k] = (float)a.updates[i][k] * 0x1p-20f;
        }
    }
    err = err ? err : gram_turns(&a, &blas, ret);
    free_updates(a.updates);
    kedge_mem_free(a.floats);
    kedge_mem_free(a.product);
    kedge_mem_free(a.gram);
    kedge_mem_free(a.tiles);
    return err; /* the library stays: its threads do not like to lose it */
}

/* What the system could give without taking it from others. */
static bool is_free(unsigned megabytes)
{
    char line[128];
    unsigned long kilobytes = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        found = strncmp(line, "MemAvailable:", 13) == 0;
        for (const char *p = line; found && *p; p++) {
            kilobytes = *p >= '0' && *p <= '9' ? 10 * kilobytes + (unsigned long)(*p - '0') : kilobytes;
        }
    }
    if (f) {
        (void)fclose(f);
    }
    return found && kilobytes / 1024 >= megabytes;
}

static bool are_planted(const uint32_t group[COUNT])
{
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t j = 0; j < i; j++) {
            if ((group[i] == group[j]) != (i % GROUPS == j % GROUPS)) {
                return false;
            }
        }
    }
    return true;
}

int kedge_bench_grouping(struct kedge_bench_grouping *ret)
{
    static uint32_t group[COUNT];
    static double eigenvalues[COUNT], embedding[COUNT * GROUPS];
    static int64_t gram[COUNT * COUNT];
    int32_t *updates[COUNT];
    const struct kedge_flexcfl_params params = {.groups = GROUPS, .seed = 1};
    struct kedge_flexcfl_result result = {.group = group, .eigenvalues = eigenvalues, .embedding = embedding};
    int16_t *tiles = is_free(FREE_MB) ? new_tiles(GROUPING_DIMENSION) : NULL;
    int err = tiles ? make_updates(updates, GROUPING_DIMENSION) : KEDGE_E_NOMEM;
    const bool made = err == KEDGE_OK;
    *ret = (struct kedge_bench_grouping){.right = true};
    for (int turn = 0; turn < GROUPING_TURNS && !err; turn++) {
        keep_least(&ret->products, time_products(tiles, GROUPING_DIMENSION, gram));
        const double start = cpu_seconds();
        err = group_of((const int32_t *const *)updates, COUNT, GROUPING_DIMENSION, &params, &result);
        keep_least(&ret->grouping, cpu_seconds() - start);
        ret->right = ret->right && are_planted(group);
    }
    if (made) {
        free_updates(updates);
    }
    kedge_mem_free(tiles);
    return err;
}
