/* Jobs whose rounds take from so many to so many sites: what stands idle of six sites beside two jobs, how
 * soon the second one begins, and over drawn workloads that a round has what it needs at least or does not
 * open, and that none waits for ever. KEDGE_LONG=1 draws 100,000 workloads and 10,000 pairs. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "tests/fixtures/run.h"
#include "tests/unit/coordinator/world.h"

enum { ROUNDS = 50 };

/* For how long sites were at work over how long there were six. */
static double spread(const struct job *jobs, uint32_t count, uint64_t took_ms)
{
    uint64_t work_ms = 0;
    for (uint32_t i = 0; i < count; i++) {
        work_ms += jobs[i].tasks * (jobs[i].task_ns / MS);
    }
    return (double)took_ms * WORLD_SITES / (double)work_ms;
}

/* Two jobs that want four sites each, of six. With four at least one waits while two sites stand idle; from
 * one to four, both go on. The fluid bound is the time in which six sites do as much work, none of them ever
 * idle. */
START_TEST(test_two_on_six)
{
    struct job gang[] = {
        {.rounds = ROUNDS, .task_ns = 10000 * MS, .least = 4, .most = 4},
        {.rounds = ROUNDS, .task_ns = 10000 * MS, .least = 4, .most = 4, .from_ns = 1500 * MS}};
    const double of_gangs = spread(gang, 2, world_run(gang, 2, 2, 1, KEDGE_COORD_NONE));
    struct job elastic[] = {
        {.rounds = ROUNDS, .task_ns = 10000 * MS, .least = 1, .most = 4},
        {.rounds = ROUNDS, .task_ns = 10000 * MS, .least = 1, .most = 4, .from_ns = 1500 * MS}};
    const double of_ranges = spread(elastic, 2, world_run(elastic, 2, 2, 1, KEDGE_COORD_NONE));
    printf("two jobs of four on six sites: %.3f of the fluid bound as gangs, %.3f with ranges; the second "
           "one's first "
           "task after %.0f ms\n",
           of_gangs, of_ranges, (double)(elastic[1].first_ns - elastic[0].first_ns) / (double)MS - 1500);
    ck_assert_uint_eq(gang[0].fewest, 4);
    ck_assert_uint_eq(gang[1].fewest, 4);
    ck_assert_double_ge(of_gangs, 1.4);
    ck_assert_double_le(of_ranges, 1.05);
    ck_assert_uint_le(elastic[1].first_ns - elastic[0].first_ns, 2500 * MS);
}
END_TEST

/* Job 2 has an open round that nobody works on, for its sites were busy and it was halted: they are free. */
START_TEST(test_halted)
{
    struct job jobs[] = {{.rounds = 3, .task_ns = 100 * MS, .from_ns = 3000 * MS, .least = 2, .most = 6},
                         {.rounds = 1, .task_ns = 10000 * MS},
                         {.rounds = 9, .task_ns = 100 * MS, .from_ns = 1000 * MS, .halt_ns = 2000 * MS}};
    (void)world_run(jobs, 3, 1, 1, KEDGE_COORD_NONE);
    ck_assert_uint_eq(jobs[0].closed, 3);
    ck_assert_uint_eq(jobs[2].tasks, 0);
}
END_TEST

static uint32_t draws(uint32_t few, uint32_t many)
{
    const char *is_long = getenv("KEDGE_LONG");
    return is_long && strcmp(is_long, "1") == 0 ? many : few;
}

static uint32_t one_of(struct kedge_rng *rng, uint32_t least, uint32_t most)
{
    return least + (uint32_t)kedge_rng_below(rng, most - least + 1);
}

static void draw(struct kedge_rng *rng, struct job *ret)
{
    const uint32_t least = one_of(rng, 1, WORLD_SITES);
    *ret = (struct job){.rounds = one_of(rng, 1, 4),
                        .task_ns = one_of(rng, 1, 2000) * MS,
                        .from_ns = one_of(rng, 0, 3000) * MS,
                        .least = least,
                        .most = one_of(rng, least, WORLD_SITES)};
}

/* world_run fails where nothing goes on before all have ended. */
static void run_drawn(struct kedge_rng *rng, uint32_t count)
{
    struct job jobs[WORLD_JOBS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        draw(rng, &jobs[i]);
    }
    (void)world_run(jobs, count, count, one_of(rng, 1, 8) == 1 ? 2 : 1, KEDGE_COORD_NONE);
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_uint_ge(jobs[i].fewest, jobs[i].least);
    }
}

START_TEST(test_drawn)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 4, 0, 0, 0);
    for (uint32_t i = draws(300, 100000); i > 0; i--) {
        run_drawn(&rng, one_of(&rng, 1, WORLD_JOBS_MAX));
    }
}
END_TEST

/* Both want all sites, or as many as leave too few for the other. */
START_TEST(test_pairs)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 5, 0, 0, 0);
    for (uint32_t i = draws(300, 10000); i > 0; i--) {
        struct job jobs[2];
        for (uint32_t k = 0; k < 2; k++) {
            draw(&rng, &jobs[k]);
            jobs[k].least = jobs[k].most = one_of(&rng, 4, WORLD_SITES);
            jobs[k].from_ns = one_of(&rng, 0, 2) * MS;
        }
        (void)world_run(jobs, 2, 2, 1, KEDGE_COORD_NONE);
        ck_assert_uint_eq(jobs[0].fewest, jobs[0].most);
        ck_assert_uint_eq(jobs[1].fewest, jobs[1].most);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coordinator-elastic");
    TCase *t = tcase_create("elastic");
    tcase_set_timeout(t, 3600);
    tcase_add_test(t, test_two_on_six);
    tcase_add_test(t, test_halted);
    tcase_add_test(t, test_drawn);
    tcase_add_test(t, test_pairs);
    suite_add_tcase(s, t);
    return run_suite(s);
}
