/* The HTTP server against good and bad clients, over plain http://, where a test can write every byte. */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/net/server.h"
#include "tests/unit/net/http_world.h"
#include "tests/unit/net/raw.h"

START_TEST(test_answers)
{
    struct http_world *w = http_world_new(PATIENT_MS);
    http_world_start(w);
    int fd = raw_connect(http_world_port(w, 0));
    size_t len = 0;
    char *body = malloc(ANSWER_MAX);
    http_say(fd, GET("/who"));
    http_expect(fd, 200, "nobody");
    for (int i = 0; i < 3; i++) { /* one connection for all */
        http_say(fd, GET("/hello"));
        http_expect(fd, 200, "hello");
        http_say(fd, GET("/late"));
        http_expect(fd, 200, "late");
        http_say(fd, "HEAD /hello HTTP/1.1\r\nHost: h\r\n\r\n");
        ck_assert_uint_eq(http_hear(fd, false, NULL, 0, &len), 200);
        ck_assert_uint_eq(len, 5);
        http_say(fd, GET("/none"));
        http_expect(fd, 404, "404 Not Found\n");
        http_say(fd, GET("/big"));
        ck_assert_uint_eq(http_hear(fd, true, body, ANSWER_MAX, &len), 200);
        ck_assert(len == BIG && memcmp(body, w->big, BIG) == 0);
        http_say(fd, "HEAD /big HTTP/1.1\r\nHost: h\r\n\r\n");
        ck_assert_uint_eq(http_hear(fd, false, NULL, 0, &len), 200);
        ck_assert_uint_eq(len, BIG);
    }
    http_say(fd, GET("/who")); /* the big ones were for party 7 */
    http_expect(fd, 200, "seven");
    http_say(fd, "GET /hello HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    http_expect(fd, 200, "hello");
    ck_assert(raw_is_closed(fd, PATIENT_MS));
    close(fd);
    fd = raw_connect(http_world_port(w, 0)); /* what ends too early is noticed */
    http_say(fd, GET("/cut"));
    ck_assert_uint_eq(http_hear(fd, true, body, ANSWER_MAX, &len), 200);
    ck_assert_uint_eq(len, KEDGE_HTTP_PIECE_MAX);
    close(fd);
    fd = raw_connect(http_world_port(w, 0)); /* a wrong answer of the application never leaves */
    http_say(fd, GET("/bug"));
    http_expect(fd, 500, NULL);
    close(fd);
    http_world_wait(w, 0, 0, 0);
    free(body);
    http_world_close(w);
}
END_TEST

START_TEST(test_in_pieces_and_in_heaps)
{
    static const char two[] =
        GET("/hello") "HEAD /hello HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n" GET("/late");
    struct http_world *w = http_world_new(PATIENT_MS);
    http_world_start(w);
    for (size_t piece = 1; piece < sizeof two; piece = piece < 8 ? piece + 1 : piece * 2) {
        int fd = raw_connect(http_world_port(w, 0));
        for (size_t at = 0; at < sizeof two - 1; at += piece) {
            size_t n = sizeof two - 1 - at < piece ? sizeof two - 1 - at : piece;
            http_send(fd, two + at, n);
            if (piece < 4) {
                kedge_os_sleep_ms(1);
            }
        }
        size_t len = 0;
        http_expect(fd, 200, "hello");
        ck_assert_uint_eq(http_hear(fd, false, NULL, 0, &len), 200);
        http_expect(fd, 200, "late");
        close(fd);
    }
    int fd = raw_connect(http_world_port(w, 0)); /* many at once, answered in their order */
    for (int i = 0; i < 300; i++) {
        http_say(fd, i % 3 ? GET("/hello") : GET("/late"));
    }
    for (int i = 0; i < 300; i++) {
        http_expect(fd, 200, i % 3 ? "hello" : "late");
    }
    close(fd);
    http_world_close(w);
}
END_TEST

START_TEST(test_refusals)
{
    static const struct {
        const char *text;
        unsigned status;
    } rows[] = {
        {"garbage\r\n\r\n", 400},
        {"\x16\x03\x01\x02", 400},
        {GET("/hello") "GET /x HTTP/1.1\nHost: h\n\n", 400},
        {"PUT / HTTP/1.1\r\nHost: h\r\n\r\n", 405},
        {"POST / HTTP/1.1\r\nHost: h\r\n\r\n", 405},
        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 60\r\n\r\nabc", 405},
        {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400},
        {"GET / HTTP/3.0\r\nHost: h\r\n\r\n", 505},
    };
    struct http_world *w = http_world_new(PATIENT_MS);
    http_world_start(w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int fd = raw_connect(http_world_port(w, 0));
        http_say(fd, rows[i].text);
        if (strncmp(rows[i].text, GET("/hello"), 18) == 0) {
            http_expect(fd, 200, "hello");
        }
        http_say(fd, GET("/hello")); /* what comes behind a refused request is not looked at */
        http_expect(fd, rows[i].status, NULL);
        ck_assert_msg(raw_is_closed(fd, PATIENT_MS), "row %zu stays", i);
        close(fd);
    }
    int fd = raw_connect(http_world_port(w, 0)); /* more head than there may be */
    static char flood[64 * 1024];
    memset(flood, 'a', sizeof flood);
    (void)!send(fd, flood, sizeof flood, MSG_NOSIGNAL);
    http_expect(fd, 414, NULL);
    close(fd);
    fd = raw_connect(http_world_port(w, 0));
    http_say(fd, "GET / HTTP/1.1\r\nHost: h\r\n");
    (void)!send(fd, flood, sizeof flood, MSG_NOSIGNAL);
    http_expect(fd, 431, NULL);
    close(fd);
    http_world_wait(w, 0, 0, 0);
    http_world_close(w);
}
END_TEST

/* No resource takes a body: the answer is there before it has come, says what is allowed, and arrives
 * although the client goes on sending; nothing of the body is kept or taken for a request. */
START_TEST(test_posts_are_not_read)
{
    static const char head[] =
        "POST /hello HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n";
    static char body[64 * 1024], answer[1024];
    struct http_world *w = http_world_new(PATIENT_MS);
    http_world_start(w);
    for (size_t at = 0; at + sizeof GET("/hello") <= sizeof body; at += sizeof GET("/hello") - 1) {
        memcpy(body + at, GET("/hello"), sizeof GET("/hello") - 1);
    }
    int fd = raw_connect(http_world_port(w, 0));
    http_say(fd, head);
    size_t got = 0;
    for (ssize_t n = 1; n > 0 && !strstr(answer, "\r\n\r\n"); got += n > 0 ? (size_t)n : 0) {
        n = recv(fd, answer + got, sizeof answer - 1 - got, 0);
    }
    ck_assert_msg(strncmp(answer, "HTTP/1.1 405 ", 13) == 0, "%s", answer);
    ck_assert(strstr(answer, "\r\nAllow: GET, HEAD\r\n") && strstr(answer, "\r\nConnection: close\r\n"));
    uint64_t begin = kedge_os_now_ns();
    while (send(fd, body, sizeof body, MSG_NOSIGNAL) > 0) { /* as long as it is taken */
        ck_assert_uint_lt(kedge_os_now_ns() - begin, (uint64_t)PATIENT_MS * 1000000);
    }
    http_world_wait(w, 0, 0, 0);
    ck_assert_uint_eq(http_world_counters(w).requests, 0);
    close(fd);
    http_expect_service(w);
    http_world_close(w);
}
END_TEST

START_TEST(test_slow)
{
    static const char endless[] = "GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    struct http_world *w = http_world_new(QUICK_MS);
    http_world_start(w);
    int silent = raw_connect(http_world_port(w, 0)), half = raw_connect(http_world_port(w, 0));
    int deaf = raw_connect(http_world_port(w, 0)), drip = raw_connect(http_world_port(w, 0));
    int small = 4096;
    setsockopt(deaf, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    http_say(half, "GET /hello HTTP/1.1\r\nHost");
    for (int i = 0; i < 40; i++) { /* more than sockets hold */
        http_say(deaf, GET("/big"));
    }
    for (int i = 0; i < 40; i++) { /* a byte now and then does not help */
        if (send(drip, &endless[i], 1, MSG_NOSIGNAL) != 1) {
            break;
        }
        kedge_os_sleep_ms(50);
    }
    http_expect(half, 408, NULL);
    http_expect(drip, 408, NULL);
    ck_assert(raw_is_closed(silent, PATIENT_MS));
    http_world_wait(w, 0, 0, 0); /* also the one that does not read */
    http_expect_service(w);
    close(silent), close(half), close(deaf), close(drip);
    http_world_close(w);
}
END_TEST

START_TEST(test_limits)
{
    struct http_world *w = http_world_new(PATIENT_MS);
    int fds[24], parked[3];
    w->options.connections = 8;
    w->options.budget = 3 * KEDGE_HTTP_PIECE_MAX + KEDGE_HTTP_PIECE_MAX / 2; /* room for three */
    w->options.wait_ms = QUICK_MS * 3;
    http_world_start(w);
    for (size_t i = 0; i < 24; i++) { /* the oldest idle ones make room */
        fds[i] = raw_connect(http_world_port(w, 0));
        http_say(fds[i], GET("/hello"));
        http_expect(fds[i], 200, "hello");
    }
    ck_assert_uint_eq(http_world_counters(w).connections, 8);
    ck_assert_uint_eq(http_world_counters(w).evicted, 16);
    ck_assert(raw_is_closed(fds[0], PATIENT_MS) && !raw_is_closed(fds[23], 50));
    for (size_t i = 0; i < 3; i++) { /* they have all of the memory now */
        parked[i] = fds[23 - i];
        http_say(parked[i], GET("/park"));
    }
    http_world_wait(w, 8, 3, 3 * KEDGE_HTTP_PIECE_MAX);
    http_say(fds[20], GET("/hello"));
    http_expect(fds[20], 503, NULL);
    http_say(fds[19], GET("/hello"));
    for (int i = 0; i < PATIENT_MS && http_world_counters(w).waits < 2; i++) {
        kedge_os_sleep_ms(1);
    }
    http_world_answer(w->parked[0], "free"); /* room for the one that waits */
    http_expect(parked[0], 200, "free");
    http_expect(fds[19], 200, "hello");
    ck_assert_uint_ge(http_world_counters(w).waits, 2);
    close(parked[1]); /* gone while the application has its request */
    kedge_os_sleep_ms(50);
    http_world_answer(w->parked[1], "nobody");
    w->parked[0] = w->parked[2];
    w->parked_count = 1;
    for (size_t i = 0; i < 24; i++) {
        if (fds[i] != parked[1]) {
            close(fds[i]);
        }
    }
    http_expect_service(w);
    http_world_close(w);
}
END_TEST
/* Those who are no party are counted by their address; who is one is not, and does not notice. */
START_TEST(test_strangers_rate)
{
    struct http_world *w = http_world_new(PATIENT_MS);
    w->options.counts_strangers = true;
    http_world_start(w);
    int party = raw_connect(http_world_port(w, 0)), fd = raw_connect(http_world_port(w, 0));
    size_t len = 0;
    http_say(party, GET("/big"));
    ck_assert_uint_eq(http_hear(party, true, NULL, 0, &len), 200);
    uint64_t begin = kedge_os_now_ns();
    unsigned status = 200, asked = 0;
    for (; status == 200; asked++) {
        ck_assert_uint_lt(asked, 100000);
        http_say(fd, GET("/hello"));
        status = http_hear(fd, true, NULL, 0, &len);
    }
    uint64_t took_ms = (kedge_os_now_ns() - begin) / 1000000;
    ck_assert_uint_eq(status, 429);
    ck_assert_uint_ge(asked, KEDGE_NET_STRANGER_REQUESTS_BURST);
    ck_assert_uint_le(asked,
                      KEDGE_NET_STRANGER_REQUESTS_BURST + 2 + KEDGE_NET_STRANGER_REQUESTS * took_ms / 1000);
    ck_assert(raw_is_closed(fd, PATIENT_MS));
    ck_assert_uint_eq(http_world_counters(w).put_off, 1);
    for (unsigned i = 0; i < 2 * KEDGE_NET_STRANGER_REQUESTS_BURST; i++) {
        http_say(party, GET("/hello"));
        http_expect(party, 200, "hello");
    }
    close(fd);
    close(party);
    http_world_close(w);
}
END_TEST

/* Nobody's requests go on any more. */
static void wait_until_stuck(struct http_world *w)
{
    for (uint64_t before = UINT64_MAX; before != http_world_counters(w).requests;) {
        before = http_world_counters(w).requests;
        kedge_os_sleep_ms(400);
    }
}

/* Asks for more than all buffers on the way hold, and reads nothing. */
static int deaf_stranger(struct http_world *w)
{
    int fd = raw_connect(http_world_port(w, 0)), small = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    for (int n = 0; n < 16; n++) {
        http_say(fd, GET("/wide"));
    }
    return fd;
}

/* All connections are busy with answers that nobody takes: they make room long before they are stalled. */
START_TEST(test_deaf_strangers_make_room)
{
    enum { ALL = 4 };
    struct http_world *w = http_world_new(PATIENT_MS);
    int all[ALL];
    w->options.connections = ALL;
    http_world_start(w);
    for (size_t i = 0; i < ALL; i++) {
        all[i] = deaf_stranger(w);
    }
    wait_until_stuck(w);
    unsigned status = 0;
    size_t len = 0;
    for (int i = 0; i < PATIENT_MS / 200 && status != 200; i++) {
        int fd = raw_connect(http_world_port(w, 0));
        (void)send(fd, GET("/hello"), sizeof GET("/hello") - 1, MSG_NOSIGNAL);
        status = http_hear(fd, true, NULL, 0, &len);
        close(fd);
        kedge_os_sleep_ms(100);
    }
    ck_assert_uint_eq(status, 200);
    ck_assert_uint_ge(http_world_counters(w).evicted, 1);
    for (size_t i = 0; i < ALL; i++) {
        close(all[i]);
    }
    http_world_close(w);
}
END_TEST

/* One party's slow readers have a quarter of the connections; it is told so, and nobody else notices. */
START_TEST(test_crowd)
{
    struct http_world *w = http_world_new(PATIENT_MS);
    int deaf[4], small = 4096;
    w->options.connections = 16;
    http_world_start(w);
    for (size_t i = 0; i < 4; i++) {
        deaf[i] = raw_connect(http_world_port(w, 0));
        setsockopt(deaf[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        for (int n = 0; n < 40; n++) {
            http_say(deaf[i], GET("/big"));
        }
    }
    wait_until_stuck(w);
    int fd = raw_connect(http_world_port(w, 0));
    http_say(fd, GET("/big"));
    http_expect(fd, 503, NULL);
    close(fd);
    http_expect_service(w);
    close(deaf[0]); /* makes room, once the server has seen it */
    size_t len = 0;
    unsigned status = 503;
    for (int i = 0; i < PATIENT_MS / 100 && status == 503; i++) {
        kedge_os_sleep_ms(100);
        fd = raw_connect(http_world_port(w, 0));
        http_say(fd, GET("/big"));
        status = http_hear(fd, true, NULL, 0, &len);
        close(fd);
    }
    ck_assert_uint_eq(status, 200);
    ck_assert_uint_eq(len, BIG);
    for (size_t i = 1; i < 4; i++) {
        close(deaf[i]);
    }
    http_world_close(w);
}
END_TEST

/* A party may ask much more, and not without end; nor dial without end. */
START_TEST(test_rate_of_a_party)
{
    enum { AT_ONCE = 100, ROUNDS = 160, DIALS = 1000 };
    struct http_world *w = http_world_new(PATIENT_MS);
    w->options.counts_strangers = true;
    http_world_start(w);
    int fd = raw_connect(http_world_port(w, 0));
    size_t len = 0;
    unsigned status = 200, asked = 0, dialled = 0;
    http_say(fd, GET("/big"));
    ck_assert_uint_eq(http_hear(fd, true, NULL, 0, &len), 200);
    uint64_t begin = kedge_os_now_ns();
    for (unsigned i = 0; status == 200 && i < ROUNDS; i++) {
        for (unsigned k = 0; k < AT_ONCE; k++) {
            (void)!send(fd, GET("/hello"), strlen(GET("/hello")), MSG_NOSIGNAL);
        }
        for (unsigned k = 0; status == 200 && k < AT_ONCE; k++) {
            status = http_hear(fd, true, NULL, 0, &len);
            asked += status == 200;
        }
    }
    uint64_t took_ms = (kedge_os_now_ns() - begin) / 1000000;
    ck_assert_uint_ge(asked, KEDGE_HTTP_PARTY_REQUESTS_BURST - 1);
    ck_assert_uint_le(asked,
                      KEDGE_HTTP_PARTY_REQUESTS_BURST + 2 + KEDGE_HTTP_PARTY_REQUESTS * took_ms / 1000);
    close(fd);
    begin = kedge_os_now_ns();
    for (unsigned i = 0; i < DIALS; i++) {
        fd = raw_connect(http_world_port(w, 0));
        (void)!send(fd, GET("/mine"), strlen(GET("/mine")), MSG_NOSIGNAL);
        dialled += http_hear(fd, true, NULL, 0, &len) == 200;
        close(fd);
    }
    took_ms = (kedge_os_now_ns() - begin) / 1000000;
    ck_assert_uint_ge(dialled, KEDGE_NET_ARRIVALS_BURST - 1);
    ck_assert_uint_le(dialled, 2 * (KEDGE_NET_ARRIVALS_BURST + 2 + KEDGE_NET_ARRIVALS * took_ms / 1000));
    http_world_close(w);
}
END_TEST

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    Suite *s = suite_create("http");
    TCase *t = tcase_create("server");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, test_answers);
    tcase_add_test(t, test_in_pieces_and_in_heaps);
    tcase_add_test(t, test_refusals);
    tcase_add_test(t, test_posts_are_not_read);
    tcase_add_test(t, test_slow);
    tcase_add_test(t, test_limits);
    tcase_add_test(t, test_strangers_rate);
    tcase_add_test(t, test_rate_of_a_party);
    tcase_add_test(t, test_deaf_strangers_make_room);
    tcase_add_test(t, test_crowd);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
