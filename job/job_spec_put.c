/* A spec as text again: a row of the table a line, and for keys of kind OWN a function each. What a job
 * does not read is left out, for a parser that refuses it is right. What is read again is the same spec:
 * numbers have as many digits as that takes. */
#include <inttypes.h>
#include <string.h>

#include "aggregation/share_cap.h"
#include "common/base/text.h"
#include "common/json/json.h"
#include "job/job_spec_impl.h"
#include "job/keys.h"

static void put_real(double v, struct kedge_buf *out)
{
    char text[KEDGE_REAL_MAX];
    kedge_real_encode(v, text);
    kedge_buf_put_str(out, text);
}

/* The shortest text of these digits: 0, 1, 0.25. */
static void put_share(uint32_t millionths, struct kedge_buf *out)
{
    uint32_t whole = millionths / KEDGE_SHARE_ONE, part = millionths % KEDGE_SHARE_ONE;
    int places = part > 0 ? 6 : 0;
    for (; part > 0 && part % 10 == 0; places--) {
        part /= 10;
    }
    if (places > 0) {
        kedge_buf_printf(out, "%" PRIu32 ".%0*" PRIu32, whole, places, part);
    } else {
        kedge_buf_printf(out, "%" PRIu32, whole);
    }
}

/* ---- keys of their own ---- */

static void put_name(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    kedgei_json_put_string(out, s->name.s);
}

static void put_data(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    kedgei_json_put_string(out, s->data);
}

static void put_tenants(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    for (uint32_t i = 0; i < s->tenant_count; i++) {
        kedge_buf_put_str(out, i ? ", " : "[");
        kedgei_json_put_string(out, s->tenants[i].s);
    }
    kedge_buf_put_str(out, "]");
}

static void put_model(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    if (s->is_external) {
        kedge_buf_put_str(out, "\"external\"");
        return;
    }
    struct kedge_model_spec model = s->model;
    model.standardize = false; /* a key of the job */
    kedge_model_put_json(&model, out);
}

static void put_external(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    struct kedge_layout layout;
    struct kedge_diag d;
    if (kedge_job_spec_whole_layout(s, &layout, &d) != KEDGE_OK) {
        out->err = out->err ? out->err : KEDGE_E_NOMEM; /* the parser made it once */
        return;
    }
    kedge_buf_printf(out, "{\"trainer\": \"%s\", \"tensors\": [", s->external.trainer.s);
    for (uint32_t i = 0; i < layout.count; i++) {
        const struct kedge_tensor *t = &layout.tensors[i];
        kedge_buf_put_str(out, i ? ", {\"name\": " : "{\"name\": ");
        kedgei_json_put_string(out, t->name);
        kedge_buf_put_str(out, ", \"shape\": [");
        for (uint32_t k = 0; k < t->dims_count; k++) {
            kedge_buf_printf(out, "%s%" PRIu64, k ? ", " : "", t->dims[k]);
        }
        kedge_buf_put_str(out, "]}");
    }
    kedge_buf_printf(out, "], \"settings\": %s}", s->external.settings);
    kedge_layout_deinit(&layout);
}

static void put_initial_model(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    char hex[65];
    kedge_hex_encode(s->initial_model.b, 32, hex);
    kedge_buf_printf(out, "\"%s\"", hex);
}

static void put_classes(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    const char *name = s->classes;
    if (s->learns_classes) {
        kedge_buf_put_str(out, "\"federated\"");
        return;
    }
    for (uint32_t i = 0; i < s->classes_count; i++, name += strlen(name) + 1) {
        kedge_buf_put_str(out, i ? ", " : "[");
        kedgei_json_put_string(out, name);
    }
    kedge_buf_put_str(out, "]");
}

static void put_batch(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    kedge_buf_printf(out, s->batch_auto ? "\"auto\"" : "%" PRIu32, s->batch);
}

static void put_batch_start(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    kedge_buf_printf(out, "%" PRIu32, s->batch);
}

static void put_batch_least(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    kedge_buf_printf(out, "%" PRIu32, s->batch_least);
}

