/* Which kind a round is of: for the core, for its hosts, and for auditors who derive it again. */
#include "coordinator/core/coord.h"

uint32_t kedge_coord_first_round(const struct kedge_coord_job_params *params)
{
    return params->groups > 1 && params->entry == KEDGE_ENTRY_PRETRAIN ? 0 : 1;
}

uint32_t kedge_coord_first_models(const struct kedge_coord_job_params *params)
{
    return kedge_entry_is_settled(params->entry) ? params->groups : 1;
}

/* Never two rounds of pre-training in a row, and none as the last: groups that are made must be
 * trained before they can be judged or handed out. */
enum kedge_task_kind kedge_coord_round_kind(const struct kedge_coord_job_params *params, uint32_t round,
                                            enum kedge_task_kind prior, bool regroup)
{
    if (round == 0) {
        return KEDGE_TASK_PRETRAIN;
    }
    bool for_good = params->groups == 1 || kedge_entry_is_settled(params->entry);
    if (for_good || prior != KEDGE_TASK_TRAIN || round >= params->rounds) {
        return KEDGE_TASK_TRAIN;
    }
    bool due = params->regroup_every > 0 && round % params->regroup_every == 0;
    return due || regroup ? KEDGE_TASK_PRETRAIN : KEDGE_TASK_TRAIN;
}
