/* Idea: a spec is a stack of JSON objects that are applied one over the other by the same function; a key is
 * a row of spec_rows.c or one of the few that are objects themselves. */
#include "sim/learn/spec/spec_json.h"

#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/nearest.h"
#include "common/base/text.h"
#include "common/tensor/json.h"
#include "sim/learn/spec/spec_rows.h"
#include "sim/learn/spec/spec_unread.h"
#include "strategy/strategy.h"

enum { KEY_SHOWN_MAX = 64, NAMES_MAX = 128 };

/* ---- objects ---- */

static const struct kedgei_spec_row *find_row(const struct kedgei_spec_row *rows, size_t count,
                                              const char *section, const struct kedge_json *doc, uint32_t key)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].section, section) == 0 && kedge_json_str_is(doc, key, rows[i].key)) {
            return &rows[i];
        }
    }
    return NULL;
}

static const char *const others[] = {"world", "model", "strategy", "options", "compression"};
static const char *const outermost[] = {"preset", "variants"};

/* Objects in "world"; NULL: a list, with a reader of its own. */
static const struct {
    const char *key, *section;
} inner[] = {{"data", "world.data"}, {"shift", "world.shift"}, {"attack", "world.attack"}, {"devices", NULL}};

/* Words of before there was a world, and what says it now. */
static const struct {
    const char *old, *now;
} old_words[] = {
    {"data", "\"world\": {\"data\": …}"},
    {"synthetic_updates", "\"world\": {\"planted\": true}"},
    {"devices", "\"world\": {\"devices\": …}"},
    {"tenants", "\"world\": {\"tenants\": …}"},
    {"embedding", "a strategy: \"flexcfl\", \"flexcfl-plain\" or \"flexcfl-madc\""},
    {"as_released", "a strategy: \"ifca-as-released\" or \"fesem-as-released\""},
    {"fail", "\"world\": {\"fail\": …}"},
    {"trace", "\"world\": {\"trace\": …}"},
    {"trace_period_s", "\"world\": {\"trace_period_s\": …}"},
    {"through", "\"world\": {\"through\": …}"},
    {"train_on", "\"world\": {\"train_on\": …}"},
    {"faults", "\"world\": {\"faults\": …}"},
    {"shift_rate", "\"world\": {\"shift\": {\"rate\": …}}"},
    {"attack", "\"world\": {\"attack\": {\"kind\": …}}"},
    {"attackers", "\"world\": {\"attack\": {\"share\": …}}"},
    {"attack_scale", "\"world\": {\"attack\": {\"scale\": …}}"},
    {"detector", "\"shift\", as in jobs"},
    {"choose_groups", "\"choose\": \"silhouette\", from \"groups\" to the option \"most\""},
    {"pretrain_scale", "\"pretrain_sites\": the sites of the cold start, all groups together"},
    {"deadline_s", "\"round_timeout_s\""},
};

static int refuse_old_word(const struct kedgei_spec_layer *l, uint32_t key)
{
    for (size_t i = 0; i < sizeof old_words / sizeof old_words[0]; i++) {
        if (kedge_json_str_is(l->doc, key, old_words[i].old)) {
            return kedge_diag_set(l->d, KEDGE_E_FORMAT, "\"%s\" is now %s", old_words[i].old,
                                  old_words[i].now);
        }
    }
    return KEDGE_OK;
}

static int refuse_key(const struct kedgei_spec_layer *l, const struct kedgei_spec_row *rows, size_t count,
                      const char *section, const char *where, uint32_t key)
{
    struct kedge_buf hint;
    const char *names[NAMES_MAX];
    size_t name_count = 0;
    kedge_buf_init(&hint, 1024);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].section, section) == 0) {
            kedge_buf_printf(&hint, "%s%s", hint.len ? ", " : "keys: ", rows[i].key);
            names[name_count < NAMES_MAX ? name_count++ : 0] = rows[i].key;
        }
    }
    for (size_t i = 0; rows == kedgei_spec_rows && section[0] == '\0' && i < sizeof others / sizeof others[0];
         i++) {
        kedge_buf_printf(&hint, ", %s", others[i]);
        names[name_count < NAMES_MAX ? name_count++ : 0] = others[i];
    }
    for (size_t i = 0; strcmp(section, "world") == 0 && i < sizeof inner / sizeof inner[0]; i++) {
        kedge_buf_printf(&hint, ", %s", inner[i].key);
        names[name_count < NAMES_MAX ? name_count++ : 0] = inner[i].key;
    }
    kedge_buf_put_u8(&hint, 0);
    char word[KEY_SHOWN_MAX];
    struct kedge_view text = kedge_json_text(l->doc, key);
    snprintf(word, sizeof word, "%.*s", (int)text.len, (const char *)text.ptr);
    (void)kedge_diag_set(l->d, KEDGE_E_FORMAT, "unknown key %s%s%s%s", kedgei_spec_said(l->doc, key).s,
                         where[0] ? " in \"" : "", where, where[0] ? "\"" : "");
    kedge_nearest_hint(l->d, word, names, name_count,
                       hint.err ? "docs/cli.md has the keys" : (const char *)hint.ptr);
    kedge_buf_deinit(&hint);
    return KEDGE_E_FORMAT;
}

