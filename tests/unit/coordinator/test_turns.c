/* Jobs that share sites take turns: the core in virtual time, with sites that train for one job after the
 * other and tasks of given lengths. What is asked is how much longer a job takes beside others than alone. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/fixtures/run.h"
#include "tests/unit/coordinator/world.h"

enum { SLOW = 3 };

/* How much longer job 0 takes beside the others. */
static double beside(const struct job *jobs, uint32_t count, uint32_t several, uint32_t slow)
{
    struct job copy[WORLD_JOBS_MAX];
    memcpy(copy, jobs, count * sizeof *jobs);
    uint64_t alone = world_run(copy, 1, 1, several, slow);
    memcpy(copy, jobs, count * sizeof *jobs);
    uint64_t with = world_run(copy, count, 1, several, slow);
    return (double)with / (double)alone;
}

START_TEST(test_short_beside_long)
{
    struct job jobs[] = {{.rounds = 20, .task_ns = 200 * MS, .from_ns = 3000 * MS},
                         {.rounds = 1000, .task_ns = 2000 * MS}};
    ck_assert_double_le(beside(jobs, 2, 1, KEDGE_COORD_NONE), 2.2);
    ck_assert_double_le(beside(jobs, 2, 1, SLOW), 2.2);
    jobs[0].from_ns = 0;
    ck_assert_double_le(beside(jobs, 2, 1, KEDGE_COORD_NONE), 2.2);
    ck_assert_double_le(beside(jobs, 2, 1, SLOW), 2.2);
    jobs[0].task_ns = 20 * MS; /* closing a round takes as long as its tasks */
    jobs[1].task_ns = 200 * MS;
    ck_assert_double_le(beside(jobs, 2, 1, KEDGE_COORD_NONE), 2.2);
}
END_TEST

/* What the short one gets the long one gives, and no more. */
START_TEST(test_long_beside_short)
{
    const struct job jobs[] = {{.rounds = 20, .task_ns = 2000 * MS, .from_ns = 300 * MS},
                               {.rounds = 100000, .task_ns = 200 * MS}};
    ck_assert_double_le(beside(jobs, 2, 1, KEDGE_COORD_NONE), 2.2);
    ck_assert_double_le(beside(jobs, 2, 1, SLOW), 2.2);
}
END_TEST

START_TEST(test_three)
{
    const struct job jobs[] = {{.rounds = 20, .task_ns = 100 * MS, .from_ns = 300 * MS},
                               {.rounds = 1000, .task_ns = 1000 * MS},
                               {.rounds = 1000, .task_ns = 500 * MS}};
    ck_assert_double_le(beside(jobs, 3, 1, KEDGE_COORD_NONE), 3.3);
}
END_TEST

/* One goes on while the other closes its round: nothing of that is lost. Without turns it is 1.65 and 1.09.
 */
START_TEST(test_alike)
{
    struct job jobs[] = {{.rounds = 20, .task_ns = 100 * MS, .from_ns = 300 * MS},
                         {.rounds = 1000, .task_ns = 100 * MS}};
    ck_assert_double_le(beside(jobs, 2, 1, KEDGE_COORD_NONE), 1.7);
    jobs[0].task_ns = jobs[1].task_ns = 20 * MS;
    ck_assert_double_le(beside(jobs, 2, 1, KEDGE_COORD_NONE), 1.15);
}
END_TEST

/* A job waits for no job of lower priority; that one goes on in what is left, and is not shut out. */
START_TEST(test_priority)
{
    struct job jobs[] = {{.rounds = 20, .task_ns = 2000 * MS, .from_ns = 300 * MS, .priority = 2},
                         {.rounds = 100000, .task_ns = 200 * MS, .priority = 1}};
    const double high = beside(jobs, 2, 1, KEDGE_COORD_NONE);
    jobs[0].priority = 0;
    const double low = beside(jobs, 2, 1, KEDGE_COORD_NONE);
    printf("beside short tasks: %.2f times as long with the higher priority, %.2f with the lower\n", high,
           low);
    ck_assert_double_le(high, 1.2);
    ck_assert(low >= 1.7 && low <= 2.2);
}
END_TEST

/* Of two jobs that wait for it a site works first for the one with less left (coordinator/schedule/order.h),
 * whichever of them came first. */
START_TEST(test_less_left)
{
    struct job jobs[] = {{.rounds = 2, .task_ns = 10000 * MS},
                         {.rounds = 50, .task_ns = 100 * MS, .from_ns = 2000 * MS},
                         {.rounds = 3, .task_ns = 100 * MS, .from_ns = 2000 * MS}};
    (void)world_run(jobs, 3, 1, 1, KEDGE_COORD_NONE);
    ck_assert_uint_lt(jobs[2].first_ns, jobs[1].first_ns);
    for (int i = 0; i < 3; i++) {
        jobs[i].closed = jobs[i].tasks = jobs[i].fewest = 0;
    }
    jobs[1].rounds = 3;
    jobs[2].rounds = 50;
    (void)world_run(jobs, 3, 1, 1, KEDGE_COORD_NONE);
    ck_assert_uint_lt(jobs[1].first_ns, jobs[2].first_ns);
}
END_TEST

