/* Peers that are not who they should be, or not what. After each the server must still serve. */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "tests/unit/net/raw.h"
#include "tests/unit/net/world.h"

static void expect_service(struct world *w)
{
    struct kedge_net_client *client = world_client(w, WORLD_TLS);
    world_expect_echo(client, "good");
    kedge_net_client_close(client);
}

START_TEST(test_wrong_server_key)
{
    struct world w;
    struct kedge_key_pair other;
    struct kedge_net_client *client;
    struct kedge_net_reply reply;
    world_open(&w, world_echo, NULL);
    kedge_key_generate(&other);
    const struct kedge_net_client_options options = {
        .url = kedge_net_server_url(w.server, WORLD_TLS), .key = &w.client_key, .server_key = &other.public};
    uint64_t begin = kedge_os_now_ns();
    ck_assert_int_eq(kedge_net_client_open(&options, &client, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_net_call(client, kedge_view_str("x"), WORLD_PATIENCE_MS, &reply),
                     KEDGE_E_PEER_AUTH);
    ck_assert_uint_lt(kedge_os_now_ns() - begin, 20000000000u); /* it waits for nothing */
    ck_assert_int_eq(kedge_net_call(client, kedge_view_str("x"), 5000, &reply), KEDGE_E_PEER_AUTH);
    kedge_net_client_close(client);
    expect_service(&w);
    struct kedge_net_counters counters;
    kedge_net_server_counters(w.server, &counters);
    ck_assert_uint_eq(counters.requests, 1);
    world_close(&w);
}
END_TEST

START_TEST(test_bad_clients)
{
    struct world w;
    world_open(&w, world_echo, NULL);
    unsigned port = world_port(&w, WORLD_TLS);
    raw_prepare();
    ck_assert(raw_try(RAW_GOOD, port, &w.client_key, 200)); /* the instrument can tell */
    for (enum raw_kind kind = RAW_NO_CERT; kind < RAW_KINDS; kind++) {
        uint64_t begin = kedge_os_now_ns();
        ck_assert_msg(!raw_try(kind, port, &w.client_key, WORLD_PATIENCE_MS), "kind %d was let in",
                      (int)kind);
        ck_assert_msg(kedge_os_now_ns() - begin < (KEDGE_NET_HANDSHAKE_MS - 500) * 1000000ull,
                      "kind %d had to wait", (int)kind);
        expect_service(&w);
    }
    struct kedge_net_counters counters;
    kedge_net_server_counters(w.server, &counters);
    ck_assert_uint_ge(counters.refused, 7);
    world_close(&w);
}
END_TEST

START_TEST(test_silent_clients_are_closed)
{
    enum { SILENT = 20, SLACK_MS = 20000 };
    struct world w;
    int fds[SILENT];
    world_open(&w, world_echo, NULL);
    unsigned port = world_port(&w, WORLD_TLS);
    struct kedge_net_client *steady = world_client(&w, WORLD_TLS);
    world_expect_echo(steady, "before");
    uint64_t begin = kedge_os_now_ns();
    for (int i = 0; i < SILENT; i++) {
        fds[i] = raw_connect(port);
    }
    WORLD_WAIT(&w, handshakes, SILENT);
    expect_service(&w);
    for (int i = 0; i < SILENT; i++) {
        ck_assert_msg(raw_is_closed(fds[i], KEDGE_NET_HANDSHAKE_MS + SLACK_MS), "silent client %d stayed", i);
        close(fds[i]);
    }
    uint64_t took_ms = (kedge_os_now_ns() - begin) / 1000000;
    ck_assert(took_ms >= KEDGE_NET_HANDSHAKE_MS - 100 && took_ms < KEDGE_NET_HANDSHAKE_MS + SLACK_MS);
    struct kedge_net_counters counters;
    kedge_net_server_counters(w.server, &counters);
    ck_assert_uint_eq(counters.silent, SILENT);
    ck_assert_uint_eq(counters.handshakes, 0);
    world_expect_echo(steady, "after"); /* the quiet but proper connection stayed */
    expect_service(&w);
    kedge_net_client_close(steady);
    world_close(&w);
}
END_TEST

START_TEST(test_handshake_limit)
{
    enum { SILENT = KEDGE_NET_STRANGERS_MAX + 8 };
    struct rlimit limit;
    static int fds[SILENT];
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    if (limit.rlim_cur < 2 * SILENT + 100 || setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        printf("skipped: too few descriptors\n");
        return;
    }
    struct world w;
    world_open(&w, world_echo, NULL);
    unsigned port = world_port(&w, WORLD_TLS);
    for (int i = 0; i < SILENT; i++) {
        fds[i] = raw_connect(port);
    }
    /* The last ones are refused, or the first ones give way when they have been silent for a while. */
    WORLD_WAIT(&w, turned_away, SILENT - KEDGE_NET_STRANGERS_MAX);
    struct kedge_net_counters counters;
    kedge_net_server_counters(w.server, &counters);
    ck_assert_uint_le(counters.handshakes, KEDGE_NET_STRANGERS_MAX);
    for (int i = 0; i < SILENT; i++) {
        close(fds[i]);
    }
    expect_service(&w);
    world_close(&w);
}
END_TEST

static bool admit_other(void *arg, const struct kedge_net_peer *peer)
{
    return !kedge_public_key_eq(&peer->key, arg);
}

START_TEST(test_admit)
{
    struct world w;
    struct kedge_net_reply reply;
    struct kedge_key_pair other;
    world_init(&w, world_echo, &w.client_key.public);
    w.options.admit = admit_other;
    w.options.arg = &w.client_key.public;
    world_start(&w);
    struct kedge_net_client *client = world_client(&w, WORLD_TLS);
    int err = kedge_net_call(client, kedge_view_str("x"), 500, &reply);
    ck_assert(err == KEDGE_E_UNREACHABLE || err == KEDGE_E_CLOSED || err == KEDGE_E_TIMEOUT);
    WORLD_WAIT(&w, refused, 1);
    kedge_net_client_close(client);
    kedge_key_generate(&other);
    client = world_client_as(&w, WORLD_TLS, &other);
    world_expect_echo(client, "other");
    kedge_net_client_close(client);
    struct kedge_net_counters counters;
    kedge_net_server_counters(w.server, &counters);
    ck_assert_uint_ge(counters.refused, 1);
    ck_assert_uint_eq(counters.requests, 1);
    world_close(&w);
}
END_TEST

START_TEST(test_drop_key_closes_all_of_it)
{
    enum { CLIENTS = 5 };
    struct world w;
    struct kedge_net_client *clients[CLIENTS], *other_client;
    struct kedge_key_pair other;
    struct kedge_net_counters counters;
    world_open(&w, world_echo, NULL);
    kedge_key_generate(&other);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = world_client(&w, WORLD_TLS);
        world_expect_echo(clients[i], "x");
    }
    other_client = world_client_as(&w, WORLD_TLS, &other);
    world_expect_echo(other_client, "x");
    ck_assert_uint_eq(kedge_net_server_drop_key(w.server, &w.client_key.public), CLIENTS);
    world_expect_echo(other_client, "x");
    kedge_net_server_counters(w.server, &counters);
    ck_assert_uint_eq(counters.refused, CLIENTS);
    for (int i = 0; i < CLIENTS; i++) {
        struct kedge_net_reply reply;
        int err = kedge_net_call(clients[i], kedge_view_str("dropped"), 10000, &reply);
        ck_assert(err == KEDGE_OK || err == KEDGE_E_CLOSED); /* it may not know yet */
        if (err == KEDGE_OK) {
            kedge_net_reply_release(&reply);
        }
        world_expect_echo(clients[i], "dialled again"); /* nothing but admit keeps a dropped key out */
        kedge_net_client_close(clients[i]);
    }
    kedge_net_client_close(other_client);
    world_close(&w);
}
END_TEST

