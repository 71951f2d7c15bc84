#include "aggregation/neon.h"

#if defined(__aarch64__)
#include <arm_neon.h>

/* ---- mean: 32 x 32 -> 64 bit multiply and add, weights below 2^31 ---- */

static void close_neon(const struct kedgei_mean_pass *pass, size_t n, const int64_t *acc)
{
    const float64x2_t divisor = vdupq_n_f64(pass->divisor);
    for (size_t i = 0; i < n; i += 2) {
        const float64x2_t sum = vcvtq_f64_s64(vld1q_s64(acc + i)); /* rounds once, to nearest even */
        const float64x2_t base = vcvt_f64_f32(vld1_f32(pass->base + i));
        vst1_f32(pass->out + i, vcvt_f32_f64(vaddq_f64(base, vdivq_f64(sum, divisor))));
    }
}

void kedgei_mean_neon(const struct kedgei_mean_pass *pass, size_t n, int64_t *acc)
{
    for (size_t i = 0; i < n; i += 4) {
        int64x2_t low = pass->opens ? vdupq_n_s64(0) : vld1q_s64(acc + i);
        int64x2_t high = pass->opens ? vdupq_n_s64(0) : vld1q_s64(acc + i + 2);
        for (unsigned k = 0; k < pass->count; k++) {
            const int32x4_t v = vld1q_s32(pass->values[k] + i);
            const int32x2_t weight = vdup_n_s32((int32_t)pass->weight[k]);
            low = vmlal_s32(low, vget_low_s32(v), weight);
            high = vmlal_s32(high, vget_high_s32(v), weight);
        }
        vst1q_s64(acc + i, low);
        vst1q_s64(acc + i + 2, high);
    }
    if (pass->closes) {
        close_neon(pass, n, acc);
    }
}

/* ---- quantise: stops at the first doubtful group of four ---- */

/* Nearest integer, ties to even, of values within int32. */
static int32x2_t round_two(float64x2_t x)
{
    return vmovn_s64(vcvtnq_s64_f64(x));
}

size_t kedgei_quantise_neon(const struct kedgei_quantise *job, size_t n)
{
    const float64x2_t scale = vdupq_n_f64(job->scale);
    const float64x2_t bound = vdupq_n_f64(job->bound);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const float32x4_t after = vld1q_f32(job->after + i);
        const float32x4_t before = vld1q_f32(job->before + i);
        const float64x2_t low =
            vsubq_f64(vcvt_f64_f32(vget_low_f32(after)), vcvt_f64_f32(vget_low_f32(before)));
        const float64x2_t high = vsubq_f64(vcvt_high_f64_f32(after), vcvt_high_f64_f32(before));
        /* false for NaN */
        const uint64x2_t good = vandq_u64(vcaleq_f64(low, bound), vcaleq_f64(high, bound));
        if ((vgetq_lane_u64(good, 0) & vgetq_lane_u64(good, 1)) != UINT64_MAX) {
            break;
        }
        vst1q_s32(job->out + i,
                  vcombine_s32(round_two(vmulq_f64(low, scale)), round_two(vmulq_f64(high, scale))));
    }
    return i;
}

size_t kedgei_update_check_neon(const int32_t *q, size_t n, int32_t limit)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const int32x4_t a = vld1q_s32(q + i);
        const int32x4_t b = vld1q_s32(q + i + 4);
        if (vmaxvq_s32(vmaxq_s32(a, b)) > limit || vminvq_s32(vminq_s32(a, b)) < -limit) {
            break;
        }
    }
    return i;
}

/* ---- Gram matrix ---- */

size_t kedgei_max_abs_neon(const int32_t *q, size_t n, uint32_t *max)
{
    uint32x4_t most = vdupq_n_u32(0);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) { /* the magnitude of -2^31 is 2^31 when read as unsigned */
        most = vmaxq_u32(most, vreinterpretq_u32_s32(vabsq_s32(vld1q_s32(q + i))));
    }
    const uint32_t lane = vmaxvq_u32(most);
    *max = lane > *max ? lane : *max;
    return i;
}

/* The division that gram.c shows to be exact enough. */
static int32x2_t scale_two(int32x2_t q, float64x2_t max)
{
    const float64x2_t value = vcvtq_f64_s64(vmovl_s32(q));
    return round_two(vdivq_f64(vmulq_f64(value, vdupq_n_f64(KEDGE_GRAM_ONE)), max));
}

size_t kedgei_scale12_neon(const int32_t *q, size_t n, uint32_t max, int16_t *out)
{
    const float64x2_t divisor = vdupq_n_f64((double)max);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const int32x4_t v = vld1q_s32(q + i);
        const int32x2_t low = scale_two(vget_low_s32(v), divisor);
        vst1_s16(out + i, vmovn_s32(vcombine_s32(low, scale_two(vget_high_s32(v), divisor))));
    }
    return i;
}

static int32x4_t add_product(int32x4_t sum, int16x8_t a, int16x8_t b)
{
    return vmlal_high_s16(vmlal_s16(sum, vget_low_s16(a), vget_low_s16(b)), a, b);
}

/* A lane of a sum takes two products in each of KEDGE_GRAM_TILE / 8 = 128 steps: below 2^31. */
void kedgei_gram_block_neon(const int16_t *a, const int16_t *b, size_t n, int64_t cells[KEDGEI_GRAM_CELLS])
{
    int32x4_t sum[KEDGEI_GRAM_CELLS];
    for (size_t k = 0; k < KEDGEI_GRAM_CELLS; k++) {
        sum[k] = vdupq_n_s32(0);
    }
    for (size_t i = 0; i < n; i += 8) {
        const int16x8_t b0 = vld1q_s16(b + i);
        const int16x8_t b1 = vld1q_s16(b + i + KEDGEI_GRAM_STRIDE);
        for (size_t r = 0; r < KEDGEI_GRAM_ROWS; r++) {
            const int16x8_t v = vld1q_s16(a + i + r * KEDGEI_GRAM_STRIDE);
            sum[2 * r] = add_product(sum[2 * r], v, b0);
            sum[2 * r + 1] = add_product(sum[2 * r + 1], v, b1);
        }
    }
    for (size_t k = 0; k < KEDGEI_GRAM_CELLS; k++) {
        cells[k] = vaddlvq_s32(sum[k]);
    }
}
#else
typedef int kedgei_neon_unused; /* a translation unit holds at least one declaration */
#endif
