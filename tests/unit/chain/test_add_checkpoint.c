/* The witness protocol: the two published conversations to the byte, and every check in its place. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/add_checkpoint.h"
#include "chain/log/add_checkpoint_client.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "tests/unit/chain/vectors.h"
#include "tests/unit/chain/witnesses.h"

enum { TIME = 1767225600, RECORDS = 4 };
#define WITNESS "fl.example.org/witness-1"

/* A witness in memory. */
struct witness {
    const struct kedge_witnessed_log *logs;
    size_t log_count;
    struct {
        char origin[128];
        uint64_t size;
        struct kedge_hash root;
    } records[RECORDS];
    bool saw_fork;
};

static size_t record_of(struct witness *w, struct kedge_view origin)
{
    size_t i = 0;
    while (w->records[i].origin[0] && !kedge_view_eq(kedge_view_str(w->records[i].origin), origin)) {
        i++;
        ck_assert_uint_lt(i, RECORDS);
    }
    vector_str(origin, w->records[i].origin, sizeof w->records[i].origin);
    return i;
}

/* One request; returns the status and appends the body. */
static int ask(struct witness *w, struct kedge_view request, struct kedge_buf *body, const char **type)
{
    struct kedge_add_checkpoint r;
    struct kedge_witness_decision d = {0};
    ck_assert_int_eq(kedge_add_checkpoint_open(request, w->logs, w->log_count, &r, &d.status, &d.reason),
                     KEDGE_OK);
    struct kedge_buf line KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&line, KEDGE_COSIGNATURE_LINE_MAX);
    if (d.status == KEDGE_WITNESS_OK) {
        size_t i = record_of(w, r.checkpoint.origin);
        kedge_add_checkpoint_decide(&r, w->records[i].size, &w->records[i].root, &d);
        w->saw_fork = w->saw_fork || d.is_fork;
        if (d.status == KEDGE_WITNESS_OK) {
            struct kedge_key_pair pair = pair_of(1);
            w->records[i].size = r.checkpoint.size;
            w->records[i].root = r.checkpoint.root;
            ck_assert_int_eq(kedge_cosignature_make(r.text, kedge_view_str(WITNESS), &pair, TIME, &line),
                             KEDGE_OK);
        }
    }
    ck_assert((d.status == KEDGE_WITNESS_OK) == (d.reason[0] == '\0'));
    *type = kedge_add_checkpoint_reply(&d, kedge_buf_view(&line), body);
    return (int)d.status;
}

/* Formatting what was parsed gives the same bytes. */
static void check_round_trip(struct kedge_view request)
{
    struct kedge_add_checkpoint r;
    if (kedge_add_checkpoint_parse(request, &r) == KEDGE_OK) {
        struct kedge_buf again KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&again, KEDGE_ADD_CHECKPOINT_MAX);
        ck_assert_int_eq(kedge_add_checkpoint_format(r.old_size, r.path.hashes, r.path.count, r.note, &again),
                         KEDGE_OK);
        ck_assert(kedge_view_eq(kedge_buf_view(&again), request));
    }
}

/* Every row of a conversation: request, status, and the body that the table or the file beside it states. */
static size_t replay(const char *folder, struct witness *w, const struct kedge_vkey *witness)
{
    char name[128], base[64];
    snprintf(name, sizeof name, "%s/expected.tsv", folder);
    struct vector_table t = vector_table_open(name);
    size_t rows = 0;
    while (vector_table_next(&t)) {
        vector_str(t.columns[0], base, sizeof base);
        snprintf(name, sizeof name, "%s/%s.request", folder, base);
        struct kedge_buf request = vector_file(name), body;
        kedge_buf_init(&body, KEDGE_ADD_CHECKPOINT_BODY_MAX);
        check_round_trip(kedge_buf_view(&request));
        const char *type = NULL;
        int status = ask(w, kedge_buf_view(&request), &body, &type);
        ck_assert_msg((uint64_t)status == vector_u64(t.columns[1]), "%s: %d", base, status);
        ck_assert((strcmp(type, "text/x.tlog.size") == 0) == (status == 409));
        if (vector_is(t.columns[2], "-")) {
            ck_assert_uint_eq(body.len, 0);
        } else if (vector_is(t.columns[2], "see .response")) {
            snprintf(name, sizeof name, "%s/%s.response", folder, base);
            struct kedge_buf want = vector_file(name);
            ck_assert_msg(kedge_view_eq(kedge_buf_view(&body), kedge_buf_view(&want)), "%s", base);
            kedge_buf_deinit(&want);
        } else if (vector_is(t.columns[2], "one cosignature line")) {
            struct kedge_add_checkpoint r;
            struct kedge_buf cosigned KEDGE_CLEANUP(kedge_buf_deinit);
            kedge_buf_init(&cosigned, KEDGE_NOTE_MAX);
            ck_assert_int_eq(kedge_add_checkpoint_parse(kedge_buf_view(&request), &r), KEDGE_OK);
            ck_assert_int_eq(
                kedge_cosignature_accept(r.note, kedge_buf_view(&body), witness, 1, &cosigned, NULL),
                KEDGE_OK);
        } else { /* "7\n" as the table spells it */
            uint64_t size = 0;
            ck_assert_int_eq(kedge_add_checkpoint_read_conflict(kedge_buf_view(&body), &size), KEDGE_OK);
            struct kedge_view spelt = kedge_view_of(t.columns[2].ptr, t.columns[2].len - 2);
            ck_assert_uint_eq(size, vector_u64(spelt));
        }
        kedge_buf_deinit(&request);
        kedge_buf_deinit(&body);
        rows++;
    }
    vector_table_close(&t);
    return rows;
}

