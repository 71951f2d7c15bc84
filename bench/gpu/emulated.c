/* The device's source on the processor (tests/fixtures/gpu_host), to try the programs of this folder without
 * one. */
#include "tests/fixtures/gpu_host/ops.h"
