/* Connections that end at random moments under full load, from below: as when cables are pulled and
 * machines die. Nothing may hang, nothing may be lost but the calls under way, and no memory. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/rng.h"
#include "tests/unit/net/world.h"

#define NS_PER_S 1000000000ull
enum { LOADERS = 24, CUTS = 2000, CUTS_LEAST = 200, SECONDS = 8, BODY_MAX = 300000, FD_MAX = 400 };

struct loader {
    pthread_t thread;
    struct kedge_net_client *client;
    const atomic_bool *stop;
    uint64_t good, lost;
    struct kedge_rng rng;
    int err; /* one that must not be */
};

static void *load(void *arg)
{
    struct loader *l = arg;
    while (!atomic_load(l->stop) && !l->err) {
        struct kedge_net_outgoing out;
        struct kedge_net_reply reply;
        size_t len = (size_t)kedge_rng_below(&l->rng, kedge_rng_below(&l->rng, 4) ? 2000 : BODY_MAX) + 1;
        uint8_t fill = (uint8_t)kedge_rng_u64(&l->rng);
        l->err = kedge_net_call_begin(l->client, len, &out);
        if (l->err) {
            break;
        }
        memset(out.ptr, fill, len);
        int err = kedge_net_call_send(l->client, &out, 30000, &reply);
        if (err == KEDGE_OK) {
            bool same = reply.view.len == len && reply.view.ptr[0] == fill && reply.view.ptr[len - 1] == fill;
            l->err = same ? KEDGE_OK : KEDGE_E_BUG;
            l->good++;
            kedge_net_reply_release(&reply);
        } else if (err == KEDGE_E_CLOSED) {
            l->lost++;
        } else {
            l->err = err;
        }
    }
    return NULL;
}

/* Ends one of this process's TCP connections, either end of it. */
static bool cut_one(struct kedge_rng *rng)
{
    int fd = 3 + (int)kedge_rng_below(rng, FD_MAX), type = 0, listens = 1;
    socklen_t len = sizeof type;
    struct sockaddr_storage peer;
    socklen_t peer_len = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0 || type != SOCK_STREAM
        || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) != 0 || listens
        || getpeername(fd, (struct sockaddr *)&peer, &peer_len) != 0) {
        return false;
    }
    return shutdown(fd, kedge_rng_below(rng, 3) ? SHUT_RDWR : SHUT_WR) == 0;
}

static void start(struct world *w, struct loader *loaders, size_t count, const atomic_bool *stop)
{
    for (size_t i = 0; i < count; i++) {
        loaders[i] =
            (struct loader){.client = world_client(w, i % 4 == 3 ? WORLD_TCP : WORLD_TLS), .stop = stop};
        kedge_rng_init(&loaders[i].rng, 1, KEDGE_RNG_TEST, i, 0);
        ck_assert_int_eq(pthread_create(&loaders[i].thread, NULL, load, &loaders[i]), 0);
    }
}

/* The sum of what went well. Every client still works, and closes at once. */
static uint64_t finish(struct loader *loaders, size_t count, atomic_bool *stop, bool echo)
{
    uint64_t good = 0, begin;
    atomic_store(stop, true);
    for (size_t i = 0; i < count; i++) {
        pthread_join(loaders[i].thread, NULL);
        ck_assert_msg(loaders[i].err == KEDGE_OK, "loader %zu: %s", i, kedge_strerror(loaders[i].err));
        good += loaders[i].good;
    }
    for (size_t i = 0; i < count; i++) {
        struct kedge_net_reply reply = {.impl = NULL};
        int err = KEDGE_E_CLOSED;
        for (int try = 0; echo && err && try < 3; try++) { /* the last cut may be seen only now */
            err = kedge_net_call(loaders[i].client, kedge_view_str("still here"), 10000, &reply);
        }
        ck_assert_int_eq(err, echo ? KEDGE_OK : KEDGE_E_CLOSED);
        kedge_net_reply_release(&reply);
    }
    begin = kedge_os_now_ns();
    for (size_t i = 0; i < count; i++) {
        kedge_net_client_close(loaders[i].client);
    }
    ck_assert_uint_lt(kedge_os_now_ns() - begin, 20 * NS_PER_S); /* a call may take 30 s */
    return good;
}

