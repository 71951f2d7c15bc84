/* Groups made again from pre-training updates that were kept: the clustering of a cold start, numbers that
 * carry on from the old groups, and what each group's model begins from. Pure. */
#ifndef KEDGE_GROUPING_REGROUP_H
#define KEDGE_GROUPING_REGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "grouping/flexcfl.h"

struct kedge_regroup {
    size_t groups;     /* in use */
    size_t kept;       /* updates whose group keeps its number */
    double silhouette; /* as kedge_flexcfl_result has it */
    bool used[KEDGE_GROUPS_MAX];
    /* from[j][k]: weight of old group k's model in group j's, for kedge_blend_tile (strategy/blend.h). A
     * group that goes on has one at its own place, so keeps its model bit for bit; a new one has its members
     * by the groups that they come from. All 0: every member was cold, and the model is the first model plus
     * the mean of their updates. */
    uint64_t from[KEDGE_GROUPS_MAX][KEDGE_GROUPS_MAX];
};

/* gram, maxima, count, params as kedge_flexcfl_group_gram has them. params->round: the same every time, so
 * that the same updates give the same groups. then[i]: old group of update i, below slots, or
 * KEDGE_GROUP_NONE; now[i]: the new one. params->groups ≤ slots ≤ KEDGE_GROUPS_MAX. A number that is not in
 * use has no members; sites whose update was not among these take the nearest of the new directions. Errors
 * as kedge_flexcfl_group_gram. */
KEDGE_NODISCARD int kedge_regroup_gram(const int64_t *gram, const uint32_t *maxima, size_t count,
                                       const struct kedge_flexcfl_params *params, const uint32_t *then,
                                       size_t slots, uint32_t *now, struct kedge_regroup *ret);

#endif
