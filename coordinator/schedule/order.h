/* Which job a site works for next, where it is asked by several. Pure.
 *
 * Of jobs with the same priority first the one that fewer sites can serve: what the others need they find
 * elsewhere. Of jobs that as many can serve the one with the least work left, by which jobs end earliest on
 * average. What is left follows from what a job declares, its rounds and the sites of one; a job that has
 * opened more rounds than it declared, for its sites had to be drawn again, comes after the others of its
 * kind, so that nothing is gained by declaring few.
 *
 * It decides inside one tenant: the site is that tenant's, and all these jobs are its own. How much time each
 * job gets is decided before, when rounds open (turn.h): a round that is not open asks nobody. */
#ifndef KEDGE_COORDINATOR_SCHEDULE_ORDER_H
#define KEDGE_COORDINATOR_SCHEDULE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

struct kedge_schedule_claim {
    uint32_t priority;  /* the higher one comes first, whatever else there is */
    uint64_t supply;    /* sites that can serve the job */
    uint64_t remaining; /* tasks that it has left, with those of the open round */
    bool overruns;      /* it has opened more rounds than it declared */
};

/* Is a served before b? False of equals: the caller's order decides between them. */
bool kedge_schedule_before(const struct kedge_schedule_claim *a, const struct kedge_schedule_claim *b);

#endif
