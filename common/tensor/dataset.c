/* Loads a labelled data set from the files of a binding: one loader for each format, then the same
 * steps for all: labels, the split, missing values, scales.
 *
 * Everything that is learnt from data (means, scales, names of classes) is learnt from the training
 * part. What the test part knew would otherwise reach the model, and its accuracy would be told too
 * high. */
#include "common/tensor/dataset.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/try.h"
#include "common/tensor/dataset_impl.h"
#include "common/tensor/idx.h"
#include "common/tensor/npz.h"

/* The held-out samples of a split must be the same in every task, or test data would be trained on. */
static const uint64_t split_seed = 0x73706c6974; /* "split" */

/* One label for each image, exactly: a list that is shifted or of another file would train nonsense
 * without an error. */
static int load_idx_labels(const char *path, uint32_t n, int32_t **ret, struct kedge_diag *reterr)
{
    uint8_t *file;
    size_t len;
    struct kedge_idx idx;
    KEDGE_TRY(kedge_data_file_read(path, &file, &len, reterr));
    int err = kedge_idx_read(kedge_view_of(file, len), &idx, reterr);
    if (!err && (idx.dims_count != 1 || idx.dims[0] != n)) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT,
                             "%u dimensions, %u labels: expected one dimension, %u labels "
                             "(one for each image)",
                             idx.dims_count, idx.dims[0], n);
    }
    int32_t *labels = err ? NULL : kedge_mem_new(n, sizeof *labels);
    if (!err && !labels) {
        err = kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u labels", n);
    }
    for (uint32_t i = 0; i < n && !err; i++) {
        labels[i] = idx.data[i];
    }
    kedge_mem_free(file);
    if (err) {
        return kedge_diag_wrap(reterr, err, "%s", path);
    }
    *ret = labels;
    return KEDGE_OK;
}

/* The bytes stay as they are in the file; they are scaled when a batch is gathered. A set of images
 * takes a quarter of the memory that reals would. */
static int load_idx(const struct kedge_data_source *source, struct kedge_dataset *ds,
                    struct kedge_diag *reterr)
{
    uint8_t *file;
    size_t len;
    struct kedge_idx idx;
    KEDGE_TRY(kedge_data_file_read(source->path, &file, &len, reterr));
    ds->storage = file;
    int err = kedge_idx_read(kedge_view_of(file, len), &idx, reterr);
    if (!err && (idx.dims_count < 2 || idx.count / idx.dims[0] > UINT32_MAX)) {
        err =
            kedge_diag_set(reterr, KEDGE_E_FORMAT,
                           "one dimension: expected images (samples, rows, columns); are these the labels?");
    }
    if (err) {
        return kedge_diag_wrap(reterr, err, "%s", source->path);
    }
    ds->n = idx.dims[0];
    ds->features = (uint32_t)(idx.count / idx.dims[0]);
    ds->bytes = idx.data;
    ds->scale = (float)source->scale;
    return load_idx_labels(source->labels_path, ds->n, &ds->labels, reterr);
}

static void scale_reals(float *x, size_t count, float scale)
{
    for (size_t i = 0; i < count; i++) {
        x[i] *= scale;
    }
}

static int take_npz_features(struct kedge_npy *x, double scale, struct kedge_dataset *ds,
                             struct kedge_diag *reterr)
{
    uint64_t n = x->dims_count > 0 ? x->dims[0] : 0;
    if (x->dims_count < 2 || n > UINT32_MAX || x->count / n > UINT32_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "%u dimensions: expected samples × features",
                              x->dims_count);
    }
    ds->n = (uint32_t)n;
    ds->features = (uint32_t)(x->count / n);
    ds->scale = x->type == KEDGE_NPY_U1 ? (float)scale : 1.0f;
    ds->storage = kedge_mem_new(x->count, x->type == KEDGE_NPY_U1 ? 1 : sizeof(float));
    if (!ds->storage) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %llu values",
                              (unsigned long long)x->count);
    }
    if (x->type == KEDGE_NPY_U1) {
        memcpy(ds->storage, x->data, x->count);
        ds->bytes = ds->storage;
        return KEDGE_OK;
    }
    int err = kedge_npy_to_f32(x, ds->storage, reterr);
    scale_reals(ds->storage, err ? 0 : x->count, (float)scale);
    ds->reals = ds->storage;
    return err;
}

