/* One event at a time into the core, its effects out. They reach into every other file, and those step the
 * core; so who carries them out is handed down, `kedge_site_host.execute`, and calls go one way. */
#include "client/daemon/energy/energy.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"

void kedge_client_post(struct kedge_site_host *h, struct kedge_site_item *item)
{
    int err = kedge_queue_put(h->queue, item);
    if (err) {
        kedge_log(KEDGE_LOG_DEBUG, "completion after the end", "%s", kedge_strerror(err));
    }
}

/* Tidying up after a settled result, and notes of what was seen: nobody waits for them, so the next request
 * goes out first. The order among the remaining effects is the core's, which is part of its contract (PERSIST
 * before what relies on it); a PERSIST counts as tidying up only if the file already holds all that it would
 * add. */
static bool can_wait(const struct kedge_site_host *h, const struct kedge_site_effect *fx)
{
    return fx->type == KEDGE_SITE_FX_FORGET || fx->type == KEDGE_SITE_FX_SEEN
           || (fx->type == KEDGE_SITE_FX_PERSIST && kedge_client_memory_covers(h, &fx->memory));
}

void kedge_client_step(struct kedge_site_host *h, struct kedge_site_event *ev)
{
    struct kedge_site_effects fx;
    bool later[KEDGE_SITE_EFFECTS_MAX] = {false};
    ev->now_ns = kedge_os_now_ns();
    kedge_site_step(h->site, ev, &fx);
    for (uint32_t i = 0; i < fx.count; i++) {
        later[i] = can_wait(h, &fx.items[i]);
    }
    for (uint32_t i = 0; i < fx.count; i++) {
        if (!later[i]) {
            h->execute(h, &fx.items[i]);
        }
    }
    for (uint32_t i = 0; i < fx.count; i++) {
        if (later[i]) {
            h->execute(h, &fx.items[i]);
        }
    }
}
