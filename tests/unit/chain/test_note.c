/* Signed notes, vkeys, checkpoints and receipts against published files and against damage. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/log/lines.h"
#include "chain/log/proof.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "tests/unit/chain/vectors.h"

static const char peter_vkey[] = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";

static struct kedge_key_pair pair_of(const char *seed_hex)
{
    struct kedge_seed seed;
    struct kedge_key_pair pair;
    ck_assert_int_eq(kedge_hex_decode(kedge_view_str(seed_hex), seed.b, sizeof seed.b), KEDGE_OK);
    kedge_key_from_seed(&seed, &pair);
    return pair;
}

static struct kedge_vkey vkey_of(struct kedge_view text)
{
    struct kedge_vkey v;
    ck_assert_int_eq(kedge_vkey_decode(text, &v), KEDGE_OK);
    return v;
}

static size_t vkeys_of(struct kedge_view list, struct kedge_vkey *out)
{
    size_t count = 0;
    struct kedge_view head;
    if (vector_is(list, "-")) {
        return 0;
    }
    while (kedgei_cut(&list, ',', &head)) {
        out[count++] = vkey_of(head);
    }
    out[count++] = vkey_of(list);
    return count;
}

START_TEST(vkey_survives_its_encoding_and_no_change_of_it_passes)
{
    struct kedge_vkey v = vkey_of(kedge_view_str(peter_vkey));
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_VKEY_MAX);
    kedge_vkey_encode(&v, &b);
    ck_assert(vector_is(kedge_buf_view(&b), peter_vkey));
    struct kedge_vkey out;
    memset(&out, 0x5a, sizeof out);
    size_t len = strlen(peter_vkey);
    for (size_t from = 0; from < len; from++) {
        for (size_t to = from; to <= len; to++) {
            if (to - from != len) {
                ck_assert_int_ne(kedge_vkey_decode(kedge_view_of(peter_vkey + from, to - from), &out),
                                 KEDGE_OK);
            }
        }
    }
    char copy[sizeof peter_vkey];
    for (size_t i = 0; i < len; i++) {
        for (unsigned c = 0; c < 256; c++) {
            memcpy(copy, peter_vkey, sizeof copy);
            copy[i] = (char)c;
            if (copy[i] != peter_vkey[i]) {
                ck_assert_int_ne(kedge_vkey_decode(kedge_view_of(copy, len), &out), KEDGE_OK);
            }
        }
    }
    for (size_t i = 0; i < sizeof out; i++) {
        ck_assert_uint_eq(((const uint8_t *)&out)[i], 0x5a); /* untouched by any failure */
    }
}
END_TEST

