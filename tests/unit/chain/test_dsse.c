/* DSSE envelopes: published PAE bytes and verdicts, Kedge's one spelling, allocation failures. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/dsse.h"
#include "chain/statement/main_entry.h"
#include "common/base/mem.h"
#include "tests/unit/chain/samples.h"
#include "tests/unit/chain/vectors.h"

/* The specification's own example (secure-systems-lab/dsse:protocol.md). */
START_TEST(pae_of_the_specification)
{
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, 256);
    kedge_dsse_pae(kedge_view_str("http://example.com/HelloWorld"), kedge_view_str("hello world"), &b);
    ck_assert(vector_is(kedge_buf_view(&b), "DSSEv1 29 http://example.com/HelloWorld 11 hello world"));
    struct kedge_hash h,
        want =
            vector_hash(kedge_view_str("217751fac2c4f14edb2c9297fbc34abcb016ba88e74757e875ec4ac16fb6b6a1"));
    kedge_sha256(kedge_buf_view(&b), &h);
    ck_assert(kedge_hash_eq(&h, &want));
}
END_TEST

START_TEST(published_pae_bytes)
{
    if (!vectors_present()) {
        return;
    }
    struct vector_table t = vector_table_open("dsse/pae.tsv");
    size_t rows = 0;
    while (vector_table_next(&t)) {
        struct kedge_buf body KEDGE_CLEANUP(kedge_buf_deinit), want KEDGE_CLEANUP(kedge_buf_deinit);
        struct kedge_buf pae KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&body, 4096);
        kedge_buf_init(&want, 4096);
        kedge_buf_init(&pae, 4096);
        vector_hex(t.columns[1], &body);
        vector_hex(t.columns[2], &want);
        struct kedge_view type = vector_is(t.columns[0], "-") ? kedge_view_of("", 0) : t.columns[0];
        kedge_dsse_pae(type, kedge_buf_view(&body), &pae);
        ck_assert(kedge_view_eq(kedge_buf_view(&pae), kedge_buf_view(&want)));
        rows++;
    }
    vector_table_close(&t);
    ck_assert_uint_eq(rows, 6);
}
END_TEST

/* Rebuilding the published envelope from its payload and seed gives its bytes: same spelling, same signature.
 */
START_TEST(published_envelope_comes_out_byte_for_byte)
{
    if (!vectors_present()) {
        return;
    }
    struct kedge_key_pair pair = sample_pair(7);
    struct kedge_buf bytes = vector_file("dsse/ed25519_envelope.json");
    struct kedge_buf payload KEDGE_CLEANUP(kedge_buf_deinit), again KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
    kedge_buf_init(&again, KEDGE_ENTRY_MAX);
    struct kedge_dsse_entry entry;
    ck_assert_int_eq(kedge_dsse_decode(kedge_buf_view(&bytes), &payload, &entry), KEDGE_OK);
    ck_assert_int_eq(kedge_dsse_entry_verify(&entry, kedge_buf_view(&payload), &pair.public), KEDGE_OK);
    ck_assert_int_eq(kedge_dsse_build(KEDGE_DSSE_IN_TOTO, kedge_buf_view(&payload), &pair, &again), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&again), kedge_buf_view(&bytes)));
    kedge_buf_deinit(&bytes);
    static const char *const others[] = {"urlsafe", "two", "same_key_twice", "nokeyid", "wrong_type"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) { /* conforming, but not our spelling */
        char name[64];
        snprintf(name, sizeof name, "dsse/ed25519_envelope_%s.json", others[i]);
        struct kedge_buf other = vector_file(name);
        kedge_buf_clear(&payload);
        ck_assert_int_eq(kedge_dsse_decode(kedge_buf_view(&other), &payload, &entry), KEDGE_E_FORMAT);
        kedge_buf_deinit(&other);
    }
}
END_TEST

START_TEST(building_refuses_what_does_not_fit)
{
    struct kedge_key_pair pair = sample_pair(1);
    static uint8_t zeros[KEDGE_ENTRY_MAX + 1];
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, 2 * KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_dsse_build("a\"b", kedge_view_str("x"), &pair, &b), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_dsse_build("", kedge_view_str("x"), &pair, &b), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_dsse_build("t", kedge_view_of(zeros, sizeof zeros), &pair, &b), KEDGE_E_TOO_LONG);
    ck_assert_int_eq(kedge_dsse_build("t", kedge_view_of(zeros, 50000), &pair, &b), KEDGE_E_TOO_LONG);
    ck_assert_uint_eq(b.len, 0);
    size_t len = 49000;
    while (kedge_dsse_build(KEDGE_DSSE_IN_TOTO, kedge_view_of(zeros, len), &pair, &b) != KEDGE_OK
           && len > 48000) {
        len--;
    }
    ck_assert_uint_gt(len, 48900);
    ck_assert_uint_le(b.len, KEDGE_ENTRY_MAX);
    ck_assert_uint_gt(b.len, KEDGE_ENTRY_MAX - 4); /* the largest that fits */
}
END_TEST

