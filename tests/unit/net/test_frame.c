/* Greetings and frames in pieces of every size, and the sums of the budget. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/mem.h"
#include "common/net/budget.h"
#include "common/net/frame.h"

enum { FRAME_MAX = 1000 };

static const uint8_t greeting[KEDGEI_GREETING_LEN] = {'K', 'E', 'D', 'G', 'E', '\r', '\n', 0, 0, 0, 0, 1, 7};

/* Feeds bytes in pieces of `piece`; whole frames are appended to ret as they were sent. */
static int feed(struct kedgei_decoder *d, const uint8_t *bytes, size_t len, size_t piece,
                struct kedge_buf *ret)
{
    int err = KEDGE_OK;
    for (size_t at = 0; !err && at < len;) {
        size_t room = 0;
        uint8_t *space = kedgei_decoder_space(d, &room);
        ck_assert_uint_gt(room, 0);
        size_t n = piece < room ? piece : room;
        n = n < len - at ? n : len - at;
        memcpy(space, bytes + at, n);
        at += n;
        err = kedgei_decoder_advance(d, n);
        if (!err && d->state == KEDGEI_NO_MEMORY) {
            err = kedgei_decoder_give(d);
        }
        if (!err && d->state == KEDGEI_WHOLE) {
            struct kedgei_frame *frame = kedgei_decoder_take(d);
            uint32_t call = frame->call;
            kedgei_frame_seal(frame, call);
            struct kedge_view v = kedgei_frame_bytes(frame);
            kedge_buf_put(ret, v.ptr, v.len);
            kedgei_frame_free(frame);
        }
    }
    return err;
}

START_TEST(test_pieces_of_every_size)
{
    static const size_t lens[] = {0, 1, 7, 8, 9, 500, FRAME_MAX};
    struct kedge_buf all, out;
    kedge_buf_init(&all, 10000);
    kedge_buf_init(&out, 10000);
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        struct kedgei_frame *frame = kedgei_frame_new(lens[i]);
        ck_assert_ptr_nonnull(frame);
        memset(frame->body, (int)i + 1, lens[i]);
        kedgei_frame_seal(frame, 0xfffffff0u + (uint32_t)i);
        struct kedge_view v = kedgei_frame_bytes(frame);
        ck_assert_uint_eq(v.len, KEDGEI_HEAD_LEN + lens[i]);
        kedge_buf_put(&all, v.ptr, v.len);
        kedgei_frame_free(frame);
    }
    ck_assert_int_eq(all.err, KEDGE_OK);
    ck_assert_uint_eq(all.ptr[3], 0); /* the first frame: length 0, call fffffff0 */
    ck_assert_uint_eq(all.ptr[4], 0xff);
    ck_assert_uint_eq(all.ptr[7], 0xf0);
    for (size_t piece = 1; piece < 1200; piece += piece < 60 ? 1 : 97) {
        struct kedgei_decoder d;
        kedgei_decoder_init(&d, FRAME_MAX);
        kedge_buf_clear(&out);
        ck_assert_int_eq(feed(&d, greeting, sizeof greeting, piece, &out), KEDGE_OK);
        ck_assert_int_eq(d.state, KEDGEI_HEAD);
        ck_assert_uint_eq(d.claimed.b[0], 7);
        ck_assert_int_eq(feed(&d, all.ptr, all.len, piece, &out), KEDGE_OK);
        ck_assert(kedge_view_eq(kedge_buf_view(&out), kedge_buf_view(&all)));
        kedgei_decoder_deinit(&d);
    }
    kedge_buf_deinit(&all);
    kedge_buf_deinit(&out);
}
END_TEST

START_TEST(test_greeting_is_what_we_send)
{
    struct kedge_public_key key = {{7}};
    struct kedgei_frame *frame = kedgei_frame_greeting(&key);
    ck_assert_ptr_nonnull(frame);
    ck_assert(kedge_view_eq(kedgei_frame_bytes(frame), kedge_view_of(greeting, sizeof greeting)));
    kedgei_frame_free(frame);
}
END_TEST

