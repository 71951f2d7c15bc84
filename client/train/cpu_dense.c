/* Dense layers and losses. While samples × outputs are few, small.c beats BLAS. */
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "client/train/cpu_impl.h"
#include "client/train/net_impl.h"
#include "client/train/small.h"
#include "client/train/tile.h"

/* A kernel beyond the caches is read from memory once each way while the batch is small: rows of it that stay
 * in the second cache give their part of dx and take their step before the next come. Measured for 3136 ×
 * 2048 (forward, backward): 1.8 and 2.1 times BLAS's rate for a batch of 10, 1.25 for 32; no longer worth it
 * for 128. Smaller kernels keep the ways that they always went, so that their results keep their bits. */
enum { LARGE_KERNEL = 1 << 22, LARGE_BATCH_MAX = 48, BLOCK_FLOATS = 1 << 16, BLOCK_ROWS = 64 };

static bool use_blocks(const struct kedge_device *dev, const struct kedge_ops_dense *s, uint32_t n)
{
    return dev->has_small && (uint64_t)s->in * s->out >= LARGE_KERNEL && n <= LARGE_BATCH_MAX;
}

/* Which way a product goes is decided by its sizes alone, never by the data or the machine's load: a job's
 * results must not depend on what else runs. */
static bool use_small(const struct kedge_device *dev, const struct kedge_ops_dense *s, uint32_t n)
{
    return dev->has_small && (uint64_t)n * s->out <= KEDGE_SMALL_WORK_MAX;
}

void kedge_cpu_dense_forward(struct kedge_device *dev, const struct kedge_ops_dense *s, uint32_t n,
                             const float *x, const float *w, const float *b, float *y)
{
    for (uint32_t r = 0; r < n; r++) {
        memcpy(y + (size_t)r * s->out, b, s->out * sizeof *y);
    }
    if (use_blocks(dev, s, n)) {
        kedge_tiles_for(s->in)->dots(n, s->out, s->in, x, w, y);
    } else if (use_small(dev, s, n)) {
        kedge_small_dots(n, s->out, s->in, x, w, y);
    } else {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)s->out, (int)s->in, 1.0f, x,
                    (int)s->in, w, (int)s->in, 1.0f, y, (int)s->out);
    }
    for (size_t i = 0; s->relu && i < (size_t)n * s->out; i++) {
        y[i] = y[i] > 0.0f ? y[i] : 0.0f;
    }
}

/* dx[n][in] = dz[n][out] · W. */
static void multiply_back(bool small, const struct kedge_ops_dense *s, const float *dz, uint32_t n,
                          const float *w, float *dx)
{
    if (small) {
        kedge_small_product(n, s->out, s->in, dz, s->out, 1, w, 0.0f, dx);
    } else {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)s->in, (int)s->out, 1.0f, dz,
                    (int)s->out, w, (int)s->in, 0.0f, dx, (int)s->in);
    }
}

/* to = keep · to + dzᵀ · x. */
static void multiply_step(bool small, const struct kedge_ops_dense *s, const float *dz, const float *x,
                          uint32_t n, float keep, float *to)
{
    if (small) {
        kedge_small_product(s->out, n, s->in, dz, 1, s->out, x, keep, to);
    } else {
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)s->out, (int)s->in, (int)n, 1.0f, dz,
                    (int)s->out, x, (int)s->in, keep, to, (int)s->in);
    }
}

static void scale(float *v, size_t count, float by)
{
    for (size_t i = 0; i < count; i++) {
        v[i] *= by;
    }
}

/* x[n][in] as [panels][n][columns]. */
static void pack_panels(uint32_t n, uint32_t in, uint32_t columns, const float *x, float *to)
{
    for (uint32_t at = 0; at + columns <= in; at += columns) {
        for (uint32_t r = 0; r < n; r++, to += columns) {
            memcpy(to, x + (uint64_t)r * in + at, columns * sizeof *to);
        }
    }
}

uint64_t kedge_cpu_dense_scratch(const struct kedge_ops_dense *s, uint32_t n)
{
    uint64_t large = n < LARGE_BATCH_MAX ? n : LARGE_BATCH_MAX;
    return (uint64_t)s->in * s->out >= LARGE_KERNEL ? large * s->in : 0;
}

