#include "coordinator/schedule/order.h"

bool kedge_schedule_before(const struct kedge_schedule_claim *a, const struct kedge_schedule_claim *b)
{
    if (a->priority != b->priority) {
        return a->priority > b->priority;
    }
    if (a->supply != b->supply) {
        return a->supply < b->supply;
    }
    if (a->overruns != b->overruns) {
        return b->overruns;
    }
    return a->remaining < b->remaining;
}
