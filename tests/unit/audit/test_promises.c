/* Deadlines: who is admitted and who is refused follows from the record before it. In the fixtures a job of
 * two rounds runs; after the first one "early" is decided on, and "later" beside both. */
#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

#define KEYS "\"deadline_s\":340,\"round_s\":60"

static struct kedge_audit_report made(const char *keys, enum fx_twist twist, enum fx_promise_lie lie)
{
    const struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    fx_promise_lie = lie;
    fx_clock(UINT64_C(1795780980123));
    fx_ungrouped(at("fx"), keys, twist);
    fx_clock(0);
    fx_promise_lie = FX_PROMISE_HONEST;
    return run(at("fx"), at("fx/trust.json"), NULL, false, options);
}

static bool is_good(const char *keys, enum fx_twist twist, enum fx_promise_lie lie)
{
    struct kedge_audit_report r = made(keys, twist, lie);
    const bool is_good = r.verdict == KEDGE_AUDIT_YES;
    if (!is_good) {
        print_findings(&r);
    }
    kedge_audit_report_deinit(&r);
    remove_scratch();
    return is_good;
}

static void convicts(enum fx_promise_lie lie)
{
    struct kedge_audit_report r = made(KEYS, FX_NONE, lie);
    print_findings(&r);
    ck_assert_msg(has_code(&r, KEDGE_AUDIT_JOB), "lie %d", (int)lie);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_NO);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}

START_TEST(test_honest)
{
    const enum fx_promise_lie honest = FX_PROMISE_HONEST;
    ck_assert(is_good(KEYS, FX_NONE, honest));
    ck_assert(is_good(KEYS, FX_DRAWN_AGAIN, honest)); /* a round's time begins with its first opening */
    ck_assert(is_good("\"deadline_s\":31536000", FX_NONE,
                      honest)); /* all are admitted; nobody says how long rounds take */
}
END_TEST

/* What was promised counts as it was promised, whatever is opened by that name. */
START_TEST(test_other_spec)
{
    ck_assert(is_good(NULL, FX_NONE, FX_PROMISE_OTHER_SPEC));
}
END_TEST

START_TEST(test_lies)
{
    for (enum fx_promise_lie lie = FX_PROMISE_HONEST + 1; lie <= FX_PROMISE_UNSAID; lie++) {
        convicts(lie);
    }
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("promises");
    tcase_add_test(c, test_honest);
    tcase_add_test(c, test_other_spec);
    tcase_add_test(c, test_lies);
    tcase_set_timeout(c, 120);
    Suite *s = suite_create("audit/promises");
    suite_add_tcase(s, c);
    return run_suite(s);
}
