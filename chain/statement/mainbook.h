/* Who speaks for the federation: the coordinator's statement keys, who else may ask it, and how many
 * organisations approve a change of these, as the main chain says after each entry. Coordinator, auditor and
 * the checker of exports share this page, as they share chain/statement/keybook.h for a tenant's keys. Order
 * alone decides, never a clock. Pure.
 *
 * - Entry 0, the policy, names the first statement key and the main chain's log key.
 * - statement-key-rotated is signed by the key that goes and the key that comes. From its entry on the new
 * key signs; what the old one signed before stays valid.
 * - role-granted, role-revoked and policy-changed are signed by the statement key in force.
 * - With an admin quorum of k the four bear, besides, signatures by admin keys of at least k distinct
 * tenants, each in force in that tenant's ledger as it was last anchored before the statement. Two
 * admins of one tenant are one organisation; a key that is an admin's in several tenants is nobody's. Who
 * changes the quorum needs the larger of the old and the new one.
 * - They name the main chain that they are for, and an entry before which they stand or nowhere: an
 * approval serves one statement, in one federation, for a while.
 * - A key has one role, for ever: none that was a statement key, the log key or had a role comes again. */
#ifndef KEDGE_CHAIN_STATEMENT_MAINBOOK_H
#define KEDGE_CHAIN_STATEMENT_MAINBOOK_H

#include "chain/statement/statement.h"

enum {
    KEDGE_STATEMENT_KEYS_MAX = 1024, /* of one main chain, for ever: twice a year for five centuries */
    KEDGE_ROLES_MAX = 256,           /* that were ever granted */
};
#define KEDGE_MAINBOOK_ALWAYS UINT64_MAX

struct kedge_main_key {
    struct kedge_public_key key;
    uint64_t from, until; /* entries that it came and went with; the last has until KEDGE_MAINBOOK_ALWAYS */
};
struct kedge_main_role {
    enum kedge_chain_role role;
    struct kedge_id name;
    struct kedge_public_key key;
    uint64_t from, until;
};

struct kedge_mainbook {
    bool begun; /* it has the policy; else nothing else counts */
    char deployment[KEDGE_ST_NAME_MAX + 1];
    struct kedge_public_key main_log_key;
    struct kedge_main_key *keys; /* in the order of their coming; at least one */
    uint32_t key_count;
    struct kedge_main_role *roles;
    uint32_t role_count;
    uint64_t changes; /* of the policy */
    uint32_t admin_quorum;
};

/* Where approvals come from: the tenants' admin keys, as they were last anchored. */
struct kedge_organisations {
    /* The key whose SHA-256 is keyid, and the number of the one tenant whose admin key it is, in force.
     * KEDGE_E_REVOKED: no longer; KEDGE_E_NOT_FOUND: of none; KEDGE_E_EXISTS: of several. */
    int (*find)(void *arg, const struct kedge_hash *keyid, uint32_t *ret_tenant,
                struct kedge_public_key *ret_key);
    void *arg;
};
struct kedge_approvals {
    uint32_t count; /* distinct tenants */
    uint32_t tenants[KEDGE_DSSE_SIGNATURES_MAX];
};

void kedge_mainbook_init(struct kedge_mainbook *book);
void kedge_mainbook_deinit(struct kedge_mainbook *book);

/* Does a statement of this kind change it? */
bool kedge_mainbook_concerns(enum kedge_statement_kind kind);
/* The statement key in force after the last entry; NULL before the policy. */
const struct kedge_public_key *kedge_mainbook_key(const struct kedge_mainbook *book);
/* The statement key whose SHA-256 is keyid, in force or not; NULL: none. */
const struct kedge_main_key *kedge_mainbook_find(const struct kedge_mainbook *book,
                                                 const struct kedge_hash *keyid);
/* That key's role in force; NULL: it has none. */
const struct kedge_main_role *kedge_mainbook_role(const struct kedge_mainbook *book,
                                                  const struct kedge_public_key *key);
/* Whether the main chain names the key anywhere, in force or not. */
bool kedge_mainbook_names(const struct kedge_mainbook *book, const struct kedge_public_key *key);
/* Organisations that approve this statement. */
uint32_t kedge_mainbook_quorum(const struct kedge_mainbook *book, const struct kedge_statement *st);

/* Whether the coordinator's own signatures are there and hold. Others are left to the next one; *ret_others:
 * how many there are. KEDGE_E_DENIED, KEDGE_E_REVOKED (a statement key that was rotated away),
 * KEDGE_E_VERIFY. */
KEDGE_NODISCARD int kedge_mainbook_verify(const struct kedge_mainbook *book, const struct kedge_statement *st,
                                          const struct kedge_signed_statement *entry, uint32_t *ret_others,
                                          struct kedge_diag *reterr);
/* Whether organisations signed the rest, each as an admin in force, and enough of them: KEDGE_E_DENIED,
 * KEDGE_E_REVOKED, KEDGE_E_VERIFY. ret tells who has, also after KEDGE_E_DENIED for too few. */
KEDGE_NODISCARD int kedge_mainbook_approved(const struct kedge_mainbook *book,
                                            const struct kedge_statement *st,
                                            const struct kedge_signed_statement *entry,
                                            const struct kedge_organisations *from,
                                            struct kedge_approvals *ret, struct kedge_diag *reterr);
/* Whether the statement may stand as that entry, signatures apart: for another main chain (KEDGE_E_DENIED),
 * after its bound (KEDGE_E_STATE), a key that is not new (KEDGE_E_KEY) or not the one in force, a role that
 * is not there (KEDGE_E_NOT_FOUND), a number out of turn (KEDGE_E_EXISTS), more than there may be
 * (KEDGE_E_FULL). */
KEDGE_NODISCARD int kedge_mainbook_check(const struct kedge_mainbook *book, const struct kedge_statement *st,
                                         uint64_t index, struct kedge_diag *reterr);
/* Checks and takes it in. Also KEDGE_E_NOMEM; after an error the book is as it was. */
KEDGE_NODISCARD int kedge_mainbook_apply(struct kedge_mainbook *book, const struct kedge_statement *st,
                                         uint64_t index, struct kedge_diag *reterr);

/* For sites, which do not read the main chain: from a key that the owner's trust file names along the
 * rotations that the coordinator shows (statement-key-rotated envelopes, each after its length as u32; those
 * before the key are passed over), each signed by the key that goes and the key that comes. Whether they
 * stand in the main chain is the auditors' to say. KEDGE_E_FORMAT, KEDGE_E_VERIFY, KEDGE_E_DENIED (of another
 * deployment), KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_mainbook_follow(const struct kedge_public_key *first, const char *deployment,
                                          struct kedge_view rotations, struct kedge_public_key *ret);

#endif
