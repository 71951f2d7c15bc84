/* kedge job plan --job: how much of its data each site of a job should train on, by what the sites said that
 * it costs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/job/job_costs.h"
#include "cli/job/job_plan.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "coordinator/plan/sites.h"

enum { CELL = 32, SHOWN_MAX = 40, ROUNDS = 10, PARTS = 4 };

/* What is known of the sites (list), what of it goes into the plan (sites), and what comes out (shares). NaN
 * stands for "nobody said so" throughout, and is told as such, never as 0. */
struct sites {
    const json_t *list; /* of what was said */
    uint32_t count, measured, modelled;
    struct kedge_plan_site *sites;
    struct kedge_plan_share *shares;
    struct kedge_plan_terms terms;
    struct kedge_plan_round_cost plan, all;
    double other_seconds; /* NaN: nobody measured it */
    uint64_t first, last; /* rounds */
};

/* "10,1,3". What a sample is worth against a joule and a second is the operator's choice, and nothing that a
 * record could tell. */
static bool read_weights(struct kedge_cli *c, struct kedge_plan_terms *t)
{
    const char *text = kedge_cli_option(c, "weights", "10,1,3"), *at = text;
    double *const to[] = {&t->data_weight, &t->energy_weight, &t->time_weight};
    for (int i = 0; i < 3; i++) {
        const size_t len = strcspn(at, ",");
        if (kedge_real_decode(kedge_view_of(at, len), to[i]) != KEDGE_OK || *to[i] < 0 || *to[i] > 1e6
            || (i < 2) != (at[len] == ',')) {
            (void)kedge_cli_usage(
                c, "--weights %s: expected three numbers like 10,1,3: of data, energy and time",
                kedge_cli_word(text).s);
            return false;
        }
        at += len + 1;
    }
    return true;
}

