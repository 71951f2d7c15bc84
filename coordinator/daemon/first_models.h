/* The models that a job begins with: one, or one of each group where groups need no pre-training. */
#ifndef KEDGE_COORDINATOR_DAEMON_FIRST_MODELS_H
#define KEDGE_COORDINATOR_DAEMON_FIRST_MODELS_H

#include "coordinator/core/coord.h"

struct kedge_job;

/* From the initial model, once that is known: job->models and model_count are these until a round closes. */
void kedge_first_models_set(struct kedge_job *job);
/* Puts them into an event that tells the core of the job; they lie in models[KEDGE_GROUPS_MAX]. */
void kedge_first_models_tell(const struct kedge_job *job, struct kedge_digest *models,
                             struct kedge_coord_event *ev);

#endif
