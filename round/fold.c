/* A job's state from its record, entry by entry. The order of entries is the caller's to keep; here each
 * one is applied to what is known. Nothing is trusted to be in range: numbers of groups and sites index
 * arrays, so each is looked at before it is used, and a record that has others is corrupt. That its
 * decisions are right is the auditor's to say. */
#include "round/fold.h"

#include <string.h>

void kedge_round_fold_begin(struct kedge_round_fold *ret, const struct kedge_job_spec *spec,
                            struct kedge_round_site *sites, uint32_t site_count)
{
    *ret = (struct kedge_round_fold){.spec = spec, .sites = sites, .site_count = site_count};
    ret->state.round = ret->round = KEDGE_ROUND_NONE;
}

/* The group-assigned of a close name the round that has just ended, and hold from the next one on. The
 * others are made while their round is open, and hold from then on. */
bool kedge_round_is_of_close(const struct kedge_st_group_assigned *assigned)
{
    return assigned->how == KEDGE_GROUP_COLD_START || assigned->how == KEDGE_GROUP_RECLUSTER
           || assigned->how == KEDGE_GROUP_SPLIT || assigned->how == KEDGE_GROUP_MERGE;
}

/* What a round begins with it has from the one before, with five exceptions: sites whose group follows from
 * what they trained last may not have trained for long; edges have added up since they met; a task may
 * begin with a model of some rounds ago; and a budget and a plan look at what the last rounds have cost. */
uint32_t kedge_round_fold_first(const struct kedge_job_spec *spec, uint32_t last)
{
    if (kedge_job_spec_has_model_per_group_at_start(spec)) {
        return 0;
    }
    uint32_t first = last > 0 ? last - 1 : 0;
    while (kedge_job_spec_grouped_by(spec) == KEDGE_GROUPED_BY_PLACE && first > 0
           && !kedge_job_spec_meets(spec, first)) {
        first--;
    }
    uint32_t stale = kedge_job_spec_buffer(spec) > 0 ? spec->staleness_max : 0;
    uint32_t costs = kedge_job_spec_budget(spec) > 0 ? KEDGE_SCHEDULE_COSTS : 0;
    costs = spec->plan.is_on ? KEDGE_ROUND_COSTS_KEPT : costs;
    uint32_t before = stale > costs ? stale : costs;
    uint32_t other = last > before ? last - before : 0;
    return before > 0 && other < first ? other : first;
}

static bool is_group(const struct kedge_round_fold *io, uint32_t group)
{
    return group < KEDGE_GROUPS_MAX && group < kedge_job_spec_groups_most(io->spec);
}

/* ---- statements ---- */

static void fold_job_opened(struct kedge_round_fold *io, const struct kedge_st_job_opened *o)
{
    io->state.groups = kedge_job_spec_models(io->spec);
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        io->state.group[g] = (struct kedge_round_group){.model = o->initial_model};
    }
    for (uint32_t i = 0; i < o->first_model_count; i++) {
        if (o->first_models[i].group < KEDGE_GROUPS_MAX) {
            io->state.group[o->first_models[i].group].model = o->first_models[i].model;
        }
    }
}

/* Its lists say who is at work; another draw of the same round takes the place of the one before. A site that
 * was to move by the last close has been told by now: the others of a group that was cut have stayed. */
static void fold_round_opened(struct kedge_round_fold *io, const struct kedge_st_round_opened *o)
{
    io->round = o->round;
    io->draw = o->draw;
    io->kind = o->round_kind == KEDGE_TRAIN_PRETRAIN ? KEDGE_TASK_PRETRAIN : KEDGE_TASK_TRAIN;
    io->is_open = true;
    for (uint32_t i = 0; i < io->site_count; i++) {
        io->sites[i].task = KEDGE_ROUND_NONE;
        io->sites[i].samples = 0;
        io->sites[i].percent = 0;
        io->sites[i].is_candidate = io->sites[i].is_away = io->sites[i].is_undecided = false;
    }
}

/* With IFCA there is no group-assigned: the update says its group itself. With FeSEM the site's next group
 * is found from what it trained last. */
void kedge_round_site_trained(const struct kedge_job_spec *spec, uint32_t group,
                              const struct kedge_hash *update, const struct kedge_hash *base,
                              struct kedge_round_site *io)
{
    if (kedge_job_spec_grouped_by(spec) == KEDGE_GROUPED_BY_UPDATE) {
        io->group = group;
        io->by = *update;
    } else if (kedge_job_spec_grouped_by(spec) == KEDGE_GROUPED_BY_TASK) {
        io->last_update = *update;
        io->last_base = *base;
    }
}

