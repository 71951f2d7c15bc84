/* The device's source on the processor (client/train/cuda/host.h), to try the programs of this folder without
 * one. */
#define KEDGE_GPU_HOST 1
#include "client/train/cuda/ops.cu" /* NOLINT: a source */
