/* Decisions that find groups: clusters, directions and how far they moved, joins and cuts. */
#include <string.h>

#include "chain/audit/rounds/judgement.h"

/* Something about a group of this round. */
static void other(struct kedgei_closing *c, uint32_t group, const char *what)
{
    kedgei_error(c->f, KEDGE_AUDIT_REPLAY_GROUPING, &c->r->a->main, c->round->step->index,
                 "job \"%s\", round %u, group %u: %s", c->job->id.s, c->round->number, group, what);
}

/* How many groups the close has made, as far as it is recorded. */
static uint32_t groups_of(const struct kedgei_closing *c)
{
    uint32_t groups = 0;
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        groups = c->round->aggregates[g] ? g + 1 : groups;
    }
    return c->is_blind ? groups > 0 ? groups : 1 : c->step ? c->step->group_count : groups;
}

/* Groups are compared number by number, since the engine numbers them in a fixed way; sites that were
 * left out must be so in both. Then the recorded group of each site is put in place. */
void kedgei_judge_cluster(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const uint32_t stated = groups_of(c);
    for (uint32_t i = 0; i < io->count && i < c->inputs.count; i++) {
        const struct kedge_input_row *row = &c->inputs.items[i].row;
        const uint32_t given = io->index[i];
        bool used = row->use == KEDGE_USE_GROUPED;
        if (kedgei_is_judged(item)) {
            kedgei_replay_add_number(item, given);
        }
        if (kedgei_is_judged(item) && (used ? given != row->group : given != KEDGE_GROUP_NONE)) {
            kedgei_error(
                c->f, KEDGE_AUDIT_REPLAY_GROUPING, &c->r->a->main, kedgei_judged_at(c, item),
                "job \"%s\": site \"%s\" of \"%s\" is recorded in group %d, its update gives group %d",
                c->job->id.s, row->site.s, c->job->spec.tenants[c->inputs.items[i].place].s,
                used ? (int)row->group : -1, given == KEDGE_GROUP_NONE ? -1 : (int)given);
        }
        io->index[i] = used && row->group < stated ? row->group : KEDGE_GROUP_NONE;
    }
    for (uint32_t i = (uint32_t)c->inputs.count; i < io->count; i++) { /* of a tenant that is not here */
        const uint32_t group = c->close.inputs[i].group;
        io->index[i] = group < stated ? group : KEDGE_GROUP_NONE;
    }
    if (kedgei_is_judged(item) && io->groups != stated) {
        kedgei_error(c->f, KEDGE_AUDIT_REPLAY_GROUPING, &c->r->a->main, kedgei_judged_at(c, item),
                     "job \"%s\": %u groups, the updates give %u", c->job->id.s, stated, io->groups);
    }
    io->groups = stated;
}

/* After a cut the engine makes two directions, one for each part; `parts` counts them down, and the
 * result of the decision has both. */
static void judge_part(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const struct kedge_st_step_group *row = kedgei_judged_row(c, io->group);
    const uint32_t from = row && row->split_of > 0 ? row->split_of - 1 : io->group;
    const struct kedge_hash found = /* updates that cancel each other out: that of the whole */
        kedge_hash_is_zero(&io->vector) ? c->result.whole[from] : io->vector;
    c->parts--;
    if (row && c->judge_parts && kedgei_is_judged(item)) {
        kedgei_judge_compare(c, item, KEDGE_AUDIT_REPLAY_DIRECTION, io->group, &found, &row->direction);
    }
    if (c->parts == 0 && c->judge_parts && kedgei_is_judged(item)) {
        kedgei_replay_add_number(item, true); /* that it was cut */
    }
    if (row) {
        io->vector = row->direction;
    }
}

