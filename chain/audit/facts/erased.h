/* Updates that their tenant had erased: what follows from that, and what does not. Internal to this room. */
#ifndef KEDGE_CHAIN_AUDIT_FACTS_ERASED_H
#define KEDGE_CHAIN_AUDIT_FACTS_ERASED_H

#include "chain/audit/rounds/replay.h"

/* The statement of that log which says so, or NULL. */
const struct kedgei_fact *kedgei_erased(const struct kedgei_audit *a, const struct kedgei_log *log,
                                        const struct kedge_hash *update);
/* Each erased statement names an update before it, and no update comes behind it. */
void kedgei_check_erased(struct kedgei_audit *a);
/* Sets `erased` of each decision: how many of its inputs are. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_mark_erased(struct kedgei_replay *r);
/* Notes: which updates are erased, and which decisions cannot be replayed for it. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_tell_erased(struct kedgei_audit *a);

#endif
