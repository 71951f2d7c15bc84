/* Records that were written wrong and signed properly: one twist each, and what the auditor must call it. */
#include "aggregation/simd.h"
#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

struct twist_case {
    enum fx_twist twist;
    bool replay_only; /* verify says yes: only re-execution finds it */
    enum kedge_audit_code code;
};

static const struct twist_case cases[] = {
    {FX_GHOST_UPDATE, false, KEDGE_AUDIT_SITE_UNKNOWN},
    {FX_GHOST_FORGED, false, KEDGE_AUDIT_SIGNATURE},
    {FX_REVOKED_UPDATE, false, KEDGE_AUDIT_SITE_REVOKED},
    {FX_OTHER_SITE_SIGNS, false, KEDGE_AUDIT_SIGNATURE},
    {FX_OTHER_ADMIN, false, KEDGE_AUDIT_KEY},
    {FX_NOT_JOINED, false, KEDGE_AUDIT_NOT_JOINED},
    {FX_LEFT_UPDATE, false, KEDGE_AUDIT_NOT_JOINED},
    {FX_LEFT_CANDIDATE, false, KEDGE_AUDIT_NOT_JOINED},
    {FX_LEFT_SPEC, false, KEDGE_AUDIT_SPEC},
    {FX_LEFT_UNJOINED, false, KEDGE_AUDIT_NOT_JOINED},
    {FX_QUOTA_NUMBER, false, KEDGE_AUDIT_MISPLACED},
    {FX_QUOTA_SITES, false, KEDGE_AUDIT_MISPLACED},
    {FX_KEY_TWICE, false, KEDGE_AUDIT_KEY},
    {FX_POLICY_KEY, false, KEDGE_AUDIT_KEY},
    {FX_WRONG_BASE, false, KEDGE_AUDIT_BASE},
    {FX_UNLISTED, false, KEDGE_AUDIT_UNLISTED},
    {FX_ROW_TWICE, false, KEDGE_AUDIT_ROW_DOUBLED},
    {FX_ROW_WEIGHT, false, KEDGE_AUDIT_ROW},
    {FX_LEFT_OUT, false, KEDGE_AUDIT_ROW},
    {FX_ROW_DIGEST, false, KEDGE_AUDIT_ROW},
    {FX_TOTALS, false, KEDGE_AUDIT_TOTALS},
    {FX_NOT_SELECTED, false, KEDGE_AUDIT_NOT_SELECTED},
    {FX_NO_CHECKPOINT, false, KEDGE_AUDIT_ROW},
    {FX_TOO_LARGE, false, KEDGE_AUDIT_BLOB_CONTENT},
    {FX_SAMPLES, false, KEDGE_AUDIT_UPDATE},
    {FX_WRONG_GROUP, false, KEDGE_AUDIT_GROUP},
    {FX_REASON, false, KEDGE_AUDIT_LIST},
    {FX_EVALUATION, false, KEDGE_AUDIT_EVALUATION},
    {FX_CANDIDATE_REVOKED, false, KEDGE_AUDIT_CANDIDATE},
    {FX_RULE, false, KEDGE_AUDIT_AGGREGATE},
    {FX_SEED, false, KEDGE_AUDIT_ROUND},
    {FX_ROUND_GAP, false, KEDGE_AUDIT_ROUND},
    {FX_DRAWN_NUMBER, false, KEDGE_AUDIT_ROUND},
    {FX_MAIN_ROOT, false, KEDGE_AUDIT_FORK},
    {FX_PARAMETERS, false, KEDGE_AUDIT_JOB},
    {FX_STEP_BEFORE, false, KEDGE_AUDIT_BASE},
    {FX_STEP_AFTER, false, KEDGE_AUDIT_STEP},
    {FX_RELEASE, false, KEDGE_AUDIT_RELEASE},
    {FX_RELEASE_MISSING, false, KEDGE_AUDIT_RELEASE},
    {FX_CLOSED_EARLY, false, KEDGE_AUDIT_JOB},
    {FX_AFTER_CLOSED, false, KEDGE_AUDIT_JOB},
    {FX_TORN_CLOSE, false, KEDGE_AUDIT_AGGREGATE},
    {FX_OTHER_SPEC, false, KEDGE_AUDIT_SPEC},
    {FX_ANCHOR_FORK, false, KEDGE_AUDIT_FORK},
    {FX_STATED_TWICE, false, KEDGE_AUDIT_DOUBLED},
    {FX_IDEM_KEY, false, KEDGE_AUDIT_IDEMPOTENCY},
    {FX_MISPLACED, false, KEDGE_AUDIT_MISPLACED},
    {FX_GARBAGE, false, KEDGE_AUDIT_STATEMENT},
    {FX_INITIAL, true, KEDGE_AUDIT_REPLAY_INITIAL},
    {FX_SELECTION, true, KEDGE_AUDIT_REPLAY_SELECTION},
    {FX_DRAWN_SELECTION, true, KEDGE_AUDIT_REPLAY_SELECTION},
    {FX_GROUPING, true, KEDGE_AUDIT_REPLAY_GROUPING},
    {FX_DIRECTION, true, KEDGE_AUDIT_REPLAY_DIRECTION},
    {FX_NEWCOMER, true, KEDGE_AUDIT_REPLAY_NEWCOMER},
    {FX_SIMILARITY, true, KEDGE_AUDIT_REPLAY_NEWCOMER},
    {FX_AGGREGATE, true, KEDGE_AUDIT_REPLAY_AGGREGATE},
    {FX_MIXING, true, KEDGE_AUDIT_REPLAY_STEP},
};

