/* Embedding and LSTM. Inside, sequences lie time first, so that all samples of one step are one matrix: what
 * does not depend on the step before (inputs to gates, all kernels' gradients) is one product over the whole
 * sequence. saved: gates [steps][n][4·hidden], c [steps][n][hidden], h [steps][n][hidden]; going backwards
 * the gates' errors take the gates' place. */
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "client/train/cpu_impl.h"
#include "client/train/small.h"

/* ---- embedding ---- */

/* Tokens were checked to be places of the table before the pass (kedge_net_check_data). */
void kedge_cpu_embedding_forward(struct kedge_device *dev, const struct kedge_ops_embedding *s, uint32_t n,
                                 const float *x, const float *w, float *y)
{
    (void)dev;
    uint64_t count = (uint64_t)n * s->steps;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(y + i * s->width, w + (uint64_t)x[i] * s->width, s->width * sizeof *y);
    }
}

void kedge_cpu_embedding_backward(struct kedge_device *dev, const struct kedge_ops_embedding *s, uint32_t n,
                                  const float *x, const float *dy, const struct kedge_ops_step *step,
                                  float *to_w)
{
    (void)dev;
    uint64_t count = (uint64_t)n * s->steps, values = (uint64_t)s->tokens * s->width;
    for (uint64_t i = 0; i < values; i++) {
        to_w[i] = step->keep == 0.0f ? 0.0f : step->keep * to_w[i];
    }
    for (uint64_t i = 0; i < count; i++, dy += s->width) {
        float *to = to_w + (uint64_t)x[i] * s->width;
        for (uint32_t k = 0; k < s->width; k++) {
            to[k] += step->by * dy[k];
        }
    }
}

/* ---- LSTM ---- */

struct lstm_memory {
    uint64_t rows; /* steps · n */
    float *gates, *c, *h;
    float *x, *dx, *dh, *dc; /* scratch: x and dx time first, errors that go back in time */
    float *none;             /* hidden zeros */
};

/* `saved` belongs to the layer and lives until its backward pass, scratch until the next layer.
 * kedge_ops_lstm_saved and kedge_cpu_lstm_scratch must count what is placed here. */
static struct lstm_memory lstm_place(const struct kedge_device *dev, const struct kedge_ops_lstm *s,
                                     uint32_t n, float *saved)
{
    struct lstm_memory m = {.rows = (uint64_t)s->steps * n};
    uint64_t state = (uint64_t)n * s->hidden;
    m.gates = saved;
    m.c = m.gates + m.rows * 4 * s->hidden;
    m.h = m.c + m.rows * s->hidden;
    m.x = dev->scratch;
    m.dx = m.x + m.rows * s->in;
    m.dh = m.dx + m.rows * s->in;
    m.dc = m.dh + state;
    m.none = m.dc + state;
    return m;
}

uint64_t kedge_cpu_lstm_scratch(const struct kedge_ops_lstm *s, uint32_t n)
{
    return (uint64_t)n * (2 * (uint64_t)s->steps * s->in + 3 * (uint64_t)s->hidden);
}

/* [n][steps][width] to [steps][n][width], or back. */
static void turn_time(const float *from, uint32_t outer, uint32_t inner, uint32_t width, float *to)
{
    for (uint32_t a = 0; a < outer; a++) {
        for (uint32_t b = 0; b < inner; b++) {
            memcpy(to + ((uint64_t)b * outer + a) * width, from + ((uint64_t)a * inner + b) * width,
                   width * sizeof *to);
        }
    }
}

/* z[n][out] += x[n][in] · wᵀ. */
static void multiply(const struct kedge_device *dev, uint64_t n, uint32_t out, uint32_t in, const float *x,
                     const float *w, float *z)
{
    if (dev->has_small && n * out <= KEDGE_SMALL_WORK_MAX) {
        kedge_small_dots((uint32_t)n, out, in, x, w, z);
    } else {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)out, (int)in, 1.0f, x, (int)in, w,
                    (int)in, 1.0f, z, (int)out);
    }
}

/* dx[n][in] = dz[n][out] · w. */
static void multiply_back(const struct kedge_device *dev, uint64_t n, uint32_t out, uint32_t in,
                          const float *dz, const float *w, float *dx)
{
    if (dev->has_small && n * out <= KEDGE_SMALL_WORK_MAX) {
        kedge_small_product((uint32_t)n, out, in, dz, out, 1, w, 0.0f, dx);
    } else {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)in, (int)out, 1.0f, dz, (int)out,
                    w, (int)in, 0.0f, dx, (int)in);
    }
}

