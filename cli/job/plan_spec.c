/* The file of kedge job plan: devices with their charge and share, and what data, energy and time are worth.
 * docs/modules/coordinator-plan.md has the keys. */
#include "cli/job/plan_spec.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/nearest.h"
#include "common/base/try.h"
#include "common/json/json.h"

/* Every key but devices: where its value goes. */
struct key {
    const char *name;
    uint32_t *whole;
    double *real;
};

/* A number of the plan goes where its row says. Ranges are not looked at here: kedge_plan_check knows them,
 * and what a setting allows depends on the others. */
static int take(const struct key *key, const json_t *value, struct kedge_diag *d)
{
    const json_int_t n = json_integer_value(value);
    if (key->whole) {
        if (!json_is_integer(value) || n < 0 || n > UINT32_MAX) {
            return kedge_diag_set(d, KEDGE_E_FORMAT, "plan: \"%s\": expected a whole number", key->name);
        }
        *key->whole = (uint32_t)n;
        return KEDGE_OK;
    }
    if (!json_is_number(value) || !isfinite(json_number_value(value))) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "plan: \"%s\": expected a number", key->name);
    }
    *key->real = json_number_value(value);
    return KEDGE_OK;
}

static int unknown(const char *name, const struct key *keys, size_t count, struct kedge_diag *d)
{
    const char *names[32] = {"devices"};
    size_t n = 1;
    for (size_t i = 0; i < count && n < sizeof names / sizeof names[0]; i++) {
        names[n++] = keys[i].name;
    }
    (void)kedge_diag_set(d, KEDGE_E_FORMAT, "plan: unknown key \"%.60s\"", name);
    kedge_nearest_hint(d, name, names, n, "docs/modules/coordinator-plan.md has the keys");
    return KEDGE_E_FORMAT;
}

/* A key that is not known is an error and not passed over: a misspelt cost would otherwise leave the
 * published one in force, and the plan would look right. */
static int read_keys(const json_t *root, struct kedge_cli_plan *plan, struct kedge_diag *d)
{
    struct kedge_plan_setting *s = &plan->setting;
    const struct key keys[] = {
        {"data_levels", &s->data_levels, NULL},
        {"energy_levels", &s->energy_levels, NULL},
        {"charge_levels", &s->charge_levels, NULL},
        {"share_levels", &s->share_levels, NULL},
        {"rate_least", &s->rate_least, NULL},
        {"rate_most", &s->rate_most, NULL},
        {"cycles_per_unit", NULL, &s->cycles_per_unit},
        {"capacitance", NULL, &s->capacitance},
        {"joules_per_unit", NULL, &s->joules_per_unit},
        {"hertz_per_share", NULL, &s->hertz_per_share},
        {"charge_per_round", NULL, &s->charge_per_round},
        {"reward_per_data", NULL, &s->reward_per_data},
        {"cost_per_energy", NULL, &s->cost_per_energy},
        {"cost_per_second", NULL, &s->cost_per_second},
        {"fixed_seconds", NULL, &s->fixed_seconds},
        {"arrivals_per_hour", NULL, &s->arrivals_per_hour},
        {"block_seconds", NULL, &s->block_seconds},
        {"block_payment", NULL, &s->block_payment},
        {"anchor_cost", NULL, &plan->anchor_cost},
    };
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)root, name, value)
    {
        const struct key *key = NULL;
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            key = strcmp(name, keys[i].name) == 0 ? &keys[i] : key;
        }
        if (!key && strcmp(name, "devices") != 0) {
            return unknown(name, keys, sizeof keys / sizeof keys[0], d);
        }
        KEDGE_TRY(key ? take(key, value, d) : KEDGE_OK);
    }
    if (plan->anchor_cost < 0) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "plan: \"anchor_cost\": expected a number that is not below 0");
    }
    return kedge_plan_check(s, d);
}

/* Exactly these two members: what a device can do in a round depends on nothing else, so a third one is a
 * mistake of the file's writer. */
static int read_device(const json_t *one, uint32_t i, struct kedge_plan_device *ret, struct kedge_diag *d)
{
    const json_t *charge = json_object_get(one, "charge"), *share = json_object_get(one, "share");
    const json_int_t c = json_integer_value(charge), s = json_integer_value(share);
    if (json_object_size(one) != 2 || !json_is_integer(charge) || !json_is_integer(share) || c < 0 || s < 0
        || c > KEDGE_PLAN_LEVELS_MAX || s > KEDGE_PLAN_LEVELS_MAX) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT,
            "plan: \"devices\", number %u: expected {\"charge\": 0 to %d, \"share\": 0 to %d}", i + 1,
            KEDGE_PLAN_LEVELS_MAX, KEDGE_PLAN_LEVELS_MAX);
    }
    *ret = (struct kedge_plan_device){(uint32_t)c, (uint32_t)s};
    return KEDGE_OK;
}

/* On an error plan->devices may be allocated; the caller frees it. */
static int read_devices(const json_t *root, struct kedge_cli_plan *plan, struct kedge_diag *d)
{
    const json_t *list = json_object_get(root, "devices");
    const size_t count = json_array_size(list);
    if (count < 1 || count > KEDGE_CLI_PLAN_DEVICES_MAX) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "plan: \"devices\": expected a list of 1 to %d",
                              KEDGE_CLI_PLAN_DEVICES_MAX);
    }
    plan->devices = kedge_mem_new(count, sizeof *plan->devices);
    plan->count = (uint32_t)count;
    int err = plan->devices ? KEDGE_OK : KEDGE_E_NOMEM;
    for (uint32_t i = 0; i < plan->count && !err; i++) {
        err = read_device(json_array_get(list, i), i, &plan->devices[i], d);
    }
    return err;
}

/* What the file does not say is as in the published setting, so that a plan may be as short as its devices.
 */
int kedge_cli_plan_parse(struct kedge_view json, struct kedge_cli_plan *ret, struct kedge_diag *reterr)
{
    struct kedge_cli_plan plan = {.setting = kedge_plan_setting_published(3, 1)};
    json_auto_t *root = NULL;
    KEDGE_TRY(kedgei_json_load(json, KEDGE_CLI_PLAN_BYTES_MAX, "plan", &root, reterr));
    KEDGE_TRY(read_keys(root, &plan, reterr));
    int err = read_devices(root, &plan, reterr);
    if (err) {
        kedge_mem_free(plan.devices);
        return err;
    }
    *ret = plan;
    return KEDGE_OK;
}