static int compare(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* The median, over the rounds that the coordinator has a clock for, of what they took beyond the slowest
 * training: upload, aggregation, waiting. NaN: there is none. */
static double other_of(const json_t *said, const json_t *shown)
{
    double *over = kedge_mem_new(json_array_size(said) + 1, sizeof *over), median = (double)NAN;
    size_t i, k, n = 0;
    const json_t *row, *round;
    json_array_foreach(said, i, row)
    {
        json_array_foreach(shown, k, round)
        {
            const double more = kedge_cli_real(round, "seconds") - kedge_cli_real(row, "seconds");
            if (over && kedge_cli_int(round, "round") == kedge_cli_int(row, "round")
                && json_object_get(round, "seconds") && more >= 0) {
                over[n++] = more;
            }
        }
    }
    if (n > 0) {
        qsort(over, n, sizeof *over, compare);
        median = over[n / 2];
    }
    kedge_mem_free(over);
    return median;
}

/* A site that tells no joules is planned with NaN: kedge_plan_sites decides what to assume, and say_origin
 * says what was assumed. */
static int plan(struct sites *s, struct kedge_diag *d)
{
    s->count = (uint32_t)json_array_size(s->list);
    s->sites = kedge_mem_new(s->count + 1, sizeof *s->sites);
    s->shares = kedge_mem_new(s->count + 1, sizeof *s->shares);
    if (!s->sites || !s->shares) {
        return KEDGE_E_NOMEM;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        const json_t *row = json_array_get(s->list, i);
        const bool known = json_is_number(json_object_get(row, "joules_per_sample"));
        s->measured += strcmp(kedge_cli_text(row, "energy_quality"), "measured") == 0;
        s->modelled += strcmp(kedge_cli_text(row, "energy_quality"), "modelled") == 0;
        s->sites[i] = (struct kedge_plan_site){(double)kedge_cli_int(row, "samples"),
                                               kedge_cli_real(row, "seconds_per_sample"),
                                               known ? kedge_cli_real(row, "joules_per_sample") : (double)NAN,
                                               isnan(s->other_seconds) ? 0 : s->other_seconds};
    }
    KEDGE_TRY(kedge_plan_sites(&s->terms, s->sites, s->count, s->shares, &s->plan, d));
    kedge_plan_sites_all(&s->terms, s->sites, s->count, s->terms.parts, &s->all);
    return KEDGE_OK;
}

/* ---- what is told ---- */

static void put_real(double v, char out[CELL])
{
    snprintf(out, CELL, isnan(v) ? "-" : "%.4g", v);
}

static void say_sites(struct kedge_cli *c, const struct sites *s)
{
    static const struct kedge_column columns[] = {{"tenant", -16}, {"site", -16},   {"samples", 8},
                                                  {"s/sample", 9}, {"J/sample", 9}, {"", -8},
                                                  {"trains", 8},   {"seconds", 9},  {"joules", 9}};
    enum { COLUMNS = sizeof columns / sizeof columns[0] };
    kedge_cli_head(c, columns, COLUMNS);
    for (uint32_t i = 0; i < s->count && i < SHOWN_MAX; i++) {
        const json_t *row = json_array_get(s->list, i);
        char text[6][CELL];
        snprintf(text[0], CELL, "%lld", (long long)kedge_cli_int(row, "samples"));
        put_real(s->sites[i].seconds_per_sample, text[1]);
        put_real(s->sites[i].joules_per_sample, text[2]);
        snprintf(text[3], CELL, "%.0f", s->shares[i].samples);
        put_real(s->shares[i].seconds, text[4]);
        put_real(s->shares[i].joules, text[5]);
        const char *cells[] = {kedge_cli_text(row, "tenant"),
                               kedge_cli_text(row, "site"),
                               text[0],
                               text[1],
                               text[2],
                               kedge_cli_text(row, "energy_quality"),
                               text[3],
                               text[4],
                               text[5]};
        kedge_cli_row(c, columns, COLUMNS, cells);
    }
    if (s->count > SHOWN_MAX) {
        kedge_cli_say(c, "... and %u more (--format json has all)\n", s->count - SHOWN_MAX);
    }
}

/* A sum over sites of which some are unknown is a lower bound, and has the sign for it. */
static void say_cost(struct kedge_cli *c, const char *name, const struct kedge_plan_round_cost *cost)
{
    kedge_cli_say(c, "%-14s %u sites, %.0f samples, %.4g seconds, ", name, cost->sites, cost->samples,
                  cost->seconds);
    if (cost->unknown == cost->sites) {
        kedge_cli_say(c, "joules unknown");
    } else {
        kedge_cli_say(c, "%s%.4g J", cost->unknown > 0 ? ">= " : "", cost->joules);
    }
    kedge_cli_say(c, cost->unknown > 0 && cost->unknown < cost->sites ? ", %u of %u sites unknown\n" : "\n",
                  cost->unknown, cost->sites);
}

/* Every figure of this answer is one of three: measured by a site, measured by the coordinator's clock, or
 * assumed. Which are which is told with the plan, since a plan by modelled energy is as good as the model. */
static void say_origin(struct kedge_cli *c, const struct sites *s)
{
    const uint32_t unknown = s->count - s->measured - s->modelled;
    kedge_cli_say(c, "\nMeasured: seconds of training of all sites, by themselves; joules of %u",
                  s->measured);
    if (!isnan(s->other_seconds)) {
        kedge_cli_say(c, "; %.3g seconds of a round beyond the slowest training, by the coordinator's clock",
                      s->other_seconds);
    }
    kedge_cli_say(c, ".\nAssumed: time and energy grow with the samples");
    if (s->modelled > 0) {
        kedge_cli_say(c, "; joules of %u sites are modelled", s->modelled);
    }
    if (unknown > 0 && s->measured + s->modelled > 0) {
        kedge_cli_say(c, "; %u sites that say no joules need as many a sample as the dearest that does",
                      unknown);
    } else if (unknown > 0) {
        kedge_cli_say(c, "; nobody says joules: energy decides nothing here");
    }
    kedge_cli_say(c, isnan(s->other_seconds)
                         ? "; uploads take no time (no clock was asked: leave out --record).\n"
                         : ".\n");
}

static json_t *cost_json(const struct kedge_plan_round_cost *cost)
{
    return json_pack(
        "{s:i,s:i,s:o,s:o,s:o,s:o}", "sites", (int)cost->sites, "unknown_sites", (int)cost->unknown,
        "samples", kedgei_json_number(cost->samples), "seconds", kedgei_json_number(cost->seconds), "joules",
        kedgei_json_number(cost->unknown == cost->sites && cost->sites > 0 ? (double)NAN : cost->joules),
        "worth", kedgei_json_number(cost->worth));
}

static int answer(struct kedge_cli *c, const char *job, const struct sites *s)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->count; i++) {
        json_t *row = json_deep_copy(json_array_get(s->list, i));
        json_object_set_new(row, "parts", json_integer(s->shares[i].parts));
        json_object_set_new(row, "train_samples", kedgei_json_number(s->shares[i].samples));
        json_object_set_new(row, "seconds", kedgei_json_number(s->shares[i].seconds));
        json_object_set_new(row, "joules", kedgei_json_number(s->shares[i].joules));
        json_array_append_new(list, row);
    }
    kedge_cli_say(c,
                  "Job %s, by what %u sites said in rounds %llu to %llu; weights of data, energy and time "
                  "%g, %g, %g\n\n",
                  job, s->count, (unsigned long long)s->first, (unsigned long long)s->last,
                  s->terms.data_weight, s->terms.energy_weight, s->terms.time_weight);
    say_sites(c, s);
    kedge_cli_say(c, "\n");
    say_cost(c, "this plan:", &s->plan);
    say_cost(c, "all data:", &s->all);
    say_origin(c, s);
    return kedge_cli_ok(c, json_pack("{s:s,s:[I,I],s:i,s:[f,f,f],s:o,s:o,s:o,s:o}", "job", job, "rounds",
                                     (json_int_t)s->first, (json_int_t)s->last, "parts", (int)s->terms.parts,
                                     "weights", s->terms.data_weight, s->terms.energy_weight,
                                     s->terms.time_weight, "sites", list, "plan", cost_json(&s->plan),
                                     "all_data", cost_json(&s->all), "other_seconds",
                                     kedgei_json_number(s->other_seconds)));
}

