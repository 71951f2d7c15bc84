/* Trainings beside each other: the meters' joules are divided between them, none is counted twice, and
 * budgets are kept for the sum. In energy_world.h's world, with processor times of trainers that the test
 * sets. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/base/check.h"
#include "tests/unit/client/energy_world.h"

enum { TRAINER = 1000 }; /* process of the first work's trainer */
static const struct device machine = {.t0 = 0.01, .mu = 400, .phi = 100, .idle = 10, .most = 200, .half = 8};
static double cpu_s[KEDGE_SITE_WORKS_MAX];
static struct kedge_energy_plan plans[KEDGE_SITE_WORKS_MAX];

/* NOLINTBEGIN(cert-dcl51-cpp,bugprone-reserved-identifier): the linker's own names for what is replaced */
uint64_t __wrap_kedge_sys_process_cpu(long pid);
uint64_t __wrap_kedge_sys_process_cpu(long pid)
{
    ck_assert(pid >= TRAINER && pid < TRAINER + KEDGE_SITE_WORKS_MAX);
    return (uint64_t)(cpu_s[pid - TRAINER] * 1e9);
}
/* NOLINTEND(cert-dcl51-cpp,bugprone-reserved-identifier) */

static void set_up(const char *energy)
{
    begin_world(&machine, energy);
    memset(cpu_s, 0, sizeof cpu_s);
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        host.works[i] = host.works[0];
        host.works[i].index = i;
        host.works[i].trainer.process.pid = TRAINER + (pid_t)i;
        cpu_s[i] = 50 * i; /* of former tasks */
    }
}

static int begin(uint32_t i)
{
    struct kedge_site_task t = {.kind = KEDGE_SITE_TRAIN, .round = 1, .remaining_ns = 30000000000u};
    struct kedge_diag d = {.text = ""};
    t.job.s[0] = (char)('a' + i);
    return kedge_client_energy_begin(&host.works[i], &t, &plans[i], &d);
}

static struct kedge_joules end(uint32_t i)
{
    const struct kedge_metrics m = {.samples = 100, .steps = 10};
    struct kedge_diag d = {.text = ""};
    kedge_client_energy_end(&host.works[i], &plans[i], &m, KEDGE_OK, &d);
    return plans[i].joules;
}

/* So many seconds at 100 W; the works' trainers use so much of the processors. */
static void run(double seconds, double a, double b)
{
    cpu_s[0] += a;
    cpu_s[1] += b;
    pass(seconds, 100);
    for (uint32_t i = 0; i < 2; i++) {
        kedge_client_energy_tick(&host.works[i]);
    }
}

START_TEST(parts_make_the_whole)
{
    set_up("");
    const double before = world.joules;
    ck_assert_int_eq(begin(0), KEDGE_OK);
    run(10, 10, 0);
    ck_assert_int_eq(begin(1), KEDGE_OK);
    run(10, 8, 2);
    const struct kedge_joules b = end(1); /* 2 of 20 s of the span's 2000 J */
    run(10, 5, 0);
    const struct kedge_joules a = end(0); /* the rest of it, and 1000 J more */
    ck_assert_double_eq_tol(b.joules, 200, 1.5);
    ck_assert_double_eq_tol(a.joules, 2800, 1.5);
    ck_assert_double_eq_tol(a.joules + b.joules, world.joules - before, 2);
    ck_assert_int_eq((int)a.quality, (int)KEDGE_QUALITY_MODELLED);
    ck_assert_int_eq((int)b.quality, (int)KEDGE_QUALITY_MODELLED);
    ck_assert(b.low <= 141 && b.high >= 259);
    ck_assert_ptr_nonnull(strstr(plans[0].energy_how, "part of several trainings"));
    ck_assert_int_eq(begin(0), KEDGE_OK); /* alone again: as measured */
    run(10, 10, 0);
    const struct kedge_joules alone = end(0);
    ck_assert_int_eq((int)alone.quality, (int)KEDGE_QUALITY_MEASURED);
    ck_assert_double_eq_tol(alone.joules, 1000, 1.5);
    end_world();
}
END_TEST

/* One whose trainer has ended, and was looked at before: what it had used then is its own, and not the
 * other's. */
START_TEST(a_trainer_that_ends)
{
    set_up("");
    ck_assert_int_eq(begin(0), KEDGE_OK);
    ck_assert_int_eq(begin(1), KEDGE_OK);
    run(10, 6, 2);
    host.works[1].trainer.process.pid = TRAINER + 2; /* stopped */
    cpu_s[1] = cpu_s[2] = 0;
    ck_assert_double_eq_tol(end(1).joules, 250, 1.5);
    ck_assert_double_eq_tol(end(0).joules, 750, 1.5);
    host.works[1].trainer.process.pid = TRAINER + 1; /* the same, and the other one ends first */
    ck_assert_int_eq(begin(0), KEDGE_OK);
    ck_assert_int_eq(begin(1), KEDGE_OK);
    run(10, 6, 2);
    cpu_s[1] = 0;
    ck_assert_double_eq_tol(end(0).joules, 750, 1.5);
    ck_assert_double_eq_tol(end(1).joules, 250, 1.5);
    end_world();
}
END_TEST

/* A trainer that was started within the task, and two that use no processor time. */
START_TEST(odd_processor_times)
{
    set_up("");
    host.works[1].trainer.process.pid = TRAINER + 3;
    ck_assert_int_eq(begin(0), KEDGE_OK);
    ck_assert_int_eq(begin(1), KEDGE_OK);
    host.works[1].trainer.process.pid = TRAINER + 1; /* had 0 s when it began */
    cpu_s[1] = 0;
    run(10, 6, 2);
    ck_assert_double_eq_tol(end(1).joules, 250, 1.5);
    ck_assert_double_eq_tol(end(0).joules, 750, 1.5);
    ck_assert_int_eq(begin(0), KEDGE_OK);
    ck_assert_int_eq(begin(1), KEDGE_OK);
    run(10, 0, 0);
    const double one = end(0).joules, other = end(1).joules;
    ck_assert_double_eq_tol(one, 500, 1.5);
    ck_assert_double_eq_tol(one + other, 1000, 2.5);
    end_world();
}
END_TEST

/* A day's joules are reserved for the sum: what does not fit beside others comes again later. */
START_TEST(a_day_is_for_all)
{
    static const char rules[] = "\"joules_per_day\": 13000, \"power_idle_w\": 5, \"power_max_w\": 200";
    set_up(rules);
    spec.local_epochs = 1000000;          /* as long as the round lasts, however small the data are */
    ck_assert_int_eq(begin(0), KEDGE_OK); /* 200 W for 30 s */
    ck_assert_int_eq(begin(1), KEDGE_OK);
    ck_assert_int_eq(begin(2), KEDGE_E_BUSY);
    run(10, 6, 4);
    (void)end(0);
    (void)end(1);
    ck_assert_uint_eq(host.energy->budget.open_count, 0);
    ck_assert_double_eq_tol(host.energy->budget.day_joules, 1000, 3);
    ck_assert_int_eq(begin(2), KEDGE_OK);
    close_site(); /* killed: what was reserved for it is used */
    open_site(rules);
    ck_assert_double_eq_tol(host.energy->budget.day_joules, 7000, 3);
    end_world();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {parts_make_the_whole, a_trainer_that_ends, odd_processor_times,
                                  a_day_is_for_all};
    return run_suite("energy beside", tests, sizeof tests / sizeof tests[0]);
}
