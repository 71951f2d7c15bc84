/* Packed pieces: what comes back is what went in, in the bytes that packed.h describes, and nothing else is
 * taken for a packed piece. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/wire/packed.h"
#include "tests/unit/base/check.h"

enum { BLOCK = KEDGE_PACKED_BLOCK, WORDS = BLOCK / 4, GUARD = 64, MARK = 0xa7, WIDTHS = 33 };
enum { LONGEST = 3 * BLOCK + 5, PACKED_MAX = LONGEST + LONGEST / BLOCK + BLOCK };

/* ---- the format, bit by bit, from its description ---- */

static uint32_t word_at(struct kedge_view content, size_t index)
{
    uint32_t word = 0;
    for (size_t i = 0; i < 4; i++) {
        size_t at = 4 * index + i;
        word |= at < content.len ? (uint32_t)content.ptr[at] << 8 * i : 0;
    }
    return word;
}

/* 0, -1, 1, -2 become 0, 1, 2, 3. */
static uint64_t zigzag(uint32_t word)
{
    int64_t v = word < UINT32_C(0x80000000) ? (int64_t)word : (int64_t)word - (INT64_C(1) << 32);
    return v < 0 ? (uint64_t)(-2 * v - 1) : (uint64_t)(2 * v);
}

static unsigned width_of(struct kedge_view content, size_t block)
{
    unsigned width = 0;
    for (size_t i = 0; i < WORDS; i++) {
        while (zigzag(word_at(content, block * WORDS + i)) >> width > 0) {
            width++;
        }
    }
    return width;
}

/* out is of zeros; returns the length. `wider` bits more than are needed, 32 at most. */
static size_t pack_slowly(struct kedge_view content, unsigned wider, uint8_t *out)
{
    size_t sum = 0;
    for (size_t block = 0; block * BLOCK < content.len; block++) {
        unsigned width = width_of(content, block) + wider;
        width = width < 32 ? width : 32;
        out[sum++] = (uint8_t)width;
        for (size_t i = 0; i < WORDS; i++) {
            size_t lane = i % 8, row = i / 8;
            uint64_t v = zigzag(word_at(content, block * WORDS + i));
            for (unsigned k = 0; k < width; k++) {
                size_t bit = row * width + k; /* in its lane's string */
                size_t byte = (bit / 32 * 8 + lane) * 4 + bit % 32 / 8;
                out[sum + byte] = (uint8_t)(out[sum + byte] | (v >> k & 1) << bit % 8);
            }
        }
        sum += 32 * (size_t)width;
    }
    return sum;
}

/* ---- both ways ---- */

static bool is_marked(const uint8_t *bytes, size_t from, size_t to)
{
    uint8_t other = 0;
    for (size_t i = from; i < to; i++) {
        other = (uint8_t)(other | (bytes[i] ^ MARK));
    }
    return other == 0;
}

static void check_unpacks(struct kedge_view packed, struct kedge_view content, size_t room)
{
    static uint8_t back[LONGEST], piece[4 * BLOCK + GUARD];
    struct kedge_unpacker u;
    size_t at = 0;
    ck_assert_int_eq(kedge_unpack_begin(&u, packed, content.len), KEDGE_OK);
    for (;;) {
        memset(piece, MARK, sizeof piece);
        size_t n = kedge_unpack(&u, piece, room);
        ck_assert_uint_le(n, room);
        ck_assert(is_marked(piece, n, sizeof piece));
        if (n == 0) {
            break;
        }
        ck_assert_uint_le(n, content.len - at);
        ck_assert(n == content.len - at || n == room / BLOCK * BLOCK); /* as many blocks as fit */
        memcpy(back + at, piece, n);
        at += n;
    }
    ck_assert_uint_eq(at, content.len);
    ck_assert(kedge_view_eq(kedge_view_of(back, at), content));
}

static void check(struct kedge_view content)
{
    static const size_t rooms[] = {BLOCK, BLOCK + 1, 2 * BLOCK - 1, 2 * BLOCK + 7, 4 * BLOCK};
    static uint8_t packed[PACKED_MAX + GUARD], expected[PACKED_MAX];
    memset(packed, MARK, sizeof packed);
    memset(expected, 0, sizeof expected);
    size_t len = kedge_packed_len(content);
    ck_assert_uint_le(len, content.len + content.len / BLOCK + BLOCK);
    ck_assert_uint_eq(kedge_pack(content, packed, len), len);
    ck_assert_uint_eq(pack_slowly(content, 0, expected), len);
    ck_assert(memcmp(packed, expected, len) == 0);
    ck_assert(is_marked(packed, len, sizeof packed));
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        check_unpacks(kedge_view_of(packed, len), content, rooms[i]);
    }
}

