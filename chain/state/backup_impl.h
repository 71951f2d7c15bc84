/* What copies of state folders share, for their owner (backup.c) and for auditors (pack.c). Internal to this
 * room. */
#ifndef KEDGE_CHAIN_STATE_BACKUP_IMPL_H
#define KEDGE_CHAIN_STATE_BACKUP_IMPL_H

#include "chain/state/snapshot.h"
#include "chain/state/tree.h"

bool kedgei_ends_with(const char *name, const char *end);
/* The wanted files below `from`, under the same names below `to`. One that goes meanwhile is no fault. */
KEDGE_NODISCARD int kedgei_copy_tree(const char *from, const char *to, kedge_tree_wanted *wanted,
                                     struct kedge_diag *d);
KEDGE_NODISCARD int kedgei_copy_update_keys(const char *state, const char *out, struct kedge_diag *d);
/* Folders below `out` that may be empty, so that copies file by file lack them: the tenants', and that of
 * each log's blobs, without which it does not open. */
KEDGE_NODISCARD int kedgei_make_blob_folders(const char *out, const struct kedge_id *tenants, size_t count,
                                             struct kedge_diag *d);
/* LMDB's lock files below `out`, which are in the tree, go from both. */
KEDGE_NODISCARD int kedgei_drop_locks(const char *out, struct kedge_tree *tree, struct kedge_diag *d);

#endif
