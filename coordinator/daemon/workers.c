/* A worker owns nothing. It runs what the loop handed over and posts the same item back, so that the loop
 * alone changes tables and no table needs a lock.
 *
 * The coordinator's own work (closes of rounds, what it keeps for itself) goes first: jobs take turns already
 * before a round opens, and a flood of uploads may not make a close wait. Of two workers or more one is left
 * to the lines, so that they do not wait for closes either.
 *
 * What work costs is known when it is done, and by then the other workers would all have taken work of the
 * same line. So each pays one quantum when it is taken, and the rest afterwards. */
#include "coordinator/daemon/workers.h"

#include <pthread.h>
#include <stddef.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/inbox.h"
#include "coordinator/daemon/loop.h"

enum { QUANTUM_NS = 1000000 }; /* about a piece of an upload; what takes longer is paid afterwards */

struct kedge_workers {
    struct kedge_host *host;
    pthread_mutex_t mutex;
    pthread_cond_t change;
    /* under the mutex */
    struct kedge_fair fair;
    struct kedge_fair_item *own_first, **own_end;
    unsigned own_running;
    bool closed;
    unsigned count; /* of threads; does not change */
    unsigned started;
    pthread_t *threads;
    struct kedge_fair_flow lines[KEDGE_LINES];
};

static struct kedge_work *work_of(struct kedge_fair_item *item)
{
    return (struct kedge_work *)(void *)((char *)item - offsetof(struct kedge_work, in_line));
}

/* NULL: there is none that this worker may take now. */
static struct kedge_work *choose(struct kedge_workers *w, uint32_t *ret_line)
{
    struct kedge_fair_item *item = w->own_first;
    *ret_line = KEDGE_LINE_OWN;
    if (item && (w->own_running + 1 < w->count || w->count == 1)) {
        w->own_first = item->next;
        w->own_end = w->own_first ? w->own_end : &w->own_first;
        w->own_running++;
        return work_of(item);
    }
    item = kedge_fair_take(&w->fair, ret_line);
    if (item) {
        kedge_fair_charge(&w->fair, *ret_line, QUANTUM_NS);
    }
    return item ? work_of(item) : NULL;
}

static void settle(struct kedge_workers *w, uint32_t line, uint64_t took_ns)
{
    if (line == KEDGE_LINE_OWN) {
        w->own_running--;
    } else if (took_ns > QUANTUM_NS) {
        kedge_fair_charge(&w->fair, line, took_ns - QUANTUM_NS);
    }
}

/* On the loop. What follows from the work stands in its line, too. */
static void come_back(struct kedge_host *h, struct kedge_item *back)
{
    struct kedge_work *work = (struct kedge_work *)(void *)((char *)back - offsetof(struct kedge_work, back));
    h->line = work->line;
    work->item.handle(h, &work->item);
    h->line = KEDGE_LINE_OWN;
}

static void *worker_main(void *arg)
{
    struct kedge_workers *w = arg;
    uint32_t line;
    pthread_mutex_lock(&w->mutex);
    for (;;) {
        struct kedge_work *work = choose(w, &line);
        if (work) {
            pthread_mutex_unlock(&w->mutex);
            uint64_t begun = kedge_os_now_ns();
            work->run(w->host, work);
            uint64_t took = kedge_os_now_ns() - begun;
            kedge_host_post(w->host, &work->back); /* from here on it is the loop's */
            pthread_mutex_lock(&w->mutex);
            settle(w, line, took);
        } else if (w->closed) {
            break;
        } else {
            pthread_cond_wait(&w->change, &w->mutex);
        }
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

int kedge_workers_open(struct kedge_host *h, unsigned count, struct kedge_diag *d)
{
    struct kedge_workers *w = kedge_mem_new(1, sizeof *w);
    pthread_t *threads = kedge_mem_new(count, sizeof *threads);
    KEDGE_ASSERT(count >= 1 && !h->workers);
    if (!w || !threads) {
        kedge_mem_free(w);
        kedge_mem_free(threads);
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory at start");
    }
    w->host = h;
    w->threads = threads;
    w->count = count;
    w->own_end = &w->own_first;
    w->fair = (struct kedge_fair){
        .flows = w->lines, .flow_count = KEDGE_LINES, .line_max = UINT32_MAX, .quantum_ns = QUANTUM_NS};
    kedge_fair_init(&w->fair);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->change, NULL);
    h->workers = w;
    while (w->started < count && pthread_create(&w->threads[w->started], NULL, worker_main, w) == 0) {
        w->started++;
    }
    if (w->started < count) {
        kedge_workers_close(h);
        return kedge_diag_set(d, KEDGE_E_NOMEM, "cannot start %u workers", count);
    }
    return KEDGE_OK;
}

void kedge_workers_close(struct kedge_host *h)
{
    struct kedge_workers *w = h->workers;
    if (!w) {
        return;
    }
    pthread_mutex_lock(&w->mutex);
    w->closed = true;
    pthread_cond_broadcast(&w->change);
    pthread_mutex_unlock(&w->mutex);
    for (unsigned i = 0; i < w->started; i++) {
        pthread_join(w->threads[i], NULL);
    }
    h->workers = NULL;
    pthread_cond_destroy(&w->change);
    pthread_mutex_destroy(&w->mutex);
    kedge_mem_free(w->threads);
    kedge_mem_free(w);
}

static void put(struct kedge_workers *w, uint32_t line, struct kedge_work *work)
{
    work->in_line.next = NULL;
    work->back.handle = come_back;
    work->line = line;
    pthread_mutex_lock(&w->mutex);
    KEDGE_ASSERT(!w->closed);
    if (line == KEDGE_LINE_OWN) {
        *w->own_end = &work->in_line;
        w->own_end = &work->in_line.next;
    } else {
        bool has_room = kedge_fair_put(&w->fair, line, &work->in_line);
        KEDGE_ASSERT(has_room);
    }
    pthread_cond_signal(&w->change);
    pthread_mutex_unlock(&w->mutex);
}

void kedge_host_work_in(struct kedge_host *h, uint32_t line, struct kedge_work *work)
{
    KEDGE_ASSERT(h->workers || h->stop);
    if (h->workers) {
        put(h->workers, line, work);
    }
}

void kedge_host_work(struct kedge_host *h, struct kedge_work *work)
{
    kedge_host_work_in(h, h->line, work);
}

void kedge_host_work_own(struct kedge_host *h, struct kedge_work *work)
{
    kedge_host_work_in(h, KEDGE_LINE_OWN, work);
}
