/* Rare branches of the coordinator's core, made frequent: a host may hand in a seeded stream that takes them
 * (after FoundationDB's "buggify"). Each is a thing that the core may do at any time without breaking a
 * promise; a real host meets it once in a blue moon, the simulator in every run.
 *
 * The stream is the host's and comes in through the state, so the core stays pure and a seed replays. The
 * daemon never hands one in; what is compiled is the same in both hosts, a test for NULL per site. */
#ifndef KEDGE_COORDINATOR_CORE_RARE_H
#define KEDGE_COORDINATOR_CORE_RARE_H

#include "common/base/rng.h"
#include "coordinator/core/coord.h"

enum kedge_coord_rare_site {
    KEDGE_COORD_RARE_BUSY, /* a submission is answered by "busy", as if its round were just being closed */
    KEDGE_COORD_RARE_FEW_EFFECTS,  /* the array of effects is as small as it may be */
    KEDGE_COORD_RARE_POLL_DROPPED, /* a poll is not parked but sent home */
    KEDGE_COORD_RARE_UNHEARD,      /* a poll does not count as a sign of life */
    KEDGE_COORD_RARE_UNSETTLED,    /* a round opens without waiting for the missing */
    KEDGE_COORD_RARE_SHORT_ROUND,  /* a round's deadline comes early */
    KEDGE_COORD_RARE_RETRY_NOW,    /* what failed is asked for again without a pause */
    KEDGE_COORD_RARE_OTHER_JOB,    /* the search for a task begins at another job */
    KEDGE_COORD_RARE_NO_PATIENCE,  /* the last evaluations are waited for but a moment */
    KEDGE_COORD_RARE_COUNT,
};
const char *kedge_coord_rare_name(enum kedge_coord_rare_site site); /* "busy" */

struct kedge_coord_rare {
    struct kedge_rng rng;
    uint32_t permille;                    /* how often an enabled site fires; 0: all is as in the daemon */
    bool enabled[KEDGE_COORD_RARE_COUNT]; /* which ones this run has */
    uint64_t fired[KEDGE_COORD_RARE_COUNT];
};

/* From now on rare branches are drawn from *rare, which the caller keeps while the core lives; NULL: none
 * are. */
void kedge_coord_rare_use(struct kedge_coord *c, struct kedge_coord_rare *rare);

#endif