/* Sites that train for both at once keep neither waiting. */
START_TEST(test_at_once)
{
    const struct job jobs[] = {{.rounds = 20, .task_ns = 2000 * MS, .from_ns = 300 * MS},
                               {.rounds = 100000, .task_ns = 200 * MS}};
    ck_assert_double_le(beside(jobs, 2, 2, KEDGE_COORD_NONE), 1.01);
}
END_TEST

/* A job that comes late does not get back what others had before it came. */
START_TEST(test_late_comer)
{
    struct job jobs[] = {{.rounds = 400, .task_ns = 200 * MS},
                         {.rounds = 1000, .task_ns = 200 * MS, .from_ns = 60000 * MS}};
    uint64_t alone = world_run(jobs, 1, 1, 1, KEDGE_COORD_NONE);
    jobs[0].closed = 0;
    uint64_t late = world_run(jobs, 2, 1, 1, KEDGE_COORD_NONE);
    ck_assert_uint_lt(late - 60000, 2 * (alone - 60000));
}
END_TEST

/* Below its first target a job has four times the share that others have, but each keeps half of an equal
 * one: of two, 0.65 and 0.35. */
START_TEST(test_weight)
{
    struct job jobs[] = {{.rounds = 40, .task_ns = 500 * MS, .from_ns = 300 * MS},
                         {.rounds = 1000, .task_ns = 500 * MS}};
    const double equal = beside(jobs, 2, 1, KEDGE_COORD_NONE);
    jobs[0].weight = 4;
    const double first = beside(jobs, 2, 1, KEDGE_COORD_NONE);
    jobs[0].weight = 0;
    jobs[1].weight = 4;
    const double other = beside(jobs, 2, 1, KEDGE_COORD_NONE);
    printf("of two alike each takes %.2f times as long as alone; with four times the weight %.2f, the other "
           "%.2f\n",
           equal, first, other);
    ck_assert_double_le(first, 1.65); /* 1 / 0.65 = 1.54 */
    ck_assert_double_ge(first, 1.35);
    ck_assert_double_le(other, 3.2); /* 1 / 0.35 = 2.86 */
    ck_assert_double_ge(other, 2.2);
}
END_TEST

/* A deadline that an equal share would miss is kept, and one that leaves time takes nothing from others. */
START_TEST(test_deadline)
{
    struct job jobs[] = {{.rounds = 40, .task_ns = 500 * MS, .from_ns = 300 * MS},
                         {.rounds = 1000, .task_ns = 500 * MS},
                         {.rounds = 1000, .task_ns = 500 * MS}};
    struct job copy[3];
    memcpy(copy, jobs, sizeof jobs);
    const uint64_t alone = world_run(copy, 1, 1, 1, KEDGE_COORD_NONE);
    memcpy(copy, jobs, sizeof jobs);
    const uint64_t equal = world_run(copy, 3, 1, 1, KEDGE_COORD_NONE);
    memcpy(copy, jobs, sizeof jobs);
    copy[0].due_ns = 2 * alone * MS;
    const uint64_t soon = world_run(copy, 3, 1, 1, KEDGE_COORD_NONE);
    memcpy(copy, jobs, sizeof jobs);
    copy[0].due_ns = 10 * alone * MS;
    const uint64_t late = world_run(copy, 3, 1, 1, KEDGE_COORD_NONE);
    printf("alone %" PRIu64 " ms, beside two %" PRIu64 "; due in %" PRIu64 ": %" PRIu64 "; due in %" PRIu64
           ": %" PRIu64 "\n",
           alone, equal, 2 * alone, soon, 10 * alone, late);
    ck_assert_uint_gt(equal, 2 * alone);
    ck_assert_uint_le(soon, 2 * alone);
    ck_assert_uint_ge(late * 10, equal * 9);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("turns");
    tcase_add_test(c, test_short_beside_long);
    tcase_add_test(c, test_long_beside_short);
    tcase_add_test(c, test_three);
    tcase_add_test(c, test_alike);
    tcase_add_test(c, test_less_left);
    tcase_add_test(c, test_priority);
    tcase_add_test(c, test_at_once);
    tcase_add_test(c, test_late_comer);
    tcase_add_test(c, test_weight);
    tcase_add_test(c, test_deadline);
    Suite *s = suite_create("coordinator/turns");
    suite_add_tcase(s, c);
    return run_suite(s);
}
