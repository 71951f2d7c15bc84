/* A run of the learning simulator, and what all commands about runs say. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/local.h"
#include "cli/sim/sim_learn.h"
#include "sim/learn/report/plot.h"
#include "sim/learn/report/report_data.h"
#include "sim/learn/spec/spec_json.h"

enum { SAVE_MS = 5000 };

struct kedge_cli_percent kedge_cli_learn_percent(double share)
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

/* What is wrong in a spec is usage (2), as with kedge job spec, and never looks like a result. */
int kedge_cli_learn_fail(const struct kedge_cli_learn *l, int err, const struct kedge_diag *d)
{
    bool usage = err == KEDGE_E_FORMAT || err == KEDGE_E_ARG || err == KEDGE_E_TOO_LONG
                 || err == KEDGE_E_SHAPE || err == KEDGE_E_USAGE;
    return usage ? kedge_cli_fail_as(l->c, err, d, 2) : kedge_cli_fail(l->c, err, d);
}

bool kedge_cli_learn_speaks(const struct kedge_cli_learn *l)
{
    return !l->exchange || l->exchange->rank == 0;
}

/* Checked with its seed and variant, since both may make a spec wrong that is right without them. */
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
    uint32_t cores = n < 1 ? 1 : n < KEDGE_CLI_THREADS_MAX ? (uint32_t)n : KEDGE_CLI_THREADS_MAX;
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

/* Saved every ten rounds, but not more often than every five seconds, so that saving does not take longer
 * than the rounds of a small model. --save-every is taken at its word. */
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

/* Pictures are an extra: without gnuplot the results stand in the folder all the same, and the script to draw
 * them later. */
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
