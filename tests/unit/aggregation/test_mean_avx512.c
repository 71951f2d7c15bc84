/* The AVX-512 kernel of the mean, its instructions emulated (emulated.h): equal to the definition on every
 * machine. Where the processor has them, test_mean runs the real ones. */
#include "aggregation/mean_impl.h"
#include "tests/unit/aggregation/support.h"

/* Lines that the kernel takes four at a time, and some that are left. */
enum { N = 11 * KEDGEI_MEAN_LINE, SOURCES = 2 * KEDGEI_MEAN_FUSE };

_Alignas(64) static int32_t values[SOURCES][N];
_Alignas(64) static float base[N];
_Alignas(64) static float out[N];
_Alignas(64) static int64_t acc[N];

/* `count` sources in one pass or, above KEDGEI_MEAN_FUSE, in two. */
static void compare(const uint64_t *weight, unsigned count, double divisor, bool stream)
{
    const unsigned first = count < KEDGEI_MEAN_FUSE ? count : KEDGEI_MEAN_FUSE;
    for (unsigned from = 0; from < count; from += first) {
        struct kedgei_mean_pass pass = {.count = count - from < first ? count - from : first,
                                        .opens = from == 0,
                                        .closes = from + first >= count,
                                        .stream = stream,
                                        .base = base,
                                        .out = out,
                                        .divisor = divisor};
        for (unsigned k = 0; k < pass.count; k++) {
            pass.values[k] = values[from + k];
            pass.weight[k] = weight[from + k];
        }
        kedgei_mean_avx512(&pass, N, acc);
    }
    for (size_t i = 0; i < N; i++) {
        int64_t sum = 0;
        for (unsigned k = 0; k < count; k++) {
            sum += (int64_t)weight[k] * values[k][i];
        }
        const float expect = (float)((double)base[i] + (double)sum / divisor);
        ck_assert_msg(memcmp(&out[i], &expect, sizeof expect) == 0, "%u sources, coordinate %zu", count, i);
    }
}

static void try_all(struct kedge_rng *rng, uint64_t weight_most)
{
    uint64_t weight[SOURCES];
    for (unsigned count = 1; count <= SOURCES; count++) {
        double divisor = 0x1p20;
        for (unsigned k = 0; k < count; k++) {
            weight[k] = 1 + kedge_rng_below(rng, weight_most);
            divisor += (double)weight[k] * 0x1p20;
        }
        compare(weight, count, divisor, count % 2 == 0);
    }
}

START_TEST(random_values)
{
    struct kedge_rng rng = new_stream(12);
    fill_floats(&rng, base, N, 3.0);
    for (size_t k = 0; k < SOURCES; k++) {
        fill_ints(&rng, values[k], N, 1 << 21);
    }
    try_all(&rng, 5000);
    try_all(&rng, (UINT64_C(1) << 31) - 1);
}
END_TEST

START_TEST(extremes)
{
    struct kedge_rng rng = new_stream(13);
    for (size_t k = 0; k < SOURCES; k++) {
        for (size_t i = 0; i < N; i++) {
            values[k][i] = (i + k) % 3 == 0 ? INT32_MIN : (i + k) % 3 == 1 ? INT32_MAX : -1;
        }
    }
    try_all(&rng, 1 << 25);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {random_values, extremes, NULL};
    return run_tests("aggregation/mean_avx512", tests);
}
