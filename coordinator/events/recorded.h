/* Events that the main chain tells of: what was opened, closed, released, and the tenants' checkpoints. So
 * much of a stream can be had again for ever, by its entries. */
#ifndef KEDGE_COORDINATOR_EVENTS_RECORDED_H
#define KEDGE_COORDINATOR_EVENTS_RECORDED_H

#include "chain/statement/statement.h"
#include "chain/store/ledger.h"
#include "common/base/diag.h"
#include "coordinator/events/event.h"

/* What entry `index` of the main chain tells; time_ms is that of the statement, 0 where it has none;
 * main_size is 0. `scratch` is room for a statement. *ret_is_event: false for entries of other kinds. Any
 * thread. KEDGE_E_NOT_FOUND beyond the end, KEDGE_E_CORRUPT names the entry. */
KEDGE_NODISCARD int kedge_event_recorded(struct kedge_ledger *main, uint64_t index,
                                         struct kedge_statement *scratch, struct kedge_event *ret,
                                         bool *ret_is_event, struct kedge_diag *reterr);

#endif
