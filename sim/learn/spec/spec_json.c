#include "sim/learn/spec/spec_json.h"

#include <jansson.h>
#include <string.h>

#include "common/base/nearest.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "job/keys.h"
#include "sim/learn/spec/world.h"

/* Words that are gone, outermost or in "world", and what says it now. */
static const struct {
    const char *old, *now;
} old_words[] = {
    {"synthetic_updates", "\"world\": {\"planted\": …}"},
    {"embedding", "a strategy: \"flexcfl\", \"flexcfl-plain\" or \"flexcfl-madc\""},
    {"as_released", "a strategy: \"ifca-as-released\" or \"fesem-as-released\""},
    {"shift_rate", "\"world\": {\"shift\": {\"rate\": …}}"},
    {"attackers", "\"world\": {\"attack\": {\"share\": …}}"},
    {"attack_scale", "\"world\": {\"attack\": {\"scale\": …}}"},
    {"detector", "\"shift\", as in jobs"},
    {"choose_groups", "\"choose\": \"silhouette\", from \"groups\" to the option \"most\""},
    {"pretrain_scale", "\"pretrain_sites\": the sites of the cold start, all groups together"},
    {"deadline_s", "\"round_timeout_s\""},
};

static const char *const of_world[] = {"devices", "fail",     "trace",  "trace_period_s",
                                       "through", "train_on", "faults", "attack"};

static int refuse_old(const json_t *o, struct kedge_diag *d)
{
    for (size_t i = 0; i < sizeof old_words / sizeof old_words[0]; i++) {
        if (json_object_get(o, old_words[i].old)) {
            return kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s\" is now %s", old_words[i].old, old_words[i].now);
        }
    }
    return KEDGE_OK;
}

/* Words of earlier versions are named with what they are called now. As unknown keys they would only be
 * refused, and a user with an old file would have to search. */
static int refuse_old_words(const json_t *whole, struct kedge_diag *d)
{
    KEDGE_TRY(refuse_old(whole, d));
    KEDGE_TRY(refuse_old(json_object_get(whole, "world"), d));
    if (json_is_object(json_object_get(whole, "data"))) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"data\" is now \"world\": {\"data\": …}");
    }
    for (size_t i = 0; i < sizeof of_world / sizeof of_world[0]; i++) {
        if (json_object_get(whole, of_world[i])) {
            return kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s\" is now \"world\": {\"%s\": …}", of_world[i],
                                  of_world[i]);
        }
    }
    return KEDGE_OK;
}

/* ---- layers ---- */

static int no_memory(struct kedge_diag *d)
{
    return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
}

/* The members of "world", and of its objects, one by one. */
static int merge_world(json_t *whole, json_t *over, struct kedge_diag *d)
{
    json_t *world = json_object_get(whole, "world"), *value;
    const char *key;
    if (!json_is_object(over)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"world\": expected an object");
    }
    if (!world) {
        world = json_object();
        if (!world || json_object_set_new(whole, "world", world)) {
            return no_memory(d);
        }
    }
    json_object_foreach(over, key, value)
    {
        json_t *below = json_object_get(world, key);
        int failed = json_is_object(below) && json_is_object(value)
                         ? json_object_update(below, value)
                         : json_object_set_new(world, key, json_copy(value));
        if (failed) {
            return no_memory(d);
        }
    }
    return KEDGE_OK;
}

/* Layers are copied as far as later ones change them: "world" and its objects. */
static int merge(json_t *whole, json_t *over, struct kedge_diag *d)
{
    const char *key;
    json_t *value;
    if (json_object_get(over, "strategy")) {
        (void)json_object_del(whole, "options");
    }
    json_object_foreach(over, key, value)
    {
        json_t *below = strcmp(key, "options") == 0 ? json_object_get(whole, key) : NULL;
        bool both = json_is_object(below) && json_is_object(value);
        int err =
            strcmp(key, "world") == 0 ? merge_world(whole, value, d)
            : (both ? json_object_update(below, value) : json_object_set_new(whole, key, json_copy(value)))
                ? no_memory(d)
                : KEDGE_OK;
        if (err) {
            return err;
        }
    }
    return KEDGE_OK;
}

