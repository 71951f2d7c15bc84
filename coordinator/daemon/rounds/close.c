/* Closing a round: from the accepted inputs to models, aggregates and input lists. Runs over a
 * snapshot, on two workers: one computes the models (round/close), one writes the lists. Groups
 * that must be found first, and weights that follow from statements or files, are found by the one,
 * which then does both.
 *
 * The snapshot is what makes this deterministic. It is taken on the loop in the order of sites,
 * when no append is under way any more; what arrives later belongs to no list of this round.
 * Everything after that is a function of it, so the same round computed again, here after a crash
 * or by an auditor, gives the same bytes. */
#include "coordinator/daemon/rounds/close.h"

#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/host.h"

static uint32_t place_of(const struct kedge_job *job, uint32_t tenant)
{
    uint32_t place = 0;
    while (place < job->params.tenant_count && job->params.tenants[place] != tenant) {
        place++;
    }
    return place;
}

/* Models of two rounds ago have been fetched by all who will: the new ones may have their pages. */
static void drop_cache_of_former(struct kedge_host *h, const struct close_work *w)
{
    for (uint32_t i = 0; i < w->former_count; i++) {
        bool current = false;
        for (uint32_t g = 0; g < w->close.result->groups; g++) {
            current = current || kedge_hash_eq(&w->former[i], &w->close.result->before[g]);
        }
        if (!current) {
            kedge_blobs_drop_cache(h->main.blobs, &w->former[i]);
        }
    }
}

/* Keeps which updates the groups rest on that this close gives: those of this round. An update that points
 * nowhere gives a group to a site that had one. */
static void note_inputs(struct kedge_job *job, const struct kedge_close *c)
{
    const bool makes_groups = c->result->kind == KEDGE_TASK_PRETRAIN && !c->result->kept;
    for (size_t i = 0; i < c->input_count; i++) {
        const struct kedge_close_input *in = &c->inputs[i];
        bool has_group = !in->left_out || in->former != KEDGE_COORD_NONE;
        if (in->to > 0 || (makes_groups && has_group)) {
            memcpy(job->sites[in->site].by.b, in->in.update.b, KEDGE_HASH_LEN);
        }
    }
    if (c->result->kept) {
        kedge_log(KEDGE_LOG_WARN, "round",
                  "job=%s round=%u groups are kept: %zu sites pre-trained in time, too few to make new ones",
                  job->spec.name.s, c->result->round, c->input_count);
    }
}

/* The order of the steps is that of the record: classes and weights first, because the lists state
 * them, then models, then lists where they could not be written beside. */
static void models_run(struct kedge_host *h, struct kedge_work *work)
{
    struct close_part *part = (struct close_part *)work;
    struct close_work *w = part->close;
    drop_cache_of_former(h, w);
    if (w->close.result->kind == KEDGE_TASK_PRETRAIN) {
        if (w->close.result->kept) {
            kedge_close_keep(&w->close);
        } else {
            part->err = kedge_close_pretrain(&w->close);
        }
        w->groups = w->close.result->groups;
        part->err = part->err ? part->err : kedgei_close_lists(h, w, &part->diag);
        return;
    }
    bool weighed = kedge_close_needs_no_files(&w->job->spec);
    part->err = kedgei_close_classes(h, w, &part->diag);
    part->err = part->err || weighed ? part->err : kedge_close_weigh(&w->close);
    part->err = part->err ? part->err : kedge_close_train(&w->close);
    if (!weighed) {
        part->err = part->err ? part->err : kedgei_close_lists(h, w, &part->diag);
    }
}

static void lists_run(struct kedge_host *h, struct kedge_work *work)
{
    struct close_part *part = (struct close_part *)work;
    part->err = kedgei_close_lists(h, part->close, &part->diag);
}

/* On the loop, when both parts are done. A failure of either throws the result away; the core asks
 * for the same close again, and blobs that were written already are found to be there. */
