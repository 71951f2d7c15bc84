/* The models that a job begins with: one, or one of each group where groups need no pre-training. */
#ifndef KEDGE_COORDINATOR_DAEMON_ROUNDS_FIRST_MODELS_H
#define KEDGE_COORDINATOR_DAEMON_ROUNDS_FIRST_MODELS_H

#include "chain/statement/statement.h"
#include "common/base/diag.h"
#include "coordinator/core/coord.h"

struct kedge_host;
struct kedge_job;

/* Makes them blobs of the main chain, once the initial model is known; the same ones however often. On any
 * thread. */
KEDGE_NODISCARD int kedge_first_models_make(struct kedge_host *h, struct kedge_job *job,
                                            struct kedge_diag *d);
/* Puts them into job-opened, and takes them from it. */
void kedge_first_models_state(const struct kedge_job *job, struct kedge_st_job_opened *ret);
void kedge_first_models_take(struct kedge_job *job, const struct kedge_st_job_opened *opened);
/* Until a round closes, those of job->at are these. */
void kedge_first_models_begin(struct kedge_job *job);
/* Is it one of them, or the base that they are a part of? */
bool kedge_first_models_has(const struct kedge_job *job, const struct kedge_hash *digest);
/* Puts them into an event that tells the core of the job; they lie in models[KEDGE_GROUPS_MAX]. */
void kedge_first_models_tell(const struct kedge_job *job, struct kedge_digest *models,
                             struct kedge_coord_event *ev);

#endif