static int fold_update(struct kedge_round_fold *io, const struct kedge_statement *st,
                       struct kedge_round_site *s)
{
    const struct kedge_st_update *u = &st->u.update;
    if (!is_group(io, u->group)) {
        return KEDGE_E_CORRUPT;
    }
    if (u->update_kind == KEDGE_TRAIN_TRAIN) {
        s->samples = u->samples;
        kedge_round_cost_of(io->spec, u, &s->cost);
        kedge_round_site_trained(io->spec, u->group, &st->subject, &u->base, s);
    }
    return KEDGE_OK;
}

static int fold_assigned(struct kedge_round_fold *io, const struct kedge_st_group_assigned *a,
                         struct kedge_round_site *s)
{
    if (!is_group(io, a->group)) {
        return KEDGE_E_CORRUPT;
    }
    s->group = a->group;
    s->since = a->round;
    s->by = a->update;
    s->is_unstated = s->is_undecided = false;
    return KEDGE_OK;
}

/* ---- the close ---- */

/* The same as kedge_close_end, told from the step instead of the close's result: what one sets the other
 * must set, too, or a coordinator that restarts goes on from another state. Groups that the step no longer
 * has are zeroed, but keep the former direction for one round. */
static void fold_groups(struct kedge_round_fold *io, const struct kedge_st_step *step)
{
    struct kedge_round_state *state = &io->state;
    bool has_met = kedge_job_spec_meets(io->spec, step->round);
    for (uint32_t g = 0; g < step->group_count; g++) {
        const struct kedge_st_step_group *row = &step->groups[g];
        struct kedge_round_group *to = &state->group[g];
        *to = (struct kedge_round_group){.model = row->after,
                                         .direction = row->direction,
                                         .direction_made = row->made,
                                         .direction_before = to->direction,
                                         .server_state = row->state_after,
                                         .weight_since_meeting = has_met ? 0 : to->weight_since_meeting,
                                         .split_of = row->split_of,
                                         .merged_into = row->merged_into,
                                         .trial = row->trial,
                                         .tried_with = row->tried_with};
    }
    for (uint32_t g = step->group_count; g < KEDGE_GROUPS_MAX; g++) {
        state->group[g] = (struct kedge_round_group){.direction_before = state->group[g].direction};
    }
    for (uint32_t g = 0; g < step->group_count; g++) { /* found where the group is that it is part of */
        uint32_t into = state->group[g].merged_into;
        state->group[g].direction = into > 0 ? state->group[into - 1].direction : state->group[g].direction;
    }
    state->round = step->round;
    state->kind = io->kind;
    state->groups = step->group_count;
    state->regroup = kedge_job_spec_drifted(step->drift);
    state->is_personal = step->personal > 0;
    kedge_schedule_charge(&state->book, step->charged);
    state->book.spent = step->spent;
}

/* Is the group cut in two by directions? Where a cut goes by updates, the lists say who goes, and the new
 * group's direction is zero. */
static bool is_cut(const struct kedge_round_state *state, uint32_t group)
{
    for (uint32_t to = 0; to < state->groups; to++) {
        if (state->group[to].split_of == group + 1 && !kedge_hash_is_zero(&state->group[to].direction)) {
            return true;
        }
    }
    return false;
}

/* The groups of sites that no list of the close has. Joined: the step says into which group. Cut by
 * directions, or made anew: only vectors tell, so the site is marked undecided, and its old group stands
 * until somebody decides (kedge_close_follow) or its group-assigned is folded. */
static void follow(const struct kedge_round_fold *io, bool is_new, struct kedge_round_site *s)
{
    if (s->group == KEDGE_ROUND_NONE || s->is_unstated) {
        return;
    }
    uint32_t into = is_new ? 0 : io->state.group[s->group].merged_into;
    if (into > 0) {
        s->group = into - 1;
        s->is_unstated = true;
    }
    s->is_undecided = is_new || is_cut(&io->state, s->group);
}

/* All rows are checked before any is applied, since rows refer to each other. A task ends with the round,
 * but in asynchronous jobs, where a site in no list is still at work. */
static int fold_step(struct kedge_round_fold *io, const struct kedge_st_step *step)
{
    bool is_kept = strcmp(step->rule, KEDGE_RULE_KEPT) == 0;
    bool is_new = io->kind == KEDGE_TASK_PRETRAIN && !is_kept;
    bool goes_on = kedge_job_spec_buffer(io->spec) > 0; /* a site that is in no list */
    if (step->group_count == 0 || !is_group(io, step->group_count - 1)) {
        return KEDGE_E_CORRUPT;
    }
    for (uint32_t g = 0; g < step->group_count; g++) {
        const struct kedge_st_step_group *row = &step->groups[g];
        if (row->group != g || row->split_of > step->group_count || row->merged_into > step->group_count
            || row->tried_with > step->group_count) {
            return KEDGE_E_CORRUPT;
        }
    }
    fold_groups(io, step);
    for (uint32_t i = 0; i < io->site_count; i++) {
        struct kedge_round_site *s = &io->sites[i];
        s->task = goes_on ? s->task : KEDGE_ROUND_NONE;
        s->is_candidate = false;
        s->samples = 0;
        s->percent = 0;
        follow(io, is_new, s);
    }
    io->is_open = false;
    return KEDGE_OK;
}

