/* kedge sim SPEC.json where the spec describes learning: sites that really train, under virtual time. */
#include "cli/sim/sim_learn.h"

#include <math.h>
#include <stdio.h>

#include "sim/learn/exchange_process.h"
#include "sim/learn/report/plot.h"
#include "sim/learn/spec/spec_json.h"

enum { SCRIPT_MAX = 64 * 1024 * 1024, TABLE_ROWS = 12, CELL = 24 };

bool kedge_cli_learn_options(struct kedge_cli *c, struct kedge_cli_learn *ret)
{
    ret->c = c;
    ret->out = kedge_cli_option(c, "out", NULL);
    ret->compare = kedge_cli_option(c, "compare", NULL);
    ret->resume = kedge_cli_flag(c, "resume");
    return kedge_cli_number(c, "threads", 1, KEDGE_CLI_THREADS_MAX, 0, &ret->threads)
           && kedge_cli_number(c, "processes", 1, KEDGE_LEARN_PROCESSES_MAX, 0, &ret->processes)
           && kedge_cli_number(c, "save-every", 1, UINT32_MAX, 0, &ret->save_every)
           && kedge_cli_number(c, "seeds", 1, 1000, 0, &ret->seeds);
}

/* For specs of another kind: an option that would have no effect is refused by its name. */
const char *kedge_cli_learn_option_of(const struct kedge_cli_learn *l)
{
    return l->out          ? "--out"
           : l->compare    ? "--compare"
           : l->resume     ? "--resume"
           : l->threads    ? "--threads"
           : l->processes  ? "--processes"
           : l->save_every ? "--save-every"
           : l->seeds      ? "--seeds"
                           : NULL;
}

/* ---- one run ---- */

struct view {
    const struct kedge_cli_learn *l;
    const struct kedge_learn_spec *spec;
    double accuracy; /* the last that is known */
};

/* Not every round is evaluated; between two evaluations the last accuracy stays on the line. */
static bool on_round(void *arg, const struct kedge_learn_round *r, bool again)
{
    struct view *v = arg;
    char text[64] = "";
    v->accuracy = isfinite(r->accuracy) ? r->accuracy : v->accuracy;
    if (!again) {
        if (isfinite(v->accuracy)) {
            snprintf(text, sizeof text, "accuracy %s %%", kedge_cli_learn_percent(v->accuracy).s);
        }
        kedge_cli_progress(v->l->c, "rounds", r->round + 1, v->spec->job.rounds, text);
    }
    return !kedge_cli_interrupted();
}

/* Where the data say how many sites there are, only their reading tells. */
static void say_head(const struct kedge_cli_learn *l, const struct kedge_learn_spec *s)
{
    char sites[32] = "the data's", each[32] = "all";
    if (s->job.sites_per_round > 0) {
        snprintf(each, sizeof each, "%u", s->job.sites_per_round);
    }
    if (!kedge_learn_spec_is_natural(s)) {
        snprintf(sites, sizeof sites, "%u", s->sites);
    }
    kedge_cli_say(l->c, "%s: %s, %s sites, %u rounds of %s, seed %llu.\n", s->job.name.s,
                  s->job.strategy->title, sites, s->job.rounds, each, (unsigned long long)s->job.seed);
}

