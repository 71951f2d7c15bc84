#include "coordinator/schedule/target.h"

__extension__ typedef unsigned __int128 wide;

void kedge_schedule_tested(const struct kedge_schedule_targets *targets, uint64_t correct, uint64_t samples,
                           struct kedge_schedule_held *io)
{
    for (uint32_t i = 0; samples > 0 && i < targets->count; i++) {
        const bool is_reached = (wide)correct * 1000000 >= (wide)targets->millionths[i] * samples;
        io->times[i] = !is_reached ? 0 : io->times[i] < targets->hold ? io->times[i] + 1 : targets->hold;
    }
}

uint32_t kedge_schedule_tier(const struct kedge_schedule_targets *targets,
                             const struct kedge_schedule_held *held)
{
    uint32_t tier = 0;
    while (tier < targets->count && held->times[tier] >= targets->hold) {
        tier++;
    }
    return tier;
}
