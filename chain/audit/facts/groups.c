/* Whether a group-assigned may stand where it does: what its site had done, and which round gives groups in
 * that way. That it names the right group is replay's to find. */

#include "chain/audit/record.h"

/* A group-assigned, and what stands before it. */
struct assigned {
    struct kedgei_audit *a;
    const struct kedgei_job *job;
    const struct kedgei_round *round; /* that it names; NULL: there is none */
    const struct kedgei_log *log;
    const struct kedgei_fact *fact, *before; /* before: the site's last one, NULL: none */
    const struct kedge_st_group_assigned *g, *last;
};

#define WRONG(s, ...) \
    kedgei_error(&(s)->a->findings, KEDGE_AUDIT_GROUP, (s)->log, (s)->fact->index, __VA_ARGS__)

static const struct kedgei_fact *update_of(const struct assigned *s, const char *kind, uint32_t round)
{
    return kedgei_log_find(s->log, "update/%s/%08u/%s/%s", s->g->job.s, round, kind, s->g->site.s);
}

/* It rests on this update, which stands before it. */
static bool rests_on(const struct assigned *s, const struct kedgei_fact *update)
{
    return update && update->index < s->fact->index && kedge_hash_eq(&update->subject, &s->g->update);
}

/* While its round was open: after what was anchored when it opened, in what its close anchored. Two logs
 * are put in order by the checkpoints between them: what was not yet anchored when the round opened, and
 * was when it closed, came while it was open. */
static bool is_within_round(const struct assigned *s)
{
    return s->round->opened && s->fact->index >= kedgei_anchored_before(s->log, s->round->opened->index)
           && (!s->round->step || s->fact->index < kedgei_anchored_before(s->log, s->round->step->index));
}

/* After the close of its round, and before anything of the next one. */
static bool is_after_close(const struct assigned *s)
{
    bool next = s->round + 1 < s->job->rounds + s->job->round_count;
    return s->fact->index >= kedgei_anchored_before(s->log, s->round->step->index)
           && (!next || s->fact->index < kedgei_anchored_after(s->log, s->round[1].opened->index));
}

/* A newcomer's pretrain update may be of an earlier round: a restart can come between it and the
 * decision. So all rounds up to that of the decision are looked at, the newest first. */
static bool rests_on_pretraining(const struct assigned *s)
{
    uint32_t most = s->g->round < s->job->round_count ? s->g->round : (uint32_t)s->job->round_count;
    bool rests = false;
    for (uint32_t k = 0; k <= most && !rests; k++) {
        rests = rests_on(s, update_of(s, "pretrain", most - k));
    }
    return rests;
}

/* The first group of a site. A site has one first group for ever. A second one would be a move that no
 * rule gave. */
static void check_first(const struct assigned *s)
{
    if (!rests_on_pretraining(s)) {
        WRONG(s, "group of site \"%s\": rests on no pretrain update of a round up to %u", s->g->site.s,
              s->g->round);
    }
    if ((s->g->how == KEDGE_GROUP_COLD_START) != (s->g->round == 0)) {
        WRONG(s, "group of site \"%s\" in round %u: cold start is round 0, newcomers are later", s->g->site.s,
              s->g->round);
    }
    if (s->before) {
        WRONG(s, "group of site \"%s\": %s, but it has one since entry %llu", s->g->site.s,
              kedge_group_how_name(s->g->how), (unsigned long long)s->before->index);
    }
}

/* A site's group when groups were made anew: once per site, by its update of that round or, where it sent
 * none, by the one that gave it its last group. */
static void check_regrouped(const struct assigned *s)
{
    const struct kedgei_fact *update = update_of(s, "pretrain", s->g->round);
    const struct kedge_hash *by = update ? &update->subject : s->last ? &s->last->update : NULL;
    if (!by || !kedge_hash_eq(by, &s->g->update)) {
        WRONG(s, "group of site \"%s\": rests neither on its update of round %u nor on its last group's",
              s->g->site.s, s->g->round);
    }
    if (s->last && s->last->round >= s->g->round) {
        WRONG(s, "site \"%s\" was given a group of round %u before, in entry %llu", s->g->site.s,
              s->last->round, (unsigned long long)s->before->index);
    }
    if (!s->round || !kedgei_regroups(s->round) || !s->round->step) {
        kedgei_error_if_settled(s->a, &s->a->findings, KEDGE_AUDIT_GROUP, s->log, s->fact->index,
                                "group of site \"%s\": round %u made no groups anew", s->g->site.s,
                                s->g->round);
    } else if (!is_after_close(s)) {
        WRONG(s, "site \"%s\" was not given its group of round %u between that round and the next",
              s->g->site.s, s->g->round);
    }
}