static int expect_object(const struct kedgei_spec_layer *l, uint32_t at, const char *key)
{
    return kedge_json_is(l->doc, at, KEDGE_JSON_OBJECT)
               ? KEDGE_OK
               : kedge_diag_set(l->d, KEDGE_E_FORMAT, "\"%s\": expected an object, found %s", key,
                                kedgei_spec_said(l->doc, at).s);
}

/* The members of an object all of whose keys are rows. */
static int read_rows(const struct kedgei_spec_layer *l, uint32_t at, const struct kedgei_spec_row *rows,
                     size_t count, const char *section, const char *where, void *base)
{
    int err = expect_object(l, at, where);
    for (uint32_t key = at + 1; !err && key < l->doc->tokens[at].next; key = l->doc->tokens[key + 1].next) {
        const struct kedgei_spec_row *row = find_row(rows, count, section, l->doc, key);
        err = row ? kedgei_spec_read(l, row, key + 1, base) : refuse_key(l, rows, count, section, where, key);
    }
    return err;
}

static int read_strategy(const struct kedgei_spec_layer *l, uint32_t at)
{
    struct kedge_buf names;
    kedge_buf_init(&names, 1024);
    for (size_t i = 0; i < kedge_strategy_count(); i++) {
        const struct kedge_strategy *s = kedge_strategy_at(i);
        if (kedge_json_str_is(l->doc, at, s->name)) {
            l->spec->strategy = s;
            l->spec->options = s->defaults;
            kedge_buf_deinit(&names);
            return KEDGE_OK;
        }
        kedge_buf_printf(&names, "%s%s", i ? ", " : "", s->name);
    }
    kedge_buf_put_u8(&names, 0);
    int err = kedge_diag_set(l->d, KEDGE_E_FORMAT, "\"strategy\": expected one of %s, found %s",
                             names.err ? "the strategies of docs/cli.md" : (const char *)names.ptr,
                             kedgei_spec_said(l->doc, at).s);
    kedge_buf_deinit(&names);
    return err;
}

/* One that the strategy does not read may stand there as spec.json writes it: with the value that it has
 * anyway. */
static int check_option_is_read(const struct kedgei_spec_layer *l, const struct kedge_strategy_option *row)
{
    const struct kedge_strategy *s = l->spec->strategy;
    double given = kedge_strategy_option_get(&l->spec->options, row);
    double usual = kedge_strategy_option_get(&s->defaults, row);
    if (kedge_strategy_uses(s, row) || !(given < usual || given > usual)) {
        return KEDGE_OK;
    }
    (void)kedge_diag_set(l->d, KEDGE_E_FORMAT, "\"%s\" in \"options\": strategy \"%s\" does not read it",
                         row->name, s->name);
    (void)kedge_diag_hint(l->d, s->uses[0] ? "options that it reads: %s" : "it reads no options%s", s->uses);
    return KEDGE_E_FORMAT;
}

