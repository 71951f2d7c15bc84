/* Input lists: golden bytes, one encoding, order, bounds, allocation failures. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/statement/input_list.h"
#include "common/base/mem.h"
#include "tests/unit/chain/samples.h"
#include "tests/unit/chain/vectors.h"

#define ONES "1111111111111111111111111111111111111111111111111111111111111111"
#define TWOS "2222222222222222222222222222222222222222222222222222222222222222"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

static const char golden[] =
    "{\"site\":\"north-1\",\"use\":\"aggregated\",\"group\":0,\"leaf\":12,\"leaf_hash\":\"" ONES
    "\",\"update\":\"" TWOS "\",\"weight\":\"123\",\"reason\":\"\"}\n"
    "{\"site\":\"north-1\",\"use\":\"refused\",\"group\":1,\"leaf\":13,\"leaf_hash\":\"" ONES
    "\",\"update\":\"" TWOS "\",\"weight\":\"0\",\"reason\":\"WRONG_GROUP\"}\n"
    "{\"site\":\"north-2\",\"use\":\"candidate\",\"group\":15,\"leaf\":9007199254740992,\"leaf_hash\":\"" ONES
    "\",\"update\":\"" ZEROS "\",\"weight\":\"4611686018427387904\",\"reason\":\"\"}\n";

static size_t sample_rows(struct kedge_input_row rows[3])
{
    rows[0] = (struct kedge_input_row){.site = sample_id("north-1"),
                                       .use = KEDGE_USE_AGGREGATED,
                                       .leaf = 12,
                                       .leaf_hash = sample_hash(0x11),
                                       .update = sample_hash(0x22),
                                       .weight = 123};
    rows[1] = (struct kedge_input_row){.site = sample_id("north-1"),
                                       .use = KEDGE_USE_REFUSED,
                                       .group = 1,
                                       .leaf = 13,
                                       .leaf_hash = sample_hash(0x11),
                                       .update = sample_hash(0x22),
                                       .reason = "WRONG_GROUP"};
    rows[2] = (struct kedge_input_row){.site = sample_id("north-2"),
                                       .use = KEDGE_USE_CANDIDATE,
                                       .group = 15,
                                       .leaf = (uint64_t)1 << 53,
                                       .leaf_hash = sample_hash(0x11),
                                       .weight = (uint64_t)1 << 62};
    return 3;
}

START_TEST(golden_bytes_both_ways)
{
    struct kedge_input_row rows[3];
    size_t count = sample_rows(rows);
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_INPUT_LIST_MAX);
    ck_assert_int_eq(kedge_input_list_encode(rows, count, &b), KEDGE_OK);
    ck_assert(vector_is(kedge_buf_view(&b), golden));
    struct kedge_input_list list KEDGE_CLEANUP(kedge_input_list_deinit) = {0};
    ck_assert_int_eq(kedge_input_list_decode(kedge_buf_view(&b), &list), KEDGE_OK);
    ck_assert_uint_eq(list.count, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(kedge_input_row_cmp(&list.rows[i], &rows[i]), 0);
        ck_assert(kedge_hash_eq(&list.rows[i].update, &rows[i].update)
                  && list.rows[i].weight == rows[i].weight);
        ck_assert_str_eq(list.rows[i].reason, rows[i].reason);
    }
}
END_TEST

/* Rows about the task of an earlier round name it, and no other row says a round. */
START_TEST(rounds_of_tasks)
{
    static const char text[] =
        "{\"site\":\"north-1\",\"use\":\"working\",\"group\":0,\"leaf\":0,\"leaf_hash\":\"" ZEROS
        "\",\"update\":\"" ZEROS "\",\"weight\":\"0\",\"reason\":\"\",\"round\":7}\n"
        "{\"site\":\"north-2\",\"use\":\"away\",\"group\":0,\"leaf\":0,\"leaf_hash\":\"" ZEROS
        "\",\"update\":\"" ZEROS "\",\"weight\":\"0\",\"reason\":\"\",\"round\":1000000}\n";
    static const struct {
        const char *from, *to;
    } wrong[] = {{",\"round\":7}", ",\"round\":0}"},       {",\"round\":7}", ",\"round\":07}"},
                 {",\"round\":7}", ",\"round\":1000001}"}, {",\"round\":7}", ",\"round\":7"},
                 {",\"round\":7}", ",\"round\":}"},        {",\"round\":7}", ",\"round\":7} "},
                 {",\"round\":7}", ",\"round\":\"7\"}"},   {"working", "works"}};
    struct kedge_input_row rows[2] = {
        {.site = sample_id("north-1"), .use = KEDGE_USE_WORKING, .round = 7},
        {.site = sample_id("north-2"), .use = KEDGE_USE_AWAY, .round = KEDGE_ROUNDS_MAX}};
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_INPUT_LIST_MAX);
    ck_assert_int_eq(kedge_input_list_encode(rows, 2, &b), KEDGE_OK);
    ck_assert(vector_is(kedge_buf_view(&b), text));
    struct kedge_input_list list = {0};
    ck_assert_int_eq(kedge_input_list_decode(kedge_buf_view(&b), &list), KEDGE_OK);
    ck_assert(list.rows[0].round == 7 && list.rows[1].round == KEDGE_ROUNDS_MAX);
    ck_assert(list.rows[0].use == KEDGE_USE_WORKING && list.rows[1].use == KEDGE_USE_AWAY);
    kedge_input_list_deinit(&list);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char bad[sizeof text + 16];
        const char *at = strstr(text, wrong[i].from);
        ck_assert_ptr_nonnull(at);
        snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - text), text, wrong[i].to,
                 at + strlen(wrong[i].from));
        ck_assert_int_eq(kedge_input_list_decode(kedge_view_str(bad), &list), KEDGE_E_FORMAT);
    }
    rows[1].round = KEDGE_ROUNDS_MAX + 1;
    ck_assert_int_eq(kedge_input_list_encode(rows, 2, &b), KEDGE_E_ARG);
}
END_TEST

