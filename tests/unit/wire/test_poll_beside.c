/* POLL_BESIDE: at most three jobs that are at work, each a valid identifier, none twice. */
#include <check.h>
#include <stdlib.h>

#include "common/wire/messages.h"
#include "tests/fixtures/run.h"

/* Up to the list. */
#define HEAD "010c0000000000000000000000000000000000"

static const struct {
    const char *hex;
    int err;
} frames[] = {
    {HEAD "00", KEDGE_OK},
    {HEAD "03016101620163", KEDGE_OK},
    {HEAD "040161016201630164", KEDGE_E_TOO_LONG},
    {HEAD "ff", KEDGE_E_TOO_LONG},
    {HEAD "0201610161", KEDGE_E_FORMAT}, /* one twice */
    {HEAD "010141", KEDGE_E_FORMAT},     /* no identifier */
    {HEAD "0100", KEDGE_E_FORMAT},
    {HEAD "020161", KEDGE_E_FORMAT},   /* one is missing */
    {HEAD "01016162", KEDGE_E_FORMAT}, /* more behind it */
    {HEAD, KEDGE_E_FORMAT},
};

START_TEST(frames_are_taken_or_refused)
{
    uint8_t bytes[64];
    const struct kedge_view hex = kedge_view_str(frames[_i].hex);
    struct kedge_msg msg;
    ck_assert_int_eq(kedge_hex_decode(hex, bytes, hex.len / 2), KEDGE_OK);
    int err = kedge_msg_decode(kedge_view_of(bytes, hex.len / 2), &msg);
    ck_assert_int_eq(err, frames[_i].err);
}
END_TEST

/* What is not taken is not written, either. */
START_TEST(messages_that_are_not_valid_are_not_written)
{
    struct kedge_buf out;
    struct kedge_msg msg = {.type = KEDGE_MSG_POLL_BESIDE};
    kedge_buf_init(&out, KEDGE_FRAME_MAX);
    msg.u.poll_beside = (struct kedge_msg_poll_beside){.at_work = {{"a"}, {"a"}}, .at_work_count = 2};
    ck_assert_int_eq(kedge_msg_encode(&msg, &out), KEDGE_E_ARG);
    msg.u.poll_beside.at_work[1].s[0] = 'A';
    ck_assert_int_eq(kedge_msg_encode(&msg, &out), KEDGE_E_ARG);
    msg.u.poll_beside.at_work_count = KEDGE_AT_WORK_MAX + 1;
    ck_assert_int_eq(kedge_msg_encode(&msg, &out), KEDGE_E_TOO_LONG);
    msg.u.poll_beside.at_work_count = 1;
    ck_assert_int_eq(kedge_msg_encode(&msg, &out), KEDGE_OK);
    kedge_buf_deinit(&out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wire/poll beside");
    TCase *t = tcase_create("frames");
    tcase_add_loop_test(t, frames_are_taken_or_refused, 0, sizeof frames / sizeof frames[0]);
    tcase_add_test(t, messages_that_are_not_valid_are_not_written);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
