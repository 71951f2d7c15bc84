/* What happens here, told as it happens: numbered, kept for a while in a ring, and handed to the companion
 * kedge-events for subscribers. docs/events.md has the lines. One call for each thing that happens; on the
 * loop thread, like all that changes it. Nothing depends on it: what fails here is logged and forgotten. */
#ifndef KEDGE_COORDINATOR_DAEMON_EVENTS_EVENTS_H
#define KEDGE_COORDINATOR_DAEMON_EVENTS_EVENTS_H

#include "common/base/diag.h"
#include "coordinator/events/event.h"
#include "coordinator/events/ring.h"

struct kedge_events;
struct kedge_host;
struct kedge_job;
struct kedge_statement;

/* Its numbers begin by this start's epoch, which is known. Before all that tells anything. */
KEDGE_NODISCARD int kedge_host_events_open(struct kedge_host *h, struct kedge_diag *d);
/* look.c: from now on there is a stream, if config.json wants one and kedge-events is installed. */
void kedge_host_events_serve(struct kedge_host *h);
/* When kedge_host_events_look has something to do. */
uint64_t kedge_host_events_due_ns(const struct kedge_host *h);
void kedge_host_events_look(struct kedge_host *h, uint64_t now_ns);
/* Ends the stream; what is told after that is kept in the ring alone. */
void kedge_host_events_stop(struct kedge_host *h);
void kedge_host_events_close(struct kedge_host *h);

/* ---- things that happen ---- */
/* Any event; tenants: handles of those who may see it beside the operator. Time and size of the main chain
 * are filled in. */
void kedge_host_event(struct kedge_host *h, struct kedge_event *e, const uint32_t *tenants,
                      uint32_t tenant_count);
/* To all tenants of the job. */
void kedge_host_event_of_job(struct kedge_host *h, const struct kedge_job *job, struct kedge_event *e);
/* The moves that were handed to the last transaction are durable (job_moves.h). */
void kedge_host_event_job_moved(struct kedge_host *h, const struct kedge_job *job);
/* The job's batch is durable; its last entry of the main chain is end - 1. */
void kedge_host_event_batch(struct kedge_host *h, struct kedge_job *job, uint64_t end);
/* A statement of a site was turned away; told of updates. */
void kedge_host_event_refused(struct kedge_host *h, uint32_t site, const struct kedge_statement *st, int err);
/* So many entries of the main chain are cosigned by the quorum. */
void kedge_host_event_final(struct kedge_host *h, uint64_t size);

/* ---- for those who ask ---- */
/* The number that the next event will have in the operator's stream (tenant: KEDGE_COORD_NONE), or in the
 * tenant's own. */
uint64_t kedge_host_events_next(const struct kedge_host *h, uint32_t tenant);
/* Where the operator's stream can be subscribed to on this machine; "": there is none now. */
const char *kedge_host_events_stream(const struct kedge_host *h);
const struct kedge_event_ring *kedge_host_events_ring(const struct kedge_host *h);

#endif
