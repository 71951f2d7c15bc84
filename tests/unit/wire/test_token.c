/* Enrolment tokens: one spelling, and nothing but it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/wire/token.h"

static struct kedge_token example(void)
{
    struct kedge_token token = {
        .address = "tls+tcp://127.0.0.1:7443", .tenant = {"acme"}, .site = {"site-1"}, .expires = 1800000000};
    memset(token.server_key, 0x11, sizeof token.server_key);
    memset(token.secret, 0x22, sizeof token.secret);
    return token;
}

/* Built independently of token.c with Python's struct, zlib.crc32 and base64.urlsafe_b64encode. */
static const char EXAMPLE[] =
    "kedge-enroll-1.AAAAGHRscyt0Y3A6Ly8xMjcuMC4wLjE6NzQ0MxERERERERERERERERERERERERERERERERERERERERERB"
    "GFjbWUGc2l0ZS0xIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIAAAAAa0nSALNpRpA";

START_TEST(test_golden)
{
    struct kedge_token token = example(), back;
    char text[KEDGE_TOKEN_TEXT_MAX];
    ck_assert_int_eq(kedge_token_encode(&token, text), KEDGE_OK);
    ck_assert_str_eq(text, EXAMPLE);
    ck_assert_int_eq(kedge_token_decode(kedge_view_str(text), &back, NULL), KEDGE_OK);
    ck_assert_mem_eq(&token, &back, sizeof token);
}
END_TEST

START_TEST(test_every_slip_is_found)
{
    static const char other[] = "AB09_-=+/. z\n";
    struct kedge_token back;
    struct kedge_diag diag;
    size_t len = strlen(EXAMPLE);
    char text[KEDGE_TOKEN_TEXT_MAX];
    for (size_t i = 0; i < len; i++) {
        for (size_t j = 0; j < sizeof other - 1; j++) {
            memcpy(text, EXAMPLE, len + 1);
            if (text[i] == other[j]) {
                continue;
            }
            text[i] = other[j];
            ck_assert_int_eq(kedge_token_decode(kedge_view_str(text), &back, &diag), KEDGE_E_FORMAT);
            ck_assert_int_eq(diag.err, KEDGE_E_FORMAT);
            ck_assert_ptr_null(strstr(diag.text, EXAMPLE + 20)); /* secrets are not repeated */
            ck_assert_uint_gt(strlen(diag.hint), 0);
        }
        ck_assert_int_eq(kedge_token_decode(kedge_view_of(EXAMPLE, i), &back, &diag), KEDGE_E_FORMAT);
    }
    snprintf(text, sizeof text, "%s=", EXAMPLE);
    ck_assert_int_eq(kedge_token_decode(kedge_view_str(text), &back, NULL), KEDGE_E_FORMAT);
    memcpy(text + len, "\n", 2);
    ck_assert_int_eq(kedge_token_decode(kedge_view_str(text), &back, NULL), KEDGE_E_FORMAT);
}
END_TEST

START_TEST(test_sizes)
{
    struct kedge_token token, back;
    char text[KEDGE_TOKEN_TEXT_MAX];
    for (size_t len = 1; len <= KEDGE_TOKEN_ADDRESS_MAX; len++) {
        memset(&token, 0, sizeof token);
        memset(token.address, 'h', len);
        memset(token.tenant.s, 't', 1 + len % KEDGE_ID_MAX);
        memset(token.site.s, 's', KEDGE_ID_MAX);
        ck_assert_int_eq(kedge_token_encode(&token, text), KEDGE_OK);
        ck_assert_int_eq(kedge_token_decode(kedge_view_str(text), &back, NULL), KEDGE_OK);
        ck_assert_mem_eq(&token, &back, sizeof token);
    }
}
END_TEST

START_TEST(test_refused)
{
    char text[KEDGE_TOKEN_TEXT_MAX];
    struct kedge_token token = example();
    token.address[0] = 0;
    ck_assert_int_eq(kedge_token_encode(&token, text), KEDGE_E_ARG);
    token = example();
    token.address[3] = ' ';
    ck_assert_int_eq(kedge_token_encode(&token, text), KEDGE_E_ARG);
    memset(token.address, 'a', sizeof token.address);
    ck_assert_int_eq(kedge_token_encode(&token, text), KEDGE_E_ARG);
    token = example();
    token.tenant.s[0] = 0;
    ck_assert_int_eq(kedge_token_encode(&token, text), KEDGE_E_ARG);
    token = example();
    token.site.s[0] = 'A';
    ck_assert_int_eq(kedge_token_encode(&token, text), KEDGE_E_ARG);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wire");
    TCase *t = tcase_create("token");
    tcase_add_test(t, test_golden);
    tcase_add_test(t, test_every_slip_is_found);
    tcase_add_test(t, test_sizes);
    tcase_add_test(t, test_refused);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
