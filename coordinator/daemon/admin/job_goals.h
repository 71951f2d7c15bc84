/* A job's budget, targets and deadline in answers to operators. On the loop thread, but for the first two. */
#ifndef KEDGE_COORDINATOR_DAEMON_ADMIN_JOB_GOALS_H
#define KEDGE_COORDINATOR_DAEMON_ADMIN_JOB_GOALS_H

#include "coordinator/daemon/jobs.h"

struct json_t;
struct kedge_host;

/* Sets "budget": its unit, what it is, what is spent, in millionths of the unit, and what the next round may
 * take (next; NULL: there is none). Any thread. */
void kedge_admin_put_budget(struct json_t *o, const struct kedge_job_spec *spec, uint64_t spent,
                            const uint64_t *next);
/* Sets "targets": their values, for how many evaluations in a row each is reached, and how many are. Any
 * thread. */
void kedge_admin_put_targets(struct json_t *o, const struct kedge_job_spec *spec,
                             const struct kedge_job_test *tested);
/* Sets "deadline_ms", unix time, where it is not 0, and "deadline_passed". */
void kedge_admin_put_deadline(struct json_t *o, uint64_t deadline_ms);
/* The models with which so many targets were reached last, by group; ret: KEDGE_GROUPS_MAX. Errors of
 * kedge_host_release_find, and of reading what it finds. */
KEDGE_NODISCARD int kedge_admin_models_of_tier(struct kedge_host *h, const struct kedge_job *job,
                                               uint32_t tier, struct kedge_hash *ret, uint32_t *ret_count,
                                               struct kedge_diag *d);

#endif
