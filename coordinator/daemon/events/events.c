/* A tenant's stream has numbers of its own, without a gap: a jump would tell it that others are here, and how
 * busy they are. Nothing is stored for that but one count a tenant: which events of the ring a tenant may see
 * is with the event, and how many it has seen in all gives the number of its last one. */
#include "coordinator/daemon/events/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/events/events_impl.h"
#include "coordinator/daemon/rounds/main_batch.h"
#include "coordinator/events/recorded.h"

enum {
    RING_EVENTS = 4096,
    RING_BYTES = 4 << 20,
};

int kedge_host_events_open(struct kedge_host *h, struct kedge_diag *d)
{
    if (h->epoch > KEDGE_EVENT_RUNS_MAX) { /* a start each minute for twenty months */
        kedge_log(KEDGE_LOG_WARN, "events", "none are told: this is start %" PRIu64, h->epoch);
        return KEDGE_OK;
    }
    struct kedge_events *e = kedge_mem_new(1, sizeof *e);
    if (!e || !(e->scratch = kedge_mem_new(1, sizeof *e->scratch))
        || kedge_event_ring_new(RING_EVENTS, RING_BYTES, &e->ring) != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for events");
    }
    e->base = h->epoch * KEDGE_EVENT_RUN;
    e->due_ns = e->companion.due_ns = KEDGE_TIME_NEVER;
    h->events = e;
    return KEDGE_OK;
}

/* ---- the stream ---- */

void kedge_host_events_stop(struct kedge_host *h)
{
    if (h->events) {
        h->events->due_ns = KEDGE_TIME_NEVER;
        kedge_companion_stop(&h->events->companion);
    }
}

void kedge_host_events_close(struct kedge_host *h)
{
    struct kedge_events *e = h->events;
    kedge_host_events_stop(h);
    if (e) {
        kedge_event_ring_free(e->ring);
        kedge_mem_free(e->tenant_counts);
        kedge_mem_free(e->sites);
        kedge_mem_free(e->scratch);
        kedge_mem_free(e);
        h->events = NULL;
    }
}

static uint64_t count_of(const struct kedge_events *e, uint32_t tenant)
{
    return tenant < e->tenant_cap ? e->tenant_counts[tenant] : 0;
}

uint64_t kedge_host_events_next(const struct kedge_host *h, uint32_t tenant)
{
    const struct kedge_events *e = h->events;
    return e ? e->base + (tenant == KEDGE_COORD_NONE ? e->count : count_of(e, tenant)) + 1 : 1;
}

const char *kedge_host_events_stream(const struct kedge_host *h)
{
    const struct kedge_events *e = h->events;
    return e && !e->companion.is_ended && e->companion.due_ns != KEDGE_TIME_NEVER ? e->companion.socket : "";
}

const struct kedge_event_ring *kedge_host_events_ring(const struct kedge_host *h)
{
    return h->events ? h->events->ring : NULL;
}

/* Room for the handle, with zeros; false: no memory, then this tenant's count stays behind. */
static bool grow(struct kedge_events *e, uint32_t tenant)
{
    if (tenant < e->tenant_cap) {
        return true;
    }
    const uint32_t cap = tenant < 64 ? 64 : 2 * tenant;
    uint64_t *p = kedge_mem_resize(e->tenant_counts, cap, sizeof *p);
    if (!p) {
        return false;
    }
    memset(p + e->tenant_cap, 0, (cap - e->tenant_cap) * sizeof *p);
    e->tenant_counts = p;
    e->tenant_cap = cap;
    return true;
}

/* "TOPIC LINE" to those who subscribe. */
static void say(struct kedge_events *e, const char *stream, uint64_t seq, struct kedge_view topic,
                struct kedge_view rest)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_EVENT_TOPIC_MAX + KEDGE_EVENT_LINE_MAX);
    kedge_buf_put(&text, topic.ptr, topic.len);
    kedge_buf_put_str(&text, " ");
    kedge_event_head(seq, &text);
    kedge_buf_put(&text, rest.ptr, rest.len);
    if (!text.err) {
        kedge_companion_write(&e->companion, &(struct kedge_event_frame){.type = KEDGE_EVENT_FRAME_SAY,
                                                                         .name = kedge_view_str(stream),
                                                                         .payload = kedge_buf_view(&text)});
    }
}