START_TEST(names_refuse_space_plus_control_and_bad_utf8)
{
    static const struct {
        const char *name;
        bool ok;
    } cases[] = {
        {"a", true},
        {"fl.example.org/tenant-a", true},
        {"\xc3\xa4", true},
        {"", false},
        {"a b", false},
        {"a+b", false},
        {"a\tb", false},
        {"a\x7f", true},
        {"\xc2\x85", false},
        {"\xc2\xa0", false},
        {"\xe1\x9a\x80", false},
        {"\xe2\x80\x80", false},
        {"\xe2\x80\x8a", false},
        {"\xe2\x80\x8b", true},
        {"\xe2\x80\xa8", false},
        {"\xe2\x80\xa9", false},
        {"\xe2\x80\xaf", false},
        {"\xe2\x81\x9f", false},
        {"\xe3\x80\x80", false},
        {"\xff", false},
        {"\xc3", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(kedge_key_name_is_valid(kedge_view_str(cases[i].name)) == cases[i].ok, "case %zu", i);
    }
    char longest[KEDGE_KEY_NAME_MAX + 2];
    memset(longest, 'x', sizeof longest);
    ck_assert(kedge_key_name_is_valid(kedge_view_of(longest, KEDGE_KEY_NAME_MAX)));
    ck_assert(!kedge_key_name_is_valid(kedge_view_of(longest, KEDGE_KEY_NAME_MAX + 1)));
}
END_TEST

START_TEST(published_notes_get_their_verdicts)
{
    if (!vectors_present()) {
        return;
    }
    size_t rows = 0;
    struct vector_table t = vector_table_open("note/cases.tsv");
    while (vector_table_next(&t)) {
        char base[64], name[96];
        snprintf(name, sizeof name, "note/%s.note", vector_str(t.columns[0], base, sizeof base));
        struct kedge_buf bytes = vector_file(name);
        struct kedge_vkey known[4];
        size_t known_count = vkeys_of(t.columns[1], known);
        struct kedge_note note;
        struct kedge_note_verdict verdicts[4];
        size_t count = 0;
        int parsed = kedge_note_parse(kedge_buf_view(&bytes), &note);
        if (vector_is(t.columns[2], "malformed")) {
            ck_assert_msg(parsed == KEDGE_E_FORMAT, "%s", base);
        } else {
            ck_assert_msg(parsed == KEDGE_OK, "%s", base);
            int err = kedge_note_verify(&note, known, known_count, verdicts, &count);
            if (vector_is(t.columns[2], "reject")) {
                ck_assert_msg(err == KEDGE_E_VERIFY, "%s", base);
            } else {
                struct kedge_view want = t.columns[2];
                ck_assert(kedgei_take_prefix(&want, "ok:"));
                ck_assert_msg(err == KEDGE_OK && count == vector_u64(want), "%s", base);
            }
        }
        if (strcmp(base, "sunlight_rome2026h1") == 0) {
            ck_assert_uint_eq(verdicts[0].time_s, 1767139200); /* stated in the published cosignature */
        }
        kedge_buf_deinit(&bytes);
        rows++;
    }
    vector_table_close(&t);
    ck_assert_uint_ge(rows, 20);
}
END_TEST

START_TEST(published_vkeys_that_are_wrong_are_refused)
{
    if (!vectors_present()) {
        return;
    }
    struct vector_table t = vector_table_open("note/vkeys_invalid.txt");
    struct kedge_vkey v;
    size_t rows = 0;
    while (vector_table_next(&t)) {
        ck_assert_int_ne(kedge_vkey_decode(t.columns[0], &v), KEDGE_OK);
        rows++;
    }
    ck_assert_uint_eq(rows, 8);
    vector_table_close(&t);
}
END_TEST

/* golang/mod:sumdb/note's example, whose keys and text are in the ledger reference. */
START_TEST(signing_gives_a_note_that_verifies_until_a_bit_changes)
{
    struct kedge_key_pair pair = pair_of("810a1402d5146c8d84f2443330f54080ebf98ee17d9c74f6252fc5d5c7283173");
    struct kedge_vkey v;
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str("PeterNeumann"), KEDGE_KEY_ED25519, &pair.public, &v),
                     KEDGE_OK);
    struct kedge_vkey w = vkey_of(kedge_view_str(peter_vkey));
    ck_assert_mem_eq(&v.id, &w.id, sizeof v.id);
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, 4096);
    struct kedge_view text = kedge_view_str("If you think\n\ntwice\n");
    ck_assert_int_eq(kedge_note_sign(text, kedge_view_str("PeterNeumann"), &pair, &b), KEDGE_OK);
    struct kedge_note note;
    ck_assert_int_eq(kedge_note_parse(kedge_buf_view(&b), &note), KEDGE_OK);
    ck_assert(kedge_view_eq(note.text, text));
    ck_assert_int_eq(kedge_note_verify(&note, &v, 1, NULL, NULL), KEDGE_OK);
    for (size_t i = 0; i < b.len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            b.ptr[i] ^= (uint8_t)(1u << bit);
            int err = kedge_note_parse(kedge_buf_view(&b), &note);
            if (!err) {
                ck_assert_int_eq(kedge_note_verify(&note, &v, 1, NULL, NULL), KEDGE_E_VERIFY);
            }
            b.ptr[i] ^= (uint8_t)(1u << bit);
        }
    }
    static const char *const bad[] = {"", "no LF", "a\r\n", "a\x01\n", "\xff\n"};
    size_t len = b.len;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(kedge_note_sign(kedge_view_str(bad[i]), kedge_view_str("x"), &pair, &b),
                         KEDGE_E_ARG);
    }
    ck_assert_int_eq(kedge_note_sign(text, kedge_view_str("x y"), &pair, &b), KEDGE_E_ARG);
    ck_assert_uint_eq(b.len, len);
    struct kedge_vkey twice[2] = {v, v};
    ck_assert_int_eq(kedge_note_parse(kedge_buf_view(&b), &note), KEDGE_OK);
    struct kedge_note_verdict verdicts[2];
    ck_assert_int_eq(kedge_note_verify(&note, twice, 2, verdicts, NULL), KEDGE_E_ARG);
}
END_TEST

