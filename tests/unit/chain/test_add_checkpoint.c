/* The witness protocol's side that asks: requests as published, to the byte, and what every answer means. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/add_checkpoint.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "tests/unit/chain/vectors.h"
#include "tests/unit/chain/witnesses.h"

enum { PARTS_MAX = 80 };
#define WITNESS "fl.example.org/witness-1"

struct parts {
    uint64_t old_size;
    struct kedge_hash path[PARTS_MAX];
    size_t count;
    struct kedge_view note;
};

/* A published request taken apart; false where it is one of those that are malformed on purpose. */
static bool take_apart(struct kedge_view bytes, struct parts *ret)
{
    const char *at = (const char *)bytes.ptr, *end = at + bytes.len;
    *ret = (struct parts){0};
    for (size_t line = 0; at < end; line++) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        ck_assert_ptr_nonnull(next);
        struct kedge_view v = kedge_view_of(at, (size_t)(next - at));
        at = next + 1;
        if (line > 0 && v.len == 0) {
            ret->note = kedge_view_of(at, (size_t)(end - at));
            return ret->count <= KEDGE_ADD_CHECKPOINT_HASHES_MAX;
        }
        struct kedge_buf hash KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&hash, KEDGE_HASH_LEN);
        if (line == 0) {
            if (v.len < 4 || memcmp(v.ptr, "old ", 4) != 0
                || kedge_decimal_decode(kedge_view_of(v.ptr + 4, v.len - 4), INT64_MAX, &ret->old_size)) {
                return false;
            }
        } else {
            ck_assert_uint_lt(ret->count, PARTS_MAX);
            ck_assert_int_eq(kedge_base64_decode(v, false, &hash), KEDGE_OK);
            memcpy(ret->path[ret->count++].b, hash.ptr, KEDGE_HASH_LEN);
        }
    }
    return false;
}

/* Every row of a conversation: the request from its parts, and what the answer that stands there means. */
static size_t replay(const char *folder, const struct kedge_vkey *witness, size_t *ret_cosigned)
{
    char name[128], base[64];
    snprintf(name, sizeof name, "%s/expected.tsv", folder);
    struct vector_table t = vector_table_open(name);
    size_t requests = 0;
    while (vector_table_next(&t)) {
        static struct parts p;
        vector_str(t.columns[0], base, sizeof base);
        snprintf(name, sizeof name, "%s/%s.request", folder, base);
        struct kedge_buf request = vector_file(name), again, answer, cosigned;
        kedge_buf_init(&again, KEDGE_ADD_CHECKPOINT_MAX);
        kedge_buf_init(&answer, KEDGE_ADD_CHECKPOINT_BODY_MAX);
        kedge_buf_init(&cosigned, KEDGE_NOTE_MAX);
        if (take_apart(kedge_buf_view(&request), &p)) {
            ck_assert_int_eq(kedge_add_checkpoint_format(p.old_size, p.path, p.count, p.note, &again),
                             KEDGE_OK);
            ck_assert_msg(kedge_view_eq(kedge_buf_view(&again), kedge_buf_view(&request)), "%s", base);
            requests++;
        }
        struct kedge_witness_asked asked = {
            .note = p.note, .size = 1000, .old_size = p.old_size, .witness = witness};
        struct kedge_witness_answer a;
        const unsigned status = (unsigned)vector_u64(t.columns[1]);
        if (vector_is(t.columns[2], "see .response")) {
            kedge_buf_deinit(&answer);
            snprintf(name, sizeof name, "%s/%s.response", folder, base);
            answer = vector_file(name);
        } else if (status == 409) { /* "7\n" as the table spells it */
            kedge_buf_put(&answer, t.columns[2].ptr, t.columns[2].len - 2);
            kedge_buf_put_u8(&answer, '\n');
        }
        ck_assert_int_eq(kedge_add_checkpoint_judge(&asked, status, kedge_buf_view(&answer), &cosigned, &a),
                         KEDGE_OK);
        if (answer.len > 0) {
            ck_assert_msg(a.outcome == (status == 200 ? KEDGE_WITNESS_COSIGNED : KEDGE_WITNESS_AGAIN),
                          "%s: %s", base, a.reason);
            *ret_cosigned += status == 200;
        } else {
            ck_assert_msg(a.outcome == KEDGE_WITNESS_REFUSED, "%s", base);
        }
        kedge_buf_deinit(&request);
        kedge_buf_deinit(&again);
        kedge_buf_deinit(&answer);
        kedge_buf_deinit(&cosigned);
    }
    vector_table_close(&t);
    return requests;
}

