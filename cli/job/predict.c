/* kedge predict: a released model over people's own samples, by the built-in layers. What it needs beside the
 * model - layers, names of classes, how features were prepared - is in the job's spec, which kedge job model
 * puts beside it. */
#include "cli/job/predict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/local.h"
#include "client/train/net.h"
#include "client/train/standardize.h"
#include "client/train/weights.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { BATCH = 128, NUMBER_LEN = 32, OUT_MAX = 1 << 30 };

/* Everything of one run. What is marked as owned is released by the command, whatever failed. */
struct predict {
    struct kedge_cli *c;
    struct kedge_cli_predict words;
    struct kedge_job_spec *spec; /* owned */
    struct kedge_net *net;       /* owned; NULL: none yet */
    float *scales;               /* owned; NULL: the model does not standardize */
    struct kedge_dataset data;
    bool labelled, is_number, is_share; /* is_share: outputs are logits of probabilities */
    struct kedge_buf out;               /* CSV, or JSON's array */
};

/* ---- the spec ---- */

/* MODEL.ENDING for MODEL.safetensors, or the spec that was named. */
static int find_beside(const struct kedge_cli_predict *w, const char *word, char out[KEDGE_PATH_MAX],
                       struct kedge_diag *d)
{
    static const char ending[] = ".safetensors";
    size_t len = strlen(w->model), cut = sizeof ending - 1;
    bool has_ending = len > cut && strcmp(w->model + len - cut, ending) == 0;
    int n = w->spec ? snprintf(out, KEDGE_PATH_MAX, "%s", w->spec)
                    : snprintf(out, KEDGE_PATH_MAX, "%.*s.%s", (int)(has_ending ? len - cut : len), w->model,
                               word);
    return n > 0 && n < KEDGE_PATH_MAX ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_TOO_LONG, "path too long");
}

static int read_spec(struct predict *p, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    KEDGE_TRY(find_beside(&p->words, "json", path, d));
    int err = kedge_cli_read_file(path, KEDGE_SPEC_MAX, &text, d);
    if (err == KEDGE_E_NOT_FOUND && !p->words.spec) {
        (void)kedge_diag_hint(
            d, "kedge job model writes the job's spec beside a model; else name it: --spec FILE");
    }
    if (!err) {
        err = kedge_job_spec_parse(kedge_buf_view(&text), p->spec, d);
        err = err ? kedge_diag_wrap(d, err, "%s", path) : KEDGE_OK;
    }
    kedge_buf_deinit(&text);
    if (!err && p->spec->is_external) {
        (void)kedge_diag_set(
            d, KEDGE_E_SHAPE,
            "%s: the job's model is a trainer's own, of which only that trainer knows how it "
            "predicts",
            path);
        err = kedge_diag_hint(d, "kedge job model --npz, and the lines for Python in docs/python.md");
    }
    return err;
}

/* MODEL.classes.json, of a job that learnt them: kedge job model wrote it. They take their place in the spec.
 */
static int read_classes(struct predict *p, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    json_t *list = NULL, *name;
    size_t i, used = 0;
    bool fits;
    struct kedge_cli_predict beside = {.model = p->words.model};
    int err = find_beside(&beside, "classes.json", path, d);
    if (err || !p->spec->learns_classes) {
        return err;
    }
    err = kedge_cli_read_file(path, KEDGE_SPEC_MAX, &text, d);
    if (err == KEDGE_E_NOT_FOUND) {
        (void)kedge_diag_hint(d,
                              "kedge job model writes the names of classes beside a model that learnt them");
    }
    list = err ? NULL : json_loadb((const char *)text.ptr, text.len, 0, NULL);
    fits = json_array_size(list) >= 1 && json_array_size(list) <= kedge_model_outputs(&p->spec->model);
    json_array_foreach(list, i, name)
    {
        size_t len = json_string_length(name);
        fits = fits && json_is_string(name) && len >= 1 && len <= KEDGE_CLASS_NAME_MAX
               && strlen(json_string_value(name)) == len && used + len < sizeof p->spec->classes;
        if (fits) {
            memcpy(p->spec->classes + used, json_string_value(name), len + 1);
            used += len + 1;
        }
    }
    if (!err && !fits) {
        err = kedge_diag_set(d, KEDGE_E_FORMAT, "%s: expected a list of 1 to %u names of classes", path,
                             kedge_model_outputs(&p->spec->model));
    }
    p->spec->classes_count = err ? 0 : (uint32_t)json_array_size(list);
    json_decref(list);
    kedge_buf_deinit(&text);
    return err;
}

