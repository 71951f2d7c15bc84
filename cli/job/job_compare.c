/* kedge job compare: two jobs side by side. What was asked of them (keys in which their specs differ,
 * defaults written out), and what came of it, round by round: accuracy, seconds, bytes that sites uploaded,
 * joules.
 *
 * Joules that were measured are shown as they are, those that sites computed from a model of their device
 * with a
 * "~"; the two are never added up, and where nobody says anything "-" stands, never 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/job/job_ask.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "job/keys.h"

enum { PRINTED_MAX = 2 * KEDGE_SPEC_MAX, KEY_MAX = 128, CELL = 48 };

struct side {
    const char *job;
    json_t *spec, *shown, *costs; /* owned */
    size_t shown_at, costs_at;    /* how far their rows were looked at */
};

/* ---- asking ---- */

/* From what the spec was read to: a default that is written out is no difference. */
static int ask_spec(struct kedge_cli *c, struct side *s, struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit), all KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_job_spec *spec KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *spec);
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    kedge_buf_init(&all, PRINTED_MAX);
    KEDGE_TRY_MEM(spec);
    KEDGE_TRY(kedge_cli_job_spec_text(c, s->job, &text, d));
    KEDGE_TRY(kedge_job_spec_parse(kedge_buf_view(&text), spec, d));
    kedge_job_spec_put(spec, &all);
    KEDGE_TRY(all.err);
    s->spec = json_loadb((const char *)all.ptr, all.len, 0, NULL);
    return s->spec ? KEDGE_OK : KEDGE_E_NOMEM;
}

static int ask_side(struct kedge_cli *c, struct side *s, struct kedge_diag *d)
{
    KEDGE_TRY(ask_spec(c, s, d));
    KEDGE_TRY(kedge_cli_job_rounds(c, "job.show", "history", s->job, &s->shown, d));
    return kedge_cli_job_rounds(c, "job.costs", "costs", s->job, &s->costs, d);
}

/* ---- specs ---- */

/* Appends a row for each leaf in which a and b differ; either may be NULL, where the other job does not have
 * it. */
static void put_differences(const char *key, const json_t *a, const json_t *b, json_t *rows)
{
    const json_t *const sides[] = {a, b};
    if (json_is_object(a) || json_is_object(b)) {
        for (int i = 0; i < 2; i++) {
            const char *name;
            json_t *value;
            json_object_foreach((json_t *)(uintptr_t)sides[i], name, value)
            {
                char inner[KEY_MAX];
                const bool twice = i == 1 && json_is_object(a) && json_object_get(a, name);
                snprintf(inner, sizeof inner, "%.60s%s%.60s", key, key[0] ? "." : "", name);
                if (!twice && strcmp(inner, "name") != 0) {
                    put_differences(inner, json_is_object(a) ? json_object_get(a, name) : NULL,
                                    json_is_object(b) ? json_object_get(b, name) : NULL, rows);
                }
            }
        }
        return;
    }
    if (!a || !b || !json_equal((json_t *)(uintptr_t)a, (json_t *)(uintptr_t)b)) {
        json_t *row = json_pack("{s:s}", "key", key);
        json_object_set(row, "a", a ? (json_t *)(uintptr_t)a : json_null());
        json_object_set(row, "b", b ? (json_t *)(uintptr_t)b : json_null());
        json_array_append_new(rows, row);
    }
}

