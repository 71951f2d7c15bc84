/* Copies of logs on disk: laid out like a coordinator's state folder, with those logs that their keeper may
 * have, so that `kedge ledger` and `kedge audit` read them as they stand.
 *
 *   DIR/config.json                    deployment name
 *   DIR/main/{ledger.lmdb,blobs}       main chain: all leaf hashes, those entries that the keeper may read
 *   DIR/tenants/T/{tenant.json,ledger.lmdb,blobs} */
#ifndef KEDGE_CHAIN_STATE_COPY_H
#define KEDGE_CHAIN_STATE_COPY_H

#include "chain/state/state.h"

/* Makes the folder of copies of a deployment's logs; one that is there must be of the same deployment
 * (KEDGE_E_STATE). A coordinator's state folder is refused. */
KEDGE_NODISCARD int kedge_state_copy_create(const char *dir, const char *deployment,
                                            struct kedge_diag *reterr);
/* Writes tenants/T/tenant.json: the salt makes the tenant's checkpoints in the main chain known.
 * KEDGE_E_STATE: there is one with another salt. */
KEDGE_NODISCARD int kedge_state_copy_tenant(const char *dir, const struct kedge_id *tenant,
                                            const uint8_t salt[KEDGE_SALT_LEN], struct kedge_diag *reterr);
/* Opens the copy of a log for extending (chain/store/replica.h), made when absent. tenant NULL: the main
 * chain. The caller closes it with kedge_state_log_close. */
KEDGE_NODISCARD int kedge_state_copy_open(const char *dir, const struct kedge_id *tenant,
                                          const struct kedge_public_key *log_key, struct kedge_state_log *ret,
                                          struct kedge_diag *reterr);

#endif
