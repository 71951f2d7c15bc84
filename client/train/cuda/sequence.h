/* Embeddings and LSTMs. The gates' products with x are one product for all steps; then every step is one
 * kernel: its block multiplies by W_hh what its hidden units need and goes on to the gates, so that nothing
 * but h and c passes between steps. */
#ifndef KEDGE_CLIENT_TRAIN_CUDA_SEQUENCE_H
#define KEDGE_CLIENT_TRAIN_CUDA_SEQUENCE_H

#include "client/train/cuda/layers.h"

/* ---- embedding ---- */

struct kedge_gpu_embedding {
    uint32_t tokens, width, sites;
    size_t places; /* n · steps of one site */
    const float *x, *w, *dy;
    float *y; /* forward: y; backward: the target */
    size_t x_site, w_site, y_site, dy_site;
    float keep, by;
    const uint32_t *active;
};

KEDGE_KERNEL(embedding_kernel, struct kedge_gpu_embedding)
{
    const size_t at = kedge_gpu_block() * KEDGE_GPU_THREADS + kedge_gpu_thread(), each = a.places * a.width;
    if (at < each * a.sites) {
        const size_t site = at / each, place = at % each / a.width, column = at % a.width;
        const uint32_t token = (uint32_t)a.x[site * a.x_site + place];
        a.y[site * a.y_site + at % each] = a.w[site * a.w_site + (size_t)token * a.width + column];
    }
}

/* A block: one token. Its places are sought 256 at a time and added in their order. */
KEDGE_KERNEL(embedding_back_kernel, struct kedge_gpu_embedding)
{
    KEDGE_SHARED(uint32_t, is_mine, KEDGE_GPU_THREADS);
    const size_t site = kedge_gpu_block() / a.tokens, token = kedge_gpu_block() % a.tokens,
                 t = kedge_gpu_thread();
    const float *x = a.x + site * a.x_site, *dy = a.dy + site * a.dy_site;
    for (size_t first = 0; first < a.width; first += KEDGE_GPU_THREADS) {
        const size_t column = first + t;
        float sum = 0.0f;
        for (size_t from = 0; from < a.places; from += KEDGE_GPU_THREADS) {
            is_mine[t] = from + t < a.places && (uint32_t)x[from + t] == token ? 1 : 0;
            KEDGE_BARRIER();
            for (size_t i = 0; i < KEDGE_GPU_THREADS && column < a.width; i++) {
                sum += is_mine[i] ? dy[(from + i) * a.width + column] : 0.0f;
            }
            KEDGE_BARRIER();
        }
        if (column < a.width && a.active[site] != 0) {
            float *to = a.y + site * a.y_site + token * a.width + column;
            *to = (a.keep == 0.0f ? 0.0f : a.keep * *to) + a.by * sum;
        }
    }
}

static struct kedge_gpu_embedding embedding_args(struct kedge_device *dev,
                                                 const struct kedge_ops_embedding *s, uint32_t n,
                                                 const float *x, float *y)
{
    struct kedge_gpu_embedding a;
    memset(&a, 0, sizeof a);
    a.tokens = s->tokens;
    a.width = s->width;
    a.sites = dev->sites;
    a.places = (size_t)n * s->steps;
    a.x = x;
    a.x_site = kedge_gpu_ref(dev, x).site;
    a.y = y;
    a.y_site = kedge_gpu_ref(dev, y).site;
    a.active = dev->counts;
    return a;
}

static void embedding_forward(struct kedge_device *dev, const struct kedge_ops_embedding *s, uint32_t n,
                              const float *x, const float *w, float *y)
{
    struct kedge_gpu_embedding a = embedding_args(dev, s, n, x, y);
    a.w = w;
    a.w_site = kedge_gpu_ref(dev, w).site;
    KEDGE_LAUNCH_FLAT(&dev->stream, embedding_kernel, a.places * a.width * a.sites, a);
}

static void embedding_backward(struct kedge_device *dev, const struct kedge_ops_embedding *s, uint32_t n,
                               const float *x, const float *dy, const struct kedge_ops_step *step,
                               float *to_w)
{
    struct kedge_gpu_embedding a = embedding_args(dev, s, n, x, to_w);
    a.dy = dy;
    a.dy_site = kedge_gpu_ref(dev, dy).site;
    a.keep = step->keep;
    a.by = step->by;
    KEDGE_LAUNCH(&dev->stream, embedding_back_kernel, (size_t)a.tokens * a.sites, KEDGE_GPU_THREADS, a);
}

/* ---- LSTM: saved is gates [n][steps][4·hidden], c [n][steps][hidden], h [n][steps][hidden]; backward the
 * gates become dL/d(their sums), and dy, once read, dL/dc of the step before ---- */

