/* Records of jobs with strategies, robust rules and server optimisers: verified and replayed, whatever the
 * number of threads and the instruction set; and what is wrong with them is found. */
#include "aggregation/simd.h"
#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

#define COMPACT(kind, more) "\"compression\":{\"kind\":\"" kind "\"" more "}"
#define SPARSE COMPACT("topk-int8", ",\"share\":\"0.2\"")

static const char *const keys[] = {
    "\"strategy\":\"fedprox\"",
    "\"strategy\":\"fednova\"",
    "\"strategy\":\"fednova\",\"tenant_share_max\":\"0.5\"",
    "\"strategy\":\"qffl\"",
    "\"strategy\":\"fedavgm\"",
    "\"strategy\":\"fedadagrad\"",
    "\"strategy\":\"fedyogi\"",
    "\"strategy\":\"fedadam\"",
    "\"rule\":\"median\"",
    "\"rule\":\"median\",\"tenant_share_max\":\"0.5\"",
    "\"rule\":\"trimmed-mean\",\"rule_fraction\":\"0.34\"",
    "\"rule\":\"krum\"",
    "\"rule\":\"krum\",\"rule_fraction\":\"0.4\"", /* too few updates: the median runs */
    "\"rule\":\"multi-krum\"",
    "\"rule\":\"bulyan\"",
    "\"rule\":\"geometric-median\"",
    "\"rule\":\"norm-clipping\"",
    "\"rule\":\"norm-clipping\",\"rule_bound\":\"0.01\",\"strategy\":\"fednova\"",
    "\"rule\":\"trimmed-mean\",\"strategy\":\"fedadam\"",
    COMPACT("topk-int8", ",\"share\":\"0.2\""),
    COMPACT("topk", ",\"share\":\"0.5\"") ",\"strategy\":\"fednova\",\"tenant_share_max\":\"0.5\"",
    COMPACT("int8", "") ",\"rule\":\"multi-krum\"",
    COMPACT("bf16", "") ",\"rule\":\"norm-clipping\",\"server\":\"adam\"",
    "\"rule\":\"multi-krum\",\"server\":\"yogi\",\"options\":{\"server_lr\":\"0.5\",\"settle\":\"2\"}",
};
enum { KEYS = sizeof keys / sizeof keys[0] };

START_TEST(test_clean)
{
    struct kedge_audit_options options = {.threads = 1};
    struct kedge_hash first = {{0}};
    make_scratch();
    fx_with(at("fx"), keys[_i], FX_NONE);
    for (enum kedge_simd simd = KEDGE_SIMD_SCALAR; simd <= KEDGE_SIMD_LAST; simd++) {
        if (kedge_simd_set(simd) != KEDGE_OK) {
            continue;
        }
        struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, true, options);
        print_findings(&r);
        ck_assert_msg(r.verdict == KEDGE_AUDIT_YES && r.finding_count == 0, "%s", keys[_i]);
        ck_assert_uint_ge(r.counts.decisions, 25);
        first = simd == KEDGE_SIMD_SCALAR ? r.results : first;
        ck_assert_msg(kedge_hash_eq(&r.results, &first), "%s: %s", keys[_i], kedge_simd_name(simd));
        kedge_audit_report_deinit(&r);
    }
    ck_assert_int_eq(kedge_simd_set(KEDGE_SIMD_AUTO), KEDGE_OK);
    remove_scratch();
}
END_TEST

