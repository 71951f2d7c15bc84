/* Restart of an asynchronous job: models of rounds that may still be waited for, and who is at work. */
#ifndef KEDGE_COORDINATOR_DAEMON_RESTORE_RESTORE_BUFFER_H
#define KEDGE_COORDINATOR_DAEMON_RESTORE_RESTORE_BUFFER_H

#include "chain/statement/input_list.h"
#include "coordinator/daemon/restore/restore_walk.h"

/* Tells the core the rounds in front of `last`, the last closed one, whose models tasks may still begin with.
 * Overwrites w->st. */
KEDGE_NODISCARD int kedge_restore_models(struct kedge_walk *w, uint32_t last);
/* The last round, which *opened opened, is closed and no other is open: tells the core who goes on with its
 * task, for nothing of it is in a list. */
KEDGE_NODISCARD int kedge_restore_at_work(struct kedge_walk *w, const struct kedge_st_round_opened *opened);
/* Updates of the open round, also those for tasks of earlier rounds: hands `each` those that their sites are
 * at work on. */
KEDGE_NODISCARD int kedge_restore_updates(struct kedge_walk *w, uint32_t open, kedge_walk_each *each);

#endif
