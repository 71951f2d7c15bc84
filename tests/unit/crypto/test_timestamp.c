/* RFC 3161: a query as openssl reads it, and a reply of an authority over a checkpoint (vectors of
 * `openssl ts`). */
#include "crypto/timestamp.h"

#include <check.h>
#include <openssl/ui.h>
#include <stdio.h>
#include <string.h>

#include "common/base/os/file.h"
#include "common/base/text.h"
#include "crypto/sign.h"

struct files {
    struct kedge_buf data, reply, ca;
};

static bool read_one(const char *name, struct kedge_buf *out)
{
    char path[KEDGE_PATH_MAX];
    kedge_buf_init(out, KEDGE_TSA_PEM_MAX);
    snprintf(path, sizeof path, "../shared/vectors/%s", name);
    if (!kedge_file_exists(path)) {
        return false;
    }
    ck_assert_int_eq(kedge_file_read(path, out, NULL), KEDGE_OK);
    return true;
}

/* False when the vectors are not here. */
static bool open_files(struct files *f)
{
    bool all = read_one("checkpoint/tenant_a_8_cosigned.note", &f->data);
    all = read_one("rfc3161/checkpoint.tsr", &f->reply) && all;
    all = read_one("rfc3161/ca.pem", &f->ca) && all;
    if (!all) {
        printf("skipped: ../shared/vectors absent\n");
    }
    return all;
}

static void close_files(struct files *f)
{
    kedge_buf_deinit(&f->data);
    kedge_buf_deinit(&f->reply);
    kedge_buf_deinit(&f->ca);
}

/* SEQUENCE { version 1, { { sha256, NULL }, digest }, certReq TRUE }: RFC 3161 §2.4.1 by hand. */
START_TEST(a_query_is_the_der_of_its_digest)
{
    struct kedge_buf der;
    char hex[256];
    kedge_buf_init(&der, 256);
    ck_assert_int_eq(kedge_timestamp_query(kedge_view_str("abc"), NULL, &der), KEDGE_OK);
    kedge_hex_encode(der.ptr, der.len, hex);
    ck_assert_str_eq(hex, "3039020101"
                          "3031300d060960864801650304020105000420"
                          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
                          "0101ff");
    static const uint64_t nonce = 0x8000000000000001; /* an INTEGER has a sign: one more byte */
    kedge_buf_clear(&der);
    ck_assert_int_eq(kedge_timestamp_query(kedge_view_str("abc"), &nonce, &der), KEDGE_OK);
    kedge_hex_encode(der.ptr, der.len, hex);
    ck_assert_str_eq(hex, "3044020101"
                          "3031300d060960864801650304020105000420"
                          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
                          "0209008000000000000001"
                          "0101ff");
    kedge_buf_deinit(&der);
}
END_TEST

START_TEST(a_token_verifies_at_its_own_time)
{
    struct files f;
    struct kedge_timestamp t, claimed;
    struct kedge_diag d = {.text = ""};
    if (open_files(&f)) {
        ck_assert_msg(kedge_timestamp_verify(kedge_buf_view(&f.reply), kedge_buf_view(&f.data),
                                             kedge_buf_view(&f.ca), &t, &d)
                          == KEDGE_OK,
                      "%s", d.text);
        ck_assert_int_eq(kedge_timestamp_parse(kedge_buf_view(&f.reply), &claimed), KEDGE_OK);
        ck_assert_int_eq(claimed.time_s, t.time_s);
        ck_assert_int_gt(t.time_s, 1577836800); /* 2020 */
        ck_assert_str_eq(claimed.authority, "");
        ck_assert(strstr(t.authority, "CN=") != NULL);
        ck_assert_str_ne(t.policy, "");
        ck_assert_str_ne(t.serial, "");
    }
    close_files(&f);
}
END_TEST

