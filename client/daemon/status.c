/* status.json: what the daemon does, written for its owner and for `kedge-client status`, which prints it.
 * Pure.
 *
 * Reader and writer are in one file because they are two ends of one format. The reader trusts the file no
 * more than any other: it shows only printable text of bounded length, as words in it come from trainers and
 * coordinators. Times are the wall clock's, for people compare them with their own. */
#include "client/daemon/status.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/try.h"
#include "common/json/json.h"

enum {
    SHOWN_MAX = KEDGE_STATUS_TEXT_MAX,
    SILENT_MS = 60000,
    MS_PER_S = 1000,
    S_PER_MINUTE = 60,
    S_PER_HOUR = 3600
};

void kedge_status_note(struct kedge_status *s, const struct kedge_status_outcome *o)
{
    if (s->last_count == KEDGE_STATUS_LAST_MAX) {
        memmove(s->last, s->last + 1, (KEDGE_STATUS_LAST_MAX - 1) * sizeof s->last[0]);
        s->last_count--;
    }
    s->last[s->last_count++] = *o;
}

void kedge_status_line(const struct kedge_status *s, char out[KEDGE_STATUS_TEXT_MAX])
{
    const char *state = kedge_site_state_name(s->view.state);
    size_t len = 0;
    for (uint32_t i = 0; i < s->view.work_count && len < KEDGE_STATUS_TEXT_MAX; i++) {
        const struct kedge_site_work_view *w = &s->view.works[i];
        if (w->task || w->result) {
            const char *before = len > 0 ? "; " : s->finishing ? "stopping after " : "";
            int n = snprintf(out + len, KEDGE_STATUS_TEXT_MAX - len, "%s%s job=%s round=%u", before,
                             s->works_wait[i] ? "waiting" : kedge_site_state_name(w->state),
                             w->task ? w->task->job.s : w->result->job.s,
                             w->task ? w->task->round : w->result->round);
            len += n > 0 ? (size_t)n : 0;
        }
    }
    if (len > 0) {
        return;
    }
    if (s->waits_for && s->waits_for[0]) {
        snprintf(out, KEDGE_STATUS_TEXT_MAX, "resting: %.200s", s->waits_for);
    } else if (s->view.reason != KEDGE_OK) {
        snprintf(out, KEDGE_STATUS_TEXT_MAX, "%s; last: %s", state, kedge_strerror(s->view.reason));
    } else {
        snprintf(out, KEDGE_STATUS_TEXT_MAX, "%s", state);
    }
}

/* ---- writing ---- */

static json_t *reason_json(int err)
{
    return err == KEDGE_OK
               ? json_null()
               : json_pack("{s:s,s:s}", "code", kedge_err_code(err), "message", kedge_strerror(err));
}

/* A trainer's words may be no UTF-8: then they are shown as far as they are printable. */
static json_t *text_json(const char *text)
{
    char shown[KEDGE_STATUS_TEXT_MAX];
    kedge_text_copy_plain(shown, sizeof shown, text);
    return shown[0] ? json_string(shown) : json_null();
}

static json_t *task_json(const struct kedge_site_work_view *w)
{
    if (w->task) {
        json_t *group = w->task->group == KEDGE_SITE_NONE ? json_null() : json_integer(w->task->group);
        return json_pack("{s:s,s:i,s:s,s:o}", "job", w->task->job.s, "round", (int)w->task->round, "kind",
                         kedge_site_kind_name(w->task->kind), "group", group);
    }
    const struct kedge_site_result *r = w->result;
    return r ? json_pack("{s:s,s:i,s:s,s:i}", "job", r->job.s, "round", (int)r->round, "kind",
                         kedge_site_kind_name(r->kind), "group", (int)r->group)
             : json_null();
}

