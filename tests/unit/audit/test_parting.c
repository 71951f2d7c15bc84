/* Records of jobs whose groups are cut by what their sites train: verified and replayed, and what is wrong
 * with them is found. */
#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

static const struct {
    const char *keys;
    uint64_t decisions;
} goods[] = {
    /* a first model; 4 selections; aggregates of 1, 1, 2 and 3 groups; cuts of the last three rounds */
    {NULL, 1 + 4 + 7 + 6},
    {"\"tenant_share_max\":\"0.5\"", 1 + 4 + 7 + 6},
    {"\"server\":\"momentum\"", 1 + 4 + 7 + 6 + 7},
};

START_TEST(test_good)
{
    make_scratch();
    fx_parting(at("fx"), goods[_i].keys, FX_NONE);
    for (int replay = 0; replay < 2; replay++) {
        struct kedge_audit_report r =
            run(at("fx"), at("fx/trust.json"), NULL, replay, (struct kedge_audit_options){.threads = 1});
        print_findings(&r);
        ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
        ck_assert_uint_eq(r.finding_count, 0);
        ck_assert_msg(!replay || r.counts.decisions == goods[_i].decisions, "%llu decisions",
                      (unsigned long long)r.counts.decisions);
        kedge_audit_report_deinit(&r);
    }
    remove_scratch();
}
END_TEST

/* A tenant's own copy: its sites' groups are judged without the other's ledger. */
START_TEST(test_copy)
{
    make_scratch();
    fx_parting(at("fx"), NULL, FX_NONE);
    fx_replica(at("fx"), "org-a");
    const struct kedge_id id = {"org-a"};
    struct kedge_audit_options options = {.threads = 1, .tenants = &id, .tenant_count = 1};
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    print_findings(&r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

static const struct {
    const char *what;
    enum fx_twist twist;
    bool replay; /* only replay can find it */
    enum kedge_audit_code code;
} wrongs[] = {
    {"a cut that is left out", FX_PART_NOT, true, KEDGE_AUDIT_REPLAY_GROUPING},
    {"a cut before it is time", FX_PART_EARLY, false, KEDGE_AUDIT_STEP},
    {"a site in the wrong part, and its statement with it", FX_PART_MEMBER, true,
     KEDGE_AUDIT_REPLAY_GROUPING},
    {"a site that goes without a word", FX_PART_SILENT, false, KEDGE_AUDIT_ROW},
    {"a site that is told to go, and its row says that it stays", FX_PART_OTHER, false, KEDGE_AUDIT_ROW},
    {"a site that goes by another update", FX_PART_UPDATE, false, KEDGE_AUDIT_GROUP},
    {"a part with a model of its own", FX_PART_MODEL, false, KEDGE_AUDIT_STEP},
};

START_TEST(test_wrong)
{
    make_scratch();
    fx_parting(at("fx"), NULL, wrongs[_i].twist);
    assert_found(wrongs[_i].replay, wrongs[_i].code, wrongs[_i].what);
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-parting");
    TCase *t = tcase_create("parting");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_good, 0, sizeof goods / sizeof goods[0]);
    tcase_add_test(t, test_copy);
    tcase_add_loop_test(t, test_wrong, 0, sizeof wrongs / sizeof wrongs[0]);
    suite_add_tcase(s, t);
    return run_suite(s);
}