#define INLINE static inline __attribute__((always_inline))

/* e^x as in small.c, in a form that compilers make vectors of. */
INLINE float exp_of(float x)
{
    const float shift = 12582912.0f; /* 1.5 · 2^23: adding it rounds to a whole number */
    x = x < -87.0f ? -87.0f : x;
    x = x > 87.0f ? 87.0f : x;
    float k = x * 1.44269504f + shift;
    union {
        float f;
        uint32_t u;
    } whole = {k}, power;
    k -= shift;
    float r = x - k * 0.693359375f + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    power.u = (whole.u + 127u) << 23;
    return (p * r * r + r + 1.0f) * power.f;
}

INLINE float sigmoid_of(float x)
{
    return 1.0f / (1.0f + exp_of(-x));
}

INLINE float tanh_of(float x)
{
    return 2.0f / (1.0f + exp_of(-2.0f * x)) - 1.0f;
}

/* One sample's step: gates before their activations become themselves, c and h of this step. */
INLINE void cell_row(uint32_t hidden, float *restrict z, const float *restrict former, float *restrict c,
                     float *restrict h)
{
    for (uint32_t k = 0; k < hidden; k++) {
        float i = sigmoid_of(z[k]), f = sigmoid_of(z[hidden + k]);
        float g = tanh_of(z[2 * hidden + k]), o = sigmoid_of(z[3 * hidden + k]);
        float state = f * former[k] + i * g;
        z[k] = i;
        z[hidden + k] = f;
        z[2 * hidden + k] = g;
        z[3 * hidden + k] = o;
        c[k] = state;
        h[k] = o * tanh_of(state);
    }
}

/* Backward: dh and dc of the step after; gates become the errors of what went into them. */
INLINE void cell_row_back(uint32_t hidden, float *restrict z, const float *restrict former,
                          const float *restrict c, const float *restrict up, const float *restrict dh,
                          float *restrict dc)
{
    for (uint32_t k = 0; k < hidden; k++) {
        float i = z[k], f = z[hidden + k], g = z[2 * hidden + k], o = z[3 * hidden + k];
        float t = tanh_of(c[k]), d = dh[k] + up[k];
        float state = dc[k] + d * o * (1.0f - t * t);
        z[k] = state * g * i * (1.0f - i);
        z[hidden + k] = state * former[k] * f * (1.0f - f);
        z[2 * hidden + k] = state * i * (1.0f - g * g);
        z[3 * hidden + k] = d * t * o * (1.0f - o);
        dc[k] = state * f;
    }
}

static void cell_base(uint32_t hidden, float *z, const float *former, float *c, float *h)
{
    cell_row(hidden, z, former, c, h);
}

