/* policy.json: "energy", read by tables of keys with their ranges and defaults. Pure.
 *
 * A rule that cannot be kept must not look as if it were: unknown keys are refused, and so is power_idle_w
 * without power_max_w, by which nothing can be modelled. */
#include "client/daemon/energy/policy_energy.h"

#include <jansson.h>
#include <stddef.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/try.h"
#include "common/json/json.h"

static int bad(struct kedge_diag *d, const char *where, const char *key, const char *expected)
{
    return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: \"energy\": \"%.40s\": expected %s", where, key, expected);
}

#define AT(field) offsetof(struct kedge_energy_policy, field)

static const struct {
    const char *key;
    size_t offset;
    double least, most, fallback;
} reals[] = {
    {"power_idle_w", AT(idle_w), 0, 100000, 0},
    {"power_max_w", AT(max_w), 0, 100000, 0},
    {"power_least", AT(power_least), 0, 100000, 0},
    {"eta", AT(eta), 0, 1, 0.5},
    {"explore", AT(explore), 0, 100, 0.5},
    {"joules_per_job", AT(rules.joules_per_job), 0, 1e15, 0},
    {"joules_per_day", AT(rules.joules_per_day), 0, 1e15, 0},
    {"battery_floor", AT(rules.battery_floor), 0, 95, 0},
    {"temperature_max_c", AT(rules.celsius_max), 0, 150, 0},
};
static const struct {
    const char *key;
    size_t offset, size;
    const char *fallback;
} texts[] = {
    {"root", AT(root), KEDGE_POLICY_ROOT_MAX + 1, "/"},
    {"nvml", AT(nvml), KEDGE_POLICY_ROOT_MAX + 1, "libnvidia-ml.so.1"},
    {"gpu", AT(gpu), KEDGE_POLICY_UUID_MAX + 1, ""},
};
enum { REALS = sizeof reals / sizeof reals[0], TEXTS = sizeof texts / sizeof texts[0] };
static const char *const words[] = {"meters", "scope",      "batch",         "power",
                                    "tell",   "power_rule", "charging_only", "hours"};

static int check_keys(const json_t *v, const char *where, struct kedge_diag *d)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)v, key, value)
    {
        bool known = false;
        for (size_t i = 0; i < REALS && !known; i++) {
            known = strcmp(key, reals[i].key) == 0;
        }
        for (size_t i = 0; i < TEXTS && !known; i++) {
            known = strcmp(key, texts[i].key) == 0;
        }
        for (size_t i = 0; i < sizeof words / sizeof words[0] && !known; i++) {
            known = strcmp(key, words[i]) == 0;
        }
        if (!known) {
            return bad(d, where, key, "no such key");
        }
    }
    return KEDGE_OK;
}

/* A number, in quotes or not. */
static int read_real(const json_t *v, size_t i, const char *where, double *ret, struct kedge_diag *d)
{
    double x = reals[i].fallback;
    bool ok = true;
    if (v && kedgei_json_real(v, &x) != KEDGE_OK) {
        ok = false;
    }
    if (!ok || !(x >= reals[i].least && x <= reals[i].most)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: \"energy\": \"%s\": expected a number from %g to %g",
                              where, reals[i].key, reals[i].least, reals[i].most);
    }
    *ret = x;
    return KEDGE_OK;
}

static int read_text(const json_t *v, size_t i, const char *where, char *out, struct kedge_diag *d)
{
    const char *text = v ? json_string_value(v) : texts[i].fallback;
    if (!text || strlen(text) >= texts[i].size) {
        return bad(d, where, texts[i].key, "a short text");
    }
    if (texts[i].offset == AT(nvml) && text[0] != '/'
        && strchr(text, '/')) { /* else the current folder's code runs */
        return bad(d, where, texts[i].key, "the name of a library, or a path from /");
    }
    memcpy(out, text, strlen(text) + 1);
    return KEDGE_OK;
}

/* The place of a word among those of the key, 0 where the key is absent; below 0: none of them. */
static int word_of(const json_t *v, const char *const *allowed, int count)
{
    const char *word = json_string_value(v);
    for (int i = 0; word && i < count; i++) {
        if (strcmp(word, allowed[i]) == 0) {
            return i;
        }
    }
    return v ? -1 : 0;
}

