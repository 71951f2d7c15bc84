/* A chunk of every model is turned into binary64 before anything is written, so results may replace the
 * models. */
#include "aggregation/mixing.h"

#include <math.h>

enum { CHUNK = 128 };

double kedge_mixing_norm(const struct kedge_reduce *sumsq)
{
    return sqrt(kedge_reduce_root(sumsq));
}

/* A group that did not train pulls nobody, and neither does a model of zeros, which has no unit length:
 * both have norm 0. */
int kedge_mixing_init(struct kedge_mixing *mixing, const double *norms, const bool *trained, size_t groups,
                      double eta)
{
    if (groups == 0 || groups > KEDGE_GROUPS_MAX || !isfinite(eta) || eta < 0.0) {
        return KEDGE_E_ARG;
    }
    struct kedge_mixing m = {.groups = groups, .eta = eta};
    for (size_t j = 0; j < groups; j++) {
        m.trained[j] = trained[j];
        if (trained[j] && !(isfinite(norms[j]) && norms[j] >= 0.0)) {
            return KEDGE_E_NOT_FINITE;
        }
        m.norm[j] = trained[j] ? norms[j] : 0.0;
    }
    for (size_t j = 0; j < groups; j++) {
        double sum = 0.0;
        for (size_t l = 0; l < groups; l++) {
            if (l != j && m.norm[l] > 0.0) {
                sum += 1.0 / m.norm[l];
            }
        }
        m.divisor[j] = 1.0 + eta * sum;
        if (trained[j] && !isfinite(m.divisor[j])) {
            return KEDGE_E_NOT_FINITE; /* a norm so small that its inverse overflows */
        }
    }
    *mixing = m;
    return KEDGE_OK;
}

/* Unit-length models of one chunk; rows of groups that pull nobody are not touched. */
static void make_units(const struct kedge_mixing *mixing, const float *const *models, size_t at, size_t n,
                       double unit[KEDGE_GROUPS_MAX][CHUNK])
{
    for (size_t l = 0; l < mixing->groups; l++) {
        for (size_t i = 0; mixing->norm[l] > 0.0 && i < n; i++) {
            unit[l][i] = (double)models[l][at + i] / mixing->norm[l];
        }
    }
}

static void mix_chunk(const struct kedge_mixing *mixing, size_t j, const float *model, size_t n,
                      double unit[KEDGE_GROUPS_MAX][CHUNK], float *out)
{
    double pull[CHUNK] = {0};
    for (size_t l = 0; l < mixing->groups; l++) {
        for (size_t i = 0; l != j && mixing->norm[l] > 0.0 && i < n; i++) {
            pull[i] += unit[l][i];
        }
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = (float)(((double)model[i] + mixing->eta * pull[i]) / mixing->divisor[j]);
    }
}

void kedge_mixing_tile(const struct kedge_mixing *mixing, const float *const *models, size_t first, size_t n,
                       float *const *out)
{
    double unit[KEDGE_GROUPS_MAX][CHUNK];
    for (size_t done = 0; done < n; done += CHUNK) {
        size_t chunk = n - done < CHUNK ? n - done : CHUNK;
        make_units(mixing, models, first + done, chunk, unit);
        for (size_t j = 0; j < mixing->groups; j++) {
            if (mixing->trained[j]) {
                mix_chunk(mixing, j, models[j] + first + done, chunk, unit, out[j] + done);
            }
        }
    }
}
