/* Cosignatures: the published one to the byte, other people's programs' to the bit, and notes that lose no
 * line on the way. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/log/cosignature.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "tests/unit/chain/vectors.h"

/* The reference's worked example (../shared/reference/ledger.md §6): 8 reference leaves. */
static const char text8[] = "fl.example.org/tenant-a\n8\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\n";
static const char log_name[] = "fl.example.org/tenant-a";
static const char witness_name[] = "fl.example.org/witness-1";
static const char witness_line[] =
    "\xe2\x80\x94 fl.example.org/witness-1 "
    "9gHZEQAAAABpVbkAGvqtIEHj45lf1Ilmj1gr2k58C002nIKCcdVikdIl7aioU+sn5H3bILeEPlVyAro7vg7CZ9/"
    "rlhOIQrRVww7QBg==\n";
enum { TIME_8 = 1767225600 };

static struct kedge_key_pair pair_of(uint8_t byte)
{
    struct kedge_seed seed;
    struct kedge_key_pair pair;
    memset(seed.b, byte, sizeof seed.b);
    kedge_key_from_seed(&seed, &pair);
    return pair;
}

static struct kedge_vkey vkey_of(const char *name, enum kedge_key_type type, uint8_t byte)
{
    struct kedge_key_pair pair = pair_of(byte);
    struct kedge_vkey v;
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(name), type, &pair.public, &v), KEDGE_OK);
    return v;
}

static struct kedge_buf note8(void)
{
    struct kedge_key_pair pair = pair_of(0);
    struct kedge_buf b;
    kedge_buf_init(&b, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_note_sign(kedge_view_str(text8), kedge_view_str(log_name), &pair, &b), KEDGE_OK);
    return b;
}

static struct kedge_buf line_of(const char *name, uint8_t byte, uint64_t time_s)
{
    struct kedge_key_pair pair = pair_of(byte);
    struct kedge_buf b;
    kedge_buf_init(&b, KEDGE_COSIGNATURE_LINE_MAX);
    ck_assert_int_eq(kedge_cosignature_make(kedge_view_str(text8), kedge_view_str(name), &pair, time_s, &b),
                     KEDGE_OK);
    return b;
}

/* note becomes what `outcome` holds; outcome starts over. */
static void take(struct kedge_buf *note, struct kedge_buf *outcome)
{
    kedge_buf_deinit(note);
    *note = *outcome;
    kedge_buf_init(outcome, KEDGE_NOTE_MAX);
}

START_TEST(the_published_cosignature_comes_out_byte_for_byte)
{
    struct kedge_buf line = line_of(witness_name, 1, TIME_8);
    ck_assert(kedge_view_eq(kedge_buf_view(&line), kedge_view_str(witness_line)));
    struct kedge_buf note = note8(), cosigned;
    kedge_buf_init(&cosigned, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_note_add_line(kedge_buf_view(&note), kedge_buf_view(&line), &cosigned), KEDGE_OK);
    struct kedge_hash h;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_sha256(kedge_buf_view(&cosigned), &h); /* ledger reference §6 states it */
    kedge_hash_hex(&h, hex);
    ck_assert_str_eq(hex, "2c2ad43e25b7a35010cd0196d324368069ffb04db0479df648e3dfdfc9efd063");
    if (vectors_present()) {
        struct kedge_buf want = vector_file("checkpoint/tenant_a_8_cosigned.note");
        ck_assert(kedge_view_eq(kedge_buf_view(&cosigned), kedge_buf_view(&want)));
        kedge_buf_deinit(&want);
    }
    /* Adding it again changes nothing. */
    struct kedge_buf again;
    kedge_buf_init(&again, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_note_add_line(kedge_buf_view(&cosigned), kedge_buf_view(&line), &again), KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&again), kedge_buf_view(&cosigned)));
    kedge_buf_deinit(&again);
    kedge_buf_deinit(&cosigned);
    kedge_buf_deinit(&note);
    kedge_buf_deinit(&line);
}
END_TEST

