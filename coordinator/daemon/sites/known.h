/* Whose TLS keys are known here: sites and witnesses that are enrolled and not revoked, tenants' admins,
 * operators and auditors. The network asks for each connection, on its thread (common/net/server.h); the
 * tables that say so are the loop's. So the loop writes the keys down whenever they change, and the network
 * looks only at that. */
#ifndef KEDGE_COORDINATOR_DAEMON_SITES_KNOWN_H
#define KEDGE_COORDINATOR_DAEMON_SITES_KNOWN_H

#include <stdbool.h>

#include "common/base/diag.h"
#include "common/net/peer.h"
#include "crypto/sign.h"

struct kedge_host;
struct kedge_known; /* kedge_host.known */

/* Before the server opens. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_host_known_open(struct kedge_host *h, struct kedge_diag *d);
/* After the server is closed. */
void kedge_host_known_close(struct kedge_host *h);
/* On the loop thread: something of the above has changed. Nothing before kedge_host_known_open, which reads
 * all. */
void kedge_host_known_refresh(struct kedge_host *h);
/* Whose line of the inbox the peer's requests stand in; on the network thread. */
uint32_t kedge_host_line_of(struct kedge_host *h, const struct kedge_net_peer *peer);
/* kedge_net_knows; h is a kedge_host. */
bool kedge_host_knows(void *h, const struct kedge_public_key *key);

#endif