/* What rounds cost is read from the record, under guard. How long the rest of a round took is known to a
 * running coordinator alone; the plan is made without it, too. */
int kedge_cli_plan_of_sites(struct kedge_cli *c, const char *job)
{
    struct kedge_diag d = {.text = ""};
    char state[KEDGE_PATH_MAX];
    struct kedge_cli_costs q = {.state = state};
    struct sites s = {.other_seconds = (double)NAN};
    json_t *said = NULL, *shown = NULL;
    uint64_t rounds, parts;
    const char *record = kedge_cli_option(c, "record", NULL);
    if (kedge_id_from(kedge_view_str(job), &q.job) != KEDGE_OK) {
        return kedge_cli_usage(c, "--job %s: expected a job's name of a-z, 0-9, '.', '_', '-'",
                               kedge_cli_word(job).s);
    }
    if (!kedge_cli_number(c, "rounds", 1, 1000, ROUNDS, &rounds)
        || !kedge_cli_number(c, "parts", 1, KEDGE_PLAN_PARTS_MAX, PARTS, &parts) || !read_weights(c, &s.terms)
        || !kedge_cli_no_more(c, 0)) {
        return 2;
    }
    q.rounds = (uint32_t)rounds;
    s.terms.parts = (uint32_t)parts;
    int err = kedge_cli_find_state(record ? record : c->state, state, &d);
    if (!err) {
        err = kedge_cli_guarded(kedge_cli_costs, &q, &said, &d);
    }
    if (!err) {
        const json_t *list = json_object_get(said, "rounds");
        s.list = json_object_get(said, "sites");
        s.first = (uint64_t)kedge_cli_int(json_array_get(list, 0), "round");
        s.last = (uint64_t)kedge_cli_int(json_array_get(list, json_array_size(list) - 1), "round");
        struct kedge_diag ignored = {.text = ""};
        json_t *ask =
            json_pack("{s:s,s:s,s:I}", "verb", "job.show", "job", job, "from_round", (json_int_t)s.first);
        if (record) {
            json_decref(ask);
        } else if (kedge_cli_admin(c, ask, &shown, &ignored) == KEDGE_OK) {
            s.other_seconds = other_of(list, json_object_get(shown, "history"));
        }
        err = plan(&s, &d);
    }
    const int code = err ? kedge_cli_fail(c, err, &d) : answer(c, job, &s);
    kedge_mem_free(s.sites);
    kedge_mem_free(s.shares);
    json_decref(said);
    json_decref(shown);
    return code;
}
