/* One kernel for every matrix product of training, convolutions included, which are products of matrices that
 * are never written out: C[m][n] = keep · C + scale · Σ_k A[m][k] · B[n][k] (+ bias, then ReLU), for a batch
 * of such products, one per site. Operands are read through a rule that says where an element lies.
 *
 * Where m · n is small and k is long, the sum over k is split between blocks; a second kernel adds the parts
 * in their order, so that the result depends on shapes alone. */
#ifndef KEDGE_CLIENT_TRAIN_CUDA_PRODUCT_H
#define KEDGE_CLIENT_TRAIN_CUDA_PRODUCT_H

#include "client/train/cuda/device.h"

enum kedge_gpu_rule {
    KEDGE_GPU_MATRIX = 0,   /* element (i, k) = data[i · row + k · col] */
    KEDGE_GPU_STRIDED_RUNS, /* data[i · row + (k / run) · far + k % run] */
    KEDGE_GPU_PATCHES,      /* i = (image, y, x) of the output, k = (channel, ky, kx): x there, 0 outside */
    KEDGE_GPU_PATCHES_K,    /* i and k the other way round */
    KEDGE_GPU_COL2IM,    /* i = (image, y, x) of the input, k = (output channel, ky, kx): what the output has
                          * where this place of the kernel met the input, 0 if nowhere */
    KEDGE_GPU_PREV_STEP, /* as MATRIX one k before; 0 where k is the first of a run (a sequence) */
};

struct kedge_gpu_operand {
    const float *data;
    const float *mask; /* NULL, or laid out as data: an element counts where this is above 0 */
    size_t site, mask_site;
    enum kedge_gpu_rule rule;
    int along_k; /* neighbours in memory are neighbours in k */
    size_t row, col, far;
    uint32_t run;
};

struct kedge_gpu_product {
    uint32_t m, n, k, sites;
    struct kedge_gpu_operand a, b; /* a(m, k), b(n, k) */
    struct kedge_ops_conv2d conv;  /* of PATCHES and SPREAD */
    float *c;                      /* c[i · c_row + (j / c_run) · c_far + j % c_run] */
    size_t c_site, c_row, c_far;
    uint32_t c_run;
    float keep, scale;
    const float *bias; /* NULL; or one per column, or one per row */
    size_t bias_site;
    int bias_of_rows, relu;
    float *sums; /* NULL, or sums[i] = keep_sums · sums[i] + scale · Σ_k A[i][k]: a column of ones in B */
    size_t sums_site;
    float keep_sums;
    const uint32_t *active;     /* NULL, or one per site: those with 0 keep their C and sums */
    uint32_t splits, per_split; /* of k; set by kedge_gpu_multiply, as is parts: sites × splits × m × width */
    float *parts;
};

KEDGE_DEVICE size_t kedge_gpu_patch(const struct kedge_ops_conv2d *g, uint32_t place, uint32_t at)
{
    const uint32_t places = g->out_height * g->out_width, window = g->kernel * g->kernel;
    const uint32_t image = place / places, where = place % places, channel = at / window, in = at % window;
    const int64_t y = (int64_t)(where / g->out_width) * g->stride + in / g->kernel - g->padding;
    const int64_t x = (int64_t)(where % g->out_width) * g->stride + in % g->kernel - g->padding;
    if (y < 0 || x < 0 || y >= g->height || x >= g->width) {
        return SIZE_MAX;
    }
    return (((size_t)image * g->in + channel) * g->height + (size_t)y) * g->width + (size_t)x;
}

KEDGE_DEVICE size_t kedge_gpu_spread(const struct kedge_ops_conv2d *g, uint32_t place, uint32_t at)
{
    const uint32_t places = g->height * g->width, window = g->kernel * g->kernel;
    const uint32_t image = place / places, where = place % places, channel = at / window, in = at % window;
    const int64_t y = (int64_t)(where / g->width) + g->padding - in / g->kernel;
    const int64_t x = (int64_t)(where % g->width) + g->padding - in % g->kernel;
    if (y < 0 || x < 0 || y % g->stride != 0 || x % g->stride != 0 || y / g->stride >= g->out_height
        || x / g->stride >= g->out_width) {
        return SIZE_MAX;
    }
    return (((size_t)image * g->out + channel) * g->out_height + (size_t)(y / g->stride)) * g->out_width
           + (size_t)(x / g->stride);
}

