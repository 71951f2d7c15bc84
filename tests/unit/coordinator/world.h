/* Jobs and sites in virtual time: sites that train for one job after the other, tasks of given lengths,
 * appends and closes that take their time. The core under test decides all else. */
#ifndef KEDGE_TESTS_UNIT_COORDINATOR_WORLD_H
#define KEDGE_TESTS_UNIT_COORDINATOR_WORLD_H

#include "tests/unit/coordinator/host.h"

enum { WORLD_SITES = 6, WORLD_JOBS_MAX = 8 };

struct job {
    uint32_t rounds;
    uint64_t task_ns, from_ns; /* how long a task takes, on the slow site twice that; when it is submitted */
    uint32_t weight;           /* until its first of two targets, which it does not reach; 0: 1 */
    uint64_t due_ns;           /* its deadline from the beginning on, 0: none */
    uint32_t least, most;      /* sites of a round; least 0: no range, and at least one */
    uint32_t priority;
    uint64_t halt_ns; /* when the operator halts it, from the beginning on; 0: never */
    /* what became of it */
    uint64_t first_ns; /* when its first task was given */
    uint64_t done_ns;  /* when its last round was closed */
    uint32_t closed;   /* rounds */
    uint32_t tasks;    /* that were given */
    uint32_t fewest;   /* sites of a round; 0: none has opened */
};

/* Runs until the first `until` jobs have ended: `several` tasks of each site at once; slow: a site that takes
 * twice as long, KEDGE_COORD_NONE: none. Fails the test when nothing goes on. How long it took since job 0
 * was submitted, in ms. */
uint64_t world_run(struct job *jobs, uint32_t count, uint32_t until, uint32_t several, uint32_t slow);

#endif
