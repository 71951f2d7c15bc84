/* Which group a newcomer or a site whose data have shifted belongs to, and the statement that gives
 * a site its group.
 *
 * Finding the group reads models and the site's update, so a worker does it. The statement is
 * signed on the loop when it is handed over: the statement key may change in between, and what is
 * signed by a key that is no longer in force would be refused by every auditor. While the key
 * changes, finished work waits in a list. */
#include "coordinator/daemon/rounds/rounds.h"

#include <string.h>

#include "chain/statement/entry_index.h"
#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"
#include "round/close/close.h"

struct group_work {
    struct kedge_work work;
    struct kedge_job *job;
    uint32_t site, group, round, groups;
    bool assign; /* else append, for this reason */
    enum kedge_group_how how;
    struct kedge_hash update;
    double similarity;
    struct kedge_buf envelope, key;
    struct group_work *next; /* among those that wait for the statement key */
    int err;
    struct kedge_diag diag;
};

static int sign_assigned(struct kedge_host *h, struct group_work *w)
{
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    KEDGE_TRY_MEM(st);
    const struct kedge_site_entry *s = &h->sites[w->site];
    st->kind = KEDGE_ST_GROUP_ASSIGNED;
    st->u.group_assigned = (struct kedge_st_group_assigned){.tenant = h->tenants[s->tenant].id,
                                                            .site = s->id,
                                                            .job = w->job->spec.name,
                                                            .round = w->round,
                                                            .group = w->group,
                                                            .how = w->how,
                                                            .similarity = w->similarity,
                                                            .update = w->update};
    kedge_statement_key(st->kind, &st->u, &w->key);
    return w->key.err ? w->key.err : kedge_statement_sign(st, &h->statement_key, &w->envelope, &w->diag);
}

/* Both ways compute the similarity: to find the nearest of all groups, or, where the close has said
 * which group it is, to state how near the site is to that one. */
static void group_run(struct kedge_host *h, struct kedge_work *work)
{
    struct group_work *w = (struct group_work *)work;
    const struct kedge_close_host files = kedge_host_close_files(h);
    const struct kedge_place place = {.site = w->site,
                                      .update = w->update,
                                      .base = w->job->sites[w->site].last_base,
                                      .initial = w->job->initial_model,
                                      .first = w->assign ? 0 : w->group,
                                      .count = w->assign ? w->groups : 1};
    uint32_t group = w->group;
    w->err = kedge_close_place(&files, &w->job->spec, &w->job->layout, &w->job->at, &place, &group,
                               &w->similarity, &w->diag);
    w->group = w->assign ? group : w->group;
}

/* An error of the disk ends the process before the core hears of it: it would ask again, and the
 * answer would be as unknown. */
static void finish(struct kedge_host *h, struct group_work *w)
{
    struct kedge_coord_event ev = {.type = w->assign ? KEDGE_EV_ASSIGNED : KEDGE_EV_ASSIGN_APPENDED,
                                   .tenant = h->sites[w->site].tenant,
                                   .job = w->job->slot,
                                   .site = w->site,
                                   .round = w->round,
                                   .group = w->group,
                                   .err = w->err};
    if (w->err) {
        const char *why = w->diag.text[0] ? w->diag.text : kedge_strerror(w->err);
        kedge_log(KEDGE_LOG_WARN, "group", "job=%s site=%s: %s", w->job->spec.name.s, h->sites[w->site].id.s,
                  why);
        kedge_host_job_fault(w->job, "the group of a site", "group of %s/%s in round %u: %s",
                             h->tenants[ev.tenant].id.s, h->sites[w->site].id.s, w->round, why);
    }
    if (!w->err && !w->assign) {
        w->job->sites[w->site].by = w->update;
    }
    if (w->err == KEDGE_E_IO || kedge_err_class(w->err) == KEDGE_CLASS_CORRUPT) {
        kedge_host_fail(h, w->err, "a tenant's ledger");
    }
    kedge_buf_deinit(&w->envelope);
    kedge_buf_deinit(&w->key);
    kedge_mem_free(w);
    if (!h->stop) {
        kedge_host_step(h, &ev);
    }
}

struct assigned_item {
    struct kedge_item item;
    struct kedge_host *h;
    struct group_work *work;
};

static void assigned_handle(struct kedge_host *h, struct kedge_item *item)
{
    struct assigned_item *a = (struct assigned_item *)item;
    struct group_work *w = a->work;
    kedge_mem_free(a);
    h->authority.assigning--;
    finish(h, w);
}

static void assigned_done(void *arg, const struct kedge_commit_result *result)
{
    struct assigned_item *a = arg;
    kedge_host_log_commit(result);
    const struct kedge_site_entry *s = &a->h->sites[a->work->site];
    if (result->diag) {
        (void)kedge_diag_set(&a->work->diag, result->err, "%s", result->diag->text);
    }
    a->work->err = kedge_host_commit_err(a->h->tenants[s->tenant].log.ledger, result);
    kedge_host_post(a->h, &a->item);
}

/* Signs and hands over, with the statement key that the main chain has in force. The update's
 * digest is a reference of the entry: the file that a group rests on is not swept as long as the
 * statement stands. */
