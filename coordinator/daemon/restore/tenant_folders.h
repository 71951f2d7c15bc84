/* Which tenants a coordinator serves when its state folder holds more than it takes. */
#ifndef KEDGE_COORDINATOR_DAEMON_RESTORE_TENANT_FOLDERS_H
#define KEDGE_COORDINATOR_DAEMON_RESTORE_TENANT_FOLDERS_H

#include "common/base/diag.h"
#include "common/base/text.h"

struct kedge_host;

/* At most KEDGE_TENANTS_MAX names in ascending order; *ret_ids is freed with kedge_mem_free. Beyond that,
 * those are left out, and named in the log, of which a refused `tenant add` of an older program has left a
 * folder: the newest ones in whose ledgers nothing stands but their admin's key. KEDGE_E_FULL: there are not
 * enough of them. */
KEDGE_NODISCARD int kedge_host_tenant_folders(const struct kedge_host *h, struct kedge_id **ret_ids,
                                              size_t *ret_count, struct kedge_diag *d);

#endif
