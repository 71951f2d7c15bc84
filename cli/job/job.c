/* kedge job show, watch, wait, logs, stop, resume. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/events/wake.h"
#include "cli/job/job_ask.h"
#include "cli/local.h"
#include "cli/receipt.h"
#include "common/base/os/clock.h"
#include "common/base/os/utc.h"
#include "common/base/try.h"
#include "job/job_spec.h"

enum {
    POLL_MS = 200,
    CANCEL_WAIT_S = 15,  /* a disk that is only slow has stored the end by then */
    AWAY_MAX_MS = 60000, /* a coordinator may be restarted while somebody watches */
    TIMEOUT_MAX_S = 365 * 86400,
    CELL = 32,
};
#define NS_PER_S 1000000000u

/* JOB and nothing after it; false after a usage error. */
static bool take_job(struct kedge_cli *c, struct kedge_id *job)
{
    const char *name = kedge_cli_argument(c, 0);
    if (!name || kedge_id_from(kedge_view_str(name), job) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "JOB: expected a job's name of a-z, 0-9, '.', '_', '-'");
        return false;
    }
    return kedge_cli_no_more(c, 1);
}

/* ---- show, logs ---- */

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

/* The round to go on with after this answer; UINT64_MAX: there are no more. One that was asked for before is
 * no answer, else the loops that follow pages would never end. */
static int next_page(const json_t *o, uint64_t from, uint64_t *ret, struct kedge_diag *d)
{
    const json_t *next = json_object_get(o, "next_round");
    *ret = next ? (uint64_t)json_integer_value(next) : UINT64_MAX;
    return !next || (json_integer_value(next) > 0 && *ret > from)
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator tells the same rounds again and again");
}

/* Appends the rounds of later pages. */
static int ask_more(struct kedge_cli *c, const char *job, uint64_t from, json_t *whole, struct kedge_diag *d)
{
    uint64_t next;
    KEDGE_TRY(next_page(whole, from, &next, d));
    while (next != UINT64_MAX) {
        json_auto_t *more = NULL;
        from = next;
        KEDGE_TRY(ask_job(c, job, from, &more, d));
        json_array_extend(json_object_get(whole, "history"), json_object_get(more, "history"));
        if (json_object_get(more, "budget")) { /* of an ended job the last page has it */
            json_object_set(whole, "budget", json_object_get(more, "budget"));
        }
        KEDGE_TRY(next_page(more, from, &next, d));
    }
    return KEDGE_OK;
}

/* The job with all its rounds from `from` on, however many answers they take. */
static int ask_whole_job(struct kedge_cli *c, const char *job, uint64_t from, json_t **ret,
                         struct kedge_diag *d)
{
    json_auto_t *whole = NULL;
    KEDGE_TRY(ask_job(c, job, from, &whole, d));
    KEDGE_TRY(ask_more(c, job, from, whole, d));
    json_object_del(whole, "next_round");
    *ret = json_incref(whole);
    return KEDGE_OK;
}

/* Learnt from the job's sites. */
static void say_classes(const struct kedge_cli *c, const json_t *o)
{
    const json_t *classes = json_object_get(o, "classes"), *name;
    size_t i;
    json_array_foreach(classes, i, name)
    {
        const char *text = json_string_value(name);
        kedge_cli_say(c, "%s%s", i ? ", " : "classes  ", text ? text : "");
    }
    kedge_cli_say(c, "%s", json_array_size(classes) > 0 ? "\n" : "");
}

/* What the job's trainings may take, have taken, and the next round may take. */
static void say_budget(const struct kedge_cli *c, const json_t *o)
{
    const json_t *budget = json_object_get(o, "budget");
    if (!budget) {
        return;
    }
    kedge_cli_say(c, "budget   %.6g of %.6g %s are spent", kedge_cli_real(budget, "spent"),
                  kedge_cli_real(budget, "most"), kedge_cli_text(budget, "unit"));
    if (json_object_get(budget, "next_round")) {
        kedge_cli_say(c, "; a round opens where %.6g are left", kedge_cli_real(budget, "next_round"));
    }
    kedge_cli_say(c, "\n");
}

static void say_deadline(const struct kedge_cli *c, const json_t *o)
{
    if (json_object_get(o, "deadline_ms")) {
        const uint64_t ms = (uint64_t)kedge_cli_int(o, "deadline_ms");
        kedge_cli_say(c, "deadline %s%s\n", kedge_utc((int64_t)(ms / 1000), KEDGE_UTC_RFC3339, "?").s,
                      json_is_true(json_object_get(o, "deadline_passed")) ? ", which has passed" : "");
    }
}