/* Labels and targets have one array of 32-bit values; reals are stored by their bits (is_real tells
 * which). */
static int take_npz_labels(const struct kedge_npy *y, enum kedge_csv_target target, struct kedge_dataset *ds,
                           struct kedge_diag *reterr)
{
    bool is_float = y->type == KEDGE_NPY_F4 || y->type == KEDGE_NPY_F8;
    if (y->count != ds->n) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "%llu labels, expected %u (one for each sample)",
                              (unsigned long long)y->count, ds->n);
    }
    ds->labels = kedge_mem_new(ds->n, sizeof *ds->labels);
    if (!ds->labels) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u labels", ds->n);
    }
    ds->is_real = target == KEDGE_CSV_TARGET_REAL || (target == KEDGE_CSV_TARGET_ANY && is_float);
    if (!ds->is_real) {
        return kedge_npy_to_labels(y, KEDGE_CSV_LABEL_MAX, ds->labels, reterr);
    }
    float *reals = (float *)(void *)ds->labels;
    int err = kedge_npy_to_f32(y, reals, reterr);
    ds->labels = kedgei_reals_as_labels(reals, err ? 0 : ds->n);
    return err;
}

static int load_npz_arrays(const struct kedge_npz *npz, const struct kedge_data_source *source,
                           enum kedge_csv_target target, struct kedge_dataset *ds, struct kedge_diag *reterr)
{
    struct kedge_npy array;
    KEDGE_TRY(kedge_npz_read(npz, source->x, &array, reterr));
    int err = take_npz_features(&array, source->scale, ds, reterr);
    kedge_npy_deinit(&array);
    if (err) {
        return kedge_diag_wrap(reterr, err, "array \"%s\"", source->x);
    }
    KEDGE_TRY(kedge_npz_read(npz, source->y, &array, reterr));
    err = take_npz_labels(&array, target, ds, reterr);
    kedge_npy_deinit(&array);
    return err ? kedge_diag_wrap(reterr, err, "array \"%s\"", source->y) : KEDGE_OK;
}

static int load_npz(const struct kedge_data_source *source, enum kedge_csv_target target,
                    struct kedge_dataset *ds, struct kedge_diag *reterr)
{
    uint8_t *file;
    size_t len;
    struct kedge_npz npz;
    KEDGE_TRY(kedge_data_file_read(source->path, &file, &len, reterr));
    int err = kedge_npz_open(kedge_view_of(file, len), &npz, reterr);
    if (!err) {
        err = load_npz_arrays(&npz, source, target, ds, reterr);
        kedge_npz_close(&npz);
    }
    kedge_mem_free(file);
    return err ? kedge_diag_wrap(reterr, err, "%s", source->path) : KEDGE_OK;
}

/* Labels that are classes by number: as reals where the job predicts those, within the names where it has
 * some. */
static int settle_labels(const struct kedgei_load_as *as, struct kedge_dataset *ds, struct kedge_diag *reterr)
{
    kedgei_dataset_count_classes(ds);
    if (as->classes.count > 0 && ds->classes > as->classes.count) {
        return kedge_diag_set(reterr, KEDGE_E_SHAPE, "labels up to %u, but \"classes\" names %u",
                              ds->classes - 1, as->classes.count);
    }
    if (as->target != KEDGE_CSV_TARGET_REAL || ds->is_real) {
        return KEDGE_OK;
    }
    int32_t bits;
    for (uint32_t i = 0; i < ds->n; i++) {
        float target = (float)ds->labels[i];
        memcpy(&bits, &target, sizeof bits);
        ds->labels[i] = bits;
    }
    ds->is_real = true;
    ds->classes = 0;
    return KEDGE_OK;
}

