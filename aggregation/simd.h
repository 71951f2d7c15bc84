/* Which instruction set the kernels of this room use: chosen by cpuid at first use, every choice gives
 * the same bytes. Tests and benchmarks may force one. Pure but for one atomic flag. */
#ifndef KEDGE_AGGREGATION_SIMD_H
#define KEDGE_AGGREGATION_SIMD_H

#include <stdbool.h>

#include "common/base/err.h"

enum kedge_simd {
    KEDGE_SIMD_AUTO = 0, /* the widest that processor and operating system support */
    KEDGE_SIMD_SCALAR = 1,
    KEDGE_SIMD_SSE2 = 2,   /* x86-64 baseline; kernels without such a path run their scalar one */
    KEDGE_SIMD_AVX2 = 3,   /* x86-64-v3: AVX2 and FMA */
    KEDGE_SIMD_AVX512 = 4, /* F, BW, DQ, VL and VNNI; kernels without such a path run their AVX2 one */
    KEDGE_SIMD_NEON = 5,   /* 64-bit Arm's baseline */
};
/* For loops over all of them, from KEDGE_SIMD_SCALAR on. */
#define KEDGE_SIMD_LAST KEDGE_SIMD_NEON

/* Forces a path for the whole process. KEDGE_E_ARG when this machine lacks it; the choice then stays as
 * it was. Any thread; calls already running finish on their old path. */
KEDGE_NODISCARD int kedge_simd_set(enum kedge_simd simd);
/* The path in use, never AUTO. */
enum kedge_simd kedge_simd_get(void);
/* Static name: "scalar", "sse2", "avx2", "avx512", "neon" or "auto". */
const char *kedge_simd_name(enum kedge_simd simd);

/* What a kernel asks that has an AVX2 path and none for AVX-512. */
static inline bool kedge_simd_avx2(void)
{
    const enum kedge_simd simd = kedge_simd_get();
    return simd == KEDGE_SIMD_AVX2 || simd == KEDGE_SIMD_AVX512;
}

#endif
