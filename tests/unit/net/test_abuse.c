/* Peers that greet properly and then misuse the frames: half ones, endless ones, too long, too slow, too
 * many. Over tcp://, where a test can write every byte; the code above the bytes is the same for all. */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "tests/unit/net/raw.h"
#include "tests/unit/net/world.h"

enum { FRAME = 64 * 1024, STALL_MS = 1200, FAIR_MS = 4000, PATIENT_MS = 30000, HEAD = 8, GREETING = 44 };

/* Requests that begin with p are parked, those with b are answered by FRAME bytes (announced), others
 * echoed. The first bytes of all, in the order of their coming. */
struct park {
    pthread_mutex_t mutex;
    struct kedge_net_request *held[256];
    size_t count, seen_count;
    uint8_t seen[256];
};

static void handle(void *arg, struct kedge_net_request *req)
{
    struct park *park = arg;
    struct kedge_view v = kedge_net_request_view(req);
    uint8_t first = v.len > 0 ? v.ptr[0] : 0, *ptr;
    pthread_mutex_lock(&park->mutex);
    park->seen[park->seen_count++ % sizeof park->seen] = first;
    if (first == 'p') {
        park->held[park->count++] = req;
    }
    pthread_mutex_unlock(&park->mutex);
    if (first == 'b' && kedge_net_reply_begin(req, FRAME, &ptr) == KEDGE_OK) {
        memset(ptr, 'B', FRAME);
        kedge_net_reply_send(req);
    } else if (first != 'p') {
        kedge_net_reply(req, v);
    }
}

static size_t reply_size(void *arg, struct kedge_view frame)
{
    (void)arg;
    return frame.len > 0 && frame.ptr[0] == 'b' ? FRAME : 0;
}

static void open_world(struct world *w, struct park *park, uint32_t stall_ms)
{
    *park = (struct park){.mutex = PTHREAD_MUTEX_INITIALIZER};
    world_init(w, handle, park);
    w->options.frame_max = FRAME;
    w->options.budget = 2 * FRAME;
    w->options.stall_ms = stall_ms;
    w->options.reply_size = reply_size;
    world_start(w);
}

static void send_all(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        ck_assert_int_gt(n, 0);
        at += n;
        len -= (size_t)n;
    }
}

static void receive_all(int fd, void *bytes, size_t len)
{
    char *at = bytes;
    while (len > 0) {
        ssize_t n = recv(fd, at, len, 0);
        ck_assert_msg(n > 0, "the server ended the connection, %zu bytes short", len);
        at += n;
        len -= (size_t)n;
    }
}