/* FiloSottile/sunlight's note: a cosignature of somebody else's making beside a line of another type. */
START_TEST(a_third_partys_cosignature_verifies_with_its_time)
{
    if (!vectors_present()) {
        return;
    }
    struct kedge_buf bytes = vector_file("note/sunlight_rome2026h1.note");
    struct kedge_vkey v;
    struct kedge_note note;
    struct kedge_note_verdict verdict;
    ck_assert_int_eq(kedge_vkey_decode(kedge_view_str("witness.example.org+b8a2cf20+"
                                                      "BFLN3yikSfFkVAJtrnh/CiY3Zozkoy7clp+P7XB28qUN"),
                                       &v),
                     KEDGE_OK);
    ck_assert_int_eq(kedge_note_parse(kedge_buf_view(&bytes), &note), KEDGE_OK);
    ck_assert_uint_eq(note.line_count, 2);
    ck_assert_int_eq(kedge_note_verify(&note, &v, 1, &verdict, NULL), KEDGE_OK);
    ck_assert_uint_eq(verdict.time_s, 1767139200);
    /* Every bit of the blob is signed or names the key. */
    size_t flips = 0;
    const struct kedge_note_line *line = NULL;
    for (uint32_t i = 0; i < note.line_count; i++) {
        line = kedge_view_eq(note.lines[i].name, kedge_view_str(v.name)) ? &note.lines[i] : line;
    }
    ck_assert_ptr_nonnull(line);
    size_t at = (size_t)(line->base64.ptr - bytes.ptr);
    for (size_t i = 0; i < line->base64.len - 1; i++) { /* but its one "=" */
        uint8_t was = bytes.ptr[at + i];
        bytes.ptr[at + i] = was == 'A' ? 'B' : 'A';
        struct kedge_note bad;
        int err = kedge_note_parse(kedge_buf_view(&bytes), &bad);
        err = err ? err : kedge_note_verify(&bad, &v, 1, NULL, NULL);
        ck_assert(err == KEDGE_E_VERIFY || err == KEDGE_E_FORMAT);
        bytes.ptr[at + i] = was;
        flips++;
    }
    ck_assert_uint_ge(flips, 100);
    kedge_buf_deinit(&bytes);
}
END_TEST

/* Upstream's test witnesses, written as type 01 by Go programs, cosign under the ID of type 04. */
START_TEST(key_ids_depend_on_the_type)
{
    if (!vectors_present()) {
        return;
    }
    struct vector_table t = vector_table_open("tessera/keys.tsv");
    size_t rows = 0;
    while (vector_table_next(&t)) {
        struct kedge_buf seed KEDGE_CLEANUP(kedge_buf_deinit), text KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&seed, 64);
        kedge_buf_init(&text, KEDGE_VKEY_MAX);
        vector_hex(t.columns[2], &seed);
        struct kedge_seed raw;
        struct kedge_key_pair pair;
        struct kedge_vkey v;
        ck_assert_uint_eq(seed.len, sizeof raw.b);
        memcpy(raw.b, seed.ptr, sizeof raw.b);
        kedge_key_from_seed(&raw, &pair);
        enum kedge_key_type type = vector_is(t.columns[1], "04") ? KEDGE_KEY_COSIGNATURE : KEDGE_KEY_ED25519;
        ck_assert_int_eq(kedge_vkey_make(t.columns[0], type, &pair.public, &v), KEDGE_OK);
        kedge_vkey_encode(&v, &text);
        ck_assert(kedge_view_eq(kedge_buf_view(&text), t.columns[4]));
        rows++;
    }
    vector_table_close(&t);
    ck_assert_uint_eq(rows, 7);
}
END_TEST

