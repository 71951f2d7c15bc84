/* Restart: what sites trained last, where that says which group they are in. */
#ifndef KEDGE_COORDINATOR_DAEMON_RESTORE_RESTORE_TRAINED_H
#define KEDGE_COORDINATOR_DAEMON_RESTORE_RESTORE_TRAINED_H

#include "coordinator/daemon/restore/restore_walk.h"

/* From the update statements of the rounds up to w->job->round, which are closed; nothing for other jobs. */
KEDGE_NODISCARD int kedge_restore_trained(struct kedge_walk *w);

#endif