static void say_value(const json_t *value, char *out, size_t size)
{
    char *text = json_is_null(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    snprintf(out, size, "%.*s", (int)size - 1, text ? text : "-");
    free(text);
}

static void say_specs(const struct kedge_cli *c, const struct side *sides, const json_t *rows)
{
    const struct kedge_column columns[] = {{"key", -28}, {sides[0].job, -34}, {sides[1].job, -34}};
    const json_t *row;
    size_t i;
    if (json_array_size(rows) == 0) {
        kedge_cli_say(c, "The specs differ in nothing but the name.\n");
        return;
    }
    kedge_cli_head(c, columns, 3);
    json_array_foreach(rows, i, row)
    {
        char a[CELL], b[CELL];
        say_value(json_object_get(row, "a"), a, sizeof a);
        say_value(json_object_get(row, "b"), b, sizeof b);
        const char *cells[] = {kedge_cli_text(row, "key"), a, b};
        kedge_cli_row(c, columns, 3, cells);
    }
}

/* ---- rounds ---- */

/* The row of this round, where it is; rows come in the order of rounds, and are asked for in it. */
static const json_t *row_of(const json_t *rows, int64_t round, size_t *at)
{
    while (*at < json_array_size(rows) && kedge_cli_int(json_array_get(rows, *at), "round") < round) {
        ++*at;
    }
    const json_t *row = json_array_get(rows, *at);
    return row && kedge_cli_int(row, "round") == round ? row : NULL;
}

static int64_t last_round(const json_t *rows)
{
    const size_t n = json_array_size(rows);
    return n > 0 ? kedge_cli_int(json_array_get(rows, n - 1), "round") : -1;
}

/* What one job's round was and cost, as one object; NULL: it has no such round. */
static json_t *round_of(struct side *s, int64_t round)
{
    static const char *const shown[] = {"selected", "accepted", "refused", "seconds", "accuracy", "loss"};
    static const char *const costs[] = {"upload_bytes",    "erased",          "site_seconds",
                                        "joules_measured", "joules_modelled", "untold"};
    const json_t *row = row_of(json_object_get(s->shown, "history"), round, &s->shown_at),
                 *cost = row_of(json_object_get(s->costs, "costs"), round, &s->costs_at);
    json_t *o = row ? json_object() : NULL;
    for (size_t i = 0; o && i < sizeof shown / sizeof shown[0]; i++) {
        json_object_set(o, shown[i], json_object_get(row, shown[i]));
    }
    for (size_t i = 0; o && cost && i < sizeof costs / sizeof costs[0]; i++) {
        json_object_set(o, costs[i], json_object_get(cost, costs[i]));
    }
    return o;
}

static json_t *rounds_of(struct side *sides)
{
    const int64_t a = last_round(json_object_get(sides[0].shown, "history")),
                  b = last_round(json_object_get(sides[1].shown, "history")), last = a > b ? a : b;
    json_t *rows = json_array();
    for (int64_t round = 0; round <= last; round++) {
        json_t *of_a = round_of(&sides[0], round), *of_b = round_of(&sides[1], round);
        if (of_a || of_b) {
            json_array_append_new(
                rows, json_pack("{s:I,s:o?,s:o?}", "round", (json_int_t)round, "a", of_a, "b", of_b));
        }
    }
    return rows;
}

/* Sums of what both have of every round; joules by their quality. */
static json_t *totals_of(const json_t *rows, const char *side)
{
    static const char *const keys[] = {"seconds", "upload_bytes", "site_seconds", "joules_measured",
                                       "joules_modelled"};
    json_t *sum = json_object();
    const json_t *row;
    size_t i;
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        double total = 0;
        bool any = false;
        json_array_foreach(rows, i, row)
        {
            const json_t *value = json_object_get(json_object_get(row, side), keys[k]);
            total += value ? json_number_value(value) : 0;
            any = any || value;
        }
        if (any) {
            json_object_set_new(sum, keys[k],
                                strcmp(keys[k], "upload_bytes") == 0 ? json_integer((json_int_t)total)
                                                                     : json_real(total));
        }
    }
    return sum;
}

struct cells {
    char s[4][CELL]; /* accuracy or loss, seconds, MB, joules */
};

static void fill(const json_t *o, struct cells *ret)
{
    const json_t *accuracy = json_object_get(o, "accuracy"), *loss = json_object_get(o, "loss"),
                 *measured = json_object_get(o, "joules_measured"),
                 *modelled = json_object_get(o, "joules_modelled");
    for (int i = 0; i < 4; i++) {
        snprintf(ret->s[i], CELL, "-");
    }
    if (accuracy || loss) {
        snprintf(ret->s[0], CELL, accuracy ? "%.4f" : "%.5g", json_number_value(accuracy ? accuracy : loss));
    }
    if (json_object_get(o, "seconds")) {
        snprintf(ret->s[1], CELL, "%.3f", kedge_cli_real(o, "seconds"));
    }
    if (json_object_get(o, "upload_bytes")) {
        snprintf(ret->s[2], CELL, "%.3f", kedge_cli_real(o, "upload_bytes") / 1e6);
    }
    if (measured || modelled) {
        snprintf(ret->s[3], CELL, "%s%.6g", measured ? "" : "~",
                 json_number_value(measured ? measured : modelled));
    }
}

