/* kedge-train: the built-in trainer, a child process of the client. State between tasks: the data set last
 * used and the net last used, so that a round costs reading weights, training and writing weights.
 *
 * Nothing else is carried from one task to the next: weights come from the base's file, shuffles from the
 * request's seed, momentum begins at 0. So the same request gives the same result whether the process is new
 * or has trained a thousand rounds, and a restart in between changes nothing. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/train/choose.h"
#include "client/train/cuda_load.h"
#include "client/train/net.h"
#include "client/train/part.h"
#include "client/train/standardize.h"
#include "client/train/task.h"
#include "common/base/mem.h"
#include "common/base/try.h"

#ifndef KEDGE_VERSION
#define KEDGE_VERSION "0.1.0"
#endif
enum { EVALUATE_BATCH = 128, ENGINE_MAX = 192 };

struct trainer {
    bool has_data;
    uint64_t data_key;
    struct kedge_dataset train, test;
    uint64_t labels[KEDGE_TASK_LABELS_MAX]; /* of train */
    struct kedge_data_labels names;         /* of both, where their classes are found */
    struct kedge_net *net;
    struct kedge_model_spec spec;
    uint32_t batch_max;
    bool is_cuda;               /* net is on choice.dev */
    struct kedge_choice choice; /* of the device */
    char engine[ENGINE_MAX], failed[KEDGE_CHOICE_TEXT];
    struct kedge_layout layout; /* of the model: net's, and behind it that of scales */
    uint64_t scales_count;      /* of a model that standardizes: what it knows of its inputs, else 0 */
    float *scales;
    double *found;             /* what the training set adds to it */
    uint32_t *rows, row_count; /* of train: those that the task trains on; NULL: all */
};

static void drop_data(struct trainer *t)
{
    if (t->has_data) {
        kedge_dataset_deinit(&t->train);
        kedge_dataset_deinit(&t->test);
        t->has_data = false;
    }
}

static void drop_net(struct trainer *t)
{
    if (t->net) {
        kedge_net_free(t->net);
        kedge_layout_deinit(&t->layout);
        kedge_mem_free(t->scales);
        kedge_mem_free(t->found);
        t->scales = NULL;
        t->found = NULL;
        t->scales_count = 0;
        t->net = NULL;
    }
}

/* Data of a model that standardizes change with what it knows, since they are scaled as they are loaded: the
 * key is then of both. It decides only whether a data set is loaded again; two that meet in one key would
 * need the same file stamps. */
static uint64_t data_key(const struct trainer *t, const struct kedge_task *task)
{
    uint64_t key = task->data_key;
    for (uint64_t i = 0; i < t->scales_count; i++) {
        uint32_t bits;
        memcpy(&bits, &t->scales[i], sizeof bits);
        key = (key ^ bits) * 0x100000001b3u;
    }
    return key;
}

/* A round in which the sites name the classes together. */
static bool finds_classes(const struct kedge_task *task)
{
    return task->op == KEDGE_TASK_TRAIN && task->data.tells_classes;
}

static int use_data(struct trainer *t, const struct kedge_task *task, struct kedge_diag *reterr)
{
    uint64_t key = data_key(t, task);
    if (t->has_data && t->data_key == key) {
        return KEDGE_OK;
    }
    drop_data(t);
    int err = finds_classes(task)
                  ? kedge_data_binding_find(&task->data, &t->train, &t->test, &t->names, reterr)
                  : kedge_data_binding_load(&task->data, &t->train, &t->test, reterr);
    if (!err && t->scales_count > 0) {
        err = kedge_standardize_data(t->scales, kedge_model_inputs(&t->spec), &t->train, &t->test, t->found,
                                     reterr);
        if (err) {
            kedge_dataset_deinit(&t->train);
            kedge_dataset_deinit(&t->test);
        }
    }
    if (!err) {
        t->has_data = true;
        t->data_key = key;
        memset(t->labels, 0, sizeof t->labels);
        bool counts = t->train.classes > 0 && t->train.classes <= KEDGE_TASK_LABELS_MAX;
        for (uint32_t i = 0; i < t->train.n && counts; i++) {
            t->labels[t->train.labels[i]]++;
        }
    }
    return err;
}

