/* A request goes from the HTTP server's thread to the loop, which knows tokens and tenants, from there to a
 * worker, which reads one piece, and back. Every piece is asked for anew: a token that is revoked ends a long
 * download too.
 *
 * What a reader may not see is answered as what is not there, and without a token everything is, in the same
 * bytes: 401. */
#include "coordinator/daemon/web/https.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "common/net/web/http.h"
#include "coordinator/daemon/events/page.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/inbox.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/web/events_wait.h"
#include "coordinator/daemon/web/read_tokens.h"
#include "coordinator/daemon/web/resources.h"

struct read_work {
    struct kedge_work work;
    struct kedge_http_request *req;
    struct kedge_resource_ask ask;
    uint64_t offset; /* of the answer's body; 0: its head as well */
    uint32_t party;  /* whose token: 1 auditors, else 2 + the tenant's handle */
    struct read_work *next;
};

/* What one party's readers have workers do: a few things at a time, and the rest in its turn, so that neither
 * other parties' readers nor a round wait for them. */
enum { RUNNING_MAX = 2, PARTIES = KEDGE_TENANTS_MAX + 2 };
struct kedge_https_turns {
    struct {
        unsigned running;
        struct read_work *first, *last;
    } of[PARTIES];
};

struct read_item {
    struct kedge_inbox_item item;
    struct kedge_http_request *req;
    uint64_t offset;
    bool has_waited; /* for events: it is answered now, whatever there is */
};

/* ---- answers ---- */

/* A status can be sent only before the body has begun; after that the connection is cut, which the
 * reader notices by the length. */
static void refuse(struct kedge_http_request *req, uint64_t offset, unsigned status, const char *fields)
{
    if (offset > 0) {
        kedge_http_abort(req); /* it is too late for another status */
    } else {
        kedge_http_reply_status(req, status, fields);
    }
}

static void refuse_error(struct kedge_http_request *req, uint64_t offset, int err)
{
    if (err == KEDGE_E_DENIED) {
        refuse(req, offset, 401, "WWW-Authenticate: Bearer realm=\"kedge\"\r\n");
    } else if (err == KEDGE_E_NOT_FOUND || err == KEDGE_E_WITHHELD) {
        refuse(req, offset, 404, NULL);
    } else if (kedge_err_class(err) == KEDGE_CLASS_FULL || kedge_err_class(err) == KEDGE_CLASS_RETRY) {
        refuse(req, offset, 503, "Retry-After: 1\r\n");
    } else {
        kedge_log(KEDGE_LOG_ERROR, "https", "a resource cannot be read: %s", kedge_strerror(err));
        refuse(req, offset, 500, NULL);
    }
}

/* What stays as it is may be kept; by the reader alone, for another's answer may differ. A blob may not: its
 * tenant may have it erased, and what a cache holds would outlive that. */
static struct kedge_http_answer answer_for(const struct kedge_resource *r, char *fields, size_t fields_len)
{
    bool changes = r->ask.kind == KEDGE_RESOURCE_CHECKPOINT, blob = r->ask.kind == KEDGE_RESOURCE_BLOB;
    snprintf(fields, fields_len, "Vary: Authorization\r\n%s", blob ? "Accept-Ranges: bytes\r\n" : "");
    return (struct kedge_http_answer){.status = 200,
                                      .content_type =
                                          changes ? "text/plain; charset=utf-8" : "application/octet-stream",
                                      .cache_control = changes ? "private, max-age=2"
                                                       : blob  ? "private, no-store"
                                                               : "private, max-age=31536000, immutable",
                                      .fields = fields,
                                      .len = r->size};
}

/* The part of the whole that is wanted; false: it has no such part. Only blobs have parts (RFC
 * 9110, section 14); tiles and checkpoints are small. */
