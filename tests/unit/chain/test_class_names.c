/* Sets of names of classes: what is one, their union, what one includes. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "chain/statement/statement.h"
#include "common/base/mem.h"
#include "common/tensor/class_names.h"
#include "tests/unit/chain/samples.h"

static void put(char names[KEDGE_CLASS_NAMES_ROOM], const char *text, size_t len)
{
    memset(names, 0, KEDGE_CLASS_NAMES_ROOM);
    memcpy(names, text, len);
}
#define PUT(names, text) put(names, text, sizeof(text))

START_TEST(test_union)
{
    char all[KEDGE_CLASS_NAMES_ROOM] = "", empty[KEDGE_CLASS_NAMES_ROOM] = "";
    PUT(all, "b\0d\0");
    ck_assert_int_eq(kedge_class_names_unite(all, "10\0"
                                                  "2\0"
                                                  "a\0b\0\xc3\xa9\0"),
                     KEDGE_OK);
    ck_assert_mem_eq(all,
                     "10\0"
                     "2\0"
                     "a\0b\0d\0\xc3\xa9\0",
                     15); /* by bytes, each once */
    ck_assert_uint_eq(kedge_class_names_count(all), 6);
    ck_assert_uint_eq(kedge_class_names_len(all), 14);
    ck_assert_ptr_null(kedge_class_names_expected(all));
    ck_assert(kedge_class_names_include(all, "2\0d\0") && kedge_class_names_include(all, empty));
    ck_assert(!kedge_class_names_include(all, "2\0c\0") && !kedge_class_names_include("2\0", all));
    ck_assert(kedge_class_names_count(empty) == 0 && !kedge_class_names_expected(empty));
}
END_TEST

/* One site after another, until there is no room: the set stays what it was. */
START_TEST(test_full)
{
    char all[KEDGE_CLASS_NAMES_ROOM] = "", before[KEDGE_CLASS_NAMES_ROOM], one[KEDGE_CLASS_NAMES_ROOM];
    for (int i = 0; i < 32; i++) { /* 32 names of 127 bytes and a NUL are 4096 */
        memset(one, 0, sizeof one);
        memset(one, 'a' + i % 26, 127);
        one[126] = (char)('0' + i / 26);
        ck_assert_int_eq(kedge_class_names_unite(all, one), KEDGE_OK);
    }
    ck_assert_uint_eq(kedge_class_names_len(all), KEDGE_CLASS_NAMES_BYTES_MAX);
    ck_assert_ptr_null(kedge_class_names_expected(all));
    memcpy(before, all, sizeof all);
    ck_assert_int_eq(kedge_class_names_unite(all, one), KEDGE_OK); /* it is there */
    ck_assert_int_eq(kedge_class_names_unite(all, "z\0"), KEDGE_E_TOO_LONG);
    ck_assert_mem_eq(all, before, sizeof all);
}
END_TEST

START_TEST(test_expected)
{
    static const struct {
        const char *text;
        size_t len;
        const char *named;
    } wrong[] = {{"b\0a\0", 5, "ascending"},
                 {"a\0a\0", 5, "ascending"},
                 {"a\x1b[31m\0", 7, "control"},
                 {"a\n\0", 4, "control"},
                 {"\xff\0", 3, "UTF-8"},
                 /* NOLINTNEXTLINE(misc-misleading-bidirectional): that it is refused is tested */
                 {"\xe2\x80\xae"
                  "a\0",
                  6, "nobody"},
                 {"a\xc2\x85\0", 5, "control"}};
    char names[KEDGE_CLASS_NAMES_ROOM], ret[KEDGE_CLASS_NAMES_ROOM] = "kept";
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        put(names, wrong[i].text, wrong[i].len);
        const char *expected = kedge_class_names_expected(names);
        ck_assert_msg(expected && strstr(expected, wrong[i].named), "%zu: %s", i,
                      expected ? expected : "taken");
        struct kedge_view packed = kedge_view_of(wrong[i].text, wrong[i].len);
        ck_assert_int_eq(kedge_class_names_read(packed, ret), KEDGE_E_FORMAT);
    }
    memset(names, 'x', sizeof names); /* no end */
    ck_assert_ptr_nonnull(kedge_class_names_expected(names));
    memset(names + 128, 0, sizeof names - 128);
    ck_assert_ptr_nonnull(kedge_class_names_expected(names)); /* 128 bytes are one too many */
    names[127] = '\0';
    ck_assert_ptr_null(kedge_class_names_expected(names));
    ck_assert_int_eq(kedge_class_names_read(kedge_view_of("a\0b", 3), ret), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_class_names_read(kedge_view_of("a\0\0b\0", 5), ret), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_class_names_read(kedge_view_of("\0", 1), ret), KEDGE_E_FORMAT);
    ck_assert_str_eq(ret, "kept");
    ck_assert_int_eq(kedge_class_names_read(kedge_view_of("a\0b\0", 4), ret), KEDGE_OK);
    ck_assert_mem_eq(ret, "a\0b\0", 5);
    ck_assert_int_eq(kedge_class_names_read(kedge_view_of(NULL, 0), ret), KEDGE_OK);
    ck_assert_str_eq(ret, "");
}
END_TEST

