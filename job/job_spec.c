/* The parser of a job spec. The table of keys (keys.def) drives it: one row per key with its kind, range
 * and default, so that a new setting is one field and one row. Rules between keys follow the table.
 *
 * What can be known to stop a round (sums that overflow, more updates than a rule takes, options without a
 * meaning) is refused here, where a job is submitted, and not in the round. Coordinator, sites, auditor and
 * simulator parse the same text and must come to the same numbers. */
#include "job/job_spec.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "aggregation/quantise.h"
#include "aggregation/share_cap.h"
#include "common/base/nearest.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "job/job_spec_impl.h"
#include "job/keys.h"

enum { MODEL_TOKENS_MAX = 16 + KEDGE_LAYERS_MAX * 10, KEYS_MAX = 128 };

/* The number is held against the range as binary64: all ranges are below 2^53, where that is exact. */
static int read_whole(const struct kedge_job_key *row, const json_t *v, uint64_t *ret, struct kedge_diag *d)
{
    json_int_t n = json_integer_value(v);
    if (!json_is_integer(v) || (double)n < row->least || (double)n > row->most) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"%s\": expected a whole number from %.0f to %.0f", row->key,
                              row->least, row->most);
    }
    *ret = (uint64_t)n;
    return KEDGE_OK;
}

static int read_real(const struct kedge_job_key *row, const json_t *v, double *ret, struct kedge_diag *d)
{
    double x = 0;
    if (kedgei_json_real(v, &x) != KEDGE_OK || x < row->least || x > row->most) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"%s\": expected a number from %g to %g, like %g",
                              row->key, row->least, row->most, row->fallback);
    }
    *ret = x;
    return KEDGE_OK;
}

/* Numbers from 2^63 on are only in quotes: JSON's readers round them. */
static int read_seed(const json_t *v, const char *key, uint64_t *ret, struct kedge_diag *d)
{
    const char *text = json_string_value(v);
    if (json_is_integer(v) && json_integer_value(v) >= 0) {
        *ret = (uint64_t)json_integer_value(v);
        return KEDGE_OK;
    }
    if (!text || kedge_decimal_decode(kedge_view_of(text, json_string_length(v)), UINT64_MAX, ret)) {
        return kedgei_spec_bad(d, key, "a whole number below 2^64, from 2^63 on in quotes");
    }
    return KEDGE_OK;
}

static int read_plain(const struct kedge_job_key *row, const json_t *v, struct kedge_job_spec *s,
                      struct kedge_diag *d)
{
    void *field = (char *)s + row->offset;
    uint64_t whole = (uint64_t)row->fallback;
    double real = row->fallback;
    int err = KEDGE_OK;
    if (v && row->kind == KEDGE_JOB_KEY_REAL) {
        err = read_real(row, v, &real, d);
    } else if (v && row->kind == KEDGE_JOB_KEY_SEED) {
        err = read_seed(v, row->key, &whole, d);
    } else if (v && row->kind == KEDGE_JOB_KEY_SHARE) {
        err = kedgei_spec_share(v, row->key, &whole, d);
    } else if (v) {
        err = read_whole(row, v, &whole, d);
    }
    if (err) {
        return err;
    }
    if (row->kind == KEDGE_JOB_KEY_REAL) {
        *(double *)field = real;
    } else if (row->kind == KEDGE_JOB_KEY_WHOLE32 || row->kind == KEDGE_JOB_KEY_SHARE) {
        *(uint32_t *)field = (uint32_t)whole;
    } else {
        *(uint64_t *)field = whole;
    }
    return KEDGE_OK;
}

static int read_id(const json_t *v, const char *key, struct kedge_id *ret, struct kedge_diag *d)
{
    const char *text = json_string_value(v);
    if (!text || kedge_id_from(kedge_view_of(text, json_string_length(v)), ret) != KEDGE_OK) {
        return kedgei_spec_bad(
            d, key, "a name of a-z, 0-9, '.', '_', '-', at most 63 characters, a letter or digit first");
    }
    return KEDGE_OK;
}

/* The place of a name among ascending ones; *ret_is_there when it is among them already. */
static size_t tenant_place(const struct kedge_job_spec *s, const struct kedge_id *name, size_t count,
                           bool *ret_is_there)
{
    size_t at = count;
    while (at > 0 && kedge_id_cmp(&s->tenants[at - 1], name) > 0) {
        at--;
    }
    *ret_is_there = at > 0 && kedge_id_cmp(&s->tenants[at - 1], name) == 0;
    return at;
}

