/* RLP: the published encodings, what a strict reader refuses, and all short inputs. */
#include <check.h>
#include <string.h>

#include "chain/anchor/rlp.h"
#include "common/base/text.h"
#include "tests/unit/chain/vectors.h"

enum { DEPTH_MAX = 16 };

/* One item whose lists are items down to DEPTH_MAX lists within one another. */
static bool is_whole(struct kedge_view bytes)
{
    struct kedge_view open[DEPTH_MAX + 1] = {bytes}; /* what is left at each depth */
    size_t depth = 0;
    struct kedge_rlp_item item;
    if (kedge_rlp_decode(bytes, &item) != KEDGE_OK) {
        return false;
    }
    while (depth > 0 || open[0].len > 0) { /* each turn takes at least one byte, or leaves a level */
        if (open[depth].len == 0) {
            depth--;
            continue;
        }
        if (kedge_rlp_take(&open[depth], &item) != KEDGE_OK || (item.is_list && depth == DEPTH_MAX)) {
            return false;
        }
        if (item.is_list) {
            open[++depth] = item.body;
        }
    }
    return true;
}

/* Writes again what the reader sees, level by level, without recursion: the bytes must come out as they were.
 */
static bool survives(struct kedge_view bytes)
{
    struct kedge_rlp_item item, inner;
    struct kedge_buf out KEDGE_CLEANUP(kedge_buf_deinit), items KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&out, VECTOR_MAX);
    kedge_buf_init(&items, VECTOR_MAX);
    ck_assert_int_eq(kedge_rlp_decode(bytes, &item), KEDGE_OK);
    if (!item.is_list) {
        kedge_rlp_put_string(&out, item.body);
    } else {
        struct kedge_view rest = item.body;
        while (rest.len > 0) {
            ck_assert_int_eq(kedge_rlp_take(&rest, &inner), KEDGE_OK);
            if (inner.is_list) {
                kedge_rlp_put_list(&items, inner.body);
            } else {
                kedge_rlp_put_string(&items, inner.body);
            }
        }
        kedge_rlp_put_list(&out, kedge_buf_view(&items));
    }
    return out.err == KEDGE_OK && kedge_view_eq(kedge_buf_view(&out), bytes);
}

START_TEST(published_encodings_are_read_and_written_again)
{
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
    size_t rows = 0;
    kedge_buf_init(&bytes, VECTOR_MAX);
    if (!vectors_present()) {
        return;
    }
    struct vector_table t = vector_table_open("evm/rlp.tsv");
    for (; vector_table_next(&t); rows++) {
        kedge_buf_clear(&bytes);
        vector_hex(t.columns[1], &bytes);
        ck_assert(is_whole(kedge_buf_view(&bytes)));
        ck_assert_msg(survives(kedge_buf_view(&bytes)), "row %zu", rows);
    }
    ck_assert_uint_gt(rows, 15);
    vector_table_close(&t);
}
END_TEST

START_TEST(other_spellings_are_refused)
{
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
    size_t rows = 0;
    kedge_buf_init(&bytes, VECTOR_MAX);
    if (!vectors_present()) {
        return;
    }
    struct vector_table t = vector_table_open("evm/rlp_invalid.tsv");
    for (; vector_table_next(&t); rows++) {
        kedge_buf_clear(&bytes);
        vector_hex(t.columns[0], &bytes);
        struct kedge_view v = kedge_buf_view(&bytes), rest = v;
        uint64_t number;
        bool integer = vector_is(t.columns[0], "820001"); /* a string, but no integer */
        ck_assert(is_whole(v) == integer);
        ck_assert_int_eq(kedge_rlp_take_u64(&rest, &number) == KEDGE_OK && rest.len == 0, false);
    }
    ck_assert_uint_gt(rows, 8);
    vector_table_close(&t);
}
END_TEST

static const struct {
    uint64_t v;
    const char *rlp;
} numbers[] = {
    {0, "80"},
    {1, "01"},
    {127, "7f"},
    {128, "8180"},
    {1024, "820400"},
    {0xffffffff, "84ffffffff"},
    {1U << 24, "8401000000"},
    {UINT64_MAX, "88ffffffffffffffff"},
};

START_TEST(numbers_have_one_spelling)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
        char hex[32];
        uint64_t v = 1;
        kedge_buf_init(&b, 64);
        kedge_rlp_put_u64(&b, numbers[i].v);
        kedge_hex_encode(b.ptr, b.len, hex);
        ck_assert_str_eq(hex, numbers[i].rlp);
        struct kedge_view rest = kedge_buf_view(&b);
        ck_assert_int_eq(kedge_rlp_take_u64(&rest, &v), KEDGE_OK);
        ck_assert_uint_eq(v, numbers[i].v);
        ck_assert_uint_eq(rest.len, 0);
    }
    static const uint8_t nine[] = {0x89, 1, 0, 0, 0, 0, 0, 0, 0, 0};
    struct kedge_view rest = kedge_view_of(nine, sizeof nine);
    uint64_t v = 7;
    ck_assert_int_eq(kedge_rlp_take_u64(&rest, &v), KEDGE_E_FORMAT);
    ck_assert_uint_eq(v, 7);
    ck_assert_uint_eq(rest.len, sizeof nine);
}
END_TEST

START_TEST(every_input_of_three_bytes_has_one_spelling_or_none)
{
    for (uint32_t n = 0; n < 1U << 24; n += n < 1U << 17 ? 1 : 257) {
        uint8_t bytes[3] = {(uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
        for (size_t len = 0; len <= 3; len++) {
            struct kedge_view v = kedge_view_of(bytes, len);
            if (is_whole(v)) {
                ck_assert_msg(survives(v), "%02x%02x%02x, %zu", bytes[0], bytes[1], bytes[2], len);
            }
        }
    }
}
END_TEST

START_TEST(a_length_beyond_the_bytes_is_refused)
{
    static const uint8_t huge[] = {0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00};
    struct kedge_rlp_item item;
    ck_assert_int_eq(kedge_rlp_decode(kedge_view_of(huge, sizeof huge), &item), KEDGE_E_FORMAT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rlp");
    TCase *tc = tcase_create("rlp");
    tcase_add_test(tc, published_encodings_are_read_and_written_again);
    tcase_add_test(tc, other_spellings_are_refused);
    tcase_add_test(tc, numbers_have_one_spelling);
    tcase_add_test(tc, every_input_of_three_bytes_has_one_spelling_or_none);
    tcase_add_test(tc, a_length_beyond_the_bytes_is_refused);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
