/* What sites do: they train as kedge-train does, with the seed of the task, and quantise as kedge-client
 * does. A training is done when its result is first asked for, together with all that were begun by then, on
 * all threads. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "aggregation/quantise.h"
#include "client/daemon/update/variate.h"
#include "client/train/weights.h"
#include "common/base/mem.h"
#include "common/tensor/safetensors.h"
#include "grouping/shift.h"
#include "job/task_seed.h"
#include "sim/protocol/impl.h"

/* What comes back of a thread, followed by the update's values. */
struct trained {
    int32_t err;
    uint32_t choice;
    uint64_t samples, steps;
    double base_loss, loss, moved, tested_loss;
};

static int32_t *values_of(struct trained *t)
{
    return (int32_t *)(void *)(t + 1);
}

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

/* As kedge-train: the loss of the base, then the steps, bent as the strategy says. */
static int train(const struct kedgei_protocol *p, const struct kedgei_work *work, struct kedge_net *net,
                 const struct kedge_dataset *data, const float *base, const float *drift, struct trained *ret)
{
    const struct kedge_job_spec *job = &p->job;
    struct kedge_train_params params = kedgei_protocol_params(p, work);
    double mu = work->pretrain ? 0 : kedge_local_plan(job->strategy->local, &job->options).pull;
    uint64_t n = p->layout.values_count;
    struct kedge_train_result result;
    struct kedge_evaluation e;
    float *towards = mu > 0 ? kedge_mem_new((size_t)n, sizeof *towards) : NULL;
    int err = mu > 0 && !towards ? KEDGE_E_NOMEM : KEDGE_OK;
    memcpy(kedge_net_weights(net), base, (size_t)n * sizeof *base);
    kedgei_protocol_join_head(p, work->site, kedge_net_weights(net));
    if (!err && !work->pretrain && job->strategy->needs_loss) {
        err = kedge_net_evaluate(net, data, &e, NULL);
        ret->base_loss = err ? 0 : e.loss;
    }
    for (uint64_t i = 0; i < n && towards; i++) {
        towards[i] = (float)(mu * (double)base[i]);
    }
    if (towards || drift) {
        params.bend = (struct kedge_proximal_term){mu, towards ? towards : drift};
    }
    const bool phases = !work->pretrain && job->strategy->local->is_head_first;
    err = err      ? err
          : phases ? kedgei_protocol_train_phases(p, net, data, params, &result)
                   : kedge_net_train(net, data, &params, &result, NULL);
    kedge_mem_free(towards);
    if (!err) {
        ret->samples = data->n;
        ret->steps = result.steps;
        ret->loss = result.loss;
    }
    return err;
}

static double distance(const float *a, const float *b, uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        double v = (double)a[i] - (double)b[i];
        sum += v * v;
    }
    return sqrt(sum);
}

/* SCAFFOLD: what a training begins with: the server's control variate, the site's, and their difference. */
struct control {
    bool has;
    float *server, *drift;
    int32_t *own;
};

static void control_deinit(struct control *c)
{
    kedge_mem_free(c->server);
    kedge_mem_free(c->drift);
    kedge_mem_free(c->own);
}

/* Deinit also behind an error. */
static int control_init(const struct kedgei_protocol *p, const struct kedgei_work *work, struct control *c)
{
    const size_t n = (size_t)p->layout.values_count;
    struct kedge_layout layout;
    char path[KEDGE_PATH_MAX];
    *c = (struct control){.has = p->variates && !work->pretrain};
    if (!c->has) {
        return KEDGE_OK;
    }
    const int32_t *own = p->variates[work->site].own;
    c->server = kedge_mem_new(n, sizeof *c->server);
    c->drift = kedge_mem_new(n, sizeof *c->drift);
    c->own = kedge_mem_new(n, sizeof *c->own);
    int err = c->server && c->drift && c->own ? KEDGE_OK : KEDGE_E_NOMEM;
    if (!err && own) {
        memcpy(c->own, own, n * sizeof *own);
    }
    if (!err && !kedge_hash_is_zero(&work->control)) {
        const struct kedge_digest digest = kedgei_protocol_digest(&work->control);
        kedgei_files_path(&p->files, &digest, path);
        err = kedge_job_spec_control_layout(&p->layout, &layout, NULL);
        if (!err) {
            err = kedge_weights_read(path, &layout, c->server, NULL);
            kedge_layout_deinit(&layout);
        }
    }
    if (!err) {
        kedge_variate_drift(&p->job, c->own, c->server, n, c->drift);
    }
    return err;
}

