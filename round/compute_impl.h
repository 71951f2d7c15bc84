/* Internal to this room: what its files share. */
#ifndef KEDGE_ROUND_COMPUTE_IMPL_H
#define KEDGE_ROUND_COMPUTE_IMPL_H

#include "round/aggregate.h"
#include "round/compute.h"
#include "round/tensor_files.h"

/* The header of a canonical file of the layout, into the sink. */
KEDGE_NODISCARD int kedgei_write_header(const struct kedge_layout *layout, enum kedge_dtype dtype,
                                        struct kedge_sink sink);
/* kedge_compute_weigh where no input is a root, or (rules that need one) it is input number `count`, behind
 * those that are weighed. */
KEDGE_NODISCARD int kedgei_weigh(const struct kedge_job_spec *spec, const struct kedge_layout *layout,
                                 bool cold_start, const struct kedge_compute_input *inputs, size_t count,
                                 struct kedge_compute_weights *ret, struct kedge_diag *reterr);
/* root.c: kedge_compute_weigh of a job with a root site. */
KEDGE_NODISCARD int kedgei_weigh_rooted(const struct kedge_job_spec *spec, const struct kedge_layout *layout,
                                        const struct kedge_compute_input *inputs, size_t count,
                                        struct kedge_compute_weights *ret, struct kedge_diag *reterr);
/* maxima[count] and gram[count²], both zeroed by the caller, tile by tile, of the values from sign_first on.
 * At most KEDGE_GRAM_VECTORS_MAX files. */
KEDGE_NODISCARD int kedgei_gram_from(struct kedgei_tensors *t, size_t sign_first, uint32_t *maxima,
                                     int64_t *gram, struct kedge_diag *d);
/* The same of all values. */
KEDGE_NODISCARD int kedgei_gram_of(struct kedgei_tensors *t, uint32_t *maxima, int64_t *gram,
                                   struct kedge_diag *d);
/* reshape.c: inner products of the files, n × n, and their largest values; both the caller's to free, also
 * behind an error. */
KEDGE_NODISCARD int kedgei_gram_of_files(const struct kedge_layout *layout, const struct kedge_blob_at *files,
                                         size_t n, int64_t **ret_gram, uint32_t **ret_maxima,
                                         struct kedge_diag *d);

#endif
