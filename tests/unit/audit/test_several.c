/* Records of jobs that have several models without a pre-training: verified and replayed, and what is wrong
 * with them is found. */
#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

typedef void make_fn(const char *dir, const char *keys, enum fx_twist twist);

static const struct {
    make_fn *make;
    const char *keys;
} goods[] = {
    {fx_edges, NULL},
    {fx_edges, "\"server\":\"adam\""},
    {fx_edges, "\"rule\":\"median\""},
    {fx_edges, "\"rule\":\"krum\",\"server\":\"momentum\""},
    {fx_edges, "\"tenant_share_max\":\"0.5\""},
    {fx_choosing, NULL},
    {fx_choosing, "\"mixing\":\"0.1\",\"server\":\"adam\""},
    {fx_nearing, NULL},
    {fx_nearing, "\"mixing\":\"0.05\",\"rule\":\"median\""},
    {fx_choosing, "\"rule\":\"geometric-median\",\"tenant_share_max\":\"0.5\""},
};

START_TEST(test_good)
{
    make_scratch();
    goods[_i].make(at("fx"), goods[_i].keys, FX_NONE);
    for (int replay = 0; replay < 2; replay++) {
        struct kedge_audit_report r =
            run(at("fx"), at("fx/trust.json"), NULL, replay, (struct kedge_audit_options){.threads = 1});
        print_findings(&r);
        ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
        ck_assert_uint_eq(r.finding_count, 0);
        kedge_audit_report_deinit(&r);
    }
    remove_scratch();
}
END_TEST

static const struct {
    const char *what;
    make_fn *make;
    const char *keys;
    enum fx_twist twist;
    bool replay; /* only replay can find it */
    enum kedge_audit_code code;
} wrongs[] = {
    {"edges that meet as equals", fx_edges, NULL, FX_MEET_ALIKE, true, KEDGE_AUDIT_REPLAY_STEP},
    {"an edge that leaves with another model", fx_edges, NULL, FX_MEET_APART, false, KEDGE_AUDIT_STEP},
    {"a meeting before it is time", fx_edges, NULL, FX_MEET_EARLY, false, KEDGE_AUDIT_STEP},
    {"a meeting that is left out", fx_edges, NULL, FX_MEET_NOT, false, KEDGE_AUDIT_STEP},
    {"an update for another tenant's edge", fx_edges, NULL, FX_EDGE_OTHER, false, KEDGE_AUDIT_GROUP},
    {"a group that begins with another model", fx_choosing, NULL, FX_FIRST_MODEL, true,
     KEDGE_AUDIT_REPLAY_INITIAL},
    {"first models that are not stated", fx_choosing, NULL, FX_FIRST_MODELS_LEFT, false, KEDGE_AUDIT_JOB},
    {"another group than the base is of", fx_choosing, NULL, FX_CHOSE_BASE, false, KEDGE_AUDIT_BASE},
    {"a test of a model that was not chosen", fx_choosing, NULL, FX_CHOSE_TEST, false, KEDGE_AUDIT_GROUP},
    {"another group than the nearest model's", fx_nearing, NULL, FX_NEAR_OTHER, false, KEDGE_AUDIT_GROUP},
    {"a site that stays though another is nearer", fx_nearing, NULL, FX_NEAR_STAYS, true,
     KEDGE_AUDIT_REPLAY_NEWCOMER},
    {"a move that nobody states", fx_nearing, NULL, FX_NEAR_SILENT, false, KEDGE_AUDIT_GROUP},
    {"a move by an older update", fx_nearing, NULL, FX_NEAR_OLDER, false, KEDGE_AUDIT_GROUP},
    {"another similarity", fx_nearing, NULL, FX_NEAR_SIMILARITY, true, KEDGE_AUDIT_REPLAY_NEWCOMER},
    {"a group that begins with another model", fx_nearing, NULL, FX_FIRST_MODEL, true,
     KEDGE_AUDIT_REPLAY_INITIAL},
};

START_TEST(test_wrong)
{
    make_scratch();
    wrongs[_i].make(at("fx"), wrongs[_i].keys, wrongs[_i].twist);
    assert_found(wrongs[_i].replay, wrongs[_i].code, wrongs[_i].what);
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-several");
    TCase *t = tcase_create("several");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_good, 0, sizeof goods / sizeof goods[0]);
    tcase_add_loop_test(t, test_wrong, 0, sizeof wrongs / sizeof wrongs[0]);
    suite_add_tcase(s, t);
    return run_suite(s);
}
