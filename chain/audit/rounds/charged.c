/* Jobs that draw their sites by what these say of their batteries: what a candidate weighed stands in its
 * row, and the rest follows from it. */
#include "chain/audit/record.h"
#include "chain/audit/rounds/replay.h"
#include "coordinator/core/coord.h"

bool kedgei_draw_fits(const struct kedgei_job *job, const struct kedgei_round *round,
                      const struct kedge_input_row *row)
{
    bool weighs = job->spec.by_charge && !round->pretrain;
    return weighs ? kedge_coord_is_charge_weight(row->weight) : row->weight == 0;
}

void kedgei_replay_charged(const struct kedge_job_spec *spec, uint32_t round, const struct kedgei_inputs *in,
                           uint32_t *scratch, bool *ret_selected)
{
    /* The third part of the scratch, which only rounds that make groups use, holds a byte for each. */
    uint8_t *weights = (uint8_t *)(scratch + 2 * in->count);
    for (size_t i = 0; i < in->count; i++) {
        weights[i] = (uint8_t)(in->items[i].row.weight & UINT8_MAX); /* verify says where one is none */
    }
    kedge_coord_select_charged(spec->seed, round, weights, (uint32_t)in->count, spec->sites_per_round,
                               scratch, ret_selected);
}
