/* Eight lanes; sixteen registers: 6 × 2 sums, two vectors and a scalar. */
#if defined(__x86_64__)
#define KEDGE_CONV_LANES 8
#define KEDGE_CONV_VECS 2
#define KEDGE_CONV_LINES 6
#define KEDGE_CONV_TARGET __attribute__((target("avx2,fma")))
#include "client/train/conv_tile.h"

const struct kedge_conv_tiles kedge_conv_tiles_avx2 = {LANES, forward, weights};
#else
#include "client/train/conv_tile.h"

const struct kedge_conv_tiles kedge_conv_tiles_avx2 = {0};
#endif