static void send_head(int fd, uint32_t len, uint8_t call)
{
    const uint8_t head[HEAD] = {
        (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len, 0, 0, 0, call};
    send_all(fd, head, sizeof head);
}

/* A body of len times `first`. */
static void send_frame(int fd, size_t len, uint8_t call, char first)
{
    static char body[FRAME];
    memset(body, first, len);
    send_head(fd, (uint32_t)len, call);
    send_all(fd, body, len);
}

/* Receives one frame; its call, and how long it was. */
static uint8_t receive_frame(int fd, size_t *ret_len)
{
    static char body[FRAME];
    uint8_t head[HEAD];
    receive_all(fd, head, sizeof head);
    *ret_len = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    ck_assert_uint_le(*ret_len, FRAME);
    receive_all(fd, body, *ret_len);
    return head[7];
}

static int greet(struct world *w)
{
    static const uint8_t greeting[GREETING] = {'K', 'E', 'D', 'G', 'E', '\r', '\n', 0, 0, 0, 0, 1};
    uint8_t answer[GREETING];
    int fd = raw_connect(world_port(w, WORLD_TCP));
    send_all(fd, greeting, sizeof greeting);
    receive_all(fd, answer, sizeof answer);
    ck_assert_mem_eq(answer, greeting, 12);
    return fd;
}

static uint64_t in_flight(struct world *w)
{
    struct kedge_net_counters counters;
    kedge_net_server_counters(w->server, &counters);
    return counters.bytes_in_flight;
}

static void expect_nothing_in_flight(struct world *w)
{
    for (int i = 0; i < 1000 && in_flight(w) > 0; i++) {
        kedge_os_sleep_ms(2);
    }
    ck_assert_uint_eq(in_flight(w), 0);
}

static void expect_service(struct world *w)
{
    struct kedge_net_client *client = world_client(w, WORLD_TCP);
    world_expect_echo(client, "good");
    kedge_net_client_close(client);
}

START_TEST(test_frames_in_pieces_and_in_heaps)
{
    struct world w;
    struct park park;
    size_t len;
    open_world(&w, &park, PATIENT_MS);
    int fd = greet(&w);
    static const char bytes[] = {0, 0, 0, 2, 0, 0, 0, 9, 'h', 'i'};
    for (size_t i = 0; i < sizeof bytes; i++) {
        send_all(fd, &bytes[i], 1);
        kedge_os_sleep_ms(2);
    }
    ck_assert_uint_eq(receive_frame(fd, &len), 9);
    ck_assert_uint_eq(len, 2);
    char heap[20 * sizeof bytes];
    for (size_t i = 0; i < 20; i++) {
        memcpy(heap + i * sizeof bytes, bytes, sizeof bytes);
        heap[i * sizeof bytes + 7] = (char)i;
    }
    send_all(fd, heap, sizeof heap);
    for (uint8_t i = 0; i < 20; i++) {
        ck_assert_uint_eq(receive_frame(fd, &len), i);
    }
    send_frame(fd, 0, 3, 0);
    ck_assert_uint_eq(receive_frame(fd, &len), 3);
    ck_assert_uint_eq(len, 0);
    send_frame(fd, FRAME, 4, 'x');
    ck_assert_uint_eq(receive_frame(fd, &len), 4);
    ck_assert_uint_eq(len, FRAME);
    expect_nothing_in_flight(&w);
    close(fd);
    world_close(&w);
}
END_TEST

START_TEST(test_any_order)
{
    struct world w;
    struct park park;
    size_t len;
    open_world(&w, &park, PATIENT_MS);
    int fd = greet(&w);
    for (uint8_t i = 0; i < 5; i++) {
        send_frame(fd, (size_t)i + 1, i, 'p');
    }
    world_wait_parked(&park.mutex, &park.count, 5);
    for (uint8_t i = 5; i-- > 0;) {
        kedge_net_reply(park.held[i], kedge_net_request_view(park.held[i]));
        ck_assert_uint_eq(receive_frame(fd, &len), i);
        ck_assert_uint_eq(len, (size_t)i + 1);
    }
    close(fd);
    world_close(&w);
}
END_TEST

START_TEST(test_other_protocols)
{
    static const char *const starts[] = {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01", "KEDGE\r\n\0\0\0\0\2",
                                         "\0SP\0"};
    static const size_t lens[] = {18, 3, 12, 4};
    struct world w;
    struct park park;
    struct kedge_net_counters counters;
    open_world(&w, &park, PATIENT_MS);
    for (size_t i = 0; i < 4; i++) {
        int fd = raw_connect(world_port(&w, WORLD_TCP));
        send_all(fd, starts[i], lens[i]);
        ck_assert_msg(raw_is_closed(fd, PATIENT_MS), "case %zu stayed", i);
        close(fd);
    }
    kedge_net_server_counters(w.server, &counters);
    ck_assert_uint_eq(counters.refused, 4);
    ck_assert_uint_eq(counters.accepted, 0);
    expect_service(&w);
    world_close(&w);
}
END_TEST

START_TEST(test_too_long)
{
    static const uint32_t lens[] = {FRAME + 1, UINT32_MAX, 1u << 31};
    struct world w;
    struct park park;
    open_world(&w, &park, PATIENT_MS);
    for (size_t i = 0; i < 3; i++) {
        int fd = greet(&w);
        send_head(fd, lens[i], 1);
        ck_assert_msg(raw_is_closed(fd, PATIENT_MS), "%u bytes were awaited", lens[i]);
        ck_assert_uint_eq(in_flight(&w), 0);
        close(fd);
    }
    expect_service(&w);
    world_close(&w);
}
END_TEST

/* Half a head, half a body, a body of a byte now and then: each is ended, and gives its memory back. */
START_TEST(test_slow_senders)
{
    struct world w;
    struct park park;
    open_world(&w, &park, STALL_MS);
    int head = greet(&w), body = greet(&w), drip = greet(&w);
    send_all(head, "\0\0", 2);
    send_head(body, FRAME, 1);
    send_all(body, "x", 1);
    send_head(drip, 4096, 1);
    WORLD_WAIT(&w, bytes_in_flight, FRAME + 4096);
    uint64_t begin = kedge_os_now_ns();
    int closed = 0;
    while (!closed && kedge_os_now_ns() < begin + 20000000000u) { /* 4096 bytes would take 80 s */
        closed = send(drip, "x", 1, MSG_NOSIGNAL) < 0;
        kedge_os_sleep_ms(20);
    }
    ck_assert(closed);
    ck_assert(raw_is_closed(head, PATIENT_MS));
    ck_assert(raw_is_closed(body, PATIENT_MS));
    ck_assert_uint_lt(kedge_os_now_ns() - begin, 15000000000u);
    ck_assert_uint_eq(in_flight(&w), 0);
    close(head);
    close(body);
    close(drip);
    expect_service(&w);
    world_close(&w);
}
END_TEST

/* Asks for more than all buffers take and reads nothing. */
START_TEST(test_slow_reader)
{
    struct world w;
    struct park park;
    open_world(&w, &park, STALL_MS);
    int fd = greet(&w), tiny = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &tiny, sizeof tiny);
    bool gone = false;
    uint64_t most = 0, end = kedge_os_now_ns() + 20000000000u;
    struct kedge_net_counters counters;
    for (uint8_t call = 0; !gone && kedge_os_now_ns() < end; call++) {
        const char frame[] = {0, 0, 0, 1, 0, 0, 0, (char)call, 'b'};
        gone = send(fd, frame, sizeof frame, MSG_NOSIGNAL | MSG_DONTWAIT) < 0;
        kedge_net_server_counters(w.server, &counters);
        most = counters.bytes_in_flight > most ? counters.bytes_in_flight : most;
        gone = gone || (call > 0 && counters.connections == 0);
        kedge_os_sleep_ms(1);
    }
    ck_assert_msg(gone, "a reader that does not read was not ended");
    ck_assert_uint_le(most, 2 * FRAME + FRAME / 4);
    expect_nothing_in_flight(&w);
    close(fd);
    expect_service(&w);
    world_close(&w);
}
END_TEST

