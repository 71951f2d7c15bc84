/* ECDSA: the example signatures of RFC 6979, model signatures that others made, and keys on other curves. */
#include "crypto/p256.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/os/file.h"
#include "common/base/text.h"
#include "crypto/sign.h"

static struct kedge_p256_key key_of(const char *hex)
{
    struct kedge_p256_key key;
    ck_assert_int_eq(kedge_hex_decode(kedge_view_str(hex), key.secret, sizeof key.secret), KEDGE_OK);
    return key;
}

static const char rfc_key[] = "c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721";

/* RFC 6979, A.2.5, SHA-256. */
START_TEST(signs_as_rfc_6979_does)
{
    static const struct {
        const char *message, *der;
    } rows[] = {
        {"sample", "3046022100efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
                   "022100f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"},
        {"test", "3045022100f1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367"
                 "0220019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083"},
    };
    struct kedge_p256_key key = key_of(rfc_key);
    struct kedge_buf der, pem;
    char hex[2 * KEDGE_EC_SIGNATURE_MAX + 1];
    kedge_buf_init(&pem, KEDGE_EC_PEM_MAX);
    ck_assert_int_eq(kedge_p256_put_public(&pem, &key), KEDGE_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kedge_view message = kedge_view_str(rows[i].message);
        kedge_buf_init(&der, KEDGE_EC_SIGNATURE_MAX);
        ck_assert_int_eq(kedge_p256_sign(message, &key, &der), KEDGE_OK);
        kedge_hex_encode(der.ptr, der.len, hex);
        ck_assert_str_eq(hex, rows[i].der);
        ck_assert_int_eq(kedge_ec_verify(message, kedge_buf_view(&der), kedge_buf_view(&pem)), KEDGE_OK);
        ck_assert_int_eq(kedge_ec_verify(kedge_view_str("other"), kedge_buf_view(&der), kedge_buf_view(&pem)),
                         KEDGE_E_VERIFY);
        for (size_t k = 0; k < der.len; k++) {
            der.ptr[k] ^= 1;
            ck_assert_int_eq(kedge_ec_verify(message, kedge_buf_view(&der), kedge_buf_view(&pem)),
                             KEDGE_E_VERIFY);
            der.ptr[k] ^= 1;
        }
        kedge_buf_deinit(&der);
    }
    kedge_buf_deinit(&pem);
}
END_TEST

START_TEST(secrets_out_of_range_are_refused)
{
    static const char *const secrets[] = {
        "0000000000000000000000000000000000000000000000000000000000000000",
        "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", /* the order itself */
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    };
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        struct kedge_p256_key key = key_of(secrets[i]);
        struct kedge_buf out;
        kedge_buf_init(&out, KEDGE_EC_PEM_MAX);
        ck_assert_int_eq(kedge_p256_sign(kedge_view_str("m"), &key, &out), KEDGE_E_KEY);
        ck_assert_int_eq(kedge_p256_put_public(&out, &key), KEDGE_E_KEY);
        ck_assert_int_eq(kedge_p256_put_private(&out, &key), KEDGE_E_KEY);
        ck_assert_uint_eq(out.len, 0);
        kedge_buf_deinit(&out);
    }
}
END_TEST

START_TEST(keys_survive_their_text)
{
    for (int i = 0; i < 8; i++) {
        struct kedge_p256_key key, again;
        struct kedge_buf pem;
        ck_assert_int_eq(kedge_p256_generate(&key), KEDGE_OK);
        kedge_buf_init(&pem, KEDGE_EC_PEM_MAX);
        ck_assert_int_eq(kedge_p256_put_private(&pem, &key), KEDGE_OK);
        ck_assert_int_eq(kedge_p256_get_private(kedge_buf_view(&pem), &again), KEDGE_OK);
        ck_assert_mem_eq(key.secret, again.secret, sizeof key.secret);
        ck_assert_int_eq(kedge_ec_verify(kedge_view_str(""), kedge_view_str("x"), kedge_buf_view(&pem)),
                         KEDGE_E_KEY); /* a private key is no public one */
        kedge_buf_deinit(&pem);
    }
}
END_TEST

START_TEST(what_is_no_key_is_refused)
{
    static const char ed25519[] =
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
        "-----END PUBLIC KEY-----\n";
    static const char empty[] = "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n";
    static const char *const texts[] = {"", empty, "nonsense", ed25519};
    struct kedge_hash hint;
    struct kedge_p256_key key;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct kedge_view text = kedge_view_str(texts[i]);
        ck_assert_int_eq(kedge_ec_hint(text, &hint), KEDGE_E_KEY);
        ck_assert_int_eq(kedge_ec_verify(text, text, text), KEDGE_E_KEY);
        ck_assert_int_eq(kedge_p256_get_private(text, &key), KEDGE_E_KEY);
    }
}
END_TEST

