/* The last events of a coordinator, in memory: at most so many, and at most so many bytes; the oldest go
 * first. What a subscriber missed, and those who only ask, get from here. */
#ifndef KEDGE_COORDINATOR_EVENTS_RING_H
#define KEDGE_COORDINATOR_EVENTS_RING_H

#include "common/base/bytes.h"

struct kedge_event_ring;

/* One event as it is kept; borrowed until the next push. */
struct kedge_event_row {
    uint64_t seq;            /* of the operator's stream */
    const uint32_t *tenants; /* handles of those who may see it … */
    uint32_t tenant_count;
    struct kedge_view topic, rest; /* event.h */
};

/* KEDGE_E_NOMEM. Memory for events is taken when they come. */
KEDGE_NODISCARD int kedge_event_ring_new(uint32_t events_max, size_t bytes_max,
                                         struct kedge_event_ring **ret);
void kedge_event_ring_free(struct kedge_event_ring *ring); /* NULL is fine */
/* seq must be that of the last one plus 1, or larger: then all that is kept goes. Without memory the event
 * is not kept, and all before it goes, too: what is kept has no gap. */
void kedge_event_ring_push(struct kedge_event_ring *ring, const struct kedge_event_row *row);
/* How many are kept, and the number of the first of them; 0: none. */
uint32_t kedge_event_ring_count(const struct kedge_event_ring *ring);
uint64_t kedge_event_ring_first(const struct kedge_event_ring *ring);
/* The event of that number; false: it is not kept. */
bool kedge_event_ring_get(const struct kedge_event_ring *ring, uint64_t seq, struct kedge_event_row *ret);
/* Whether that tenant may see it. */
bool kedge_event_row_is_for(const struct kedge_event_row *row, uint32_t tenant);

#endif