static int dataset_load(const struct kedge_data_source *source, const struct kedgei_load_as *as,
                        struct kedgei_loaded *ret, struct kedge_diag *reterr)
{
    struct kedgei_loaded l = {.csv = {.rows = 0}};
    int err = KEDGE_E_BUG;
    switch (source->format) {
    case KEDGE_DATA_IDX:
        err = load_idx(source, &l.ds, reterr);
        break;
    case KEDGE_DATA_CSV:
        err = kedgei_dataset_load_csv(source, as, &l, reterr);
        break;
    case KEDGE_DATA_NPZ:
        err = load_npz(source, as->target, &l.ds, reterr);
        break;
    case KEDGE_DATA_TEXT:
        err = kedge_dataset_load_text(source, &l.ds, reterr);
        break;
    }
    if (!err) {
        err = settle_labels(as, &l.ds, reterr);
        err = err ? kedge_diag_wrap(reterr, err, "%s", source->path) : KEDGE_OK;
    }
    if (err) {
        kedgei_loaded_deinit(&l);
        return err;
    }
    *ret = l;
    return KEDGE_OK;
}

int kedge_dataset_load(const struct kedge_data_source *source, struct kedge_dataset *ret,
                       struct kedge_diag *reterr)
{
    static const struct kedgei_load_as plainly = {.target = KEDGE_CSV_TARGET_CLASS};
    struct kedge_dataset none = {.n = 0};
    struct kedgei_loaded l;
    int err = dataset_load(source, &plainly, &l, reterr);
    if (err) {
        return err;
    }
    if (source->csv.missing == KEDGE_CSV_MISSING_MEAN) {
        err = kedge_dataset_fill(&l.ds, &none, l.csv.columns, reterr);
    }
    kedge_csv_deinit(&l.csv);
    if (err) {
        kedge_dataset_deinit(&l.ds);
        return kedge_diag_wrap(reterr, err, "%s", source->path);
    }
    *ret = l.ds;
    return KEDGE_OK;
}

/* The order is drawn from a seed that depends on nothing but the number of samples: each task must
 * hold out the same ones. At least one sample is on either side. */
static int split(const struct kedge_dataset *all, double share, struct kedge_dataset *train,
                 struct kedge_dataset *test, struct kedge_diag *reterr)
{
    uint32_t kept = (uint32_t)((double)all->n * share);
    if (all->n < 2) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"split\" needs at least 2 samples, found %u", all->n);
    }
    kept = kept == 0 ? 1 : kept == all->n ? all->n - 1 : kept;
    if (all->stride > 0) {
        return kedge_dataset_split_text(all, kept, train, test, reterr);
    }
    uint32_t *order = kedge_mem_new(all->n, sizeof *order);
    if (!order) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "no memory for %u samples", all->n);
    }
    for (uint32_t i = 0; i < all->n; i++) {
        order[i] = i;
    }
    struct kedge_rng rng;
    kedge_rng_init(&rng, split_seed, KEDGE_RNG_PARTITION, all->n, 0);
    kedge_rng_sample(&rng, order, all->n, all->n);
    int err = kedge_dataset_pick(all, order, kept, train);
    if (!err) {
        err = kedge_dataset_pick(all, order + kept, all->n - kept, test);
        if (err) {
            kedge_dataset_deinit(train);
        }
    }
    kedge_mem_free(order);
    return err ? kedge_diag_set(reterr, err, "no memory for %u samples", all->n) : KEDGE_OK;
}

/* The test set is read as the training set turned out to be: the same names of classes in the same
 * places, the same kind of targets, the same number of features. */
