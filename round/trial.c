/* A mean of losses would be the natural measure, but each site states its own: a loss that one site makes up
 * could outweigh all others. So a difference counts for no more than a few times what is usual among them, a
 * site's samples for no more than a few times what others have, and a tenant for its cap. */
#include "round/trial.h"

#include <math.h>
#include <stdlib.h>

#include "aggregation/gram.h"
#include "aggregation/share_cap.h"
#include "common/base/mem.h"
#include "round/compute_impl.h"

/* ---- the evidence ---- */

static bool counts(const struct kedge_trial_input *in)
{
    return in->samples > 0 && isfinite(in->loss) && isfinite(in->trial_loss) && in->loss >= 0
           && in->trial_loss >= 0;
}

/* Those that count, each with its weight, and how much more than its own loss the other model's is. */
struct heard {
    struct kedge_share_input *shares;
    double *differences;
    size_t count, sides[2], tenants;
};

static void heard_deinit(struct heard *h)
{
    kedge_mem_free(h->shares);
    kedge_mem_free(h->differences);
}

struct weighed {
    double value;
    uint64_t weight;
};

static int compare_values(const void *pa, const void *pb)
{
    const struct weighed *a = pa, *b = pb;
    return (a->value > b->value) - (a->value < b->value);
}

/* The least value up to which half of the weight is. Sorts. */
static double median_of(struct weighed *order, size_t count)
{
    uint64_t all = 0, so_far = 0;
    size_t i = 0;
    for (size_t k = 0; k < count; k++) {
        all += order[k].weight;
    }
    qsort(order, count, sizeof *order, compare_values);
    while (i + 1 < count && 2 * (so_far + order[i].weight) < all) {
        so_far += order[i++].weight;
    }
    return order[i].value;
}

/* Each site has one vote about what is usual: a median by samples would be what the site that states the most
 * of them likes. */
static void bound_weights(struct heard *h, struct weighed *order)
{
    for (size_t i = 0; i < h->count; i++) {
        order[i] = (struct weighed){(double)h->shares[i].weight, 1};
    }
    const uint64_t most = KEDGE_TRIAL_TIMES * (uint64_t)median_of(order, h->count);
    for (size_t i = 0; i < h->count; i++) {
        h->shares[i].weight = h->shares[i].weight < most ? h->shares[i].weight : most;
    }
}

/* What is usual is the median of the differences, not of the losses: true differences are a few percent of a
 * loss, so that a site which may say a whole loss would count for dozens of others. */
static void bound_differences(struct heard *h, struct weighed *order)
{
    for (size_t i = 0; i < h->count; i++) {
        order[i] = (struct weighed){fabs(h->differences[i]), h->shares[i].weight};
    }
    const double bound = KEDGE_TRIAL_TIMES * median_of(order, h->count);
    for (size_t i = 0; i < h->count; i++) {
        const double d = h->differences[i];
        h->differences[i] = d > bound ? bound : d < -bound ? -bound : d;
    }
}

static int weigh_heard(const struct kedge_job_spec *spec, struct heard *h)
{
    struct weighed *order = kedge_mem_new(h->count + 1, sizeof *order);
    int err = order ? KEDGE_OK : KEDGE_E_NOMEM;
    if (!err && h->count > 0) {
        bound_weights(h, order);
        err = spec->tenant_share_max < KEDGE_SHARE_ONE
                  ? kedge_share_cap(h->shares, h->count, spec->tenant_share_max)
                  : KEDGE_OK;
    }
    if (!err && h->count > 0) {
        bound_differences(h, order);
    }
    kedge_mem_free(order);
    return err;
}

/* Deinit also after an error. */
static int hear(const struct kedge_job_spec *spec, const struct kedge_trial_input *inputs, size_t count,
                struct heard *h)
{
    bool has_spoken[KEDGE_SPEC_TENANTS_MAX] = {false};
    *h = (struct heard){.shares = kedge_mem_new(count + 1, sizeof *h->shares),
                        .differences = kedge_mem_new(count + 1, sizeof *h->differences)};
    if (!h->shares || !h->differences) {
        return KEDGE_E_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const struct kedge_trial_input *in = &inputs[i];
        if (in->tenant >= KEDGE_SPEC_TENANTS_MAX || in->side > 1) {
            return KEDGE_E_ARG;
        }
        if (!counts(in)) {
            continue;
        }
        h->tenants += !has_spoken[in->tenant];
        has_spoken[in->tenant] = true;
        h->sides[in->side]++;
        h->differences[h->count] = in->trial_loss - in->loss;
        h->shares[h->count++] = (struct kedge_share_input){
            in->tenant, in->samples < spec->weight_max ? in->samples : spec->weight_max};
    }
    return weigh_heard(spec, h);
}

static bool is_enough(const struct heard *h, const struct kedge_trial_crowd *crowd)
{
    const uint64_t sites = (uint64_t)crowd->sites[0] + crowd->sites[1];
    const bool sides = (h->sides[0] > 0 || crowd->sites[0] == 0) && (h->sides[1] > 0 || crowd->sites[1] == 0);
    const bool many = h->count >= KEDGE_TRIAL_SITES_LEAST || h->count >= sites;
    return sides && many && (h->tenants >= KEDGE_TRIAL_TENANTS_LEAST || h->tenants >= crowd->tenants);
}