static const struct {
    const char *keys;
    enum fx_twist twist;
    bool replay_only;
    enum kedge_audit_code code;
} twists[] = {
    {"\"strategy\":\"fednova\"", FX_WEIGHED, false, KEDGE_AUDIT_ROW},
    {"\"strategy\":\"qffl\"", FX_WEIGHED, true, KEDGE_AUDIT_REPLAY_AGGREGATE},
    {"\"rule\":\"median\"", FX_WEIGHED, false, KEDGE_AUDIT_ROW},
    {"\"rule\":\"geometric-median\"", FX_WEIGHED, true, KEDGE_AUDIT_REPLAY_AGGREGATE},
    {"\"rule\":\"norm-clipping\"", FX_WEIGHED, true, KEDGE_AUDIT_REPLAY_AGGREGATE},
    {"\"rule\":\"geometric-median\"", FX_AGGREGATE, true, KEDGE_AUDIT_REPLAY_AGGREGATE},
    {"\"rule\":\"median\"", FX_RULE, false, KEDGE_AUDIT_AGGREGATE},
    {"\"rule\":\"krum\",\"rule_fraction\":\"0.4\"", FX_RULE_ASKED, false, KEDGE_AUDIT_AGGREGATE},
    {"\"strategy\":\"fedadam\"", FX_SERVER, true, KEDGE_AUDIT_REPLAY_STEP},
    {"\"strategy\":\"fedavgm\"", FX_STATE_FORGOTTEN, true, KEDGE_AUDIT_REPLAY_STEP},
    {"\"strategy\":\"fedadam\"", FX_STATE_BEFORE, false, KEDGE_AUDIT_STEP},
    {"\"strategy\":\"fedadam\"", FX_MIXING, true, KEDGE_AUDIT_REPLAY_STEP},
    {SPARSE, FX_COMPACT_WHOLE, false, KEDGE_AUDIT_BLOB_CONTENT},
    {SPARSE, FX_COMPACT_MORE, false, KEDGE_AUDIT_BLOB_CONTENT},
    {SPARSE, FX_COMPACT_TAIL, false, KEDGE_AUDIT_BLOB_CONTENT},
    {SPARSE, FX_COMPACT_KIND, false, KEDGE_AUDIT_BLOB_CONTENT},
    {SPARSE, FX_TOO_LARGE, false, KEDGE_AUDIT_BLOB_CONTENT},
    {SPARSE, FX_AGGREGATE, true, KEDGE_AUDIT_REPLAY_AGGREGATE},
};

/* Site s1 of org-a judges the others: those of its parity pull as it does. */
#define ROOT "\"rule\":\"root-trust\",\"root_site\":\"org-a/s1\""

/* Updates that carry control variates, of four sites of which three take part in a round. */
#define SCAFFOLD "\"strategy\":\"scaffold\",\"control_sites\":4"

/* Sites name the classes together. */
#define NAMING "\"classes\":\"federated\""

/* Sites are drawn by what they say of their batteries. */
#define CHARGED "\"selection\":\"charged\""

/* A part of the model is trained over a frozen base. */
#define ADAPTERS \
    "\"strategy\":\"adapters\",\"share\":[\"0.weight\"],\"initial_model\":\"" FX_DIGEST_OF_BASE "\""

static const char *const alone[] = {ROOT,     ROOT ",\"tenant_share_max\":\"0.5\"",
                                    SCAFFOLD, SCAFFOLD ",\"options\":{\"server_lr\":\"0.5\"}",
                                    CHARGED,  NAMING,
                                    ADAPTERS, ADAPTERS ",\"server\":\"momentum\""};

START_TEST(test_alone)
{
    struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    fx_ungrouped(at("fx"), alone[_i], FX_NONE);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, true, options);
    print_findings(&r);
    ck_assert(r.verdict == KEDGE_AUDIT_YES && r.finding_count == 0);
    ck_assert_uint_ge(r.counts.decisions, 5);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

