/* Why a checkpoint does not fit the copy. Inside of chain/follow. */
#ifndef KEDGE_CHAIN_FOLLOW_EVIDENCE_H
#define KEDGE_CHAIN_FOLLOW_EVIDENCE_H

#include "chain/follow/remote.h"
#include "chain/log/checkpoint.h"

/* Called when `note` (whose content is `target`) does not agree with the copy. KEDGE_E_FORK when the log
 * signed two histories: the evidence is appended; KEDGE_E_VERIFY when only the source's tiles are wrong,
 * which anyone between may have done. remote NULL: the note is not larger than the copy, which has all hashes
 * itself. */
KEDGE_NODISCARD int kedgei_follow_convict(const struct kedge_follow *f, struct kedgei_remote *remote,
                                          struct kedge_view note, const struct kedge_checkpoint *target,
                                          struct kedge_buf *ret_evidence, struct kedge_diag *reterr);

#endif
