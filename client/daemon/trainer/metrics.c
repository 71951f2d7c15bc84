/* The trainer's answer, one line of JSON. Pure.
 *
 * A trainer may be any program, and what it answers goes into statements that are signed and stay for ever.
 * So every number is checked for its range and every text for its length and characters here. What is
 * optional may be missing, but not malformed: a trainer that says something wrong is refused rather than
 * taken for one that says nothing, else its author would never learn of it. */
#include "client/daemon/trainer/metrics.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/json/json.h"

static bool get_count(const json_t *o, const char *key, uint64_t *ret)
{
    const json_t *v = json_object_get(o, key);
    json_int_t n = json_integer_value(v);
    *ret = (uint64_t)n;
    return json_is_integer(v) && n >= 0 && (uint64_t)n <= KEDGE_ST_COUNT_MAX;
}

static bool get_real(const json_t *o, const char *key, double *ret)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text && kedge_real_decode(kedge_view_str(text), ret) == KEDGE_OK;
}

/* As much of a text as there is room for: whole characters, "?" for what is not plain. */
static void put_text(const char *text, size_t most, char *ret)
{
    size_t len = text ? strnlen(text, most) : 0;
    while (len > 0 && !kedge_utf8_is_valid(kedge_view_of(text, len))) {
        len--;
    }
    if (len > 0) {
        memcpy(ret, text, len);
    }
    ret[len] = '\0';
    kedge_text_make_plain(ret);
}

static bool get_test(const json_t *o, struct kedge_metrics *m)
{
    return get_count(o, "test_samples", &m->test_samples) && get_count(o, "test_correct", &m->test_correct)
           && m->test_correct <= m->test_samples
           && (m->test_samples == 0 || get_real(o, "test_loss", &m->test_loss));
}

/* Optional; more classes than are compared are as good as none. */
static bool get_labels(const json_t *o, struct kedge_labels *ret)
{
    const json_t *list = json_object_get(o, "labels");
    size_t n = json_array_size(list);
    if (!list || n > KEDGE_LABELS_MAX) {
        return !list || json_is_array(list);
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        json_int_t count = json_integer_value(v);
        if (!json_is_integer(v) || count < 0 || (uint64_t)count > KEDGE_ST_COUNT_MAX) {
            return false;
        }
        ret->counts[i] = (uint64_t)count;
    }
    ret->classes = (uint32_t)n;
    return json_is_array(list);
}

/* Optional; in any order. */
static bool get_classes(const json_t *o, struct kedge_metrics *m)
{
    const json_t *list = json_object_get(o, "classes");
    bool fits = !list || json_is_array(list);
    for (size_t i = 0; i < json_array_size(list) && fits; i++) {
        char one[KEDGE_CLASS_NAMES_ROOM] = "";
        const json_t *name = json_array_get(list, i);
        size_t len = json_is_string(name) ? json_string_length(name) : 0;
        fits = len > 0 && len <= KEDGE_CLASS_NAME_MAX;
        if (fits) {
            memcpy(one, json_string_value(name), len);
            fits = strlen(one) == len && !kedge_class_names_expected(one)
                   && kedge_class_names_unite(m->classes, one) == KEDGE_OK;
        }
    }
    return fits;
}

/* Counts of the site's own model are of the same test samples, so test_samples is the bound. */
static bool get_personal(const json_t *o, struct kedge_metrics *m)
{
    m->has_personal = json_object_get(o, "personal_correct") != NULL;
    return !m->has_personal
           || (get_count(o, "personal_correct", &m->personal_correct)
               && m->personal_correct <= m->test_samples && get_real(o, "personal_loss", &m->personal_loss)
               && m->personal_loss >= 0);
}

