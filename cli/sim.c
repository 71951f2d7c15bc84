/* kedge sim: the coordinator's and the sites' own state machines under virtual time, with everything that
 * goes wrong drawn from a seed; checkers outside of them look at what became durable. */
#include "cli/sim.h"

#include <stdio.h>

#include "cli/local.h"

enum { SPEC_FILE_MAX = 65536, WHY_LEN = 256 };

struct outcome {
    bool fine;
    uint32_t rounds, statements;
    uint64_t seconds, events, digest;
    struct kedge_sim_faults faults;
    char why[WHY_LEN];
};

static uint32_t count_rounds(const struct sim *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->main_count; i++) {
        n += w->main[i].type == SIM_ROUND_CLOSED;
    }
    return n;
}

static int run_seed(const struct kedge_sim_spec *spec, uint64_t seed, struct outcome *ret)
{
    struct sim *w = kedge_sim_world(spec, seed, &ret->faults);
    if (!w) {
        return KEDGE_E_NOMEM;
    }
    ret->fine = sim_run(w);
    ret->rounds = count_rounds(w);
    ret->statements = w->main_count;
    for (uint32_t i = 0; i < w->config.tenants; i++) {
        ret->statements += w->ledgers[i].count;
    }
    ret->seconds = w->now_ns / SIM_SECOND;
    ret->events = w->steps;
    ret->digest = w->digest;
    snprintf(ret->why, sizeof ret->why, "%s", ret->fine ? "" : w->why);
    sim_free(w);
    return KEDGE_OK;
}

static const struct kedge_column columns[] = {{"seed", 20},    {"rounds", 6},  {"seconds", 7},
                                              {"events", 8},   {"crashes", 7}, {"lost", 5},
                                              {"digest", -16}, {"checks", -16}};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static void say_outcome(const struct kedge_cli *c, uint64_t seed, const struct outcome *o)
{
    char cell[COLUMNS][24];
    snprintf(cell[0], sizeof cell[0], "%llu", (unsigned long long)seed);
    snprintf(cell[1], sizeof cell[1], "%u", o->rounds);
    snprintf(cell[2], sizeof cell[2], "%llu", (unsigned long long)o->seconds);
    snprintf(cell[3], sizeof cell[3], "%llu", (unsigned long long)o->events);
    snprintf(cell[4], sizeof cell[4], "%u", o->faults.server_crashes + o->faults.device_crashes);
    snprintf(cell[5], sizeof cell[5], "%u %%", o->faults.loss / 10);
    snprintf(cell[6], sizeof cell[6], "%016llx", (unsigned long long)o->digest);
    snprintf(cell[7], sizeof cell[7], "%s", o->fine ? "hold" : "VIOLATED");
    const char *cells[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
        cells[i] = cell[i];
    }
    kedge_cli_row(c, columns, COLUMNS, cells);
    if (!o->fine) {
        kedge_cli_say(c, "  seed %llu: %s\n", (unsigned long long)seed, o->why);
    }
}

static json_t *outcome_json(uint64_t seed, const struct outcome *o)
{
    char seed_text[24], digest[24];
    snprintf(seed_text, sizeof seed_text, "%llu", (unsigned long long)seed);
    snprintf(digest, sizeof digest, "%016llx", (unsigned long long)o->digest);
    return json_pack("{s:s,s:b,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:s}", "seed", seed_text, "holds",
                     o->fine, "violation", o->why, "rounds", (json_int_t)o->rounds, "statements",
                     (json_int_t)o->statements, "virtual_seconds", (json_int_t)o->seconds, "events",
                     (json_int_t)o->events, "coordinator_crashes", (json_int_t)o->faults.server_crashes,
                     "site_crashes", (json_int_t)o->faults.device_crashes, "loss_permille",
                     (json_int_t)o->faults.loss, "duplicate_permille", (json_int_t)o->faults.duplicate,
                     "disk_fail_permille", (json_int_t)o->faults.disk_fail, "digest", digest);
}

static int run_all(struct kedge_cli *c, const struct kedge_sim_spec *spec)
{
    json_t *rows = json_array();
    uint32_t failed = 0;
    kedge_cli_head(c, columns, COLUMNS);
    for (uint32_t i = 0; i < spec->seeds; i++) {
        struct outcome o = {.fine = false};
        int err = run_seed(spec, spec->seed + i, &o);
        if (err) {
            json_decref(rows);
            return kedge_cli_fail(c, err, NULL);
        }
        failed += !o.fine;
        say_outcome(c, spec->seed + i, &o);
        json_array_append_new(rows, outcome_json(spec->seed + i, &o));
    }
    if (failed) {
        kedge_cli_say(c, "%u of %u seeds broke a rule.\n", failed, spec->seeds);
    } else {
        kedge_cli_say(c,
                      "All rules hold in %u run%s: nothing acknowledged was lost, counted twice or published "
                      "before it was durable, and every job ended.\n",
                      spec->seeds, spec->seeds == 1 ? "" : "s");
    }
    json_t *data =
        json_pack("{s:b,s:i,s:i,s:i,s:i,s:i,s:s,s:o}", "holds", failed == 0, "seeds", (int)spec->seeds,
                  "failed", (int)failed, "tenants", (int)spec->tenants, "sites_per_tenant", (int)spec->sites,
                  "groups", (int)spec->groups, "faults", spec->faults ? "all" : "none", "runs", rows);
    return kedge_cli_answer(c, data, failed ? 1 : 0);
}

int kedge_cmd_sim(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_sim_spec spec;
    struct kedge_buf text;
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    const char *path = kedge_cli_argument(c, 0);
    if (!path) {
        return kedge_cli_usage(c, "SPEC.json is missing");
    }
    int err = kedge_cli_read_file(path, SPEC_FILE_MAX, &text, &d);
    if (!err) {
        err = kedge_sim_spec_parse(kedge_buf_view(&text), &spec, &d);
        /* 1 is the answer "a rule was broken": a spec that is none must not look like it. */
        err = err ? kedge_diag_wrap(&d, err == KEDGE_E_NOMEM ? err : KEDGE_E_USAGE, "%s", path) : KEDGE_OK;
    }
    kedge_buf_deinit(&text);
    return err ? kedge_cli_fail(c, err, &d) : run_all(c, &spec);
}
