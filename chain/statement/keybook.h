/* The keys of one tenant's ledger: which are in force after each entry, who must sign a statement, and which
 * change of keys is admitted. Validity is a matter of entries' order alone, never of a clock. Coordinator and
 * auditor share this page, as they share the arithmetic of a round: one feeds it what it is about to append,
 * the other what was appended. Pure.
 *
 * - Every key has one role and one holder, for ever: a key that a ledger has named once comes never again.
 * - Several admin keys may be in force; each signs sites and witnesses in and out and joins jobs.
 * - What changes the set of admins is signed by more than half of the admin keys in force
 * (kedge_keybook_quorum): the thief of one of several cannot. key-added also by the key that comes.
 * - key-rotated is signed by the key that goes and the key that comes, and by nobody else. A site's TLS key
 * signs no statements but the one that it comes with: the site's statement key stands for the one that goes.
 * - key-revoked of an admin key is also good with that key's signature alone; one admin key always stays.
 * - At most one recovery key is in force; it rotates and revokes itself, no admin can. Its only other deed is
 *   key-recovered, with the key that comes: all admin keys go, that one comes, in one entry.
 * - A key that came with entry i signs entries after i; one that went with entry i signs none after i. */
#ifndef KEDGE_CHAIN_STATEMENT_KEYBOOK_H
#define KEDGE_CHAIN_STATEMENT_KEYBOOK_H

#include "chain/statement/statement.h"

enum { KEDGE_ADMIN_KEYS_MAX = 15 }; /* in force at one time: with the new key, signatures fit one envelope */
#define KEDGE_KEYBOOK_ALWAYS UINT64_MAX

struct kedge_book_key {
    struct kedge_public_key key;
    struct kedge_hash id; /* its SHA-256: what signatures name */
    enum kedge_key_role role;
    struct kedge_id holder; /* site or witness; empty: admin, recovery */
    uint64_t from;          /* entry that it came with */
    uint64_t until;         /* entry that it went with; KEDGE_KEYBOOK_ALWAYS: it is in force */
    bool revoked;           /* it went, and not by rotation */
    uint64_t spoken;        /* a site's statement key, a witness's cosignature key, the holder's last one: so
                               many entries with the last one about the holder */
    uint32_t earlier;       /* admin and recovery: index + 1 of the one that came before it; 0: none */
};

static inline bool kedge_book_key_in_force(const struct kedge_book_key *k)
{
    return k->until == KEDGE_KEYBOOK_ALWAYS;
}
/* "admin key", "site's TLS key", …; static storage. */
const char *kedge_key_role_name(enum kedge_key_role role);

struct kedge_keybook {
    struct kedge_id tenant;
    struct kedge_book_key *keys; /* in the order of their coming */
    uint32_t count, cap;
    uint32_t *by_key, *by_holder; /* open addressing; index + 1, 0: free */
    uint32_t slots;               /* of each, a power of two or 0 */
    uint32_t last_admin;          /* admin and recovery keys are chained by `earlier`; index + 1 */
    uint32_t admins;              /* in force */
    uint32_t recovery;            /* in force: index + 1; 0: none */
    uint64_t changed; /* so many entries with the last one that changed admin or recovery keys … */
    uint64_t spoken;  /* … with the last contact of the tenant itself; 0: there is none */
};

void kedge_keybook_init(struct kedge_keybook *book, const struct kedge_id *tenant);
void kedge_keybook_deinit(struct kedge_keybook *book);

/* NULL: no statement named it. */
const struct kedge_book_key *kedge_keybook_find(const struct kedge_keybook *book,
                                                const struct kedge_public_key *key);
/* The holder's last key of that role, in force or not; NULL: there never was one. */
const struct kedge_book_key *kedge_keybook_of(const struct kedge_keybook *book, enum kedge_key_role role,
                                              const struct kedge_id *holder);
uint32_t kedge_keybook_admins(const struct kedge_keybook *book); /* in force */
uint32_t kedge_keybook_quorum(const struct kedge_keybook *book); /* admin keys needed to change admin keys */
/* NULL: none in force. */
const struct kedge_book_key *kedge_keybook_recovery(const struct kedge_keybook *book);

/* Which keys must have signed the statement: one for each of the signatures, in their order.
 * Their signatures are then the caller's to verify. Kinds: key, key-*, site-*, witness-*, job-joined; an
 * admin that signs `key` is the key inside. KEDGE_E_DENIED: keys that are unknown, of another role or too
 * few; KEDGE_E_REVOKED: a key that is in force no more. */
KEDGE_NODISCARD int kedge_keybook_signers(const struct kedge_keybook *book, const struct kedge_statement *st,
                                          const struct kedge_dsse_entry *signatures, uint32_t count,
                                          struct kedge_public_key ret_keys[KEDGE_DSSE_SIGNATURES_MAX],
                                          struct kedge_diag *reterr);
/* Whether the statement may stand as the next entry, its signatures apart: names another tenant
 * (KEDGE_E_DENIED), a key that is not new (KEDGE_E_KEY), a holder that is not there (KEDGE_E_NOT_FOUND) or
 * there already (KEDGE_E_EXISTS), another key than the holder's (KEDGE_E_KEY), one that went before
 * (KEDGE_E_REVOKED), the last admin key, or more keys than there may be (KEDGE_E_FULL). Kinds without keys:
 * KEDGE_OK. */
KEDGE_NODISCARD int kedge_keybook_check(const struct kedge_keybook *book, const struct kedge_statement *st,
                                        struct kedge_diag *reterr);
/* Checks and takes it in as entry `index`. Also KEDGE_E_NOMEM; after an error the book is as it was. */
KEDGE_NODISCARD int kedge_keybook_apply(struct kedge_keybook *book, const struct kedge_statement *st,
                                        uint64_t index, struct kedge_diag *reterr);

/* The admin key whose SHA-256 is keyid, in *ret also when it is in force no more (KEDGE_E_REVOKED).
 * KEDGE_E_NOT_FOUND. */
KEDGE_NODISCARD int kedge_keybook_admin(const struct kedge_keybook *book, const struct kedge_hash *keyid,
                                        const struct kedge_book_key **ret);

/* Verifies an entry that kedge_statement_read took apart: signers, then each signature. KEDGE_E_VERIFY too.
 */
KEDGE_NODISCARD int kedge_keybook_verify(const struct kedge_keybook *book, const struct kedge_statement *st,
                                         const struct kedge_signed_statement *entry,
                                         struct kedge_diag *reterr);

/* How many entries of the ledger a signer of st must have seen: all up to the last one that changed the
 * tenant's admin or recovery keys, unless a site signs with its own, and the last one about the same site,
 * witness or contact. */
uint64_t kedge_keybook_rests_on(const struct kedge_keybook *book, const struct kedge_statement *st);

/* Is there anything in it that a book takes in? Those that give or take keys, contacts and labels. */
static inline bool kedge_keybook_takes(enum kedge_statement_kind kind)
{
    return kind <= KEDGE_ST_WITNESS_REVOKED || kind == KEDGE_ST_CONTACT || kind == KEDGE_ST_SITE_LABELS;
}

/* Does a statement of this kind give or take keys? */
static inline bool kedge_keybook_concerns(enum kedge_statement_kind kind)
{
    return kind <= KEDGE_ST_WITNESS_REVOKED;
}

#endif
