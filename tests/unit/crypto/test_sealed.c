/* Private keys under a passphrase: the format, what is refused before work is done, the passphrase's source.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/os/file.h"
#include "common/base/text.h"
#include "crypto/keyfile.h"
#include "crypto/passphrase.h"

static const struct kedge_seal_cost cheap = {1, KEDGE_SEAL_MEMORY_MIN_KIB};
static char scratch[] = "/tmp/kedge-sealed-XXXXXX";

static struct kedge_key_pair pair_of(uint8_t byte)
{
    struct kedge_seed seed;
    struct kedge_key_pair pair;
    memset(seed.b, byte, sizeof seed.b);
    kedge_key_from_seed(&seed, &pair);
    return pair;
}

static const char *at(const char *name)
{
    static char paths[16][128];
    static unsigned next;
    char *p = paths[next++ % 16];
    snprintf(p, sizeof paths[0], "%s/%s", scratch, name);
    return p;
}

static void put(const char *path, const char *text, unsigned mode)
{
    ck_assert_int_eq(kedge_file_write(path, kedge_view_str(text), mode, NULL), KEDGE_OK);
    ck_assert_int_eq(chmod(path, (mode_t)mode), 0);
}

START_TEST(a_key_comes_back_by_its_passphrase_alone)
{
    struct kedge_key_pair pair = pair_of(7), out;
    struct kedge_sealed s, again;
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_PEM_MAX);
    memset(&out, 0x5a, sizeof out);
    ck_assert_int_eq(kedge_seal(&pair, kedge_view_str("correct horse"), &cheap, &s), KEDGE_OK);
    ck_assert_int_eq(kedge_unseal(&s, kedge_view_str("correct horsf"), &out), KEDGE_E_VERIFY);
    ck_assert_uint_eq(*(uint8_t *)&out, 0x5a);
    ck_assert_int_eq(kedge_unseal(&s, kedge_view_str("correct horse"), &out), KEDGE_OK);
    ck_assert_mem_eq(&out, &pair, sizeof pair);
    kedge_sealed_encode(&s, &text);
    ck_assert(kedge_sealed_is(kedge_buf_view(&text)));
    ck_assert_int_eq(kedge_sealed_decode(kedge_buf_view(&text), &again), KEDGE_OK);
    ck_assert_mem_eq(&again, &s, sizeof s);
    /* another salt and nonce each time */
    ck_assert_int_eq(kedge_seal(&pair, kedge_view_str("correct horse"), &cheap, &again), KEDGE_OK);
    ck_assert(memcmp(s.salt, again.salt, sizeof s.salt) != 0
              && memcmp(s.nonce, again.nonce, sizeof s.nonce) != 0);
    ck_assert(memcmp(s.box, again.box, sizeof s.box) != 0);
}
END_TEST

/* Made by another program with libsodium's calls alone, from the format's description. */
START_TEST(what_was_sealed_stays_readable)
{
    static const char text[] = "-----BEGIN KEDGE SEALED PRIVATE KEY-----\n"
                               "AQEBAAAAAAEAACAAAAECAwQFBgcICQoLDA0OD2RlZmdoaWprbG1ub3BxcnN0dXZ3\n"
                               "eHl6e+pKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIsm5DT9g/A4nWJc7y/\n"
                               "J5Yz0OURCoGgPFUu58J+o3WnL5BK2DtKb68rkC/tQs7w5Hpy\n"
                               "-----END KEDGE SEALED PRIVATE KEY-----\n";
    struct kedge_key_pair pair = pair_of(7), out;
    struct kedge_sealed s;
    ck_assert_int_eq(kedge_sealed_decode(kedge_view_str(text), &s), KEDGE_OK);
    ck_assert_uint_eq(s.cost.passes, 1);
    ck_assert_uint_eq(s.cost.memory_kib, KEDGE_SEAL_MEMORY_MIN_KIB);
    ck_assert_int_eq(kedge_unseal(&s, kedge_view_str("kedge"), &out), KEDGE_OK);
    ck_assert_mem_eq(&out, &pair, sizeof pair);
}
END_TEST

START_TEST(every_byte_counts)
{
    struct kedge_key_pair pair = pair_of(7), out;
    struct kedge_sealed s, damaged;
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    unsigned unsealed = 0;
    kedge_buf_init(&text, KEDGE_PEM_MAX);
    ck_assert_int_eq(kedge_seal(&pair, kedge_view_str("x"), &cheap, &s), KEDGE_OK);
    kedge_sealed_encode(&s, &text);
    for (size_t i = 0; i < text.len; i++) {
        ck_assert_int_eq(kedge_sealed_decode(kedge_view_of(text.ptr, i), &damaged), KEDGE_E_KEY);
        for (unsigned bit = 0; bit < 8; bit++) {
            text.ptr[i] ^= (uint8_t)(1u << bit);
            int err = kedge_sealed_decode(kedge_buf_view(&text), &damaged);
            ck_assert(err == KEDGE_OK || err == KEDGE_E_KEY);
            bool costs_more =
                !err && (damaged.cost.passes != 1 || damaged.cost.memory_kib != cheap.memory_kib);
            if (!err && !costs_more && (i * 8 + bit) % 17 == 0) { /* each takes some ms */
                ck_assert_int_eq(kedge_unseal(&damaged, kedge_view_str("x"), &out), KEDGE_E_VERIFY);
                unsealed++;
            }
            text.ptr[i] ^= (uint8_t)(1u << bit);
        }
    }
    ck_assert_uint_gt(unsealed, 20);
    kedge_buf_put_u8(&text, '\n');
    ck_assert_int_eq(kedge_sealed_decode(kedge_buf_view(&text), &damaged), KEDGE_E_KEY);
}
END_TEST

