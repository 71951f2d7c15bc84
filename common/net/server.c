/* A server's life; see server_state.h for who owns what. */
#include "common/net/server.h"

#include <sys/socket.h>

#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/net/server_state.h"
#include "common/net/tls.h"

#define NS_PER_MS 1000000u

static void close_sessions(struct kedgei_hub *hub)
{
    struct kedge_net_server *server = (struct kedge_net_server *)hub;
    while (server->sessions) {
        kedgei_session_close(server->sessions);
    }
}

static const struct kedgei_turn turn = {.name = "server",
                                        .accept = kedgei_session_accept,
                                        .event = kedgei_session_event,
                                        .drain = kedgei_requests_drain,
                                        .serve_waiting = kedgei_sessions_serve_waiting,
                                        .sweep = kedgei_sessions_sweep,
                                        .bury = kedgei_sessions_bury,
                                        .close_sessions = close_sessions};

static int start(struct kedge_net_server *server, const struct kedge_net_server_options *options,
                 struct kedge_diag *reterr)
{
    bool needs_tls = false;
    if (kedgei_strangers_init(server, options) != KEDGE_OK) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "server: out of memory");
    }
    KEDGE_TRY(kedgei_hub_addresses(&server->hub, options->urls, KEDGE_NET_URLS_MAX, options->insecure,
                                   kedgei_address_parse, &needs_tls, reterr));
    if (needs_tls) {
        KEDGE_TRY(kedgei_tls_new(true, options->key, NULL, &server->hub.tls, reterr));
    }
    return kedgei_hub_start(&server->hub, options->urls, KEDGE_NET_URLS_MAX, reterr);
}

int kedge_net_server_open(const struct kedge_net_server_options *options,
                          struct kedge_net_server **ret_server, struct kedge_diag *reterr)
{
    if (!options->handler || (options->knows && !options->busy)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "server: no handler");
    }
    struct kedge_net_server *server = kedge_mem_new(1, sizeof *server);
    if (!server || kedgei_hub_init(&server->hub, &turn) != KEDGE_OK) {
        kedge_mem_free(server);
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "server: out of memory");
    }
    server->handler = options->handler;
    server->admit = options->admit;
    server->reply_size = options->reply_size;
    server->arg = options->arg;
    server->frame_max = options->frame_max ? options->frame_max : KEDGE_FRAME_MAX;
    server->contexts_max = options->contexts ? options->contexts : KEDGE_NET_CONTEXTS_MAX;
    server->stall_ns = (uint64_t)(options->stall_ms ? options->stall_ms : KEDGE_NET_STALL_MS) * NS_PER_MS;
    kedgei_budget_init(&server->budget, options->budget ? options->budget : KEDGE_CHUNK_BUDGET,
                       server->frame_max);
    int err = start(server, options, reterr);
    if (err) {
        kedge_net_server_close(server);
        return err;
    }
    *ret_server = server;
    return KEDGE_OK;
}

const char *kedge_net_server_url(const struct kedge_net_server *server, unsigned i)
{
    return kedgei_hub_url(&server->hub, i);
}

void kedgei_server_drop(struct kedge_net_server *server)
{
    if (kedgei_hub_drop(&server->hub)) {
        kedgei_parties_sweep(&server->parties, UINT64_MAX);
        kedge_mem_free(server);
    }
}

/* The thread is joined before anything that it uses is freed. Requests that are with the
 * application still hold the server's memory; the last of them frees it. */
void kedge_net_server_close(struct kedge_net_server *server)
{
    if (!server) {
        return;
    }
    kedgei_hub_stop(&server->hub);
    kedgei_requests_close(server);
    kedgei_hub_close(&server->hub);
    pthread_mutex_lock(&server->hub.mutex);
    kedgei_server_drop(server);
}

/* ---- from any thread ---- */

/* From any thread: the socket is shut down and the network thread finds it dead, because only that
 * thread may free a session. `drops` is for connections whose key is being admitted at this moment
 * (open_session). */
unsigned kedge_net_server_drop_key(struct kedge_net_server *server, const struct kedge_public_key *key)
{
    unsigned dropped = 0;
    pthread_mutex_lock(&server->hub.mutex);
    server->drops++;
    for (struct kedgei_session *s = server->sessions; s; s = s->next) {
        if (s->is_open && s->who.has_key && !s->dropped && kedge_public_key_eq(&s->who.key, key)) {
            s->dropped = true;
            server->counters.refused++;
            dropped++;
            /* In the list, so its descriptor is open; the network thread sees it end. */
            shutdown(s->link.stream.fd, SHUT_RDWR);
        }
    }
    pthread_mutex_unlock(&server->hub.mutex);
    return dropped;
}

void kedge_net_server_counters(struct kedge_net_server *server, struct kedge_net_counters *ret)
{
    pthread_mutex_lock(&server->hub.mutex);
    *ret = server->counters;
    ret->bytes_in_flight = server->budget.small.used + server->budget.large.used;
    pthread_mutex_unlock(&server->hub.mutex);
}
