/* Sixteen lanes; 32 registers: 14 × 2 or 7 × 4 sums, and the vectors; scalars are operands in memory. */
#if defined(__x86_64__)
#define KEDGE_TILE_LANES 16
#define KEDGE_TILE_VECS 4
#define KEDGE_TILE_LINES 14
#define KEDGE_TILE_TARGET __attribute__((target("avx512f,avx2,fma")))
#include "client/train/tile.h"

const struct kedge_tiles kedge_tiles_avx512 = {LANES, forward, weights, dots, product};
#else
#include "client/train/tile.h"

const struct kedge_tiles kedge_tiles_avx512 = {0};
#endif
