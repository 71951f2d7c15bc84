#include "coordinator/schedule/turn.h"

__extension__ typedef unsigned __int128 wide;

static const uint32_t equal = 1000000;

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint32_t share_of(const struct kedge_schedule_job *j)
{
    return j->share > 0 ? j->share : equal;
}

static uint64_t ratio(uint64_t time, uint32_t times, uint32_t by)
{
    const wide v = (wide)time * times / by;
    return v < UINT64_MAX ? (uint64_t)v : UINT64_MAX;
}

/* Of a job that is to have twice an equal share, half. */
uint64_t kedge_schedule_counted(uint64_t time_ns, uint32_t share)
{
    return ratio(time_ns, equal, share > 0 ? share : equal);
}

static uint64_t counted(uint64_t time, const struct kedge_schedule_job *j)
{
    return kedge_schedule_counted(time, j->share);
}

static uint64_t served(const struct kedge_schedule_job *j)
{
    return plus(j->served_ns, counted(j->since_ns, j));
}

/* By how much `other` may be behind without being waited for: two of its rounds where they are as long as
 * mine, so that small differences do not keep the two in step; and as much less as they are shorter. */
static uint64_t slack(uint64_t other_ns, uint64_t mine_ns)
{
    double part = other_ns < mine_ns ? (double)other_ns / (double)mine_ns : 1;
    double two = 2.0 * (double)other_ns * part;
    return two < 0x1p63 ? (uint64_t)two : UINT64_MAX;
}

static bool is_behind(const struct kedge_schedule_job *other, const struct kedge_schedule_job *mine)
{
    const uint64_t may = slack(counted(other->round_ns, other), counted(mine->round_ns, mine));
    return plus(served(other), may) < served(mine);
}

uint64_t kedge_schedule_wait(const struct kedge_schedule_job *mine, const struct kedge_schedule_job *others,
                             size_t count)
{
    const uint64_t turn = plus(mine->round_ns, mine->round_ns / 4);
    uint64_t wait = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t its = ratio(turn, share_of(&others[i]), share_of(mine));
        wait = is_behind(&others[i], mine) ? plus(wait, its) : wait;
    }
    return wait;
}

uint64_t kedge_schedule_served(const struct kedge_schedule_job *behind,
                               const struct kedge_schedule_job *ahead)
{
    const uint64_t mine = counted(behind->round_ns, behind), its = counted(ahead->round_ns, ahead);
    const uint64_t longer = mine > its ? mine : its, credit = plus(longer, longer);
    const uint64_t least = served(ahead) > credit ? served(ahead) - credit : 0;
    return served(behind) > least ? served(behind) : least;
}
