/* Data for a model that standardizes (common/tensor/scales.h): scaled by what the model knows; before it
 * knows both means and variances by the site's own, and what is to be found next is measured. */
#ifndef KEDGE_CLIENT_TRAIN_STANDARDIZE_H
#define KEDGE_CLIENT_TRAIN_STANDARDIZE_H

#include "common/tensor/dataset.h"
#include "common/tensor/scales.h"

/* Changes both sets, as they were loaded. found (of `inputs`): the moments of the training set that
 * kedge_scales_advance takes, until the last stage. KEDGE_E_SHAPE: another number of features;
 * KEDGE_E_FORMAT, KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_standardize_data(const float *scales, uint32_t inputs, struct kedge_dataset *train,
                                           struct kedge_dataset *test, double *found,
                                           struct kedge_diag *reterr);

#endif