/* Where a close cuts a group, who goes with the part that gets a number of its own. */
START_TEST(parts_of_groups)
{
    static const char text[] =
        "{\"site\":\"north-1\",\"use\":\"aggregated\",\"group\":2,\"leaf\":0,\"leaf_hash\":\"" ZEROS
        "\",\"update\":\"" ZEROS "\",\"weight\":\"0\",\"reason\":\"\",\"to\":63}\n"
        "{\"site\":\"north-2\",\"use\":\"aggregated\",\"group\":2,\"leaf\":0,\"leaf_hash\":\"" ZEROS
        "\",\"update\":\"" ZEROS "\",\"weight\":\"0\",\"reason\":\"\",\"round\":3,\"to\":1}\n";
    static const char *const wrong[] = {"\"to\":0}",          "\"to\":64}",
                                        "\"to\":01}",         "\"to\":}",
                                        "\"to\":1,\"to\":1}", "\"to\":1,\"round\":3}",
                                        "\"to\":\"1\"}",      "\"to\":1"};
    struct kedge_input_row rows[2] = {
        {.site = sample_id("north-1"), .use = KEDGE_USE_AGGREGATED, .group = 2, .to = 63},
        {.site = sample_id("north-2"), .use = KEDGE_USE_AGGREGATED, .group = 2, .round = 3, .to = 1}};
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_INPUT_LIST_MAX);
    ck_assert_int_eq(kedge_input_list_encode(rows, 2, &b), KEDGE_OK);
    ck_assert(vector_is(kedge_buf_view(&b), text));
    struct kedge_input_list list = {0};
    ck_assert_int_eq(kedge_input_list_decode(kedge_buf_view(&b), &list), KEDGE_OK);
    ck_assert(list.rows[0].to == 63 && list.rows[1].to == 1 && list.rows[1].round == 3);
    kedge_input_list_deinit(&list);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char bad[sizeof text + 32];
        const char *at = strstr(text, "\"to\":63}");
        ck_assert_ptr_nonnull(at);
        snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - text), text, wrong[i], at + strlen("\"to\":63}"));
        ck_assert_int_eq(kedge_input_list_decode(kedge_view_str(bad), &list), KEDGE_E_FORMAT);
    }
    rows[1].to = KEDGE_GROUPS_MAX;
    ck_assert_int_eq(kedge_input_list_encode(rows, 2, &b), KEDGE_E_ARG);
}
END_TEST

START_TEST(an_empty_list_is_an_empty_blob)
{
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, 64);
    ck_assert_int_eq(kedge_input_list_encode(NULL, 0, &b), KEDGE_OK);
    ck_assert_uint_eq(b.len, 0);
    struct kedge_input_list list = {0};
    ck_assert_int_eq(kedge_input_list_decode(kedge_view_of(NULL, 0), &list), KEDGE_OK);
    ck_assert_uint_eq(list.count, 0);
    kedge_input_list_deinit(&list);
}
END_TEST

/* Whatever bit of the blob changes, either it is refused or it decodes to what encodes to just these bytes.
 */
