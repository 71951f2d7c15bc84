/* Uploads that are open when a coordinator is asked to end, dies, or revokes their site: it ends well, what
 * came is kept for the same site and no other, and goes with a revoked one. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "common/base/os/clock.h"
#include "tests/e2e/hostile.h"
#include "tests/e2e/hostile_upload.h"
#include "tests/unit/base/check.h"

enum { HALF = 100, ENDS = 6 };

static void put(const struct hx_file *f, uint64_t offset, size_t len, uint64_t next, bool is_whole)
{
    struct kedge_msg msg = hx_put_of(f, offset, len), answer;
    int err = hx_ask(hx_alice.net, &msg, &answer);
    ck_assert_msg(err == KEDGE_OK, "%s", kedge_strerror(err));
    ck_assert_int_eq(answer.type, KEDGE_MSG_PUT_OK);
    ck_assert_uint_eq(answer.u.put_ok.next_offset, next);
    ck_assert_int_eq(answer.u.put_ok.complete, is_whole);
}

static void begin(struct hx_file *f)
{
    hx_start();
    hx_found();
    hx_open_round();
    hx_make_file("0.weight", 2, 8, KEDGE_DTYPE_I32, 1, f);
    ck_assert_uint_gt(f->len, HALF + ENDS);
}

/* As often asked as killed: half a file, and a whole one without its statement. */
START_TEST(test_ends)
{
    struct hx_file f;
    begin(&f);
    for (uint64_t i = 0; i < ENDS; i++) {
        put(&f, i ? HALF + i - 1 : 0, i ? 1 : HALF, HALF + i, false);
        hx_restart(i % 2 == 0);
        ck_assert_uint_eq(hx_count_staged("org-a"), 1);
        put(&f, 0, 0, HALF + i, false); /* nothing of it is sent twice */
    }
    put(&f, HALF + ENDS - 1, f.len - HALF - ENDS + 1, f.len, true);
    for (int i = 0; i < 2; i++) {
        hx_restart(i == 0);
        put(&f, 0, 0, f.len, true);
    }
    hx_stop();
}
END_TEST

static void revoke(const struct hx_peer *p)
{
    hx_st = (struct kedge_statement){.kind = KEDGE_ST_SITE_REVOKED};
    hx_st.u.site_revoked = (struct kedge_st_site_revoked){
        .tenant = hx_id_of(p->tenant), .site = hx_id_of(p->site), .statement_key = p->statement.public};
    snprintf(hx_st.u.site_revoked.reason, sizeof hx_st.u.site_revoked.reason, "lost");
    json_decref(hx_operate(hx_speak("site.revoke", p->tenant, &hx_admins[0])));
}

START_TEST(test_revoked)
{
    struct hx_file f;
    begin(&f);
    put(&f, 0, HALF, HALF, false);
    ck_assert_uint_eq(hx_count_staged("org-a"), 1);
    revoke(&hx_alice);
    ck_assert_uint_eq(hx_count_staged("org-a"), 0);
    hx_stop();
}
END_TEST

int main(void)
{
    const TTest *tests[] = {test_ends, test_revoked};
    return run_suite("open_uploads", tests, sizeof tests / sizeof tests[0]);
}
