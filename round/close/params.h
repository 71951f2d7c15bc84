/* What a job's spec says to the coordinator's core. */
#ifndef KEDGE_ROUND_CLOSE_PARAMS_H
#define KEDGE_ROUND_CLOSE_PARAMS_H

#include "chain/statement/statement.h"
#include "coordinator/core/coord.h"
#include "coordinator/schedule/target.h"
#include "job/job_spec.h"

/* tenants: handles of the spec's tenants, in its order. All of *ret is set. */
void kedge_close_params(const struct kedge_job_spec *spec, const uint32_t *tenants,
                        struct kedge_coord_job_params *ret);

/* The numbers by which the core knows a set of labels (common/base/labels.h): the first 16 bytes of each
 * one's SHA-256, ascending. Returns how many. Labels are strangers' texts, and who makes up both of two finds
 * a pair with the same n bits after 2^(n/2) tries: that is an afternoon's work for 64 bits, and out of reach
 * for 128. */
uint32_t kedge_close_labels(struct kedge_view labels, struct kedge_coord_label ret[KEDGE_LABEL_COUNT_MAX]);

/* What the evaluations of a round (counts: how many, samples, correct) say of the job's targets: io is what
 * was held before and after. Returns how many targets are reached. */
uint32_t kedge_close_test(const struct kedge_job_spec *spec, const struct kedge_st_round_tested *counts,
                          struct kedge_schedule_held *io);
/* A round after which `after` targets are reached, `before` it `before`, releases its models at once: not
 * where they are the job's last ones. */
bool kedge_close_releases(const struct kedge_job_spec *spec, uint32_t before, uint32_t after);

#endif
