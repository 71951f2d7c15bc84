/* What the loop gives to all: its queue, its workers, and steps of the core. The effects of a step reach into
 * every other file, and those step the core; so who executes them is handed down, `kedge_host.execute`, and
 * calls go one way. */
#include "coordinator/daemon/loop.h"

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/host.h"

void kedge_host_post(struct kedge_host *h, struct kedge_item *item)
{
    int err = kedge_queue_put(h->queue, item);
    if (err) { /* closed: the process is ending, completions have nobody to go to */
        kedge_log(KEDGE_LOG_DEBUG, "completion after the end", "%s", kedge_strerror(err));
    }
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

/* After UNKNOWN the entries are stored, but there is no signed checkpoint over them. The question
 * that operators can act on is why the ledger cannot sign: a full disk and a denied write pass,
 * everything else stays unknown and is tried again. */
int kedge_host_commit_err(struct kedge_ledger *l, const struct kedge_commit_result *result)
{
    if (result->err != KEDGE_E_UNKNOWN) {
        return result->err;
    }
    int err = kedge_ledger_flush(l, NULL);
    return kedge_err_class(err) == KEDGE_CLASS_FULL || err == KEDGE_E_DENIED ? err : KEDGE_E_UNKNOWN;
}

/* Effects are executed in the order of their array, and the core is asked for more only when all
 * are done: an effect may depend on the one before it. Whatever an effect brings about comes back
 * through the queue, so the core is never stepped inside its own step. */
void kedge_host_step(struct kedge_host *h, struct kedge_coord_event *ev)
{
    ev->now_ns = kedge_os_now_ns();
    bool more = kedge_coord_step(h->coord, ev, &h->fx);
    for (;;) {
        /* Executing an effect may step the core again only through the queue, so h->fx is stable here. */
        struct kedge_coord_effects fx = h->fx;
        for (uint32_t i = 0; i < fx.count; i++) {
            h->execute(h, &fx.items[i]);
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

/* An outcome that is known at once takes the same way as one that a worker brings: as a later item
 * of the queue. A direct call would step the core while its effects are being executed. */
void kedge_host_post_event(struct kedge_host *h, const struct kedge_coord_event *ev)
{
    struct event_item *e = kedge_mem_new(1, sizeof *e);
    KEDGE_ASSERT(e); /* the core waits for it: without memory there is no way on */
    *e = (struct event_item){{event_handle}, *ev};
    kedge_host_post(h, &e->item);
}
