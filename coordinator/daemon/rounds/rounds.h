/* Rounds, from job-opened to job-closed: what they compute, and what the main chain and the ledgers say of
 * it. */
#ifndef KEDGE_COORDINATOR_DAEMON_ROUNDS_ROUNDS_H
#define KEDGE_COORDINATOR_DAEMON_ROUNDS_ROUNDS_H

#include "round/close/close.h"

struct kedge_host;
struct kedge_job;

/* This coordinator's files, for the functions of round/close (close_files.c). */
struct kedge_close_host kedge_host_close_files(struct kedge_host *h);
void kedge_host_job_opened(struct kedge_host *h, struct kedge_job *job);
void kedge_host_round_opened(struct kedge_host *h, struct kedge_job *job,
                             const struct kedge_coord_effect *fx);
void kedge_host_close_round(struct kedge_host *h, struct kedge_job *job, const struct kedge_coord_effect *fx);
void kedge_host_round_closed(struct kedge_host *h, struct kedge_job *job, uint32_t round);
void kedge_host_round_tested(struct kedge_host *h, struct kedge_job *job, uint32_t round);
/* tested.c: its batch, unless there is one. */
KEDGE_NODISCARD int kedge_host_build_tested(struct kedge_job *job, uint32_t round, struct kedge_diag *d);
void kedge_host_job_closed(struct kedge_host *h, struct kedge_job *job, enum kedge_job_state outcome,
                           int reason);
void kedge_host_assign(struct kedge_host *h, struct kedge_job *job, const struct kedge_coord_effect *fx);
void kedge_host_append_assigned(struct kedge_host *h, struct kedge_job *job,
                                const struct kedge_coord_effect *fx);
/* Hands over those that waited for the statement key. */
void kedge_host_assigned_go_on(struct kedge_host *h);

#endif
