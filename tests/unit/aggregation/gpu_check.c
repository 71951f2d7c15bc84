/* On a machine with a CUDA device: its kernels against the processor's. scripts/gpu-check builds and runs it.
 */
#include <stdio.h>

#include "tests/unit/aggregation/cuda_compare.h"

int main(void)
{
    if (kedge_cuda_devices() == 0) {
        puts("gpu-check: skipped: there is no CUDA device here");
        return 0;
    }
    for (int run = 0; run < 20; run++) {
        const char *bad = compare_cuda();
        if (bad) {
            printf("gpu-check: %s: not the processor's bytes in run %d\n", bad, run + 1);
            return 1;
        }
    }
    puts("gpu-check: mean, Gram matrix and order statistics: the processor's bytes, 20 runs");
    return 0;
}
