/* kedge events: what happens at a coordinator, a line of JSON each (docs/events.md).
 *
 * Three sources say the same. The record has what was opened, closed and released, for ever; the
 * coordinator's ring has the last few thousand events of all kinds; the stream has what comes next, without
 * asking. A reader goes from the one to the other without a gap: the ring tells from which entry of the main
 * chain on it has all events of the record, and numbers tell what the stream has lost, which the ring still
 * has. Only what is in none of the three is told as a gap. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/events/stream.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "coordinator/events/event.h"

enum {
    POLL_MS = 500,
    SILENCE_MS = 4000,   /* a stream tells every second that it lives */
    AWAY_MAX_MS = 60000, /* a coordinator may be restarted while somebody looks on */
    INTERRUPTED = 130,
};
#define SEQ_MAX ((uint64_t)1 << 53)

struct reader {
    struct kedge_cli *c;
    struct kedge_id job, tenant; /* "": all */
    bool is_own;                 /* asked with a tenant's admin key: its own numbers, nothing of the record */
    uint64_t next;               /* number of the first event that is still to come; 0: any */
    uint64_t entry;   /* of the main chain: what stands before it was printed, or is not wanted … */
    bool knows_entry; /* … unless nobody knows where this reader stood */
    char stream_path[KEDGE_PATH_MAX];
    struct kedge_cli_stream *stream; /* fd -1: none */
};

/* ---- printing ---- */

static void put_line(const char *line)
{
    kedge_cli_put_ascii(kedge_view_str(line));
    fputs("\n", stdout);
}

/* Notes how far the record is known with this line. */
static void print_line(struct reader *r, const char *line)
{
    static const char name[] = "\"entry\":";
    const char *at = strstr(line, name);
    const size_t len = at ? strspn(at + sizeof name - 1, "0123456789") : 0;
    uint64_t entry;
    if (at && kedge_decimal_decode(kedge_view_of(at + sizeof name - 1, len), SEQ_MAX, &entry) == KEDGE_OK) {
        r->entry = entry + 1;
        r->knows_entry = true;
    }
    put_line(line);
}

static void print_lines(struct reader *r, const json_t *lines)
{
    const json_t *line;
    size_t i;
    json_array_foreach(lines, i, line)
    {
        const char *text = json_string_value(line);
        if (text) {
            print_line(r, text);
        }
    }
}

/* ---- asking ---- */

static json_t *request(const struct reader *r, const char *verb, uint64_t from)
{
    json_t *o = json_pack("{s:s,s:I}", "verb", verb, "from", (json_int_t)from);
    if (r->job.s[0]) {
        json_object_set_new(o, "job", json_string(r->job.s));
    }
    if (r->tenant.s[0]) {
        json_object_set_new(o, "tenant", json_string(r->tenant.s));
    }
    return o;
}

/* Events of the record from the reader's entry to before `to`. */
static int print_record(struct reader *r, uint64_t to, struct kedge_diag *d)
{
    uint64_t from = r->entry;
    while (from < to && !kedge_cli_interrupted()) {
        json_auto_t *o = NULL;
        json_t *ask = request(r, "event.record", from);
        json_object_set_new(ask, "to", json_integer((json_int_t)to));
        KEDGE_TRY(kedge_cli_ask(r->c, ask, &o, d));
        print_lines(r, json_object_get(o, "events"));
        const uint64_t next = (uint64_t)kedge_cli_int(o, "next");
        if (json_object_get(o, "next") && next <= from) {
            return kedge_diag_set(d, KEDGE_E_FORMAT,
                                  "the coordinator tells the same entries again and again");
        }
        from = json_object_get(o, "next") ? next : to;
    }
    r->entry = to > r->entry ? to : r->entry;
    return KEDGE_OK;
}

/* Numbers that nobody has any more: which they are, and the entries of the record that stand for them, whose
 * events follow. */
static void tell_gap(const struct reader *r, uint64_t first, uint64_t record_to)
{
    char line[512];
    int n = snprintf(line, sizeof line, "{\"v\":%d,\"gap\":{\"from\":%" PRIu64 ",\"to\":%" PRIu64,
                     KEDGE_EVENT_VERSION, r->next, first - 1);
    if (r->knows_entry && !r->is_own) {
        n += snprintf(line + n, sizeof line - (size_t)n,
                      ",\"record\":{\"from\":%" PRIu64 ",\"to\":%" PRIu64 "}", r->entry,
                      record_to > r->entry ? record_to : r->entry);
    }
    snprintf(line + n, sizeof line - (size_t)n, ",\"lost\":\"%s\"}}",
             r->knows_entry && !r->is_own ? "what is not in the record" : "all");
    put_line(line);
}

/* An admin of a tenant may not ask for all, and asks for what is its own. */
static int ask_list(struct reader *r, json_t **ret, struct kedge_diag *d)
{
    int err = kedge_cli_ask(r->c, request(r, r->is_own ? "event.own" : "event.list", r->next), ret, d);
    if (err == KEDGE_E_DENIED && r->c->connect && !r->is_own) {
        r->is_own = true;
        r->knows_entry = false;
        err = kedge_cli_ask(r->c, request(r, "event.own", r->next), ret, d);
    }
    return err;
}