static void say_rounds(const struct kedge_cli *c, const json_t *rows, const json_t *totals, bool loss)
{
    const struct kedge_column columns[] = {{"round", 5},
                                           {loss ? "loss A" : "accuracy A", 10},
                                           {loss ? "loss B" : "accuracy B", 10},
                                           {"s A", 8},
                                           {"s B", 8},
                                           {"MB A", 8},
                                           {"MB B", 8},
                                           {"J A", 9},
                                           {"J B", 9}};
    const size_t count = json_array_size(rows);
    kedge_cli_head(c, columns, 9);
    for (size_t i = 0; i <= count; i++) {
        const json_t *row = i < count ? json_array_get(rows, i) : totals;
        char round[CELL] = "all";
        struct cells a, b;
        fill(json_object_get(row, "a"), &a);
        fill(json_object_get(row, "b"), &b);
        if (i < count) {
            snprintf(round, sizeof round, "%lld", (long long)kedge_cli_int(row, "round"));
        }
        const char *cells[] = {round, a.s[0], b.s[0], a.s[1], b.s[1], a.s[2], b.s[2], a.s[3], b.s[3]};
        kedge_cli_row(c, columns, 9, cells);
    }
}

/* ---- the command ---- */

static json_t *head_of(const struct side *s)
{
    return json_pack("{s:s,s:s,s:I,s:I}", "job", s->job, "state", kedge_cli_text(s->shown, "state"), "round",
                     (json_int_t)kedge_cli_finished_rounds(s->shown), "rounds",
                     (json_int_t)kedge_cli_int(s->shown, "rounds"));
}

static int tell(struct kedge_cli *c, struct side *sides)
{
    json_t *specs = json_array(), *rows = rounds_of(sides);
    json_t *totals = json_pack("{s:o,s:o}", "a", totals_of(rows, "a"), "b", totals_of(rows, "b"));
    put_differences("", sides[0].spec, sides[1].spec, specs);
    for (int i = 0; i < 2; i++) {
        kedge_cli_say(c, "%c: job %s, %s, rounds %lld/%lld\n", 'A' + i, sides[i].job,
                      kedge_cli_text(sides[i].shown, "state"),
                      (long long)kedge_cli_finished_rounds(sides[i].shown),
                      (long long)kedge_cli_int(sides[i].shown, "rounds"));
    }
    kedge_cli_say(c, "\n");
    say_specs(c, sides, specs);
    if (json_array_size(rows) > 0) {
        kedge_cli_say(c, "\n");
        say_rounds(c, rows, totals, strcmp(kedge_cli_text(sides[0].shown, "metric"), "loss") == 0);
    }
    return kedge_cli_ok(c, json_pack("{s:o,s:o,s:o,s:o,s:o}", "a", head_of(&sides[0]), "b",
                                     head_of(&sides[1]), "spec", specs, "rounds", rows, "totals", totals));
}

int kedge_cmd_job_compare(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id names[2];
    struct side sides[2] = {{.job = NULL}};
    for (int i = 0; i < 2; i++) {
        const char *name = kedge_cli_argument(c, i);
        if (!name || kedge_id_from(kedge_view_str(name), &names[i]) != KEDGE_OK) {
            return kedge_cli_usage(c, "expected two jobs' names of a-z, 0-9, '.', '_', '-'");
        }
        sides[i].job = names[i].s;
    }
    if (!kedge_cli_no_more(c, 2)) {
        return 2;
    }
    int err = ask_side(c, &sides[0], &d);
    err = err ? err : ask_side(c, &sides[1], &d);
    const int code = err ? kedge_cli_fail(c, err, &d) : tell(c, sides);
    for (int i = 0; i < 2; i++) {
        json_decref(sides[i].spec);
        json_decref(sides[i].shown);
        json_decref(sides[i].costs);
    }
    return code;
}