static const struct {
    const char *keys;
    enum fx_twist twist;
    bool replay_only;
    enum kedge_audit_code code;
    const char *text;
} alone_twists[] = {
    {ROOT, FX_ROOT_UNSELECTED, false, KEDGE_AUDIT_NOT_SELECTED, "the root site \"s1\" of \"org-a\""},
    {ROOT, FX_ROOT_MISSING, false, KEDGE_AUDIT_ROW, "expected one of the root site \"org-a/s1\""},
    {ROOT, FX_ROOT_COUNTS, true, KEDGE_AUDIT_REPLAY_AGGREGATE, "the updates give 0"},
    {ROOT, FX_WEIGHED, true, KEDGE_AUDIT_REPLAY_AGGREGATE, "is recorded with weight"},
    {ROOT, FX_SELECTION, true, KEDGE_AUDIT_REPLAY_SELECTION, "the seed says otherwise"},
    {CHARGED, FX_SELECTION, true, KEDGE_AUDIT_REPLAY_SELECTION, "the seed says otherwise"},
    {CHARGED, FX_DRAW_WEIGHT, false, KEDGE_AUDIT_LIST, "is no candidate's"},
    {SCAFFOLD, FX_DRAW_WEIGHT, false, KEDGE_AUDIT_LIST, "is no candidate's"},
    {NAMING, FX_CLASSES_LEFT_OUT, false, KEDGE_AUDIT_STEP, "are not those that the updates of round 1 state"},
    {NAMING, FX_CLASSES_ADDED, false, KEDGE_AUDIT_STEP, "are not those that the updates of round 1 state"},
    {NAMING, FX_CLASSES_UNSTATED, false, KEDGE_AUDIT_STEP, "names of classes are missing"},
    {NAMING, FX_CLASSES_LATE, false, KEDGE_AUDIT_UPDATE, "stated where the round asks for none"},
    {CHARGED, FX_CLASSES_LATE, false, KEDGE_AUDIT_UPDATE, "stated where the round asks for none"},
    {NAMING, FX_CLASSES_MANY, false, KEDGE_AUDIT_UPDATE, "4 names of classes, but the model has 3 outputs"},
    {NAMING, FX_CLASSES_SILENT, false, KEDGE_AUDIT_UPDATE, "names of classes are missing"},
    {SCAFFOLD, FX_CONTROL_SITES, true, KEDGE_AUDIT_REPLAY_STEP, "the inputs give"},
    {SCAFFOLD, FX_CONTROL_LEFT_OUT, true, KEDGE_AUDIT_REPLAY_STEP, "the inputs give"},
    {SCAFFOLD ",\"options\":{\"server_lr\":\"0.5\"}", FX_SERVER, true, KEDGE_AUDIT_REPLAY_STEP,
     "the inputs give"},
    {SCAFFOLD, FX_STATE_FORGOTTEN, true, KEDGE_AUDIT_REPLAY_STEP, "the inputs give"},
    {SCAFFOLD, FX_STATE_BEFORE, false, KEDGE_AUDIT_STEP, "does not go on from the step before"},
    {SCAFFOLD, FX_WEIGHED, false, KEDGE_AUDIT_ROW, "its weight is not what its statement gives"},
    {SCAFFOLD, FX_TOO_LARGE, false, KEDGE_AUDIT_BLOB_CONTENT, ""},
    {ADAPTERS, FX_BASE, false, KEDGE_AUDIT_JOB, "the base is not the spec's"},
    {CHARGED, FX_BASE, false, KEDGE_AUDIT_JOB, "states a base, and its spec has none"},
    {ADAPTERS, FX_INITIAL, true, KEDGE_AUDIT_REPLAY_INITIAL, ""},
    {ADAPTERS, FX_AGGREGATE, true, KEDGE_AUDIT_REPLAY_AGGREGATE, ""},
};

START_TEST(test_alone_twist)
{
    struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    fx_ungrouped(at("fx"), alone_twists[_i].keys, alone_twists[_i].twist);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    if (alone_twists[_i].replay_only) {
        print_findings(&r);
        ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
        kedge_audit_report_deinit(&r);
        r = run(at("fx"), at("fx/trust.json"), NULL, true, options);
    }
    bool said = false;
    for (uint32_t i = 0; i < r.finding_count; i++) {
        said = said
               || (r.findings[i].code == alone_twists[_i].code
                   && strstr(r.findings[i].text, alone_twists[_i].text));
    }
    if (!said) {
        print_findings(&r);
    }
    ck_assert_msg(said, "twist %d", alone_twists[_i].twist);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_NO);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

START_TEST(test_twist)
{
    struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    fx_with(at("fx"), twists[_i].keys, twists[_i].twist);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    if (twists[_i].replay_only) {
        print_findings(&r);
        ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
        kedge_audit_report_deinit(&r);
        r = run(at("fx"), at("fx/trust.json"), NULL, true, options);
    }
    if (!has_code(&r, twists[_i].code)) {
        print_findings(&r);
    }
    ck_assert_msg(has_code(&r, twists[_i].code), "%s, twist %d", twists[_i].keys, twists[_i].twist);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_NO);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-strategies");
    TCase *t = tcase_create("strategies");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_clean, 0, KEYS);
    tcase_add_loop_test(t, test_twist, 0, (int)(sizeof twists / sizeof twists[0]));
    tcase_add_loop_test(t, test_alone, 0, (int)(sizeof alone / sizeof alone[0]));
    tcase_add_loop_test(t, test_alone_twist, 0, (int)(sizeof alone_twists / sizeof alone_twists[0]));
    suite_add_tcase(s, t);
    return run_suite(s);
}
