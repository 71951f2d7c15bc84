/* The places for tasks: the threads of each, and which trainings run beside each other.
 *
 * A place has two threads because a site has two kinds of waiting that must not hold each other up: a call
 * may stay open for as long as a long poll waits, a training for hours. Both take items from a queue of their
 * own and post them to the loop when they are done; the loop alone steps the core and decides which training
 * may begin. So nothing here needs a lock: `runs`, `waits` and `passed` are the loop's, and what crosses
 * threads beside the queues is atomic: the serial up to which work is to stop, and the trainer's pid. */
#include <stdio.h>

#include "client/daemon/host.h"
#include "client/daemon/trainer/train.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"

enum { QUEUE_MAX = 64, THREAD_STACK = 1024 * 1024 };

void kedge_client_works_open(struct kedge_site_host *h)
{
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        struct kedge_client_work *w = &h->works[i];
        w->h = h;
        w->index = i;
        w->policy = h->policy;
        kedge_client_policy_hold(w->policy);
        kedge_buf_init(&w->trainer.line, KEDGE_METRICS_LINE_MAX);
        w->trainer.process = (struct kedge_process){.in_fd = -1, .out_fd = -1, .err_fd = -1};
    }
}

/* One item at a time, and the item goes back to the loop as soon as its blocking part is over: a helper
 * thread never steps the core. */
static void *call_main(void *arg)
{
    struct kedge_client_work *w = arg;
    void *taken;
    while (kedge_queue_take(w->call_queue, KEDGE_TIME_NEVER, &taken) == KEDGE_OK) {
        struct kedge_site_item *item = taken;
        item->run(w, item);
        kedge_client_post(w->h, item);
    }
    return NULL;
}

/* The loop tells the owner what has changed. */
static void trainer_ended_handle(struct kedge_site_host *h, struct kedge_site_item *item)
{
    (void)h;
    (void)item;
}

/* Between two things to do, a trainer that has been idle for long is ended. */
static void *work_main(void *arg)
{
    static struct kedge_site_item ended = {.handle = trainer_ended_handle};
    struct kedge_client_work *w = arg;
    void *taken;
    int err;
    while ((err = kedge_queue_take(w->work_queue, kedge_client_trainer_deadline_ns(w), &taken))
           != KEDGE_E_CLOSED) {
        if (err == KEDGE_E_TIMEOUT) {
            kedge_client_trainer_end_idle(w, KEDGE_TRAINER_PATIENCE_MS);
            kedge_client_post(w->h, &ended);
            continue;
        }
        struct kedge_site_item *item = taken;
        item->run(w, item);
        kedge_client_post(w->h, item);
    }
    return NULL;
}

static int start_threads(struct kedge_client_work *w, const pthread_attr_t *attr, struct kedge_diag *d)
{
    char folder[KEDGE_PATH_MAX];
    KEDGE_TRY(kedge_client_work_file(w, "", folder));
    KEDGE_TRY(kedge_dir_make(folder, 0700, d));
    KEDGE_TRY(kedge_queue_new(QUEUE_MAX, &w->call_queue));
    KEDGE_TRY(kedge_queue_new(QUEUE_MAX, &w->work_queue));
    KEDGE_TRY(pthread_create(&w->threads[0], attr, call_main, w) != 0 ? KEDGE_E_NOMEM : KEDGE_OK);
    if (pthread_create(&w->threads[1], attr, work_main, w) != 0) {
        kedge_queue_close(w->call_queue);
        pthread_join(w->threads[0], NULL);
        return KEDGE_E_NOMEM;
    }
    return KEDGE_OK;
}

/* A site that is in one job at a time has one place, and threads for that alone. Without threads nothing can
 * be done: the process ends, and starts again. */
static void start(struct kedge_client_work *w)
{
    pthread_attr_t attr;
    struct kedge_diag d = {.text = ""};
    if (w->started) {
        return;
    }
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, THREAD_STACK);
    int err = start_threads(w, &attr, &d);
    pthread_attr_destroy(&attr);
    w->started = !err;
    if (err) {
        kedge_log(KEDGE_LOG_ERROR, "cannot start threads", "%s", d.text[0] ? d.text : kedge_strerror(err));
        w->h->fatal = err;
        w->h->stop = true;
    }
}

/* Items of a place go through its queues in the order in which the core asked. That order is relied on: what
 * is removed when a place goes idle (work_idle.c) is removed before the next task's fetch looks for it, and a
 * new policy comes into force between two items, never within one. */
static void put(struct kedge_client_work *w, bool call, struct kedge_site_item *item)
{
    item->work = w;
    start(w);
    int err = w->started ? kedge_queue_put(call ? w->call_queue : w->work_queue, item) : KEDGE_E_CLOSED;
    KEDGE_ASSERT(!err || w->h->stop);
}

void kedge_client_works_call(struct kedge_client_work *w, struct kedge_site_item *item)
{
    put(w, true, item);
}

void kedge_client_works_do(struct kedge_client_work *w, struct kedge_site_item *item)
{
    put(w, false, item);
}

void kedge_client_works_abort(struct kedge_site_host *h)
{
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        atomic_store(&h->works[i].abort_serial, UINT64_MAX);
    }
}

