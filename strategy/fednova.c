/* FedNova (Wang et al., NeurIPS 2020), plain SGD: update k is divided by its own steps a_k, and the sum goes
 * as far as the mean number of steps: x ← x + (Σ p_j a_j) · Σ p_k Δ_k / a_k with p_k = n_k / n. So the share
 * of update k is n_k · (Σ n_j a_j) / (n² a_k). Where sites have learning rates of their own, η_k a_k stands
 * for a_k: the paper's update is divided by both. Samples and steps are whole numbers below 2^31, their sums
 * exact in binary64 up to 2^53 and rounded in input order beyond. */
#include <math.h>
#include <stdlib.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "strategy/weigh.h"

static int compare_steps(const void *pa, const void *pb)
{
    const double a = *(const double *)pa, b = *(const double *)pb;
    return (a > b) - (a < b);
}

/* How far an update's steps go. */
static double effective_steps(const struct kedge_strategy_input *in)
{
    return (double)in->steps * (in->rate > 0 ? in->rate : 1);
}

/* The median of the ways, of two in the middle the lower one; `scratch` holds n items. */
static double median_steps(const struct kedge_strategy_input *inputs, size_t n, double *scratch)
{
    for (size_t i = 0; i < n; i++) {
        scratch[i] = effective_steps(&inputs[i]);
    }
    qsort(scratch, n, sizeof *scratch, compare_steps);
    return scratch[(n - 1) / 2];
}

int kedge_weigh_fednova(const struct kedge_strategy_options *options,
                        const struct kedge_strategy_input *inputs, size_t n, double lr, uint64_t *weight,
                        uint64_t *ret_divisor)
{
    (void)options;
    (void)lr;
    return kedge_weigh_fednova_bounded(inputs, n, (double)INFINITY, weight, ret_divisor);
}

/* A site states its own number of steps. One that states too many would lengthen the mean number of steps,
 * and with it the step of all; a median moves only where half of the sites do the same. So the mean is
 * bounded by a multiple of it. Too many stated steps then only lower the site's own share. */
int kedge_weigh_fednova_bounded(const struct kedge_strategy_input *inputs, size_t n, double medians,
                                uint64_t *weight, uint64_t *ret_divisor)
{
    if (!kedgei_inputs_ok(inputs, n) || !(medians >= 1)) {
        return KEDGE_E_ARG;
    }
    double *share KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(n, sizeof *share);
    KEDGE_TRY_MEM(share);
    double samples = 0, work = 0;
    for (size_t i = 0; i < n; i++) {
        samples += (double)inputs[i].samples;
        work += (double)inputs[i].samples * effective_steps(&inputs[i]);
    }
    const double most = medians * median_steps(inputs, n, share);
    const double far = work / samples < most ? work / samples : most;
    for (size_t i = 0; i < n; i++) {
        share[i] = ((double)inputs[i].samples / samples) * (far / effective_steps(&inputs[i]));
    }
    return kedgei_weigh_reals(share, n, weight, ret_divisor);
}
