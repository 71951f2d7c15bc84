/* What sites do: they train as those of the loop of rounds do (sim/learn/train.c), from models in files, and
 * what comes of it is a file. A training is done when its result is first asked for, together with all that
 * were begun by then, on all threads. */
#include <string.h>

#include "client/train/weights.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"
#include "sim/protocol/impl.h"

static uint32_t place_of(uint32_t site, bool pretrain)
{
    return 2 * site + !pretrain;
}

struct kedgei_update *kedgei_protocol_update(const struct kedgei_protocol *p,
                                             const struct kedge_digest *digest)
{
    uint32_t at;
    uint64_t key = sim_hash(SIM_HASH_START, digest->b, sizeof digest->b);
    bool is_there = sim_index_find(&p->index, key, &at) && sim_same(&p->updates[at].digest, digest);
    return is_there ? &p->updates[at] : NULL;
}

/* ---- on a thread ---- */

static int read_model(const struct kedgei_protocol *p, const struct kedge_digest *digest, float *ret)
{
    char path[KEDGE_PATH_MAX];
    kedgei_files_path(&p->files, digest, path);
    return kedge_weights_read(path, &p->layout, ret, NULL);
}

/* The model of the least loss on the site's own data into base, ties to the lowest. */
static int choose(const struct kedgei_protocol *p, struct kedgei_learn_lane *lane,
                  const struct kedgei_work *work, float *scratch, float *base, uint32_t *ret_choice)
{
    double least = 0;
    for (uint32_t g = 0; g < work->choice_count; g++) {
        double loss;
        KEDGE_TRY(read_model(p, &work->choices[g], scratch));
        KEDGE_TRY(kedgei_learn_loss(p->l, lane, work->site, scratch, &loss));
        if (g == 0 || loss < least) {
            least = loss;
            *ret_choice = g;
            memcpy(base, scratch, (size_t)p->l->d * sizeof *base);
        }
    }
    return KEDGE_OK;
}

/* The server's control variate; *io NULL: it is zero. */
static int read_control(const struct kedgei_protocol *p, const struct kedgei_work *work, float **io)
{
    const struct kedge_digest digest = kedgei_protocol_digest(&work->control);
    struct kedge_layout layout;
    char path[KEDGE_PATH_MAX];
    if (kedge_hash_is_zero(&work->control)) {
        *io = NULL;
        return KEDGE_OK;
    }
    kedgei_files_path(&p->files, &digest, path);
    KEDGE_TRY(kedge_job_spec_control_layout(&p->layout, &layout, NULL));
    int err = kedge_weights_read(path, &layout, *io, NULL);
    kedge_layout_deinit(&layout);
    return err;
}

/* Where groups are tried: the loss of what it has just trained, which is in the lane's net, on the samples by
 * which it judges trials; stays where nothing is to be told. */
static int test_trained(const struct kedgei_protocol *p, struct kedgei_learn_lane *lane,
                        const struct kedgei_work *work, double *ret_loss)
{
    struct kedge_dataset data;
    struct kedge_evaluation e;
    if (!p->l->asks_own || work->pretrain || work->site >= p->l->n) {
        return KEDGE_OK;
    }
    KEDGE_TRY(kedgei_learn_data(p->l, work->site, true, &lane->room, &data));
    if (kedge_net_evaluate(lane->net, &data, &e, NULL) == KEDGE_OK) { /* else it diverges: nothing to tell */
        *ret_loss = e.loss;
    }
    return KEDGE_OK;
}

/* two: room for two models, of which the first begins as that of a site that has trained nothing. */
static int work_on(const struct kedgei_protocol *p, struct kedgei_learn_lane *lane,
                   const struct kedgei_work *work, float *two, struct kedgei_learn_result *ret)
{
    float *base = two, *other = two + p->l->d;
    uint32_t choice = 0;
    memcpy(base, p->l->w0, (size_t)p->l->d * sizeof *base);
    memcpy(other, p->l->w0, (size_t)p->l->d * sizeof *other);
    KEDGE_TRY(work->choice_count > 0 ? choose(p, lane, work, other, base, &choice)
                                     : read_model(p, &work->base, base));
    if (!work->pretrain && p->job.strategy->local->variate) {
        KEDGE_TRY(read_control(p, work, &other));
    } else {
        other = NULL;
    }
    const struct kedgei_learn_item item = {.site = work->site,
                                           .base = base,
                                           .round = work->round,
                                           .control = other,
                                           .pretrain = work->pretrain,
                                           .loss_wanted = !work->pretrain && p->job.strategy->needs_loss};
    kedgei_learn_train_item(p->l, lane, &item, ret);
    ret->choice = choice;
    return ret->err ? ret->err : test_trained(p, lane, work, &ret->tested_loss);
}

