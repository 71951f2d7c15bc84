/* Whole nets, from data to weights, by the source of the CUDA back end on the processor: steps are recorded
 * and replayed as on a device. In one shuffled order of threads; test_ops_table_cuda_host goes through
 * several. */
#include "tests/fixtures/gpu_host/ops.h"

#include "tests/contract/train_ops.h"

int main(void)
{
    kedge_gpu_host.order = KEDGE_GPU_SHUFFLED;
    kedge_gpu_host.seed = 4;
    const int failed = train_ops_suite(kedge_cuda_ops(KEDGE_CUDA_VERSION), 1e-4);
    if (kedge_gpu_host.failed) {
        (void)fprintf(stderr, "%s\n", kedge_gpu_host.failed);
    }
    return failed != 0 || kedge_gpu_host.failed;
}