START_TEST(test_too_many_unanswered)
{
    struct world w;
    struct park park;
    struct kedge_net_counters counters;
    open_world(&w, &park, PATIENT_MS);
    int fd = greet(&w);
    for (unsigned i = 0; i < KEDGE_NET_PER_PEER_MAX; i++) {
        send_frame(fd, 1, (uint8_t)i, 'p');
    }
    world_wait_parked(&park.mutex, &park.count, KEDGE_NET_PER_PEER_MAX);
    ck_assert(!raw_is_closed(fd, 50));
    send_frame(fd, 1, 100, 'e');
    ck_assert(raw_is_closed(fd, PATIENT_MS));
    kedge_net_server_counters(w.server, &counters);
    ck_assert_uint_eq(counters.requests, KEDGE_NET_PER_PEER_MAX);
    ck_assert_uint_eq(counters.connections, 0);
    for (size_t i = 0; i < park.count; i++) {
        kedge_net_reply(park.held[i], kedge_view_str("to nobody"));
    }
    expect_nothing_in_flight(&w);
    close(fd);
    expect_service(&w);
    world_close(&w);
}
END_TEST

/* One announces a frame and stops, which fills the budget; large ones wait in their order, small ones do
 * not. Once the first is ended, the others come, first come, first served. */
START_TEST(test_budget_is_fair)
{
    enum { WAITING = 4 };
    struct world w;
    struct park park;
    struct kedge_net_counters counters;
    int fds[WAITING];
    size_t len;
    open_world(&w, &park, FAIR_MS); /* until then all of them have come */
    int hog = greet(&w);
    send_head(hog, FRAME, 1);
    WORLD_WAIT(&w, bytes_in_flight, FRAME);
    for (int i = 0; i < WAITING; i++) {
        fds[i] = greet(&w);
        send_frame(fds[i], FRAME, 1, (char)('0' + i));
        WORLD_WAIT(&w, pauses, (uint64_t)i + 1);
    }
    int small = greet(&w);
    send_frame(small, 100, 2, 's');
    ck_assert_uint_eq(receive_frame(small, &len), 2);
    kedge_net_server_counters(w.server, &counters);
    ck_assert_uint_eq(counters.requests, 1); /* the small one */
    ck_assert(raw_is_closed(hog, PATIENT_MS));
    for (int i = 0; i < WAITING; i++) {
        ck_assert_uint_eq(receive_frame(fds[i], &len), 1);
        ck_assert_uint_eq(len, FRAME);
        close(fds[i]);
    }
    ck_assert_mem_eq(park.seen, "s0123", 5);
    expect_nothing_in_flight(&w);
    close(small);
    close(hog);
    world_close(&w);
}
END_TEST