static void append(struct kedge_host *h, struct group_work *w)
{
    w->err = sign_assigned(h, w);
    if (w->err) {
        finish(h, w);
        return;
    }
    const struct kedge_site_entry *s = &h->sites[w->site];
    struct assigned_item *a = kedge_mem_new(1, sizeof *a);
    KEDGE_ASSERT(a);
    *a = (struct assigned_item){{assigned_handle}, h, w};
    struct kedge_ledger_append append = {.entry = kedge_buf_view(&w->envelope),
                                         .idem_key = kedge_buf_view(&w->key),
                                         .refs = &w->update,
                                         .ref_count = !kedge_hash_is_zero(&w->update)};
    h->authority.assigning++;
    int err = kedge_committer_submit(h->tenants[s->tenant].committer, &append, 1, assigned_done, a);
    if (err) { /* else `w` is the committer's, which may be done with it already */
        w->err = err;
        kedge_host_post(h, &a->item);
    }
}

/* Work that is done while the statement key changes waits here, unsigned. */
static void group_done(struct kedge_host *h, struct kedge_item *item)
{
    struct group_work *w = (struct group_work *)item;
    if (w->assign || w->err) {
        finish(h, w);
    } else if (kedge_host_authority_holds(h)) {
        w->next = h->authority.assigned;
        h->authority.assigned = w;
    } else {
        append(h, w);
    }
}

void kedge_host_assigned_go_on(struct kedge_host *h)
{
    struct group_work *w = h->authority.assigned;
    h->authority.assigned = NULL;
    while (w) { /* as many as there were */
        struct group_work *next = w->next;
        append(h, w);
        w = next;
    }
}

/* Why its last close gave a site this group: it was cut off another one, others became part of it, or the
 * close made all groups. One close may cut some and join others. */
static enum kedge_group_how how_of_close(const struct kedge_job *job, uint32_t round, uint32_t group)
{
    bool is_joined = false;
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        is_joined = is_joined || job->at.group[g].merged_into == group + 1;
    }
    return job->at.group[group].split_of ? KEDGE_GROUP_SPLIT
           : is_joined                   ? KEDGE_GROUP_MERGE
           : round == 0                  ? KEDGE_GROUP_COLD_START
                                         : KEDGE_GROUP_RECLUSTER;
}

/* The reason is stated because an auditor checks each kind by another rule: a newcomer's group
 * follows from its own update, a close's from the whole round. */
static enum kedge_group_how how_of(const struct kedge_job *job, const struct kedge_coord_effect *fx,
                                   uint32_t group)
{
    switch (fx->why) {
    case KEDGE_WHY_NEWCOMER:
        return KEDGE_GROUP_NEWCOMER;
    case KEDGE_WHY_MIGRATION:
        return KEDGE_GROUP_MIGRATION;
    case KEDGE_WHY_NEAREST:
        return KEDGE_GROUP_NEAREST;
    case KEDGE_WHY_CLOSE:
        break;
    }
    return how_of_close(job, fx->round, group);
}

/* The update that the group rests on: where no close gives it, the pre-training of the open round. */
static struct kedge_hash update_of(const struct kedge_job *job, const struct kedge_coord_row *row,
                                   const struct kedge_coord_effect *fx, bool assign)
{
    const struct kedge_round_site *site = &job->sites[fx->site];
    struct kedge_hash pretrain;
    memcpy(pretrain.b, row->pretrain.update.b, sizeof pretrain.b);
    bool of_close = !assign && fx->why == KEDGE_WHY_CLOSE;
    return kedge_job_spec_grouped_by(&job->spec) == KEDGE_GROUPED_BY_TASK ? site->last_update
           : of_close                                                     ? site->by
                                                                          : pretrain;
}

static void start(struct kedge_host *h, struct kedge_job *job, const struct kedge_coord_effect *fx,
                  bool assign)
{
    struct kedge_coord_job_view view;
    struct group_work *w = kedge_mem_new(1, sizeof *w);
    bool known = kedge_coord_job(h->coord, job->slot, &view);
    const struct kedge_coord_row *row = kedge_coord_row(h->coord, job->slot, fx->site);
    KEDGE_ASSERT(w && known && row && view.model_count >= 1);
    const uint32_t now = row->group == KEDGE_COORD_NONE ? 0 : row->group;
    const uint32_t group = assign ? now : fx->group; /* the effect has one only where it is known */
    KEDGE_ASSERT(group < KEDGE_GROUPS_MAX);
    *w = (struct group_work){.work = {.item = {group_done}, .run = group_run},
                             .job = job,
                             .site = fx->site,
                             .group = group,
                             .round = fx->round,
                             .groups = view.model_count,
                             .assign = assign,
                             .how = how_of(job, fx, group),
                             .update = update_of(job, row, fx, assign)};
    kedge_buf_init(&w->envelope, KEDGE_ENTRY_MAX);
    kedge_buf_init(&w->key, KEDGE_IDEM_KEY_MAX);
    kedge_host_work_own(h, &w->work);
}

void kedge_host_assign(struct kedge_host *h, struct kedge_job *job, const struct kedge_coord_effect *fx)
{
    start(h, job, fx, true);
}

void kedge_host_append_assigned(struct kedge_host *h, struct kedge_job *job,
                                const struct kedge_coord_effect *fx)
{
    start(h, job, fx, false);
}