/* The task's device, told on stderr when there is none; a net elsewhere is dropped. */
static void use_device(struct trainer *t, const struct kedge_task *task)
{
    bool first;
    if (t->is_cuda && task->precision != t->choice.precision) {
        drop_net(t);
    }
    bool is_cuda = kedge_choice_is_cuda(&t->choice, task, &first);
    if (first) {
        (void)fprintf(stderr, "kedge-train: %s\n", t->choice.why);
    }
    if (is_cuda != t->is_cuda) {
        drop_net(t);
    }
    t->is_cuda = is_cuda;
    (void)snprintf(t->engine, sizeof t->engine, "kedge-train " KEDGE_VERSION " %s",
                   is_cuda ? t->choice.ops->engine(t->choice.dev) : "cpu openblas");
}

/* A device that failed is given back, so that the next task begins anew. */
static void leave_device(struct trainer *t)
{
    drop_net(t);
    kedge_choice_close(&t->choice);
    t->is_cuda = false;
}

static int use_net(struct trainer *t, const struct kedge_task *task, struct kedge_diag *reterr)
{
    uint32_t batch = task->batch > EVALUATE_BATCH ? task->batch : EVALUATE_BATCH;
    use_device(t, task);
    if (t->net && kedge_model_same(&t->spec, &task->model) && batch <= t->batch_max) {
        return KEDGE_OK;
    }
    drop_net(t);
    struct kedge_model_spec inner = task->model;
    inner.standardize = false; /* the data are, before the net sees them */
    KEDGE_TRY(t->is_cuda ? kedge_net_new_on(&inner, batch, t->choice.ops, t->choice.dev, &t->net, reterr)
                         : kedge_net_new(&inner, batch, &t->net, reterr));
    int err = kedge_model_layout(&task->model, &t->layout, reterr);
    if (err) {
        kedge_net_free(t->net);
        t->net = NULL;
        return err;
    }
    t->spec = task->model;
    t->batch_max = batch;
    t->scales_count = t->layout.values_count - kedge_net_values_count(t->net);
    t->scales = kedge_mem_new(t->scales_count, sizeof *t->scales);
    t->found = kedge_mem_new(t->scales_count ? kedge_model_inputs(&t->spec) : 0, sizeof *t->found);
    if (t->scales_count > 0 && (!t->scales || !t->found)) {
        drop_net(t);
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for what the model knows of its inputs");
    }
    return KEDGE_OK;
}

