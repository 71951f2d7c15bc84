/* The AVX-512 kernel, its instructions emulated (emulated.h): equal to direct sums on every machine. Where
 * the processor has them, test_gram runs the real ones. */
#include "aggregation/gram_impl.h"
#include "tests/unit/aggregation/support.h"

enum { ROWS = KEDGEI_GRAM_ROWS + KEDGEI_GRAM_COLUMNS };

_Alignas(64) static int16_t x[ROWS * KEDGEI_GRAM_STRIDE];

static void compare(size_t n)
{
    int64_t cells[KEDGEI_GRAM_CELLS];
    const int16_t *b = x + KEDGEI_GRAM_ROWS * KEDGEI_GRAM_STRIDE;
    kedgei_gram_block_avx512(x, b, n, cells);
    for (size_t k = 0; k < KEDGEI_GRAM_CELLS; k++) {
        const int16_t *u = x + k / KEDGEI_GRAM_COLUMNS * KEDGEI_GRAM_STRIDE;
        const int16_t *v = b + k % KEDGEI_GRAM_COLUMNS * KEDGEI_GRAM_STRIDE;
        int64_t sum = 0;
        for (size_t i = 0; i < n; i++) {
            sum += u[i] * v[i];
        }
        ck_assert_int_eq(cells[k], sum);
    }
}

START_TEST(random_values)
{
    struct kedge_rng rng = new_stream(11);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
        x[i] = (int16_t)draw_int(&rng, KEDGE_GRAM_ONE);
    }
    for (size_t n = 0; n <= KEDGE_GRAM_TILE; n += KEDGEI_GRAM_STEP) {
        compare(n);
    }
}
END_TEST

START_TEST(extremes)
{
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
        x[i] = i / KEDGEI_GRAM_STRIDE % 2 != 0 ? -KEDGE_GRAM_ONE : KEDGE_GRAM_ONE;
    }
    compare(KEDGE_GRAM_TILE);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {random_values, extremes, NULL};
    return run_tests("aggregation/gram_avx512", tests);
}
