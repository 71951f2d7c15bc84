/* Who answers for a site or a tenant: personal data that a ledger names by a salted commitment only
 * (crypto/commitment.h). The opening, salt and text, stays in a file of the organisation; when that is
 * destroyed, what the ledger holds is noise. Pure. */
#ifndef KEDGE_CHAIN_STATEMENT_CONTACT_H
#define KEDGE_CHAIN_STATEMENT_CONTACT_H

#include "common/base/diag.h"
#include "common/base/text.h"
#include "crypto/commitment.h"

enum { KEDGE_CONTACT_TEXT_MAX = 1000, KEDGE_CONTACT_FILE_MAX = 8192 };

struct kedge_contact {
    struct kedge_id tenant, about; /* about: a site; empty: the tenant itself */
    struct kedge_commitment_salt salt;
    char text[KEDGE_CONTACT_TEXT_MAX
              + 1]; /* 1 to 1,000 bytes of UTF-8, line feeds but no other control bytes */
};

/* What the ledger holds of it. */
void kedge_contact_commitment(const struct kedge_contact *contact, struct kedge_hash *ret);
/* Whether the text may stand in a contact. */
bool kedge_contact_text_is_valid(struct kedge_view text);
/* The opening as a file: one JSON object with format "kedge-contact/v1", tenant, about, salt (hex), text.
 * KEDGE_E_NOMEM.
 */
KEDGE_NODISCARD int kedge_contact_write(const struct kedge_contact *contact, struct kedge_buf *out);
/* The same back; strict. KEDGE_E_FORMAT, KEDGE_E_TOO_LONG, KEDGE_E_NOMEM; reterr names the field. */
KEDGE_NODISCARD int kedge_contact_read(struct kedge_view file, struct kedge_contact *ret,
                                       struct kedge_diag *reterr);

#endif