static void finish(struct kedge_host *h, struct close_work *w)
{
    struct kedge_job *job = w->job;
    struct kedge_round_result *r = w->close.result;
    const struct close_part *failed = w->models.err ? &w->models : &w->lists;
    struct kedge_coord_event ev = {
        .type = KEDGE_EV_ROUND_COMPUTED, .job = job->slot, .round = r->round, .err = failed->err};
    if (failed->err) {
        kedge_log(KEDGE_LOG_WARN, "round", "job=%s round=%u cannot be computed: %s", job->spec.name.s,
                  r->round, failed->diag.text[0] ? failed->diag.text : kedge_strerror(failed->err));
        kedge_host_job_fault(job, "the close of a round", "round %u: %s", r->round, failed->diag.text);
        kedge_round_result_free(r);
    } else {
        kedge_round_result_free(job->result);
        job->result = r;
        if (kedge_job_spec_asks_classes(&job->spec, r->round)) {
            memcpy(job->classes, w->classes, sizeof job->classes);
            memcpy(job->classes_fault, w->classes_fault, sizeof job->classes_fault);
        }
        note_inputs(job, &w->close);
        ev.regroup = r->regroup;
        ev.over_budget = kedge_close_exceeds_budget(&job->at, r, &job->spec);
        for (uint32_t g = 0; g < r->groups; g++) {
            ev.tries = ev.tries || r->tried_with[g] > 0;
        }
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
    kedge_mem_free(w->close.inputs);
    kedge_mem_free(w->close.others);
    kedge_mem_free(w->close.evaluations);
    kedge_mem_free(w->rows);
    kedge_mem_free(w);
}

/* Both parts come back through the loop's queue, so the counter needs no lock. */
static void part_done(struct kedge_host *h, struct kedge_item *item)
{
    struct close_work *w = ((struct close_part *)item)->close;
    if (--w->parts_left == 0) {
        finish(h, w);
    }
}

/* Where the lists do not depend on the models they are written at the same time, by another worker.
 * Weights are needed by both, so they come first. */
static void start(struct kedge_host *h, struct close_work *w)
{
    w->models = (struct close_part){.work = {.item = {part_done}, .run = models_run}, .close = w};
    w->lists = (struct close_part){.work = {.item = {part_done}, .run = lists_run}, .close = w};
    bool both = w->close.result->kind != KEDGE_TASK_PRETRAIN && kedge_close_needs_no_files(&w->job->spec);
    int err = both ? kedge_close_weigh(&w->close) : KEDGE_OK;
    w->groups = w->close.result->groups;
    w->models.err = err;
    w->parts_left = !err && both ? 2 : 1;
    if (err) {
        kedge_host_post(h, &w->models.work.item);
        return;
    }
    kedge_host_work_own(h, &w->models.work);
    if (both) {
        kedge_host_work_own(h, &w->lists.work);
    }
}

/* ---- snapshot on the loop ---- */

/* Of the site's task: in an asynchronous job this one or an earlier one. */
static uint32_t round_of(const struct kedge_host *h, const struct close_work *w, uint32_t site)
{
    const struct kedge_coord_row *row = kedge_coord_row(h->coord, w->job->slot, site);
    return w->job->params.buffer > 0 && row->selected ? row->task_round : w->close.result->round;
}

/* The path of each update is found here, where tables may be read, and only opened on the worker. */
static int snapshot_input(struct kedge_host *h, struct close_work *w, uint32_t site, uint32_t group,
                          uint32_t former, const struct kedge_coord_input *in)
{
    struct kedge_close_input *c = &w->close.inputs[w->close.input_count++];
    struct kedge_hash digest;
    *c = (struct kedge_close_input){
        .site = site, .tenant = h->sites[site].tenant, .group = group, .former = former, .in = *in};
    c->place = place_of(w->job, c->tenant);
    c->is_root = kedge_job_spec_is_root(&w->job->spec, c->place, &h->sites[site].id);
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
    c->row.round = round == w->close.result->round ? 0 : round;
    memcpy(c->row.update.b, in->update.b, KEDGE_HASH_LEN);
    if (refused) {
        snprintf(c->row.reason, sizeof c->row.reason, "%s",
                 kedge_err_code(at_door ? in->reason : KEDGE_E_ARG));
    }
}

/* What one site has in this round: its update or refusal, an evaluation of a trial, its group where
 * others depend on it, and beside a training also a pre-training that gave it a group. A site of
 * which both were refused stands in the list once, with its training. */
static int snapshot_site(struct kedge_host *h, struct close_work *w, uint32_t site)
{
    const struct kedge_coord_row *row = kedge_coord_row(h->coord, w->job->slot, site);
    bool cold = w->close.result->kind == KEDGE_TASK_PRETRAIN;
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
    const bool tries = !cold && kedge_job_spec_tries(&w->job->spec);
    const bool any = tries || (!cold && kedge_job_spec_refreshes(&w->job->spec, w->close.result->round));
    if (tries && w->job->evaluations[site].samples > 0) {
        struct kedge_close_evaluation *e = &w->close.evaluations[w->close.evaluation_count++];
        *e = w->job->evaluations[site];
        e->tenant = h->sites[site].tenant;
        e->place = place_of(w->job, e->tenant);
    }
    if (row->group != KEDGE_COORD_NONE && (any || (cold && main_in->progress != KEDGE_INPUT_ACCEPTED))) {
        const bool is_input = !cold && main_in->progress == KEDGE_INPUT_ACCEPTED;
        w->close.others[w->close.other_count++] = (struct kedge_close_other){
            .site = site,
            .former = row->group,
            .place = place_of(w->job, h->sites[site].tenant),
            .input = is_input ? (uint32_t)w->close.input_count - 1 : KEDGE_COORD_NONE,
            .update = w->job->sites[site].by};
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

void kedge_host_close_round(struct kedge_host *h, struct kedge_job *job, const struct kedge_coord_effect *fx)
{
    uint32_t n;
    const uint32_t *order = kedge_coord_site_order(h->coord, &n);
    struct close_work *w = kedge_mem_new(1, sizeof *w);
    KEDGE_ASSERT(w);
    w->job = job;
    w->close = (struct kedge_close){.host = kedge_host_close_files(h),
                                    .spec = &job->spec,
                                    .layout = &job->layout,
                                    .limit = job->limit,
                                    .initial = job->initial_model,
                                    .d = &w->models.diag};
    w->close.result = kedge_mem_new(1, sizeof *w->close.result);
    w->close.inputs = kedge_mem_new(n, sizeof *w->close.inputs);
    w->close.others = kedge_mem_new(n, sizeof *w->close.others);
    w->close.evaluations = kedge_mem_new(n, sizeof *w->close.evaluations);
    w->rows = kedge_mem_new((size_t)n * KEDGE_INPUT_ROWS_OF_SITE, sizeof *w->rows);
    KEDGE_ASSERT(w->close.result && w->close.inputs && w->close.others && w->close.evaluations && w->rows);
    w->close.result->round = fx->round;
    w->close.result->kind = fx->kind;
    w->close.result->kept = fx->keeps;
    w->close.result->charged = fx->charged;
    kedge_close_begin(&job->at, w->close.result);
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