START_TEST(published_checkpoint_texts_get_their_verdicts)
{
    if (!vectors_present()) {
        return;
    }
    struct vector_table t = vector_table_open("checkpoint/parse/cases.tsv");
    size_t rows = 0;
    while (vector_table_next(&t)) {
        char base[64], name[96];
        snprintf(name, sizeof name, "checkpoint/parse/%s.note", vector_str(t.columns[0], base, sizeof base));
        struct kedge_buf bytes = vector_file(name);
        struct kedge_note note;
        struct kedge_checkpoint c;
        int err = kedge_note_parse(kedge_buf_view(&bytes), &note);
        err = err ? err : kedge_checkpoint_parse(note.text, &c);
        ck_assert_msg(err == (vector_is(t.columns[1], "accept") ? KEDGE_OK : KEDGE_E_FORMAT), "%s", base);
        if (!err && c.extensions.len == 0) { /* accepting means that formatting gives the same bytes */
            struct kedge_buf again KEDGE_CLEANUP(kedge_buf_deinit);
            kedge_buf_init(&again, 4096);
            ck_assert_int_eq(kedge_checkpoint_format(c.origin, c.size, &c.root, &again), KEDGE_OK);
            ck_assert(kedge_view_eq(kedge_buf_view(&again), note.text));
        }
        kedge_buf_deinit(&bytes);
        rows++;
    }
    vector_table_close(&t);
    ck_assert_uint_eq(rows, 20);
}
END_TEST

/* transparency-dev/tessera:testdata/log: Ed25519 is deterministic, so a whole log must come out byte for
 * byte. */
START_TEST(tessera_checkpoints_come_out_byte_for_byte)
{
    static const char *const entries[] = {"one",    "two",   "three",    "four",    "five",
                                          "six",    "seven", "eit",      "nain",    "ten",
                                          "ileven", "twelf", "threeten", "fourten", "fivten"};
    struct kedge_key_pair pair = pair_of("eca663f499017d2365c27c7a7679158d43cfec1330bdb259290afbd0d21777a0");
    struct kedge_view origin = kedge_view_str("example.com/log/testdata");
    bool present = vectors_present();
    struct kedge_frontier f = {0};
    for (size_t size = 0; size <= 15; size++) {
        struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&note, KEDGE_CHECKPOINT_MAX);
        struct kedge_hash h;
        kedge_frontier_root(&f, &h);
        ck_assert_int_eq(kedge_checkpoint_sign(origin, size, &h, &pair, &note), KEDGE_OK);
        if (present) {
            char name[64];
            snprintf(name, sizeof name, "tessera/checkpoint.%zu", size);
            struct kedge_buf want = vector_file(name);
            ck_assert(kedge_view_eq(kedge_buf_view(&note), kedge_buf_view(&want)));
            kedge_buf_deinit(&want);
        }
        if (size == 15) { /* SHA-256 of checkpoint 15 as the ledger reference states it */
            char hex[KEDGE_HASH_HEX_LEN + 1];
            kedge_sha256(kedge_buf_view(&note), &h);
            kedge_hash_hex(&h, hex);
            ck_assert_str_eq(hex, "aebf6c3251e27b6a4e265cbbcb3036887ba860071e1df9669cd36179ac82eaed");
            break;
        }
        kedge_merkle_leaf(kedge_view_str(entries[size]), &h);
        ck_assert_int_eq(kedge_frontier_append(&f, &h), KEDGE_OK);
    }
}
END_TEST

