#include "common/tensor/json.h"
#include "tests/unit/tensor/suite.h"

static struct kedge_json_token tokens[4096];

static int parse(const char *text, struct kedge_json *doc, struct kedge_diag *diag)
{
    return kedge_json_parse(kedge_view_str(text), tokens, 4096, doc, diag);
}

static const char *const good[] = {
    "null",
    "true",
    " false ",
    "0",
    "-0",
    "-12.5e+3",
    "1E9",
    "\"\"",
    "\"a\\u00e9\\n\\/\"",
    "\"\\ud83d\\ude00\"",
    "[]",
    "[1,[2,[3]],{}]",
    "{}",
    "{\"a\":1,\"b\":{\"a\":[]}}",
    "\t{\n\"x\" : [ true , null ] }\r\n",
    "\"\xc3\xa9\"",
    "{\"ab\":1,\"ba\":2}",
    "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
};

START_TEST(valid_texts_parse)
{
    struct kedge_json doc;
    struct kedge_diag diag = {0};
    ck_assert_msg(parse(good[_i], &doc, &diag) == KEDGE_OK, "%s: %s", good[_i], diag.text);
    ck_assert_uint_eq(doc.tokens[0].next, doc.count);
}
END_TEST

static const struct {
    const char *text, *says;
} bad[] = {
    {"", "ends at byte 0"},
    {" ", "ends at byte 1"},
    {"nul", "expected a value"},
    {"tru e", "expected a value"},
    {"01", "expected the end"},
    {"-", "expected a digit"},
    {"1.", "a digit after the point"},
    {".5", "expected a value"},
    {"+1", "expected a value"},
    {"1e", "a digit in the exponent"},
    {"NaN", "expected a value"},
    {"\"a", "expected the rest of a string"},
    {"\"\n\"", "expected the rest of a string"},
    {"\"\\x\"", "a valid escape"},
    {"\"\\u12g4\"", "a valid escape"},
    {"\"\\ud800\"", "a valid escape"},
    {"\"\\udc00\"", "a valid escape"},
    {"\"\\ud800\\u0041\"", "a valid escape"},
    {"\"\xff\"", "UTF-8"},
    {"\"\xed\xa0\x80\"", "UTF-8"},
    {"[1,]", "expected a value"},
    {"[1 2]", "',' or ']'"},
    {"[1}", "',' or ']'"},
    {"{\"a\":1,}", "expected a string"},
    {"{\"a\" 1}", "':' after the key"},
    {"{a:1}", "expected a string"},
    {"{\"a\":1]", "',' or '}'"},
    {"{1:2}", "expected a string"},
    {"{\"a\":1,\"a\":2}", "\"a\" appears twice"},
    {"{\"b\":[{\"x\":1}],\"c\":{},\"b\":2}", "\"b\" appears twice"},
    {"{\"a\\u0062\":1}", "escapes are not allowed in keys"},
    {"{} {}", "expected the end"},
    {"1 x", "expected the end"},
    {"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "deeper"},
    {"/* */ 1", "expected a value"},
};

START_TEST(invalid_texts_are_refused_with_a_reason)
{
    struct kedge_json doc;
    struct kedge_diag diag = {0};
    ck_assert_msg(parse(bad[_i].text, &doc, &diag) < 0, "accepted: %s", bad[_i].text);
    ASSERT_SAYS(diag, bad[_i].says);
}
END_TEST

START_TEST(every_truncation_is_refused)
{
    static const char text[] = "{\"a\":[1,-2.5e3,\"x\\u0041\\n\",true,null],\"b\":{\"c\":\"\"}}";
    struct kedge_json doc;
    ck_assert_int_eq(parse(text, &doc, NULL), KEDGE_OK);
    for (size_t len = 0; len < sizeof text - 1; len++) {
        ck_assert_int_lt(kedge_json_parse(kedge_view_of(text, len), tokens, 4096, &doc, NULL), 0);
    }
}
END_TEST

START_TEST(tokens_are_bounded)
{
    struct kedge_json doc;
    struct kedge_diag diag;
    ck_assert_int_eq(kedge_json_parse(kedge_view_str("[1,2]"), tokens, 3, &doc, &diag), KEDGE_OK);
    ck_assert_int_eq(kedge_json_parse(kedge_view_str("[1,2]"), tokens, 2, &doc, &diag), KEDGE_E_TOO_LONG);
    ck_assert_int_eq(kedge_json_parse(kedge_view_str("{}"), tokens, 0, &doc, &diag), KEDGE_E_TOO_LONG);
}
END_TEST

START_TEST(members_are_bounded)
{
    struct kedge_buf text;
    struct kedge_json doc;
    static struct kedge_json_token many[2 * KEDGE_JSON_MEMBERS_MAX + 8];
    kedge_buf_init(&text, 1 << 20);
    for (int i = 0; i <= KEDGE_JSON_MEMBERS_MAX; i++) {
        kedge_buf_printf(&text, "%s\"k%d\":0", i ? "," : "{", i);
    }
    kedge_buf_put_str(&text, "}");
    ck_assert_int_eq(
        kedge_json_parse(kedge_buf_view(&text), many, 2 * KEDGE_JSON_MEMBERS_MAX + 8, &doc, NULL),
        KEDGE_E_TOO_LONG);
    kedge_buf_deinit(&text);
}
END_TEST

START_TEST(members_are_found_and_typed)
{
    struct kedge_json doc;
    struct kedge_diag diag;
    char s[8];
    uint64_t u = 0;
    double d = 0;
    bool b = false;
    ck_assert_int_eq(parse("{\"s\":\"a\\u00e9\\ud83d\\ude00\",\"n\":42,\"t\":true,\"r\":\"-1.5e-3\","
                           "\"u\":\"18446744073709551615\",\"neg\":-1,\"o\":{\"n\":7}}",
                           &doc, &diag),
                     KEDGE_OK);
    ck_assert_int_eq(kedge_json_get_string(&doc, 0, "s", s, sizeof s, &diag), KEDGE_OK);
    ck_assert_str_eq(s, "a\xc3\xa9\xf0\x9f\x98\x80");
    ck_assert_int_eq(kedge_json_get_string(&doc, 0, "s", s, 7, &diag), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_json_get_u64(&doc, 0, "n", 0, 42, &u, &diag), KEDGE_OK);
    ck_assert_uint_eq(u, 42);
    ck_assert_int_eq(kedge_json_get_u64(&doc, 0, "n", 0, 41, &u, &diag), KEDGE_E_FORMAT);
    ASSERT_SAYS(diag, "\"n\": expected a whole number from 0 to 41, found 42");
    ck_assert_int_eq(kedge_json_get_u64(&doc, 0, "n", 43, 50, &u, &diag), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_json_get_u64(&doc, 0, "neg", 0, 50, &u, &diag), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_json_get_u64(&doc, 0, "none", 0, 50, &u, &diag), KEDGE_E_NOT_FOUND);
    ASSERT_SAYS(diag, "\"none\" is missing");
    ck_assert_int_eq(kedge_json_get_u64(&doc, 0, "s", 0, 50, &u, &diag), KEDGE_E_FORMAT);
    ASSERT_SAYS(diag, "expected a number, found a string");
    ck_assert_int_eq(kedge_json_get_u64_string(&doc, 0, "u", &u, &diag), KEDGE_OK);
    ck_assert(u == UINT64_MAX);
    ck_assert_int_eq(kedge_json_get_u64_string(&doc, 0, "r", &u, &diag), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_json_get_real(&doc, 0, "r", -1, 1, &d, &diag), KEDGE_OK);
    ck_assert_double_eq(d, -1.5e-3);
    ck_assert_int_eq(kedge_json_get_real(&doc, 0, "r", 0, 1, &d, &diag), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_json_get_real(&doc, 0, "n", 0, 100, &d, &diag), KEDGE_OK);
    ck_assert_int_eq(kedge_json_get_real(&doc, 0, "n", 0, 1, &d, &diag), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_json_get_real(&doc, 0, "t", 0, 1, &d, &diag), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_json_get_bool(&doc, 0, "t", &b, &diag), KEDGE_OK);
    ck_assert(b);
    ck_assert_int_eq(kedge_json_get_bool(&doc, 0, "n", &b, &diag), KEDGE_E_FORMAT);
    ck_assert_int_eq(kedge_json_get_u64(&doc, kedge_json_find(&doc, 0, "o"), "n", 0, 9, &u, &diag), KEDGE_OK);
    ck_assert_uint_eq(u, 7);
    ck_assert_uint_eq(kedge_json_find(&doc, kedge_json_find(&doc, 0, "n"), "n"), KEDGE_JSON_NONE);
}
END_TEST

START_TEST(unknown_keys_are_named)
{
    static const char *const keys[] = {"a", "b"};
    struct kedge_json doc;
    struct kedge_diag diag;
    ck_assert_int_eq(parse("{\"b\":1,\"a\":{\"c\":1}}", &doc, &diag), KEDGE_OK);
    ck_assert_int_eq(kedge_json_check_keys(&doc, 0, "thing", keys, 2, &diag), KEDGE_OK);
    ck_assert_int_eq(kedge_json_check_keys(&doc, 0, "thing", keys, 1, &diag), KEDGE_E_FORMAT);
    ASSERT_SAYS(diag, "thing: unknown key \"b\"");
    ck_assert_int_eq(kedge_json_check_keys(&doc, kedge_json_find(&doc, 0, "b"), "it", keys, 2, &diag),
                     KEDGE_E_FORMAT);
    ASSERT_SAYS(diag, "it: expected an object, found a number");
}
END_TEST

START_TEST(nul_in_a_string_is_refused)
{
    struct kedge_json doc;
    char s[8];
    ck_assert_int_eq(parse("\"a\\u0000b\"", &doc, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_json_decode_string(&doc, 0, s, sizeof s), KEDGE_E_FORMAT);
}
END_TEST

START_TEST(any_bytes_are_written_as_json_and_text_reads_back)
{
    static const char *const texts[] = {"plain", "q\"\\\n\t\x01\x7f/", "\xc3\xa9\xf0\x9f\x98\x80",
                                        "bad \xff\xfe", ""};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct kedge_buf out;
        struct kedge_json doc;
        char back[64];
        kedge_buf_init(&out, 1024);
        kedge_json_put_string(&out, kedge_view_str(texts[i]));
        ck_assert_int_eq(out.err, KEDGE_OK);
        ck_assert_int_eq(kedge_json_parse(kedge_buf_view(&out), tokens, 4096, &doc, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_json_decode_string(&doc, 0, back, sizeof back), KEDGE_OK);
        ck_assert_str_eq(back, i == 3 ? "bad ??" : texts[i]);
        kedge_buf_deinit(&out);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("json");
    tcase_add_loop_test(tc, valid_texts_parse, 0, sizeof good / sizeof good[0]);
    tcase_add_loop_test(tc, invalid_texts_are_refused_with_a_reason, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(tc, every_truncation_is_refused);
    tcase_add_test(tc, tokens_are_bounded);
    tcase_add_test(tc, members_are_bounded);
    tcase_add_test(tc, members_are_found_and_typed);
    tcase_add_test(tc, unknown_keys_are_named);
    tcase_add_test(tc, nul_in_a_string_is_refused);
    tcase_add_test(tc, any_bytes_are_written_as_json_and_text_reads_back);
    return run_suite(suite_create("json"), tc);
}
