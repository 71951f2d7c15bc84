/* Restart: which group each site is in. */
#include "coordinator/daemon/restore/restore_groups.h"

#include <stdio.h>
#include <string.h>

#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/members.h"
#include "coordinator/daemon/rounds/rounds.h"

static uint32_t tenant_by_salt(const struct kedge_host *h, const struct kedge_hash *salted)
{
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        if (kedge_hash_eq(&h->tenants[i].salted, salted)) {
            return i;
        }
    }
    return KEDGE_COORD_NONE;
}

int kedge_restore_rows(struct kedge_walk *w, const struct kedge_hash *salted, const struct kedge_hash *digest,
                       kedge_restore_row *row)
{
    struct kedge_host *h = w->h;
    struct kedge_input_list list;
    struct kedge_buf text;
    uint32_t tenant = tenant_by_salt(h, salted);
    if (tenant == KEDGE_COORD_NONE) {
        return kedge_diag_set(w->d, KEDGE_E_CORRUPT, "the main chain names a tenant that has no folder");
    }
    kedge_buf_init(&text, KEDGE_INPUT_LIST_MAX);
    int err = kedge_blobs_read(h->tenants[tenant].log.blobs, digest, &text, w->d);
    err = err ? err : kedge_input_list_decode(kedge_buf_view(&text), &list);
    bool is_read = !err;
    for (uint32_t i = 0; !err && i < list.count; i++) {
        uint32_t site = kedge_host_site_find(h, tenant, &list.rows[i].site);
        if (site != KEDGE_COORD_NONE) {
            err = row(w, site, &list.rows[i]);
        }
    }
    if (is_read) {
        kedge_input_list_deinit(&list);
    }
    kedge_buf_deinit(&text);
    return err;
}

/* Of one site in the order of their rounds: the last one is in force. */
static int load_assigned(struct kedge_walk *w, uint64_t index)
{
    (void)index;
    const struct kedge_st_group_assigned *a = &w->st->u.group_assigned;
    uint32_t site = kedge_host_site_find(w->h, w->tenant, &a->site);
    if (site == KEDGE_COORD_NONE) {
        return KEDGE_OK;
    }
    w->job->pretrain[site] = w->job->grouped_by[site] = a->update;
    struct kedge_coord_event ev = {.type = KEDGE_EV_LOAD_GROUP,
                                   .job = w->job->slot,
                                   .site = site,
                                   .round = a->round,
                                   .group = a->group,
                                   .durable = true};
    kedge_host_step(w->h, &ev);
    return KEDGE_OK;
}

/* A group that the last close gave and no statement says yet. Who was left out of it for an update that
 * points nowhere has group 0, if it had one before; the statement rests on that update all the same. */
static int row_grouped(struct kedge_walk *w, uint32_t site, const struct kedge_input_row *row)
{
    const struct kedge_coord_row *now = kedge_coord_row(w->h->coord, w->job->slot, site);
    bool is_stated = now && now->group_durable && now->group_round == w->job->round;
    bool has_one = now && now->group != KEDGE_COORD_NONE;
    bool left_out = row->use == KEDGE_USE_REFUSED && !kedge_hash_is_zero(&row->leaf_hash) && has_one;
    if ((row->use != KEDGE_USE_GROUPED && !left_out) || is_stated) {
        return KEDGE_OK;
    }
    w->job->pretrain[site] = row->update;
    struct kedge_coord_event ev = {.type = KEDGE_EV_LOAD_GROUP,
                                   .job = w->job->slot,
                                   .site = site,
                                   .round = w->job->round,
                                   .group = left_out ? 0 : row->group,
                                   .durable = false};
    kedge_host_step(w->h, &ev);
    return KEDGE_OK;
}

static int load_grouped(struct kedge_walk *w, uint64_t index)
{
    int err = KEDGE_OK;
    (void)index;
    struct kedge_st_aggregate a = w->st->u.aggregate;
    for (uint32_t i = 0; i < a.tenant_count && !err; i++) {
        err = kedge_restore_rows(w, &a.tenants[i].id, &a.tenants[i].list, row_grouped);
    }
    return err;
}

/* The directions that the groups had before the last round. */
static int directions_before(struct kedge_walk *w, struct kedge_hash ret[KEDGE_GROUPS_MAX])
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    uint64_t index;
    snprintf(key, sizeof key, "step/%s/%08u", w->job->spec.name.s, w->job->round - 1);
    int err = kedge_ledger_find(w->h->main.ledger, kedge_view_str(key), &index);
    err = err ? err : kedge_walk_read(w, w->h->main.ledger, index, KEDGE_ST_STEP);
    for (uint32_t g = 0; !err && g < w->st->u.step.group_count; g++) {
        ret[g] = w->st->u.step.groups[g].direction;
    }
    return err;
}

