/* Idea: 2 × 5 dot products, or 5 rows × 16 columns of a result, fill ten of the sixteen vector registers and
 * need fewer loads than multiply-adds, so the multiply-adds are what limits. The outer loop runs over the
 * kernel's rows, five of which stay in the first cache while the batch passes over them: each weight is read
 * once. Sums of a tile are in a fixed order, so results do not depend on neighbours in the batch's memory. */
#include "client/train/small.h"

#include <math.h>

#include "common/base/err.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma")))
#define AVX2_INLINE static inline __attribute__((always_inline, target("avx2,fma")))
enum { ROWS = 2, OUTS = 5, LANES = 8, COLUMNS = 2 };

bool kedge_small_is_available(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

AVX2_INLINE float sum_lanes(__m256 v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* rows × outs dot products; both are constants wherever it is inlined. */
AVX2_INLINE void dots_tile(int rows, int outs, uint32_t in, const float *x, const float *w, float *z,
                           uint32_t out)
{
    __m256 acc[ROWS][OUTS];
    uint32_t k = 0;
    for (int r = 0; r < rows; r++) {
        for (int o = 0; o < outs; o++) {
            acc[r][o] = _mm256_setzero_ps();
        }
    }
    for (; k + LANES <= in; k += LANES) {
        __m256 xv[ROWS];
        for (int r = 0; r < rows; r++) {
            xv[r] = _mm256_loadu_ps(x + (uint64_t)r * in + k);
        }
        for (int o = 0; o < outs; o++) {
            __m256 wv = _mm256_loadu_ps(w + (uint64_t)o * in + k);
            for (int r = 0; r < rows; r++) {
                acc[r][o] = _mm256_fmadd_ps(xv[r], wv, acc[r][o]);
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int o = 0; o < outs; o++) {
            float s = sum_lanes(acc[r][o]);
            for (uint32_t t = k; t < in; t++) {
                s += x[(uint64_t)r * in + t] * w[(uint64_t)o * in + t];
            }
            z[(uint64_t)r * out + (uint64_t)o] += s;
        }
    }
}

/* All rows by `outs` kernels, a constant wherever it is inlined. */
AVX2_INLINE void dots_rows(int outs, uint32_t n, uint32_t in, const float *x, const float *w, float *z,
                           uint32_t out)
{
    uint32_t r = 0;
    for (; r + ROWS <= n; r += ROWS) {
        dots_tile(ROWS, outs, in, x + (uint64_t)r * in, w, z + (uint64_t)r * out, out);
    }
    if (r < n) {
        dots_tile(1, outs, in, x + (uint64_t)r * in, w, z + (uint64_t)r * out, out);
    }
}

AVX2 void kedge_small_dots(uint32_t n, uint32_t out, uint32_t in, const float *x, const float *w, float *z)
{
    uint32_t o = 0;
    for (; o + OUTS <= out; o += OUTS, w += (uint64_t)OUTS * in) {
        dots_rows(OUTS, n, in, x, w, z + o, out);
    }
    switch (out - o) {
    case 4:
        dots_rows(4, n, in, x, w, z + o, out);
        break;
    case 3:
        dots_rows(3, n, in, x, w, z + o, out);
        break;
    case 2:
        dots_rows(2, n, in, x, w, z + o, out);
        break;
    case 1:
        dots_rows(1, n, in, x, w, z + o, out);
        break;
    default:
        break;
    }
}

/* e^x for x ≤ 0; below −87 as e^−87: 2^k · e^r, |r| ≤ ln 2 / 2, r by two parts of ln 2, e^r by its series to
 * r^6 / 720 with the last terms drawn together (Cephes' expf). */
AVX2_INLINE __m256 exp_lanes(__m256 x)
{
    x = _mm256_max_ps(_mm256_set1_ps(-87.0f), x); /* in this order NaN stays */
    __m256 k = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)),
                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(k, _mm256_set1_ps(0.693359375f), x);
    r = _mm256_fnmadd_ps(k, _mm256_set1_ps(-2.12194440e-4f), r);
    __m256 p = _mm256_set1_ps(1.9875691500e-4f);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3981999507e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.3334519073e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.1665795894e-2f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.6666665459e-1f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.0000001201e-1f));
    p = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
    __m256i power = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(k), _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(p, _mm256_castsi256_ps(power));
}

/* e^(z − most) of one row in place, eight at a time with a tail by mask; returns their sum. */
AVX2_INLINE float exp_row(float *z, uint32_t classes, float most)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256 sum = _mm256_setzero_ps(), shift = _mm256_set1_ps(most);
    for (uint32_t c = 0; c < classes; c += LANES) {
        __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(classes - c)), lanes);
        __m256 e = exp_lanes(_mm256_sub_ps(_mm256_maskload_ps(z + c, mask), shift));
        e = _mm256_and_ps(e, _mm256_castsi256_ps(mask));
        _mm256_maskstore_ps(z + c, mask, e);
        sum = _mm256_add_ps(sum, e);
    }
    return sum_lanes(sum);
}