/* A zero vector means that no site spoke for the group, which then keeps the direction it had. */
void kedgei_judge_direction(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const struct kedge_st_step_group *row = kedgei_judged_row(c, io->group);
    if (c->parts > 0) {
        judge_part(c, item, io);
        return;
    }
    const struct kedge_hash *recorded =
        c->round->pretrain ? row ? &row->direction : NULL : kedgei_estimate_of(c->job, c->round, io->group);
    const struct kedge_hash found = /* none: the group keeps its own */
        kedge_hash_is_zero(&io->vector) ? c->result.directions[io->group] : io->vector;
    if (recorded && kedgei_is_judged(item)) {
        kedgei_judge_compare(c, item, KEDGE_AUDIT_REPLAY_DIRECTION, io->group, &found, recorded);
    }
    io->vector = recorded ? *recorded : (struct kedge_hash){{0}};
    io->vector.b[0] |= !c->step; /* nothing is recorded: no direction would end the close */
}

void kedgei_judge_drift(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const double recorded = c->step ? c->step->drift : 0;
    if (kedgei_is_judged(item)) {
        kedgei_replay_add_real(item, io->drift);
        if (io->drift < recorded || io->drift > recorded) {
            kedgei_error(c->f, KEDGE_AUDIT_REPLAY_DIRECTION, &c->r->a->main, kedgei_judged_at(c, item),
                         "job \"%s\", round %u: a drift of %.17g is recorded, the directions give %.17g",
                         c->job->id.s, c->round->number, recorded, io->drift);
        }
    }
    io->drift = recorded;
}

/* ---- groups that are joined or cut ---- */

/* What the group became part of in this close, itself where it stayed. Without files nothing tells
 * whether two groups are alike, but the rule does tell which joins are possible at all: into a group that
 * stays, and in a job with trials only with the group that was tried. Anything else is not taken over, so
 * the step differs and verify finds it. */
static uint32_t target_of(const struct kedgei_closing *c, bool by_trials, uint32_t group)
{
    const struct kedge_st_step_group *row = kedgei_judged_row(c, group);
    bool merges = row && row->merged_into > 0 && row->merged_into <= group && !c->result.merged_into[group];
    if (!merges) {
        return group;
    }
    const uint32_t into = row->merged_into - 1;
    const bool is_part = kedgei_judged_row(c, into)->merged_into > 0;
    const bool was_tried = c->result.tried_before[group] == into + 1;
    const bool may = !is_part && (by_trials ? was_tried : c->close.spec->options.merge < 1);
    return c->is_blind && !may ? group : into;
}

void kedgei_judge_merges(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const bool by_trials = io->kind == KEDGE_DECISION_VERDICTS;
    bool any = false;
    for (uint32_t g = 0; g < io->count; g++) {
        const struct kedge_st_step_group *row = kedgei_judged_row(c, g);
        const uint32_t into = io->index[g];
        any = any || into != g;
        if (kedgei_is_judged(item)) {
            kedgei_replay_add_number(item, into);
        }
        if (row && kedgei_is_still_judged(item, io) && kedgei_estimate_of(c->job, c->round, g)
            && (into != g ? into + 1 : 0) != row->merged_into) {
            other(c, g,
                  by_trials ? "it is recorded as part of other groups than its sites' evaluations give"
                            : "it is recorded as part of other groups than the directions give");
        }
        io->index[g] = target_of(c, by_trials, g);
    }
    for (uint32_t g = io->count; kedgei_is_judged(item) && c->step && g < c->step->group_count; g++) {
        kedgei_replay_add_number(item, g); /* a part that is cut off afterwards is itself */
    }
    c->asks_cuts = !any && c->last && c->close.spec->options.silhouette < 1;
}

/* ---- trials ---- */

/* The group with which this one is tried, itself where with none; without files only what can be. */
static uint32_t tried_with(const struct kedgei_closing *c, uint32_t group)
{
    const struct kedge_st_step_group *row = kedgei_judged_row(c, group);
    if (!row || row->tried_with == 0 || row->tried_with > c->result.groups) {
        return group;
    }
    const uint32_t with = row->tried_with - 1;
    const struct kedge_st_step_group *its = kedgei_judged_row(c, with);
    const bool is_pair = with != group && its && its->tried_with == group + 1 && !c->result.merged_into[group]
                         && !c->result.merged_into[with];
    return is_pair ? with : group;
}

