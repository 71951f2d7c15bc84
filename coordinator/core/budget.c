/* What a round's updates are charged. The core adds up and halts; what a budget is, and whether another round
 * fits into it, the host says: it keeps the book from the record (round/state.h), so a restart and an auditor
 * come to the same. A pre-training that gave a newcomer its group is charged as any update. */
#include "coordinator/schedule/budget.h"
#include "coordinator/core/core.h"

static uint64_t cost_of(const struct kedge_coord_input *in)
{
    return in->progress == KEDGE_INPUT_ACCEPTED ? in->cost : 0;
}

uint64_t kedgei_round_charge(const struct job *j)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < j->touched_count; i++) {
        const struct row *row = &j->rows[j->touched[i]];
        sum = kedge_schedule_sum(sum,
                                 kedge_schedule_sum(cost_of(&row->pub.pretrain), cost_of(&row->pub.train)));
    }
    return sum;
}
