/* Compact updates: what is sent and what is left are together what there was, what is lost is what compact.h
 * says, and nothing but such a file is taken for one. */
#include "aggregation/compact.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/err.h"
#include "tests/unit/aggregation/support.h"

enum { VALUES_MAX = 3 * KEDGE_COMPACT_BLOCK + 5, FILE_MAX = KEDGE_COMPACT_HEAD + VALUES_MAX * 5 + 64 };
static const size_t counts[] = {1, 2, 255, KEDGE_COMPACT_BLOCK, KEDGE_COMPACT_BLOCK + 1, VALUES_MAX};
static const uint32_t shares[] = {1, 1000, 10000, 300000, KEDGE_COMPACT_SHARE_ONE};

static uint64_t size_of(int32_t v)
{
    return (uint64_t)(v < 0 ? -(int64_t)v : (int64_t)v);
}

/* Many small values, some large, some none: as an update has them. */
static void fill(struct kedge_rng *rng, int32_t *v, size_t n, int32_t most)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t kind = kedge_rng_below(rng, 8);
        int32_t limit = kind < 5 ? most / 64 + 1 : kind < 7 ? most : 0;
        v[i] = limit > 0 ? draw_int(rng, limit) : 0;
    }
}

static size_t write_file(const struct kedge_compact *c, int32_t *v, size_t n, int32_t limit, uint8_t *file)
{
    struct kedge_compact_plan plan;
    uint8_t block[KEDGE_COMPACT_BLOCK_BYTES_MAX];
    ck_assert_int_eq(kedge_compact_plan(c, v, n, &plan), KEDGE_OK);
    kedge_compact_head_write(c->kind, n, file);
    size_t at = KEDGE_COMPACT_HEAD;
    for (size_t i = 0; i < n; i += KEDGE_COMPACT_BLOCK) {
        size_t len = kedge_compact_block_write(
            &plan, v + i, n - i < KEDGE_COMPACT_BLOCK ? n - i : KEDGE_COMPACT_BLOCK, limit, block);
        ck_assert_uint_le(at + len, FILE_MAX);
        memcpy(file + at, block, len);
        at += len;
    }
    return at;
}

/* Whole, or KEDGE_E_FORMAT. Each block is read from a place of exactly its length. */
static int read_file(struct kedge_view file, int32_t *v, size_t n, uint64_t *ret_entries)
{
    enum kedge_compact_kind kind;
    uint64_t count = 0;
    if (!kedge_compact_is_head(file) || kedge_compact_head_read(file.ptr, &kind, &count) || count != n) {
        return KEDGE_E_FORMAT;
    }
    size_t at = KEDGE_COMPACT_HEAD;
    *ret_entries = 0;
    for (size_t i = 0; i < n; i += KEDGE_COMPACT_BLOCK) {
        size_t some = n - i < KEDGE_COMPACT_BLOCK ? n - i : KEDGE_COMPACT_BLOCK;
        size_t len = file.len - at < 2 ? 0 : kedge_compact_block_len(kind, some, file.ptr + at);
        uint32_t entries;
        if (len == 0 || len > file.len - at) {
            return KEDGE_E_FORMAT;
        }
        uint8_t *copy = new_array(len, 1);
        memcpy(copy, file.ptr + at, len);
        int err = kedge_compact_block_read(kind, kedge_view_of(copy, len), some, v + i, &entries);
        kedge_mem_free(copy);
        if (err) {
            return err;
        }
        ck_assert_uint_le(entries, some);
        *ret_entries += entries;
        at += len;
    }
    return at == file.len ? KEDGE_OK : KEDGE_E_FORMAT;
}

/* ---- what is taken, by sorting ---- */

struct ranked {
    uint64_t size;
    size_t index;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->size != y->size ? (x->size > y->size ? -1 : 1) : x->index < y->index ? -1 : 1;
}

