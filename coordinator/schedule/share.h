/* How much of what jobs share each of them has: by weight, with a floor, and what deadlines need before that.
 * Pure: whole numbers in, whole numbers out.
 *
 * A job below the first of its two targets weighs more than others, so that a useful model is there early
 * (Ari et al., TRADL, HPEC 2019). Weight alone starves: of twenty jobs of real lengths the slowest takes four
 * times as long as with equal shares. So each job has a part of its equal share first, and only the rest goes
 * by weight. With a weight of four and a floor of a half no job took twice as long, in 200 draws from 45 real
 * training curves (test_schedule_share). */
#ifndef KEDGE_COORDINATOR_SCHEDULE_SHARE_H
#define KEDGE_COORDINATOR_SCHEDULE_SHARE_H

#include <stddef.h>
#include <stdint.h>

enum {
    KEDGE_SCHEDULE_WHOLE = 1000000,   /* all that one job can use */
    KEDGE_SCHEDULE_PROMISED = 750000, /* of what is shared, at most, for deadlines */
    KEDGE_SCHEDULE_WEIGHT_MAX = 1000000,
};

struct kedge_schedule_claim {
    uint32_t weight; /* 1 to KEDGE_SCHEDULE_WEIGHT_MAX */
    uint32_t least;  /* that its deadline needs, at most KEDGE_SCHEDULE_WHOLE; 0: it has none */
    uint64_t due_ns; /* with least > 0: who is due first is served first */
};

/* Divides `capacity` in ret, at most KEDGE_SCHEDULE_WHOLE to each; less than all of it is given where all
 * have that, or where a few millionths are lost by rounding. `floor`: each has at least this part of an equal
 * share, in millionths. Deadlines come before floors, in all with KEDGE_SCHEDULE_PROMISED of the capacity.
 * count · KEDGE_SCHEDULE_WHOLE and capacity are below 2^40. */
void kedge_schedule_divide(const struct kedge_schedule_claim *claims, size_t count, uint64_t capacity,
                           uint32_t floor, uint64_t *ret);

#endif
