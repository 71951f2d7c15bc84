#include <string.h>

#include "common/base/text.h"
#include "common/tensor/json.h"
#include "sim/learn/spec/spec_json.h"
#include "sim/learn/spec/spec_rows.h"

static void put_real(struct kedge_buf *out, double v)
{
    char text[KEDGE_REAL_MAX];
    kedge_real_encode(v, text);
    kedge_buf_put_str(out, text);
}

static void put_rounds(const struct kedge_learn_rounds *rounds, struct kedge_buf *out)
{
    for (uint32_t i = 0; i < rounds->count; i++) {
        kedge_buf_printf(out, "%s%u", i ? "," : "[", rounds->at[i]);
    }
    kedge_buf_put_str(out, rounds->count ? "]" : "[]");
}

static void put_value(const struct kedgei_spec_row *row, const void *base, struct kedge_buf *out)
{
    const char *from = (const char *)base + row->offset;
    uint32_t word = 0;
    uint64_t whole = 0;
    double real = 0;
    switch (row->kind) {
    case KEDGEI_SPEC_U32:
        memcpy(&word, from, sizeof word);
        kedge_buf_printf(out, "%u", word);
        return;
    case KEDGEI_SPEC_U64:
        memcpy(&whole, from, sizeof whole);
        kedge_buf_printf(out, "\"%llu\"", (unsigned long long)whole);
        return;
    case KEDGEI_SPEC_REAL:
        memcpy(&real, from, sizeof real);
        put_real(out, real);
        return;
    case KEDGEI_SPEC_BOOL:
        kedge_buf_put_str(out, *(const bool *)from ? "true" : "false");
        return;
    case KEDGEI_SPEC_WORD:
        memcpy(&word, from, sizeof word);
        kedge_buf_printf(out, "\"%s\"", row->words[word]);
        return;
    case KEDGEI_SPEC_TEXT:
        kedge_json_put_string(out, kedge_view_str(from));
        return;
    case KEDGEI_SPEC_ROUNDS:
        put_rounds((const struct kedge_learn_rounds *)(const void *)from, out);
        return;
    }
}

static bool is_zero(const struct kedgei_spec_row *row, const void *base)
{
    const char *from = (const char *)base + row->offset;
    uint32_t word = 0;
    double real = 0;
    if (row->kind == KEDGEI_SPEC_BOOL) {
        return !*(const bool *)from;
    }
    if (row->kind == KEDGEI_SPEC_TEXT) {
        return *from == '\0';
    }
    if (row->kind == KEDGEI_SPEC_REAL) {
        memcpy(&real, from, sizeof real);
        return !(real > 0 || real < 0);
    }
    KEDGE_ASSERT(row->kind == KEDGEI_SPEC_U32 || row->kind == KEDGEI_SPEC_WORD
                 || row->kind == KEDGEI_SPEC_ROUNDS); /* whose first member is its count */
    memcpy(&word, from, sizeof word);
    return word == 0;
}

/* Whether the value of a row says something: it is no new key's 0, and no number that follows from others. */
static bool is_said(const struct kedgei_spec_row *row, const void *base)
{
    uint32_t word = 0;
    if (row->kind == KEDGEI_SPEC_U32) {
        memcpy(&word, (const char *)base + row->offset, sizeof word);
    }
    return word != KEDGE_LEARN_UNSAID && !(row->is_new && is_zero(row, base));
}

/* The rows of one section, without braces. */
static void put_rows(const struct kedgei_spec_row *rows, size_t count, const char *section, const void *base,
                     struct kedge_buf *out)
{
    const char *between = "";
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].section, section) == 0 && is_said(&rows[i], base)) {
            kedge_buf_printf(out, "%s\"%s\":", between, rows[i].key);
            put_value(&rows[i], base, out);
            between = ",";
        }
    }
}

static void put_options(const struct kedge_strategy_options *options, struct kedge_buf *out)
{
    for (size_t i = 0; i < KEDGE_STRATEGY_OPTION_COUNT; i++) {
        const struct kedge_strategy_option *o = kedge_strategy_option_at(i);
        double v;
        memcpy(&v, (const char *)options + o->offset, sizeof v);
        kedge_buf_printf(out, "%s\"%s\":", i ? "," : "", o->name);
        put_real(out, v);
    }
}

static void put_section(const char *key, const char *section, const struct kedge_learn_spec *spec,
                        struct kedge_buf *out)
{
    kedge_buf_printf(out, ",\"%s\":{", key);
    put_rows(kedgei_spec_rows, kedgei_spec_row_count, section, spec, out);
    kedge_buf_put_str(out, "}");
}

static void put_devices(const struct kedge_learn_spec *spec, struct kedge_buf *out)
{
    kedge_buf_put_str(out, ",\"devices\":[");
    for (uint32_t i = 0; i < spec->device_count; i++) {
        kedge_buf_put_str(out, i ? ",{" : "{");
        put_rows(kedgei_device_rows, kedgei_device_row_count, "", &spec->devices[i], out);
        kedge_buf_put_str(out, "}");
    }
    kedge_buf_put_str(out, "]");
}

void kedge_learn_spec_put(const struct kedge_learn_spec *spec, struct kedge_buf *out)
{
    kedge_buf_put_str(out, "{");
    put_rows(kedgei_spec_rows, kedgei_spec_row_count, "", spec, out);
    kedge_buf_put_str(out, ",\"model\":");
    kedge_model_put_json(&spec->model, out);
    kedge_buf_printf(out, ",\"strategy\":\"%s\",\"options\":{", spec->strategy->name);
    put_options(&spec->options, out);
    kedge_buf_put_str(out, "}");
    if (spec->compression != KEDGE_COMPACT_NONE) {
        put_section("compression", "compression", spec, out);
    }
    kedge_buf_put_str(out, ",\"world\":{");
    put_rows(kedgei_spec_rows, kedgei_spec_row_count, "world", spec, out);
    put_section("data", "world.data", spec, out);
    put_section("shift", "world.shift", spec, out);
    put_section("attack", "world.attack", spec, out);
    put_devices(spec, out);
    kedge_buf_put_str(out, "}}");
}
