/* kedge job list: all jobs that there ever were, the newest last. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/nearest.h"
#include "common/base/os/utc.h"

enum { CELL = 32, NEWEST_MAX = 1000000 };

static int by_time(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int64_t s = kedge_cli_int(x, "created_ms"), t = kedge_cli_int(y, "created_ms");
    return s != t ? (s > t) - (s < t) : strcmp(kedge_cli_text(x, "job"), kedge_cli_text(y, "job"));
}

/* Answers come in the order of names; people look for what came last. */
static int sort_jobs(json_t *list)
{
    size_t count = json_array_size(list);
    json_t **rows = kedge_mem_new(count + 1, sizeof *rows);
    if (!rows) {
        return KEDGE_E_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        rows[i] = json_incref(json_array_get(list, i));
    }
    qsort(rows, count, sizeof *rows, by_time);
    for (size_t i = 0; i < count; i++) {
        json_array_set_new(list, i, rows[i]);
    }
    kedge_mem_free(rows);
    return KEDGE_OK;
}

/* All jobs, however many answers they take. */
static int ask_jobs(struct kedge_cli *c, json_t **ret, struct kedge_diag *d)
{
    json_t *all = json_array(), *request = json_pack("{s:s}", "verb", "job.list");
    struct kedge_id from = {.s = ""}, next;
    int err = KEDGE_OK;
    while (request && !err) {
        json_t *o = NULL;
        err = kedge_cli_admin(c, request, &o, d);
        request = NULL;
        json_array_extend(all, json_object_get(o, "jobs"));
        const char *text = json_string_value(json_object_get(o, "next"));
        if (!err && text && (kedge_id_from(kedge_view_str(text), &next) || strcmp(next.s, from.s) <= 0)) {
            err = kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator tells the same jobs again and again");
        } else if (!err && text) {
            from = next;
            request = json_pack("{s:s,s:s}", "verb", "job.list", "from", from.s);
        }
        json_decref(o);
    }
    if (!err) {
        err = sort_jobs(all);
    }
    if (err) {
        json_decref(all);
        return err;
    }
    *ret = json_pack("{s:o}", "jobs", all);
    return KEDGE_OK;
}

/* ---- which of them are shown ---- */

struct filter {
    const char *state, *name; /* NULL: any */
    uint64_t newest;          /* 0: all */
};

static const char *const states[] = {"active",   "ended",  "pending", "queued",    "enrolling", "grouping",
                                     "training", "halted", "storing", "completed", "failed",    "cancelled"};
enum { STATE_COUNT = sizeof states / sizeof states[0] };

static bool take_filter(struct kedge_cli *c, struct filter *ret)
{
    ret->state = kedge_cli_option(c, "state-is", NULL);
    ret->name = kedge_cli_option(c, "name", NULL);
    if (!kedge_cli_number(c, "newest", 1, NEWEST_MAX, 0, &ret->newest) || !kedge_cli_no_more(c, 0)) {
        return false;
    }
    bool is_state = !ret->state;
    for (size_t i = 0; i < STATE_COUNT; i++) {
        is_state = is_state || strcmp(ret->state, states[i]) == 0;
    }
    if (!is_state) {
        const char *near = kedge_nearest(ret->state, states, STATE_COUNT);
        (void)kedge_cli_usage(c, "--state-is %s: expected active, ended or a state%s%s%s",
                              kedge_cli_word(ret->state).s, near ? "; did you mean " : "", near ? near : "",
                              near ? "?" : "");
    }
    return is_state;
}

static bool has_ended(const char *state)
{
    return strcmp(state, "completed") == 0 || strcmp(state, "failed") == 0 || strcmp(state, "cancelled") == 0;
}

static bool fits(const struct filter *f, const json_t *job)
{
    const char *state = kedge_cli_text(job, "state");
    bool in_state = !f->state || strcmp(f->state, state) == 0
                    || strcmp(f->state, has_ended(state) ? "ended" : "active") == 0;
    return in_state && (!f->name || fnmatch(f->name, kedge_cli_text(job, "job"), 0) == 0);
}

/* Leaves in the list what fits, and of that the newest. */
static void filter_jobs(const struct filter *f, json_t *list)
{
    json_t *kept = json_array();
    const json_t *row;
    size_t i;
    json_array_foreach(list, i, row)
    {
        if (fits(f, row)) {
            json_array_append(kept, json_array_get(list, i));
        }
    }
    size_t count = json_array_size(kept), first = f->newest && count > f->newest ? count - f->newest : 0;
    json_array_clear(list);
    for (i = first; i < count; i++) {
        json_array_append(list, json_array_get(kept, i));
    }
    json_decref(kept);
}

int kedge_cmd_job_list(struct kedge_cli *c)
{
    static const struct kedge_column columns[] = {{"job", -24},  {"state", -10},     {"rounds", 11},
                                                  {"online", 6}, {"submitted", -17}, {"reason", -22}};
    struct kedge_diag d = {.text = ""};
    struct filter filter;
    json_t *o = NULL;
    const json_t *row;
    size_t i;
    if (!take_filter(c, &filter)) {
        return 2;
    }
    int err = ask_jobs(c, &o, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    json_t *list = json_object_get(o, "jobs");
    filter_jobs(&filter, list);
    kedge_cli_head(c, columns, 6);
    json_array_foreach(list, i, row)
    {
        char rounds[2 * CELL], online[CELL] = "-";
        snprintf(rounds, sizeof rounds, "%lld/%lld", (long long)kedge_cli_finished_rounds(row),
                 (long long)kedge_cli_int(row, "rounds"));
        if (json_object_get(row, "sites_online")) {
            snprintf(online, sizeof online, "%lld", (long long)kedge_cli_int(row, "sites_online"));
        }
        struct kedge_utc submitted =
            kedge_utc(kedge_cli_int(row, "created_ms") / 1000, KEDGE_UTC_MINUTES, "-");
        const char *cells[] = {
            kedge_cli_text(row, "job"),   kedge_cli_text(row, "state"), rounds, online, submitted.s,
            kedge_cli_text(row, "reason")};
        kedge_cli_row(c, columns, 6, cells);
    }
    return kedge_cli_ok(c, o);
}
