/* What closes said of groups as a whole: they drifted, one was cut, some were joined, they were kept; and
 * whether sites are served best by their group's model. */
#include "chain/view/groups_view.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"

static int add(struct kedge_groups_view *v, struct kedge_groups_change change)
{
    KEDGE_TRY_MEM(kedge_mem_grow(&v->changes, &v->change_cap, v->change_count, 16, sizeof *v->changes));
    v->changes[v->change_count++] = change;
    return KEDGE_OK;
}

int kedgei_groups_change(struct kedge_groups_view *v, const struct kedge_st_step *step)
{
    int err = KEDGE_OK;
    if (kedge_job_spec_drifted(step->drift)) {
        err = add(v, (struct kedge_groups_change){
                         .round = step->round, .event = KEDGE_GROUPS_DRIFTED, .drift = step->drift});
    }
    if (!err && strcmp(step->rule, KEDGE_RULE_KEPT) == 0) {
        err = add(v, (struct kedge_groups_change){.round = step->round, .event = KEDGE_GROUPS_KEPT});
    }
    if (!err && (step->personal > 0) != v->is_personal) {
        v->is_personal = step->personal > 0;
        err = add(v, (struct kedge_groups_change){.round = step->round,
                                                  .event = v->is_personal ? KEDGE_GROUPS_OWN
                                                                          : KEDGE_GROUPS_SHARED});
    }
    for (uint32_t g = 0; g < step->group_count && !err; g++) {
        const struct kedge_st_step_group *row = &step->groups[g];
        struct kedge_groups_change change = {.round = step->round};
        if (row->split_of > 0) {
            change.event = KEDGE_GROUPS_CUT;
            change.group = row->split_of - 1;
            change.other = g;
            err = add(v, change);
        } else if (row->merged_into > 0 && v->merged_into[g] == 0) {
            change.event = KEDGE_GROUPS_JOINED;
            change.group = g;
            change.other = row->merged_into - 1;
            err = add(v, change);
        }
    }
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        v->merged_into[g] = g < step->group_count ? step->groups[g].merged_into : 0;
    }
    return err;
}
