/* Four lanes: every processor (SSE2, NEON, or what the compiler makes of it). */
#define KEDGE_CONV_LANES 4
#define KEDGE_CONV_VECS 2
#define KEDGE_CONV_LINES 6
#define KEDGE_CONV_TARGET
#include "client/train/conv_tile.h"

const struct kedge_conv_tiles kedge_conv_tiles_base = {LANES, forward, weights};
