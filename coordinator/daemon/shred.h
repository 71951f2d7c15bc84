/* The end of a tenant's keys that updates are encrypted under: where a job has ended and nothing of its
 * updates is to be read any more, its key is destroyed, and what backups have of the files is noise. */
#ifndef KEDGE_COORDINATOR_DAEMON_SHRED_H
#define KEDGE_COORDINATOR_DAEMON_SHRED_H

#include "chain/statement/statement.h"
#include "chain/store/blob/blobs.h"
#include "chain/store/ledger.h"
#include "common/base/os/file.h"

struct kedge_host;

/* Of one tenant; values only, for workers. */
struct kedge_shred {
    struct kedge_blobs *blobs;
    struct kedge_ledger *ledger;
    char refused_dir[KEDGE_PATH_MAX];
    struct kedge_id *ended; /* keys of jobs that have ended: nobody uploads under them any more */
    size_t ended_count;
};

/* Which jobs have ended. On the loop thread; in the end kedge_shred_end. */
KEDGE_NODISCARD int kedge_shred_begin(struct kedge_host *h, uint32_t tenant, struct kedge_shred *ret);
/* Destroys the keys of those whose updates the ledger orders to be erased one and all, and of those that have
 * no update, once no refused file of theirs is kept. Reads the heads of the folder's files. Any thread. */
KEDGE_NODISCARD int kedge_shred_run(const struct kedge_shred *s, size_t *ret_count, struct kedge_diag *d);
/* The same where there is such a job, which is told without reading the folder. */
KEDGE_NODISCARD int kedge_shred_run_if_due(const struct kedge_shred *s, size_t *ret_count,
                                           struct kedge_diag *d);
void kedge_shred_end(struct kedge_shred *s);
/* All of it at once; before or after the loop. */
KEDGE_NODISCARD int kedge_host_shred(struct kedge_host *h, uint32_t tenant, size_t *ret_count,
                                     struct kedge_diag *d);
/* An entry of our own ledger: its signature was checked when it was appended. */
KEDGE_NODISCARD int kedge_host_read_own(struct kedge_ledger *l, uint64_t index, struct kedge_statement *ret);

#endif