/* Weights, and after them what a model that standardizes knows of its inputs. */
static int take_values(struct predict *p, const float *all, uint64_t count, struct kedge_diag *d)
{
    size_t n = (size_t)kedge_net_values_count(p->net), more = (size_t)count - n;
    memcpy(kedge_net_weights(p->net), all, n * sizeof *all);
    if (more == 0) {
        return KEDGE_OK;
    }
    p->scales = kedge_mem_new(more, sizeof *p->scales);
    if (!p->scales) {
        return KEDGE_E_NOMEM;
    }
    memcpy(p->scales, all + n, more * sizeof *all);
    return kedge_scales_stage(p->scales, kedge_model_inputs(&p->spec->model)) == KEDGE_SCALES_STAGES
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_STATE, "%s: the model does not know yet how its inputs are scaled",
                                p->words.model);
}

/* A model that was trained over a frozen base is a part only. The hint is given for every error then, because
 * a part that is read as a whole fails in many ways. */
static int read_model(struct predict *p, struct kedge_diag *d)
{
    struct kedge_layout layout;
    if (kedge_job_spec_has_head(p->spec)) {
        (void)kedge_diag_set(d, KEDGE_E_ARG,
                             "%s: strategy \"%s\" shares a part of the model only; each site keeps the other "
                             "layers, without which there is nothing to predict with",
                             p->words.model, p->spec->strategy->name);
        return kedge_diag_hint(d, "a site's kept layers never leave it");
    }
    struct kedge_model_spec inner = p->spec->model;
    inner.standardize = false; /* the samples are, before the net sees them */
    KEDGE_TRY(kedge_net_new(&inner, BATCH, &p->net, d));
    KEDGE_TRY(kedge_model_layout(&p->spec->model, &layout, d));
    float *all = kedge_mem_new(layout.values_count, sizeof *all);
    int err = all ? kedge_weights_read(p->words.model, &layout, all, d) : KEDGE_E_NOMEM;
    if (err && kedge_job_spec_has_base(p->spec)) {
        (void)kedge_diag_hint(
            d, "the job trained a part of a model over a frozen base: kedge job model writes the "
               "whole one beside it, as JOB-gG-whole.safetensors");
    }
    if (!err) {
        err = take_values(p, all, layout.values_count, d);
    }
    kedge_mem_free(all);
    kedge_layout_deinit(&layout);
    return err;
}

/* The samples, scaled by what the model knows. */
static int read_data(struct predict *p, struct kedge_diag *d)
{
    struct kedge_dataset none = {.n = 0};
    int err = kedge_cli_predict_load(&p->words, p->spec, &p->data, &p->labelled, d);
    return err || !p->scales ? err
                             : kedge_standardize_data(p->scales, kedge_model_inputs(&p->spec->model),
                                                      &p->data, &none, NULL, d);
}

/* ---- rows ---- */

static const char *class_name(const struct predict *p, uint32_t class, char number[NUMBER_LEN])
{
    const char *name = p->spec->classes;
    if (class >= p->spec->classes_count) {
        (void)snprintf(number, NUMBER_LEN, "%u", class);
        return number;
    }
    for (uint32_t i = 0; i < class; i++) {
        name = kedge_names_next(name);
    }
    return name;
}

/* A field of RFC 4180. */
static void put_field(struct kedge_buf *out, const char *text)
{
    bool plain = text[strcspn(text, ",\"\r\n")] == '\0' && text[0] != ' ';
    kedge_buf_put_str(out, plain ? "" : "\"");
    for (const char *at = text; *at; at++) {
        kedge_buf_put_str(out, *at == '"' ? "\"" : "");
        kedge_buf_put(out, at, 1);
    }
    kedge_buf_put_str(out, plain ? "" : "\"");
}

