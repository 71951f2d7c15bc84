/* kedge sim SPEC.json where the spec describes learning: sites that really train, under virtual time. */
#include "cli/sim/sim_learn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/local.h"
#include "sim/learn/exchange_process.h"
#include "sim/learn/report/plot.h"
#include "sim/learn/report/report_data.h"
#include "sim/learn/spec/spec_json.h"

enum { SCRIPT_MAX = 64 * 1024 * 1024, TABLE_ROWS = 12, CELL = 24, SAVE_MS = 5000, THREADS_MAX = 64 };

bool kedge_cli_learn_options(struct kedge_cli *c, struct kedge_cli_learn *ret)
{
    ret->c = c;
    ret->out = kedge_cli_option(c, "out", NULL);
    ret->compare = kedge_cli_option(c, "compare", NULL);
    ret->resume = kedge_cli_flag(c, "resume");
    return kedge_cli_number(c, "threads", 1, THREADS_MAX, 0, &ret->threads)
           && kedge_cli_number(c, "processes", 1, KEDGE_LEARN_PROCESSES_MAX, 0, &ret->processes)
           && kedge_cli_number(c, "save-every", 1, UINT32_MAX, 0, &ret->save_every)
           && kedge_cli_number(c, "seeds", 1, 1000, 0, &ret->seeds);
}

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

bool kedge_cli_learn_speaks(const struct kedge_cli_learn *l)
{
    return !l->exchange || l->exchange->rank == 0;
}

static struct kedge_cli_percent cli_learn_percent(double share)
{
    struct kedge_cli_percent p = {.s = "-"};
    if (isfinite(share)) {
        snprintf(p.s, sizeof p.s, "%.2f", 100 * share);
    }
    return p;
}

struct kedge_cli_percent kedge_cli_learn_bytes(double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    struct kedge_cli_percent p;
    size_t i = 0;
    for (; bytes >= 1000 && i < 5; i++) {
        bytes /= 1000;
    }
    snprintf(p.s, sizeof p.s, i && bytes < 100 ? "%.1f %s" : "%.0f %s", bytes, units[i]);
    return p;
}

int kedge_cli_learn_fail(const struct kedge_cli_learn *l, int err, const struct kedge_diag *d)
{
    bool usage = err == KEDGE_E_FORMAT || err == KEDGE_E_ARG || err == KEDGE_E_TOO_LONG
                 || err == KEDGE_E_SHAPE || err == KEDGE_E_USAGE;
    return usage ? kedge_cli_fail_as(l->c, err, d, 2) : kedge_cli_fail(l->c, err, d);
}

int kedge_cli_learn_spec(const struct kedge_cli_learn *l, const char *variant, uint32_t seed,
                         struct kedge_learn_spec *ret, struct kedge_diag *d)
{
    int err = kedge_learn_spec_parse(l->text, variant, ret, d);
    if (err) {
        return kedge_diag_wrap(d, err == KEDGE_E_NOT_FOUND ? KEDGE_E_USAGE : err, "%s", l->path);
    }
    ret->job.seed += seed;
    err = kedge_learn_spec_check(ret, d);
    return err ? kedge_diag_wrap(d, err, "%s%s%s", l->path, variant ? ", " : "", variant ? variant : "")
               : KEDGE_OK;
}

/* All processors, however many processes share them. */
static uint32_t threads_of(const struct kedge_cli_learn *l)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t cores = n < 1 ? 1 : n < THREADS_MAX ? (uint32_t)n : THREADS_MAX;
    uint32_t processes = l->processes ? (uint32_t)l->processes : 1;
    return l->threads ? (uint32_t)l->threads : cores > processes ? cores / processes : 1;
}

/* Once, however many runs there are. */
static void say_line(void *arg, const char *line)
{
    static bool said;
    const struct kedge_cli_learn *l = arg;
    if (!said) {
        kedge_cli_say(l->c, "%s\n", line);
    }
    said = true;
}

int kedge_cli_learn_run(const struct kedge_cli_learn *l, const struct kedge_learn_spec *spec, const char *out,
                        bool resume, bool (*on_round)(void *, const struct kedge_learn_round *, bool),
                        void *arg, struct kedge_learn_result *ret, struct kedge_diag *d)
{
    char images[KEDGE_PATH_MAX];
    int err = kedge_learn_find_images(spec, images, d);
    struct kedge_learn_task task = {.spec = spec,
                                    .run = l->run,
                                    .images = images,
                                    .out = out,
                                    .resume = resume,
                                    .threads = threads_of(l),
                                    .processes = l->processes ? (uint32_t)l->processes : 1,
                                    .exchange = l->exchange,
                                    .save_every = l->save_every ? (uint32_t)l->save_every : 10,
                                    .save_ms = l->save_every ? 0 : SAVE_MS,
                                    .on_round = on_round,
                                    .arg = arg,
                                    .say = say_line,
                                    .say_arg = (void *)(uintptr_t)l};
    return err ? err : kedge_learn_report_run(&task, ret, d);
}

int kedge_cli_learn_draw(const struct kedge_cli_learn *l, const char *dir, const char *name,
                         const struct kedge_buf *script, struct kedge_diag *d)
{
    struct kedge_diag own = {.text = ""};
    if (script->err) {
        return kedge_diag_set(d, script->err, "out of memory");
    }
    int err = kedge_learn_plot_draw(dir, name, kedge_buf_view(script), &own);
    if (err != KEDGE_E_NOT_FOUND) {
        return err ? kedge_diag_set(d, err, "%s", own.text) : KEDGE_OK;
    }
    kedge_cli_say(l->c, "%s; %s.\n", own.text, own.hint);
    return KEDGE_OK;
}

/* ---- one run ---- */

struct view {
    const struct kedge_cli_learn *l;
    const struct kedge_learn_spec *spec;
    double accuracy; /* the last that is known */
};

static bool on_round(void *arg, const struct kedge_learn_round *r, bool again)
{
    struct view *v = arg;
    char text[64] = "";
    v->accuracy = isfinite(r->accuracy) ? r->accuracy : v->accuracy;
    if (!again) {
        if (isfinite(v->accuracy)) {
            snprintf(text, sizeof text, "accuracy %s %%", cli_learn_percent(v->accuracy).s);
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
        snprintf(cell[1], CELL, "%s", cli_learn_percent(r->accuracy).s);
        snprintf(cell[2], CELL, "%s", cli_learn_percent(r->accuracy_sites).s);
        snprintf(cell[3], CELL, "%s", cli_learn_percent(r->accuracy_worst).s);
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
        cli_learn_percent(v[KEDGE_LEARN_MEASURE_accuracy_max]).s, r->summary.round_of_max,
        cli_learn_percent(v[KEDGE_LEARN_MEASURE_accuracy_last]).s,
        cli_learn_percent(v[KEDGE_LEARN_MEASURE_worst_last]).s);
    if (isfinite(v[KEDGE_LEARN_MEASURE_personal_last])) {
        kedge_cli_say(l->c, "The sites' own models: largest %s %%, last ten rounds %s %%.\n",
                      cli_learn_percent(v[KEDGE_LEARN_MEASURE_personal_max]).s,
                      cli_learn_percent(v[KEDGE_LEARN_MEASURE_personal_last]).s);
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
    err = err ? err : kedge_cli_learn_run(l, &spec, l->out, l->resume, on_round, &v, &r, &d);
    if (err) {
        return kedge_cli_learn_fail(l, err, &d);
    }
    int code = kedge_cli_learn_speaks(l) ? answer(l, &spec, &r) : 0;
    kedge_learn_result_deinit(&r);
    return code;
}
