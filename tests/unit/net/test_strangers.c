/* A server that knows some keys, and those who are none of them: what they may, what they may not, and that
 * known keys and the door are served whatever they do. Over tcp://, where a key is only said, and TLS. */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "tests/unit/net/raw.h"
#include "tests/unit/net/world.h"

enum { FRAME = 64 * 1024, GREETING = 44, HEAD = 8, STALL_MS = 1200 };

/* Knows one key, from the moment on at which it is told to. Echoes; what begins with p is parked, what begins
 * with e was of use. */
struct site {
    struct kedge_public_key key;
    atomic_bool is_known;
    atomic_uint busy;
    pthread_mutex_t mutex;
    struct kedge_net_request *held[64];
    size_t count;
};

static bool knows(void *arg, const struct kedge_public_key *key)
{
    struct site *site = arg;
    return atomic_load(&site->is_known) && kedge_public_key_eq(key, &site->key);
}

static void say_busy(void *arg, struct kedge_net_request *req, uint32_t retry_ms)
{
    struct site *site = arg;
    ck_assert_uint_eq(retry_ms, KEDGE_NET_RETRY_MS);
    atomic_fetch_add(&site->busy, 1);
    kedge_net_reply(req, kedge_view_str("later"));
}

static void handle(void *arg, struct kedge_net_request *req)
{
    struct site *site = arg;
    struct kedge_view v = kedge_net_request_view(req);
    if (v.len > 0 && v.ptr[0] == 'p') {
        pthread_mutex_lock(&site->mutex);
        site->held[site->count++] = req;
        pthread_mutex_unlock(&site->mutex);
        return;
    }
    if (v.len > 0 && v.ptr[0] == 'e') {
        kedge_net_request_earn(req);
    }
    kedge_net_reply(req, v);
}

static void open_world_of(struct world *w, struct site *site, unsigned strangers, uint32_t stall_ms)
{
    struct rlimit files;
    world_init(w, handle, site);
    *site = (struct site){.key = w->client_key.public, .mutex = PTHREAD_MUTEX_INITIALIZER};
    atomic_store(&site->is_known, true);
    w->options.frame_max = FRAME;
    w->options.budget = 2 * FRAME;
    w->options.strangers = strangers;
    w->options.stall_ms = stall_ms;
    w->options.knows = knows;
    w->options.busy = say_busy;
    world_start(w);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
}

static void open_world(struct world *w, struct site *site, unsigned strangers)
{
    open_world_of(w, site, strangers, 0);
}

static struct kedge_net_counters counters_of(struct world *w)
{
    struct kedge_net_counters c;
    kedge_net_server_counters(w->server, &c);
    return c;
}

