/* A hierarchical job: what each edge has added up since the last meeting, and the meeting.
 *
 * An edge counts at a meeting what its sites have contributed since the last one, and not only in this
 * round: an edge whose sites happened to miss the last round would else lose all its work. Only updates
 * that took part count. The sums are a part of the state between rounds, and a restart finds them in the
 * lists (round/fold.c). */
#include "common/base/try.h"
#include "round/close/grouping.h"
#include "round/meet.h"

/* All edges go on from one model, also those that have trained nothing since the last meeting; these weigh
 * nothing in it. */
static int meet(struct kedge_close *c)
{
    struct kedge_round_result *r = c->result;
    uint64_t weight[KEDGE_GROUPS_MAX];
    struct kedge_hash met;
    KEDGE_TRY(kedge_compute_meeting_weights(c->spec, r->since, r->groups, weight));
    KEDGE_TRY(kedgei_blend(c, KEDGE_DECISION_MEET, 0, r->stepped, weight, r->groups, &met));
    for (uint32_t g = 0; g < r->groups; g++) {
        r->after[g] = met;
        r->since[g] = 0;
    }
    return KEDGE_OK;
}

static int close_edges(struct kedge_close *c)
{
    struct kedge_round_result *r = c->result;
    for (size_t i = 0; i < c->input_count; i++) {
        const struct kedge_close_input *in = &c->inputs[i];
        if (!in->left_out) {
            r->since[in->group] += kedge_job_spec_meeting_share(c->spec, in->weight, in->in.weight);
        }
    }
    r->met = kedge_job_spec_meets(c->spec, r->round);
    return r->met ? meet(c) : KEDGE_OK;
}

const struct kedgei_grouping kedgei_edges = {.close = close_edges};
