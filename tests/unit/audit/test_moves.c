/* Sites that move to another group: what a good record of it looks like to the auditor, and that each way to
 * make it wrong is found. */
#include "chain/statement/entry_index.h"
#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

typedef void make_fn(const char *dir, enum fx_twist twist);

static const struct {
    make_fn *make;
    uint64_t decisions;
    enum fx_twist twist;
} goods[] = {
    /* selections, aggregates, groupings, directions, groups of sites, a first model */
    {fx_moving, 5 + 10 + 1 + 2 + 8 + 1, FX_NONE},
    {fx_regrouping, 5 + 10 + 2 + 4 + 12 + 1, FX_NONE},
    {fx_regrouping, 5 + 10 + 2 + 4 + 12 + 1, FX_REGROUP_STILL},
    /* nothing is computed in a round that keeps the groups */
    {fx_keeping, 5 + 2 + 6 + 1 + 2 + 6 + 1, FX_NONE},
    {fx_keeping, 5 + 2 + 6 + 1 + 2 + 6 + 1, FX_KEPT_NOBODY},
    /* besides: two directions estimated again, how far they moved, whether groups are cut or joined */
    {fx_living, 5 + 10 + 1 + 2 + 7 + 1 + 4, FX_NONE},
    /* the model of groups that become one, no aggregates of one, three moves; aggregates of a third, two
       moves */
    {fx_joining, 5 + 8 + 1 + 2 + 7 + 1 + 4 + 1 + 3, FX_NONE},
    {fx_joining, 5 + 8 + 1 + 2 + 7 + 1 + 4 + 1 + 3, FX_JOIN_CAPPED},
    {fx_cutting, 5 + 12 + 1 + 2 + 7 + 1 + 4 + 2, FX_NONE},
    /* of one group at first: aggregates of one to four groups; trials; models of joined parts; moves */
    {fx_parts, 9 + 21 + 1 + 1 + 8 + 1 + 8 + 2 + 16, FX_NONE},
    {fx_parts, 9 + 15 + 1 + 1 + 8 + 1 + 8 + 4 + 28, FX_PARTS_BACK},
    {fx_parts, 9 + 25 + 1 + 1 + 8 + 1 + 8 + 20, FX_PARTS_OFTEN},
};

START_TEST(test_good)
{
    make_scratch();
    goods[_i].make(at("fx"), goods[_i].twist);
    for (int replay = 0; replay < 2; replay++) {
        struct kedge_audit_report r =
            run(at("fx"), at("fx/trust.json"), NULL, replay, (struct kedge_audit_options){.threads = 1});
        if (r.verdict != KEDGE_AUDIT_YES) {
            print_findings(&r);
        }
        ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
        ck_assert_uint_eq(r.finding_count, 0);
        ck_assert(!replay || r.counts.decisions == goods[_i].decisions);
        kedge_audit_report_deinit(&r);
    }
    remove_scratch();
}
END_TEST