START_TEST(test_twist)
{
    const struct twist_case *c = &cases[_i];
    struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    fx_federation(at("fx"), c->twist);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    if (c->replay_only) {
        if (r.error_count > 0) {
            print_findings(&r);
        }
        ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
        kedge_audit_report_deinit(&r);
        r = run(at("fx"), at("fx/trust.json"), NULL, true, options);
    }
    if (!has_code(&r, c->code)) {
        print_findings(&r);
    }
    ck_assert_msg(has_code(&r, c->code), "twist %d: expected a finding %s", (int)c->twist,
                  kedge_audit_code_name(c->code));
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_NO);
    ck_assert_uint_gt(r.error_count, 0);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

/* The round's sites were drawn again. */
START_TEST(test_drawn_again)
{
    struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    fx_federation(at("fx"), FX_DRAWN_AGAIN);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, true, options);
    print_findings(&r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_uint_eq(r.finding_count, 0);
    ck_assert_uint_eq(r.counts.rounds, 5);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

/* A tenant leaves after the first round, and the second one goes on without its sites; quotas that are kept;
 * a tenant joins a job that never opens. */
START_TEST(test_tenants)
{
    static const struct {
        enum fx_twist twist;
        enum kedge_statement_kind kind;
        uint64_t count, notes;
    } goods[] = {{FX_LEFT, KEDGE_ST_JOB_LEFT, 1, 0},
                 {FX_QUOTA, KEDGE_ST_QUOTA_SET, 2, 0},
                 {FX_JOINED_UNOPENED, KEDGE_ST_JOB_JOINED, 5, 2}};
    struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    fx_federation(at("fx"), goods[_i].twist);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, true, options);
    print_findings(&r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_uint_eq(r.finding_count, goods[_i].notes);
    ck_assert_uint_eq(r.counts.statements[goods[_i].kind], goods[_i].count);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

START_TEST(test_clean)
{
    struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    for (int replay = 0; replay < 2; replay++) {
        struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, replay, options);
        print_findings(&r);
        ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
        ck_assert_uint_eq(r.finding_count, 0);
        ck_assert_uint_eq(r.counts.logs, 3);
        ck_assert_uint_eq(r.counts.jobs, 2);
        ck_assert_uint_eq(r.counts.jobs_unfinished, 0);
        ck_assert_uint_eq(r.counts.rounds, 5);
        ck_assert_uint_eq(r.counts.sites, 5);
        ck_assert_uint_eq(r.counts.statements[KEDGE_ST_UPDATE], 6 + 4 + 1 + 5 + 5);
        ck_assert_uint_eq(r.counts.statements[KEDGE_ST_STEP], 5);
        ck_assert_uint_eq(r.counts.updates_used, 6 + 4 + 5 + 5);
        ck_assert_uint_eq(r.counts.updates_refused, 2);
        ck_assert_uint_eq(r.counts.unanchored, 0);
        ck_assert_uint_eq(r.counts.decisions, replay ? 25 : 0);
        kedge_audit_report_deinit(&r);
    }
    /* Without trust it is at most self-consistent; the state folder itself is a record too. */
    struct kedge_audit_report r = run(at("fx"), NULL, NULL, true, options);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_SELF_CONSISTENT);
    kedge_audit_report_deinit(&r);
    r = run(at("fx/state"), at("fx/trust.json"), NULL, true, options);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    kedge_audit_report_deinit(&r);
    options.beside_coordinator = true;
    r = run(at("fx"), at("fx/trust.json"), NULL, true, options);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

/* The digest of what was computed: of replay only, the same for any threads and instructions, and that of
 * another computation is another one. */
START_TEST(test_results)
{
    struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    ck_assert(kedge_hash_is_zero(&r.results));
    kedge_audit_report_deinit(&r);
    r = run(at("fx"), at("fx/trust.json"), NULL, true, options);
    const struct kedge_hash once = r.results;
    struct kedge_hash
        golden; /* directions of unit updates, tenants alike; else as before there were rules to choose */
    ck_assert_int_eq(
        kedge_hash_from_hex(
            kedge_view_str("91fea15766fb03e1f6bed2e9b21c6b76d05576753dee9ddf543a82fbca869fb7"), &golden),
        KEDGE_OK);
    ck_assert(kedge_hash_eq(&once, &golden));
    kedge_audit_report_deinit(&r);
    for (enum kedge_simd simd = KEDGE_SIMD_SCALAR; simd <= KEDGE_SIMD_LAST; simd++) {
        if (kedge_simd_set(simd) == KEDGE_OK) {
            options.threads = 1 + (uint32_t)simd;
            r = run(at("fx"), at("fx/trust.json"), NULL, true, options);
            ck_assert(kedge_hash_eq(&r.results, &once));
            kedge_audit_report_deinit(&r);
        }
    }
    ck_assert_int_eq(kedge_simd_set(KEDGE_SIMD_AUTO), KEDGE_OK);
    fx_capped(at("capped"), FX_NONE);
    r = run(at("capped"), at("capped/trust.json"), NULL, true, options);
    ck_assert(!kedge_hash_eq(&r.results, &once));
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

/* The weights of a job with a cap on a tenant's share follow from all updates of an aggregate. */
static const struct twist_case capped_cases[] = {
    {FX_ROW_WEIGHT, false, KEDGE_AUDIT_ROW},
    {FX_CAP_IGNORED, false, KEDGE_AUDIT_ROW},
    {FX_RULE, false, KEDGE_AUDIT_AGGREGATE},
    {FX_UNLISTED, false, KEDGE_AUDIT_UNLISTED},
    {FX_AGGREGATE, true, KEDGE_AUDIT_REPLAY_AGGREGATE},
};

START_TEST(test_capped)
{
    struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    fx_capped(at("fx"), FX_NONE);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, true, options);
    print_findings(&r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_uint_eq(r.finding_count, 0);
    ck_assert_uint_eq(r.counts.decisions, 25);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

START_TEST(test_capped_twist)
{
    const struct twist_case *c = &capped_cases[_i];
    struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    fx_capped(at("fx"), c->twist);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    if (c->replay_only) {
        ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
        kedge_audit_report_deinit(&r);
        r = run(at("fx"), at("fx/trust.json"), NULL, true, options);
    }
    if (!has_code(&r, c->code)) {
        print_findings(&r);
    }
    ck_assert(has_code(&r, c->code));
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_NO);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

START_TEST(test_unfinished_is_a_note)
{
    struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    fx_federation(at("fx"), FX_UNFINISHED);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, true, options);
    print_findings(&r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_uint_eq(r.note_count, 1);
    ck_assert_int_eq(r.findings[0].code, KEDGE_AUDIT_JOB_UNFINISHED);
    ck_assert_uint_eq(r.counts.jobs_unfinished, 1);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

START_TEST(test_larger_record)
{
    struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    fx_large(at("fx"), 6, 20);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, true, options);
    print_findings(&r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_uint_eq(r.counts.updates_used, 240);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-record");
    TCase *t = tcase_create("record");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, test_clean);
    tcase_add_test(t, test_drawn_again);
    tcase_add_loop_test(t, test_tenants, 0, 3);
    tcase_add_test(t, test_results);
    tcase_add_test(t, test_unfinished_is_a_note);
    tcase_add_test(t, test_capped);
    tcase_add_loop_test(t, test_capped_twist, 0, (int)(sizeof capped_cases / sizeof capped_cases[0]));
    tcase_add_test(t, test_larger_record);
    tcase_add_loop_test(t, test_twist, 0, (int)(sizeof cases / sizeof cases[0]));
    suite_add_tcase(s, t);
    return run_suite(s);
}
