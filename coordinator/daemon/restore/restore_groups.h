/* Restart: groups of sites, from the tenants' ledgers and the lists of the last close. */
#ifndef KEDGE_COORDINATOR_DAEMON_RESTORE_RESTORE_GROUPS_H
#define KEDGE_COORDINATOR_DAEMON_RESTORE_RESTORE_GROUPS_H

#include "chain/statement/input_list.h"
#include "common/base/task_kind.h"
#include "coordinator/daemon/restore/restore_walk.h"

typedef int kedge_restore_row(struct kedge_walk *w, uint32_t site, const struct kedge_input_row *row);
/* Reads a list blob and calls `row` for each of its rows with the site's handle, until one returns an error.
 */
KEDGE_NODISCARD int kedge_restore_rows(struct kedge_walk *w, const struct kedge_hash *salted,
                                       const struct kedge_hash *digest, kedge_restore_row *row);
/* Tells the core the groups that statements gave; all that is known before a round is closed. */
KEDGE_NODISCARD int kedge_restore_stated(struct kedge_walk *w);
/* Tells the core the groups in force and those that the last round, w->job->round, gave without a statement
 * so far; `kind` is that round's. */
KEDGE_NODISCARD int kedge_restore_groups(struct kedge_walk *w, enum kedge_task_kind kind);

#endif