/* Large replies that nobody announced fill the large account, not the one of the small requests. */
START_TEST(test_unannounced_replies_leave_room)
{
    enum { BIG = 8 };
    struct world w;
    struct park park;
    size_t len;
    uint8_t *ptr;
    open_world(&w, &park, PATIENT_MS);
    int fd = greet(&w), small = greet(&w);
    for (unsigned i = 0; i < BIG; i++) {
        send_frame(fd, 1, (uint8_t)i, 'p');
    }
    world_wait_parked(&park.mutex, &park.count, BIG);
    for (size_t i = 0; i < BIG; i++) {
        ck_assert_int_eq(kedge_net_reply_begin(park.held[i], FRAME, &ptr), KEDGE_OK);
        memset(ptr, 1, FRAME);
    }
    ck_assert_uint_ge(in_flight(&w), BIG * FRAME);
    send_frame(small, 100, 2, 's');
    ck_assert_uint_eq(receive_frame(small, &len), 2);
    for (size_t i = 0; i < BIG; i++) {
        kedge_net_reply_send(park.held[i]);
        receive_frame(fd, &len);
        ck_assert_uint_eq(len, FRAME);
    }
    expect_nothing_in_flight(&w);
    close(fd);
    close(small);
    world_close(&w);
}
END_TEST

/* Those that wait for the budget may go, and those whose requests are held may too. */
START_TEST(test_leaving_while_waiting)
{
    enum { ALL = 30 };
    struct world w;
    struct park park;
    int fds[ALL];
    open_world(&w, &park, STALL_MS);
    int hog = greet(&w);
    send_head(hog, FRAME, 1);
    WORLD_WAIT(&w, bytes_in_flight, FRAME);
    for (int i = 0; i < ALL; i++) {
        fds[i] = greet(&w);
        if (i % 2 == 0) {
            send_frame(fds[i], i % 4 == 0 ? FRAME / 2 : 8, 1, 'p');
        } else {
            send_head(fds[i], FRAME, 1);
        }
    }
    const struct linger reset = {1, 0};
    for (int i = 0; i < ALL; i++) {
        if (i % 3 != 0) {
            setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        }
        close(fds[i]);
    }
    close(hog);
    for (int i = 0; i < 2000 && in_flight(&w) > 0; i++) {
        kedge_os_sleep_ms(2);
        pthread_mutex_lock(&park.mutex);
        while (park.count > 0) {
            kedge_net_reply(park.held[--park.count], kedge_view_str("too late"));
        }
        pthread_mutex_unlock(&park.mutex);
    }
    ck_assert_uint_eq(in_flight(&w), 0);
    expect_service(&w);
    world_close(&w);
}
END_TEST

int main(void)
{
    signal(SIGPIPE, SIG_DFL); /* nothing here may raise it */
    if (kedge_crypto_init() != KEDGE_OK) {
        return 1;
    }
    Suite *s = suite_create("net");
    TCase *t = tcase_create("abuse");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, test_frames_in_pieces_and_in_heaps);
    tcase_add_test(t, test_any_order);
    tcase_add_test(t, test_other_protocols);
    tcase_add_test(t, test_too_long);
    tcase_add_test(t, test_slow_senders);
    tcase_add_test(t, test_slow_reader);
    tcase_add_test(t, test_too_many_unanswered);
    tcase_add_test(t, test_budget_is_fair);
    tcase_add_test(t, test_unannounced_replies_leave_room);
    tcase_add_test(t, test_leaving_while_waiting);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