static struct kedge_witnessed_log log_of(const char *vkey, struct kedge_view *ret_origin)
{
    struct kedge_witnessed_log log;
    ck_assert_int_eq(kedge_vkey_decode(kedge_view_str(vkey), &log.key), KEDGE_OK);
    log.origin = kedge_view_of(vkey, (size_t)(strchr(vkey, '+') - vkey));
    *ret_origin = log.origin;
    return log;
}

static const char vkey_a[] = "fl.example.org/tenant-a+407d9fc7+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop";
static const char vkey_b[] = "fl.example.org/tenant-b+fa52f629+AYE5dw6ofRdfVqNUZsNMfszLjYqRtO43ol32D1uPybOU";

static struct kedge_vkey witness_vkey(void)
{
    struct kedge_key_pair pair = pair_of(1);
    struct kedge_vkey v;
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(WITNESS), KEDGE_KEY_COSIGNATURE, &pair.public, &v),
                     KEDGE_OK);
    return v;
}

START_TEST(our_published_conversation_comes_out_byte_for_byte)
{
    if (!vectors_present()) {
        return;
    }
    struct kedge_view origin;
    struct kedge_witnessed_log logs[] = {log_of(vkey_a, &origin), log_of(vkey_b, &origin)};
    struct witness w = {.logs = logs, .log_count = 2};
    struct kedge_vkey v = witness_vkey();
    ck_assert_uint_eq(replay("witness/own", &w, &v), 20);
    ck_assert(w.saw_fork); /* 03_fork_same_size */
}
END_TEST

START_TEST(litewitnesss_conversation_gets_its_answers)
{
    if (!vectors_present()) {
        return;
    }
    static const char origin[] =
        "sigsum.org/v1/tree/4d6d8825a6bb689d459628312889dfbb0bcd41b5211d9e1ce768b0ff0309e562";
    struct kedge_public_key key;
    struct kedge_witnessed_log log = {.origin = kedge_view_str(origin)};
    ck_assert_int_eq(
        kedge_hex_decode(kedge_view_str("ffdc2d4d98e4124d3feaf788c0c2f9abfd796083d1f0495437f302ec79cf100f"),
                         key.b, sizeof key.b),
        KEDGE_OK);
    ck_assert_int_eq(kedge_vkey_make(log.origin, KEDGE_KEY_ED25519, &key, &log.key), KEDGE_OK);
    ck_assert(memcmp(log.key.id, "\x52\x02\x28\x9b", 4) == 0);
    struct witness w = {.logs = &log, .log_count = 1};
    struct kedge_vkey v = witness_vkey();
    ck_assert_uint_eq(replay("witness/public", &w, &v), 10);
    ck_assert(!w.saw_fork);
}
END_TEST

START_TEST(monitoring_paths_are_the_published_ones)
{
    char path[KEDGE_MONITORING_PATH_LEN + 1];
    /* SHA-256("rome2026h1.example.org") begins with zeros (ledger reference §2). */
    kedge_witness_monitoring_path(kedge_view_str("rome2026h1.example.org"), path);
    ck_assert_str_eq(path, "000de184301123b9278c086a7d9f68c9577e83872224c197058fd90784ea9706/checkpoint");
    if (!vectors_present()) {
        return;
    }
    struct vector_table t = vector_table_open("witness/own/monitoring_paths.tsv");
    while (vector_table_next(&t)) {
        kedge_witness_monitoring_path(t.columns[0], path);
        ck_assert(vector_is(t.columns[1], path));
    }
    vector_table_close(&t);
}
END_TEST