START_TEST(only_a_checkpoint_is_cosigned_and_only_with_a_fit_name_and_time)
{
    struct kedge_key_pair pair = pair_of(1);
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_COSIGNATURE_LINE_MAX);
    struct kedge_view text = kedge_view_str(text8), name = kedge_view_str(witness_name);
    static const char *const no_checkpoint[] = {"", "just a note\n",
                                                "o\n8\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=",
                                                "o\n08\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\n",
                                                "o\n0\nXcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=\n"};
    for (size_t i = 0; i < sizeof no_checkpoint / sizeof no_checkpoint[0]; i++) {
        ck_assert_int_eq(kedge_cosignature_make(kedge_view_str(no_checkpoint[i]), name, &pair, 1, &b),
                         KEDGE_E_FORMAT);
    }
    ck_assert_int_eq(kedge_cosignature_make(text, kedge_view_str("a b"), &pair, 1, &b), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_cosignature_make(text, name, &pair, (uint64_t)INT64_MAX + 1, &b), KEDGE_E_ARG);
    struct kedge_key_pair null_key = pair;
    memset(null_key.public.b, 0, sizeof null_key.public.b);
    ck_assert_int_eq(kedge_cosignature_make(text, name, &null_key, 1, &b), KEDGE_E_KEY);
    ck_assert_uint_eq(b.len, 0);
    ck_assert_int_eq(kedge_cosignature_make(text, name, &pair, (uint64_t)INT64_MAX, &b), KEDGE_OK);
    /* The longest name fills the stated length and no more. */
    char longest[KEDGE_KEY_NAME_MAX + 1];
    memset(longest, 'w', sizeof longest);
    longest[KEDGE_KEY_NAME_MAX] = '\0';
    struct kedge_buf line = line_of(longest, 1, TIME_8);
    ck_assert_uint_eq(line.len, KEDGE_COSIGNATURE_LINE_MAX);
    kedge_buf_deinit(&line);
}
END_TEST

START_TEST(a_newer_line_takes_the_place_of_the_older_and_nothing_else_moves)
{
    struct kedge_buf note = note8(), out;
    kedge_buf_init(&out, KEDGE_NOTE_MAX);
    /* A key of a type nobody here can verify stays where it is. */
    static const char alien[] = "\xe2\x80\x94 fl.example.org/witness-1 AAAAAAAA\n";
    struct kedge_buf w1 = line_of(witness_name, 1, TIME_8), w2 = line_of("w2", 2, TIME_8);
    struct kedge_buf newer = line_of(witness_name, 1, TIME_8 + 60);
    struct kedge_view lines[] = {kedge_buf_view(&w1), kedge_view_str(alien), kedge_buf_view(&w2)};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(kedge_note_add_line(kedge_buf_view(&note), lines[i], &out), KEDGE_OK);
        take(&note, &out);
    }
    struct kedge_note before, after;
    ck_assert_int_eq(kedge_note_parse(kedge_buf_view(&note), &before), KEDGE_OK);
    ck_assert_uint_eq(before.line_count, 4);
    /* A doubled line of the key goes when its successor comes. */
    kedge_buf_put(&note, w1.ptr, w1.len);
    ck_assert_int_eq(kedge_note_parse(kedge_buf_view(&note), &before), KEDGE_OK);
    ck_assert_uint_eq(before.line_count, 5);
    ck_assert_int_eq(kedge_note_add_line(kedge_buf_view(&note), kedge_buf_view(&newer), &out), KEDGE_OK);
    ck_assert_int_eq(kedge_note_parse(kedge_buf_view(&out), &after), KEDGE_OK);
    ck_assert_uint_eq(after.line_count, 4);
    ck_assert(kedge_view_eq(after.text, before.text));
    ck_assert(kedge_view_eq(after.lines[0].line, before.lines[0].line));
    ck_assert(kedge_view_eq(after.lines[1].line, kedge_buf_view(&newer)));
    ck_assert(kedge_view_eq(after.lines[2].line, kedge_view_str(alien)));
    ck_assert(kedge_view_eq(after.lines[3].line, kedge_buf_view(&w2)));
    /* Malformed lines and notes add nothing. */
    struct kedge_buf none KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&none, KEDGE_NOTE_MAX);
    struct kedge_buf two KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&two, KEDGE_NOTE_MAX);
    kedge_buf_put(&two, w1.ptr, w1.len);
    kedge_buf_put(&two, w2.ptr, w2.len);
    struct kedge_view bad[] = {kedge_view_str(""), kedge_view_str("\n"), kedge_view_str("- a AAAAAAAA\n"),
                               kedge_view_of(w1.ptr, w1.len - 1), kedge_buf_view(&two)};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(kedge_note_add_line(kedge_buf_view(&note), bad[i], &none), KEDGE_E_FORMAT);
    }
    ck_assert_int_eq(kedge_note_add_line(kedge_view_str(text8), kedge_buf_view(&w1), &none), KEDGE_E_FORMAT);
    ck_assert_uint_eq(none.len, 0);
    kedge_buf_deinit(&w1);
    kedge_buf_deinit(&w2);
    kedge_buf_deinit(&newer);
    kedge_buf_deinit(&note);
    kedge_buf_deinit(&out);
}
END_TEST