/* A site's next group by its own pre-training, done since the last one and in this round. Each condition
 * stands for a way to move a site at will: a job that lets none move, a site without a group, a move
 * before the pause is over, one without a pre-training of its own since the last move, one after it had
 * trained in this round (it would have trained for one group and count in another), and one outside a
 * round of training. */
static void check_migration(const struct assigned *s)
{
    const struct kedgei_fact *update = update_of(s, "pretrain", s->g->round),
                             *trained = update_of(s, "train", s->g->round);
    const uint32_t pause = s->job->spec.migration_pause;
    if (s->job->spec.shift == KEDGE_SHIFT_TEST_NONE) {
        WRONG(s, "site \"%s\" moved: job \"%s\" lets no site move", s->g->site.s, s->g->job.s);
    }
    if (!s->last) {
        WRONG(s, "site \"%s\" moved, but was in no group", s->g->site.s);
    } else if (s->g->round < s->last->round || s->g->round - s->last->round < pause) {
        WRONG(s, "site \"%s\" moved in rounds %u and %u, which are fewer than %u apart", s->g->site.s,
              s->last->round, s->g->round, pause);
    }
    if (!rests_on(s, update) || (s->before && update->index <= s->before->index)) {
        WRONG(s, "site \"%s\" moved in round %u without a pre-training of its own in that round",
              s->g->site.s, s->g->round);
    }
    if (trained && trained->index < s->fact->index) {
        WRONG(s, "site \"%s\" moved in round %u after it had trained in it, in entry %llu", s->g->site.s,
              s->g->round, (unsigned long long)trained->index);
    }
    if (s->g->round == 0 || (s->round && (s->round->pretrain || !is_within_round(s)))) {
        WRONG(s, "site \"%s\" moved while round %u was not open for training", s->g->site.s, s->g->round);
    }
}

/* A group that a close gave by what became of the site's last one. What a close gives must be stated
 * before the next round's first entry, or a site could train for its old group in the new round. */
static void check_close(const struct assigned *s, uint32_t from, bool fits)
{
    if (!s->round || !s->round->step) {
        kedgei_error_if_settled(s->a, &s->a->findings, KEDGE_AUDIT_GROUP, s->log, s->fact->index,
                                "group of site \"%s\": round %u has no result", s->g->site.s, s->g->round);
    } else if (!fits || !is_after_close(s)) {
        WRONG(s, "site \"%s\" went from group %u to %u by %s, which round %u does not give, or not in time",
              s->g->site.s, from, s->g->group, kedge_group_how_name(s->g->how), s->g->round);
    }
}

/* By a cut or a join of living groups: by the update that gave it the last one. */
static void check_reshaped(const struct assigned *s)
{
    if (!s->last || s->last->round > s->g->round || !kedge_hash_eq(&s->last->update, &s->g->update)) {
        WRONG(s, "group of site \"%s\": does not rest on the update of its last group", s->g->site.s);
        return;
    }
    const struct kedgei_fact *step = s->round ? s->round->step : NULL;
    const struct kedge_st_step_group *from = kedgei_step_group(step, s->last->group),
                                     *to = kedgei_step_group(step, s->g->group);
    bool merges = s->g->how == KEDGE_GROUP_MERGE;
    check_close(s, s->last->group,
                from && to
                    && (merges ? kedgei_merges(s->job, s->round, s->last->group)
                                     && from->merged_into == s->g->group + 1
                               : to->split_of == s->last->group + 1));
}

/* By a cut of its group by the round's updates (CFL): by its own. A cut of CFL goes by the update of this
 * very round, which the site has sent; there is no similarity to state, so it must be zero. */
static void check_parted(const struct assigned *s)
{
    const uint32_t from = s->last ? s->last->group : 0;
    bool is_later = !s->last || s->last->round < s->g->round;
    if (!rests_on(s, update_of(s, "train", s->g->round)) || !is_later || s->g->similarity < 0
        || s->g->similarity > 0) {
        WRONG(s, "group of site \"%s\": does not rest on what it trained in round %u", s->g->site.s,
              s->g->round);
        return;
    }
    check_close(s, from,
                s->g->how == KEDGE_GROUP_SPLIT && s->g->group > 0 && s->round
                    && kedgei_part_of(s->round, from) == s->g->group);
}