static void largest(const int32_t *v, size_t n, uint64_t most, bool *taken)
{
    struct ranked *rank = new_array(n, sizeof *rank);
    for (size_t i = 0; i < n; i++) {
        rank[i] = (struct ranked){size_of(v[i]), i};
        taken[i] = false;
    }
    qsort(rank, n, sizeof *rank, by_rank);
    for (size_t i = 0; i < most && i < n; i++) {
        taken[rank[i].index] = rank[i].size > 0;
    }
    kedge_mem_free(rank);
}

/* One value's loss, in the steps of its kind. `step`: of its block. */
static void check_value(enum kedge_compact_kind kind, int32_t was, int32_t sent, bool taken, uint64_t step,
                        int32_t limit)
{
    ck_assert_uint_le(size_of(sent), (uint64_t)limit);
    ck_assert(sent == 0 || (sent > 0) == (was > 0));
    uint64_t size = size_of(was) < (uint64_t)limit ? size_of(was) : (uint64_t)limit, got = size_of(sent);
    uint64_t loss = got > size ? got - size : size - got;
    switch (kind) {
    case KEDGE_COMPACT_TOPK:
        ck_assert_uint_eq(got, taken ? size : 0);
        break;
    case KEDGE_COMPACT_TOPK_INT8:
    case KEDGE_COMPACT_INT8:
        ck_assert_uint_eq(got % step, 0);
        ck_assert_uint_le(got, 127 * step);
        if (taken
            && (loss + loss > step || (loss + loss == step && got < size))) { /* to the limit it goes down */
            ck_assert_uint_gt(got + step, (uint64_t)limit);
            ck_assert_uint_lt(loss, step);
        }
        ck_assert(taken || got == 0);
        break;
    case KEDGE_COMPACT_BF16:
        ck_assert_uint_le(loss, got + (size >> 8) > (uint64_t)limit ? size >> 7 : size >> 8);
        break;
    case KEDGE_COMPACT_NONE:
    case KEDGE_COMPACT_KINDS:
        ck_abort();
    }
}

static uint64_t step_of(const int32_t *v, const bool *taken, size_t n, int32_t limit)
{
    uint64_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t size = taken[i] ? size_of(v[i]) : 0;
        size = size < (uint64_t)limit ? size : (uint64_t)limit;
        most = size > most ? size : most;
    }
    return most == 0 ? 1 : (most + 126) / 127;
}

static uint64_t check_kind(const struct kedge_compact *c, struct kedge_rng *rng, size_t n, int32_t limit,
                           uint64_t hash)
{
    static int32_t was[VALUES_MAX], left[VALUES_MAX], sent[VALUES_MAX];
    static bool taken[VALUES_MAX];
    static uint8_t file[FILE_MAX];
    uint64_t entries = 0;
    fill(rng, was, n, (int32_t)(limit < INT32_MAX / 2 ? limit * 2 : INT32_MAX));
    memcpy(left, was, n * sizeof *was);
    size_t len = write_file(c, left, n, limit, file);
    ck_assert_uint_le(len, kedge_compact_len_most(c, n));
    ck_assert_int_eq(read_file(kedge_view_of(file, len), sent, n, &entries), KEDGE_OK);
    ck_assert_uint_le(entries, kedge_compact_entries_most(c, n));
    largest(was, n, kedge_compact_entries_most(c, n), taken);
    for (size_t i = 0; i < n; i++) {
        size_t first = i - i % KEDGE_COMPACT_BLOCK;
        size_t some = n - first < KEDGE_COMPACT_BLOCK ? n - first : KEDGE_COMPACT_BLOCK;
        static uint64_t step;
        step = i == first ? step_of(was + first, taken + first, some, limit) : step;
        ck_assert_int_eq((int64_t)sent[i] + left[i], was[i]);
        check_value(c->kind, was[i], sent[i], taken[i], step, limit);
    }
    return fnv(hash, file, len);
}

