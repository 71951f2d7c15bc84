/* Means of the groups' models that no round makes: the auxiliary model, and what edges would have if they
 * met. */
#include "common/base/try.h"
#include "round/meet.h"
#include "sim/learn/engine.h"
#include "strategy/blend.h"

/* A mean of the groups' models. Nothing of it goes into a round: it is only looked at. */
static int blend(const struct kedgei_learn *l, const uint64_t *weight, float *ret)
{
    const float *models[KEDGE_LEARN_GROUPS_MAX];
    for (uint32_t j = 0; j < l->groups; j++) {
        models[j] = kedgei_learn_model(l, j);
    }
    return kedge_blend_tile(models, weight, l->groups, 0, l->d, ret);
}

int kedgei_learn_auxiliary(struct kedgei_learn *l)
{
    uint64_t weight[KEDGE_LEARN_GROUPS_MAX];
    for (uint32_t j = 0; j < l->groups; j++) {
        weight[j] = l->trained[j];
    }
    return blend(l, weight, l->aux);
}

/* What the edges' models would become if they met now, by the weights that a round's meeting has: then they
 * are all the same. If no edge has added anything since the last meeting, they are the same already. */
int kedgei_learn_meet(struct kedgei_learn *l, float *ret)
{
    uint64_t since[KEDGE_LEARN_GROUPS_MAX], weight[KEDGE_LEARN_GROUPS_MAX] = {0}, all = 0;
    for (uint32_t j = 0; j < l->groups; j++) {
        since[j] = l->at.group[j].weight_since_meeting;
        all += since[j];
    }
    weight[0] = 1;
    KEDGE_TRY(all > 0 ? kedge_compute_meeting_weights(&l->job, since, l->groups, weight) : KEDGE_OK);
    return blend(l, weight, ret);
}