/* ---- in statements ---- */

static struct kedge_statement st, out;

static int read_with(const char *classes)
{
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit), text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_ENTRY_MAX);
    kedge_buf_init(&text, KEDGE_ENTRY_MAX);
    memset(st.u.update.classes, 0, sizeof st.u.update.classes);
    ck_assert_int_eq(kedge_statement_encode(&st, &b, NULL), KEDGE_OK);
    kedge_buf_put(&text, b.ptr, b.len - 2);
    kedge_buf_put_str(&text, ",\"classes\":");
    kedge_buf_put_str(&text, classes);
    kedge_buf_put_str(&text, "}}");
    return kedge_statement_decode(kedge_buf_view(&text), &out, NULL);
}

START_TEST(test_statement)
{
    struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&b, KEDGE_ENTRY_MAX);
    sample_statement(KEDGE_ST_UPDATE, &st);
    memcpy(st.u.update.classes, "a \"b\"\0c\0", 9);
    ck_assert_int_eq(kedge_statement_encode(&st, &b, NULL), KEDGE_OK);
    kedge_buf_put_u8(&b, 0);
    ck_assert_ptr_nonnull(strstr((const char *)b.ptr, ",\"classes\":[\"a \\\"b\\\"\",\"c\"]}}"));
    b.len--;
    ck_assert_int_eq(kedge_statement_decode(kedge_buf_view(&b), &out, NULL), KEDGE_OK);
    ck_assert_mem_eq(out.u.update.classes, st.u.update.classes, sizeof out.u.update.classes);
    ck_assert(kedge_statement_says_same(&st, &out));
    memcpy(st.u.update.classes, "c\0a\0", 5); /* not ascending */
    ck_assert_int_eq(kedge_statement_encode(&st, &b, NULL), KEDGE_E_ARG);
    ck_assert_int_eq(read_with("[\"a\",\"b\"]"), KEDGE_OK);
    ck_assert_mem_eq(out.u.update.classes, "a\0b\0", 5);
}
END_TEST

static const char *const hostile[] = {
    "[]",         "[\"\"]",        "[\"b\",\"a\"]", "[\"a\",\"a\"]", "[\"a\\u0000b\"]",
    "[\"a\\n\"]", "[\"\\u202e\"]", "[\"a\",1]",     "\"a\"",         "{\"a\":1}",
    "null",       "[[\"a\"]]",     "[\"\\ud800\"]"};

START_TEST(test_hostile)
{
    sample_statement(KEDGE_ST_UPDATE, &st);
    ck_assert_msg(read_with(hostile[_i]) != KEDGE_OK, "%s is taken", hostile[_i]);
}
END_TEST

/* Names without end: as many as an entry has room for, and one that is too long. */
START_TEST(test_hostile_many)
{
    static char many[16384];
    size_t used = 0;
    sample_statement(KEDGE_ST_UPDATE, &st);
    for (int i = 0; i < 700; i++) {
        used += (size_t)snprintf(many + used, sizeof many - used, "%s\"n%04d\"", i ? "," : "[", i);
    }
    snprintf(many + used, sizeof many - used, "]");
    ck_assert_int_eq(read_with(many), KEDGE_E_FORMAT); /* 700 · 6 bytes */
    many[682 * 8] = ']';
    many[682 * 8 + 1] = '\0';
    ck_assert_int_eq(read_with(many), KEDGE_OK); /* 682 · 6 = 4092 */
    memset(many, 'a', 200);
    memcpy(many, "[\"", 2);
    memcpy(many + 130, "\"]", 3); /* 128 */
    ck_assert_int_eq(read_with(many), KEDGE_E_FORMAT);
    memcpy(many + 129, "\"]", 3);
    ck_assert_int_eq(read_with(many), KEDGE_OK);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("chain class names");
    TCase *t = tcase_create("names");
    tcase_add_test(t, test_union);
    tcase_add_test(t, test_full);
    tcase_add_test(t, test_expected);
    tcase_add_test(t, test_statement);
    tcase_add_loop_test(t, test_hostile, 0, sizeof hostile / sizeof hostile[0]);
    tcase_add_test(t, test_hostile_many);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
