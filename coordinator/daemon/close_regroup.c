/* Closing a round in which groups are made anew. Sites that took part are where the clustering puts them; all
 * others that have a group go to the nearest of the new ones. */
#include <string.h>

#include "chain/compute/regroup.h"
#include "common/base/mem.h"
#include "coordinator/daemon/close.h"
#include "coordinator/daemon/host.h"

int kedge_host_regrouped(struct kedge_host *h, const struct kedge_job *job, uint32_t tenant,
                         const struct kedge_hash *update, const struct kedge_hash *former,
                         const struct kedge_hash *directions, uint32_t groups, uint32_t *ret_group,
                         struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *new_ones[KEDGE_GROUPS_MAX];
    struct kedge_blob_at at;
    double cosine;
    struct kedge_blobs *blobs = h->tenants[tenant].log.blobs;
    bool is_gone = kedge_blobs_find(blobs, update, NULL) == KEDGE_E_NOT_FOUND;
    int err = kedge_blobs_at(is_gone ? h->main.blobs : blobs, is_gone ? former : update, path, &at);
    for (uint32_t g = 0; g < groups && !err; g++) {
        new_ones[g] = paths[g];
        err = kedge_blobs_path(h->main.blobs, &directions[g], paths[g]);
    }
    err = err ? err : kedge_compute_nearest(&job->layout, &at, new_ones, groups, ret_group, &cosine, d);
    if (err == KEDGE_E_NOT_FOUND) { /* points nowhere */
        *ret_group = 0;
        err = KEDGE_OK;
    }
    return err;
}

/* What the round began with. */
struct before {
    uint32_t groups;
    struct kedge_hash models[KEDGE_GROUPS_MAX], directions[KEDGE_GROUPS_MAX];
    uint32_t *then, *group, *tenant; /* by input … */
    uint64_t *weight;                /* … what its site counts in its group's model */
};

static int model_of_group(struct kedge_host *h, struct close_work *w, const struct before *b, uint32_t group)
{
    struct kedge_round_result *r = w->result;
    struct kedge_diag *d = &w->models.diag;
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX], initial[KEDGE_PATH_MAX];
    const char *former[KEDGE_GROUPS_MAX];
    struct kedge_blob_writer *writer;
    struct kedge_sink sink;
    int err = kedge_blobs_path(h->main.blobs, &w->job->initial_model, initial);
    for (uint32_t g = 0; g < b->groups && !err; g++) {
        former[g] = paths[g];
        err = kedge_blobs_path(h->main.blobs, &b->models[g], paths[g]);
    }
    err = err ? err
              : kedge_compute_regroup_weigh(b->tenant, b->then, b->group, w->input_count, b->groups, group,
                                            b->weight);
    err = err ? err : kedgei_close_blob_begin(h, w->job->model_len, &writer, &sink, d);
    if (!err) {
        err = kedge_compute_regrouped(&w->job->layout, former, b->groups, initial, b->then, b->group,
                                      b->weight, w->input_count, group, sink, d);
        err = kedgei_close_blob_end(writer, err, &r->aggregate[group], d);
    }
    r->before[group] = group < b->groups ? b->models[group] : w->job->initial_model;
    r->stepped[group] = r->after[group] = r->aggregate[group];
    if (group >= b->groups) {
        memset(&r->state_before[group], 0, sizeof r->state_before[group]);
    }
    memset(&r->state_after[group], 0, sizeof r->state_after[group]);
    return err;
}

static void take_groups(struct close_work *w, const struct before *b)
{
    struct kedge_round_result *r = w->result;
    for (size_t i = 0; i < w->input_count; i++) {
        struct close_input *in = &w->inputs[i];
        in->group = b->group[i];
        in->left_out = in->group >= r->groups; /* points nowhere */
        if (!in->left_out) {
            r->members[in->group]++;
            r->trained[in->group] = true;
            r->assigned_sites[r->assigned_count] = in->site;
            r->assigned_groups[r->assigned_count++] = in->group;
        }
    }
}

/* What the lists say of weights, once every group is weighed. */
static void take_weights(struct close_work *w, const struct before *b)
{
    for (size_t i = 0; i < w->input_count; i++) {
        w->inputs[i].weight = w->inputs[i].left_out ? 0 : b->weight[i];
    }
}

static void assign(struct kedge_round_result *r, uint32_t site, uint32_t group)
{
    r->assigned_sites[r->assigned_count] = site;
    r->assigned_groups[r->assigned_count++] = group;
}

static int move_others(struct kedge_host *h, struct close_work *w, const struct before *b)
{
    struct kedge_round_result *r = w->result;
    int err = KEDGE_OK;
    for (size_t i = 0; i < w->other_count && !err; i++) {
        const struct close_other *o = &w->others[i];
        uint32_t group = 0;
        err = kedge_host_regrouped(h, w->job, h->sites[o->site].tenant, &o->update, &b->directions[o->former],
                                   r->directions, r->groups, &group, &w->models.diag);
        assign(r, o->site, group);
    }
    for (size_t i = 0; i < w->input_count && !err; i++) {
        if (w->inputs[i].left_out && w->inputs[i].former != KEDGE_COORD_NONE) {
            assign(r, w->inputs[i].site, 0);
        }
    }
    return err;
}

int kedgei_close_regroup(struct kedge_host *h, struct close_work *w)
{
    struct kedge_round_result *r = w->result;
    size_t n = w->input_count, all = n + w->other_count;
    struct before b = {.groups = r->groups};
    struct kedge_blob_at *files = kedge_mem_new(n, sizeof *files);
    b.then = kedge_mem_new(n, sizeof *b.then);
    b.group = kedge_mem_new(n, sizeof *b.group);
    b.tenant = kedge_mem_new(n, sizeof *b.tenant);
    b.weight = kedge_mem_new(n, sizeof *b.weight);
    const struct kedge_compute_sites sites = {.files = files, .tenant = b.tenant, .count = n};
    r->assigned_sites = kedge_mem_new(all, sizeof *r->assigned_sites);
    r->assigned_groups = kedge_mem_new(all, sizeof *r->assigned_groups);
    memcpy(b.models, r->before, sizeof b.models);
    memcpy(b.directions, r->directions, sizeof b.directions);
    memset(r->members, 0, sizeof r->members);
    memset(r->trained, 0, sizeof r->trained);
    bool has_memory =
        files && b.then && b.group && b.tenant && b.weight && r->assigned_sites && r->assigned_groups;
    int err = has_memory ? KEDGE_OK : KEDGE_E_NOMEM;
    for (size_t i = 0; !err && i < n; i++) {
        files[i] = w->inputs[i].file;
        b.then[i] = w->inputs[i].former;
        b.tenant[i] = kedgei_close_place(w->job, w->inputs[i].tenant);
    }
    err = err ? err
              : kedge_compute_regroup(&w->job->layout, &sites, &w->job->spec, r->round, b.then, b.group,
                                      &r->groups, &w->models.diag);
    if (!err) {
        take_groups(w, &b);
    }
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        err = model_of_group(h, w, &b, g);
        err = err ? err : kedgei_close_direction(h, w, g);
    }
    if (!err) {
        take_weights(w, &b);
    }
    err = err ? err : move_others(h, w, &b);
    kedge_mem_free(files);
    kedge_mem_free(b.then);
    kedge_mem_free(b.group);
    kedge_mem_free(b.tenant);
    kedge_mem_free(b.weight);
    return err;
}