static int read_options(const struct kedgei_spec_layer *l, uint32_t at)
{
    int err = expect_object(l, at, "options");
    for (uint32_t key = at + 1; !err && key < l->doc->tokens[at].next; key = l->doc->tokens[key + 1].next) {
        struct kedge_view name = kedge_json_text(l->doc, key);
        const struct kedge_strategy_option *row = NULL;
        for (size_t i = 0; i < KEDGE_STRATEGY_OPTION_COUNT && !row; i++) {
            const struct kedge_strategy_option *one = kedge_strategy_option_at(i);
            row = kedge_view_eq(name, kedge_view_str(one->name)) ? one : NULL;
        }
        if (!row) {
            (void)kedge_diag_set(l->d, KEDGE_E_FORMAT, "unknown key %s in \"options\"",
                                 kedgei_spec_said(l->doc, key).s);
            const char *names[KEDGE_STRATEGY_OPTION_COUNT];
            char word[KEY_SHOWN_MAX];
            for (size_t i = 0; i < KEDGE_STRATEGY_OPTION_COUNT; i++) {
                names[i] = kedge_strategy_option_at(i)->name;
            }
            snprintf(word, sizeof word, "%.*s", (int)name.len, (const char *)name.ptr);
            kedge_nearest_hint(l->d, word, names, KEDGE_STRATEGY_OPTION_COUNT,
                               "docs/cli.md has the options of strategies");
            return KEDGE_E_FORMAT;
        }
        struct kedgei_spec_row range = {
            "options", row->name, KEDGEI_SPEC_REAL, row->offset, row->least, row->largest, 0, 0, NULL, false};
        err = kedgei_spec_read(l, &range, key + 1, &l->spec->options);
        err = err ? err : check_option_is_read(l, row);
    }
    return err;
}

static int read_devices(const struct kedgei_spec_layer *l, uint32_t at)
{
    struct kedge_learn_device devices[KEDGE_LEARN_DEVICES_MAX];
    uint32_t count = 0;
    if (!kedge_json_is(l->doc, at, KEDGE_JSON_ARRAY)) {
        return kedge_diag_set(l->d, KEDGE_E_FORMAT,
                              "\"devices\": expected a list of device classes, found %s",
                              kedgei_spec_said(l->doc, at).s);
    }
    for (uint32_t one = at + 1; one < l->doc->tokens[at].next; one = l->doc->tokens[one].next) {
        if (count == KEDGE_LEARN_DEVICES_MAX) {
            return kedge_diag_set(l->d, KEDGE_E_FORMAT, "\"devices\": expected at most %d classes",
                                  KEDGE_LEARN_DEVICES_MAX);
        }
        devices[count] = (struct kedge_learn_device){1, 1000, 1e6, 0, 0, 1};
        int err =
            read_rows(l, one, kedgei_device_rows, kedgei_device_row_count, "", "devices", &devices[count]);
        if (err) {
            return err;
        }
        count++;
    }
    memcpy(l->spec->devices, devices, sizeof devices[0] * count);
    l->spec->device_count = count;
    return KEDGE_OK;
}

static int read_in_world(const struct kedgei_spec_layer *l, uint32_t key)
{
    const struct kedgei_spec_row *row =
        find_row(kedgei_spec_rows, kedgei_spec_row_count, "world", l->doc, key);
    if (row) {
        return kedgei_spec_read(l, row, key + 1, l->spec);
    }
    for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++) {
        if (kedge_json_str_is(l->doc, key, inner[i].key)) {
            return inner[i].section ? read_rows(l, key + 1, kedgei_spec_rows, kedgei_spec_row_count,
                                                inner[i].section, inner[i].section, l->spec)
                                    : read_devices(l, key + 1);
        }
    }
    int err = refuse_old_word(l, key);
    return err ? err : refuse_key(l, kedgei_spec_rows, kedgei_spec_row_count, "world", "world", key);
}

static int read_world(const struct kedgei_spec_layer *l, uint32_t at)
{
    int err = expect_object(l, at, "world");
    for (uint32_t key = at + 1; !err && key < l->doc->tokens[at].next; key = l->doc->tokens[key + 1].next) {
        err = read_in_world(l, key);
    }
    return err;
}

static int read_other(const struct kedgei_spec_layer *l, uint32_t key, bool is_file)
{
    uint32_t at = key + 1;
    if (kedge_json_str_is(l->doc, key, "strategy")) {
        return KEDGE_OK; /* read before all others */
    }
    if (kedge_json_str_is(l->doc, key, "world")) {
        return read_world(l, at);
    }
    if (kedge_json_str_is(l->doc, key, "compression")) {
        return read_rows(l, at, kedgei_spec_rows, kedgei_spec_row_count, "compression", "compression",
                         l->spec);
    }
    if (kedge_json_str_is(l->doc, key, "options")) {
        return read_options(l, at);
    }
    if (kedge_json_str_is(l->doc, key, "model")) {
        int err = kedge_model_from_json(l->doc, at, &l->spec->model, l->d);
        return err ? kedge_diag_wrap(l->d, KEDGE_E_FORMAT, "\"model\"") : KEDGE_OK;
    }
    for (size_t i = 0; is_file && i < sizeof outermost / sizeof outermost[0]; i++) {
        if (kedge_json_str_is(l->doc, key, outermost[i])) {
            return KEDGE_OK;
        }
    }
    int err = refuse_old_word(l, key);
    return err ? err : refuse_key(l, kedgei_spec_rows, kedgei_spec_row_count, "", "", key);
}

