/* The source of the CUDA kernels, run thread by thread on the processor (aggregation/cuda/vendor.h),
 * forwards, backwards and in jumps. What a device does is scripts/gpu-check's to find out. */
#define KEDGE_GPU_HOST 1
#include "aggregation/cuda/kernels.cu" /* NOLINT: this source is tested */
#include "tests/unit/aggregation/cuda_compare.h"
#include "tests/unit/aggregation/support.h"

START_TEST(same_bytes_in_any_order)
{
    static const size_t steps[] = {1, 101, 1009,
                                   7919}; /* primes above any number of blocks: all threads run */
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        for (int backwards = 0; backwards < 2; backwards++) {
            kedge_gpu.step = steps[s];
            kedge_gpu.backwards = backwards;
            const char *bad = compare_cuda();
            ck_assert_msg(!bad, "%s differs, step %zu", bad, steps[s]);
        }
    }
}
END_TEST

START_TEST(texts)
{
    ck_assert_int_eq(kedge_cuda_devices(), 1);
    ck_assert_str_eq(kedge_cuda_text(0), "no error");
    ck_assert_str_eq(kedge_cuda_text(2), "out of memory");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {same_bytes_in_any_order, texts, NULL};
    return run_tests("aggregation/cuda on the processor", tests);
}