START_TEST(accepting_means_one_encoding)
{
    char copy[sizeof golden];
    size_t accepted = 0;
    for (size_t i = 0; i + 1 < sizeof golden; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            memcpy(copy, golden, sizeof golden);
            copy[i] = (char)(copy[i] ^ (char)(1u << bit));
            struct kedge_input_list list = {0};
            struct kedge_view blob = kedge_view_of(copy, sizeof golden - 1);
            if (kedge_input_list_decode(blob, &list) != KEDGE_OK) {
                continue;
            }
            struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
            kedge_buf_init(&b, KEDGE_INPUT_LIST_MAX);
            ck_assert_int_eq(kedge_input_list_encode(list.rows, list.count, &b), KEDGE_OK);
            ck_assert(kedge_view_eq(kedge_buf_view(&b), blob));
            kedge_input_list_deinit(&list);
            accepted++;
        }
        struct kedge_input_list list = {0};
        int err = kedge_input_list_decode(kedge_view_of(golden, i), &list);
        ck_assert((err == KEDGE_OK) == (i == 0 || golden[i - 1] == '\n'));
        kedge_input_list_deinit(&list);
    }
    ck_assert_uint_gt(accepted, 100); /* digits of hashes do change into others */
}
END_TEST

static void assert_refused(const char *from, const char *to)
{
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, 4096);
    const char *p = strstr(golden, from);
    ck_assert_ptr_nonnull(p);
    kedge_buf_put(&b, golden, (size_t)(p - golden));
    kedge_buf_put_str(&b, to);
    kedge_buf_put_str(&b, p + strlen(from));
    struct kedge_input_list list = {.count = 77};
    ck_assert_msg(kedge_input_list_decode(kedge_buf_view(&b), &list) == KEDGE_E_FORMAT, "%s -> %s", from, to);
    ck_assert_uint_eq(list.count, 77);
}

START_TEST(reading_is_strict)
{
    static const char *const cases[][2] = {
        {"north-1", "North-1"},
        {"north-1", ""},
        {"north-1", "north-3"},
        {"\"aggregated\"", "\"used\""},
        {"\"refused\"", "\"selected\""},
        {"\"group\":0", "\"group\":64"},
        {"\"group\":0", "\"group\":00"},
        {"\"group\":0", "\"group\":\"0\""},
        {"\"leaf\":12", "\"leaf\":-12"},
        {"\"leaf\":12", "\"leaf\":012"},
        {"\"leaf\":12", "\"leaf\": 12"},
        {"\"leaf\":12", "\"leaf\":9007199254740993"},
        {"\"weight\":\"123\"", "\"weight\":123"},
        {"\"weight\":\"123\"", "\"weight\":\"4611686018427387905\""},
        {"WRONG_GROUP", "WRONG\\u0020GROUP"},
        {"WRONG_GROUP", "\xc3\xa4"},
        {"WRONG_GROUP", "a\tb"},
        {"WRONG_GROUP", "0123456789012345678901234567890123456789012345678901234567890123x"},
        {"\"}\n", "\"}\r\n"},
        {"\"}\n", "\" }\n"},
        {"\"}\n", "\",\"more\":1}\n"},
        {"\"}\n", "\"}\n\n"},
        {"\"site\"", " \"site\""},
        {"\"use\"", "\"Use\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_refused(cases[i][0], cases[i][1]);
    }
}
END_TEST

START_TEST(writing_demands_order_and_range)
{
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, 4096);
    struct kedge_input_row rows[3], swap;
    size_t count = sample_rows(rows);
    swap = rows[0];
    rows[0] = rows[2];
    rows[2] = swap;
    ck_assert_int_eq(kedge_input_list_encode(rows, count, &b), KEDGE_E_ARG);
    kedge_input_rows_sort(rows, count);
    ck_assert_int_eq(kedge_input_list_encode(rows, count, &b), KEDGE_OK);
    ck_assert(vector_is(kedge_buf_view(&b), golden));
    kedge_buf_clear(&b);
    rows[1] = rows[0];
    ck_assert_int_eq(kedge_input_list_encode(rows, count, &b), KEDGE_E_ARG); /* twice */
    sample_rows(rows);
    rows[0].reason[0] = '"';
    ck_assert_int_eq(kedge_input_list_encode(rows, count, &b), KEDGE_E_ARG);
    sample_rows(rows);
    memset(rows[0].reason, 'x', sizeof rows[0].reason);
    ck_assert_int_eq(kedge_input_list_encode(rows, count, &b), KEDGE_E_ARG);
    sample_rows(rows);
    rows[0].group = KEDGE_GROUPS_MAX;
    ck_assert_int_eq(kedge_input_list_encode(rows, count, &b), KEDGE_E_ARG);
    sample_rows(rows);
    rows[0].use = (enum kedge_input_use)9;
    ck_assert_int_eq(kedge_input_list_encode(rows, count, &b), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_input_list_encode(rows, KEDGE_INPUT_ROWS_MAX + 1, &b), KEDGE_E_ARG);
    ck_assert_uint_eq(b.len, 0);
}
END_TEST

