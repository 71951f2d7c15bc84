/* Requests and replies over every transport: content, limits, loss, parking, budget. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "tests/unit/net/world.h"

/* ---- content ---- */

START_TEST(test_round_trip)
{
    struct world w;
    world_open(&w, world_echo, NULL);
    for (unsigned i = 0; i < 3; i++) {
        struct kedge_net_client *client = world_client(&w, i);
        world_expect_echo(client, "hello");
        world_expect_echo(client, "");
        world_expect_echo(client, "again");
        ck_assert(kedge_net_client_connected(client));
        kedge_net_client_close(client);
    }
    struct kedge_net_counters counters;
    kedge_net_server_counters(w.server, &counters);
    ck_assert_uint_eq(counters.requests, 9);
    ck_assert_uint_eq(counters.held, 0);
    ck_assert_uint_eq(counters.accepted, 3);
    world_close(&w);
}
END_TEST

START_TEST(test_large_in_place)
{
    struct world w;
    world_open(&w, world_echo, NULL);
    for (unsigned i = 0; i < 3; i++) {
        struct kedge_net_client *client = world_client(&w, i);
        struct kedge_net_outgoing out;
        struct kedge_net_reply reply;
        ck_assert_int_eq(kedge_net_call_begin(client, KEDGE_FRAME_MAX, &out), KEDGE_OK);
        ck_assert_uint_eq(out.len, KEDGE_FRAME_MAX);
        for (size_t j = 0; j < out.len; j++) {
            out.ptr[j] = (uint8_t)(j * 2654435761u >> 13);
        }
        ck_assert_int_eq(kedge_net_call_send(client, &out, 20000, &reply), KEDGE_OK);
        ck_assert_ptr_null(out.impl);
        ck_assert_uint_eq(reply.view.len, KEDGE_FRAME_MAX);
        for (size_t j = 0; j < reply.view.len; j++) {
            if (reply.view.ptr[j] != (uint8_t)(j * 2654435761u >> 13)) {
                ck_abort_msg("byte %zu differs over %s", j, kedge_net_server_url(w.server, i));
            }
        }
        kedge_net_reply_release(&reply);
        kedge_net_client_close(client);
    }
    world_close(&w);
}
END_TEST

static void reply_who(void *arg, struct kedge_net_request *req)
{
    (void)arg;
    const struct kedge_net_peer *peer = kedge_net_request_peer(req);
    kedge_net_reply(req, kedge_view_of(peer, sizeof *peer));
}

START_TEST(test_peer_is_known)
{
    static const enum kedge_net_kind kinds[] = {KEDGE_NET_TLS, KEDGE_NET_IPC, KEDGE_NET_TCP};
    struct world w;
    world_open(&w, reply_who, NULL);
    for (unsigned i = 0; i < 3; i++) {
        struct kedge_net_client *client = world_client(&w, i);
        struct kedge_net_reply reply;
        struct kedge_net_peer peer;
        ck_assert_int_eq(kedge_net_call(client, kedge_view_str("who"), 5000, &reply), KEDGE_OK);
        ck_assert_uint_eq(reply.view.len, sizeof peer);
        memcpy(&peer, reply.view.ptr, sizeof peer);
        ck_assert_int_eq(peer.kind, kinds[i]);
        ck_assert_int_eq(peer.has_key, kinds[i] != KEDGE_NET_IPC); /* over TCP a claim */
        ck_assert(peer.connection != 0);
        if (peer.has_key) {
            ck_assert(kedge_public_key_eq(&peer.key, &w.client_key.public));
        }
        kedge_net_reply_release(&reply);
        kedge_net_client_close(client);
    }
    world_close(&w);
}
END_TEST