/* Numbers of at most that many bits when zigzag-coded; each block has one that needs them all. */
static void fill(struct kedge_rng *rng, uint8_t *out, size_t len, unsigned width)
{
    for (size_t i = 0; 4 * i < len; i++) {
        uint32_t v = width > 0 ? (uint32_t)(kedge_rng_u64(rng) >> (64 - width)) : 0;
        v |= width > 0 && i % WORDS == 0 ? UINT32_C(1) << (width - 1) : 0;
        v = v >> 1 ^ (v & 1 ? UINT32_MAX : 0);
        for (size_t k = 0; k < 4 && 4 * i + k < len; k++) {
            out[4 * i + k] = (uint8_t)(v >> 8 * k);
        }
    }
}

START_TEST(test_widths)
{
    static const size_t lens[] = {0,    1,    2,    3,    4,    5,    31,       32,           33,     500,
                                  1020, 1021, 1023, 1024, 1025, 1028, 2 * 1024, 2 * 1024 + 1, LONGEST};
    static uint8_t content[LONGEST];
    struct kedge_rng rng;
    kedge_rng_init(&rng, 1, KEDGE_RNG_TEST, 0, 0);
    for (unsigned width = 0; width < WIDTHS; width++) {
        for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
            fill(&rng, content, lens[i], width);
            check(kedge_view_of(content, lens[i]));
        }
        ck_assert_uint_eq(kedge_packed_len(kedge_view_of(content, BLOCK)), 1 + 32 * (size_t)width);
    }
}
END_TEST

START_TEST(test_lengths)
{
    static uint8_t content[LONGEST];
    struct kedge_rng rng;
    kedge_rng_init(&rng, 2, KEDGE_RNG_TEST, 0, 0);
    for (size_t len = 0; len <= LONGEST; len += len % BLOCK < 8 || len % BLOCK > BLOCK - 8 ? 1 : 113) {
        for (size_t at = 0; at < len; at += BLOCK) { /* a width for each block */
            size_t left = len - at < BLOCK ? len - at : BLOCK;
            fill(&rng, content + at, left, (unsigned)kedge_rng_below(&rng, WIDTHS));
        }
        check(kedge_view_of(content, len));
    }
}
END_TEST

START_TEST(test_extremes)
{
    static const uint32_t words[] = {0, 1, UINT32_MAX, INT32_MAX, UINT32_C(0x80000000), UINT32_C(0x80000001)};
    static uint8_t content[2 * BLOCK];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        for (size_t at = 0; at < WORDS + 2; at += at < 9 ? 1 : 13) { /* alone, at many places */
            memset(content, 0, sizeof content);
            for (size_t k = 0; k < 4; k++) {
                content[4 * at + k] = (uint8_t)(words[i] >> 8 * k);
            }
            check(kedge_view_of(content, sizeof content));
        }
        for (size_t k = 0; k < sizeof content; k++) { /* everywhere */
            content[k] = (uint8_t)(words[i] >> 8 * (k % 4));
        }
        check(kedge_view_of(content, sizeof content));
    }
}
END_TEST

/* Words 1, -1, -2, then zeros, word 8 being 1 and word 255 being -2: two bits each. Lane 0 has 2 (word 0) in
 * bits 0 and 1 and 2 (word 8) in bits 2 and 3, so 1010; lane 1 has 1, lane 2 has 3; lane 7's last number is
 * in the highest bits of its second word. */
START_TEST(test_golden)
{
    static uint8_t content[BLOCK] = {
        1,    0,    0,    0,           0xff,          0xff,          0xff,          0xff,         0xfe,
        0xff, 0xff, 0xff, [4 * 8] = 1, [1020] = 0xfe, [1021] = 0xff, [1022] = 0xff, [1023] = 0xff};
    static const uint8_t expected[65] = {2, [1 + 0] = 0x0a, [1 + 4] = 0x01, [1 + 8] = 0x03,
                                         [1 + 32 + 28 + 3] = 0xc0};
    uint8_t packed[BLOCK + 1];
    ck_assert_uint_eq(kedge_pack(kedge_view_of(content, sizeof content), packed, sizeof packed),
                      sizeof expected);
    ck_assert_mem_eq(packed, expected, sizeof expected);
    check_unpacks(kedge_view_of(expected, sizeof expected), kedge_view_of(content, sizeof content), BLOCK);
}
END_TEST

