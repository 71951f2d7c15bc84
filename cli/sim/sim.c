/* kedge sim: the coordinator's and the sites' own state machines under virtual time, with everything that
 * goes wrong drawn from a seed; checkers outside of them look at what became durable. A spec that describes
 * learning goes to sim_learn.c. */
#include "cli/sim/sim.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/local.h"
#include "cli/sim/sim_learn.h"
#include "sim/learn/spec/spec_json.h"
#include "sim/protocol/protocol.h"

enum { SPEC_FILE_MAX = 65536, CELL = 24, COLUMNS_MAX = 10, DRAW_EVERY = 64 };
#define SECOND_NS 1e9

/* ---- tables ---- */

static const struct kedge_column run_columns[] = {{"seed", 20},    {"rounds", 6},  {"seconds", 8},
                                                  {"events", 9},   {"crashes", 7}, {"lost", 7},
                                                  {"digest", -16}, {"rules", -8}};
enum { RUN_COLUMNS = sizeof run_columns / sizeof run_columns[0] };

static const struct kedge_column round_columns[] = {{"round", 5},     {"groups", 6},  {"selected", 8},
                                                    {"accepted", 8},  {"refused", 7}, {"crashes", 7},
                                                    {"opened s", 10}, {"open s", 8}};
enum { ROUND_COLUMNS = sizeof round_columns / sizeof round_columns[0] };

static void say_row(const struct kedge_cli *c, const struct kedge_column *columns, size_t count,
                    char cell[COLUMNS_MAX][CELL])
{
    const char *cells[COLUMNS_MAX];
    for (size_t i = 0; i < count; i++) {
        cells[i] = cell[i];
    }
    kedge_cli_row(c, columns, count, cells);
}

static void say_run(const struct kedge_cli *c, uint64_t seed, const struct kedge_sim_outcome *o)
{
    char cell[COLUMNS_MAX][CELL];
    snprintf(cell[0], CELL, "%llu", (unsigned long long)seed);
    snprintf(cell[1], CELL, "%u", o->round_count);
    snprintf(cell[2], CELL, "%.0f", (double)o->virtual_ns / SECOND_NS);
    snprintf(cell[3], CELL, "%llu", (unsigned long long)o->events);
    snprintf(cell[4], CELL, "%llu", (unsigned long long)o->crashes);
    snprintf(cell[5], CELL, "%llu", (unsigned long long)o->lost);
    snprintf(cell[6], CELL, "%016llx", (unsigned long long)o->digest);
    snprintf(cell[7], CELL, "%s", o->holds ? "hold" : "BROKEN");
    say_row(c, run_columns, RUN_COLUMNS, cell);
    if (!o->holds) {
        kedge_cli_say(c, "  seed %llu: %s\n", (unsigned long long)seed, o->why);
    }
}

static void say_rounds(const struct kedge_cli *c, const struct kedge_sim_outcome *o)
{
    char cell[COLUMNS_MAX][CELL];
    kedge_cli_head(c, round_columns, ROUND_COLUMNS);
    for (uint32_t i = 0; i < o->round_count; i++) {
        const struct kedge_sim_round *r = &o->rounds[i];
        snprintf(cell[0], CELL, "%u", r->round);
        snprintf(cell[1], CELL, "%u", r->groups);
        snprintf(cell[2], CELL, "%u", r->selected);
        snprintf(cell[3], CELL, "%u", r->accepted);
        snprintf(cell[4], CELL, "%u", r->refused);
        snprintf(cell[5], CELL, "%u", r->crashes);
        snprintf(cell[6], CELL, "%.3f", (double)r->opened_ns / SECOND_NS);
        snprintf(cell[7], CELL, "%.3f", (double)(r->closed_ns - r->opened_ns) / SECOND_NS);
        say_row(c, round_columns, ROUND_COLUMNS, cell);
    }
    kedge_cli_say(c, "\n");
}

/* ---- JSON ---- */

