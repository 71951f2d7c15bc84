/* The inner loops of convolutions and of wide dense layers, written once for any vector width and compiled
 * once per width (tile_*.c, which define the macros below first). Products of one register tile; in
 * convolutions pixels or window places by channels, so that channels fill vectors whatever the image's width
 * is, and every other operand is a scalar that is read where it lies: no patch of an image is ever copied.
 * Pure. */
#ifndef KEDGE_CLIENT_TRAIN_TILE_H
#define KEDGE_CLIENT_TRAIN_TILE_H

#include <stdint.h>

/* Channels are padded to a multiple of the vectors' lanes: `ld` floats. places: values of a window (channels
 * · kernel · kernel), offset[place] from a window's first value. */
struct kedge_tile_windows {
    uint32_t places, ld;
    const uint32_t *offset;
    uint32_t stride;       /* between windows of a row */
    uint32_t row_stride;   /* between rows of windows, in values of x */
    uint32_t rows, pixels; /* of windows, and windows in each row */
    uint64_t dy_row;       /* values from a row of dy to the next: pixels · ld, or more */
};
/* c[rows][width] = keep · c + aᵀ · b[inner][width], a[inner][rows]; keep 0 ignores what c holds. Row j of b
 * in the columns of panel k (2 · lanes of them) lies at b + k · panel + j · step: packed where panel is inner
 * · 2 · lanes and step 2 · lanes, as it is where they are 2 · lanes and width. Columns behind the last whole
 * panel are read from `rest`, b as it is. */
struct kedge_tile_product {
    uint32_t rows, inner, width;
    const float *a, *b, *rest;
    uint64_t panel, step;
    float keep;
    float *c;
};
struct kedge_tiles {
    uint32_t lanes;
    /* One row of windows: out[pixel][ld] = Σ over places of x[offset[place] + pixel · stride] ·
     * w[place][ld]. */
    void (*forward)(const struct kedge_tile_windows *r, const float *x, const float *w, float *out);
    /* All rows of windows: dw[place][ld] += Σ over rows and pixels of x[…] · dy[row · dy_row + pixel · ld].
     */
    void (*weights)(const struct kedge_tile_windows *r, const float *x, const float *dy, float *dw);
    /* z[n][out] += x[n][in] · w[out][in]ᵀ. */
    void (*dots)(uint32_t n, uint32_t out, uint32_t in, const float *x, const float *w, float *z);
    void (*product)(const struct kedge_tile_product *p);
};
/* The widest that this processor runs and `columns` fill: of 8 columns eight lanes do as much as sixteen. */
const struct kedge_tiles *kedge_tiles_for(uint32_t columns);
extern const struct kedge_tiles kedge_tiles_base, kedge_tiles_avx2, kedge_tiles_avx512;

#ifdef KEDGE_TILE_LANES /* in one of tile_*.c */

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define TILE static inline __attribute__((always_inline)) KEDGE_TILE_TARGET
#define ENTRY static KEDGE_TILE_TARGET
enum { LANES = KEDGE_TILE_LANES, VECS_MAX = KEDGE_TILE_VECS, LINES_MAX = KEDGE_TILE_LINES };
enum { DOTS = LINES_MAX >= 14 ? 5 : 3, LINES = LINES_MAX >= 14 ? 10 : 5 };

typedef float vec __attribute__((vector_size(4 * KEDGE_TILE_LANES)));
typedef float loose __attribute__((vector_size(4 * KEDGE_TILE_LANES), aligned(4), may_alias));

