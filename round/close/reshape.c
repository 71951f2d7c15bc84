/* Closing a round of training in which groups become one or are cut in two: numbers, models, directions,
 * and who moves.
 *
 * One close does one of the two, never both: a group that was just joined is not cut before its direction
 * has been estimated from all its sites. Numbers are stable. A group that is joined to another keeps its
 * number and points to that one (merged_into), because its sites may still ask for it and earlier
 * statements name it. A later cut may use the number again. */
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "round/close/flexcfl.h"
#include "round/reshape.h"

void kedge_close_merged_directions(struct kedge_hash *directions, const uint32_t *merged_into)
{
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        if (merged_into[g]) {
            directions[g] = directions[merged_into[g] - 1];
        }
    }
}

/* ---- several become one ---- */

/* The other part of a cut which is taken back with this join; the group itself where it is another join. */
static uint32_t other_part(const struct kedge_round_result *r, const uint32_t *into, uint32_t group)
{
    const uint32_t with = r->tried_before[group];
    return with > 0 && into[with - 1] == group && kedgei_are_parts(r, group, with - 1) ? with - 1 : group;
}

/* Models are averaged as they are after the server's step and before mixing, by how many sites each group
 * has, under the cap on a tenant's share: else a tenant could decide the joined model by bringing many
 * sites into one of the groups. */
static int join_models(struct kedge_close *c, const uint32_t *into, const uint32_t *tenant,
                       const uint32_t *former, uint32_t group)
{
    struct kedge_round_result *r = c->result;
    struct kedge_hash models[KEDGE_GROUPS_MAX];
    uint64_t weight[KEDGE_GROUPS_MAX], of_all[KEDGE_GROUPS_MAX];
    uint32_t n = 0;
    int err =
        kedge_compute_merge_weights(c->spec, tenant, former, c->other_count, into, r->groups, group, of_all);
    if (err) {
        return err;
    }
    for (uint32_t g = 0; g < r->groups; g++) {
        if (into[g] == group) {
            models[n] = r->stepped[g];
            weight[n++] = of_all[g];
        }
    }
    return kedgei_blend(c, KEDGE_DECISION_JOIN, group, models, weight, n, &r->after[group]);
}

/* A part's direction was that of one half. Newcomers and sites that move would be placed by it from now on,
 * and pairs be chosen by it, though the group is the whole again. */
static void take_whole_direction(struct kedge_round_result *r, uint32_t group)
{
    if (!kedge_hash_is_zero(&r->whole_before[group])) {
        r->directions[group] = r->whole_before[group];
    }
}

/* The models of the groups that others become part of. */
static int join_all(struct kedge_close *c, const uint32_t *into)
{
    struct kedge_round_result *r = c->result;
    uint32_t *tenant = kedge_mem_new(c->other_count + 1, sizeof *tenant),
             *former = kedge_mem_new(c->other_count + 1, sizeof *former);
    int err = tenant && former ? KEDGE_OK : KEDGE_E_NOMEM;
    for (size_t i = 0; i < c->other_count && !err; i++) {
        tenant[i] = c->others[i].place;
        former[i] = c->others[i].former;
    }
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        const uint32_t part = r->joined[g] && into[g] == g ? other_part(r, into, g) : g;
        if (part != g) {
            err = kedgei_join_parts(c, g, part, &r->after[g]);
            take_whole_direction(r, g);
        } else if (r->joined[g] && into[g] == g) {
            err = join_models(c, into, tenant, former, g);
        }
    }
    kedge_mem_free(tenant);
    kedge_mem_free(former);
    return err;
}

/* `joined` marks all groups that take part, on both sides: their `after` is made of several models. A group
 * that was part of another one earlier goes with it, so that chains of merged_into are never longer than
 * one step and readers need not follow them. */
int kedgei_join(struct kedge_close *c, const uint32_t *into)
{
    struct kedge_round_result *r = c->result;
    KEDGE_TRY(kedgei_assignments(c, c->other_count));
    for (uint32_t g = 0; g < r->groups; g++) {
        r->joined[into[g]] = r->joined[into[g]] || into[g] != g;
        r->joined[g] = r->joined[g] || into[g] != g;
    }
    KEDGE_TRY(join_all(c, into));
    for (uint32_t g = 0; g < r->groups; g++) {
        uint32_t with = r->merged_into[g] ? into[r->merged_into[g] - 1] : into[g];
        if (with != g) {
            r->merged_into[g] = with + 1;
            r->after[g] = r->after[with];
        }
    }
    for (size_t i = 0; i < c->other_count; i++) {
        const struct kedge_close_other *o = &c->others[i];
        if (into[o->former] != o->former) {
            kedgei_assign(c, o->site, into[o->former]);
        }
    }
    return KEDGE_OK;
}

