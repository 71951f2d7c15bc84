/* Who spoke for the coordinator, entry by entry of the main chain and of tenants' ledgers, and whether
 * organisations approved what they had to (chain/statement/mainbook.h). Used while keys are checked. Internal
 * to this room. */
#ifndef KEDGE_CHAIN_AUDIT_IDENTITY_AUTHORITY_H
#define KEDGE_CHAIN_AUDIT_IDENTITY_AUTHORITY_H

#include "chain/audit/record.h"
#include "chain/statement/keybook.h"

struct kedgei_authority;

/* KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_authority_new(struct kedgei_audit *a, struct kedgei_authority **ret);
void kedgei_authority_free(struct kedgei_authority *y);

/* Every fact of the main chain, in order: what changes authority is judged and taken in, signatures too, but
 * for approvals; tenants' checkpoints are counted. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_authority_take(struct kedgei_authority *y, const struct kedgei_fact *fact);
/* The statement key in force behind what was taken; NULL: none is known. */
const struct kedge_public_key *kedgei_authority_now(const struct kedgei_authority *y);
/* When the main chain was taken: the statement key that signs as that entry of that tenant's ledger. A
 * rotation stands behind a checkpoint of every tenant: what these cover the old key signed, what they do not
 * the new one. */
const struct kedge_public_key *kedgei_authority_at(const struct kedgei_authority *y, uint32_t tenant,
                                                   uint64_t entry);
/* A tenant's keys, at the end of its ledger. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_authority_tenant(struct kedgei_authority *y, uint32_t tenant,
                                            const struct kedge_keybook *book);
/* When all tenants were told: approvals. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_authority_approvals(struct kedgei_authority *y);

#endif
