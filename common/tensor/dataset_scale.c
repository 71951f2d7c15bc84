/* Missing values and scales, by statistics of the training set: sums in double, in the order of the rows, so
 * that every load of the same files gives the same bytes. */
#include <math.h>
#include <string.h>

#include "common/base/mem.h"
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

int kedgei_dataset_fill(struct kedge_dataset *train, struct kedge_dataset *test, const char *columns,
                        struct kedge_diag *reterr)
{
    uint32_t width = train->features;
    struct kedge_dataset *sets[] = {train, test};
    const char *name = columns;
    int err = make_reals(train, reterr);
    err = err ? err : make_reals(test, reterr);
    if (err) {
        return err;
    }
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
            return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                  "\"%s\": all values of the training samples are missing; leave the column "
                                  "out by \"ignore\"",
                                  name ? name : "");
        }
        for (int s = 0; s < 2; s++) {
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

struct moments {
    double *mean, *deviation; /* of each feature */
};

/* Two passes: squares of large values would cancel. */
static void measure(const struct kedge_dataset *ds, const struct moments *m)
{
    uint32_t width = ds->features;
    for (uint32_t r = 0; r < ds->n; r++) {
        for (uint32_t f = 0; f < width; f++) {
            m->mean[f] += (double)ds->reals[(size_t)r * width + f];
        }
    }
    for (uint32_t f = 0; f < width; f++) {
        m->mean[f] /= ds->n;
    }
    for (uint32_t r = 0; r < ds->n; r++) {
        for (uint32_t f = 0; f < width; f++) {
            double off = (double)ds->reals[(size_t)r * width + f] - m->mean[f];
            m->deviation[f] += off * off;
        }
    }
    for (uint32_t f = 0; f < width; f++) {
        m->deviation[f] = sqrt(m->deviation[f] / ds->n);
        if (!(m->deviation[f] > CONSTANT_BELOW * fabs(m->mean[f]))) {
            m->deviation[f] = 1;
        }
    }
}

static int apply(struct kedge_dataset *ds, const struct moments *m, struct kedge_diag *reterr)
{
    float *x = ds->storage;
    for (uint32_t r = 0; r < ds->n; r++) {
        for (uint32_t f = 0; f < ds->features; f++, x++) {
            *x = (float)(((double)*x - m->mean[f]) / m->deviation[f]);
            if (!isfinite(*x)) {
                return kedge_diag_set(
                    reterr, KEDGE_E_FORMAT,
                    "\"standardize\": a value of feature %u is too far from the others for F32", f + 1);
            }
        }
    }
    return KEDGE_OK;
}

int kedgei_dataset_standardize(struct kedge_dataset *train, struct kedge_dataset *test,
                               struct kedge_diag *reterr)
{
    if (train->stride > 0) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"standardize\": characters of a text have no scale");
    }
    int err = make_reals(train, reterr);
    err = err ? err : make_reals(test, reterr);
    if (err) {
        return err;
    }
    double *values = kedge_mem_new(train->features, 2 * sizeof *values);
    if (!values) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u features", train->features);
    }
    struct moments m = {values, values + train->features};
    measure(train, &m);
    err = apply(train, &m, reterr);
    err = err ? err : apply(test, &m, reterr);
    kedge_mem_free(values);
    return err;
}
