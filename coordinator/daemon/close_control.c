/* Closing a round of a "scaffold" job: the server's control variate steps with the updates that made the
 * aggregate. */
#include "chain/compute/control.h"

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