/* The model of the least loss on the site's own data into base, ties to the lowest. */
static int choose(const struct kedgei_protocol *p, const struct kedgei_work *work, struct kedge_net *net,
                  const struct kedge_dataset *data, float *base, struct trained *ret)
{
    double least = 0;
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < work->choice_count && !err; g++) {
        struct kedge_evaluation e;
        char path[KEDGE_PATH_MAX];
        kedgei_files_path(&p->files, &work->choices[g], path);
        err = kedge_weights_read(path, &p->layout, kedge_net_weights(net), NULL);
        err = err ? err : kedge_net_evaluate(net, data, &e, NULL);
        if (!err && (g == 0 || e.loss < least)) {
            least = e.loss;
            ret->choice = g;
            memcpy(base, kedge_net_weights(net), (size_t)p->layout.values_count * sizeof *base);
        }
    }
    return err;
}

/* Planted updates ("synthetic_updates"): no samples, no training. They follow from the site, the round and
 * the base by exact arithmetic alone, so that what is made of them is the same on every machine. */
static int plant(const struct kedgei_protocol *p, struct kedgei_learn_lane *lane,
                 const struct kedgei_work *work, float *base, struct trained *ret)
{
    const size_t n = (size_t)p->layout.values_count;
    double least = 0;
    char path[KEDGE_PATH_MAX];
    for (uint32_t g = 0; g < work->choice_count; g++) {
        double loss;
        kedgei_files_path(&p->files, &work->choices[g], path);
        int err = kedge_weights_read(path, &p->layout, lane->towards, NULL);
        err = err ? err : kedgei_learn_loss(p->l, lane, work->site, lane->towards, &loss);
        if (err) {
            return err;
        }
        if (g == 0 || loss < least) {
            least = loss;
            ret->choice = g;
            memcpy(base, lane->towards, n * sizeof *base);
        }
    }
    struct control control = {.has = false};
    const struct kedgei_learn_item item = {
        .site = work->site, .base = base, .stream = work->round, .pretrain = work->pretrain};
    struct kedgei_learn_result r = {.err = KEDGE_OK};
    int err = kedgei_learn_synthesise(p->l, lane, &item, values_of(ret), &r);
    ret->samples = p->l->sites[work->site].train_count;
    ret->steps = r.steps;
    ret->loss = r.loss;
    ret->base_loss = r.loss_before;
    ret->moved = r.moved;
    err = err ? err : control_init(p, work, &control);
    if (!err && control.has) {
        size_t bad;
        err = kedge_variate_change(&p->job, control.server, base, lane->start, ret->steps, n, control.own,
                                   values_of(ret) + n, &bad);
    }
    control_deinit(&control);
    return err;
}

static int work_on(const struct kedgei_protocol *p, const struct kedgei_work *work, float *base,
                   struct trained *ret)
{
    uint64_t n = p->layout.values_count;
    struct kedge_dataset data;
    struct kedge_net *net = NULL;
    int err = kedgei_protocol_data(p->l, work->site, false, &data);
    if (err) {
        return err;
    }
    struct control control = {.has = false};
    uint32_t batch = p->job.batch > KEDGEI_EVALUATE_BATCH ? p->job.batch : KEDGEI_EVALUATE_BATCH;
    err = kedge_net_new(&p->job.model, batch, &net, NULL);
    err = err ? err : choose(p, work, net, &data, base, ret);
    err = err ? err : control_init(p, work, &control);
    err = err ? err : train(p, work, net, &data, base, control.drift, ret);
    if (!err) {
        ret->moved = distance(kedge_net_weights(net), base, n);
        err = kedgei_protocol_test_trained(p, work, net, &ret->tested_loss);
    }
    if (!err) {
        err = kedge_quantise(base, kedge_net_weights(net), (size_t)n, p->job.scale, p->job.bound,
                             values_of(ret), NULL);
    }
    if (!err && control.has) {
        size_t bad;
        err = kedge_variate_change(&p->job, control.server, base, kedge_net_weights(net), ret->steps,
                                   (size_t)n, control.own, values_of(ret) + n, &bad);
    }
    control_deinit(&control);
    if (!err && !work->pretrain && kedge_job_spec_has_head(&p->job)) {
        err = kedgei_protocol_own_next(p, work->site, kedge_net_weights(net));
    } else if (!err && !work->pretrain && p->owns) {
        err = kedgei_protocol_train_own(p, work->site, net, &data, base, kedgei_protocol_params(p, work));
    }
    kedge_net_free(net);
    kedge_dataset_deinit(&data);
    return err;
}