static int load_test(const struct kedge_data_binding *b, const struct kedgei_load_as *as,
                     const struct kedgei_loaded *train, struct kedgei_loaded *test, struct kedge_diag *reterr)
{
    struct kedgei_load_as same = *as;
    if (train->csv.classes_count > 0 && !as->finds_classes) { /* names that the training file has */
        same.classes = (struct kedge_names){train->csv.classes_count, train->csv.classes};
    }
    same.target = train->ds.is_real ? KEDGE_CSV_TARGET_REAL : as->target;
    int err = dataset_load(&b->test, &same, test, reterr);
    if (err) {
        return err;
    }
    if (test->ds.features != train->ds.features) {
        err = kedge_diag_set(reterr, KEDGE_E_SHAPE, "%u features, but the train data have %u",
                             test->ds.features, train->ds.features);
    } else if (test->ds.is_real != train->ds.is_real) {
        err = kedge_diag_set(reterr, KEDGE_E_SHAPE, "labels are reals, but the train data's are classes");
    }
    if (err) {
        kedgei_loaded_deinit(test);
    }
    return err;
}

/* Missing values, then scales: both from what is trained on alone, so that nothing of the test set enters the
 * model. */
static int prepare(const struct kedge_data_binding *b, struct kedgei_loaded *train,
                   struct kedgei_loaded *test, struct kedge_diag *reterr)
{
    int err = KEDGE_OK;
    bool fills = b->train.csv.missing == KEDGE_CSV_MISSING_MEAN
                 || (b->has_test && b->test.csv.missing == KEDGE_CSV_MISSING_MEAN);
    if (fills) {
        err = kedge_dataset_fill(&train->ds, &test->ds, train->csv.columns, reterr);
    }
    if (!err && b->standardize == KEDGE_DATA_STANDARDIZE_LOCAL) {
        err = kedge_dataset_standardize(&train->ds, &test->ds, reterr);
    }
    return err ? kedge_diag_wrap(reterr, err, "%s", b->train.path) : KEDGE_OK;
}

int kedgei_data_binding_load(const struct kedge_data_binding *b, struct kedgei_loaded *ret_train,
                             struct kedgei_loaded *ret_test, struct kedge_diag *reterr)
{
    struct kedgei_load_as as = {
        .target = b->target, .classes = {b->classes_count, b->classes}, .finds_classes = b->tells_classes};
    struct kedgei_loaded train, test = {.csv = {.rows = 0}};
    int err = dataset_load(&b->train, &as, &train, reterr);
    if (err) {
        return kedge_diag_wrap(reterr, err, "train data");
    }
    if (b->has_test) {
        err = load_test(b, &as, &train, &test, reterr);
        err = err ? kedge_diag_wrap(reterr, err, "test data") : KEDGE_OK;
    } else if (b->split < 1.0) {
        struct kedge_dataset all = train.ds;
        train.ds = (struct kedge_dataset){.n = 0};
        err = split(&all, b->split, &train.ds, &test.ds, reterr);
        kedge_dataset_deinit(&all);
    }
    if (!err) {
        err = prepare(b, &train, &test, reterr);
        if (err) {
            kedgei_loaded_deinit(&test);
        }
    }
    if (err) {
        kedgei_loaded_deinit(&train);
        return err;
    }
    *ret_train = train;
    *ret_test = test;
    return KEDGE_OK;
}

int kedge_data_binding_load(const struct kedge_data_binding *binding, struct kedge_dataset *train,
                            struct kedge_dataset *test, struct kedge_diag *reterr)
{
    struct kedgei_loaded a, b;
    if (binding->tells_classes) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"classes\": the job has not learnt their names yet");
    }
    KEDGE_TRY(kedgei_data_binding_load(binding, &a, &b, reterr));
    kedge_csv_deinit(&a.csv);
    kedge_csv_deinit(&b.csv);
    *train = a.ds;
    *test = b.ds;
    return KEDGE_OK;
}
