/* Groups that a close cuts in two, or of which it makes one of several: where the step says so, and the sites
 * that it moves. docs/record.md, "Groups that are cut and joined". */
#include <string.h>

#include "chain/audit/rounds/replay.h"

/* A step and the one before it, NULL: there is none, or groups were made in this round. */
struct pair {
    const struct kedge_st_step *now, *last;
};

static struct pair pair_of(const struct kedgei_job *job, const struct kedgei_round *round,
                           const struct kedgei_fact *fact)
{
    bool first = kedgei_makes_groups(round) || round == job->rounds || !round[-1].step;
    return (struct pair){fact->body, first ? NULL : round[-1].step->body};
}

static const struct kedge_st_step_group *row_in(const struct kedge_st_step *s, uint32_t g)
{
    return s && g < s->group_count ? &s->groups[g] : NULL;
}

static bool was_merged(const struct pair *p, uint32_t g)
{
    const struct kedge_st_step_group *last = row_in(p->last, g);
    return last && last->merged_into > 0;
}

static bool merges_now(const struct pair *p, uint32_t g)
{
    return p->now->groups[g].merged_into > 0 && !was_merged(p, g);
}

static bool is_joined(const struct pair *p, uint32_t g)
{
    bool joined = merges_now(p, g);
    for (uint32_t k = 0; k < p->now->group_count; k++) {
        joined = joined || (merges_now(p, k) && p->now->groups[k].merged_into == g + 1);
    }
    return joined;
}

bool kedgei_is_joined(const struct kedgei_job *job, const struct kedgei_round *round,
                      const struct kedgei_fact *step, uint32_t group)
{
    struct pair p = pair_of(job, round, step);
    return group < p.now->group_count && is_joined(&p, group);
}

const struct kedge_hash *kedgei_direction_of(const struct kedgei_fact *step, uint32_t group)
{
    const struct kedge_st_step_group *row = kedgei_step_group(step, group);
    const struct kedge_st_step_group *with =
        row && row->merged_into > 0 ? kedgei_step_group(step, row->merged_into - 1) : row;
    return with ? &with->direction : NULL;
}

/* The direction that was estimated of a group before it was cut, if it was. */
static const struct kedge_hash *estimate_in(const struct kedge_st_step_group *row)
{
    return kedge_hash_is_zero(&row->whole) ? &row->direction : &row->whole;
}

const struct kedge_hash *kedgei_estimate_of(const struct kedgei_job *job, const struct kedgei_round *round,
                                            uint32_t group)
{
    struct pair p = pair_of(job, round, round->step);
    const struct kedge_st_step_group *row = row_in(p.now, group);
    bool estimated = row && !row->split_of && !was_merged(&p, group);
    return estimated ? estimate_in(row) : NULL;
}

/* ---- verify ---- */

void kedgei_check_moved(struct kedgei_audit *a, const struct kedgei_job *job, const struct kedgei_log *log,
                        const struct kedgei_fact *fact, const struct kedgei_fact *before)
{
    const struct kedge_st_group_assigned *g = fact->body, *last = before ? before->body : NULL;
    const struct kedgei_round *round = kedgei_round_find(job, g->round);
    struct kedgei_findings *f = &a->findings;
    if (!last || last->round > g->round || !kedge_hash_eq(&last->update, &g->update)) {
        kedgei_error(f, KEDGE_AUDIT_GROUP, log, fact->index,
                     "group of site \"%s\": does not rest on the update of its last group", g->site.s);
        return;
    }
    if (!round || !round->step) {
        kedgei_error_if_settled(a, f, KEDGE_AUDIT_GROUP, log, fact->index,
                                "group of site \"%s\": round %u has no result", g->site.s, g->round);
        return;
    }
    struct pair p = pair_of(job, round, round->step);
    const struct kedge_st_step_group *from = row_in(p.now, last->group), *to = row_in(p.now, g->group);
    bool fits =
        from && to
        && (g->how == KEDGE_GROUP_MERGE ? merges_now(&p, last->group) && from->merged_into == g->group + 1
                                        : to->split_of == last->group + 1);
    bool next = round + 1 < job->rounds + job->round_count;
    if (!fits || fact->index < kedgei_anchored_before(log, round->step->index)
        || (next && fact->index >= kedgei_anchored_after(log, round[1].opened->index))) {
        kedgei_error(
            f, KEDGE_AUDIT_GROUP, log, fact->index,
            "site \"%s\" went from group %u to %u by %s, which round %u does not give, or not in time",
            g->site.s, last->group, g->group, kedge_group_how_name(g->how), g->round);
    }
}

/* ---- replay ---- */

uint32_t kedgei_chosen_among(const struct kedgei_decision *d, uint32_t groups, uint32_t ret[KEDGE_GROUPS_MAX])
{
    const struct kedge_st_group_assigned *g = d->fact->body;
    const struct kedge_st_step_group *row = kedgei_step_group(d->round->step, g->group);
    ret[0] = g->group;
    if (g->how == KEDGE_GROUP_SPLIT && row && row->split_of) {
        ret[0] = row->split_of - 1;
        ret[1] = g->group;
        return 2;
    }
    for (uint32_t i = 0; i < groups && i < KEDGE_GROUPS_MAX; i++) {
        ret[i] = i;
    }
    return groups > 0 ? groups : 1;
}