/* A tenant's own copy: its sites' groups are judged without the other's ledger. */
START_TEST(test_copy)
{
    make_scratch();
    goods[_i].make(at("fx"), goods[_i].twist);
    fx_replica(at("fx"), "org-a");
    const struct kedge_id id = {"org-a"};
    struct kedge_audit_options options = {.threads = 1, .tenants = &id, .tenant_count = 1};
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    if (r.verdict != KEDGE_AUDIT_YES) {
        print_findings(&r);
    }
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

static const struct {
    const char *what;
    make_fn *make;
    enum fx_twist twist;
    bool replay; /* only replay can find it */
    enum kedge_audit_code code;
} wrongs[] = {
    {"a move without a pre-training", fx_moving, FX_MOVE_UNTRAINED, false, KEDGE_AUDIT_GROUP},
    {"a move to another group than the nearest", fx_moving, FX_MOVE_GROUP, true, KEDGE_AUDIT_REPLAY_NEWCOMER},
    {"a move that names another round", fx_moving, FX_MOVE_EARLY, false, KEDGE_AUDIT_GROUP},
    {"a move after the close of its round", fx_moving, FX_MOVE_LATE, false, KEDGE_AUDIT_GROUP},
    {"a move sooner than the job allows", fx_moving, FX_MOVE_PAUSE, false, KEDGE_AUDIT_GROUP},
    {"a move behind the training of its round", fx_moving, FX_MOVE_TRAINED, false, KEDGE_AUDIT_GROUP},
    {"a move where the job allows none", fx_moving, FX_MOVE_OFF, false, KEDGE_AUDIT_GROUP},
    {"a second first group", fx_moving, FX_MOVE_AS_NEWCOMER, false, KEDGE_AUDIT_GROUP},
    {"groups made anew, in a round of training", fx_moving, FX_MOVE_RECLUSTER, false, KEDGE_AUDIT_GROUP},
    {"a row with another group than the move", fx_moving, FX_MOVE_ROW, false, KEDGE_AUDIT_ROW},
    {"an update for the group that the site has left", fx_moving, FX_TRAINS_FOR_FORMER, false,
     KEDGE_AUDIT_GROUP},
    {"a new group's model of other models", fx_regrouping, FX_REGROUP_MODEL, true,
     KEDGE_AUDIT_REPLAY_AGGREGATE},
    {"members of a new group that weigh by their number", fx_regrouping, FX_REGROUP_WEIGHT, false,
     KEDGE_AUDIT_ROW},
    {"a member of a new group whom nothing tells so", fx_regrouping, FX_REGROUP_UNSTATED, false,
     KEDGE_AUDIT_ROW},
    {"one who was left out, elsewhere than in the first group", fx_regrouping, FX_REGROUP_STILL_GROUP, false,
     KEDGE_AUDIT_ROW},
    {"an evaluation of a group that its site never was in", fx_regrouping, FX_REGROUP_EVALUATION, false,
     KEDGE_AUDIT_GROUP},
    {"a new group of other members", fx_regrouping, FX_REGROUP_GROUP, true, KEDGE_AUDIT_REPLAY_GROUPING},
    {"one who sent nothing, elsewhere than near", fx_regrouping, FX_REGROUP_OTHER, true,
     KEDGE_AUDIT_REPLAY_NEWCOMER},
    {"one who was left in a former group", fx_regrouping, FX_REGROUP_LEFT_OUT, false, KEDGE_AUDIT_GROUP},
    {"a former direction", fx_regrouping, FX_REGROUP_DIRECTION, true, KEDGE_AUDIT_REPLAY_DIRECTION},
    {"the rule of another round", fx_regrouping, FX_REGROUP_RULE, false, KEDGE_AUDIT_AGGREGATE},
    {"directions that moved farther than is said", fx_living, FX_LIVE_DRIFT, true,
     KEDGE_AUDIT_REPLAY_DIRECTION},
    {"groups that drifted, and no new ones", fx_living, FX_LIVE_DRIFTED, false, KEDGE_AUDIT_ROUND},
    {"a direction that was not estimated again", fx_living, FX_LIVE_DIRECTION, true,
     KEDGE_AUDIT_REPLAY_DIRECTION},
    {"a direction whose beginning is forgotten", fx_living, FX_LIVE_MADE, false, KEDGE_AUDIT_STEP},
    {"a drift when none is measured", fx_living, FX_LIVE_EARLY, false, KEDGE_AUDIT_STEP},
    {"a group that is part of another without its model", fx_living, FX_LIVE_MERGED, false, KEDGE_AUDIT_STEP},
    {"a group cut off another, which had a number", fx_living, FX_LIVE_SPLIT, false, KEDGE_AUDIT_STEP},
    {"a site that goes with a group which stays", fx_living, FX_LIVE_MOVED, false, KEDGE_AUDIT_GROUP},
    {"groups made anew of fewer than the quorum", fx_regrouping, FX_REGROUP_FEW, false, KEDGE_AUDIT_ROUND},
    {"groups kept though enough came", fx_keeping, FX_KEPT_ENOUGH, false, KEDGE_AUDIT_ROUND},
    {"groups kept, and who came is not listed", fx_keeping, FX_KEPT_UNLISTED, false, KEDGE_AUDIT_UNLISTED},
    {"groups kept, and who came is said to point nowhere", fx_keeping, FX_KEPT_REASON, false,
     KEDGE_AUDIT_ROW},
    {"groups kept, and said to be new", fx_keeping, FX_KEPT_RULE, false, KEDGE_AUDIT_STEP},
    {"groups kept, with another model", fx_keeping, FX_KEPT_RESULT, false, KEDGE_AUDIT_AGGREGATE},
    {"groups kept, with each other's directions", fx_keeping, FX_KEPT_DIRECTION, false, KEDGE_AUDIT_STEP},
    {"groups kept, and a site moved by it", fx_keeping, FX_KEPT_ASSIGNED, false, KEDGE_AUDIT_GROUP},
    {"groups that become one, and count alike", fx_joining, FX_JOIN_ALIKE, true, KEDGE_AUDIT_REPLAY_STEP},
    {"groups that become one without the cap on a tenant", fx_joining, FX_JOIN_UNCAPPED, true,
     KEDGE_AUDIT_REPLAY_STEP},
    {"a site in the wrong part of a group that is cut", fx_cutting, FX_CUT_PART, true,
     KEDGE_AUDIT_REPLAY_DIRECTION},
    {"a site that is not told of its part", fx_cutting, FX_CUT_STAYS, true, KEDGE_AUDIT_REPLAY_GROUPING},
    {"groups joined against what their sites found", fx_trying, FX_TRY_FORGED, true,
     KEDGE_AUDIT_REPLAY_GROUPING},
    {"groups kept apart against what their sites found", fx_trying, FX_TRY_APART, true,
     KEDGE_AUDIT_REPLAY_GROUPING},
    {"an evaluation that came before others, and is not counted", fx_trying, FX_TRY_LEFT_OUT, false,
     KEDGE_AUDIT_UNLISTED},
    {"an evaluation that weighs more than it says", fx_trying, FX_TRY_WEIGHT, false, KEDGE_AUDIT_ROW},
    {"an evaluation in another site's name", fx_trying, FX_TRY_OTHER, false, KEDGE_AUDIT_ROW},
    {"a trial that is one of the two models", fx_trying, FX_TRY_MODEL, true, KEDGE_AUDIT_REPLAY_GROUPING},
    {"groups that are not tried when it is time", fx_trying, FX_TRY_NOT, true, KEDGE_AUDIT_REPLAY_GROUPING},
    {"models of all where sites' own are found to be better", fx_trying, FX_TRY_SHARED, true,
     KEDGE_AUDIT_REPLAY_GROUPING},
    {"sites' own models before anybody was asked", fx_trying, FX_TRY_OWN, false, KEDGE_AUDIT_STEP},
    {"a cut that stays against what its sites found", fx_parts, FX_PARTS_STAYS_FORGED, true,
     KEDGE_AUDIT_REPLAY_GROUPING},
    {"a cut that is taken back against it", fx_parts, FX_PARTS_BACK_FORGED, true,
     KEDGE_AUDIT_REPLAY_GROUPING},
    {"parts that are joined, and count by their members", fx_parts, FX_PARTS_MEMBERS, true,
     KEDGE_AUDIT_REPLAY_STEP},
    {"a cut that is taken back and leaves a half's direction", fx_parts, FX_PARTS_DIRECTION, false,
     KEDGE_AUDIT_STEP},
    {"a trial that is the other part's", fx_parts, FX_PARTS_TRIAL_OTHER, true, KEDGE_AUDIT_REPLAY_GROUPING},
    {"a trial that is the whole's", fx_parts, FX_PARTS_TRIAL_WHOLE, true, KEDGE_AUDIT_REPLAY_GROUPING},
    {"a site in the wrong half", fx_parts, FX_PARTS_HALF, true, KEDGE_AUDIT_REPLAY_DIRECTION},
    {"a site that is not told of its half", fx_parts, FX_PARTS_UNTOLD, true, KEDGE_AUDIT_REPLAY_GROUPING},
    {"a site that is told to go to the other half", fx_parts, FX_PARTS_TOLD, true,
     KEDGE_AUDIT_REPLAY_NEWCOMER},
    {"a cut when it is not time", fx_parts, FX_PARTS_EARLY, false, KEDGE_AUDIT_STEP},
    {"no cut when it is time", fx_parts, FX_PARTS_NOT, true, KEDGE_AUDIT_REPLAY_GROUPING},
    {"parts that stay, and are not cut at once", fx_parts, FX_PARTS_NOT_AT_ONCE, true,
     KEDGE_AUDIT_REPLAY_GROUPING},
    {"a cut of a group in which nobody trained", fx_parts, FX_PARTS_UNTRAINED, false, KEDGE_AUDIT_STEP},
    {"more parts than the job may have", fx_parts, FX_PARTS_MOST, false, KEDGE_AUDIT_STEP},
    {"a part with the number of a group that has just been joined", fx_parts, FX_PARTS_NUMBER, false,
     KEDGE_AUDIT_STEP},
    {"a part that begins with another model", fx_parts, FX_PARTS_MODEL, false, KEDGE_AUDIT_STEP},
    {"groups made anew when it is not time", fx_regrouping, FX_REGROUP_NOT_DUE, false, KEDGE_AUDIT_ROUND},
};

START_TEST(test_wrong)
{
    make_scratch();
    wrongs[_i].make(at("fx"), wrongs[_i].twist);
    struct kedge_audit_options options = {.threads = 1};
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, wrongs[_i].replay, options);
    if (!has_code(&r, wrongs[_i].code)) {
        print_findings(&r);
    }
    ck_assert_msg(has_code(&r, wrongs[_i].code), "not found: %s", wrongs[_i].what);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_NO);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

