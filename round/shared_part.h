/* Jobs over a frozen base: the part of the whole model that travels, which the first model of such a job is,
 * and the whole made of both again. */
#ifndef KEDGE_ROUND_SHARED_PART_H
#define KEDGE_ROUND_SHARED_PART_H

#include "round/compute.h"

/* The job's first model: the tensors of the whole model at `whole` that the spec shares, bit for bit.
 * KEDGE_E_SHAPE, KEDGE_E_FORMAT, KEDGE_E_NOT_FINITE: the file is no model of the spec's layout. */
KEDGE_NODISCARD int kedge_compute_shared_part(const struct kedge_job_spec *spec,
                                              const struct kedge_blob_at *whole, struct kedge_sink sink,
                                              struct kedge_diag *reterr);
/* The other way round: the whole model, of the base at `base` with the tensors of a model of the job. */
KEDGE_NODISCARD int kedge_compute_whole(const struct kedge_job_spec *spec, const struct kedge_blob_at *base,
                                        const struct kedge_blob_at *model, struct kedge_sink sink,
                                        struct kedge_diag *reterr);

#endif
