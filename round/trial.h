/* Whether two groups become one, or a group that was cut in two stays so, by what their sites' own test
 * samples say: each site has measured its group's model and a trial model, the mean of both groups' or what
 * its part alone would have made. Nothing here reads a vector but the directions that say which groups are
 * tried together. Coordinator, auditor and simulation share it. */
#ifndef KEDGE_ROUND_TRIAL_H
#define KEDGE_ROUND_TRIAL_H

#include "round/compute.h"

enum {
    KEDGE_TRIAL_SITES_LEAST = 2, /* where there are so many */
    KEDGE_TRIAL_TENANTS_LEAST = 2,
    KEDGE_TRIAL_TIMES = 3, /* what is usual, a weight or a difference counts at most */
};

/* What one site of the two groups has found. In the order of (tenant, site). */
struct kedge_trial_input {
    uint32_t tenant; /* its place in the spec */
    uint32_t side;   /* 0, 1: in which of the two groups it was */
    uint64_t samples;
    double loss, trial_loss; /* means over the samples: of its group's model, of the trial */
};
/* How many sites and tenants the two groups have, whether they evaluated or not. */
struct kedge_trial_crowd {
    uint32_t sites[2], tenants;
};

/* A site's difference, trial less own, counts by its samples (at most weight_max, and KEDGE_TRIAL_TIMES the
 * median of what the sites have), by the cap on a tenant's share where the job has one, and is itself no
 * further from 0 than KEDGE_TRIAL_TIMES the weighted median of how far they all are, so that no few numbers
 * decide for all. Where that is 0, all count 0. *ret_joins: the mean difference is not above 0, and enough
 * have said so: each side that has sites, and KEDGE_TRIAL_SITES_LEAST sites and KEDGE_TRIAL_TENANTS_LEAST
 * tenants, or all where there are fewer. Losses that are not finite or below 0, and evaluations of no
 * samples, do not count. Groups without sites join. KEDGE_E_ARG, KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_compute_trial(const struct kedge_job_spec *spec,
                                        const struct kedge_trial_input *inputs, size_t count,
                                        const struct kedge_trial_crowd *crowd, bool *ret_joins);

/* Whether a group that was cut in two stays so. inputs: of sites of both parts; the loss is that of the model
 * that the whole group had made, trial_loss that of the one which the updates of the site's part alone would
 * have made in the same round. Weights, bounds and who is enough as above; where too few have said so, no.
 * *ret_stays: the mean difference is below 0 by more than its standard error, which is as below. */
KEDGE_NODISCARD int kedge_compute_cut_stays(const struct kedge_job_spec *spec,
                                            const struct kedge_trial_input *inputs, size_t count,
                                            const struct kedge_trial_crowd *crowd, bool *ret_stays);

/* Whether sites are better served by what their own training makes of their group's model than by that model
 * itself. inputs: of sites that have both; trial_loss is that of their own, side is not read. Weights and
 * bounds as above. With the mean difference m, the number of inputs n = (sum of weights)^2 / (sum of their
 * squares) that the weights are worth, and the mean square v of what differences are off m, the standard
 * error of m is the root of v / (n - 1): *io_is_personal becomes true where m is below 0 by more than two of
 * that, false where m is above 0, and stays in between, where there are fewer than two sites or, in a job of
 * several tenants, than two of these. So the group's model serves until something else is shown to. */
KEDGE_NODISCARD int kedge_compute_personal(const struct kedge_job_spec *spec,
                                           const struct kedge_trial_input *inputs, size_t count,
                                           bool *io_is_personal);

/* with[g]: the group that g is tried with, g itself where with none: always the two nearest of those that are
 * left, by the cosine of their directions, ties to the lowest numbers. is_part: of groups that are part of
 * others, whose directions are not read. */
KEDGE_NODISCARD int kedge_compute_pairs(const struct kedge_layout *layout,
                                        const struct kedge_blob_at *directions, const bool *is_part,
                                        size_t groups, uint32_t *with, struct kedge_diag *reterr);

#endif