/* The base into the net, and into scales what it knows of its inputs. */
static int read_base(struct trainer *t, const struct kedge_task *task, struct kedge_diag *reterr)
{
    size_t n = (size_t)kedge_net_values_count(t->net);
    if (t->scales_count == 0) {
        return kedge_weights_read(task->base, &t->layout, kedge_net_weights(t->net), reterr);
    }
    float *all KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(t->layout.values_count, sizeof *all);
    KEDGE_TRY(all ? kedge_weights_read(task->base, &t->layout, all, reterr)
                  : kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for the base"));
    memcpy(kedge_net_weights(t->net), all, n * sizeof *all);
    memcpy(t->scales, all + n, t->scales_count * sizeof *all);
    return KEDGE_OK;
}

static int write_out(const struct trainer *t, const struct kedge_task *task, struct kedge_diag *reterr)
{
    size_t n = (size_t)kedge_net_values_count(t->net);
    if (t->scales_count == 0) {
        return kedge_weights_write(task->out, &t->layout, kedge_net_weights(t->net), reterr);
    }
    float *all KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(t->layout.values_count, sizeof *all);
    KEDGE_TRY(all ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for the new weights"));
    memcpy(all, kedge_net_weights(t->net), n * sizeof *all);
    memcpy(all + n, t->scales, t->scales_count * sizeof *all);
    return kedge_weights_write(task->out, &t->layout, all, reterr);
}

static double now_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int evaluate(struct trainer *t, struct kedge_task_result *r, struct kedge_diag *reterr)
{
    struct kedge_evaluation e;
    KEDGE_TRY(kedge_net_evaluate(t->net, &t->test, &e, reterr));
    r->has_test = true;
    r->test_samples = e.samples;
    r->test_correct = e.correct;
    r->test_loss = e.loss;
    r->test_deviation = e.deviation;
    return KEDGE_OK;
}

/* Loss of the base on the site's own training data. */
static int measure_base(struct trainer *t, struct kedge_task_result *r, struct kedge_diag *reterr)
{
    struct kedge_evaluation e;
    KEDGE_TRY(kedge_net_evaluate(t->net, &t->train, &e, reterr));
    r->has_base_loss = true;
    r->base_loss = e.loss;
    return KEDGE_OK;
}

/* FedProx, Ditto: mu · base. */
static int pull_to(const struct trainer *t, const float *base, double mu, float **ret,
                   struct kedge_diag *reterr)
{
    size_t n = (size_t)kedge_net_values_count(t->net);
    float *towards = kedge_mem_new(n, sizeof *towards);
    if (!towards) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for the base of %zu values", n);
    }
    for (size_t i = 0; i < n; i++) {
        towards[i] = (float)(mu * (double)base[i]);
    }
    *ret = towards;
    return KEDGE_OK;
}

/* SCAFFOLD: the difference of two control variates. */
static int read_drift(const struct trainer *t, const char *path, float **ret, struct kedge_diag *reterr)
{
    size_t n = (size_t)kedge_net_values_count(t->net);
    float *towards = kedge_mem_new(n, sizeof *towards);
    if (!towards) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for a drift of %zu values", n);
    }
    int err = kedge_weights_read(path, &t->layout, towards, reterr);
    if (err) {
        kedge_mem_free(towards);
        return err == KEDGE_E_NOT_FINITE ? KEDGE_E_FORMAT : err;
    }
    *ret = towards;
    return KEDGE_OK;
}

static struct kedge_train_params params_of(const struct trainer *t, const struct kedge_task *task)
{
    return (struct kedge_train_params){.steps = task->steps,
                                       .epochs = task->epochs,
                                       .batch = task->batch,
                                       .lr = task->lr,
                                       .l2 = task->l2,
                                       .momentum = task->momentum,
                                       .clip = task->clip,
                                       .rows = t->rows,
                                       .row_count = t->row_count,
                                       .seed = task->seed};
}

static bool finds_scales(const struct trainer *t)
{
    return t->scales_count > 0
           && kedge_scales_stage(t->scales, kedge_model_inputs(&t->spec)) < KEDGE_SCALES_STAGES;
}

/* A round in which the sites find classes, means or variances together: no step is taken. */
static int find_together(struct trainer *t, struct kedge_task_result *r, struct kedge_diag *reterr)
{
    uint32_t bad = 0;
    struct kedge_evaluation e;
    KEDGE_TRY(kedge_net_evaluate(t->net, &t->train, &e, reterr));
    if (finds_scales(t)
        && kedge_scales_advance(t->scales, kedge_model_inputs(&t->spec), t->found, &bad) != KEDGE_OK) {
        return kedge_diag_set(
            reterr, KEDGE_E_FORMAT,
            "\"standardize\": feature %u has a mean or variance beyond 2^40; \"scale\" in the "
            "binding makes it smaller",
            bad + 1);
    }
    r->samples = t->train.n;
    r->train_loss = e.loss;
    return KEDGE_OK;
}

/* Trains a part of the model; the rest stays. `held` has room for a range for each tensor. */
static int train_part(struct trainer *t, const struct kedge_part *part, struct kedge_train_range *held,
                      struct kedge_train_params *params, struct kedge_train_result *ret,
                      struct kedge_diag *reterr)
{
    KEDGE_TRY(kedge_part_check(part, &t->layout, reterr));
    params->held = held;
    params->held_count = 0;
    for (uint32_t i = 0; i < t->layout.count; i++) {
        const struct kedge_tensor *w = &t->layout.tensors[i];
        if (!kedge_part_has(part, &t->layout, i)) {
            held[params->held_count++] = (struct kedge_train_range){w->offset / sizeof(float), w->count};
        }
    }
    return kedge_net_train(t->net, &t->train, params, ret, reterr);
}