static int train_item(struct kedgei_learn *l, struct kedgei_learn_lane *lane, uint32_t item, void *result)
{
    const struct kedgei_protocol *p = l->owner;
    const struct kedgei_work *work = &p->works[p->queue[item]];
    struct trained *t = result;
    char path[KEDGE_PATH_MAX];
    *t = (struct trained){.err = KEDGE_OK};
    kedgei_files_path(&p->files, &work->base, path);
    float *base = kedge_mem_new((size_t)p->layout.values_count, sizeof *base);
    t->err = base ? KEDGE_OK : KEDGE_E_NOMEM;
    if (!t->err && work->choice_count == 0) {
        t->err = kedge_weights_read(path, &p->layout, base, NULL);
    }
    if (!t->err) {
        t->err = p->spec->planted ? plant(p, lane, work, base, t) : work_on(p, work, base, t);
    }
    kedge_mem_free(base);
    return KEDGE_OK; /* a site that fails is a site that fails */
}

/* ---- on the caller's ---- */

/* The site's control variate once this update counts. */
static int keep_variate(struct kedgei_protocol *p, const struct kedgei_work *work, const int32_t *change)
{
    const size_t n = (size_t)p->layout.values_count;
    struct kedgei_variate *v = &p->variates[work->site];
    v->next = v->next ? v->next : kedge_mem_new(n, sizeof *v->next);
    if (!v->next) {
        return KEDGE_E_NOMEM;
    }
    for (size_t i = 0; i < n; i++) { /* within bounds: kedge_variate_change has looked */
        v->next[i] = (v->own ? v->own[i] : 0) + change[i];
    }
    v->by = work->update;
    return KEDGE_OK;
}

void kedgei_protocol_settle(struct kedgei_protocol *p)
{
    for (uint32_t i = 0; i < p->last.input_count; i++) {
        const struct kedgei_update *u = kedgei_protocol_update(p, &p->last.inputs[i]);
        if (!u || u->pretrain) {
            continue;
        }
        kedgei_protocol_left_settle(p, u);
        int err = kedgei_protocol_own_settle(p, u);
        p->err = p->err ? p->err : err;
        struct kedgei_variate *v = p->variates ? &p->variates[u->site] : NULL;
        if (v && v->next && sim_same(&v->by, &u->digest)) {
            int32_t *former = v->own;
            v->own = v->next;
            v->next = former;
        }
        if (p->trained) {
            p->trained[u->site] =
                (struct kedgei_trained){kedgei_protocol_hash(&u->digest), kedgei_protocol_hash(&u->base)};
        }
    }
}

static int keep_update(struct kedgei_protocol *p, struct kedgei_work *work, struct trained *t)
{
    struct kedgei_file file;
    struct kedge_buf header;
    const struct kedge_layout *layout = work->pretrain ? &p->layout : &p->update_layout;
    uint64_t n = layout->values_count;
    int err = kedgei_file_begin(&p->files, 0, &file, p->d);
    if (err) {
        return err;
    }
    kedge_buf_init(&header, KEDGE_TENSOR_HEADER_MAX + 8);
    if (kedge_job_spec_compact(&p->job, work->pretrain)) {
        err = kedgei_protocol_compact(p, work, values_of(t), file.sink);
    } else {
        err = kedge_safetensors_header(layout, KEDGE_DTYPE_I32, &header);
        err = err ? err : file.sink.write(file.sink.arg, kedge_buf_view(&header));
        err = err ? err
                  : file.sink.write(file.sink.arg, kedge_view_of(values_of(t), (size_t)n * sizeof(int32_t)));
    }
    err = kedgei_file_end(&file, err, &work->update, p->d);
    kedge_buf_deinit(&header);
    if (!err && p->owns && !work->pretrain) {
        p->owns[work->site].by = work->update;
    }
    if (!err && work->len > 0) {
        p->lefts[work->site].by = work->update;
    }
    err = err || !p->variates ? err : keep_variate(p, work, values_of(t) + p->layout.values_count);
    if (err || kedgei_protocol_update(p, &work->update)) {
        return err;
    }
    p->updates = sim_grow(p->updates, p->update_count + 1, &p->update_max, sizeof *p->updates);
    p->updates[p->update_count] = (struct kedgei_update){.digest = work->update,
                                                         .base = work->base,
                                                         .site = work->site,
                                                         .round = work->round,
                                                         .pretrain = work->pretrain,
                                                         .samples = t->samples,
                                                         .steps = t->steps,
                                                         .base_loss = t->base_loss,
                                                         .loss = t->loss,
                                                         .moved = t->moved};
    (void)sim_index_put(&p->index, sim_hash(SIM_HASH_START, work->update.b, sizeof work->update.b),
                        p->update_count++);
    return KEDGE_OK;
}

