/* The data of kedge predict, by the words of the command line and the job's spec. They become a binding, as
 * sites write it, so that one reader knows what a file may look like. */
#include <stdio.h>
#include <string.h>

#include "cli/job/predict.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { TOKENS_MAX = 2048, BINDING_MAX = 256 * 1024 };

/* A column by number or by name. As in a site's policy: a number is a place, counted as there, and everything
 * else a name. */
static json_t *column_of(const char *text)
{
    uint64_t place;
    return kedge_decimal_decode(kedge_view_str(text), KEDGE_CSV_COLUMNS_MAX, &place) == KEDGE_OK
               ? json_integer((json_int_t)place)
               : json_string(text);
}

static json_t *source_of(const struct kedge_cli_predict *p, const char *path)
{
    const struct {
        const char *key, *value;
    } words[] = {
        {"missing", p->missing}, {"separator", p->separator}, {"decimal", p->decimal}, {"scale", p->scale}};
    json_t *o = json_pack("{s:s,s:s}", "format", "csv", "path", path);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (words[i].value) {
            json_object_set_new(o, words[i].key, json_string(words[i].value));
        }
    }
    if (p->label) {
        json_object_set_new(o, "label", column_of(p->label));
    }
    if (json_array_size(p->ignore) > 0) {
        json_object_set(o, "ignore", p->ignore);
    }
    return o;
}

/* The samples are the "test" set and what was trained on the "train" set. Without --train the one file stands
 * in both places and is read once (kedge_cli_predict_load). */
static json_t *binding_of(const struct kedge_cli_predict *p, const struct kedge_job_spec *spec)
{
    json_t *o = json_object();
    json_object_set_new(o, "train", source_of(p, p->train ? p->train : p->data));
    json_object_set_new(o, "test", source_of(p, p->data));
    if (spec->classes_count > 0) {
        json_t *names = json_array();
        const char *name = spec->classes;
        for (uint32_t i = 0; i < spec->classes_count; i++, name = kedge_names_next(name)) {
            json_array_append_new(names, json_string(name));
        }
        json_object_set_new(o, "classes", names);
    }
    if (spec->standardize == KEDGE_STANDARDIZE_LOCAL) {
        json_object_set_new(o, "standardize", json_string("local"));
    }
    return o;
}

static int parse(const json_t *o, struct kedge_data_binding *ret, struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_json doc;
    struct kedge_json_token *tokens KEDGE_CLEANUP(kedge_mem_release) =
        kedge_mem_new(TOKENS_MAX, sizeof *tokens);
    kedge_buf_init(&text, BINDING_MAX);
    KEDGE_TRY(tokens ? kedge_cli_dump(o, JSON_COMPACT, &text) : KEDGE_E_NOMEM);
    KEDGE_TRY(kedge_json_parse(kedge_buf_view(&text), tokens, TOKENS_MAX, &doc, d));
    return kedge_data_binding_from_json(&doc, 0, ret, d);
}

/* Without a word about the label it is in the last column where there is one column more than the model
 * takes, and there is none where there are as many. */
static int find_label(const struct kedge_cli_predict *p, uint32_t inputs, struct kedge_data_source *source,
                      bool *ret_labelled, struct kedge_diag *d)
{
    uint32_t columns;
    *ret_labelled = true;
    if (p->label) {
        return KEDGE_OK;
    }
    source->csv.no_label = true;
    KEDGE_TRY(kedge_data_csv_features(source, &columns, d));
    if (columns != inputs && columns != inputs + 1) {
        (void)kedge_diag_set(d, KEDGE_E_SHAPE,
                             "%s: found %u columns, expected %u as the model takes, or one more: the label",
                             p->data, columns, inputs);
        return kedge_diag_hint(d, "leave columns out by --ignore, say which is the label by --label");
    }
    *ret_labelled = columns != inputs;
    source->csv.no_label = !*ret_labelled;
    return KEDGE_OK;
}

/* What the samples' own file cannot say, because sites took it from what they trained on. */
static int wants_train(const struct kedge_cli_predict *p, const struct kedge_job_spec *spec,
                       struct kedge_diag *d)
{
    const bool mean = p->missing && strcmp(p->missing, "mean") == 0;
    if (p->train || (spec->standardize != KEDGE_STANDARDIZE_LOCAL && !mean)) {
        return KEDGE_OK;
    }
    (void)kedge_diag_set(d, KEDGE_E_USAGE,
                         mean
                             ? "--missing mean needs --train FILE: the means are those of what was trained on"
                             : "this job's sites standardized their features by what they trained on: name "
                               "such a file with --train FILE");
    return kedge_diag_hint(d, "a site's own training file is right for that site's data");
}

/* With a training file the loader takes means and scales from it and applies them to the samples, as a site
 * does to its own two sets. */
int kedge_cli_predict_load(const struct kedge_cli_predict *p, const struct kedge_job_spec *spec,
                           struct kedge_dataset *ret, bool *ret_labelled, struct kedge_diag *d)
{
    struct kedge_data_binding *b KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *b);
    json_auto_t *o = binding_of(p, spec);
    KEDGE_TRY(b ? wants_train(p, spec, d) : KEDGE_E_NOMEM);
    KEDGE_TRY(parse(o, b, d));
    b->target = kedge_job_spec_predicts_number(spec) ? KEDGE_CSV_TARGET_REAL : KEDGE_CSV_TARGET_CLASS;
    KEDGE_TRY(find_label(p, kedge_model_inputs(&spec->model), &b->test, ret_labelled, d));
    b->train.csv.no_label = p->train ? false : b->test.csv.no_label;
    if (p->train) {
        struct kedge_dataset train;
        KEDGE_TRY(kedge_data_binding_load(b, &train, ret, d));
        kedge_dataset_deinit(&train);
        return KEDGE_OK;
    }
    struct kedge_dataset none = {.n = 0};
    b->has_test = false;
    b->split = 1;
    return kedge_data_binding_load(b, ret, &none, d);
}
