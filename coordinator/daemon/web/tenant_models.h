/* What a tenant's admin may take with the tenant's own key as TLS key: the released models of jobs that the
 * tenant has joined, with what proves them (the same that its witness and its readers may read in the main
 * chain), and what its own sites say of such jobs while they run. All else that such a key asks for is
 * refused in words that are the same whether it exists or not. On the loop thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_WEB_TENANT_MODELS_H
#define KEDGE_COORDINATOR_DAEMON_WEB_TENANT_MODELS_H

#include "common/base/bytes.h"
#include "common/net/server.h"
#include "common/wire/messages.h"

struct kedge_host;

/* Whether the peer speaks with an admin key that is in force in a tenant's ledger. */
bool kedge_host_is_admin(const struct kedge_host *h, const struct kedge_net_peer *peer);
/* Its requests: job.model, job.show (of what its own sites say of a job that runs), and a piece of a model or
 * spec that job.model names. */
void kedge_host_tenant_admin(struct kedge_host *h, struct kedge_net_request *req, struct kedge_view json);
void kedge_host_tenant_model_get(struct kedge_host *h, struct kedge_net_request *req,
                                 const struct kedge_msg_blob_get *get);

#endif