/* All that is in hand. */
static json_t *tasks_json(const struct kedge_status *s)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->view.work_count; i++) {
        const struct kedge_site_work_view *w = &s->view.works[i];
        json_t *o = w->task || w->result ? task_json(w) : NULL;
        if (o) {
            json_object_set_new(o, "state", json_string(kedge_site_state_name(w->state)));
            json_object_set_new(o, "waits_for",
                                s->works_wait[i] ? json_string(s->works_wait[i]) : json_null());
            json_array_append_new(list, o);
        }
    }
    return list;
}

static json_t *last_json(const struct kedge_status *s)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->last_count; i++) {
        const struct kedge_status_outcome *o = &s->last[i];
        json_array_append_new(list, json_pack("{s:I,s:s,s:i,s:s,s:s,s:o,s:o}", "at_ms", (json_int_t)o->at_ms,
                                              "job", o->job.s, "round", (int)o->round, "kind",
                                              kedge_site_kind_name(o->kind), "outcome",
                                              kedge_site_note_name(o->note), "reason", reason_json(o->err),
                                              "detail", text_json(o->detail)));
    }
    return list;
}

static json_t *or_null(const json_t *o)
{
    return o ? json_deep_copy(o) : json_null();
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

int kedge_status_encode(const struct kedge_status *s, struct kedge_buf *out)
{
    const struct kedge_site_view *v = &s->view;
    json_t *counts = json_pack("{s:I,s:I,s:I,s:i}", "tasks", (json_int_t)v->tasks, "receipts",
                               (json_int_t)v->receipts, "dropped", (json_int_t)v->dropped, "unfinished",
                               v->memory ? (int)v->memory->result_count : 0);
    json_t *tasks = tasks_json(s);
    json_t *task = json_array_size(tasks) > 0 ? json_deep_copy(json_array_get(tasks, 0)) : json_null();
    json_t *o = json_pack(
        "{s:i,s:s,s:s,s:s,s:I,s:I,s:I,s:s,s:b,s:b,s:b,s:o,s:o,s:o,s:o,s:o,s:s,s:o,s:I,s:s,s:o,s:s,s:s,s:I}",
        "schema_version", 1, "tenant", s->tenant.s, "site", s->site.s, "server", or_empty(s->server), "pid",
        (json_int_t)s->pid, "since_ms", (json_int_t)s->since_ms, "written_ms", (json_int_t)s->written_ms,
        "state", kedge_site_state_name(v->state), "connected", s->connected, "stopping", s->finishing,
        "ended", s->ended, "reason", reason_json(v->reason), "task", task, "tasks", tasks, "counts", counts,
        "last", last_json(s), "waits_for", or_empty(s->waits_for), "policy", or_null(s->policy), "policy_ms",
        (json_int_t)s->policy_ms, "policy_error", or_empty(s->policy_error), "energy", or_null(s->energy),
        "engine", s->engine, "fallback", s->fallback, "answered_ms", (json_int_t)s->answered_ms);
    json_t *trainers = json_array();
    for (uint32_t i = 0; i < KEDGE_SITE_WORKS_MAX; i++) {
        if (s->trainers[i] != 0) {
            json_array_append_new(trainers, json_integer((json_int_t)s->trainers[i]));
        }
    }
    json_object_set_new(o, "trainers", trainers);
    json_object_set_new(o, "trainer_idle_seconds", json_integer(s->trainer_idle_seconds));
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    KEDGE_TRY_MEM(text);
    kedge_buf_put(out, text, strlen(text));
    kedge_buf_put(out, "\n", 1);
    free(text); /* json_dumps */
    return out->err;
}

/* ---- reading ---- */

int kedge_status_decode(struct kedge_view text, const char *where, json_t **ret, struct kedge_diag *reterr)
{
    json_t *o = NULL;
    int err = kedgei_json_load(text, KEDGE_STATUS_FILE_MAX, where, &o, reterr);
    if (!err && json_integer_value(json_object_get(o, "schema_version")) != 1) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: \"schema_version\": expected 1", where);
    }
    if (err) {
        json_decref(o);
        return err;
    }
    *ret = o;
    return KEDGE_OK;
}

