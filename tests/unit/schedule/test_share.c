/* Shares: by hand, and what holds of any claims. */
#include <check.h>
#include <stdbool.h>

#include "common/base/rng.h"
#include "coordinator/schedule/share.h"
#include "tests/fixtures/run.h"

typedef struct kedge_schedule_claim claim;
enum { WHOLE = KEDGE_SCHEDULE_WHOLE, MANY = 40 };

START_TEST(test_by_weight)
{
    const claim claims[] = {{.weight = 4}, {.weight = 1}, {.weight = 1}};
    uint64_t s[3];
    kedge_schedule_divide(claims, 3, WHOLE, 0, s);
    ck_assert_uint_eq(s[0], 666666);
    ck_assert_uint_eq(s[1], 166666);
    kedge_schedule_divide(claims, 3, WHOLE, 500000, s); /* half of a third to each, and the rest by weight */
    ck_assert_uint_eq(s[0], 166666 + 333334);
    ck_assert_uint_eq(s[2], 166666 + 83333);
    kedge_schedule_divide(claims, 3, 2 * WHOLE, 0, s); /* one has all that it can use */
    ck_assert_uint_eq(s[0], WHOLE);
    ck_assert_uint_eq(s[1], WHOLE / 2);
    kedge_schedule_divide(claims, 3, 4 * WHOLE, 0, s);
    ck_assert_uint_eq(s[0] + s[1] + s[2], 3 * WHOLE);
    kedge_schedule_divide(NULL, 0, WHOLE, 0, s);
}
END_TEST

START_TEST(test_deadlines_first)
{
    const claim claims[] = {{.weight = 1},
                            {.weight = 1, .least = 500000, .due_ns = 20},
                            {.weight = 1, .least = 400000, .due_ns = 10}};
    uint64_t s[3];
    kedge_schedule_divide(claims, 3, WHOLE, 0, s); /* three quarters are promised, to who is due first */
    ck_assert_uint_eq(s[2], 400000 + 83333);
    ck_assert_uint_eq(s[1], 350000 + 83333);
    ck_assert_uint_eq(s[0], 83333);
    kedge_schedule_divide(claims, 3, WHOLE, 500000, s); /* and of the rest the floor comes first */
    ck_assert_uint_eq(s[0], 166666 + 27778);
}
END_TEST

static uint64_t sum(const uint64_t *s, size_t count)
{
    uint64_t ret = 0;
    for (size_t i = 0; i < count; i++) {
        ret += s[i];
    }
    return ret;
}

START_TEST(test_any_claims)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 13, KEDGE_RNG_TEST, 0, 0);
    for (int run = 0; run < 20000; run++) {
        claim claims[MANY];
        uint64_t s[MANY];
        const size_t count = 1 + kedge_rng_below(&rng, MANY);
        const uint64_t capacity = 1 + kedge_rng_below(&rng, 2 * count * WHOLE);
        const uint32_t floor = (uint32_t)kedge_rng_below(&rng, WHOLE + 1);
        bool has_deadlines = kedge_rng_below(&rng, 2) == 0;
        for (size_t i = 0; i < count; i++) {
            claims[i] = (claim){.weight = 1 + (uint32_t)kedge_rng_below(&rng, 1 << kedge_rng_below(&rng, 20)),
                                .due_ns = kedge_rng_below(&rng, 100)};
            claims[i].least = has_deadlines && kedge_rng_below(&rng, 3) == 0
                                  ? (uint32_t)kedge_rng_below(&rng, WHOLE + 1)
                                  : 0;
        }
        kedge_schedule_divide(claims, count, capacity, floor, s);
        const uint64_t most = capacity < count * WHOLE ? capacity : count * WHOLE;
        const uint64_t equal = capacity / count < WHOLE ? capacity / count : WHOLE;
        ck_assert_uint_le(sum(s, count), most);
        ck_assert_uint_ge(sum(s, count) + 2 * count, most); /* rounding */
        for (size_t i = 0; i < count; i++) {
            ck_assert_uint_le(s[i], WHOLE);
            ck_assert(has_deadlines || s[i] >= equal * floor / WHOLE);
        }
    }
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("share");
    tcase_add_test(c, test_by_weight);
    tcase_add_test(c, test_deadlines_first);
    tcase_add_test(c, test_any_claims);
    Suite *s = suite_create("schedule/share");
    suite_add_tcase(s, c);
    return run_suite(s);
}
