/* Viewers of tenants: TLS keys that see what a tenant's admins see, and change nothing. A tenant's admin, or
 * an operator, adds and removes them. They are in no ledger, as tokens of readers are not: a viewer signs
 * nothing, so the record has nothing to prove of it. On the loop thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_ADMIN_VIEWERS_H
#define KEDGE_COORDINATOR_DAEMON_ADMIN_VIEWERS_H

#include "common/base/diag.h"
#include "coordinator/daemon/members.h"

struct json_t;
struct kedge_host;
struct kedge_net_request;

enum { KEDGE_VIEWERS_MAX = 16 }; /* of a tenant */

/* Takes in what coordinator.lmdb keeps, once all tenants are there. KEDGE_E_CORRUPT names the record. */
KEDGE_NODISCARD int kedge_host_viewers_load(struct kedge_host *h, struct kedge_diag *d);
/* viewer.add, viewer.list, viewer.remove. */
void kedge_admin_viewers(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                         const struct json_t *args);

#endif
