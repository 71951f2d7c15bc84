#include "coordinator/daemon/first_models.h"

#include <string.h>

#include "coordinator/daemon/jobs.h"

void kedge_first_models_set(struct kedge_job *job)
{
    job->model_count = kedge_job_spec_models(&job->spec);
    for (uint32_t g = 0; g < job->model_count; g++) {
        job->first_models[g] = job->models[g] = job->initial_model;
    }
}

void kedge_first_models_tell(const struct kedge_job *job, struct kedge_digest *models,
                             struct kedge_coord_event *ev)
{
    ev->model_count = kedge_job_spec_models(&job->spec);
    ev->models = models;
    for (uint32_t g = 0; g < ev->model_count; g++) {
        memcpy(models[g].b, job->first_models[g].b, sizeof models[g].b);
    }
}
