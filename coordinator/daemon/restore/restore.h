/* Restart: what was durable, told to the core. */
#ifndef KEDGE_COORDINATOR_DAEMON_RESTORE_RESTORE_H
#define KEDGE_COORDINATOR_DAEMON_RESTORE_RESTORE_H

#include "common/base/diag.h"

struct kedge_host;

/* Once, before anything is served. */
KEDGE_NODISCARD int kedge_host_restore(struct kedge_host *h, struct kedge_diag *d);
/* Once, after it: the core starts, and what was cut off goes on. */
void kedge_host_begin(struct kedge_host *h);

#endif