/* By the model that is nearest to the one that it trained last. The base of the comparison is what the
 * site trained last before this statement. A move to the group that it is in already is none and must not
 * be stated. */
static void check_nearest(const struct assigned *s)
{
    const struct kedgei_fact *trained =
        kedgei_trained_before(s->a, s->log, &s->g->job, &s->g->site, s->fact->index);
    const struct kedge_st_update *u = trained ? trained->body : NULL;
    bool rests = u ? kedge_hash_eq(&s->g->update, &trained->subject) && u->round < s->g->round
                   : kedge_hash_is_zero(&s->g->update);
    if (!rests) {
        WRONG(s, "group of site \"%s\" in round %u: does not rest on what it trained last before",
              s->g->site.s, s->g->round);
    }
    if (s->last && (s->last->round >= s->g->round || s->last->group == s->g->group)) {
        WRONG(s, "group of site \"%s\" in round %u: it was given group %u in round %u, in entry %llu",
              s->g->site.s, s->g->round, s->last->group, s->last->round,
              (unsigned long long)s->before->index);
    }
    if (s->round && !is_within_round(s)) {
        WRONG(s, "site \"%s\" moved while round %u was not open", s->g->site.s, s->g->round);
    }
}

/* A way of giving groups that the job does not have is an error even if the group is right: the
 * statement's "how" says which evidence it rests on. */
static void check_how(const struct assigned *s)
{
    const enum kedge_grouped_by by = kedge_job_spec_grouped_by(&s->job->spec);
    switch (s->g->how) {
    case KEDGE_GROUP_COLD_START:
    case KEDGE_GROUP_NEWCOMER:
        check_first(s);
        return;
    case KEDGE_GROUP_MIGRATION:
        check_migration(s);
        return;
    case KEDGE_GROUP_RECLUSTER:
        check_regrouped(s);
        return;
    case KEDGE_GROUP_SPLIT:
    case KEDGE_GROUP_MERGE:
        (by == KEDGE_GROUPED_BY_CUT ? check_parted : check_reshaped)(s);
        return;
    case KEDGE_GROUP_NEAREST:
        if (by == KEDGE_GROUPED_BY_TASK) {
            check_nearest(s);
            return;
        }
        break;
    case KEDGE_GROUP_CHOICE:
        break;
    }
    WRONG(s, "group of site \"%s\": no rule of job \"%s\" gives groups by %s", s->g->site.s, s->g->job.s,
          kedge_group_how_name(s->g->how));
}

/* The number must be one of the groups that were there when the site was placed: of the round that made
 * them, or the one before for a newcomer. */
void kedgei_check_assigned(struct kedgei_audit *a, const struct kedgei_job *job, const struct kedgei_log *log,
                           const struct kedgei_fact *fact)
{
    const struct kedge_st_group_assigned *g = fact->body;
    const struct kedgei_fact *before = kedgei_group_before(log, &g->job, &g->site, fact->index);
    const struct assigned s = {.a = a,
                               .job = job,
                               .round = kedgei_round_find(job, g->round),
                               .log = log,
                               .fact = fact,
                               .before = before,
                               .g = g,
                               .last = before ? before->body : NULL};
    check_how(&s);
    bool made = g->how != KEDGE_GROUP_NEWCOMER && g->how != KEDGE_GROUP_MIGRATION;
    uint32_t groups = kedgei_groups_after(job, made || g->round == 0 ? g->round : g->round - 1);
    const enum kedge_grouped_by by = kedge_job_spec_grouped_by(&job->spec);
    bool cut = by == KEDGE_GROUPED_BY_CUT && g->how == KEDGE_GROUP_SPLIT;
    bool gives = by == KEDGE_GROUPED_BY_PRETRAIN || g->how == KEDGE_GROUP_NEAREST || cut;
    if (g->group >= groups || !gives) {
        kedgei_error_if_settled(a, &a->findings, KEDGE_AUDIT_GROUP, log, fact->index,
                                "site \"%s\" given group %u, job \"%s\" has %u", g->site.s, g->group,
                                g->job.s, groups);
    }
    if (!s.round || (g->round == 0 && !s.round->step)) {
        kedgei_error_if_settled(a, &a->findings, KEDGE_AUDIT_GROUP, log, fact->index,
                                "group of site \"%s\" from round %u, which has no result", g->site.s,
                                g->round);
    }
}
