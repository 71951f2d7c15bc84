/* Requests to a trainer, one line of JSON each. docs/modules/train.md is the contract; ranges are there, too.
 *
 * Unknown keys are refused: a client that asks for something which this version does not know must learn that
 * it did not get it, instead of an update that was trained in another way. */
#include "client/train/task.h"

#include <string.h>

#include "client/train/net.h"
#include "common/base/percent.h"
#include "common/base/try.h"

static uint64_t hash_text(struct kedge_view v, uint64_t h)
{
    for (size_t i = 0; i < v.len; i++) {
        h = (h ^ v.ptr[i]) * 0x100000001b3u;
    }
    return h;
}

/* An optional whole number. */
static int get_count(const struct kedge_json *doc, const char *key, uint64_t min, uint64_t max,
                     uint64_t otherwise, uint64_t *ret, struct kedge_diag *reterr)
{
    if (kedge_json_find(doc, 0, key) == KEDGE_JSON_NONE) {
        *ret = otherwise;
        return KEDGE_OK;
    }
    return kedge_json_get_u64(doc, 0, key, min, max, ret, reterr);
}

static int get_u32(const struct kedge_json *doc, const char *key, uint32_t min, uint32_t max,
                   uint32_t otherwise, uint32_t *ret, struct kedge_diag *reterr)
{
    uint64_t v = 0;
    KEDGE_TRY(get_count(doc, key, min, max, otherwise, &v, reterr));
    *ret = (uint32_t)v;
    return KEDGE_OK;
}

static int read_numbers(const struct kedge_json *doc, struct kedge_task *t, struct kedge_diag *reterr)
{
    int err = get_u32(doc, "epochs", 0, 1000000, 0, &t->epochs, reterr);
    if (!err) {
        err = get_count(doc, "steps", 0, 1000000000, 0, &t->steps, reterr);
    }
    if (!err) {
        err = get_u32(doc, "batch", 1, KEDGE_TRAIN_BATCH_MAX, 10, &t->batch, reterr);
    }
    if (!err) {
        err = get_u32(doc, "threads", 1, KEDGE_TRAIN_THREADS_MAX, 1, &t->threads, reterr);
    }
    if (!err) {
        err = get_count(doc, "samples", 1, UINT32_MAX, 1, &t->samples, reterr);
    }
    if (!err) {
        err = get_u32(doc, "percent", 1, KEDGE_PERCENT_ALL, 0, &t->percent, reterr);
    }
    if (!err && kedge_json_find(doc, 0, "l2") != KEDGE_JSON_NONE) {
        err = kedge_json_get_real(doc, 0, "l2", 0.0, 1e6, &t->l2, reterr);
    }
    if (!err && kedge_json_find(doc, 0, "seed") != KEDGE_JSON_NONE) {
        err = kedge_json_get_u64_string(doc, 0, "seed", &t->seed, reterr);
    }
    if (!err && kedge_json_find(doc, 0, "evaluate_base") != KEDGE_JSON_NONE) {
        err = kedge_json_get_bool(doc, 0, "evaluate_base", &t->evaluate_base, reterr);
    }
    if (!err && kedge_json_find(doc, 0, "base_loss") != KEDGE_JSON_NONE) {
        err = kedge_json_get_bool(doc, 0, "base_loss", &t->base_loss, reterr);
    }
    if (!err && kedge_json_find(doc, 0, "proximal") != KEDGE_JSON_NONE) {
        err = kedge_json_get_real(doc, 0, "proximal", 0.0, 1000, &t->proximal, reterr);
    }
    if (!err && kedge_json_find(doc, 0, "momentum") != KEDGE_JSON_NONE) {
        err = kedge_json_get_real(doc, 0, "momentum", 0.0, 0.999999, &t->momentum, reterr);
    }
    if (!err && kedge_json_find(doc, 0, "clip") != KEDGE_JSON_NONE) {
        err = kedge_json_get_real(doc, 0, "clip", 0.0, 1e6, &t->clip, reterr);
    }
    return err;
}

static int read_train(const struct kedge_json *doc, bool engine, struct kedge_task *t,
                      struct kedge_diag *reterr)
{
    KEDGE_TRY(kedge_json_get_string(doc, 0, "out", t->out, sizeof t->out, reterr));
    if (engine && t->epochs == 0 && t->steps == 0) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"epochs\" or \"steps\" must be at least 1 to train");
    }
    if (!engine && kedge_json_find(doc, 0, "lr") == KEDGE_JSON_NONE) {
        return KEDGE_OK;
    }
    return kedge_json_get_real(doc, 0, "lr", 0.0, 1e6, &t->lr, reterr);
}

static int read_personal(const struct kedge_json *doc, struct kedge_task *t, struct kedge_diag *reterr)
{
    if (kedge_json_find(doc, 0, "personal") == KEDGE_JSON_NONE) {
        return KEDGE_OK;
    }
    int err = kedge_json_get_string(doc, 0, "personal", t->personal, sizeof t->personal, reterr);
    if (!err && t->personal[0] == '\0') {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"personal\": expected a path");
    }
    if (!err && kedge_json_find(doc, 0, "personal_pull") != KEDGE_JSON_NONE) {
        err = kedge_json_get_real(doc, 0, "personal_pull", 0.0, 1000, &t->personal_pull, reterr);
    }
    return err;
}

static int read_drift(const struct kedge_json *doc, struct kedge_task *t, struct kedge_diag *reterr)
{
    if (kedge_json_find(doc, 0, "drift") == KEDGE_JSON_NONE) {
        return KEDGE_OK;
    }
    int err = kedge_json_get_string(doc, 0, "drift", t->drift, sizeof t->drift, reterr);
    if (!err && t->drift[0] == '\0') {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"drift\": expected a path");
    }
    if (!err && t->proximal > 0) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"drift\": not together with \"proximal\"");
    }
    return err;
}