START_TEST(what_is_sent_and_what_is_left)
{
    static const int32_t limits[] = {1, 126, 127, 128, 1000, 1 << 20, 67108864, INT32_MAX};
    static const uint64_t golden = UINT64_C(10467644551277284196);
    struct kedge_rng rng = new_stream(1);
    uint64_t hash = FNV_START;
    for (unsigned kind = KEDGE_COMPACT_INT8; kind < KEDGE_COMPACT_KINDS; kind++) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
                const struct kedge_compact c = {(enum kedge_compact_kind)kind, shares[(i + k) % 5], 0};
                hash = check_kind(&c, &rng, counts[i], limits[k], hash);
            }
        }
    }
    ck_assert_uint_eq(hash, golden);
}
END_TEST

/* By hand, from the description. */
START_TEST(golden_bytes)
{
    static const int32_t values[6] = {-300, 0, 5, 254, -1, 127};
    static const struct {
        enum kedge_compact_kind kind;
        const char *hex;
        int32_t sent[6];
    } rows[] = {
        {KEDGE_COMPACT_INT8,
         "6b64677570643101"
         "0600000000000000"
         "03000000"
         "9c0002550"
         "02a",
         {-300, 0, 6, 255, 0, 126}},
        {KEDGE_COMPACT_BF16,
         "6b64677570643102"
         "0600000000000000"
         "96c3"
         "0000"
         "a040"
         "7e43"
         "80bf"
         "fe42",
         {-300, 0, 5, 254, -1, 127}},
        {KEDGE_COMPACT_TOPK,
         "6b64677570643103"
         "0600000000000000"
         "0f00"
         "00d4feffff"
         "02fe000000"
         "017f000000",
         {-300, 0, 0, 254, 0, 127}},
        {KEDGE_COMPACT_TOPK_INT8,
         "6b64677570643104"
         "0600000000000000"
         "0a00"
         "03000000"
         "009c"
         "0255"
         "012a",
         {-300, 0, 0, 255, 0, 126}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const struct kedge_compact c = {rows[r].kind, 500000, 0};
        int32_t left[6], sent[6];
        uint8_t file[FILE_MAX];
        char hex[256] = "";
        uint64_t entries;
        memcpy(left, values, sizeof left);
        size_t len = write_file(&c, left, 6, 254 + 46, file);
        for (size_t i = 0; i < len; i++) {
            snprintf(hex + 2 * i, 3, "%02x", file[i]);
        }
        ck_assert_str_eq(hex, rows[r].hex);
        ck_assert_int_eq(read_file(kedge_view_of(file, len), sent, 6, &entries), KEDGE_OK);
        ck_assert_mem_eq(sent, rows[r].sent, sizeof sent);
    }
}
END_TEST

/* A file of one block with these bytes behind the head. */
static int read_block(enum kedge_compact_kind kind, const uint8_t *bytes, size_t len, size_t n)
{
    static int32_t out[KEDGE_COMPACT_BLOCK];
    uint32_t entries;
    return kedge_compact_block_read(kind, kedge_view_of(bytes, len), n, out, &entries);
}

START_TEST(refuses_what_has_another_form)
{
    static const struct {
        enum kedge_compact_kind kind;
        size_t n, len;
        uint8_t bytes[16];
        int err;
    } rows[] = {
        {KEDGE_COMPACT_INT8, 2, 6, {1, 0, 0, 0, 127, 0x81}, KEDGE_OK},
        {KEDGE_COMPACT_INT8, 2, 6, {1, 0, 0, 0, 127, 0x80}, KEDGE_E_FORMAT}, /* -128 */
        {KEDGE_COMPACT_INT8, 2, 6, {0, 0, 0, 0, 0, 0}, KEDGE_E_FORMAT},      /* no step */
        {KEDGE_COMPACT_INT8, 2, 6, {0, 0, 0, 0x80, 0, 0}, KEDGE_E_FORMAT},   /* 2^31 */
        {KEDGE_COMPACT_INT8, 2, 6, {0xff, 0xff, 0xff, 0x7f, 1, 0xff}, KEDGE_OK},
        {KEDGE_COMPACT_INT8, 2, 6, {0xff, 0xff, 0xff, 0x7f, 2, 0}, KEDGE_E_FORMAT}, /* beyond 31 bits */
        {KEDGE_COMPACT_INT8, 2, 7, {1, 0, 0, 0, 1, 1, 1}, KEDGE_E_FORMAT},
        {KEDGE_COMPACT_BF16, 1, 2, {0x80, 0x3f}, KEDGE_OK},                   /* 1 */
        {KEDGE_COMPACT_BF16, 1, 2, {0x00, 0x3f}, KEDGE_E_FORMAT},             /* 0.5 */
        {KEDGE_COMPACT_BF16, 1, 2, {0xc0, 0x3f}, KEDGE_E_FORMAT},             /* 1.5 */
        {KEDGE_COMPACT_BF16, 1, 2, {0x00, 0x80}, KEDGE_E_FORMAT},             /* -0 */
        {KEDGE_COMPACT_BF16, 1, 2, {0x80, 0x7f}, KEDGE_E_FORMAT},             /* infinity */
        {KEDGE_COMPACT_BF16, 1, 2, {0xc0, 0x7f}, KEDGE_E_FORMAT},             /* not a number */
        {KEDGE_COMPACT_BF16, 1, 2, {0x00, 0x4f}, KEDGE_E_FORMAT},             /* 2^31 */
        {KEDGE_COMPACT_BF16, 1, 2, {0xff, 0xce}, KEDGE_OK},                   /* -255 · 2^23 */
        {KEDGE_COMPACT_TOPK, 3, 2, {0, 0}, KEDGE_OK},                         /* nothing */
        {KEDGE_COMPACT_TOPK, 3, 7, {5, 0, 2, 1, 0, 0, 0}, KEDGE_OK},          /* the last */
        {KEDGE_COMPACT_TOPK, 3, 7, {5, 0, 3, 1, 0, 0, 0}, KEDGE_E_FORMAT},    /* behind the last */
        {KEDGE_COMPACT_TOPK, 3, 7, {5, 0, 1, 0, 0, 0, 0}, KEDGE_E_FORMAT},    /* a zero */
        {KEDGE_COMPACT_TOPK, 3, 7, {5, 0, 1, 0, 0, 0, 0x80}, KEDGE_E_FORMAT}, /* -2^31 */
        {KEDGE_COMPACT_TOPK, 3, 6, {4, 0, 1, 1, 0, 0}, KEDGE_E_FORMAT},       /* a value cut off */
        {KEDGE_COMPACT_TOPK, 3, 7, {4, 0, 1, 1, 0, 0, 0}, KEDGE_E_FORMAT},    /* a wrong length */
        {KEDGE_COMPACT_TOPK,
         3,
         8,
         {6, 0, 0x81, 0, 1, 0, 0, 0},
         KEDGE_E_FORMAT}, /* a gap with a byte too many */
        {KEDGE_COMPACT_TOPK, 4096, 8, {6, 0, 0xff, 0x1f, 1, 0, 0, 0}, KEDGE_OK}, /* 4095 */
        {KEDGE_COMPACT_TOPK, 4096, 8, {6, 0, 0x80, 0x20, 1, 0, 0, 0}, KEDGE_E_FORMAT},
        {KEDGE_COMPACT_TOPK, 4096, 9, {7, 0, 0x80, 0x80, 1, 1, 0, 0, 0}, KEDGE_E_FORMAT},
        {KEDGE_COMPACT_TOPK_INT8, 3, 2, {0, 0}, KEDGE_OK},
        {KEDGE_COMPACT_TOPK_INT8, 3, 6, {4, 0, 1, 0, 0, 0}, KEDGE_E_FORMAT}, /* a step for nothing */
        {KEDGE_COMPACT_TOPK_INT8, 3, 8, {6, 0, 1, 0, 0, 0, 0, 5}, KEDGE_OK},
        {KEDGE_COMPACT_TOPK_INT8, 3, 8, {6, 0, 0, 0, 0, 0, 0, 5}, KEDGE_E_FORMAT},
        {KEDGE_COMPACT_TOPK_INT8, 3, 8, {6, 0, 1, 0, 0, 0, 0, 0x80}, KEDGE_E_FORMAT},
        {KEDGE_COMPACT_TOPK_INT8, 3, 8, {6, 0, 1, 0, 0, 0, 0, 0}, KEDGE_E_FORMAT},
        {KEDGE_COMPACT_TOPK_INT8, 3, 8, {6, 0, 0xff, 0xff, 0xff, 0x7f, 0, 2}, KEDGE_E_FORMAT},
        {KEDGE_COMPACT_TOPK_INT8,
         1,
         10,
         {8, 0, 1, 0, 0, 0, 0, 1, 0, 1},
         KEDGE_E_FORMAT}, /* two in one place */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(read_block(rows[i].kind, rows[i].bytes, rows[i].len, rows[i].n) == rows[i].err,
                      "row %zu", i);
    }
    ck_assert_int_eq(read_block(KEDGE_COMPACT_INT8, rows[0].bytes, 4, 0), KEDGE_E_FORMAT);
    static const uint8_t heads[][KEDGE_COMPACT_HEAD + 1] = {"kdgupd1\0", "kdgupd1\5", "kdgupd2\1",
                                                            "Kdgupd1\1"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        enum kedge_compact_kind kind;
        uint64_t n;
        ck_assert_int_eq(kedge_compact_head_read(heads[i], &kind, &n), KEDGE_E_FORMAT);
    }
}
END_TEST

/* Every bit of a file: what is still taken is another update, of as many values at most. */
START_TEST(every_bit)
{
    enum { N = 300 };
    struct kedge_rng rng = new_stream(2);
    for (unsigned kind = KEDGE_COMPACT_INT8; kind < KEDGE_COMPACT_KINDS; kind++) {
        const struct kedge_compact c = {(enum kedge_compact_kind)kind, 100000, 0};
        int32_t left[N], sent[N], other[N];
        uint8_t file[FILE_MAX];
        uint64_t entries, others = 0, taken = 0;
        fill(&rng, left, N, 1 << 20);
        size_t len = write_file(&c, left, N, 1 << 20, file);
        ck_assert_int_eq(read_file(kedge_view_of(file, len), sent, N, &entries), KEDGE_OK);
        for (size_t bit = 0; bit < 8 * len; bit++) {
            file[bit / 8] = (uint8_t)(file[bit / 8] ^ 1u << bit % 8);
            if (read_file(kedge_view_of(file, len), other, N, &others) == KEDGE_OK) {
                taken++;
                /* a step's bit means nothing where all its codes are 0 */
                ck_assert(memcmp(sent, other, sizeof sent) != 0);
                for (size_t i = 0; i < N; i++) {
                    ck_assert_int_ge(other[i], -INT32_MAX);
                }
            }
            file[bit / 8] = (uint8_t)(file[bit / 8] ^ 1u << bit % 8);
        }
        ck_assert_uint_gt(taken, 0);
        for (size_t cut = 0; cut < len; cut++) {
            ck_assert_int_eq(read_file(kedge_view_of(file, cut), other, N, &others), KEDGE_E_FORMAT);
        }
    }
}
END_TEST

START_TEST(sizes)
{
    struct kedge_compact c = {KEDGE_COMPACT_TOPK, 10000, 0};
    ck_assert_uint_eq(kedge_compact_entries_most(&c, 7850), 79);
    ck_assert_uint_eq(kedge_compact_entries_most(&c, 1), 1);
    ck_assert_uint_eq(kedge_compact_entries_most(&c, UINT64_C(1) << 40), 10995116278);
    c.share = KEDGE_COMPACT_SHARE_ONE;
    ck_assert_uint_eq(kedge_compact_entries_most(&c, 7850), 7850);
    c.kind = KEDGE_COMPACT_INT8;
    ck_assert_uint_eq(kedge_compact_len_most(&c, 7850), 16 + 8 + 7850);
    ck_assert_uint_eq(kedge_compact_entries_most(&c, 7850), 7850);
    ck_assert_str_eq(kedge_compact_name(KEDGE_COMPACT_TOPK_INT8), "topk-int8");
}
END_TEST

START_TEST(what_is_carried_over)
{
    static const int32_t left[] = {100, -100, 7, -7, INT32_MAX, -INT32_MAX, 0};
    int32_t whole[] = {1, 1, 1, 1, 5, -5, -3}, half[] = {1, 1, 1, 1, 5, -5, -3},
            none[] = {1, 1, 1, 1, 5, -5, -3};
    static const int32_t as_whole[] = {101, -99, 8, -6, INT32_MAX, -INT32_MAX, -3};
    static const int32_t as_half[] = {51, -49, 4, -2, 1073741828, -1073741828, -3};
    static const int32_t as_none[] = {1, 1, 1, 1, 5, -5, -3};
    struct kedge_compact c = {KEDGE_COMPACT_INT8, 0, KEDGE_COMPACT_SHARE_ONE};
    kedge_compact_add(&c, left, 7, whole);
    c.carry = KEDGE_COMPACT_SHARE_ONE / 2;
    kedge_compact_add(&c, left, 7, half);
    c.carry = 0;
    kedge_compact_add(&c, left, 7, none);
    ck_assert_mem_eq(whole, as_whole, sizeof whole);
    ck_assert_mem_eq(half, as_half, sizeof half);
    ck_assert_mem_eq(none, as_none, sizeof none);
}
END_TEST

/* Of more values than 32 bits count, nearly all in one bin: the long form, KEDGE_TEST_VALUES=4300210176. One
 * piece of memory stands for all of them, again and again. */
START_TEST(more_values_than_32_bits_count)
{
    enum { PIECE = 1 << 20, EACH = PIECE * (int)sizeof(int32_t), SIZE = 70000 };
    const char *text = getenv("KEDGE_TEST_VALUES");
    const uint64_t pieces = (text ? strtoull(text, NULL, 10) : 4 * PIECE) / PIECE;
    const struct kedge_compact c = {.kind = KEDGE_COMPACT_TOPK, .share = KEDGE_COMPACT_SHARE_ONE / 2};
    struct kedge_compact_plan plan;
    const int fd = memfd_create("values", MFD_CLOEXEC);
    ck_assert(fd >= 0 && ftruncate(fd, EACH) == 0);
    uint8_t *all = mmap(NULL, pieces * EACH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert(all != MAP_FAILED);
    for (uint64_t i = 0; i < pieces; i++) {
        ck_assert(mmap(all + i * EACH, EACH, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0)
                  != MAP_FAILED);
    }
    int32_t *values = (int32_t *)(void *)all;
    for (size_t i = 0; i < PIECE; i++) {
        values[i] = i % 2 ? SIZE : -SIZE;
    }
    ck_assert_int_eq(kedge_compact_plan(&c, values, pieces * PIECE, &plan), KEDGE_OK);
    ck_assert_uint_eq(plan.least, SIZE);
    ck_assert_uint_eq(plan.ties, kedge_compact_entries_most(&c, pieces * PIECE));
    ck_assert_int_eq(munmap(all, pieces * EACH), 0);
    close(fd);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        what_is_sent_and_what_is_left, golden_bytes, refuses_what_has_another_form,  every_bit,
        what_is_carried_over,          sizes,        more_values_than_32_bits_count, NULL};
    return run_tests("aggregation/compact", tests);
}
