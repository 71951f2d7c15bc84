/* Closing a round: from the accepted inputs to models, aggregates and input lists. Runs over a snapshot, on
 * two workers: one computes the models, one writes the lists. Groups that must be found first, and weights
 * that follow from statements or files, are found by the one, which then does both. */
#include "coordinator/daemon/close.h"

#include <stdio.h>
#include <string.h>

#include "chain/compute/compute.h"
#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/host.h"
#include "grouping/flexcfl.h"

void kedge_round_result_free(struct kedge_round_result *r)
{
    if (r) {
        kedge_mem_free(r->aggregates);
        kedge_mem_free(r->assigned_sites);
        kedge_mem_free(r->assigned_groups);
        kedge_mem_free(r);
    }
}

static int mix(struct kedge_host *h, struct close_work *w)
{
    struct kedge_round_result *r = w->result;
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *models[KEDGE_GROUPS_MAX];
    struct kedge_blob_writer *writers[KEDGE_GROUPS_MAX] = {NULL};
    struct kedge_sink sinks[KEDGE_GROUPS_MAX];
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        models[g] = paths[g];
        err = kedge_blobs_path(h->main.blobs, &r->stepped[g], paths[g]);
        if (!err && r->trained[g]) {
            err = kedgei_close_blob_begin(h, w->job->model_len, &writers[g], &sinks[g], &w->models.diag);
        }
    }
    if (!err) {
        err = kedge_compute_mixing(&w->job->layout, models, r->trained, r->groups, w->job->spec.mixing, sinks,
                                   &w->models.diag);
    }
    for (uint32_t g = 0; g < r->groups; g++) {
        if (writers[g]) {
            err = kedgei_close_blob_end(writers[g], err, &r->after[g], &w->models.diag);
        }
    }
    return err;
}

static int train_round(struct kedge_host *h, struct close_work *w)
{
    struct kedge_round_result *r = w->result;
    uint32_t trained = 0;
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        err = kedgei_close_group(h, w, g, false);
        trained += r->trained[g];
    }
    r->mixed = trained >= 2 && w->job->spec.mixing > 0;
    err = !err && r->mixed ? mix(h, w) : err;
    return err ? err : kedgei_close_edges(h, w);
}

int kedgei_close_direction(struct kedge_host *h, struct close_work *w, uint32_t group)
{
    struct kedge_blob_at *files = kedge_mem_new(w->input_count, sizeof *files);
    uint32_t *tenant = kedge_mem_new(w->input_count, sizeof *tenant);
    struct kedge_compute_sites members = {.files = files, .tenant = tenant};
    struct kedge_blob_writer *writer;
    struct kedge_sink sink;
    for (size_t i = 0; files && tenant && i < w->input_count; i++) {
        if (!w->inputs[i].left_out && w->inputs[i].group == group) {
            tenant[members.count] = kedgei_close_place(w->job, w->inputs[i].tenant);
            files[members.count++] = w->inputs[i].file;
        }
    }
    int err = files && tenant
                  ? kedgei_close_blob_begin(h, w->job->update_len, &writer, &sink, &w->models.diag)
                  : KEDGE_E_NOMEM;
    if (!err) {
        err = kedge_compute_made_direction(&w->job->layout, &members, &w->job->spec, sink, &w->models.diag);
        err = kedgei_close_blob_end(writer, err, &w->result->directions[group], &w->models.diag);
    }
    kedge_mem_free(files);
    kedge_mem_free(tenant);
    return err;
}

