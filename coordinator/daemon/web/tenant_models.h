/* What a tenant's admin may see of jobs with the tenant's own key as TLS key: those that name the tenant,
 * with what its own sites say of them while they run, and the released models of those that it has joined,
 * with what proves them (the same that its witness and its readers may read in the main chain). Its own
 * affairs are admin/tenant_verbs.h's. All else that such a key asks for is refused in words that are the same
 * whether it exists or not. On the loop thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_WEB_TENANT_MODELS_H
#define KEDGE_COORDINATOR_DAEMON_WEB_TENANT_MODELS_H

#include "common/base/bytes.h"
#include "common/net/server.h"
#include "common/wire/messages.h"

struct kedge_host;

/* Its requests: job.model, job.show, the verbs of admin/tenant_verbs.c, and a piece of a model or spec that
 * job.model or job.show names. */
void kedge_host_tenant_admin(struct kedge_host *h, struct kedge_net_request *req, struct kedge_view json);
void kedge_host_tenant_model_get(struct kedge_host *h, struct kedge_net_request *req,
                                 const struct kedge_msg_blob_get *get);

#endif