static bool choose_part(const struct kedge_http_head *head, const struct kedge_resource *r,
                        struct kedge_http_answer *a, char *fields, size_t fields_len, uint64_t *ret_from)
{
    uint64_t len;
    *ret_from = 0;
    if (r->ask.kind != KEDGE_RESOURCE_BLOB || !head->range.present) {
        return true;
    }
    if (!kedge_http_range_resolve(&head->range, r->size, ret_from, &len)) {
        snprintf(fields, fields_len, "Content-Range: bytes */%" PRIu64 "\r\n", r->size);
        return false;
    }
    a->status = 206;
    a->len = len;
    snprintf(fields, fields_len,
             "Vary: Authorization\r\nAccept-Ranges: bytes\r\nContent-Range: bytes %" PRIu64 "-%" PRIu64
             "/%" PRIu64 "\r\n",
             *ret_from, *ret_from + len - 1, r->size);
    return true;
}

/* One piece of at most 256 KiB is read and sent; the server asks for the next one when this one has
 * gone. A slow reader therefore holds one piece of memory and never a model. */
static void reply(const struct read_work *w, const struct kedge_resource *r)
{
    char fields[KEDGE_HTTP_FIELDS_TEXT_MAX];
    const struct kedge_http_head *head = kedge_http_request_head(w->req);
    struct kedge_http_answer a = answer_for(r, fields, sizeof fields);
    uint64_t from;
    a.party = w->party;
    if (!choose_part(head, r, &a, fields, sizeof fields, &from)) {
        refuse(w->req, w->offset, 416, fields);
        return;
    }
    if (w->offset > a.len) { /* it has become shorter */
        kedge_http_abort(w->req);
        return;
    }
    uint64_t left = a.len - w->offset;
    size_t len = head->method == KEDGE_HTTP_HEAD ? 0
                 : left < KEDGE_HTTP_PIECE_MAX   ? (size_t)left
                                                 : KEDGE_HTTP_PIECE_MAX;
    uint8_t *bytes = kedge_mem_new(len > 0 ? len : 1, 1);
    int err = bytes ? kedge_resource_read(r, from + w->offset, bytes, len) : KEDGE_E_NOMEM;
    if (err) {
        refuse_error(w->req, w->offset, err);
    } else if (w->offset > 0) {
        kedge_http_reply_more(w->req, kedge_view_of(bytes, len));
    } else {
        kedge_http_reply(w->req, &a, kedge_view_of(bytes, len));
    }
    kedge_mem_free(bytes);
}

/* ---- from thread to thread ---- */

static void read_done(struct kedge_host *h, struct kedge_item *item);

/* Auditors stand where operators do. */
static uint32_t line_of(uint32_t party)
{
    return party == 0 ? KEDGE_LINE_READERS : party == 1 ? KEDGE_LINE_OPERATORS : kedge_inbox_line(party - 2);
}

static void begin_work(struct kedge_host *h, struct read_work *w)
{
    h->https_turns->of[w->party].running++;
    kedge_host_work_in(h, line_of(w->party), &w->work);
}

static void read_run(struct kedge_host *h, struct kedge_work *work)
{
    struct read_work *w = (struct read_work *)work;
    struct kedge_resource r;
    (void)h;
    int err = kedge_resource_open(&w->ask, &r);
    if (err) {
        refuse_error(w->req, w->offset, err);
        return;
    }
    reply(w, &r);
    kedge_resource_close(&r);
}

static void read_done(struct kedge_host *h, struct kedge_item *item)
{
    uint32_t party = ((struct read_work *)item)->party;
    struct read_work *next = h->https_turns->of[party].first;
    kedge_mem_free(item);
    h->https_turns->of[party].running--;
    if (next) {
        h->https_turns->of[party].first = next->next;
        begin_work(h, next);
    }
}

/* First come, first served within a party. The bound is per party and not per connection, so
 * opening more connections gives nobody more of the workers. */
