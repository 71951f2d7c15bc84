/* kedge job list: all jobs that there ever were, the newest last, or a page of them in the order of names. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/nearest.h"
#include "common/base/os/utc.h"
#include "common/base/try.h"

enum { CELL = 32, NEWEST_MAX = 1000000 };

static int by_time(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int64_t s = kedge_cli_int(x, "created_ms"), t = kedge_cli_int(y, "created_ms");
    return s != t ? (s > t) - (s < t) : strcmp(kedge_cli_text(x, "job"), kedge_cli_text(y, "job"));
}

/* Answers come in the order of names. */
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

/* ---- which of them are shown ---- */

struct filter {
    const char *state, *name, *tenant; /* NULL: any */
    const char *after;                 /* NULL: from the first on */
    int64_t since_s;                   /* unix time, 0: whenever */
    uint64_t newest, limit;            /* 0: all */
};

static const char *const states[] = {"active",   "ended",  "pending", "queued",    "enrolling", "grouping",
                                     "training", "halted", "storing", "completed", "failed",    "cancelled"};
enum { STATE_COUNT = sizeof states / sizeof states[0] };

/* A day or a whole time, as the table shows them. */
static bool take_since(struct kedge_cli *c, int64_t *ret)
{
    const char *text = kedge_cli_option(c, "since", NULL);
    char whole[32];
    *ret = 0;
    if (!text) {
        return true;
    }
    const bool is_day = strlen(text) == strlen("2026-11-28");
    snprintf(whole, sizeof whole, "%.20s%s", text, is_day ? "T00:00:00Z" : "");
    if (strlen(text) < sizeof whole && kedge_utc_parse(whole, ret)) {
        return true;
    }
    (void)kedge_cli_usage(c, "--since %s: expected a day such as 2026-11-28, or 2026-11-28T17:45:09Z (UTC)",
                          kedge_cli_word(text).s);
    return false;
}

static bool take_state(struct kedge_cli *c, const char **ret)
{
    *ret = kedge_cli_option(c, "state-is", NULL);
    bool is_state = !*ret;
    for (size_t i = 0; i < STATE_COUNT; i++) {
        is_state = is_state || strcmp(*ret, states[i]) == 0;
    }
    if (!is_state) {
        const char *near = kedge_nearest(*ret, states, STATE_COUNT);
        (void)kedge_cli_usage(c, "--state-is %s: expected active, ended or a state%s%s%s",
                              kedge_cli_word(*ret).s, near ? "; did you mean " : "", near ? near : "",
                              near ? "?" : "");
    }
    return is_state;
}

static bool take_name(struct kedge_cli *c, const char *option, const char **ret)
{
    struct kedge_id id;
    *ret = kedge_cli_option(c, option, NULL);
    if (*ret && kedge_id_from(kedge_view_str(*ret), &id) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "--%s %s: expected a name of a-z, 0-9, '.', '_', '-'", option,
                              kedge_cli_word(*ret).s);
        return false;
    }
    return true;
}

static bool take_filter(struct kedge_cli *c, struct filter *ret)
{
    ret->name = kedge_cli_option(c, "name", NULL);
    if (!take_state(c, &ret->state) || !take_name(c, "tenant", &ret->tenant)
        || !take_name(c, "after", &ret->after) || !take_since(c, &ret->since_s)
        || !kedge_cli_number(c, "newest", 1, NEWEST_MAX, 0, &ret->newest)
        || !kedge_cli_number(c, "limit", 1, NEWEST_MAX, 0, &ret->limit) || !kedge_cli_no_more(c, 0)) {
        return false;
    }
    if (ret->newest > 0 && (ret->limit > 0 || ret->after)) {
        (void)kedge_cli_usage(c, "--newest looks at all jobs; --limit and --after go through them by name");
        return false;
    }
    return true;
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

/* Leaves the newest. */
static void keep_newest(const struct filter *f, json_t *list)
{
    while (f->newest > 0 && json_array_size(list) > f->newest) {
        json_array_remove(list, 0);
    }
}

/* ---- asking ---- */

/* The coordinator looks at state, time, tenant and how the name begins; the rest of a pattern is looked at
 * here. */
static json_t *request_of(const struct filter *f)
{
    json_t *o = json_pack("{s:s}", "verb", "job.list");
    struct kedge_id prefix;
    const size_t plain = f->name ? strcspn(f->name, "*?[\\") : 0;
    if (f->state) {
        json_object_set_new(o, "state", json_string(f->state));
    }
    if (f->tenant) {
        json_object_set_new(o, "tenant", json_string(f->tenant));
    }
    if (f->since_s > 0) {
        json_object_set_new(o, "since_ms", json_integer((json_int_t)f->since_s * 1000));
    }
    if (plain > 0 && kedge_id_from(kedge_view_of(f->name, plain), &prefix) == KEDGE_OK) {
        json_object_set_new(o, "prefix", json_string(prefix.s));
    }
    return o;
}

/* Takes what fits of an answer, up to the limit. True: there may be more of it. */
static bool take_jobs(const struct filter *f, const json_t *answer, json_t *all)
{
    const json_t *jobs = json_object_get(answer, "jobs"), *row;
    size_t i;
    json_array_foreach(jobs, i, row)
    {
        if (f->limit > 0 && json_array_size(all) == f->limit) {
            return true;
        }
        if (fits(f, row)) {
            json_array_append(all, json_array_get(jobs, i));
        }
    }
    return json_object_get(answer, "next") != NULL;
}

/* All that fit, or a page of them, however many answers they take. An answer may have none and say where to
 * go on: the coordinator looks at so many jobs at a time. */
static int ask_jobs(struct kedge_cli *c, const struct filter *f, json_t **ret, struct kedge_diag *d)
{
    json_auto_t *all = json_array();
    struct kedge_id from = {.s = ""}, next;
    bool more = true;
    while (more && (f->limit == 0 || json_array_size(all) < f->limit)) {
        json_auto_t *o = NULL;
        json_t *request = request_of(f);
        if (from.s[0] || f->after) {
            json_object_set_new(request, from.s[0] ? "from" : "after",
                                json_string(from.s[0] ? from.s : f->after));
        }
        KEDGE_TRY(kedge_cli_admin(c, request, &o, d));
        more = take_jobs(f, o, all);
        const char *text = json_string_value(json_object_get(o, "next"));
        if (text && (kedge_id_from(kedge_view_str(text), &next) || strcmp(next.s, from.s) <= 0)) {
            return kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator tells the same jobs again and again");
        }
        from = text ? next : from;
    }
    if (f->limit == 0 && !f->after) { /* people look for what came last */
        KEDGE_TRY(sort_jobs(all));
    }
    *ret = json_pack("{s:O,s:b}", "jobs", all, "more", (int)more);
    return KEDGE_OK;
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
    KEDGE_CLI_TRY(c, ask_jobs(c, &filter, &o, &d), &d);
    json_t *list = json_object_get(o, "jobs");
    keep_newest(&filter, list);
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
    if (json_is_true(json_object_get(o, "more"))) {
        kedge_cli_say(c, "More: --after %s\n",
                      kedge_cli_text(json_array_get(list, json_array_size(list) - 1), "job"));
    }
    return kedge_cli_ok(c, o);
}
