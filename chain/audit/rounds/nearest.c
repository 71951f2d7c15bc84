/* Jobs in which the model nearest to a site's last one is the site's: every group that follows from that,
 * once more. */
#include <string.h>

#include "chain/audit/rounds/replay.h"
#include "round/last_model.h"

void kedgei_check_nearest(struct kedgei_audit *a, const struct kedgei_job *job, const struct kedgei_log *log,
                          const struct kedgei_fact *fact, const struct kedgei_fact *before)
{
    const struct kedge_st_group_assigned *g = fact->body;
    const struct kedge_st_group_assigned *last = before ? before->body : NULL;
    const struct kedgei_round *round = kedgei_round_find(job, g->round);
    const struct kedgei_fact *trained = kedgei_trained_before(a, log, &g->job, &g->site, fact->index);
    const struct kedge_st_update *u = trained ? trained->body : NULL;
    struct kedgei_findings *f = &a->findings;
    if (!kedge_job_spec_assigns_by_last_model(&job->spec)) {
        kedgei_error(f, KEDGE_AUDIT_GROUP, log, fact->index,
                     "group of site \"%s\": no rule of job \"%s\" gives groups by %s", g->site.s, g->job.s,
                     kedge_group_how_name(g->how));
        return;
    }
    bool rests = u ? kedge_hash_eq(&g->update, &trained->subject) : kedge_hash_is_zero(&g->update);
    if (!rests || (u && u->round >= g->round)) {
        kedgei_error(f, KEDGE_AUDIT_GROUP, log, fact->index,
                     "group of site \"%s\" in round %u: does not rest on what it trained last before",
                     g->site.s, g->round);
    }
    if (last && (last->round >= g->round || last->group == g->group)) {
        kedgei_error(f, KEDGE_AUDIT_GROUP, log, fact->index,
                     "group of site \"%s\" in round %u: it was given group %u in round %u, in entry %llu",
                     g->site.s, g->round, last->group, last->round, (unsigned long long)before->index);
    }
    bool within = round && fact->index >= kedgei_anchored_before(log, round->opened->index)
                  && (!round->step || fact->index < kedgei_anchored_before(log, round->step->index));
    if (round && !within) {
        kedgei_error(f, KEDGE_AUDIT_GROUP, log, fact->index, "site \"%s\" moved while round %u was not open",
                     g->site.s, g->round);
    }
}

/* ---- replay ---- */

/* The site and the group that a decision is about, be it stated or taken for granted by an update. */
static const struct kedge_id *subject_of(const struct kedgei_decision *d, uint32_t *ret_group)
{
    const struct kedge_st_group_assigned *g = d->fact->body;
    const struct kedge_st_update *u = d->fact->body;
    bool stated = d->fact->kind == KEDGE_ST_GROUP_ASSIGNED;
    *ret_group = stated ? g->group : u->group;
    return stated ? &g->site : &u->site;
}

const struct kedgei_fact *kedgei_nearest_by(const struct kedgei_replay *r, const struct kedgei_decision *d)
{
    uint32_t group;
    return kedgei_trained_before(r->a, d->log, &d->job->id, subject_of(d, &group), d->fact->index);
}