static void take_turn(struct kedge_host *h, struct read_work *w)
{
    struct kedge_https_turns *t = h->https_turns;
    if (t->of[w->party].running < RUNNING_MAX) {
        begin_work(h, w);
        return;
    }
    *(t->of[w->party].first ? &t->of[w->party].last->next : &t->of[w->party].first) = w;
    t->of[w->party].last = w;
}

/* Who asks. Token first, then the path: without a valid token every path gives the same answer. */
static int find_reader(struct kedge_host *h, const struct kedge_http_head *head, struct kedge_log_reader *ret,
                       uint32_t *ret_party)
{
    struct kedge_view token = {NULL, 0};
    (void)kedge_http_bearer(head->authorization, &token); /* none is as good as a wrong one */
    KEDGE_TRY(kedge_read_token_check(h, token, ret));
    *ret_party = ret->auditor ? 1 : 2 + ret->tenant;
    return KEDGE_OK;
}

static void answer_waiter(struct kedge_host *h, struct kedge_http_request *req);

/* A page of the ring, made here: it is in the loop's memory, and short. */
static bool reply_events(struct kedge_host *h, const struct read_item *i,
                         const struct kedge_log_reader *reader, uint32_t party)
{
    const struct kedge_http_head *head = kedge_http_request_head(i->req);
    const uint32_t tenant = reader->auditor ? KEDGE_COORD_NONE : reader->tenant;
    uint64_t from, wait_s;
    if (!kedge_events_target(head->target, &from, &wait_s)) {
        return false;
    }
    if (wait_s > 0 && !i->has_waited && i->offset == 0
        && kedge_events_wait(h, &(struct kedge_events_waiter){
                                    i->req, tenant, party, from,
                                    kedge_os_now_ns() + wait_s * UINT64_C(1000000000), answer_waiter})) {
        return true;
    }
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_HTTP_PIECE_MAX); /* all of it is one piece */
    int err = kedge_host_events_text(h, tenant, from, &text);
    if (err || i->offset > 0) {
        refuse_error(i->req, i->offset, err ? err : KEDGE_E_NOT_FOUND);
        return true;
    }
    const struct kedge_http_answer a = {.status = 200,
                                        .content_type = "application/x-ndjson",
                                        .cache_control = "private, no-store",
                                        .fields = "Vary: Authorization\r\n",
                                        .len = text.len,
                                        .party = party};
    kedge_http_reply(i->req, &a,
                     head->method == KEDGE_HTTP_HEAD ? kedge_view_of(NULL, 0) : kedge_buf_view(&text));
    return true;
}

/* When a quorum of witnesses is demanded, what is published of the main chain is what it has cosigned:
 * readers who demand it too would not take a newer one. Also when nothing is newer: by the time that a worker
 * looked, something might be. */
static bool reply_final(struct kedge_host *h, const struct read_item *i, const struct kedge_resource_ask *ask,
                        uint32_t party)
{
    struct kedge_resource r = {.ask = *ask, .file = {.fd = -1}};
    if (ask->kind != KEDGE_RESOURCE_CHECKPOINT || ask->log != &h->main) {
        return false;
    }
    kedge_buf_init(&r.kept, KEDGE_NOTE_MAX);
    kedge_host_final_note(h, &r.kept);
    r.size = r.kept.len;
    bool there = r.size > 0 && !r.kept.err;
    if (there) {
        const struct read_work w = {.req = i->req, .ask = *ask, .offset = i->offset, .party = party};
        reply(&w, &r);
    }
    kedge_resource_close(&r);
    return there;
}

