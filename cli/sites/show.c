/* Values of answers, and the table of a job's rounds. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

enum { CELL = 24, GROUPS_WIDTH = 38 };

/* Answers of a coordinator are read without trust in their form: what is missing or of another type is empty
 * or 0, and never a pointer that nobody may use. */
const char *kedge_cli_text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

int64_t kedge_cli_int(const json_t *o, const char *key)
{
    return (int64_t)json_integer_value(json_object_get(o, key));
}

/* "round" of a job that runs is the one under way. A halted job may stand between two rounds or in one:
 * round_open says which. */
int64_t kedge_cli_finished_rounds(const json_t *job)
{
    const char *state = kedge_cli_text(job, "state");
    int64_t round = kedge_cli_int(job, "round");
    if (strcmp(state, "completed") == 0 || strcmp(state, "failed") == 0 || strcmp(state, "cancelled") == 0) {
        return round;
    }
    bool is_between = strcmp(state, "halted") == 0 || strcmp(state, "storing") == 0;
    bool is_under_way = !is_between || json_is_true(json_object_get(job, "round_open"));
    return is_under_way && round > 0 ? round - 1 : round;
}

/* True when the member is a real in a string, as answers hold them, or a plain number. */
static bool get_real(const json_t *o, const char *key, double *ret)
{
    const json_t *v = json_object_get(o, key);
    if (json_is_string(v)) {
        return kedge_real_decode(kedge_view_str(json_string_value(v)), ret) == KEDGE_OK;
    }
    if (json_is_number(v)) {
        *ret = json_number_value(v);
        return true;
    }
    return false;
}

double kedge_cli_real(const json_t *o, const char *key)
{
    double v = 0;
    return get_real(o, key, &v) ? v : 0;
}

/* "97.4" or, of a job whose metric is the loss, "0.1832"; "-" when nobody has measured it. */
static void put_metric(const json_t *o, bool loss, char out[CELL])
{
    double v;
    if (loss && get_real(o, "loss", &v)) {
        snprintf(out, CELL, "%.4g", v);
    } else if (!loss && get_real(o, "accuracy", &v)) {
        snprintf(out, CELL, "%.1f", 100 * v);
    } else {
        snprintf(out, CELL, "-");
    }
}

/* One accuracy or loss a group, in the order of groups; "+3" for those that find no room. */
static void put_groups(const json_t *groups, bool loss, char out[GROUPS_WIDTH + 1])
{
    size_t count = json_array_size(groups), used = 0;
    out[0] = '\0';
    for (size_t g = 0; g < count; g++) {
        char metric[CELL], word[CELL + 2];
        put_metric(json_array_get(groups, g), loss, metric);
        int n = snprintf(word, sizeof word, "%s%5s", g ? " " : "", metric);
        size_t room = g + 1 < count ? 5 : 0; /* for " +127" */
        if (n < 0 || used + (size_t)n + room > GROUPS_WIDTH) {
            snprintf(out + used, GROUPS_WIDTH + 1 - used, " +%zu", count - g);
            return;
        }
        memcpy(out + used, word, (size_t)n + 1);
        used += (size_t)n;
    }
}

enum { ROUND_COLUMNS = 7 };
static const struct kedge_column round_columns[2][ROUND_COLUMNS] = {
    {{"round", 5},
     {"sites", 9},
     {"seconds", 8},
     {"statements", 10},
     {"accuracy %", 10},
     {"refused", 7},
     {"accuracy by group %", -GROUPS_WIDTH}},
    {{"round", 5}, /* where the metric is the loss */
     {"sites", 9},
     {"seconds", 8},
     {"statements", 10},
     {"loss", 10},
     {"refused", 7},
     {"loss by group", -GROUPS_WIDTH}},
};

static void show_round(const struct kedge_cli *c, const json_t *row, bool loss)
{
    char round[CELL], sites[2 * CELL], seconds[CELL] = "-", statements[CELL] = "-", metric[CELL],
                                       refused[CELL];
    char groups[GROUPS_WIDTH + 1];
    double s;
    snprintf(round, sizeof round, "%lld", (long long)kedge_cli_int(row, "round"));
    snprintf(sites, sizeof sites, "%lld/%lld", (long long)kedge_cli_int(row, "accepted"),
             (long long)kedge_cli_int(row, "selected"));
    if (get_real(row, "seconds", &s)) {
        snprintf(seconds, sizeof seconds, s < 100000 ? "%.2f" : "%.0f", s);
    }
    if (json_object_get(row, "statements")) { /* a tenant is not told what others' ledgers hold */
        snprintf(statements, sizeof statements, "%lld", (long long)kedge_cli_int(row, "statements"));
    }
    snprintf(refused, sizeof refused, "%lld", (long long)kedge_cli_int(row, "refused"));
    put_metric(row, loss, metric);
    put_groups(json_object_get(row, "groups"), loss, groups);
    const char *cells[ROUND_COLUMNS] = {round, sites, seconds, statements, metric, refused, groups};
    kedge_cli_row(c, round_columns[loss], ROUND_COLUMNS, cells);
}

/* The head stands above the first round only, so that callers may print a job's rounds as they come. */
void kedge_cli_show_rounds(const struct kedge_cli *c, const json_t *job, uint32_t from_round)
{
    const json_t *history = json_object_get(job, "history"), *row;
    bool loss = strcmp(kedge_cli_text(job, "metric"), "loss") == 0;
    size_t i;
    json_array_foreach(history, i, row)
    {
        if (kedge_cli_int(row, "round") < (int64_t)from_round) {
            continue;
        }
        if (i == 0 && from_round <= 1) {
            kedge_cli_head(c, round_columns[loss], ROUND_COLUMNS);
        }
        show_round(c, row, loss);
    }
}

struct kedge_cli_span kedge_cli_span(uint64_t seconds)
{
    static const struct {
        uint64_t seconds;
        const char *one, *many;
    } units[] = {{86400, "a day", "days"}, {3600, "an hour", "hours"}, {60, "a minute", "minutes"}};
    struct kedge_cli_span span;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        uint64_t count = seconds / units[i].seconds;
        if (count == 0 || seconds % units[i].seconds != 0) {
            continue;
        }
        if (count == 1) {
            snprintf(span.s, sizeof span.s, "%s", units[i].one);
        } else {
            snprintf(span.s, sizeof span.s, "%llu %s", (unsigned long long)count, units[i].many);
        }
        return span;
    }
    snprintf(span.s, sizeof span.s, "%llu second%s", (unsigned long long)seconds, seconds == 1 ? "" : "s");
    return span;
}
