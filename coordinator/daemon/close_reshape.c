/* Closing a round of training in which groups become one or are cut in two: numbers, models, directions, and
 * who moves. */
#include <string.h>

#include "chain/compute/meet.h"
#include "chain/compute/reshape.h"
#include "common/base/mem.h"
#include "coordinator/daemon/close.h"
#include "coordinator/daemon/host.h"
#include "grouping/flexcfl.h"

void kedge_host_merged_directions(struct kedge_hash *directions, const uint32_t *merged_into)
{
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        if (merged_into[g]) {
            directions[g] = directions[merged_into[g] - 1];
        }
    }
}

int kedge_host_cut(struct kedge_host *h, const struct kedge_job *job, uint32_t tenant,
                   const struct kedge_hash *update, const struct kedge_hash *directions, uint32_t from,
                   uint32_t to, uint32_t *ret_group, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], paths[2][KEDGE_PATH_MAX];
    const char *const both[2] = {paths[0], paths[1]};
    struct kedge_blobs *blobs = h->tenants[tenant].log.blobs;
    struct kedge_blob_at at;
    uint32_t nearest = 0;
    double cosine;
    *ret_group = from;
    if (kedge_blobs_find(blobs, update, NULL) == KEDGE_E_NOT_FOUND) {
        return KEDGE_OK;
    }
    int err = kedge_blobs_at(blobs, update, path, &at);
    err = err ? err : kedge_blobs_path(h->main.blobs, &directions[from], paths[0]);
    err = err ? err : kedge_blobs_path(h->main.blobs, &directions[to], paths[1]);
    err = err ? err : kedge_compute_nearest(&job->layout, &at, both, 2, &nearest, &cosine, d);
    if (err == KEDGE_E_NOT_FOUND) { /* points nowhere */
        err = KEDGE_OK;
    }
    *ret_group = !err && nearest == 1 ? to : from;
    return err;
}

static int begin_moves(struct close_work *w)
{
    struct kedge_round_result *r = w->result;
    r->assigned_sites = kedge_mem_new(w->other_count, sizeof *r->assigned_sites);
    r->assigned_groups = kedge_mem_new(w->other_count, sizeof *r->assigned_groups);
    return r->assigned_sites && r->assigned_groups ? KEDGE_OK : KEDGE_E_NOMEM;
}

static void move(struct kedge_round_result *r, uint32_t site, uint32_t group)
{
    r->assigned_sites[r->assigned_count] = site;
    r->assigned_groups[r->assigned_count++] = group;
}

/* ---- several become one ---- */

static int join_models(struct kedge_host *h, struct close_work *w, const uint32_t *into,
                       const uint64_t *sites, uint32_t group)
{
    struct kedge_round_result *r = w->result;
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *models[KEDGE_GROUPS_MAX];
    uint64_t weight[KEDGE_GROUPS_MAX], sum = 0;
    struct kedge_blob_writer *writer;
    struct kedge_sink sink;
    size_t n = 0;
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        if (into[g] == group) {
            models[n] = paths[n];
            sum += weight[n] = sites[g];
            err = kedge_blobs_path(h->main.blobs, &r->stepped[g], paths[n++]);
        }
    }
    for (size_t i = 0; i < n && sum == 0; i++) { /* nobody is left in any of them */
        weight[i] = 1;
    }
    err = err ? err : kedgei_close_blob_begin(h, w->job->model_len, &writer, &sink, &w->models.diag);
    if (!err) {
        err = kedge_compute_blend(&w->job->layout, models, weight, n, sink, &w->models.diag);
        err = kedgei_close_blob_end(writer, err, &r->after[group], &w->models.diag);
    }
    return err;
}

static int join(struct kedge_host *h, struct close_work *w, const uint32_t *into)
{
    struct kedge_round_result *r = w->result;
    uint64_t sites[KEDGE_GROUPS_MAX] = {0};
    int err = begin_moves(w);
    for (size_t i = 0; i < w->other_count; i++) {
        sites[w->others[i].former]++;
    }
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        r->joined[into[g]] = r->joined[into[g]] || into[g] != g;
        r->joined[g] = r->joined[g] || into[g] != g;
    }
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        if (r->joined[g] && into[g] == g) {
            err = join_models(h, w, into, sites, g);
        }
    }
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        uint32_t with = r->merged_into[g] ? into[r->merged_into[g] - 1] : into[g];
        if (with != g) {
            r->merged_into[g] = with + 1;
            r->after[g] = r->after[with];
        }
    }
    for (size_t i = 0; i < w->other_count && !err; i++) {
        const struct close_other *o = &w->others[i];
        if (into[o->former] != o->former) {
            move(r, o->site, into[o->former]);
        }
    }
    return err;
}

