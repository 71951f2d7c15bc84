/* Missing values and scales, by statistics of the training set: sums in double, in the order of the rows, so
 * that every load of the same files gives the same bytes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/dataset_impl.h"

/* Values of F32 that differ at all differ by more than this of their size. */
#define CONSTANT_BELOW 1e-9

/* Bytes become scaled reals of the set's own. */
static int make_reals(struct kedge_dataset *ds, struct kedge_diag *reterr)
{
    if (ds->reals || ds->n == 0) {
        return KEDGE_OK;
    }
    float *x = kedge_mem_new((size_t)ds->n * ds->features, sizeof *x);
    if (!x) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u samples", ds->n);
    }
    kedge_dataset_gather(ds, NULL, ds->n, x);
    kedge_mem_free(ds->storage);
    ds->storage = x;
    ds->reals = x;
    ds->bytes = NULL;
    return KEDGE_OK;
}

/* Column by column: the mean of what is there in the training samples goes into the holes of both
 * sets. A column without a single value has no mean, and the owner has to say what it is for. */
int kedge_dataset_fill(struct kedge_dataset *train, struct kedge_dataset *test, const char *columns,
                       struct kedge_diag *reterr)
{
    uint32_t width = train->features;
    struct kedge_dataset *sets[] = {train, test};
    const char *name = columns;
    KEDGE_TRY(make_reals(train, reterr));
    KEDGE_TRY(make_reals(test, reterr));
    for (uint32_t f = 0; f < width; f++) {
        float *x = (float *)train->storage + f;
        double sum = 0;
        uint32_t there = 0;
        for (uint32_t r = 0; r < train->n; r++) {
            float v = x[(size_t)r * width];
            sum += isnan(v) ? 0 : (double)v;
            there += isnan(v) ? 0 : 1;
        }
        if (there == 0) {
            char number[32];
            (void)snprintf(number, sizeof number, "feature %u", f + 1);
            return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                  "\"%s\": all values of the training samples are missing; leave the column "
                                  "out%s",
                                  name ? name : number, name ? " by \"ignore\"" : "");
        }
        for (int s = 0; s < 2 && sets[s]->n > 0; s++) {
            x = (float *)sets[s]->storage + f;
            for (uint32_t r = 0; r < sets[s]->n; r++) {
                float *v = &x[(size_t)r * width];
                *v = isnan(*v) ? (float)(sum / there) : *v;
            }
        }
        name = name ? kedge_names_next(name) : NULL;
    }
    return KEDGE_OK;
}

/* Two passes: squares of large values would cancel. */
void kedge_dataset_moments(const struct kedge_dataset *ds, const double *means, double *ret)
{
    uint32_t width = ds->features;
    for (uint32_t f = 0; f < width; f++) {
        ret[f] = 0;
    }
    for (uint32_t r = 0; r < ds->n; r++) {
        for (uint32_t f = 0; f < width; f++) {
            double v = (double)kedge_dataset_value(ds, r, f), off = means ? v - means[f] : 0;
            ret[f] += means ? off * off : v;
        }
    }
    for (uint32_t f = 0; f < width; f++) {
        ret[f] /= ds->n;
    }
}

int kedge_dataset_scale(struct kedge_dataset *ds, const double *means, const double *deviations,
                        struct kedge_diag *reterr)
{
    if (ds->stride > 0) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"standardize\": characters of a text have no scale");
    }
    KEDGE_TRY(make_reals(ds, reterr));
    float *x = ds->storage;
    for (uint32_t r = 0; r < ds->n; r++) {
        for (uint32_t f = 0; f < ds->features; f++, x++) {
            *x = (float)(((double)*x - means[f]) / deviations[f]);
            if (!isfinite(*x)) {
                return kedge_diag_set(
                    reterr, KEDGE_E_FORMAT,
                    "\"standardize\": a value of feature %u is too far from the others for F32", f + 1);
            }
        }
    }
    return KEDGE_OK;
}

/* A feature that is constant, or nearly so beside its mean, is only shifted: dividing by its spread
 * would enlarge rounding. */
int kedge_dataset_standardize(struct kedge_dataset *train, struct kedge_dataset *test,
                              struct kedge_diag *reterr)
{
    uint32_t width = train->features;
    if (train->stride > 0) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"standardize\": characters of a text have no scale");
    }
    double *means KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(width, 2 * sizeof *means);
    if (!means) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u features", width);
    }
    double *deviations = means + width;
    kedge_dataset_moments(train, NULL, means);
    kedge_dataset_moments(train, means, deviations);
    for (uint32_t f = 0; f < width; f++) {
        double found = sqrt(deviations[f]);
        deviations[f] = found > CONSTANT_BELOW * fabs(means[f]) ? found : 1;
    }
    KEDGE_TRY(kedge_dataset_scale(train, means, deviations, reterr));
    return kedge_dataset_scale(test, means, deviations, reterr);
}
