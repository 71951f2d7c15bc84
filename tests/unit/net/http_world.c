#include "tests/unit/net/http_world.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/base/text.h"
#include "tests/unit/net/raw.h"

static bool is_path(const struct kedge_http_request *req, const char *path)
{
    return kedge_view_eq(kedge_http_request_head(req)->target, kedge_view_str(path));
}

void http_world_answer(struct kedge_http_request *req, const char *text)
{
    struct kedge_http_answer a = {.status = 200, .content_type = "text/plain", .len = strlen(text)};
    kedge_http_reply(req, &a, kedge_view_str(text));
}

static void answer_big(struct http_world *w, struct kedge_http_request *req, uint64_t offset)
{
    struct kedge_http_answer a = {.status = 200,
                                  .content_type = "application/octet-stream",
                                  .cache_control = "immutable",
                                  .len = BIG,
                                  .party = is_path(req, "/wide") ? 0 : 7};
    size_t left = BIG - (size_t)offset, n = left < KEDGE_HTTP_PIECE_MAX ? left : KEDGE_HTTP_PIECE_MAX;
    struct kedge_view piece = kedge_view_of(w->big + offset, n);
    if (offset == 0) {
        kedge_http_reply(req, &a, piece);
    } else if (is_path(req, "/cut")) {
        kedge_http_abort(req);
    } else {
        kedge_http_reply_more(req, piece);
    }
}

static void *answer_late(void *arg)
{
    kedge_os_sleep_ms(20);
    http_world_answer(arg, "late");
    return NULL;
}

static void handle(void *arg, struct kedge_http_request *req, uint64_t offset)
{
    struct http_world *w = arg;
    pthread_t thread;
    if (is_path(req, "/big") || is_path(req, "/wide") || is_path(req, "/cut")) {
        answer_big(w, req, offset);
    } else if (is_path(req, "/hello")) {
        http_world_answer(req, "hello");
    } else if (is_path(req, "/who")) {
        http_world_answer(req, kedge_http_request_party(req) == 7 ? "seven" : "nobody");
    } else if (is_path(req, "/mine")) {
        struct kedge_http_answer a = {.status = 200, .content_type = "text/plain", .len = 4, .party = 7};
        kedge_http_reply(req, &a, kedge_view_str("mine"));
    } else if (is_path(req, "/late")) {
        ck_assert_int_eq(pthread_create(&thread, NULL, answer_late, req), 0);
        pthread_detach(thread);
    } else if (is_path(req, "/park")) {
        pthread_mutex_lock(&w->mutex);
        w->parked[w->parked_count++] = req;
        pthread_mutex_unlock(&w->mutex);
    } else if (is_path(req, "/bug")) {
        struct kedge_http_answer a = {.status = 200, .content_type = "text/plain", .len = 5};
        kedge_http_reply(req, &a, kedge_view_str("too long"));
    } else {
        kedge_http_reply_status(req, 404, NULL);
    }
}

struct http_world *http_world_new(uint32_t ms)
{
    struct http_world *w = calloc(1, sizeof *w);
    ck_assert(w && kedge_crypto_init() == KEDGE_OK);
    kedge_key_generate(&w->key);
    pthread_mutex_init(&w->mutex, NULL);
    for (size_t i = 0; i < BIG; i++) {
        w->big[i] = (uint8_t)(i * 7 + i / 251);
    }
    w->options = (struct kedge_http_options){.urls = {"http://127.0.0.1:0", "https://127.0.0.1:0"},
                                             .key = &w->key,
                                             .insecure = true,
                                             .head_ms = ms,
                                             .idle_ms = ms,
                                             .stall_ms = ms,
                                             .wait_ms = ms,
                                             .handler = handle,
                                             .arg = w};
    return w;
}

void http_world_start(struct http_world *w)
{
    struct kedge_diag d = {.text = ""};
    int err = kedge_http_server_open(&w->options, &w->server, &d);
    ck_assert_msg(err == KEDGE_OK, "%s", d.text);
}

void http_world_close(struct http_world *w)
{
    kedge_http_server_close(w->server);
    for (size_t i = 0; i < w->parked_count; i++) {
        http_world_answer(w->parked[i], "too late"); /* goes nowhere, and is no leak */
    }
    free(w);
}

unsigned http_world_port(const struct http_world *w, unsigned i)
{
    uint64_t port = 0;
    const char *colon = strrchr(kedge_http_server_url(w->server, i), ':');
    ck_assert_int_eq(kedge_decimal_decode(kedge_view_str(colon + 1), UINT16_MAX, &port), KEDGE_OK);
    return (unsigned)port;
}

struct kedge_http_counters http_world_counters(struct http_world *w)
{
    struct kedge_http_counters c;
    kedge_http_server_counters(w->server, &c);
    return c;
}

void http_world_wait(struct http_world *w, uint64_t connections, uint64_t held, uint64_t bytes)
{
    struct kedge_http_counters c = http_world_counters(w);
    for (int i = 0; i < 2000; i++, c = http_world_counters(w)) {
        if (c.connections == connections && c.held == held && c.bytes_in_flight == bytes) {
            return;
        }
        kedge_os_sleep_ms(5);
    }
    ck_abort_msg("connections %llu, held %llu, bytes %llu", (unsigned long long)c.connections,
                 (unsigned long long)c.held, (unsigned long long)c.bytes_in_flight);
}

/* ---- a client ---- */

void http_send(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        ck_assert_int_gt(n, 0);
        at += n;
        len -= (size_t)n;
    }
}

void http_say(int fd, const char *text)
{
    http_send(fd, text, strlen(text));
}

unsigned http_hear(int fd, bool has_body, char *body, size_t body_max, size_t *ret_len)
{
    char head[2048];
    size_t n = 0;
    while (n < 4 || memcmp(head + n - 4, "\r\n\r\n", 4) != 0) {
        if (n == sizeof head - 1 || recv(fd, head + n, 1, 0) != 1) {
            return 0;
        }
        n++;
    }
    head[n] = '\0';
    uint64_t status = 0, len = 0;
    const char *length = strstr(head, "Content-Length: ");
    ck_assert_int_eq(kedge_decimal_decode(kedge_view_of(head + 9, 3), 999, &status), KEDGE_OK);
    ck_assert(memcmp(head, "HTTP/1.1 ", 9) == 0 && length && strstr(head, "\r\nDate: ") != NULL);
    length += strlen("Content-Length: ");
    ck_assert_int_eq(kedge_decimal_decode(kedge_view_of(length, strcspn(length, "\r")), UINT32_MAX, &len),
                     KEDGE_OK);
    size_t got = 0;
    char scrap[4096];
    while (has_body && got < len) {
        char *at = body ? body + got : scrap;
        size_t room = body ? body_max - got : sizeof scrap;
        ssize_t m = recv(fd, at, room < len - got ? room : (size_t)len - got, 0);
        if (m <= 0) {
            break;
        }
        got += (size_t)m;
    }
    *ret_len = has_body ? got : (size_t)len;
    return (unsigned)status;
}

void http_expect(int fd, unsigned status, const char *body)
{
    char text[512];
    size_t len = 0;
    unsigned got = http_hear(fd, true, text, sizeof text, &len);
    ck_assert_msg(got == status, "%u, expected %u", got, status);
    ck_assert(!body || (len == strlen(body) && memcmp(text, body, len) == 0));
}

void http_expect_service(struct http_world *w)
{
    int fd = raw_connect(http_world_port(w, 0));
    http_say(fd, GET("/hello"));
    http_expect(fd, 200, "hello");
    close(fd);
}