START_TEST(test_ipc_is_private)
{
    struct world w;
    struct stat st;
    world_open(&w, world_echo, NULL);
    ck_assert_int_eq(stat(w.ipc + sizeof "ipc://" - 1, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    world_close(&w);
}
END_TEST

START_TEST(test_addresses_refused)
{
    static const struct {
        const char *url;
        bool insecure;
        int err;
    } cases[] = {
        {"tcp://127.0.0.1:0", false, KEDGE_E_DENIED},
        {"tcp://0.0.0.0:0", true, KEDGE_E_DENIED},
        {"tcp://127.0.0.1.example.org:0", true, KEDGE_E_DENIED},
        {"tcp://192.168.1.1:5", true, KEDGE_E_DENIED},
        {"http://127.0.0.1:0", true, KEDGE_E_ARG},
        {"tls+tcp://127.0.0.1", true, KEDGE_E_ARG},
        {"tls+tcp://127.0.0.1:70000", true, KEDGE_E_ARG},
        {"ipc://", true, KEDGE_E_ARG},
        {"", true, KEDGE_E_ARG},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world w;
        struct kedge_diag diag = {0};
        struct kedge_net_client *client = NULL;
        world_init(&w, world_echo, NULL);
        w.options.urls[0] = cases[i].url;
        w.options.urls[1] = w.options.urls[2] = NULL;
        w.options.insecure = cases[i].insecure;
        ck_assert_int_eq(kedge_net_server_open(&w.options, &w.server, &diag), cases[i].err);
        ck_assert_msg(strstr(diag.text, cases[i].url) != NULL, "%s", diag.text);
        const struct kedge_net_client_options options = {.url = cases[i].url,
                                                         .key = &w.client_key,
                                                         .server_key = &w.server_key.public,
                                                         .insecure = cases[i].insecure};
        ck_assert_int_eq(kedge_net_client_open(&options, &client, &diag), cases[i].err);
        world_close(&w);
    }
}
END_TEST

START_TEST(test_address_in_use)
{
    struct world w, other;
    struct kedge_diag diag = {0};
    world_open(&w, world_echo, NULL);
    world_init(&other, world_echo, NULL);
    other.options.urls[0] = kedge_net_server_url(w.server, WORLD_TLS);
    ck_assert_int_eq(kedge_net_server_open(&other.options, &other.server, &diag), KEDGE_E_BUSY);
    ck_assert(strstr(diag.text, other.options.urls[0]) != NULL);
    ck_assert_ptr_null(kedge_net_server_url(w.server, 3));
    world_close(&other);
    struct kedge_net_client *client = world_client(&w, WORLD_TLS); /* the first one is unharmed */
    world_expect_echo(client, "still here");
    kedge_net_client_close(client);
    world_close(&w);
}
END_TEST

START_TEST(test_tls_needs_keys)
{
    struct world w;
    struct kedge_diag diag;
    struct kedge_net_client *client = NULL;
    world_init(&w, world_echo, NULL);
    w.options.key = NULL;
    ck_assert_int_eq(kedge_net_server_open(&w.options, &w.server, &diag), KEDGE_E_ARG);
    struct kedge_net_client_options options = {.url = "tls+tcp://127.0.0.1:9", .key = &w.client_key};
    ck_assert_int_eq(kedge_net_client_open(&options, &client, &diag), KEDGE_E_ARG); /* no pinned key */
    options.key = NULL;
    options.server_key = &w.server_key.public;
    ck_assert_int_eq(kedge_net_client_open(&options, &client, &diag), KEDGE_E_ARG);
    world_close(&w);
}
END_TEST

/* ---- time, loss, limits ---- */

START_TEST(test_unreachable)
{
    struct world w;
    world_open(&w, world_echo, NULL);
    char url[KEDGE_NET_URL_MAX];
    snprintf(url, sizeof url, "%s", kedge_net_server_url(w.server, WORLD_TLS));
    kedge_net_server_close(w.server); /* now nobody listens there */
    w.server = NULL;
    struct kedge_net_client *client;
    struct kedge_net_reply reply;
    const struct kedge_net_client_options options = {
        .url = url, .key = &w.client_key, .server_key = &w.server_key.public, .connect_ms = 300};
    ck_assert_int_eq(kedge_net_client_open(&options, &client, NULL), KEDGE_OK);
    uint64_t begin = kedge_os_now_ns();
    ck_assert_int_eq(kedge_net_call(client, kedge_view_str("x"), 60000, &reply), KEDGE_E_UNREACHABLE);
    uint64_t ms = (kedge_os_now_ns() - begin) / 1000000;
    ck_assert(ms >= 290 && ms < 20000);
    kedge_net_client_close(client);
    world_close(&w);
}
END_TEST

/* Parks requests in a list until told to let them go. */
struct park {
    pthread_mutex_t mutex;
    struct kedge_net_request *held[1024];
    size_t count;
};

static void park_or_echo(void *arg, struct kedge_net_request *req)
{
    struct park *park = arg;
    struct kedge_view v = kedge_net_request_view(req);
    if (v.len == 0 || v.ptr[0] != 'p') {
        kedge_net_reply(req, v);
        return;
    }
    pthread_mutex_lock(&park->mutex);
    park->held[park->count++] = req;
    pthread_mutex_unlock(&park->mutex);
}

static size_t release(struct park *park)
{
    pthread_mutex_lock(&park->mutex);
    size_t count = park->count;
    for (size_t i = 0; i < count; i++) {
        kedge_net_reply(park->held[i], kedge_net_request_view(park->held[i]));
    }
    park->count = 0;
    pthread_mutex_unlock(&park->mutex);
    return count;
}

START_TEST(test_timeout_and_late_reply)
{
    struct world w;
    struct park park = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct kedge_net_reply reply;
    world_open(&w, park_or_echo, &park);
    struct kedge_net_client *client = world_client(&w, WORLD_TLS);
    world_expect_echo(client, "connected");
    ck_assert_int_eq(kedge_net_call(client, kedge_view_str("p1"), 200, &reply), KEDGE_E_TIMEOUT);
    world_wait_parked(&park.mutex, &park.count, 1);
    ck_assert_uint_eq(release(&park), 1); /* nobody waits for this one any more */
    world_expect_echo(client, "next");    /* and it is not taken for this one's reply */
    kedge_net_client_close(client);
    world_close(&w);
}
END_TEST

struct caller {
    pthread_t thread;
    struct kedge_net_client *client;
    const char *text;
    int err;
};

static void *call(void *arg)
{
    struct caller *c = arg;
    struct kedge_net_reply reply = {{NULL, 0}, NULL};
    c->err = kedge_net_call(c->client, kedge_view_str(c->text), 30000, &reply);
    if (c->err == KEDGE_OK && !kedge_view_eq(reply.view, kedge_view_str(c->text))) {
        c->err = KEDGE_E_BUG;
    }
    kedge_net_reply_release(&reply);
    return NULL;
}

static void start_call(struct caller *c, struct kedge_net_client *client, const char *text)
{
    *c = (struct caller){.client = client, .text = text, .err = KEDGE_E_BUG};
    ck_assert_int_eq(pthread_create(&c->thread, NULL, call, c), 0);
}

START_TEST(test_lost_connection_and_vanished_peer)
{
    struct world w;
    struct park park = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct caller caller;
    world_open(&w, park_or_echo, &park);
    struct kedge_net_client *client = world_client(&w, WORLD_TLS);
    start_call(&caller, client, "p1");
    world_wait_parked(&park.mutex, &park.count, 1);
    ck_assert_uint_eq(kedge_net_server_drop_key(w.server, &w.client_key.public), 1);
    pthread_join(caller.thread, NULL);
    ck_assert_int_eq(caller.err, KEDGE_E_CLOSED);
    ck_assert_uint_eq(release(&park), 1); /* to nobody */
    world_expect_echo(client, "dialled again");
    struct kedge_key_pair other;
    kedge_key_generate(&other);
    ck_assert_uint_eq(kedge_net_server_drop_key(w.server, &other.public), 0);
    world_expect_echo(client, "unharmed");
    kedge_net_client_close(client);
    world_close(&w);
}
END_TEST

START_TEST(test_cancel)
{
    struct world w;
    struct park park = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct caller callers[4];
    struct kedge_net_reply reply;
    world_open(&w, park_or_echo, &park);
    struct kedge_net_client *client = world_client(&w, WORLD_TLS);
    for (size_t i = 0; i < 4; i++) {
        start_call(&callers[i], client, "p");
    }
    world_wait_parked(&park.mutex, &park.count, 4);
    kedge_net_client_cancel(client);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(callers[i].thread, NULL);
        ck_assert_int_eq(callers[i].err, KEDGE_E_CANCELLED);
    }
    ck_assert_int_eq(kedge_net_call(client, kedge_view_str("x"), 1000, &reply), KEDGE_E_CANCELLED);
    release(&park);
    kedge_net_client_close(client);
    world_close(&w);
}
END_TEST

START_TEST(test_oversized)
{
    struct world w;
    struct kedge_net_reply reply;
    struct kedge_net_client *small, *large;
    world_init(&w, world_echo, NULL);
    w.options.frame_max = 10000;
    world_start(&w);
    struct kedge_net_client_options options = {.url = kedge_net_server_url(w.server, WORLD_TLS),
                                               .key = &w.client_key,
                                               .server_key = &w.server_key.public,
                                               .frame_max = 10000};
    ck_assert_int_eq(kedge_net_client_open(&options, &small, NULL), KEDGE_OK);
    options.frame_max = 0;
    ck_assert_int_eq(kedge_net_client_open(&options, &large, NULL), KEDGE_OK);
    static uint8_t bytes[40000];
    ck_assert_int_eq(kedge_net_call(small, kedge_view_of(bytes, 10001), 5000, &reply), KEDGE_E_TOO_LONG);
    static const size_t sizes[] = {10001, 10064, 10065, 40000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ck_assert_int_eq(kedge_net_call(large, kedge_view_of(bytes, sizes[i]), 5000, &reply), KEDGE_E_CLOSED);
    }
    ck_assert_int_eq(kedge_net_call(large, kedge_view_of(bytes, 10000), 5000, &reply), KEDGE_OK);
    kedge_net_reply_release(&reply);
    kedge_net_client_close(small);
    kedge_net_client_close(large);
    world_close(&w);
}
END_TEST

static void reply_too_much(void *arg, struct kedge_net_request *req)
{
    static uint8_t bytes[20001];
    atomic_int *ret_err = arg;
    *ret_err = kedge_net_reply(req, kedge_view_of(bytes, sizeof bytes));
}

START_TEST(test_oversized_reply)
{
    struct world w;
    struct kedge_net_reply reply;
    static atomic_int err;
    world_init(&w, reply_too_much, &err);
    w.options.frame_max = 20000;
    world_start(&w);
    struct kedge_net_client *client = world_client(&w, WORLD_TLS);
    ck_assert_int_eq(kedge_net_call(client, kedge_view_str("x"), 5000, &reply), KEDGE_E_CLOSED);
    kedge_net_server_close(w.server); /* waits for the handler, which may see the peer go first */
    w.server = NULL;
    ck_assert_int_eq(err, KEDGE_E_TOO_LONG);
    kedge_net_client_close(client);
    world_close(&w);
}
END_TEST

/* ---- many ---- */

START_TEST(test_parked_while_others_are_served)
{
    enum { CLIENTS = 8, EACH = 25 };
    struct world w;
    struct park park = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct kedge_net_client *clients[CLIENTS];
    static struct caller callers[CLIENTS * EACH];
    world_open(&w, park_or_echo, &park);
    for (size_t i = 0; i < CLIENTS * EACH; i++) {
        if (i % EACH == 0) {
            clients[i / EACH] = world_client(&w, (unsigned)(i / EACH % 3));
        }
        start_call(&callers[i], clients[i / EACH], "parked");
    }
    world_wait_parked(&park.mutex, &park.count, CLIENTS * EACH);
    for (size_t i = 0; i < 40; i++) {
        world_expect_echo(clients[i % CLIENTS], "served");
    }
    ck_assert_uint_eq(release(&park), CLIENTS * EACH);
    for (size_t i = 0; i < CLIENTS * EACH; i++) {
        pthread_join(callers[i].thread, NULL);
        ck_assert_int_eq(callers[i].err, KEDGE_OK);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        kedge_net_client_close(clients[i]);
    }
    world_close(&w);
}
END_TEST

START_TEST(test_context_limit_is_back_pressure)
{
    struct world w;
    struct park park = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct caller callers[6], late;
    world_init(&w, park_or_echo, &park);
    w.options.contexts = 6;
    world_start(&w);
    struct kedge_net_client *client = world_client(&w, WORLD_TLS);
    for (size_t i = 0; i < 6; i++) {
        start_call(&callers[i], client, "parked");
    }
    world_wait_parked(&park.mutex, &park.count, 6);
    start_call(&late, client, "echo");
    kedge_os_sleep_ms(100);
    struct kedge_net_counters counters;
    kedge_net_server_counters(w.server, &counters);
    ck_assert_uint_eq(counters.requests, 6);
    release(&park);
    for (size_t i = 0; i < 6; i++) {
        pthread_join(callers[i].thread, NULL);
        ck_assert_int_eq(callers[i].err, KEDGE_OK);
    }
    pthread_join(late.thread, NULL);
    ck_assert_int_eq(late.err, KEDGE_OK);
    kedge_net_client_close(client);
    world_close(&w);
}
END_TEST

/* Every request announces and gets a reply of 64 KiB, from a thread that works through the parked ones. */
enum { BIG = 64 * 1024 };

static size_t announce_big(void *arg, struct kedge_view frame)
{
    (void)arg, (void)frame;
    return BIG;
}

static void *big_caller(void *arg)
{
    struct caller *c = arg;
    for (int i = 0; i < 10 && c->err == KEDGE_OK; i++) {
        struct kedge_net_reply reply;
        c->err = kedge_net_call(c->client, kedge_view_str("p"), 30000, &reply);
        if (c->err == KEDGE_OK) {
            c->err = reply.view.len == BIG ? KEDGE_OK : KEDGE_E_BUG;
            kedge_net_reply_release(&reply);
        }
    }
    return NULL;
}

START_TEST(test_budget_is_back_pressure)
{
    enum { CALLERS = 16, BUDGET = 6 * BIG, ALL = CALLERS * 10 };
    struct world w;
    struct park park = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct caller callers[CALLERS];
    struct kedge_net_counters counters;
    uint64_t most = 0;
    world_init(&w, park_or_echo, &park);
    w.options.frame_max = BIG;
    w.options.budget = BUDGET;
    w.options.reply_size = announce_big;
    world_start(&w);
    struct kedge_net_client *clients[2] = {world_client(&w, WORLD_TLS), world_client(&w, WORLD_TCP)};
    for (size_t i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.client = clients[i % 2], .err = KEDGE_OK};
        ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, big_caller, &callers[i]), 0);
    }
    world_wait_parked(&park.mutex, &park.count, 4);
    uint64_t end = kedge_os_now_ns() + 60u * 1000000000u;
    for (size_t answered = 0; answered < ALL && kedge_os_now_ns() < end;) {
        kedge_net_server_counters(w.server, &counters);
        most = counters.bytes_in_flight > most ? counters.bytes_in_flight : most;
        pthread_mutex_lock(&park.mutex);
        struct kedge_net_request *req = park.count > 0 ? park.held[--park.count] : NULL;
        pthread_mutex_unlock(&park.mutex);
        if (!req) {
            kedge_os_sleep_ms(1);
            continue;
        }
        uint8_t *ptr;
        ck_assert_int_eq(kedge_net_reply_begin(req, BIG, &ptr), KEDGE_OK);
        memset(ptr, 7, BIG);
        kedge_net_reply_send(req);
        answered++;
    }
    for (size_t i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        ck_assert_int_eq(callers[i].err, KEDGE_OK);
    }
    kedge_net_server_counters(w.server, &counters);
    ck_assert_uint_gt(counters.pauses, 0);
    ck_assert_uint_le(most, BUDGET + BIG);
    ck_assert_uint_gt(most, 2 * BIG);
    for (int i = 0; i < 4000 && counters.bytes_in_flight > 0; i++) {
        kedge_os_sleep_ms(5);
        kedge_net_server_counters(w.server, &counters);
    }
    ck_assert_uint_eq(counters.bytes_in_flight, 0);
    kedge_net_client_close(clients[0]);
    kedge_net_client_close(clients[1]);
    world_close(&w);
}
END_TEST

