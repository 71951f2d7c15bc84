/* What events*.c and look.c share: the numbers, what was last told, and the companion. */
#ifndef KEDGE_COORDINATOR_DAEMON_EVENTS_EVENTS_IMPL_H
#define KEDGE_COORDINATOR_DAEMON_EVENTS_EVENTS_IMPL_H

#include "coordinator/daemon/events/anchors.h"
#include "coordinator/daemon/events/companion.h"
#include "coordinator/daemon/events/events.h"
#include "coordinator/daemon/host.h"

#define KEDGEI_EVENTS_LOOK_NS UINT64_C(1000000000)

struct kedgei_event_stream {
    struct kedge_id id;
    uint32_t tenant; /* KEDGE_COORD_NONE: there is none of that name yet */
};

struct kedgei_told_site {
    bool is_online;      /* as last told */
    uint64_t refused_ns; /* when a refusal of it was last told */
};

struct kedge_events {
    struct kedge_event_ring *ring;
    struct kedge_companion companion;
    struct kedgei_event_stream streams[KEDGE_EVENT_STREAMS_MAX];
    uint32_t stream_count;
    uint64_t base, count;    /* the last event's number is base + count */
    uint64_t *tenant_counts; /* by handle: events that the tenant may see, since the start */
    uint32_t tenant_cap;
    struct kedgei_told_site *sites; /* by handle */
    uint32_t site_cap, site_next;
    uint64_t due_ns;                                /* of the next look; KEDGE_TIME_NEVER: none */
    bool is_witness_here[KEDGE_HOST_WITNESSES_MAX]; /* by row, as last told */
    struct kedge_anchors_seen anchors;
    struct kedge_statement *scratch;
};

/* Room for all sites in `sites`; false: no memory. */
bool kedgei_events_grow_sites(struct kedge_host *h);

#endif
