/* The table of jobs, their history, and their records in coordinator.lmdb. */
#ifndef KEDGE_COORDINATOR_DAEMON_JOBS_H
#define KEDGE_COORDINATOR_DAEMON_JOBS_H

#include "chain/statement/statement.h"
#include "common/tensor/layout.h"
#include "coordinator/core/coord.h"
#include "coordinator/daemon/job_moves.h"
#include "coordinator/daemon/restore/history.h"
#include "coordinator/daemon/rounds/troubles.h"
#include "coordinator/schedule/target.h"
#include "crypto/hash.h"
#include "job/job_spec.h"
#include "round/state.h"

struct kedge_host;
struct kedge_main_batch;
struct kedge_round_result;

enum {
    KEDGE_HISTORY_MAX = 4096
}; /* rounds that `job show` can tell of a job that runs; older ones are in the record */

/* What the job's last round-tested says; zeros: there is none. */
struct kedge_job_test {
    uint32_t round, tier;
    struct kedge_schedule_held held;
    uint32_t
        told_count; /* models that reached a target and that job.model has told of: they are handed out */
    struct kedge_hash told[KEDGE_GROUPS_MAX];
};

struct kedge_job {
    bool used;
    bool unopened;        /* it has waited for its place: the core does not know it yet */
    bool cancelled_early; /* while it was being submitted, or unopened: the core hears of it with the job */
    uint32_t slot;        /* KEDGE_COORD_NONE: it is to wait for one, and is not in the table */
    struct kedge_job_spec spec;
    struct kedge_hash spec_digest, initial_model;
    struct kedge_hash
        first_models[KEDGE_GROUPS_MAX]; /* as many as kedge_job_spec_models; [0]: initial_model */
    uint32_t spec_len;
    struct kedge_layout layout, update_layout; /* of a training update: kedge_job_spec_update_layout */
    uint64_t model_len, update_len;
    uint64_t control_len; /* of the server's control variate or the frozen base, 0: none */
    int32_t limit;        /* largest |q| */
    enum kedge_job_state state;
    int reason;
    const char
        *fault_of; /* what last failed, in words for every tenant (job-closed says it); NULL: nothing … */
    char fault[KEDGE_DIAG_TEXT_MAX]; /* … and why, for the operator alone: it may name sites and paths */
    struct kedge_troubles troubles;  /* what sites said of it */
    char classes[KEDGE_CLASS_NAMES_ROOM]; /* learnt from its sites, as the step of round 1 says; none before …
                                           */
    char classes_fault[KEDGE_DIAG_TEXT_MAX]; /* … and why there are none after it; "" */
    char trouble_text[160];                  /* why too few sites can train it, in reasons and numbers */
    int stored_state;                        /* what its record says, -1: no record yet */
    struct kedge_job_moves moves;            /* its status history */
    char cancelled_by[KEDGE_ACTOR_MAX + 1];  /* who asked for its end, "" */
    uint64_t created_ms;
    uint64_t deadline_ms;                    /* unix time, as its job-admitted says; 0: it has none */
    char token_hash[KEDGE_HASH_HEX_LEN + 1]; /* of the submit token, "" without */
    bool *joined;                            /* by tenant handle, KEDGE_TENANTS_MAX */
    bool *left;                              /* the same: it joined, and has left since */
    struct kedge_round_state at; /* after the last closed round; of an ended job the released models */
    struct kedge_job_test tested;
    struct kedge_round_site *sites; /* by handle: by, last_update, last_base; the rest is the core's */
    struct kedge_close_evaluation *evaluations; /* by handle: of the trial of `at.round`; samples 0: none */
    uint32_t round;                             /* of the open or last round */
    bool has_refusals;                          /* stored by this process, of refused_round */
    uint32_t refused_round;
    struct kedge_round_history *history; /* ring of KEDGE_HISTORY_MAX by round; open rounds, too */
    struct kedge_round_result *result;   /* between ROUND_COMPUTED and the durable close */
    struct kedge_main_batch *batch;      /* between the first try of a main append and its success */
    struct kedge_coord_job_params params;
};

/* ---- jobs.c ---- */
struct kedge_job *kedge_host_job_find(struct kedge_host *h, const struct kedge_id *id, bool ended_too);
/* The job's spec names the tenant, which may or may not have joined. */
bool kedge_host_job_names(const struct kedge_job *job, uint32_t tenant);
/* Notes what failed and why, for job-closed and `job show` should it end the job. `what` is kept. */
void kedge_host_job_fault(struct kedge_job *job, const char *what, const char *format, ...)
    KEDGE_PRINTF(3, 4);