/* About a dozen of the evaluated rounds, the last one among them. */
static void say_rounds(const struct kedge_cli_learn *l, const struct kedge_learn_result *res)
{
    static const struct kedge_column columns[] = {{"round", 6},         {"accuracy %", 10}, {"sites %", 7},
                                                  {"worst 10th %", 12}, {"groups", 6},      {"sent", 8},
                                                  {"virtual s", 9},     {"kJ", 9},          {"moves", 6}};
    enum { COLUMNS = sizeof columns / sizeof columns[0] };
    uint32_t known = 0, seen = 0, told = 0;
    for (uint32_t i = 0; i < res->count; i++) {
        known += isfinite(res->rounds[i].accuracy) ? 1 : 0;
    }
    if (known == 0) {
        return;
    }
    kedge_cli_head(l->c, columns, COLUMNS);
    for (uint32_t i = 0; i < res->count; i++) {
        const struct kedge_learn_round *r = &res->rounds[i];
        char cell[COLUMNS][CELL];
        const char *cells[COLUMNS];
        if (!isfinite(r->accuracy) || (uint64_t)++seen * TABLE_ROWS / known < told + 1) {
            continue;
        }
        told++;
        snprintf(cell[0], CELL, "%u", r->round);
        snprintf(cell[1], CELL, "%s", kedge_cli_learn_percent(r->accuracy).s);
        snprintf(cell[2], CELL, "%s", kedge_cli_learn_percent(r->accuracy_sites).s);
        snprintf(cell[3], CELL, "%s", kedge_cli_learn_percent(r->accuracy_worst).s);
        snprintf(cell[4], CELL, "%u", r->groups);
        snprintf(cell[5], CELL, "%s", kedge_cli_learn_bytes((double)r->bytes_up + (double)r->bytes_down).s);
        snprintf(cell[6], CELL, "%.0f", r->virtual_s);
        snprintf(cell[7], CELL, "%.2f", r->joules / 1000);
        snprintf(cell[8], CELL, "%u", r->migrations);
        for (size_t k = 0; k < COLUMNS; k++) {
            cells[k] = cell[k];
        }
        kedge_cli_row(l->c, columns, COLUMNS, cells);
    }
}

static void say_summary(const struct kedge_cli_learn *l, const struct kedge_learn_result *r)
{
    const double *v = r->summary.value;
    kedge_cli_say(
        l->c,
        "\nLargest accuracy %s %% (round %u); mean of the last ten rounds %s %%, of the worst tenth "
        "of the sites %s %%.\n",
        kedge_cli_learn_percent(v[KEDGE_LEARN_MEASURE_accuracy_max]).s, r->summary.round_of_max,
        kedge_cli_learn_percent(v[KEDGE_LEARN_MEASURE_accuracy_last]).s,
        kedge_cli_learn_percent(v[KEDGE_LEARN_MEASURE_worst_last]).s);
    if (isfinite(v[KEDGE_LEARN_MEASURE_personal_last])) {
        kedge_cli_say(l->c, "The sites' own models: largest %s %%, last ten rounds %s %%.\n",
                      kedge_cli_learn_percent(v[KEDGE_LEARN_MEASURE_personal_max]).s,
                      kedge_cli_learn_percent(v[KEDGE_LEARN_MEASURE_personal_last]).s);
    }
    if (isfinite(v[KEDGE_LEARN_MEASURE_rand_last])) {
        kedge_cli_say(l->c,
                      "Adjusted Rand index against the planted groups: largest %.3f, last ten rounds %.3f.\n",
                      v[KEDGE_LEARN_MEASURE_rand_max], v[KEDGE_LEARN_MEASURE_rand_last]);
    }
    if (v[KEDGE_LEARN_MEASURE_detections] > 0) {
        kedge_cli_say(l->c, "%.0f shifts noticed, %.0f moves to another group.\n",
                      v[KEDGE_LEARN_MEASURE_detections], v[KEDGE_LEARN_MEASURE_migrations]);
    }
    kedge_cli_say(l->c, "%.1f s; digest of all models %016llx.\n", (double)r->spent_ms / 1000,
                  (unsigned long long)r->summary.digest);
}

/* A picture is made from a script that stays beside it, so a reader can draw it anew with other settings. */
static int draw(const struct kedge_cli_learn *l, const struct kedge_learn_spec *spec,
                const struct kedge_learn_result *r, struct kedge_diag *d)
{
    const char *title = spec->job.name.s;
    struct kedge_buf script;
    kedge_buf_init(&script, SCRIPT_MAX);
    kedge_learn_plot_accuracy(title, r->rounds, r->count, &script);
    int err = kedge_cli_learn_draw(l, l->out, KEDGE_LEARN_PLOT_ACCURACY, &script, d);
    kedge_buf_clear(&script);
    if (!err && kedge_learn_plot_has_groups(r->rounds, r->count)) {
        kedge_learn_plot_groups(title, r->rounds, r->count, &script);
        err = kedge_cli_learn_draw(l, l->out, KEDGE_LEARN_PLOT_GROUPS, &script, d);
    }
    kedge_buf_deinit(&script);
    return err;
}