static int read_device(const struct kedge_json *doc, struct kedge_task *t, struct kedge_diag *reterr)
{
    static const char *const precisions[] = {"f32", "tf32", "bf16"}; /* as the enum counts them */
    uint32_t device = kedge_json_find(doc, 0, "device"), precision = kedge_json_find(doc, 0, "precision");
    if (device != KEDGE_JSON_NONE && !kedge_json_str_is(doc, device, "cpu")) {
        t->device = kedge_json_str_is(doc, device, "auto") ? KEDGE_TASK_AUTO : KEDGE_TASK_CUDA;
        if (t->device == KEDGE_TASK_CUDA && !kedge_json_str_is(doc, device, "cuda")) {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                  "\"device\": expected \"cpu\", \"cuda\" or \"auto\"");
        }
    }
    for (int i = 0; i < 3 && precision != KEDGE_JSON_NONE; i++) {
        if (kedge_json_str_is(doc, precision, precisions[i])) {
            t->precision = (enum kedge_ops_precision)i;
            return KEDGE_OK;
        }
    }
    return precision == KEDGE_JSON_NONE
               ? KEDGE_OK
               : kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                "\"precision\": expected \"f32\", \"tf32\" or \"bf16\"");
}

static int read_op(const struct kedge_json *doc, struct kedge_task *t, struct kedge_diag *reterr)
{
    uint32_t op = kedge_json_find(doc, 0, "op");
    if (kedge_json_str_is(doc, op, "train")) {
        t->op = KEDGE_TASK_TRAIN;
    } else if (kedge_json_str_is(doc, op, "evaluate")) {
        t->op = KEDGE_TASK_EVALUATE;
    } else if (kedge_json_str_is(doc, op, "measure")) {
        t->op = KEDGE_TASK_MEASURE;
    } else {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "\"op\": expected \"train\", \"evaluate\" or \"measure\"");
    }
    return KEDGE_OK;
}

static int read_model_and_data(const struct kedge_json *doc, bool engine, struct kedge_task *t,
                               struct kedge_diag *reterr)
{
    uint32_t model = kedge_json_find(doc, 0, "model"), data = kedge_json_find(doc, 0, "data");
    if (!engine) {
        return KEDGE_OK;
    }
    if (model == KEDGE_JSON_NONE || data == KEDGE_JSON_NONE) {
        return kedge_diag_set(reterr, KEDGE_E_NOT_FOUND, "\"%s\" is missing",
                              model == KEDGE_JSON_NONE ? "model" : "data");
    }
    int err = kedge_model_from_json(doc, model, &t->model, reterr);
    if (!err) {
        err = kedge_data_binding_from_json(doc, data, &t->data, reterr);
    }
    if (!err && t->model.standardize
        && (t->personal[0] || t->drift[0] || t->phase_count > 0 || t->trainable.count > 0)) {
        err = kedge_diag_set(
            reterr, KEDGE_E_FORMAT,
            "\"standardize\" does not go with \"personal\", \"drift\", \"phases\" and \"trainable\"");
    }
    if (err) {
        return err;
    }
    if (t->model.loss == KEDGE_LOSS_SQUARE_ERROR && kedge_model_outputs(&t->model) == 1) {
        t->data.target = KEDGE_CSV_TARGET_REAL;
    }
    t->has_model = t->has_data = true;
    t->data_key =
        hash_text(kedge_json_text(doc, data), kedge_data_binding_stamp(&t->data)) ^ (uint64_t)t->data.target;
    return KEDGE_OK;
}

/* The id is read first, so that an error in anything after it is told with the id of its request. */
int kedge_task_parse(struct kedge_view line, bool engine, struct kedge_task *ret, struct kedge_diag *reterr)
{
    static const char *const keys[] = {
        "id",        "op",       "model",     "base",     "out",           "data",          "epochs",
        "steps",     "batch",    "lr",        "l2",       "seed",          "evaluate_base", "threads",
        "samples",   "proximal", "base_loss", "personal", "personal_pull", "drift",         "device",
        "precision", "momentum", "clip",      "phases",   "trainable",     "percent"};
    struct kedge_json_token tokens[KEDGE_TASK_TOKENS_MAX];
    struct kedge_json doc;
    *ret = (struct kedge_task){0};
    int err = kedge_json_parse(line, tokens, KEDGE_TASK_TOKENS_MAX, &doc, reterr);
    if (!err) {
        err = kedge_json_get_string(&doc, 0, "id", ret->id, sizeof ret->id, reterr);
    }
    if (!err) {
        err = kedge_json_check_keys(&doc, 0, "request", keys, sizeof keys / sizeof keys[0], reterr);
    }
    if (!err) {
        err = read_op(&doc, ret, reterr);
    }
    if (!err) {
        err = kedge_json_get_string(&doc, 0, "base", ret->base, sizeof ret->base, reterr);
    }
    if (!err) {
        err = read_numbers(&doc, ret, reterr);
    }
    if (err) {
        return err;
    }
    KEDGE_TRY(read_personal(&doc, ret, reterr));
    KEDGE_TRY(read_drift(&doc, ret, reterr));
    KEDGE_TRY(kedgei_task_read_phases(&doc, ret, reterr));
    err = read_device(&doc, ret, reterr);
    if (!err && ret->op == KEDGE_TASK_TRAIN) {
        err = read_train(&doc, engine, ret, reterr);
    }
    return err ? err : read_model_and_data(&doc, engine, ret, reterr);
}
