#include "cli/sim.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/json.h"
#include "common/base/mem.h"
#include "common/base/text.h"

enum { MS = 1000000, SPEC_MAX = 65536 };

static int read_number(const json_t *root, const char *key, uint32_t most, uint32_t *ret,
                       struct kedge_diag *d)
{
    const json_t *v = json_object_get(root, key);
    json_int_t n = json_integer_value(v);
    if (v && (!json_is_integer(v) || n < 1 || n > (json_int_t)most)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s\": expected a whole number from 1 to %u", key, most);
    }
    *ret = v ? (uint32_t)n : *ret;
    return KEDGE_OK;
}

static int read_text(const json_t *root, struct kedge_sim_spec *s, struct kedge_diag *d)
{
    const json_t *seed = json_object_get(root, "seed"), *faults = json_object_get(root, "faults");
    const char *text = json_string_value(seed);
    if (seed && (!text || kedge_decimal_decode(kedge_view_str(text), UINT64_MAX, &s->seed) != KEDGE_OK)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"seed\": expected a decimal number as text, like \"1\"");
    }
    const char *word = json_string_value(faults);
    if (faults && (!word || (strcmp(word, "all") != 0 && strcmp(word, "none") != 0))) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"faults\": expected \"all\" or \"none\"");
    }
    s->faults = !word || strcmp(word, "all") == 0;
    return KEDGE_OK;
}

static int read_spec(const json_t *root, struct kedge_sim_spec *s, struct kedge_diag *d)
{
    static const char *const keys[] = {"seed", "seeds", "tenants", "sites", "rounds", "groups", "faults"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)root, key, value)
    {
        bool known = false;
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            known = known || strcmp(key, keys[i]) == 0;
        }
        if (!known) {
            (void)kedge_diag_set(d, KEDGE_E_FORMAT, "unknown key \"%.60s\"", key);
            (void)kedge_diag_hint(d, "keys: seed, seeds, tenants, sites, rounds, groups, faults");
            return KEDGE_E_FORMAT;
        }
    }
    int err = read_text(root, s, d);
    err = err ? err : read_number(root, "seeds", KEDGE_SIM_SEEDS_MAX, &s->seeds, d);
    err = err ? err : read_number(root, "tenants", SIM_TENANTS_MAX, &s->tenants, d);
    err = err ? err : read_number(root, "sites", SIM_SITES_MAX, &s->sites, d);
    err = err ? err : read_number(root, "rounds", KEDGE_SIM_ROUNDS_MAX, &s->rounds, d);
    err = err ? err : read_number(root, "groups", SIM_GROUPS_MAX - 1, &s->groups, d);
    if (!err && s->tenants * s->sites > SIM_SITES_MAX) {
        err = kedge_diag_set(d, KEDGE_E_FORMAT,
                             "\"tenants\" × \"sites\": expected at most %d sites together, not %u",
                             SIM_SITES_MAX, s->tenants * s->sites);
    }
    if (!err && s->seed > UINT64_MAX - s->seeds) {
        err = kedge_diag_set(d, KEDGE_E_FORMAT, "\"seed\": \"seeds\" more must fit 64 bits");
    }
    return err;
}

int kedge_sim_spec_parse(struct kedge_view json, struct kedge_sim_spec *ret, struct kedge_diag *reterr)
{
    struct kedge_sim_spec s = {.seed = 1, .seeds = 20, .tenants = 3, .sites = 4, .rounds = 10, .groups = 3};
    json_t *root = NULL;
    int err = kedgei_json_load(json, SPEC_MAX, "spec", &root, reterr);
    err = err ? err : read_spec(root, &s, reterr);
    json_decref(root);
    if (!err) {
        *ret = s;
    }
    return err;
}

/* ---- the script ---- */

static uint32_t between(struct sim *w, uint32_t least, uint32_t most)
{
    return least + (uint32_t)sim_below(w, most - least + 1);
}