static void say_to_tenants(struct kedge_events *e, const struct kedge_event_row *row)
{
    for (uint32_t i = 0; i < row->tenant_count; i++) {
        if (grow(e, row->tenants[i])) {
            e->tenant_counts[row->tenants[i]]++;
        }
    }
    for (uint32_t s = 0; s < e->stream_count; s++) {
        const struct kedgei_event_stream *stream = &e->streams[s];
        if (stream->tenant != KEDGE_COORD_NONE && kedge_event_row_is_for(row, stream->tenant)) {
            say(e, stream->id.s, e->base + count_of(e, stream->tenant), row->topic, row->rest);
        }
    }
}

void kedge_host_event(struct kedge_host *h, struct kedge_event *event, const uint32_t *tenants,
                      uint32_t tenant_count)
{
    struct kedge_events *e = h->events;
    struct kedge_buf topic KEDGE_CLEANUP(kedge_buf_deinit), rest KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&topic, KEDGE_EVENT_TOPIC_MAX);
    kedge_buf_init(&rest, KEDGE_EVENT_REST_MAX);
    if (!e || e->count + 1 >= KEDGE_EVENT_RUN) {
        return;
    }
    event->time_ms = kedge_os_unix_ms();
    event->main_size = h->main_known;
    kedge_event_topic(event, &topic);
    kedge_event_rest(event, &rest);
    e->count++; /* also of one that cannot be told: then the gap says so */
    if (topic.err || rest.err) {
        return;
    }
    const struct kedge_event_row row = {.seq = e->base + e->count,
                                        .tenants = tenants,
                                        .tenant_count = tenant_count,
                                        .topic = kedge_buf_view(&topic),
                                        .rest = kedge_buf_view(&rest)};
    kedge_event_ring_push(e->ring, &row);
    say(e, "", row.seq, row.topic, row.rest);
    say_to_tenants(e, &row);
}

bool kedgei_events_grow_sites(struct kedge_host *h)
{
    struct kedge_events *e = h->events;
    if (h->site_count <= e->site_cap) {
        return true;
    }
    const uint32_t cap = 2 * h->site_count;
    struct kedgei_told_site *p = kedge_mem_resize(e->sites, cap, sizeof *p);
    if (!p) {
        return false;
    }
    memset(p + e->site_cap, 0, (cap - e->site_cap) * sizeof *p);
    e->sites = p;
    e->site_cap = cap;
    return true;
}

/* ---- things that happen ---- */

void kedge_host_event_of_job(struct kedge_host *h, const struct kedge_job *job, struct kedge_event *e)
{
    e->job = job->spec.name;
    kedge_host_event(h, e, job->params.tenants, job->params.tenant_count);
}

/* In the order of the history, before those that wait are forgotten. */
void kedge_host_event_job_moved(struct kedge_host *h, const struct kedge_job *job)
{
    for (uint32_t i = 0; i < job->moves.handed; i++) {
        const struct kedge_job_move *move = &job->moves.waiting[i];
        struct kedge_event e = {.kind = KEDGE_EVENT_JOB,
                                .entry = KEDGE_EVENT_NO_ENTRY,
                                .move = move->sequence,
                                .from = kedge_job_state_name(move->from),
                                .to = kedge_job_state_name(move->to),
                                .cause = kedge_job_cause_name(move->cause),
                                .reason = move->reason ? kedge_err_code(move->reason) : NULL};
        kedge_host_event_of_job(h, job, &e);
    }
}

