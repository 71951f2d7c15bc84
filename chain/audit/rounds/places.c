/* The group of a site, be it stated or taken for granted by its update: the engine places the site again
 * (kedge_close_place), by what it is recorded to have been placed by. */
#include <string.h>

#include "chain/audit/rounds/replay.h"
#include "round/close/close.h"

/* A site that is placed. */
struct placed {
    const struct kedgei_replay *r;
    const struct kedgei_decision *d;
    struct kedge_round_state state;    /* the groups that it is compared with, from 0 on … */
    uint32_t number[KEDGE_GROUPS_MAX]; /* … and their numbers */
    struct kedge_place place;
    bool is_absent; /* a file is not here: nothing was compared */
};

/* ---- files ---- */

/* The engine may go on without a file in ways that are right for a coordinator and wrong here: a site
 * must not be judged by a comparison that lacked one of the groups. So a missing file is remembered, and
 * the decision counts as not repeated. */
static int find(struct placed *p, int err, const char *path)
{
    err = err || kedge_blob_exists(path) ? err : KEDGE_E_NOT_FOUND;
    p->is_absent = p->is_absent || err == KEDGE_E_NOT_FOUND;
    return err;
}

static int vector_of(void *arg, const struct kedge_hash *digest, char path[KEDGE_PATH_MAX],
                     struct kedge_blob_at *ret_at)
{
    struct placed *p = arg;
    *ret_at = (struct kedge_blob_at){.path = path, .digest = *digest};
    return find(p, kedge_blobs_path(p->r->a->main.blobs, digest, path), path);
}

static int update_of(void *arg, uint32_t site, const struct kedge_hash *digest, char ret[KEDGE_PATH_MAX],
                     struct kedge_blob_at *ret_at)
{
    struct placed *p = arg;
    (void)site; /* there is one */
    return find(p, kedge_blobs_at(p->d->log->blobs, digest, ret, ret_at), ret);
}

/* ---- what it is compared with ---- */

/* A newcomer, one that moves, and one that sent nothing as groups were made anew goes to the nearest group
 * of all; where its group was cut, to the nearer part. Those whose updates made the groups are where these
 * put them: how near they are is all that there is to find. */
static void put_directions(struct placed *p)
{
    const struct kedgei_decision *d = p->d;
    const struct kedge_st_group_assigned *g = d->fact->body;
    const struct kedge_st_step_group *row = kedgei_step_group(d->round->step, g->group);
    bool is_nearest =
        g->how == KEDGE_GROUP_NEWCOMER || g->how == KEDGE_GROUP_MIGRATION
        || (g->how == KEDGE_GROUP_RECLUSTER
            && !kedgei_log_find(d->log, "update/%s/%08u/pretrain/%s", g->job.s, g->round, g->site.s));
    bool is_cut = g->how == KEDGE_GROUP_SPLIT && row && row->split_of;
    p->place = (struct kedge_place){.update = g->update, .count = is_cut ? 2 : 1};
    p->number[0] = is_cut ? row->split_of - 1 : g->group;
    p->number[1] = g->group;
    if (is_nearest) {
        p->place.count = kedgei_groups_after(d->job, d->round->number);
        for (uint32_t i = 0; i < p->place.count; i++) {
            p->number[i] = i;
        }
    }
    for (uint32_t i = 0; i < p->place.count; i++) {
        const struct kedge_hash *direction = kedgei_direction_of(d->round->step, p->number[i]);
        p->state.group[i].direction = direction ? *direction : (struct kedge_hash){{0}};
    }
}

/* By the model that is the nearest to its last one. */
static void put_models(struct placed *p)
{
    const struct kedgei_decision *d = p->d;
    const struct kedgei_fact *last = kedgei_placed_by(p->r, d);
    const struct kedge_st_update *u = last ? last->body : NULL;
    p->place = (struct kedge_place){.initial = kedgei_first_model(d->job, 0), .count = d->job->groups};
    if (u) {
        p->place.update = last->subject;
        p->place.base = u->base;
    }
    for (uint32_t g = 0; g < p->place.count; g++) {
        p->number[g] = g;
        (void)kedgei_model_before(d->job, d->round, g, &p->state.group[g].model);
    }
}

/* ---- once more ---- */

/* The site and the group that a decision is about. */
static const struct kedge_id *subject_of(const struct kedgei_decision *d, uint32_t *ret_group)
{
    const struct kedge_st_group_assigned *g = d->fact->body;
    const struct kedge_st_update *u = d->fact->body;
    bool is_stated = d->fact->kind == KEDGE_ST_GROUP_ASSIGNED;
    *ret_group = is_stated ? g->group : u->group;
    return is_stated ? &g->site : &u->site;
}

const struct kedgei_fact *kedgei_placed_by(const struct kedgei_replay *r, const struct kedgei_decision *d)
{
    uint32_t group;
    return kedgei_trained_before(r->a, d->log, &d->job->id, subject_of(d, &group), d->fact->index);
}

/* The similarity is compared without a tolerance: it is computed in a fixed order (docs/record.md), so any
 * difference means other inputs or another rule. */
void kedgei_replay_place(const struct kedgei_replay *r, struct kedgei_decision *d, struct kedgei_findings *f)
{
    struct placed p = {.r = r, .d = d};
    const struct kedge_close_host files = {.arg = &p, .vector = vector_of, .update = update_of};
    struct kedge_diag diag = {.err = KEDGE_OK};
    uint32_t group = 0, recorded;
    double similarity;
    (d->kind == KEDGEI_NEAREST ? put_models : put_directions)(&p);
    int err = kedge_close_place(&files, &d->job->spec, &d->job->layout, &p.state, &p.place, &group,
                                &similarity, &diag);
    if (err || p.is_absent) {
        kedgei_replay_failed(r, d, d->fact->index, "group of a site", err ? err : KEDGE_E_NOT_FOUND, &diag,
                             f);
        return;
    }
    const struct kedge_st_group_assigned *g = d->fact->kind == KEDGE_ST_GROUP_ASSIGNED ? d->fact->body : NULL;
    const struct kedge_id *site = subject_of(d, &recorded);
    const double stated = g ? g->similarity : similarity;
    kedgei_replay_add_number(d, p.number[group]);
    kedgei_replay_add_real(d, similarity);
    if (p.number[group] != recorded || similarity < stated || similarity > stated) {
        kedgei_error(f, KEDGE_AUDIT_REPLAY_NEWCOMER, d->log, d->fact->index,
                     "job \"%s\", round %u: site \"%s\" is recorded in group %u with similarity %.17g, what "
                     "it sent gives group %u with %.17g",
                     d->job->id.s, d->round->number, site->s, recorded, stated, p.number[group], similarity);
    }
}