static int read_words(const json_t *o, const char *where, struct kedge_energy_policy *p, struct kedge_diag *d)
{
    static const char *const scopes[] = {"device", "share"}, *const batches[] = {"job", "fixed"},
                             *const powers[] = {"none", "threads", "cpu", "gpu"},
                             *const tells[] = {"nothing", "battery"};
    const json_t *meters = json_object_get(o, "meters"), *charging = json_object_get(o, "charging_only"),
                 *rule = json_object_get(o, "power_rule");
    const int scope = word_of(json_object_get(o, "scope"), scopes, 2);
    const int batch = word_of(json_object_get(o, "batch"), batches, 2);
    const int power = word_of(json_object_get(o, "power"), powers, 4);
    const int tell = word_of(json_object_get(o, "tell"), tells, 2);
    p->slowdown = 1.1;
    if ((meters && !json_is_boolean(meters)) || (charging && !json_is_boolean(charging))) {
        return bad(d, where, meters && !json_is_boolean(meters) ? "meters" : "charging_only",
                   "true or false");
    }
    if (scope < 0 || batch < 0) {
        return scope < 0 ? bad(d, where, "scope", "\"device\" or \"share\"")
                         : bad(d, where, "batch", "\"job\" or \"fixed\"");
    }
    if (tell < 0) {
        return bad(d, where, "tell", "\"nothing\" or \"battery\"");
    }
    if (power < 0) {
        return bad(d, where, "power", "\"none\", \"threads\", \"cpu\" or \"gpu\"");
    }
    const char *named = rule ? json_string_value(rule) : "cost";
    if (!named || kedge_profile_rule_parse(named, &p->power_rule, &p->slowdown) != KEDGE_OK) {
        return bad(d, where, "power_rule",
                   "\"cost\", \"energy\", \"deadline\" or \"slowdown=1.1\" (1 to 10)");
    }
    p->meters = !meters || json_is_true(meters);
    p->rules.charging_only = json_is_true(charging);
    p->share = scope == 1;
    p->tells_battery = tell == 1;
    p->batch_fixed = batch == 1;
    p->power = (enum kedge_policy_power)power;
    return KEDGE_OK;
}

/* "22:30" in minutes; below 0: it is no time. 24:00 is one. */
static int minutes_of(const char *text)
{
    bool ok = strlen(text) >= 5 && text[2] == ':';
    for (int i = 0; ok && i < 5; i++) {
        ok = i == 2 || (text[i] >= '0' && text[i] <= '9');
    }
    const int hours = ok ? (text[0] - '0') * 10 + text[1] - '0' : 99;
    const int minutes = ok ? (text[3] - '0') * 10 + text[4] - '0' : 99;
    return minutes < 60 && hours * 60 + minutes <= 24 * 60 ? hours * 60 + minutes : -1;
}

static int read_hours(const json_t *v, const char *where, struct kedge_budget_rules *r, struct kedge_diag *d)
{
    static const char expected[] = "a list of at most 4 spans of local time like \"22:00-06:00\"";
    if (v && (!json_is_array(v) || json_array_size(v) > KEDGE_BUDGET_HOURS_MAX)) {
        return bad(d, where, "hours", expected);
    }
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *span = json_string_value(json_array_get(v, i));
        const bool shaped = span && strlen(span) == 11 && span[5] == '-';
        const int from = shaped ? minutes_of(span) : -1, to = shaped ? minutes_of(span + 6) : -1;
        if (from < 0 || to < 0 || from == to) {
            return bad(d, where, "hours", expected);
        }
        r->hours[i].from = (uint32_t)from;
        r->hours[i].to = (uint32_t)to;
    }
    r->hours_count = (uint32_t)json_array_size(v);
    return KEDGE_OK;
}

int kedge_policy_energy_read(const json_t *v, const char *where, struct kedge_energy_policy *ret,
                             struct kedge_diag *reterr)
{
    struct kedge_energy_policy p = {.meters = true};
    if (v && !json_is_object(v)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: \"energy\": expected an object", where);
    }
    int err = v ? check_keys(v, where, reterr) : KEDGE_OK;
    for (size_t i = 0; i < REALS && !err; i++) {
        err = read_real(json_object_get(v, reals[i].key), i, where,
                        (double *)(void *)((char *)&p + reals[i].offset), reterr);
    }
    for (size_t i = 0; i < TEXTS && !err; i++) {
        err = read_text(json_object_get(v, texts[i].key), i, where, (char *)&p + texts[i].offset, reterr);
    }
    if (err) {
        return err;
    }
    KEDGE_TRY(read_words(v, where, &p, reterr));
    err = read_hours(json_object_get(v, "hours"), where, &p.rules, reterr);
    if (!err && (p.idle_w > p.max_w || p.root[0] != '/')) {
        err = p.root[0] != '/'
                  ? bad(reterr, where, "root", "an absolute path")
                  : bad(reterr, where, "power_idle_w", "at most power_max_w, which is given, too");
    }
    if (!err) {
        *ret = p;
    }
    return err;
}
