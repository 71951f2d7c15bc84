/* "anchors" of the trust file: reading it. Internal to this room. */
#ifndef KEDGE_CHAIN_AUDIT_IDENTITY_TRUST_ANCHORS_H
#define KEDGE_CHAIN_AUDIT_IDENTITY_TRUST_ANCHORS_H

#include <jansson.h>

#include "chain/audit/audit.h"

/* The member's value; NULL: absent. Strict. What it owns is freed by kedge_trust_deinit, also after an error.
 */
KEDGE_NODISCARD int kedgei_trust_anchors_read(const json_t *value, struct kedge_trust_anchors *ret,
                                              struct kedge_diag *reterr);

#endif