/* Prints what the ring has from the reader's place on; before it, what is older and in the record. */
static int catch_up(struct reader *r, struct kedge_diag *d)
{
    for (bool more = true; more && !kedge_cli_interrupted();) {
        json_auto_t *o = NULL;
        KEDGE_TRY(ask_list(r, &o, d));
        const uint64_t first = (uint64_t)kedge_cli_int(o, "first"), next = (uint64_t)kedge_cli_int(o, "next");
        const uint64_t record_to = (uint64_t)kedge_cli_int(o, "record_to");
        const bool lost = r->next > 0 && first > r->next;
        snprintf(r->stream_path, sizeof r->stream_path, "%s", kedge_cli_text(o, "stream"));
        if (lost) {
            tell_gap(r, first, record_to);
        }
        if ((lost || r->next == 0) && r->knows_entry && !r->is_own) {
            KEDGE_TRY(print_record(r, record_to, d));
        }
        print_lines(r, json_object_get(o, "events"));
        more = next < (uint64_t)kedge_cli_int(o, "end");
        if (more && next <= r->next) {
            return kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator tells the same events again and again");
        }
        r->next = next;
    }
    fflush(stdout);
    return KEDGE_OK;
}

/* ---- following ---- */

static bool is_wanted(const struct reader *r, const json_t *event)
{
    return !r->job.s[0] || strcmp(kedge_cli_text(event, "job"), r->job.s) == 0;
}

/* One message of the stream. *ret_behind: something came before it that was not printed. */
static int take_message(struct reader *r, struct kedge_view message, bool *ret_behind)
{
    const uint8_t *space = message.len > 0 ? memchr(message.ptr, ' ', message.len) : NULL;
    const size_t at = space ? (size_t)(space + 1 - message.ptr) : 0;
    json_auto_t *o = space ? json_loadb((const char *)message.ptr + at, message.len - at, 0, NULL) : NULL;
    if (!json_is_object(o)) {
        return KEDGE_E_FORMAT;
    }
    const json_t *alive = json_object_get(o, "alive");
    const uint64_t seq = (uint64_t)kedge_cli_int(alive ? alive : o, "seq");
    *ret_behind = alive ? seq >= r->next : seq > r->next;
    if (!alive && seq == r->next) {
        char line[KEDGE_EVENT_LINE_MAX + 1];
        snprintf(line, sizeof line, "%.*s", (int)(message.len - at), (const char *)message.ptr + at);
        r->next++;
        if (is_wanted(r, o)) {
            print_line(r, line);
        }
    }
    return KEDGE_OK;
}

/* Reads the stream until something is missing, it ends, or Ctrl-C. Which of a job's events a tenant may see
 * is not in them: for one tenant the ring is asked. */
static void read_stream(struct reader *r)
{
    bool is_behind = false;
    struct kedge_view message;
    int err = KEDGE_OK;
    while (!err && !is_behind && !kedge_cli_interrupted()) {
        err = kedge_cli_stream_next(r->stream, SILENCE_MS, &message);
        err = err ? err : take_message(r, message, &is_behind);
    }
    if (err) {
        kedge_cli_stream_close(r->stream);
    }
}

/* What came while nobody was connected is asked for once more after the connection stands. */
static int follow(struct reader *r, struct kedge_diag *d)
{
    uint64_t heard_ns = kedge_os_now_ns();
    while (!kedge_cli_interrupted() && !ferror(stdout)) {
        const bool was_open = r->stream->fd >= 0;
        if (!was_open && r->stream_path[0] && !r->tenant.s[0] && !r->c->connect) {
            (void)!kedge_cli_stream_open(r->stream_path, r->stream);
        }
        int err = catch_up(r, d);
        if (!err) {
            heard_ns = kedge_os_now_ns();
        } else if (kedge_err_class(err) != KEDGE_CLASS_RETRY
                   || kedge_os_now_ns() - heard_ns > AWAY_MAX_MS * UINT64_C(1000000)) {
            return err;
        }
        if (!err && r->stream->fd >= 0) {
            read_stream(r);
        } else {
            (void)kedge_cli_pause(POLL_MS);
        }
    }
    return KEDGE_OK;
}

/* ---- the command ---- */

static bool take_name(struct kedge_cli *c, const char *option, struct kedge_id *ret)
{
    const char *name = kedge_cli_option(c, option, NULL);
    if (name && kedge_id_from(kedge_view_str(name), ret) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "--%s: expected a name of a-z, 0-9, '.', '_', '-'", option);
        return false;
    }
    return true;
}

int kedge_cmd_events(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct reader r = {.c = c};
    const bool follows = kedge_cli_flag(c, "follow");
    if (!take_name(c, "job", &r.job) || !take_name(c, "tenant", &r.tenant)
        || !kedge_cli_number(c, "from", 1, SEQ_MAX, 0, &r.next) || !kedge_cli_no_more(c, 0)) {
        return 2;
    }
    r.knows_entry = r.next == 0; /* the whole record */
    r.stream = kedge_mem_new(1, sizeof *r.stream);
    if (!r.stream) {
        return kedge_cli_fail(c, KEDGE_E_NOMEM, NULL);
    }
    r.stream->fd = -1;
    kedge_cli_catch_interrupt();
    int err = catch_up(&r, &d);
    if (!err && follows) {
        err = follow(&r, &d);
    }
    kedge_cli_stream_close(r.stream);
    kedge_mem_free(r.stream);
    fflush(stdout);
    return err ? kedge_cli_fail(c, err, &d) : kedge_cli_interrupted() ? INTERRUPTED : 0;
}
