/* A learning simulation and the folder of its results. One file holds all of it, `state.bin`: replaced as a
 * whole, durably, every so many rounds, so that a run that was killed goes on where that stands and ends as
 * one that was not. What people and other programs read is made from it:
 *
 *   spec.json     the whole spec, every key
 *   rounds.jsonl  a line per round, appended as rounds end
 *   rounds.csv    likewise
 *   summary.json  when the run is complete
 */
#ifndef KEDGE_SIM_LEARN_REPORT_REPORT_RUN_H
#define KEDGE_SIM_LEARN_REPORT_REPORT_RUN_H

#include "sim/learn/report/report.h"

/* kedge_learn_run, or kedge_protocol_run of sim/protocol. */
typedef int kedge_learn_run_fn(const struct kedge_learn_spec *spec, const struct kedge_learn_host *host,
                               struct kedge_diag *reterr);

struct kedge_learn_task {
    const struct kedge_learn_spec *spec;
    kedge_learn_run_fn *run; /* NULL: kedge_learn_run */
    const char *images;      /* where the data are, when not where the spec says; else NULL */
    const char *out;         /* folder, made when absent; NULL: nothing is written */
    bool resume;             /* go on with what stands in `out`, if anything */
    uint32_t threads;        /* of each process, 0: as many as processors */
    uint32_t processes;      /* of this machine, 1…KEDGE_LEARN_PROCESSES_MAX, when exchange is NULL */
    const struct kedge_learn_exchange *exchange; /* others to share the work with, or NULL */
    uint32_t save_every;                         /* rounds, 0: only the end is kept */
    uint32_t save_ms;                            /* but not sooner than so long after the last time */
    /* Called on rank 0 after each round, also for those that were run before (`again`); false stops the run,
     * which can then be resumed. May be NULL. */
    bool (*on_round)(void *arg, const struct kedge_learn_round *round, bool again);
    void *arg;
    /* As kedge_learn_host's, on rank 0. May be NULL. */
    void (*say)(void *arg, const char *line);
    void *say_arg;
};

struct kedge_learn_result {
    struct kedge_learn_round *rounds; /* owned */
    uint32_t count;
    bool complete;     /* false: stopped by on_round */
    bool was_complete; /* nothing had to be run */
    uint32_t resumed;  /* rounds that were there already */
    uint64_t spent_ms; /* wall-clock time, all runs together */
    struct kedge_learn_summary summary;
    struct kedge_hash spec;
};

/* SHA-256 of the bytes of kedge_learn_spec_put: what names a run. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_learn_spec_digest(const struct kedge_learn_spec *spec, struct kedge_hash *ret);

/* Runs, or goes on. On ranks other than 0 of `exchange` the result is empty; nothing is written there.
 * KEDGE_E_EXISTS: the folder holds results and resume is off; KEDGE_E_STATE: of another spec; KEDGE_E_LOCKED:
 * another process writes there; KEDGE_E_CORRUPT: state.bin; and what kedge_learn_run answers. Free by
 * kedge_learn_result_deinit. */
KEDGE_NODISCARD int kedge_learn_report_run(const struct kedge_learn_task *task,
                                           struct kedge_learn_result *ret, struct kedge_diag *reterr);
void kedge_learn_result_deinit(struct kedge_learn_result *r);

#endif