/* Every single byte of magic and version matters, at the moment at which it arrives. */
START_TEST(test_other_protocols)
{
    for (size_t i = 0; i < 12; i++) {
        uint8_t bad[KEDGEI_GREETING_LEN];
        struct kedgei_decoder d;
        struct kedge_buf out;
        memcpy(bad, greeting, sizeof bad);
        bad[i] ^= 0x40;
        kedgei_decoder_init(&d, FRAME_MAX);
        kedge_buf_init(&out, 100);
        size_t told = i < 8 ? i : 11; /* the version is a number: whole or not at all */
        ck_assert_int_eq(feed(&d, bad, told, 1, &out), KEDGE_OK);
        ck_assert_int_eq(feed(&d, bad + told, 1, 1, &out), i < 8 ? KEDGE_E_FORMAT : KEDGE_E_VERSION);
        kedgei_decoder_deinit(&d);
        kedge_buf_deinit(&out);
    }
}
END_TEST

START_TEST(test_too_long_before_memory)
{
    static const uint8_t heads[][KEDGEI_HEAD_LEN] = {
        {0, 0, 3, 0xe9}, {0xff, 0xff, 0xff, 0xff}, {0x80}, {0, 1, 0, 0}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct kedgei_decoder d;
        struct kedge_buf out;
        kedge_buf_init(&out, 100);
        kedgei_decoder_init(&d, FRAME_MAX);
        ck_assert_int_eq(feed(&d, greeting, sizeof greeting, 44, &out), KEDGE_OK);
        ck_assert_int_eq(feed(&d, heads[i], KEDGEI_HEAD_LEN, 8, &out), KEDGE_E_TOO_LONG);
        ck_assert_ptr_null(d.frame);
        kedgei_decoder_deinit(&d);
    }
}
END_TEST

START_TEST(test_no_memory_can_be_tried_again)
{
    static const uint8_t head[KEDGEI_HEAD_LEN] = {0, 0, 0, 5, 0, 0, 0, 1};
    struct kedgei_decoder d;
    size_t room = 0;
    kedgei_decoder_init(&d, FRAME_MAX);
    memcpy(kedgei_decoder_space(&d, &room), greeting, sizeof greeting);
    ck_assert_int_eq(kedgei_decoder_advance(&d, sizeof greeting), KEDGE_OK);
    memcpy(kedgei_decoder_space(&d, &room), head, sizeof head);
    ck_assert_int_eq(kedgei_decoder_advance(&d, sizeof head), KEDGE_OK);
    ck_assert_int_eq(d.state, KEDGEI_NO_MEMORY);
    kedge_mem_fail_at(1);
    ck_assert_int_eq(kedgei_decoder_give(&d), KEDGE_E_NOMEM);
    ck_assert_int_eq(d.state, KEDGEI_NO_MEMORY);
    ck_assert_int_eq(kedgei_decoder_give(&d), KEDGE_OK);
    ck_assert_int_eq(d.state, KEDGEI_BODY);
    kedgei_decoder_deinit(&d); /* in the middle of a body */
}
END_TEST

/* Whatever bodies have come, the first of them can have its reply: no order of arrivals locks up. */
START_TEST(test_budget_never_locks_up)
{
    enum { F = 100000 };
    for (size_t bytes = 0; bytes < 20 * (size_t)F; bytes += F / 3) {
        struct kedgei_budget b;
        kedgei_budget_init(&b, bytes, F);
        ck_assert_uint_ge(b.large.limit, 2 * F);
        ck_assert_uint_ge(b.share, 2 * F);
        ck_assert_uint_ge(b.small.limit, KEDGEI_SMALL_MAX);
        ck_assert(bytes < 3 * (size_t)F || b.large.limit + b.small.limit <= bytes);
        ck_assert(kedgei_budget_fits_body(&b, F));
        for (int i = 0; i < 1000; i++) {
            size_t len = (size_t)(i * 7919) % F + 1;
            if (!kedgei_budget_is_small(len) && kedgei_budget_fits_body(&b, len)) {
                b.large.used += len;
            }
        }
        ck_assert(kedgei_budget_fits_reply(&b, F));
        ck_assert(!kedgei_budget_fits_body(&b, F));
        ck_assert(kedgei_budget_fits_body(&b, KEDGEI_SMALL_MAX)); /* these have their own */
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("net");
    TCase *t = tcase_create("frame");
    tcase_add_test(t, test_pieces_of_every_size);
    tcase_add_test(t, test_greeting_is_what_we_send);
    tcase_add_test(t, test_other_protocols);
    tcase_add_test(t, test_too_long_before_memory);
    tcase_add_test(t, test_no_memory_can_be_tried_again);
    tcase_add_test(t, test_budget_never_locks_up);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
