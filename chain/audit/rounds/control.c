/* The server's step of a "scaffold" job once more: its control variate steps with the updates of the round.
 */
#include "round/control.h"

#include "chain/audit/rounds/replay.h"
#include "common/base/mem.h"

struct kedgei_decision kedgei_as_aggregate(const struct kedgei_decision *d)
{
    struct kedgei_decision as = *d;
    as.kind = KEDGEI_AGGREGATE;
    return as;
}

int kedgei_replay_control(const struct kedgei_replay *r, const struct kedgei_decision *d, const char *before,
                          const char *aggregate, const char *state, struct kedge_sink after,
                          struct kedge_sink state_after, struct kedge_diag *diag, struct kedgei_findings *f)
{
    struct kedgei_decision as = kedgei_as_aggregate(d);
    struct kedgei_inputs in = {.items = NULL};
    int err = kedgei_inputs_read(r, &as, &in, f);
    struct kedge_compute_input *inputs = kedge_mem_new(in.count + 1, sizeof *inputs);
    err = err ? err : inputs ? KEDGE_OK : KEDGE_E_NOMEM;
    for (size_t i = 0; i < in.count && inputs; i++) {
        inputs[i].update = kedgei_input_at(&in.items[i]);
    }
    err = err ? err
              : kedge_compute_control_step(&d->job->spec, &d->job->layout, before, aggregate, state, inputs,
                                           in.count, after, state_after, diag);
    kedge_mem_free(in.items);
    kedge_mem_free(inputs);
    return err;
}
