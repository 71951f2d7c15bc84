/* What is said to a proxy and what is taken for an answer; what a relay takes for a request. */
#include "common/net/proxy.h"

#include <string.h>

#include "tests/unit/base/check.h"

/* Bytes of a text, without its end. */
static void put(char *at, const char *text)
{
    for (size_t i = 0; text[i]; i++) {
        at[i] = text[i];
    }
}

START_TEST(urls)
{
    static const char *const bad[] = {
        "",          "http://",     "http://h",     "http://h:0",    "https://h:1",
        "http://:1", "relay://*:1", "http://a/b:1", "tls+tcp://h:1", "relay://h:65536"};
    struct kedgei_proxy p = {.connects = true};
    struct kedge_diag d;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(kedgei_proxy_parse(bad[i], &p, &d), KEDGE_E_ARG);
        ck_assert(strstr(d.text, "expected http://HOST:PORT"));
    }
    ck_assert_int_eq(kedgei_proxy_parse("relay://gate:7443", &p, NULL), KEDGE_OK);
    ck_assert(!p.connects && strcmp(p.address.host, "gate") == 0 && strcmp(p.address.port, "7443") == 0);
    ck_assert_int_eq(kedgei_proxy_parse("http://[::1]:3128", &p, NULL), KEDGE_OK);
    ck_assert(p.connects && strcmp(p.address.host, "::1") == 0);
}
END_TEST

START_TEST(requests)
{
    struct kedgei_proxy p;
    struct kedgei_address to;
    char out[KEDGE_PROXY_REQUEST_MAX];
    ck_assert_int_eq(kedgei_proxy_parse("http://[2001:db8::7]:443", &p, NULL), KEDGE_OK);
    size_t len = kedgei_proxy_request(&p.address, out);
    static const char golden[] = "CONNECT [2001:db8::7]:443 HTTP/1.1\r\nHost: [2001:db8::7]:443\r\n\r\n";
    ck_assert_uint_eq(len, sizeof golden - 1);
    ck_assert_mem_eq(out, golden, len);
    for (size_t n = 0; n < len; n++) { /* whole only at its end */
        ck_assert_uint_eq(kedgei_proxy_target(kedge_view_of(out, n), &to), 0);
    }
    ck_assert_uint_eq(kedgei_proxy_target(kedge_view_of(out, len), &to), 200);
    ck_assert(strcmp(to.host, "2001:db8::7") == 0 && strcmp(to.port, "443") == 0);
}
END_TEST

START_TEST(refused_requests)
{
    static const struct {
        const char *text;
        unsigned status;
    } rows[] = {
        {"GET / HTTP/1.1\r\n\r\n", 405},
        {"\x16\x03\x01", 405},
        {"CONNECT h:1\r\n\r\n", 400},
        {"CONNECT h HTTP/1.1\r\n\r\n", 400},
        {"CONNECT h:0 HTTP/1.1\r\n\r\n", 400},
        {"CONNECT  h:1 HTTP/1.1\r\n\r\n", 400},
        {"CONNECT a@h:1 HTTP/1.1\r\n\r\n", 400},
        {"CONNECT h/x:1 HTTP/1.1\r\n\r\n", 400},
        {"CONNECT *:1 HTTP/1.1\r\n\r\n", 400},
        {"CONNECT h:1 HTTP/2\r\n\r\n", 400},
        {"CONNECT h:1 HTTP/1.1 x\r\n\r\n", 400},
    };
    struct kedgei_address to = {.port = "7"};
    char text[KEDGE_PROXY_HEAD_MAX];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_uint_eq(kedgei_proxy_target(kedge_view_str(rows[i].text), &to), rows[i].status);
    }
    memset(text, 'x', sizeof text);
    put(text, "CONNECT ");
    ck_assert_uint_eq(kedgei_proxy_target(kedge_view_of(text, sizeof text - 1), &to), 0);
    ck_assert_uint_eq(kedgei_proxy_target(kedge_view_of(text, sizeof text), &to), 431);
    put(text + sizeof text - 4, "\r\n\r\n");
    ck_assert_uint_eq(kedgei_proxy_target(kedge_view_of(text, sizeof text), &to), 400);
    ck_assert_str_eq(to.port, "7"); /* untouched */
}
END_TEST

START_TEST(answers)
{
    static const struct {
        const char *text;
        unsigned status;
    } rows[] = {
        {"", 0},
        {"HTTP/1.1 200 OK\r\n", 0},
        {"HTTP/1.1 200 OK\r\n\r\n", 200},
        {"HTTP/1.0 407 No\r\nProxy-Authenticate: Basic\r\n\r\n", 407},
        {"HTTP/2 200\r\n\r\n", 1},
        {"HTTP/1.1\t200 OK\r\n\r\n", 1},
        {"HTTP/1.1 2x0 OK\r\n\r\n", 1},
        {"HTTP/1.1 2\r\n\r\n", 1},
        {"HTTP/1.1 099 OK\r\n\r\n", 1},
        {"SSH-2.0", 1},
    };
    char text[KEDGE_PROXY_HEAD_MAX + 1];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_uint_eq(kedgei_proxy_status(kedge_view_str(rows[i].text)), rows[i].status);
    }
    memset(text, 'x', sizeof text);
    put(text, "HTTP/1.1 200 ");
    ck_assert_uint_eq(kedgei_proxy_status(kedge_view_of(text, KEDGE_PROXY_HEAD_MAX - 1)), 0);
    ck_assert_uint_eq(kedgei_proxy_status(kedge_view_of(text, KEDGE_PROXY_HEAD_MAX)), 1);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {urls, requests, refused_requests, answers};
    return run_suite("net/proxy", tests, sizeof tests / sizeof tests[0]);
}