struct kedge_gpu_lstm {
    struct kedge_ops_lstm s;
    uint32_t n, t;
    float *gates, *c, *h, *y, *dy;
    const float *w_hh, *b_hh;
    size_t saved_site, y_site, w_site;
};

enum {
    KEDGE_GPU_LSTM_SAMPLES = 16,
    KEDGE_GPU_LSTM_UNITS = 8,
    KEDGE_GPU_LSTM_ROWS = 32,
    KEDGE_GPU_LSTM_K = 32
};

KEDGE_DEVICE float kedge_gpu_sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* The gates' sums of one unit of one sample become what they let through; c and h follow. */
KEDGE_DEVICE void kedge_gpu_cell(const struct kedge_gpu_lstm *a, size_t site, uint32_t sample, uint32_t unit,
                                 const float sums[4])
{
    const uint32_t hidden = a->s.hidden;
    const size_t row = (size_t)sample * a->s.steps + a->t;
    float *gates = a->gates + site * a->saved_site + row * 4 * hidden + unit;
    float *c = a->c + site * a->saved_site + row * hidden + unit;
    const float before = a->t > 0 ? *(c - hidden) : 0.0f;
    const float i = kedge_gpu_sigmoid(sums[0]), f = kedge_gpu_sigmoid(sums[1]);
    const float g = tanhf(sums[2]), o = kedge_gpu_sigmoid(sums[3]);
    gates[0] = i;
    gates[hidden] = f;
    gates[2 * (size_t)hidden] = g;
    gates[3 * (size_t)hidden] = o;
    *c = f * before + i * g;
    const float h = o * tanhf(*c);
    a->h[site * a->saved_site + row * hidden + unit] = h;
    if (!a->s.last) {
        a->y[site * a->y_site + row * hidden + unit] = h;
    } else if (a->t + 1 == a->s.steps) {
        a->y[site * a->y_site + (size_t)sample * hidden + unit] = h;
    }
}

/* A block: 16 samples × 8 units, their 32 rows of W_hh. */
KEDGE_KERNEL(lstm_kernel, struct kedge_gpu_lstm)
{
    KEDGE_SHARED(float, h_tile, KEDGE_GPU_LSTM_SAMPLES *(KEDGE_GPU_LSTM_K + 1));
    KEDGE_SHARED(float, w_tile, KEDGE_GPU_LSTM_ROWS *(KEDGE_GPU_LSTM_K + 1));
    KEDGE_SHARED(float, sums, KEDGE_GPU_LSTM_SAMPLES *KEDGE_GPU_LSTM_ROWS);
    const uint32_t hidden = a.s.hidden, across = (hidden + KEDGE_GPU_LSTM_UNITS - 1) / KEDGE_GPU_LSTM_UNITS;
    const uint32_t down = (a.n + KEDGE_GPU_LSTM_SAMPLES - 1) / KEDGE_GPU_LSTM_SAMPLES;
    const uint32_t block = (uint32_t)kedge_gpu_block(), t = (uint32_t)kedge_gpu_thread();
    const uint32_t unit = block % across * KEDGE_GPU_LSTM_UNITS,
                   top = block / across % down * KEDGE_GPU_LSTM_SAMPLES;
    const size_t site = block / across / down;
    const uint32_t sample = t / 16, row = t % 16;
    float sum[2] = {0.0f, 0.0f};
    for (uint32_t k = 0; k < hidden && a.t > 0; k += KEDGE_GPU_LSTM_K) {
        for (uint32_t at = t; at < (KEDGE_GPU_LSTM_SAMPLES + KEDGE_GPU_LSTM_ROWS) * KEDGE_GPU_LSTM_K;
             at += KEDGE_GPU_THREADS) {
            const uint32_t i = at / KEDGE_GPU_LSTM_K, j = at % KEDGE_GPU_LSTM_K;
            const uint32_t r = i - KEDGE_GPU_LSTM_SAMPLES; /* gate · 8 + unit */
            const uint32_t of = unit + r % KEDGE_GPU_LSTM_UNITS;
            if (i < KEDGE_GPU_LSTM_SAMPLES) {
                const size_t from = ((size_t)(top + i) * a.s.steps + a.t - 1) * hidden + k + j;
                h_tile[i * (KEDGE_GPU_LSTM_K + 1) + j] =
                    top + i < a.n && k + j < hidden ? a.h[site * a.saved_site + from] : 0.0f;
            } else {
                const size_t from = ((size_t)(r / KEDGE_GPU_LSTM_UNITS) * hidden + of) * hidden + k + j;
                w_tile[r * (KEDGE_GPU_LSTM_K + 1) + j] =
                    of < hidden && k + j < hidden ? a.w_hh[site * a.w_site + from] : 0.0f;
            }
        }
        KEDGE_BARRIER();
        for (uint32_t j = 0; j < KEDGE_GPU_LSTM_K; j++) {
            const float h = h_tile[sample * (KEDGE_GPU_LSTM_K + 1) + j];
            sum[0] += h * w_tile[row * (KEDGE_GPU_LSTM_K + 1) + j];
            sum[1] += h * w_tile[(row + 16) * (KEDGE_GPU_LSTM_K + 1) + j];
        }
        KEDGE_BARRIER();
    }
    sums[sample * KEDGE_GPU_LSTM_ROWS + row] = sum[0];
    sums[sample * KEDGE_GPU_LSTM_ROWS + row + 16] = sum[1];
    KEDGE_BARRIER();
    const uint32_t mine = top + t / KEDGE_GPU_LSTM_UNITS, of = unit + t % KEDGE_GPU_LSTM_UNITS;
    if (t < KEDGE_GPU_LSTM_SAMPLES * KEDGE_GPU_LSTM_UNITS && mine < a.n && of < hidden) {
        float gate[4];
        for (uint32_t g = 0; g < 4; g++) {
            gate[g] =
                sums[t / KEDGE_GPU_LSTM_UNITS * KEDGE_GPU_LSTM_ROWS + g * KEDGE_GPU_LSTM_UNITS
                     + t % KEDGE_GPU_LSTM_UNITS]
                + a.gates[site * a.saved_site + (((size_t)mine * a.s.steps + a.t) * 4 + g) * hidden + of]
                + a.b_hh[site * a.w_site + (size_t)g * hidden + of];
        }
        kedge_gpu_cell(&a, site, mine, of, gate);
    }
}

