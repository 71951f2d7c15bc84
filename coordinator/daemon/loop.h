/* The loop: what it does next, work for others, and steps of the core with what follows from them. */
#ifndef KEDGE_COORDINATOR_DAEMON_LOOP_H
#define KEDGE_COORDINATOR_DAEMON_LOOP_H

#include <stdint.h>

#include "common/base/err.h"
#include "coordinator/schedule/fair.h"

struct kedge_host;
struct kedge_coord_event;
struct kedge_commit_result;
struct kedge_ledger;

/* Anything that the loop does next. `handle` runs on the loop thread and frees the item's owner. */
struct kedge_item {
    void (*handle)(struct kedge_host *h, struct kedge_item *item);
};
/* Work for a worker thread: `run` there, then item.handle on the loop. First member so that it can be cast
 * back. */
struct kedge_work {
    struct kedge_item item;
    void (*run)(struct kedge_host *h, struct kedge_work *work);
    struct kedge_item back; /* from here on: the workers' own */
    struct kedge_fair_item in_line;
    uint32_t line;
};
/* From any thread; waits for room. */
void kedge_host_post(struct kedge_host *h, struct kedge_item *item);

/* Steps the core and executes its effects until none are left. ev->now_ns is set here. */
void kedge_host_step(struct kedge_host *h, struct kedge_coord_event *ev);
/* The same after what is going on now: for effects whose outcome is known at once. */
void kedge_host_post_event(struct kedge_host *h, const struct kedge_coord_event *ev);
/* Ends the process after the current item: storage is damaged or the outcome cannot be known. */
void kedge_host_fail(struct kedge_host *h, int err, const char *what);

/* Logs why a commit failed, for callbacks that keep its code only; nothing when it did not. Any thread. */
void kedge_host_log_commit(const struct kedge_commit_result *result);
/* The outcome of a commit, to be called by its callback, with what operators can act on: UNKNOWN says only
 * that the entries are stored without a signed checkpoint, so the ledger is asked what keeps it from signing.
 * Stays UNKNOWN when nothing does any more. For the core every failure but REVOKED is of unknown outcome. */
int kedge_host_commit_err(struct kedge_ledger *l, const struct kedge_commit_result *result);

/* ---- workers.c ---- */
/* From the loop thread; neither waits nor fails. The work stands in the line of the request, or the earlier
 * work, that it comes from (workers.h). */
void kedge_host_work(struct kedge_host *h, struct kedge_work *work);
/* The same in a line that is known already (inbox.h), and in the coordinator's own: what it does for a job or
 * for itself, no matter whose request brought it about. */
void kedge_host_work_in(struct kedge_host *h, uint32_t line, struct kedge_work *work);
void kedge_host_work_own(struct kedge_host *h, struct kedge_work *work);

/* ---- turns.c ---- */
/* Takes items and watches the core's deadline until `stop`; returns `fatal`. */
int kedge_host_run(struct kedge_host *h);

#endif
