/* Internal to the state machine: what its files share. */
#ifndef KEDGE_CHAIN_ANCHOR_EVM_ANCHOR_IMPL_H
#define KEDGE_CHAIN_ANCHOR_EVM_ANCHOR_IMPL_H

#include "chain/anchor/evm_anchor.h"

/* ---- evm_anchor_money.c ---- */
/* Wei that count against the budget now. */
uint64_t kedgei_evm_committed(const struct kedge_evm_anchor *a);
/* The flight's cost moves from "unmined" to this hour's. */
void kedgei_evm_charge(struct kedge_evm_anchor *a, struct kedge_evm_flight *f);
/* And back, before its attempts change. */
void kedgei_evm_refund(struct kedge_evm_anchor *a, struct kedge_evm_flight *f);
/* Fees for a new anchor, or for a replacement of `old` (NULL: new). False, with the reason in a->waits_for,
 * when the limits do not allow it now. */
bool kedgei_evm_choose_fees(struct kedge_evm_anchor *a, const struct kedge_evm_answer *market,
                            const struct kedge_evm_flight *old);

/* ---- evm_anchor_look.c: what the node says, checked ---- */
/* Each takes an answer of its stage and leaves a->stage where to go on; REST ends the round with the reason
 * in a->said. */
void kedgei_evm_on_final(struct kedge_evm_anchor *a, const struct kedge_evm_answer *answer);
void kedgei_evm_on_old_final(struct kedge_evm_anchor *a, const struct kedge_evm_answer *answer);
void kedgei_evm_on_receipt(struct kedge_evm_anchor *a, const struct kedge_evm_answer *answer);
void kedgei_evm_on_canon(struct kedge_evm_anchor *a, const struct kedge_evm_answer *answer);
void kedgei_evm_on_foreign(struct kedge_evm_anchor *a, const struct kedge_evm_answer *answer);
void kedgei_evm_on_head(struct kedge_evm_anchor *a, const struct kedge_evm_answer *answer);
void kedgei_evm_on_adopt(struct kedge_evm_anchor *a);

/* ---- evm_anchor_events.c ---- */
/* Any event but TIMER. */
void kedgei_evm_take(struct kedge_evm_anchor *a, const struct kedge_evm_event *event);

/* ---- evm_anchor.c ---- */
void kedgei_evm_say(struct kedge_evm_anchor *a, const char *format, ...) KEDGE_PRINTF(2, 3);
/* Stops for good, with the reason; durable unless the configuration alone is at fault. */
void kedgei_evm_stop(struct kedge_evm_anchor *a, int err, const char *format, ...) KEDGE_PRINTF(3, 4);
/* First flight that is not mined, or flight_count. */
uint32_t kedgei_evm_unmined(const struct kedge_evm_anchor *a);
/* The newest point that was ever signed: of the last flight, else the last final one. */
const struct kedge_evm_point *kedgei_evm_tail(const struct kedge_evm_anchor *a);

#endif
