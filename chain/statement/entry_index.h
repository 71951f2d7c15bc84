/* What a ledger's index tables hold of an entry: the idempotency key under which it was appended, and the
 * blobs that it references. Both follow from the entry itself. Pure. */
#ifndef KEDGE_CHAIN_STATEMENT_ENTRY_INDEX_H
#define KEDGE_CHAIN_STATEMENT_ENTRY_INDEX_H

#include "chain/statement/main_entry.h"
#include "chain/statement/statement.h"

enum {
    KEDGE_STEP_GROUP_REFS = 7, /* that a step names of a group at most */
    KEDGE_ENTRY_REFS_MAX =
        448, /* of a step of 64 groups; lists of a round and first models of a job are fewer */
};

/* Appends the key of a statement whose kedge_st_… is `body`; nothing for one that has none. */
void kedge_statement_key(enum kedge_statement_kind kind, const void *body, struct kedge_buf *out);
/* Appends the key of a tenant's checkpoint in the main chain. */
void kedge_checkpoint_key(const struct kedge_id *tenant, uint64_t size, struct kedge_buf *out);
/* Writes the digests of the blobs that the statement references, and returns how many: what a ledger keeps
 * from being swept for its sake. All who append a statement of the main chain take them from here. */
size_t kedge_statement_refs(const struct kedge_statement *st, struct kedge_hash ret[KEDGE_ENTRY_REFS_MAX]);
/* Both of an entry's bytes; signatures are not looked at. The tenants of `deployment` have the origins
 * "deployment/tenant". KEDGE_E_FORMAT and the errors of decoding for what is no entry. */
KEDGE_NODISCARD int kedge_entry_index(struct kedge_view entry, const char *deployment, bool in_main,
                                      struct kedge_buf *ret_key,
                                      struct kedge_hash ret_refs[KEDGE_ENTRY_REFS_MAX], size_t *ret_count);

#endif