/* One server of a bad kind, played by a thread. */
struct bad_server {
    pthread_t thread;
    int listener;
    enum raw_kind kind;
    struct kedge_key_pair key;
};

static void *serve_badly(void *arg)
{
    struct bad_server *s = arg;
    raw_serve(s->listener, s->kind, &s->key);
    return NULL;
}

START_TEST(test_bad_servers)
{
    static const struct {
        enum raw_kind kind;
        int err;
    } cases[] = {
        {RAW_RSA_CERT, KEDGE_E_PEER_AUTH},
        {RAW_TLS12, KEDGE_E_PEER_AUTH},
        {RAW_HTTP, KEDGE_E_PEER_AUTH},
        {RAW_GOOD, KEDGE_E_PEER_AUTH}, /* a sound certificate of another key */
        {RAW_INSTANT_CLOSE, KEDGE_E_UNREACHABLE},
    };
    struct kedge_key_pair own, pinned;
    raw_prepare();
    kedge_key_generate(&own);
    kedge_key_generate(&pinned);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bad_server server = {.kind = cases[i].kind};
        unsigned port;
        char url[64];
        struct kedge_net_client *client;
        struct kedge_net_reply reply;
        server.listener = raw_listen(&port);
        kedge_key_generate(&server.key);
        snprintf(url, sizeof url, "tls+tcp://127.0.0.1:%u", port);
        const struct kedge_net_client_options options = {
            .url = url,
            .key = &own,
            .server_key = &pinned.public,
            .connect_ms = cases[i].err == KEDGE_E_UNREACHABLE ? 1000 : 20000};
        ck_assert_int_eq(pthread_create(&server.thread, NULL, serve_badly, &server), 0);
        ck_assert_int_eq(kedge_net_client_open(&options, &client, NULL), KEDGE_OK);
        int err = kedge_net_call(client, kedge_view_str("x"), 20000, &reply);
        ck_assert_msg(err == cases[i].err, "case %zu: %s", i, kedge_strerror(err));
        pthread_join(server.thread, NULL);
        close(server.listener);
        kedge_net_client_close(client);
    }
}
END_TEST

