/* A close and what is known between rounds: what it begins with, what is known after it, and the groups that
 * it gives to sites which no list of it has: they follow from the updates by which the sites had their
 * groups, and from the directions. */
#include "round/close/close.h"

void kedge_close_begin(const struct kedge_round_state *state, struct kedge_round_result *ret)
{
    const bool makes_groups = ret->kind == KEDGE_TASK_PRETRAIN && !ret->kept;
    ret->groups = state->groups;
    ret->is_personal = state->is_personal;
    ret->spent = kedge_schedule_sum(state->book.spent, ret->charged);
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        const struct kedge_round_group *group = &state->group[g];
        ret->before[g] = group->model;
        ret->directions[g] = group->direction;
        ret->state_before[g] = group->server_state;
        ret->since[g] = group->weight_since_meeting;
        if (!makes_groups && group->split_of > 0) { /* a close cuts a group once at most */
            const uint32_t from = group->split_of - 1;
            ret->whole_before[from] = ret->whole_before[g] = state->group[from].direction_before;
        }
        if (!makes_groups) {
            ret->made[g] = group->direction_made;
            ret->merged_into[g] = group->merged_into;
            ret->trial_before[g] = group->trial;
            ret->tried_before[g] = group->tried_with;
        }
    }
}

/* Groups that are part of another one are found by its direction from now on, also in the same step that
 * still records their own. direction_before stays for one round: sites whose group is undecided after a
 * restart are placed by it when their update was erased. Everything that no group uses any more is zeroed,
 * so that the digest of the state (round/state.h) does not depend on history. */
void kedge_close_end(const struct kedge_round_result *r, struct kedge_round_state *io)
{
    struct kedge_hash directions[KEDGE_GROUPS_MAX];
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        directions[g] = r->directions[g];
    }
    kedge_close_merged_directions(directions, r->merged_into);
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        const struct kedge_hash before = io->group[g].direction;
        io->group[g] = (struct kedge_round_group){.direction_before = before};
        if (g < r->groups) {
            io->group[g] = (struct kedge_round_group){.model = r->after[g],
                                                      .direction = directions[g],
                                                      .direction_made = r->made[g],
                                                      .direction_before = before,
                                                      .server_state = r->state_after[g],
                                                      .weight_since_meeting = r->since[g],
                                                      .split_of = r->split_of[g],
                                                      .merged_into = r->merged_into[g],
                                                      .trial = r->trial[g],
                                                      .tried_with = r->tried_with[g]};
        }
    }
    io->round = r->round;
    io->kind = r->kind;
    io->groups = r->groups;
    io->regroup = r->regroup;
    io->is_personal = r->is_personal;
    kedge_schedule_charge(&io->book, r->charged);
}

bool kedge_close_exceeds_budget(const struct kedge_round_state *state, const struct kedge_round_result *r,
                                const struct kedge_job_spec *spec)
{
    const uint64_t budget = kedge_job_spec_budget(spec);
    struct kedge_schedule_book book = state->book;
    if (r) {
        kedge_schedule_charge(&book, r->charged);
    }
    return budget > 0 && !kedge_schedule_fits(&book, budget);
}

/* Decides for one site what the close decided for all, from the same vectors. In a round that cut groups at
 * most one part was cut off each, so at most one direction besides its own group's is compared. */
int kedge_close_follow(const struct kedge_close_host *host, const struct kedge_layout *layout,
                       const struct kedge_round_state *state, uint32_t site,
                       const struct kedge_round_site *row, uint32_t *ret_group, struct kedge_diag *d)
{
    struct kedge_hash directions[KEDGE_GROUPS_MAX];
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        directions[g] = state->group[g].direction;
    }
    if (state->kind == KEDGE_TASK_PRETRAIN) {
        return kedge_close_nearest(host, layout, site, &row->by, &state->group[row->group].direction_before,
                                   directions, state->groups, ret_group, d);
    }
    uint32_t group = row->group;
    int err = KEDGE_OK;
    for (uint32_t to = 0; to < state->groups && !err; to++) {
        if (state->group[to].split_of == row->group + 1) {
            err = kedge_close_cut(host, layout, site, &row->by, directions, row->group, to, &group, d);
        }
    }
    if (!err) {
        *ret_group = group;
    }
    return err;
}
