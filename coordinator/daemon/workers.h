/* Threads that do what takes long or waits for the disk, so that the loop does neither. What the loop hands
 * over stands in the lines that requests stand in (inbox.h): work stands in the line of the request that it
 * comes from, also in its second and third step, and each line is served by deficit round robin over the time
 * that its work took. So one tenant's uploads and downloads hold up its own and nobody else's. Work is handed
 * over by kedge_host_work (loop.h). */
#ifndef KEDGE_COORDINATOR_DAEMON_WORKERS_H
#define KEDGE_COORDINATOR_DAEMON_WORKERS_H

#include "common/base/diag.h"

struct kedge_host;
struct kedge_workers; /* kedge_host.workers */

/* Starts `count` threads, at least 1. On error there are none. */
KEDGE_NODISCARD int kedge_workers_open(struct kedge_host *h, unsigned count, struct kedge_diag *d);
/* Waits until all that was handed over is done; nothing may be handed over any more. Fine when none were
 * started. */
void kedge_workers_close(struct kedge_host *h);

#endif
