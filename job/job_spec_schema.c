/* The JSON Schema of a job spec: the table of keys in other words, for editors and other programs. It says
 * less than the parser, which also knows rules between keys; what the parser takes the schema must take. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "common/json/json.h"
#include "job/job_spec_impl.h"
#include "job/keys.h"

#define NAME "\"type\": \"string\", \"pattern\": \"^[a-z0-9][a-z0-9._-]{0,62}$\""
#define REAL "\"type\": [\"number\", \"string\"]"
#define AMOUNT REAL ", \"minimum\": 0.000001, \"maximum\": 1000000000000"
#define WORTH REAL ", \"minimum\": 0, \"maximum\": 1000"
#define PRICE REAL ", \"minimum\": 0, \"maximum\": 1000000"
#define SHARE REAL ", \"exclusiveMinimum\": 0, \"maximum\": 1"

static void put_number(const char *key, double v, struct kedge_buf *out)
{
    char text[KEDGE_REAL_MAX];
    kedge_real_encode(v, text);
    if (v >= 0 && v < 1e15 && (double)(uint64_t)v >= v) {
        snprintf(text, sizeof text, "%" PRIu64, (uint64_t)v);
    }
    kedge_buf_printf(out, ", \"%s\": %s", key, text);
}

/* ---- keys of their own ---- */

static void put_strategies(struct kedge_buf *out)
{
    const char *between = "\"enum\": [";
    for (size_t i = 0; i < kedge_strategy_count(); i++) {
        if (!kedgei_spec_not_run(kedge_strategy_at(i))) {
            kedge_buf_printf(out, "%s\"%s\"", between, kedge_strategy_at(i)->name);
            between = ", ";
        }
    }
    kedge_buf_put_str(out, "]");
}

static void put_servers(struct kedge_buf *out)
{
    for (uint32_t i = 0; kedgei_spec_server_word(i); i++) {
        kedge_buf_printf(out, "%s\"%s\"", i ? ", " : "\"enum\": [", kedgei_spec_server_word(i));
    }
    kedge_buf_put_str(out, "]");
}

static void put_rules(struct kedge_buf *out)
{
    for (size_t i = 0; i < kedge_rule_count(); i++) {
        kedge_buf_printf(out, "%s\"%s\"", i ? ", " : "\"enum\": [", kedge_rule_at(i)->name);
    }
    kedge_buf_put_str(out, "]");
}

static void put_options(struct kedge_buf *out)
{
    kedge_buf_put_str(out, "\"type\": \"object\", \"additionalProperties\": false, \"properties\": {");
    for (size_t i = 0; i < KEDGE_STRATEGY_OPTION_COUNT; i++) {
        const struct kedge_strategy_option *option = kedge_strategy_option_at(i);
        kedge_buf_printf(out, "%s\n      \"%s\": {\"description\": ", i ? "," : "", option->name);
        kedgei_json_put_string(out, option->text);
        kedge_buf_put_str(out, ", " REAL);
        put_number("minimum", option->least, out);
        put_number("maximum", option->largest, out);
        kedge_buf_put_str(out, "}");
    }
    kedge_buf_put_str(out, "\n    }");
}

static void put_compression(struct kedge_buf *out)
{
    kedge_buf_put_str(out, "\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"kind\"], "
                           "\"properties\": {\"kind\": {\"enum\": [");
    for (unsigned kind = KEDGE_COMPACT_INT8; kind < KEDGE_COMPACT_KINDS; kind++) {
        kedge_buf_printf(out, "%s\"%s\"", kind == KEDGE_COMPACT_INT8 ? "" : ", ",
                         kedge_compact_name((enum kedge_compact_kind)kind));
    }
    kedge_buf_put_str(out,
                      "]}, \"share\": {" SHARE "}, \"carry\": {" REAL ", \"minimum\": 0, \"maximum\": 1}}");
}