START_TEST(any_allocation_may_fail)
{
    struct kedge_key_pair pair = sample_pair(1);
    int err = KEDGE_E_NOMEM;
    for (long n = 1; err && n < 100; n++) {
        struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit), payload KEDGE_CLEANUP(kedge_buf_deinit);
        struct kedge_dsse_entry entry;
        kedge_buf_init(&b, KEDGE_ENTRY_MAX);
        kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
        kedge_mem_fail_at(n);
        err = kedge_dsse_build(KEDGE_DSSE_IN_TOTO, kedge_view_str("payload"), &pair, &b);
        err = err ? err : kedge_dsse_decode(kedge_buf_view(&b), &payload, &entry);
        err = err ? err : kedge_dsse_entry_verify(&entry, kedge_buf_view(&payload), &pair.public);
        kedge_mem_fail_at(0);
        ck_assert(err == KEDGE_OK || err == KEDGE_E_NOMEM);
        ck_assert(err != KEDGE_OK || n > 3);
    }
    ck_assert_int_eq(err, KEDGE_OK);
}
END_TEST

START_TEST(main_entries_tell_their_kinds_apart)
{
    uint8_t salt[KEDGE_SALT_LEN] = {'{', 2, 3}; /* its first bit is set on the way */
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, 2 * KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_main_entry_encode(salt, kedge_view_str("note"), &b), KEDGE_OK);
    ck_assert_uint_eq(b.len, KEDGE_SALT_LEN + 4);
    ck_assert_uint_eq(b.ptr[0], '{' | 0x80);
    struct kedge_main_entry e;
    ck_assert_int_eq(kedge_main_entry_decode(kedge_buf_view(&b), &e), KEDGE_OK);
    ck_assert_int_eq((int)e.kind, KEDGE_MAIN_CHECKPOINT);
    ck_assert(vector_is(e.body, "note"));
    ck_assert_mem_eq(e.salt + 1, salt + 1, KEDGE_SALT_LEN - 1);
    ck_assert_int_eq(kedge_main_entry_decode(kedge_view_str("{}"), &e), KEDGE_OK);
    ck_assert_int_eq((int)e.kind, KEDGE_MAIN_STATEMENT);
    ck_assert_int_eq(kedge_main_entry_decode(kedge_view_of(b.ptr, KEDGE_SALT_LEN), &e), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_main_entry_decode(kedge_view_str("a text that is as long as a salted note"), &e),
                     KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_main_entry_decode(kedge_view_of(NULL, 0), &e), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_main_entry_encode(salt, kedge_view_of("", 0), &b), KEDGE_E_ARG);
    static uint8_t large[KEDGE_ENTRY_MAX + 1];
    ck_assert_int_eq(kedge_main_entry_encode(salt, kedge_view_of(large, KEDGE_ENTRY_MAX - 31), &b),
                     KEDGE_E_TOO_LONG);
    ck_assert_int_eq(kedge_main_entry_decode(kedge_view_of(large, sizeof large), &e), KEDGE_E_TOO_LONG);
}
END_TEST

/* SHA-256 of 32 bytes of 0x01 and "north", by sha256sum. */
START_TEST(salted_tenant_ids)
{
    uint8_t salt[KEDGE_SALT_LEN];
    memset(salt, 1, sizeof salt);
    struct kedge_id north = sample_id("north");
    struct kedge_hash h,
        want =
            vector_hash(kedge_view_str("a1bfb4586b26884df9f308bf9a4543327c778422eee9ea08e66da9fe195ff0c4"));
    kedge_salted_tenant_id(salt, &north, &h);
    ck_assert(kedge_hash_eq(&h, &want));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("dsse");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, pae_of_the_specification);
    tcase_add_test(tc, published_pae_bytes);
    tcase_add_test(tc, published_envelope_comes_out_byte_for_byte);
    tcase_add_test(tc, building_refuses_what_does_not_fit);
    tcase_add_test(tc, any_allocation_may_fail);
    tcase_add_test(tc, main_entries_tell_their_kinds_apart);
    tcase_add_test(tc, salted_tenant_ids);
    Suite *s = suite_create("chain/dsse");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
