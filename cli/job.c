/* kedge job list, show, watch, wait, logs, stop, resume. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/job_spec.h"
#include "cli/cli.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"

enum {
    POLL_MS = 200,
    AWAY_MAX_MS = 60000, /* a coordinator may be restarted while somebody watches */
    TIMEOUT_MAX_S = 365 * 86400,
    PAGE_ROUNDS = 512, /* rounds in one answer */
    PAGES_MAX = 4096,
    CELL = 32,
};
#define NS_PER_S 1000000000u

/* JOB and nothing behind it; false after a usage error. */
static bool take_job(struct kedge_cli *c, struct kedge_id *job)
{
    const char *name = kedge_cli_argument(c, 0);
    if (!name || kedge_id_from(kedge_view_str(name), job) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "JOB: expected a job's name of a-z, 0-9, '.', '_', '-'");
        return false;
    }
    return kedge_cli_no_more(c, 1);
}

/* ---- list, show, logs ---- */

int kedge_cmd_job_list(struct kedge_cli *c)
{
    static const struct kedge_column columns[] = {
        {"job", -32}, {"state", -10}, {"rounds", 13}, {"sites online", 12}, {"reason", -24}};
    struct kedge_diag d = {.text = ""};
    json_t *o = NULL;
    const json_t *row;
    size_t i;
    if (!kedge_cli_no_more(c, 0)) {
        return 2;
    }
    int err = kedge_cli_admin(c, json_pack("{s:s}", "verb", "job.list"), &o, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    const json_t *list = json_object_get(o, "jobs");
    kedge_cli_head(c, columns, 5);
    json_array_foreach(list, i, row)
    {
        char rounds[2 * CELL], online[CELL] = "-";
        snprintf(rounds, sizeof rounds, "%lld/%lld", (long long)kedge_cli_int(row, "round"),
                 (long long)kedge_cli_int(row, "rounds"));
        if (json_object_get(row, "sites_online")) {
            snprintf(online, sizeof online, "%lld", (long long)kedge_cli_int(row, "sites_online"));
        }
        const char *cells[] = {kedge_cli_text(row, "job"), kedge_cli_text(row, "state"), rounds, online,
                               kedge_cli_text(row, "reason")};
        kedge_cli_row(c, columns, 5, cells);
    }
    return kedge_cli_ok(c, o);
}

static int ask_job(struct kedge_cli *c, const char *job, uint64_t from, json_t **ret, struct kedge_diag *d)
{
    return kedge_cli_admin(
        c, json_pack("{s:s,s:s,s:I}", "verb", "job.show", "job", job, "from_round", (json_int_t)from), ret,
        d);
}

static int64_t last_round(const json_t *history)
{
    size_t n = json_array_size(history);
    return n > 0 ? kedge_cli_int(json_array_get(history, n - 1), "round") : -1;
}

/* The job with all its rounds from `from` on, however many answers they take. */
static int ask_whole_job(struct kedge_cli *c, const char *job, uint64_t from, json_t **ret,
                         struct kedge_diag *d)
{
    json_t *whole = NULL;
    int err = ask_job(c, job, from, &whole, d);
    if (err) {
        return err;
    }
    json_t *history = json_object_get(whole, "history");
    size_t got = json_array_size(history);
    for (int page = 0; page < PAGES_MAX && got >= PAGE_ROUNDS; page++) {
        json_t *more = NULL;
        err = ask_job(c, job, (uint64_t)last_round(history) + 1, &more, d);
        if (err) {
            json_decref(whole);
            return err;
        }
        got = json_array_size(json_object_get(more, "history"));
        json_array_extend(history, json_object_get(more, "history"));
        json_decref(more);
    }
    *ret = whole;
    return KEDGE_OK;
}

static void say_job(const struct kedge_cli *c, const json_t *o)
{
    const json_t *missing = json_object_get(o, "tenants_missing"), *tenant;
    size_t i;
    kedge_cli_say(c, "job      %s\nstate    %s\nrounds   %lld/%lld\nspec     %s\n", kedge_cli_text(o, "job"),
                  kedge_cli_text(o, "state"), (long long)kedge_cli_int(o, "round"),
                  (long long)kedge_cli_int(o, "rounds"), kedge_cli_text(o, "spec"));
    if (kedge_cli_text(o, "strategy")[0]) {
        kedge_cli_say(c, "strategy %s, rule %s, server %s\n", kedge_cli_text(o, "strategy"),
                      kedge_cli_text(o, "rule"), kedge_cli_text(o, "server"));
    }
    if (kedge_cli_text(o, "reason")[0]) {
        kedge_cli_say(c, "reason   %s: %s\n", kedge_cli_text(o, "reason"), kedge_cli_text(o, "reason_text"));
    }
    if (json_object_get(o, "sites_online")) {
        kedge_cli_say(c, "sites    %lld online, %lld selected, %lld accepted, %lld refused\n",
                      (long long)kedge_cli_int(o, "sites_online"), (long long)kedge_cli_int(o, "selected"),
                      (long long)kedge_cli_int(o, "accepted"), (long long)kedge_cli_int(o, "refused"));
    }
    json_array_foreach(missing, i, tenant)
    {
        const char *name = json_string_value(tenant);
        kedge_cli_say(c, "missing  tenant %s has not joined\n", name ? name : "");
    }
    if (json_array_size(json_object_get(o, "history")) > 0) {
        kedge_cli_say(c, "\n");
    }
}

int kedge_cmd_job_show(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id job;
    json_t *o = NULL;
    if (!take_job(c, &job)) {
        return 2;
    }
    int err = ask_whole_job(c, job.s, 0, &o, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    say_job(c, o);
    kedge_cli_show_rounds(c, o, 0);
    return kedge_cli_ok(c, o);
}

/* One line, to be read by people and by grep: "round=3 accepted=8/8 …". */
static void say_log(const struct kedge_cli *c, const json_t *row)
{
    const json_t *groups = json_object_get(row, "groups"), *group;
    size_t i;
    kedge_cli_say(c, "round=%lld accepted=%lld/%lld refused=%lld statements=%lld",
                  (long long)kedge_cli_int(row, "round"), (long long)kedge_cli_int(row, "accepted"),
                  (long long)kedge_cli_int(row, "selected"), (long long)kedge_cli_int(row, "refused"),
                  (long long)kedge_cli_int(row, "statements"));
    if (json_object_get(row, "seconds")) {
        kedge_cli_say(c, " seconds=%.3f", kedge_cli_real(row, "seconds"));
    }
    if (json_object_get(row, "accuracy")) {
        kedge_cli_say(c, " accuracy=%.4f", kedge_cli_real(row, "accuracy"));
    }
    json_array_foreach(groups, i, group)
    {
        if (json_array_size(groups) > 1 && json_object_get(group, "accuracy")) {
            kedge_cli_say(c, " g%lld=%.4f", (long long)kedge_cli_int(group, "group"),
                          kedge_cli_real(group, "accuracy"));
        }
    }
    kedge_cli_say(c, "\n");
}

int kedge_cmd_job_logs(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id job;
    uint64_t from;
    json_t *o = NULL;
    const json_t *row;
    size_t i;
    if (!kedge_cli_number(c, "from", 0, UINT32_MAX, 0, &from) || !take_job(c, &job)) {
        return 2;
    }
    int err = ask_whole_job(c, job.s, from, &o, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    const json_t *history = json_object_get(o, "history");
    json_array_foreach(history, i, row)
    {
        say_log(c, row);
    }
    return kedge_cli_ok(c, o);
}

/* ---- watch, wait ---- */

static bool has_ended(const json_t *job)
{
    const char *s = kedge_cli_text(job, "state");
    return strcmp(s, "completed") == 0 || strcmp(s, "failed") == 0 || strcmp(s, "cancelled") == 0;
}

static int end_code(const json_t *job)
{
    return strcmp(kedge_cli_text(job, "state"), "completed") == 0 ? 0 : 1;
}

/* As ask_job; once it has answered, a coordinator may be away for a while. */
struct poll {
    bool answered;
    uint64_t last_ns;
};

static int poll_job(struct kedge_cli *c, struct poll *p, const char *job, uint64_t from, json_t **ret,
                    struct kedge_diag *d)
{
    uint64_t most_ns = (uint64_t)AWAY_MAX_MS * 1000000u;
    int err = ask_job(c, job, from, ret, d);
    if (!err) {
        p->answered = true;
        p->last_ns = kedge_os_now_ns();
    } else if (p->answered && kedge_err_class(err) == KEDGE_CLASS_RETRY
               && kedge_os_now_ns() - p->last_ns < most_ns) {
        *ret = NULL;
        err = KEDGE_OK;
    }
    return err;
}

/* Prints the rounds behind *next whose evaluation is over: sites measure a round's models in the next round,
 * so the newest row waits until there is one behind it or the job has ended. */
static void print_new_rounds(struct kedge_cli *c, json_t *job, int64_t *printed)
{
    json_t *history = json_object_get(job, "history");
    size_t n = json_array_size(history);
    if (n > 0 && !has_ended(job)) {
        json_array_remove(history, n - 1);
    }
    if (last_round(history) > *printed) {
        kedge_cli_progress_end(c);
        kedge_cli_show_rounds(c, job, (uint32_t)(*printed + 1));
        *printed = last_round(history);
    }
}

static void draw_progress(const struct kedge_cli *c, const json_t *job)
{
    char text[128];
    int64_t round = kedge_cli_int(job, "round"), rounds = kedge_cli_int(job, "rounds");
    bool open = json_is_true(json_object_get(job, "round_open"));
    snprintf(text, sizeof text, "%.12s, %lld of %lld sites%s", kedge_cli_text(job, "state"),
             (long long)kedge_cli_int(job, "accepted"), (long long)kedge_cli_int(job, "selected"),
             open ? "" : ", closing");
    kedge_cli_progress(c, kedge_cli_text(job, "job"), round > 0 ? (uint64_t)round : 0,
                       rounds > 0 ? (uint64_t)rounds : 0, text);
}

/* After Ctrl-C: the job itself does not depend on who watches. */
static int leave_job(struct kedge_cli *c, const char *verb, const char *job)
{
    return kedge_cli_interrupt_end(c, "interrupted; the job goes on",
                                   "again: kedge job %s %s; end it: kedge job stop %s --cancel", verb, job,
                                   job);
}

int kedge_cmd_job_watch(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id job;
    struct poll p = {.answered = false};
    int64_t printed = -1;
    bool ended = false;
    json_t *o = NULL;
    if (!take_job(c, &job)) {
        return 2;
    }
    kedge_cli_catch_interrupt();
    while (!ended) { /* from the last printed round on, so that the table's head comes once */
        int err = poll_job(c, &p, job.s, printed > 0 ? (uint64_t)printed : 0, &o, &d);
        if (err) {
            kedge_cli_progress_end(c);
            return kedge_cli_fail(c, err, &d);
        }
        size_t rows = json_array_size(json_object_get(o, "history"));
        if (o) {
            print_new_rounds(c, o, &printed);
            draw_progress(c, o);
        }
        ended = o && has_ended(o) && rows < PAGE_ROUNDS;
        json_decref(o);
        o = NULL;
        if (!ended && (rows < PAGE_ROUNDS ? kedge_cli_pause(POLL_MS) : kedge_cli_interrupted())) {
            return leave_job(c, "watch", job.s);
        }
    }
    kedge_cli_progress_end(c);
    int err = ask_whole_job(c, job.s, 0, &o, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    kedge_cli_say(c, "Job %s: %s%s%s\n", job.s, kedge_cli_text(o, "state"),
                  kedge_cli_text(o, "reason")[0] ? ": " : "", kedge_cli_text(o, "reason_text"));
    return kedge_cli_answer(c, o, end_code(o));
}

int kedge_cmd_job_wait(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id job;
    struct poll p = {.answered = false};
    uint64_t timeout_s;
    if (!kedge_cli_number(c, "timeout", 0, TIMEOUT_MAX_S, 0, &timeout_s) || !take_job(c, &job)) {
        return 2;
    }
    kedge_cli_catch_interrupt();
    uint64_t deadline = timeout_s ? kedge_os_now_ns() + timeout_s * NS_PER_S : KEDGE_TIME_NEVER;
    for (;;) {
        json_t *o = NULL;
        int err = poll_job(c, &p, job.s, UINT32_MAX, &o, &d); /* no rounds: only the state is wanted */
        if (err) {
            return kedge_cli_fail(c, err, &d);
        }
        if (o && has_ended(o)) {
            return kedge_cli_answer(c, o, end_code(o));
        }
        json_decref(o);
        if (kedge_os_now_ns() >= deadline) {
            (void)kedge_diag_set(&d, KEDGE_E_TIMEOUT, "job %s has not ended within %llu seconds", job.s,
                                 (unsigned long long)timeout_s);
            (void)kedge_diag_hint(&d, "it goes on: kedge job watch %s, kedge job show %s", job.s, job.s);
            return kedge_cli_fail(c, KEDGE_E_TIMEOUT, &d);
        }
        if (kedge_cli_pause(POLL_MS)) {
            return leave_job(c, "wait", job.s);
        }
    }
}

/* ---- stop, resume ---- */

static int change_job(struct kedge_cli *c, const char *verb, const char *after)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id job;
    json_t *o = NULL;
    if (!take_job(c, &job)) {
        return 2;
    }
    int err = kedge_cli_admin(c, json_pack("{s:s,s:s}", "verb", verb, "job", job.s), &o, &d);
    if (!err && has_ended(o) && strcmp(verb, "job.cancel") != 0) { /* still known, but beyond any change */
        err = kedge_diag_set(&d, KEDGE_E_STATE, "job %s has ended: it is %s", job.s,
                             kedge_cli_text(o, "state"));
        json_decref(o);
    }
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    kedge_cli_say(c, "Job %s %s.\n", job.s, after);
    return kedge_cli_ok(c, o);
}

int kedge_cmd_job_stop(struct kedge_cli *c)
{
    return kedge_cli_flag(c, "cancel") ? change_job(c, "job.cancel", "ends for good")
                                       : change_job(c, "job.halt", "halts; kedge job resume lets it go on");
}

int kedge_cmd_job_resume(struct kedge_cli *c)
{
    return change_job(c, "job.resume", "goes on");
}