/* pixels × vecs, constants wherever it is inlined, as is stride where it is 1. */
TILE void forward_tile(const int pixels, const int vecs, const uint32_t stride,
                       const struct kedge_tile_windows *r, const float *x, const float *w, float *out)
{
    vec acc[LINES_MAX][VECS_MAX];
    UNROLL
    for (int p = 0; p < pixels; p++) {
        UNROLL
        for (int v = 0; v < vecs; v++) {
            acc[p][v] = (vec){0};
        }
    }
    for (uint32_t k = 0; k < r->places; k++, w += r->ld) {
        const float *at = x + r->offset[k];
        vec wv[VECS_MAX];
        UNROLL
        for (int v = 0; v < vecs; v++) {
            wv[v] = *(const loose *)(w + LANES * v);
        }
        UNROLL
        for (int p = 0; p < pixels; p++) {
            float s = at[(uint32_t)p * stride];
            UNROLL
            for (int v = 0; v < vecs; v++) {
                acc[p][v] += s * wv[v];
            }
        }
    }
    UNROLL
    for (int p = 0; p < pixels; p++) {
        UNROLL
        for (int v = 0; v < vecs; v++) {
            *(loose *)(out + (uint64_t)p * r->ld + LANES * v) = acc[p][v];
        }
    }
}

/* One row of windows by vecs vectors of channels. */
TILE void forward_vecs(const int vecs, const int most, const uint32_t stride,
                       const struct kedge_tile_windows *r, const float *x, const float *w, float *out)
{
    uint32_t p = 0, tiles = (r->pixels + (uint32_t)most - 1) / (uint32_t)most;
    for (uint32_t t = 0; t < tiles; t++) { /* of nearly equal size */
        uint32_t n = (r->pixels - p + (tiles - t) - 1) / (tiles - t);
        const float *xp = x + (uint64_t)p * stride;
        float *op = out + (uint64_t)p * r->ld;
        switch (n) {
#define CASE(k)                                                          \
    case k:                                                              \
        forward_tile((k) <= most ? (k) : 1, vecs, stride, r, xp, w, op); \
        break
            CASE(1);
            CASE(2);
            CASE(3);
            CASE(4);
            CASE(5);
            CASE(6);
            CASE(7);
            CASE(8);
            CASE(9);
            CASE(10);
            CASE(11);
            CASE(12);
            CASE(13);
            CASE(14);
#undef CASE
        default:
            break;
        }
        p += n;
    }
}

TILE void forward_row(const uint32_t stride, const struct kedge_tile_windows *r, const float *x,
                      const float *w, float *out)
{
    uint32_t vecs = r->ld / LANES, v = 0;
    for (; VECS_MAX >= 4 && v + 4 <= vecs; v += 4) {
        forward_vecs(VECS_MAX >= 4 ? 4 : 1, LINES_MAX / 2, stride, r, x, w + LANES * v, out + LANES * v);
    }
    for (; v + 2 <= vecs; v += 2) {
        forward_vecs(2, LINES_MAX, stride, r, x, w + LANES * v, out + LANES * v);
    }
    if (v < vecs) {
        forward_vecs(1, LINES_MAX, stride, r, x, w + LANES * v, out + LANES * v);
    }
}

ENTRY void forward(const struct kedge_tile_windows *r, const float *x, const float *w, float *out)
{
    if (r->stride == 1) {
        forward_row(1, r, x, w, out);
    } else {
        forward_row(r->stride, r, x, w, out);
    }
}

/* places × vecs over the rows from … below end. */
TILE void weights_tile(const int places, const int vecs, const struct kedge_tile_windows *r, uint32_t from,
                       uint32_t end, const uint32_t *offset, const float *x, const float *dy, float *dw)
{
    vec acc[LINES_MAX][VECS_MAX];
    const float *at[LINES_MAX];
    UNROLL
    for (int k = 0; k < places; k++) {
        at[k] = x + offset[k] + (uint64_t)from * r->row_stride;
        UNROLL
        for (int v = 0; v < vecs; v++) {
            acc[k][v] = *(const loose *)(dw + (uint64_t)k * r->ld + LANES * v);
        }
    }
    for (uint32_t row = from; row < end; row++) {
        uint64_t i = (uint64_t)(row - from) * r->row_stride;
        const float *error = dy + row * r->dy_row;
        for (uint32_t p = 0; p < r->pixels; p++, i += r->stride, error += r->ld) {
            vec dv[VECS_MAX];
            UNROLL
            for (int v = 0; v < vecs; v++) {
                dv[v] = *(const loose *)(error + LANES * v);
            }
            UNROLL
            for (int k = 0; k < places; k++) {
                float s = at[k][i];
                UNROLL
                for (int v = 0; v < vecs; v++) {
                    acc[k][v] += s * dv[v];
                }
            }
        }
    }
    UNROLL
    for (int k = 0; k < places; k++) {
        UNROLL
        for (int v = 0; v < vecs; v++) {
            *(loose *)(dw + (uint64_t)k * r->ld + LANES * v) = acc[k][v];
        }
    }
}

