/* What is said to a proxy and what is taken for an answer; what a relay takes for a request. */
#include "common/net/proxy.h"

#include <string.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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
    size_t len = kedgei_proxy_request(&p.address, "", out);
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

/* RFC 7617 §2 has these credentials. */
START_TEST(logins)
{
    static const char golden[] = "CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n"
                                 "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n";
    static const char *const bad[] = {"nobody", ":secret", "a\r\nb:c", "a:b\x7f"};
    struct kedgei_address to = {.host = "h", .port = "1"};
    char basic[KEDGE_PROXY_BASIC_MAX], out[KEDGE_PROXY_REQUEST_MAX], text[KEDGE_NET_LOGIN_MAX + 2];
    struct kedge_diag d;
    ck_assert_int_eq(kedgei_proxy_basic("Aladdin:open sesame", basic, NULL), KEDGE_OK);
    size_t len = kedgei_proxy_request(&to, basic, out);
    ck_assert_uint_eq(len, sizeof golden - 1);
    ck_assert_mem_eq(out, golden, len);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(kedgei_proxy_basic(bad[i], basic, &d), KEDGE_E_ARG);
        ck_assert_ptr_null(strstr(d.text, "secret"));
    }
    memset(text, 'p', sizeof text);
    text[1] = ':';
    text[KEDGE_NET_LOGIN_MAX + 1] = '\0';
    ck_assert_int_eq(kedgei_proxy_basic(text, basic, &d), KEDGE_E_ARG);
    text[KEDGE_NET_LOGIN_MAX] = '\0';
    ck_assert_int_eq(kedgei_proxy_basic(text, basic, &d), KEDGE_OK);
    memset(to.host, 'h', sizeof to.host - 1); /* the longest of all */
    memset(to.port, '1', 5);
    ck_assert_uint_gt(kedgei_proxy_request(&to, basic, out), 0);
}
END_TEST

static void write_login(const char *path, const char *text, mode_t mode)
{
    (void)unlink(path);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
    ck_assert_int_eq(chmod(path, mode), 0);
}

/* Whatever is wrong with the file, what is in it is not shown. */
START_TEST(login_files)
{
    static const char *const good[] = {"joe:secret", "joe:secret\n", "joe:secret\r\n"};
    static const char *const bad[] = {"", "joe\n", "joe:secret\nmore", ":secret\n", "joe:sec\tret\n"};
    char path[] = "/tmp/kedge-login-XXXXXX", login[KEDGE_NET_LOGIN_MAX + 1] = "untouched", longest[300];
    struct kedge_diag d = {.text = "", .hint = ""};
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_login(path, bad[i], 0600);
        ck_assert_int_eq(kedge_net_login_read(path, login, &d), KEDGE_E_FORMAT);
        ck_assert_ptr_nonnull(strstr(d.text, "USER:PASSWORD"));
        ck_assert_ptr_null(strstr(d.text, "sec"));
    }
    memset(longest, 'x', sizeof longest - 1);
    longest[1] = ':';
    longest[sizeof longest - 1] = '\0';
    write_login(path, longest, 0600);
    ck_assert_int_eq(kedge_net_login_read(path, login, &d), KEDGE_E_FORMAT);
    write_login(path, "joe:secret", 0640);
    ck_assert_int_eq(kedge_net_login_read(path, login, &d), KEDGE_E_DENIED);
    ck_assert_ptr_nonnull(strstr(d.hint, "chmod 600"));
    ck_assert_str_eq(login, "untouched");
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        write_login(path, good[i], 0600);
        ck_assert_int_eq(kedge_net_login_read(path, login, &d), KEDGE_OK);
        ck_assert_str_eq(login, "joe:secret");
    }
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(kedge_net_login_read(path, login, &d), KEDGE_E_NOT_FOUND);
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
        {"CONNECT [*]:5 HTTP/1.1\r\n\r\n", 400}, /* would be asked for as "*": any */
        {"CONNECT [[a]]:5 HTTP/1.1\r\n\r\n", 400},
        {"CONNECT a:b:5 HTTP/1.1\r\n\r\n", 400},
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
    const TTest *const tests[] = {urls, requests, logins, login_files, refused_requests, answers};
    return run_suite("net/proxy", tests, sizeof tests / sizeof tests[0]);
}