void kedgei_protocol_train(struct kedgei_protocol *p)
{
    size_t size =
        (sizeof(struct trained) + (size_t)p->update_layout.values_count * sizeof(int32_t) + 7) / 8 * 8;
    uint8_t *results = p->queued ? kedge_mem_new(p->queued, size) : NULL;
    int err = !p->queued || results ? KEDGE_OK : KEDGE_E_NOMEM;
    err = err || !p->queued ? err : kedgei_learn_spread(p->l, p->queued, NULL, size, train_item, results);
    for (uint32_t i = 0; i < p->queued && !err; i++) {
        struct kedgei_work *work = &p->works[p->queue[i]];
        struct trained *t = (struct trained *)(void *)(results + i * size);
        work->done = true;
        work->choice = t->choice;
        work->tested_loss = t->tested_loss;
        work->err = t->err;
        err = work->err ? KEDGE_OK : keep_update(p, work, t);
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
    struct kedge_id id;
    if (task->kind == KEDGE_SITE_EVALUATE
        || (work->used && work->round == task->round && sim_same(&work->base, &base))) {
        return; /* it is the same again, and so is what comes of it */
    }
    if (work->used && !work->done) {
        kedgei_protocol_train(p);
    }
    kedgei_names_site(&p->names, site, &id);
    *work = (struct kedgei_work){.used = true,
                                 .site = site,
                                 .round = task->round,
                                 .pretrain = pretrain,
                                 .seed = kedge_task_seed(task->seed, task->round, &id),
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
    p->queue[p->queued++] = place_of(site, pretrain);
}

static bool labels_of(const struct kedgei_protocol *p, uint32_t site, struct kedge_labels *ret)
{
    *ret = (struct kedge_labels){.classes = p->l->pool.classes <= KEDGE_LABELS_MAX ? p->l->pool.classes : 0};
    if (ret->classes > 0) {
        kedgei_learn_count_labels(p->l, site, ret->counts);
    }
    return ret->classes > 0;
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
    if (p->lefts) {
        p->lefts[site].sends = work->len;
    }
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
    char path[KEDGE_PATH_MAX];
    const struct kedge_digest digest = kedgei_protocol_digest(model);
    kedgei_files_path(&p->files, &digest, path);
    int err = kedge_weights_read(path, &p->layout, kedge_net_weights(net), NULL);
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
    struct kedge_dataset data = {.n = 0};
    struct kedge_net *net = NULL;
    int err = p->spec->planted > 0 ? KEDGE_OK : kedgei_protocol_data(p->l, site, true, &data);
    if (err) {
        return err;
    }
    err = kedge_net_new(&p->job.model, KEDGEI_EVALUATE_BATCH, &net, NULL);
    err = err ? err : test_model(p, site, net, &data, &g->model, &own);
    err = err || g->tried_with == 0 ? err : test_model(p, site, net, &data, &g->trial, &trial);
    if (!err) {
        ret->has = g->tried_with > 0;
        ret->samples = own.samples;
        ret->loss = own.loss;
        ret->trial_loss = trial.loss;
        *ret_deviation = own.deviation;
    }
    kedge_net_free(net);
    kedge_dataset_deinit(&data);
    return err;
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
           && kedge_grouped_lost(&p->grouped[site], &task->job, p->job.migration_pause, task->round,
                                 found.samples, found.loss, deviation);
}

/* After a pre-training the site's data are those that it is grouped by; behind anything else they are
 * compared with those, as kedge-client does. */
bool kedgei_protocol_has_shifted(void *arg, uint32_t site, const struct kedge_site_task *task)
{
    struct kedgei_protocol *p = arg;
    struct kedge_labels labels;
    const bool lost = has_lost(p, site, task);
    if (p->job.shift == KEDGE_SHIFT_TEST_NONE || !p->grouped) {
        return false;
    }
    (void)labels_of(p, site, &labels);
    if (task->kind == KEDGE_SITE_PRETRAIN) {
        kedge_grouped_note(&p->grouped[site], &task->job, task->round, &labels);
        return false;
    }
    bool shifted = lost
                   || kedge_grouped_shifted(&p->grouped[site], &task->job, p->job.shift,
                                            p->job.migration_pause, task->round, &labels);
    p->l->line.detections += shifted;
    return shifted;
}