static int cold_start(struct kedge_host *h, struct close_work *w)
{
    struct kedge_round_result *r = w->result;
    struct kedge_blob_at *files = kedge_mem_new(w->input_count, sizeof *files);
    uint32_t *group = kedge_mem_new(w->input_count, sizeof *group),
             *tenant = kedge_mem_new(w->input_count, sizeof *tenant);
    struct kedge_compute_sites sites = {.files = files, .tenant = tenant, .count = w->input_count};
    r->assigned_sites = kedge_mem_new(w->input_count, sizeof *r->assigned_sites);
    r->assigned_groups = kedge_mem_new(w->input_count, sizeof *r->assigned_groups);
    bool has_memory = files && group && tenant && r->assigned_sites && r->assigned_groups;
    int err = has_memory ? KEDGE_OK : KEDGE_E_NOMEM;
    for (size_t i = 0; !err && i < w->input_count; i++) {
        files[i] = w->inputs[i].file;
        tenant[i] = kedgei_close_place(w->job, w->inputs[i].tenant);
    }
    if (!err) {
        err = kedge_compute_groups(&w->job->layout, &sites, &w->job->spec, 0, group, &r->groups,
                                   &w->models.diag);
    }
    for (size_t i = 0; !err && i < w->input_count; i++) {
        w->inputs[i].group = group[i];
        w->inputs[i].left_out = group[i] == KEDGE_GROUP_NONE;
        if (!w->inputs[i].left_out) {
            r->assigned_sites[r->assigned_count] = w->inputs[i].site;
            r->assigned_groups[r->assigned_count++] = group[i];
        }
    }
    for (uint32_t g = 0; g < r->groups && !err; g++) {
        r->before[g] = w->job->initial_model;
        err = kedgei_close_weigh(h, w, g, true);
        err = err ? err : kedgei_close_group(h, w, g, true);
        err = err ? err : kedgei_close_direction(h, w, g);
    }
    kedge_mem_free(files);
    kedge_mem_free(group);
    kedge_mem_free(tenant);
    return err;
}

/* Models of two rounds ago have been fetched by all who will: the new ones may have their pages. */
static void cool_former(struct kedge_host *h, const struct close_work *w)
{
    for (uint32_t i = 0; i < w->former_count; i++) {
        bool current = false;
        for (uint32_t g = 0; g < w->result->groups; g++) {
            current = current || kedge_hash_eq(&w->former[i], &w->result->before[g]);
        }
        if (!current) {
            kedge_blobs_cool(h->main.blobs, &w->former[i]);
        }
    }
}

/* What lists say is known without a look at statements and files: lists and models are made at once. */
static bool is_light(const struct kedge_job *job)
{
    return kedge_job_spec_weighs_samples(&job->spec) && job->spec.rule->kind == KEDGE_RULE_MEAN
           && !kedge_job_spec_splits(&job->spec);
}

static void models_run(struct kedge_host *h, struct kedge_work *work)
{
    struct close_part *part = (struct close_part *)work;
    struct close_work *w = part->close;
    cool_former(h, w);
    if (w->result->kind == KEDGE_TASK_PRETRAIN) {
        part->err = w->result->round == 0 ? cold_start(h, w) : kedgei_close_regroup(h, w);
        part->err = part->err ? part->err : kedgei_close_lists(h, w, &part->diag);
        return;
    }
    bool weighed = is_light(w->job);
    for (uint32_t g = 0; !weighed && g < w->result->groups && !part->err; g++) {
        part->err = kedgei_close_weigh(h, w, g, false);
    }
    part->err = part->err ? part->err : train_round(h, w);
    part->err = part->err ? part->err : kedgei_close_refresh(h, w);
    part->err = part->err ? part->err : kedgei_close_split(w);
    if (!weighed) {
        part->err = part->err ? part->err : kedgei_close_lists(h, w, &part->diag);
    }
}

static void lists_run(struct kedge_host *h, struct kedge_work *work)
{
    struct close_part *part = (struct close_part *)work;
    part->err = kedgei_close_lists(h, part->close, &part->diag);
}

