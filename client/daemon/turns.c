/* What the loop does over and over: looks at what is due, takes an item, lets the core have its timer.
 *
 * The loop sleeps until the earliest of all deadlines, or until an item comes; there is no periodic tick, so
 * that an idle site wakes a device's processor only when something is to be done. Whatever needs a time of
 * its own gives a deadline here. */
#include "client/daemon/energy/energy.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"

int kedge_client_run(struct kedge_site_host *h)
{
    while (!h->stop) {
        void *taken;
        kedge_client_energy_turn(h);
        kedge_client_heal_turn(h);
        kedge_client_service_turn(h);
        uint64_t core = kedge_site_deadline_ns(h->site), own = kedge_client_service_deadline_ns(h);
        const uint64_t look = kedge_client_energy_deadline_ns(h), ask = kedge_client_heal_deadline_ns(h);
        own = look < own ? look : own;
        own = ask < own ? ask : own;
        int err = h->stop ? KEDGE_E_CLOSED : kedge_queue_take(h->queue, core < own ? core : own, &taken);
        if (err == KEDGE_OK) {
            struct kedge_site_item *item = taken;
            item->handle(h, item);
        } else if (err == KEDGE_E_CLOSED) {
            break;
        }
        if (!h->stop && kedge_os_now_ns() >= kedge_site_deadline_ns(h->site)) {
            struct kedge_site_event ev = {.type = KEDGE_SITE_EV_TIMER};
            kedge_client_step(h, &ev);
        }
    }
    /* A write that only tidies up was put off until the next one that must be durable (effects.c). An orderly
     * end makes up for it; after a kill the site submits once more and gets the same receipt. */
    struct kedge_diag d = {.text = ""};
    int err = h->memory_is_behind ? kedge_client_memory_write(h, &h->settled, &d) : KEDGE_OK;
    if (err) {
        kedge_log(KEDGE_LOG_WARN, "memory", "%s", d.text);
    }
    return h->fatal;
}
