/* Statements for the main chain that become durable together. */
#ifndef KEDGE_COORDINATOR_DAEMON_ROUNDS_MAIN_BATCH_H
#define KEDGE_COORDINATOR_DAEMON_ROUNDS_MAIN_BATCH_H

#include "chain/statement/statement.h"
#include "chain/store/committer.h"
#include "common/base/bytes.h"
#include "common/base/limits.h"
#include "coordinator/core/coord.h"

struct kedge_host;
struct kedge_job;

enum { KEDGE_MAIN_BATCH_MAX = KEDGE_APPEND_MAX }; /* one transaction */
_Static_assert((int)KEDGE_MAIN_BATCH_MAX >= KEDGE_JOB_TENANTS_MAX + KEDGE_GROUPS_MAX + 2,
               "a round's close fits");

/* What a batch is made of. Statements are signed and tenants' checkpoints taken when it is handed over, on
 * the loop thread: by the statement key that is in force where they will stand. */
struct kedge_main_item {
    enum { KEDGE_MAIN_ITEM_STATEMENT, KEDGE_MAIN_ITEM_CHECKPOINT, KEDGE_MAIN_ITEM_ENVELOPE } kind;
    uint32_t tenant;    /* of a checkpoint, … */
    uint64_t size;      /* … and the size that is anchored with it; 0: there was none to write */
    size_t entry_end;   /* of its entry in `entries`, once it is signed */
    size_t offset, len; /* payload of a statement, or an envelope, in `bytes` */
    size_t ref_first, ref_count;
    char key[KEDGE_IDEM_KEY_MAX + 1];
};

/* Statements on their way into the main chain: once handed over, the same bytes again when the outcome was
 * unknown. */
struct kedge_main_batch {
    struct kedge_buf bytes;
    struct kedge_main_item *items; /* owned, at most KEDGE_MAIN_BATCH_MAX */
    size_t count, item_cap;
    struct kedge_hash *refs; /* owned, all items' together */
    size_t ref_count, ref_cap;
    bool closes_job; /* job-closed is in it */
    bool held;       /* waits for the statement key: coordinator/daemon/admin/authority.h */
    bool is_signed;  /* what follows is there */
    struct kedge_buf entries;
    struct kedge_ledger_append *appends; /* owned */
    size_t append_count;
};

KEDGE_NODISCARD int kedge_main_batch_new(struct kedge_main_batch **ret);
void kedge_main_batch_free(struct kedge_main_batch *b);
/* Adds a statement with its idempotency key, and with the references that follow from it
 * (chain/statement/entry_index.h). KEDGE_E_TOO_LONG: signed it would be no entry. */
KEDGE_NODISCARD int kedge_main_batch_statement(struct kedge_main_batch *b, const struct kedge_statement *st,
                                               struct kedge_diag *d, const char *key_format, ...)
    KEDGE_PRINTF(4, 5);
/* Adds one that is signed already. */
KEDGE_NODISCARD int kedge_main_batch_envelope(struct kedge_main_batch *b, struct kedge_view envelope,
                                              struct kedge_view key);
/* Adds the checkpoint that the tenant's ledger has when the batch is handed over; none when it has not grown
 * since its last one. */
KEDGE_NODISCARD int kedge_main_batch_checkpoint(struct kedge_main_batch *b, uint32_t tenant);
/* Whether the tenant's ledger has a checkpoint that is neither in the main chain nor on its way there. */
bool kedge_main_batch_is_behind(const struct kedge_host *h, uint32_t tenant);
/* Signs what is not signed yet and hands over. On the loop thread; `done` as the committer's. */
KEDGE_NODISCARD int kedge_main_batch_hand_over(struct kedge_host *h, struct kedge_main_batch *b,
                                               kedge_commit_done *done, void *arg);
/* It is durable: raises anchored sizes. */
void kedge_main_batch_settle(struct kedge_host *h, const struct kedge_main_batch *b);
/* It is not, and will not be tried again: its checkpoints are still to be written. */
void kedge_main_batch_abandon(struct kedge_host *h, const struct kedge_main_batch *b);
/* It failed with an outcome that may be unknown, and will not be tried again: settles or abandons it. */
void kedge_main_batch_look(struct kedge_host *h, const struct kedge_main_batch *b);
/* The job gives it up, though it failed with an outcome that may be unknown: looks whether it is durable, and
 * settles or abandons it. */
void kedge_main_batch_give_up(struct kedge_host *h, struct kedge_job *job);
/* Hands a job's batch over, or holds it while the statement key changes; MAIN_APPENDED follows with the
 * outcome. On success the batch is freed. */
void kedge_main_batch_submit(struct kedge_host *h, struct kedge_job *job);

#endif
