/* Time that went by while a process ran, and not while it was stopped. */
#include <check.h>

#include "cli/sim/active_clock.h"
#include "tests/unit/base/check.h"

static const uint64_t MS = 1000000, S = 1000 * 1000000ull;

START_TEST(test_runs)
{
    struct kedge_active_clock c = {0};
    uint64_t now = 77 * S;
    ck_assert_uint_eq(kedge_active_clock_read(&c, now), 0);
    for (int i = 1; i <= 1000; i++) {
        now += 30 * MS;
        ck_assert_uint_eq(kedge_active_clock_read(&c, now), (uint64_t)i * 30 * MS);
    }
    ck_assert_uint_eq(kedge_active_clock_read(&c, now), 30 * S);
}
END_TEST

/* However long it was stopped, a deadline comes nearer by one step. */
START_TEST(test_stopped)
{
    struct kedge_active_clock c = {0};
    uint64_t now = S;
    (void)kedge_active_clock_read(&c, now);
    const uint64_t deadline = kedge_active_clock_read(&c, now += S) + 10 * S;
    ck_assert_uint_eq(kedge_active_clock_read(&c, now += 3600 * S), S + KEDGE_ACTIVE_STEP_NS);
    ck_assert_uint_lt(c.passed_ns, deadline);
    int polls = 0;
    while (kedge_active_clock_read(&c, now += 100 * MS) < deadline) {
        polls++;
    }
    ck_assert_int_eq(polls, 79); /* the 8 s that are left of the 10 */
}
END_TEST

int main(void)
{
    const TTest *tests[] = {test_runs, test_stopped};
    return run_suite("active_clock", tests, sizeof tests / sizeof tests[0]);
}
