/* The table, and which of the two steps goes where. */
#include "aggregation/rule.h"

#include <string.h>

#include "aggregation/order.h"
#include "aggregation/rule_impl.h"

_Static_assert((int)KEDGE_RULE_VECTORS_MAX == (int)KEDGE_ORDER_VECTORS_MAX, "columns of every update");

static const struct kedge_rule rows[] = {
    {.name = "mean",
     .title = "weighted mean",
     .guarantee = "none: one bad update moves the mean as far as its weight and the job's bound allow",
     .source = "McMahan et al., AISTATS 2017",
     .kind = KEDGE_RULE_MEAN,
     .samples = true,
     .caps = true},
    {.name = "median",
     .title = "coordinate-wise median",
     .guarantee = "2f < n: every coordinate lies between two values of good updates",
     .source = "Yin et al., ICML 2018",
     .kind = KEDGE_RULE_COORDINATE,
     .caps = true,
     .reach = KEDGE_RULE_REACH_HALF},
    {.name = "trimmed-mean",
     .title = "coordinate-wise trimmed mean",
     .guarantee = "2f < n, f = fraction of n: every coordinate lies between two values of good updates",
     .source = "Yin et al., ICML 2018",
     .kind = KEDGE_RULE_COORDINATE,
     .caps = true,
     .uses_fraction = true,
     .reach = KEDGE_RULE_REACH_FRACTION,
     .defaults = {.fraction = 0.2}},
};

size_t kedge_rule_count(void)
{
    return sizeof rows / sizeof rows[0];
}

const struct kedge_rule *kedge_rule_at(size_t i)
{
    KEDGE_ASSERT(i < kedge_rule_count());
    return &rows[i];
}