static void put_batch_most(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    kedge_buf_printf(out, "%" PRIu32, s->batch_most);
}

static void put_strategy(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    kedge_buf_printf(out, "\"%s\"", s->strategy->name);
}

static void put_shared(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    const char *word = s->share.words;
    for (uint32_t i = 0; i < s->share.count; i++, word += strlen(word) + 1) {
        kedge_buf_put_str(out, i ? ", " : "[");
        kedgei_json_put_string(out, word);
    }
    kedge_buf_put_str(out, "]");
}

static void put_options(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    const char *between = "{";
    for (size_t i = 0; i < KEDGE_STRATEGY_OPTION_COUNT; i++) {
        const struct kedge_strategy_option *option = kedge_strategy_option_at(i);
        if (kedgei_spec_uses_option(s, option)) {
            kedge_buf_printf(out, "%s\"%s\": ", between, option->name);
            put_real(kedge_strategy_option_get(&s->options, option), out);
            between = ", ";
        }
    }
    kedge_buf_put_str(out, "}");
}

static void put_server(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    kedge_buf_printf(out, "\"%s\"", kedge_job_spec_server_name(s));
}

static void put_rule(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    kedge_buf_printf(out, "\"%s\"", s->rule->name);
}

static void put_rule_fraction(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    put_real(s->rule_params.fraction, out);
}

static void put_rule_bound(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    put_real(s->rule_params.bound, out);
}

static void put_compression(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    kedge_buf_printf(out, "{\"kind\": \"%s\"", kedge_compact_name(s->compression.kind));
    if (kedge_compact_is_sparse(s->compression.kind)) {
        kedge_buf_put_str(out, ", \"share\": ");
        put_share(s->compression.share, out);
    }
    kedge_buf_put_str(out, ", \"carry\": ");
    put_share(s->compression.carry, out);
    kedge_buf_put_str(out, "}");
}

static void put_budget(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    const struct kedge_job_budget *b = &s->budget;
    kedge_buf_printf(out, "{\"%s\": ", kedge_job_budget_unit_name(b->unit));
    put_real(b->most, out);
    if (b->unit == KEDGE_JOB_BUDGET_MONEY) {
        kedge_buf_put_str(out, ", \"per_joule\": ");
        put_real(b->per_joule, out);
        kedge_buf_put_str(out, ", \"per_site_minute\": ");
        put_real(b->per_site_minute, out);
    }
    if (b->per_joule > 0) {
        kedge_buf_put_str(out, ", \"watts\": ");
        put_real(b->watts, out);
    }
    kedge_buf_put_str(out, "}");
}

static void put_cohort(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    if (s->sites_least > 0) {
        kedge_buf_printf(out, "[%" PRIu32 ", %" PRIu32 "]", s->sites_least, s->sites_per_round);
    } else {
        kedge_buf_printf(out, "%" PRIu32, s->sites_per_round);
    }
}

static void put_needs(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    struct kedge_view rest = kedge_view_str(s->needs.text), label;
    const char *before = "[";
    while (kedge_labels_next(&rest, &label)) {
        kedge_buf_printf(out, "%s\"%.*s\"", before, (int)label.len, (const char *)label.ptr);
        before = ", ";
    }
    kedge_buf_put_str(out, "]");
}

static void put_plan(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    kedge_buf_put_str(out, "{\"data\": ");
    put_real(s->plan.data, out);
    kedge_buf_put_str(out, ", \"energy\": ");
    put_real(s->plan.energy, out);
    kedge_buf_put_str(out, ", \"time\": ");
    put_real(s->plan.time, out);
    kedge_buf_printf(out, ", \"least_percent\": %" PRIu32 "}", s->plan.least);
}

static void put_targets(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    for (uint32_t i = 0; i < s->target_count; i++) {
        kedge_buf_put_str(out, i ? ", " : "[");
        put_share(s->targets[i], out);
    }
    kedge_buf_put_str(out, "]");
}

static void put_control_sites(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    kedge_buf_printf(out, "%" PRIu32, s->control_sites);
}

