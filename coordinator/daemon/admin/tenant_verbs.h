/* What the admins and viewers of a tenant ask from elsewhere, with an admin key or a viewer's as TLS key: of
 * the tenant's own sites, keys, ledger and readers what an operator may ask, of others nothing. On the loop
 * thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_ADMIN_TENANT_VERBS_H
#define KEDGE_COORDINATOR_DAEMON_ADMIN_TENANT_VERBS_H

#include <stdbool.h>

#include "common/net/server.h"

struct json_t;
struct kedge_host;

/* Answers, unless the verb is none of those that a tenant's admin has: false then. The peer's key is an
 * admin's or a viewer's (kedge_host_is_of_tenant). *io_args gets the tenant that the verb is about where the
 * request names none. */
bool kedge_admin_tenant_verb(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                             struct json_t *io_args);
/* job.list of that tenant's jobs: those that it joined, and those that run and name it. */
void kedge_admin_tenant_jobs(struct kedge_host *h, struct kedge_net_request *req, const struct json_t *args,
                             uint32_t tenant);

#endif
