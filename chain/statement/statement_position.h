/* Where a tenant's statement may stand. Every statement that a tenant's admins, keys or sites sign about
 * themselves names the deployment that it is for, how much of the tenant's ledger its signer had seen, and
 * how far that ledger may have come when it is appended (struct kedge_st_position). So it stands in one
 * ledger of one deployment, while nothing that it rests on has changed, or nowhere: an envelope that somebody
 * kept back cannot be played later, nor in another federation of the same organisation. Filled, and judged,
 * here alone: by the coordinator before it appends, by the auditor of what was appended, by the same rules.
 * Pure.
 *
 * A statement that would be entry i of a ledger may stand there when
 * - main_log_key is the key of the deployment's main chain;
 * - i < before, and before is at most KEDGE_POSITION_SPAN_MAX entries after seen_size;
 * - seen_size ≤ i, and seen_root is the root of the ledger's first seen_size entries;
 * - its signer had seen what it rests on: no entry from seen_size on changes the tenant's admin or recovery
 *   keys (for what the tenant's keys sign), or is about the same site, witness or contact.
 * Entry 0, the admin's key, has seen nothing: seen_size 0, and the root of no entries. */
#ifndef KEDGE_CHAIN_STATEMENT_STATEMENT_POSITION_H
#define KEDGE_CHAIN_STATEMENT_STATEMENT_POSITION_H

#include "chain/statement/keybook.h"
#include "chain/statement/statement.h"

/* The tenant that a statement with a position is about; every such kind names one. */
const struct kedge_id *kedge_statement_tenant(const struct kedge_statement *st);

/* A position that a signer may name now: `size` entries with `root` were seen, and the statement is good
 * until the ledger has grown by `span` (1…KEDGE_POSITION_SPAN_MAX) entries more. */
struct kedge_st_position kedge_position_make(const struct kedge_public_key *main_log_key, uint64_t size,
                                             const struct kedge_hash *root, uint64_t span);

/* *ret: root of the ledger's first `size` entries, which are there. */
typedef int kedge_position_root(void *arg, uint64_t size, struct kedge_hash *ret);

/* Entries that may come before a statement while it is on its way into a ledger. */
enum { KEDGE_POSITION_LATE = 4096 };

/* The ledger that the statement is to stand in. */
struct kedge_position_ledger {
    const struct kedge_public_key *main_log_key; /* NULL: not known, so it is not looked at */
    uint64_t size;                               /* entries before the statement, for sure */
    uint64_t late;                               /* entries that may come before it besides */
    kedge_position_root *root;
    void *arg;
};

/* Whether st may stand there; `book` is as of ledger->size. Kinds without a position: KEDGE_OK.
 * KEDGE_E_POSITION says which rule is broken and what to do; errors of `root` are handed on. */
KEDGE_NODISCARD int kedge_position_judge(const struct kedge_keybook *book, const struct kedge_statement *st,
                                         const struct kedge_position_ledger *ledger,
                                         struct kedge_diag *reterr);

#endif