/* The bytes that say why a site is in a group, and the key under which they stand: records hold them. */
static const struct {
    enum kedge_group_how how;
    const char *word, *key;
} hows[] = {
    {KEDGE_GROUP_COLD_START, "\"how\":\"cold-start\"", "group-assigned/j/s"},
    {KEDGE_GROUP_NEWCOMER, "\"how\":\"newcomer\"", "group-assigned/j/s"},
    {KEDGE_GROUP_MIGRATION, "\"how\":\"migration\"", "group-assigned/j/s/00000007"},
    {KEDGE_GROUP_RECLUSTER, "\"how\":\"recluster\"", "group-assigned/j/s/00000007/close"},
    {KEDGE_GROUP_SPLIT, "\"how\":\"split\"", "group-assigned/j/s/00000007/close"},
    {KEDGE_GROUP_MERGE, "\"how\":\"merge\"", "group-assigned/j/s/00000007/close"},
    {KEDGE_GROUP_CHOICE, "\"how\":\"choice\"", "group-assigned/j/s/00000007"},
    {KEDGE_GROUP_NEAREST, "\"how\":\"nearest\"", "group-assigned/j/s/00000007"},
};

START_TEST(test_words)
{
    struct kedge_statement st = {.kind = KEDGE_ST_GROUP_ASSIGNED}, again;
    struct kedge_buf text, key;
    st.u.group_assigned = (struct kedge_st_group_assigned){.tenant = {"t"},
                                                           .site = {"s"},
                                                           .job = {"j"},
                                                           .round = 7,
                                                           .group = 1,
                                                           .how = hows[_i].how,
                                                           .similarity = 0.5};
    kedge_sha256(kedge_view_str("update"), &st.u.group_assigned.update);
    kedge_buf_init(&text, KEDGE_ENTRY_MAX);
    kedge_buf_init(&key, KEDGE_IDEM_KEY_MAX);
    ck_assert_int_eq(kedge_statement_encode(&st, &text, NULL), KEDGE_OK);
    ck_assert_ptr_nonnull(memmem(text.ptr, text.len, hows[_i].word, strlen(hows[_i].word)));
    ck_assert_int_eq(kedge_statement_decode(kedge_buf_view(&text), &again, NULL), KEDGE_OK);
    ck_assert_int_eq(again.u.group_assigned.how, hows[_i].how);
    kedge_statement_key(st.kind, &st.u, &key);
    ck_assert_uint_eq(key.len, strlen(hows[_i].key));
    ck_assert_mem_eq(key.ptr, hows[_i].key, key.len);
    kedge_buf_deinit(&text);
    kedge_buf_deinit(&key);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-moves");
    TCase *t = tcase_create("moves");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_good, 0, sizeof goods / sizeof goods[0]);
    tcase_add_loop_test(t, test_copy, 0, sizeof goods / sizeof goods[0]);
    tcase_add_loop_test(t, test_words, 0, sizeof hows / sizeof hows[0]);
    tcase_add_loop_test(t, test_wrong, 0, sizeof wrongs / sizeof wrongs[0]);
    suite_add_tcase(s, t);
    return run_suite(s);
}