int kedge_compute_trial(const struct kedge_job_spec *spec, const struct kedge_trial_input *inputs,
                        size_t count, const struct kedge_trial_crowd *crowd, bool *ret_joins)
{
    struct heard h;
    double sum = 0;
    int err = hear(spec, inputs, count, &h);
    for (size_t i = 0; i < h.count && !err; i++) {
        sum += (double)h.shares[i].weight * h.differences[i];
    }
    if (!err) {
        *ret_joins = is_enough(&h, crowd) && sum <= 0;
    }
    heard_deinit(&h);
    return err;
}

/* How the differences lie: their mean, the mean square of what they are off it, and how many inputs of one
 * weight they are worth. */
struct spread {
    double mean, square, worth;
};

/* By two passes in the order of the inputs, so that everybody comes to the same bits. False: a cap has left
 * nothing. */
static bool measure_spread(const struct heard *h, struct spread *ret)
{
    double all = 0, squares = 0, sum = 0, spread = 0;
    for (size_t i = 0; i < h->count; i++) {
        const double weight = (double)h->shares[i].weight;
        all += weight;
        squares += weight * weight;
        sum += weight * h->differences[i];
    }
    if (!(all > 0)) {
        return false;
    }
    const double mean = sum / all;
    for (size_t i = 0; i < h->count; i++) {
        const double off = h->differences[i] - mean;
        spread += (double)h->shares[i].weight * (off * off);
    }
    *ret = (struct spread){.mean = mean, .square = spread / all, .worth = all * all / squares};
    return true;
}

/* The mean is below 0 by more than so many standard errors, the square of them. Without a root, so that a
 * mean of which nothing is off counts as sure. */
static bool is_below(const struct spread *s, double errors_squared)
{
    return s->mean < 0 && s->mean * s->mean * (s->worth - 1) > errors_squared * s->square;
}

static void decide_personal(const struct heard *h, bool *io_is_personal)
{
    struct spread s;
    if (!measure_spread(h, &s)) {
        return;
    }
    if (s.mean > 0) {
        *io_is_personal = false;
    } else if (is_below(&s, 4)) {
        *io_is_personal = true;
    }
}

/* Against the cut counts whatever is not known: too few that say something, or a difference that chance may
 * have made. */
int kedge_compute_cut_stays(const struct kedge_job_spec *spec, const struct kedge_trial_input *inputs,
                            size_t count, const struct kedge_trial_crowd *crowd, bool *ret_stays)
{
    struct heard h;
    struct spread s;
    int err = hear(spec, inputs, count, &h);
    if (!err) {
        *ret_stays = h.count > 0 && is_enough(&h, crowd) && measure_spread(&h, &s) && is_below(&s, 1);
    }
    heard_deinit(&h);
    return err;
}

int kedge_compute_personal(const struct kedge_job_spec *spec, const struct kedge_trial_input *inputs,
                           size_t count, bool *io_is_personal)
{
    struct heard h;
    int err = hear(spec, inputs, count, &h);
    const size_t tenants =
        spec->tenant_count < KEDGE_TRIAL_TENANTS_LEAST ? spec->tenant_count : KEDGE_TRIAL_TENANTS_LEAST;
    if (!err && h.count >= KEDGE_TRIAL_SITES_LEAST && h.tenants >= tenants) {
        decide_personal(&h, io_is_personal);
    }
    heard_deinit(&h);
    return err;
}

/* ---- who is tried with whom ---- */

static void pair_nearest(const double *cosine, const uint32_t *number, size_t n, uint32_t *with)
{
    bool has_one[KEDGE_GROUPS_MAX] = {false};
    for (size_t pairs = 0; pairs < n / 2; pairs++) {
        size_t a = n, b = n;
        for (size_t i = 0; i < n; i++) {
            for (size_t k = i + 1; k < n && !has_one[i]; k++) {
                if (!has_one[k] && (a == n || cosine[i * n + k] > cosine[a * n + b])) {
                    a = i;
                    b = k;
                }
            }
        }
        has_one[a] = has_one[b] = true;
        with[number[a]] = number[b];
        with[number[b]] = number[a];
    }
}

int kedge_compute_pairs(const struct kedge_layout *layout, const struct kedge_blob_at *directions,
                        const bool *is_part, size_t groups, uint32_t *with, struct kedge_diag *reterr)
{
    struct kedge_blob_at files[KEDGE_GROUPS_MAX];
    double cosine[KEDGE_GROUPS_MAX * KEDGE_GROUPS_MAX];
    uint32_t number[KEDGE_GROUPS_MAX], *maxima = NULL;
    int64_t *gram = NULL;
    size_t n = 0;
    for (size_t g = 0; g < groups && g < KEDGE_GROUPS_MAX; g++) {
        with[g] = (uint32_t)g;
        if (!is_part[g]) {
            files[n] = directions[g];
            number[n++] = (uint32_t)g;
        }
    }
    if (n < 2) {
        return KEDGE_OK;
    }
    int err = kedgei_gram_of_files(layout, files, n, &gram, &maxima, reterr);
    if (!err) {
        kedge_gram_cosine(gram, n, cosine);
        pair_nearest(cosine, number, n, with);
    }
    kedge_mem_free(gram);
    kedge_mem_free(maxima);
    return err;
}
