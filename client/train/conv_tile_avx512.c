/* Sixteen lanes; 32 registers: 14 × 2 or 7 × 4 sums, and the vectors; scalars are operands in memory. */
#if defined(__x86_64__)
#define KEDGE_CONV_LANES 16
#define KEDGE_CONV_VECS 4
#define KEDGE_CONV_LINES 14
#define KEDGE_CONV_TARGET __attribute__((target("avx512f,avx2,fma")))
#include "client/train/conv_tile.h"

const struct kedge_conv_tiles kedge_conv_tiles_avx512 = {LANES, forward, weights};
#else
#include "client/train/conv_tile.h"

const struct kedge_conv_tiles kedge_conv_tiles_avx512 = {0};
#endif