/* The bound is reached by one word behind whole blocks, all of the widest. */
START_TEST(test_bound)
{
    static uint8_t content[2 * BLOCK + 4];
    memset(content, 0x7f, sizeof content);
    ck_assert_uint_eq(kedge_packed_len(kedge_view_of(content, 0)), 0);
    ck_assert_uint_eq(kedge_packed_len(kedge_view_of(content, BLOCK)), BLOCK + 1);
    ck_assert_uint_eq(kedge_packed_len(kedge_view_of(content, sizeof content)), 3 * (BLOCK + 1));
    ck_assert_uint_le(3 * (BLOCK + 1), sizeof content + sizeof content / BLOCK + BLOCK);
}
END_TEST

/* A room too small by one byte gets the blocks in front, and nothing behind it is touched. */
START_TEST(test_small_rooms)
{
    static uint8_t content[2 * BLOCK], packed[3 * BLOCK];
    struct kedge_rng rng;
    kedge_rng_init(&rng, 3, KEDGE_RNG_TEST, 0, 0);
    fill(&rng, content, sizeof content, 5);
    struct kedge_view all = kedge_view_of(content, sizeof content);
    const size_t one = 1 + 32 * 5;
    static const struct {
        size_t room, blocks;
    } cases[] = {{0, 0}, {1, 0}, {one - 1, 0}, {one, 1}, {one + 1, 1}, {2 * one - 1, 1}, {2 * one, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(packed, MARK, sizeof packed);
        ck_assert_uint_eq(kedge_pack(all, packed, cases[i].room), cases[i].blocks * one);
        ck_assert(is_marked(packed, cases[i].blocks * one, sizeof packed));
    }
}
END_TEST

/* ---- what is taken and what is not ---- */

/* Wider than need be, and with ones where the last block was filled up: another form of the same content. */
START_TEST(test_other_forms)
{
    static uint8_t content[BLOCK + 40], packed[PACKED_MAX];
    struct kedge_rng rng;
    kedge_rng_init(&rng, 4, KEDGE_RNG_TEST, 0, 0);
    for (unsigned wider = 0; wider < WIDTHS; wider++) {
        fill(&rng, content, sizeof content, 7);
        memset(packed, 0, sizeof packed);
        size_t len = pack_slowly(kedge_view_of(content, sizeof content), wider, packed);
        packed[len - 1] = 0xff; /* word 255's */
        check_unpacks(kedge_view_of(packed, len), kedge_view_of(content, sizeof content), BLOCK);
    }
}
END_TEST

static void refuse(const uint8_t *bytes, size_t packed_len, size_t len)
{
    struct kedge_unpacker u = {.left = 77};
    uint8_t *exact = malloc(packed_len + 1); /* a read beyond it is a read beyond the block */
    if (packed_len > 0) {
        memcpy(exact, bytes, packed_len);
    }
    exact = realloc(exact, packed_len > 0 ? packed_len : 1);
    ck_assert_int_eq(kedge_unpack_begin(&u, kedge_view_of(exact, packed_len), len), KEDGE_E_FORMAT);
    ck_assert_uint_eq(u.left, 77);
    free(exact);
}

START_TEST(test_refusals)
{
    static uint8_t bytes[3 * BLOCK];
    struct kedge_unpacker u;
    for (unsigned width = WIDTHS; width < 256; width++) { /* as many bytes as it would be */
        memset(bytes, 0, sizeof bytes);
        bytes[0] = (uint8_t)width;
        refuse(bytes, 1, BLOCK);
        refuse(bytes, 1 + 32 * (size_t)(width < 64 ? width : 64), BLOCK);
    }
    for (unsigned width = 0; width < WIDTHS; width++) {
        size_t one = 1 + 32 * (size_t)width;
        memset(bytes, 0, sizeof bytes);
        bytes[0] = bytes[one] = (uint8_t)width;
        for (size_t len = 0; len < 2 * one; len += len % one < 2 ? 1 : 31) { /* a block is short */
            refuse(bytes, len, BLOCK + 1);
        }
        refuse(bytes, one, 0);
        refuse(bytes, one + 1, BLOCK);
        refuse(bytes, 2 * one, BLOCK);
        refuse(bytes, 2 * one, 2 * BLOCK + 1);
        refuse(bytes, 2 * one + 1, 2 * BLOCK);
        ck_assert_int_eq(kedge_unpack_begin(&u, kedge_view_of(bytes, 2 * one), BLOCK + 1), KEDGE_OK);
        bytes[one] = WIDTHS;
        refuse(bytes, 2 * one, 2 * BLOCK);
    }
    refuse(NULL, 0, 1);
    refuse(bytes, 1, 0);
    refuse(bytes, 1, SIZE_MAX); /* ends with the bytes, not with the blocks */
}
END_TEST

START_TEST(test_nothing)
{
    struct kedge_unpacker u;
    uint8_t out[BLOCK] = {MARK};
    ck_assert_int_eq(kedge_unpack_begin(&u, kedge_view_of(NULL, 0), 0), KEDGE_OK);
    ck_assert_uint_eq(kedge_unpack(&u, out, sizeof out), 0);
    ck_assert_uint_eq(kedge_unpack(&u, out, sizeof out), 0);
    ck_assert_uint_eq(kedge_pack(kedge_view_of(NULL, 0), out, 0), 0);
    ck_assert_uint_eq(out[0], MARK);
}
END_TEST

/* ---- differences ---- */

/* What is new since then, byte by byte from its description: in words the borrow goes on, in the tail not. */
static void since_slowly(const uint8_t *now, const uint8_t *before, size_t len, uint8_t *out)
{
    int borrow = 0;
    for (size_t i = 0; i < len; i++) {
        borrow = i % 4 == 0 || i >= len / 4 * 4 ? 0 : borrow;
        int v = now[i] - before[i] - borrow;
        borrow = v < 0;
        out[i] = (uint8_t)(v + (borrow ? 256 : 0));
    }
}

/* Copies of exact size: a read or write beyond them is one beyond the block. */
static void check_since(const uint8_t *now, const uint8_t *before, size_t len)
{
    uint8_t *a = malloc(len + 1), *b = malloc(len + 1), *out = malloc(len + 1), *expected = malloc(len + 1);
    memcpy(a, now, len);
    memcpy(b, before, len);
    a[len] = b[len] = out[len] = MARK;
    kedge_words_since(a, b, len, out);
    since_slowly(a, b, len, expected);
    ck_assert(memcmp(out, expected, len) == 0);
    ck_assert(memcmp(a, now, len) == 0 && memcmp(b, before, len) == 0);
    kedge_words_add(out, b, len);
    ck_assert(memcmp(out, now, len) == 0 && memcmp(b, before, len) == 0);
    ck_assert(a[len] == MARK && b[len] == MARK && out[len] == MARK);
    kedge_words_since(a, a, len, out); /* nothing is new */
    for (size_t i = 0; i < len; i++) {
        ck_assert_uint_eq(out[i], 0);
    }
    free(a);
    free(b);
    free(out);
    free(expected);
}

START_TEST(test_since)
{
    static const size_t large[] = {BLOCK, BLOCK + 1, 2 * BLOCK + 2, 2 * BLOCK + 3, LONGEST};
    static uint8_t now[LONGEST], before[LONGEST];
    struct kedge_rng rng;
    kedge_rng_init(&rng, 5, KEDGE_RNG_TEST, 0, 0);
    for (size_t i = 0; i < LONGEST; i++) {
        now[i] = (uint8_t)kedge_rng_below(&rng, 256);
        before[i] = (uint8_t)kedge_rng_below(&rng, 256);
    }
    for (size_t len = 0; len <= 40; len++) {
        check_since(now + len, before + 2 * len, len);
    }
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        check_since(now, before, large[i]);
    }
}
END_TEST