void kedgei_judge_pairs(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    for (uint32_t g = 0; g < io->count; g++) {
        const struct kedge_st_step_group *row = kedgei_judged_row(c, g);
        const uint32_t with = io->index[g];
        if (kedgei_is_judged(item)) {
            kedgei_replay_add_number(item, with);
        }
        if (row && kedgei_is_still_judged(item, io) && (with != g ? with + 1 : 0) != row->tried_with) {
            other(c, g, "it is recorded as tried with another group than the directions give");
        }
        io->index[g] = tried_with(c, g);
    }
}

void kedgei_judge_trial(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const struct kedge_st_step_group *row = kedgei_judged_row(c, io->group);
    if (row && kedgei_is_judged(item)) {
        kedgei_judge_compare(c, item, KEDGE_AUDIT_REPLAY_GROUPING, io->group, &io->vector, &row->trial);
    }
    io->vector = row ? row->trial : io->vector;
}

/* Without evaluations the record's word counts; a close that asks nobody goes on with what was. */
void kedgei_judge_personal_models(struct kedgei_closing *c, struct kedgei_decision *item,
                                  struct kedge_decision *io)
{
    const bool recorded = c->step && c->step->personal > 0;
    if (kedgei_is_judged(item)) {
        kedgei_replay_add_number(item, io->is_personal);
    }
    if (kedgei_is_still_judged(item, io) && io->is_personal != recorded) {
        kedgei_error(c->f, KEDGE_AUDIT_REPLAY_GROUPING, &c->r->a->main, c->round->step->index,
                     "job \"%s\", round %u: it is recorded that %s serve sites best, their evaluations "
                     "give the other",
                     c->job->id.s, c->round->number, recorded ? "their own models" : "groups' models");
    }
    io->is_personal = recorded;
}

/* ---- cuts ---- */

/* Groups before this one that there was no number for, or no update of. The digest has a number for each
 * group with an estimate, in order. Groups for which the engine does not ask (no part number free, no
 * update) count as not cut. */
static void skip_cuts(struct kedgei_closing *c, struct kedgei_decision *item, uint32_t group)
{
    for (; c->cuts < group; c->cuts++) {
        if (kedgei_estimate_of(c->job, c->round, c->cuts)) {
            kedgei_replay_add_number(item, false);
        }
    }
    c->cuts = group + 1;
}

void kedgei_judge_cut(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const uint32_t to = kedgei_part_of(c->round, io->group);
    c->judge_parts = io->is_cut && to > 0;
    if (kedgei_is_judged(item)) {
        skip_cuts(c, item, io->group);
        if (io->is_cut != (to > 0)) {
            other(c, io->group,
                  io->is_cut ? "its sites' updates cut it in two, which is not recorded"
                             : "it is recorded as cut in two, its sites' updates do not give that");
        }
        if (!c->judge_parts) {
            kedgei_replay_add_number(item, io->is_cut);
        }
    }
    io->is_cut = to > 0;
    c->parts = io->is_cut ? 2 : 0;
}

/* Which of the close's inputs the round's n-th one of the group is. Counts in the engine's order, over
 * the inputs that it was given for this group. */
static const struct kedgei_input *input_of(const struct kedgei_closing *c, uint32_t group, uint32_t n)
{
    for (size_t i = 0; i < c->inputs.count; i++) {
        if (!c->close.inputs[i].left_out && c->close.inputs[i].group == group && n-- == 0) {
            return &c->inputs.items[i];
        }
    }
    return NULL;
}