/* The part that may change; or one phase after the other: in each a part changes. Their shuffles differ. */
static int train_parts(struct trainer *t, const struct kedge_task *task, struct kedge_train_params *params,
                       struct kedge_train_result *ret, struct kedge_diag *reterr)
{
    struct kedge_train_range *held = kedge_mem_new(t->layout.count, sizeof *held);
    int err = held ? KEDGE_OK : kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for the parts of a model");
    *ret = (struct kedge_train_result){.steps = 0};
    if (!err && task->phase_count == 0) {
        err = train_part(t, &task->trainable, held, params, ret, reterr);
    }
    for (uint32_t k = 0; k < task->phase_count && !err; k++) {
        struct kedge_train_result one = {.steps = 0};
        params->epochs = task->phases[k].epochs;
        params->seed = task->seed + k;
        err = train_part(t, &task->phases[k].part, held, params, &one, reterr);
        ret->steps += one.steps;
        ret->loss = one.loss;
    }
    kedge_mem_free(held);
    return err;
}

static int train(struct trainer *t, const struct kedge_task *task, struct kedge_task_result *r,
                 struct kedge_diag *reterr)
{
    if (finds_scales(t) || finds_classes(task)) {
        return find_together(t, r, reterr);
    }
    KEDGE_TRY(kedge_train_part(task->seed, task->percent, t->train.n, &t->rows, &t->row_count, reterr));
    struct kedge_train_params params = params_of(t, task);
    struct kedge_train_result trained;
    float *towards = NULL;
    int err = task->base_loss ? measure_base(t, r, reterr) : KEDGE_OK;
    if (!err && task->proximal > 0) {
        err = pull_to(t, kedge_net_weights(t->net), task->proximal, &towards, reterr);
        params.bend = (struct kedge_proximal_term){task->proximal, towards};
    } else if (!err && task->drift[0]) {
        err = read_drift(t, task->drift, &towards, reterr);
        params.bend = (struct kedge_proximal_term){0, towards};
    }
    if (!err) {
        err = task->phase_count > 0 || task->trainable.count > 0
                  ? train_parts(t, task, &params, &trained, reterr)
                  : kedge_net_train(t->net, &t->train, &params, &trained, reterr);
    }
    kedge_mem_free(towards);
    if (!err) {
        r->samples = t->row_count;
        r->data_samples = task->percent > 0 ? t->train.n : 0;
        r->steps = trained.steps;
        r->train_loss = trained.loss;
    }
    return err;
}

/* ---- a model of the site's own (Ditto) ---- */

/* base[n], own[n] behind it: what the net holds, and the site's own model; without one yet it begins as the
 * base. */
