#include "coordinator/daemon/web/events_wait.h"

#include "common/base/os/clock.h"
#include "coordinator/daemon/events/events.h"
#include "coordinator/daemon/host.h"

static bool has_happened(const struct kedge_host *h, const struct kedge_events_waiter *w)
{
    return kedge_host_events_next(h, w->tenant) > w->from;
}

uint32_t kedge_events_waiting_most(unsigned connections)
{
    const unsigned most = connections / 4;
    return most < 1 ? 1 : most < KEDGE_EVENTS_WAITING_MAX ? most : KEDGE_EVENTS_WAITING_MAX;
}

bool kedge_events_wait(struct kedge_host *h, const struct kedge_events_waiter *waiter)
{
    struct kedge_events_waiting *all = h->events_waiting;
    uint32_t of_party = 0;
    for (uint32_t i = 0; all && i < all->count; i++) {
        of_party += all->of[i].party == waiter->party;
    }
    if (!all || has_happened(h, waiter) || all->count >= all->most
        || of_party >= KEDGE_EVENTS_WAITING_OF_PARTY) {
        return false;
    }
    if (all->count == 0) {
        all->due_ns = KEDGE_TIME_NEVER;
    }
    all->of[all->count++] = *waiter;
    all->due_ns = waiter->until_ns < all->due_ns ? waiter->until_ns : all->due_ns;
    return true;
}

uint64_t kedge_events_wait_due_ns(const struct kedge_host *h)
{
    return h->events_waiting && h->events_waiting->count > 0 ? h->events_waiting->due_ns : KEDGE_TIME_NEVER;
}

/* Between two items of the loop, so what an answer brings about cannot change the table under it. */
void kedge_events_wait_look(struct kedge_host *h, uint64_t now_ns)
{
    struct kedge_events_waiting *all = h->events_waiting;
    const uint64_t next = kedge_host_events_next(h, KEDGE_COORD_NONE);
    if (!all || all->count == 0 || (next == all->seen && now_ns < all->due_ns)) {
        return;
    }
    uint32_t kept = 0;
    all->seen = next;
    all->due_ns = KEDGE_TIME_NEVER;
    for (uint32_t i = 0; i < all->count; i++) {
        const struct kedge_events_waiter w = all->of[i];
        if (has_happened(h, &w) || w.until_ns <= now_ns) {
            w.answer(h, w.req);
        } else {
            all->of[kept++] = w;
            all->due_ns = w.until_ns < all->due_ns ? w.until_ns : all->due_ns;
        }
    }
    all->count = kept;
}
