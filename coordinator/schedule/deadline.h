/* Deadlines of jobs: may another one be promised, and how much does each of them need? Pure: whole numbers
 * in, a decision out, so all who compute it again come to the same.
 *
 * Time that is to come is a row of equal steps in which so many slots are free. A job's minimum satisfactory
 * share is the least constant number of slots with which it ends in time, where the jobs with nearer
 * deadlines were served before it (Gu et al., ElasticFlow, ASPLOS 2023): in a step in which fewer are free it
 * has these. A job is admitted if with it everybody has such a share; who is refused is told the earliest
 * deadline that could be met. So a promise that was given is kept before a new one is made.
 *
 * That alone serves large jobs that come early and turns away many small ones behind them: at twice the load
 * that there is room for it keeps fewer promises than who takes the nearest deadline first and drops what is
 * hopeless. Hence the guard: while more work is promised than all slots do in guard_ms, a job of more than
 * twice the median size is refused. */
#ifndef KEDGE_COORDINATOR_SCHEDULE_DEADLINE_H
#define KEDGE_COORDINATOR_SCHEDULE_DEADLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KEDGE_SCHEDULE_STEPS = 512,  /* that a plan has at most */
    KEDGE_SCHEDULE_SLOTS = 4096, /* at most */
};
/* Farthest deadline, in ms: ten years. */
#define KEDGE_SCHEDULE_FAR_MS UINT64_C(315360000000)

/* A job on k slots does k / (1 + loss · (k - 1)) units of work in a ms. */
struct kedge_schedule_due {
    uint64_t work;   /* what is left, in millionths of a unit, at most 2^62 */
    uint64_t due_ms; /* from now, at most KEDGE_SCHEDULE_FAR_MS; 0: too late */
    uint32_t most;   /* slots that it can use, 1 to KEDGE_SCHEDULE_SLOTS */
    uint32_t loss;   /* in millionths, at most 10^6 */
};

struct kedge_schedule_room {
    uint32_t slots;    /* 1 to KEDGE_SCHEDULE_SLOTS */
    uint64_t step_ms;  /* a step is no shorter, and longer where the farthest deadline needs it; above 0 */
    uint64_t guard_ms; /* 0: no guard */
};

enum kedge_schedule_verdict {
    KEDGE_SCHEDULE_ADMITTED,
    KEDGE_SCHEDULE_TOO_EARLY, /* not everybody would end in time */
    KEDGE_SCHEDULE_TOO_LARGE, /* the guard */
};

struct kedge_schedule_decision {
    enum kedge_schedule_verdict verdict;
    uint32_t share;       /* slots that it needs, admitted; else 0 */
    uint64_t earliest_ms; /* refused: a deadline, from now, that would be admitted now, and of none that is
                           * one part in 64 nearer that is known; 0: none, whatever it is */
};

/* What it does in a ms on so many slots, in millionths of a unit. */
uint64_t kedge_schedule_speed(const struct kedge_schedule_due *job, uint32_t slots);
/* The least constant number of slots of each job, 0 where it cannot end in time (it counts as if it had
 * none), in ret_shares; in ret_now what it has of them in the first step. Returns whether all end in time.
 * `jobs`: in order of deadlines. */
bool kedge_schedule_shares(const struct kedge_schedule_room *room, const struct kedge_schedule_due *jobs,
                           size_t count, uint32_t *ret_shares, uint32_t *ret_now);
/* Whether `job` is admitted beside `jobs`, which were admitted before: in any order, count + 1 places in
 * `scratch`. median: of the work of jobs, for the guard; 0: unknown, nobody is too large. Jobs among `jobs`
 * that cannot end in time any more keep nobody out, but for the work that they have left. */
struct kedge_schedule_decision kedge_schedule_admit(const struct kedge_schedule_room *room,
                                                    const struct kedge_schedule_due *jobs, size_t count,
                                                    const struct kedge_schedule_due *job, uint64_t median,
                                                    struct kedge_schedule_due *scratch);

#endif
