/* Whose round opens, where jobs share sites. Pure: numbers in, a time to wait out.
 *
 * A round keeps its sites until the last of them has answered. Where each site serves its jobs one after the
 * other, a job whose tasks take ten times as long as another's has the sites for ten elevenths of the time,
 * and each round of the other one waits for one of those tasks: of two jobs, one goes on as if it were alone
 * and one at a tenth of its speed. So rounds take turns by measured time, as packets of different lengths do
 * in start-time fair queueing (Goyal, Vin, Cheng 1996): a job that has had its sites for longer than the
 * others that want them lets these catch up before its next round.
 *
 * It waits for each of those that are behind as long as its own last round kept its sites, and a quarter, for
 * a round is more than its tasks; no longer. In that time a job with short rounds gets what it is owed, so of
 * k jobs each keeps about one k-th of the speed that it has alone; and a job that is behind for reasons of
 * its own, because its sites are slow or away, costs the others no more than that. Jobs whose rounds take
 * alike never wait: while one computes its models, the other's sites train.
 *
 * Where jobs are to have different shares, time counts by them: with twice an equal share half of it. So who
 * has four times another's has four of its rounds in the time of one, and is waited for as long. Shares
 * change as jobs reach targets and deadlines come near, so each round counts by the share that it was opened
 * with: what is past is not valued again. */
#ifndef KEDGE_COORDINATOR_SCHEDULE_TURN_H
#define KEDGE_COORDINATOR_SCHEDULE_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kedge_schedule_job {
    uint64_t served_ns; /* for how long its rounds before the last have kept their sites, each its longest
                           task, as it counted (kedge_schedule_counted) … */
    uint64_t since_ns;  /* … the last one, not counted yet … */
    uint64_t round_ns;  /* … and how long a round of it takes; 0: it has had none */
    uint32_t share;     /* what it is to have, in millionths of an equal share (share.h); 0: an equal one */
};

/* So long a time counts as much as this with an equal share. Stops at UINT64_MAX. */
uint64_t kedge_schedule_counted(uint64_t time_ns, uint32_t share);

/* How long `mine` leaves its next round unopened, counted from when it could open: for each of the `count`
 * others that is behind, 5/4 of its own last round, times the other's share by its own. Behind: by more than
 * two of that one's rounds where these are as long as mine, and by as much less as they are shorter. 0: it
 * opens at once. UINT64_MAX: for ever. */
uint64_t kedge_schedule_wait(const struct kedge_schedule_job *mine, const struct kedge_schedule_job *others,
                             size_t count);

/* What `behind` counts as having been served (served_ns and since_ns together), as a job that is ahead of it
 * opens a round: at least what the other one has, less two rounds of the longer kind. So a job that is new,
 * or had nothing to do for a while, does not claim time that nobody wanted. */
uint64_t kedge_schedule_served(const struct kedge_schedule_job *behind,
                               const struct kedge_schedule_job *ahead);

#endif