static void put_root_site(const struct kedge_job_spec *s, struct kedge_buf *out)
{
    kedge_buf_printf(out, "\"%s/%s\"", s->tenants[s->root_tenant].s, s->root_site.s);
}

static const struct {
    const char *key;
    void (*put)(const struct kedge_job_spec *s, struct kedge_buf *out);
} own[] = {
    {"name", put_name},
    {"tenants", put_tenants},
    {"model", put_model},
    {"external", put_external},
    {"initial_model", put_initial_model},
    {"data", put_data},
    {"classes", put_classes},
    {"batch", put_batch},
    {"batch_start", put_batch_start},
    {"batch_least", put_batch_least},
    {"batch_most", put_batch_most},
    {"strategy", put_strategy},
    {"share", put_shared},
    {"options", put_options},
    {"server", put_server},
    {"rule", put_rule},
    {"rule_fraction", put_rule_fraction},
    {"rule_bound", put_rule_bound},
    {"compression", put_compression},
    {"budget", put_budget},
    {"sites_per_round", put_cohort},
    {"needs", put_needs},
    {"plan", put_plan},
    {"targets", put_targets},
    {"control_sites", put_control_sites},
    {"root_site", put_root_site},
};

static void put_own(const struct kedge_job_spec *s, const struct kedge_job_key *row, struct kedge_buf *out)
{
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (strcmp(own[i].key, row->key) == 0) {
            own[i].put(s, out);
            return;
        }
    }
    KEDGE_ASSERT(false);
}

/* ---- the table ---- */

/* Words are counted in enums, and in bools where there are two. */
static const char *word_of(const struct kedge_job_spec *s, const struct kedge_job_key *row)
{
    const struct {
        const char *key;
        uint32_t at;
    } places[] = {
        {"selection", s->by_charge},
        {"learning_rate_rule", s->rate_rule},
        {"precision", s->precision},
        {"grouping", s->grouping},
        {"choose", s->choose},
        {"shift", s->shift},
        {"standardize", (uint32_t)s->standardize - KEDGE_STANDARDIZE_NONE},
        {"metric", s->shows_loss},
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (strcmp(places[i].key, row->key) == 0) {
            return row->words[places[i].at];
        }
    }
    KEDGE_ASSERT(false);
    return "";
}

static void put_value(const struct kedge_job_spec *s, const struct kedge_job_key *row, struct kedge_buf *out)
{
    const void *field = (const char *)s + row->offset;
    switch (row->kind) {
    case KEDGE_JOB_KEY_WHOLE32:
        kedge_buf_printf(out, "%" PRIu32, *(const uint32_t *)field);
        return;
    case KEDGE_JOB_KEY_WHOLE64:
        kedge_buf_printf(out, "%" PRIu64, *(const uint64_t *)field);
        return;
    case KEDGE_JOB_KEY_SEED:
        kedge_buf_printf(out, "\"%" PRIu64 "\"", *(const uint64_t *)field);
        return;
    case KEDGE_JOB_KEY_REAL:
        put_real(*(const double *)field, out);
        return;
    case KEDGE_JOB_KEY_SHARE:
        put_share(*(const uint32_t *)field, out);
        return;
    case KEDGE_JOB_KEY_WORD:
        kedge_buf_printf(out, "\"%s\"", word_of(s, row));
        return;
    case KEDGE_JOB_KEY_OWN:
        put_own(s, row, out);
        return;
    }
}

void kedge_job_spec_put_keys(const struct kedge_job_spec *spec, struct kedge_buf *out)
{
    const char *between = "{\n";
    for (size_t i = 0; i < kedge_job_key_count; i++) {
        if (kedge_job_key_is_read(spec, &kedge_job_keys[i])) {
            kedge_buf_printf(out, "%s  \"%s\": ", between, kedge_job_keys[i].key);
            put_value(spec, &kedge_job_keys[i], out);
            between = ",\n";
        }
    }
}

void kedge_job_spec_put(const struct kedge_job_spec *spec, struct kedge_buf *out)
{
    kedge_job_spec_put_keys(spec, out);
    kedge_buf_put_str(out, "\n}\n");
}