/* All places by vecs vectors, in blocks of rows whose dy stays in the first cache. */
TILE void weights_vecs(const int vecs, const int most, const struct kedge_tile_windows *r, const float *x,
                       const float *dy, float *dw)
{
    uint32_t block = 4096 / (r->pixels * (uint32_t)vecs * LANES);
    block = block < 1 ? 1 : block;
    for (uint32_t from = 0; from < r->rows; from += block) {
        uint32_t end = from + block < r->rows ? from + block : r->rows;
        uint32_t k = 0, tiles = (r->places + (uint32_t)most - 1) / (uint32_t)most;
        for (uint32_t t = 0; t < tiles; t++) {
            uint32_t n = (r->places - k + (tiles - t) - 1) / (tiles - t);
            const uint32_t *offset = r->offset + k;
            float *to = dw + (uint64_t)k * r->ld;
            switch (n) {
#define CASE(c)                                                                     \
    case c:                                                                         \
        weights_tile((c) <= most ? (c) : 1, vecs, r, from, end, offset, x, dy, to); \
        break
                CASE(1);
                CASE(2);
                CASE(3);
                CASE(4);
                CASE(5);
                CASE(6);
                CASE(7);
                CASE(8);
                CASE(9);
                CASE(10);
                CASE(11);
                CASE(12);
                CASE(13);
                CASE(14);
#undef CASE
            default:
                break;
            }
            k += n;
        }
    }
}

ENTRY void weights(const struct kedge_tile_windows *r, const float *x, const float *dy, float *dw)
{
    uint32_t vecs = r->ld / LANES, v = 0;
    for (; VECS_MAX >= 4 && v + 4 <= vecs; v += 4) {
        weights_vecs(VECS_MAX >= 4 ? 4 : 1, LINES_MAX / 2, r, x, dy + LANES * v, dw + LANES * v);
    }
    for (; v + 2 <= vecs; v += 2) {
        weights_vecs(2, LINES_MAX, r, x, dy + LANES * v, dw + LANES * v);
    }
    if (v < vecs) {
        weights_vecs(1, LINES_MAX, r, x, dy + LANES * v, dw + LANES * v);
    }
}

TILE float sum_of(vec v)
{
    float sum = 0;
    UNROLL
    for (int i = 0; i < LANES; i++) {
        sum += v[i];
    }
    return sum;
}

/* samples × outs dot products, constants wherever it is inlined. */
TILE void dots_tile(const int samples, const int outs, uint32_t out, uint32_t in, const float *x,
                    const float *w, float *z)
{
    vec acc[DOTS][DOTS];
    uint32_t k = 0;
    UNROLL
    for (int s = 0; s < samples; s++) {
        UNROLL
        for (int o = 0; o < outs; o++) {
            acc[s][o] = (vec){0};
        }
    }
    for (; k + LANES <= in; k += LANES) {
        vec xv[DOTS];
        UNROLL
        for (int s = 0; s < samples; s++) {
            xv[s] = *(const loose *)(x + (uint64_t)s * in + k);
        }
        UNROLL
        for (int o = 0; o < outs; o++) {
            vec wv = *(const loose *)(w + (uint64_t)o * in + k);
            __builtin_prefetch(w + (uint64_t)o * in + k + 256);
            UNROLL
            for (int s = 0; s < samples; s++) {
                acc[s][o] += xv[s] * wv;
            }
        }
    }
    for (int s = 0; s < samples; s++) {
        for (int o = 0; o < outs; o++) {
            float sum = sum_of(acc[s][o]);
            for (uint32_t t = k; t < in; t++) {
                sum += x[(uint64_t)s * in + t] * w[(uint64_t)o * in + t];
            }
            z[(uint64_t)s * out + (uint64_t)o] += sum;
        }
    }
}

