/* Internal to closing a round: what it does about groups, an object for each way in which sites come to
 * theirs. A new way is a file with its object, a row in grouping.c, and what strategy/ says of it. */
#ifndef KEDGE_ROUND_CLOSE_GROUPING_H
#define KEDGE_ROUND_CLOSE_GROUPING_H

#include "round/close/operations.h"

struct kedgei_grouping {
    /* A round of pre-trainings: the groups of all, their first models and directions. NULL: the job has none.
     */
    int (*make)(struct kedge_close *c);
    /* After the models of a round of training are made. NULL: nothing follows. */
    int (*close)(struct kedge_close *c);
    /* What `close` decides is in the rows of the round's inputs: lists cannot be written before it. */
    bool marks_inputs;
};

extern const struct kedgei_grouping kedgei_flexcfl, /* flexcfl.c: by directions of pre-trainings */
    kedgei_evidence, /* evidence.c: the same to begin with; groups become one where their sites' tests say so
                      */
    kedgei_edges,    /* edges.c: an edge for each tenant; now and then they meet */
    kedgei_parting;  /* parting.c: groups whose updates pull apart are cut (CFL) */

/* That of the job; of one whose groups ask nothing of a close all members are NULL. */
const struct kedgei_grouping *kedgei_grouping_of(const struct kedge_job_spec *spec);

#endif