START_TEST(test_cut_at_random)
{
    struct world w;
    struct kedge_net_counters counters;
    static struct loader loaders[LOADERS];
    atomic_bool stop = false;
    unsigned cuts = 0;
    struct kedge_rng rng;
    kedge_rng_init(&rng, 2, KEDGE_RNG_TEST, 0, 0);
    world_open(&w, world_echo, NULL);
    start(&w, loaders, LOADERS, &stop);
    uint64_t end = kedge_os_now_ns() + SECONDS * NS_PER_S;
    while (cuts < CUTS && kedge_os_now_ns() < end) {
        cuts += cut_one(&rng);
        if (kedge_rng_below(&rng, 16) == 0) {
            kedge_os_sleep_ms(1);
        }
    }
    uint64_t good = finish(loaders, LOADERS, &stop, true);
    printf("%u cuts, %llu calls went well\n", cuts, (unsigned long long)good);
    ck_assert_uint_ge(cuts, CUTS_LEAST);
    ck_assert_uint_gt(good, 0);
    for (int i = 0; i < 1000; i++) {
        kedge_net_server_counters(w.server, &counters);
        if (counters.connections + counters.handshakes + counters.bytes_in_flight == 0) {
            break;
        }
        kedge_os_sleep_ms(5);
    }
    ck_assert_uint_eq(counters.connections, 0);
    ck_assert_uint_eq(counters.handshakes, 0);
    ck_assert_uint_eq(counters.bytes_in_flight, 0);
    ck_assert_uint_eq(counters.held, 0);
    uint64_t begin = kedge_os_now_ns();
    world_close(&w);
    ck_assert_uint_lt(kedge_os_now_ns() - begin, 20 * NS_PER_S);
}
END_TEST

START_TEST(test_keys_dropped_in_mid_transfer)
{
    enum { DROPS = 60 };
    struct world w;
    struct loader loaders[4];
    atomic_bool stop = false;
    unsigned dropped = 0;
    struct kedge_rng rng;
    kedge_rng_init(&rng, 3, KEDGE_RNG_TEST, 0, 0);
    world_open(&w, world_echo, NULL);
    start(&w, loaders, 4, &stop);
    for (int i = 0; i < DROPS; i++) {
        kedge_os_sleep_ms((uint32_t)(kedge_rng_below(&rng, 20)));
        dropped += kedge_net_server_drop_key(w.server, &w.client_key.public);
    }
    uint64_t lost = 0;
    finish(loaders, 4, &stop, true);
    for (size_t i = 0; i < 4; i++) {
        lost += loaders[i].lost;
    }
    ck_assert_uint_gt(dropped, 0);
    ck_assert_uint_gt(lost, 0);
    world_close(&w);
}
END_TEST

START_TEST(test_restarts_under_load)
{
    struct world w;
    struct loader loaders[4];
    atomic_bool stop = false;
    char urls[3][KEDGE_NET_URL_MAX];
    world_open(&w, world_echo, NULL);
    for (unsigned i = 0; i < 3; i++) {
        snprintf(urls[i], sizeof urls[i], "%s", kedge_net_server_url(w.server, i));
        w.options.urls[i] = urls[i];
    }
    start(&w, loaders, 4, &stop);
    for (int i = 0; i < 8; i++) {
        kedge_os_sleep_ms(50);
        uint64_t begin = kedge_os_now_ns();
        kedge_net_server_close(w.server);
        ck_assert_uint_lt(kedge_os_now_ns() - begin, 20 * NS_PER_S);
        world_start(&w);
    }
    ck_assert_uint_gt(finish(loaders, 4, &stop, true), 0);
    world_close(&w);
}
END_TEST

/* Clients and servers that are closed while they get to know each other. */
START_TEST(test_closed_while_shaking_hands)
{
    struct world w;
    struct kedge_rng rng;
    kedge_rng_init(&rng, 4, KEDGE_RNG_TEST, 0, 0);
    world_open(&w, world_echo, NULL);
    for (int i = 0; i < 150; i++) {
        struct kedge_net_client *client = world_client(&w, i % 5 ? WORLD_TLS : WORLD_IPC);
        if (kedge_rng_below(&rng, 4)) {
            usleep((useconds_t)(kedge_rng_below(&rng, 3000)));
        }
        kedge_net_client_close(client);
        if (i % 10 == 9) {
            struct kedge_net_client *late = world_client(&w, WORLD_TLS);
            usleep((useconds_t)(kedge_rng_below(&rng, 2000)));
            kedge_net_server_close(w.server);
            world_start(&w);
            kedge_net_client_close(late);
        }
    }
    struct kedge_net_client *client = world_client(&w, WORLD_TLS);
    world_expect_echo(client, "good");
    kedge_net_client_close(client);
    world_close(&w);
}
END_TEST

int main(void)
{
    if (kedge_crypto_init() != KEDGE_OK) {
        return 1;
    }
    Suite *s = suite_create("net");
    TCase *t = tcase_create("cuts");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, test_cut_at_random);
    tcase_add_test(t, test_keys_dropped_in_mid_transfer);
    tcase_add_test(t, test_restarts_under_load);
    tcase_add_test(t, test_closed_while_shaking_hands);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
