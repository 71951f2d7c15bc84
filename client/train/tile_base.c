/* Four lanes: every processor (SSE2, NEON, or what the compiler makes of it). */
#define KEDGE_TILE_LANES 4
#define KEDGE_TILE_VECS 2
#define KEDGE_TILE_LINES 6
#define KEDGE_TILE_TARGET
#include "client/train/tile.h"

const struct kedge_tiles kedge_tiles_base = {LANES, forward, weights, dots, product};

const struct kedge_tiles *kedge_tiles_for(uint32_t columns)
{
#if defined(__x86_64__)
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2 && __builtin_cpu_supports("avx512f") && columns > 8) {
        return &kedge_tiles_avx512;
    }
    if (avx2 && columns > 4) {
        return &kedge_tiles_avx2;
    }
#else
    (void)columns;
#endif
    return &kedge_tiles_base;
}
