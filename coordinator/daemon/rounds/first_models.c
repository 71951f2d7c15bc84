/* Models that a job begins with. Group 0 has the initial model, the others, where groups begin with
 * models of their own, models drawn from the job's seed and the number of the group: an auditor
 * draws them again. */
#include "coordinator/daemon/rounds/first_models.h"

#include <string.h>

#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "round/beginning.h"

static int sink_to_blob(void *arg, struct kedge_view bytes)
{
    return kedge_blob_writer_write(arg, bytes, NULL);
}

/* Drawn and written tile by tile; the memory that this takes does not depend on the size of the
 * model. */
static int make_one(struct kedge_host *h, struct kedge_job *job, uint32_t group, struct kedge_diag *d)
{
    struct kedge_blob_writer *writer;
    KEDGE_TRY(kedge_blob_writer_open(h->main.blobs, job->model_len, &writer, d));
    int err = kedge_compute_beginning(&job->spec, group,
                                      (struct kedge_sink){.write = sink_to_blob, .arg = writer}, d);
    if (err) {
        kedge_blob_writer_abort(writer);
        return err;
    }
    return kedge_blob_writer_finish(writer, &job->first_models[group], NULL, d);
}

int kedge_first_models_make(struct kedge_host *h, struct kedge_job *job, struct kedge_diag *d)
{
    for (uint32_t g = 0; g < kedge_job_spec_models(&job->spec); g++) {
        job->first_models[g] = job->initial_model;
        if (g > 0 && kedge_job_spec_has_model_per_group_at_start(&job->spec)) {
            KEDGE_TRY(make_one(h, job, g, d));
        }
    }
    return KEDGE_OK;
}

void kedge_first_models_state(const struct kedge_job *job, struct kedge_st_job_opened *ret)
{
    for (uint32_t g = 1; kedge_job_spec_has_model_per_group_at_start(&job->spec) && g < job->spec.groups;
         g++) {
        ret->first_models[ret->first_model_count++] =
            (struct kedge_st_first_model){.group = g, .model = job->first_models[g]};
    }
}

void kedge_first_models_take(struct kedge_job *job, const struct kedge_st_job_opened *opened)
{
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        bool apart = g > 0 && g - 1 < opened->first_model_count;
        job->first_models[g] = apart ? opened->first_models[g - 1].model : opened->initial_model;
    }
}

void kedge_first_models_begin(struct kedge_job *job)
{
    job->at.groups = kedge_job_spec_models(&job->spec);
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        job->at.group[g].model = job->first_models[g];
    }
}

bool kedge_first_models_has(const struct kedge_job *job, const struct kedge_hash *digest)
{
    bool found = kedge_job_spec_has_base(&job->spec) && kedge_hash_eq(&job->spec.initial_model, digest);
    for (uint32_t g = 0; g < kedge_job_spec_models(&job->spec) && !found; g++) {
        found = kedge_hash_eq(&job->first_models[g], digest);
    }
    return found;
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