static void cell_back_base(uint32_t hidden, float *z, const float *former, const float *c, const float *up,
                           const float *dh, float *dc)
{
    cell_row_back(hidden, z, former, c, up, dh, dc);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void cell_avx2(uint32_t hidden, float *z, const float *former,
                                                          float *c, float *h)
{
    cell_row(hidden, z, former, c, h);
}

__attribute__((target("avx2,fma"))) static void cell_back_avx2(uint32_t hidden, float *z, const float *former,
                                                               const float *c, const float *up,
                                                               const float *dh, float *dc)
{
    cell_row_back(hidden, z, former, c, up, dh, dc);
}
#else
#define cell_avx2 cell_base
#define cell_back_avx2 cell_back_base
#endif

void kedge_cpu_lstm_forward(struct kedge_device *dev, const struct kedge_ops_lstm *s, uint32_t n,
                            const float *x, const float *params, float *y, float *saved)
{
    struct lstm_memory m = lstm_place(dev, s, n, saved);
    uint32_t hidden = s->hidden, wide = 4 * hidden;
    const float *w_ih = params, *w_hh = w_ih + (uint64_t)wide * s->in, *b = w_hh + (uint64_t)wide * hidden;
    uint64_t state = (uint64_t)n * hidden;
    turn_time(x, n, s->steps, s->in, m.x);
    for (uint64_t r = 0; r < m.rows; r++) {
        for (uint32_t k = 0; k < wide; k++) {
            m.gates[r * wide + k] = b[k] + b[wide + k];
        }
    }
    multiply(dev, m.rows, wide, s->in, m.x, w_ih, m.gates);
    memset(m.dc, 0, state * sizeof *m.dc); /* c before the first step */
    for (uint32_t t = 0; t < s->steps; t++) {
        float *z = m.gates + t * state * 4, *c = m.c + t * state, *h = m.h + t * state;
        const float *former = t > 0 ? c - state : m.dc;
        if (t > 0) {
            multiply(dev, n, wide, hidden, h - state, w_hh, z);
        }
        for (uint32_t r = 0; r < n; r++) {
            (dev->has_small ? cell_avx2 : cell_base)(hidden, z + (uint64_t)r * wide,
                                                     former + (uint64_t)r * hidden, c + (uint64_t)r * hidden,
                                                     h + (uint64_t)r * hidden);
        }
    }
    if (s->last) {
        memcpy(y, m.h + (s->steps - 1) * state, state * sizeof *y);
    } else {
        turn_time(m.h, s->steps, n, hidden, y);
    }
}

/* All gates' errors, from the last step to the first, in the gates' place. */
static void errors_back(const struct kedge_device *dev, const struct kedge_ops_lstm *s, uint32_t n,
                        const struct lstm_memory *m, const float *dy, const float *w_hh)
{
    uint32_t hidden = s->hidden;
    uint64_t state = (uint64_t)n * hidden;
    memset(m->dh, 0, state * sizeof *m->dh);
    memset(m->dc, 0, state * sizeof *m->dc);
    memset(m->none, 0, hidden * sizeof *m->none);
    for (uint32_t t = s->steps; t-- > 0;) {
        float *z = m->gates + t * state * 4;
        const float *c = m->c + t * state;
        for (uint32_t r = 0; r < n; r++) {
            uint64_t at = (uint64_t)r * hidden;
            const float *up = s->last ? dy + at : dy + ((uint64_t)r * s->steps + t) * hidden;
            (dev->has_small ? cell_back_avx2 : cell_back_base)(
                hidden, z + (uint64_t)r * 4 * hidden, t > 0 ? c - state + at : m->none, c + at,
                s->last && t + 1 < s->steps ? m->none : up, m->dh + at, m->dc + at);
        }
        if (t > 0) {
            multiply_back(dev, n, 4 * hidden, hidden, z, w_hh, m->dh);
        }
    }
}

/* to[out][in] = keep · to + by · dzᵀ · x over rows samples and steps. */
static void step_kernel(uint64_t rows, uint32_t out, uint32_t in, const float *dz, const float *x, float by,
                        float keep, float *to)
{
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)out, (int)in, (int)rows, by, dz, (int)out, x,
                (int)in, keep, to, (int)in);
}

static void step_biases(uint64_t rows, uint32_t wide, const float *dz, const struct kedge_ops_step *step,
                        float *to)
{
    for (uint32_t k = 0; k < 2 * wide; k++) {
        to[k] = step->keep_bias == 0.0f ? 0.0f : step->keep_bias * to[k];
    }
    for (uint64_t r = 0; r < rows; r++, dz += wide) {
        for (uint32_t k = 0; k < wide; k++) {
            float d = step->by * dz[k];
            to[k] += d;
            to[wide + k] += d;
        }
    }
}

void kedge_cpu_lstm_backward(struct kedge_device *dev, const struct kedge_ops_lstm *s, uint32_t n,
                             const float *x, float *saved, float *dy, const float *params, float *dx,
                             const struct kedge_ops_step *step, float *to)
{
    struct lstm_memory m = lstm_place(dev, s, n, saved);
    uint32_t hidden = s->hidden, wide = 4 * hidden;
    uint64_t state = (uint64_t)n * hidden, ih = (uint64_t)wide * s->in, hh = (uint64_t)wide * hidden;
    errors_back(dev, s, n, &m, dy, params + ih);
    turn_time(x, n, s->steps, s->in, m.x);
    if (dx) { /* before the kernels change */
        multiply_back(dev, m.rows, wide, s->in, m.gates, params, m.dx);
        turn_time(m.dx, s->steps, n, s->in, dx);
    }
    step_kernel(m.rows, wide, s->in, m.gates, m.x, step->by, step->keep, to);
    if (s->steps > 1) {
        step_kernel(m.rows - n, wide, hidden, m.gates + state * 4, m.h, step->by, step->keep, to + ih);
    } else {
        for (uint64_t i = 0; i < hh; i++) {
            to[ih + i] = step->keep == 0.0f ? 0.0f : step->keep * to[ih + i];
        }
    }
    step_biases(m.rows, wide, m.gates, step, to + ih + hh);
}
