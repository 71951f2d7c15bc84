/* event.list, event.own and event.record, pages of events for those who ask: what the ring holds, and what
 * the main chain tells for ever. Between the two nothing is lost that was recorded: who has seen the ring's
 * first event knows by its main_size up to where the record has to be read. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/events/events.h"
#include "coordinator/daemon/events/page.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/events/recorded.h"

enum {
    PAGE = 256,         /* events of an answer: each has less than 2 KB as JSON in JSON */
    ENTRIES_MAX = 1024, /* entries of the main chain that one answer looks at */
};

/* ---- arguments ---- */

struct asked {
    uint64_t from, to;           /* numbers, or entries; to: before it */
    struct kedge_id job, tenant; /* "": any */
};

static int get_number(const json_t *args, const char *key, uint64_t fallback, uint64_t *ret,
                      struct kedge_diag *d)
{
    const json_t *v = json_object_get(args, key);
    *ret = v ? (uint64_t)json_integer_value(v) : fallback;
    return !v || (json_is_integer(v) && json_integer_value(v) >= 0)
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s\": expected a whole number", key);
}

static int get_name(const json_t *args, const char *key, struct kedge_id *ret, struct kedge_diag *d)
{
    const json_t *v = json_object_get(args, key);
    const char *s = json_string_value(v);
    ret->s[0] = '\0';
    return !v || (s && kedge_id_from(kedge_view_str(s), ret) == KEDGE_OK)
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s\": expected a name of a-z, 0-9, '.', '_', '-'", key);
}

static int read_args(const json_t *args, struct asked *ret, struct kedge_diag *d)
{
    KEDGE_TRY(get_number(args, "from", 0, &ret->from, d));
    KEDGE_TRY(get_number(args, "to", UINT64_MAX, &ret->to, d));
    KEDGE_TRY(get_name(args, "job", &ret->job, d));
    return get_name(args, "tenant", &ret->tenant, d);
}

/* ---- the ring ---- */

static bool is_of_job(struct kedge_view topic, const struct kedge_id *job)
{
    const size_t len = strlen(job->s);
    return topic.len > 4 + len + 1 && memcmp(topic.ptr, "job/", 4) == 0
           && memcmp(topic.ptr + 4, job->s, len) == 0 && topic.ptr[4 + len] == '/';
}

static int add_line(json_t *list, uint64_t seq, struct kedge_view rest)
{
    struct kedge_buf line KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&line, KEDGE_EVENT_LINE_MAX);
    kedge_event_head(seq, &line);
    kedge_buf_put(&line, rest.ptr, rest.len);
    KEDGE_TRY(line.err);
    return json_array_append_new(list, json_stringn((const char *)line.ptr, line.len)) == 0 ? KEDGE_OK
                                                                                            : KEDGE_E_NOMEM;
}

/* A number of a row's text, which this program has written; fallback: it has none. */
static uint64_t number_in(struct kedge_view rest, const char *name, uint64_t fallback)
{
    const uint8_t *at = rest.len > 0 ? memmem(rest.ptr, rest.len, name, strlen(name)) : NULL;
    uint64_t n = 0;
    for (at = at ? at + strlen(name) : NULL; at && at < rest.ptr + rest.len && *at >= '0' && *at <= '9';
         at++) {
        n = 10 * n + (uint64_t)(*at - '0');
        fallback = n;
    }
    return fallback;
}

/* From this entry of the main chain on the ring has all that the record tells. Entries stand in the ring in
 * their order, so it is the first that it names; else what the coordinator knows of is all before the ring.
 */
static uint64_t record_to(const struct kedge_host *h, const struct kedge_event_ring *ring)
{
    struct kedge_event_row row;
    for (uint64_t seq = kedge_event_ring_first(ring); kedge_event_ring_get(ring, seq, &row); seq++) {
        const uint64_t entry = number_in(row.rest, "\"entry\":", KEDGE_EVENT_NO_ENTRY);
        if (entry != KEDGE_EVENT_NO_ENTRY) {
            return entry;
        }
    }
    return h->main_known;
}

struct list_to {
    const struct asked *asked;
    uint32_t tenant; /* KEDGE_COORD_NONE: any */
    json_t *lines;
};

static int list_one(void *arg, uint64_t seq, const struct kedge_event_row *row)
{
    struct list_to *to = arg;
    if ((to->asked->job.s[0] && !is_of_job(row->topic, &to->asked->job))
        || (to->tenant != KEDGE_COORD_NONE && !kedge_event_row_is_for(row, to->tenant))) {
        return 0;
    }
    int err = add_line(to->lines, seq, row->rest);
    return err ? err : 1;
}

/* "first": the number of the oldest event that is kept; "next": the one to go on from. Of event.list all are
 * numbers of the operator's stream, whatever is looked for; of event.own those of the tenant's own, which
 * learns nothing of where the record and the socket are. */
