/* Readers over HTTPS who ask for events that have not happened yet ("/events?from=N&wait=S") and are answered
 * as soon as one has, or after S seconds: they hear of it at once and do not ask every second. On the loop
 * thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_WEB_EVENTS_WAIT_H
#define KEDGE_COORDINATOR_DAEMON_WEB_EVENTS_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/net/web/http.h"

struct kedge_host;
struct kedge_http_request;

/* A request that waits holds a connection and the memory for a piece of its answer, as any that the server
 * has handed over. So those that wait have a quarter of either, or some tenants' readers would keep all
 * others out for as long as they like. */
enum {
    KEDGE_EVENTS_WAITING_MAX = (int)KEDGE_CHUNK_BUDGET / (int)KEDGE_HTTP_PIECE_MAX / 4,
    KEDGE_EVENTS_WAITING_OF_PARTY = 16,
};

struct kedge_events_waiter {
    struct kedge_http_request *req;
    uint32_t tenant; /* whose stream, KEDGE_COORD_NONE: the operator's */
    uint32_t party;  /* kedge_http_answer.party */
    uint64_t from;   /* the event that it waits for */
    uint64_t until_ns;
    /* Answers the request; it is judged anew then, for a token may have been revoked meanwhile. */
    void (*answer)(struct kedge_host *h, struct kedge_http_request *req);
};

struct kedge_events_waiting {
    struct kedge_events_waiter of[KEDGE_EVENTS_WAITING_MAX];
    uint32_t count, most; /* most: kedge_events_waiting_most of the server's connections */
    uint64_t seen;        /* the operator's stream's next number as of the last look */
    uint64_t due_ns;      /* when the first one's time is over; KEDGE_TIME_NEVER */
};

/* How many may wait at a time at a server of so many connections: 1 or more. */
uint32_t kedge_events_waiting_most(unsigned connections);
/* Keeps it; false: it need not wait, or too many of its party, or of all, do: it is to be answered now. */
bool kedge_events_wait(struct kedge_host *h, const struct kedge_events_waiter *waiter);
/* When kedge_events_wait_look has something to do even if nothing happens. */
uint64_t kedge_events_wait_due_ns(const struct kedge_host *h);
/* Answers those for whom something has happened, or whose time is over. now_ns KEDGE_TIME_NEVER: all. */
void kedge_events_wait_look(struct kedge_host *h, uint64_t now_ns);

#endif
