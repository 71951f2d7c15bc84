/* Walks over our own logs at a restart: statements by their idempotency keys. */
#ifndef KEDGE_COORDINATOR_DAEMON_RESTORE_RESTORE_WALK_H
#define KEDGE_COORDINATOR_DAEMON_RESTORE_RESTORE_WALK_H

#include "chain/statement/statement.h"
#include "chain/store/ledger.h"
#include "common/base/diag.h"

struct kedge_host;
struct kedge_job;
struct kedge_walk;

/* Gets a statement of the walk's kind in w->st, and where in w->ledger it stands. */
typedef int kedge_walk_each(struct kedge_walk *w, uint64_t index);

struct kedge_walk {
    struct kedge_host *h;
    struct kedge_diag *d;
    struct kedge_statement *st; /* the one that is looked at; too large for a stack */
    struct kedge_job *job;      /* that is being restored */
    uint32_t tenant;            /* likewise */
    /* of the last walk */
    struct kedge_ledger *ledger;
    enum kedge_statement_kind kind;
    kedge_walk_each *each;
    bool found;                            /* after kedge_walk_last: there is a key … */
    uint64_t last_index;                   /* … the last one stands here … */
    char last_key[KEDGE_IDEM_KEY_MAX + 1]; /* … and is this */
};

/* The statement of an entry: its signature was checked when it was appended, and the ledger's root covers it
 * since. Errors of kedge_ledger_get, kedge_dsse_decode and kedge_statement_decode. */
KEDGE_NODISCARD int kedge_walk_entry(struct kedge_ledger *l, uint64_t index, struct kedge_statement *ret,
                                     struct kedge_diag *d);
/* Reads an entry into w->st: its signature was checked when it was appended. KEDGE_E_CORRUPT when it is no
 * statement of this kind; the text names log and entry. */
KEDGE_NODISCARD int kedge_walk_read(struct kedge_walk *w, struct kedge_ledger *l, uint64_t index,
                                    enum kedge_statement_kind kind);
/* Hands `each` every statement whose key begins with the prefix, which is "KIND/NAME/RRRRRRRR/", "KIND/NAME/"
 * with round KEDGE_WALK_ALL, or "KIND/" without a name. */
#define KEDGE_WALK_ALL UINT32_MAX
KEDGE_NODISCARD int kedge_walk_all(struct kedge_walk *w, struct kedge_ledger *l,
                                   enum kedge_statement_kind kind, const char *name, uint32_t round,
                                   kedge_walk_each *each);
/* The same in the ledgers of all tenants of w->job, about that job; w->tenant is the one whose turn it is. */
KEDGE_NODISCARD int kedge_walk_tenants(struct kedge_walk *w, enum kedge_statement_kind kind, uint32_t round,
                                       kedge_walk_each *each);
/* Finds the last of the keys that begin with "KIND/NAME/"; `kind` as text, for not all are statements. */
KEDGE_NODISCARD int kedge_walk_last(struct kedge_walk *w, struct kedge_ledger *l, const char *kind,
                                    const char *name);

#endif