/* The log of witnesses.h at a size, with leaves that differ between histories. */
static struct kedge_hash grow(struct kedge_frontier *f, uint64_t size, uint8_t history)
{
    struct kedge_hash root;
    while (f->size < size) {
        uint8_t entry[2] = {history, (uint8_t)f->size};
        kedge_merkle_leaf(kedge_view_of(entry, sizeof entry), &root);
        ck_assert_int_eq(kedge_frontier_append(f, &root), KEDGE_OK);
    }
    kedge_frontier_root(f, &root);
    return root;
}

static struct kedge_buf request_of(uint64_t old_size, uint64_t size, uint8_t history, unsigned hashes)
{
    struct kedge_frontier f = {0};
    struct kedge_hash root = grow(&f, size, history), path[KEDGE_ADD_CHECKPOINT_HASHES_MAX + 1] = {{{0}}};
    struct kedge_key_pair pair = pair_of_witness(0);
    struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit), out;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&out, KEDGE_ADD_CHECKPOINT_MAX);
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str(WITNESSES_LOG), size, &root, &pair, &note),
                     KEDGE_OK);
    if (old_size == 1 && size == 2) { /* the one growth that these tests need */
        uint8_t entry[2] = {history, 1};
        kedge_merkle_leaf(kedge_view_of(entry, sizeof entry), &path[0]);
    }
    ck_assert_int_eq(kedge_add_checkpoint_format(old_size, path, hashes, kedge_buf_view(&note), &out),
                     KEDGE_OK);
    return out;
}

START_TEST(each_check_answers_in_its_turn)
{
    static const struct {
        uint64_t recorded, old_size, size;
        unsigned hashes;
        uint8_t history;
        int status;
        bool fork;
    } cases[] = {
        {0, 0, 1, 0, 0, 200, false}, {0, 0, 1, 1, 0, 422, false}, {0, 0, 0, 0, 0, 200, false},
        {0, 0, 0, 1, 0, 422, false}, {0, 2, 1, 0, 0, 400, false}, {0, 1, 1, 0, 0, 409, false},
        {1, 0, 1, 0, 0, 409, false}, {1, 1, 1, 0, 0, 200, false}, {1, 1, 1, 1, 0, 422, false},
        {1, 1, 1, 0, 1, 422, true},  {1, 0, 1, 0, 1, 409, true},  {1, 1, 2, 1, 0, 200, false},
        {1, 1, 2, 0, 0, 422, false}, {1, 1, 2, 2, 0, 422, false}, {1, 1, 2, 1, 1, 422, false},
        {2, 1, 2, 1, 0, 409, false}, {2, 1, 1, 0, 0, 409, false}, {2, 2, 1, 0, 0, 400, false},
    };
    struct kedge_vkey v = vkey_of(0);
    struct kedge_witnessed_log log = {kedge_view_str(v.name), v};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kedge_buf request =
            request_of(cases[i].old_size, cases[i].size, cases[i].history, cases[i].hashes);
        struct kedge_frontier f = {0};
        struct kedge_hash root = grow(&f, cases[i].recorded, 0);
        struct kedge_add_checkpoint r;
        struct kedge_witness_decision d = {0};
        ck_assert_int_eq(
            kedge_add_checkpoint_open(kedge_buf_view(&request), &log, 1, &r, &d.status, &d.reason), KEDGE_OK);
        if (d.status == KEDGE_WITNESS_OK) {
            kedge_add_checkpoint_decide(&r, cases[i].recorded, cases[i].recorded ? &root : NULL, &d);
        }
        ck_assert_msg((int)d.status == cases[i].status && d.is_fork == cases[i].fork, "case %zu: %d %s", i,
                      (int)d.status, d.reason);
        kedge_buf_deinit(&request);
    }
}
END_TEST

