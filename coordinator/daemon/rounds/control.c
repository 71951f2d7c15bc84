/* What a site gets beside the model: the server's control variate of a "scaffold" job, the frozen base of one
 * whose sites train a part of a model only. Each site that takes part may have it. */
#include <string.h>

#include "coordinator/daemon/host.h"
#include "coordinator/daemon/rounds/rounds.h"

const struct kedge_hash *kedge_host_control(const struct kedge_job *job, enum kedge_task_kind kind)
{
    if (kedge_job_spec_has_base(&job->spec)) {
        return &job->spec.initial_model;
    }
    const struct kedge_hash *state = &job->at.group[0].server_state;
    const bool has_control =
        kind == KEDGE_TASK_TRAIN && kedge_job_spec_has_control(&job->spec) && !kedge_hash_is_zero(state);
    return has_control ? state : NULL;
}

static bool is_control(const struct kedge_job *job, const struct kedge_hash *digest)
{
    if (kedge_job_spec_has_base(&job->spec)) {
        return kedge_hash_eq(&job->spec.initial_model, digest);
    }
    const bool known = kedge_hash_eq(&job->at.group[0].server_state, digest)
                       || (job->result && kedge_hash_eq(&job->result->state_before[0], digest));
    return kedge_job_spec_has_control(&job->spec) && known && !kedge_hash_is_zero(digest);
}

bool kedge_host_may_read_control(const struct kedge_host *h, const struct kedge_job *job, uint32_t site,
                                 const struct kedge_hash *digest)
{
    struct kedge_digest initial;
    memcpy(initial.b, job->initial_model.b, sizeof initial.b);
    return is_control(job, digest) && kedge_coord_may_read(h->coord, job->slot, site, &initial);
}