/* dh of one unit of one sample at step t: gates become gradients of their sums, dy that of c of the step
 * before. */
KEDGE_DEVICE void kedge_gpu_cell_back(const struct kedge_gpu_lstm *a, size_t site, uint32_t sample,
                                      uint32_t unit, float dh)
{
    const uint32_t hidden = a->s.hidden;
    const size_t row = (size_t)sample * a->s.steps + a->t;
    float *gates = a->gates + site * a->saved_site + row * 4 * hidden + unit;
    const float *c = a->c + site * a->saved_site + row * hidden + unit;
    const bool is_end = a->t + 1 == a->s.steps;
    float *dy = a->dy + site * a->y_site + (a->s.last ? (size_t)sample : row) * hidden + unit;
    float dc = is_end ? 0.0f : a->s.last ? *dy : *(dy + hidden);
    dh += !a->s.last || is_end ? *dy : 0.0f;
    const float i = gates[0], f = gates[hidden], g = gates[2 * (size_t)hidden], o = gates[3 * (size_t)hidden];
    const float before = a->t > 0 ? *(c - hidden) : 0.0f, through = tanhf(*c);
    dc += dh * o * (1.0f - through * through);
    gates[0] = dc * g * i * (1.0f - i);
    gates[hidden] = dc * before * f * (1.0f - f);
    gates[2 * (size_t)hidden] = dc * i * (1.0f - g * g);
    gates[3 * (size_t)hidden] = dh * through * o * (1.0f - o);
    *dy = dc * f;
}

/* A block: 16 samples × 16 units. */
KEDGE_KERNEL(lstm_back_kernel, struct kedge_gpu_lstm)
{
    KEDGE_SHARED(float, g_tile, 16 * (KEDGE_GPU_LSTM_K + 1));
    KEDGE_SHARED(float, w_tile, 16 * KEDGE_GPU_LSTM_K);
    const uint32_t hidden = a.s.hidden, across = (hidden + 15) / 16, down = (a.n + 15) / 16;
    const uint32_t block = (uint32_t)kedge_gpu_block(), t = (uint32_t)kedge_gpu_thread();
    const uint32_t left = block % across * 16, top = block / across % down * 16;
    const size_t site = block / across / down;
    const uint32_t sample = t / 16, unit = t % 16, last = a.t + 1 < a.s.steps ? 4 * hidden : 0;
    float sum = 0.0f;
    for (uint32_t k = 0; k < last; k += KEDGE_GPU_LSTM_K) {
        for (uint32_t at = t; at < 16 * KEDGE_GPU_LSTM_K; at += KEDGE_GPU_THREADS) {
            const uint32_t i = at / KEDGE_GPU_LSTM_K, j = at % KEDGE_GPU_LSTM_K;
            const size_t from = ((size_t)(top + i) * a.s.steps + a.t + 1) * 4 * hidden + k + j;
            g_tile[i * (KEDGE_GPU_LSTM_K + 1) + j] =
                top + i < a.n && k + j < last ? a.gates[site * a.saved_site + from] : 0.0f;
            const uint32_t u = at % 16, r = at / 16;
            w_tile[r * 16 + u] = left + u < hidden && k + r < last
                                     ? a.w_hh[site * a.w_site + (size_t)(k + r) * hidden + left + u]
                                     : 0.0f;
        }
        KEDGE_BARRIER();
        for (uint32_t j = 0; j < KEDGE_GPU_LSTM_K; j++) {
            sum += g_tile[sample * (KEDGE_GPU_LSTM_K + 1) + j] * w_tile[j * 16 + unit];
        }
        KEDGE_BARRIER();
    }
    if (top + sample < a.n && left + unit < hidden) {
        kedge_gpu_cell_back(&a, site, top + sample, left + unit, sum);
    }
}

