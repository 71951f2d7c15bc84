/* Content in its short form: it comes back byte for byte, a small job's update takes half the room, and no
 * flipped bit, no missing or further byte and no lie about a length passes. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/store/blob/short_form.h"

enum { MOST = KEDGEI_SHORT_CONTENT_MAX };
static uint8_t content[MOST + 1], file[MOST + 1], back[MOST + 1];

static uint32_t noise(void)
{
    static uint32_t x = 1;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x;
}

/* As an update or a model looks. */
static struct kedge_view tensors(const char *dtype, size_t count, unsigned bits)
{
    int n = snprintf((char *)content + 8, 120,
                     "{\"0.weight\":{\"dtype\":\"%s\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", dtype,
                     count, 4 * count);
    size_t header = ((size_t)n + 7) / 8 * 8, at = 8 + header;
    memset(content, 0, 8);
    memset(content + 8 + n, ' ', header - (size_t)n);
    content[0] = (uint8_t)header;
    for (size_t i = 0; i < count; i++, at += 4) {
        uint32_t v = noise() >> (32 - bits);
        v = noise() & 1 ? 0U - v : v;
        memcpy(content + at, &v, 4);
    }
    return kedge_view_of(content, at);
}

/* Its file; its length is told. */
static size_t comes_back(struct kedge_view what)
{
    size_t len = 0, said = 0;
    ck_assert(kedgei_short_file(what, file, &len));
    ck_assert_uint_le(len + KEDGEI_SHORT_GAIN_MIN, what.len);
    ck_assert(kedgei_short_is(kedge_view_of(file, len)));
    ck_assert_int_eq(kedgei_short_length(kedge_view_of(file, len), &said), KEDGE_OK);
    ck_assert_uint_eq(said, what.len);
    ck_assert_int_eq(kedgei_short_open(kedge_view_of(file, len), back, said), KEDGE_OK);
    ck_assert(memcmp(back, what.ptr, what.len) == 0);
    return len;
}

START_TEST(content_comes_back)
{
    size_t len = comes_back(tensors("I32", 650, 14));
    ck_assert_msg(len < 650 * 2 + 150, "an update of 650 values of 15 bits took %zu bytes", len);
    for (unsigned bits = 1; bits <= 28; bits += 3) {
        comes_back(tensors("I32", 1000, bits));
        comes_back(tensors("F32", 1000, bits));
        comes_back(tensors("I64", 1000, bits)); /* of no kind that is spread */
    }
    comes_back(tensors("I32", 4000, 8));
    memset(content, 'x', MOST);
    comes_back(kedge_view_of(content, MOST));
    content[0] = 0xFF; /* a header that would be longer than all */
    comes_back(kedge_view_of(content, 500));
}
END_TEST

START_TEST(what_would_not_be_shorter_stays)
{
    size_t len;
    for (size_t i = 0; i < MOST; i++) {
        content[i] = (uint8_t)noise();
    }
    ck_assert(!kedgei_short_file(kedge_view_of(content, MOST), file, &len));
    memset(content, 0, sizeof content);
    ck_assert(!kedgei_short_file(kedge_view_of(content, MOST + 1), file, &len));
    ck_assert(!kedgei_short_file(kedge_view_of(content, KEDGEI_SHORT_GAIN_MIN), file, &len));
    ck_assert(!kedgei_short_file(kedge_view_of(NULL, 0), file, &len));
}
END_TEST

/* The file's content, if it has one. */
static int open_file(size_t len)
{
    size_t said;
    int err = kedgei_short_length(kedge_view_of(file, len), &said);
    return err ? err : kedgei_short_open(kedge_view_of(file, len), back, said);
}

START_TEST(every_flipped_bit_is_found)
{
    size_t len = comes_back(tensors("I32", 100, 12));
    for (size_t bit = 0; bit < 8 * len; bit++) {
        file[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        ck_assert_msg(!kedgei_short_is(kedge_view_of(file, len)) || open_file(len) == KEDGE_E_CORRUPT,
                      "bit %zu", bit);
        file[bit / 8] ^= (uint8_t)(1U << (bit % 8));
    }
    for (size_t cut = 0; cut < len; cut++) {
        ck_assert_int_eq(open_file(cut), KEDGE_E_CORRUPT);
    }
    ck_assert_int_eq(kedgei_short_open(kedge_view_of(file, len), back, 7), KEDGE_E_CORRUPT);
}
END_TEST

/* Under a right checksum or tag, too: a stream has exactly one length, and nothing behind it. */
START_TEST(a_stream_says_no_more_and_no_less_than_its_content)
{
    static uint8_t stream[MOST];
    struct kedge_view what = tensors("I32", 300, 10);
    size_t len;
    enum kedgei_short_how how = kedgei_shorten(what, stream, sizeof stream - 1, &len);
    ck_assert_int_eq(how, KEDGEI_SHORT_INTEGERS);
    ck_assert_int_eq(kedgei_lengthen(how, kedge_view_of(stream, len), back, what.len), KEDGE_OK);
    ck_assert_int_eq(kedgei_lengthen(how, kedge_view_of(stream, len), back, what.len - 4), KEDGE_E_CORRUPT);
    ck_assert_int_eq(kedgei_lengthen(how, kedge_view_of(stream, len), back, what.len + 4), KEDGE_E_CORRUPT);
    ck_assert_int_eq(kedgei_lengthen(how, kedge_view_of(stream, len - 1), back, what.len), KEDGE_E_CORRUPT);
    ck_assert_int_eq(kedgei_lengthen(how, kedge_view_of(stream, len + 1), back, what.len), KEDGE_E_CORRUPT);
    ck_assert_int_eq(kedgei_lengthen(how, kedge_view_of(stream, 0), back, what.len), KEDGE_E_CORRUPT);
    ck_assert_int_eq(kedgei_lengthen(KEDGEI_SHORT_NOT, kedge_view_of(stream, len), back, what.len),
                     KEDGE_E_CORRUPT);
    ck_assert_int_eq(kedgei_lengthen(how, kedge_view_of(stream, len), back, MOST + 1), KEDGE_E_CORRUPT);
    memset(content, 0, MOST); /* a bomb: 16 kB of one byte, where a hundred are announced */
    how = kedgei_shorten(kedge_view_of(content, MOST), stream, sizeof stream, &len);
    ck_assert_int_eq(how, KEDGEI_SHORT_BYTES);
    ck_assert_int_eq(kedgei_lengthen(how, kedge_view_of(stream, len), back, 100), KEDGE_E_CORRUPT);
    memset(content, 0xFF, 200); /* no tensors, though the kind says so */
    how = kedgei_shorten(kedge_view_of(content, 200), stream, sizeof stream, &len);
    ck_assert_int_eq(how, KEDGEI_SHORT_BYTES);
    ck_assert_int_eq(kedgei_lengthen(KEDGEI_SHORT_REALS, kedge_view_of(stream, len), back, 200),
                     KEDGE_E_CORRUPT);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("short form");
    TCase *tc = tcase_create("short form");
    tcase_add_test(tc, content_comes_back);
    tcase_add_test(tc, what_would_not_be_shorter_stays);
    tcase_add_test(tc, every_flipped_bit_is_found);
    tcase_add_test(tc, a_stream_says_no_more_and_no_less_than_its_content);
    suite_add_tcase(s, tc);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
