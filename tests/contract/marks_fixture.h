/* A store whose records are a mark repeated, so that any piece of one is seen wherever in the file it lies.
 * How many marks there must be is known. */
#ifndef KEDGE_TESTS_CONTRACT_MARKS_FIXTURE_H
#define KEDGE_TESTS_CONTRACT_MARKS_FIXTURE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/store/kv/kv.h"
#include "common/base/os/file.h"

enum {
    MARK = 16,
    RECORD = 45 * MARK, /* five to a page */
    ONE_PAGE = 190 * MARK,
    MORE_PAGES = 700 * MARK,
    RECORDS = 80,
    BIG_EVERY = 8, /* a record with pages of its own */
    FILE_MAX = 64 << 20,
    NEWEST_STATE = 100 + RECORDS - 1, /* generation */
    PAGE = 4096,
};

static char marks_dir[64], marks_file[128];

static inline void make_dir(void)
{
    snprintf(marks_dir, sizeof marks_dir, "/tmp/kedge-scrub-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(marks_dir));
    snprintf(marks_file, sizeof marks_file, "%s/data.mdb", marks_dir);
}

static inline struct kedge_kv *open_store(bool read_only)
{
    struct kedge_kv_lmdb_options options = {.create = !read_only, .read_only = read_only};
    struct kedge_kv *kv;
    struct kedge_diag d = {0};
    ck_assert_msg(kedge_kv_lmdb_open(marks_dir, &options, &kv, &d) == KEDGE_OK, "%s", d.text);
    return kv;
}

static inline struct kedge_kv_tx *begin(struct kedge_kv *kv, bool write)
{
    struct kedge_kv_tx *tx;
    ck_assert_int_eq(kedge_kv_begin(kv, write, &tx, NULL), KEDGE_OK);
    return tx;
}

/* Marks of generation `g` of record `i`. */
static inline void fill(uint8_t *out, size_t len, unsigned g, unsigned i)
{
    char mark[MARK + 1];
    snprintf(mark, sizeof mark, "<rec %03u.%05u> ", g, i);
    for (size_t at = 0; at < len; at += MARK) {
        memcpy(out + at, mark, MARK);
    }
}

static inline size_t len_of(unsigned i)
{
    return i % BIG_EVERY != BIG_EVERY - 1 ? RECORD : i % (2 * BIG_EVERY) < BIG_EVERY ? ONE_PAGE : MORE_PAGES;
}

static inline struct kedge_view key_of(unsigned i, uint8_t out[8])
{
    kedge_store_be64(out, i);
    return kedge_view_of(out, 8);
}

static inline void put(struct kedge_kv *kv, enum kedge_kv_table table, unsigned g, unsigned i, size_t len)
{
    static uint8_t bytes[MORE_PAGES];
    uint8_t key[8];
    fill(bytes, len, g, i);
    struct kedge_kv_tx *tx = begin(kv, true);
    ck_assert_int_eq(kedge_kv_put(tx, table, key_of(i, key), kedge_view_of(bytes, len),
                                  table == KEDGE_KV_ENTRY ? KEDGE_KV_APPEND : KEDGE_KV_PUT),
                     KEDGE_OK);
    ck_assert_int_eq(kedge_kv_commit(tx, NULL), KEDGE_OK);
}

/* A commit each: a ledger's entries, and beside them a state that is written again and again and records
 * that go. */
static inline void write_records(struct kedge_kv *kv, bool with_big)
{
    uint8_t key[8];
    for (unsigned i = 0; i < RECORDS; i++) {
        put(kv, KEDGE_KV_ENTRY, 0, i, with_big ? len_of(i) : RECORD);
        put(kv, KEDGE_KV_STATE, 100 + i, 0, RECORD);
        put(kv, KEDGE_KV_TOKEN, 1, i, RECORD);
        if (i % 3 == 0) {
            struct kedge_kv_tx *tx = begin(kv, true);
            ck_assert_int_eq(kedge_kv_del(tx, KEDGE_KV_TOKEN, key_of(i, key)), KEDGE_OK);
            ck_assert_int_eq(kedge_kv_commit(tx, NULL), KEDGE_OK);
        }
    }
}

static inline void read_file(struct kedge_buf *ret)
{
    kedge_buf_init(ret, FILE_MAX);
    ck_assert_int_eq(kedge_file_read(marks_file, ret, NULL), KEDGE_OK);
}

/* How many marks of each record and generation the file holds, and how many pieces of marks. */
struct tally {
    size_t entries[RECORDS], states[RECORDS], tokens[RECORDS], pieces;
};

static inline void count_marks(struct tally *t)
{
    struct kedge_buf b;
    memset(t, 0, sizeof *t);
    read_file(&b);
    for (size_t at = 0; at + MARK <= b.len; at++) {
        unsigned g, i;
        char text[MARK + 1] = "";
        if (memcmp(b.ptr + at, "<rec ", 5) != 0) {
            continue;
        }
        memcpy(text, b.ptr + at, MARK);
        if (sscanf(text, "<rec %3u.%5u", &g, &i) != 2 || strcmp(text + MARK - 2, "> ") != 0) {
            t->pieces++;
            continue;
        }
        ck_assert_uint_lt(i, RECORDS);
        t->entries[i] += g == 0;
        t->tokens[i] += g == 1;
        if (g >= 100) {
            ck_assert_uint_lt(g - 100, RECORDS);
            t->states[g - 100]++;
        }
    }
    kedge_buf_deinit(&b);
}

static inline void check_clean(bool with_big)
{
    struct tally t;
    count_marks(&t);
    ck_assert_uint_eq(t.pieces, 0);
    for (unsigned i = 0; i < RECORDS; i++) {
        ck_assert_uint_eq(t.entries[i], (with_big ? len_of(i) : RECORD) / MARK);
        ck_assert_uint_eq(t.states[i], i == RECORDS - 1 ? RECORD / MARK : 0);
        ck_assert_uint_eq(t.tokens[i], i % 3 == 0 ? 0 : RECORD / MARK);
    }
}

static inline bool holds(struct kedge_kv_tx *tx, unsigned g, unsigned i, size_t len)
{
    static uint8_t bytes[MORE_PAGES];
    uint8_t key[8];
    enum kedge_kv_table table = g == 0 ? KEDGE_KV_ENTRY : g == 1 ? KEDGE_KV_TOKEN : KEDGE_KV_STATE;
    struct kedge_view v;
    fill(bytes, len, g, i);
    return kedge_kv_peek(tx, table, key_of(i, key), &v) == KEDGE_OK
           && kedge_view_eq(v, kedge_view_of(bytes, len));
}

static inline void check_records(struct kedge_kv *kv, bool with_big)
{
    struct kedge_kv_tx *tx = begin(kv, false);
    uint64_t count;
    for (unsigned i = 0; i < RECORDS; i++) {
        ck_assert(holds(tx, 0, i, with_big ? len_of(i) : RECORD));
        ck_assert(holds(tx, 1, i, RECORD) == (i % 3 != 0));
    }
    ck_assert(holds(tx, NEWEST_STATE, 0, RECORD));
    ck_assert_int_eq(kedge_kv_count(tx, KEDGE_KV_ENTRY, &count), KEDGE_OK);
    ck_assert_uint_eq(count, RECORDS);
    kedge_kv_abort(tx);
}

#endif
