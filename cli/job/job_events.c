/* kedge job events: the moves of a job from one state to the next, each once and in order. Following is
 * nothing but asking again from the first move that was not told yet: a restart of the coordinator changes
 * nothing. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/events/wake.h"
#include "cli/local.h"
#include "common/base/os/clock.h"
#include "common/base/os/utc.h"
#include "common/base/try.h"

enum { POLL_MS = 200, LINE_MAX_BYTES = 4096 };
static const uint64_t away_max_ns = UINT64_C(60) * 1000000000; /* a coordinator may be restarted meanwhile */

static const struct kedge_column columns[] = {{"#", 4},       {"time", -17},  {"from", -9},   {"to", -9},
                                              {"cause", -22}, {"actor", -14}, {"reason", -12}};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static int ask(struct kedge_cli *c, const char *job, uint64_t from, json_t **ret, struct kedge_diag *d)
{
    return kedge_cli_admin(
        c, json_pack("{s:s,s:s,s:I}", "verb", "job.events", "job", job, "from", (json_int_t)from), ret, d);
}

/* The next move must be the one that was asked for: an answer that begins elsewhere would be told twice, or
 * hide one. *ret_next: the one after the last. */
static int check_order(const json_t *events, uint64_t from, uint64_t *ret_next, struct kedge_diag *d)
{
    const json_t *event;
    size_t i;
    json_array_foreach(events, i, event)
    {
        if ((uint64_t)kedge_cli_int(event, "sequence") != from + i) {
            return kedge_diag_set(
                d, KEDGE_E_FORMAT, "the coordinator tells move %lld where %llu was asked for",
                (long long)kedge_cli_int(event, "sequence"), (unsigned long long)(from + i));
        }
    }
    *ret_next = from + json_array_size(events);
    return KEDGE_OK;
}

static void say_event(const struct kedge_cli *c, const json_t *event)
{
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)kedge_cli_int(event, "sequence"));
    const struct kedge_utc date = kedge_utc(kedge_cli_int(event, "ms") / 1000, KEDGE_UTC_MINUTES, "-");
    const char *cells[COLUMNS] = {number,
                                  date.s,
                                  kedge_cli_text(event, "from"),
                                  kedge_cli_text(event, "to"),
                                  kedge_cli_text(event, "cause"),
                                  kedge_cli_text(event, "actor"),
                                  kedge_cli_text(event, "reason")};
    kedge_cli_row(c, columns, COLUMNS, cells);
}

/* In JSON each move is a line of its own, so that a program can read it when it comes. */
static int put_line(const json_t *event)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, LINE_MAX_BYTES);
    KEDGE_TRY(kedge_cli_dump(event, JSON_COMPACT | JSON_ENSURE_ASCII, &text));
    kedge_buf_put_str(&text, "\n");
    KEDGE_TRY(text.err);
    kedge_cli_put_ascii(kedge_buf_view(&text));
    return KEDGE_OK;
}

static bool is_end(const char *state)
{
    return strcmp(state, "completed") == 0 || strcmp(state, "failed") == 0 || strcmp(state, "cancelled") == 0;
}

/* All that there are from `from` on, however many answers they take. */
static int list(struct kedge_cli *c, const char *job, uint64_t from)
{
    struct kedge_diag d = {.text = ""};
    json_auto_t *all = json_array();
    bool more = true;
    while (more) {
        json_auto_t *o = NULL;
        const uint64_t asked = from;
        KEDGE_CLI_TRY(c, ask(c, job, asked, &o, &d), &d);
        const json_t *events = json_object_get(o, "events");
        KEDGE_CLI_TRY(c, check_order(events, asked, &from, &d), &d);
        json_array_extend(all, json_object_get(o, "events"));
        more = json_is_true(json_object_get(o, "more")) && from > asked;
    }
    const json_t *event;
    size_t i;
    kedge_cli_head(c, columns, COLUMNS);
    json_array_foreach(all, i, event)
    {
        say_event(c, event);
    }
    if (json_array_size(all) == 0) {
        kedge_cli_say(c, "No moves from there on; of a job that an earlier version ran none were kept.\n");
    }
    return kedge_cli_ok(c, json_pack("{s:s,s:O}", "job", job, "events", all));
}

struct follow {
    uint64_t next, last_ns; /* when it last answered, 0: never */
    bool ended;
};

/* Once it has answered, the coordinator may be away for a while. */
static int look(struct kedge_cli *c, const char *job, struct follow *f, struct kedge_diag *d)
{
    json_auto_t *o = NULL;
    int err = ask(c, job, f->next, &o, d);
    if (err) {
        const bool is_away = f->last_ns > 0 && kedge_err_class(err) == KEDGE_CLASS_RETRY
                             && kedge_os_now_ns() - f->last_ns < away_max_ns;
        return is_away ? KEDGE_OK : err;
    }
    const json_t *events = json_object_get(o, "events"), *event;
    size_t i;
    KEDGE_TRY(check_order(events, f->next, &f->next, d));
    json_array_foreach(events, i, event)
    {
        say_event(c, event);
        KEDGE_TRY(c->json ? put_line(event) : KEDGE_OK);
    }
    f->last_ns = kedge_os_now_ns();
    f->ended = !json_is_true(json_object_get(o, "more")) && is_end(kedge_cli_text(o, "state"));
    return KEDGE_OK;
}

static int follow(struct kedge_cli *c, const char *job, uint64_t from)
{
    struct kedge_diag d = {.text = ""};
    struct follow f = {.next = from};
    struct kedge_cli_wake *wake KEDGE_CLEANUP(kedge_cli_wake_drop) = NULL;
    bool subscribed = false;
    kedge_cli_catch_interrupt();
    kedge_cli_head(c, columns, COLUMNS);
    while (!f.ended) {
        KEDGE_CLI_TRY(c, look(c, job, &f, &d), &d);
        if (!subscribed) {
            wake = kedge_cli_wake_new(c, job);
            subscribed = true;
        }
        if (!f.ended && kedge_cli_wake_wait(wake, POLL_MS)) {
            return kedge_cli_interrupt_end(c, "interrupted; the job goes on",
                                           "again: kedge job events %s --follow --from %llu", job,
                                           (unsigned long long)f.next);
        }
    }
    return 0;
}

int kedge_cmd_job_events(struct kedge_cli *c)
{
    struct kedge_id job;
    uint64_t from;
    const bool follows = kedge_cli_flag(c, "follow");
    if (!kedge_cli_number(c, "from", 0, UINT32_MAX - 1, 0, &from)) {
        return 2;
    }
    const char *name = kedge_cli_argument(c, 0);
    if (!name || kedge_id_from(kedge_view_str(name), &job) != KEDGE_OK) {
        return kedge_cli_usage(c, "JOB: expected a job's name of a-z, 0-9, '.', '_', '-'");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    return follows ? follow(c, job.s, from) : list(c, job.s, from);
}