static void judge_split(struct kedgei_closing *c, struct kedgei_decision *item, uint32_t group,
                        const struct kedge_decision *io)
{
    const uint32_t to = kedgei_part_of(c->round, group);
    bool is_cut = io && io->is_cut;
    if (is_cut != (to > 0)) {
        other(c, group,
              is_cut ? "its updates cut it in two, which is not recorded"
                     : "it is recorded as cut in two, its updates do not give that");
    }
    kedgei_replay_add_number(item, is_cut);
    for (uint32_t i = 0; is_cut && i < io->count; i++) {
        const struct kedgei_input *in = input_of(c, group, i);
        const uint32_t expected = io->index[i] == 1 ? to : 0;
        kedgei_replay_add_number(item, io->index[i]);
        if (in && to > 0 && in->row.to != expected) {
            kedgei_error(
                c->f, KEDGE_AUDIT_REPLAY_GROUPING, &c->r->a->main, c->round->step->index,
                "job \"%s\", round %u: site \"%s\" of \"%s\" is recorded in group %u behind the cut of "
                "group %u, the updates give group %u",
                c->job->id.s, c->round->number, in->row.site.s, c->job->spec.tenants[in->place].s,
                in->row.to > 0 ? in->row.to : group, group, expected > 0 ? expected : group);
        }
    }
}

void kedgei_judge_split(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const uint32_t to = kedgei_part_of(c->round, io->group);
    if (kedgei_is_judged(item)) {
        judge_split(c, item, io->group, io);
    }
    io->is_cut = to > 0;
    for (uint32_t i = 0; i < io->count; i++) {
        const struct kedgei_input *in = input_of(c, io->group, i);
        io->index[i] = to > 0 && in && in->row.to == to;
    }
}

/* ---- after the close ---- */

void kedgei_judge_uncut(struct kedgei_closing *c, struct kedgei_decision *item)
{
    judge_split(c, item, item->group, NULL);
}

/* Where a site goes is for its statement to say right. It stands here only where its update is gone: then
 * what follows, such as whose updates make a part's trial, follows from the group that it was given. */
void kedgei_judge_nearest(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    (void)item;
    if (!io->err || c->is_blind || io->site < c->inputs.count
        || io->site - c->inputs.count >= c->members.count) {
        return;
    }
    const struct kedgei_input *in = &c->members.items[io->site - c->inputs.count];
    const struct kedgei_log *log = &c->r->a->tenants[c->job->tenants[in->place]];
    const struct kedgei_fact *then = kedgei_group_behind(log, &c->job->id, &in->row.site, in->row.leaf);
    const struct kedge_st_group_assigned *moved = then ? then->body : NULL;
    const bool is_its = moved && moved->round == c->round->number && moved->how == KEDGE_GROUP_SPLIT;
    io->group = is_its && moved->group < c->result.groups ? moved->group : io->group;
}

/* Sites that a close moves have a statement of it. Where they go is that statement's to say right. The
 * last round of a record that still grows is passed over: its sites' statements may not be appended yet. */
static void check_moves(struct kedgei_closing *c)
{
    bool next = c->round + 1 < c->job->rounds + c->job->round_count;
    for (uint32_t k = 0; next && k < c->result.assigned_count; k++) {
        const struct kedgei_input *in = &c->members.items[c->result.assigned_sites[k] - c->inputs.count];
        const struct kedgei_log *log = &c->r->a->tenants[c->job->tenants[in->place]];
        const struct kedgei_fact *then = kedgei_group_behind(log, &c->job->id, &in->row.site, in->row.leaf);
        const struct kedge_st_group_assigned *moved = then ? then->body : NULL;
        bool has = moved && moved->round == c->round->number
                   && (moved->how == KEDGE_GROUP_SPLIT || moved->how == KEDGE_GROUP_MERGE);
        if (!has) {
            other(c, in->row.group, "a site of it was not given the group to which the close moves it");
        }
    }
}

void kedgei_judge_reshaped(struct kedgei_closing *c, struct kedgei_decision *item)
{
    if (c->asks_cuts) {
        skip_cuts(c, item, KEDGE_GROUPS_MAX);
    }
    check_moves(c);
}