/* ---- one becomes two ---- */

/* The direction of the updates of one part. */
static int direct_part(struct kedge_close *c, const struct kedgei_members *all, const uint32_t *part,
                       uint32_t whole, uint32_t of, uint32_t group)
{
    struct kedgei_members members;
    int err = kedgei_members_init(&members, all->count);
    members.lacks = all->lacks;
    for (size_t i = 0; i < all->count && !err; i++) {
        if (part[i] == of) {
            members.tenant[members.count] = all->tenant[i];
            members.files[members.count++] = all->files[i];
        }
    }
    if (!err) {
        err = kedgei_direct(c, group, &members, false, &c->result->directions[group]);
    }
    if (err == KEDGE_E_NO_DIRECTION) { /* they cancel each other out: that of the whole */
        c->result->directions[group] = c->result->whole[whole];
        err = KEDGE_OK;
    }
    kedgei_members_deinit(&members);
    return err;
}

/* A number that no group has: the lowest of one that became part of another, or the next. Lowest first, so
 * that an auditor comes to the same one. Not that of a group which this close has joined: the step has to say
 * what became of its sites. */
static uint32_t free_number(const struct kedge_round_result *r)
{
    uint32_t g = 0;
    while (g < r->groups && (!r->merged_into[g] || r->joined[g])) {
        g++;
    }
    return g;
}

bool kedgei_has_number(const struct kedge_close *c)
{
    return free_number(c->result) < kedge_job_spec_groups_most(c->spec);
}

/* The group keeps number and part 0, the new one is part 1; both begin with all that the group had. The
 * direction of the whole stays in the record (`whole`), for the cut was judged with it, and `made` ends:
 * the parts' directions are what later drift is measured from. Then each site of the group goes to the
 * nearer of the two parts. */
int kedgei_cut_group(struct kedge_close *c, const struct kedgei_members *all, const uint32_t *part,
                     uint32_t from, uint32_t *ret_to, bool *ret_moves)
{
    struct kedge_round_result *r = c->result;
    uint32_t to = free_number(r);
    *ret_to = to;
    r->whole[from] = r->directions[from];
    memset(&r->made[from], 0, sizeof r->made[from]);
    kedgei_copy_group(r, from, to);
    r->split_of[to] = from + 1;
    r->merged_into[to] = 0;
    r->groups = to + 1 > r->groups ? to + 1 : r->groups;
    KEDGE_TRY(direct_part(c, all, part, from, 0, from));
    KEDGE_TRY(direct_part(c, all, part, from, 1, to));
    for (size_t i = 0; i < c->other_count; i++) {
        const struct kedge_close_other *o = &c->others[i];
        uint32_t group = from;
        if (o->former == from) {
            KEDGE_TRY(kedgei_side(c, o, from, to, &group));
        }
        ret_moves[i] = group != from;
        if (ret_moves[i]) {
            kedgei_assign(c, o->site, group);
        }
    }
    return KEDGE_OK;
}

/* Only groups that there were at the beginning are looked at, and neither parts of others nor what this
 * close has cut off: a part would be judged by updates that were chosen for the whole. */
static int cut_groups(struct kedge_close *c, struct kedgei_signs *s, uint32_t *part, bool *moves)
{
    struct kedge_round_result *r = c->result;
    const uint32_t groups = r->groups;
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t to;
        bool is_cut = false, has_room = kedgei_has_number(c) && !r->merged_into[g] && !r->split_of[g];
        if (!has_room) {
            continue;
        }
        KEDGE_TRY(kedgei_signs_of(c, s, g));
        KEDGE_TRY(kedgei_cut_by_angles(c, g, &s->of, part, &is_cut));
        if (is_cut) {
            KEDGE_TRY(kedgei_cut_group(c, &s->of, part, g, &to, moves));
        }
    }
    return KEDGE_OK;
}

int kedgei_reshape(struct kedge_close *c, struct kedgei_signs *s)
{
    uint32_t into[KEDGE_GROUPS_MAX];
    bool any = false;
    KEDGE_TRY(kedgei_find_merges(c, into, &any));
    if (any) {
        return kedgei_join(c, into);
    }
    if (c->spec->options.silhouette >= 1) {
        return KEDGE_OK;
    }
    uint32_t *part = kedge_mem_new(c->other_count + 1, sizeof *part);
    bool *moves = kedge_mem_new(c->other_count + 1, sizeof *moves);
    int err = part && moves ? kedgei_assignments(c, c->other_count) : KEDGE_E_NOMEM;
    if (!err) {
        err = cut_groups(c, s, part, moves);
    }
    kedge_mem_free(part);
    kedge_mem_free(moves);
    return err;
}
