/* SHA-256, Ed25519 with its edge cases, key files and certificates. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/base/text.h"
#include "crypto/cert.h"
#include "crypto/hash.h"
#include "crypto/keyfile.h"
#include "crypto/sign.h"
#include "tests/fixtures/effort.h"

static struct kedge_key_pair pair_of(uint8_t byte)
{
    struct kedge_seed seed;
    struct kedge_key_pair pair;
    memset(seed.b, byte, sizeof seed.b);
    kedge_key_from_seed(&seed, &pair);
    return pair;
}

static void assert_hash(const struct kedge_hash *h, const char *hex)
{
    char text[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(h, text);
    ck_assert_str_eq(text, hex);
}

/* FIPS 180-4 examples. */
START_TEST(sha256_of_published_messages)
{
    static const char abc_hash[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    struct kedge_hash h;
    kedge_sha256(kedge_view_of(NULL, 0), &h);
    assert_hash(&h, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    kedge_sha256(kedge_view_str("abc"), &h);
    assert_hash(&h, abc_hash);
    kedge_sha256_2(kedge_view_str("a"), kedge_view_str("bc"), &h);
    assert_hash(&h, abc_hash);
    struct kedge_hasher *hasher;
    ck_assert_int_eq(kedge_hasher_new(&hasher), KEDGE_OK);
    for (int round = 0; round < 2; round++) { /* final starts over */
        kedge_hasher_update(hasher, kedge_view_str("ab"));
        kedge_sha256(kedge_view_str("in between"), &h); /* independent of the thread's context */
        kedge_hasher_update(hasher, kedge_view_str(""));
        kedge_hasher_update(hasher, kedge_view_str("c"));
        kedge_hasher_final(hasher, &h);
        assert_hash(&h, abc_hash);
    }
    kedge_hasher_final(hasher, &h);
    assert_hash(&h, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    kedge_hasher_free(hasher);
    kedge_hasher_free(NULL);
    kedge_mem_fail_at(1);
    struct kedge_hasher *none = NULL;
    ck_assert_int_eq(kedge_hasher_new(&none), KEDGE_E_NOMEM);
    kedge_mem_fail_at(0);
    ck_assert_ptr_null(none);
}
END_TEST

static void *hash_in_thread(void *arg)
{
    struct kedge_hash *h = arg;
    for (int i = 0; i < 1000; i++) {
        kedge_sha256(kedge_view_str("abc"), h);
    }
    return NULL;
}

START_TEST(threads_hash_independently)
{
    pthread_t threads[4];
    struct kedge_hash hashes[4];
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, hash_in_thread, &hashes[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        assert_hash(&hashes[i], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
END_TEST

START_TEST(hash_values)
{
    struct kedge_hash zero = {{0}}, one = {{0}}, h;
    one.b[31] = 1;
    ck_assert(kedge_hash_is_zero(&zero) && !kedge_hash_is_zero(&one));
    ck_assert(kedge_hash_eq(&one, &one) && !kedge_hash_eq(&zero, &one));
    ck_assert_int_lt(kedge_hash_cmp(&zero, &one), 0);
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(&one, hex);
    ck_assert_int_eq(kedge_hash_from_hex(kedge_view_str(hex), &h), KEDGE_OK);
    ck_assert(kedge_hash_eq(&h, &one));
    hex[0] = 'A';
    ck_assert_int_eq(kedge_hash_from_hex(kedge_view_str(hex), &h), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_hash_from_hex(kedge_view_of(hex, 62), &h), KEDGE_E_FORMAT);
    ck_assert(kedge_hash_eq(&h, &one));
}
END_TEST

/* RFC 8032 §7.1, test 2. */
START_TEST(signature_of_the_rfc)
{
    struct kedge_seed seed;
    struct kedge_key_pair pair;
    struct kedge_signature sig;
    static const uint8_t message[1] = {0x72};
    ck_assert_int_eq(
        kedge_hex_decode(kedge_view_str("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"),
                         seed.b, sizeof seed.b),
        KEDGE_OK);
    kedge_key_from_seed(&seed, &pair);
    char hex[2 * KEDGE_SIGNATURE_LEN + 1];
    kedge_hex_encode(pair.public.b, KEDGE_KEY_LEN, hex);
    ck_assert_str_eq(hex, "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
    struct kedge_view m = kedge_view_of(message, sizeof message);
    kedge_sign(m, &pair, &sig);
    kedge_hex_encode(sig.b, sizeof sig.b, hex);
    ck_assert_str_eq(hex, "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                          "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
    ck_assert_int_eq(kedge_verify(m, &sig, &pair.public), KEDGE_OK);
    for (size_t i = 0; i < 8 * sizeof sig.b; i++) {
        sig.b[i / 8] ^= (uint8_t)(1u << (i % 8));
        ck_assert_int_eq(kedge_verify(m, &sig, &pair.public), KEDGE_E_VERIFY);
        sig.b[i / 8] ^= (uint8_t)(1u << (i % 8));
    }
    ck_assert_int_eq(kedge_verify(kedge_view_of(NULL, 0), &sig, &pair.public), KEDGE_E_VERIFY);
    struct kedge_seed back;
    kedge_key_seed(&pair, &back);
    ck_assert_mem_eq(&back, &seed, sizeof seed);
    kedge_key_wipe(&pair);
    static const struct kedge_key_pair zero;
    ck_assert_mem_eq(&pair, &zero, sizeof zero);
}
END_TEST

START_TEST(generated_keys_differ_and_are_valid)
{
    struct kedge_key_pair a, b;
    kedge_key_generate(&a);
    kedge_key_generate(&b);
    ck_assert(!kedge_public_key_eq(&a.public, &b.public));
    ck_assert(kedge_public_key_is_valid(&a.public));
    struct kedge_public_key bad = {{0}};
    ck_assert(!kedge_public_key_is_valid(&bad)); /* order 4 */
    bad.b[0] = 1;
    ck_assert(!kedge_public_key_is_valid(&bad)); /* identity */
    memset(bad.b, 0xff, sizeof bad.b);
    ck_assert(!kedge_public_key_is_valid(&bad)); /* not canonical */
}
END_TEST

/* Splits one line at tabs; returns the number of columns. */
static size_t split(char *line, char **columns, size_t max)
{
    size_t count = 0;
    char *save = NULL;
    for (char *p = strtok_r(line, "\t\n", &save); p && count < max; p = strtok_r(NULL, "\t\n", &save)) {
        columns[count++] = p;
    }
    return count;
}

/* Verdicts of libsodium 1.0.18 over novifinancial/ed25519-speccheck and own triples. */
START_TEST(ed25519_edge_cases)
{
    if (!kedge_file_exists("../shared/vectors/ed25519/edge_cases.tsv")) {
        printf("skipped: ../shared/vectors absent\n");
        return;
    }
    struct kedge_buf file KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&file, 65536);
    ck_assert_int_eq(kedge_file_read("../shared/vectors/ed25519/edge_cases.tsv", &file, NULL), KEDGE_OK);
    kedge_buf_put_u8(&file, 0);
    ck_assert_int_eq(file.err, KEDGE_OK);
    size_t rows = 0;
    char *save = NULL;
    for (char *line = strtok_r((char *)file.ptr, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *columns[8];
        if (line[0] == '#') {
            continue;
        }
        ck_assert_uint_eq(split(line, columns, 8), 8);
        uint8_t message[64];
        struct kedge_public_key key;
        struct kedge_signature sig;
        size_t len = strlen(columns[1]) / 2;
        ck_assert_uint_le(len, sizeof message);
        ck_assert_int_eq(kedge_hex_decode(kedge_view_str(columns[1]), message, len), KEDGE_OK);
        ck_assert_int_eq(kedge_hex_decode(kedge_view_str(columns[2]), key.b, sizeof key.b), KEDGE_OK);
        ck_assert_int_eq(kedge_hex_decode(kedge_view_str(columns[3]), sig.b, sizeof sig.b), KEDGE_OK);
        int want = strcmp(columns[4], "accept") == 0 ? KEDGE_OK : KEDGE_E_VERIFY;
        ck_assert_msg(kedge_verify(kedge_view_of(message, len), &sig, &key) == want, "case %s", columns[0]);
        ck_assert_msg(kedge_public_key_is_valid(&key) == (strcmp(columns[6], "yes") == 0), "case %s",
                      columns[0]);
        rows++;
    }
    ck_assert_uint_eq(rows, 15);
}
END_TEST

/* The usual form of a key is read without libcrypto. Every text of its length that differs from it in one
 * byte is read as libcrypto reads it; what libcrypto says is known by the same text after an empty line,
 * which is no usual form any more. */
START_TEST(usual_pem_and_libcrypto_agree)
{
    struct kedge_key_pair pair, again, other;
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    uint32_t refused = 0, same = 0, others = 0, tried = 0;
    kedge_key_generate(&pair);
    kedge_buf_init(&b, KEDGE_PEM_MAX);
    kedge_buf_put(&b, "\n", 1);
    ck_assert_int_eq(kedge_pem_put_private(&b, &pair), KEDGE_OK);
    ck_assert_uint_eq(b.len, 1 + 28 + 64 + 27);
    for (size_t i = 1; i < b.len; i += EFFORT(1, 11)) {
        static const uint8_t tries[] = {'A', '-', '=', '\n', 0, 0x80};
        const uint8_t was = b.ptr[i];
        for (size_t k = 0; k < sizeof tries; k++, tried++) {
            b.ptr[i] = tries[k];
            int by_libcrypto = kedge_pem_get_private(kedge_buf_view(&b), &other);
            int err = kedge_pem_get_private(kedge_view_of(b.ptr + 1, b.len - 1), &again);
            ck_assert_msg(err == by_libcrypto, "byte %zu as %02x: %d, libcrypto %d", i, tries[k], err,
                          by_libcrypto);
            ck_assert(err || memcmp(&again, &other, sizeof again) == 0);
            refused += err ? 1 : 0;
            same += !err && memcmp(&again, &pair, sizeof pair) == 0 ? 1 : 0;
            others += !err && memcmp(&again, &pair, sizeof pair) != 0 ? 1 : 0;
        }
        b.ptr[i] = was;
    }
    ck_assert(refused > tried / 2 && others > 0);
    ck_assert_uint_eq(refused + same + others, tried);
}
END_TEST

/* RFC 8410 §10.3: a private key as PKCS#8, with the public key that §10.1 gives for it. */
START_TEST(pem_of_the_rfc)
{
    static const char private_pem[] = "-----BEGIN PRIVATE KEY-----\n"
                                      "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
                                      "-----END PRIVATE KEY-----\n";
    static const char public_pem[] = "-----BEGIN PUBLIC KEY-----\n"
                                     "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
                                     "-----END PUBLIC KEY-----\n";
    struct kedge_key_pair pair;
    struct kedge_public_key key;
    ck_assert_int_eq(kedge_pem_get_private(kedge_view_str(private_pem), &pair), KEDGE_OK);
    ck_assert_int_eq(kedge_pem_get_public(kedge_view_str(public_pem), &key), KEDGE_OK);
    ck_assert(kedge_public_key_eq(&key, &pair.public));
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_PEM_MAX);
    ck_assert_int_eq(kedge_pem_put_private(&b, &pair), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&b), kedge_view_str(private_pem)));
    kedge_buf_clear(&b);
    ck_assert_int_eq(kedge_pem_put_public(&b, &key), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&b), kedge_view_str(public_pem)));
    ck_assert_int_eq(kedge_pem_get_public(kedge_view_str(private_pem), &key), KEDGE_E_KEY);
    ck_assert_int_eq(kedge_pem_get_private(kedge_view_str(public_pem), &pair), KEDGE_E_KEY);
    ck_assert_int_eq(kedge_pem_get_private(kedge_view_str("nonsense"), &pair), KEDGE_E_KEY);
    ck_assert_int_eq(kedge_pem_get_private(kedge_view_of(NULL, 0), &pair), KEDGE_E_KEY);
    /* X25519: a key, but not one that signs (RFC 8410's OID with its last arc changed). */
    static const char x25519[] = "-----BEGIN PUBLIC KEY-----\n"
                                 "MCowBQYDK2VuAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
                                 "-----END PUBLIC KEY-----\n";
    ck_assert_int_eq(kedge_pem_get_public(kedge_view_str(x25519), &key), KEDGE_E_KEY);
    static const char identity[] = "-----BEGIN PUBLIC KEY-----\n"
                                   "MCowBQYDK2VwAyEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
                                   "-----END PUBLIC KEY-----\n";
    ck_assert_int_eq(kedge_pem_get_public(kedge_view_str(identity), &key), KEDGE_E_KEY);
}
END_TEST

START_TEST(key_files)
{
    char dir[] = "/tmp/kedge-crypto-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    char path[KEDGE_PATH_MAX], public_path[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_path_join(path, dir, "key.pem"), KEDGE_OK);
    ck_assert_int_eq(kedge_path_join(public_path, dir, "key.pub"), KEDGE_OK);
    struct kedge_key_pair pair = pair_of(1), read = {0};
    struct kedge_public_key key;
    struct kedge_diag diag;
    ck_assert_int_eq(kedge_keyfile_read_private(path, &read, &diag), KEDGE_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(diag.text, "key.pem"));
    ck_assert_int_eq(kedge_keyfile_write_private(path, &pair, &diag), KEDGE_OK);
    struct kedge_buf pem KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&pem, KEDGE_PEM_MAX);
    ck_assert_int_eq(kedge_pem_put_public(&pem, &pair.public), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(public_path, kedge_buf_view(&pem), 0644, &diag), KEDGE_OK);
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_uint_eq(info.st_mode & 07777, 0600);
    ck_assert_int_eq(kedge_keyfile_read_private(path, &read, &diag), KEDGE_OK);
    ck_assert_mem_eq(&read, &pair, sizeof pair);
    ck_assert_int_eq(kedge_keyfile_read_public(public_path, &key, &diag), KEDGE_OK);
    ck_assert(kedge_public_key_eq(&key, &pair.public));
    static const mode_t open_modes[] = {0640, 0604, 0620, 0610, 0666};
    for (size_t i = 0; i < sizeof open_modes / sizeof open_modes[0]; i++) {
        ck_assert_int_eq(chmod(path, open_modes[i]), 0);
        ck_assert_int_eq(kedge_keyfile_read_private(path, &read, &diag), KEDGE_E_DENIED);
        ck_assert_ptr_nonnull(strstr(diag.hint, "chmod 600"));
    }
    ck_assert_int_eq(kedge_keyfile_read_private(dir, &read, &diag), KEDGE_E_KEY); /* a folder */
    ck_assert_int_eq(kedge_file_write(path, kedge_view_str("nonsense"), 0600, &diag), KEDGE_OK);
    ck_assert_int_eq(kedge_keyfile_read_private(path, &read, &diag), KEDGE_E_KEY);
    static char large[KEDGE_PEM_MAX + 1];
    ck_assert_int_eq(kedge_file_write(path, kedge_view_of(large, sizeof large), 0600, &diag), KEDGE_OK);
    ck_assert_int_eq(kedge_keyfile_read_private(path, &read, &diag), KEDGE_E_TOO_LONG);
    ck_assert_int_eq(kedge_keyfile_read_public(path, &key, &diag), KEDGE_E_TOO_LONG);
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}
END_TEST

/* PEM to DER by hand: the base64 between the two marker lines. */
static void der_of(const struct kedge_buf *pem, struct kedge_buf *der)
{
    struct kedge_buf base64 KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&base64, KEDGE_CERT_MAX);
    bool marker = false;
    for (size_t i = 0; i < pem->len; i++) {
        marker = marker || pem->ptr[i] == '-';
        if (pem->ptr[i] == '\n') {
            marker = false;
        } else if (!marker) {
            kedge_buf_put_u8(&base64, pem->ptr[i]);
        }
    }
    ck_assert_int_eq(kedge_base64_decode(kedge_buf_view(&base64), false, der), KEDGE_OK);
}

START_TEST(certificates_carry_their_key)
{
    struct kedge_key_pair pair = pair_of(1);
    struct kedge_buf pem KEDGE_CLEANUP(kedge_buf_deinit), again KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_buf der KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&pem, KEDGE_CERT_MAX);
    kedge_buf_init(&again, KEDGE_CERT_MAX);
    kedge_buf_init(&der, KEDGE_CERT_MAX);
    ck_assert_int_eq(kedge_cert_self_signed(&pair, "north-1", &pem), KEDGE_OK);
    ck_assert_int_eq(kedge_cert_self_signed(&pair, "north-1", &again), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&pem), kedge_buf_view(&again)));
    der_of(&pem, &der);
    ck_assert_ptr_nonnull(memmem(der.ptr, der.len, pair.public.b, KEDGE_KEY_LEN));
    char san[80] = "kedge:";
    kedge_hex_encode(pair.public.b, KEDGE_KEY_LEN, san + strlen(san));
    ck_assert_ptr_nonnull(memmem(der.ptr, der.len, san, strlen(san)));
    ck_assert_ptr_nonnull(memmem(der.ptr, der.len, "99991231235959Z", 15));
    ck_assert_ptr_nonnull(memmem(der.ptr, der.len, "north-1", 7));
    ck_assert_int_eq(kedge_cert_self_signed(&pair, "", &pem), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_cert_self_signed(&pair, "\xff", &pem), KEDGE_E_ARG);
    char longest[KEDGE_CERT_NAME_MAX + 2];
    memset(longest, 'x', sizeof longest);
    longest[KEDGE_CERT_NAME_MAX + 1] = '\0';
    ck_assert_int_eq(kedge_cert_self_signed(&pair, longest, &pem), KEDGE_E_ARG);
    longest[KEDGE_CERT_NAME_MAX] = '\0';
    ck_assert_int_eq(kedge_cert_self_signed(&pair, longest, &pem), KEDGE_OK);
}
END_TEST

int main(void)
{
    int err = kedge_crypto_init();
    TCase *tc = tcase_create("crypto");
    tcase_add_test(tc, sha256_of_published_messages);
    tcase_add_test(tc, threads_hash_independently);
    tcase_add_test(tc, hash_values);
    tcase_add_test(tc, signature_of_the_rfc);
    tcase_add_test(tc, generated_keys_differ_and_are_valid);
    tcase_add_test(tc, ed25519_edge_cases);
    tcase_add_test(tc, usual_pem_and_libcrypto_agree);
    tcase_add_test(tc, pem_of_the_rfc);
    tcase_add_test(tc, key_files);
    tcase_add_test(tc, certificates_carry_their_key);
    Suite *s = suite_create("crypto");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = err ? 1 : srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
