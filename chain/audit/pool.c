/* Tasks by an atomic counter; each has a slot for its findings, so that the report does not depend on timing.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "chain/audit/record.h"
#include "common/base/mem.h"

enum { THREADS_MAX = 64, PROGRESS_EVERY = 256 };

struct pool {
    struct kedgei_audit *audit;
    const char *what;
    uint64_t count;
    kedgei_task *task;
    void *arg;
    struct kedgei_findings *findings; /* one per task */
    atomic_uint_fast64_t next;
};

static void run_tasks(struct pool *p, bool reports)
{
    const struct kedge_audit_options *o = &p->audit->options;
    for (uint64_t i = atomic_fetch_add(&p->next, 1); i < p->count; i = atomic_fetch_add(&p->next, 1)) {
        p->task(p->arg, i, &p->findings[i]);
        if (reports && o->progress && i % PROGRESS_EVERY == 0) {
            o->progress(o->progress_arg, p->what, i, p->count);
        }
    }
}

static void *run_thread(void *arg)
{
    run_tasks(arg, false);
    return NULL;
}

int kedgei_parallel(struct kedgei_audit *a, const char *what, uint64_t count, kedgei_task *task, void *arg)
{
    struct pool p = {.audit = a, .what = what, .count = count, .task = task, .arg = arg};
    pthread_t threads[THREADS_MAX];
    uint32_t started = 0;
    if (count == 0) {
        return KEDGE_OK;
    }
    p.findings = count <= SIZE_MAX ? kedge_mem_new((size_t)count, sizeof *p.findings) : NULL;
    if (!p.findings) {
        return kedge_diag_set(&a->diag, KEDGE_E_NOMEM, "out of memory for %s", what);
    }
    atomic_init(&p.next, 0);
    /* A thread that cannot be had is one less: the caller's own does all that is left. */
    while (started + 1 < a->threads && started + 1 < count && started < THREADS_MAX
           && pthread_create(&threads[started], NULL, run_thread, &p) == 0) {
        started++;
    }
    run_tasks(&p, true);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    for (uint64_t i = 0; i < count; i++) {
        kedgei_findings_move(&a->findings, &p.findings[i]);
    }
    kedge_mem_free(p.findings);
    if (a->options.progress) {
        a->options.progress(a->options.progress_arg, what, count, count);
    }
    return KEDGE_OK;
}