/* ---- one becomes two ---- */

/* The direction of the updates of one part. */
static int direct_part(struct kedge_host *h, struct close_work *w, const struct close_signs *s,
                       const uint32_t *part, uint32_t of, uint32_t group)
{
    struct kedge_blob_at *files = kedge_mem_new(s->count, sizeof *files);
    uint32_t *tenant = kedge_mem_new(s->count, sizeof *tenant);
    struct kedge_compute_sites members = {.files = files, .tenant = tenant};
    struct kedge_blob_writer *writer;
    struct kedge_sink sink;
    for (size_t i = 0; files && tenant && i < s->count; i++) {
        if (part[i] == of) {
            tenant[members.count] = s->tenant[i];
            files[members.count++] = s->files[i];
        }
    }
    int err = files && tenant
                  ? kedgei_close_blob_begin(h, w->job->update_len, &writer, &sink, &w->models.diag)
                  : KEDGE_E_NOMEM;
    if (!err) {
        err = kedge_compute_direction(&w->job->layout, &members, &w->job->spec, sink, &w->models.diag);
        err = kedgei_close_blob_end(writer, err, &w->result->directions[group], &w->models.diag);
    }
    kedge_mem_free(files);
    kedge_mem_free(tenant);
    return err;
}

/* A number that no group has: of one that became part of another, or the next. */
static uint32_t free_number(const struct kedge_round_result *r)
{
    uint32_t g = 0;
    while (g < r->groups && !r->merged_into[g]) {
        g++;
    }
    return g;
}

static int cut(struct kedge_host *h, struct close_work *w, const struct close_signs *s, const uint32_t *part,
               uint32_t from)
{
    struct kedge_round_result *r = w->result;
    uint32_t to = free_number(r);
    r->whole[from] = r->directions[from];
    memset(&r->made[from], 0, sizeof r->made[from]);
    r->before[to] = r->before[from];
    r->aggregate[to] = r->aggregate[from];
    r->stepped[to] = r->stepped[from];
    r->after[to] = r->after[from];
    r->state_before[to] = r->state_before[from];
    r->state_after[to] = r->state_after[from];
    r->made[to] = r->made[from];
    r->split_of[to] = from + 1;
    r->merged_into[to] = 0;
    r->groups = to + 1 > r->groups ? to + 1 : r->groups;
    int err = direct_part(h, w, s, part, 0, from);
    err = err ? err : direct_part(h, w, s, part, 1, to);
    for (size_t i = 0; i < w->other_count && !err; i++) {
        const struct close_other *o = &w->others[i];
        uint32_t group = from;
        if (o->former == from) {
            err = kedge_host_cut(h, w->job, h->sites[o->site].tenant, &o->update, r->directions, from, to,
                                 &group, &w->models.diag);
        }
        if (group != from) {
            move(r, o->site, group);
        }
    }
    return err;
}

static int cut_groups(struct kedge_host *h, struct close_work *w, const bool *selected, struct close_signs *s)
{
    struct kedge_round_result *r = w->result;
    const uint32_t groups = r->groups, most = kedge_job_spec_groups_most(&w->job->spec);
    uint32_t *part = kedge_mem_new(w->other_count, sizeof *part);
    int err = part ? begin_moves(w) : KEDGE_E_NOMEM;
    for (uint32_t g = 0; g < groups && !err; g++) {
        bool is_cut = false, has_room = free_number(r) < most && !r->merged_into[g] && !r->split_of[g];
        err = has_room ? kedgei_close_signs(h, w, selected, g, s) : KEDGE_OK;
        const struct kedge_compute_sites sites = {s->files, s->tenant, s->count};
        if (!err && has_room) {
            err = kedge_compute_cut(&w->job->layout, &w->job->spec, &sites, part, &is_cut, &w->models.diag);
        }
        err = !err && is_cut ? cut(h, w, s, part, g) : err;
    }
    kedge_mem_free(part);
    return err;
}

int kedgei_close_reshape(struct kedge_host *h, struct close_work *w, const bool *selected,
                         struct close_signs *s)
{
    struct kedge_round_result *r = w->result;
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *directions[KEDGE_GROUPS_MAX];
    uint32_t into[KEDGE_GROUPS_MAX];
    bool any = false;
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        directions[g] = r->merged_into[g] ? NULL : paths[g];
        err = kedge_blobs_path(h->main.blobs, &r->directions[g], paths[g]);
    }
    err = err ? err
              : kedge_compute_merges(&w->job->layout, &w->job->spec, directions, r->groups, into, &any,
                                     &w->models.diag);
    if (!err && any) {
        return join(h, w, into);
    }
    return err || w->job->spec.options.silhouette >= 1 ? err : cut_groups(h, w, selected, s);
}
