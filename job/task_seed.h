/* The seed that a site's trainer gets with a task. It is no decision that anybody makes again, but a
 * simulated job trains with the seeds of a real one. Pure. */
#ifndef KEDGE_JOB_TASK_SEED_H
#define KEDGE_JOB_TASK_SEED_H

#include <stdint.h>

#include "common/base/text.h"

/* The first 63 bits of SHA-256 over the job's seed, the round (eight bytes each, most significant first) and
 * the site's name. */
uint64_t kedge_task_seed(uint64_t job_seed, uint32_t round, const struct kedge_id *site);

#endif
