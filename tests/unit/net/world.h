/* A server on loopback with one address per transport, and clients for it. */
#ifndef KEDGE_TESTS_UNIT_NET_WORLD_H
#define KEDGE_TESTS_UNIT_NET_WORLD_H

#include <pthread.h>

#include "common/net/client.h"
#include "common/net/server.h"

enum { WORLD_TLS, WORLD_IPC, WORLD_TCP };
enum { WORLD_PATIENCE_MS = 60000 };

struct world {
    struct kedge_key_pair server_key, client_key;
    char dir[64], ipc[96];
    struct kedge_net_server_options options;
    struct kedge_net_server *server;
};

/* Replies with the request. */
void world_echo(void *arg, struct kedge_net_request *req);
/* Keys, folder and default options; the server is not open yet. */
void world_init(struct world *w, kedge_net_handler *handler, void *arg);
void world_start(struct world *w);
/* Both. */
void world_open(struct world *w, kedge_net_handler *handler, void *arg);
void world_close(struct world *w);
struct kedge_net_client *world_client(struct world *w, unsigned address);
/* With a key of its own. */
struct kedge_net_client *world_client_as(struct world *w, unsigned address, const struct kedge_key_pair *key);
/* One call of `text`, answered by the same text. */
void world_expect_echo(struct kedge_net_client *client, const char *text);
/* The TCP port of an address. */
unsigned world_port(const struct world *w, unsigned address);
/* Waits up to WORLD_PATIENCE_MS for a counter to reach at least `value`. */
void world_wait(struct world *w, size_t offset, uint64_t value);
#define WORLD_WAIT(w, field, value) world_wait(w, offsetof(struct kedge_net_counters, field), value)
/* The same for what a handler counts under its mutex. A request counts as held before its handler sees it. */
void world_wait_parked(pthread_mutex_t *mutex, const size_t *count, size_t value);

#endif