static json_t *rounds_json(const struct kedge_sim_outcome *o)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < o->round_count; i++) {
        const struct kedge_sim_round *r = &o->rounds[i];
        json_array_append_new(rows,
                              json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:I,s:I}", "round", (int)r->round, "groups",
                                        (int)r->groups, "selected", (int)r->selected, "accepted",
                                        (int)r->accepted, "refused", (int)r->refused, "crashes",
                                        (int)r->crashes, "opened_ms", (json_int_t)(r->opened_ns / 1000000),
                                        "closed_ms", (json_int_t)(r->closed_ns / 1000000)));
    }
    return rows;
}

/* Faults have the names of their enum, in capitals; in JSON they are small, as all keys. */
static json_t *faults_json(const struct kedge_sim_outcome *o)
{
    json_t *counts = json_object();
    for (uint32_t i = 0; i < o->fault_count; i++) {
        char name[64];
        size_t len = strlen(o->faults[i].name);
        len = len < sizeof name ? len : sizeof name - 1;
        for (size_t c = 0; c < len; c++) {
            name[c] = o->faults[i].name[c] == '_' ? '_' : (char)(o->faults[i].name[c] | 0x20);
        }
        name[len] = '\0';
        json_object_set_new(counts, name, json_integer((json_int_t)o->faults[i].count));
    }
    return counts;
}

/* Seeds and digests are text: they have 64 bits, and many readers of JSON have 53. */
static json_t *run_json(uint64_t seed, const struct kedge_sim_outcome *o, bool alone)
{
    char seed_text[CELL], digest[CELL];
    snprintf(seed_text, sizeof seed_text, "%llu", (unsigned long long)seed);
    snprintf(digest, sizeof digest, "%016llx", (unsigned long long)o->digest);
    json_t *run =
        json_pack("{s:s,s:b,s:s,s:i,s:I,s:I,s:I,s:I,s:I,s:s}", "seed", seed_text, "holds", o->holds,
                  "violation", o->why, "rounds", (int)o->round_count, "statements", (json_int_t)o->statements,
                  "virtual_ms", (json_int_t)(o->virtual_ns / 1000000), "events", (json_int_t)o->events,
                  "crashes", (json_int_t)o->crashes, "lost", (json_int_t)o->lost, "digest", digest);
    if (alone) {
        json_object_set_new(run, "table", rounds_json(o));
    }
    json_object_set_new(run, "faults", faults_json(o));
    return run;
}

/* ---- runs ---- */

struct view {
    const struct kedge_cli *c;
    const struct kedge_cli_sim *s;
    uint32_t done, drawn, calls; /* seeds; rounds of the one at work as drawn last */
};

/* Called after every event, of which there are millions: drawn when a round is over, and else now and then.
 */
static void draw(void *arg, uint32_t rounds)
{
    struct view *v = arg;
    char text[64];
    if (rounds == v->drawn && ++v->calls % DRAW_EVERY != 0) {
        return;
    }
    v->drawn = rounds;
    uint32_t all = v->s->spec.rounds + (v->s->spec.groups > 1 ? 1 : 0);
    if (v->s->seeds == 1) {
        kedge_cli_progress(v->c, "rounds", rounds, all, "");
        return;
    }
    snprintf(text, sizeof text, "round %u of %u", rounds, all);
    kedge_cli_progress(v->c, "seeds", v->done, v->s->seeds, text);
}

static void say_verdict(const struct kedge_cli *c, uint32_t seeds, uint32_t broken)
{
    if (broken) {
        kedge_cli_say(c, "%u of %u seeds broke a rule.\n", broken, seeds);
        return;
    }
    kedge_cli_say(c,
                  "All rules hold in %u run%s: nothing acknowledged was lost, counted twice or published "
                  "before it was durable, and every job ended.\n",
                  seeds, seeds == 1 ? "" : "s");
}