START_TEST(requests_have_one_spelling)
{
    struct kedge_buf request = request_of(1, 2, 0, 1);
    check_round_trip(kedge_buf_view(&request));
    struct kedge_add_checkpoint r;
    char copy[1024];
    size_t note_at = (size_t)((uint8_t *)memmem(request.ptr, request.len, "\n\nfl.", 5) - request.ptr);
    static const struct {
        const char *head; /* in place of what stands before the note's empty line */
        int err;
    } heads[] = {
        {"old 1", KEDGE_OK},
        {"old 9223372036854775807", KEDGE_OK},
        {"old 9223372036854775808", KEDGE_E_FORMAT},
        {"old 01", KEDGE_E_FORMAT},
        {"old -1", KEDGE_E_FORMAT},
        {"old +1", KEDGE_E_FORMAT},
        {"old 1 ", KEDGE_E_FORMAT},
        {"old  1", KEDGE_E_FORMAT},
        {"old", KEDGE_E_FORMAT},
        {"old 1\r", KEDGE_E_FORMAT},
        {"Old 1", KEDGE_E_FORMAT},
        {"old 1\nAAAA", KEDGE_E_FORMAT},
        {"old 1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=", KEDGE_E_FORMAT},
        {"old 1\n AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", KEDGE_E_FORMAT},
        {"old 1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", KEDGE_OK},
    };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        int n = snprintf(copy, sizeof copy, "%s%.*s", heads[i].head, (int)(request.len - note_at),
                         (const char *)request.ptr + note_at);
        ck_assert(n > 0 && (size_t)n < sizeof copy);
        ck_assert_msg(kedge_add_checkpoint_parse(kedge_view_of(copy, (size_t)n), &r) == heads[i].err,
                      "case %zu", i);
    }
    for (size_t len = 0; len < request.len; len++) { /* no prefix is a request */
        ck_assert_int_eq(kedge_add_checkpoint_parse(kedge_view_of(request.ptr, len), &r), KEDGE_E_FORMAT);
    }
    kedge_buf_deinit(&request);
    /* 63 hashes are the most. */
    request = request_of(1, 2, 0, KEDGE_ADD_CHECKPOINT_HASHES_MAX);
    ck_assert_int_eq(kedge_add_checkpoint_parse(kedge_buf_view(&request), &r), KEDGE_OK);
    ck_assert_uint_eq(r.path.count, 63);
    struct kedge_hash path[KEDGE_ADD_CHECKPOINT_HASHES_MAX + 1] = {{{0}}};
    struct kedge_buf out KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&out, KEDGE_ADD_CHECKPOINT_MAX);
    ck_assert_int_eq(kedge_add_checkpoint_format(1, path, 64, r.note, &out), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_add_checkpoint_format(KEDGE_TREE_SIZE_MAX + 1, path, 0, r.note, &out),
                     KEDGE_E_ARG);
    ck_assert_int_eq(kedge_add_checkpoint_format(1, path, 0, kedge_view_str(""), &out), KEDGE_E_ARG);
    ck_assert_uint_eq(out.len, 0);
    /* The largest request is as long as its limit says, with a note as large as notes may be. */
    struct kedge_buf big KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&big, KEDGE_NOTE_MAX);
    while (big.len < KEDGE_NOTE_MAX) {
        kedge_buf_put_u8(&big, 'x');
    }
    ck_assert_int_eq(kedge_add_checkpoint_format(KEDGE_TREE_SIZE_MAX, path, 63, kedge_buf_view(&big), &out),
                     KEDGE_OK);
    ck_assert_uint_eq(out.len, KEDGE_ADD_CHECKPOINT_MAX);
    ck_assert_int_eq(kedge_add_checkpoint_parse(kedge_buf_view(&out), &r), KEDGE_E_FORMAT); /* no note */
    out.max++;
    kedge_buf_put_u8(&out, 'x');
    ck_assert_int_eq(kedge_add_checkpoint_parse(kedge_buf_view(&out), &r), KEDGE_E_TOO_LONG);
    kedge_buf_deinit(&request);
}
END_TEST