/* The names are gathered while the table is searched, so that the error can list them all. */
static int merge_preset(json_t *whole, const json_t *name, struct kedge_diag *d)
{
    const char *word = json_string_value(name);
    const struct kedge_learn_preset *p = kedge_learn_preset_at(0);
    char names[400] = "";
    json_auto_t *preset = NULL;
    for (size_t i = 0; p && !(word && strcmp(word, p->name) == 0); p = kedge_learn_preset_at(++i)) {
        size_t len = strlen(names);
        (void)snprintf(names + len, sizeof names - len, "%s%s", i ? ", " : "", p->name);
    }
    if (!p) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"preset\": expected one of %s", names);
    }
    KEDGE_TRY(kedgei_json_load(kedge_view_str(p->json), KEDGE_LEARN_SPEC_TEXT_MAX, "preset", &preset, d));
    return merge(whole, preset, d);
}

/* ---- a whole spec ---- */

/* "tenants" and "data", which a job must have. */
static int add_names(json_t *whole, const json_t *world, struct kedge_diag *d)
{
    const json_t *count = json_object_get(world, "tenants");
    const json_int_t n = count ? json_integer_value(count) : 1;
    if (count && json_object_get(whole, "tenants")) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "\"tenants\" in \"world\": the job's \"tenants\" names them; leave one out");
    }
    if ((count && !json_is_integer(count)) || n < 1 || n > KEDGE_SPEC_TENANTS_MAX) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "\"tenants\" in \"world\": expected a whole number from 1 to %d",
                              KEDGE_SPEC_TENANTS_MAX);
    }
    if (!json_object_get(whole, "data") && json_object_set_new(whole, "data", json_string("simulated"))) {
        return no_memory(d);
    }
    if (json_object_get(whole, "tenants")) {
        return KEDGE_OK;
    }
    struct kedge_learn_spec names = {.device_count = 0};
    json_t *list = json_array();
    kedge_learn_spec_set_tenants(&names, (uint32_t)n);
    for (uint32_t i = 0; i < names.job.tenant_count; i++) {
        if (json_array_append_new(list, json_string(names.job.tenants[i].s))) {
            json_decref(list);
            return no_memory(d);
        }
    }
    return json_object_set_new(whole, "tenants", list) ? no_memory(d) : KEDGE_OK;
}

/* own: what the run says for itself and so must read. */
static int read_whole(json_t *whole, const json_t *own, struct kedge_learn_spec *ret, struct kedge_diag *d)
{
    json_auto_t *world = json_incref(json_object_get(whole, "world"));
    struct kedge_learn_spec spec;
    memset(&spec, 0, sizeof spec);
    KEDGE_TRY(refuse_old_words(whole, d));
    (void)json_object_del(whole, "world");
    KEDGE_TRY(add_names(whole, world, d));
    KEDGE_TRY(kedge_job_spec_drop_unread(whole, own, d));
    KEDGE_TRY(kedge_job_spec_read_in_world(whole, &spec.job, d));
    KEDGE_TRY(kedge_job_spec_check_keys(own, &spec.job, d));
    KEDGE_TRY(kedgei_world_read(world, json_object_get(own, "world"), &spec, d));
    *ret = spec;
    return KEDGE_OK;
}

/* One run of the file: of a variant (NULL: the file itself), or with a strategy in the place of the file's
 * (NULL: its own). */
static int read_run(const json_t *file, json_t *variant, const char *strategy, struct kedge_learn_spec *ret,
                    struct kedge_diag *d)
{
    static const char base[] = "{\"name\": \"simulation\"}";
    json_auto_t *whole = NULL, *named = strategy ? json_pack("{s:s}", "strategy", strategy) : NULL;
    json_auto_t *rest = json_copy((json_t *)(uintptr_t)file), *none = json_object();
    const json_t *preset = json_object_get(file, "preset");
    bool is_alone = !variant && !strategy && !json_object_get(file, "variants");
    KEDGE_TRY(rest && none && (!strategy || named) ? KEDGE_OK : no_memory(d));
    (void)json_object_del(rest, "preset");
    (void)json_object_del(rest, "variants");
    KEDGE_TRY(kedgei_json_load(kedge_view_str(base), sizeof base, "spec", &whole, d));
    KEDGE_TRY(preset ? merge_preset(whole, preset, d) : KEDGE_OK);
    KEDGE_TRY(merge(whole, rest, d));
    KEDGE_TRY(variant ? merge(whole, variant, d) : KEDGE_OK);
    KEDGE_TRY(named ? merge(whole, named, d) : KEDGE_OK);
    return read_whole(whole, variant ? variant : is_alone ? rest : none, ret, d);
}