static bool send_all(int fd, const void *bytes, size_t len)
{
    return send(fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len;
}

static bool receive_all(int fd, void *bytes, size_t len)
{
    return recv(fd, bytes, len, MSG_WAITALL) == (ssize_t)len;
}

/* Greets as the holder of a key (NULL: of none); false: it was not let in. */
static bool greet_over(int fd, const struct kedge_public_key *key)
{
    uint8_t greeting[GREETING] = {'K', 'E', 'D', 'G', 'E', '\r', '\n', 0, 0, 0, 0, 1}, answer[GREETING];
    if (key) {
        memcpy(greeting + 12, key->b, sizeof key->b);
    }
    return send_all(fd, greeting, sizeof greeting) && receive_all(fd, answer, sizeof answer);
}

static int greet(struct world *w, const struct kedge_public_key *key)
{
    int fd = raw_connect(world_port(w, WORLD_TCP));
    ck_assert(greet_over(fd, key));
    return fd;
}

static void send_head(int fd, uint32_t len, uint8_t call)
{
    const uint8_t head[HEAD] = {
        (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len, 0, 0, 0, call};
    ck_assert(send_all(fd, head, sizeof head));
}

/* The known key and the door are served, the first from the strangers' own address. */
static void expect_service(struct world *w)
{
    static const unsigned addresses[] = {WORLD_TLS, WORLD_TCP, WORLD_IPC};
    for (size_t i = 0; i < 3; i++) {
        struct kedge_net_client *client = world_client(w, addresses[i]);
        world_expect_echo(client, "good");
        kedge_net_client_close(client);
    }
}

static void expect_large(struct kedge_net_client *client)
{
    static char large[FRAME];
    struct kedge_net_reply reply;
    memset(large, 'x', sizeof large);
    int err = kedge_net_call(client, kedge_view_of((const uint8_t *)large, sizeof large), 20000, &reply);
    ck_assert_msg(err == KEDGE_OK, "%s", kedge_strerror(err));
    ck_assert_uint_eq(reply.view.len, sizeof large);
    kedge_net_reply_release(&reply);
}

/* A frame that is announced costs nothing before it is known who announces it: strangers' large ones end the
 * connection, and those of known keys go through. */
START_TEST(test_strangers_take_no_memory)
{
    enum { DRIPS = 14 };
    struct world w;
    struct site site;
    int fds[DRIPS];
    open_world(&w, &site, 0);
    for (int i = 0; i < DRIPS; i++) {
        fds[i] = greet(&w, NULL);
        send_head(fds[i], i % 2 ? FRAME : KEDGE_NET_STRANGER_FRAME_MAX + 1, 1);
    }
    struct kedge_net_client *client = world_client(&w, WORLD_TLS);
    for (int i = 0; i < 4; i++) {
        expect_large(client);
    }
    for (int i = 0; i < DRIPS; i++) {
        ck_assert_msg(raw_is_closed(fds[i], WORLD_PATIENCE_MS), "drip %d stayed", i);
        close(fds[i]);
    }
    int small = greet(&w, NULL);
    uint8_t body[KEDGE_NET_STRANGER_FRAME_MAX] = {'s'}, answer[HEAD + sizeof body];
    send_head(small, sizeof body, 3);
    ck_assert(send_all(small, body, sizeof body));
    ck_assert(receive_all(small, answer, sizeof answer));
    ck_assert_uint_eq(answer[7], 3);
    close(small);
    kedge_net_client_close(client);
    world_close(&w);
}
END_TEST

/* A stranger's half frame is ended in seconds, as is a connection that asks nothing. */
START_TEST(test_strangers_have_seconds)
{
    struct world w;
    struct site site;
    open_world_of(&w, &site, 0, STALL_MS);
    int half = greet(&w, NULL), idle = greet(&w, NULL), known = greet(&w, &w.client_key.public);
    uint64_t begin = kedge_os_now_ns();
    send_head(half, 100, 1);
    ck_assert(raw_is_closed(half, 20000));
    ck_assert(raw_is_closed(idle, 20000));
    ck_assert_uint_ge(kedge_os_now_ns() - begin, STALL_MS * 1000000ull);
    ck_assert(!raw_is_closed(known, 2 * STALL_MS));
    close(half);
    close(idle);
    close(known);
    expect_service(&w);
    world_close(&w);
}
END_TEST

/* A site that enrols is a stranger, and one of ours from the reply on that says so. */
START_TEST(test_becoming_known)
{
    struct world w;
    struct site site;
    struct kedge_net_reply reply;
    open_world(&w, &site, 0);
    atomic_store(&site.is_known, false);
    struct kedge_net_client *client = world_client(&w, WORLD_TLS);
    world_expect_echo(client, "enrol");
    ck_assert_uint_eq(counters_of(&w).strangers, 1);
    static const uint8_t large[FRAME];
    ck_assert_int_ne(kedge_net_call(client, kedge_view_of(large, sizeof large), 5000, &reply), KEDGE_OK);
    world_expect_echo(client, "enrol"); /* dialled again */
    atomic_store(&site.is_known, true);
    world_expect_echo(client, "enrolled");
    expect_large(client);
    ck_assert_uint_eq(counters_of(&w).strangers, 0);
    kedge_net_client_close(client);
    world_close(&w);
}
END_TEST

/* Many more than may be, all of one address: most are turned away or give way, and who is known gets in. */
START_TEST(test_silent_crowd)
{
    enum { CROWD = 700, PLACES = 64 };
    struct world w;
    struct site site;
    static int fds[CROWD];
    open_world(&w, &site, PLACES);
    struct kedge_net_client *before = world_client(&w, WORLD_TLS);
    world_expect_echo(before, "before");
    for (int i = 0; i < CROWD; i++) {
        fds[i] = raw_connect(world_port(&w, i % 2 ? WORLD_TLS : WORLD_TCP));
        ck_assert_uint_le(counters_of(&w).strangers, PLACES / 4);
    }
    WORLD_WAIT(&w, refused, CROWD - 512); /* beyond what may arrive at once, however slowly this goes */
    struct kedge_net_client *door = world_client(&w, WORLD_IPC);
    world_expect_echo(door, "the door");
    world_expect_echo(before, "was here before");
    expect_large(before);
    /* Those who come while the crowd is there get in as soon as its first ones may be sent away. */
    expect_service(&w);
    for (int i = 0; i < CROWD; i++) {
        close(fds[i]);
    }
    kedge_net_client_close(before);
    kedge_net_client_close(door);
    world_close(&w);
}
END_TEST

/* Strangers who have said who they are and then nothing more: the one that is idle for longest makes room. */
START_TEST(test_idle_strangers_give_way)
{
    enum { PLACES = 32, ONE = PLACES / 4 };
    struct world w;
    struct site site;
    int fds[ONE + 1];
    open_world(&w, &site, PLACES);
    for (int i = 0; i < ONE; i++) {
        fds[i] = greet(&w, NULL);
        kedge_os_sleep_ms(2);
    }
    /* No place for another while all of them are new; then the first of them goes. */
    fds[ONE] = -1;
    for (int tries = 0; counters_of(&w).evicted == 0; tries++) {
        ck_assert_int_lt(tries, 1000);
        if (fds[ONE] >= 0) {
            close(fds[ONE]);
        }
        kedge_os_sleep_ms(50); /* fewer in a second than may arrive */
        fds[ONE] = raw_connect(world_port(&w, WORLD_TCP));
        (void)raw_is_closed(fds[ONE], 100);
    }
    ck_assert(raw_is_closed(fds[0], WORLD_PATIENCE_MS));
    expect_service(&w);
    for (int i = 0; i <= ONE; i++) {
        close(fds[i]);
    }
    world_close(&w);
}
END_TEST

/* One key's connections are bounded; the idle ones of its own give way, not other peoples'. */
START_TEST(test_connections_of_one_key)
{
    enum { MANY = KEDGE_NET_PER_KEY_MAX + 4 };
    struct world w;
    struct site site;
    int fds[MANY];
    open_world(&w, &site, 0);
    for (int i = 0; i < MANY; i++) {
        fds[i] = greet(&w, &w.client_key.public);
    }
    ck_assert_uint_eq(counters_of(&w).connections, KEDGE_NET_PER_KEY_MAX);
    ck_assert_uint_eq(counters_of(&w).evicted, MANY - KEDGE_NET_PER_KEY_MAX);
    for (int i = 0; i < MANY - KEDGE_NET_PER_KEY_MAX; i++) {
        ck_assert(raw_is_closed(fds[i], WORLD_PATIENCE_MS));
    }
    /* With all of them at work the next one is refused. */
    for (int i = MANY - KEDGE_NET_PER_KEY_MAX; i < MANY; i++) {
        send_head(fds[i], 1, 1);
        ck_assert(send_all(fds[i], "p", 1));
    }
    world_wait_parked(&site.mutex, &site.count, KEDGE_NET_PER_KEY_MAX);
    int more = raw_connect(world_port(&w, WORLD_TCP));
    uint8_t greeting[GREETING] = {'K', 'E', 'D', 'G', 'E', '\r', '\n', 0, 0, 0, 0, 1};
    memcpy(greeting + 12, w.client_key.public.b, KEDGE_KEY_LEN);
    ck_assert(send_all(more, greeting, sizeof greeting));
    ck_assert(raw_is_closed(more, WORLD_PATIENCE_MS));
    for (size_t i = 0; i < site.count; i++) {
        kedge_net_reply(site.held[i], kedge_view_str("done"));
    }
    for (int i = 0; i < MANY; i++) {
        close(fds[i]);
    }
    close(more);
    world_close(&w);
}
END_TEST

/* One call after the other, `count` of them; how many were told to come back later. */
static unsigned ask(struct kedge_net_client *client, const char *text, unsigned count)
{
    unsigned later = 0;
    for (unsigned i = 0; i < count; i++) {
        struct kedge_net_reply reply;
        ck_assert_int_eq(kedge_net_call(client, kedge_view_str(text), 20000, &reply), KEDGE_OK);
        later += kedge_view_eq(reply.view, kedge_view_str("later"));
        kedge_net_reply_release(&reply);
    }
    return later;
}

/* Who asks too often is told so, and then not read for a while: what he asks costs nothing. */
START_TEST(test_rate_of_a_key)
{
    struct world w;
    struct site site;
    open_world(&w, &site, 0);
    struct kedge_net_client *client = world_client(&w, WORLD_TCP), *door = world_client(&w, WORLD_IPC);
    uint64_t begin = kedge_os_now_ns();
    unsigned asked = 0;
    while (atomic_load(&site.busy) == 0) {
        ck_assert_uint_lt(asked, 100000);
        ck_assert_uint_eq(ask(client, "x", 1), atomic_load(&site.busy));
        asked++;
    }
    uint64_t took_ms = (kedge_os_now_ns() - begin) / 1000000;
    ck_assert_uint_ge(asked, KEDGE_NET_REQUESTS_BURST);
    ck_assert_uint_le(asked, KEDGE_NET_REQUESTS_BURST + 2 + KEDGE_NET_REQUESTS * took_ms / 1000);
    begin = kedge_os_now_ns();
    ck_assert_uint_eq(ask(client, "x", 1), 0);
    ck_assert_uint_ge(kedge_os_now_ns() - begin, (KEDGE_NET_RETRY_MS - 50) * 1000000ull);
    ck_assert_uint_eq(ask(door, "x", 2 * KEDGE_NET_REQUESTS_BURST), 0); /* the owner is not counted */
    ck_assert_uint_eq(counters_of(&w).put_off, atomic_load(&site.busy));
    kedge_net_client_close(client);
    kedge_net_client_close(door);
    world_close(&w);
}
END_TEST

/* A key that brings something new with one request in eight may go as fast as it can. */
START_TEST(test_work_is_not_counted)
{
    struct world w;
    struct site site;
    open_world(&w, &site, 0);
    struct kedge_net_client *client = world_client(&w, WORLD_TCP);
    for (unsigned i = 0; i < 4 * KEDGE_NET_REQUESTS_BURST / KEDGE_NET_REQUEST_EARNS; i++) {
        ck_assert_uint_eq(ask(client, "x", KEDGE_NET_REQUEST_EARNS - 1), 0);
        ck_assert_uint_eq(ask(client, "earn", 1), 0);
    }
    for (unsigned i = 0; i < 2 * KEDGE_NET_REQUESTS_BURST; i++) {
        expect_large(client); /* nor are pieces of files */
    }
    ck_assert_uint_eq(atomic_load(&site.busy), 0);
    kedge_net_client_close(client);
    world_close(&w);
}
END_TEST

/* Strangers of one address share a rate, over as many connections and keys as they like. */
START_TEST(test_rate_of_an_address)
{
    enum { CLIENTS = 4 };
    struct world w;
    struct site site;
    open_world(&w, &site, 0);
    struct kedge_net_client *clients[CLIENTS];
    uint64_t begin = kedge_os_now_ns();
    unsigned asked = 0;
    for (int i = 0; i < CLIENTS; i++) {
        struct kedge_key_pair key;
        kedge_key_generate(&key);
        clients[i] = world_client_as(&w, WORLD_TLS, &key);
    }
    while (atomic_load(&site.busy) == 0) {
        ck_assert_uint_lt(asked, 100000);
        (void)ask(clients[asked++ % CLIENTS], "x", 1);
    }
    uint64_t took_ms = (kedge_os_now_ns() - begin) / 1000000;
    ck_assert_uint_ge(asked, KEDGE_NET_STRANGER_REQUESTS_BURST);
    ck_assert_uint_le(asked,
                      KEDGE_NET_STRANGER_REQUESTS_BURST + 2 + KEDGE_NET_STRANGER_REQUESTS * took_ms / 1000);
    expect_service(&w);
    for (int i = 0; i < CLIENTS; i++) {
        kedge_net_client_close(clients[i]);
    }
    world_close(&w);
}
END_TEST

/* Many addresses, each of which asks little enough: all strangers together have a rate, too. */
START_TEST(test_rate_of_many_addresses)
{
    enum { ADDRESSES = 20, EACH = KEDGE_NET_STRANGER_REQUESTS_BURST - 10 };
    struct world w;
    struct site site;
    int fds[ADDRESSES];
    open_world(&w, &site, 0);
    for (unsigned i = 0; i < ADDRESSES; i++) {
        fds[i] = raw_connect_from(world_port(&w, WORLD_TCP), (unsigned char)(i + 1));
        ck_assert(greet_over(fds[i], NULL));
    }
    uint64_t begin = kedge_os_now_ns();
    unsigned asked = 0;
    for (; asked < ADDRESSES * EACH && atomic_load(&site.busy) == 0; asked++) {
        static const uint8_t hello[HEAD + 5] = {0, 0, 0, 5, 0, 0, 0, 1, 'h', 'e', 'l', 'l', 'o'};
        uint8_t answer[sizeof hello];
        ck_assert(send_all(fds[asked % ADDRESSES], hello, sizeof hello)); /* at once, else the kernel waits */
        ck_assert(receive_all(fds[asked % ADDRESSES], answer, sizeof answer));
    }
    uint64_t took_ms = (kedge_os_now_ns() - begin) / 1000000;
    ck_assert_uint_ge(asked, KEDGE_NET_ALL_REQUESTS_BURST);
    ck_assert_uint_le(asked, KEDGE_NET_ALL_REQUESTS_BURST + 2 + KEDGE_NET_ALL_REQUESTS * took_ms / 1000);
    expect_service(&w);
    for (unsigned i = 0; i < ADDRESSES; i++) {
        close(fds[i]);
    }
    world_close(&w);
}
END_TEST

/* A known key that does nothing but dial is turned away before its next handshake, as a stranger is. */
START_TEST(test_known_key_that_dials)
{
    enum { DIALS = 2000 };
    struct world w;
    struct site site;
    unsigned let_in = 0;
    open_world(&w, &site, 0);
    struct kedge_net_client *before = world_client(&w, WORLD_TLS);
    world_expect_echo(before, "before");
    uint64_t begin = kedge_os_now_ns();
    for (int i = 0; i < DIALS; i++) {
        int fd = raw_connect(world_port(&w, WORLD_TCP));
        let_in += greet_over(fd, &w.client_key.public);
        close(fd);
    }
    uint64_t took_ms = (kedge_os_now_ns() - begin) / 1000000;
    ck_assert_uint_ge(let_in, KEDGE_NET_ARRIVALS_BURST);
    ck_assert_uint_le(let_in, 2 * (KEDGE_NET_ARRIVALS_BURST + 2 + KEDGE_NET_ARRIVALS * took_ms / 1000));
    world_expect_echo(before, "was here before");
    int other = raw_connect_from(world_port(&w, WORLD_TCP), 1);
    ck_assert(greet_over(other, &w.client_key.public)); /* the same site, from where nobody floods */
    close(other);
    kedge_net_client_close(before);
    world_close(&w);
}
END_TEST

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* OpenSSL's own sockets in raw.c write with write(2) */
    if (kedge_crypto_init() != KEDGE_OK) {
        return 1;
    }
    Suite *s = suite_create("net");
    TCase *t = tcase_create("strangers");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, test_strangers_take_no_memory);
    tcase_add_test(t, test_strangers_have_seconds);
    tcase_add_test(t, test_becoming_known);
    tcase_add_test(t, test_silent_crowd);
    tcase_add_test(t, test_idle_strangers_give_way);
    tcase_add_test(t, test_connections_of_one_key);
    tcase_add_test(t, test_rate_of_a_key);
    tcase_add_test(t, test_work_is_not_counted);
    tcase_add_test(t, test_rate_of_an_address);
    tcase_add_test(t, test_rate_of_many_addresses);
    tcase_add_test(t, test_known_key_that_dials);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