START_TEST(test_silent_server)
{
    struct kedge_key_pair own, pinned;
    struct kedge_net_client *client;
    struct kedge_net_reply reply;
    unsigned port;
    char url[64];
    kedge_key_generate(&own);
    kedge_key_generate(&pinned);
    int listener = raw_listen(&port);
    snprintf(url, sizeof url, "tls+tcp://127.0.0.1:%u", port);
    const struct kedge_net_client_options options = {
        .url = url, .key = &own, .server_key = &pinned.public, .connect_ms = 300};
    ck_assert_int_eq(kedge_net_client_open(&options, &client, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_net_call(client, kedge_view_str("x"), WORLD_PATIENCE_MS, &reply),
                     KEDGE_E_UNREACHABLE);
    kedge_net_client_close(client); /* does not hang on the unfinished handshake */
    close(listener);
}
END_TEST

START_TEST(test_mixed_cycles)
{
    enum { CYCLES = 300 };
    static const enum raw_kind kinds[] = {RAW_RESET, RAW_INSTANT_CLOSE, RAW_NO_CERT, RAW_HALF_HELLO,
                                          RAW_HTTP,  RAW_NOISE,         RAW_TLS12};
    struct world w;
    struct kedge_key_pair wrong;
    world_open(&w, world_echo, NULL);
    unsigned port = world_port(&w, WORLD_TLS);
    kedge_key_generate(&wrong);
    for (int i = 0; i < CYCLES; i++) {
        if (i % 3 == 0) {
            expect_service(&w);
        } else if (i % 3 == 1) {
            ck_assert(!raw_try(kinds[i / 3 % 7], port, &w.client_key, WORLD_PATIENCE_MS));
        } else {
            struct kedge_net_client *client;
            struct kedge_net_reply reply;
            const struct kedge_net_client_options options = {.url = kedge_net_server_url(w.server, WORLD_TLS),
                                                             .key = &w.client_key,
                                                             .server_key = &wrong.public};
            ck_assert_int_eq(kedge_net_client_open(&options, &client, NULL), KEDGE_OK);
            if (i % 2 == 0) { /* else close it in the middle of the handshake */
                ck_assert_int_eq(kedge_net_call(client, kedge_view_str("x"), 5000, &reply),
                                 KEDGE_E_PEER_AUTH);
            }
            kedge_net_client_close(client);
        }
    }
    expect_service(&w);
    world_close(&w);
}
END_TEST

/* Knows everybody; the key of the first who comes is dropped while its connection is being let in. */
struct gate {
    struct world *world;
    atomic_uint asked;
};

static bool knows_and_drops(void *arg, const struct kedge_public_key *key)
{
    struct gate *gate = arg;
    if (atomic_fetch_add(&gate->asked, 1) == 0) {
        (void)kedge_net_server_drop_key(gate->world->server, key);
    }
    return true;
}

static void say_nothing(void *arg, struct kedge_net_request *req, uint32_t retry_ms)
{
    (void)arg, (void)retry_ms;
    kedge_net_reply(req, kedge_view_str(""));
}

/* A connection that is not open yet is not among those which dropping a key closes. It must not open
 * afterwards as one of a known key, or it would stay for as long as its peer likes. */
START_TEST(test_drop_key_while_it_is_let_in)
{
    struct world w;
    struct gate gate = {.world = &w};
    struct kedge_net_counters counters;
    world_init(&w, world_echo, &gate);
    w.options.knows = knows_and_drops;
    w.options.busy = say_nothing;
    world_start(&w);
    struct kedge_net_client *client = world_client(&w, WORLD_TLS);
    world_expect_echo(client, "dialled again");
    kedge_net_server_counters(w.server, &counters);
    ck_assert_uint_eq(counters.refused, 1);
    ck_assert_uint_eq(counters.accepted, 1);
    kedge_net_client_close(client);
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
    TCase *t = tcase_create("hostile");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, test_wrong_server_key);
    tcase_add_test(t, test_bad_clients);
    tcase_add_test(t, test_silent_clients_are_closed);
    tcase_add_test(t, test_handshake_limit);
    tcase_add_test(t, test_admit);
    tcase_add_test(t, test_drop_key_closes_all_of_it);
    tcase_add_test(t, test_drop_key_while_it_is_let_in);
    tcase_add_test(t, test_bad_servers);
    tcase_add_test(t, test_silent_server);
    tcase_add_test(t, test_mixed_cycles);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
