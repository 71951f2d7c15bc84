/* FlexCFL (Duan et al., IEEE TPDS 33(11), 2022): groups are made from the directions of short pre-trainings,
 * and looked after while the job trains. */
#include "round/close/flexcfl.h"

#include "common/base/mem.h"
#include "common/base/try.h"
#include "strategy/grouping.h"

/* Groups of all inputs; or each input is a group, for a comparison. Where there are more inputs than groups
 * can be, the clustering is asked all the same. */
static int find_groups(struct kedge_close *c, uint32_t *group)
{
    struct kedge_round_result *r = c->result;
    if (!kedge_grouping_row(c->spec->strategy->grouping)->each_makes_one
        || c->input_count > KEDGE_GROUPS_MAX) {
        return kedgei_cluster(c, NULL, group, &r->groups);
    }
    r->groups = (uint32_t)c->input_count;
    for (uint32_t i = 0; i < r->groups; i++) {
        group[i] = i;
    }
    return KEDGE_OK;
}

/* The cold start: nobody has a group yet, so only those that sent an update are given one. The others come
 * later as newcomers. */
static int take_groups(struct kedge_close *c, uint32_t *group)
{
    KEDGE_TRY(kedgei_assignments(c, c->input_count));
    KEDGE_TRY(find_groups(c, group));
    for (size_t i = 0; i < c->input_count; i++) {
        c->inputs[i].group = group[i];
        c->inputs[i].left_out = group[i] == KEDGE_GROUP_NONE;
        if (!c->inputs[i].left_out) {
            kedgei_assign(c, c->inputs[i].site, group[i]);
        }
    }
    return KEDGE_OK;
}

static int make_first(struct kedge_close *c)
{
    struct kedge_round_result *r = c->result;
    uint32_t *group = kedge_mem_new(c->input_count + 1, sizeof *group);
    int err = group ? take_groups(c, group) : KEDGE_E_NOMEM;
    kedge_mem_free(group); /* the inputs have it now */
    if (err) {
        return err;
    }
    for (uint32_t g = 0; g < r->groups; g++) {
        r->before[g] = c->initial;
        KEDGE_TRY(kedgei_weigh_group(c, g, true));
        KEDGE_TRY(kedgei_aggregate_group(c, g, true));
        KEDGE_TRY(kedgei_direct_inputs(c, g));
    }
    return KEDGE_OK;
}

int kedgei_make_flexcfl(struct kedge_close *c)
{
    return c->result->round == 0 ? make_first(c) : kedgei_regroup(c);
}

/* Groups that this close has joined have their models already, and keep for this step the direction that
 * was estimated of them, by which the joining was decided. From the next step on they have that of the
 * group that they are part of. */
void kedgei_follow_merged(struct kedge_round_result *r)
{
    for (uint32_t g = 0; g < r->groups; g++) {
        if (r->merged_into[g] && !r->joined[g]) {
            uint32_t with = r->merged_into[g] - 1;
            r->after[g] = r->after[with];
            r->directions[g] = r->directions[with];
            r->made[g] = r->made[with];
        }
    }
}

static int close_flexcfl(struct kedge_close *c)
{
    bool due = kedge_job_spec_refreshes(c->spec, c->result->round) && c->other_count > 0;
    int err = due ? kedgei_refresh(c) : KEDGE_OK;
    if (!err) {
        kedgei_follow_merged(c->result);
    }
    return err;
}

const struct kedgei_grouping kedgei_flexcfl = {.make = kedgei_make_flexcfl, .close = close_flexcfl};