static const struct {
    const char *key;
    const char *text;                   /* the schema; NULL: */
    void (*put)(struct kedge_buf *out); /* appends it */
} own[] = {
    {"name", NAME, NULL},
    {"data", NAME, NULL},
    {"tenants",
     "\"type\": \"array\", \"minItems\": 1, \"maxItems\": 128, \"uniqueItems\": true, \"items\": {" NAME "}",
     NULL},
    {"model", "\"oneOf\": [{\"const\": \"external\"}, {\"type\": \"object\"}]", NULL},
    {"external",
     "\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"trainer\", \"tensors\"],\n"
     "      \"properties\": {\"trainer\": {" NAME "}, \"settings\": {\"type\": \"object\"},\n"
     "        \"tensors\": {\"type\": \"array\", \"minItems\": 1, \"maxItems\": 1024, \"items\": {\"type\": "
     "\"object\",\n"
     "          \"additionalProperties\": false, \"required\": [\"name\", \"shape\"], \"properties\": "
     "{\"name\": "
     "{\"type\": \"string\"},\n"
     "            \"shape\": {\"type\": \"array\", \"maxItems\": 8, \"items\": {\"type\": \"integer\", "
     "\"minimum\": 1, \"maximum\": 4294967295}}}}}}",
     NULL},
    {"initial_model", "\"type\": \"string\", \"pattern\": \"^[0-9a-f]{64}$\"", NULL},
    {"classes",
     "\"oneOf\": [{\"const\": \"federated\"}, {\"type\": \"array\", \"minItems\": 2, \"maxItems\": 1024, "
     "\"uniqueItems\": true,\n"
     "      \"items\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 127}}]",
     NULL},
    {"batch",
     "\"oneOf\": [{\"const\": \"auto\"}, {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 65536}]", NULL},
    {"batch_start", "\"type\": \"integer\", \"minimum\": 1, \"maximum\": 65536", NULL},
    {"batch_least", "\"type\": \"integer\", \"minimum\": 1, \"maximum\": 65536", NULL},
    {"batch_most", "\"type\": \"integer\", \"minimum\": 1, \"maximum\": 65536", NULL},
    {"strategy", NULL, put_strategies},
    {"share",
     "\"type\": \"array\", \"minItems\": 1, \"maxItems\": 256, \"uniqueItems\": true,\n"
     "      \"items\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 127}",
     NULL},
    {"options", NULL, put_options},
    {"server", NULL, put_servers},
    {"rule", NULL, put_rules},
    {"rule_fraction", REAL ", \"minimum\": 0, \"maximum\": 0.499999", NULL},
    {"rule_bound", REAL ", \"minimum\": 0", NULL},
    {"compression", NULL, put_compression},
    {"sites_per_round",
     "\"oneOf\": [{\"type\": \"integer\", \"minimum\": 0, \"maximum\": 4096},\n"
     "      {\"type\": \"array\", \"minItems\": 2, \"maxItems\": 2,\n"
     "       \"items\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 4096}}]",
     NULL},
    {"needs",
     "\"type\": \"array\", \"minItems\": 1, \"maxItems\": 16, \"uniqueItems\": true,\n"
     "      \"items\": {\"type\": \"string\", \"pattern\": "
     "\"^[a-z0-9][a-z0-9._-]{0,30}=[a-z0-9][a-z0-9._-]{0,30}$\"}",
     NULL},
    {"targets", "\"type\": \"array\", \"minItems\": 1, \"maxItems\": 2, \"items\": {" SHARE "}", NULL},
    {"budget",
     "\"type\": \"object\", \"additionalProperties\": false, \"minProperties\": 1, \"properties\": {\n"
     "      \"joules\": {" AMOUNT "}, \"site_minutes\": {" AMOUNT "}, \"money\": {" AMOUNT "},\n"
     "      \"per_joule\": {" PRICE "}, \"per_site_minute\": {" PRICE "},\n"
     "      \"watts\": {" REAL ", \"minimum\": 0.000001, \"maximum\": 1000000}}",
     NULL},
    {"plan",
     "\"oneOf\": [{\"enum\": [\"none\", \"auto\"]}, {\"type\": \"object\", \"additionalProperties\": false, "
     "\"properties\": {\n"
     "      \"data\": {" WORTH "}, \"energy\": {" WORTH "}, \"time\": {" WORTH "},\n"
     "      \"least_percent\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 100}}}]",
     NULL},
    {"control_sites", "\"type\": \"integer\", \"minimum\": 1, \"maximum\": 4096", NULL},
    {"root_site",
     "\"type\": \"string\", \"pattern\": \"^[a-z0-9][a-z0-9._-]{0,62}/[a-z0-9][a-z0-9._-]{0,62}$\"", NULL},
};