START_TEST(other_bytes_and_other_authorities_are_refused)
{
    static const char stranger[] = /* self-signed, made for this test */
        "-----BEGIN CERTIFICATE-----\n"
        "MIIBUzCCAQWgAwIBAgIUAQIDBAUGBwgJCgsMDQ4PEBESExQwBQYDK2VwMBAxDjAM\n"
        "-----END CERTIFICATE-----\n";
    struct files f;
    struct kedge_timestamp t;
    struct kedge_diag d = {.text = ""};
    if (open_files(&f)) {
        struct kedge_view reply = kedge_buf_view(&f.reply), ca = kedge_buf_view(&f.ca);
        ck_assert_int_eq(kedge_timestamp_verify(reply, kedge_view_str("other"), ca, &t, &d), KEDGE_E_VERIFY);
        ck_assert_ptr_nonnull(strstr(d.text, "other bytes"));
        ck_assert_int_eq(
            kedge_timestamp_verify(reply, kedge_buf_view(&f.data), kedge_view_str(stranger), &t, &d),
            KEDGE_E_KEY);
        ck_assert_int_eq(kedge_timestamp_verify(reply, kedge_buf_view(&f.data), kedge_view_str(""), &t, &d),
                         KEDGE_E_KEY);
        ck_assert_int_eq(kedge_timestamp_verify(kedge_view_str(""), kedge_buf_view(&f.data), ca, &t, &d),
                         KEDGE_E_FORMAT);
    }
    close_files(&f);
}
END_TEST

static bool was_asked;

static int note_question(UI *ui)
{
    (void)ui;
    was_asked = true;
    return 0;
}

/* A file of CA certificates may have a block that is encrypted. No question is asked at the terminal, where a
 * program without a person would wait for ever. */
START_TEST(an_encrypted_certificate_is_refused_without_a_question)
{
    static const char encrypted[] = "-----BEGIN CERTIFICATE-----\n"
                                    "Proc-Type: 4,ENCRYPTED\n"
                                    "DEK-Info: AES-128-CBC,000102030405060708090A0B0C0D0E0F\n"
                                    "\n"
                                    "AAECAwQFBgcICQoLDA0ODw==\n"
                                    "-----END CERTIFICATE-----\n";
    struct files f;
    struct kedge_timestamp t;
    UI_METHOD *method = UI_create_method("a test");
    ck_assert_ptr_nonnull(method);
    ck_assert_int_eq(UI_method_set_opener(method, note_question), 0);
    UI_set_default_method(method);
    was_asked = false;
    if (open_files(&f)) {
        ck_assert_int_eq(kedge_timestamp_verify(kedge_buf_view(&f.reply), kedge_buf_view(&f.data),
                                                kedge_view_str(encrypted), &t, NULL),
                         KEDGE_E_KEY);
        ck_assert(!was_asked);
    }
    close_files(&f);
    UI_set_default_method(UI_OpenSSL());
    UI_destroy_method(method);
}
END_TEST

/* Every byte of the reply: a changed one never verifies as another token, and what it is about never changes.
 */
START_TEST(no_changed_byte_gives_another_token)
{
    struct files f;
    struct kedge_timestamp good, t;
    if (open_files(&f)) {
        struct kedge_view data = kedge_buf_view(&f.data), ca = kedge_buf_view(&f.ca);
        ck_assert_int_eq(kedge_timestamp_verify(kedge_buf_view(&f.reply), data, ca, &good, NULL), KEDGE_OK);
        size_t refused = 0;
        for (size_t i = 0; i < f.reply.len; i++) {
            f.reply.ptr[i] ^= 0x01;
            if (kedge_timestamp_verify(kedge_buf_view(&f.reply), data, ca, &t, NULL) == KEDGE_OK) {
                /* status, framing and certificates that the chain does not need are outside the signature */
                ck_assert_int_eq(t.time_s, good.time_s);
                ck_assert_str_eq(t.serial, good.serial);
                ck_assert_str_eq(t.policy, good.policy);
            } else {
                refused++;
            }
            f.reply.ptr[i] ^= 0x01;
        }
        ck_assert_uint_gt(refused, f.reply.len * 2 / 3);
        for (size_t n = 0; n < f.reply.len; n++) {
            struct kedge_view cut = kedge_view_of(f.reply.ptr, n);
            ck_assert_int_eq(kedge_timestamp_verify(cut, data, ca, &t, NULL), KEDGE_E_FORMAT);
        }
    }
    close_files(&f);
}
END_TEST

int main(void)
{
    KEDGE_ASSERT(kedge_crypto_init() == KEDGE_OK);
    Suite *s = suite_create("timestamp");
    TCase *c = tcase_create("timestamp");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, a_query_is_the_der_of_its_digest);
    tcase_add_test(c, a_token_verifies_at_its_own_time);
    tcase_add_test(c, other_bytes_and_other_authorities_are_refused);
    tcase_add_test(c, an_encrypted_certificate_is_refused_without_a_question);
    tcase_add_test(c, no_changed_byte_gives_another_token);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
