/* The models that the groups of a job begin with, where they begin apart (IFCA, FeSEM). */
#ifndef KEDGE_ROUND_BEGINNING_H
#define KEDGE_ROUND_BEGINNING_H

#include "round/compute.h"

/* Group g's: kedge_compute_initial with g times the odd number nearest to 2^64 over the golden ratio added to
 * the seed, modulo 2^64; group 0's is the initial model. */
KEDGE_NODISCARD int kedge_compute_beginning(const struct kedge_job_spec *spec, uint32_t group,
                                            struct kedge_sink sink, struct kedge_diag *reterr);

#endif