/* All samples by outs rows of w. */
TILE void dots_rows(const int outs, uint32_t n, uint32_t out, uint32_t in, const float *x, const float *w,
                    float *z)
{
    uint32_t s = 0;
    for (; s + DOTS <= n; s += DOTS) {
        dots_tile(DOTS, outs, out, in, x + (uint64_t)s * in, w, z + (uint64_t)s * out);
    }
    for (; s < n; s++) {
        dots_tile(1, outs, out, in, x + (uint64_t)s * in, w, z + (uint64_t)s * out);
    }
}

ENTRY void dots(uint32_t n, uint32_t out, uint32_t in, const float *x, const float *w, float *z)
{
    uint32_t o = 0;
    for (; o + DOTS <= out; o += DOTS) {
        dots_rows(DOTS, n, out, in, x, w + (uint64_t)o * in, z + o);
    }
    for (; o < out; o++) {
        dots_rows(1, n, out, in, x, w + (uint64_t)o * in, z + o);
    }
}

/* lines × vecs of c from (row, column). */
TILE void product_tile(const int lines, const int vecs, const struct kedge_tile_product *p, uint32_t row,
                       uint32_t column, const float *b, uint64_t step)
{
    vec acc[LINES_MAX][2];
    float *c = p->c + (uint64_t)row * p->width + column;
    const float *a = p->a + row;
    UNROLL
    for (int i = 0; i < lines; i++) {
        UNROLL
        for (int v = 0; v < vecs; v++) {
            acc[i][v] = (vec){0};
            if (p->keep != 0.0f) {
                acc[i][v] += p->keep * *(const loose *)(c + (uint64_t)i * p->width + LANES * v);
            }
        }
    }
    for (uint32_t j = 0; j < p->inner; j++, a += p->rows, b += step) {
        vec bv[2];
        UNROLL
        for (int v = 0; v < vecs; v++) {
            bv[v] = *(const loose *)(b + LANES * v);
            __builtin_prefetch(b + LANES * v + 128);
        }
        UNROLL
        for (int i = 0; i < lines; i++) {
            float s = a[i];
            UNROLL
            for (int v = 0; v < vecs; v++) {
                acc[i][v] += s * bv[v];
            }
        }
    }
    UNROLL
    for (int i = 0; i < lines; i++) {
        UNROLL
        for (int v = 0; v < vecs; v++) {
            *(loose *)(c + (uint64_t)i * p->width + LANES * v) = acc[i][v];
        }
    }
}

static void product_value(const struct kedge_tile_product *p, uint32_t row, uint32_t column)
{
    float *c = p->c + (uint64_t)row * p->width + column;
    float s = p->keep == 0.0f ? 0.0f : p->keep * *c;
    for (uint32_t j = 0; j < p->inner; j++) {
        s += p->a[(uint64_t)j * p->rows + row] * p->rest[(uint64_t)j * p->width + column];
    }
    *c = s;
}

/* lines rows of c, a constant where inlined. */
TILE void product_lines(const int lines, const struct kedge_tile_product *p, uint32_t row)
{
    uint32_t column = 0;
    const float *b = p->b;
    for (; column + 2 * LANES <= p->width; column += 2 * LANES, b += p->panel) {
        product_tile(lines, 2, p, row, column, b, p->step);
    }
    for (; column + LANES <= p->width; column += LANES) {
        product_tile(lines, 1, p, row, column, p->rest + column, p->width);
    }
    for (; column < p->width; column++) {
        for (uint32_t i = 0; i < (uint32_t)lines; i++) {
            product_value(p, row + i, column);
        }
    }
}

ENTRY void product(const struct kedge_tile_product *p)
{
    uint32_t row = 0;
    for (; row + LINES <= p->rows; row += LINES) {
        product_lines(LINES, p, row);
    }
    for (; row + 2 <= p->rows; row += 2) {
        product_lines(2, p, row);
    }
    if (row < p->rows) {
        product_lines(1, p, row);
    }
}

#endif
#endif