START_TEST(test_restart_on_the_same_port)
{
    struct world w;
    world_open(&w, world_echo, NULL);
    struct kedge_net_client *client = world_client(&w, WORLD_TLS);
    char url[KEDGE_NET_URL_MAX];
    snprintf(url, sizeof url, "%s", kedge_net_server_url(w.server, WORLD_TLS));
    w.options.urls[0] = url;
    for (int i = 0; i < 3; i++) {
        world_expect_echo(client, "here");
        kedge_net_server_close(w.server);
        world_start(&w);
        struct kedge_net_reply reply;
        int err = kedge_net_call(client, kedge_view_str("here"), 10000, &reply);
        if (err == KEDGE_OK) {
            kedge_net_reply_release(&reply);
        }
        ck_assert(err == KEDGE_OK || err == KEDGE_E_CLOSED); /* the old connection may just be going */
    }
    kedge_net_client_close(client);
    world_close(&w);
}
END_TEST

START_TEST(test_close_with_held_requests)
{
    struct world w;
    struct park park = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct caller callers[5];
    world_open(&w, park_or_echo, &park);
    struct kedge_net_client *client = world_client(&w, WORLD_TLS);
    for (size_t i = 0; i < 5; i++) {
        start_call(&callers[i], client, "p");
    }
    world_wait_parked(&park.mutex, &park.count, 5);
    kedge_net_server_close(w.server);
    w.server = NULL;
    ck_assert_uint_eq(release(&park), 5);
    for (size_t i = 0; i < 5; i++) {
        pthread_join(callers[i].thread, NULL);
        ck_assert_int_eq(callers[i].err, KEDGE_E_CLOSED);
    }
    kedge_net_client_close(client);
    world_close(&w);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("net");
    TCase *t = tcase_create("call");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, test_round_trip);
    tcase_add_test(t, test_large_in_place);
    tcase_add_test(t, test_peer_is_known);
    tcase_add_test(t, test_ipc_is_private);
    tcase_add_test(t, test_addresses_refused);
    tcase_add_test(t, test_address_in_use);
    tcase_add_test(t, test_tls_needs_keys);
    tcase_add_test(t, test_unreachable);
    tcase_add_test(t, test_timeout_and_late_reply);
    tcase_add_test(t, test_lost_connection_and_vanished_peer);
    tcase_add_test(t, test_cancel);
    tcase_add_test(t, test_oversized);
    tcase_add_test(t, test_oversized_reply);
    tcase_add_test(t, test_parked_while_others_are_served);
    tcase_add_test(t, test_context_limit_is_back_pressure);
    tcase_add_test(t, test_budget_is_back_pressure);
    tcase_add_test(t, test_restart_on_the_same_port);
    tcase_add_test(t, test_close_with_held_requests);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
