#include "aggregation/simd.h"

#include "tests/unit/aggregation/support.h"

START_TEST(names_and_choice)
{
    ck_assert_str_eq(kedge_simd_name(KEDGE_SIMD_AUTO), "auto");
    ck_assert_str_eq(kedge_simd_name(KEDGE_SIMD_SCALAR), "scalar");
    ck_assert_str_eq(kedge_simd_name(KEDGE_SIMD_SSE2), "sse2");
    ck_assert_str_eq(kedge_simd_name(KEDGE_SIMD_AVX2), "avx2");
    ck_assert_str_eq(kedge_simd_name(KEDGE_SIMD_AVX512), "avx512");
    ck_assert_str_eq(kedge_simd_name(KEDGE_SIMD_NEON), "neon");
    ck_assert_str_eq(kedge_simd_name((enum kedge_simd)9), "?");
    ck_assert_int_ne(kedge_simd_get(), KEDGE_SIMD_AUTO);
    FOR_EACH_SIMD(simd)
    {
        ck_assert_int_eq(kedge_simd_get(), simd);
        ck_assert_int_eq(kedge_simd_set((enum kedge_simd)9), KEDGE_E_ARG);
        ck_assert_int_eq(kedge_simd_get(), simd);
    }
    ck_assert_int_ne(kedge_simd_get(), KEDGE_SIMD_AUTO);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {names_and_choice, NULL};
    return run_tests("aggregation/simd", tests);
}
