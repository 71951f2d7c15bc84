/* Tasks in blocks by an atomic counter. Each block has a list of findings; lists are joined in the order of
 * blocks as they end, so that the report does not depend on timing and what waits to be joined is little. */
#include <pthread.h>
#include <stdatomic.h>

#include "chain/audit/record.h"
#include "common/base/mem.h"

enum { THREADS_MAX = 64, PROGRESS_EVERY = 256, BLOCKS_MAX = 4096 };

struct block {
    struct kedgei_findings findings;
    bool done;
};

struct pool {
    struct kedgei_audit *audit;
    const char *what;
    uint64_t count, per_block, block_count;
    kedgei_task *task;
    void *arg;
    struct block *blocks;
    atomic_uint_fast64_t next;
    pthread_mutex_t mutex; /* of `done`, `joined` and the audit's findings */
    uint64_t joined;
};

/* Blocks end in any order and are joined in theirs: a report is the same for any number of threads, which
 * the tests hold it to. Lists of findings are mostly empty, so at most a few wait. */
static void end_block(struct pool *p, uint64_t b)
{
    pthread_mutex_lock(&p->mutex);
    p->blocks[b].done = true;
    while (p->joined < p->block_count && p->blocks[p->joined].done) {
        kedgei_findings_move(&p->audit->findings, &p->blocks[p->joined++].findings);
    }
    pthread_mutex_unlock(&p->mutex);
}

static void run_blocks(struct pool *p, bool reports)
{
    const struct kedge_audit_options *o = &p->audit->options;
    uint64_t b;
    while ((b = atomic_fetch_add(&p->next, 1)) < p->block_count) {
        uint64_t end = (b + 1) * p->per_block < p->count ? (b + 1) * p->per_block : p->count;
        for (uint64_t i = b * p->per_block; i < end; i++) {
            p->task(p->arg, i, &p->blocks[b].findings);
            kedgei_scratch_evict_if_large(&p->audit->scratch);
            if (reports && o->progress && i % PROGRESS_EVERY == 0) {
                o->progress(o->progress_arg, p->what, i, p->count);
            }
        }
        end_block(p, b);
    }
}

static void *run_thread(void *arg)
{
    run_blocks(arg, false);
    return NULL;
}

/* At most BLOCKS_MAX blocks: small enough that the last thread does not work long alone, few enough that
 * their lists cost nothing. The caller's thread works as well, and is the only one that reports progress,
 * so a callback needs no lock. */
int kedgei_parallel(struct kedgei_audit *a, const char *what, uint64_t count, kedgei_task *task, void *arg)
{
    struct pool p = {.audit = a, .what = what, .count = count, .task = task, .arg = arg};
    pthread_t threads[THREADS_MAX];
    uint32_t started = 0;
    if (count == 0) {
        return KEDGE_OK;
    }
    p.per_block = (count - 1) / BLOCKS_MAX + 1;
    p.block_count = (count - 1) / p.per_block + 1;
    p.blocks = kedge_mem_new((size_t)p.block_count, sizeof *p.blocks);
    if (!p.blocks) {
        return kedge_diag_set(&a->diag, KEDGE_E_NOMEM, "out of memory for %s", what);
    }
    int rc = pthread_mutex_init(&p.mutex, NULL);
    KEDGE_ASSERT(rc == 0);
    atomic_init(&p.next, 0);
    /* A thread that cannot be had is one less: the caller's own does all that is left. */
    while (started + 1 < a->threads && started + 1 < p.block_count && started < THREADS_MAX
           && pthread_create(&threads[started], NULL, run_thread, &p) == 0) {
        started++;
    }
    run_blocks(&p, true);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    KEDGE_ASSERT(p.joined == p.block_count);
    pthread_mutex_destroy(&p.mutex);
    kedge_mem_free(p.blocks);
    if (a->options.progress) {
        a->options.progress(a->options.progress_arg, what, count, count);
    }
    return KEDGE_OK;
}
