/* Jobs with deadlines: is another one promised its own, beside those that were promised theirs? What the
 * coordinator decides and an auditor computes again, from what the main chain says of the others.
 *
 * A promise stands from job-admitted to job-closed or its deadline. Only those count whose jobs share sites
 * with the new one: a tenant, or a tenant of a job that does, and so on. What such a job has left is its
 * rounds, each as long as the longest of its last KEDGE_SCHEDULE_COSTS, and a quarter, for a round is more
 * than its tasks (coordinator/schedule/turn.h); before its first one each is as long as its job-admitted
 * says. Its sites' time is divided in KEDGE_ST_SHARES, and with k of them it goes k times as fast as with
 * one. That is on the safe side: rounds of jobs that share some of their sites only go on side by side.
 * KEDGE_PROMISED_SHARES are promised; the others stay with jobs that have no deadline. */
#ifndef KEDGE_ROUND_CLOSE_PROMISE_H
#define KEDGE_ROUND_CLOSE_PROMISE_H

#include "chain/statement/statement.h"
#include "coordinator/schedule/budget.h"
#include "job/job_spec.h"

enum { KEDGE_PROMISED_SHARES = 12 };

/* A job that was promised a deadline and has not ended, by the main chain's first main_size entries. */
struct kedge_promise {
    const struct kedge_job_spec *spec;
    uint32_t round;                   /* of its last step; 0: there is none */
    uint64_t round_ms, deadline_ms;   /* as its job-admitted says */
    struct kedge_schedule_book times; /* milliseconds from a round's first opening to its step */
};

/* Decides of a job with deadline_s. io: job, main_size, guard_ms and time_ms are set, all else is made from
 * them. The kind of the statement that says so: JOB_ADMITTED or JOB_REFUSED. promises: any order, at most
 * KEDGE_ST_PROMISES_MAX. */
enum kedge_statement_kind kedge_close_promise(const struct kedge_job_spec *spec,
                                              const struct kedge_promise *promises, uint32_t count,
                                              struct kedge_st_job_admission *io);

#endif
