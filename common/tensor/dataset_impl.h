/* What the loaders of dataset.h share. */
#ifndef KEDGE_COMMON_TENSOR_DATASET_IMPL_H
#define KEDGE_COMMON_TENSOR_DATASET_IMPL_H

#include "common/tensor/dataset.h"

/* LEAF's alphabet. */
extern const char kedge_text_alphabet[];

/* Fills ds but for classes; what it filled is the caller's to deinit, after an error too. */
KEDGE_NODISCARD int kedge_dataset_load_text(const struct kedge_data_source *source, struct kedge_dataset *ds,
                                            struct kedge_diag *reterr);
/* The first `kept` windows, and those behind them that share no character with them. */
KEDGE_NODISCARD int kedge_dataset_split_text(const struct kedge_dataset *all, uint32_t kept,
                                             struct kedge_dataset *train, struct kedge_dataset *test,
                                             struct kedge_diag *reterr);

#endif