/* ---- documents ---- */

/* "variants": {"NAME": {…}}: their names are words, for tables, legends and folders. All of them must read,
 * whichever is asked for. */
static int check_variants(const json_t *file, struct kedge_diag *d)
{
    json_t *variants = json_object_get(file, "variants"), *one;
    const char *name;
    if (!variants) {
        return KEDGE_OK;
    }
    if (!json_is_object(variants) || json_object_size(variants) > KEDGE_LEARN_VARIANTS_MAX) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"variants\": expected an object of at most %d",
                              KEDGE_LEARN_VARIANTS_MAX);
    }
    json_object_foreach(variants, name, one)
    {
        struct kedge_learn_spec spec;
        if (!kedge_id_is_valid(kedge_view_str(name)) || strlen(name) > KEDGE_LEARN_VARIANT_NAME_MAX) {
            return kedge_diag_set(
                d, KEDGE_E_FORMAT,
                "\"%.40s\" in \"variants\": expected a name of at most %d characters from a-z, "
                "0-9, \".\", \"_\", \"-\"",
                name, KEDGE_LEARN_VARIANT_NAME_MAX);
        }
        int err = json_is_object(one) ? read_run(file, one, NULL, &spec, d)
                                      : kedge_diag_set(d, KEDGE_E_FORMAT, "expected an object");
        if (err) {
            return kedge_diag_wrap(d, err, "variant \"%s\"", name);
        }
    }
    return KEDGE_OK;
}

/* kedge sim reads this kind of file and job specs: what only a simulation has tells them apart. A file that
 * is no JSON is neither, and its error is told by the reader of the other kind. */
bool kedge_learn_spec_is(struct kedge_view text)
{
    static const char *const marks[] = {"preset", "world", "synthetic_updates"}; /* an old one, too */
    json_t *file = NULL;
    struct kedge_diag d = {.text = ""};
    if (kedgei_json_load(text, KEDGE_LEARN_SPEC_TEXT_MAX, "spec", &file, &d) != KEDGE_OK) {
        return false;
    }
    bool is_it = json_is_object(json_object_get(file, "data")); /* the word before */
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        is_it = is_it || json_object_get(file, marks[i]);
    }
    json_decref(file);
    return is_it;
}

int kedge_learn_spec_parse(struct kedge_view text, const char *variant, struct kedge_learn_spec *ret,
                           struct kedge_diag *reterr)
{
    json_auto_t *file = NULL;
    KEDGE_TRY(kedgei_json_load(text, KEDGE_LEARN_SPEC_TEXT_MAX, "spec", &file, reterr));
    json_t *one = variant ? json_object_get(json_object_get(file, "variants"), variant) : NULL;
    KEDGE_TRY(check_variants(file, reterr));
    if (variant && !one && !kedge_strategy_find(variant)) {
        (void)kedge_diag_set(reterr, KEDGE_E_NOT_FOUND, "%.60s: neither a variant of the spec nor a strategy",
                             variant);
        (void)kedge_diag_hint(reterr, "\"variants\" in the spec names some; docs/cli.md has the strategies");
        return KEDGE_E_NOT_FOUND;
    }
    return read_run(file, one, one ? NULL : variant, ret, reterr);
}

void kedge_learn_spec_put(const struct kedge_learn_spec *spec, struct kedge_buf *out)
{
    kedge_job_spec_put_keys(&spec->job, out);
    kedge_buf_put_str(out, ",\n  \"world\": ");
    kedgei_world_put(spec, out);
    kedge_buf_put_str(out, "\n}\n");
}