/* One layer over what the spec has. */
static int apply(const struct kedgei_spec_layer *l, uint32_t at, bool is_file)
{
    const struct kedge_json *doc = l->doc;
    uint32_t strategy = kedge_json_find(doc, at, "strategy");
    int err = strategy == KEDGE_JSON_NONE ? KEDGE_OK : read_strategy(l, strategy);
    for (uint32_t key = at + 1; !err && key < doc->tokens[at].next; key = doc->tokens[key + 1].next) {
        const struct kedgei_spec_row *row = find_row(kedgei_spec_rows, kedgei_spec_row_count, "", doc, key);
        err = row ? kedgei_spec_read(l, row, key + 1, l->spec) : read_other(l, key, is_file);
    }
    return err;
}

/* ---- documents ---- */

static int parse_text(struct kedge_view text, struct kedge_json_token **ret_tokens,
                      struct kedge_json *ret_doc, struct kedge_diag *d)
{
    if (text.len > KEDGE_LEARN_SPEC_TEXT_MAX) {
        return kedge_diag_set(d, KEDGE_E_TOO_LONG, "spec: %zu bytes, expected at most %d", text.len,
                              KEDGE_LEARN_SPEC_TEXT_MAX);
    }
    struct kedge_json_token *tokens = kedge_mem_new(KEDGE_LEARN_SPEC_TOKENS_MAX, sizeof *tokens);
    if (!tokens) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    }
    int err = kedge_json_parse(text, tokens, KEDGE_LEARN_SPEC_TOKENS_MAX, ret_doc, d);
    if (!err && !kedge_json_is(ret_doc, 0, KEDGE_JSON_OBJECT)) {
        err = kedge_diag_set(d, KEDGE_E_FORMAT, "spec: expected a JSON object");
    }
    if (err) {
        kedge_mem_free(tokens);
        return err;
    }
    *ret_tokens = tokens;
    return KEDGE_OK;
}

bool kedge_learn_spec_is(struct kedge_view text)
{
    static const char *const marks[] = {"preset", "world", "data", "synthetic_updates"}; /* old ones, too */
    struct kedge_json_token *tokens = NULL;
    struct kedge_json doc;
    bool is_it = false;
    if (parse_text(text, &tokens, &doc, NULL) != KEDGE_OK) {
        return false;
    }
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        is_it = is_it || kedge_json_find(&doc, 0, marks[i]) != KEDGE_JSON_NONE;
    }
    kedge_mem_free(tokens);
    return is_it;
}

static int apply_preset(const struct kedgei_spec_layer *file)
{
    struct kedge_json_token *tokens = NULL;
    struct kedge_json doc;
    uint32_t at = kedge_json_find(file->doc, 0, "preset");
    if (at == KEDGE_JSON_NONE) {
        return KEDGE_OK;
    }
    struct kedge_buf names;
    kedge_buf_init(&names, 1024);
    const struct kedge_learn_preset *p = kedge_learn_preset_at(0);
    for (size_t i = 0; p && !kedge_json_str_is(file->doc, at, p->name); p = kedge_learn_preset_at(++i)) {
        kedge_buf_printf(&names, "%s%s", i ? ", " : "", p->name);
    }
    kedge_buf_put_u8(&names, 0);
    int err = p ? KEDGE_OK
                : kedge_diag_set(file->d, KEDGE_E_FORMAT, "\"preset\": expected one of %s, found %s",
                                 names.err ? "docs/cli.md's presets" : (const char *)names.ptr,
                                 kedgei_spec_said(file->doc, at).s);
    kedge_buf_deinit(&names);
    err = err ? err : parse_text(kedge_view_str(p->json), &tokens, &doc, file->d);
    if (!err) {
        struct kedgei_spec_layer preset = {&doc, file->spec, file->d};
        err = apply(&preset, 0, false);
        kedge_mem_free(tokens);
    }
    return err;
}

/* "variants": {"NAME": {…}}: their names are words, for tables, legends and folders. What each of them reads
 * is added to *read. */
