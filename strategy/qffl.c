/* q-FFL, as q-FedAvg (Li et al., ICLR 2020): with F_k the loss of the model given on site k's training data,
 * L = 1 / lr, ‖G_k‖² = L² ‖Δ_k‖²:  x ← x + Σ F_k^q L Δ_k / Σ ( q F_k^(q−1) ‖G_k‖² + L F_k^q ).
 * q = 0 is the mean with equal weights. q in halves, so that powers are products and one root; F counts at
 * least 1e-10, for its powers below 0. */
#include <math.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "strategy/weigh.h"

static const double loss_least = 1e-10;

/* x^(halves / 2) for halves ≥ −1. */
static double power(double x, long halves)
{
    double result = 1;
    for (long i = 0; i < halves / 2; i++) {
        result *= x;
    }
    if (halves == -1) {
        return 1 / sqrt(x);
    }
    return halves % 2 ? result * sqrt(x) : result;
}

static bool is_usable(const struct kedge_strategy_input *in)
{
    return isfinite(in->loss) && in->loss >= 0 && isfinite(in->norm_sq) && in->norm_sq >= 0;
}

/* The formula's sum is divided out of every share first, so that what remains is a mean with real weights.
 * A loss that a site states too high would count for more: it is bounded where the statement is taken
 * (kedge_job_spec_takes), and the cap on a tenant's share does not go with this strategy. */
int kedge_weigh_qffl(const struct kedge_strategy_options *options, const struct kedge_strategy_input *inputs,
                     size_t n, double lr, uint64_t *weight, uint64_t *ret_divisor)
{
    const double q = options->fairness;
    const long halves = q >= 0 && q <= 8 ? (long)(2 * q) : -1;
    bool ok = halves >= 0 && (double)halves >= 2 * q && isfinite(lr) && lr > 0 && kedgei_inputs_ok(inputs, n);
    for (size_t i = 0; i < n && ok; i++) {
        ok = is_usable(&inputs[i]);
    }
    if (!ok) {
        return KEDGE_E_ARG;
    }
    double *share KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(n, sizeof *share);
    KEDGE_TRY_MEM(share);
    const double steep = 1 / lr;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double loss = inputs[i].loss > loss_least ? inputs[i].loss : loss_least;
        double own = steep * power(loss, halves);
        share[i] = own;
        sum += own;
        if (halves > 0) {
            /* halves 1: F^(−1/2); halves ≥ 2: F^((halves − 2) / 2) */
            sum += q * power(loss, halves - 2) * ((steep * steep) * inputs[i].norm_sq);
        }
    }
    for (size_t i = 0; i < n; i++) {
        share[i] = share[i] / sum;
    }
    return kedgei_weigh_reals(share, n, weight, ret_divisor);
}