static void finish(struct kedge_host *h, struct close_work *w)
{
    struct kedge_job *job = w->job;
    struct kedge_round_result *r = w->result;
    const struct close_part *failed = w->models.err ? &w->models : &w->lists;
    struct kedge_coord_event ev = {
        .type = KEDGE_EV_ROUND_COMPUTED, .job = job->slot, .round = r->round, .err = failed->err};
    if (failed->err) {
        kedge_log(KEDGE_LOG_WARN, "round", "job=%s round=%u can not be computed: %s", job->spec.name.s,
                  r->round, failed->diag.text[0] ? failed->diag.text : kedge_strerror(failed->err));
        kedge_round_result_free(r);
    } else {
        kedge_round_result_free(job->result);
        job->result = r;
        memcpy(job->directions, r->directions, sizeof job->directions);
        memcpy(job->made, r->made, sizeof job->made);
        memcpy(job->split_of, r->split_of, sizeof job->split_of);
        memcpy(job->merged_into, r->merged_into, sizeof job->merged_into);
        kedge_host_merged_directions(job->directions, job->merged_into);
        kedgei_close_note_moved(job, w);
        ev.regroup = kedge_job_spec_drifted(r->drift);
        for (uint32_t g = 0; g < r->groups; g++) {
            memcpy(w->digests[g].b, r->after[g].b, KEDGE_HASH_LEN);
        }
        ev.model_count = r->groups;
        ev.models = w->digests;
        ev.assigned_count = r->assigned_count;
        ev.assigned_sites = r->assigned_sites;
        ev.assigned_groups = r->assigned_groups;
    }
    kedge_host_step(h, &ev);
    kedge_mem_free(w->inputs);
    kedge_mem_free(w->others);
    kedge_mem_free(w->rows);
    kedge_mem_free(w);
}

static void part_done(struct kedge_host *h, struct kedge_item *item)
{
    struct close_work *w = ((struct close_part *)item)->close;
    if (--w->parts_left == 0) {
        finish(h, w);
    }
}

static void start(struct kedge_host *h, struct close_work *w)
{
    int err = KEDGE_OK;
    w->models = (struct close_part){.work = {{part_done}, models_run}, .close = w};
    w->lists = (struct close_part){.work = {{part_done}, lists_run}, .close = w};
    bool both = w->result->kind != KEDGE_TASK_PRETRAIN && is_light(w->job);
    for (uint32_t g = 0; both && g < w->result->groups && !err; g++) {
        err = kedgei_close_weigh(h, w, g, false);
    }
    w->models.err = err;
    w->parts_left = !err && both ? 2 : 1;
    if (err) {
        kedge_host_post(h, &w->models.work.item);
        return;
    }
    kedge_host_work(h, &w->models.work);
    if (both) {
        kedge_host_work(h, &w->lists.work);
    }
}

/* ---- snapshot on the loop ---- */

/* Of the site's task: in an asynchronous job this one or an earlier one. */
static uint32_t round_of(const struct kedge_host *h, const struct close_work *w, uint32_t site)
{
    const struct kedge_coord_row *row = kedge_coord_row(h->coord, w->job->slot, site);
    return w->job->params.buffer > 0 && row->selected ? row->task_round : w->result->round;
}

static int snapshot_input(struct kedge_host *h, struct close_work *w, uint32_t site, uint32_t group,
                          uint32_t former, const struct kedge_coord_input *in)
{
    struct close_input *c = &w->inputs[w->input_count++];
    struct kedge_hash digest;
    *c = (struct close_input){
        .site = site, .tenant = h->sites[site].tenant, .group = group, .former = former, .in = *in};
    c->round = round_of(h, w, site);
    memcpy(digest.b, in->update.b, KEDGE_HASH_LEN);
    return kedge_blobs_at(h->tenants[c->tenant].log.blobs, &digest, c->path, &c->file);
}

/* A pre-training in a round of training, which gave its site this group, or an input that was refused. */
static void snapshot_row(struct kedge_host *h, struct close_work *w, uint32_t site, uint32_t group,
                         const struct kedge_coord_input *in)
{
    bool at_door = in->progress == KEDGE_INPUT_REFUSED;
    bool refused = at_door || in->group == KEDGE_COORD_NONE; /* accepted, but it fits no group */
    struct close_row *c = &w->rows[w->row_count++];
    c->tenant = h->sites[site].tenant;
    c->row = (struct kedge_input_row){.site = h->sites[site].id,
                                      .use = refused ? KEDGE_USE_REFUSED : KEDGE_USE_GROUPED,
                                      .group = group == KEDGE_COORD_NONE ? 0 : group,
                                      .leaf = at_door ? 0 : in->leaf,
                                      .weight = refused ? 0 : 1};
    uint32_t round = round_of(h, w, site);
    c->row.round = round == w->result->round ? 0 : round;
    memcpy(c->row.update.b, in->update.b, KEDGE_HASH_LEN);
    if (refused) {
        snprintf(c->row.reason, sizeof c->row.reason, "%s",
                 kedge_err_code(at_door ? in->reason : KEDGE_E_ARG));
    }
}