/* Where element (i, k) lies, SIZE_MAX for a zero. */
KEDGE_DEVICE size_t kedge_gpu_place(const struct kedge_gpu_product *p, const struct kedge_gpu_operand *o,
                                    uint32_t i, uint32_t k)
{
    switch (o->rule) {
    case KEDGE_GPU_STRIDED_RUNS:
        return (size_t)i * o->row + (size_t)(k / o->run) * o->far + k % o->run;
    case KEDGE_GPU_PATCHES:
        return kedge_gpu_patch(&p->conv, i, k);
    case KEDGE_GPU_PATCHES_K:
        return kedge_gpu_patch(&p->conv, k, i);
    case KEDGE_GPU_COL2IM:
        return kedge_gpu_spread(&p->conv, i, k);
    case KEDGE_GPU_PREV_STEP:
        return k % o->run == 0 ? SIZE_MAX : (size_t)i * o->row + (size_t)(k - 1) * o->col;
    case KEDGE_GPU_MATRIX:
    default:
        return (size_t)i * o->row + (size_t)k * o->col;
    }
}

KEDGE_DEVICE float kedge_gpu_element(const struct kedge_gpu_product *p, const struct kedge_gpu_operand *o,
                                     uint32_t site, uint32_t i, uint32_t k)
{
    const size_t at = kedge_gpu_place(p, o, i, k);
    if (at == SIZE_MAX || (o->mask && !(o->mask[(size_t)site * o->mask_site + at] > 0.0f))) {
        return 0.0f;
    }
    return o->data[(size_t)site * o->site + at];
}

/* sum is Σ_k of column j, which may be the one of ones. */
KEDGE_DEVICE void kedge_gpu_finish(const struct kedge_gpu_product *p, uint32_t site, uint32_t i, uint32_t j,
                                   float sum)
{
    if (p->active && p->active[site] == 0) {
        return;
    }
    const int is_sum = j == p->n;
    float *to = is_sum ? p->sums + (size_t)site * p->sums_site + i
                       : p->c + (size_t)site * p->c_site + (size_t)i * p->c_row
                             + (size_t)(j / p->c_run) * p->c_far + j % p->c_run;
    const float keep = is_sum ? p->keep_sums : p->keep;
    float v = p->scale * sum;
    if (keep != 0.0f) {
        v += keep * *to;
    }
    if (p->bias) {
        v += p->bias[(size_t)site * p->bias_site + (p->bias_of_rows ? i : j)];
    }
    *to = p->relu && v <= 0.0f ? 0.0f : v;
}

enum { KEDGE_GPU_TILE_K = 16, KEDGE_GPU_TILE_N = 64 };

/* What a block has before it. */
struct kedge_gpu_tile {
    uint32_t top, left, split, site, k_first, k_end, width;
};

KEDGE_DEVICE struct kedge_gpu_tile kedge_gpu_tile_of(const struct kedge_gpu_product *p, uint32_t tile_m)
{
    struct kedge_gpu_tile b;
    b.width = p->n + (p->sums ? 1 : 0);
    const uint32_t across = (b.width + KEDGE_GPU_TILE_N - 1) / KEDGE_GPU_TILE_N,
                   down = (p->m + tile_m - 1) / tile_m;
    const uint32_t block = (uint32_t)kedge_gpu_block();
    b.left = block % across * KEDGE_GPU_TILE_N;
    b.top = block / across % down * tile_m;
    b.split = block / across / down % p->splits;
    b.site = block / across / down / p->splits;
    b.k_first = b.split * p->per_split;
    b.k_end = p->k - b.k_first < p->per_split ? p->k : b.k_first + p->per_split;
    return b;
}

/* The next 16 of k of rows first … first + rows of an operand, k-major, zeros outside. */
KEDGE_DEVICE void kedge_gpu_fill(const struct kedge_gpu_product *p, const struct kedge_gpu_operand *o,
                                 const struct kedge_gpu_tile *b, uint32_t k, uint32_t first, uint32_t limit,
                                 int is_b, uint32_t rows, float *tile)
{
    const uint32_t threads = (uint32_t)kedge_gpu_threads();
    for (uint32_t at = (uint32_t)kedge_gpu_thread(); at < rows * KEDGE_GPU_TILE_K; at += threads) {
        const uint32_t i = o->along_k ? at / KEDGE_GPU_TILE_K : at % rows;
        const uint32_t j = o->along_k ? at % KEDGE_GPU_TILE_K : at / rows;
        float v = 0.0f;
        if (first + i < limit && k + j < b->k_end) {
            v = is_b && first + i == p->n ? 1.0f : kedge_gpu_element(p, o, b->site, first + i, k + j);
        }
        tile[j * (rows + 1) + i] = v; /* one more than rows: neighbours in k lie in other banks */
    }
}