/* Tokens and tenants are looked at; nothing is read here. */
static void answer(struct kedge_host *h, const struct read_item *item)
{
    struct read_item i = *item;
    struct kedge_resource_ask ask;
    uint32_t party = 0;
    struct kedge_log_reader reader;
    const struct kedge_http_head *head = kedge_http_request_head(i.req);
    int err = find_reader(h, head, &reader, &party);
    if (!err && reply_events(h, &i, &reader, party)) {
        return;
    }
    err = err ? err
              : kedge_host_resource_ask(h, &reader, kedge_view_of(head->target.ptr + 1, head->target.len - 1),
                                        &ask);
    if (!err && reply_final(h, &i, &ask, party)) {
        return;
    }
    struct read_work *w = err ? NULL : kedge_mem_new(1, sizeof *w);
    if (!w) {
        refuse_error(i.req, i.offset, err ? err : KEDGE_E_NOMEM);
        return;
    }
    *w = (struct read_work){.work = {.item = {read_done}, .run = read_run},
                            .req = i.req,
                            .ask = ask,
                            .offset = i.offset,
                            .party = party};
    take_turn(h, w);
}

static void answer_waiter(struct kedge_host *h, struct kedge_http_request *req)
{
    answer(h, &(struct read_item){.req = req, .has_waited = true});
}

static void handle_request(struct kedge_host *h, struct kedge_inbox_item *item)
{
    const struct read_item i = *(struct read_item *)item;
    kedge_mem_free(item);
    answer(h, &i);
}

static void on_request(void *arg, struct kedge_http_request *req, uint64_t offset)
{
    struct kedge_host *h = arg;
    struct read_item *item = kedge_mem_new(1, sizeof *item);
    if (item) {
        *item = (struct read_item){.item = {.handle = handle_request}, .req = req, .offset = offset};
        if (kedge_inbox_put(h, line_of(kedge_http_request_party(req)), &item->item)) {
            return;
        }
        kedge_mem_free(item);
    }
    refuse_error(req, offset, KEDGE_E_BUSY);
}

/* ---- life ---- */

static int write_address(struct kedge_host *h, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX], text[KEDGE_HTTP_URL_MAX + 1];
    snprintf(text, sizeof text, "%s\n", kedge_host_https_url(h));
    KEDGE_TRY(kedge_state_path(path, d, h->state, "https-address"));
    return kedge_file_write(path, kedge_view_str(text), 0600, d);
}

int kedge_host_https_open(struct kedge_host *h, struct kedge_diag *d)
{
    const struct kedge_config *c = &h->config;
    if (!c->https_listen[0]) {
        return KEDGE_OK;
    }
    struct kedge_http_options options = {.urls = {c->https_listen},
                                         .key = &h->tls_key,
                                         .certificate_file =
                                             c->https_certificate[0] ? c->https_certificate : NULL,
                                         .key_file = c->https_key[0] ? c->https_key : NULL,
                                         .insecure = c->insecure,
                                         .counts_strangers = true,
                                         .connections = h->places.https,
                                         .handler = on_request,
                                         .arg = h};
    h->https_turns = kedge_mem_new(1, sizeof *h->https_turns);
    h->events_waiting = kedge_mem_new(1, sizeof *h->events_waiting);
    if (!h->https_turns || !h->events_waiting) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "https: out of memory");
    }
    h->events_waiting->most = kedge_events_waiting_most(h->places.https);
    int err = kedge_http_server_open(&options, &h->https, d);
    if (err) {
        return kedge_diag_wrap(d, err, "config.json: \"https_listen\"");
    }
    kedge_log(KEDGE_LOG_INFO, "listening", "%s", kedge_host_https_url(h));
    if (c->https_listen[4] == ':') {
        kedge_log(KEDGE_LOG_WARN, "INSECURE",
                  "%s is plain: tokens can be read on the way; for measuring only", c->https_listen);
    }
    return write_address(h, d);
}

void kedge_host_https_close(struct kedge_host *h)
{
    kedge_events_wait_look(h, KEDGE_TIME_NEVER); /* each request comes back to the server */
    kedge_http_server_close(h->https);
    h->https = NULL;
}

const char *kedge_host_https_url(const struct kedge_host *h)
{
    return h->https ? kedge_http_server_url(h->https, 0) : NULL;
}
