/* A copy of somebody else's log, kept by a tenant or an auditor: the ledger's own layout and checks
 * (ledger_check, reading, proofs) without the tables that only its writer needs. It grows by what signed
 * checkpoints prove and never shrinks. Entries that its keeper may not read are stored empty; the tiles have
 * their leaf hashes, so that the tree and every proof are whole all the same. */
#ifndef KEDGE_CHAIN_STORE_REPLICA_H
#define KEDGE_CHAIN_STORE_REPLICA_H

#include "chain/store/ledger.h"

/* Opens the copy of log `origin`, whose checkpoints `log_key` signs; `create` makes an empty one. What
 * kedge_ledger_open returns; KEDGE_E_STATE when the store holds the log itself. Reading it needs no more than
 * kedge_ledger_open. */
KEDGE_NODISCARD int kedge_replica_open(struct kedge_kv *kv, const char *origin,
                                       const struct kedge_public_key *log_key, bool create,
                                       struct kedge_ledger **ret, struct kedge_diag *reterr);

struct kedge_replica_entry {
    struct kedge_view entry; /* 1…KEDGE_ENTRY_MAX bytes; none: withheld */
    struct kedge_hash leaf;
};

/* Adds 0…KEDGE_APPEND_MAX entries behind those that are there, in one durable transaction; with a note, the
 * log's signed checkpoint of exactly the size that results, that too. The caller knows that what results is a
 * prefix of a tree that the log signed. KEDGE_E_VERIFY: an entry has another leaf hash than said, or the note
 * is not the log's for this size and root; nothing was added. KEDGE_E_DISK_FULL: nothing was added.
 * KEDGE_E_IO: the copy must be opened again. KEDGE_E_STATE: not a copy. */
KEDGE_NODISCARD int kedge_replica_extend(struct kedge_ledger *l, const struct kedge_replica_entry *entries,
                                         size_t count, struct kedge_view note, struct kedge_diag *reterr);
/* The tree's frontier: what the caller extends by leaf hashes to know the root before it adds them. */
void kedge_replica_frontier(struct kedge_ledger *l, struct kedge_frontier *ret);

#endif
