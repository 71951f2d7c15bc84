/* Which training may begin beside those that run (policy.json: threads, memory_all, gpu_at_once,
 * jobs_at_once). Pure.
 *
 * Two rules keep a task from waiting for ever. A task that alone asks for more than the site has is refused
 * at once, with the key to change. A task that is alone is always admitted otherwise: shares are computed by
 * division, and with fewer threads than jobs_at_once a share of one thread each could add up to more than
 * `threads`. */
#include "client/daemon/admission.h"

#include <inttypes.h>
#include <stdio.h>

uint32_t kedge_admission_threads(const struct kedge_admission_limits *l)
{
    uint32_t part = l->threads / l->jobs_at_once;
    return part > 0 ? part : 1;
}

uint64_t kedge_admission_memory(const struct kedge_admission_limits *l, uint64_t own_max)
{
    return own_max > 0 ? own_max : l->memory_all / l->jobs_at_once;
}

enum kedge_admission kedge_admission_decide(const struct kedge_admission_limits *l,
                                            const struct kedge_admission_ask *ask,
                                            const struct kedge_admission_ask *others, uint32_t count,
                                            char why[KEDGE_ADMISSION_TEXT_MAX])
{
    uint32_t running = 0, threads = 0, gpu = 0;
    uint64_t memory = 0;
    const char *by = "";
    for (uint32_t i = 0; i < count; i++) {
        /* A place without a running training has no job. The sum saturates: memory_max may be any 63-bit
         * number, and a sum that wrapped would admit everything. */
        bool runs = others[i].job.s[0] != '\0';
        by = runs ? others[i].job.s : by;
        running += runs;
        threads += runs ? others[i].threads : 0;
        gpu += runs && others[i].gpu;
        uint64_t more = runs ? others[i].memory : 0;
        memory = more < UINT64_MAX - memory ? memory + more : UINT64_MAX;
    }
    why[0] = '\0';
    if (l->memory_all > 0 && ask->memory > l->memory_all) {
        snprintf(why, KEDGE_ADMISSION_TEXT_MAX,
                 "its trainer may take %" PRIu64 " bytes, all together %" PRIu64 " (policy.json: memory_all)",
                 ask->memory, l->memory_all);
        return KEDGE_ADMIT_NEVER;
    }
    if (running == 0) {
        return KEDGE_ADMIT;
    }
    if (running >= l->jobs_at_once) {
        snprintf(why, KEDGE_ADMISSION_TEXT_MAX, "%" PRIu32 " of %" PRIu32 " trainings run (jobs_at_once)",
                 running, l->jobs_at_once);
    } else if (ask->threads > l->threads || threads > l->threads - ask->threads) {
        snprintf(why, KEDGE_ADMISSION_TEXT_MAX, "threads: %" PRIu32 " of %" PRIu32 " are in use by job %s",
                 threads, l->threads, by);
    } else if (l->memory_all > 0 && memory > l->memory_all - ask->memory) {
        snprintf(why, KEDGE_ADMISSION_TEXT_MAX,
                 "memory: %" PRIu64 " of %" PRIu64 " bytes are in use by job %s (memory_all)", memory,
                 l->memory_all, by);
    } else if (ask->gpu && gpu >= l->gpu_at_once) {
        snprintf(why, KEDGE_ADMISSION_TEXT_MAX, "the GPU is in use by job %s (gpu_at_once)", by);
    }
    return why[0] ? KEDGE_ADMIT_LATER : KEDGE_ADMIT;
}
