/* Views, buffers with a maximum, sticky failure, readers, and allocation failure at every point. */
#include "common/base/bytes.h"

#include <stdint.h>
#include <string.h>

#include "common/base/mem.h"
#include "tests/unit/base/check.h"

START_TEST(views)
{
    ck_assert(kedge_view_eq(kedge_view_of(NULL, 0), kedge_view_str("")));
    ck_assert(kedge_view_eq(kedge_view_str("abc"), kedge_view_of("abcd", 3)));
    ck_assert(!kedge_view_eq(kedge_view_str("abc"), kedge_view_str("abd")));
    ck_assert(!kedge_view_eq(kedge_view_str("abc"), kedge_view_str("abcd")));
}
END_TEST

START_TEST(integers_are_big_endian)
{
    static const uint8_t expected[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
                                       0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f};
    struct kedge_buf b;
    kedge_buf_init(&b, sizeof expected);
    kedge_buf_put_u8(&b, 0x01);
    kedge_buf_put_u16(&b, 0x0203);
    kedge_buf_put_u32(&b, 0x04050607);
    kedge_buf_put_u64(&b, 0x08090a0b0c0d0e0f);
    ck_assert_int_eq(b.err, KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&b), kedge_view_of(expected, sizeof expected)));

    struct kedge_reader r = kedge_reader_of(kedge_buf_view(&b));
    ck_assert_uint_eq(kedge_read_u8(&r), 0x01);
    ck_assert_uint_eq(kedge_read_u16(&r), 0x0203);
    ck_assert_int_eq(kedge_reader_end(&r), KEDGE_E_FORMAT); /* something is left over */
    ck_assert_uint_eq(kedge_read_u32(&r), 0x04050607);
    ck_assert(kedge_read_u64(&r) == 0x08090a0b0c0d0e0f);
    ck_assert_int_eq(kedge_reader_end(&r), KEDGE_OK);
    kedge_buf_deinit(&b);

    uint8_t be[8];
    kedge_store_be64(be, 0xfedcba9876543210);
    ck_assert_uint_eq(be[0], 0xfe);
    ck_assert_uint_eq(be[7], 0x10);
    ck_assert(kedge_load_be64(be) == 0xfedcba9876543210);
}
END_TEST

START_TEST(reader_fails_once_and_for_good)
{
    static const uint8_t bytes[7] = {1, 2, 3, 4, 5, 6, 7};
    struct kedge_reader r = kedge_reader_of(kedge_view_of(bytes, sizeof bytes));
    ck_assert(kedge_read_u64(&r) == 0);
    ck_assert(r.failed);
    ck_assert_uint_eq(kedge_read_u8(&r), 0); /* although seven bytes are left */
    ck_assert_uint_eq(kedge_read_bytes(&r, 0).len, 0);
    ck_assert_int_eq(kedge_reader_end(&r), KEDGE_E_FORMAT);

    r = kedge_reader_of(kedge_view_of(bytes, sizeof bytes));
    ck_assert_ptr_null(kedge_read_bytes(&r, SIZE_MAX).ptr);
    ck_assert(r.failed);

    r = kedge_reader_of(kedge_view_of(NULL, 0));
    ck_assert_uint_eq(kedge_read_bytes(&r, 0).len, 0);
    ck_assert_int_eq(kedge_reader_end(&r), KEDGE_OK);
    ck_assert_uint_eq(kedge_read_u8(&r), 0);
    ck_assert_int_eq(kedge_reader_end(&r), KEDGE_E_FORMAT);
}
END_TEST

START_TEST(limit_is_exact_and_sticky)
{
    for (size_t max = 0; max < 200; max++) {
        struct kedge_buf b;
        kedge_buf_init(&b, max);
        for (size_t i = 0; i < max; i++) {
            kedge_buf_put_u8(&b, (uint8_t)i);
        }
        ck_assert_int_eq(b.err, KEDGE_OK);
        ck_assert_uint_eq(b.len, max);
        kedge_buf_put(&b, "", 0);
        kedge_buf_put_str(&b, "");
        ck_assert_int_eq(b.err, KEDGE_OK);
        kedge_buf_put_u8(&b, 0xff);
        ck_assert_int_eq(b.err, KEDGE_E_TOO_LONG);
        ck_assert_uint_eq(b.len, max);
        for (size_t i = 0; i < max; i++) {
            ck_assert_uint_eq(b.ptr[i], i);
        }
        kedge_buf_clear(&b);
        ck_assert_int_eq(b.err, KEDGE_OK);
        ck_assert_uint_eq(b.len, 0);
        kedge_buf_deinit(&b);
        ck_assert_uint_eq(b.max, max);
    }
}
END_TEST

START_TEST(failure_sticks)
{
    struct kedge_buf b;
    kedge_buf_init(&b, 4);
    kedge_buf_put_str(&b, "abc");
    kedge_buf_put_str(&b, "de"); /* does not fit */
    kedge_buf_put_str(&b, "f");  /* would fit, but the chain is broken */
    ck_assert_int_eq(b.err, KEDGE_E_TOO_LONG);
    ck_assert(kedge_view_eq(kedge_buf_view(&b), kedge_view_str("abc")));
    ck_assert_int_eq(kedge_buf_reserve(&b, 0), KEDGE_E_TOO_LONG);
    kedge_buf_deinit(&b);

    kedge_buf_init(&b, SIZE_MAX);
    kedge_buf_put_str(&b, "abc");
    ck_assert_int_eq(kedge_buf_reserve(&b, SIZE_MAX), KEDGE_E_TOO_LONG); /* len + more wraps */
    kedge_buf_clear(&b);
    ck_assert_int_eq(kedge_buf_reserve(&b, SIZE_MAX), KEDGE_E_NOMEM);
    ck_assert_uint_lt(b.cap, SIZE_MAX);
    kedge_buf_deinit(&b);
}
END_TEST

