/* Pages of the ring, in the numbers of one stream: the operator's, or a tenant's own. On the loop thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_EVENTS_PAGE_H
#define KEDGE_COORDINATOR_DAEMON_EVENTS_PAGE_H

#include "common/base/bytes.h"
#include "coordinator/events/ring.h"

struct kedge_host;

enum { KEDGE_EVENTS_WAIT_S_MAX = 30 };

struct kedge_events_page {
    uint64_t first; /* the oldest number that is kept; that of the next event where none is */
    uint64_t next;  /* to go on from */
    uint64_t end;   /* the number of the next event */
};

/* One event with its number in this stream: 1 taken, 0 passed over, or an error, which ends the page. */
typedef int kedge_events_visit(void *arg, uint64_t seq, const struct kedge_event_row *row);

/* Hands over the events from the number `from` on, until `most` were taken. tenant: a handle, or
 * KEDGE_COORD_NONE for all. */
KEDGE_NODISCARD int kedge_host_events_page(const struct kedge_host *h, uint32_t tenant, uint64_t from,
                                           uint32_t most, kedge_events_visit *visit, void *arg,
                                           struct kedge_events_page *ret);
/* The same as text, a line each, at most 128: before them a line that tells the gap, where `from` is not 0
 * and older than what is kept, after them `{"v":1,"next":N}`. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_host_events_text(const struct kedge_host *h, uint32_t tenant, uint64_t from,
                                           struct kedge_buf *out);
/* A request's target, "/events", "/events?from=N" or "/events?from=N&wait=S", S at most
 * KEDGE_EVENTS_WAIT_S_MAX (*ret_wait_s: 0 without); false: another one. */
bool kedge_events_target(struct kedge_view target, uint64_t *ret_from, uint64_t *ret_wait_s);

#endif
