/* Records of asynchronous jobs: verified and replayed, and what is wrong with them is found. */
#include "tests/fixtures/federation_buffer.h"

#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

static const char *const keys[] = {NULL, "\"tenant_share_max\":\"0.5\"", "\"rule\":\"median\"",
                                   "\"rule\":\"norm-clipping\",\"scale\":16"};

START_TEST(test_good)
{
    make_scratch();
    fx_buffered(at("fx"), keys[_i], FX_BUFFER_NONE);
    for (int replay = 0; replay < 2; replay++) {
        struct kedge_audit_report r =
            run(at("fx"), at("fx/trust.json"), NULL, replay, (struct kedge_audit_options){.threads = 2});
        print_findings(&r);
        ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
        ck_assert_uint_eq(r.finding_count, 0);
        ck_assert_uint_ge(r.counts.updates_used, 12);
        kedge_audit_report_deinit(&r);
    }
    remove_scratch();
}
END_TEST

static const struct {
    const char *what;
    enum fx_buffer_twist twist;
    bool replay; /* only replay can find it */
    enum kedge_audit_code code;
} wrongs[] = {
    {"a late update that weighs as a fresh one", FX_BUFFER_AS_FRESH, false, KEDGE_AUDIT_ROW},
    {"a late update whose row says nothing of it", FX_BUFFER_UNNAMED, false, KEDGE_AUDIT_ROW},
    {"an update held back for a later close", FX_BUFFER_HELD_BACK, false, KEDGE_AUDIT_ROW},
    {"an update in two closes", FX_BUFFER_TWICE, false, KEDGE_AUDIT_ROW_DOUBLED},
    {"an update in no close", FX_BUFFER_LOST, false, KEDGE_AUDIT_UNLISTED},
    {"an update older than the bound", FX_BUFFER_TOO_OLD, false, KEDGE_AUDIT_LIST},
    {"more updates than the buffer holds", FX_BUFFER_OVER, false, KEDGE_AUDIT_AGGREGATE},
    {"a site at work that is left out", FX_BUFFER_FORGOTTEN, false, KEDGE_AUDIT_CANDIDATE},
    {"a site at work that is drawn again", FX_BUFFER_DRAWN_AGAIN, false, KEDGE_AUDIT_CANDIDATE},
    {"a site said to be at work that is not", FX_BUFFER_IDLE, false, KEDGE_AUDIT_CANDIDATE},
    {"an older task that begins with the newest model", FX_BUFFER_NEWEST, false, KEDGE_AUDIT_BASE},
    {"one more drawn than places are free", FX_BUFFER_DRAW, true, KEDGE_AUDIT_REPLAY_SELECTION},
};

START_TEST(test_wrong)
{
    make_scratch();
    fx_buffered(at("fx"), NULL, wrongs[_i].twist);
    assert_found(wrongs[_i].replay, wrongs[_i].code, wrongs[_i].what);
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-buffer");
    TCase *t = tcase_create("buffer");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_good, 0, sizeof keys / sizeof keys[0]);
    tcase_add_loop_test(t, test_wrong, 0, sizeof wrongs / sizeof wrongs[0]);
    suite_add_tcase(s, t);
    return run_suite(s);
}
