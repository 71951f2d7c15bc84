/* Inside norm*.c. */
#ifndef KEDGE_AGGREGATION_NORM_IMPL_H
#define KEDGE_AGGREGATION_NORM_IMPL_H

#include "aggregation/norm.h"

/* Upper and lower halves of the squares; takes a multiple of 16 values below 2^31 and returns how many. */
size_t kedgei_norm_avx2(const int32_t *q, size_t n, struct kedge_norm *sum);

#endif