bool kedge_host_job_has_ended(const struct kedge_job *job);
/* The core has been told of it. Before that its place in the core is still that of the job before. */
bool kedge_host_job_is_told(const struct kedge_job *job);
/* What the core says of it. False also for one that it has not been told of. */
bool kedge_host_job_view(const struct kedge_host *h, const struct kedge_job *job,
                         struct kedge_coord_job_view *ret);
/* control.c: what a site is given beside the model: the server's control variate, or the frozen base; NULL:
 * nothing. */
const struct kedge_hash *kedge_host_control(const struct kedge_job *job, enum kedge_task_kind kind);
/* This blob is the job's base, or its control variate of the last closed round or the one before, and the
 * site takes part. */
bool kedge_host_may_read_control(const struct kedge_host *h, const struct kedge_job *job, uint32_t site,
                                 const struct kedge_hash *digest);
/* trials.c: what the site evaluates beside the model that this round gave its group, NULL: nothing; … */
const struct kedge_hash *kedge_host_trial(const struct kedge_job *job, uint32_t group, uint32_t round);
/* … it may read it; … */
bool kedge_host_may_read_trial(const struct kedge_host *h, const struct kedge_job *job, uint32_t site,
                               const struct kedge_hash *digest);
/* … its evaluation is durable, at this entry of its tenant's ledger. */
void kedge_job_evaluated(struct kedge_job *job, uint32_t site, const struct kedge_st_evaluation *e,
                         uint64_t leaf);
/* All of the job's targets are reached. */
static inline bool kedge_job_is_at_target(const struct kedge_job *job)
{
    return job->spec.target_count > 0 && job->tested.tier == job->spec.target_count;
}
/* … or the first of two. */
static inline bool kedge_job_is_useful(const struct kedge_job *job)
{
    return job->spec.target_count > 1 && job->tested.tier > 0;
}
/* job_table.c: its deadline is known: when the core wants its rounds done. */
void kedge_host_job_promise(struct kedge_job *job, uint64_t deadline_ms);
/* NULL without `create` when it is not there, and when a later round has its place. */
struct kedge_round_history *kedge_job_history(struct kedge_job *job, uint32_t round, bool create);
/* A close is durable: if it is that of the last round, its row is whole now. */
void kedge_job_history_closed(struct kedge_host *h, struct kedge_job *job);
void kedge_job_metric_add(struct kedge_job *job, const struct kedge_st_evaluation *ev);
uint64_t kedge_job_task_seed(const struct kedge_job *job, uint32_t round, const struct kedge_id *site);

/* ---- job_table.c ---- */
/* There is a free slot, or one of a job that has ended. */
bool kedge_host_job_has_room(const struct kedge_host *h);
/* Parses the spec and fills a free slot; the job is not yet known to the core. KEDGE_E_FULL. */
KEDGE_NODISCARD int kedge_host_job_make(struct kedge_host *h, struct kedge_view spec_text,
                                        struct kedge_job **ret, struct kedge_diag *d);
/* The same without a slot, for a job that is to wait for one: what has to be known to make its first model,
 * and no room for sites or rounds. */
KEDGE_NODISCARD int kedge_host_job_make_waiting(struct kedge_host *h, struct kedge_view spec_text,
                                                struct kedge_job **ret, struct kedge_diag *d);
/* Frees the slot, or the job itself if it has none. */
void kedge_host_job_free(struct kedge_job *job);
/* Writes the job's record by compare-and-swap: KEDGE_E_EXISTS when it is not what this process wrote last.
 * The moves that led there become durable with it. With that of a job that has ended its refusals go. */
KEDGE_NODISCARD int kedge_host_job_store(struct kedge_host *h, struct kedge_job *job, struct kedge_diag *d);
/* The job moves from `from` to job->state, for job->reason: noted in its history, not yet stored. False: such
 * a move is refused, and the log says so. */
bool kedge_host_job_move(struct kedge_host *h, struct kedge_job *job, enum kedge_job_state from);
/* Stores the job where its record lags behind. A full disk: tried again by kedge_host_jobs_store_again, a
 * second later; any other failure ends the process. */
void kedge_host_job_keep(struct kedge_host *h, struct kedge_job *job);
void kedge_host_jobs_store_again(struct kedge_host *h, uint64_t now_ns);

#endif
