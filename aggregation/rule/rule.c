/* The table, and which of the two steps goes where. A rule that weighs says once what each update counts,
 * and the weighted mean does the rest. A rule that goes by coordinates keeps the weights as votes and sorts
 * each tile. What a rule needs for that (lengths, inner products, a root) is in its row, so that callers
 * read no vector in vain. */
#include "aggregation/rule/rule.h"

#include <string.h>

#include "aggregation/order.h"
#include "aggregation/quantise.h"
#include "aggregation/rule/rule_impl.h"
#include "common/base/try.h"

_Static_assert((int)KEDGE_RULE_VECTORS_MAX == (int)KEDGE_ORDER_VECTORS_MAX, "columns of every update");

/* Bounds for lengths are those of the L2 norm. */
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
     .keeps = KEDGE_RULE_KEEPS_MIDDLE,
     .caps = true},
    {.name = "trimmed-mean",
     .title = "coordinate-wise trimmed mean",
     .guarantee = "2f < n, f = fraction of n: every coordinate lies between two values of good updates",
     .source = "Yin et al., ICML 2018",
     .kind = KEDGE_RULE_COORDINATE,
     .keeps = KEDGE_RULE_KEEPS_BETWEEN,
     .caps = true,
     .uses_fraction = true,
     .defaults = {.fraction = 0.2}},
    {.name = "krum",
     .title = "Krum",
     .guarantee =
         "n >= 2f + 3: the update taken lies within D * sqrt((n - f - 2) / (n - 2f - 1)) of a good one (D: "
         "greatest distance between two good ones)",
     .source = "Blanchard et al., NeurIPS 2017",
     .kind = KEDGE_RULE_WEIGHING,
     .caps = true,
     .needs_norms = true,
     .needs_gram = true,
     .uses_fraction = true,
     .per_bad = 2,
     .defaults = {.fraction = 0.2},
     .weigh = kedgei_rule_krum},
    {.name = "multi-krum",
     .title = "multi-Krum",
     .guarantee =
         "n >= 2f + 3: every update taken lies within D * sqrt((n - f - 2) / (n - 2f - 1)) of a good one (D: "
         "greatest distance between two good ones)",
     .source = "Blanchard et al., NeurIPS 2017",
     .kind = KEDGE_RULE_WEIGHING,
     .caps = true,
     .needs_norms = true,
     .needs_gram = true,
     .uses_fraction = true,
     .per_bad = 2,
     .defaults = {.fraction = 0.2},
     .weigh = kedgei_rule_multi_krum},
    {.name = "bulyan",
     .title = "Bulyan",
     .guarantee =
         "n >= 4f + 3: every coordinate lies no farther from a value between good ones than the good values' "
         "range is wide",
     .source = "El Mhamdi et al., ICML 2018",
     .kind = KEDGE_RULE_COORDINATE,
     .keeps = KEDGE_RULE_KEEPS_NEAREST,
     .needs_norms = true,
     .needs_gram = true,
     .uses_fraction = true,
     .per_bad = 4,
     .defaults = {.fraction = 0.2},
     .weigh = kedgei_rule_bulyan},
    {.name = "geometric-median",
     .title = "geometric median",
     .guarantee = "a share e < 1/2 of the weight is bad: if the good updates lie within r of a point, "
                  "the result lies within 2 (1 - e) / (1 - 2e) * r of it",
     .source = "Pillutla et al., IEEE TSP 70, 2022",
     .kind = KEDGE_RULE_WEIGHING,
     .samples = true,
     .caps = true,
     .needs_norms = true,
     .needs_gram = true,
     .weigh = kedgei_rule_centre},
    {.name = "norm-clipping",
     .title = "norm clipping",
     .guarantee = "bad updates of a share e of the weight move the result by at most e * bound; without a "
                  "bound given it is, for e < 1/2, at most the longest good update",
     .source = "Sun et al., 2019",
     .kind = KEDGE_RULE_WEIGHING,
     .samples = true,
     .caps = true,
     .needs_norms = true,
     .uses_bound = true,
     .weigh = kedgei_rule_clip},
    {.name = "root-trust",
     .title = "trust from root data (FLTrust)",
     .guarantee =
         "any f: the result is no longer than the root update; updates that point away from it count nothing",
     .source = "Cao et al., NDSS 2021",
     .kind = KEDGE_RULE_WEIGHING,
     .caps = true,
     .needs_norms = true,
     .needs_gram = true,
     .needs_root = true,
     .weigh = kedgei_rule_root},
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