/* Probabilities of logits. The largest logit is taken off first: exp of a large one would not be finite, and
 * the shares are the same. */
static void softmax(const float *z, uint32_t n, float *out)
{
    float most = z[0];
    double sum = 0;
    for (uint32_t i = 1; i < n; i++) {
        most = z[i] > most ? z[i] : most;
    }
    for (uint32_t i = 0; i < n; i++) {
        out[i] = expf(z[i] - most);
        sum += (double)out[i];
    }
    for (uint32_t i = 0; i < n; i++) {
        out[i] = (float)((double)out[i] / sum);
    }
}

/* Rows in JSON name their values themselves; a CSV has a head, whose columns follow from the job: classes or
 * a number, probabilities or plain outputs. */
static void put_head(struct predict *p)
{
    char number[NUMBER_LEN];
    uint32_t outputs = kedge_model_outputs(&p->spec->model);
    if (p->c->json && !p->words.out) {
        kedge_buf_put_str(&p->out, "[");
        return;
    }
    kedge_buf_put_str(&p->out, p->is_number  ? "row,value"
                               : p->is_share ? "row,class,probability"
                                             : "row,class,output");
    kedge_buf_put_str(&p->out, p->labelled ? ",label" : "");
    for (uint32_t i = 0; p->words.all && i < outputs; i++) {
        kedge_buf_put_str(&p->out, ",");
        put_field(&p->out, class_name(p, i, number));
    }
    kedge_buf_put_str(&p->out, "\n");
}

static void put_csv(struct predict *p, uint32_t row, const float *z, uint32_t best)
{
    char number[NUMBER_LEN];
    kedge_buf_printf(&p->out, "%u,", row + 1);
    if (p->is_number) {
        kedge_buf_printf(&p->out, "%.9g", (double)z[0]);
    } else {
        put_field(&p->out, class_name(p, best, number));
        kedge_buf_printf(&p->out, p->is_share ? ",%.6f" : ",%.9g", (double)z[best]);
    }
    if (p->labelled && p->data.is_real) {
        kedge_buf_printf(&p->out, ",%.9g", (double)kedge_dataset_target(&p->data, row));
    } else if (p->labelled) {
        kedge_buf_put_str(&p->out, ",");
        put_field(&p->out, class_name(p, (uint32_t)p->data.labels[row], number));
    }
    for (uint32_t i = 0; p->words.all && i < kedge_model_outputs(&p->spec->model); i++) {
        kedge_buf_printf(&p->out, p->is_share ? ",%.6f" : ",%.9g", (double)z[i]);
    }
    kedge_buf_put_str(&p->out, "\n");
}

/* Put together as text and parsed once at the end (write_out): a tree of objects for a million rows would
 * take many times as much memory. */
static void put_json(struct predict *p, uint32_t row, const float *z, uint32_t best)
{
    char number[NUMBER_LEN];
    kedge_buf_printf(&p->out, "%s{\"row\":%u,", row ? "," : "", row + 1);
    if (p->is_number) {
        kedge_buf_printf(&p->out, "\"value\":%.9g}", (double)z[0]);
        return;
    }
    kedge_buf_put_str(&p->out, "\"class\":");
    kedge_json_put_string(&p->out, kedge_view_str(class_name(p, best, number)));
    kedge_buf_printf(&p->out, ",\"%s\":%.9g", p->is_share ? "probability" : "output", (double)z[best]);
    for (uint32_t i = 0; p->words.all && i < kedge_model_outputs(&p->spec->model); i++) {
        kedge_buf_printf(&p->out, "%s%.9g", i ? "," : ",\"outputs\":[", (double)z[i]);
    }
    kedge_buf_put_str(&p->out, p->words.all ? "]}" : "}");
}

