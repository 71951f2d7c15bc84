/* Closing a round in which groups are made anew. Sites that took part are where the clustering puts them;
 * all others that have a group go to the nearest of the new ones.
 *
 * The new groups take over what was learnt: each begins with the mean of the models that its members come
 * from, and has the number of the group that it continues. The optimiser's state ends, since it was
 * gathered for another model. */
#include "round/regroup.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "round/close/flexcfl.h"

int kedgei_direct_inputs(struct kedge_close *c, uint32_t group)
{
    struct kedgei_members members;
    int err = kedgei_members_init(&members, c->input_count);
    for (size_t i = 0; i < c->input_count && !err; i++) {
        const struct kedge_close_input *in = &c->inputs[i];
        if (!in->left_out && in->group == group) {
            members.lacks = members.lacks || in->is_gone;
            members.tenant[members.count] = in->place;
            members.files[members.count++] = in->file;
        }
    }
    if (!err) {
        err = kedgei_direct(c, group, &members, true, &c->result->directions[group]);
    }
    kedgei_members_deinit(&members);
    return err;
}

/* What the round began with, and its inputs, item by item. */
struct before {
    uint32_t groups;
    struct kedge_hash models[KEDGE_GROUPS_MAX], directions[KEDGE_GROUPS_MAX];
    uint32_t *then, *group, *tenant;
    uint64_t *weight; /* what its site counts in its group's model */
};

static void before_deinit(struct before *b)
{
    kedge_mem_free(b->then);
    kedge_mem_free(b->group);
    kedge_mem_free(b->tenant);
    kedge_mem_free(b->weight);
}

/* Deinit also after an error. */
static int before_init(const struct kedge_close *c, struct before *b)
{
    const size_t n = c->input_count;
    *b = (struct before){.groups = c->result->groups,
                         .then = kedge_mem_new(n + 1, sizeof *b->then),
                         .group = kedge_mem_new(n + 1, sizeof *b->group),
                         .tenant = kedge_mem_new(n + 1, sizeof *b->tenant),
                         .weight = kedge_mem_new(n + 1, sizeof *b->weight)};
    memcpy(b->models, c->result->before, sizeof b->models);
    memcpy(b->directions, c->result->directions, sizeof b->directions);
    if (!b->then || !b->group || !b->tenant || !b->weight) {
        return KEDGE_E_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        b->then[i] = c->inputs[i].former;
        b->tenant[i] = c->inputs[i].place;
    }
    return KEDGE_OK;
}

/* Of the models that its members come from; nobody was in a group: the initial one, with weight 1. `before`
 * is only what the record says the group of this number had. The state of a number that is used for the
 * first time is zero before, and every state is zero afterwards. */
static int model_of_group(struct kedge_close *c, const struct before *b, uint32_t group)
{
    struct kedge_round_result *r = c->result;
    struct kedge_hash models[KEDGE_GROUPS_MAX] = {c->initial};
    uint64_t weight[KEDGE_GROUPS_MAX] = {1};
    uint32_t from[KEDGE_GROUPS_MAX], n = 0;
    KEDGE_TRY(kedge_compute_regroup_weigh(b->tenant, b->then, b->group, c->input_count, b->groups, group,
                                          b->weight));
    n = kedge_compute_regroup_from(b->then, b->group, b->weight, c->input_count, b->groups, group, from,
                                   weight);
    for (uint32_t k = 0; k < n; k++) {
        models[k] = b->models[from[k]];
    }
    int err =
        kedgei_blend(c, KEDGE_DECISION_BLEND, group, models, weight, n > 0 ? n : 1, &r->aggregate[group]);
    r->before[group] = group < b->groups ? b->models[group] : c->initial;
    r->stepped[group] = r->after[group] = r->aggregate[group];
    if (group >= b->groups) {
        memset(&r->state_before[group], 0, sizeof r->state_before[group]);
    }
    memset(&r->state_after[group], 0, sizeof r->state_after[group]);
    return err;
}

/* An update without a direction belongs to no cluster and is left out of the models. Its site, if it had a
 * group, is given group 0 below, since after this close no site keeps a group by its former direction. */
static void take_groups(struct kedge_close *c, const struct before *b)
{
    struct kedge_round_result *r = c->result;
    for (size_t i = 0; i < c->input_count; i++) {
        struct kedge_close_input *in = &c->inputs[i];
        in->group = b->group[i];
        in->left_out = in->group >= r->groups; /* points in no direction */
        if (!in->left_out) {
            r->members[in->group]++;
            r->trained[in->group] = true;
            kedgei_assign(c, in->site, in->group);
        }
    }
}

static int move_others(struct kedge_close *c, const struct before *b)
{
    for (size_t i = 0; i < c->other_count; i++) {
        const struct kedge_close_other *o = &c->others[i];
        uint32_t group = 0;
        KEDGE_TRY(kedgei_nearest(c, o, &b->directions[o->former], &group));
        kedgei_assign(c, o->site, group);
    }
    for (size_t i = 0; i < c->input_count; i++) {
        if (c->inputs[i].left_out && c->inputs[i].former != KEDGE_COORD_NONE) {
            kedgei_assign(c, c->inputs[i].site, 0);
        }
    }
    return KEDGE_OK;
}

/* The order is that of the record: clusters, then of each group model and direction, then all others, who
 * are compared with the new directions and so come last. The state before is copied first (`struct
 * before`), since the result's arrays are overwritten group by group while later groups still read former
 * models. */
static int regroup(struct kedge_close *c, struct before *b)
{
    struct kedge_round_result *r = c->result;
    memset(r->members, 0, sizeof r->members);
    memset(r->trained, 0, sizeof r->trained);
    KEDGE_TRY(kedgei_cluster(c, b->then, b->group, &r->groups));
    take_groups(c, b);
    for (uint32_t g = 0; g < r->groups; g++) {
        KEDGE_TRY(model_of_group(c, b, g));
        KEDGE_TRY(kedgei_direct_inputs(c, g));
    }
    for (size_t i = 0; i < c->input_count; i++) { /* as lists say it */
        c->inputs[i].weight = c->inputs[i].left_out ? 0 : b->weight[i];
    }
    return move_others(c, b);
}

int kedgei_regroup(struct kedge_close *c)
{
    struct before b;
    int err = before_init(c, &b);
    if (!err) {
        err = kedgei_assignments(c, c->input_count + c->other_count);
    }
    if (!err) {
        err = regroup(c, &b);
    }
    before_deinit(&b);
    return err;
}
