/* What a row of pre-training says against what its site was told: a row that gave a group is followed by the
 * statement of that group, one that was left out by none, or by group 0 where its site had one before. With
 * the replay of groupings, which demands of every row the group that its update gives, no statement can put a
 * site elsewhere. */
#include "chain/audit/record.h"

/* Every group that a close gave is stated before anything follows it; one that a site found in a round of
 * training before that closed. */
static bool must_be_stated(const struct kedgei_job *job, const struct kedgei_round *round)
{
    const struct kedge_st_job_closed *end = job->closed ? job->closed->body : NULL;
    bool goes_on = round + 1 < job->rounds + job->round_count;
    return goes_on || !round->pretrain || (end && end->outcome == KEDGE_OUTCOME_COMPLETED);
}

static const char *check_grouped(const struct kedgei_job *job, const struct kedgei_round *round,
                                 const struct kedge_input_row *row, const struct kedge_st_group_assigned *g)
{
    if (g && (g->group != row->group || !kedge_hash_eq(&g->update, &row->update))) {
        return "the site was given another group, or by another update";
    }
    bool is_there = g && (!round->pretrain || g->round == round->number);
    return !is_there && must_be_stated(job, round) ? "no statement gave the site this group" : NULL;
}

static const char *check_left_out(const struct kedgei_job *job, const struct kedgei_round *round,
                                  const struct kedgei_log *log, const struct kedge_input_row *row,
                                  const struct kedge_st_group_assigned *g)
{
    if (!round->pretrain) {
        return "it leaves out a pre-training in a round of training, where the nearest group is always there";
    }
    bool had_one = kedgei_group_before(log, &job->id, &row->site, row->leaf) != NULL;
    bool is_of_round = g && g->round == round->number;
    if (is_of_round && (!had_one || g->group != 0)) {
        return "it was left out, and the site was given a group by it all the same";
    }
    return had_one && !is_of_round && must_be_stated(job, round) ? "no statement gave the site group 0"
                                                                 : NULL;
}

const char *kedgei_assignment_matches_row(const struct kedgei_job *job, const struct kedgei_round *round,
                                          const struct kedgei_log *log, const struct kedgei_fact *update,
                                          const struct kedge_input_row *row)
{
    const struct kedge_st_update *u = update->body;
    const struct kedgei_fact *fact = kedgei_group_behind(log, &job->id, &row->site, row->leaf);
    const struct kedge_st_group_assigned *g = fact ? fact->body : NULL;
    if (round->kept) {
        return kedgei_row_kept(job, round, log, row);
    }
    if (row->to > 0 || kedge_job_spec_splits(&job->spec)) {
        return kedgei_row_cut(job, round, log, row);
    }
    if (row->use == KEDGE_USE_GROUPED) {
        return check_grouped(job, round, row, g);
    }
    bool left_out = row->use == KEDGE_USE_REFUSED && u->update_kind == KEDGE_TRAIN_PRETRAIN;
    return left_out ? check_left_out(job, round, log, row, g) : NULL;
}
