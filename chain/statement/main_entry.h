/* Entries of the main chain: a statement (a DSSE envelope, which begins with '{') or a tenant's signed
 * checkpoint after a 32-byte random salt, so that a party that sees only its leaf hash cannot guess origin,
 * size or root. The salt's first bit is 1, which no '{' has. Pure. */
#ifndef KEDGE_CHAIN_STATEMENT_MAIN_ENTRY_H
#define KEDGE_CHAIN_STATEMENT_MAIN_ENTRY_H

#include "common/base/bytes.h"
#include "common/base/text.h"
#include "crypto/hash.h"

enum { KEDGE_SALT_LEN = 32 };

enum kedge_main_entry_kind { KEDGE_MAIN_STATEMENT, KEDGE_MAIN_CHECKPOINT };

struct kedge_main_entry {
    enum kedge_main_entry_kind kind;
    struct kedge_view body;       /* envelope, or checkpoint note; borrowed */
    uint8_t salt[KEDGE_SALT_LEN]; /* of a checkpoint; zero for a statement */
};

/* Appends salt (its first bit set to 1) ‖ note. KEDGE_E_ARG for an empty note, KEDGE_E_TOO_LONG. */
KEDGE_NODISCARD int kedge_main_entry_encode(const uint8_t salt[KEDGE_SALT_LEN], struct kedge_view note,
                                            struct kedge_buf *ret_entry);
/* Tells the two kinds apart; the body is not looked into. KEDGE_E_FORMAT, KEDGE_E_TOO_LONG. */
KEDGE_NODISCARD int kedge_main_entry_decode(struct kedge_view entry, struct kedge_main_entry *ret_entry);

/* SHA-256(salt ‖ tenant id): how the main chain names a tenant to those who do not hold the job's salt. */
void kedge_salted_tenant_id(const uint8_t salt[KEDGE_SALT_LEN], const struct kedge_id *tenant,
                            struct kedge_hash *ret_hash);

#endif