/* What is plain of a member, at most SHOWN_MAX of it. */
static const char *word(const json_t *o, const char *key, char out[SHOWN_MAX + 1])
{
    const char *text = json_string_value(json_object_get(o, key));
    kedge_text_copy_plain(out, SHOWN_MAX + 1, text ? text : "");
    return out;
}

static bool word_is(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text && text[0];
}

static json_int_t number(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

/* "12 s", "5 min", "3 h" before now. */
static void put_age(struct kedge_buf *out, json_int_t at_ms, uint64_t now_ms)
{
    uint64_t s = at_ms > 0 && (uint64_t)at_ms < now_ms ? (now_ms - (uint64_t)at_ms) / MS_PER_S : 0;
    if (s < 2u * S_PER_MINUTE) {
        kedge_buf_printf(out, "%" PRIu64 " s", s);
    } else if (s < 2u * S_PER_HOUR) {
        kedge_buf_printf(out, "%" PRIu64 " min", s / S_PER_MINUTE);
    } else {
        kedge_buf_printf(out, "%" PRIu64 " h", s / S_PER_HOUR);
    }
}

static void put_task(struct kedge_buf *out, const json_t *task)
{
    char a[SHOWN_MAX + 1], b[SHOWN_MAX + 1];
    kedge_buf_printf(out, "job %s, round %lld, %s", word(task, "job", a), (long long)number(task, "round"),
                     word(task, "kind", b));
}

/* "task: job a, round 3, train: training", one line for each. */
static void tell_tasks(struct kedge_buf *out, const json_t *list)
{
    char a[SHOWN_MAX + 1], b[SHOWN_MAX + 1];
    for (size_t i = 0; i < json_array_size(list) && i < KEDGE_SITE_WORKS_MAX; i++) {
        const json_t *o = json_array_get(list, i);
        kedge_buf_printf(out, "task: ");
        put_task(out, o);
        kedge_buf_printf(out, word(o, "waits_for", a)[0] ? ": waits, %s\n" : ": %s\n",
                         word(o, "waits_for", a)[0] ? a : word(o, "state", b));
    }
}

static void tell_last(struct kedge_buf *out, const json_t *list, uint64_t now_ms)
{
    char a[SHOWN_MAX + 1];
    size_t n = json_array_size(list);
    for (size_t i = 0; i < n && i < KEDGE_STATUS_LAST_MAX; i++) {
        const json_t *o = json_array_get(list, n - 1 - i), *reason = json_object_get(o, "reason");
        kedge_buf_printf(out, i == 0 ? "last: " : "      ");
        put_task(out, o);
        kedge_buf_printf(out, ": %s, ", word(o, "outcome", a));
        put_age(out, number(o, "at_ms"), now_ms);
        const bool detailed = word(o, "detail", a)[0] != '\0';
        kedge_buf_printf(out, " ago%s%s\n", detailed || json_is_object(reason) ? ": " : "",
                         detailed ? a : word(reason, "message", a));
    }
}

/* Members of an object, one a line, but for those that say nothing. */
static void tell_object(struct kedge_buf *out, const char *title, const json_t *o)
{
    const char *key;
    json_t *v;
    unsigned n = 0;
    json_object_foreach((json_t *)(uintptr_t)o, key, v)
    {
        char *text =
            json_is_null(v) ? NULL : json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
        if (text) {
            kedge_buf_printf(out, "%*s%.60s %.*s\n", (int)strlen(title), n++ ? "" : title, key, SHOWN_MAX,
                             text);
            free(text); /* json_dumps */
        }
    }
}

/* A connection over which nothing comes is none, though the kernel may not have noticed. */
static void tell_connection(struct kedge_buf *out, const json_t *o, uint64_t now_ms)
{
    const json_int_t at = number(o, "answered_ms");
    const bool there = json_is_true(json_object_get(o, "connected"));
    const bool silent = at > 0 && now_ms > (uint64_t)at + SILENT_MS && !word_is(o, "waits_for");
    kedge_buf_printf(out, "connection: %s",
                     !there   ? "none, it is dialled again"
                     : silent ? "there, but the coordinator does not answer"
                              : "there");
    if (at > 0) {
        kedge_buf_printf(out, "; last answer ");
        put_age(out, at, now_ms);
        kedge_buf_printf(out, " ago\n");
    } else {
        kedge_buf_printf(out, "; no answer yet\n");
    }
}

/* "trainer: process 4711, ended after 300 s without a task": what stays in memory, and for how long. */
static void tell_trainers(struct kedge_buf *out, const json_t *o)
{
    const json_t *list = json_object_get(o, "trainers");
    const size_t n = json_array_size(list);
    if (!list) {
        return;
    }
    kedge_buf_printf(out, n > 0 ? "trainer: process" : "trainer: none runs");
    for (size_t i = 0; i < n && i < KEDGE_SITE_WORKS_MAX; i++) {
        kedge_buf_printf(out, "%s %lld", i > 0 ? " and" : "",
                         (long long)json_integer_value(json_array_get(list, i)));
    }
    kedge_buf_printf(out, "; one without a task for %lld s is ended (policy.json: trainer_idle_seconds)\n",
                     (long long)number(o, "trainer_idle_seconds"));
}

int kedge_status_tell(const json_t *o, bool running, uint64_t now_ms, struct kedge_buf *out)
{
    char a[SHOWN_MAX + 1], b[SHOWN_MAX + 1], c[SHOWN_MAX + 1];
    const json_t *counts = json_object_get(o, "counts");
    const json_t *reason = json_object_get(o, "reason");
    kedge_buf_printf(out, "%s/%s at %s: ", word(o, "tenant", a), word(o, "site", b), word(o, "server", c));
    if (running) {
        kedge_buf_printf(out, "%s%s (process %lld, for ", word(o, "state", a),
                         json_is_true(json_object_get(o, "stopping")) ? ", then it stops" : "",
                         (long long)number(o, "pid"));
        put_age(out, number(o, "since_ms"), now_ms);
        kedge_buf_printf(out, ")\n");
    } else {
        kedge_buf_printf(out, "not running; what follows is ");
        put_age(out, number(o, "written_ms"), now_ms);
        kedge_buf_printf(out, " old, then it was %s\n", word(o, "state", a));
    }
    tell_tasks(out, json_object_get(o, "tasks"));
    if (running) {
        tell_connection(out, o, now_ms);
    }
    if (json_is_object(reason)) {
        kedge_buf_printf(out, "reason: %s\n", word(reason, "message", a));
    }
    if (word(o, "waits_for", a)[0]) {
        kedge_buf_printf(out, "takes no work now: %s\n", a);
    }
    if (strcmp(word(o, "state", a), "refusing") == 0) {
        kedge_buf_printf(
            out, "the main chain is not the one that was seen: it goes on when that is back, or after "
                 "kedge-client accept-main\n");
    }
    kedge_buf_printf(out, "since it started: %lld tasks, %lld receipts, %lld dropped; unfinished %lld\n",
                     (long long)number(counts, "tasks"), (long long)number(counts, "receipts"),
                     (long long)number(counts, "dropped"), (long long)number(counts, "unfinished"));
    tell_last(out, json_object_get(o, "last"), now_ms);
    if (word(o, "engine", a)[0]) {
        kedge_buf_printf(out, "trained by: %s%s%s\n", a, word(o, "fallback", b)[0] ? "; " : "", b);
    }
    if (running) {
        tell_trainers(out, o);
    }
    tell_object(out, "energy: ", json_object_get(o, "energy"));
    tell_object(out, "policy: ", json_object_get(o, "policy"));
    if (word(o, "policy_error", a)[0]) {
        kedge_buf_printf(out, "a newer policy.json was not taken: %s\n", a);
    }
    return out->err;
}