/* A file says how much memory it wants: not as much as it likes. */
START_TEST(absurd_costs_are_refused_before_they_are_paid)
{
    static const struct kedge_seal_cost absurd[] = {
        {0, 8192}, {11, 8192},           {UINT32_MAX, 8192}, {1, 8191},
        {1, 0},    {1, 1024 * 1024 + 1}, {1, UINT32_MAX},    {UINT32_MAX, UINT32_MAX}};
    struct kedge_key_pair pair = pair_of(7), out;
    struct kedge_sealed s, again;
    ck_assert_int_eq(kedge_seal(&pair, kedge_view_str("x"), &cheap, &s), KEDGE_OK);
    for (size_t i = 0; i < sizeof absurd / sizeof absurd[0]; i++) {
        struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&text, KEDGE_PEM_MAX);
        s.cost = absurd[i];
        kedge_sealed_encode(&s, &text);
        ck_assert_int_eq(kedge_sealed_decode(kedge_buf_view(&text), &again), KEDGE_E_KEY);
        ck_assert_int_eq(kedge_unseal(&s, kedge_view_str("x"), &out), KEDGE_E_ARG);
        ck_assert_int_eq(kedge_seal(&pair, kedge_view_str("x"), &absurd[i], &again), KEDGE_E_ARG);
    }
    ck_assert_int_eq(kedge_seal(&pair, kedge_view_str(""), &cheap, &again), KEDGE_E_ARG);
}
END_TEST

START_TEST(files_take_the_passphrase_from_a_file)
{
    struct kedge_key_pair pair = pair_of(9), out;
    struct kedge_public_key public_key;
    struct kedge_diag d = {.text = ""};
    bool is;
    struct stat st;
    const char *key = at("key.pem"), *secret = at("secret");
    ck_assert_int_eq(kedge_keyfile_seal(key, &pair, kedge_view_str("open sesame"), &cheap, &d), KEDGE_OK);
    ck_assert_int_eq(stat(key, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    unsetenv("KEDGE_PASSPHRASE_FILE");
    ck_assert_int_eq(kedge_keyfile_read_private(key, &out, &d), KEDGE_E_DENIED); /* nobody to ask */
    ck_assert_ptr_nonnull(strstr(d.text, "sealed"));
    ck_assert_int_eq(kedge_keyfile_read_private(key, &out, NULL), KEDGE_E_DENIED);
    put(secret, "open sesame\nand more\n", 0644);
    setenv("KEDGE_PASSPHRASE_FILE", secret, 1);
    ck_assert_int_eq(kedge_keyfile_read_private(key, &out, &d), KEDGE_E_DENIED); /* others may read it */
    ck_assert_int_eq(chmod(secret, 0600), 0);
    ck_assert_msg(kedge_keyfile_read_private(key, &out, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_mem_eq(&out, &pair, sizeof pair);
    put(at("other"), "open says me", 0600);
    kedge_passphrase_use_file(at("other")); /* before the environment */
    ck_assert_int_eq(kedge_keyfile_read_private(key, &out, &d), KEDGE_E_VERIFY);
    ck_assert_ptr_nonnull(strstr(d.text, "another passphrase"));
    put(at("crlf"), "open sesame\r\n", 0600);
    kedge_passphrase_use_file(at("crlf"));
    ck_assert_int_eq(kedge_keyfile_read_private(key, &out, &d), KEDGE_OK);
    put(at("empty"), "\n", 0600);
    kedge_passphrase_use_file(at("empty"));
    ck_assert_int_eq(kedge_keyfile_read_private(key, &out, &d), KEDGE_E_KEY);
    kedge_passphrase_use_file(at("absent"));
    ck_assert_int_eq(kedge_keyfile_read_private(key, &out, &d), KEDGE_E_NOT_FOUND);
    kedge_passphrase_use_file(NULL);
    /* whether it is sealed, and whose it claims to be, is no secret */
    ck_assert_int_eq(kedge_keyfile_is_sealed(key, &is, &public_key, &d), KEDGE_OK);
    ck_assert(is && kedge_public_key_eq(&public_key, &pair.public));
    ck_assert_int_eq(kedge_keyfile_write_private(at("plain.pem"), &pair, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_keyfile_is_sealed(at("plain.pem"), &is, &public_key, &d), KEDGE_OK);
    ck_assert(!is);
}
END_TEST

int main(void)
{
    if (kedge_crypto_init() != KEDGE_OK || !mkdtemp(scratch)) {
        return EXIT_FAILURE;
    }
    Suite *s = suite_create("crypto/sealed");
    TCase *tc = tcase_create("sealed");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, a_key_comes_back_by_its_passphrase_alone);
    tcase_add_test(tc, what_was_sealed_stays_readable);
    tcase_add_test(tc, every_byte_counts);
    tcase_add_test(tc, absurd_costs_are_refused_before_they_are_paid);
    tcase_add_test(tc, files_take_the_passphrase_from_a_file);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    failed += kedge_dir_remove(scratch) != KEDGE_OK;
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
