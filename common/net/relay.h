/* Forwards TCP byte for byte between clients and servers that cannot reach each other directly, such as sites
 * behind a gateway and their coordinator. What is forwarded is TLS between them: nothing is read, kept or
 * changed here. One thread, a bounded number of connections with bounded buffers, allow lists for both ends.
 */
#ifndef KEDGE_COMMON_NET_RELAY_H
#define KEDGE_COMMON_NET_RELAY_H

#include <stdint.h>

#include "common/base/diag.h"

enum {
    KEDGE_RELAY_TARGETS_MAX = 16,
    KEDGE_RELAY_SOURCES_MAX = 16,
    KEDGE_RELAY_CONNECTIONS_MAX = 4096,
};

struct kedge_relay;

struct kedge_relay_options {
    const char *listen; /* HOST:PORT, "*:PORT" for any; port 0: any free one */
    const char
        *targets[KEDGE_RELAY_TARGETS_MAX]; /* HOST:PORT, NULL after the last; without `connect` exactly one */
    const char
        *sources[KEDGE_RELAY_SOURCES_MAX]; /* ADDRESS/BITS that may connect, NULL after the last; none: all */
    bool connect;                          /* clients ask by HTTP's CONNECT for one of the targets */
    uint32_t connections;                  /* at once, 1 to KEDGE_RELAY_CONNECTIONS_MAX */
    uint32_t per_source;                   /* of one address, at least 1 */
    uint64_t rate;   /* bytes per second of a connection, each way; 0: no bound, else at least 1024 */
    uint32_t idle_s; /* a connection on which nothing moves so long is closed, at least 1 */
};

/* Listens. KEDGE_E_ARG, and the errors of listening, with a diagnostic. */
KEDGE_NODISCARD int kedge_relay_open(const struct kedge_relay_options *options, struct kedge_relay **ret,
                                     struct kedge_diag *reterr);
/* The port that it listens on. */
unsigned kedge_relay_port(const struct kedge_relay *r);
/* Forwards until kedge_relay_stop, from any thread. */
void kedge_relay_run(struct kedge_relay *r);
void kedge_relay_stop(struct kedge_relay *r);
/* After run. NULL is fine. */
void kedge_relay_close(struct kedge_relay *r);

#endif
