/* kedge predict: what its parts share. */
#ifndef KEDGE_CLI_JOB_PREDICT_H
#define KEDGE_CLI_JOB_PREDICT_H

#include "cli/cli.h"
#include "common/tensor/dataset.h"
#include "job/job_spec.h"

/* The command line. */
struct kedge_cli_predict {
    const char *model, *data, *spec, *train, *out;
    const char *label, *missing, *separator, *decimal, *scale; /* NULL: not said */
    json_t *ignore;                                            /* owned, array of texts and numbers */
    bool all;                                                  /* a column for each class */
};

/* ---- predict_data.c ---- */
/* The samples of the data file as training would have them: with the job's classes, and with holes and scales
 * by the training file. *ret_labelled: their labels are in the file. The caller deinits ret. */
KEDGE_NODISCARD int kedge_cli_predict_load(const struct kedge_cli_predict *p,
                                           const struct kedge_job_spec *spec, struct kedge_dataset *ret,
                                           bool *ret_labelled, struct kedge_diag *d);

#endif