/* The example of secure-systems-lab/dsse, protocol.md: its signature is r and s side by side. */
START_TEST(the_example_of_dsse_verifies)
{
    static const char hex[] = "03726ab101ad56c2763b6c6aac8e487275e2a79193a09dc5f859d9f8ef3c4a3b"
                              "51eab0c06a369b64a7222537d4887a893dc200ae21060074d57825235b624864";
    static const char message[] = "DSSEv1 29 http://example.com/HelloWorld 11 hello world";
    static const char path[] = "../shared/vectors/dsse/spec_p256.pub.pem";
    uint8_t raw[64], der[70] = {0x30, 68, 0x02, 32};
    struct kedge_buf pem;
    if (!kedge_file_exists(path)) {
        printf("skipped: ../shared/vectors absent\n");
        return;
    }
    ck_assert_int_eq(kedge_hex_decode(kedge_view_str(hex), raw, sizeof raw), KEDGE_OK);
    memcpy(der + 4, raw, 32); /* both begin with a zero bit */
    der[36] = 0x02;
    der[37] = 32;
    memcpy(der + 38, raw + 32, 32);
    kedge_buf_init(&pem, KEDGE_EC_PEM_MAX);
    ck_assert_int_eq(kedge_file_read(path, &pem, NULL), KEDGE_OK);
    struct kedge_view sig = kedge_view_of(der, sizeof der);
    ck_assert_int_eq(kedge_ec_verify(kedge_view_str(message), sig, kedge_buf_view(&pem)), KEDGE_OK);
    der[69] ^= 1;
    ck_assert_int_eq(kedge_ec_verify(kedge_view_str(message), sig, kedge_buf_view(&pem)), KEDGE_E_VERIFY);
    kedge_buf_deinit(&pem);
}
END_TEST

/* The hint of OpenSSF model signatures, as the one that made the vectors has it. */
START_TEST(hints_are_those_of_others)
{
    static const struct {
        const char *file, *hint;
    } rows[] = {
        {"signing-key-pub.pem", "e8450dec4eb99dae995da9af1bc2cc9f76ed669ee2e744f57abba763df3e3f8e"},
        {"own-p256-pub.pem", "ae245c5f02a478d93773c929f4c38e309681cf33feb62a2aa30792ed296f14b8"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[KEDGE_PATH_MAX], hex[KEDGE_HASH_HEX_LEN + 1];
        struct kedge_hash hint;
        struct kedge_buf pem;
        snprintf(path, sizeof path, "../shared/vectors/oms/%s", rows[i].file);
        if (!kedge_file_exists(path)) {
            printf("skipped: ../shared/vectors absent\n");
            return;
        }
        kedge_buf_init(&pem, KEDGE_EC_PEM_MAX);
        ck_assert_int_eq(kedge_file_read(path, &pem, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_ec_hint(kedge_buf_view(&pem), &hint), KEDGE_OK);
        kedge_hash_hex(&hint, hex);
        ck_assert_str_eq(hex, rows[i].hint);
        kedge_buf_deinit(&pem);
    }
}
END_TEST

START_TEST(files_are_made_once_and_kept_from_others)
{
    char path[] = "/tmp/kedge-p256-XXXXXX";
    struct kedge_p256_key key, again;
    struct kedge_diag d = {.text = ""};
    struct stat st;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(kedge_p256_file(path, true, &key, &d), KEDGE_E_KEY); /* empty: never written over */
    ck_assert_ptr_nonnull(strstr(d.text, path));
    unlink(path);
    ck_assert_int_eq(kedge_p256_file(path, false, &key, &d), KEDGE_E_NOT_FOUND);
    ck_assert_int_eq(kedge_p256_file(path, true, &key, &d), KEDGE_OK);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_assert_int_eq(kedge_p256_file(path, true, &again, &d), KEDGE_OK);
    ck_assert_mem_eq(key.secret, again.secret, sizeof key.secret);
    ck_assert_int_eq(chmod(path, 0640), 0);
    ck_assert_int_eq(kedge_p256_file(path, false, &again, &d), KEDGE_E_DENIED);
    unlink(path);
}
END_TEST

int main(void)
{
    KEDGE_ASSERT(kedge_crypto_init() == KEDGE_OK);
    Suite *s = suite_create("p256");
    TCase *t = tcase_create("p256");
    tcase_add_test(t, signs_as_rfc_6979_does);
    tcase_add_test(t, secrets_out_of_range_are_refused);
    tcase_add_test(t, keys_survive_their_text);
    tcase_add_test(t, what_is_no_key_is_refused);
    tcase_add_test(t, the_example_of_dsse_verifies);
    tcase_add_test(t, hints_are_those_of_others);
    tcase_add_test(t, files_are_made_once_and_kept_from_others);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