START_TEST(published_conversations_are_spelt_and_understood)
{
    if (!vectors_present()) {
        return;
    }
    struct kedge_key_pair pair = pair_of(1);
    struct kedge_vkey v;
    size_t cosigned = 0;
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(WITNESS), KEDGE_KEY_COSIGNATURE, &pair.public, &v),
                     KEDGE_OK);
    ck_assert_uint_eq(replay("witness/own", &v, &cosigned), 17); /* 3 of 20 are malformed */
    ck_assert_uint_eq(cosigned, 6);
    ck_assert_uint_eq(replay("witness/public", &v, &cosigned), 10); /* its answers are not published */
    ck_assert_uint_eq(cosigned, 6);
}
END_TEST

START_TEST(requests_keep_to_their_limits)
{
    struct kedge_hash path[KEDGE_ADD_CHECKPOINT_HASHES_MAX + 1] = {{{0}}};
    struct kedge_view note = kedge_view_str("a note");
    struct kedge_buf out KEDGE_CLEANUP(kedge_buf_deinit), big KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&out, KEDGE_ADD_CHECKPOINT_MAX);
    kedge_buf_init(&big, KEDGE_NOTE_MAX + 1);
    ck_assert_int_eq(kedge_add_checkpoint_format(1, path, 64, note, &out), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_add_checkpoint_format(KEDGE_TREE_SIZE_MAX + 1, path, 0, note, &out), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_add_checkpoint_format(1, path, 0, kedge_view_str(""), &out), KEDGE_E_ARG);
    while (big.len < KEDGE_NOTE_MAX) {
        kedge_buf_put_u8(&big, 'x');
    }
    ck_assert_uint_eq(out.len, 0);
    /* The largest request is as long as its limit says, with a note as large as notes may be. */
    ck_assert_int_eq(kedge_add_checkpoint_format(KEDGE_TREE_SIZE_MAX, path, 63, kedge_buf_view(&big), &out),
                     KEDGE_OK);
    ck_assert_uint_eq(out.len, KEDGE_ADD_CHECKPOINT_MAX);
    kedge_buf_clear(&out);
    kedge_buf_put_u8(&big, 'x');
    ck_assert_int_eq(kedge_add_checkpoint_format(1, path, 0, kedge_buf_view(&big), &out), KEDGE_E_ARG);
    kedge_mem_fail_at(1);
    ck_assert_int_eq(kedge_add_checkpoint_format(1, path, 0, note, &out),
                     KEDGE_OK); /* there is room already */
    kedge_mem_fail_at(0);
}
END_TEST

enum said { OUR_LINE, STRANGERS_LINE, CHANGED_LINE, OTHER_TEXTS_LINE };

/* A cosignature line over the note's text, or one that is none. */
static void say(enum said what, const struct kedge_key_pair *key, struct kedge_view text,
                struct kedge_buf *out)
{
    struct kedge_key_pair other;
    struct kedge_seed seed = {{0x55}};
    kedge_key_from_seed(&seed, &other);
    kedge_buf_init(out, KEDGE_COSIGNATURE_LINE_MAX);
    struct kedge_view about = what == OTHER_TEXTS_LINE
                                  ? kedge_view_str("log.example\n1\n"
                                                   "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n")
                                  : text;
    ck_assert_int_eq(kedge_cosignature_make(about, kedge_view_str("w.example"),
                                            what == STRANGERS_LINE ? &other : key, 1767225600, out),
                     KEDGE_OK);
    if (what == CHANGED_LINE) {
        uint8_t *last = &out->ptr[out->len - 12];
        *last = *last == 'A' ? 'B' : 'A';
    }
}