/* {"kind":"learning","complete":…,"spec":{…},"summary":{…},"seconds":…,"out":…,"table":[{…},…]} */
static json_t *result_json(const struct kedge_cli_learn *l, const struct kedge_learn_spec *spec,
                           const struct kedge_learn_result *r)
{
    struct kedge_buf text;
    kedge_buf_init(&text, SCRIPT_MAX);
    kedge_buf_printf(&text,
                     "{\"kind\":\"learning\",\"complete\":%s,\"spec\":", r->complete ? "true" : "false");
    kedge_learn_spec_put(spec, &text);
    kedge_buf_put_str(&text, ",\"summary\":{");
    kedge_learn_put_summary(&r->summary, &text);
    kedge_buf_put_str(&text, "},\"seconds\":");
    kedge_learn_put_real(&text, (double)r->spent_ms / 1000);
    kedge_buf_put_str(&text, ",\"table\":[");
    for (uint32_t i = 0; i < r->count; i++) {
        kedge_buf_put_str(&text, i ? "," : "");
        kedge_learn_put_json_line(&r->rounds[i], &text);
    }
    kedge_buf_put_str(&text, "]}");
    json_t *o = text.err ? NULL : json_loadb((const char *)text.ptr, text.len, 0, NULL);
    if (o && l->out) {
        json_object_set_new(o, "out", json_string(l->out));
    }
    kedge_buf_deinit(&text);
    return o;
}

/* An interrupted run has no summary: half a curve would be read as a result. */
static int answer(const struct kedge_cli_learn *l, const struct kedge_learn_spec *spec,
                  const struct kedge_learn_result *r)
{
    struct kedge_diag d = {.text = ""};
    kedge_cli_progress_end(l->c);
    if (!r->complete) {
        return kedge_cli_interrupt_end(
            l->c, "interrupted before the last round", "%s",
            l->out ? "the same command with --resume goes on where results were last saved"
                   : "with --out DIR a run can be resumed");
    }
    if (r->was_complete) {
        kedge_cli_say(l->c, "It was complete already; nothing was run.\n");
    } else if (r->resumed) {
        kedge_cli_say(l->c, "Went on after %u rounds that were saved.\n", r->resumed);
    }
    say_rounds(l, r);
    say_summary(l, r);
    int err = l->out ? draw(l, spec, r, &d) : KEDGE_OK;
    if (err) {
        return kedge_cli_learn_fail(l, err, &d);
    }
    if (l->out) {
        kedge_cli_say(l->c, "Rounds, summary and pictures are in %s.\n", l->out);
    }
    return kedge_cli_ok(l->c, l->c->json ? result_json(l, spec, r) : json_object());
}

int kedge_cli_sim_learn(struct kedge_cli_learn *l)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_learn_spec spec;
    struct kedge_learn_result r = {.count = 0};
    if (l->compare || l->seeds) {
        return kedge_cli_sim_compare(l);
    }
    if (l->resume && !l->out) {
        return kedge_cli_usage(l->c, "--resume: expected --out DIR with it, the folder to go on in");
    }
    int err = kedge_cli_learn_spec(l, NULL, 0, &spec, &d);
    if (!err && kedge_cli_learn_speaks(l)) {
        say_head(l, &spec);
    }
    struct view v = {l, &spec, (double)NAN};
    kedge_cli_catch_interrupt();
    if (!err) {
        err = kedge_cli_learn_run(l, &spec, l->out, l->resume, on_round, &v, &r, &d);
    }
    if (err) {
        return kedge_cli_learn_fail(l, err, &d);
    }
    int code = kedge_cli_learn_speaks(l) ? answer(l, &spec, &r) : 0;
    kedge_learn_result_deinit(&r);
    return code;
}