START_TEST(only_the_origins_own_keys_speak_for_it)
{
    struct kedge_buf request = request_of(0, 1, 0, 0);
    struct kedge_view bytes = kedge_buf_view(&request);
    struct kedge_vkey v = vkey_of(0), witness = vkey_of(1), next;
    struct kedge_key_pair pair = pair_of(7);
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(v.name), KEDGE_KEY_ED25519, &pair.public, &next),
                     KEDGE_OK);
    struct kedge_view origin = kedge_view_str(WITNESSES_LOG), other = kedge_view_str("other");
    const struct {
        struct kedge_witnessed_log logs[2];
        size_t count;
        int err;
        enum kedge_witness_status status;
    } cases[] = {
        {{{origin, v}}, 0, KEDGE_OK, KEDGE_WITNESS_NOT_FOUND},
        {{{other, v}}, 1, KEDGE_OK, KEDGE_WITNESS_NOT_FOUND},
        {{{origin, next}, {other, v}}, 2, KEDGE_OK, KEDGE_WITNESS_FORBIDDEN},
        {{{origin, next}, {origin, v}}, 2, KEDGE_OK, KEDGE_WITNESS_OK},
        {{{origin, v}, {origin, v}}, 2, KEDGE_E_ARG, KEDGE_WITNESS_OK},
        {{{origin, witness}}, 1, KEDGE_E_ARG, KEDGE_WITNESS_OK},
    };
    struct kedge_add_checkpoint r;
    enum kedge_witness_status status;
    const char *reason;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        status = KEDGE_WITNESS_OK;
        ck_assert_msg(kedge_add_checkpoint_open(bytes, cases[i].logs, cases[i].count, &r, &status, &reason)
                          == cases[i].err,
                      "case %zu", i);
        ck_assert_msg(status == cases[i].status, "case %zu", i);
    }
    /* Trailing bits, on the log's own line and on a stranger's: 403 for both. */
    struct kedge_witnessed_log log = {origin, v};
    ck_assert(request.ptr[request.len - 2] == '=' && request.ptr[request.len - 3] != '=');
    request.ptr[request.len - 3]++;
    ck_assert_int_eq(kedge_add_checkpoint_open(bytes, &log, 1, &r, &status, &reason), KEDGE_OK);
    ck_assert_int_eq(status, KEDGE_WITNESS_FORBIDDEN);
    request.ptr[request.len - 3]--;
    kedge_buf_put_str(&request, "\xe2\x80\x94 stranger AAAAAAB=\n");
    bytes = kedge_buf_view(&request);
    ck_assert_int_eq(kedge_add_checkpoint_open(bytes, &log, 1, &r, &status, &reason), KEDGE_OK);
    ck_assert_int_eq(status, KEDGE_WITNESS_FORBIDDEN);
    request.ptr[request.len - 3]--; /* 'A' */
    ck_assert_int_eq(kedge_add_checkpoint_open(bytes, &log, 1, &r, &status, &reason), KEDGE_OK);
    ck_assert_int_eq(status, KEDGE_WITNESS_OK);
    kedge_buf_deinit(&request);
}
END_TEST

START_TEST(a_conflict_states_one_decimal_line)
{
    static const struct {
        const char *body;
        bool ok;
    } cases[] = {{"0\n", true},
                 {"7\n", true},
                 {"9223372036854775807\n", true},
                 {"9223372036854775808\n", false},
                 {"", false},
                 {"7", false},
                 {"07\n", false},
                 {"7\n\n", false},
                 {"7\r\n", false},
                 {" 7\n", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t size = 1;
        ck_assert_msg((kedge_add_checkpoint_read_conflict(kedge_view_str(cases[i].body), &size) == KEDGE_OK)
                          == cases[i].ok,
                      "case %zu", i);
    }
}
END_TEST

/* ---- the side that asks ---- */

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

START_TEST(any_allocation_may_fail)
{
    struct kedge_buf request = request_of(0, 1, 0, 0);
    struct kedge_vkey v = vkey_of(0);
    struct kedge_witnessed_log log = {kedge_view_str(v.name), v};
    int err = KEDGE_E_NOMEM;
    for (long n = 1; err && n < 50; n++) {
        struct kedge_add_checkpoint r;
        enum kedge_witness_status status = KEDGE_WITNESS_FORBIDDEN;
        const char *reason;
        kedge_mem_fail_at(n);
        err = kedge_add_checkpoint_open(kedge_buf_view(&request), &log, 1, &r, &status, &reason);
        kedge_mem_fail_at(0);
        ck_assert(err == KEDGE_E_NOMEM ? status == KEDGE_WITNESS_FORBIDDEN : status == KEDGE_WITNESS_OK);
        ck_assert(err != KEDGE_OK || n > 2);
    }
    ck_assert_int_eq(err, KEDGE_OK);
    kedge_buf_deinit(&request);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("add_checkpoint");
    tcase_add_test(tc, our_published_conversation_comes_out_byte_for_byte);
    tcase_add_test(tc, litewitnesss_conversation_gets_its_answers);
    tcase_add_test(tc, monitoring_paths_are_the_published_ones);
    tcase_add_test(tc, each_check_answers_in_its_turn);
    tcase_add_test(tc, requests_have_one_spelling);
    tcase_add_test(tc, only_the_origins_own_keys_speak_for_it);
    tcase_add_test(tc, a_conflict_states_one_decimal_line);
    tcase_add_test(tc, an_answer_is_what_it_proves);
    tcase_add_test(tc, any_allocation_may_fail);
    Suite *s = suite_create("chain/add_checkpoint");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