/* Sites that took no part when the groups were made anew: found again, for no list has them. */
static int regroup_others(struct kedge_walk *w)
{
    struct kedge_host *h = w->h;
    struct kedge_job *job = w->job;
    const struct kedge_close_host files = kedge_host_close_files(h);
    struct kedge_hash former[KEDGE_GROUPS_MAX] = {{{0}}};
    int err = directions_before(w, former);
    for (uint32_t site = 0; site < h->site_count && !err; site++) {
        const struct kedge_coord_row *row = kedge_coord_row(h->coord, job->slot, site);
        if (!row || row->group == KEDGE_COORD_NONE || !row->group_durable || row->group_round == job->round) {
            continue;
        }
        struct kedge_coord_event ev = {
            .type = KEDGE_EV_LOAD_GROUP, .job = job->slot, .site = site, .round = job->round};
        err = kedge_close_nearest(&files, &job->layout, site, &job->pretrain[site], &former[row->group],
                                  job->directions, job->model_count, &ev.group, w->d);
        if (!err) {
            kedge_host_step(h, &ev);
        }
    }
    return err;
}

/* Sites whose group was cut or has become part of another one: no list has them. */
static int reshape_groups(struct kedge_walk *w)
{
    struct kedge_host *h = w->h;
    const struct kedge_job *job = w->job;
    const struct kedge_close_host files = kedge_host_close_files(h);
    int err = KEDGE_OK;
    for (uint32_t site = 0; site < h->site_count && !err; site++) {
        const struct kedge_coord_row *row = kedge_coord_row(h->coord, job->slot, site);
        if (!row || row->group == KEDGE_COORD_NONE || !row->group_durable) {
            continue;
        }
        const uint32_t from = row->group;
        struct kedge_coord_event ev = {
            .type = KEDGE_EV_LOAD_GROUP, .job = job->slot, .site = site, .round = job->round, .group = from};
        if (job->merged_into[from]) {
            ev.group = job->merged_into[from] - 1;
        }
        for (uint32_t to = 0; to < job->model_count && !err; to++) {
            if (job->split_of[to] == from + 1) {
                err = kedge_close_cut(&files, &job->layout, site, &job->pretrain[site], job->directions, from,
                                      to, &ev.group, w->d);
            }
        }
        if (!err && ev.group != from) {
            kedge_host_step(h, &ev);
        }
    }
    return err;
}

/* A site in the part that the last close cut off its group, and no statement says so yet. */
static int row_split(struct kedge_walk *w, uint32_t site, const struct kedge_input_row *row)
{
    const struct kedge_coord_row *now = kedge_coord_row(w->h->coord, w->job->slot, site);
    bool is_stated = now && now->group_durable && now->group_round == w->job->round;
    if (row->to == 0 || is_stated) {
        return KEDGE_OK;
    }
    w->job->pretrain[site] = row->update;
    struct kedge_coord_event ev = {.type = KEDGE_EV_LOAD_GROUP,
                                   .job = w->job->slot,
                                   .site = site,
                                   .round = w->job->round,
                                   .group = row->to,
                                   .durable = false};
    kedge_host_step(w->h, &ev);
    return KEDGE_OK;
}

static int load_split(struct kedge_walk *w, uint64_t index)
{
    int err = KEDGE_OK;
    (void)index;
    struct kedge_st_aggregate a = w->st->u.aggregate;
    for (uint32_t i = 0; i < a.tenant_count && !err; i++) {
        err = kedge_restore_rows(w, &a.tenants[i].id, &a.tenants[i].list, row_split);
    }
    return err;
}

int kedge_restore_stated(struct kedge_walk *w)
{
    return kedge_walk_tenants(w, KEDGE_ST_GROUP_ASSIGNED, KEDGE_WALK_ALL, load_assigned);
}

int kedge_restore_groups(struct kedge_walk *w, enum kedge_task_kind kind)
{
    struct kedge_job *job = w->job;
    int err = kedge_restore_stated(w);
    if (!err && kedge_job_spec_splits(&job->spec)) {
        bool is_cut = false;
        for (uint32_t g = 0; g < job->model_count; g++) {
            is_cut = is_cut || job->split_of[g] > 0;
        }
        return !is_cut ? KEDGE_OK
                       : kedge_walk_all(w, w->h->main.ledger, KEDGE_ST_AGGREGATE, job->spec.name.s,
                                        job->round, load_split);
    }
    if (job->kept) { /* nobody was given another one */
        return err;
    }
    if (!err && kind == KEDGE_TASK_PRETRAIN) {
        err = kedge_walk_all(w, w->h->main.ledger, KEDGE_ST_AGGREGATE, job->spec.name.s, job->round,
                             load_grouped);
    }
    if (!err && kind != KEDGE_TASK_PRETRAIN) {
        return reshape_groups(w);
    }
    return err || job->round == 0 ? err : regroup_others(w);
}
