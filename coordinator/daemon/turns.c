/* What the loop does over and over: takes an item, looks at what is due, lets the core have its timer. */
#include "common/base/os/clock.h"
#include "common/base/os/notify.h"
#include "coordinator/daemon/events/events.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/inbox.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/restore/admit.h"
#include "coordinator/daemon/restore/restore.h"
#include "coordinator/daemon/sites/refused.h"
#include "coordinator/daemon/web/events_wait.h"

enum { SETTLE_STEP_NS = 50000000 };

/* The loop lives: said when it is due. Returns when it is due next. */
static uint64_t bark(uint64_t every_ns, uint64_t *due_ns)
{
    uint64_t now = kedge_os_now_ns();
    if (every_ns > 0 && now >= *due_ns) {
        (void)kedge_notify("WATCHDOG=1", NULL);
        *due_ns = now + every_ns;
    }
    return every_ns > 0 ? *due_ns : KEDGE_TIME_NEVER;
}

/* Each turn waits for an item or a request, but no longer than until the next thing is due: the core's timer,
 * idle uploads, old refused files, moves of jobs that met a full disk, jobs that wait for a place, the
 * watchdog of the service manager. All of these are looked at between two items, on this thread, so none of
 * them needs a lock.
 *
 * The core starts only when the witnesses that count have been heard, or their time is over: a
 * coordinator that was put back from an old copy must not sign entries over a history that a
 * witness has seen to be longer. Until then requests that would change something are answered BUSY. */
int kedge_host_run(struct kedge_host *h)
{
    const uint64_t watchdog_ns = kedge_notify_watchdog_ns();
    uint64_t bark_ns = 0;
    bool more = false; /* requests are waiting */
    h->main_known = kedge_ledger_size(h->main.ledger);
    while (!h->stop) {
        if (!h->begun && kedge_host_witnesses_settled(h)) { /* from here on logs may grow */
            h->begun = true;
            kedge_host_begin(h);
        }
        void *taken;
        uint64_t due = h->begun ? kedge_coord_deadline_ns(h->coord) : kedge_os_now_ns() + SETTLE_STEP_NS;
        uint64_t next_bark = bark(watchdog_ns, &bark_ns), uploads_due = kedge_uploads_due_ns(h);
        due = uploads_due < due ? uploads_due : due;
        due = kedge_host_refused_due_ns(h) < due ? kedge_host_refused_due_ns(h) : due;
        due = h->moves_due_ns > 0 && h->moves_due_ns < due ? h->moves_due_ns : due;
        due = kedge_host_events_due_ns(h) < due ? kedge_host_events_due_ns(h) : due;
        due = kedge_events_wait_due_ns(h) < due ? kedge_events_wait_due_ns(h) : due;
        const uint64_t admit_due = kedge_host_admit_due_ns(h, kedge_os_now_ns());
        due = admit_due < due ? admit_due : due;
        int err = kedge_queue_take(h->queue, more ? 0 : next_bark < due ? next_bark : due, &taken);
        if (err == KEDGE_OK) {
            struct kedge_item *item = taken;
            item->handle(h, item);
        } else if (err == KEDGE_E_CLOSED) {
            break;
        }
        more = !h->stop && kedge_inbox_serve(h);
        kedge_host_authority_go_on(h);
        kedge_uploads_close_idle(h, kedge_os_now_ns());
        kedge_host_refused_look(h, kedge_os_now_ns());
        kedge_host_jobs_store_again(h, kedge_os_now_ns());
        kedge_host_events_look(h, kedge_os_now_ns());
        kedge_events_wait_look(h, kedge_os_now_ns());
        kedge_host_admit(h, kedge_os_now_ns());
        if (h->begun && !h->stop && kedge_os_now_ns() >= kedge_coord_deadline_ns(h->coord)) {
            struct kedge_coord_event ev = {.type = KEDGE_EV_TIMER};
            kedge_host_step(h, &ev);
        }
    }
    return h->fatal;
}
