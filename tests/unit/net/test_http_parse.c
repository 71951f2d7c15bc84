/* Heads of HTTP requests: what is taken, and the status for everything that is not. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/web/http_parse.h"

#define H "Host: h\r\n"
#define G "GET / HTTP/1.1\r\n"
#define P "POST /w HTTP/1.1\r\n"

static const struct {
    const char *head;
    unsigned status;
} heads[] = {
    {G H "\r\n", 0},
    {"GET / HTTP/1.0\r\n\r\n", 0},
    {"HEAD /a/b HTTP/1.1\r\nhost:h\r\n\r\n", 0},
    {"GET https://h:1/x HTTP/1.1\r\n" H "\r\n", 0},
    {"GET HTTP://h/x HTTP/1.1\r\n" H "\r\n", 0},
    {G H "X:\r\n\r\n", 0},
    {G H "X: \t a \xc3\xa9 b\t \r\n\r\n", 0},
    {G H "Content-Length: 0\r\n\r\n", 0},
    {G H "If-None-Match: *\r\nAccept: */*\r\n\r\n", 0},
    /* the request line */
    {"\r\n" G H "\r\n", 400},
    {" GET / HTTP/1.1\r\n" H "\r\n", 400},
    {"GET  / HTTP/1.1\r\n" H "\r\n", 400},
    {"GET / HTTP/1.1 \r\n" H "\r\n", 400},
    {"GET /\tx HTTP/1.1\r\n" H "\r\n", 400},
    {"GET /\r\n" H "\r\n", 400},
    {"GET\r\n" H "\r\n", 400},
    {"G(T / HTTP/1.1\r\n" H "\r\n", 400},
    {"GET * HTTP/1.1\r\n" H "\r\n", 400},
    {"GET x HTTP/1.1\r\n" H "\r\n", 400},
    {"GET /#x HTTP/1.1\r\n" H "\r\n", 400},
    {"GET /\xc3\xa9 HTTP/1.1\r\n" H "\r\n", 400},
    {"GET https:///x HTTP/1.1\r\n" H "\r\n", 400},
    {"GET https://h HTTP/1.1\r\n" H "\r\n", 400},
    {"GET ftp://h/x HTTP/1.1\r\n" H "\r\n", 400},
    {"GET / HTTP/2.0\r\n" H "\r\n", 505},
    {"GET / HTTP/1.2\r\n" H "\r\n", 505},
    {"GET / http/1.1\r\n" H "\r\n", 400},
    {"GET / HTTP/1.1x\r\n" H "\r\n", 400},
    {"GET / HTTP/11\r\n" H "\r\n", 400},
    {"get / HTTP/1.1\r\n" H "\r\n", 405},
    {"PUT / HTTP/1.1\r\n" H "\r\n", 405},
    {"OPTIONS / HTTP/1.1\r\n" H "\r\n", 405},
    /* Host */
    {G "\r\n", 400},
    {G H H "\r\n", 400},
    {G "Host:\r\n\r\n", 400},
    /* fields */
    {G H "X\r\n\r\n", 400},
    {G H ": x\r\n\r\n", 400},
    {G H "X : x\r\n\r\n", 400},
    {G H "X: a\r\n b\r\n\r\n", 400},
    {G " X: a\r\n" H "\r\n", 400},
    {G H "X: a\x01\r\n\r\n", 400},
    {G H "X: a\x7f\r\n\r\n", 400},
    {G H "X: a\rb\r\n\r\n", 400},
    {G H "X: a\nY: b\r\n\r\n", 400},
    {G H "X\xc3\xa9: a\r\n\r\n", 400},
    {G H "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", 400},
    {G H "Authorization:\r\n\r\n", 400},
    {G H "Range: bytes=0-1\r\nRange: bytes=0-1\r\n\r\n", 400},
    {G H "Expect: 100-continue\r\n\r\n", 417},
    {G H "\r\nx", 400},
    {G H, 400},
    /* where a request ends */
    {G H "Transfer-Encoding: chunked\r\n\r\n", 400},
    {P H "Content-Length: 3\r\ntransfer-encoding: identity\r\n\r\n", 400},
    {P H "\r\n", 405},
    {P H "Content-Length: 0\r\n\r\n", 405},
    {P H "Content-Length: 1000\r\n\r\n", 405},
    {P H "Content-Length: 3\r\nContent-Length: 3\r\n\r\n", 400},
    {P H "Content-Length: 3, 3\r\n\r\n", 400},
    {P H "Content-Length: +3\r\n\r\n", 400},
    {P H "Content-Length: -3\r\n\r\n", 400},
    {P H "Content-Length: 03\r\n\r\n", 400},
    {P H "Content-Length: 0x3\r\n\r\n", 400},
    {P H "Content-Length: 3 \r\n\r\n", 405},
    {P H "Content-Length: 3 3\r\n\r\n", 400},
    {P H "Content-Length:\r\n\r\n", 400},
    {P H "Content-Length: 99999999999999999999999\r\n\r\n", 405},
    {G H "Content-Length: 99999999999999999999999\r\n\r\n", 400},
    {G H "Content-Length: 00\r\n\r\n", 400},
    {G H "Content-Length: 0\r\nContent-Length: 0\r\n\r\n", 400},
    {G H "Content-Length: 1\r\n\r\n", 400},
    {"HEAD / HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\n", 400},
};