/* The metric that is missing or bad, with what was expected, or NULL. */
static const char *find_bad(const json_t *o, bool train, bool test, struct kedge_metrics *m)
{
    if (!get_real(o, "seconds", &m->seconds) || m->seconds < 0) {
        return "\"seconds\", a decimal number in quotes, 0 or more";
    }
    if (train && (!get_count(o, "samples", &m->samples) || !get_count(o, "steps", &m->steps))) {
        return "\"samples\" and \"steps\", whole numbers";
    }
    if (json_object_get(o, "data_samples") && !get_count(o, "data_samples", &m->data_samples)) {
        return "\"data_samples\", a whole number, or none";
    }
    if (json_object_get(o, "base_loss")) {
        m->has_base_loss = true;
        if (!get_real(o, "base_loss", &m->base_loss) || m->base_loss < 0) {
            return "\"base_loss\", a decimal number in quotes, 0 or more";
        }
    }
    if (test && json_object_get(o, "test_samples") && !get_test(o, m)) {
        return "\"test_samples\" and no more \"test_correct\", whole numbers, and \"test_loss\", a decimal "
               "number "
               "in quotes";
    }
    m->test_deviation = -1;
    if (json_object_get(o, "test_deviation")
        && (!get_real(o, "test_deviation", &m->test_deviation) || m->test_deviation < 0)) {
        return "\"test_deviation\", a decimal number in quotes, 0 or more";
    }
    if (!get_labels(o, &m->labels)) {
        return "\"labels\", a list of whole numbers, or none";
    }
    if (!get_classes(o, m)) {
        return "\"classes\", a list of names of 1 to 127 bytes, together at most 4096, or none";
    }
    return test && !get_personal(o, m) ? "\"personal_correct\" and \"personal_loss\", or none" : NULL;
}

static int read_answer(const json_t *o, bool train, bool test, struct kedge_metrics *m, struct kedge_diag *d)
{
    const char *status = json_string_value(json_object_get(o, "status"));
    const char *message = json_string_value(json_object_get(o, "message"));
    const char *id = json_string_value(json_object_get(o, "id"));
    if (!status || strcmp(status, "ok") != 0) {
        return kedge_diag_set(d, KEDGE_E_TRAINER, "trainer: %.300s",
                              message ? message : "an answer without status");
    }
    if (id && strlen(id) <= KEDGE_METRICS_ID_MAX) {
        snprintf(m->id, sizeof m->id, "%s", id);
    }
    put_text(json_string_value(json_object_get(o, "engine")), KEDGE_ST_ENGINE_MAX, m->engine);
    put_text(json_string_value(json_object_get(o, "fallback")), KEDGE_METRICS_FALLBACK_MAX, m->fallback);
    if (!m->engine[0]) {
        snprintf(m->engine, sizeof m->engine, "unknown");
    }
    const char *expected = find_bad(o, train, test, m);
    return expected
               ? kedge_diag_set(d, KEDGE_E_TRAINER,
                                "trainer: its answer lacks a metric or has a bad one: expected %s", expected)
               : KEDGE_OK;
}

int kedge_metrics_parse(struct kedge_view line, bool train, bool test, struct kedge_metrics *ret,
                        struct kedge_diag *reterr)
{
    struct kedge_metrics m = {.samples = 0};
    struct kedge_diag d;
    json_t *o = NULL;
    int err = kedgei_json_load(line, KEDGE_METRICS_LINE_MAX, "trainer: its answer", &o, &d);
    if (err) {
        return kedge_diag_set(reterr, err == KEDGE_E_NOMEM ? err : KEDGE_E_TRAINER, "%s", d.text);
    }
    err = read_answer(o, train, test, &m, reterr);
    if (!err) {
        *ret = m;
    }
    json_decref(o);
    return err;
}

/* The code is a hint from outside: known ones are mapped to a reason, any other refusal is just a refusal.
 * What is no JSON counts as a trainer that failed. */
enum kedge_trouble kedge_metrics_trouble(struct kedge_view line)
{
    static const struct {
        const char *code;
        enum kedge_trouble why;
    } rows[] = {
        {"data", KEDGE_TROUBLE_DATA_BAD},
        {"data-missing", KEDGE_TROUBLE_DATA_MISSING},
        {"data-shape", KEDGE_TROUBLE_DATA_SHAPE},
        {"diverged", KEDGE_TROUBLE_DIVERGED},
        {"output", KEDGE_TROUBLE_DISK},
        {"memory", KEDGE_TROUBLE_MEMORY},
        {"internal", KEDGE_TROUBLE_TRAINER_FAILED},
    };
    struct kedge_diag d;
    json_t *o = NULL;
    if (kedgei_json_load(line, KEDGE_METRICS_LINE_MAX, "trainer", &o, &d) != KEDGE_OK) {
        return KEDGE_TROUBLE_TRAINER_FAILED;
    }
    const char *status = json_string_value(json_object_get(o, "status"));
    const char *code = json_string_value(json_object_get(o, "code"));
    bool refused = status && strcmp(status, "error") == 0;
    enum kedge_trouble why = refused ? KEDGE_TROUBLE_TRAINER_REFUSED : KEDGE_TROUBLE_TRAINER_FAILED;
    for (size_t i = 0; refused && code && i < sizeof rows / sizeof rows[0]; i++) {
        why = strcmp(code, rows[i].code) == 0 ? rows[i].why : why;
    }
    json_decref(o);
    return why;
}