/* All queues are closed before any thread is waited for, so that a place that ends slowly does not delay the
 * word to the others. */
void kedge_client_works_close(struct kedge_site_host *h)
{
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        struct kedge_client_work *w = &h->works[i];
        if (w->started) {
            kedge_queue_close(w->call_queue);
            kedge_queue_close(w->work_queue);
        }
    }
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        struct kedge_client_work *w = &h->works[i];
        if (w->started) {
            pthread_join(w->threads[0], NULL);
            pthread_join(w->threads[1], NULL);
        }
        if (w->h) {
            kedge_client_trainer_stop(w);
            kedge_client_policy_let_go(w->policy);
        }
    }
}

/* ---- which trainings run ---- */

static struct kedge_admission_ask ask_of(const struct kedge_client_work *w, const struct kedge_train_item *t)
{
    const struct kedge_site_policy *p = w->h->policy;
    const struct kedge_trainer_terms *own =
        t->trainer.s[0] ? kedge_trainers_find(&p->trainers, &t->trainer) : NULL;
    return (struct kedge_admission_ask){.job = t->fx.task.job,
                                        .threads = kedge_policy_threads(p),
                                        .memory = kedge_policy_memory(p, own ? own->memory_max : 0),
                                        .gpu = own ? own->gpu
                                                   : p->device != KEDGE_POLICY_CPU && !t->trainer.s[0]};
}

/* Admission is not first come, first served: a small task may begin beside a running one while a large one
 * waits. That could starve the large one, so a task that has let KEDGE_ADMISSION_PASSED_MAX others begin goes
 * next; until then all that would pass it wait. Of two such tasks the one that was passed more often goes
 * first, so they do not block each other. */
static bool somebody_waited_long(const struct kedge_client_work *w)
{
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        const struct kedge_client_work *other = &w->h->works[i];
        if (other != w && other->waits && other->passed >= KEDGE_ADMISSION_PASSED_MAX
            && other->passed > w->passed) {
            return true;
        }
    }
    return false;
}

/* False: it waits. */
static bool try_begin(struct kedge_client_work *w, struct kedge_train_item *t)
{
    struct kedge_site_host *h = w->h;
    struct kedge_admission_ask others[KEDGE_SITE_WORKS_MAX];
    const struct kedge_admission_limits l = kedge_policy_limits(h->policy);
    const struct kedge_admission_ask ask = ask_of(w, t);
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        others[i] = h->works[i].runs;
    }
    enum kedge_admission a =
        t->err ? KEDGE_ADMIT : kedge_admission_decide(&l, &ask, others, KEDGE_SITE_WORKS_MAX, w->why);
    if (a == KEDGE_ADMIT && somebody_waited_long(w)) {
        snprintf(w->why, sizeof w->why, "another task has waited for long");
        a = KEDGE_ADMIT_LATER;
    }
    if (a == KEDGE_ADMIT_LATER) {
        return false;
    }
    if (a == KEDGE_ADMIT_NEVER) {
        t->err = kedge_diag_set(&t->diag, KEDGE_E_DENIED, "%s", w->why);
    }
    w->runs = ask;
    w->why[0] = '\0';
    w->waits = NULL;
    w->passed = 0;
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        h->works[i].passed += h->works[i].waits != NULL;
    }
    h->service.changed = true;
    kedge_client_works_do(w, &t->item);
    return true;
}

void kedge_client_works_train(struct kedge_client_work *w, struct kedge_train_item *t)
{
    KEDGE_ASSERT(!w->waits);
    if (!try_begin(w, t)) {
        w->waits = t;
        w->waits_since = ++w->h->waits_count;
        w->h->service.changed = true;
        kedge_log(KEDGE_LOG_INFO, "waits", "job=%s round=%u: %s", t->fx.task.job.s, t->fx.task.round, w->why);
    }
}

/* Those that wait, the longest first. */
static void begin_waiting(struct kedge_site_host *h)
{
    uint64_t last = 0;
    for (uint32_t n = 0; n < KEDGE_SITE_WORKS_MAX; n++) {
        struct kedge_client_work *next = NULL;
        for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
            struct kedge_client_work *w = &h->works[i];
            bool later = w->waits && w->waits_since > last;
            next = later && (!next || w->waits_since < next->waits_since) ? w : next;
        }
        if (!next) {
            return;
        }
        last = next->waits_since;
        (void)try_begin(next, next->waits);
    }
}

void kedge_client_works_trained(struct kedge_client_work *w)
{
    w->runs = (struct kedge_admission_ask){.threads = 0};
    begin_waiting(w->h);
}

/* Serials only grow, so one number says what is to stop: everything up to it. Helper threads look at it
 * between two pieces of work. A training that still waits for its turn has no thread that could look, so it
 * is dropped here, and its completion never comes; the core has given its serial up already. */
void kedge_client_works_stop(struct kedge_client_work *w, uint64_t serial)
{
    atomic_store(&w->abort_serial, serial);
    if (w->waits && w->waits->fx.serial <= serial) {
        kedge_mem_free(w->waits);
        w->waits = NULL;
        w->why[0] = '\0';
        w->h->service.changed = true;
    }
}

void kedge_client_works_policy(struct kedge_site_host *h)
{
    begin_waiting(h);
}
