/* The loop's own queue has what the loop itself has begun: results of workers, commits that are done.
 * Requests stand here instead, and the loop takes one between any two of those, so a flood of requests does
 * not hold up the answers to requests that were taken long ago.
 *
 * The loop sleeps in its queue, so the first request that comes while none is waiting puts a bell into it.
 * That the queue may be full is no harm: a loop that has a full queue does not sleep. */
#include "coordinator/daemon/inbox.h"

#include <pthread.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"

enum {
    LINE_MAX = 8192,     /* every site of a full coordinator may be a tenant's, and come twice */
    QUANTUM_NS = 200000, /* some tens of polls; less only costs more changes of the line */
};

struct kedge_inbox {
    pthread_mutex_t mutex;
    struct kedge_fair fair; /* under the mutex */
    struct kedge_item bell;
    struct kedge_fair_flow lines[KEDGE_LINES];
};

static void ring(struct kedge_host *h, struct kedge_item *bell)
{
    (void)h; /* the loop is awake, which is all */
    (void)bell;
}

int kedge_inbox_open(struct kedge_host *h, struct kedge_diag *d)
{
    h->inbox = kedge_mem_new(1, sizeof *h->inbox);
    if (!h->inbox) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory at start");
    }
    pthread_mutex_init(&h->inbox->mutex, NULL);
    h->inbox->bell.handle = ring;
    h->inbox->fair = (struct kedge_fair){
        .flows = h->inbox->lines, .flow_count = KEDGE_LINES, .line_max = LINE_MAX, .quantum_ns = QUANTUM_NS};
    kedge_fair_init(&h->inbox->fair);
    return KEDGE_OK;
}

void kedge_inbox_close(struct kedge_host *h)
{
    if (h->inbox) {
        pthread_mutex_destroy(&h->inbox->mutex);
        kedge_mem_free(h->inbox);
        h->inbox = NULL;
    }
}

uint32_t kedge_inbox_line(uint32_t tenant)
{
    return KEDGE_LINE_TENANTS + tenant % (KEDGE_LINES - KEDGE_LINE_TENANTS);
}

bool kedge_inbox_put(struct kedge_host *h, uint32_t line, struct kedge_inbox_item *item)
{
    struct kedge_inbox *inbox = h->inbox;
    pthread_mutex_lock(&inbox->mutex);
    bool was_empty = inbox->fair.count == 0;
    bool put = kedge_fair_put(&inbox->fair, line, &item->in_line);
    pthread_mutex_unlock(&inbox->mutex);
    if (put && was_empty) {
        int err = kedge_queue_try_put(h->queue, &inbox->bell);
        (void)err;
    }
    return put;
}

bool kedge_inbox_serve(struct kedge_host *h)
{
    struct kedge_inbox *inbox = h->inbox;
    uint32_t line = 0;
    pthread_mutex_lock(&inbox->mutex);
    struct kedge_inbox_item *item = (struct kedge_inbox_item *)kedge_fair_take(&inbox->fair, &line);
    pthread_mutex_unlock(&inbox->mutex);
    if (!item) {
        return false;
    }
    uint64_t begun = kedge_os_now_ns();
    h->line = line;
    item->handle(h, item);
    h->line = KEDGE_LINE_OWN;
    uint64_t took = kedge_os_now_ns() - begun;
    pthread_mutex_lock(&inbox->mutex);
    kedge_fair_charge(&inbox->fair, line, took);
    bool more = inbox->fair.count > 0;
    pthread_mutex_unlock(&inbox->mutex);
    return more;
}