static const char log_vkey[] =
    "fl.example.org/tenant-a+407d9fc7+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop";
static const char witness_vkey[] =
    "fl.example.org/witness-1+f601d911+BIqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c";

START_TEST(cosigned_checkpoint_opens_by_its_log_not_by_witnesses_alone)
{
    if (!vectors_present()) {
        return;
    }
    struct kedge_buf bytes = vector_file("checkpoint/tenant_a_8_cosigned.note");
    struct kedge_view note = kedge_buf_view(&bytes);
    struct kedge_vkey known[2] = {vkey_of(kedge_view_str(log_vkey)), vkey_of(kedge_view_str(witness_vkey))};
    struct kedge_note_verdict verdicts[2];
    struct kedge_checkpoint c;
    struct kedge_view origin = kedge_view_str("fl.example.org/tenant-a");
    ck_assert_int_eq(kedge_checkpoint_open(note, origin, known, 2, &c, verdicts), KEDGE_OK);
    ck_assert(verdicts[0].verified && verdicts[1].verified);
    ck_assert_uint_eq(verdicts[0].time_s, 0);
    ck_assert_uint_eq(verdicts[1].time_s, 1767225600);
    ck_assert_uint_eq(c.size, 8);
    ck_assert_int_eq(kedge_checkpoint_open(note, origin, known, 1, &c, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_checkpoint_open(note, kedge_view_of(NULL, 0), known, 1, &c, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_checkpoint_open(note, origin, known + 1, 1, &c, NULL), KEDGE_E_VERIFY);
    ck_assert_int_eq(kedge_checkpoint_open(note, kedge_view_str("elsewhere"), known, 2, &c, NULL),
                     KEDGE_E_VERIFY);
    ck_assert_int_eq(kedge_checkpoint_open(note, origin, NULL, 0, &c, NULL), KEDGE_E_VERIFY);
    /* The cosignature's time is signed. */
    struct kedge_buf copy KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&copy, 4096);
    kedge_buf_put(&copy, note.ptr, note.len);
    uint8_t *p = memmem(copy.ptr, copy.len, "9gHZEQAAAABpVbkA", 16);
    ck_assert_ptr_nonnull(p);
    p[14] = 'o'; /* another minute */
    ck_assert_int_eq(kedge_checkpoint_open(kedge_buf_view(&copy), origin, known, 2, &c, verdicts),
                     KEDGE_E_VERIFY);
    ck_assert_int_eq(kedge_checkpoint_open(kedge_buf_view(&copy), origin, known, 1, &c, NULL), KEDGE_OK);
    kedge_buf_deinit(&bytes);
}
END_TEST

/* Leaves 5 and 0 of the reference leaves. */
START_TEST(published_receipts_get_their_verdicts)
{
    if (!vectors_present()) {
        return;
    }
    struct kedge_vkey known = vkey_of(kedge_view_str(log_vkey));
    struct kedge_hash leaf5, leaf0;
    kedge_merkle_leaf(kedge_view_str("@ABC"), &leaf5);
    kedge_merkle_leaf(kedge_view_str(""), &leaf0);
    struct vector_table t = vector_table_open("checkpoint/proof/cases.tsv");
    size_t rows = 0;
    while (vector_table_next(&t)) {
        char base[64], name[96];
        vector_str(t.columns[0], base, sizeof base);
        snprintf(name, sizeof name, "checkpoint/proof/%s.tlog-proof", base);
        struct kedge_buf bytes = vector_file(name);
        struct kedge_proof proof;
        int err = kedge_proof_decode(kedge_buf_view(&bytes), &proof);
        if (!err) {
            struct kedge_buf again KEDGE_CLEANUP(kedge_buf_deinit);
            kedge_buf_init(&again, KEDGE_PROOF_TEXT_MAX);
            kedge_proof_encode(&proof, &again);
            ck_assert(kedge_view_eq(kedge_buf_view(&again), kedge_buf_view(&bytes)));
            const struct kedge_hash *leaf = strcmp(base, "ok_single") == 0 ? &leaf0 : &leaf5;
            err = kedge_proof_verify(&proof, leaf, kedge_view_of(NULL, 0), &known, 1, NULL);
        }
        ck_assert_msg((err == KEDGE_OK) == vector_is(t.columns[1], "accept"), "%s: %s", base,
                      kedge_strerror(err));
        kedge_buf_deinit(&bytes);
        rows++;
    }
    vector_table_close(&t);
    ck_assert_uint_eq(rows, 17);
}
END_TEST

/* Every allocation fails in turn: signing, opening and receipts say so and leave their outputs alone. */
START_TEST(any_allocation_may_fail)
{
    struct kedge_key_pair pair = pair_of("810a1402d5146c8d84f2443330f54080ebf98ee17d9c74f6252fc5d5c7283173");
    struct kedge_view origin = kedge_view_str("fl.example.org/north");
    struct kedge_vkey known;
    ck_assert_int_eq(kedge_vkey_make(origin, KEDGE_KEY_ED25519, &pair.public, &known), KEDGE_OK);
    struct kedge_hash leaf = {{7}};
    int err = KEDGE_E_NOMEM;
    for (long n = 1; err && n < 100; n++) {
        struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit), text KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&note, KEDGE_CHECKPOINT_MAX);
        kedge_buf_init(&text, KEDGE_PROOF_TEXT_MAX);
        struct kedge_checkpoint c = {.size = 77};
        struct kedge_proof in = {.index = 0}, out = {.index = 77};
        kedge_mem_fail_at(n);
        err = kedge_checkpoint_sign(origin, 1, &leaf, &pair, &note);
        ck_assert(err == KEDGE_OK || note.len == 0);
        if (!err) {
            in.note = kedge_buf_view(&note);
            kedge_proof_encode(&in, &text);
            err = text.err;
        }
        err = err ? err : kedge_proof_decode(kedge_buf_view(&text), &out);
        ck_assert(err == KEDGE_OK || out.index == 77);
        err = err ? err : kedge_proof_verify(&out, &leaf, origin, &known, 1, &c);
        kedge_mem_fail_at(0);
        ck_assert(err == KEDGE_OK || (err == KEDGE_E_NOMEM && c.size == 77));
        ck_assert(err != KEDGE_OK || (c.size == 1 && n > 5)); /* several did fail before */
    }
    ck_assert_int_eq(err, KEDGE_OK);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("note");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, vkey_survives_its_encoding_and_no_change_of_it_passes);
    tcase_add_test(tc, names_refuse_space_plus_control_and_bad_utf8);
    tcase_add_test(tc, published_notes_get_their_verdicts);
    tcase_add_test(tc, published_vkeys_that_are_wrong_are_refused);
    tcase_add_test(tc, signing_gives_a_note_that_verifies_until_a_bit_changes);
    tcase_add_test(tc, published_checkpoint_texts_get_their_verdicts);
    tcase_add_test(tc, tessera_checkpoints_come_out_byte_for_byte);
    tcase_add_test(tc, cosigned_checkpoint_opens_by_its_log_not_by_witnesses_alone);
    tcase_add_test(tc, published_receipts_get_their_verdicts);
    tcase_add_test(tc, any_allocation_may_fail);
    Suite *s = suite_create("chain/note");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
