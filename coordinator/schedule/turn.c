#include "coordinator/schedule/turn.h"

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* By how much `other` may be behind without being waited for: two of its rounds where they are as long as
 * mine, so that small differences do not keep the two in step; and as much less as they are shorter. */
static uint64_t slack(uint64_t other_ns, uint64_t mine_ns)
{
    double part = other_ns < mine_ns ? (double)other_ns / (double)mine_ns : 1;
    double two = 2.0 * (double)other_ns * part;
    return two < 0x1p63 ? (uint64_t)two : UINT64_MAX;
}

uint64_t kedge_schedule_wait(const struct kedge_schedule_job *mine, const struct kedge_schedule_job *others,
                             size_t count)
{
    uint64_t wait = 0;
    for (size_t i = 0; i < count; i++) {
        bool behind = plus(others[i].served_ns, slack(others[i].round_ns, mine->round_ns)) < mine->served_ns;
        wait = behind ? plus(wait, plus(mine->round_ns, mine->round_ns / 4)) : wait;
    }
    return wait;
}

uint64_t kedge_schedule_served(const struct kedge_schedule_job *behind,
                               const struct kedge_schedule_job *ahead)
{
    uint64_t longer = behind->round_ns > ahead->round_ns ? behind->round_ns : ahead->round_ns;
    uint64_t credit = plus(longer, longer);
    uint64_t least = ahead->served_ns > credit ? ahead->served_ns - credit : 0;
    return behind->served_ns > least ? behind->served_ns : least;
}