static int personal_open(const struct trainer *t, const struct kedge_task *task, float **ret,
                         struct kedge_diag *reterr)
{
    size_t n = (size_t)kedge_net_values_count(t->net);
    float *both = kedge_mem_new(2 * n, sizeof *both);
    KEDGE_TRY(both ? KEDGE_OK
                   : kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for a second model of %zu values", n));
    memcpy(both, kedge_net_weights(t->net), n * sizeof *both);
    memcpy(both + n, both, n * sizeof *both);
    int err = access(task->personal, F_OK) == 0
                  ? kedge_weights_read(task->personal, &t->layout, both + n, reterr)
                  : KEDGE_OK;
    if (err) {
        kedge_mem_free(both);
        return err == KEDGE_E_NOT_FINITE ? KEDGE_E_FORMAT : err;
    }
    *ret = both;
    return KEDGE_OK;
}

/* Its result on the test set. The net is the site's own model from here on. */
static int personal_evaluate(struct trainer *t, struct kedge_task_result *r, struct kedge_diag *reterr)
{
    struct kedge_evaluation e;
    KEDGE_TRY(kedge_net_evaluate(t->net, &t->test, &e, reterr));
    r->has_personal = true;
    r->personal_correct = e.correct;
    r->personal_loss = e.loss;
    return KEDGE_OK;
}

/* As many steps as the shared model had, pulled towards the base; then it is written. */
static int personal_train(struct trainer *t, const struct kedge_task *task, const float *base,
                          struct kedge_diag *reterr)
{
    struct kedge_train_params params = params_of(t, task);
    struct kedge_train_result trained;
    float *towards = NULL;
    int err = pull_to(t, base, task->personal_pull, &towards, reterr);
    if (!err) {
        params.bend = (struct kedge_proximal_term){task->personal_pull, towards};
        err = kedge_net_train(t->net, &t->train, &params, &trained, reterr);
    }
    kedge_mem_free(towards);
    return err ? err : kedge_weights_write(task->personal, &t->layout, kedge_net_weights(t->net), reterr);
}

static int personal_work(struct trainer *t, const struct kedge_task *task, const float *both,
                         struct kedge_task_result *r, struct kedge_diag *reterr)
{
    size_t n = (size_t)kedge_net_values_count(t->net);
    bool judged = task->op == KEDGE_TASK_EVALUATE || task->evaluate_base;
    memcpy(kedge_net_weights(t->net), both + n, n * sizeof *both);
    int err = task->op == KEDGE_TASK_TRAIN ? personal_train(t, task, both, reterr) : KEDGE_OK;
    return err || !judged ? err : personal_evaluate(t, r, reterr);
}

static int check_names(const struct trainer *t, struct kedge_diag *reterr)
{
    const uint32_t outputs = kedge_model_outputs(&t->spec);
    return t->names.count <= outputs
               ? KEDGE_OK
               : kedge_diag_set(reterr, KEDGE_E_SHAPE, "%u different labels, but the model has %u outputs",
                                t->names.count, outputs);
}

/* Runs a parsed task; *ret_code names the stage that failed. */
static int run_task(struct trainer *t, const struct kedge_task *task, struct kedge_task_result *r,
                    const char **ret_code, struct kedge_diag *reterr)
{
    double begin = now_seconds();
    bool standardizes = task->model.standardize; /* then the base says how the data are scaled */
    *ret_code = "data";
    int err = standardizes ? KEDGE_OK : use_data(t, task, reterr);
    if (!err) {
        *ret_code = "model";
        err = use_net(t, task, reterr);
    }
    if (!err) {
        err = read_base(t, task, reterr);
    }
    if (!err && standardizes) {
        *ret_code = "data";
        err = use_data(t, task, reterr);
    }
    if (err) {
        return err == KEDGE_E_NOT_FINITE ? KEDGE_E_FORMAT : err; /* a bad base is no divergence of ours */
    }
    r->fallback = task->device != KEDGE_TASK_CPU && !t->is_cuda ? t->choice.why : NULL;
    const bool finds = finds_classes(task); /* then labels have numbers of this site's own */
    r->labels = t->labels;
    r->classes = finds ? 0 : t->train.classes;
    r->names = finds ? &t->names : NULL;
    *ret_code = "data";
    kedge_train_set_threads(task->threads);
    float *both = NULL;
    err = finds ? check_names(t, reterr) : KEDGE_OK;
    if (!err && (task->op == KEDGE_TASK_EVALUATE || (task->evaluate_base && !finds))) {
        err = evaluate(t, r, reterr);
    }
    if (!err && task->personal[0]) {
        *ret_code = "model";
        err = personal_open(t, task, &both, reterr);
        *ret_code = err ? *ret_code : "data";
    }
    if (!err && task->op == KEDGE_TASK_MEASURE) {
        err = measure_base(t, r, reterr);
    }
    if (!err && task->op == KEDGE_TASK_TRAIN) {
        err = train(t, task, r, reterr);
        if (!err) {
            *ret_code = "output";
            err = write_out(t, task, reterr);
        }
    }
    if (!err && both) {
        err = personal_work(t, task, both, r, reterr);
    }
    kedge_mem_free(both);
    kedge_mem_free(t->rows);
    t->rows = NULL;
    r->seconds = now_seconds() - begin;
    return err;
}

/* A task that the device could not do is done once more on the processor; the next one tries the device
 * again.
 */
static int run_here(struct trainer *t, struct kedge_task *task, struct kedge_task_result *r,
                    const char **ret_code, struct kedge_diag *diag)
{
    (void)snprintf(t->failed, sizeof t->failed, "CUDA failed: %.200s; this task was done on the processor",
                   diag->text[0] ? diag->text : "no memory");
    (void)fprintf(stderr, "kedge-train: %s\n", t->failed);
    leave_device(t);
    *diag = (struct kedge_diag){0};
    *r = (struct kedge_task_result){.engine = t->engine};
    task->device = KEDGE_TASK_CPU;
    const int err = run_task(t, task, r, ret_code, diag);
    r->fallback = t->failed;
    return err;
}

static void answer(void *ctx, struct kedge_view line, struct kedge_buf *reply)
{
    struct kedge_task task;
    struct kedge_diag diag = {0};
    struct trainer *t = ctx;
    struct kedge_task_result result = {.engine = t->engine};
    const char *code = "request";
    int err = kedge_task_parse(line, true, &task, &diag);
    if (!err) {
        err = run_task(t, &task, &result, &code, &diag);
    }
    if (t->is_cuda && (err == KEDGE_E_DEVICE || err == KEDGE_E_NOMEM)) {
        err = run_here(t, &task, &result, &code, &diag);
    }
    if (err) {
        kedge_task_put_error(reply, &task, kedge_task_code(err, code), diag.text);
    } else {
        kedge_task_put_ok(reply, &task, &result);
    }
}

/* What this machine has to train on, for people and for doctors: a line each. 0, or 1 without a device. */
static int tell_devices(void)
{
    const struct kedge_task wish = {.device = KEDGE_TASK_CUDA, .threads = 1};
    struct kedge_choice choice = {0};
    char path[KEDGE_CUDA_PATH_MAX] = "", text[KEDGE_CHOICE_TEXT] = "";
    const bool loads = kedge_cuda_find(path, text, sizeof text) != NULL;
    bool first;
    (void)printf("cpu: openblas\n%s: %s\n", loads ? "module" : "no module", loads ? path : text);
    const bool there = loads && kedge_choice_is_cuda(&choice, &wish, &first);
    if (loads) {
        (void)printf("%s: %s\n", there ? "device" : "no device",
                     there ? choice.ops->engine(choice.dev) : choice.cause);
    }
    kedge_choice_close(&choice);
    return there ? 0 : 1;
}

static const char help[] =
    "kedge-train: the built-in trainer of Kedge.\n"
    "Reads one JSON request a line on standard input, answers one JSON line on standard output,\n"
    "ends at the end of the input. Usually a child process of kedge-client.\n"
    "\n"
    "  {\"id\":\"1\",\"op\":\"train\",\"model\":{\"preset\":\"mclr\",\"inputs\":64,\"classes\":10},\n"
    "   \"base\":\"in.safetensors\",\"out\":\"out.safetensors\",\"epochs\":1,\"batch\":10,\"lr\":\"0.03\",\n"
    "   \"l2\":\"0.001\",\"seed\":\"1\",\"evaluate_base\":true,\n"
    "   \"data\":{\"train\":{\"format\":\"csv\",\"path\":\"mine.csv\"},\"split\":\"0.9\"}}\n"
    "  (on one line)\n"
    "\n"
    "  --devices      what this machine has to train on; 1 without a device\n"
    "  --help, -h     this text\n"
    "  --version      name and version\n";

int main(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(help, stdout);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("kedge-train " KEDGE_VERSION);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--devices") == 0) {
        return tell_devices();
    }
    if (argc != 1) {
        fprintf(stderr, "kedge-train: unknown argument \"%s\"; see kedge-train --help\n", argv[1]);
        return 2;
    }
    struct trainer trainer = {0};
    kedge_train_set_threads(1);
    int status = kedge_task_serve(answer, &trainer);
    leave_device(&trainer);
    drop_data(&trainer);
    return status;
}
