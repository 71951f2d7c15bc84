/* The event loop: one thread, one queue, one core. */
#include "coordinator/daemon/loop.h"

#include <pthread.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/os/notify.h"
#include "coordinator/daemon/effects.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/restore/restore.h"
#include "coordinator/daemon/sites/refused.h"

enum { SETTLE_STEP_NS = 50000000 };

void kedge_host_post(struct kedge_host *h, struct kedge_item *item)
{
    int err = kedge_queue_put(h->queue, item);
    if (err) { /* closed: the process is ending, completions have nobody to go to */
        kedge_log(KEDGE_LOG_DEBUG, "completion after the end", "%s", kedge_strerror(err));
    }
}

void kedge_host_work(struct kedge_host *h, struct kedge_work *work)
{
    int err = kedge_queue_put(h->work_queue, work);
    KEDGE_ASSERT(err == KEDGE_OK || h->stop);
}

void kedge_host_fail(struct kedge_host *h, int err, const char *what)
{
    if (!h->fatal) {
        kedge_log(KEDGE_LOG_ERROR, "stopping", "%s: %s", what, kedge_strerror(err));
        h->fatal = err;
        h->stop = 1;
    }
}

void kedge_host_log_commit(const struct kedge_commit_result *result)
{
    if (result->err) {
        kedge_log(KEDGE_LOG_WARN, "ledger", "%s",
                  result->diag && result->diag->text[0] ? result->diag->text : kedge_strerror(result->err));
    }
}

int kedge_host_commit_err(struct kedge_ledger *l, const struct kedge_commit_result *result)
{
    if (result->err != KEDGE_E_UNKNOWN) {
        return result->err;
    }
    int err = kedge_ledger_flush(l, NULL);
    return kedge_err_class(err) == KEDGE_CLASS_FULL || err == KEDGE_E_DENIED ? err : KEDGE_E_UNKNOWN;
}

void kedge_host_step(struct kedge_host *h, struct kedge_coord_event *ev)
{
    ev->now_ns = kedge_os_now_ns();
    bool more = kedge_coord_step(h->coord, ev, &h->fx);
    for (;;) {
        /* Executing an effect may step the core again only through the queue, so h->fx is stable here. */
        struct kedge_coord_effects fx = h->fx;
        for (uint32_t i = 0; i < fx.count; i++) {
            kedge_host_execute(h, &fx.items[i]);
        }
        if (!more) {
            return;
        }
        more = kedge_coord_more(h->coord, &h->fx);
    }
}

struct event_item {
    struct kedge_item item;
    struct kedge_coord_event ev;
};

static void event_handle(struct kedge_host *h, struct kedge_item *item)
{
    struct event_item *e = (struct event_item *)item;
    kedge_host_step(h, &e->ev);
    kedge_mem_free(e);
}

void kedge_host_post_event(struct kedge_host *h, const struct kedge_coord_event *ev)
{
    struct event_item *e = kedge_mem_new(1, sizeof *e);
    KEDGE_ASSERT(e); /* the core waits for it: without memory there is no way on */
    *e = (struct event_item){{event_handle}, *ev};
    kedge_host_post(h, &e->item);
}

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

int kedge_host_run(struct kedge_host *h)
{
    const uint64_t watchdog_ns = kedge_notify_watchdog_ns();
    uint64_t bark_ns = 0;
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
        int err = kedge_queue_take(h->queue, next_bark < due ? next_bark : due, &taken);
        if (err == KEDGE_OK) {
            struct kedge_item *item = taken;
            item->handle(h, item);
        } else if (err == KEDGE_E_CLOSED) {
            break;
        }
        kedge_uploads_close_idle(h, kedge_os_now_ns());
        kedge_host_refused_look(h, kedge_os_now_ns());
        if (h->begun && !h->stop && kedge_os_now_ns() >= kedge_coord_deadline_ns(h->coord)) {
            struct kedge_coord_event ev = {.type = KEDGE_EV_TIMER};
            kedge_host_step(h, &ev);
        }
    }
    return h->fatal;
}
