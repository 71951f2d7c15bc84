/* kedge job plan: what devices should do in a round, how often blocks and anchors should be, and what that
 * costs. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/job/job_plan.h"
#include "cli/job/plan_spec.h"
#include "cli/local.h"
#include "common/base/mem.h"

enum { SHOWN_MAX = 40, LIKE_THESE = 3, CELL = 32 };

/* The long run: as the devices are drawn anew in each round, only their number matters. */
struct outlook {
    uint32_t devices; /* fewer than there are where the programme cannot hold them all */
    double price, optimum;
    struct kedge_plan_value plain, priced;
};

/* The optimum is found by going through all states, which grow with a power of the devices. With many levels
 * fewer devices are looked at: the outlook is per round of that many, and the answer says how many they were.
 */
static int look_ahead(const struct kedge_cli_plan *plan, struct outlook *ret)
{
    int err = KEDGE_E_ARG;
    ret->devices = plan->count < KEDGE_PLAN_EXACT_MAX ? plan->count : LIKE_THESE;
    for (; ret->devices > 0 && err == KEDGE_E_ARG;
         ret->devices -= err == KEDGE_E_ARG) { /* many levels: fewer */
        err = kedge_plan_optimum(&plan->setting, ret->devices, &ret->optimum);
    }
    if (err) {
        return err;
    }
    err = kedge_plan_evaluate(&plan->setting, ret->devices, 0, &ret->plain);
    return err ? err : kedge_plan_price(&plan->setting, ret->devices, &ret->price, &ret->priced);
}

/* One row of the comparison; no value at all: its heading. */
static void say_value(struct kedge_cli *c, const char *name, const struct kedge_plan_value *v, double optimum)
{
    static const struct kedge_column columns[] = {{"", -24},   {"reward", 10}, {"of best", 9},
                                                  {"data", 8}, {"energy", 8},  {"seconds", 9}};
    enum { COLUMNS = sizeof columns / sizeof columns[0] };
    char text[COLUMNS][CELL];
    const char *cells[COLUMNS];
    if (!v) {
        kedge_cli_head(c, columns, COLUMNS);
        return;
    }
    snprintf(text[0], CELL, "%s", name);
    snprintf(text[1], CELL, "%.4f", v->reward);
    if (optimum > 0) {
        snprintf(text[2], CELL, "%.1f %%", 100 * v->reward / optimum);
    } else {
        snprintf(text[2], CELL, "-");
    }
    snprintf(text[3], CELL, "%.2f", v->data);
    snprintf(text[4], CELL, "%.2f", v->energy);
    snprintf(text[5], CELL, "%.1f", v->seconds);
    for (size_t i = 0; i < COLUMNS; i++) {
        cells[i] = text[i];
    }
    kedge_cli_row(c, columns, COLUMNS, cells);
}

/* What each device is told to do in this round, as many as a person reads. */
static void say_round(struct kedge_cli *c, const struct kedge_cli_plan *plan,
                      const struct kedge_plan_choice *choices)
{
    static const struct kedge_column columns[] = {{"device", 8}, {"charge", 8}, {"share", 8},
                                                  {"data", 8},   {"energy", 8}, {"seconds", 9}};
    enum { COLUMNS = sizeof columns / sizeof columns[0] };
    kedge_cli_say(c, "\nThis round:\n");
    kedge_cli_head(c, columns, COLUMNS);
    for (uint32_t i = 0; i < plan->count && i < SHOWN_MAX; i++) {
        char text[COLUMNS][CELL];
        const char *cells[COLUMNS];
        const uint32_t numbers[] = {i + 1, plan->devices[i].charge, plan->devices[i].share, choices[i].data,
                                    choices[i].energy};
        for (size_t k = 0; k + 1 < COLUMNS; k++) {
            snprintf(text[k], CELL, "%u", numbers[k]);
            cells[k] = text[k];
        }
        snprintf(text[COLUMNS - 1], CELL, "%.1f", choices[i].seconds);
        cells[COLUMNS - 1] = text[COLUMNS - 1];
        kedge_cli_row(c, columns, COLUMNS, cells);
    }
    if (plan->count > SHOWN_MAX) {
        kedge_cli_say(c, "... and %u more (--format json has all)\n", plan->count - SHOWN_MAX);
    }
}

/* The same four figures as the row of the table, unrounded. */
static json_t *value_json(const struct kedge_plan_value *v)
{
    return json_pack("{s:f,s:f,s:f,s:f}", "reward", v->reward, "data", v->data, "energy", v->energy,
                     "seconds", v->seconds);
}

