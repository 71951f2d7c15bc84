/* What is known between the rounds of a job is not stored anywhere as a table; it is folded from
 * the statements, by the code that the auditor uses (round/fold_ledgers.h). So a restart cannot
 * remember anything that the record does not say, and what it remembers is what an audit would
 * find.
 *
 * The core is told in a fixed order: the closed round, the groups, the open round with its rows,
 * what was refused in it, what was accepted. */
#include "coordinator/daemon/restore/restore_rounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/members.h"
#include "coordinator/daemon/restore/ended_job.h"
#include "coordinator/daemon/rounds/classes.h"
#include "coordinator/daemon/rounds/rounds.h"
#include "coordinator/daemon/sites/refusals.h"
#include "round/fold_ledgers.h"

struct rounds {
    struct kedge_walk walk; /* first: its callbacks find the rest by it */
    struct kedge_round_fold fold;
};

/* ---- reading ---- */

static uint32_t find_site(void *arg, uint32_t tenant, const struct kedge_id *site)
{
    const struct kedge_walk *w = arg;
    return kedge_host_site_find(w->h, w->job->params.tenants[tenant], site);
}

/* The models of the closed round are what the next tasks begin with. "tries" is told, too:
 * otherwise the next round would open without waiting for the evaluations of its trials. */
static void tell_closed(struct kedge_host *h, const struct kedge_job *job, const struct kedge_round_state *at)
{
    struct kedge_digest models[KEDGE_GROUPS_MAX];
    for (uint32_t g = 0; g < at->groups; g++) {
        memcpy(models[g].b, at->group[g].model.b, sizeof models[g].b);
    }
    struct kedge_coord_event ev = {.type = KEDGE_EV_LOAD_ROUND,
                                   .job = job->slot,
                                   .round = at->round,
                                   .closed = true,
                                   .kind = at->kind,
                                   .regroup = at->regroup,
                                   .tested = job->tested.round == at->round,
                                   .useful = kedge_job_is_useful(job),
                                   .reached = kedge_job_is_at_target(job),
                                   .over_budget = kedge_close_exceeds_budget(at, NULL, &job->spec),
                                   .model_count = at->groups,
                                   .models = models};
    for (uint32_t g = 0; g < at->groups; g++) {
        ev.tries = ev.tries || at->group[g].tried_with > 0;
    }
    kedge_host_step(h, &ev);
}

/* A task of an asynchronous job may begin with the model of each of these rounds. */
static int see_closed(void *arg, const struct kedge_round_fold *at)
{
    const struct kedge_walk *w = arg;
    tell_closed(w->h, w->job, &at->state);
    return KEDGE_OK;
}

static void begin(struct rounds *r)
{
    const struct kedge_host *h = r->walk.h;
    struct kedge_job *job = r->walk.job;
    for (uint32_t site = 0; site < h->site_count; site++) {
        uint32_t place = 0;
        while (place < job->params.tenant_count && job->params.tenants[place] != h->sites[site].tenant) {
            place++;
        }
        job->sites[site] = kedge_round_site_first(&job->spec, place);
    }
    kedge_round_fold_begin(&r->fold, &job->spec, job->sites, h->site_count);
}

/* All statements of the job, from all its ledgers and the main chain. In an asynchronous job the
 * models of earlier rounds are still in use as bases, so each closed round is told as the fold
 * comes by it. */
static int fold(struct rounds *r)
{
    const struct kedge_host *h = r->walk.h;
    const struct kedge_job *job = r->walk.job;
    struct kedge_round_log *tenants = kedge_mem_new(job->params.tenant_count, sizeof *tenants);
    if (!tenants) {
        return KEDGE_E_NOMEM;
    }
    for (uint32_t i = 0; i < job->params.tenant_count; i++) {
        const struct kedge_tenant *t = &h->tenants[job->params.tenants[i]];
        tenants[i] = (struct kedge_round_log){t->id, t->salted, t->log.ledger, t->log.blobs};
    }
    const struct kedge_round_logs logs = {.main = {.ledger = h->main.ledger, .blobs = h->main.blobs},
                                          .tenants = tenants,
                                          .tenant_count = job->params.tenant_count,
                                          .site = find_site,
                                          .closed = job->params.buffer > 0 ? see_closed : NULL,
                                          .arg = &r->walk};
    int err = kedge_round_fold_ledgers(&r->fold, &logs, KEDGE_ROUND_NONE, KEDGE_ROUND_NONE, r->walk.d);
    kedge_mem_free(tenants);
    return err;
}

