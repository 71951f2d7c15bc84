/* What happens at a coordinator, as records for people and programs that watch it: one line of JSON each,
 * described in docs/events.md. A line has a sequence number of the stream that it stands in, so it is made in
 * two parts: what is the same for all streams, and the head with the number. */
#ifndef KEDGE_COORDINATOR_EVENTS_EVENT_H
#define KEDGE_COORDINATOR_EVENTS_EVENT_H

#include "common/base/bytes.h"
#include "common/base/text.h"
#include "crypto/hash.h"

enum {
    KEDGE_EVENT_VERSION = 1,
    KEDGE_EVENT_TOPIC_MAX = 160,  /* bytes: "job/NAME/KIND" */
    KEDGE_EVENT_REST_MAX = 1024,  /* bytes of a line after its head */
    KEDGE_EVENT_LINE_MAX = 1200,  /* bytes of a line */
    KEDGE_EVENT_STREAMS_MAX = 64, /* tenants with a stream of their own */
};

/* Sequence numbers of a stream grow for ever: the first after a start of the coordinator is
 * start · 10^10 + 1, where starts are the epochs of coordinator.lmdb. What was published before the start is
 * thereby below what is published after it, and all are whole numbers that JSON readers get right. */
#define KEDGE_EVENT_RUN UINT64_C(10000000000)
#define KEDGE_EVENT_RUNS_MAX UINT64_C(900000)

#define KEDGE_EVENT_NO_ENTRY UINT64_MAX

enum kedge_event_kind {
    KEDGE_EVENT_JOB,
    KEDGE_EVENT_JOB_OPENED,
    KEDGE_EVENT_ROUND_OPENED,
    KEDGE_EVENT_ROUND_CLOSED,
    KEDGE_EVENT_JOB_CLOSED,
    KEDGE_EVENT_RELEASE,
    KEDGE_EVENT_REFUSED,
    KEDGE_EVENT_HEAD,
    KEDGE_EVENT_FINAL,
    KEDGE_EVENT_SITE,
    KEDGE_EVENT_WITNESS,
    KEDGE_EVENT_ANCHOR,
    KEDGE_EVENT_KINDS
};

/* Which members a kind has is in the table of event.c; the others are not looked at. Texts are words
 * [a-zA-Z0-9._-]. */
struct kedge_event {
    enum kedge_event_kind kind;
    uint64_t time_ms;   /* wall clock; 0: nobody said */
    uint64_t main_size; /* entries of the main chain that the coordinator knew of; 0: not told */
    uint64_t entry;     /* of the main chain that says the same; KEDGE_EVENT_NO_ENTRY: none */
    struct kedge_id job;
    struct kedge_id tenant; /* of a head: whose ledger; "": the main chain */
    struct kedge_id site;   /* or a witness */
    uint32_t move;          /* of a job: its number in the job's history */
    uint32_t round, draw, group, groups, accepted, refused, selected;
    uint64_t round_ms; /* how long a round was open */
    uint64_t size;
    bool is_pretraining;
    const char *from, *to, *cause, *reason; /* NULL and "": not told */
    struct kedge_hash hash;                 /* of a model, or a root */
};

/* "round-closed". */
const char *kedge_event_name(enum kedge_event_kind kind);
/* Appends the topic, by which subscribers choose: "job/JOB/KIND", "tenant/TENANT/KIND" or "main/KIND". */
void kedge_event_topic(const struct kedge_event *e, struct kedge_buf *out);
/* Appends the line without its head: from `"time_ms":` to `}`. */
void kedge_event_rest(const struct kedge_event *e, struct kedge_buf *out);
/* Appends the head of a line, `{"v":1,"seq":N,`; without a number (0) `{"v":1,`, for what is told from the
 * record. */
void kedge_event_head(uint64_t seq, struct kedge_buf *out);

#endif