static void set_config(struct sim *w, const struct kedge_sim_spec *s)
{
    struct sim_config *g = &w->config;
    g->tenants = s->tenants;
    g->sites = s->tenants * s->sites;
    g->jobs = 1;
    g->delay_ms = between(w, 1, 80); /* a drawing statement each: the order is part of the run */
    g->disk_ms = between(w, 1, 60);
    g->train_ms = between(w, 50, 3000);
    g->chaos_ns = (s->faults ? between(w, 15, 60) : 1) * SIM_SECOND;
    g->limit_ns = g->chaos_ns + (900 + 60 * (uint64_t)s->rounds) * SIM_SECOND;
    if (s->faults) {
        g->loss = between(w, 0, 200);
        g->duplicate = between(w, 0, 200);
        g->disk_fail = between(w, 0, 200);
        g->disk_lie = between(w, 0, 200);
        g->work_fail = between(w, 0, 200);
        g->train_fail = between(w, 0, 150);
        g->bad = between(w, 0, 150);
        g->two_faced = between(w, 0, 200);
        g->server_crashes = between(w, 1, 12);
        g->device_crashes = between(w, 1, 20);
        g->halts = between(w, 0, 3);
    }
}

static void set_job(struct sim *w, const struct kedge_sim_spec *s)
{
    struct sim_job *j = &w->jobs[0];
    struct kedge_coord_job_params *p = &j->params;
    (void)snprintf(p->id.s, sizeof p->id.s, "j0");
    p->tenant_count = s->tenants;
    for (uint32_t i = 0; i < s->tenants; i++) {
        p->tenants[i] = i;
    }
    p->rounds = s->rounds;
    p->sites_min = 1;
    p->quorum = 1;
    p->round_timeout_ns = between(w, 10, 20) * SIM_SECOND;
    p->seed = kedge_rng_u64(&w->rng);
    p->groups = s->groups;
    p->evaluate_every = 1;
    p->weight_max = 100;
    j->initial = sim_digest(w->seed, 0, 1, "initial", 7);
}

static uint64_t in_chaos(struct sim *w)
{
    return w->now_ns + 1 + sim_below(w, w->config.chaos_ns);
}

static void write_script(struct sim *w)
{
    const struct sim_config *g = &w->config;
    uint64_t at = 1;
    for (uint32_t i = 0; i < g->sites; i++) {
        w->devices[i].tenant = i % g->tenants;
        at += sim_below(w, 200 * MS);
        sim_push(w, SIM_ENROL, at)->site = i;
        uint64_t up = 1 + sim_below(w, 2 * SIM_SECOND);
        sim_push(w, SIM_DEVICE_UP, up)->site = i;
    }
    sim_push(w, SIM_SERVER_UP, 1);
    sim_push(w, SIM_SUBMIT_JOB, 3 * SIM_SECOND)->job = 0;
    for (uint32_t t = 0; t < g->tenants; t++) {
        uint64_t join = 4 * SIM_SECOND + sim_below(w, 2 * SIM_SECOND);
        sim_push(w, SIM_JOIN, join)->site = t;
    }
    for (uint32_t i = 0; i < g->halts; i++) {
        sim_push(w, SIM_HALT, in_chaos(w));
        sim_push(w, SIM_RESUME, in_chaos(w));
    }
    for (uint32_t i = 0; i < g->server_crashes; i++) {
        sim_push(w, SIM_SERVER_CRASH, in_chaos(w));
    }
    for (uint32_t i = 0; i < g->device_crashes; i++) {
        uint64_t crash = in_chaos(w);
        sim_push(w, SIM_DEVICE_CRASH, crash)->site = (uint32_t)sim_below(w, g->sites);
    }
    sim_push(w, SIM_HEAL, g->chaos_ns);
}

struct sim *kedge_sim_world(const struct kedge_sim_spec *spec, uint64_t seed, struct kedge_sim_faults *ret)
{
    struct sim *w = kedge_mem_new(1, sizeof *w);
    if (!w) {
        return NULL;
    }
    w->seed = seed;
    w->digest = UINT64_C(0xcbf29ce484222325); /* of FNV-1a: what sim_hash goes on from */
    w->main_hash = w->digest;
    kedge_rng_init(&w->rng, seed, KEDGE_RNG_SIM, 1, 0);
    set_config(w, spec);
    set_job(w, spec);
    for (uint32_t i = 0; i < SIM_TENANTS_MAX; i++) {
        w->ledgers[i].hash = w->digest;
    }
    write_script(w);
    *ret = (struct kedge_sim_faults){w->config.server_crashes, w->config.device_crashes, w->config.halts,
                                     w->config.loss,           w->config.duplicate,      w->config.disk_fail};
    return w;
}
