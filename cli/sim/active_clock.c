/* Time in which this machine was awake: a gap between two readings counts for at most KEDGE_ACTIVE_STEP_NS,
 * so that a laptop that was closed for an hour has not used up a time-out. */
#include "cli/sim/active_clock.h"

uint64_t kedge_active_clock_read(struct kedge_active_clock *c, uint64_t now_ns)
{
    uint64_t step = c->seen_ns ? now_ns - c->seen_ns : 0;
    c->seen_ns = now_ns;
    c->passed_ns += step < KEDGE_ACTIVE_STEP_NS ? step : KEDGE_ACTIVE_STEP_NS;
    return c->passed_ns;
}
