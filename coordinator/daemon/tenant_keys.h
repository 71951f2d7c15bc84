/* A tenant's keys from its ledger. */
#ifndef KEDGE_COORDINATOR_DAEMON_TENANT_KEYS_H
#define KEDGE_COORDINATOR_DAEMON_TENANT_KEYS_H

#include "coordinator/daemon/members.h"

/* Fills t->keys and t->admin_key from t->log, in the order of its entries. Signatures were checked when they
 * were appended. KEDGE_E_CORRUPT names the entry; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_tenant_keys_load(struct kedge_tenant *t, struct kedge_diag *d);

#endif