static int snapshot_site(struct kedge_host *h, struct close_work *w, uint32_t site)
{
    const struct kedge_coord_row *row = kedge_coord_row(h->coord, w->job->slot, site);
    bool cold = w->result->kind == KEDGE_TASK_PRETRAIN;
    if (!row) {
        return KEDGE_OK;
    }
    const struct kedge_coord_input *main_in = cold ? &row->pretrain : &row->train;
    int err = KEDGE_OK;
    if (main_in->progress == KEDGE_INPUT_ACCEPTED) {
        err = snapshot_input(h, w, site, cold ? 0 : main_in->group, row->group, main_in);
    } else if (main_in->progress == KEDGE_INPUT_REFUSED) {
        snapshot_row(h, w, site, row->group, main_in);
    }
    bool any = !cold && kedge_job_spec_refreshes(&w->job->spec, w->result->round);
    if (row->group != KEDGE_COORD_NONE && (any || (cold && main_in->progress != KEDGE_INPUT_ACCEPTED))) {
        w->others[w->other_count++] = (struct close_other){
            site, row->group, kedgei_close_place(w->job, h->sites[site].tenant), w->job->pretrain[site]};
    }
    bool both_refused =
        main_in->progress == KEDGE_INPUT_REFUSED && row->pretrain.progress == KEDGE_INPUT_REFUSED;
    if (!cold && !both_refused
        && (row->pretrain.progress == KEDGE_INPUT_ACCEPTED
            || row->pretrain.progress == KEDGE_INPUT_REFUSED)) {
        bool is_taken = row->pretrain.progress == KEDGE_INPUT_ACCEPTED;
        snapshot_row(h, w, site, is_taken ? row->pretrain.group : row->group, &row->pretrain);
    }
    return err;
}

void kedge_host_close_round(struct kedge_host *h, struct kedge_job *job, uint32_t round,
                            enum kedge_task_kind kind)
{
    uint32_t n;
    const uint32_t *order = kedge_coord_site_order(h->coord, &n);
    struct kedge_coord_job_view view;
    bool known = kedge_coord_job(h->coord, job->slot, &view);
    struct close_work *w = kedge_mem_new(1, sizeof *w);
    KEDGE_ASSERT(known && w);
    w->job = job;
    w->result = kedge_mem_new(1, sizeof *w->result);
    w->inputs = kedge_mem_new(n, sizeof *w->inputs);
    w->others = kedge_mem_new(n, sizeof *w->others);
    w->rows = kedge_mem_new((size_t)n * 2, sizeof *w->rows);
    KEDGE_ASSERT(w->result && w->inputs && w->others && w->rows);
    w->result->round = round;
    w->result->kind = kind;
    w->result->groups = view.model_count;
    for (uint32_t g = 0; g < view.model_count; g++) {
        memcpy(w->result->before[g].b, view.models[g].b, KEDGE_HASH_LEN);
    }
    memcpy(w->result->directions, job->directions, sizeof job->directions);
    if (kind != KEDGE_TASK_PRETRAIN) {
        memcpy(w->result->made, job->made, sizeof job->made);
        memcpy(w->result->merged_into, job->merged_into, sizeof job->merged_into);
    }
    memcpy(w->result->state_before, job->states, sizeof job->states);
    w->former_count = job->result ? job->result->groups : 0;
    if (job->result) {
        memcpy(w->former, job->result->before, sizeof w->former);
    }
    int err = KEDGE_OK;
    for (uint32_t i = 0; i < n && !err; i++) {
        err = snapshot_site(h, w, order[i]);
    }
    KEDGE_ASSERT(!err); /* paths of blobs fit: they did when the updates came */
    start(h, w);
}
