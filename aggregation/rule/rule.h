/* Rules that make one result of a group's updates, most of them robust: a stated number of bad updates moves
 * the result no farther than a stated bound. A rule is a row of a table and works in two steps:
 *   1. kedge_rule_weigh: whole-number weights, from the base weights and, where the row says so, from exact
 *      norms and inner products of the updates. Scalars only, O(count³) at most.
 *   2. the vectors, tile by tile: kedge_mean_tile with these weights and their divisor, or, when the row is
 * of kind KEDGE_RULE_COORDINATE, kedge_rule_tile. The host's order: kedge_rule_base → cap on shares
 * (share_cap.h), if the job has one → kedge_rule_effective → norms (norm.h) and Gram matrix (gram.h), if
 * needed → kedge_rule_weigh → tiles. Sameness: callers sort updates by (tenant, site); every tie goes to the
 * lowest index; integers where vectors meet, binary64 with + − × ÷ √ in a fixed order for scalars. Pure, any
 * thread. docs/modules/aggregation.md has guarantees and definitions. */
#ifndef KEDGE_AGGREGATION_RULE_RULE_H
#define KEDGE_AGGREGATION_RULE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum {
    KEDGE_RULE_VECTORS_MAX =
        512,                   /* updates of one group, the root update included; as KEDGE_GRAM_VECTORS_MAX */
    KEDGE_RULE_VOTE = 1 << 20, /* one update's vote before any cap, where samples do not count */
    KEDGE_RULE_PARTS = 1000000, /* fraction is taken in millionths, to the nearest */
};
#define KEDGE_RULE_FRACTION_MAX 0.499999
#define KEDGE_RULE_BOUND_MAX 1e9

enum kedge_rule_kind {
    KEDGE_RULE_MEAN,       /* weights as they come */
    KEDGE_RULE_WEIGHING,   /* weights of its own, then the weighted mean */
    KEDGE_RULE_COORDINATE, /* order statistics of each coordinate: kedge_rule_tile */
};

struct kedge_rule_params {
    double fraction; /* of the votes that may be bad, 0 … 0.499999 */
    double bound; /* norm clipping: longest update (L2 norm, in the model's units); 0 = median of the norms */
};

/* What a coordinate rule keeps of a sorted column. */
enum kedge_rule_keeps {
    KEDGE_RULE_KEEPS_MIDDLE,  /* the middle value, or the middle two */
    KEDGE_RULE_KEEPS_BETWEEN, /* all but the f least and the f greatest */
    KEDGE_RULE_KEEPS_NEAREST, /* of the updates chosen all but the 2f farthest from their median */
};

struct kedge_rule_inputs;
typedef int kedge_rule_weigh_fn(const struct kedge_rule_params *params,
                                const struct kedge_rule_inputs *inputs, uint64_t *weight,
                                uint64_t *ret_divisor);

struct kedge_rule {
    const char *name;      /* "trimmed-mean": stands in specs and records */
    const char *title;     /* "coordinate-wise trimmed mean" */
    const char *guarantee; /* one line for people, f = number of bad updates, n = all */
    const char *source;    /* paper */
    enum kedge_rule_kind kind;
    enum kedge_rule_keeps keeps; /* of coordinate rules */
    bool samples;     /* base weights are the strategy's (samples); otherwise each update has one vote */
    bool caps;        /* honours a cap on a tenant's share */
    bool needs_norms; /* inputs.norm_sq */
    bool needs_gram;  /* inputs.gram and maxima */
    bool needs_root;  /* the last vector, norm and row of the Gram matrix is the update made from root data */
    bool uses_fraction, uses_bound;
    unsigned per_bad; /* where not 0, the rule takes at least per_bad · f + 3 votes */
    struct kedge_rule_params defaults;
    kedge_rule_weigh_fn *weigh; /* called by kedge_rule_weigh; NULL: the base weights stay */
};

/* What is known of a group's updates. Arrays marked R have one more element (or row), the root update's, when
 * there is one: count + 1, the root's last. Borrowed for the call. */
struct kedge_rule_inputs {
    size_t count;           /* updates, at least 1 */
    const uint64_t *weight; /* base weights, from kedge_rule_base, perhaps capped; a sum of at least 1 */
    uint64_t divisor;       /* of the strategy's weights; read where rule->samples */
    unsigned scale_bits;    /* values are in units of 2^-scale_bits; read where rule->uses_bound */
    const double *norm_sq;  /* R: kedge_norm_value of each update (units of 2^-2·scale_bits) */
    const int64_t *gram;    /* R × R: as kedge_gram_tile makes it */
    const uint32_t *maxima; /* R: as kedge_max_abs makes them */
    bool has_root;          /* must be what rule->needs_root says */
};

size_t kedge_rule_count(void);
const struct kedge_rule *kedge_rule_at(size_t i);
/* NULL when there is none of this name. */
const struct kedge_rule *kedge_rule_find(const char *name);

/* KEDGE_E_ARG when a number that the rule uses is not finite or out of range. */
KEDGE_NODISCARD int kedge_rule_params_check(const struct kedge_rule *rule,
                                            const struct kedge_rule_params *params);

/* base[i] = the strategy's weight[i] where the rule takes samples, else KEDGE_RULE_VOTE; count elements, base
 * may be weight, which is read only where the rule takes samples. */
void kedge_rule_base(const struct kedge_rule *rule, const uint64_t *weight, size_t count, uint64_t *base);

/* The rule that runs: `rule` itself, or the coordinate median where the votes are too few for it (Krum and
 * multi-Krum below 2f + 3 votes, Bulyan below 4f + 3). Records name the rule that ran. weight: base weights
 * after any cap. */
const struct kedge_rule *kedge_rule_effective(const struct kedge_rule *rule,
                                              const struct kedge_rule_params *params, const uint64_t *weight,
                                              size_t count);

/* weight[count] and divisor of the result: base model + Σ weight · q / (divisor · 2^scale_bits) for means;
 * for coordinate rules the votes that kedge_rule_tile takes. Each weight is below 2^31. Rules that need a
 * Gram matrix keep Σ weight · max|q| below 2^62; of the others the host sees to it as for any mean. All
 * weights may be 0 (nobody agrees with the root update): the model stays. KEDGE_E_ARG: an input is absent or
 * out of range, or the votes are too few (kedge_rule_effective was not asked); KEDGE_E_OVERFLOW: a weight
 * would not fit; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_rule_weigh(const struct kedge_rule *rule, const struct kedge_rule_params *params,
                                     const struct kedge_rule_inputs *inputs, uint64_t *weight,
                                     uint64_t *ret_divisor);

/* Coordinates first … first + n − 1 of a coordinate rule's result, written to out[0 … n). base and each
 * vector point at coordinate 0, as for kedge_mean_tile; out may be base + first. weight: from
 * kedge_rule_weigh; vectors of weight 0 take no part (their pointers may be NULL). With each update standing
 * for `weight` copies of itself, the result is
 *     (float)((double)base + (double)S / ((double)W · 2^scale_bits))
 * where S sums the W copies that the rule keeps of the sorted column; so the median of an even number is the
 * exact mean of the middle two. KEDGE_E_ARG: no coordinate rule, no votes, or a number out of range. */
KEDGE_NODISCARD int kedge_rule_tile(const struct kedge_rule *rule, const struct kedge_rule_params *params,
                                    const float *base, const int32_t *const *vectors, const uint64_t *weight,
                                    size_t count, size_t first, size_t n, unsigned scale_bits, float *out);

#endif