AVX2 double kedge_small_softmax(uint32_t n, uint32_t classes, const int32_t *labels, float *z)
{
    double own = 0, product = 1, logs = 0;
    for (uint32_t r = 0; r < n; r++, z += classes) {
        float most = z[0];
        for (uint32_t c = 1; c < classes; c++) {
            most = z[c] > most ? z[c] : most;
        }
        own += (double)(z[labels[r]] - most);
        float sum = exp_row(z, classes, most), inverse = 1.0f / sum;
        for (uint32_t c = 0; c < classes; c++) {
            z[c] *= inverse;
        }
        product *= (double)sum; /* 1 to 65536 each: one logarithm for many rows */
        if (product > 1e200) {
            logs += log(product);
            product = 1;
        }
    }
    return logs + log(product) - own;
}

struct product {
    uint32_t inner, width, row_stride, inner_stride;
    const float *a, *b;
    float keep;
    float *c;
};

/* rows (a constant where inlined) of c in 16 columns from k. */
AVX2_INLINE void product_tile(const struct product *p, int rows, uint32_t row, uint32_t k)
{
    __m256 acc[OUTS][COLUMNS];
    float *c = p->c + (uint64_t)row * p->width + k;
    const float *a = p->a + (uint64_t)row * p->row_stride, *b = p->b + k;
    for (int i = 0; i < rows; i++) {
        for (int v = 0; v < COLUMNS; v++) {
            acc[i][v] = p->keep == 0.0f
                            ? _mm256_setzero_ps()
                            : _mm256_mul_ps(_mm256_set1_ps(p->keep),
                                            _mm256_loadu_ps(c + (uint64_t)i * p->width + LANES * v));
        }
    }
    for (uint32_t j = 0; j < p->inner; j++, a += p->inner_stride, b += p->width) {
        __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + LANES);
        for (int i = 0; i < rows; i++) {
            __m256 av = _mm256_set1_ps(a[(uint64_t)i * p->row_stride]);
            acc[i][0] = _mm256_fmadd_ps(av, b0, acc[i][0]);
            acc[i][1] = _mm256_fmadd_ps(av, b1, acc[i][1]);
        }
    }
    for (int i = 0; i < rows; i++) {
        for (int v = 0; v < COLUMNS; v++) {
            _mm256_storeu_ps(c + (uint64_t)i * p->width + LANES * v, acc[i][v]);
        }
    }
}

/* One value of c. */
static void product_value(const struct product *p, uint32_t row, uint32_t k)
{
    float *c = p->c + (uint64_t)row * p->width + k;
    const float *a = p->a + (uint64_t)row * p->row_stride;
    float s = p->keep == 0.0f ? 0.0f : p->keep * *c;
    for (uint32_t j = 0; j < p->inner; j++) {
        s += a[(uint64_t)j * p->inner_stride] * p->b[(uint64_t)j * p->width + k];
    }
    *c = s;
}

AVX2 void kedge_small_product(uint32_t rows, uint32_t inner, uint32_t width, const float *a,
                              uint32_t row_stride, uint32_t inner_stride, const float *b, float keep,
                              float *c)
{
    struct product p = {inner, width, row_stride, inner_stride, a, b, keep, c};
    uint32_t row = 0, whole = width - width % (COLUMNS * LANES);
    for (; row + OUTS <= rows; row += OUTS) {
        for (uint32_t k = 0; k < whole; k += COLUMNS * LANES) {
            product_tile(&p, OUTS, row, k);
        }
    }
    for (uint32_t k = 0; k < whole; k += COLUMNS * LANES) {
        switch (rows - row) {
        case 4:
            product_tile(&p, 4, row, k);
            break;
        case 3:
            product_tile(&p, 3, row, k);
            break;
        case 2:
            product_tile(&p, 2, row, k);
            break;
        case 1:
            product_tile(&p, 1, row, k);
            break;
        default:
            break;
        }
    }
    for (row = 0; row < rows; row++) {
        for (uint32_t k = whole; k < width; k++) {
            product_value(&p, row, k);
        }
    }
}

#else

bool kedge_small_is_available(void)
{
    return false;
}

void kedge_small_dots(uint32_t n, uint32_t out, uint32_t in, const float *x, const float *w, float *z)
{
    (void)n, (void)out, (void)in, (void)x, (void)w, (void)z;
    KEDGE_ASSERT(false); /* see kedge_small_is_available */
}

double kedge_small_softmax(uint32_t n, uint32_t classes, const int32_t *labels, float *z)
{
    (void)n, (void)classes, (void)labels, (void)z;
    KEDGE_ASSERT(false);
    return 0;
}

void kedge_small_product(uint32_t rows, uint32_t inner, uint32_t width, const float *a, uint32_t row_stride,
                         uint32_t inner_stride, const float *b, float keep, float *c)
{
    (void)rows, (void)inner, (void)width, (void)a, (void)row_stride, (void)inner_stride, (void)b, (void)keep,
        (void)c;
    KEDGE_ASSERT(false);
}

#endif
