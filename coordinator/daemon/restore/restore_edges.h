/* Restart: what the edges of a hierarchical job have added up since they met. */
#ifndef KEDGE_COORDINATOR_DAEMON_RESTORE_RESTORE_EDGES_H
#define KEDGE_COORDINATOR_DAEMON_RESTORE_RESTORE_EDGES_H

#include "coordinator/daemon/restore/restore_walk.h"

/* Fills w->job->since from the lists of the closed rounds up to w->job->round; nothing for other jobs. */
KEDGE_NODISCARD int kedge_restore_edges(struct kedge_walk *w);

#endif
