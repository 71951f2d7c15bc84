/* Salted commitments against ../shared/vectors/commitment, and what must not open one. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "crypto/commitment.h"
#include "crypto/sign.h"

static size_t take_hex(const char *hex, uint8_t *out, size_t most)
{
    size_t len = strcmp(hex, "-") == 0 ? 0 : strlen(hex) / 2;
    ck_assert_uint_le(len, most);
    ck_assert(len == 0 || kedge_hex_decode(kedge_view_str(hex), out, len) == KEDGE_OK);
    return len;
}

START_TEST(vectors_hold)
{
    FILE *f = fopen("../shared/vectors/commitment/commitment.tsv", "re");
    char line[4096], salt_hex[80], text_hex[3000], commitment_hex[80];
    unsigned rows = 0;
    if (!f) {
        puts("skipped: ../shared/vectors absent");
        return;
    }
    while (fgets(line, sizeof line, f)) {
        struct kedge_commitment_salt salt;
        uint8_t text[1500];
        struct kedge_hash is, expected;
        if (line[0] == '#') {
            continue;
        }
        ck_assert_int_eq(sscanf(line, "%79s %2999s %79s", salt_hex, text_hex, commitment_hex), 3);
        ck_assert_uint_eq(take_hex(salt_hex, salt.b, sizeof salt.b), sizeof salt.b);
        size_t len = take_hex(text_hex, text, sizeof text);
        ck_assert_uint_eq(take_hex(commitment_hex, expected.b, sizeof expected.b), sizeof expected.b);
        kedge_commitment_make(&salt, kedge_view_of(text, len), &is);
        ck_assert_mem_eq(is.b, expected.b, sizeof is.b);
        rows++;
    }
    fclose(f);
    ck_assert_uint_ge(rows, 3);
}
END_TEST

START_TEST(only_salt_and_text_open_it)
{
    struct kedge_commitment_salt salt, other;
    struct kedge_hash c, again;
    struct kedge_view text = kedge_view_str("Dr. A. Example, +49 000");
    kedge_commitment_salt_new(&salt);
    kedge_commitment_salt_new(&other);
    ck_assert_mem_ne(salt.b, other.b, sizeof salt.b);
    kedge_commitment_make(&salt, text, &c);
    kedge_commitment_make(&salt, text, &again);
    ck_assert(kedge_hash_eq(&c, &again));
    kedge_commitment_make(&other, text, &again);
    ck_assert(!kedge_hash_eq(&c, &again));
    kedge_commitment_make(&salt, kedge_view_of(text.ptr, text.len - 1), &again);
    ck_assert(!kedge_hash_eq(&c, &again));
    kedge_commitment_make(&salt, kedge_view_str(""), &again);
    ck_assert(!kedge_hash_eq(&c, &again));
}
END_TEST

int main(void)
{
    if (kedge_crypto_init() != KEDGE_OK) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("commitment");
    TCase *tcase = tcase_create("commitment");
    tcase_add_test(tcase, vectors_hold);
    tcase_add_test(tcase, only_salt_and_text_open_it);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