/* Tenants stand in the spec in any order and count in the ascending one, which is that of the record. */
static int read_tenants(const json_t *v, struct kedge_job_spec *s, struct kedge_diag *d)
{
    size_t n = json_array_size(v);
    if (n < 1 || n > KEDGE_SPEC_TENANTS_MAX) {
        return kedgei_spec_bad(d, "tenants", "a list of 1 to 128 tenant names");
    }
    for (size_t i = 0; i < n; i++) {
        struct kedge_id name;
        bool is_there = false;
        KEDGE_TRY(read_id(json_array_get(v, i), "tenants", &name, d));
        size_t at = tenant_place(s, &name, i, &is_there);
        if (is_there) {
            return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"tenants\": \"%s\" is there twice", name.s);
        }
        memmove(&s->tenants[at + 1], &s->tenants[at], (i - at) * sizeof name);
        s->tenants[at] = name;
    }
    s->tenant_count = (uint32_t)n;
    return KEDGE_OK;
}

static int read_model(const json_t *v, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const char *word = json_string_value(v);
    s->is_external = word && strcmp(word, "external") == 0;
    if (s->is_external) {
        return KEDGE_OK;
    }
    char *text = json_is_object(v) ? json_dumps(v, JSON_COMPACT) : NULL;
    if (!text) {
        return kedgei_spec_bad(d, "model", "an object with \"preset\" or \"layers\", or \"external\"");
    }
    struct kedge_json_token tokens[MODEL_TOKENS_MAX];
    struct kedge_json doc;
    int err = kedge_json_parse(kedge_view_str(text), tokens, MODEL_TOKENS_MAX, &doc, d);
    if (!err) {
        err = kedge_model_from_json(&doc, 0, &s->model, d);
    }
    free(text);
    return err ? kedge_diag_wrap(d, err, "job spec: \"model\"") : KEDGE_OK;
}

static int read_shift(const json_t *v, struct kedge_job_spec *s, struct kedge_diag *d)
{
    uint32_t word = 0;
    int err = kedgei_spec_word(v, "shift", kedgei_words_shift, &word, d);
    s->shift = (enum kedge_shift_test)word;
    return err;
}

const char *kedge_precision_name(enum kedge_precision precision)
{
    return kedgei_words_precision[precision];
}

int kedge_precision_parse(const char *word, enum kedge_precision *ret)
{
    for (uint32_t i = 0; word && kedgei_words_precision[i]; i++) {
        if (strcmp(word, kedgei_words_precision[i]) == 0) {
            *ret = (enum kedge_precision)i;
            return KEDGE_OK;
        }
    }
    return KEDGE_E_FORMAT;
}

static int read_precision(const json_t *v, struct kedge_job_spec *s, struct kedge_diag *d)
{
    uint32_t word = 0;
    int err = kedgei_spec_word(v, "precision", kedgei_words_precision, &word, d);
    s->precision = (enum kedge_precision)word;
    return err;
}

static int read_grouping(const json_t *v, struct kedge_job_spec *s, struct kedge_diag *d)
{
    uint32_t word = 0;
    int err = kedgei_spec_word(v, "grouping", kedgei_words_grouping, &word, d);
    s->grouping = (enum kedge_grouping)word;
    return err;
}

static int read_name(const json_t *v, struct kedge_job_spec *s, struct kedge_diag *d)
{
    return read_id(v, "name", &s->name, d);
}

static int read_data_name(const json_t *v, struct kedge_job_spec *s, struct kedge_diag *d)
{
    struct kedge_id name;
    KEDGE_TRY(read_id(v, "data", &name, d));
    memcpy(s->data, name.s, sizeof s->data);
    return KEDGE_OK;
}

static int read_initial_model(const json_t *v, struct kedge_job_spec *s, struct kedge_diag *d)
{
    const char *text = json_string_value(v);
    if (!text || kedge_hex_decode(kedge_view_of(text, json_string_length(v)), s->initial_model.b, 32)) {
        return kedgei_spec_bad(d, "initial_model",
                               "the SHA-256 of a safetensors file, 64 lower-case hex digits");
    }
    s->has_initial_model = true;
    return KEDGE_OK;
}

/* Keys of an own reader that needs no other key; the rest is read once these are. */
static const struct {
    const char *key;
    int (*read)(const json_t *v, struct kedge_job_spec *s, struct kedge_diag *d);
} readers[] = {
    {"name", read_name},         {"tenants", read_tenants},
    {"model", read_model},       {"external", kedgei_spec_read_external},
    {"data", read_data_name},    {"initial_model", read_initial_model},
    {"shift", read_shift},       {"precision", read_precision},
    {"grouping", read_grouping}, {"sites_per_round", kedgei_spec_read_cohort},
};

static int read_own(const struct kedge_job_key *row, const json_t *v, struct kedge_job_spec *s,
                    struct kedge_diag *d)
{
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        if (strcmp(readers[i].key, row->key) == 0) {
            return readers[i].read(v, s, d);
        }
    }
    return KEDGE_OK;
}

