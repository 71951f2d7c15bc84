/* What a row of a close says against what its site was told: a row that gave a group is followed by the
 * statement of that group, one that was left out by none, or by group 0 where its site had one before. With
 * the replay of groupings and cuts, which demands of every row the group that its update gives, no statement
 * can put a site elsewhere. */
#include "chain/audit/record.h"

/* Every group that a close gave is stated before anything follows it. While a record still grows, or when
 * its job was cancelled, the statements of the last close may not be there yet; their absence is an error
 * only once something follows that rests on them. */
static bool must_be_stated(const struct kedgei_job *job, const struct kedgei_round *round)
{
    const struct kedge_st_job_closed *end = job->closed ? job->closed->body : NULL;
    bool goes_on = round + 1 < job->rounds + job->round_count;
    return goes_on || (end && end->outcome == KEDGE_OUTCOME_COMPLETED);
}

/* The statement has to name the row's update as well: a group that is right, given by another update,
 * would let the coordinator choose which of a site's updates counts. */
static const char *check_grouped(const struct kedgei_job *job, const struct kedgei_round *round,
                                 const struct kedge_input_row *row, const struct kedge_st_group_assigned *g)
{
    if (g && (g->group != row->group || !kedge_hash_eq(&g->update, &row->update))) {
        return "the site was given another group, or by another update";
    }
    bool is_there = g && (!round->pretrain || g->round == round->number);
    bool must = !round->pretrain || must_be_stated(job, round); /* a newcomer's before that round closed */
    return !is_there && must ? "no statement gave the site this group" : NULL;
}

/* An update that is zero has no direction, so its site gets no group, and a site that had one goes to
 * group 0. Only a round that makes groups may leave out a pre-training for that. */
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

/* A row of a round whose updates may cut their group. */
static const char *check_cut(const struct kedgei_job *job, const struct kedgei_round *round,
                             const struct kedge_input_row *row, const struct kedge_st_group_assigned *g)
{
    bool is_there = g && g->how == KEDGE_GROUP_SPLIT && g->round == round->number;
    if (row->to == 0) {
        return is_there ? "the site was given a group by a cut that leaves it where it was" : NULL;
    }
    if (kedge_job_spec_grouped_by(&job->spec) != KEDGE_GROUPED_BY_CUT || row->use != KEDGE_USE_AGGREGATED
        || kedgei_part_of(round, row->group) != row->to) {
        return "the round cuts off no such part of its group";
    }
    if (is_there && (g->group != row->to || !kedge_hash_eq(&g->update, &row->update))) {
        return "the site was given another group, or by another update";
    }
    return !is_there && must_be_stated(job, round) ? "no statement gave the site the group of its part"
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
        return g && g->round == round->number ? "the round keeps the groups, and the site was given one"
                                              : NULL;
    }
    if (row->to > 0 || kedge_job_spec_grouped_by(&job->spec) == KEDGE_GROUPED_BY_CUT) {
        return check_cut(job, round, row, g);
    }
    if (row->use == KEDGE_USE_GROUPED) {
        return check_grouped(job, round, row, g);
    }
    bool left_out = row->use == KEDGE_USE_REFUSED && u->update_kind == KEDGE_TRAIN_PRETRAIN;
    return left_out ? check_left_out(job, round, log, row, g) : NULL;
}

/* Before the first cut of a job all its sites are in group 0 without any statement, so an evaluation of
 * group 0 by such a site is its own group's. */
bool kedgei_unsplit_at_close(const struct kedgei_job *job, const struct kedgei_log *log,
                             const struct kedge_st_evaluation *e, const struct kedgei_round *round,
                             uint64_t index)
{
    const uint64_t at = round->step ? kedgei_anchored_before(log, round->step->index) : index;
    return kedge_job_spec_grouped_by(&job->spec) == KEDGE_GROUPED_BY_CUT && e->group == 0
           && !kedgei_group_before(log, &e->job, &e->site, at < index ? at : index);
}
