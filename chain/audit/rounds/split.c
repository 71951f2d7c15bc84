/* Jobs whose groups are cut when their updates pull apart (CFL): lists and ledgers against the step, and
 * which cuts are replayed. docs/record.md, "Groups that part". */
#include "round/split.h"

#include <string.h>

#include "chain/audit/rounds/replay.h"
#include "common/base/mem.h"

static const struct kedge_st_step *step_of(const struct kedgei_round *round)
{
    return round && round->step ? round->step->body : NULL;
}

/* The part that this step cuts off the group, 0: none. */
static uint32_t part_of(const struct kedge_st_step *s, uint32_t group)
{
    uint32_t part = 0;
    for (uint32_t k = 0; k < s->group_count; k++) {
        part = s->groups[k].split_of == group + 1 ? k : part;
    }
    return part;
}

/* ---- verify ---- */

/* Every move of a close is stated before anything follows it. */
static bool must_be_stated(const struct kedgei_job *job, const struct kedgei_round *round)
{
    const struct kedge_st_job_closed *end = job->closed ? job->closed->body : NULL;
    return round + 1 < job->rounds + job->round_count || (end && end->outcome == KEDGE_OUTCOME_COMPLETED);
}

const char *kedgei_row_cut(const struct kedgei_job *job, const struct kedgei_round *round,
                           const struct kedgei_log *log, const struct kedge_input_row *row)
{
    const struct kedgei_fact *fact = kedgei_group_behind(log, &job->id, &row->site, row->leaf);
    const struct kedge_st_group_assigned *g = fact ? fact->body : NULL;
    const struct kedge_st_step *s = step_of(round);
    bool is_there = g && g->how == KEDGE_GROUP_SPLIT && g->round == round->number;
    if (row->to == 0) {
        return is_there ? "the site was given a group by a cut that leaves it where it was" : NULL;
    }
    if (!kedge_job_spec_splits(&job->spec) || row->use != KEDGE_USE_AGGREGATED || !s
        || part_of(s, row->group) != row->to) {
        return "the round cuts off no such part of its group";
    }
    if (is_there && (g->group != row->to || !kedge_hash_eq(&g->update, &row->update))) {
        return "the site was given another group, or by another update";
    }
    return !is_there && must_be_stated(job, round) ? "no statement gave the site the group of its part"
                                                   : NULL;
}

void kedgei_check_parted(struct kedgei_audit *a, const struct kedgei_job *job, const struct kedgei_log *log,
                         const struct kedgei_fact *fact, const struct kedgei_fact *before)
{
    const struct kedge_st_group_assigned *g = fact->body, *last = before ? before->body : NULL;
    const struct kedgei_round *round = kedgei_round_find(job, g->round);
    const struct kedge_st_step *s = step_of(round);
    const struct kedgei_fact *update =
        kedgei_log_find(log, "update/%s/%08u/train/%s", g->job.s, g->round, g->site.s);
    const uint32_t from = last ? last->group : 0;
    struct kedgei_findings *f = &a->findings;
    if (!update || update->index >= fact->index || !kedge_hash_eq(&update->subject, &g->update)
        || (last && last->round >= g->round) || g->similarity < 0 || g->similarity > 0) {
        kedgei_error(f, KEDGE_AUDIT_GROUP, log, fact->index,
                     "group of site \"%s\": does not rest on what it trained in round %u", g->site.s,
                     g->round);
        return;
    }
    if (!s) {
        kedgei_error_if_settled(a, f, KEDGE_AUDIT_GROUP, log, fact->index,
                                "group of site \"%s\": round %u has no result", g->site.s, g->round);
        return;
    }
    bool next = round + 1 < job->rounds + job->round_count;
    if (g->how != KEDGE_GROUP_SPLIT || g->group == 0 || part_of(s, from) != g->group
        || fact->index < kedgei_anchored_before(log, round->step->index)
        || (next && fact->index >= kedgei_anchored_after(log, round[1].opened->index))) {
        kedgei_error(
            f, KEDGE_AUDIT_GROUP, log, fact->index,
            "site \"%s\" went from group %u to %u by %s, which round %u does not give, or not in time",
            g->site.s, from, g->group, kedge_group_how_name(g->how), g->round);
    }
}

bool kedgei_unsplit_at_close(const struct kedgei_job *job, const struct kedgei_log *log,
                             const struct kedge_st_evaluation *e, const struct kedgei_round *round,
                             uint64_t index)
{
    const uint64_t at = round->step ? kedgei_anchored_before(log, round->step->index) : index;
    return kedge_job_spec_splits(&job->spec) && e->group == 0
           && !kedgei_group_before(log, &e->job, &e->site, at < index ? at : index);
}

/* ---- replay ---- */

void kedgei_split_decisions(struct kedgei_replay *r, const struct kedgei_job *job,
                            const struct kedgei_round *round,
                            void (*add)(struct kedgei_replay *r, struct kedgei_decision d))
{
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX && kedge_compute_split_is_open(&job->spec, round->number);
         g++) {
        if (round->aggregates[g]) {
            add(r, (struct kedgei_decision){.kind = KEDGEI_SPLIT, .job = job, .round = round, .group = g});
        }
    }
}