START_TEST(test_heads)
{
    struct kedge_http_head h;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        unsigned status = kedge_http_parse(kedge_view_str(heads[i].head), &h);
        ck_assert_msg(status == heads[i].status, "head %zu: %u, expected %u:\n%s", i, status, heads[i].status,
                      heads[i].head);
    }
}
END_TEST

START_TEST(test_content)
{
    struct kedge_http_head h;
    ck_assert_uint_eq(
        kedge_http_parse(kedge_view_str("HEAD /a/b?c=%20 HTTP/1.1\r\nHOST: x:1\r\nAUTHORIZATION:  Bearer "
                                        "t0k \r\ncontent-length: 0\r\nConnection: x , Close\r\n\r\n"),
                         &h),
        0);
    ck_assert_int_eq(h.method, KEDGE_HTTP_HEAD);
    ck_assert(kedge_view_eq(h.target, kedge_view_str("/a/b?c=%20")));
    ck_assert(kedge_view_eq(h.authorization, kedge_view_str("Bearer t0k")));
    ck_assert(h.closes && !h.range.present);
    ck_assert_uint_eq(kedge_http_parse(kedge_view_str("GET http://h/y/z HTTP/1.1\r\n" H "\r\n"), &h), 0);
    ck_assert(kedge_view_eq(h.target, kedge_view_str("/y/z")) && !h.closes);
    ck_assert_uint_eq(h.authorization.len, 0);
    ck_assert_uint_eq(kedge_http_parse(kedge_view_str("GET / HTTP/1.0\r\n\r\n"), &h), 0);
    ck_assert(h.closes);
    ck_assert_uint_eq(kedge_http_parse(kedge_view_str(G H "Connection: closed, keep-alive\r\n\r\n"), &h), 0);
    ck_assert(!h.closes);
}
END_TEST

START_TEST(test_limits)
{
    static char text[3 * KEDGE_HTTP_HEAD_MAX];
    struct kedge_http_head h;
    for (int n = KEDGE_HTTP_TARGET_MAX - 1; n <= KEDGE_HTTP_TARGET_MAX + 1; n++) {
        int len = snprintf(text, sizeof text, "GET /%0*d HTTP/1.1\r\n" H "\r\n", n - 1, 0);
        unsigned expected = n > KEDGE_HTTP_TARGET_MAX ? 414 : 0;
        ck_assert_uint_eq(kedge_http_parse(kedge_view_of(text, (size_t)len), &h), expected);
    }
    for (int fields = KEDGE_HTTP_FIELDS_MAX - 1; fields <= KEDGE_HTTP_FIELDS_MAX + 1; fields++) {
        int len = snprintf(text, sizeof text, G H);
        for (int i = 1; i < fields; i++) {
            len += snprintf(text + len, sizeof text - (size_t)len, "X: %d\r\n", i);
        }
        len += snprintf(text + len, sizeof text - (size_t)len, "\r\n");
        unsigned expected = fields > KEDGE_HTTP_FIELDS_MAX ? 431 : 0;
        ck_assert_uint_eq(kedge_http_parse(kedge_view_of(text, (size_t)len), &h), expected);
    }
    for (int n = KEDGE_HTTP_HEAD_MAX - 1; n <= KEDGE_HTTP_HEAD_MAX + 1; n++) {
        int len = snprintf(text, sizeof text, G H "X: "), rest = n - len - 4;
        memset(text + len, 'x', (size_t)rest);
        memcpy(text + n - 4, (const char[]){'\r', '\n', '\r', '\n'}, 4);
        size_t end = 0;
        unsigned expected = n > KEDGE_HTTP_HEAD_MAX ? 431 : 0;
        ck_assert_uint_eq(kedge_http_find_end(kedge_view_of(text, (size_t)n), 0, &end), expected);
        ck_assert_uint_eq(kedge_http_parse(kedge_view_of(text, (size_t)n), &h), expected);
    }
}
END_TEST