/* Seed after seed, and all of them even when one breaks a rule: how many broke is part of the answer. */
static int run_all(struct kedge_cli *c, const struct kedge_cli_sim *s)
{
    struct kedge_diag d = {.text = ""};
    struct view v = {.c = c, .s = s, .drawn = UINT32_MAX};
    json_t *runs = json_array();
    uint32_t broken = 0;
    for (; v.done < s->seeds; v.done++) {
        struct kedge_sim_outcome o;
        uint64_t seed = s->seed + v.done;
        int err = kedge_sim_run(&s->spec, seed, draw, &v, &o, &d);
        kedge_cli_progress_end(c);
        if (err) {
            json_decref(runs);
            return kedge_cli_fail(c, err, &d);
        }
        if (s->seeds == 1) {
            say_rounds(c, &o);
        }
        if (v.done == 0) {
            kedge_cli_head(c, run_columns, RUN_COLUMNS);
        }
        broken += !o.holds;
        say_run(c, seed, &o);
        json_array_append_new(runs, run_json(seed, &o, s->seeds == 1));
        kedge_sim_outcome_deinit(&o);
    }
    say_verdict(c, s->seeds, broken);
    json_t *data = json_pack("{s:b,s:i,s:i,s:i,s:i,s:i,s:s,s:s,s:o}", "holds", broken == 0, "seeds",
                             (int)s->seeds, "broken", (int)broken, "tenants", (int)s->spec.tenants,
                             "sites_per_tenant", (int)s->spec.sites, "groups", (int)s->spec.groups, "faults",
                             s->spec.faults ? "all" : "none", "signatures", s->spec.real ? "real" : "keyed",
                             "runs", runs);
    return kedge_cli_answer(c, data, broken ? 1 : 0);
}

/* A spec without "world" or "preset". */
static int run_protocol(struct kedge_cli *c, const char *path, struct kedge_view text,
                        const struct kedge_cli_learn *learn)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_cli_sim s;
    const char *option = kedge_cli_learn_option_of(learn);
    int err = kedge_cli_sim_parse(text, &s, &d);
    if (!err && option) {
        return kedge_cli_usage(c, "%s is for learning simulations, whose spec has \"world\" or \"preset\"",
                               option);
    }
    /* 1 is the answer "a rule was broken": a spec that is none must not look like it. */
    err = err ? kedge_diag_wrap(&d, err == KEDGE_E_NOMEM ? err : KEDGE_E_USAGE, "%s", path) : KEDGE_OK;
    return err ? kedge_cli_fail(c, err, &d) : s.is_crowd ? kedge_cli_sim_crowd(c, &s.crowd) : run_all(c, &s);
}

/* Three simulators behind one command, told apart by the spec alone: learning ("world" or "preset", sim/learn
 * and sim/protocol), a crowd, or the protocol with faults. Options are taken before the file is read, so it
 * does not matter which it is for a usage error. */
int kedge_cmd_sim(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_cli_learn learn = {.run = kedge_protocol_run};
    struct kedge_buf text;
    const char *export = kedge_cli_option(c, "export", NULL);
    bool print_job = kedge_cli_flag(c, "print-job");
    if (!kedge_cli_learn_options(c, &learn) || !kedge_cli_no_more(c, 1)) {
        return 2;
    }
    const char *path = kedge_cli_argument(c, 0);
    if (!path) {
        return kedge_cli_usage(c, "SPEC.json is missing");
    }
    int err = kedge_cli_read_file(path, SPEC_FILE_MAX, &text, &d), code;
    if (err) {
        code = err == KEDGE_E_TOO_LONG ? kedge_cli_fail_as(c, err, &d, 2) : kedge_cli_fail(c, err, &d);
    } else if (kedge_learn_spec_is(kedge_buf_view(&text))) {
        learn.path = path;
        learn.text = kedge_buf_view(&text);
        code = print_job ? kedge_cli_sim_print_job(&learn)
               : export  ? kedge_cli_sim_export(&learn, export)
                         : kedge_cli_sim_learn(&learn);
    } else if (export || print_job) {
        code = kedge_cli_usage(c, "%s is for learning simulations, whose spec has \"world\" or \"preset\"",
                               export ? "--export" : "--print-job");
    } else {
        code = run_protocol(c, path, kedge_buf_view(&text), &learn);
    }
    kedge_buf_deinit(&text);
    return code;
}
