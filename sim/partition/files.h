/* One site's share of a data set as files: what `kedge poc` gives each of its sites, and what `kedge sim
 * --export` writes. Impure. */
#ifndef KEDGE_SIM_PARTITION_FILES_H
#define KEDGE_SIM_PARTITION_FILES_H

#include "common/base/bytes.h"
#include "common/tensor/dataset.h"
#include "sim/partition/partition.h"

/* Writes train-images.idx, train-labels.idx, test-images.idx, test-labels.idx (images as samples ×
 * features) and binding.json, a data binding (common/tensor/dataset.h) of these files, into dir, which must
 * exist. The binding names them by dir as given, so give an absolute one. The set must hold bytes (an IDX
 * source) and labels up to 255, else KEDGE_E_ARG. */
KEDGE_NODISCARD int kedge_partition_write_idx(const char *dir, const struct kedge_dataset *ds,
                                              const struct kedge_partition *p, uint32_t site,
                                              struct kedge_diag *reterr);
/* A set of reals with labels as an .npz file of the arrays x (F4) and y (I4). */
KEDGE_NODISCARD int kedge_partition_write_npz(const char *path, const struct kedge_dataset *ds,
                                              struct kedge_diag *reterr);
/* Appends "KEY":{…}, the source of a binding that is such a file. */
void kedge_partition_put_npz_source(struct kedge_buf *out, const char *key, const char *path);
/* Appends the binding of such a folder, one JSON object without a newline. */
void kedge_partition_put_binding(const char *dir, double scale, struct kedge_buf *out);

#endif
