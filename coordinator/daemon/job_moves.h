/* The status history of jobs: every move from one state to the next, appended to coordinator.lmdb and never
 * changed, so that a reader who reads it again and again sees each move once and in order, over any number of
 * restarts. A move is a compare-and-swap: it names the state that it leaves, and is refused where the history
 * ends in another one. It is told when it is durable, not before. The core's table of transitions
 * (coordinator/core) says which moves there are.
 *
 * An epoch is one start of a coordinator over the store. Only the newest one writes: a second coordinator, or
 * an old copy that came back, is stopped at its first move.
 *
 * What could not be stored (a full disk) waits here, in memory. A halt that began and ended meanwhile was
 * never told and is left out; so nothing piles up, and what is stored later is a history that a job may have.
 * After KEDGE_JOB_MOVES_MAX moves of one job halts are stored only when they end in another state than they
 * began in, by the same means: a site that comes and goes cannot fill the disk. On the loop thread but for
 * kedge_job_moves_page. */
#ifndef KEDGE_COORDINATOR_DAEMON_JOB_MOVES_H
#define KEDGE_COORDINATOR_DAEMON_JOB_MOVES_H

#include "chain/store/kv/kv.h"
#include "coordinator/daemon/records.h"

enum {
    KEDGE_JOB_MOVES_WAITING_MAX = 24, /* a life without its halts has 6 moves, with one before each 12 */
    KEDGE_JOB_MOVES_MAX = 65536,      /* of one job, 10 MB; then halts that change nothing are left out */
};

struct kedge_job_moves {
    enum kedge_job_state state;     /* where the history ends, with what waits … */
    int reason;                     /* … and why it is there */
    uint32_t durable;               /* moves that are stored */
    uint32_t waiting_count, handed; /* handed: of those that wait, how many the open transaction has */
    struct kedge_job_move waiting[KEDGE_JOB_MOVES_WAITING_MAX];
};

enum kedge_job_move_outcome {
    KEDGE_JOB_MOVE_TAKEN,
    KEDGE_JOB_MOVE_REPEATED, /* the history ends so already: told twice, or again after a restart */
    KEDGE_JOB_MOVE_ILLEGAL,  /* it leaves a state in which the job is not, there is no such way, or it names a
                                reason for a state that needs none */
    KEDGE_JOB_MOVE_NO_ROOM,  /* too much waits */
};

/* Of a new job: pending. */
void kedge_job_moves_begin(struct kedge_job_moves *ret);
/* What the store has of this job's moves. The history ends as its record says; moves that lead there and are
 * not stored, by a version that kept no moves or after a full disk, wait. KEDGE_E_CORRUPT: no way leads
 * there; a record is damaged. */
KEDGE_NODISCARD int kedge_job_moves_load(struct kedge_kv_tx *tx, const struct kedge_job_record *record,
                                         uint64_t now_ms, struct kedge_job_moves *ret,
                                         struct kedge_diag *reterr);
/* Takes a move; its job, sequence and epoch are set when it is stored. */
enum kedge_job_move_outcome kedge_job_moves_take(struct kedge_job_moves *m,
                                                 const struct kedge_job_move *move);
/* Takes the moves that lead from where the history ends to move->to: the last one as told, those before as
 * progress. What a restart finds in the main chain and the store does not have yet. False: there is no way,
 * and nothing is taken. */
bool kedge_job_moves_lead(struct kedge_job_moves *m, const struct kedge_job_move *move);
/* Puts what waits into the transaction. KEDGE_E_EXISTS: another coordinator has written since. */
KEDGE_NODISCARD int kedge_job_moves_put(struct kedge_kv_tx *tx, const struct kedge_id *job, uint64_t epoch,
                                        struct kedge_job_moves *m, struct kedge_diag *reterr);
/* The transaction is durable. */
void kedge_job_moves_settle(struct kedge_job_moves *m);

/* Up to `most` moves of a job from this one on; *ret_more: there are others after them. KEDGE_E_CORRUPT. */
KEDGE_NODISCARD int kedge_job_moves_page(struct kedge_kv *kv, const struct kedge_id *job, uint32_t from,
                                         uint32_t most, struct kedge_job_move *ret, uint32_t *ret_count,
                                         bool *ret_more, struct kedge_diag *reterr);

/* A coordinator starts: makes its epoch durable. */
KEDGE_NODISCARD int kedge_job_moves_epoch(struct kedge_kv *kv, uint64_t *ret, struct kedge_diag *reterr);

/* The class of an error that halted or ended a job; PROGRESS for KEDGE_OK. */
enum kedge_job_cause kedge_job_cause_of(int err);
/* "insufficient-resources" */
const char *kedge_job_cause_name(enum kedge_job_cause cause);
/* The error whose text this is, as job-closed has it; KEDGE_OK: none. */
int kedge_job_reason_of(const char *text);

#endif