static int check_variants(const struct kedgei_spec_layer *l, uint32_t at, struct kedgei_spec_read *read)
{
    int err = at == KEDGE_JSON_NONE ? KEDGE_OK : expect_object(l, at, "variants");
    if (err || at == KEDGE_JSON_NONE) {
        return err;
    }
    if (l->doc->tokens[at].count > KEDGE_LEARN_VARIANTS_MAX) {
        return kedge_diag_set(l->d, KEDGE_E_FORMAT, "\"variants\": expected at most %d",
                              KEDGE_LEARN_VARIANTS_MAX);
    }
    for (uint32_t key = at + 1; key < l->doc->tokens[at].next; key = l->doc->tokens[key + 1].next) {
        struct kedge_view name = kedge_json_text(l->doc, key);
        if (!kedge_id_is_valid(name) || name.len > KEDGE_LEARN_VARIANT_NAME_MAX) {
            return kedge_diag_set(
                l->d, KEDGE_E_FORMAT,
                "%s in \"variants\": expected a name of at most %d characters from a-z, 0-9, "
                "\".\", \"_\", \"-\"",
                kedgei_spec_said(l->doc, key).s, KEDGE_LEARN_VARIANT_NAME_MAX);
        }
        struct kedge_learn_spec whole = *l->spec; /* all variants must read, whichever is asked for */
        struct kedgei_spec_layer one = {l->doc, &whole, l->d};
        err = expect_object(&one, key + 1, "variants");
        err = err ? err : apply(&one, key + 1, false);
        if (err) {
            return kedge_diag_wrap(l->d, err, "variant %s", kedgei_spec_said(l->doc, key).s);
        }
        kedgei_spec_reads(&whole, read);
    }
    return KEDGE_OK;
}

static int find_strategy(const struct kedgei_spec_layer *l, const char *variant)
{
    const struct kedge_strategy *s = kedge_strategy_find(variant);
    if (!s) {
        (void)kedge_diag_set(l->d, KEDGE_E_NOT_FOUND, "%.60s: neither a variant of the spec nor a strategy",
                             variant);
        (void)kedge_diag_hint(l->d, "\"variants\" in the spec names some; docs/cli.md has the strategies");
        return KEDGE_E_NOT_FOUND;
    }
    l->spec->strategy = s;
    l->spec->options = s->defaults;
    return KEDGE_OK;
}

/* Keys of the file must be read by the file itself or one of its variants, those of a variant by it. */
static int apply_variant(const struct kedgei_spec_layer *l, const char *variant)
{
    struct kedgei_spec_read read = {{false}}, own = {{false}};
    uint32_t variants = kedge_json_find(l->doc, 0, "variants"), at = KEDGE_JSON_NONE;
    if (variant && variants != KEDGE_JSON_NONE) {
        at = kedge_json_find(l->doc, variants, variant);
    }
    kedgei_spec_reads(l->spec, &read);
    int err = check_variants(l, variants, &read);
    if (!err && variant) {
        err = at == KEDGE_JSON_NONE ? find_strategy(l, variant) : apply(l, at, false);
    }
    if (err) {
        return err;
    }
    kedgei_spec_reads(l->spec, &own);
    kedgei_spec_reads(l->spec, &read);
    err = kedgei_spec_check_read(l, 0, &read, !variant && variants == KEDGE_JSON_NONE);
    return err || at == KEDGE_JSON_NONE ? err : kedgei_spec_check_read(l, at, &own, true);
}

int kedge_learn_spec_parse(struct kedge_view text, const char *variant, struct kedge_learn_spec *ret,
                           struct kedge_diag *reterr)
{
    struct kedge_json_token *tokens = NULL;
    struct kedge_json doc;
    int err = parse_text(text, &tokens, &doc, reterr);
    if (err) {
        return err;
    }
    struct kedge_learn_spec spec;
    memset(&spec, 0, sizeof spec);
    kedge_learn_spec_default(&spec);
    memcpy(spec.images, "mnist", sizeof "mnist"); /* in a file, a data set's name serves on every machine */
    struct kedgei_spec_layer file = {&doc, &spec, reterr};
    err = apply_preset(&file);
    err = err ? err : apply(&file, 0, true);
    err = err ? err : apply_variant(&file, variant);
    spec.sites = spec.partition == KEDGE_LEARN_CLIENTS ? 0 : spec.sites;
    if (!err && spec.name[0] && !kedge_id_is_valid(kedge_view_str(spec.name))) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT,
                             "\"name\": expected a-z, 0-9, \".\", \"_\", \"-\", a letter or digit first");
    }
    kedge_mem_free(tokens);
    if (!err) {
        *ret = spec;
    }
    return err;
}