/* The sums are over all devices, also those that the table does not show. A device that is slowest decides
 * how long the round takes. */
static int answer(struct kedge_cli *c, const struct kedge_cli_plan *plan, const struct outlook *o,
                  const struct kedge_plan_choice *choices)
{
    double rate_reward, slowest = 0;
    uint64_t data = 0, energy = 0;
    const uint32_t rate = kedge_plan_rate(&plan->setting, &rate_reward);
    const double anchors = kedge_plan_anchor_interval(plan->anchor_cost, plan->setting.cost_per_second);
    json_t *list = json_array();
    for (uint32_t i = 0; i < plan->count; i++) {
        data += choices[i].data;
        energy += choices[i].energy;
        slowest = choices[i].seconds > slowest ? choices[i].seconds : slowest;
        json_array_append_new(list, json_pack("{s:I,s:I,s:f}", "data", (json_int_t)choices[i].data, "energy",
                                              (json_int_t)choices[i].energy, "seconds", choices[i].seconds));
    }
    kedge_cli_say(c, "%u blocks an hour%s\n", rate, anchors > 0 ? "" : "; anchors: no cost was given");
    if (anchors > 0) {
        kedge_cli_say(c, "an anchor every %.0f seconds\n", anchors);
    }
    kedge_cli_say(c, "\nIn the long run, per round of %u device%s, charge and share as they come:\n",
                  o->devices, o->devices == 1 ? "" : "s");
    say_value(c, NULL, NULL, 0);
    char priced[CELL];
    snprintf(priced, sizeof priced, "charge worth %.3g a unit", o->price);
    say_value(c, "each round for itself", &o->plain, o->optimum);
    say_value(c, priced, &o->priced, o->optimum);
    kedge_cli_say(c, "%-24s %10.4f\n", "the best there is", o->optimum);
    say_round(c, plan, choices);
    kedge_cli_say(c, "\n%llu units of data for %llu units of energy (%.3g J), in %.1f seconds\n",
                  (unsigned long long)data, (unsigned long long)energy,
                  (double)energy * plan->setting.joules_per_unit, slowest);
    return kedge_cli_ok(c, json_pack("{s:I,s:f,s:f,s:I,s:f,s:o,s:o,s:o,s:I,s:I,s:f}", "rate_per_hour",
                                     (json_int_t)rate, "anchor_interval_s", anchors, "price", o->price,
                                     "outlook_devices", (json_int_t)o->devices, "optimum", o->optimum,
                                     "each_round", value_json(&o->plain), "priced", value_json(&o->priced),
                                     "devices", list, "data", (json_int_t)data, "energy", (json_int_t)energy,
                                     "seconds", slowest));
}

/* A file that cannot be read is this machine's error, one that is wrong the caller's: the exit codes differ.
 */
int kedge_cmd_job_plan(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_cli_plan plan = {.count = 0};
    struct outlook o;
    struct kedge_buf text;
    const char *job = kedge_cli_option(c, "job", NULL);
    if (job) {
        return kedge_cli_plan_of_sites(c, job);
    }
    const char *path = kedge_cli_argument(c, 0);
    if (!path) {
        return kedge_cli_usage(c, "expected PLAN.json: the devices, and what they cost; or --job JOB");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    kedge_buf_init(&text, KEDGE_CLI_PLAN_BYTES_MAX);
    int err = kedge_cli_read_file(path, KEDGE_CLI_PLAN_BYTES_MAX, &text, &d);
    const int wrong = err ? KEDGE_OK : kedge_cli_plan_parse(kedge_buf_view(&text), &plan, &d);
    kedge_buf_deinit(&text);
    if (err || wrong) {
        return wrong ? kedge_cli_fail_as(c, wrong, &d, 2) : kedge_cli_fail(c, err, &d);
    }
    struct kedge_plan_choice *choices = kedge_mem_new(plan.count, sizeof *choices);
    err = choices ? look_ahead(&plan, &o) : KEDGE_E_NOMEM;
    if (!err) {
        err = kedge_plan_round(&plan.setting, plan.devices, plan.count, o.price, choices);
    }
    const int code = err ? kedge_cli_fail(c, err, &d) : answer(c, &plan, &o, choices);
    kedge_mem_free(choices);
    kedge_mem_free(plan.devices);
    return code;
}