START_TEST(test_since_wraps)
{
    static const struct {
        uint8_t now[7], before[7], out[7]; /* a word and a tail of three bytes */
    } cases[] = {
        {{0, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 0, 1, 0, 0}, {0xff, 0xff, 0xff, 0xff, 0xff, 0, 0}},
        {{0, 1, 0, 0, 0, 1, 0}, {1, 0, 0, 0, 1, 0, 0}, {0xff, 0, 0, 0, 0xff, 1, 0}},
        {{0, 0, 0, 0x80, 0, 0, 0x80}, {0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0x7f}, {1, 0, 0, 0, 1, 1, 1}},
        {{0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0x80, 0, 0, 0x80}, {0, 0, 0, 0x80, 0, 0, 0x80}},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
         {0, 0, 0, 0x80, 0, 0, 0x80},
         {0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0x7f}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t out[7];
        kedge_words_since(cases[i].now, cases[i].before, sizeof out, out);
        ck_assert_mem_eq(out, cases[i].out, sizeof out);
        check_since(cases[i].now, cases[i].before, sizeof out);
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {test_widths,  test_lengths,     test_extremes,    test_golden,
                            test_bound,   test_small_rooms, test_other_forms, test_refusals,
                            test_nothing, test_since,       test_since_wraps};
    return run_suite("packed", tests, sizeof tests / sizeof tests[0]);
}