static struct kedge_gpu_lstm lstm_args(struct kedge_device *dev, const struct kedge_ops_lstm *s, uint32_t n,
                                       const float *params, float *y, float *saved)
{
    struct kedge_gpu_lstm a;
    const size_t rows = (size_t)n * s->steps, hidden = s->hidden;
    memset(&a, 0, sizeof a);
    a.s = *s;
    a.n = n;
    a.gates = saved;
    a.c = saved + rows * 4 * hidden;
    a.h = saved + rows * 5 * hidden;
    a.y = y;
    a.dy = y;
    a.w_hh = params + 4 * hidden * s->in;
    a.b_hh = a.w_hh + 4 * hidden * hidden + 4 * hidden;
    a.saved_site = kedge_gpu_ref(dev, saved).site;
    a.y_site = kedge_gpu_ref(dev, y).site;
    a.w_site = kedge_gpu_ref(dev, params).site;
    return a;
}

static void lstm_forward(struct kedge_device *dev, const struct kedge_ops_lstm *s, uint32_t n, const float *x,
                         const float *params, float *y, float *saved)
{
    struct kedge_gpu_lstm a = lstm_args(dev, s, n, params, y, saved);
    const struct kedge_ops_dense gates = {s->in, 4 * s->hidden, false};
    const size_t blocks = (size_t)((s->hidden + KEDGE_GPU_LSTM_UNITS - 1) / KEDGE_GPU_LSTM_UNITS)
                          * ((n + KEDGE_GPU_LSTM_SAMPLES - 1) / KEDGE_GPU_LSTM_SAMPLES) * dev->sites;
    dense_forward(dev, &gates, n * s->steps, x, params, a.w_hh + (size_t)4 * s->hidden * s->hidden, saved);
    for (a.t = 0; a.t < s->steps; a.t++) {
        KEDGE_LAUNCH(&dev->stream, lstm_kernel, blocks, KEDGE_GPU_THREADS, a);
    }
}

static void lstm_backward(struct kedge_device *dev, const struct kedge_ops_lstm *s, uint32_t n,
                          const float *x, float *saved, float *dy, const float *params, float *dx,
                          const struct kedge_ops_step *step, float *to)
{
    struct kedge_gpu_lstm a = lstm_args(dev, s, n, params, dy, saved);
    const uint32_t rows = n * s->steps, width = 4 * s->hidden;
    const size_t blocks = (size_t)((s->hidden + 15) / 16) * ((n + 15) / 16) * dev->sites;
    for (a.t = s->steps; a.t-- > 0;) {
        KEDGE_LAUNCH(&dev->stream, lstm_back_kernel, blocks, KEDGE_GPU_THREADS, a);
    }
    if (dx) {
        struct kedge_gpu_product p = kedge_gpu_product_of(dev, rows, s->in, width, dx, s->in);
        p.a = kedge_gpu_matrix(dev, saved, NULL, width, 1);
        p.b = kedge_gpu_matrix(dev, params, NULL, 1, s->in);
        kedge_gpu_product_run(dev, &p);
    }
    float *to_hh = to + (size_t)width * s->in, *to_b = to_hh + (size_t)width * s->hidden;
    const struct kedge_ops_dense gates = {s->in, width, false};
    dense_targets(dev, &gates, rows, x, NULL, saved, step, to, to_b);
    struct kedge_gpu_product p = kedge_gpu_product_of(dev, width, s->hidden, rows, to_hh, s->hidden);
    p.a = kedge_gpu_matrix(dev, saved, NULL, 1, width);
    p.b = kedge_gpu_matrix(dev, a.h, NULL, 1, s->hidden);
    p.b.rule = KEDGE_GPU_PREV_STEP;
    p.b.run = s->steps;
    p.keep = step->keep;
    p.scale = step->by;
    p.sums = to_b + width;
    p.sums_site = kedge_gpu_ref(dev, to).site;
    p.keep_sums = step->keep_bias;
    p.active = dev->counts;
    kedge_gpu_multiply(dev, &p);
}

#endif