START_TEST(the_largest_list_and_one_row_more)
{
    struct kedge_input_row *rows = kedge_mem_new(KEDGE_INPUT_ROWS_MAX, sizeof *rows);
    ck_assert_ptr_nonnull(rows);
    for (uint32_t i = 0; i < KEDGE_INPUT_ROWS_MAX; i++) {
        memset(rows[i].site.s, 'z', KEDGE_ID_MAX);
        rows[i].use = KEDGE_USE_AGGREGATED;
        rows[i].group = KEDGE_GROUPS_MAX - 1;
        rows[i].leaf = ((uint64_t)1 << 53) - KEDGE_INPUT_ROWS_MAX + i;
        rows[i].weight = (uint64_t)1 << 62;
        memset(rows[i].reason, 'r', KEDGE_INPUT_REASON_MAX);
    }
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, 2 * KEDGE_INPUT_LIST_MAX);
    ck_assert_int_eq(kedge_input_list_encode(rows, KEDGE_INPUT_ROWS_MAX, &b), KEDGE_OK);
    ck_assert_uint_le(b.len, KEDGE_INPUT_LIST_MAX);
    struct kedge_input_list list = {0};
    ck_assert_int_eq(kedge_input_list_decode(kedge_buf_view(&b), &list), KEDGE_OK);
    ck_assert_uint_eq(list.count, KEDGE_INPUT_ROWS_MAX);
    kedge_input_list_deinit(&list);
    kedge_buf_put_str(&b, "\n");
    ck_assert_int_eq(kedge_input_list_decode(kedge_buf_view(&b), &list), KEDGE_E_TOO_LONG);
    kedge_mem_free(rows);
}
END_TEST

/* Every site trains, pre-trains because its data have shifted, and says what it found of a trial. */
START_TEST(all_that_all_sites_have_in_a_round)
{
    const enum kedge_input_use uses[] = {KEDGE_USE_AGGREGATED, KEDGE_USE_GROUPED, KEDGE_USE_EVALUATED};
    struct kedge_input_row *rows = kedge_mem_new((size_t)3 * KEDGE_SITES_MAX, sizeof *rows);
    ck_assert_ptr_nonnull(rows);
    for (uint32_t i = 0; i < 3 * KEDGE_SITES_MAX; i++) {
        snprintf(rows[i].site.s, sizeof rows[i].site.s, "s%04u", i / 3);
        rows[i].use = uses[i % 3];
        rows[i].leaf = i + 1;
    }
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_INPUT_LIST_MAX);
    ck_assert_int_eq(kedge_input_list_encode(rows, 3 * KEDGE_SITES_MAX, &b), KEDGE_OK);
    kedge_mem_free(rows);
}
END_TEST

START_TEST(any_allocation_may_fail)
{
    struct kedge_input_list list = {.count = 77};
    kedge_mem_fail_at(1);
    ck_assert_int_eq(kedge_input_list_decode(kedge_view_str(golden), &list), KEDGE_E_NOMEM);
    kedge_mem_fail_at(0);
    ck_assert_uint_eq(list.count, 77);
    struct kedge_input_row rows[3];
    size_t count = sample_rows(rows);
    int err = KEDGE_E_NOMEM;
    for (long n = 1; err && n < 100; n++) {
        struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&b, 4096);
        kedge_mem_fail_at(n);
        err = kedge_input_list_encode(rows, count, &b);
        kedge_mem_fail_at(0);
        ck_assert(err == KEDGE_OK || (err == KEDGE_E_NOMEM && b.len == 0));
    }
    ck_assert_int_eq(err, KEDGE_OK);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("input_list");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, golden_bytes_both_ways);
    tcase_add_test(tc, rounds_of_tasks);
    tcase_add_test(tc, parts_of_groups);
    tcase_add_test(tc, an_empty_list_is_an_empty_blob);
    tcase_add_test(tc, accepting_means_one_encoding);
    tcase_add_test(tc, reading_is_strict);
    tcase_add_test(tc, writing_demands_order_and_range);
    tcase_add_test(tc, the_largest_list_and_one_row_more);
    tcase_add_test(tc, all_that_all_sites_have_in_a_round);
    tcase_add_test(tc, any_allocation_may_fail);
    Suite *s = suite_create("chain/input_list");
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
