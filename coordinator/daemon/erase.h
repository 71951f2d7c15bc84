/* Updates that their tenant had erased: the statement first, durably, then the file. What a crash in between
 * leaves, the sweep at the next start removes. On the loop thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_ERASE_H
#define KEDGE_COORDINATOR_DAEMON_ERASE_H

#include "chain/store/ledger.h"
#include "common/net/server.h"

struct json_t;
struct kedge_admin_updates;
struct kedge_host;

/* ---- erased.c ---- */
/* The idempotency key of the order to erase this update. */
void kedge_erased_key(const struct kedge_hash *update, char out[KEDGE_IDEM_KEY_MAX + 1]);
/* Where the ledger says that this update is erased; false: it does not. */
bool kedge_ledger_find_erased(struct kedge_ledger *l, const struct kedge_hash *update, uint64_t *ret_index);
/* Says the ledger that this update is erased? */
bool kedge_ledger_has_erased(struct kedge_ledger *l, const struct kedge_hash *update);
/* The same, or the statement that says so is on its way: such bytes are not taken again. */
bool kedge_host_is_erased(const struct kedge_host *h, uint32_t tenant, const struct kedge_hash *update);
/* ---- admin_erase.c ---- */
/* What ledger.updates, ledger.refusals and ledger.shred ask for, and the place of their tenant.
 * KEDGE_E_NOT_FOUND: there is none of that name. */
KEDGE_NODISCARD int kedge_admin_updates_of(const struct kedge_host *h, const struct json_t *args,
                                           struct kedge_admin_updates *ret, uint32_t *ret_tenant,
                                           struct kedge_diag *d);
/* Verbs ledger.updates, ledger.erase, ledger.shred; false: it is none of these. */
bool kedge_admin_erase(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                       const struct json_t *args);

#endif
