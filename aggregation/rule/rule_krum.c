/* Krum and what builds on it. An update's score is the sum of the squared distances to its nearest updates,
 * as many as must be good: of n votes n − f − 2. With capped votes an update of m votes stands for m copies:
 * its other copies are at distance 0, and the score takes the nearest others up to M − F − 1 − m votes (M
 * all, F = f), the last one in part. */
#include <string.h>

#include "aggregation/rule/rule_impl.h"
#include "common/base/mem.h"
#include "common/base/try.h"

struct krum {
    size_t count;
    uint64_t *votes;   /* count, 0 once taken out */
    double *distance;  /* count × count, squared */
    uint16_t *nearest; /* count × count: row i sorts all updates by distance to i */
    double *score;     /* count */
};

static void close_krum(struct krum *krum)
{
    kedge_mem_free(krum->votes);
    kedge_mem_free(krum->distance);
    kedge_mem_free(krum->nearest);
    kedge_mem_free(krum->score);
}

/* All rows are sorted once: scores for any number of votes, and of fewer and fewer updates (Bulyan), then
 * take a walk along a row. */
static int open_krum(const struct kedge_rule_inputs *inputs, struct krum *krum)
{
    const size_t n = inputs->count;
    *krum = (struct krum){.count = n,
                          .votes = kedge_mem_new(n, sizeof *krum->votes),
                          .distance = kedge_mem_new(n * n, sizeof *krum->distance),
                          .nearest = kedge_mem_new(n * n, sizeof *krum->nearest),
                          .score = kedge_mem_new(n, sizeof *krum->score)};
    if (!krum->votes || !krum->distance || !krum->nearest || !krum->score) {
        close_krum(krum);
        return KEDGE_E_NOMEM;
    }
    memcpy(krum->votes, inputs->weight, n * sizeof *krum->votes);
    kedgei_rule_products(inputs, n, krum->distance);
    kedgei_rule_distances(krum->distance, n);
    for (size_t i = 0; i < n; i++) {
        kedgei_rule_sort(krum->distance + i * n, n, krum->nearest + i * n);
    }
    return KEDGE_OK;
}

/* Sum over the nearest others of i up to `want` votes. */
static double sum_nearest(const struct krum *krum, size_t i, uint64_t want)
{
    const double *distance = krum->distance + i * krum->count;
    const uint16_t *nearest = krum->nearest + i * krum->count;
    double sum = 0;
    for (size_t k = 0; k < krum->count && want > 0; k++) {
        const size_t j = nearest[k];
        const uint64_t votes = j == i ? 0 : krum->votes[j] < want ? krum->votes[j] : want;
        sum += (double)votes * distance[j];
        want -= votes;
    }
    return sum;
}

/* The update with the least score among those with votes, the first of equals; scores take `want` votes
 * less an update's own. */
static size_t find_best(const struct krum *krum, uint64_t want)
{
    size_t best = krum->count;
    for (size_t i = 0; i < krum->count; i++) {
        if (krum->votes[i] > 0) {
            krum->score[i] = sum_nearest(krum, i, want - krum->votes[i]);
            best = best == krum->count || krum->score[i] < krum->score[best] ? i : best;
        }
    }
    return best;
}

/* M − F − 1 votes. */
static uint64_t count_wanted(const struct kedge_rule_params *params, const struct krum *krum)
{
    const uint64_t all = kedgei_rule_sum(krum->votes, krum->count);
    return all - (kedgei_rule_bad(params, all) + 1) * KEDGE_RULE_VOTE;
}

int kedgei_rule_krum(const struct kedge_rule_params *params, const struct kedge_rule_inputs *inputs,
                     uint64_t *weight, uint64_t *ret_divisor)
{
    struct krum krum;
    KEDGE_TRY(open_krum(inputs, &krum));
    memset(weight, 0, inputs->count * sizeof *weight);
    weight[find_best(&krum, count_wanted(params, &krum))] = 1;
    *ret_divisor = 1;
    close_krum(&krum);
    return KEDGE_OK;
}

/* The mean of the best updates, by their votes, up to M − F − 2 of these; the last one counts in part. */
int kedgei_rule_multi_krum(const struct kedge_rule_params *params, const struct kedge_rule_inputs *inputs,
                           uint64_t *weight, uint64_t *ret_divisor)
{
    struct krum krum;
    KEDGE_TRY(open_krum(inputs, &krum));
    const uint64_t want = count_wanted(params, &krum);
    (void)find_best(&krum, want);
    uint16_t *order = krum.nearest; /* no longer needed */
    kedgei_rule_sort(krum.score, krum.count, order);
    uint64_t left = want - KEDGE_RULE_VOTE;
    *ret_divisor = left;
    for (size_t k = 0; k < krum.count; k++) {
        const size_t i = order[k];
        weight[i] = krum.votes[i] < left ? krum.votes[i] : left;
        left -= weight[i];
    }
    close_krum(&krum);
    return KEDGE_OK;
}

/* n − 2f updates, each the best of those that are left, of which r: scores take r − f − 2 of them, at least
 * one. */
int kedgei_rule_bulyan(const struct kedge_rule_params *params, const struct kedge_rule_inputs *inputs,
                       uint64_t *weight, uint64_t *ret_divisor)
{
    for (size_t i = 0; i < inputs->count; i++) {
        if (inputs->weight[i] != KEDGE_RULE_VOTE) {
            return KEDGE_E_ARG; /* its count of good updates has no meaning for parts of votes */
        }
    }
    struct krum krum;
    KEDGE_TRY(open_krum(inputs, &krum));
    const uint64_t vote = KEDGE_RULE_VOTE;
    const uint64_t bad = kedgei_rule_bad(params, krum.count * vote);
    memset(weight, 0, inputs->count * sizeof *weight);
    for (uint64_t left = krum.count; left > 2 * bad; left--) {
        const uint64_t others = left > bad + 3 ? left - bad - 2 : 1;
        const size_t best = find_best(&krum, (others + 1) * vote);
        weight[best] = vote;
        krum.votes[best] = 0;
    }
    *ret_divisor = (krum.count - 2 * bad) * vote;
    close_krum(&krum);
    return KEDGE_OK;
}