static void put_own(const struct kedge_job_key *row, struct kedge_buf *out)
{
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (strcmp(own[i].key, row->key) != 0) {
            continue;
        }
        if (own[i].put) {
            own[i].put(out);
        } else {
            kedge_buf_put_str(out, own[i].text);
        }
        return;
    }
    KEDGE_ASSERT(false);
}

/* ---- the table ---- */

/* What a page says with links and marks, as plain text: [words](link) and `code`. */
static void put_plain(const char *text, const struct kedge_job_key *row, struct kedge_buf *out)
{
    char plain[2048], range[64];
    size_t n = 0;
    snprintf(range, sizeof range, "%.10g to %.10g", row->least, row->most);
    for (const char *p = text; *p && n + sizeof range < sizeof plain; p++) {
        if (strncmp(p, "{range}", 7) == 0) {
            n += (size_t)snprintf(plain + n, sizeof plain - n, "%s", range);
            p += 6;
        } else if (p[0] == ']' && p[1] == '(') {
            p += strcspn(p, ")");
        } else if (*p != '`' && !(*p == '[' && strstr(p, "]("))) {
            plain[n++] = *p;
        }
    }
    plain[n] = '\0';
    kedgei_json_put_string(out, plain);
}

static void put_kind(const struct kedge_job_key *row, struct kedge_buf *out)
{
    switch (row->kind) {
    case KEDGE_JOB_KEY_WHOLE32:
    case KEDGE_JOB_KEY_WHOLE64:
        kedge_buf_put_str(out, "\"type\": \"integer\"");
        put_number("minimum", row->least, out);
        put_number("maximum", row->most, out);
        return;
    case KEDGE_JOB_KEY_SEED:
        kedge_buf_put_str(
            out, "\"type\": [\"integer\", \"string\"], \"minimum\": 0, \"pattern\": \"^[0-9]{1,20}$\"");
        return;
    case KEDGE_JOB_KEY_REAL:
        kedge_buf_put_str(out, REAL);
        put_number("minimum", row->least, out);
        put_number("maximum", row->most, out);
        return;
    case KEDGE_JOB_KEY_SHARE:
        kedge_buf_put_str(out, SHARE);
        return;
    case KEDGE_JOB_KEY_WORD:
        for (size_t i = 0; row->words[i]; i++) {
            kedge_buf_printf(out, "%s\"%s\"", i ? ", " : "\"enum\": [", row->words[i]);
        }
        kedge_buf_put_str(out, "]");
        return;
    case KEDGE_JOB_KEY_OWN:
        put_own(row, out);
        return;
    }
}

void kedge_job_spec_put_schema(struct kedge_buf *out)
{
    const char *between = "";
    kedge_buf_put_str(out, "{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
                           "  \"title\": \"Kedge job spec\",\n  \"type\": \"object\",\n  \"required\": [");
    for (size_t i = 0; i < kedge_job_key_count; i++) {
        if (kedge_job_keys[i].is_required) {
            kedge_buf_printf(out, "%s\"%s\"", between, kedge_job_keys[i].key);
            between = ", ";
        }
    }
    kedge_buf_put_str(out, "],\n  \"additionalProperties\": false,\n  \"properties\": {");
    for (size_t i = 0; i < kedge_job_key_count; i++) {
        kedge_buf_printf(out, "%s\n    \"%s\": {\"description\": ", i ? "," : "", kedge_job_keys[i].key);
        put_plain(kedge_job_keys[i].text, &kedge_job_keys[i], out);
        kedge_buf_put_str(out, ",\n      ");
        put_kind(&kedge_job_keys[i], out);
        kedge_buf_put_str(out, "}");
    }
    kedge_buf_put_str(out, "\n  }\n}\n");
}