/* What Krum and its like promise holds from per_bad · f + 3 votes on, f being the bad ones that the job
 * tolerates. Fewer votes, and the job takes the median for that round (kedge_rule_effective). */
static bool is_enough(const struct kedge_rule *rule, const struct kedge_rule_params *params, uint64_t votes)
{
    if (rule->per_bad == 0) {
        return true;
    }
    const uint64_t least = rule->per_bad * kedgei_rule_bad(params, votes) + 3;
    return votes >= least * KEDGE_RULE_VOTE;
}

void kedge_rule_base(const struct kedge_rule *rule, const uint64_t *weight, size_t count, uint64_t *base)
{
    for (size_t i = 0; i < count; i++) {
        base[i] = rule->samples ? weight[i] : KEDGE_RULE_VOTE;
    }
}

/* A round must close with what came. The median needs no number of good updates but a majority, so it
 * stands in where a rule's promise would be empty; the record names the rule that ran. */
const struct kedge_rule *kedge_rule_effective(const struct kedge_rule *rule,
                                              const struct kedge_rule_params *params, const uint64_t *weight,
                                              size_t count)
{
    return is_enough(rule, params, kedgei_rule_sum(weight, count)) ? rule : kedge_rule_find("median");
}

/* ---- weights ---- */

/* Bounds that the rules' own arithmetic relies on: 512 vectors on the stack, weights below 2^31, finite
 * norms. */
static bool has_inputs(const struct kedge_rule *rule, const struct kedge_rule_inputs *inputs)
{
    const size_t all = inputs->count + (rule->needs_root ? 1 : 0);
    if (inputs->count == 0 || all > KEDGE_RULE_VECTORS_MAX || inputs->has_root != rule->needs_root
        || (rule->needs_norms && !inputs->norm_sq) || (rule->needs_gram && (!inputs->gram || !inputs->maxima))
        || (rule->uses_bound && inputs->scale_bits > KEDGE_SCALE_BITS_MAX)) {
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

/* Rules that sort coordinates keep the weights as votes; the others make their own. */
int kedge_rule_weigh(const struct kedge_rule *rule, const struct kedge_rule_params *params,
                     const struct kedge_rule_inputs *inputs, uint64_t *weight, uint64_t *ret_divisor)
{
    KEDGE_TRY(kedge_rule_params_check(rule, params));
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

/* An update without a vote (Bulyan has not chosen it) is not sorted at all: its value would take a place in
 * the column. */
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

/* Keeps all but `cut` votes at either end; the median's cut leaves one or two. Votes that are alike need no
 * keys that say whose a value is. */
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

/* n = all updates, of which n − 2f were chosen: keeps n − 4f. */
static int tile_nearest(const struct kedge_order_columns *columns, const struct voters *v,
                        const struct kedge_rule_params *params, size_t n)
{
    const size_t bad = (size_t)kedgei_rule_bad(params, (uint64_t)n * KEDGE_RULE_VOTE);
    if (!v->alike || v->count + 2 * bad != n || n <= 4 * bad) {
        return KEDGE_E_ARG;
    }
    return kedge_order_nearest(columns, v->count - 2 * bad);
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
    KEDGE_TRY(take_voters(vectors, weight, count, &voters));
    const struct kedge_order_columns columns = {.base = base,
                                                .vectors = voters.vectors,
                                                .count = voters.count,
                                                .first = first,
                                                .n = n,
                                                .scale_bits = scale_bits,
                                                .out = out};
    switch (rule->keeps) {
    case KEDGE_RULE_KEEPS_BETWEEN:
        return tile_between(&columns, &voters, kedgei_rule_bad(params, voters.sum) * KEDGE_RULE_VOTE);
    case KEDGE_RULE_KEEPS_NEAREST:
        return tile_nearest(&columns, &voters, params, count);
    case KEDGE_RULE_KEEPS_MIDDLE:
        break;
    }
    return tile_median(&columns, &voters);
}