/* The close of a round as its history has it, for that is kept from the same statements: nothing is read. */
static void tell_closed(struct kedge_host *h, struct kedge_job *job, uint64_t entry)
{
    const struct kedge_round_history *row = kedge_job_history(job, job->round, false);
    if (!row) {
        return;
    }
    struct kedge_event e = {
        .kind = KEDGE_EVENT_ROUND_CLOSED,
        .entry = entry,
        .round = row->round,
        .groups = row->groups,
        .accepted = row->accepted,
        .refused = row->refused,
        .round_ms = row->opened_ms && row->closed_ms > row->opened_ms ? row->closed_ms - row->opened_ms : 0};
    kedge_host_event_of_job(h, job, &e);
}

static void tell_entry(struct kedge_host *h, struct kedge_job *job, uint64_t entry)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_event e;
    bool is_event = false;
    int err = kedge_event_recorded(h->main.ledger, entry, h->events->scratch, &e, &is_event, &d);
    if (err) {
        kedge_log(KEDGE_LOG_WARN, "events", "%s", d.text[0] ? d.text : kedge_strerror(err));
    } else if (is_event && e.kind == KEDGE_EVENT_HEAD) {
        const uint32_t tenant = kedge_host_tenant_find(h, &e.tenant);
        kedge_host_event(h, &e, &tenant, tenant != KEDGE_COORD_NONE);
    } else if (is_event) {
        kedge_host_event_of_job(h, job, &e);
    }
}

static void tell_head(struct kedge_host *h, uint64_t size)
{
    struct kedge_event e = {.kind = KEDGE_EVENT_HEAD, .entry = KEDGE_EVENT_NO_ENTRY, .size = size};
    if (kedge_ledger_root(h->main.ledger, size, &e.hash) == KEDGE_OK) {
        kedge_host_event(h, &e, NULL, 0);
    }
}

/* The entries of a batch are the last ones before `end`, in its order. Aggregates tell nothing by themselves:
 * the step sums them up. */
void kedge_host_event_batch(struct kedge_host *h, struct kedge_job *job, uint64_t end)
{
    const struct kedge_main_batch *b = job->batch;
    if (!h->events || !b || end < b->append_count) {
        return;
    }
    for (size_t i = 0; i < b->append_count; i++) {
        const uint64_t entry = end - b->append_count + i;
        const struct kedge_view key = b->appends[i].idem_key;
        if (key.len > 5 && memcmp(key.ptr, "step/", 5) == 0) {
            tell_closed(h, job, entry);
        } else if (key.len < 10 || memcmp(key.ptr, "aggregate/", 10) != 0) {
            tell_entry(h, job, entry);
        }
    }
    tell_head(h, end);
}

/* At most one a second of a site: one that is refused as often as it likes must not push what others did out
 * of the ring. */
void kedge_host_event_refused(struct kedge_host *h, uint32_t site, const struct kedge_statement *st, int err)
{
    const struct kedge_site_entry *s = &h->sites[site];
    const uint64_t now_ns = kedge_os_now_ns();
    if (!h->events || st->kind != KEDGE_ST_UPDATE || !kedgei_events_grow_sites(h)) {
        return;
    }
    struct kedgei_told_site *told = &h->events->sites[site];
    if (told->refused_ns > 0 && now_ns - told->refused_ns < KEDGEI_EVENTS_LOOK_NS) {
        return;
    }
    told->refused_ns = now_ns;
    struct kedge_event e = {.kind = KEDGE_EVENT_REFUSED,
                            .entry = KEDGE_EVENT_NO_ENTRY,
                            .job = st->u.update.job,
                            .round = st->u.update.round,
                            .tenant = h->tenants[s->tenant].id,
                            .site = s->id,
                            .reason = kedge_err_code(err)};
    kedge_host_event(h, &e, &s->tenant, 1);
}

void kedge_host_event_final(struct kedge_host *h, uint64_t size)
{
    struct kedge_event e = {.kind = KEDGE_EVENT_FINAL, .entry = KEDGE_EVENT_NO_ENTRY, .size = size};
    kedge_host_event(h, &e, NULL, 0);
}
