/* Targets: a job ends early exactly where its evaluations show that it may, says after each round what they
 * came to, and releases what has reached the first one. In the fixtures 15 of 20 samples are right in every
 * round. */
#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

static bool is_good(const char *keys, enum fx_twist twist, enum fx_targets_lie lie)
{
    const struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    fx_targets_lie = lie;
    fx_ungrouped(at("fx"), keys, twist);
    fx_targets_lie = FX_TARGETS_HONEST;
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    const bool is_good = r.verdict == KEDGE_AUDIT_YES;
    ck_assert(is_good || has_code(&r, KEDGE_AUDIT_TARGET) || has_code(&r, KEDGE_AUDIT_JOB));
    kedge_audit_report_deinit(&r);
    remove_scratch();
    return is_good;
}

static const struct {
    const char *keys;
    bool ends_early, is_good;
} honest[] = {
    {"\"targets\":[0.75],\"hold\":1", true, true},   /* to the last sample */
    {"\"targets\":[0.75],\"hold\":1", false, false}, /* it had to end after round 1 */
    {"\"targets\":[0.750001],\"hold\":1", false, true},
    {"\"targets\":[0.750001],\"hold\":1", true, false}, /* it may not end yet */
    {"\"targets\":[0.75],\"hold\":2", true, false},
    {"\"targets\":[0.75],\"hold\":2", false, true},
    {"\"targets\":[0.5,0.75],\"hold\":1", true, true},
    {"\"targets\":[0.5,0.9],\"hold\":1", false, true},
    {"\"targets\":[0.5,0.9],\"hold\":1", true, false},
    {"\"targets\":[0.75],\"hold\":1,\"quorum\":2", true, false}, /* one site's word is too few */
    {"\"targets\":[0.75],\"hold\":1,\"quorum\":2", false, true},
    {"\"targets\":[0.1],\"hold\":1,\"evaluate_every\":2", false,
     true}, /* round 1 is not evaluated by the job */
    {"\"enrol_within_s\":86400", true, false},
};

START_TEST(test_ends)
{
    ck_assert(is_good(honest[_i].keys, honest[_i].ends_early ? FX_CLOSED_EARLY : FX_NONE, FX_TARGETS_HONEST)
              == honest[_i].is_good);
}
END_TEST

static const struct {
    const char *keys;
    enum fx_targets_lie lie;
} lies[] = {
    {"\"targets\":[0.5,0.9],\"hold\":1", FX_TARGETS_MORE_RIGHT},
    {"\"targets\":[0.5,0.9],\"hold\":1", FX_TARGETS_FEWER_SAMPLES},
    {"\"targets\":[0.5,0.9],\"hold\":1", FX_TARGETS_MORE_SITES},
    {"\"targets\":[0.5,0.9],\"hold\":2", FX_TARGETS_HELD_LONGER},
    {"\"targets\":[0.5,0.9],\"hold\":1", FX_TARGETS_NOT_REACHED},
    {"\"targets\":[0.5,0.9],\"hold\":1", FX_TARGETS_UNTOLD},
    {"\"targets\":[0.5,0.9],\"hold\":1", FX_TARGETS_NO_RELEASE},
    {"\"targets\":[0.8,0.9],\"hold\":1", FX_TARGETS_UNDUE_RELEASE},
    {"\"targets\":[0.5,0.9],\"hold\":1", FX_TARGETS_OTHER_MODEL},
};

START_TEST(test_lies)
{
    ck_assert(!is_good(lies[_i].keys, FX_NONE, lies[_i].lie));
    ck_assert(is_good(lies[_i].keys, FX_NONE, FX_TARGETS_HONEST));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-targets");
    TCase *t = tcase_create("targets");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_ends, 0, sizeof honest / sizeof honest[0]);
    tcase_add_loop_test(t, test_lies, 0, sizeof lies / sizeof lies[0]);
    suite_add_tcase(s, t);
    return run_suite(s);
}