static int train_item(struct kedgei_learn *l, struct kedgei_learn_lane *lane, uint32_t item, void *result)
{
    const struct kedgei_protocol *p = l->owner;
    struct kedgei_learn_result *r = result;
    float *two = kedge_mem_new(2 * (size_t)l->d, sizeof *two);
    r->err = two ? work_on(p, lane, &p->works[p->queue[item]], two, r) : KEDGE_E_NOMEM;
    kedge_mem_free(two);
    return KEDGE_OK; /* a site that fails is a site that fails */
}

/* ---- on the caller's ---- */

/* What the site will have for itself once the update counts: its own model or head, its control variate. */
static int keep_next(struct kedgei_protocol *p, const struct kedgei_work *work, const int32_t *second)
{
    const struct kedge_local *local = p->job.strategy->local;
    const size_t n = (size_t)p->l->d;
    struct kedgei_next *next = &p->next_of[work->site];
    if ((local->has_own_model || local->has_head) && !p->spec->planted) {
        next->own = next->own ? next->own : kedge_mem_new(n, sizeof *next->own);
        KEDGE_TRY_MEM(next->own);
        memcpy(next->own, second, n * sizeof *next->own);
    }
    if (local->variate) {
        const int32_t *now = p->l->sites[work->site].control;
        next->control = next->control ? next->control : kedge_mem_new(n, sizeof *next->control);
        for (size_t i = 0; i < n && next->control; i++) { /* within bounds: kedge_variate_change has looked */
            next->control[i] = now[i] + second[i];
        }
        return next->control ? KEDGE_OK : KEDGE_E_NOMEM;
    }
    return KEDGE_OK;
}

static void settle_site(struct kedgei_protocol *p, const struct kedgei_update *u)
{
    struct kedgei_learn_site *s = &p->l->sites[u->site];
    struct kedgei_next *next = &p->next_of[u->site];
    const struct kedgei_next now = *next;
    if (!sim_same(&now.by, &u->digest)) {
        return;
    }
    next->by = (struct kedge_digest){{0}};
    if (now.own) {
        next->own = s->own;
        s->own = now.own;
    }
    if (now.control) {
        next->control = s->control;
        s->control = now.control;
    }
    if (now.left) {
        next->left = s->left;
        s->left = now.left;
        s->left_group = now.left_group;
    }
}

void kedgei_protocol_settle(struct kedgei_protocol *p)
{
    for (uint32_t i = 0; i < p->last.input_count; i++) {
        const struct kedgei_update *u = kedgei_protocol_update(p, &p->last.inputs[i]);
        if (!u || u->pretrain) {
            continue;
        }
        settle_site(p, u);
        if (p->trained) {
            p->trained[u->site] =
                (struct kedgei_trained){kedgei_protocol_hash(&u->digest), kedgei_protocol_hash(&u->base)};
        }
    }
}

void kedgei_protocol_nexts_free(struct kedgei_protocol *p)
{
    for (uint32_t i = 0; p->next_of && i < p->sites; i++) {
        kedge_mem_free(p->next_of[i].own);
        kedge_mem_free(p->next_of[i].control);
        kedge_mem_free(p->next_of[i].left);
    }
    kedge_mem_free(p->next_of);
}

/* Compressed, with what earlier updates have left of the site's. */
static int write_compact(struct kedgei_protocol *p, struct kedgei_work *work, const int32_t *values,
                         const struct kedge_sink *sink)
{
    const uint32_t group = work->choice_count > 0 ? work->choice : work->group;
    struct kedgei_next *next = &p->next_of[work->site];
    next->left = next->left ? next->left : kedge_mem_new((size_t)p->l->d, sizeof *next->left);
    KEDGE_TRY_MEM(next->left);
    memcpy(next->left, values, (size_t)p->l->shared * sizeof *values);
    kedgei_learn_add_left(p->l, work->site, group, next->left);
    next->left_group = group;
    return kedgei_learn_compact(p->l, next->left, sink, &work->len);
}

/* An update and a change of the control variate are one list of values. */
static int write_whole(const struct kedgei_protocol *p, const struct kedgei_work *work, const int32_t *values,
                       const struct kedge_sink *sink)
{
    const struct kedge_layout *layout = work->pretrain ? &p->layout : &p->update_layout;
    struct kedge_buf header KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&header, KEDGE_TENSOR_HEADER_MAX + 8);
    KEDGE_TRY(kedge_safetensors_header(layout, KEDGE_DTYPE_I32, &header));
    KEDGE_TRY(sink->write(sink->arg, kedge_buf_view(&header)));
    return sink->write(sink->arg, kedge_view_of(values, (size_t)layout->values_count * sizeof *values));
}

