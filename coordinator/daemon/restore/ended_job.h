/* Jobs that have ended, read from the record: coordinator.lmdb names them, the main chain says what became of
 * them. There may be any number of them and nothing of them is kept in memory. Any thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_RESTORE_ENDED_JOB_H
#define KEDGE_COORDINATOR_DAEMON_RESTORE_ENDED_JOB_H

#include "chain/statement/statement.h"
#include "common/base/diag.h"
#include "coordinator/daemon/records.h"
#include "job/job_spec.h"

struct kedge_host;
struct kedge_job_test;

struct kedge_ended_job {
    struct kedge_job_record record; /* its state is the one that the main chain says */
    struct kedge_job_spec *spec;    /* owned */
    uint32_t round;                 /* of job-closed: the last closed one, or the next */
    uint64_t ended_ms;              /* 0: not stated */
    bool unopened;                  /* the main chain does not name it: it was never opened */
    char reason[KEDGE_ST_REASON_MAX + 1];
};

/* What the main chain says of the job in this record. KEDGE_E_NOT_FOUND: it has not ended. KEDGE_E_CORRUPT,
 * KEDGE_E_NOMEM and what reading its spec meets. Freed by deinit. */
KEDGE_NODISCARD int kedge_ended_job_read(struct kedge_host *h, const struct kedge_job_record *record,
                                         struct kedge_ended_job *ret, struct kedge_diag *reterr);
/* The same by name. KEDGE_E_NOT_FOUND: there is no such job, or it has not ended. */
KEDGE_NODISCARD int kedge_ended_job_find(struct kedge_host *h, const struct kedge_id *name,
                                         struct kedge_ended_job *ret, struct kedge_diag *reterr);
/* The process died after job-closed was durable and before the job's record said so: makes the record and the
 * job's history say it. */
KEDGE_NODISCARD int kedge_ended_job_settle(struct kedge_host *h, const struct kedge_job_record *record,
                                           struct kedge_diag *reterr);
void kedge_ended_job_deinit(struct kedge_ended_job *job);
/* Is there a job-closed, a job-opened, and where? */
bool kedge_ended_job_is_closed(struct kedge_host *h, const struct kedge_id *name);
bool kedge_ended_job_is_opened(struct kedge_host *h, const struct kedge_id *name, uint64_t *ret_index);
/* The spec that the record names, which is that of a job of this name; the caller's (kedge_mem_free).
 * KEDGE_E_CORRUPT, KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_job_record_spec(struct kedge_host *h, const struct kedge_job_record *record,
                                          struct kedge_job_spec **ret, struct kedge_diag *reterr);
/* There was such a job, and it has ended: also one that was never opened. */
bool kedge_ended_job_is_known(struct kedge_host *h, const struct kedge_id *name);
/* Its models in order of groups: those that the last step gave, or it began with. ret: KEDGE_GROUPS_MAX. */
KEDGE_NODISCARD int kedge_ended_job_models(struct kedge_host *h, const struct kedge_ended_job *job,
                                           struct kedge_hash *ret, uint32_t *ret_count,
                                           struct kedge_diag *reterr);
/* What the last tested round of any job says of its targets; zeros: none says anything. */
KEDGE_NODISCARD int kedge_job_tested_read(struct kedge_host *h, const struct kedge_id *job,
                                          struct kedge_job_test *ret, struct kedge_diag *reterr);

/* Up to `most` records of jobs in the order of names, from this name on, of those that begin with `prefix`;
 * *ret_more: there is another one, in ret[*ret_count], for which there is room, too. An empty name: from the
 * first; an empty prefix: all. */
KEDGE_NODISCARD int kedge_job_records_page(struct kedge_host *h, const char *prefix,
                                           const struct kedge_id *from, size_t most,
                                           struct kedge_job_record *ret, size_t *ret_count, bool *ret_more,
                                           struct kedge_diag *reterr);
/* The record of a job. KEDGE_E_NOT_FOUND. */
KEDGE_NODISCARD int kedge_job_record_get(struct kedge_host *h, const struct kedge_id *name,
                                         struct kedge_job_record *ret, struct kedge_diag *reterr);

#endif
