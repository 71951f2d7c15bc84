/* cpuid is read once, lazily; a race only repeats the same answer. Without <cpuid.h> all is scalar. */
#include "aggregation/simd.h"

#include <stdatomic.h>
#include <stdbool.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* The operating system saves the upper halves of the registers (XCR0 bits 1 and 2). */
static bool saves_ymm(void)
{
    unsigned lo;
    unsigned hi;
    __asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (lo & 6u) == 6u;
}

static bool has_avx2(void)
{
    unsigned a;
    unsigned b;
    unsigned c;
    unsigned d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) {
        return false;
    }
    const unsigned fma = 1u << 12;
    const unsigned osxsave = 1u << 27;
    const unsigned avx = 1u << 28;
    const unsigned all = fma | osxsave | avx;
    if ((c & all) != all || !saves_ymm()) {
        return false;
    }
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & 1u << 5) != 0;
}

static enum kedge_simd detect(void)
{
    return has_avx2() ? KEDGE_SIMD_AVX2 : KEDGE_SIMD_SSE2;
}
#else
static enum kedge_simd detect(void)
{
    return KEDGE_SIMD_SCALAR;
}
#endif

static atomic_int chosen; /* 0 = not yet */

int kedge_simd_set(enum kedge_simd simd)
{
    enum kedge_simd widest = detect();
    if (simd > widest) {
        return KEDGE_E_ARG;
    }
    enum kedge_simd next = simd == KEDGE_SIMD_AUTO ? widest : simd;
    atomic_store_explicit(&chosen, (int)next, memory_order_relaxed);
    return KEDGE_OK;
}

enum kedge_simd kedge_simd_get(void)
{
    int simd = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (simd == KEDGE_SIMD_AUTO) {
        simd = (int)detect();
        atomic_store_explicit(&chosen, simd, memory_order_relaxed);
    }
    return (enum kedge_simd)simd;
}

const char *kedge_simd_name(enum kedge_simd simd)
{
    static const char *const names[] = {"auto", "scalar", "sse2", "avx2"};
    return (unsigned)simd < 4 ? names[simd] : "?";
}