static void list(struct kedge_host *h, struct kedge_net_request *req, const json_t *args, bool is_own)
{
    struct kedge_diag d = {.text = ""};
    struct asked a;
    struct kedge_events_page page = {.first = 0};
    struct list_to to = {.asked = &a, .tenant = KEDGE_COORD_NONE, .lines = json_array()};
    int err = read_args(args, &a, &d);
    if (!err && (is_own || a.tenant.s[0])) {
        to.tenant = kedge_host_tenant_find(h, &a.tenant);
        err = to.tenant == KEDGE_COORD_NONE
                  ? kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "no tenant \"%s\" here", a.tenant.s)
                  : KEDGE_OK;
    }
    if (!err) {
        err = kedge_host_events_page(h, is_own ? to.tenant : KEDGE_COORD_NONE, a.from, PAGE, list_one, &to,
                                     &page);
    }
    json_t *o = json_pack("{s:o,s:I,s:I,s:I}", "events", to.lines, "first", (json_int_t)page.first, "next",
                          (json_int_t)page.next, "end", (json_int_t)page.end);
    if (!is_own) {
        const struct kedge_event_ring *ring = kedge_host_events_ring(h);
        json_object_set_new(o, "record_to",
                            json_integer((json_int_t)(ring ? record_to(h, ring) : h->main_known)));
        json_object_set_new(o, "told", json_boolean(ring != NULL));
    }
    if (!is_own && kedge_host_events_stream(h)[0]) {
        json_object_set_new(o, "stream", json_string(kedge_host_events_stream(h)));
    }
    kedge_admin_answer(req, err, &d, o);
}

/* ---- the record ---- */

struct record_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    struct asked asked;
    uint64_t next, size;
    json_t *lines;
    int err;
    struct kedge_diag diag;
};

static int add_recorded(struct record_work *w, const struct kedge_event *e)
{
    struct kedge_buf rest KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&rest, KEDGE_EVENT_REST_MAX);
    kedge_event_rest(e, &rest);
    return rest.err ? rest.err : add_line(w->lines, 0, kedge_buf_view(&rest));
}

/* A worker reads: entries are parsed, and there may be many between two that matter. */
static int read_record(struct kedge_host *h, struct record_work *w)
{
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    const uint64_t end = w->asked.to < w->size ? w->asked.to : w->size;
    KEDGE_TRY_MEM(st);
    w->next = w->asked.from;
    for (unsigned looked = 0; w->next < end && looked < ENTRIES_MAX && json_array_size(w->lines) < PAGE;
         looked++) {
        struct kedge_event e;
        bool is_event;
        KEDGE_TRY(kedge_event_recorded(h->main.ledger, w->next, st, &e, &is_event, &w->diag));
        const bool wanted = is_event && (!w->asked.job.s[0] || kedge_id_eq(&w->asked.job, &e.job))
                            && (!w->asked.tenant.s[0] || kedge_id_eq(&w->asked.tenant, &e.tenant));
        KEDGE_TRY(wanted ? add_recorded(w, &e) : KEDGE_OK);
        w->next++;
    }
    return KEDGE_OK;
}

static void record_run(struct kedge_host *h, struct kedge_work *work)
{
    struct record_work *w = (struct record_work *)work;
    w->err = read_record(h, w);
}

static void record_done(struct kedge_host *h, struct kedge_item *item)
{
    struct record_work *w = (struct record_work *)item;
    (void)h;
    const uint64_t end = w->asked.to < w->size ? w->asked.to : w->size;
    json_t *o = json_pack("{s:o,s:I}", "events", w->lines, "size", (json_int_t)w->size);
    if (w->next < end) {
        json_object_set_new(o, "next", json_integer((json_int_t)w->next));
    }
    kedge_admin_answer(w->req, w->err, &w->diag, o);
    kedge_mem_free(w);
}

static void record(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct record_work *w = kedge_mem_new(1, sizeof *w);
    int err = w ? read_args(args, &w->asked, &d) : KEDGE_E_NOMEM;
    if (err) {
        kedge_mem_free(w);
        kedge_admin_error(req, err, &d);
        return;
    }
    w->work = (struct kedge_work){.item = {record_done}, .run = record_run};
    w->req = req;
    w->size = kedge_ledger_size(h->main.ledger);
    w->lines = json_array();
    kedge_host_work(h, &w->work);
}

void kedge_admin_events(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                        const json_t *args)
{
    struct kedge_diag d;
    if (strcmp(verb, "event.list") == 0 || strcmp(verb, "event.own") == 0) {
        list(h, req, args, strcmp(verb, "event.own") == 0);
    } else if (strcmp(verb, "event.record") == 0) {
        record(h, req, args);
    } else {
        (void)kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "unknown verb \"%.40s\"", verb);
        kedge_admin_error(req, KEDGE_E_NOT_FOUND, &d);
    }
}