/* The groups that the last close gave and neither a list nor a statement says: found again, by the
 * same function and from the same files as in the close, so the outcome is the same. */
static int decide(struct rounds *r)
{
    struct kedge_job *job = r->walk.job;
    const struct kedge_close_host files = kedge_host_close_files(r->walk.h);
    int err = KEDGE_OK;
    for (uint32_t i = 0; i < r->fold.site_count && !err; i++) {
        struct kedge_round_site *s = &job->sites[i];
        uint32_t group = s->group;
        if (s->is_undecided) {
            err = kedge_close_follow(&files, &job->layout, &r->fold.state, i, s, &group, r->walk.d);
            s->is_unstated = r->fold.state.kind == KEDGE_TASK_PRETRAIN || group != s->group;
            s->is_undecided = false;
            s->group = group;
        }
    }
    return err;
}

/* ---- telling the core ---- */

/* A site may have two groups at this point: the one in force, which its last statement says, and
 * the one that the close gave and that is still to be stated. They are told in this order. */
static void tell_groups(const struct rounds *r)
{
    struct kedge_host *h = r->walk.h;
    const struct kedge_job *job = r->walk.job;
    const uint32_t last = r->fold.state.round == KEDGE_ROUND_NONE ? 0 : r->fold.state.round;
    const bool chosen = kedge_job_spec_grouped_by(&job->spec) == KEDGE_GROUPED_BY_UPDATE;
    for (uint32_t i = 0; i < r->fold.site_count; i++) {
        const struct kedge_round_site *s = &job->sites[i];
        struct kedge_coord_event ev = {
            .type = KEDGE_EV_LOAD_GROUP, .job = job->slot, .site = i, .group = s->group, .durable = true};
        ev.round = s->since == KEDGE_ROUND_NONE ? last : s->since;
        if (s->since != KEDGE_ROUND_NONE || (chosen && s->group != KEDGE_ROUND_NONE)) {
            kedge_host_step(h, &ev);
        }
        if (s->is_unstated) {
            ev.round = last;
            ev.durable = false;
            kedge_host_step(h, &ev);
        }
    }
}

/* Who may take part in the open round, and who is at work: on its task, or in an asynchronous job on that of
 * an earlier round, then also where none is open. */
static void tell_rows(const struct rounds *r)
{
    const struct kedge_job *job = r->walk.job;
    for (uint32_t i = 0; i < r->fold.site_count; i++) {
        const struct kedge_round_site *s = &job->sites[i];
        bool selected = s->task != KEDGE_ROUND_NONE;
        struct kedge_coord_event ev = {.type = KEDGE_EV_LOAD_ROW,
                                       .job = job->slot,
                                       .site = i,
                                       .round = selected ? s->task : job->round,
                                       .selected = selected};
        if (s->is_candidate || selected) {
            kedge_host_step(r->walk.h, &ev);
        }
    }
}

/* An update that counts in the open round. In an asynchronous job an update of an earlier round may
 * count in this one, but only if it is that of the task that the site still has: one that is in a
 * list already must not count twice. */
static int load_accepted(struct kedge_walk *w, uint64_t index)
{
    struct rounds *r = (struct rounds *)w;
    const struct kedge_st_update *u = &w->st->u.update;
    uint32_t site = kedge_host_site_find(w->h, w->tenant, &u->site);
    bool other =
        w->job->params.buffer > 0 && (site == KEDGE_COORD_NONE || w->job->sites[site].task != u->round);
    if (site == KEDGE_COORD_NONE || other) {
        return KEDGE_OK;
    }
    struct kedge_coord_event ev = {
        .type = KEDGE_EV_LOAD_ACCEPTED,
        .job = w->job->slot,
        .site = site,
        .round = u->round,
        .group = u->group,
        .leaf = index,
        .weight = u->samples,
        .cost = kedge_job_spec_charge(&w->job->spec, u->energy_quality != KEDGE_ENERGY_UNKNOWN,
                                      u->energy_joules, u->seconds),
        .kind = u->update_kind == KEDGE_TRAIN_PRETRAIN ? KEDGE_TASK_PRETRAIN : KEDGE_TASK_TRAIN};
    KEDGE_TRY(kedge_restore_envelope(w, index, &ev.envelope));
    KEDGE_TRY(kedge_round_fold(&r->fold, w->st, site));
    memcpy(ev.update.b, w->st->subject.b, sizeof ev.update.b);
    memcpy(ev.base.b, u->base.b, sizeof ev.base.b);
    kedge_host_step(w->h, &ev);
    return KEDGE_OK;
}

