/* cpuid is read once, lazily; a race only repeats the same answer. Without <cpuid.h> all is scalar. */
#include "aggregation/simd.h"

#include <stdatomic.h>
#include <stdbool.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* What the operating system saves of the registers: bits 1 and 2 the 256-bit ones, 5 to 7 all of AVX-512. */
static unsigned saved_state(void)
{
    unsigned lo;
    unsigned hi;
    __asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return lo;
}

static bool has_all(unsigned word, unsigned bits)
{
    return (word & bits) == bits;
}

static enum kedge_simd detect(void)
{
    const unsigned fma = 1u << 12, osxsave = 1u << 27, avx = 1u << 28;
    const unsigned avx2 = 1u << 5, f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
    const unsigned vnni = 1u << 11;
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has_all(c, fma | osxsave | avx)) {
        return KEDGE_SIMD_SSE2;
    }
    const unsigned saved = saved_state();
    if (!has_all(saved, 0x06) || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has_all(b, avx2)) {
        return KEDGE_SIMD_SSE2;
    }
    return has_all(saved, 0xe6) && has_all(b, f | dq | bw | vl) && has_all(c, vnni) ? KEDGE_SIMD_AVX512
                                                                                    : KEDGE_SIMD_AVX2;
}

/* Each includes the narrower ones. */
static bool has(enum kedge_simd simd)
{
    return simd <= detect();
}
#elif defined(__aarch64__)
static enum kedge_simd detect(void)
{
    return KEDGE_SIMD_NEON;
}

static bool has(enum kedge_simd simd)
{
    return simd <= KEDGE_SIMD_SCALAR || simd == KEDGE_SIMD_NEON;
}
#else
static enum kedge_simd detect(void)
{
    return KEDGE_SIMD_SCALAR;
}

static bool has(enum kedge_simd simd)
{
    return simd <= KEDGE_SIMD_SCALAR;
}
#endif

static atomic_int chosen; /* 0 = not yet */

int kedge_simd_set(enum kedge_simd simd)
{
    if (!has(simd)) {
        return KEDGE_E_ARG;
    }
    enum kedge_simd next = simd == KEDGE_SIMD_AUTO ? detect() : simd;
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
    static const char *const names[] = {"auto", "scalar", "sse2", "avx2", "avx512", "neon"};
    return (unsigned)simd <= KEDGE_SIMD_LAST ? names[simd] : "?";
}
