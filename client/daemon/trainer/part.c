/* Two who are not believed: a coordinator that plans otherwise than the spec that the owners agreed on, and a
 * trainer that knows nothing of parts, whose work must not be signed for one. */
#include "client/daemon/trainer/part.h"

#include <inttypes.h>

#include "common/base/percent.h"

int kedge_client_part_check(const struct kedge_job_spec *spec, const struct kedge_site_task *task,
                            struct kedge_diag *reterr)
{
    const bool plans = task->kind == KEDGE_SITE_TRAIN && kedge_job_spec_plans(spec, task->round);
    const uint32_t least = plans ? spec->plan.least : 0, most = plans ? KEDGE_PERCENT_ALL : 0;
    return task->percent >= least && task->percent <= most
               ? KEDGE_OK
               : kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                "the coordinator's task is for %" PRIu32
                                " percent of the data, expected %" PRIu32 " to %" PRIu32
                                " by the job's spec (0: not planned)",
                                task->percent, least, most);
}

int kedge_client_part_trained(const struct kedge_site_task *task, const struct kedge_metrics *metrics,
                              struct kedge_diag *reterr)
{
    if (task->percent == 0
        || (metrics->data_samples > 0
            && metrics->samples == kedge_percent_of(metrics->data_samples, task->percent))) {
        return KEDGE_OK;
    }
    return kedge_diag_set(reterr, KEDGE_E_TRAINER,
                          "trainer: its answer says %" PRIu64 " samples and %" PRIu64
                          " data_samples, expected %" PRIu32 " percent of them, rounded up",
                          metrics->samples, metrics->data_samples, task->percent);
}