/* The highest output, and of equals the first: as evaluations count. */
static int put_row(struct predict *p, uint32_t row, const float *z, float *shares, struct kedge_diag *d)
{
    uint32_t outputs = kedge_model_outputs(&p->spec->model), best = 0;
    for (uint32_t i = 0; i < outputs; i++) {
        if (!isfinite(z[i])) {
            return kedge_diag_set(d, KEDGE_E_NOT_FINITE, "row %u: the model gives %g", row + 1, (double)z[i]);
        }
        best = z[i] > z[best] ? i : best;
    }
    if (p->is_share) {
        softmax(z, outputs, shares);
    }
    if (p->c->json && !p->words.out) {
        put_json(p, row, p->is_share ? shares : z, best);
    } else {
        put_csv(p, row, p->is_share ? shares : z, best);
    }
    return p->out.err == KEDGE_E_TOO_LONG
               ? kedge_diag_set(d, KEDGE_E_TOO_LONG, "more than 1 GB of predictions; split the file")
               : p->out.err;
}

/* In batches, because a net has room for BATCH samples; a row does not depend on which batch it is in. */
static int put_rows(struct predict *p, struct kedge_diag *d)
{
    uint32_t inputs = kedge_model_inputs(&p->spec->model), outputs = kedge_model_outputs(&p->spec->model);
    float *x = kedge_mem_new((size_t)BATCH * inputs, sizeof *x),
          *shares = kedge_mem_new(outputs, sizeof *shares);
    uint32_t rows[BATCH];
    int err = x && shares ? KEDGE_OK : KEDGE_E_NOMEM;
    put_head(p);
    for (uint32_t at = 0; !err && at < p->data.n; at += BATCH) {
        uint32_t n = p->data.n - at < BATCH ? p->data.n - at : BATCH;
        for (uint32_t i = 0; i < n; i++) {
            rows[i] = at + i;
        }
        kedge_dataset_gather(&p->data, rows, n, x);
        const float *z = kedge_net_forward(p->net, x, n);
        for (uint32_t i = 0; !err && i < n; i++) {
            err = put_row(p, at + i, z + (size_t)i * outputs, shares, d);
        }
    }
    if (p->c->json && !p->words.out) {
        kedge_buf_put_str(&p->out, "]");
    }
    kedge_mem_free(x);
    kedge_mem_free(shares);
    return err;
}

/* ---- the command ---- */

/* Rows are never dropped: the answer has a row for each sample, in their order, so --missing knows no "drop"
 * here. What is missing is an error or the mean of the training data. */
static bool take_words(struct kedge_cli *c, struct kedge_cli_predict *w)
{
    const char *column;
    *w = (struct kedge_cli_predict){.spec = kedge_cli_option(c, "spec", NULL),
                                    .train = kedge_cli_option(c, "train", NULL),
                                    .out = kedge_cli_option(c, "out", NULL),
                                    .label = kedge_cli_option(c, "label", NULL),
                                    .missing = kedge_cli_option(c, "missing", NULL),
                                    .separator = kedge_cli_option(c, "separator", NULL),
                                    .decimal = kedge_cli_option(c, "decimal", NULL),
                                    .scale = kedge_cli_option(c, "scale", NULL),
                                    .all = kedge_cli_flag(c, "probabilities"),
                                    .ignore = json_array()};
    while ((column = kedge_cli_option(c, "ignore", NULL)) != NULL) {
        uint64_t place;
        bool is_place =
            kedge_decimal_decode(kedge_view_str(column), KEDGE_CSV_COLUMNS_MAX, &place) == KEDGE_OK;
        json_array_append_new(w->ignore, is_place ? json_integer((json_int_t)place) : json_string(column));
    }
    w->model = kedge_cli_argument(c, 0);
    w->data = kedge_cli_argument(c, 1);
    if (w->missing && strcmp(w->missing, "mean") != 0 && strcmp(w->missing, "refuse") != 0) {
        (void)kedge_cli_usage(c, "--missing %s: expected mean or refuse: no row may be left out here",
                              kedge_cli_word(w->missing).s);
        return false;
    }
    if (!kedge_cli_no_more(c, 2)) {
        return false;
    }
    if (!w->model || !w->data) {
        (void)kedge_cli_usage(c, "expected a model and a file with samples");
        return false;
    }
    return true;
}

