/* What the tests of rules share: a group's updates, and a rule run over them as a host runs it. */
#ifndef KEDGE_TESTS_UNIT_AGGREGATION_RULE_SUPPORT_H
#define KEDGE_TESTS_UNIT_AGGREGATION_RULE_SUPPORT_H

#include <math.h>

#include "aggregation/gram.h"
#include "aggregation/mean.h"
#include "aggregation/rule/rule.h"
#include "aggregation/rule/rule_impl.h"
#include "tests/fixtures/whole_updates.h"
#include "tests/unit/aggregation/support.h"

enum { UPDATES_MAX = 40, DIMENSION_MAX = 300, RULE_SCALE = 16 };

/* The last update is the root's when the rule needs one. */
struct updates {
    size_t count, dimension;
    int32_t values[UPDATES_MAX + 1][DIMENSION_MAX];
    uint64_t samples[UPDATES_MAX];
    float model[DIMENSION_MAX];
    /* results */
    uint64_t base[UPDATES_MAX], weight[UPDATES_MAX];
    uint64_t divisor;
    float out[DIMENSION_MAX];
};

static inline const struct kedge_rule *rule_of(const char *name)
{
    const struct kedge_rule *rule = kedge_rule_find(name);
    ck_assert_ptr_nonnull(rule);
    return rule;
}

/* Bad updates of n with one vote each that the rule's guarantee covers (docs/modules/aggregation.md); any
 * number for norm clipping by a given bound and for root data. */
static inline size_t tolerated_by(const struct kedge_rule *rule, const struct kedge_rule_params *params,
                                  size_t n)
{
    const uint64_t votes = (uint64_t)n * KEDGE_RULE_VOTE;
    const bool clips = strcmp(rule->name, "norm-clipping") == 0;
    if (strcmp(rule->name, "mean") == 0) {
        return 0;
    }
    if (rule->needs_root || (clips && params->bound > 0)) {
        return n;
    }
    if (!rule->uses_fraction) {
        return n > 0 ? (n - 1) / 2 : 0;
    }
    const uint64_t bad = kedgei_rule_bad(params, votes);
    return rule->per_bad == 0 || n >= rule->per_bad * bad + 3 ? (size_t)bad : 0;
}

/* Measures and weighs with u->base as it is. */
static inline int weigh_updates(const struct kedge_rule *rule, const struct kedge_rule_params *params,
                                struct updates *u, uint64_t samples_divisor)
{
    static int64_t gram[(UPDATES_MAX + 1) * (UPDATES_MAX + 1)];
    const int32_t *vectors[UPDATES_MAX + 1];
    double norm_sq[UPDATES_MAX + 1];
    uint32_t maxima[UPDATES_MAX + 1];
    const size_t all = u->count + (rule->needs_root ? 1 : 0);
    for (size_t k = 0; k < all; k++) {
        vectors[k] = u->values[k];
    }
    int err = measure_of(rule, vectors, all, u->dimension, norm_sq, maxima, gram);
    ck_assert_int_eq(err, KEDGE_OK);
    const struct kedge_rule_inputs inputs = {.count = u->count,
                                             .weight = u->base,
                                             .divisor = samples_divisor,
                                             .scale_bits = RULE_SCALE,
                                             .norm_sq = rule->needs_norms ? norm_sq : NULL,
                                             .gram = rule->needs_gram ? gram : NULL,
                                             .maxima = rule->needs_gram ? maxima : NULL,
                                             .has_root = rule->needs_root};
    return kedge_rule_weigh(rule, params, &inputs, u->weight, &u->divisor);
}

/* Coordinates first … first + n − 1 of the result, from u->weight and u->divisor. */
static inline void tile_updates(const struct kedge_rule *rule, const struct kedge_rule_params *params,
                                struct updates *u, size_t first, size_t n)
{
    const int32_t *vectors[UPDATES_MAX];
    struct kedge_mean_source sources[UPDATES_MAX];
    size_t count = 0;
    for (size_t k = 0; k < u->count; k++) {
        vectors[k] = u->weight[k] > 0 ? u->values[k] : NULL;
        if (u->weight[k] > 0) {
            sources[count++] = (struct kedge_mean_source){u->values[k], u->weight[k]};
        }
    }
    int err =
        rule->kind == KEDGE_RULE_COORDINATE
            ? kedge_rule_tile(rule, params, u->model, vectors, u->weight, u->count, first, n, RULE_SCALE,
                              u->out + first)
            : kedge_mean_tile(u->model, sources, count, first, n, RULE_SCALE, u->divisor, u->out + first);
    ck_assert_int_eq(err, KEDGE_OK);
}

static inline void run_updates(const struct kedge_rule *rule, const struct kedge_rule_params *params,
                               struct updates *u)
{
    uint64_t divisor = 0;
    for (size_t k = 0; k < u->count; k++) {
        divisor += u->samples[k];
    }
    kedge_rule_base(rule, u->samples, u->count, u->base);
    ck_assert_int_eq(weigh_updates(rule, params, u, divisor), KEDGE_OK);
    tile_updates(rule, params, u, 0, u->dimension);
}

/* Updates with values in ±limit, samples in 1 … 100. */
static inline void draw_updates(struct kedge_rng *rng, struct updates *u, size_t count, size_t dimension,
                                int32_t limit)
{
    u->count = count;
    u->dimension = dimension;
    for (size_t k = 0; k <= count; k++) {
        fill_ints(rng, u->values[k], dimension, limit);
    }
    for (size_t k = 0; k < count; k++) {
        u->samples[k] = 1 + kedge_rng_below(rng, 100);
    }
    fill_floats(rng, u->model, dimension, 1.0);
}

static inline void swap_updates(struct updates *u, size_t a, size_t b)
{
    int32_t values[DIMENSION_MAX];
    const uint64_t samples = u->samples[a];
    memcpy(values, u->values[a], sizeof values);
    memcpy(u->values[a], u->values[b], sizeof values);
    memcpy(u->values[b], values, sizeof values);
    u->samples[a] = u->samples[b];
    u->samples[b] = samples;
}

#endif
