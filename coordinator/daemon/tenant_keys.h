/* A tenant's keys from its ledger. */
#ifndef KEDGE_COORDINATOR_DAEMON_TENANT_KEYS_H
#define KEDGE_COORDINATOR_DAEMON_TENANT_KEYS_H

#include "coordinator/daemon/members.h"

/* Fills t->keys and t->admin_key from t->log, in the order of its entries. Signatures were checked when they
 * were appended. KEDGE_E_CORRUPT names the entry; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_tenant_keys_load(struct kedge_tenant *t, struct kedge_diag *d);

/* Whether the key is one of the tenant's admin keys that are in force. */
bool kedge_tenant_has_admin(const struct kedge_tenant *t, const struct kedge_public_key *key);
/* Whether the key's holder sees the tenant: as one of its admins in force, or as one of its viewers. */
bool kedge_tenant_shows_to(const struct kedge_tenant *t, const struct kedge_public_key *key);

/* Where the statements of those kinds stand that are found by "KIND/…", ascending; *ret is freed with
 * kedge_mem_free, also after an error. KEDGE_E_NOMEM and errors of the ledger. */
KEDGE_NODISCARD int kedge_entries_of(struct kedge_ledger *ledger,
                                     bool (*wanted)(enum kedge_statement_kind kind), uint64_t **ret,
                                     size_t *ret_count);

#endif
