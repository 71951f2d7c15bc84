/* The geometric median: the point z = Σ α_i x_i that makes Σ p_i · |x_i − z| least (p_i: shares of the
 * weight), by Weiszfeld's iteration α_i ← (p_i / |x_i − z|) / Σ_j (p_j / |x_j − z|), smoothed near the
 * updates; on inner products alone. It begins with the half of the weight that is nearest to the medoid, so
 * that far updates do not have to be pushed back first, and takes a fixed number of steps, each of which can
 * only lower the sum. */
#include <math.h>

#include "aggregation/rule/rule_impl.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { STEPS = 128 };
static const double smoothing = 0x1p-10; /* of the median length: what 12 bits can tell apart */

struct centre {
    size_t count;
    double *product;  /* count × count */
    double *distance; /* count × count */
    double *share;    /* p */
    double *alpha;
    double *scratch;
    uint16_t *order;
};

static void close_centre(struct centre *c)
{
    kedge_mem_free(c->product);
    kedge_mem_free(c->distance);
    kedge_mem_free(c->share);
    kedge_mem_free(c->alpha);
    kedge_mem_free(c->scratch);
    kedge_mem_free(c->order);
}

/* Products are kept, and distances beside them: |x − z|² follows from products alone for any z that is a
 * weighted sum of updates, so no step reads an update. */
static int open_centre(const struct kedge_rule_inputs *inputs, struct centre *c)
{
    const size_t n = inputs->count;
    *c = (struct centre){.count = n,
                         .product = kedge_mem_new(n * n, sizeof *c->product),
                         .distance = kedge_mem_new(n * n, sizeof *c->distance),
                         .share = kedge_mem_new(n, sizeof *c->share),
                         .alpha = kedge_mem_new(n, sizeof *c->alpha),
                         .scratch = kedge_mem_new(n, sizeof *c->scratch),
                         .order = kedge_mem_new(n, sizeof *c->order)};
    if (!c->product || !c->distance || !c->share || !c->alpha || !c->scratch || !c->order) {
        close_centre(c);
        return KEDGE_E_NOMEM;
    }
    const double sum = (double)kedgei_rule_sum(inputs->weight, n);
    kedgei_rule_products(inputs, n, c->product);
    kedgei_rule_products(inputs, n, c->distance);
    kedgei_rule_distances(c->distance, n);
    for (size_t i = 0; i < n; i++) {
        c->share[i] = (double)inputs->weight[i] / sum;
    }
    for (size_t i = 0; i < n * n; i++) {
        c->distance[i] = sqrt(c->distance[i]);
    }
    return KEDGE_OK;
}

/* The update with the least weighted distance to all. */
static size_t find_medoid(const struct centre *c)
{
    size_t best = 0;
    double least = 0;
    for (size_t i = 0; i < c->count; i++) {
        double sum = 0;
        for (size_t j = 0; j < c->count; j++) {
            sum += c->share[j] * c->distance[i * c->count + j];
        }
        if (i == 0 || sum < least) {
            best = i;
            least = sum;
        }
    }
    return best;
}

static void begin(struct centre *c)
{
    const double *distance = c->distance + find_medoid(c) * c->count;
    kedgei_rule_sort(distance, c->count, c->order);
    double taken = 0;
    for (size_t k = 0; k < c->count; k++) {
        const size_t i = c->order[k];
        c->alpha[i] = taken < 0.5 ? c->share[i] : 0;
        taken += c->alpha[i];
    }
    for (size_t i = 0; i < c->count; i++) {
        c->alpha[i] /= taken;
    }
}

/* What distances are kept above; 0 when all updates are 0. */
static double find_least(const struct centre *c, const uint64_t *weight)
{
    double least = 0;
    for (size_t i = 0; i < c->count; i++) {
        const double length = sqrt(c->product[i * c->count + i]);
        c->scratch[i] = length;
        least = length > 0 && (least <= 0 || length < least) ? length : least;
    }
    const double median = kedgei_rule_median(c->scratch, weight, c->count, c->order);
    return smoothing * (median > 0 ? median : least);
}

/* A distance that rounding made negative, or that is nearly 0 because z lies at an update, is kept at
 * `least`: otherwise one update would get all of the weight and the iteration could not leave it. */
static void step(struct centre *c, double least)
{
    double square = 0; /* |z|² */
    for (size_t i = 0; i < c->count; i++) {
        double sum = 0;
        for (size_t j = 0; j < c->count; j++) {
            sum += c->product[i * c->count + j] * c->alpha[j];
        }
        c->scratch[i] = sum;
        square += c->alpha[i] * sum;
    }
    double sum = 0;
    for (size_t i = 0; i < c->count; i++) {
        const double distance_sq = (c->product[i * c->count + i] - 2.0 * c->scratch[i]) + square;
        const double distance = distance_sq > least * least ? sqrt(distance_sq) : least;
        c->alpha[i] = c->share[i] / distance;
        sum += c->alpha[i];
    }
    for (size_t i = 0; i < c->count; i++) {
        c->alpha[i] /= sum;
    }
}

int kedgei_rule_centre(const struct kedge_rule_params *params, const struct kedge_rule_inputs *inputs,
                       uint64_t *weight, uint64_t *ret_divisor)
{
    (void)params;
    struct centre c;
    KEDGE_TRY(open_centre(inputs, &c));
    const double least = find_least(&c, inputs->weight);
    begin(&c);
    for (int k = 0; k < STEPS && least > 0; k++) {
        step(&c, least);
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < c.count; i++) {
        weight[i] = (uint64_t)(c.alpha[i] * (double)c.count * KEDGE_RULE_VOTE + 0.5);
        sum += weight[i];
    }
    *ret_divisor = sum; /* at least 2^20 · count − count / 2 */
    close_centre(&c);
    return KEDGE_OK;
}
