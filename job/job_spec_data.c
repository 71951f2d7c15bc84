/* What a job says of the sites' data: names of classes, scales, and what its tables show. */
#include <jansson.h>
#include <string.h>

#include "common/base/try.h"
#include "common/tensor/class_names.h"
#include "common/tensor/scales.h"
#include "job/job_spec_impl.h"

static int bad(struct kedge_diag *d, const char *key, const char *expected)
{
    return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"%s\": expected %s", key, expected);
}

static bool is_there(const struct kedge_job_spec *s, const char *name)
{
    const char *other = s->classes;
    for (uint32_t i = 0; i < s->classes_count; i++, other += strlen(other) + 1) {
        if (strcmp(other, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Names stand in tables and logs of others, so that each must be plain. They are packed one after the other
 * with their ends, as a spec has no pointers. "federated": the names are found by the sites in a round of
 * their own. */
static int read_classes(const json_t *v, struct kedge_job_spec *s, struct kedge_diag *d)
{
    size_t count = json_array_size(v), used = 0;
    if (json_is_string(v) && strcmp(json_string_value(v), "federated") == 0) {
        s->learns_classes = true;
        return KEDGE_OK;
    }
    if (!json_is_array(v) || count < 2 || count > KEDGE_SPEC_CLASSES_MAX) {
        return bad(d, "classes", "a list of 2 to 1024 names, or \"federated\"");
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *name = json_array_get(v, i);
        const char *text = json_string_value(name);
        size_t len = text ? json_string_length(name) : 0;
        if (len < 1 || len > KEDGE_SPEC_CLASS_MAX || strlen(text) != len
            || !kedge_text_is_plain(kedge_view_of(text, len))) {
            return bad(d, "classes", "names of 1 to 127 bytes without control characters");
        }
        if (is_there(s, text)) {
            return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"classes\": \"%s\" is there twice", text);
        }
        if (used + len + 1 > sizeof s->classes) {
            return kedge_diag_set(d, KEDGE_E_TOO_LONG, "job spec: \"classes\": more than %zu bytes of names",
                                  sizeof s->classes);
        }
        memcpy(s->classes + used, text, len + 1);
        used += len + 1;
        s->classes_count++;
    }
    return KEDGE_OK;
}

/* A job that does not say it leaves it to each site's owner. That is another value than "none", with which no
 * site scales. */
static int read_standardize(const json_t *v, struct kedge_job_spec *s, struct kedge_diag *d)
{
    uint32_t word = 0;
    KEDGE_TRY(kedgei_spec_word(v, "standardize", kedgei_words_standardize, &word, d));
    s->standardize = (enum kedge_spec_standardize)(word + KEDGE_STANDARDIZE_NONE);
    s->model.standardize = s->standardize == KEDGE_STANDARDIZE_FEDERATED;
    return KEDGE_OK;
}

static int read_metric(const json_t *v, struct kedge_job_spec *s, struct kedge_diag *d)
{
    uint32_t word = 0;
    int err = kedgei_spec_word(v, "metric", kedgei_words_metric, &word, d);
    s->shows_loss = word == 1;
    return err;
}

bool kedge_job_spec_predicts_number(const struct kedge_job_spec *s)
{
    return !s->is_external && s->model.loss == KEDGE_LOSS_SQUARE_ERROR && kedge_model_outputs(&s->model) == 1;
}

int kedgei_spec_read_data(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const json_t *classes = json_object_get(root, "classes"), *scales = json_object_get(root, "standardize");
    const json_t *metric = json_object_get(root, "metric");
    if (s->is_external && (classes || scales)) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"%s\" does not go with \"model\": \"external\": what its trainers make "
            "of the data is theirs to say, or stands in \"settings\"",
            classes ? "classes" : "standardize");
    }
    if (s->model.standardize) {
        return bad(d, "model", "no \"standardize\": that is a key of the job");
    }
    bool number = kedge_job_spec_predicts_number(s);
    s->shows_loss = number;
    int err = classes ? read_classes(classes, s, d) : KEDGE_OK;
    err = err || !scales ? err : read_standardize(scales, s, d);
    err = err || !metric ? err : read_metric(metric, s, d);
    if (err) {
        return err;
    }
    if (number && (classes || !s->shows_loss)) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "job spec: \"%s\": a model of one output with \"loss\": \"mse\" predicts a number, "
            "which has %s",
            classes ? "classes" : "metric", classes ? "no classes" : "no accuracy");
    }
    if (s->classes_count > 0 && s->classes_count != kedge_model_outputs(&s->model)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"classes\": %u names, but the model has %u outputs",
                              s->classes_count, kedge_model_outputs(&s->model));
    }
    return KEDGE_OK;
}

bool kedge_job_spec_asks_classes(const struct kedge_job_spec *spec, uint32_t round)
{
    return spec->learns_classes && round == KEDGE_CLASSES_ROUND;
}

bool kedge_job_spec_takes_classes(const struct kedge_job_spec *spec, uint32_t round, const char *names)
{
    return kedge_job_spec_asks_classes(spec, round)
               ? names[0] != '\0' && kedge_class_names_count(names) <= kedge_model_outputs(&spec->model)
               : names[0] == '\0';
}

/* What sites find together takes rounds in which nothing is trained. Means and variances are averaged as all
 * of a model is, weighted by samples, each once and by all alike: a job that does anything else to updates
 * would change them, too. Classes are named in such a round. */
int kedgei_spec_check_data(const struct kedge_job_spec *s, struct kedge_diag *d)
{
    const bool scales = s->standardize == KEDGE_STANDARDIZE_FEDERATED;
    const char *key = scales ? "standardize" : "classes";
    const uint32_t rounds = scales ? KEDGE_SCALES_STAGES : KEDGE_CLASSES_ROUND;
    if (!scales && !s->learns_classes) {
        return KEDGE_OK;
    }
    bool plain = strcmp(s->strategy->name, "fedavg") == 0 || strcmp(s->strategy->name, "fedprox") == 0;
    if (!plain || s->grouping != KEDGE_GROUPING_NONE || s->rule->kind != KEDGE_RULE_MEAN
        || s->server != KEDGE_SERVER_NONE || s->compression.kind != KEDGE_COMPACT_NONE) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"%s\": \"federated\" goes with strategy \"fedavg\" or "
                              "\"fedprox\", rule \"mean\", server \"none\" and whole updates",
                              key);
    }
    if (scales && (s->scale < KEDGE_SCALES_UNIT_BITS || s->bound < 2)) {
        return bad(d, "scale",
                   "20 or more, and a \"bound\" of at least 2, with \"standardize\": \"federated\"");
    }
    if (s->rounds <= rounds) {
        return bad(d, "rounds",
                   scales ? "3 or more with \"standardize\": \"federated\", which takes two of them"
                          : "2 or more with \"classes\": \"federated\", which takes one of them");
    }
    return KEDGE_OK;
}