/* Both products, rows of the kernel by rows, with the errors of those rows packed: they lie too far apart. */
static void multiply_blocks(struct kedge_device *dev, const struct kedge_ops_dense *s, const float *dy,
                            const float *x, uint32_t n, const float *w, float *dx,
                            const struct kedge_ops_step *step, float *to)
{
    float by_row[BLOCK_ROWS * LARGE_BATCH_MAX], by_sample[BLOCK_ROWS * LARGE_BATCH_MAX];
    const struct kedge_tiles *tiles = kedge_tiles_for(s->in);
    uint32_t columns = 2 * tiles->lanes;
    struct kedge_tile_product back = {
        .rows = n, .width = s->in, .a = by_row, .panel = columns, .step = s->in, .c = dx};
    struct kedge_tile_product forth = {.inner = n,
                                       .width = s->in,
                                       .a = by_sample,
                                       .b = dev->scratch,
                                       .rest = x,
                                       .panel = (uint64_t)n * columns,
                                       .step = columns,
                                       .keep = step->keep};
    pack_panels(n, s->in, columns, x, dev->scratch);
    uint32_t block = BLOCK_FLOATS / s->in;
    block = block < 1 ? 1 : block > BLOCK_ROWS ? BLOCK_ROWS : block;
    for (uint32_t o = 0; o < s->out; o += block) {
        uint32_t rows = o + block < s->out ? block : s->out - o;
        uint64_t at = (uint64_t)o * s->in;
        for (uint32_t r = 0; r < n; r++) {
            for (uint32_t k = 0; k < rows; k++) {
                float v = dy[(uint64_t)r * s->out + o + k];
                by_row[k * n + r] = v;
                by_sample[r * rows + k] = v * step->by;
            }
        }
        if (dx) {
            back.inner = rows;
            back.b = back.rest = w + at;
            back.keep = o > 0 ? 1.0f : 0.0f;
            tiles->product(&back);
        }
        forth.rows = rows;
        forth.c = to + at;
        tiles->product(&forth);
    }
}

/* Of dy where y > 0, else 0: the ReLU's derivative, 0 at 0. */
static void mask(float *restrict dy, const float *restrict y, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        dy[i] = y[i] > 0.0f ? dy[i] : 0.0f;
    }
}

void kedge_cpu_dense_backward(struct kedge_device *dev, const struct kedge_ops_dense *s, uint32_t n,
                              const float *x, const float *y, float *dy, const float *w, float *dx,
                              const struct kedge_ops_step *step, float *to_w, float *to_b)
{
    bool small = use_small(dev, s, n);
    size_t count = (size_t)n * s->out;
    if (s->relu) {
        mask(dy, y, count);
    }
    if (use_blocks(dev, s, n)) {
        multiply_blocks(dev, s, dy, x, n, w, dx, step, to_w);
        scale(dy, count, step->by); /* for the bias */
    } else {
        if (dx) { /* before the kernel changes */
            multiply_back(small, s, dy, n, w, dx);
        }
        scale(dy, count, step->by);
        multiply_step(small, s, dy, x, n, step->keep, to_w);
    }
    if (step->keep_bias == 0.0f) {
        memset(to_b, 0, s->out * sizeof *to_b);
    } else {
        scale(to_b, s->out, step->keep_bias);
    }
    for (uint32_t r = 0; r < n; r++) {
        for (uint32_t c = 0; c < s->out; c++) {
            to_b[c] += dy[(size_t)r * s->out + c];
        }
    }
}

/* The largest logit is taken off before e^z, or a confident model overflows; sums are in double precision,
 * and the loss is formed from the sum's logarithm and not from a probability that may have rounded to 0. */
double kedge_softmax_row(float *z, uint32_t classes, int32_t label)
{
    float most = z[0];
    double sum = 0;
    for (uint32_t c = 1; c < classes; c++) {
        most = z[c] > most ? z[c] : most;
    }
    float own = z[label] - most;
    for (uint32_t c = 0; c < classes; c++) {
        z[c] = expf(z[c] - most);
        sum += (double)z[c];
    }
    float inverse = (float)(1.0 / sum);
    for (uint32_t c = 0; c < classes; c++) {
        z[c] *= inverse;
    }
    return log(sum) - (double)own;
}

/* Logits to the error dL/dZ = (p − y)/n in place. */
void kedge_cpu_cross_entropy(struct kedge_device *dev, uint32_t n, uint32_t width, const int32_t *labels,
                             float *z)
{
    double loss = dev->has_small ? kedge_small_softmax(n, width, labels, z) : 0;
    float share = 1.0f / (float)n;
    for (uint32_t r = 0; r < n; r++) {
        float *row = z + (size_t)r * width;
        loss += dev->has_small ? 0 : kedge_softmax_row(row, width, labels[r]);
        row[labels[r]] -= 1.0f;
        for (uint32_t c = 0; c < width; c++) {
            row[c] *= share;
        }
    }
    dev->loss += loss;
}

void kedge_cpu_square_error(struct kedge_device *dev, uint32_t n, uint32_t width, const int32_t *labels,
                            bool reals, float *z)
{
    double loss = 0;
    float share = 2.0f / ((float)n * (float)width);
    for (uint32_t r = 0; r < n; r++) {
        float *row = z + (size_t)r * width;
        for (uint32_t c = 0; c < width; c++) {
            float target = width == 1 ? (float)labels[r] : (float)((int32_t)c == labels[r]);
            if (reals) {
                memcpy(&target, &labels[r], sizeof target);
            }
            float off = row[c] - target;
            loss += (double)off * (double)off;
            row[c] = off * share;
        }
    }
    dev->loss += loss / (double)width;
}

void kedge_cpu_clip(struct kedge_device *dev, uint64_t count, float *g, float most)
{
    (void)dev;
    double squares = 0;
    for (uint64_t i = 0; i < count; i++) {
        squares += (double)g[i] * (double)g[i];
    }
    double norm = sqrt(squares);
    if (norm > (double)most) {
        scale(g, count, (float)((double)most / norm));
    }
}
