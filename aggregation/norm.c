/* A square is at most 2^62: the sums of its lower and of its upper 32 bits fit for 2^32 values, after which
 * the lower sum's surplus goes up. */
#include "aggregation/norm.h"

#include <stdbool.h>

#include "aggregation/norm_impl.h"
#include "aggregation/simd.h"

#if defined(__x86_64__)
#define USE_AVX2 kedge_simd_avx2()
#else
#define USE_AVX2 false
#define kedgei_norm_avx2(q, n, sum) ((void)(sum), (size_t)0)
#endif

static void carry(struct kedge_norm *norm)
{
    norm->high += norm->low >> 32;
    norm->low &= UINT32_MAX;
}

void kedge_norm_add(struct kedge_norm *norm, const int32_t *q, size_t n)
{
    const size_t most = (size_t)1 << 30;
    for (size_t done = 0; done < n;) {
        const size_t end = n - done < most ? n : done + most;
        struct kedge_norm sum = {0, 0};
        done += USE_AVX2 ? kedgei_norm_avx2(q + done, end - done, &sum) : 0;
        for (; done < end; done++) {
            const uint64_t square = (uint64_t)((int64_t)q[done] * q[done]);
            sum.high += square >> 32;
            sum.low += square & UINT32_MAX;
        }
        kedge_norm_join(norm, &sum);
    }
}

/* Sums of parts are exact, so a vector may be measured in any parts and by several threads. */
void kedge_norm_join(struct kedge_norm *norm, const struct kedge_norm *other)
{
    struct kedge_norm sum = *other;
    carry(&sum);
    norm->high += sum.high;
    norm->low += sum.low;
    carry(norm);
}

double kedge_norm_value(const struct kedge_norm *norm)
{
    return (double)norm->high * 0x1p32 + (double)norm->low;
}
