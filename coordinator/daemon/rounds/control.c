/* The server's control variate of a "scaffold" job: whoever takes part may have it. */
#include <string.h>

#include "coordinator/daemon/host.h"
#include "coordinator/daemon/rounds/rounds.h"

bool kedge_host_may_read_control(const struct kedge_host *h, const struct kedge_job *job, uint32_t site,
                                 const struct kedge_hash *digest)
{
    struct kedge_digest initial;
    bool known = kedge_hash_eq(&job->at.group[0].server_state, digest)
                 || (job->result && kedge_hash_eq(&job->result->state_before[0], digest));
    memcpy(initial.b, job->initial_model.b, sizeof initial.b);
    return kedge_job_spec_has_control(&job->spec) && known && !kedge_hash_is_zero(digest)
           && kedge_coord_may_read(h->coord, job->slot, site, &initial);
}