START_TEST(printf_appends_up_to_the_limit)
{
    struct kedge_buf b;
    kedge_buf_init(&b, 10);
    kedge_buf_printf(&b, "%s-%d", "ab", 12);
    kedge_buf_printf(&b, "%s", "");
    kedge_buf_printf(&b, "%05d", 7); /* fills it to the last byte */
    ck_assert_int_eq(b.err, KEDGE_OK);
    ck_assert(kedge_view_eq(kedge_buf_view(&b), kedge_view_str("ab-1200007")));
    kedge_buf_printf(&b, "%c", 'x');
    ck_assert_int_eq(b.err, KEDGE_E_TOO_LONG);
    ck_assert_uint_eq(b.len, 10);
    kedge_buf_deinit(&b);

    kedge_buf_init(&b, 0);
    kedge_buf_printf(&b, "%s", "");
    ck_assert_int_eq(b.err, KEDGE_OK);
    kedge_buf_deinit(&b);
}
END_TEST

/* Fills b with 600 bytes by every kind of put; returns its error. */
static int fill(struct kedge_buf *b)
{
    for (int i = 0; i < 20; i++) {
        kedge_buf_put(b, "0123456789", 10);
        kedge_buf_put_u64(b, 0x6162636465666768);
        kedge_buf_printf(b, "%012d", i);
    }
    return b->err;
}

START_TEST(nth_allocation_fails)
{
    struct kedge_buf whole;
    kedge_buf_init(&whole, 4096);
    ck_assert_int_eq(fill(&whole), KEDGE_OK);
    ck_assert_uint_eq(whole.len, 600);
    long n = 1;
    for (bool clean = false; !clean; n++) {
        ck_assert_int_lt(n, 100);
        struct kedge_buf b;
        kedge_buf_init(&b, 4096);
        kedge_mem_fail_at(n);
        int err = fill(&b);
        kedge_mem_fail_at(0);
        clean = err == KEDGE_OK;
        ck_assert(clean || err == KEDGE_E_NOMEM);
        ck_assert_uint_le(b.len, whole.len);
        ck_assert(b.len == 0 || memcmp(b.ptr, whole.ptr, b.len) == 0); /* a prefix, nothing torn */
        kedge_buf_clear(&b);
        ck_assert_int_eq(fill(&b), KEDGE_OK); /* usable again */
        kedge_buf_deinit(&b);
    }
    ck_assert_int_gt(n, 4); /* the loop did meet failures */
    kedge_buf_deinit(&whole);
}
END_TEST

START_TEST(mem_overflow_and_zero)
{
    ck_assert_ptr_null(kedge_mem_new(SIZE_MAX / 2, 3));
    ck_assert_ptr_null(kedge_mem_resize(NULL, SIZE_MAX / 2, 3));
    void *zero = kedge_mem_new(0, 0);
    ck_assert_ptr_nonnull(zero);
    zero = kedge_mem_resize(zero, 0, 8); /* never frees */
    ck_assert_ptr_nonnull(zero);
    kedge_mem_free(zero);
    kedge_mem_free(NULL);
    ck_assert_ptr_null(kedge_mem_new_lines(SIZE_MAX / 2, 3));
    ck_assert_ptr_null(kedge_mem_new_lines(SIZE_MAX, 1));
    for (size_t n = 0; n < 200; n += 33) {
        unsigned char *lines = kedge_mem_new_lines(n, 1);
        ck_assert_ptr_nonnull(lines);
        ck_assert_uint_eq((uintptr_t)lines % 64, 0);
        for (size_t i = 0; i < n; i++) {
            ck_assert_uint_eq(lines[i], 0);
            lines[i] = 1; /* so that the next one is not zero by chance */
        }
        kedge_mem_free(lines);
    }
    kedge_mem_fail_at(1);
    ck_assert_ptr_null(kedge_mem_new_lines(8, 1));
    kedge_mem_fail_at(0);

    uint8_t *bytes = kedge_mem_new(1000, 1);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < 1000; i++) {
        ck_assert_uint_eq(bytes[i], 0);
    }
    bytes[999] = 7;
    kedge_mem_fail_at(1);
    ck_assert_ptr_null(kedge_mem_resize(bytes, 2000, 1));
    ck_assert_uint_eq(bytes[999], 7);
    kedge_mem_free(bytes);

    kedge_mem_fail_at(2);
    char *copy = kedge_mem_strdup("first");
    ck_assert_str_eq(copy, "first");
    ck_assert_ptr_null(kedge_mem_strdup("second"));
    char *third = kedge_mem_strdup("third"); /* the switch is spent */
    ck_assert_str_eq(third, "third");
    kedge_mem_free(copy);
    kedge_mem_free(third);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {views,
                                  integers_are_big_endian,
                                  reader_fails_once_and_for_good,
                                  limit_is_exact_and_sticky,
                                  failure_sticks,
                                  printf_appends_up_to_the_limit,
                                  nth_allocation_fails,
                                  mem_overflow_and_zero};
    return run_suite("base/bytes", tests, sizeof tests / sizeof tests[0]);
}
