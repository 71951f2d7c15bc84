/* Golden digests: instruction set, threads, tiles (shards) and the order of arrival change nothing. */
#include "aggregation/rule/rule.h"
#include "tests/unit/aggregation/digests.h"
#include "tests/unit/aggregation/support.h"

START_TEST(every_way)
{
    static const struct digest_way ways[] = {
        {1, SIZE_MAX, 0}, {1, 1024, 1}, {2, 1000, 5}, {3, 257, 13}, {3, SIZE_MAX, 20}, {1, 4096, 8},
    };
    digests_open();
    FOR_EACH_SIMD(simd)
    {
        for (size_t d = 0; d < digests_count; d++) {
            for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
                const uint64_t got = digests[d].make(&ways[w], digests[d].arg);
                ck_assert_msg(got == digests[d].expect, "%s, %s, %u threads, tile %zu, turn %zu: 0x%llx",
                              digests[d].name, kedge_simd_name(simd), ways[w].threads, ways[w].tile,
                              ways[w].turn, (unsigned long long)got);
            }
        }
    }
}
END_TEST

/* No two kernels give the same, none failed: the digests see what they should. */
START_TEST(all_differ)
{
    size_t rules = 0;
    for (size_t d = 0; d < digests_count; d++) {
        ck_assert_uint_ne(digests[d].expect, 0);
        if (strncmp(digests[d].name, "rule ", 5) == 0) {
            ck_assert_str_eq(digests[d].name + 5, kedge_rule_at(digests[d].arg)->name);
            rules++;
        }
        for (size_t e = 0; e < d; e++) {
            ck_assert_uint_ne(digests[d].expect, digests[e].expect);
        }
    }
    ck_assert_uint_eq(rules, kedge_rule_count());
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {every_way, all_differ, NULL};
    return run_tests("aggregation/digests", tests);
}
