/* Keccak-256 against published digests and, by its other padding, against libcrypto's SHA3-256. */
#include <check.h>
#include <openssl/evp.h>
#include <string.h>

#include "chain/anchor/keccak256.h"
#include "chain/log/lines.h"
#include "common/base/text.h"
#include "tests/unit/chain/vectors.h"

/* "-", hex, or "<n>x<byte>". */
static void input(struct kedge_view text, struct kedge_buf *out)
{
    struct kedge_view rest = text, count;
    kedge_buf_clear(out);
    if (!kedgei_cut(&rest, 'x', &count)) {
        vector_hex(text, out);
        return;
    }
    uint8_t byte;
    ck_assert_int_eq(kedge_hex_decode(rest, &byte, 1), KEDGE_OK);
    for (uint64_t i = vector_u64(count); i > 0; i--) {
        kedge_buf_put_u8(out, byte);
    }
}

START_TEST(digests_are_the_published_ones)
{
    struct kedge_buf in KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_hash h, wanted;
    size_t rows = 0;
    kedge_buf_init(&in, VECTOR_MAX);
    if (!vectors_present()) {
        return;
    }
    struct vector_table t = vector_table_open("evm/keccak256.tsv");
    for (; vector_table_next(&t); rows++) {
        input(t.columns[0], &in);
        wanted = vector_hash(t.columns[1]);
        kedge_keccak256(kedge_buf_view(&in), &h);
        ck_assert_msg(kedge_hash_eq(&h, &wanted), "row %zu", rows);
    }
    ck_assert_uint_gt(rows, 10);
    vector_table_close(&t);
    t = vector_table_open("evm/signatures.tsv");
    for (rows = 0; vector_table_next(&t); rows++) {
        wanted = vector_hash(t.columns[1]);
        kedge_keccak256(t.columns[0], &h);
        ck_assert(kedge_hash_eq(&h, &wanted));
    }
    ck_assert_uint_gt(rows, 3);
    vector_table_close(&t);
}
END_TEST

/* Yellow Paper: keccak of nothing. */
START_TEST(the_empty_string_has_its_known_digest)
{
    struct kedge_hash h;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_keccak256(kedge_view_of(NULL, 0), &h);
    kedge_hash_hex(&h, hex);
    ck_assert_str_eq(hex, "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
}
END_TEST

START_TEST(the_permutation_is_that_of_sha3)
{
    static uint8_t bytes[700];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 131 + i / 7);
    }
    for (size_t len = 0; len <= sizeof bytes; len++) {
        struct kedge_hash ours, theirs, other;
        unsigned n = 0;
        ck_assert_int_eq(EVP_Digest(bytes, len, theirs.b, &n, EVP_sha3_256(), NULL), 1);
        kedgei_keccak256_padded(kedge_view_of(bytes, len), 0x06, &ours);
        kedge_keccak256(kedge_view_of(bytes, len), &other);
        ck_assert_msg(kedge_hash_eq(&ours, &theirs), "%zu bytes", len);
        ck_assert(!kedge_hash_eq(&other, &theirs));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("keccak256");
    TCase *tc = tcase_create("keccak256");
    tcase_add_test(tc, digests_are_the_published_ones);
    tcase_add_test(tc, the_empty_string_has_its_known_digest);
    tcase_add_test(tc, the_permutation_is_that_of_sha3);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
