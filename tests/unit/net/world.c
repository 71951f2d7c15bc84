#include "tests/unit/net/world.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/base/text.h"

void world_echo(void *arg, struct kedge_net_request *req)
{
    (void)arg;
    kedge_net_reply(req, kedge_net_request_view(req));
}

void world_init(struct world *w, kedge_net_handler *handler, void *arg)
{
    *w = (struct world){.dir = "/tmp/kedge-net-XXXXXX"};
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
    kedge_key_generate(&w->server_key);
    kedge_key_generate(&w->client_key);
    ck_assert_ptr_nonnull(mkdtemp(w->dir));
    snprintf(w->ipc, sizeof w->ipc, "ipc://%s/s", w->dir);
    w->options =
        (struct kedge_net_server_options){.urls = {"tls+tcp://127.0.0.1:0", w->ipc, "tcp://127.0.0.1:0"},
                                          .key = &w->server_key,
                                          .insecure = true,
                                          .handler = handler,
                                          .arg = arg};
}

void world_start(struct world *w)
{
    struct kedge_diag diag;
    int err = kedge_net_server_open(&w->options, &w->server, &diag);
    ck_assert_msg(err == KEDGE_OK, "%s", err ? diag.text : "");
}

void world_open(struct world *w, kedge_net_handler *handler, void *arg)
{
    world_init(w, handler, arg);
    world_start(w);
}

void world_close(struct world *w)
{
    kedge_net_server_close(w->server);
    unlink(w->ipc + sizeof "ipc://" - 1);
    rmdir(w->dir);
}

struct kedge_net_client *world_client_as(struct world *w, unsigned address, const struct kedge_key_pair *key)
{
    struct kedge_net_client *client = NULL;
    struct kedge_diag diag;
    const struct kedge_net_client_options options = {.url = kedge_net_server_url(w->server, address),
                                                     .key = key,
                                                     .server_key = &w->server_key.public,
                                                     .insecure = true,
                                                     .connect_ms = 60000, /* what a busy machine may take */
                                                     .reconnect_max_ms = 500};
    int err = kedge_net_client_open(&options, &client, &diag);
    ck_assert_msg(err == KEDGE_OK, "%s", err ? diag.text : "");
    return client;
}

struct kedge_net_client *world_client(struct world *w, unsigned address)
{
    return world_client_as(w, address, &w->client_key);
}

void world_expect_echo(struct kedge_net_client *client, const char *text)
{
    struct kedge_net_reply reply;
    ck_assert_int_eq(kedge_net_call(client, kedge_view_str(text), 10000, &reply), KEDGE_OK);
    ck_assert(kedge_view_eq(reply.view, kedge_view_str(text)));
    kedge_net_reply_release(&reply);
}

unsigned world_port(const struct world *w, unsigned address)
{
    uint64_t port = 0;
    const char *colon = strrchr(kedge_net_server_url(w->server, address), ':');
    ck_assert_int_eq(kedge_decimal_decode(kedge_view_str(colon + 1), UINT16_MAX, &port), KEDGE_OK);
    return (unsigned)port;
}

void world_wait(struct world *w, size_t offset, uint64_t value)
{
    struct kedge_net_counters counters;
    uint64_t now = 0, end = kedge_os_now_ns() + WORLD_PATIENCE_MS * 1000000ull;
    do {
        kedge_net_server_counters(w->server, &counters);
        memcpy(&now, (const char *)&counters + offset, sizeof now);
        if (now >= value) {
            return;
        }
        kedge_os_sleep_ms(5);
    } while (kedge_os_now_ns() < end);
    ck_abort_msg("counter at %zu is %llu, expected at least %llu", offset, (unsigned long long)now,
                 (unsigned long long)value);
}

void world_wait_parked(pthread_mutex_t *mutex, const size_t *count, size_t value)
{
    size_t now = 0;
    for (int i = 0; i < WORLD_PATIENCE_MS / 5 && now < value; i++) {
        kedge_os_sleep_ms(5);
        pthread_mutex_lock(mutex);
        now = *count;
        pthread_mutex_unlock(mutex);
    }
    ck_assert_uint_ge(now, value);
}