/* ML-DSA-44 cosignatures (type 06): 4 + 8 + 2,420 bytes, 3,244 characters of base64, carried unread. */
START_TEST(sixteen_post_quantum_lines_are_carried_unchanged)
{
    struct kedge_buf note = note8(), want = note8(), out;
    kedge_buf_init(&out, KEDGE_NOTE_MAX);
    for (unsigned i = 0; i < 16; i++) {
        uint8_t blob[4 + 8 + 2420];
        struct kedge_buf line;
        memset(blob, (int)i + 1, sizeof blob);
        kedge_buf_init(&line, 8192);
        kedge_buf_printf(&line, "\xe2\x80\x94 pq%u.example.org ", i);
        size_t head = line.len;
        kedge_base64_put(&line, kedge_view_of(blob, sizeof blob));
        ck_assert_uint_eq(line.len - head, 3244);
        kedge_buf_put_u8(&line, '\n');
        ck_assert_int_eq(kedge_note_add_line(kedge_buf_view(&note), kedge_buf_view(&line), &out), KEDGE_OK);
        take(&note, &out);
        kedge_buf_put(&want, line.ptr, line.len);
        kedge_buf_deinit(&line);
    }
    struct kedge_buf w1 = line_of(witness_name, 1, TIME_8);
    struct kedge_vkey known[2] = {vkey_of(log_name, KEDGE_KEY_ED25519, 0),
                                  vkey_of(witness_name, KEDGE_KEY_COSIGNATURE, 1)};
    ck_assert_int_eq(
        kedge_cosignature_accept(kedge_buf_view(&note), kedge_buf_view(&w1), known + 1, 1, &out, NULL),
        KEDGE_OK);
    kedge_buf_put(&want, w1.ptr, w1.len);
    ck_assert(kedge_view_eq(kedge_buf_view(&out), kedge_buf_view(&want)));
    struct kedge_note parsed;
    size_t count = 0;
    ck_assert_int_eq(kedge_note_parse(kedge_buf_view(&out), &parsed), KEDGE_OK);
    ck_assert_uint_eq(parsed.line_count, 18);
    ck_assert_int_eq(kedge_note_verify(&parsed, known, 2, NULL, &count), KEDGE_OK);
    ck_assert_uint_eq(count, 2);
    kedge_buf_deinit(&w1);
    kedge_buf_deinit(&note);
    kedge_buf_deinit(&want);
    kedge_buf_deinit(&out);
}
END_TEST

