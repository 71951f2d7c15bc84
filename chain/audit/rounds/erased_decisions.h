/* Decisions over updates that their tenant had erased. Internal to this room. */
#ifndef KEDGE_CHAIN_AUDIT_ROUNDS_ERASED_DECISIONS_H
#define KEDGE_CHAIN_AUDIT_ROUNDS_ERASED_DECISIONS_H

#include "chain/audit/rounds/replay.h"

/* kedgei_decisions_collect, and sets `erased` of each decision: how many of its inputs are. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_decisions_marked(struct kedgei_replay *r);
/* Notes: which updates are erased, and which decisions cannot be replayed for it. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_tell_erased(struct kedgei_audit *a);

#endif
