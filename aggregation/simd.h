/* Which instruction set the kernels of this room use: chosen by cpuid at first use, every choice gives
 * the same bytes. Tests and benchmarks may force one. Pure but for one atomic flag. */
#ifndef KEDGE_AGGREGATION_SIMD_H
#define KEDGE_AGGREGATION_SIMD_H

#include "common/base/err.h"

enum kedge_simd {
    KEDGE_SIMD_AUTO = 0, /* the widest that processor and operating system support */
    KEDGE_SIMD_SCALAR = 1,
    KEDGE_SIMD_SSE2 = 2, /* x86-64 baseline; kernels without such a path run their scalar one */
    KEDGE_SIMD_AVX2 = 3, /* x86-64-v3: AVX2 and FMA */
};

/* Forces a path for the whole process. KEDGE_E_ARG when this machine lacks it; the choice then stays as
 * it was. Any thread; calls already running finish on their old path. */
KEDGE_NODISCARD int kedge_simd_set(enum kedge_simd simd);
/* The path in use, never AUTO. */
enum kedge_simd kedge_simd_get(void);
/* Static name: "scalar", "sse2", "avx2" or "auto". */
const char *kedge_simd_name(enum kedge_simd simd);

#endif