/* Which targets there are, for how many evaluations in a row they are reached, and how many that have to be.
 */
static void say_targets(const struct kedge_cli *c, const json_t *o)
{
    const json_t *targets = json_object_get(o, "targets");
    const json_t *values = json_object_get(targets, "values"), *held = json_object_get(targets, "held"),
                 *value;
    size_t i;
    json_array_foreach(values, i, value)
    {
        kedge_cli_say(c, "target   %.6g %s: %lld of %lld evaluations in a row\n", json_number_value(value),
                      (long long)i < (long long)kedge_cli_int(targets, "reached") ? "is reached"
                                                                                  : "is not reached",
                      (long long)json_integer_value(json_array_get(held, i)),
                      (long long)kedge_cli_int(targets, "hold"));
    }
}

/* What the open round plans: of each site the part of its data, and what that takes by what it said last. */
static void say_plan(const struct kedge_cli *c, const json_t *o)
{
    enum { COLUMNS = 6 };
    static const struct kedge_column columns[COLUMNS] = {{"tenant", -16}, {"site", -16},  {"percent", 7},
                                                         {"samples", 9},  {"seconds", 9}, {"joules", 9}};
    static const char *const reals[] = {"samples", "seconds", "joules"};
    const json_t *plan = json_object_get(o, "plan"), *sites = json_object_get(plan, "sites"), *row;
    size_t i;
    if (!plan) {
        return;
    }
    kedge_cli_say(c, "\nPlan of round %lld: %lld sites, %lld samples, %.4g seconds, %.4g J",
                  (long long)kedge_cli_int(plan, "round"), (long long)kedge_cli_int(plan, "sites_planned"),
                  (long long)kedge_cli_int(plan, "samples"), kedge_cli_real(plan, "seconds"),
                  kedge_cli_real(plan, "joules"));
    kedge_cli_say(c, "; %lld not measured yet, %lld say no joules\n",
                  (long long)kedge_cli_int(plan, "unmeasured"),
                  (long long)kedge_cli_int(plan, "untold_joules"));
    kedge_cli_head(c, columns, COLUMNS);
    json_array_foreach(sites, i, row)
    {
        char text[4][CELL];
        snprintf(text[0], CELL, "%lld", (long long)kedge_cli_int(row, "percent"));
        for (size_t k = 0; k < 3; k++) {
            const json_t *v = json_object_get(row, reals[k]);
            snprintf(text[k + 1], CELL, v ? "%.4g" : "-", json_number_value(v));
        }
        const char *cells[COLUMNS] = {
            kedge_cli_text(row, "tenant"), kedge_cli_text(row, "site"), text[0], text[1], text[2], text[3]};
        kedge_cli_row(c, columns, COLUMNS, cells);
    }
    const long long more = kedge_cli_int(plan, "sites_planned") - (long long)json_array_size(sites);
    if (more > 0) {
        kedge_cli_say(c, "... and %lld more\n", more);
    }
}

static void say_job(const struct kedge_cli *c, const json_t *o)
{
    const json_t *missing = json_object_get(o, "tenants_missing"), *tenant;
    size_t i;
    kedge_cli_say(c, "job      %s\nstate    %s\nrounds   %lld/%lld\nspec     %s\n", kedge_cli_text(o, "job"),
                  kedge_cli_text(o, "state"), (long long)kedge_cli_finished_rounds(o),
                  (long long)kedge_cli_int(o, "rounds"), kedge_cli_text(o, "spec"));
    if (kedge_cli_text(o, "strategy")[0]) {
        kedge_cli_say(c, "strategy %s, rule %s, server %s\n", kedge_cli_text(o, "strategy"),
                      kedge_cli_text(o, "rule"), kedge_cli_text(o, "server"));
    }
    say_classes(c, o);
    say_budget(c, o);
    say_targets(c, o);
    say_deadline(c, o);
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
    kedge_cli_show_troubles(c, o);
    say_plan(c, o);
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

/* " upload_bytes=1234 joules_measured=5.5 untold=2" */
static void say_costs(const struct kedge_cli *c, const json_t *row)
{
    static const char *const reals[] = {"site_seconds", "joules_measured", "joules_modelled"};
    static const char *const counts[] = {"upload_bytes", "untold", "erased", "trained_samples",
                                         "data_samples"};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (kedge_cli_int(row, counts[i]) > 0) {
            kedge_cli_say(c, " %s=%lld", counts[i], (long long)kedge_cli_int(row, counts[i]));
        }
    }
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        if (json_object_get(row, reals[i])) {
            kedge_cli_say(c, " %s=%.6g", reals[i], kedge_cli_real(row, reals[i]));
        }
    }
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
    } else if (json_object_get(row, "loss")) {
        kedge_cli_say(c, " loss=%.6g", kedge_cli_real(row, "loss"));
    }
    json_array_foreach(groups, i, group)
    {
        const char *key = json_object_get(row, "accuracy") ? "accuracy" : "loss";
        if (json_array_size(groups) > 1 && json_object_get(group, key)) {
            kedge_cli_say(c, strcmp(key, "loss") == 0 ? " g%lld=%.6g" : " g%lld=%.4f",
                          (long long)kedge_cli_int(group, "group"), kedge_cli_real(group, key));
        }
    }
    say_costs(c, row);
    kedge_cli_say(c, "\n");
}

