/* The inner loops of convolutions, written once for any vector width and compiled once per width
 * (conv_tile_*.c, which define the macros below first). Products of one register tile: pixels or window
 * places by channels, so that channels fill vectors whatever the image's width is, and every other operand
 * is a scalar that is read where it lies: no patch of an image is ever copied. Pure. */
#ifndef KEDGE_CLIENT_TRAIN_CONV_TILE_H
#define KEDGE_CLIENT_TRAIN_CONV_TILE_H

#include <stdint.h>

/* Channels are padded to a multiple of the vectors' lanes: `ld` floats. places: values of a window (channels
 * · kernel · kernel), offset[place] from a window's first value. */
struct kedge_conv_run {
    uint32_t places, ld;
    const uint32_t *offset;
    uint32_t stride;       /* between windows of a row */
    uint32_t row_stride;   /* between rows of windows, in values of x */
    uint32_t rows, pixels; /* of windows, and windows in each row */
};
struct kedge_conv_tiles {
    uint32_t lanes;
    /* One row of windows: out[pixel][ld] = Σ over places of x[offset[place] + pixel · stride] ·
     * w[place][ld]. */
    void (*forward)(const struct kedge_conv_run *r, const float *x, const float *w, float *out);
    /* All rows of windows: dw[place][ld] += Σ over pixels of x[…] · dy[pixel][ld]. */
    void (*weights)(const struct kedge_conv_run *r, const float *x, const float *dy, float *dw);
};
extern const struct kedge_conv_tiles kedge_conv_tiles_base, kedge_conv_tiles_avx2, kedge_conv_tiles_avx512;

#ifdef KEDGE_CONV_LANES /* in one of conv_tile_*.c */

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define TILE static inline __attribute__((always_inline)) KEDGE_CONV_TARGET
#define ENTRY static KEDGE_CONV_TARGET
enum { LANES = KEDGE_CONV_LANES, VECS_MAX = KEDGE_CONV_VECS, LINES_MAX = KEDGE_CONV_LINES };

typedef float vec __attribute__((vector_size(4 * KEDGE_CONV_LANES)));
typedef float loose __attribute__((vector_size(4 * KEDGE_CONV_LANES), aligned(4), may_alias));

/* pixels × vecs, constants wherever it is inlined, as is stride where it is 1. */
TILE void forward_tile(const int pixels, const int vecs, const uint32_t stride,
                       const struct kedge_conv_run *r, const float *x, const float *w, float *out)
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
TILE void forward_vecs(const int vecs, const int most, const uint32_t stride, const struct kedge_conv_run *r,
                       const float *x, const float *w, float *out)
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

TILE void forward_row(const uint32_t stride, const struct kedge_conv_run *r, const float *x, const float *w,
                      float *out)
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

ENTRY void forward(const struct kedge_conv_run *r, const float *x, const float *w, float *out)
{
    if (r->stride == 1) {
        forward_row(1, r, x, w, out);
    } else {
        forward_row(r->stride, r, x, w, out);
    }
}

/* places × vecs over the rows from … below end. */
TILE void weights_tile(const int places, const int vecs, const struct kedge_conv_run *r, uint32_t from,
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
    dy += (uint64_t)from * r->pixels * r->ld;
    for (uint32_t row = from; row < end; row++) {
        uint64_t i = (uint64_t)(row - from) * r->row_stride;
        for (uint32_t p = 0; p < r->pixels; p++, i += r->stride, dy += r->ld) {
            vec dv[VECS_MAX];
            UNROLL
            for (int v = 0; v < vecs; v++) {
                dv[v] = *(const loose *)(dy + LANES * v);
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
TILE void weights_vecs(const int vecs, const int most, const struct kedge_conv_run *r, const float *x,
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

ENTRY void weights(const struct kedge_conv_run *r, const float *x, const float *dy, float *dw)
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

#endif
#endif