START_TEST(an_answer_is_what_it_proves)
{
    static const struct {
        unsigned status;
        const char *body; /* NULL: the line */
        enum said said;
        enum kedge_witness_outcome outcome;
        uint64_t size;
    } rows[] = {
        {200, NULL, OUR_LINE, KEDGE_WITNESS_COSIGNED, 9},
        {200, NULL, STRANGERS_LINE, KEDGE_WITNESS_REFUSED, 0},
        {200, NULL, CHANGED_LINE, KEDGE_WITNESS_REFUSED, 0},
        {200, NULL, OTHER_TEXTS_LINE, KEDGE_WITNESS_REFUSED, 0},
        {200, "", OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
        {200, "<html>", OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
        {200, "7\n", OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
        {409, "7\n", OUR_LINE, KEDGE_WITNESS_AGAIN, 7},
        {409, "9\n", OUR_LINE, KEDGE_WITNESS_AGAIN, 9},
        {409, "0\n", OUR_LINE, KEDGE_WITNESS_AGAIN, 0},
        {409, "10\n", OUR_LINE, KEDGE_WITNESS_AHEAD, 10},
        {409, "4\n", OUR_LINE, KEDGE_WITNESS_REFUSED, 0}, /* that is what it was asked from */
        {409, "7", OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
        {409, "", OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
        {409, "07\n", OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
        {409, "7\n\n", OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
        {409, "7\r\n", OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
        {409, " 7\n", OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
        {409, "9223372036854775807\n", OUR_LINE, KEDGE_WITNESS_AHEAD, INT64_MAX},
        {409, "9223372036854775808\n", OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
        {409, "-1\n", OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
        {409, NULL, OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
        {400, NULL, OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
        {403, NULL, OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
        {404, NULL, OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
        {422, NULL, OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
        {201, NULL, OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
        {0, NULL, OUR_LINE, KEDGE_WITNESS_REFUSED, 0},
    };
    struct kedge_key_pair log, key;
    struct kedge_seed seeds[2] = {{{1}}, {{2}}};
    struct kedge_vkey vkey;
    struct kedge_hash root = {{3}};
    struct kedge_note *parsed = kedge_mem_new(1, sizeof *parsed);
    struct kedge_buf note;
    kedge_key_from_seed(&seeds[0], &log);
    kedge_key_from_seed(&seeds[1], &key);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str("w.example"), KEDGE_KEY_COSIGNATURE, &key.public, &vkey),
                     KEDGE_OK);
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str("log.example"), 9, &root, &log, &note), KEDGE_OK);
    ck_assert_int_eq(kedge_note_parse(kedge_buf_view(&note), parsed), KEDGE_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kedge_witness_asked asked = {
            .note = kedge_buf_view(&note), .size = 9, .old_size = 4, .witness = &vkey};
        struct kedge_witness_answer answer;
        struct kedge_buf line, cosigned;
        say(rows[i].said, &key, parsed->text, &line);
        kedge_buf_init(&cosigned, KEDGE_NOTE_MAX);
        struct kedge_view body = rows[i].body ? kedge_view_str(rows[i].body) : kedge_buf_view(&line);
        ck_assert_int_eq(kedge_add_checkpoint_judge(&asked, rows[i].status, body, &cosigned, &answer),
                         KEDGE_OK);
        ck_assert_msg(answer.outcome == rows[i].outcome && answer.size == rows[i].size, "row %zu: %d, %llu",
                      i, (int)answer.outcome, (unsigned long long)answer.size);
        bool good = answer.outcome == KEDGE_WITNESS_COSIGNED;
        ck_assert_msg(good == (answer.reason[0] == '\0') && good == (cosigned.len > note.len), "row %zu", i);
        kedge_buf_deinit(&line);
        kedge_buf_deinit(&cosigned);
    }
    kedge_mem_free(parsed);
    kedge_buf_deinit(&note);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("add_checkpoint");
    tcase_add_test(tc, published_conversations_are_spelt_and_understood);
    tcase_add_test(tc, requests_keep_to_their_limits);
    tcase_add_test(tc, an_answer_is_what_it_proves);
    Suite *s = suite_create("chain/add_checkpoint");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