static int find(const struct kedgei_replay *r, const struct kedgei_decision *d, uint32_t *ret_group,
                double *ret_similarity, bool *ret_absent, struct kedge_diag *diag)
{
    const struct kedgei_fact *last = kedgei_nearest_by(r, d);
    const struct kedge_st_update *u = last ? last->body : NULL;
    struct kedge_hash model = u ? u->base : kedgei_first_model(d->job, 0);
    char base[KEDGE_PATH_MAX], update[KEDGE_PATH_MAX], paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    struct kedge_blob_at at, from = {.path = base}, models[KEDGE_GROUPS_MAX];
    int err = kedge_blobs_path(r->a->main.blobs, &model, base);
    *ret_absent = !err && !kedge_blob_exists(base);
    if (!err && last) {
        err = kedge_blobs_at(d->log->blobs, &last->subject, update, &at);
        *ret_absent = *ret_absent || (!err && !kedge_blob_exists(update));
    }
    for (uint32_t g = 0; g < d->job->groups && !err; g++) {
        models[g] = (struct kedge_blob_at){.path = paths[g]};
        err = kedgei_model_before(d->job, d->round, g, &model)
                  ? kedge_blobs_path(r->a->main.blobs, &model, paths[g])
                  : KEDGE_E_NOT_FOUND;
        *ret_absent = *ret_absent || (!err && !kedge_blob_exists(paths[g]));
    }
    return err ? err
               : kedge_compute_last_model(&d->job->spec, &d->job->layout, &from, last ? &at : NULL, models,
                                          d->job->groups, ret_group, ret_similarity, diag);
}

void kedgei_replay_nearest(const struct kedgei_replay *r, struct kedgei_decision *d,
                           struct kedgei_findings *f)
{
    const struct kedge_st_group_assigned *g = d->fact->body;
    struct kedge_diag diag = {.err = KEDGE_OK};
    uint32_t group = 0, recorded;
    double similarity = 0;
    bool absent = false;
    int err = find(r, d, &group, &similarity, &absent, &diag);
    const struct kedge_id *site = subject_of(d, &recorded);
    if (err) {
        kedgei_replay_failed(r, d, d->fact->index, "group of a site", absent ? KEDGE_E_NOT_FOUND : err, &diag,
                             f);
        return;
    }
    uint64_t bits;
    memcpy(&bits, &similarity, sizeof bits);
    kedgei_replay_add_number(d, group);
    kedgei_replay_add_number(d, bits);
    bool stated = d->fact->kind == KEDGE_ST_GROUP_ASSIGNED;
    if (group != recorded || (stated && (similarity < g->similarity || similarity > g->similarity))) {
        kedgei_error(f, KEDGE_AUDIT_REPLAY_NEWCOMER, d->log, d->fact->index,
                     "job \"%s\", round %u: site \"%s\" is in group %u, its last model gives group %u with "
                     "similarity %.17g",
                     d->job->id.s, d->round->number, site->s, recorded, group, similarity);
    }
}

/* Whether a statement of this round gave the site the group that it trained for; else the group that it had
 * stays. */
static bool is_stated(const struct kedgei_log *log, const struct kedgei_fact *update)
{
    const struct kedge_st_update *u = update->body;
    const struct kedgei_fact *last = kedgei_group_before(log, &u->job, &u->site, update->index);
    return last && ((const struct kedge_st_group_assigned *)last->body)->round == u->round;
}

void kedgei_nearest_decisions(struct kedgei_replay *r, const struct kedgei_log *log,
                              void (*add)(struct kedgei_replay *r, struct kedgei_decision d))
{
    for (uint64_t i = 0; i < log->count; i++) {
        const struct kedgei_fact *fact = kedgei_fact_at(log, i);
        const struct kedge_st_group_assigned *g = fact->body;
        const struct kedge_st_update *u = fact->body;
        bool moves = fact->kind == KEDGE_ST_GROUP_ASSIGNED;
        bool stays = fact->kind == KEDGE_ST_UPDATE && u->update_kind == KEDGE_TRAIN_TRAIN;
        const struct kedgei_job *job =
            moves || stays ? kedgei_job_find(r->a, moves ? &g->job : &u->job) : NULL;
        if (!job || !job->usable || !kedge_job_spec_assigns_by_last_model(&job->spec)
            || (stays && is_stated(log, fact))) {
            continue;
        }
        const struct kedgei_round *round = kedgei_round_find(job, moves ? g->round : u->round);
        if (round) {
            add(r, (struct kedgei_decision){
                       .kind = KEDGEI_NEAREST, .job = job, .round = round, .log = log, .fact = fact});
        }
    }
}
