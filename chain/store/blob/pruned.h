/* Which blobs of a log's folder its operator has given up on purpose: DIR/pruned.txt, a first line
 * "kedge-pruned/v1", then a digest a line, 64 hex digits, ascending. It is the operator's word and proves
 * nothing; who reads a record allows it only what can be made again (chain/audit/files/prune.h). */
#ifndef KEDGE_CHAIN_STORE_BLOB_PRUNED_H
#define KEDGE_CHAIN_STORE_BLOB_PRUNED_H

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "crypto/hash.h"

/* Appends the digests, 32 bytes each, ascending; none when there is no such file. KEDGE_E_CORRUPT. */
KEDGE_NODISCARD int kedge_pruned_read(const char *dir, struct kedge_buf *ret, struct kedge_diag *reterr);
bool kedge_pruned_has(struct kedge_view digests, const struct kedge_hash *digest);
/* Adds digests (32 bytes each, in any order, fine when they are there), durably. For who holds the log. */
KEDGE_NODISCARD int kedge_pruned_add(const char *dir, struct kedge_view digests, struct kedge_diag *reterr);

#endif