/* What `job show` tells of the open round. */
static int load_opened(struct kedge_walk *w, uint32_t draw)
{
    char key[KEDGE_IDEM_KEY_MAX + 1], again[16] = "";
    uint64_t index;
    if (draw > 0) {
        snprintf(again, sizeof again, "/%02" PRIu32, draw);
    }
    snprintf(key, sizeof key, "round-opened/%s/%08" PRIu32 "%s", w->job->spec.name.s, w->job->round, again);
    struct kedge_history_log *logs KEDGE_CLEANUP(kedge_mem_release) =
        kedge_mem_new(KEDGE_SPEC_TENANTS_MAX, sizeof *logs);
    KEDGE_TRY(logs ? kedge_ledger_find(w->h->main.ledger, kedge_view_str(key), &index) : KEDGE_E_NOMEM);
    KEDGE_TRY(kedge_walk_read(w, w->h->main.ledger, index, KEDGE_ST_ROUND_OPENED));
    const struct kedge_history_source source = kedge_restore_source(w->h, w->job, logs);
    return kedge_history_take_opened(&source, &w->st->u.round_opened,
                                     kedge_job_history(w->job, w->job->round, true), w->d);
}

/* Updates of earlier rounds are read as far back as staleness allows, and no farther: older ones
 * count no more. */
static int load_open_round(struct rounds *r)
{
    struct kedge_walk *w = &r->walk;
    const struct kedge_round_fold *at = &r->fold;
    struct kedge_coord_event ev = {.type = KEDGE_EV_LOAD_ROUND,
                                   .job = w->job->slot,
                                   .round = at->round,
                                   .draw = at->draw,
                                   .kind = at->kind};
    kedge_host_step(w->h, &ev);
    tell_rows(r);
    KEDGE_TRY(load_opened(w, at->draw));
    KEDGE_TRY(kedge_host_refusals_load(w->h, w->job, w->d));
    uint32_t stale = w->job->params.buffer > 0 ? w->job->params.staleness_max : 0;
    for (uint32_t i = at->round > stale ? at->round - stale : stale > 0; i <= at->round; i++) {
        KEDGE_TRY(kedge_walk_tenants(w, KEDGE_ST_UPDATE, i, load_accepted));
    }
    return KEDGE_OK;
}

static int tell(struct rounds *r)
{
    struct kedge_walk *w = &r->walk;
    KEDGE_TRY(kedge_job_tested_read(w->h, &w->job->spec.name, &w->job->tested, w->d));
    struct kedge_job *job = w->job;
    bool is_closed = r->fold.state.round != KEDGE_ROUND_NONE;
    job->at = r->fold.state;
    job->round = r->fold.is_open ? r->fold.round : is_closed ? job->at.round : 0;
    if (is_closed && job->params.buffer == 0) {
        tell_closed(w->h, job, &job->at);
    }
    tell_groups(r);
    int err =
        job->spec.learns_classes ? kedge_learnt_classes(w->h, &job->spec.name, job->classes, w->d) : KEDGE_OK;
    if (!err && !r->fold.is_open) {
        tell_rows(r);
    }
    return err || !r->fold.is_open ? err : load_open_round(r);
}

int kedge_restore_rounds(struct kedge_walk *w)
{
    struct rounds *r KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *r);
    if (!r) {
        return KEDGE_E_NOMEM;
    }
    r->walk = *w;
    begin(r);
    KEDGE_TRY(fold(r));
    KEDGE_TRY(decide(r));
    return tell(r);
}

struct kedge_history_source kedge_restore_source(const struct kedge_host *h, const struct kedge_job *job,
                                                 struct kedge_history_log *ret_logs)
{
    for (uint32_t i = 0; i < job->params.tenant_count; i++) {
        const struct kedge_tenant *t = &h->tenants[job->params.tenants[i]];
        ret_logs[i] = (struct kedge_history_log){t->id, t->salted, t->log.ledger, t->log.blobs};
    }
    return (struct kedge_history_source){.spec = &job->spec,
                                         .main = h->main.ledger,
                                         .tenants = ret_logs,
                                         .tenant_count = job->params.tenant_count};
}

int kedge_restore_envelope(struct kedge_walk *w, uint64_t index, struct kedge_digest *ret)
{
    struct kedge_buf entry;
    struct kedge_hash hash;
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    int err = kedge_ledger_get(w->ledger, index, &entry);
    kedge_sha256(kedge_buf_view(&entry), &hash);
    kedge_buf_deinit(&entry);
    memcpy(ret->b, hash.b, sizeof ret->b);
    return err;
}
