/* Which trainings run beside each other. */
#include <check.h>
#include <string.h>

#include "client/daemon/admission.h"
#include "tests/fixtures/run.h"

static const struct kedge_admission_limits limits = {
    .jobs_at_once = 3, .threads = 7, .gpu_at_once = 1, .memory_all = 900};

START_TEST(each_has_its_part)
{
    struct kedge_admission_limits l = limits;
    ck_assert_uint_eq(kedge_admission_threads(&l), 2);
    ck_assert_uint_eq(kedge_admission_memory(&l, 0), 300);
    ck_assert_uint_eq(kedge_admission_memory(&l, 500), 500);
    l.threads = 2;
    ck_assert_uint_eq(kedge_admission_threads(&l), 1);
    l = (struct kedge_admission_limits){.jobs_at_once = 1, .threads = 7, .gpu_at_once = 1};
    ck_assert_uint_eq(kedge_admission_threads(&l), 7); /* one at a time has all, and no limit but its own */
    ck_assert_uint_eq(kedge_admission_memory(&l, 0), 0);
}
END_TEST

static const struct {
    struct kedge_admission_ask ask, running[3];
    enum kedge_admission answer;
    const char *why;
} rows[] = {
    {{.job = {"n"}, .threads = 9, .memory = 900, .gpu = true}, {{.threads = 0}}, KEDGE_ADMIT, ""}, /* alone */
    {{.job = {"n"}, .memory = 901},
     {{.threads = 0}},
     KEDGE_ADMIT_NEVER,
     "its trainer may take 901 bytes, all together 900 (policy.json: memory_all)"},
    {{.job = {"n"}, .threads = 2, .memory = 300},
     {{.job = {"a"}, .threads = 2, .memory = 300}, {.job = {"b"}, .threads = 2, .memory = 300}},
     KEDGE_ADMIT,
     ""},
    {{.job = {"n"}, .threads = 2, .memory = 301},
     {{.job = {"a"}, .threads = 2, .memory = 300}, {.job = {"b"}, .threads = 2, .memory = 300}},
     KEDGE_ADMIT_LATER,
     "memory: 600 of 900 bytes are in use by job b (memory_all)"},
    {{.job = {"n"}, .threads = 2, .memory = 1},
     {{.job = {"a"}, .memory = UINT64_MAX}, {.job = {"b"}, .memory = UINT64_MAX}},
     KEDGE_ADMIT_LATER,
     "memory: 18446744073709551615 of 900 bytes are in use by job b (memory_all)"},
    {{.job = {"n"}, .threads = 3},
     {{.job = {"a"}, .threads = 5}},
     KEDGE_ADMIT_LATER,
     "threads: 5 of 7 are in use by job a"},
    {{.job = {"n"}, .threads = 8},
     {{.job = {"a"}}},
     KEDGE_ADMIT_LATER,
     "threads: 0 of 7 are in use by job a"},
    {{.job = {"n"}, .gpu = true},
     {{.job = {"a"}, .gpu = true}},
     KEDGE_ADMIT_LATER,
     "the GPU is in use by job a (gpu_at_once)"},
    {{.job = {"n"}}, {{.job = {"a"}, .gpu = true}}, KEDGE_ADMIT, ""},
    {{.job = {"n"}},
     {{.job = {"a"}}, {.job = {"b"}}, {.job = {"c"}}},
     KEDGE_ADMIT_LATER,
     "3 of 3 trainings run (jobs_at_once)"},
};

START_TEST(what_does_not_fit_waits)
{
    char why[KEDGE_ADMISSION_TEXT_MAX];
    enum kedge_admission a = kedge_admission_decide(&limits, &rows[_i].ask, rows[_i].running, 3, why);
    ck_assert_str_eq(why, rows[_i].why);
    ck_assert_int_eq((int)a, (int)rows[_i].answer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client/admission");
    TCase *t = tcase_create("admission");
    tcase_add_test(t, each_has_its_part);
    tcase_add_loop_test(t, what_does_not_fit_waits, 0, sizeof rows / sizeof rows[0]);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
