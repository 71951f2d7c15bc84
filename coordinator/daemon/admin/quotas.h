/* What a tenant may have, by the newest quota-set of the main chain about it, and where there is none the
 * same for every tenant, so that no tenant can fill what is there for all. Asked before anything is made. The
 * texts of refusals name the number that was reached, and nothing of other tenants. On the loop thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_ADMIN_QUOTAS_H
#define KEDGE_COORDINATOR_DAEMON_ADMIN_QUOTAS_H

#include <stddef.h>

#include "common/base/diag.h"
#include "coordinator/daemon/members.h"

struct kedge_host;
struct kedge_job_spec;
struct kedge_net_request;

enum {
    KEDGE_QUOTA_SITES = KEDGE_SITES_MAX / 4, /* of a tenant whose quota does not say */
    KEDGE_QUOTA_TOKENS = 10000,              /* likewise; there is room for 100,000 */
    KEDGE_SUSPENDED_RETRY_MS = 60000,
};

/* Takes in the main chain's quotas, and how many tokens each tenant has, once all tenants are there. */
KEDGE_NODISCARD int kedge_host_quotas_load(struct kedge_host *h, struct kedge_diag *d);

/* The statement is durable: in force from now on. */
void kedge_host_quota_take(struct kedge_host *h, const struct kedge_st_quota_set *st);

/* KEDGE_E_FULL: one more would be more than the tenant's quota. */
KEDGE_NODISCARD int kedge_quota_check_site(const struct kedge_host *h, uint32_t tenant, struct kedge_diag *d);
KEDGE_NODISCARD int kedge_quota_check_token(const struct kedge_host *h, uint32_t tenant,
                                            struct kedge_diag *d);
/* Of all tenants that the spec names; also KEDGE_E_STATE: one is suspended. */
KEDGE_NODISCARD int kedge_quota_check_job(const struct kedge_host *h, const struct kedge_job_spec *spec,
                                          struct kedge_diag *d);
/* A statement of a site, and bytes of an upload: false, and the request is answered BUSY with the time to
 * come back. */
bool kedge_quota_takes_statement(struct kedge_host *h, struct kedge_net_request *req, uint32_t tenant);
bool kedge_quota_takes_bytes(struct kedge_host *h, struct kedge_net_request *req, uint32_t tenant,
                             size_t bytes);

/* What the tenant has: places of sites, revoked ones too; jobs that go on and name it. And how much it may.
 */
uint32_t kedge_quota_sites(const struct kedge_host *h, uint32_t tenant);
uint32_t kedge_quota_jobs(const struct kedge_host *h, uint32_t tenant);
uint32_t kedge_quota_sites_most(const struct kedge_tenant *t);
uint32_t kedge_quota_tokens_most(const struct kedge_tenant *t);

#endif