int kedge_round_fold(struct kedge_round_fold *io, const struct kedge_statement *st, uint32_t site)
{
    struct kedge_round_site *s = site < io->site_count ? &io->sites[site] : NULL;
    if (st->kind == KEDGE_ST_JOB_OPENED) {
        fold_job_opened(io, &st->u.job_opened);
    } else if (st->kind == KEDGE_ST_ROUND_OPENED) {
        fold_round_opened(io, &st->u.round_opened);
    } else if (st->kind == KEDGE_ST_UPDATE && s) {
        return fold_update(io, st, s);
    } else if (st->kind == KEDGE_ST_GROUP_ASSIGNED && s) {
        return fold_assigned(io, &st->u.group_assigned, s);
    } else if (st->kind == KEDGE_ST_STEP) {
        return fold_step(io, &st->u.step);
    }
    return KEDGE_OK; /* an aggregate says it in its lists */
}

/* ---- lists ---- */

/* A row without a round is of a task that begins with this opening; of a site that has been at work for
 * longer it has the round of its task. */
static void fold_candidate(const struct kedge_round_fold *io, const struct kedge_input_row *row,
                           struct kedge_round_site *s)
{
    s->is_candidate = row->use == KEDGE_USE_CANDIDATE || row->use == KEDGE_USE_SELECTED;
    s->is_away = row->use == KEDGE_USE_AWAY;
    s->percent = row->percent;
    s->task = row->use == KEDGE_USE_CANDIDATE ? KEDGE_ROUND_NONE : row->round > 0 ? row->round : io->round;
}

/* A close that makes groups: an update of zeros gives group 0 to a site that had one. */
static void fold_placed(const struct kedge_input_row *row, bool is_kept, struct kedge_round_site *s)
{
    bool is_taken = row->use == KEDGE_USE_GROUPED;
    bool is_still =
        row->use == KEDGE_USE_REFUSED && !kedge_hash_is_zero(&row->leaf_hash) && s->group != KEDGE_ROUND_NONE;
    if (is_kept || (!is_taken && !is_still)) {
        return;
    }
    s->group = is_taken ? row->group : 0;
    s->by = row->update;
    s->is_unstated = true;
}

/* Refused updates with a leaf in the ledger were made by the site all the same: what it trained last, and
 * its choice, follow from them. Those without a leaf were turned away at the door and leave no trace. */
static int fold_input(struct kedge_round_fold *io, const struct kedge_input_row *row,
                      struct kedge_round_site *s)
{
    const bool counts = row->use == KEDGE_USE_AGGREGATED;
    struct kedge_round_group *group = &io->state.group[row->group];
    if (row->use == KEDGE_USE_EVALUATED) {
        return KEDGE_OK;
    }
    if (!is_group(io, row->to)) {
        return KEDGE_E_CORRUPT;
    }
    s->task = KEDGE_ROUND_NONE;
    if (counts || (row->use == KEDGE_USE_REFUSED && !kedge_hash_is_zero(&row->leaf_hash))) {
        kedge_round_site_trained(io->spec, row->group, &row->update, &group->model, s);
    }
    if (counts && kedge_job_spec_grouped_by(io->spec) == KEDGE_GROUPED_BY_PLACE) {
        group->weight_since_meeting += kedge_job_spec_meeting_share(io->spec, row->weight, s->samples);
    }
    if (row->to > 0) { /* the close cuts its group */
        s->group = row->to;
        s->by = row->update;
        s->is_unstated = true;
    }
    return KEDGE_OK;
}

/* The same row means another thing in each kind of list: who is at work in an opening, who has which group
 * after a pre-training, whose update counted after training. Rows of sites that nobody knows are passed
 * over. */
int kedge_round_fold_list(struct kedge_round_fold *io, const struct kedge_statement *st,
                          const struct kedge_input_list *list, const uint32_t *sites)
{
    const bool is_opening = st->kind == KEDGE_ST_ROUND_OPENED;
    const bool is_kept = !is_opening && strcmp(st->u.aggregate.rule, KEDGE_RULE_KEPT) == 0;
    int err = KEDGE_OK;
    for (uint32_t i = 0; i < list->count && !err; i++) {
        const struct kedge_input_row *row = &list->rows[i];
        struct kedge_round_site *s = sites[i] < io->site_count ? &io->sites[sites[i]] : NULL;
        if (!is_group(io, row->group)) {
            err = KEDGE_E_CORRUPT;
        } else if (s && is_opening) {
            fold_candidate(io, row, s);
        } else if (s && io->kind == KEDGE_TASK_PRETRAIN) {
            fold_placed(row, is_kept, s);
        } else if (s) {
            err = fold_input(io, row, s);
        }
    }
    return err;
}