static int keep_update(struct kedgei_protocol *p, struct kedgei_work *work, struct kedgei_learn_result *r)
{
    const int32_t *values = kedgei_learn_result_vector(p->l, r, 0);
    struct kedgei_file file;
    KEDGE_TRY(kedgei_file_begin(&p->files, 0, &file, p->d));
    int err = kedge_job_spec_compact(&p->job, work->pretrain) ? write_compact(p, work, values, &file.sink)
                                                              : write_whole(p, work, values, &file.sink);
    KEDGE_TRY(kedgei_file_end(&file, err, &work->update, p->d));
    if (!work->pretrain) {
        KEDGE_TRY(keep_next(p, work, kedgei_learn_result_vector(p->l, r, 1)));
        p->next_of[work->site].by = work->update;
    }
    if (kedgei_protocol_update(p, &work->update)) {
        return KEDGE_OK;
    }
    p->updates = sim_grow(p->updates, p->update_count + 1, &p->update_max, sizeof *p->updates);
    p->updates[p->update_count] = (struct kedgei_update){.digest = work->update,
                                                         .base = work->base,
                                                         .site = work->site,
                                                         .round = work->round,
                                                         .pretrain = work->pretrain,
                                                         .samples = r->samples,
                                                         .steps = r->steps,
                                                         .base_loss = r->loss_before,
                                                         .loss = r->loss,
                                                         .moved = r->moved};
    (void)sim_index_put(&p->index, sim_hash(SIM_HASH_START, work->update.b, sizeof work->update.b),
                        p->update_count++);
    return KEDGE_OK;
}

void kedgei_protocol_train(struct kedgei_protocol *p)
{
    const size_t size = p->l->result_size;
    uint8_t *results = p->queued ? kedge_mem_new(p->queued, size) : NULL;
    int err = !p->queued || results ? KEDGE_OK : KEDGE_E_NOMEM;
    err = err || !p->queued ? err : kedgei_learn_spread(p->l, p->queued, NULL, size, train_item, results);
    for (uint32_t i = 0; i < p->queued && !err; i++) {
        struct kedgei_work *work = &p->works[p->queue[i]];
        struct kedgei_learn_result *r = (void *)(results + i * size);
        work->done = true;
        work->choice = r->choice;
        work->tested_loss = r->tested_loss;
        work->err = r->err;
        err = work->err ? KEDGE_OK : keep_update(p, work, r);
    }
    p->queued = 0;
    p->err = p->err ? p->err : err;
    kedge_mem_free(results);
}

/* What the work begins with; of a task with choices what stands for all of them. */
static struct kedge_digest base_of(const struct kedge_site_task *task)
{
    return task->choice_count > 0 ? sim_digest(task->round, task->choice_count, 0, task->choices,
                                               task->choice_count * sizeof task->choices[0])
                                  : sim_of_site(&task->base);
}

void kedgei_protocol_begin(void *arg, uint32_t site, const struct kedge_site_task *task)
{
    struct kedgei_protocol *p = arg;
    bool pretrain = task->kind == KEDGE_SITE_PRETRAIN;
    struct kedgei_work *work = &p->works[place_of(site, pretrain)];
    struct kedge_digest base = base_of(task);
    if (task->kind == KEDGE_SITE_EVALUATE
        || (work->used && work->round == task->round && sim_same(&work->base, &base))) {
        return; /* it is the same again, and so is what comes of it */
    }
    if (work->used && !work->done) {
        kedgei_protocol_train(p);
    }
    *work = (struct kedgei_work){.used = true,
                                 .site = site,
                                 .round = task->round,
                                 .pretrain = pretrain,
                                 .base = base,
                                 .control = p->last.r.state_after[0],
                                 .group = task->group == KEDGE_SITE_NONE ? 0 : task->group,
                                 .choice_count = task->choice_count};
    for (uint32_t g = 0; g < task->choice_count; g++) {
        work->choices[g] = sim_of_site(&task->choices[g]);
    }
    bool fails = !pretrain && site < p->l->n && kedgei_learn_fails(p->l, task->round - 1, site);
    if (fails) {
        work->done = true;
        work->err = KEDGE_E_TRAINER;
        return;
    }
    int err = !pretrain && p->job.strategy->local->variate ? kedgei_learn_control(p->l, site) : KEDGE_OK;
    p->err = p->err ? p->err : err;
    p->queue[p->queued++] = place_of(site, pretrain);
}

int kedgei_protocol_end(void *arg, uint32_t site, const struct kedge_site_task *task,
                        struct kedge_digest *ret_update, uint32_t *ret_choice)
{
    struct kedgei_protocol *p = arg;
    struct kedgei_work *work = &p->works[place_of(site, task->kind == KEDGE_SITE_PRETRAIN)];
    kedgei_protocol_begin(arg, site, task); /* unless it was, or another came between */
    if (!work->done) {
        kedgei_protocol_train(p);
    }
    if (!work->done || work->err) {
        return work->err ? work->err : KEDGE_E_TRAINER;
    }
    p->next_of[site].sends = work->len;
    *ret_update = work->update;
    *ret_choice = work->choice;
    return KEDGE_OK;
}

