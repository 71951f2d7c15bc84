/* Anchors are made by processes of their own (kedge anchor run), which leave their evidence in STATE/anchors.
 * This looks there for new ones. On the loop thread; a worker reads the folders. */
#ifndef KEDGE_COORDINATOR_DAEMON_EVENTS_ANCHORS_H
#define KEDGE_COORDINATOR_DAEMON_EVENTS_ANCHORS_H

#include <stdbool.h>
#include <stdint.h>

#include "chain/anchor/kind.h"

struct kedge_host;

struct kedge_anchors_seen {
    uint64_t newest[KEDGE_ANCHOR_KINDS_MAX]; /* number of the newest, 0: none */
    bool is_known;                           /* what was there at the start is told by nobody */
    bool is_busy;
    uint64_t due_ns;
};

/* Looks every few seconds; an event for each kind of which a new one has come. */
void kedge_host_anchors_look(struct kedge_host *h, struct kedge_anchors_seen *seen, uint64_t now_ns);

#endif