START_TEST(caps_hold_for_lines_and_bytes)
{
    struct kedge_buf note = note8(), out;
    kedge_buf_init(&out, KEDGE_NOTE_MAX);
    char line[64];
    for (unsigned i = 1; i <= KEDGE_NOTE_SIGNATURES_MAX; i++) {
        snprintf(line, sizeof line, "\xe2\x80\x94 n%u AAAAAAAA\n", i);
        int err = kedge_note_add_line(kedge_buf_view(&note), kedge_view_str(line), &out);
        ck_assert_int_eq(err, i < KEDGE_NOTE_SIGNATURES_MAX ? KEDGE_OK : KEDGE_E_TOO_LONG);
        if (!err) {
            take(&note, &out);
        }
    }
    ck_assert_uint_eq(out.len, 0);
    /* A full note still lets a line be replaced. */
    ck_assert_int_eq(
        kedge_note_add_line(kedge_buf_view(&note), kedge_view_str("\xe2\x80\x94 n7 AAAAAAAB\n"), &out),
        KEDGE_OK);
    take(&note, &out);
    /* One byte more than a note may have. */
    struct kedge_buf big KEDGE_CLEANUP(kedge_buf_deinit), text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&big, KEDGE_NOTE_MAX);
    kedge_buf_init(&text, KEDGE_NOTE_MAX);
    kedge_buf_put_str(&text, text8);
    struct kedge_buf w1 = line_of(witness_name, 1, TIME_8);
    struct kedge_buf small = note8();
    size_t overhead = small.len - (sizeof text8 - 1);
    for (unsigned extra = 0; extra < 2; extra++) {
        size_t text_len = KEDGE_NOTE_MAX - overhead - w1.len + extra;
        text.len = sizeof text8 - 1;
        while (text.len + 1 < text_len) {
            kedge_buf_put_u8(&text, 'x');
        }
        kedge_buf_put_u8(&text, '\n');
        struct kedge_key_pair pair = pair_of(0);
        kedge_buf_clear(&big);
        ck_assert_int_eq(kedge_note_sign(kedge_buf_view(&text), kedge_view_str(log_name), &pair, &big),
                         KEDGE_OK);
        kedge_buf_clear(&out);
        ck_assert_int_eq(kedge_note_add_line(kedge_buf_view(&big), kedge_buf_view(&w1), &out),
                         extra ? KEDGE_E_TOO_LONG : KEDGE_OK);
        ck_assert_uint_eq(out.len, extra ? 0 : KEDGE_NOTE_MAX);
    }
    kedge_buf_deinit(&small);
    kedge_buf_deinit(&w1);
    kedge_buf_deinit(&note);
    kedge_buf_deinit(&out);
}
END_TEST

START_TEST(a_witnesss_answer_is_taken_when_its_key_made_it)
{
    struct kedge_vkey keys[2] = {vkey_of(witness_name, KEDGE_KEY_COSIGNATURE, 1),
                                 vkey_of("w2", KEDGE_KEY_COSIGNATURE, 2)};
    struct kedge_buf note = note8(), out, answer;
    kedge_buf_init(&out, KEDGE_NOTE_MAX);
    kedge_buf_init(&answer, KEDGE_NOTE_MAX);
    struct kedge_buf w1 = line_of(witness_name, 1, TIME_8), stranger = line_of("w3", 3, TIME_8);
    struct kedge_buf older = line_of(witness_name, 1, TIME_8 - 1), forged = line_of(witness_name, 3, TIME_8);
    kedge_buf_put(&answer, stranger.ptr, stranger.len);
    kedge_buf_put(&answer, w1.ptr, w1.len);
    struct kedge_note_verdict verdicts[2];
    ck_assert_int_eq(
        kedge_cosignature_accept(kedge_buf_view(&note), kedge_buf_view(&answer), keys, 2, &out, verdicts),
        KEDGE_OK);
    ck_assert(verdicts[0].verified && verdicts[0].time_s == TIME_8 && !verdicts[1].verified);
    struct kedge_buf want = note8(); /* without the stranger's line */
    kedge_buf_put(&want, w1.ptr, w1.len);
    ck_assert(kedge_view_eq(kedge_buf_view(&out), kedge_buf_view(&want)));
    take(&note, &out);
    /* Time does not go back. */
    ck_assert_int_eq(
        kedge_cosignature_accept(kedge_buf_view(&note), kedge_buf_view(&older), keys, 2, &out, NULL),
        KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&out), kedge_buf_view(&want)));
    kedge_buf_clear(&out);
    /* Strangers alone, a forged line under a known name, a log's key as a witness. */
    ck_assert_int_eq(
        kedge_cosignature_accept(kedge_buf_view(&note), kedge_buf_view(&stranger), keys, 2, &out, verdicts),
        KEDGE_E_VERIFY);
    ck_assert_int_eq(
        kedge_cosignature_accept(kedge_buf_view(&note), kedge_buf_view(&forged), keys, 2, &out, verdicts),
        KEDGE_E_VERIFY);
    w1.ptr[w1.len - 8] ^= 1;
    ck_assert_int_eq(
        kedge_cosignature_accept(kedge_buf_view(&note), kedge_buf_view(&w1), keys, 2, &out, NULL),
        KEDGE_E_VERIFY);
    struct kedge_vkey log = vkey_of(log_name, KEDGE_KEY_ED25519, 0);
    ck_assert_int_eq(
        kedge_cosignature_accept(kedge_buf_view(&note), kedge_buf_view(&answer), &log, 1, &out, NULL),
        KEDGE_E_ARG);
    ck_assert_int_eq(kedge_cosignature_accept(kedge_buf_view(&note), kedge_view_str(""), keys, 2, &out, NULL),
                     KEDGE_E_FORMAT);
    ck_assert_uint_eq(out.len, 0);
    struct kedge_buf *all[] = {&note, &out, &answer, &w1, &stranger, &older, &forged, &want};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        kedge_buf_deinit(all[i]);
    }
}
END_TEST

