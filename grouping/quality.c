#include "grouping/quality.h"

#include <math.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/rng.h"

/* A logarithm of our own, because that of the C library differs between libraries in the last bit, and the
 * number of groups may hang on it. x = m · 2^e with m in [√½, √2); log m = 2 artanh((m − 1) / (m + 1)) by
 * its series, |s| < 0.172: 12 terms reach 2^-60. */
double kedge_natural_log(double x)
{
    const double ln2 = 0x1.62e42fefa39efp-1, root = 0x1.6a09e667f3bcdp+0;
    KEDGE_ASSERT(isfinite(x) && x > 0.0);
    int e = 0;
    if (x < 0x1p-1022) { /* subnormal */
        x *= 0x1p+54;
        e = -54;
    }
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    e += (int)(bits >> 52) - 1023;
    bits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m >= root) {
        m /= 2.0;
        e++;
    }
    double s = (m - 1.0) / (m + 1.0), square = s * s, sum = 0.0;
    for (int k = 23; k >= 1; k -= 2) {
        sum = sum * square + 1.0 / (double)k;
    }
    return (double)e * ln2 + 2.0 * (s * sum);
}

/* Reference set number `at`, uniform in the box of the points: the first of the two kinds of reference in
 * Tibshirani et al. 2001. */
static void draw_reference(const double *points, size_t n, size_t dims,
                           const struct kedge_kmeans_params *params, uint64_t at, double *out)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, params->seed, KEDGE_RNG_GAP, params->round, at);
    for (size_t d = 0; d < dims; d++) {
        double low = points[d], high = points[d];
        for (size_t i = 1; i < n; i++) {
            double x = points[i * dims + d];
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        for (size_t i = 0; i < n; i++) {
            out[i * dims + d] = low + kedge_rng_unit(&rng) * (high - low);
        }
    }
}

/* Points that all coincide have no inertia; the bound keeps the logarithm finite. */
static double log_inertia(double inertia)
{
    return kedge_natural_log(inertia > 1e-300 ? inertia : 1e-300);
}

/* The references depend on seed, round and number alone, so every k is held against the same ones. */
int kedge_gap(const double *points, size_t n, size_t dims, size_t k, const struct kedge_kmeans_params *params,
              double *ret_gap, double *ret_error)
{
    if (n == 0 || dims == 0 || dims > SIZE_MAX / n) {
        return KEDGE_E_ARG;
    }
    double *reference = kedge_mem_new(n * dims, sizeof *reference);
    uint32_t *cluster = kedge_mem_new(n, sizeof *cluster);
    double inertia = 0.0, logs[KEDGE_GAP_REFERENCES], mean = 0.0, spread = 0.0;
    int err =
        reference && cluster ? kedge_kmeans(points, n, dims, k, params, cluster, &inertia) : KEDGE_E_NOMEM;
    const double own = err ? 0.0 : log_inertia(inertia);
    for (uint64_t b = 0; b < KEDGE_GAP_REFERENCES && !err; b++) {
        draw_reference(points, n, dims, params, b, reference);
        err = kedge_kmeans(reference, n, dims, k, params, cluster, &inertia);
        logs[b] = err ? 0.0 : log_inertia(inertia);
        mean += logs[b];
    }
    if (!err) {
        mean /= KEDGE_GAP_REFERENCES;
        for (int b = 0; b < KEDGE_GAP_REFERENCES; b++) {
            spread += (logs[b] - mean) * (logs[b] - mean);
        }
        *ret_gap = mean - own;
        *ret_error = sqrt(spread / KEDGE_GAP_REFERENCES) * sqrt(1.0 + 1.0 / KEDGE_GAP_REFERENCES);
    }
    kedge_mem_free(reference);
    kedge_mem_free(cluster);
    return err;
}