/* Puts what each round cost into its row: both come in the order of rounds. */
static int add_costs(struct kedge_cli *c, const char *job, json_t *history, struct kedge_diag *d)
{
    json_auto_t *o = NULL;
    size_t i, at = 0;
    json_t *row;
    KEDGE_TRY(kedge_cli_job_rounds(c, "job.costs", "costs", job, &o, d));
    const json_t *costs = json_object_get(o, "costs");
    json_array_foreach(history, i, row)
    {
        const int64_t round = kedge_cli_int(row, "round");
        while (at < json_array_size(costs) && kedge_cli_int(json_array_get(costs, at), "round") < round) {
            at++;
        }
        if (kedge_cli_int(json_array_get(costs, at), "round") == round) {
            json_object_update_missing(row, json_array_get(costs, at));
        }
    }
    return KEDGE_OK;
}

int kedge_cmd_job_logs(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id job;
    uint64_t from;
    json_t *o = NULL;
    const json_t *row;
    size_t i;
    const bool costs = kedge_cli_flag(c, "costs");
    if (!kedge_cli_number(c, "from", 0, UINT32_MAX, 0, &from) || !take_job(c, &job)) {
        return 2;
    }
    int err = ask_whole_job(c, job.s, from, &o, &d);
    if (!err && costs) {
        err = add_costs(c, job.s, json_object_get(o, "history"), &d);
    }
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    const json_t *history = json_object_get(o, "history");
    json_array_foreach(history, i, row)
    {
        say_log(c, row);
    }
    kedge_cli_show_troubles(c, o);
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

/* Prints the rounds after *printed whose evaluation is over: sites measure a round's models in the next
 * round, so the newest row waits until there is one after it or the job has ended. */
static void print_new_rounds(struct kedge_cli *c, json_t *job, int64_t *printed)
{
    json_t *history = json_object_get(job, "history");
    size_t n = json_array_size(history);
    if (n > 0 && !json_object_get(job, "next_round") && !has_ended(job)) {
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
    int64_t rounds = kedge_cli_int(job, "rounds");
    bool open = json_is_true(json_object_get(job, "round_open"));
    snprintf(text, sizeof text, "%.12s, %lld of %lld sites%s", kedge_cli_text(job, "state"),
             (long long)kedge_cli_int(job, "accepted"), (long long)kedge_cli_int(job, "selected"),
             open ? "" : ", closing");
    kedge_cli_progress(c, kedge_cli_text(job, "job"), (uint64_t)kedge_cli_finished_rounds(job),
                       rounds > 0 ? (uint64_t)rounds : 0, text);
}

/* After Ctrl-C: the job itself does not depend on who watches. */
static int leave_job(struct kedge_cli *c, const char *verb, const char *job)
{
    return kedge_cli_interrupt_end(c, "interrupted; the job goes on",
                                   "again: kedge job %s %s; end it: kedge job stop %s --cancel", verb, job,
                                   job);
}

/* A watch is nothing but polls, when an event gives a reason, or now and then: Ctrl-C, a lost connection or a
 * restart of the coordinator (up to a minute) change nothing for the job, which the message after Ctrl-C
 * says. */
int kedge_cmd_job_watch(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id job;
    struct poll p = {.answered = false};
    struct kedge_cli_told told = {.halted = false};
    int64_t printed = -1;
    uint64_t from = 0;
    bool ended = false, subscribed = false;
    struct kedge_cli_wake *wake KEDGE_CLEANUP(kedge_cli_wake_drop) = NULL;
    json_t *o = NULL;
    if (!take_job(c, &job)) {
        return 2;
    }
    kedge_cli_catch_interrupt();
    while (!ended) { /* from the last printed round on, so that the table's head comes once */
        int err = poll_job(c, &p, job.s, from, &o, &d);
        if (err) {
            kedge_cli_progress_end(c);
            return kedge_cli_fail(c, err, &d);
        }
        bool more = false;
        if (o) {
            uint64_t next;
            err = next_page(o, from, &next, &d);
            more = !err && next != UINT64_MAX;
            print_new_rounds(c, o, &printed);
            kedge_cli_watch_troubles(c, o, &told);
            draw_progress(c, o);
            from = more ? next : printed > 0 ? (uint64_t)printed : 0;
        }
        ended = o && has_ended(o) && !more;
        json_decref(o);
        o = NULL;
        if (p.answered && !subscribed) {
            wake = kedge_cli_wake_new(c, job.s);
            subscribed = true;
        }
        if (!ended && (more ? kedge_cli_interrupted() : kedge_cli_wake_wait(wake, POLL_MS))) {
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
    if (!err && has_ended(o)) { /* still known, but beyond any change */
        err = kedge_diag_set(&d, KEDGE_E_STATE, "job %s has ended: it is %s", job.s,
                             kedge_cli_text(o, "state"));
        json_decref(o);
    }
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    if (strcmp(verb, "job.resume") == 0 && strcmp(kedge_cli_text(o, "state"), "halted") == 0) {
        kedge_cli_say(c, "Job %s is halted still: %s\n", job.s, kedge_cli_text(o, "reason_text"));
        return kedge_cli_answer(c, o, 1);
    }
    int64_t asked = kedge_cli_int(o, "asked_again");
    if (asked > 0) {
        kedge_cli_say(
            c,
            "Job %s: %lld site%s that could not serve it %s asked once more; it goes on when one can, and "
            "kedge job show %s tells.\n",
            job.s, (long long)asked, asked == 1 ? "" : "s", asked == 1 ? "is" : "are", job.s);
    } else {
        kedge_cli_say(c, "Job %s %s.\n", job.s, after);
    }
    return kedge_cli_ok(c, o);
}

/* Asks for the end and waits for it: only what the main chain holds outlasts a restart. */
static int cancel_job(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id job;
    struct poll p = {.answered = false};
    json_t *o = NULL;
    if (!take_job(c, &job)) {
        return 2;
    }
    int err = kedge_cli_main_pin(c, &d);
    if (!err) {
        err = kedge_cli_admin(c, json_pack("{s:s,s:s}", "verb", "job.cancel", "job", job.s), &o, &d);
    }
    kedge_cli_catch_interrupt();
    const uint64_t deadline = kedge_os_now_ns() + CANCEL_WAIT_S * NS_PER_S;
    while (!err && !(o && has_ended(o)) && kedge_os_now_ns() < deadline) {
        if (kedge_cli_pause(POLL_MS)) {
            json_decref(o);
            return leave_job(c, "wait", job.s);
        }
        json_decref(o);
        o = NULL;
        err = poll_job(c, &p, job.s, UINT32_MAX, &o, &d);
    }
    if (!err && !(o && has_ended(o))) {
        const char *why = o ? kedge_cli_text(o, "reason_text") : "";
        err = kedge_diag_set(&d, KEDGE_E_TIMEOUT, "job %s is not cancelled yet: it is %s%s%s", job.s,
                             o ? kedge_cli_text(o, "state") : "unknown", why[0] ? ": " : "", why);
        (void)kedge_diag_hint(&d,
                              "it ends once that can be stored, unless the coordinator starts again before; "
                              "kedge job show %s tells",
                              job.s);
    } else if (!err && strcmp(kedge_cli_text(o, "state"), "cancelled") != 0) {
        err = kedge_diag_set(&d, KEDGE_E_STATE, "job %s has ended: it is %s", job.s,
                             kedge_cli_text(o, "state"));
    }
    const bool unopened = o && json_is_true(json_object_get(o, "unopened")); /* no entry can prove it */
    if (!err && !unopened) {
        err = kedge_cli_cancel_receipt(c, &job, o, &d);
    }
    if (err) {
        json_decref(o);
        return kedge_cli_fail(c, err, &d);
    }
    kedge_cli_say(c, "Job %s has ended for good%s.\n", job.s,
                  unopened
                      ? "; by the coordinator's word: it had no place yet, so the main chain does not name it"
                      : "");
    return kedge_cli_ok(c, o);
}

int kedge_cmd_job_stop(struct kedge_cli *c)
{
    return kedge_cli_flag(c, "cancel") ? cancel_job(c)
                                       : change_job(c, "job.halt", "halts; kedge job resume lets it go on");
}

int kedge_cmd_job_resume(struct kedge_cli *c)
{
    return change_job(c, "job.resume", "goes on");
}