START_TEST(any_allocation_may_fail)
{
    struct kedge_buf note = note8(), w1 = line_of(witness_name, 1, TIME_8);
    struct kedge_key_pair pair = pair_of(2);
    struct kedge_vkey key = vkey_of(witness_name, KEDGE_KEY_COSIGNATURE, 1);
    int err = KEDGE_E_NOMEM;
    for (long n = 1; err && n < 100; n++) {
        struct kedge_buf outs[4];
        for (size_t i = 0; i < 4; i++) {
            kedge_buf_init(&outs[i], KEDGE_NOTE_MAX);
        }
        kedge_mem_fail_at(n);
        err = kedge_cosignature_make(kedge_view_str(text8), kedge_view_str("w2"), &pair, 1, &outs[0]);
        err = err ? err : kedge_note_add_line(kedge_buf_view(&note), kedge_buf_view(&w1), &outs[1]);
        err = err ? err
                  : kedge_cosignature_accept(kedge_buf_view(&note), kedge_buf_view(&w1), &key, 1, &outs[3],
                                             NULL);
        kedge_mem_fail_at(0);
        ck_assert(err == KEDGE_OK || (err == KEDGE_E_NOMEM && outs[3].len == 0));
        ck_assert(err != KEDGE_OK || n > 6);
        for (size_t i = 0; i < 4; i++) {
            kedge_buf_deinit(&outs[i]);
        }
    }
    ck_assert_int_eq(err, KEDGE_OK);
    kedge_buf_deinit(&note);
    kedge_buf_deinit(&w1);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("cosignature");
    tcase_add_test(tc, the_published_cosignature_comes_out_byte_for_byte);
    tcase_add_test(tc, a_third_partys_cosignature_verifies_with_its_time);
    tcase_add_test(tc, key_ids_depend_on_the_type);
    tcase_add_test(tc, only_a_checkpoint_is_cosigned_and_only_with_a_fit_name_and_time);
    tcase_add_test(tc, a_newer_line_takes_the_place_of_the_older_and_nothing_else_moves);
    tcase_add_test(tc, sixteen_post_quantum_lines_are_carried_unchanged);
    tcase_add_test(tc, caps_hold_for_lines_and_bytes);
    tcase_add_test(tc, a_witnesss_answer_is_taken_when_its_key_made_it);
    tcase_add_test(tc, any_allocation_may_fail);
    Suite *s = suite_create("chain/cosignature");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
