/* Data of a model that standardizes, at one of its stages. While the sites still find means or variances
 * together, each adds its own sums (`found`) and looks at its data by its own scale; once both are known, all
 * scale by the same numbers, which are part of the model. */
#include "client/train/standardize.h"

#include "common/base/mem.h"

static int scale_both(const double *means, const double *deviations, struct kedge_dataset *train,
                      struct kedge_dataset *test, struct kedge_diag *reterr)
{
    int err = kedge_dataset_scale(train, means, deviations, reterr);
    return err ? err : kedge_dataset_scale(test, means, deviations, reterr);
}

int kedge_standardize_data(const float *scales, uint32_t inputs, struct kedge_dataset *train,
                           struct kedge_dataset *test, double *found, struct kedge_diag *reterr)
{
    uint32_t stage = kedge_scales_stage(scales, inputs);
    if (train->features != inputs || train->n == 0) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "samples of %u features, but the model takes %u",
                              train->features, inputs);
    }
    double *means = kedge_mem_new(inputs, 2 * sizeof *means);
    if (!means) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u features", inputs);
    }
    double *deviations = means + inputs;
    for (uint32_t i = 0; i < inputs; i++) {
        kedge_scales_get(scales, inputs, i, &means[i], &deviations[i]);
    }
    int err;
    if (stage == KEDGE_SCALES_STAGES) {
        err = scale_both(means, deviations, train, test, reterr);
    } else {
        kedge_dataset_moments(train, stage == 0 ? NULL : means, found);
        err = kedge_dataset_standardize(train, test, reterr);
    }
    kedge_mem_free(means);
    return err;
}
