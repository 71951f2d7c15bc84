/* A trainer without a task: kept for a while, then ended, for what it holds in memory others may need. */
#include <signal.h>

#include "client/daemon/trainer/trainer.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"

#define NS_PER_S UINT64_C(1000000000)
enum {
    LOOK_MS = 5,
    LINES_MAX = 16 /* that are heard between two looks */
};

uint64_t kedge_client_trainer_deadline_ns(const struct kedge_client_work *w)
{
    return w->trainer.process.pid == 0 ? KEDGE_TIME_NEVER
                                       : w->trainer.used_ns + w->policy->trainer_idle_seconds * NS_PER_S;
}

/* The daemon is to end, and waits for nothing that can be cut short. */
static bool is_hurried(const struct kedge_client_work *w)
{
    return atomic_load(&w->abort_serial) == UINT64_MAX;
}

/* What it says on its way out is heard, so that no full pipe holds it up. */
static bool ends_within(struct kedge_client_work *w, uint32_t timeout_ms)
{
    int status;
    for (uint32_t waited = 0; waited < timeout_ms && !is_hurried(w); waited += LOOK_MS) {
        for (int i = 0; i < LINES_MAX && kedgei_trainer_hear(w); i++) {
        }
        if (w->trainer.process.pid == 0 || kedge_process_poll(&w->trainer.process, &status)) {
            return true;
        }
        kedge_os_sleep_ms(LOOK_MS);
    }
    return false;
}

/* It has no task, so there is nothing to lose but what it keeps in memory; and it may tidy up: first its
 * input ends, then it is asked by a signal, then it is killed with all that it has started. */
void kedge_client_trainer_end_idle(struct kedge_client_work *w, uint32_t patience_ms)
{
    static const char *const ways[] = {"at the end of its input", "by SIGTERM", "by SIGKILL"};
    size_t way = 0;
    kedge_process_close_input(&w->trainer.process);
    if (!ends_within(w, patience_ms)) {
        way++;
        kedge_process_signal(&w->trainer.process, SIGTERM);
        if (!ends_within(w, patience_ms)) {
            way++;
        }
    }
    kedge_client_trainer_stop(w); /* where it still runs */
    kedge_log(KEDGE_LOG_INFO, "trainer ended",
              "name=%s: no task for %u s (policy.json: trainer_idle_seconds); it ended %s, and is started "
              "again for the next",
              kedgei_trainer_name(w), w->policy->trainer_idle_seconds, ways[way]);
}