START_TEST(test_find_end)
{
    static const struct {
        const char *in;
        unsigned status;
        size_t len;
    } rows[] = {
        {"", 0, 0},
        {"G", 0, 0},
        {"GET / HTTP/1.1\r\n", 0, 0},
        {"GET / HTTP/1.1\r\n\r", 0, 0},
        {"GET / HTTP/1.1\r\n\r\n", 0, 18},
        {"GET / HTTP/1.1\r\n\r\nGET", 0, 18},
        {"G\r\nH: x\r\n\r\n\r\n\r\n", 0, 11},
        {"GET / HTTP/1.1\n", 400, 0},
        {"GET / HTTP/1.1\r\nX: y\n", 400, 0},
        {"\r\n", 400, 0},
        {"\n", 400, 0},
        {"\x16\x03\x01", 400, 0},
        {"{\"verb\"", 400, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kedge_view in = kedge_view_str(rows[i].in);
        size_t len = 77, seen = 0;
        unsigned status = kedge_http_find_end(in, 0, &len);
        ck_assert_msg(status == rows[i].status && (status != 0 || len == rows[i].len), "row %zu: %u, %zu", i,
                      status, len);
        status = 0; /* byte by byte the same */
        for (len = 0; seen < in.len && !status && len == 0; seen++) {
            status = kedge_http_find_end(kedge_view_of(in.ptr, seen + 1), seen, &len);
        }
        ck_assert_msg(status == rows[i].status && (status != 0 || len == rows[i].len), "row %zu in bytes", i);
    }
    static char line[KEDGE_HTTP_HEAD_MAX];
    size_t len = 0;
    memset(line, 'G', sizeof line);
    ck_assert_uint_eq(kedge_http_find_end(kedge_view_of(line, sizeof line - 1), 0, &len), 0);
    ck_assert_uint_eq(kedge_http_find_end(kedge_view_of(line, sizeof line), sizeof line - 1, &len), 414);
    memcpy(line, G, sizeof G - 1);
    ck_assert_uint_eq(kedge_http_find_end(kedge_view_of(line, sizeof line), 0, &len), 431);
    line[3000] = 0;
    ck_assert_uint_eq(kedge_http_find_end(kedge_view_of(line, 3001), 3000, &len), 400);
}
END_TEST

START_TEST(test_ranges)
{
    static const struct {
        const char *value;
        uint64_t total, offset, len; /* len 0: 416 */
        bool ignored;
    } rows[] = {
        {"bytes=0-0", 10, 0, 1, false},    {"bytes=0-", 10, 0, 10, false},
        {"bytes=9-99", 10, 9, 1, false},   {"bytes=10-", 10, 0, 0, false},
        {"bytes=-3", 10, 7, 3, false},     {"bytes=-30", 10, 0, 10, false},
        {"bytes=-0", 10, 0, 0, false},     {"bytes=0-", 0, 0, 0, false},
        {"bytes=-1", 0, 0, 0, false},      {"Bytes=2-3", 10, 2, 2, false},
        {"bytes=3-2", 10, 0, 0, true},     {"bytes=-", 10, 0, 0, true},
        {"bytes=0-1,3-4", 10, 0, 0, true}, {"bytes= 0-1", 10, 0, 0, true},
        {"bytes=00-1", 10, 0, 0, true},    {"lines=0-1", 10, 0, 0, true},
        {"bytes=0", 10, 0, 0, true},       {"bytes", 10, 0, 0, true},
        {"bytes=0--1", 10, 0, 0, true},    {"bytes=99999999999999999999-", 10, 0, 0, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[200];
        struct kedge_http_head h;
        uint64_t offset = 0, len = 0;
        snprintf(text, sizeof text, G H "Range: %s\r\n\r\n", rows[i].value);
        ck_assert_uint_eq(kedge_http_parse(kedge_view_str(text), &h), 0);
        ck_assert_msg(h.range.present == !rows[i].ignored, "range %s", rows[i].value);
        if (h.range.present) {
            bool good = kedge_http_range_resolve(&h.range, rows[i].total, &offset, &len);
            ck_assert_msg(good == (rows[i].len > 0)
                              && (!good || (offset == rows[i].offset && len == rows[i].len)),
                          "range %s", rows[i].value);
        }
        snprintf(text, sizeof text, G H "If-Range: \"x\"\r\nRange: %s\r\n\r\n", rows[i].value);
        ck_assert_uint_eq(kedge_http_parse(kedge_view_str(text), &h), 0);
        ck_assert(!h.range.present);
    }
}
END_TEST

START_TEST(test_bearer)
{
    static const struct {
        const char *value, *token; /* NULL: none */
    } rows[] = {
        {"Bearer abc", "abc"},
        {"bEARER  a.b-c_=", "a.b-c_="},
        {"Bearer", NULL},
        {"Bearer ", NULL},
        {"", NULL},
        {"Bearer a b", NULL},
        {"Basic abc", NULL},
        {"Bearerx a", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kedge_view token = {NULL, 0};
        bool good = kedge_http_bearer(kedge_view_str(rows[i].value), &token);
        ck_assert_msg(good == (rows[i].token != NULL), "%s", rows[i].value);
        ck_assert(!good || kedge_view_eq(token, kedge_view_str(rows[i].token)));
    }
    ck_assert_str_eq(kedge_http_reason(404), "Not Found");
    ck_assert_str_eq(kedge_http_reason(777), "Unknown");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("http_parse");
    TCase *t = tcase_create("heads");
    tcase_add_test(t, test_heads);
    tcase_add_test(t, test_content);
    tcase_add_test(t, test_limits);
    tcase_add_test(t, test_find_end);
    tcase_add_test(t, test_ranges);
    tcase_add_test(t, test_bearer);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
