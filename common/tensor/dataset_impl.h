/* What the loaders of dataset.h share. */
#ifndef KEDGE_COMMON_TENSOR_DATASET_IMPL_H
#define KEDGE_COMMON_TENSOR_DATASET_IMPL_H

#include "common/tensor/dataset.h"

/* A loaded source: the set, and what a CSV file tells beside it (its arrays of rows are the set's). */
struct kedgei_loaded {
    struct kedge_dataset ds;
    struct kedge_csv csv; /* zero for other formats */
};
struct kedgei_load_as {
    enum kedge_csv_target target;
    struct kedge_names classes;
    bool finds_classes;
};
void kedgei_loaded_deinit(struct kedgei_loaded *loaded);
/* Sets `classes` by the labels. */
void kedgei_dataset_count_classes(struct kedge_dataset *ds);
KEDGE_NODISCARD int kedgei_dataset_load_csv(const struct kedge_data_source *source,
                                            const struct kedgei_load_as *as, struct kedgei_loaded *ret,
                                            struct kedge_diag *reterr);
/* Both sets, and what their files tell; test.ds.n is 0 when there is none. */
KEDGE_NODISCARD int kedgei_data_binding_load(const struct kedge_data_binding *binding,
                                             struct kedgei_loaded *train, struct kedgei_loaded *test,
                                             struct kedge_diag *reterr);
/* Of sets that were loaded with finds_classes: all their names, by which their labels are counted then. */
KEDGE_NODISCARD int kedgei_loaded_unite(const struct kedge_data_binding *binding, struct kedgei_loaded *train,
                                        struct kedgei_loaded *test, struct kedge_data_labels *ret,
                                        struct kedge_diag *reterr);
/* The same memory, each real as the labels of a set with is_real hold it. */
int32_t *kedgei_reals_as_labels(float *reals, uint32_t n);

/* LEAF's alphabet. */
extern const char kedge_text_alphabet[];

/* Fills ds but for classes; what it filled is the caller's to deinit, after an error too. */
KEDGE_NODISCARD int kedge_dataset_load_text(const struct kedge_data_source *source, struct kedge_dataset *ds,
                                            struct kedge_diag *reterr);
/* The first `kept` windows, and those after them that share no character with them. */
KEDGE_NODISCARD int kedge_dataset_split_text(const struct kedge_dataset *all, uint32_t kept,
                                             struct kedge_dataset *train, struct kedge_dataset *test,
                                             struct kedge_diag *reterr);

#endif