/* A block: tile_m × 64 elements of C, 16 of k at a time through shared memory; a thread makes micro × 4. */
#define KEDGE_GPU_PRODUCT_KERNEL(name, tile_m, micro)                                        \
    KEDGE_KERNEL(name, struct kedge_gpu_product)                                             \
    {                                                                                        \
        KEDGE_SHARED(float, a_tile, KEDGE_GPU_TILE_K *((tile_m) + 1));                       \
        KEDGE_SHARED(float, b_tile, KEDGE_GPU_TILE_K *(KEDGE_GPU_TILE_N + 1));               \
        const struct kedge_gpu_tile b = kedge_gpu_tile_of(&a, tile_m);                       \
        const uint32_t row = (uint32_t)kedge_gpu_thread() / 16 * (micro),                    \
                       column = (uint32_t)kedge_gpu_thread() % 16;                           \
        float sum[micro][4];                                                                 \
        for (uint32_t at = 0; at < (micro)*4; at++) {                                        \
            sum[at / 4][at % 4] = 0.0f;                                                      \
        }                                                                                    \
        for (uint32_t k = b.k_first; k < b.k_end; k += KEDGE_GPU_TILE_K) {                   \
            kedge_gpu_fill(&a, &a.a, &b, k, b.top, a.m, 0, tile_m, a_tile);                  \
            kedge_gpu_fill(&a, &a.b, &b, k, b.left, b.width, 1, KEDGE_GPU_TILE_N, b_tile);   \
            KEDGE_BARRIER();                                                                 \
            for (uint32_t j = 0; j < KEDGE_GPU_TILE_K; j++) {                                \
                for (uint32_t r = 0; r < (micro); r++) {                                     \
                    for (uint32_t c = 0; c < 4; c++) {                                       \
                        sum[r][c] += a_tile[j * ((tile_m) + 1) + row + r]                    \
                                     * b_tile[j * (KEDGE_GPU_TILE_N + 1) + column + c * 16]; \
                    }                                                                        \
                }                                                                            \
            }                                                                                \
            KEDGE_BARRIER();                                                                 \
        }                                                                                    \
        for (uint32_t at = 0; at < (micro)*4; at++) {                                        \
            const uint32_t i = b.top + row + at / 4, j = b.left + column + at % 4 * 16;      \
            if (i < a.m && j < b.width && a.splits == 1) {                                   \
                kedge_gpu_finish(&a, b.site, i, j, sum[at / 4][at % 4]);                     \
            } else if (i < a.m && j < b.width) {                                             \
                a.parts[(((size_t)b.site * a.splits + b.split) * a.m + i) * b.width + j] =   \
                    sum[at / 4][at % 4];                                                     \
            }                                                                                \
        }                                                                                    \
    }

KEDGE_GPU_PRODUCT_KERNEL(kedge_gpu_product_wide, 64, 4)
KEDGE_GPU_PRODUCT_KERNEL(kedge_gpu_product_low, 16, 1)

KEDGE_KERNEL(kedge_gpu_product_parts, struct kedge_gpu_product)
{
    const size_t at = kedge_gpu_block() * KEDGE_GPU_THREADS + kedge_gpu_thread();
    const uint32_t width = a.n + (a.sums ? 1 : 0);
    const size_t each = (size_t)a.m * width;
    if (at < each * a.sites) {
        const size_t site = at / each, place = at % each;
        float sum = 0.0f;
        for (uint32_t s = 0; s < a.splits; s++) {
            sum += a.parts[(site * a.splits + s) * each + place];
        }
        kedge_gpu_finish(&a, (uint32_t)site, (uint32_t)(place / width), (uint32_t)(place % width), sum);
    }
}

/* ---- the host's side ---- */

enum {
    KEDGE_GPU_BLOCKS_ENOUGH = 256, /* below it k is split, as long as every part keeps … */
    KEDGE_GPU_SPLIT_MIN = 64,      /* … so many products an element */
    KEDGE_GPU_SPLITS_MAX = 64,
    KEDGE_GPU_LOW = 32, /* rows of C up to which tiles are low */
};

static inline size_t kedge_gpu_tiles(uint32_t m, uint32_t width)
{
    const uint32_t tile = m <= KEDGE_GPU_LOW ? 16 : 64;
    return (size_t)((m + tile - 1) / tile) * ((width + KEDGE_GPU_TILE_N - 1) / KEDGE_GPU_TILE_N);
}

