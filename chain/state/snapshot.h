/* One moment of all stores of a state folder, while its coordinator works on it or not: the main chain, every
 * tenant's ledger and the coordinator's own store, each as of a read transaction that stays open while its
 * content is copied. The coordinator is not asked and does not wait.
 *
 * How several LMDB files come to show one moment: the coordinator lets nothing follow from an append before
 * it is durable, and what follows from one log in another goes through the main chain. So first the main
 * chain is pinned, then the coordinator's store, then the tenants, and then it is looked whether the main
 * chain, the list of tenants and the keys are still what they were. If so, what was pinned could have been
 * found on the disk after a power cut; if not, all are let go and pinned anew. Pinning takes microseconds a
 * log, a batch of the main chain some milliseconds, so this comes to an end also under load. */
#ifndef KEDGE_CHAIN_STATE_SNAPSHOT_H
#define KEDGE_CHAIN_STATE_SNAPSHOT_H

#include "chain/state/state.h"

struct kedge_snapshot;

/* Damaged files can crash LMDB: run it under kedge_store_guarded. KEDGE_E_BUSY: never still for long enough.
 * KEDGE_E_NOT_FOUND: no state folder. */
KEDGE_NODISCARD int kedge_snapshot_take(const char *state, struct kedge_snapshot **ret,
                                        struct kedge_diag *reterr);
void kedge_snapshot_free(struct kedge_snapshot *s); /* NULL is fine */

/* The tenants of that moment, ascending. */
size_t kedge_snapshot_tenants(const struct kedge_snapshot *s, const struct kedge_id **ret_ids);

/* The private keys of that moment below `out`: keys/NAME.pem, none of the updates' keys. */
KEDGE_NODISCARD int kedge_snapshot_put_keys(const struct kedge_snapshot *s, const char *out,
                                            struct kedge_diag *reterr);
/* Each log below `out` where a state folder has it (main/ledger.lmdb, tenants/T/ledger.lmdb), and with `own`
 * coordinator.lmdb, too: written anew record by record, so that no earlier state of a record is in the copy.
 * With `marks` also the high-water marks of just these sizes. Durable. */
KEDGE_NODISCARD int kedge_snapshot_put_stores(const struct kedge_snapshot *s, const char *out, bool own,
                                              bool marks, struct kedge_diag *reterr);
/* Whether a record of a job in the coordinator's own store names this digest: the spec of a job that the main
 * chain does not know yet. */
KEDGE_NODISCARD int kedge_snapshot_job_names(const struct kedge_snapshot *s, const struct kedge_hash *digest,
                                             bool *ret);

#endif