/* Rules between fields, in an order: those of groups first, for they set `groups`, which later ones read.
 * Defaults that depend on other keys are taken here, too. */
static int check_together(struct kedge_job_spec *s, const json_t *root, struct kedge_diag *d)
{
    bool flexcfl = s->grouping == KEDGE_GROUPING_FLEXCFL;
    KEDGE_TRY(kedgei_spec_check_groups(s, root, d));
    if (flexcfl && s->groups < 2) {
        return kedgei_spec_bad(d, "groups", "2 to 64 groups with \"grouping\":\"flexcfl\"");
    }
    if (!flexcfl && s->groups != 1 && kedge_job_spec_models(s) == 1) {
        return kedgei_spec_bad(d, "groups", "no other value than 1 without \"grouping\":\"flexcfl\"");
    }
    if (s->regroup_every == 1 || (!flexcfl && s->regroup_every > 0)) {
        return kedgei_spec_bad(d, "regroup_every", "0, or with \"grouping\":\"flexcfl\" 2 rounds or more");
    }
    if (!flexcfl && s->shift != KEDGE_SHIFT_TEST_NONE) {
        return kedgei_spec_bad(d, "shift", "no other value than \"none\" without \"grouping\":\"flexcfl\"");
    }
    if (flexcfl && !json_object_get(root, "shift")) {
        s->shift = s->options.trial_every > 0 ? KEDGE_SHIFT_TEST_LOSS : KEDGE_SHIFT_TEST_LABELS;
    }
    if (s->shift == KEDGE_SHIFT_TEST_UPDATE && !json_object_get(root, "migration_pause")) {
        s->migration_pause = 10; /* so often every site pre-trains again */
    }
    if (flexcfl && !json_object_get(root, "pretrain_sites")) {
        const bool is_most = s->choose == KEDGE_CHOOSE_MOST || s->choose == KEDGE_CHOOSE_ONE;
        const uint32_t groups = is_most ? kedge_job_spec_groups_most(s) : s->groups;
        s->pretrain_sites = 20 * groups; /* α = 20, FlexCFL's released setting */
    }
    if (s->sites_min > 0 && s->quorum > s->sites_min && s->sites_per_round != 0
        && s->quorum > s->sites_per_round) {
        return kedgei_spec_bad(d, "quorum", "at most sites_per_round");
    }
    if ((uint64_t)s->tenant_share_max * s->tenant_count < KEDGE_SHARE_ONE) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "job spec: \"tenant_share_max\": %" PRIu32
                              " tenants with at most %.6f each do not make a whole; raise it",
                              s->tenant_count, (double)s->tenant_share_max / KEDGE_SHARE_ONE);
    }
    KEDGE_TRY(kedgei_spec_check_buffer(s, d));
    uint64_t sites = kedgei_spec_updates_most(s);
    bool by_samples = kedge_job_spec_weighs_samples(s) && s->rule->kind == KEDGE_RULE_MEAN;
    uint64_t weight = by_samples || s->weight_max > KEDGE_WEIGHT_ONE ? s->weight_max : KEDGE_WEIGHT_ONE;
    int err = kedge_scale_check(s->bound, s->scale, weight * sites);
    if (err) {
        return kedge_diag_set(d, err,
                              "job spec: \"bound\" %g, \"scale\" %u, \"weight_max\" %" PRIu64
                              ": bound·2^scale must stay"
                              " below 2^31 and sites·weight_max·bound·2^scale below 2^62; lower one of them",
                              s->bound, s->scale, s->weight_max);
    }
    return KEDGE_OK;
}

/* A key that nobody knows is refused: a misspelt setting would else leave its default in force for as long
 * as the job runs. "world" is told apart, because specs of simulations are copied into jobs. */
static int check_keys(const json_t *root, struct kedge_diag *d)
{
    const char *keys[KEYS_MAX], *name;
    json_t *value;
    KEDGE_ASSERT(kedge_job_key_count <= KEYS_MAX);
    for (size_t i = 0; i < kedge_job_key_count; i++) {
        keys[i] = kedge_job_keys[i].key;
    }
    json_object_foreach((json_t *)(uintptr_t)root, name, value)
    {
        if (strcmp(name, "world") == 0) {
            (void)kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"world\": only simulations have one");
            (void)kedge_diag_hint(d,
                                  "kedge sim SPEC --print-job prints the job that a simulation stands for");
            return KEDGE_E_FORMAT;
        }
        if (!kedge_job_key_find(name)) {
            (void)kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: unknown key \"%.60s\"", name);
            kedge_nearest_hint(d, name, keys, kedge_job_key_count, "docs/job-spec.md lists the keys");
            return KEDGE_E_FORMAT;
        }
    }
    return KEDGE_OK;
}

