/* Eight lanes; sixteen registers: 6 × 2 sums, two vectors and a scalar. */
#if defined(__x86_64__)
#define KEDGE_TILE_LANES 8
#define KEDGE_TILE_VECS 2
#define KEDGE_TILE_LINES 6
#define KEDGE_TILE_TARGET __attribute__((target("avx2,fma")))
#include "client/train/tile.h"

const struct kedge_tiles kedge_tiles_avx2 = {LANES, forward, weights, dots, product};
#else
#include "client/train/tile.h"

const struct kedge_tiles kedge_tiles_avx2 = {0};
#endif