bool kedgei_protocol_trial(void *arg, uint32_t group, uint32_t round, struct kedge_digest *ret)
{
    const struct kedgei_protocol *p = arg;
    if (round != p->at.round || group >= p->at.groups || p->at.group[group].tried_with == 0) {
        return false;
    }
    *ret = kedgei_protocol_digest(&p->at.group[group].trial);
    return true;
}

/* What a site finds of one model: of a planted federation how far it is from the site's goal, by exact
 * arithmetic. */
static int test_model(const struct kedgei_protocol *p, uint32_t site, struct kedge_net *net,
                      const struct kedge_dataset *data, const struct kedge_hash *model,
                      struct kedge_evaluation *ret)
{
    const struct kedge_digest digest = kedgei_protocol_digest(model);
    int err = read_model(p, &digest, kedge_net_weights(net));
    if (!err && p->spec->planted > 0) {
        *ret =
            (struct kedge_evaluation){.samples = p->l->sites[site].train_count,
                                      .loss = 1 - kedgei_learn_closeness(p->l, site, kedge_net_weights(net)),
                                      .deviation = -1}; /* nothing that could shift */
        return KEDGE_OK;
    }
    return err ? err : kedge_net_evaluate(net, data, ret, NULL);
}

/* The site tests the model of its group and the trial, as kedge-client does for its evaluation. */
static int test_models(const struct kedgei_protocol *p, uint32_t site, uint32_t group,
                       struct kedgei_found *ret, double *ret_deviation)
{
    const struct kedge_round_group *g = &p->at.group[group];
    struct kedge_evaluation own = {.samples = 0}, trial = {.samples = 0};
    struct kedgei_learn_lane *lane = &p->l->lanes[0];
    struct kedge_net *net = lane->net;
    struct kedge_dataset data = {.n = 0};
    KEDGE_TRY(p->spec->planted > 0 ? KEDGE_OK : kedgei_learn_data(p->l, site, true, &lane->room, &data));
    KEDGE_TRY(test_model(p, site, net, &data, &g->model, &own));
    KEDGE_TRY(g->tried_with == 0 ? KEDGE_OK : test_model(p, site, net, &data, &g->trial, &trial));
    ret->has = g->tried_with > 0;
    ret->samples = own.samples;
    ret->loss = own.loss;
    ret->trial_loss = trial.loss;
    *ret_deviation = own.deviation;
    return KEDGE_OK;
}

/* What its evaluation says, if the site has just made one. False: its data are no others. */
static bool has_lost(struct kedgei_protocol *p, uint32_t site, const struct kedge_site_task *task)
{
    const bool evaluates = task->kind == KEDGE_SITE_EVALUATE || task->evaluate_base;
    const uint32_t round = task->kind == KEDGE_SITE_EVALUATE ? task->round : task->round - 1;
    struct kedgei_found found = {.round = round, .group = task->group};
    double deviation = -1;
    if (!p->found || !evaluates || round != p->at.round || task->group >= p->at.groups || site >= p->l->n) {
        return false;
    }
    int err = test_models(p, site, task->group, &found, &deviation);
    if (err) { /* it diverges: there is nothing to tell */
        p->err = err == KEDGE_E_NOMEM ? err : p->err;
        return false;
    }
    const struct kedgei_work *work = &p->works[place_of(site, false)];
    if (task->kind == KEDGE_SITE_TRAIN && work->done && !work->err && work->round == task->round) {
        found.personal_loss = work->tested_loss;
        found.has = found.has || (found.personal_loss > 0 && kedge_job_spec_asks_own(&p->job, found.round));
    }
    p->found[site] = found;
    return p->job.shift == KEDGE_SHIFT_TEST_LOSS
           && kedge_grouped_lost(&p->l->grouped[site], &p->l->job.name, p->job.migration_pause, task->round,
                                 found.samples, found.loss, deviation);
}

/* After a pre-training the site's data are those that it is grouped by; behind anything else they are
 * compared with those, as kedge-client does. */
bool kedgei_protocol_has_shifted(void *arg, uint32_t site, const struct kedge_site_task *task)
{
    struct kedgei_protocol *p = arg;
    struct kedgei_learn *l = p->l;
    const bool lost = has_lost(p, site, task);
    if (task->kind == KEDGE_SITE_PRETRAIN) {
        kedgei_learn_note_labels(l, site, task->round);
        return false;
    }
    const bool shifted = l->grouped && (lost || kedgei_learn_has_shifted(l, site, task->round));
    l->line.detections += shifted;
    return shifted;
}
