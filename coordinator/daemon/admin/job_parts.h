/* The plan of a job's open round in answers to operators and admins. On the loop thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_ADMIN_JOB_PARTS_H
#define KEDGE_COORDINATOR_DAEMON_ADMIN_JOB_PARTS_H

#include "coordinator/daemon/jobs.h"

struct json_t;
struct kedge_host;

/* Sets "plan", where the open round has one: the part of its data of each selected site, and what that takes
 * by what the site said last; sums over all of them. for_admin: of the sites of the tenants that
 * its holder sees; NULL: of all. */
void kedge_admin_put_plan(struct kedge_host *h, const struct kedge_job *job,
                          const struct kedge_public_key *for_admin, struct json_t *o);

#endif