static int read_rows(const json_t *root, struct kedge_job_spec *s, struct kedge_diag *d)
{
    for (size_t i = 0; i < kedge_job_key_count; i++) {
        const struct kedge_job_key *row = &kedge_job_keys[i];
        const json_t *v = json_object_get(root, row->key);
        int err = KEDGE_OK;
        if (!v && row->is_required) {
            return kedge_diag_set(d, KEDGE_E_FORMAT, "job spec: \"%s\" is missing", row->key);
        }
        if (row->kind != KEDGE_JOB_KEY_OWN && row->kind != KEDGE_JOB_KEY_WORD) {
            err = read_plain(row, v, s, d);
        } else if (v) {
            err = read_own(row, v, s, d);
        }
        if (err) {
            return err;
        }
    }
    s->sites_min = s->in_world && !json_object_get(root, "sites_min") ? 0 : s->sites_min;
    KEDGE_TRY(kedgei_spec_read_data(root, s, d));
    KEDGE_TRY(kedgei_spec_read_batch(root, s, d));
    KEDGE_TRY(kedgei_spec_read_strategy(root, s, d));
    KEDGE_TRY(kedgei_spec_read_share(root, s, d));
    KEDGE_TRY(kedgei_spec_read_selection(root, s, d));
    KEDGE_TRY(kedgei_spec_check_cohort(root, s, d));
    KEDGE_TRY(kedgei_spec_read_needs(root, s, d));
    KEDGE_TRY(kedgei_spec_read_budget(root, s, d));
    KEDGE_TRY(kedgei_spec_read_plan(root, s, d));
    KEDGE_TRY(kedgei_spec_read_targets(root, s, d));
    KEDGE_TRY(check_together(s, root, d));
    KEDGE_TRY(kedgei_spec_check_external(s, root, d));
    KEDGE_TRY(kedgei_spec_check_strategy(s, d));
    KEDGE_TRY(kedgei_spec_check_data(s, d));
    int err = kedgei_spec_check_share(s, d);
    return err ? err : kedgei_spec_check_batch(s, d);
}

/* A simulation reads the same keys by the same code, so that what is tried in it is what a job would do. */
int kedge_job_spec_read_in_world(const json_t *keys, struct kedge_job_spec *ret, struct kedge_diag *reterr)
{
    struct kedge_job_spec s = {.in_world = true};
    KEDGE_TRY(check_keys(keys, reterr));
    KEDGE_TRY(read_rows(keys, &s, reterr));
    *ret = s;
    return KEDGE_OK;
}

/* Settings that several jobs of a simulation share name keys that only some of them read. */
int kedge_job_spec_drop_unread(json_t *keys, const json_t *own, struct kedge_diag *reterr)
{
    struct kedge_job_spec s = {.in_world = true, .groups = 1, .sites_min = 1};
    const json_t *grouping = json_object_get(keys, "grouping");
    KEDGE_TRY(grouping ? read_grouping(grouping, &s, reterr) : KEDGE_OK);
    KEDGE_TRY(kedgei_spec_read_kind(keys, &s, reterr));
    /* these are read where they are said, if the strategy has a use for them */
    bool counts = kedgei_spec_lives(&s) || kedge_job_spec_has_model_per_group_at_start(&s)
                  || (s.strategy->comparison_only && s.grouping == KEDGE_GROUPING_FLEXCFL);
    s.groups = counts ? 2 : 1;
    s.compression.kind = KEDGE_COMPACT_INT8;
    for (size_t i = 0; i < kedge_job_key_count; i++) {
        const struct kedge_job_key *row = &kedge_job_keys[i];
        bool all = s.strategy->everybody && strcmp(row->key, "sites_per_round") == 0;
        if ((all || !kedge_job_key_is_read(&s, row)) && !json_object_get(own, row->key)) {
            (void)json_object_del(keys, row->key);
        }
    }
    return KEDGE_OK;
}

/* *ret is written at the end and only after success, so a caller never holds half a spec. */
int kedge_job_spec_parse(struct kedge_view text, struct kedge_job_spec *ret, struct kedge_diag *reterr)
{
    if (text.len > KEDGE_SPEC_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "job spec: longer than %d bytes", KEDGE_SPEC_MAX);
    }
    if (text.len == 0) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "job spec: empty, expected a JSON object");
    }
    json_t *root = NULL;
    KEDGE_TRY(kedgei_json_load(text, KEDGE_SPEC_MAX, "job spec", &root, reterr));
    struct kedge_job_spec s = {.tenant_count = 0};
    int err = check_keys(root, reterr);
    if (!err) {
        err = read_rows(root, &s, reterr);
    }
    json_decref(root);
    if (!err) {
        *ret = s;
    }
    return err;
}