/* How many parts k is split into, from the shapes alone. */
static inline uint32_t kedge_gpu_splits(uint32_t m, uint32_t width, uint32_t k, uint32_t sites)
{
    const uint64_t blocks = kedge_gpu_tiles(m, width) * sites;
    uint64_t splits = blocks > 0 ? KEDGE_GPU_BLOCKS_ENOUGH / blocks : 1;
    splits = splits > k / KEDGE_GPU_SPLIT_MIN ? k / KEDGE_GPU_SPLIT_MIN : splits;
    splits = splits > KEDGE_GPU_SPLITS_MAX ? KEDGE_GPU_SPLITS_MAX : splits;
    return splits < 1 ? 1 : (uint32_t)splits;
}

static inline size_t kedge_gpu_parts_most(size_t a, size_t b, size_t c)
{
    return a > b ? (a > c ? a : c) : b > c ? b : c;
}

/* Floats of scratch that a product needs: 0 when k is not split. */
static inline size_t kedge_gpu_parts_of(uint32_t m, uint32_t width, uint32_t k, uint32_t sites)
{
    const uint32_t splits = kedge_gpu_splits(m, width, k, sites);
    return splits > 1 ? (size_t)m * width * sites * splits : 0;
}

/* All that is not said: one C without folds, keep 0, scale 1, no bias, no sums. */
static inline struct kedge_gpu_product kedge_gpu_product_of(struct kedge_device *dev, uint32_t m, uint32_t n,
                                                            uint32_t k, float *c, size_t c_row)
{
    struct kedge_gpu_product p;
    memset(&p, 0, sizeof p);
    p.m = m;
    p.n = n;
    p.k = k;
    p.sites = dev->sites;
    p.c = c;
    p.c_site = kedge_gpu_ref(dev, c).site;
    p.c_row = c_row;
    p.c_run = UINT32_MAX;
    p.scale = 1.0f;
    p.a.run = p.b.run = UINT32_MAX;
    return p;
}

/* Element (i, k) at data[i · row + k · col]; mask may be NULL. */
static inline struct kedge_gpu_operand kedge_gpu_matrix(struct kedge_device *dev, const float *data,
                                                        const float *mask, size_t row, size_t col)
{
    struct kedge_gpu_operand o;
    memset(&o, 0, sizeof o);
    o.data = data;
    o.mask = mask;
    o.site = kedge_gpu_ref(dev, data).site;
    o.mask_site = kedge_gpu_ref(dev, mask).site;
    o.rule = KEDGE_GPU_MATRIX;
    o.along_k = col == 1;
    o.row = row;
    o.col = col;
    o.run = UINT32_MAX;
    return o;
}

/* Launches it. */
static inline void kedge_gpu_multiply(struct kedge_device *dev, struct kedge_gpu_product *p)
{
    const uint32_t width = p->n + (p->sums ? 1 : 0);
    const bool roomy = kedge_gpu_parts_of(p->m, width, p->k, p->sites) <= dev->parts_count;
    p->splits = roomy ? kedge_gpu_splits(p->m, width, p->k, p->sites) : 1;
    p->per_split = (p->k + p->splits - 1) / p->splits;
    p->per_split = (p->per_split + KEDGE_GPU_TILE_K - 1) / KEDGE_GPU_TILE_K * KEDGE_GPU_TILE_K;
    p->splits = p->per_split > 0 ? (p->k + p->per_split - 1) / p->per_split : 1;
    p->parts = dev->parts;
    const size_t blocks = kedge_gpu_tiles(p->m, width) * p->splits * p->sites;
    if (blocks == 0 || blocks > INT32_MAX) {
        dev->error = blocks > 0 && dev->error == 0 ? KEDGE_E_ARG : dev->error;
        return;
    }
    if (p->m <= KEDGE_GPU_LOW) {
        KEDGE_LAUNCH(&dev->stream, kedge_gpu_product_low, blocks, KEDGE_GPU_THREADS, *p);
    } else {
        KEDGE_LAUNCH(&dev->stream, kedge_gpu_product_wide, blocks, KEDGE_GPU_THREADS, *p);
    }
    if (p->splits > 1) {
        KEDGE_LAUNCH_FLAT(&dev->stream, kedge_gpu_product_parts, (size_t)p->m * width * p->sites, *p);
    }
}

#endif
