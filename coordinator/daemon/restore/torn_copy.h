/* A state folder is several files that change one after the other: a plain copy of it, made while its
 * coordinator runs, holds each as of another moment, and of a store perhaps half of a commit. What would come
 * of serving it looks like a coordinator that lies. So a start looks for that, and says what to do. */
#ifndef KEDGE_COORDINATOR_DAEMON_RESTORE_TORN_COPY_H
#define KEDGE_COORDINATOR_DAEMON_RESTORE_TORN_COPY_H

#include "common/base/diag.h"

struct kedge_walk;
struct kedge_tenant;

/* Before anything in the folder is opened, and before there are threads: it forks. A backup is refused
 * (KEDGE_E_STATE): it stays as it is, and is restored first. A folder whose STATE/in-use is of another folder
 * is looked at to the last bit: KEDGE_E_CORRUPT names the first thing that is torn. */
KEDGE_NODISCARD int kedge_torn_check_folder(const char *state, struct kedge_diag *d);
/* At every start: the tenant's ledger is not shorter than the main chain's last checkpoint of it, and has its
 * root. w->last_index: where that checkpoint stands in the main chain. */
KEDGE_NODISCARD int kedge_torn_check_anchored(struct kedge_walk *w, const struct kedge_tenant *t);
/* At every start: no tenant has updates of a round of w->job that the main chain has not opened. */
KEDGE_NODISCARD int kedge_torn_check_rounds(struct kedge_walk *w);

#endif
