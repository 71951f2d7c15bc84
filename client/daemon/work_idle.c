/* Files of tasks that are done. The next task of a job needs most of them, so they are kept as long as its
 * trainer is (policy.json: trainer_idle_seconds); when no task came in that time, the job has ended or goes
 * on without this site, and they go. What was signed stays until it has its receipt. */
#include <string.h>
#include <unistd.h>

#include "client/daemon/host.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"

#define NS_PER_S UINT64_C(1000000000)
enum { IDLE_MIN_S = 2 }; /* between two rounds nothing goes, however short a trainer is kept */

static uint64_t idle_ns(const struct kedge_site_host *h)
{
    uint64_t s = h->policy->trainer_idle_seconds;
    return (s > IDLE_MIN_S ? s : IDLE_MIN_S) * NS_PER_S;
}

static void trim_run(struct kedge_client_work *w, struct kedge_site_item *item)
{
    static const char *const kinds[] = {"spec", "model", "control", "trial"}, *const names[] = {
                                                                                  "trained", "drift", "whole",
                                                                                  "whole-trained",
                                                                                  "update.part"};
    char path[KEDGE_PATH_MAX];
    (void)item;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        kedge_client_work_trim(w, kinds[i], NULL, 0);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (kedge_client_work_file(w, names[i], path) == KEDGE_OK) {
            (void)unlink(path);
        }
    }
    memset(&w->model_digest, 0, sizeof w->model_digest); /* nothing of it is here to begin with */
    memset(&w->control_digest, 0, sizeof w->control_digest);
    memset(&w->trial_digest, 0, sizeof w->trial_digest);
}

static void trim_handle(struct kedge_site_host *h, struct kedge_site_item *item)
{
    (void)h;
    kedge_mem_free(item);
}

/* Behind it in the work's queue is whatever the next task asks for. */
static void trim(struct kedge_client_work *w)
{
    struct kedge_site_item *item = kedge_mem_new(1, sizeof *item);
    if (item) {
        *item = (struct kedge_site_item){.run = trim_run, .handle = trim_handle};
        kedge_client_works_do(w, item);
    }
}

void kedge_client_work_idle_turn(struct kedge_site_host *h, const struct kedge_site_view *v, uint64_t now)
{
    for (uint32_t i = 0; i < v->work_count; i++) {
        struct kedge_client_work *w = &h->works[i];
        bool idle = v->works[i].state == KEDGE_SITE_POLLING && !v->works[i].result && !w->waits;
        w->used = w->used || !idle;
        if (!idle) {
            w->idle_since_ns = 0;
        } else if (w->used && w->idle_since_ns == 0) {
            w->idle_since_ns = now;
        } else if (w->used && now - w->idle_since_ns >= idle_ns(h)) {
            w->used = false;
            trim(w);
        }
    }
}

uint64_t kedge_client_work_idle_deadline_ns(const struct kedge_site_host *h)
{
    uint64_t at = KEDGE_TIME_NEVER;
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        const struct kedge_client_work *w = &h->works[i];
        uint64_t due = w->used && w->idle_since_ns > 0 ? w->idle_since_ns + idle_ns(h) : KEDGE_TIME_NEVER;
        at = due < at ? due : at;
    }
    return at;
}