const struct kedge_rule *kedge_rule_find(const char *name)
{
    for (size_t i = 0; i < kedge_rule_count(); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

int kedge_rule_params_check(const struct kedge_rule *rule, const struct kedge_rule_params *params)
{
    if (rule->uses_fraction && !(params->fraction >= 0 && params->fraction <= KEDGE_RULE_FRACTION_MAX)) {
        return KEDGE_E_ARG;
    }
    if (rule->uses_bound && !(params->bound >= 0 && params->bound <= KEDGE_RULE_BOUND_MAX)) {
        return KEDGE_E_ARG;
    }
    return KEDGE_OK;
}

/* ---- votes ---- */

uint64_t kedgei_rule_bad(const struct kedge_rule_params *params, uint64_t votes)
{
    const uint64_t parts = (uint64_t)(params->fraction * KEDGE_RULE_PARTS + 0.5);
    return votes * parts / ((uint64_t)KEDGE_RULE_PARTS * KEDGE_RULE_VOTE);
}

uint64_t kedgei_rule_sum(const uint64_t *weight, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += weight[i];
    }
    return sum;
}

static bool is_enough(const struct kedge_rule *rule, const struct kedge_rule_params *params, uint64_t votes)
{
    const uint64_t least = rule->per_bad * kedgei_rule_bad(params, votes) + 3;
    return rule->per_bad == 0 || votes >= least * KEDGE_RULE_VOTE;
}

size_t kedge_rule_tolerates(const struct kedge_rule *rule, const struct kedge_rule_params *params, size_t n)
{
    const uint64_t votes = (uint64_t)n * KEDGE_RULE_VOTE;
    const size_t half = n > 0 ? (n - 1) / 2 : 0;
    switch (rule->reach) {
    case KEDGE_RULE_REACH_FRACTION:
        return is_enough(rule, params, votes) ? (size_t)kedgei_rule_bad(params, votes) : 0;
    case KEDGE_RULE_REACH_HALF:
        return half;
    case KEDGE_RULE_REACH_BOUND:
        return params->bound > 0 ? n : half;
    case KEDGE_RULE_REACH_ANY:
        return n;
    case KEDGE_RULE_REACH_NONE:
        break;
    }
    return 0;
}

void kedge_rule_base(const struct kedge_rule *rule, const uint64_t *weight, size_t count, uint64_t *base)
{
    for (size_t i = 0; i < count; i++) {
        base[i] = rule->samples ? weight[i] : KEDGE_RULE_VOTE;
    }
}

const struct kedge_rule *kedge_rule_effective(const struct kedge_rule *rule,
                                              const struct kedge_rule_params *params, const uint64_t *weight,
                                              size_t count)
{
    return is_enough(rule, params, kedgei_rule_sum(weight, count)) ? rule : kedge_rule_find("median");
}

/* ---- weights ---- */

static bool has_inputs(const struct kedge_rule *rule, const struct kedge_rule_inputs *inputs)
{
    const size_t all = inputs->count + (rule->needs_root ? 1 : 0);
    if (inputs->count == 0 || all > KEDGE_RULE_VECTORS_MAX || (rule->needs_norms && !inputs->norm_sq)
        || (rule->needs_gram && (!inputs->gram || !inputs->maxima))) {
        return false;
    }
    const uint64_t most = rule->samples ? INT32_MAX : KEDGE_RULE_VOTE;
    uint64_t sum = 0;
    for (size_t i = 0; i < inputs->count; i++) {
        if (inputs->weight[i] > most) {
            return false;
        }
        sum += inputs->weight[i];
    }
    for (size_t i = 0; i < all && rule->needs_norms; i++) {
        if (!(inputs->norm_sq[i] >= 0 && inputs->norm_sq[i] <= KEDGEI_RULE_NORM_SQ_MAX)) {
            return false;
        }
    }
    return sum > 0 && (!rule->samples || inputs->divisor > 0);
}

int kedge_rule_weigh(const struct kedge_rule *rule, const struct kedge_rule_params *params,
                     const struct kedge_rule_inputs *inputs, uint64_t *weight, uint64_t *ret_divisor)
{
    int err = kedge_rule_params_check(rule, params);
    if (err) {
        return err;
    }
    if (!has_inputs(rule, inputs)
        || !is_enough(rule, params, kedgei_rule_sum(inputs->weight, inputs->count))) {
        return KEDGE_E_ARG;
    }
    if (rule->weigh) {
        return rule->weigh(params, inputs, weight, ret_divisor);
    }
    memcpy(weight, inputs->weight, inputs->count * sizeof *weight);
    *ret_divisor = rule->samples ? inputs->divisor : kedgei_rule_sum(weight, inputs->count);
    return KEDGE_OK;
}

/* ---- tiles ---- */

/* Vectors that have votes, side by side. */
struct voters {
    const int32_t *vectors[KEDGE_RULE_VECTORS_MAX];
    uint64_t votes[KEDGE_RULE_VECTORS_MAX];
    size_t count;
    uint64_t sum;
    bool alike; /* all have the same number of votes */
};

static int take_voters(const int32_t *const *vectors, const uint64_t *weight, size_t count, struct voters *v)
{
    v->count = 0;
    v->sum = 0;
    v->alike = true;
    for (size_t i = 0; i < count; i++) {
        if (weight[i] > KEDGE_RULE_VOTE) {
            return KEDGE_E_ARG;
        }
        if (weight[i] > 0) {
            v->vectors[v->count] = vectors[i];
            v->votes[v->count++] = weight[i];
            v->sum += weight[i];
            v->alike = v->alike && weight[i] == v->votes[0];
        }
    }
    return v->sum > 0 ? KEDGE_OK : KEDGE_E_ARG;
}

/* Keeps all but `cut` votes at either end; the median's cut leaves one or two. */
static int tile_between(const struct kedge_order_columns *columns, const struct voters *v, uint64_t cut)
{
    if (v->alike && cut % v->votes[0] == 0) {
        const size_t rows_cut = (size_t)(cut / v->votes[0]);
        return kedge_order_mean(columns, rows_cut, v->count - rows_cut);
    }
    return kedge_order_votes(columns, v->votes, cut, v->sum - cut);
}

static int tile_median(const struct kedge_order_columns *columns, const struct voters *v)
{
    return v->alike ? kedge_order_mean(columns, (v->count - 1) / 2, v->count / 2 + 1)
                    : kedge_order_votes(columns, v->votes, (v->sum - 1) / 2, v->sum / 2 + 1);
}

int kedge_rule_tile(const struct kedge_rule *rule, const struct kedge_rule_params *params, const float *base,
                    const int32_t *const *vectors, const uint64_t *weight, size_t count, size_t first,
                    size_t n, unsigned scale_bits, float *out)
{
    struct voters voters;
    int err = kedge_rule_params_check(rule, params);
    if (err || rule->kind != KEDGE_RULE_COORDINATE || count == 0 || count > KEDGE_RULE_VECTORS_MAX) {
        return KEDGE_E_ARG;
    }
    err = take_voters(vectors, weight, count, &voters);
    if (err) {
        return err;
    }
    const struct kedge_order_columns columns = {.base = base,
                                                .vectors = voters.vectors,
                                                .count = voters.count,
                                                .first = first,
                                                .n = n,
                                                .scale_bits = scale_bits,
                                                .out = out};
    if (rule->uses_fraction) {
        return tile_between(&columns, &voters, kedgei_rule_bad(params, voters.sum) * KEDGE_RULE_VOTE);
    }
    return tile_median(&columns, &voters);
}
