/* The aggregate of a group when its round closes, in two steps as in aggregation/rule/rule.h: what each
 * update weighs, then the vectors. Both are decisions that an auditor makes again. Weights come from what the
 * update statements say and, for some strategies and rules, from the updates' norms and inner products. */
#ifndef KEDGE_ROUND_AGGREGATE_H
#define KEDGE_ROUND_AGGREGATE_H

#include "aggregation/rule/rule.h"
#include "round/compute.h"
#include "strategy/strategy.h"

/* One update of the group. */
struct kedge_compute_input {
    struct kedge_blob_at update;       /* not read where statements are enough */
    uint32_t tenant;                   /* its place in the spec */
    bool is_root;                      /* of the job's root site (kedge_job_spec_is_root) */
    struct kedge_strategy_input facts; /* norm_sq is found here where it is needed */
};

struct kedge_compute_weights {
    const struct kedge_rule *rule; /* that runs: the spec's or, with too few updates for it, another */
    uint64_t *weight;              /* as many as there are inputs; the caller's memory */
    uint64_t divisor;
};

/* Weights of the group's updates, in site order (ascending tenant, site); cold_start: of the pre-training
 * that made the group, in which all count the same. Files are read when the rule needs norms or a Gram
 * matrix, or the strategy weighs by them. With layout NULL they are not, and *ret has rule alone where they
 * would have to be: KEDGE_E_NOT_FOUND. Where the rule needs a root, exactly one input is it, at least one is
 * not; its weight is 0. KEDGE_E_ARG (also: no root, or nothing but it), KEDGE_E_OVERFLOW, KEDGE_E_NOMEM and
 * those of files. */
KEDGE_NODISCARD int kedge_compute_weigh(const struct kedge_job_spec *spec, const struct kedge_layout *layout,
                                        bool cold_start, const struct kedge_compute_input *inputs,
                                        size_t count, struct kedge_compute_weights *ret,
                                        struct kedge_diag *reterr);

/* The result of these weights: a model. limit: the job's largest |q|. KEDGE_E_OVERFLOW. */
KEDGE_NODISCARD int kedge_compute_aggregate(const struct kedge_job_spec *spec,
                                            const struct kedge_layout *layout,
                                            const struct kedge_blob_at *of_base,
                                            const struct kedge_compute_input *inputs, size_t count,
                                            const struct kedge_compute_weights *weights, int32_t limit,
                                            struct kedge_sink sink, struct kedge_diag *reterr);

#endif
