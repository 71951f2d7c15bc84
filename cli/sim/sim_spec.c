/* The specs of simulations without learning, as JSON that somebody wrote: a federation with faults, or a
 * crowd. Every key has a default, so a spec says only what is different; an unknown key is refused, since a
 * misspelt one would otherwise leave its default in force unseen. */
#include <jansson.h>
#include <string.h>

#include "cli/sim/sim.h"
#include "common/base/limits.h"
#include "common/base/nearest.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/json/json.h"

enum { SPEC_MAX = 65536 };

static int read_number(const json_t *root, const char *key, uint32_t least, uint32_t most, uint32_t *ret,
                       struct kedge_diag *d)
{
    const json_t *v = json_object_get(root, key);
    json_int_t n = json_integer_value(v);
    if (v && (!json_is_integer(v) || n < (json_int_t)least || n > (json_int_t)most)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s\": expected a whole number from %u to %u", key, least,
                              most);
    }
    *ret = v ? (uint32_t)n : *ret;
    return KEDGE_OK;
}

/* One of two words; *ret is true for the second. */
static int read_word(const json_t *root, const char *key, const char *no, const char *yes, bool *ret,
                     struct kedge_diag *d)
{
    const json_t *v = json_object_get(root, key);
    const char *word = json_string_value(v);
    if (v && (!word || (strcmp(word, no) != 0 && strcmp(word, yes) != 0))) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s\": expected \"%s\" or \"%s\"", key, yes, no);
    }
    *ret = v ? strcmp(word, yes) == 0 : *ret;
    return KEDGE_OK;
}

/* As text, because a number of JSON has 53 bits in many readers and seeds have 64. */
static int read_seed(const json_t *root, struct kedge_cli_sim *s, struct kedge_diag *d)
{
    const json_t *seed = json_object_get(root, "seed");
    const char *text = json_string_value(seed);
    if (seed && (!text || kedge_decimal_decode(kedge_view_str(text), UINT64_MAX, &s->seed) != KEDGE_OK)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"seed\": expected a decimal number as text, like \"1\"");
    }
    if (s->seed > UINT64_MAX - s->seeds) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"seed\": \"seeds\" more must fit 64 bits");
    }
    return KEDGE_OK;
}

static const char *const protocol_keys[] = {"seed",   "seeds",           "tenants", "sites",     "rounds",
                                            "groups", "sites_per_round", "faults",  "signatures"};
static const char *const crowd_keys[] = {"crowd", "seed", "tenants", "rounds", "sites_per_round"};

static int check_keys(const json_t *root, const char *const *keys, size_t count, const char *hint,
                      struct kedge_diag *d)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)root, key, value)
    {
        bool known = false;
        for (size_t i = 0; i < count; i++) {
            known = known || strcmp(key, keys[i]) == 0;
        }
        if (!known) {
            (void)kedge_diag_set(d, KEDGE_E_FORMAT, "unknown key \"%.60s\"", key);
            kedge_nearest_hint(d, key, keys, count, hint);
            return KEDGE_E_FORMAT;
        }
    }
    return KEDGE_OK;
}

static int read_spec(const json_t *root, struct kedge_cli_sim *s, struct kedge_diag *d)
{
    struct kedge_sim_spec *w = &s->spec;
    KEDGE_TRY(
        check_keys(root, protocol_keys, sizeof protocol_keys / sizeof protocol_keys[0],
                   "keys: seed, seeds, tenants, sites, rounds, groups, sites_per_round, faults, signatures; "
                   "a crowd has \"crowd\"; a learning simulation has \"world\" or \"preset\"",
                   d));
    KEDGE_TRY(read_number(root, "seeds", 1, KEDGE_SIM_SEEDS_MAX, &s->seeds, d));
    KEDGE_TRY(read_seed(root, s, d));
    KEDGE_TRY(read_number(root, "tenants", 1, KEDGE_SIM_TENANTS_MAX, &w->tenants, d));
    KEDGE_TRY(read_number(root, "sites", 1, KEDGE_SIM_SITES_MAX, &w->sites, d));
    KEDGE_TRY(read_number(root, "rounds", 1, KEDGE_SIM_ROUNDS_MAX, &w->rounds, d));
    KEDGE_TRY(read_number(root, "groups", 1, KEDGE_SIM_GROUPS_MAX, &w->groups, d));
    KEDGE_TRY(read_number(root, "sites_per_round", 0, KEDGE_SIM_SITES_MAX, &w->sites_per_round, d));
    KEDGE_TRY(read_word(root, "faults", "none", "all", &w->faults, d));
    KEDGE_TRY(read_word(root, "signatures", "keyed", "real", &w->real, d));
    return kedge_sim_spec_check(w, d);
}

/* Ranges are those of sim/crowd.c, which knows how they depend on each other. */
static int read_crowd(const json_t *root, struct kedge_cli_sim *s, struct kedge_diag *d)
{
    struct kedge_crowd_spec *w = &s->crowd;
    KEDGE_TRY(check_keys(root, crowd_keys, sizeof crowd_keys / sizeof crowd_keys[0],
                         "keys of a crowd: crowd, seed, tenants, rounds, sites_per_round", d));
    KEDGE_TRY(read_number(root, "crowd", 1, KEDGE_CORE_SITES_MAX, &w->sites, d));
    KEDGE_TRY(read_number(root, "tenants", 1, UINT32_MAX, &w->tenants, d));
    KEDGE_TRY(read_number(root, "rounds", 1, UINT32_MAX, &w->rounds, d));
    KEDGE_TRY(read_number(root, "sites_per_round", 1, UINT32_MAX, &w->sites_per_round, d));
    KEDGE_TRY(read_seed(root, s, d));
    w->seed = s->seed;
    return kedge_crowd_spec_check(w, d);
}

/* "crowd" tells the two kinds of spec apart before any key is checked, so a wrong key is told with the keys
 * of its own kind. */
int kedge_cli_sim_parse(struct kedge_view json, struct kedge_cli_sim *ret, struct kedge_diag *reterr)
{
    struct kedge_cli_sim s = {
        .seed = 1,
        .seeds = 20,
        .spec = {.tenants = 3, .sites = 4, .rounds = 10, .groups = 3, .faults = true},
        .crowd = {.tenants = 1, .sites = 1, .rounds = 10, .sites_per_round = 1},
    };
    json_t *root = NULL;
    KEDGE_TRY(kedgei_json_load(json, SPEC_MAX, "spec", &root, reterr));
    s.is_crowd = json_object_get(root, "crowd") != NULL;
    int err = s.is_crowd ? read_crowd(root, &s, reterr) : read_spec(root, &s, reterr);
    json_decref(root);
    if (!err) {
        *ret = s;
    }
    return err;
}
