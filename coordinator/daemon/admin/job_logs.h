/* Where the statements of jobs are, for workers that read them. A worker must not look at the loop's tables,
 * so the logs of all tenants are copied for it: which of them are the job's stands in its spec, which the
 * worker reads. */
#ifndef KEDGE_COORDINATOR_DAEMON_ADMIN_JOB_LOGS_H
#define KEDGE_COORDINATOR_DAEMON_ADMIN_JOB_LOGS_H

#include "coordinator/daemon/restore/history.h"

struct kedge_host;

struct kedge_job_logs {
    struct kedge_history_log *logs; /* of all tenants; owned */
    uint32_t count;
};

/* On the loop. KEDGE_E_NOMEM. Freed by kedge_mem_free(ret->logs). */
KEDGE_NODISCARD int kedge_job_logs_copy(const struct kedge_host *h, struct kedge_job_logs *ret);
/* Any thread: puts the logs of the job's tenants in front, in the spec's order; returns how many they are. A
 * tenant that is not here can be none of a job that was taken. */
uint32_t kedge_job_logs_choose(struct kedge_job_logs *l, const struct kedge_job_spec *spec);

#endif
