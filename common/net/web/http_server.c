/* Life of an HTTP server; see http_state.h for who owns what. */
#include <stdio.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/net/tls.h"
#include "common/net/web/http_state.h"

#define NS_PER_MS 1000000u

_Static_assert((int)KEDGE_HTTP_URLS_MAX <= (int)KEDGE_NET_URLS_MAX
                   && (int)KEDGE_HTTP_URL_MAX <= (int)KEDGE_NET_URL_MAX,
               "a hub has a place for each address");

static void close_sessions(struct kedgei_hub *hub)
{
    struct kedge_http_server *server = (struct kedge_http_server *)hub;
    while (server->sessions) {
        kedgei_http_session_close(server->sessions);
    }
}

static const struct kedgei_turn turn = {.name = "https",
                                        .accept = kedgei_http_accept,
                                        .event = kedgei_http_event,
                                        .drain = kedgei_http_drain,
                                        .serve_waiting = kedgei_http_serve_waiting,
                                        .sweep = kedgei_http_sweep,
                                        .bury = kedgei_http_bury,
                                        .close_sessions = close_sessions};

static bool starts_with(const char *s, const char *start)
{
    return strncmp(s, start, strlen(start)) == 0;
}

/* https://HOST:PORT is what tls+tcp://HOST:PORT is underneath, http:// what tcp:// is. */
static int parse_address(const char *url, bool insecure, struct kedgei_address *ret,
                         struct kedge_diag *reterr)
{
    static const char tls[] = "https://", plain[] = "http://";
    char inner[KEDGE_HTTP_URL_MAX + 8];
    struct kedge_diag d;
    int err = KEDGE_E_ARG;
    if (strlen(url) < KEDGE_HTTP_URL_MAX && starts_with(url, tls)) {
        snprintf(inner, sizeof inner, "tls+tcp://%s", url + sizeof tls - 1);
        err = kedgei_address_parse(inner, insecure, ret, &d);
    } else if (strlen(url) < KEDGE_HTTP_URL_MAX && starts_with(url, plain)) {
        snprintf(inner, sizeof inner, "tcp://%s", url + sizeof plain - 1);
        err = kedgei_address_parse(inner, insecure, ret, &d);
    }
    if (err == KEDGE_E_DENIED) {
        kedge_diag_set(reterr, err,
                       "address %s: plain http:// is allowed on loopback only, and only with \"insecure\"",
                       url);
        kedge_diag_hint(reterr, "use https://");
    } else if (err) {
        kedge_diag_set(reterr, err, "address %.*s: expected https://HOST:PORT", KEDGE_HTTP_URL_MAX, url);
    }
    return err;
}

/* Addresses first, then the certificate, then the sockets: what is wrong with the configuration is
 * told before a port is taken. */
static int start(struct kedge_http_server *server, const struct kedge_http_options *options,
                 struct kedge_diag *reterr)
{
    bool needs_tls = false;
    if (options->counts_strangers && kedgei_hub_count_addresses(&server->hub) != KEDGE_OK) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "https: out of memory");
    }
    KEDGE_TRY(kedgei_hub_addresses(&server->hub, options->urls, KEDGE_HTTP_URLS_MAX, options->insecure,
                                   parse_address, &needs_tls, reterr));
    if (needs_tls) {
        KEDGE_TRY(kedgei_tls_web_new(options->key, options->certificate_file, options->key_file,
                                     &server->hub.tls, reterr));
    }
    return kedgei_hub_start(&server->hub, options->urls, KEDGE_HTTP_URLS_MAX, reterr);
}

static uint64_t ns_of(uint32_t ms, uint32_t fallback)
{
    return (uint64_t)(ms ? ms : fallback) * NS_PER_MS;
}

/* The budget always has room for one piece, or a request could wait for room that there can never be. The
 * answers of one party take at most a quarter of the pieces or connections that there are. */
static void set_up(struct kedge_http_server *server, const struct kedge_http_options *options)
{
    server->handler = options->handler;
    server->arg = options->arg;
    server->connections_max = options->connections ? options->connections : KEDGE_HTTP_CONNECTIONS;
    server->budget_max = options->budget ? options->budget : KEDGE_CHUNK_BUDGET;
    if (server->budget_max < KEDGE_HTTP_PIECE_MAX) {
        server->budget_max = KEDGE_HTTP_PIECE_MAX;
    }
    size_t pieces = server->budget_max / KEDGE_HTTP_PIECE_MAX;
    server->party_max = (pieces < server->connections_max ? (unsigned)pieces : server->connections_max) / 4;
    server->party_max = server->party_max > 0 ? server->party_max : 1;
    server->head_ns = ns_of(options->head_ms, KEDGE_HTTP_HEAD_MS);
    server->idle_ns = ns_of(options->idle_ms, KEDGE_HTTP_IDLE_MS);
    server->stall_ns = ns_of(options->stall_ms, KEDGE_HTTP_STALL_MS);
    server->wait_ns = ns_of(options->wait_ms, KEDGE_HTTP_WAIT_MS);
}

int kedge_http_server_open(const struct kedge_http_options *options, struct kedge_http_server **ret_server,
                           struct kedge_diag *reterr)
{
    if (!options->handler) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "https: no handler");
    }
    struct kedge_http_server *server = kedge_mem_new(1, sizeof *server);
    if (!server || kedgei_hub_init(&server->hub, &turn) != KEDGE_OK) {
        kedge_mem_free(server);
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "https: out of memory");
    }
    set_up(server, options);
    int err = start(server, options, reterr);
    if (err) {
        kedge_http_server_close(server);
        return err;
    }
    *ret_server = server;
    return KEDGE_OK;
}

int kedge_http_server_check_certificate(const char *certificate_file, const char *key_file,
                                        struct kedge_diag *reterr)
{
    struct kedgei_tls *tls = NULL;
    int err = kedgei_tls_web_new(NULL, certificate_file, key_file, &tls, reterr);
    kedgei_tls_free(tls);
    return err;
}

const char *kedge_http_server_url(const struct kedge_http_server *server, unsigned i)
{
    return kedgei_hub_url(&server->hub, i);
}

void kedgei_http_server_drop(struct kedge_http_server *server)
{
    if (kedgei_hub_drop(&server->hub)) {
        kedge_mem_free(server);
    }
}

void kedge_http_server_close(struct kedge_http_server *server)
{
    if (!server) {
        return;
    }
    kedgei_hub_stop(&server->hub);
    kedgei_http_close_outbox(server);
    kedgei_hub_close(&server->hub);
    pthread_mutex_lock(&server->hub.mutex);
    kedgei_http_server_drop(server);
}

void kedge_http_server_counters(struct kedge_http_server *server, struct kedge_http_counters *ret)
{
    pthread_mutex_lock(&server->hub.mutex);
    *ret = server->counters;
    pthread_mutex_unlock(&server->hub.mutex);
}
