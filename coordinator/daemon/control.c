/* The server's control variate of a "scaffold" job: it steps with the updates that made an aggregate, and
 * whoever takes part may have it. */
#include "chain/compute/control.h"

#include <string.h>

#include "common/base/mem.h"
#include "coordinator/daemon/close.h"
#include "coordinator/daemon/host.h"

int kedgei_close_control(struct kedge_host *h, struct close_work *w, uint32_t group, const char *before,
                         const char *aggregate, const char *state, struct kedge_sink model,
                         struct kedge_sink state_after)
{
    struct kedge_compute_input *inputs = NULL;
    size_t n = 0;
    int err = kedgei_close_gather(h, w, group, &inputs, &n);
    err = err ? err
              : kedge_compute_control_step(&w->job->spec, &w->job->layout, before, aggregate, state, inputs,
                                           n, model, state_after, &w->models.diag);
    kedge_mem_free(inputs);
    return err;
}

bool kedge_host_may_read_control(const struct kedge_host *h, const struct kedge_job *job, uint32_t site,
                                 const struct kedge_hash *digest)
{
    struct kedge_digest initial;
    bool known = kedge_hash_eq(&job->states[0], digest)
                 || (job->result && kedge_hash_eq(&job->result->state_before[0], digest));
    memcpy(initial.b, job->initial_model.b, sizeof initial.b);
    return kedge_job_spec_has_control(&job->spec) && known && !kedge_hash_is_zero(digest)
           && kedge_coord_may_read(h->coord, job->slot, site, &initial);
}