/* Where the file has labels, the command is also an evaluation, by the same code as a site's (client/train).
 * Its figures go to stderr, for stdout may be the CSV. */
static int evaluate(struct predict *p, json_t *answer, struct kedge_diag *d)
{
    struct kedge_evaluation e;
    int err = p->labelled ? kedge_net_evaluate(p->net, &p->data, &e, d) : KEDGE_OK;
    if (err || !p->labelled) {
        return err;
    }
    json_object_set_new(answer, "loss", json_real(e.loss));
    if (p->data.is_real) {
        kedge_cli_say_aside("%u samples, mean squared error %.6g\n", p->data.n, e.loss);
        return KEDGE_OK;
    }
    json_object_set_new(answer, "correct", json_integer((json_int_t)e.correct));
    json_object_set_new(answer, "accuracy", json_real((double)e.correct / (double)e.samples));
    kedge_cli_say_aside("%u samples, %llu right: accuracy %.2f %%\n", p->data.n,
                        (unsigned long long)e.correct, 100.0 * (double)e.correct / (double)e.samples);
    return KEDGE_OK;
}

static int write_out(struct predict *p, json_t *answer, struct kedge_diag *d)
{
    if (p->words.out) {
        json_object_set_new(answer, "file", json_string(p->words.out));
        return kedge_file_write(p->words.out, kedge_buf_view(&p->out), 0600, d);
    }
    if (p->c->json) {
        json_t *rows = json_loadb((const char *)p->out.ptr, p->out.len, 0, NULL);
        return rows && json_object_set_new(answer, "predictions", rows) == 0 ? KEDGE_OK : KEDGE_E_NOMEM;
    }
    bool written = fwrite(p->out.ptr, 1, p->out.len, stdout) == p->out.len && fflush(stdout) == 0;
    return written ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_IO, "standard output cannot be written");
}

static int read_all(struct predict *p, struct kedge_diag *d)
{
    KEDGE_TRY(read_spec(p, d));
    KEDGE_TRY(read_classes(p, d));
    KEDGE_TRY(read_model(p, d));
    return read_data(p, d);
}

/* Evaluated before anything is written: data that do not fit the model leave no half file. */
static int predict_all(struct predict *p, json_t *answer, struct kedge_diag *d)
{
    const bool is_square = p->spec->model.loss == KEDGE_LOSS_SQUARE_ERROR;
    p->is_number = is_square && kedge_model_outputs(&p->spec->model) == 1;
    p->is_share = !is_square;
    json_object_set_new(answer, "job", json_string(p->spec->name.s));
    json_object_set_new(answer, "samples", json_integer((json_int_t)p->data.n));
    KEDGE_TRY(kedge_net_check_data(p->net, &p->data, d));
    KEDGE_TRY(evaluate(p, answer, d));
    KEDGE_TRY(put_rows(p, d));
    return write_out(p, answer, d);
}

static int work(struct predict *p, json_t *answer, struct kedge_diag *d)
{
    kedge_train_set_threads(1); /* as sites count by default */
    int err = read_all(p, d);
    if (!err) {
        err = predict_all(p, answer, d);
    }
    kedge_dataset_deinit(&p->data);
    return err;
}

int kedge_cmd_predict(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct predict p = {.c = c, .spec = kedge_mem_new(1, sizeof *p.spec)};
    json_t *answer = json_object();
    kedge_buf_init(&p.out, OUT_MAX);
    const bool good = p.spec && take_words(c, &p.words);
    int err = !p.spec ? KEDGE_E_NOMEM : good ? work(&p, answer, &d) : KEDGE_OK;
    kedge_net_free(p.net);
    kedge_mem_free(p.scales);
    kedge_mem_free(p.spec);
    kedge_buf_deinit(&p.out);
    json_decref(p.words.ignore);
    if (err || !good) {
        json_decref(answer);
        return err ? kedge_cli_fail(c, err, &d) : 2;
    }
    return kedge_cli_ok(c, answer);
}
