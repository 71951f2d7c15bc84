/* Jobs that wait for places: whose is next, against a model that gives out places one by one. */
#include <check.h>
#include <stdlib.h>

#include "coordinator/schedule/line.h"
#include "tests/fixtures/run.h"

enum { TENANTS = 5, JOBS = 40 };

static const uint32_t names[TENANTS][1] = {{0}, {1}, {2}, {3}, {4}};

static uint32_t draw(uint32_t *io_state, uint32_t below)
{
    *io_state = *io_state * 1664525u + 1013904223u;
    return (*io_state >> 8) % below;
}

static struct kedge_line_job of(uint32_t tenant)
{
    return (struct kedge_line_job){.tenants = names[tenant], .tenant_count = 1};
}

/* A tenant with a thousand jobs has one place more, then the other's first is next. */
START_TEST(test_turns)
{
    struct kedge_line_job jobs[] = {of(0), of(0), of(0), of(1), of(1)};
    uint32_t places[TENANTS] = {2, 3};
    static const uint32_t expected[] = {2, 3, 4, 3, 4};
    kedge_line_turns(jobs, 5, places);
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_uint_eq(jobs[i].turn, expected[i]);
        ck_assert_uint_eq(jobs[i].order, i);
    }
    ck_assert_uint_eq(places[0], 5);
    ck_assert_uint_eq(places[1], 5);
    ck_assert_uint_eq(kedge_line_next(jobs, 5), 0);
    qsort(jobs, 5, sizeof jobs[0], kedge_line_compare);
    static const uint32_t order[] = {0, 1, 3, 2, 4};
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_uint_eq(jobs[i].order, order[i]);
    }
}
END_TEST

/* A job of several tenants waits for the one that has most, and counts for all of them. */
START_TEST(test_several)
{
    static const uint32_t both[] = {0, 1};
    struct kedge_line_job jobs[] = {{.tenants = both, .tenant_count = 2}, of(1), of(2), of(0)};
    uint32_t places[TENANTS] = {3, 0};
    kedge_line_turns(jobs, 4, places);
    ck_assert_uint_eq(jobs[0].turn, 3);
    ck_assert_uint_eq(jobs[1].turn, 1);
    ck_assert_uint_eq(jobs[2].turn, 0);
    ck_assert_uint_eq(jobs[3].turn, 4);
    ck_assert_uint_eq(kedge_line_next(jobs, 4), 2);
}
END_TEST

START_TEST(test_held)
{
    struct kedge_line_job jobs[] = {of(0), of(0), of(1)};
    uint32_t places[TENANTS] = {0, 5};
    jobs[0].is_held = true;
    kedge_line_turns(jobs, 3, places);
    ck_assert_uint_eq(jobs[1].turn, 0); /* what is held is before nobody */
    ck_assert_uint_eq(kedge_line_next(jobs, 3), 1);
    jobs[1].is_held = jobs[2].is_held = true;
    ck_assert_uint_eq(kedge_line_next(jobs, 3), UINT32_MAX);
    ck_assert_uint_eq(kedge_line_next(jobs, 0), UINT32_MAX);
}
END_TEST

START_TEST(test_room)
{
    uint32_t alone = 0, each = 0;
    while (kedge_line_has_room(alone, alone, 100)) {
        alone++;
    }
    while (kedge_line_has_room(each, 2 * each, 99)) {
        each++;
    }
    ck_assert_uint_eq(alone, 50);
    ck_assert_uint_eq(each, 33);
    ck_assert(kedge_line_has_room(0, 99, 100));
    ck_assert(!kedge_line_has_room(0, 100, 100));
    ck_assert(!kedge_line_has_room(0, UINT32_MAX, 100));
}
END_TEST

/* Places given out one by one, each to the tenant that has fewest: the order that qsort gives. */
START_TEST(test_model)
{
    uint32_t s = 7;
    for (int run = 0; run < 2000; run++) {
        struct kedge_line_job jobs[JOBS], sorted[JOBS];
        uint32_t places[TENANTS], taken[TENANTS], count = draw(&s, JOBS + 1);
        bool gone[JOBS] = {false};
        for (uint32_t t = 0; t < TENANTS; t++) {
            places[t] = taken[t] = draw(&s, 10);
        }
        for (uint32_t i = 0; i < count; i++) {
            sorted[i] = jobs[i] = of(draw(&s, TENANTS));
        }
        kedge_line_turns(sorted, count, places);
        ck_assert(count == 0 || kedge_line_next(sorted, count) < count);
        const uint32_t next = kedge_line_next(sorted, count);
        qsort(sorted, count, sizeof sorted[0], kedge_line_compare);
        for (uint32_t k = 0; k < count; k++) {
            uint32_t best = UINT32_MAX;
            for (uint32_t i = 0; i < count; i++) {
                if (!gone[i]
                    && (best == UINT32_MAX || taken[jobs[i].tenants[0]] < taken[jobs[best].tenants[0]])) {
                    best = i;
                }
            }
            ck_assert(k > 0 || best == next);
            ck_assert_uint_eq(sorted[k].order, best);
            taken[jobs[best].tenants[0]]++;
            gone[best] = true;
        }
    }
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("line");
    tcase_add_test(c, test_turns);
    tcase_add_test(c, test_several);
    tcase_add_test(c, test_held);
    tcase_add_test(c, test_room);
    tcase_add_test(c, test_model);
    Suite *s = suite_create("schedule/line");
    suite_add_tcase(s, c);
    return run_suite(s);
}
