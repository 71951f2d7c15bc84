/* A labelled data set in memory, and where a site keeps it. Reading files is this library's only impurity
 * (kedge_dataset, beside the pure kedge_tensor). Data never leave the site that binds them.
 *
 * A data binding is a JSON object {"train":SOURCE,"test":SOURCE} or {"train":SOURCE,"split":"0.9"}; a
 * source is
 *   {"format":"idx","images":PATH,"labels":PATH,"scale":"0.0625"}
 *   {"format":"csv","path":PATH,"label":"last","first", a column's name or number,"header":BOOL,
 *    "separator":";","decimal":",","missing":"refuse","drop" or "mean","ignore":[columns],"scale":"1"}
 *   {"format":"npz","path":PATH,"x":"x","y":"y","scale":"1"}
 *   {"format":"text","path":PATH,"window":80,"step":1,"alphabet":"…"}
 * Features are multiplied by scale. Optional: scale (1), label ("last"), x ("x"), y ("y"), step (1), alphabet
 * (LEAF's 80 characters), and of csv all but the path (csv.h). Beside train there may be "classes":[names],
 * of which the i-th is class i, or "classes":"federated": labels of csv are names, which the site may tell to
 * jobs that learn them, and "standardize":"local": each feature less its mean, divided by its
 * standard deviation, both of the training samples. Unknown keys are errors. Without test and split there is
 * no test set. */
#ifndef KEDGE_COMMON_TENSOR_DATASET_H
#define KEDGE_COMMON_TENSOR_DATASET_H

#include <stdint.h>

#include "common/base/diag.h"
#include "common/base/limits.h"
#include "common/tensor/csv.h"
#include "common/tensor/json.h"

enum {
    KEDGE_DATA_PATH_MAX = 1024,
    KEDGE_DATA_ARRAY_MAX = 128,
    KEDGE_DATA_CLASSES_MAX = 16384, /* bytes of all names of classes, with their NULs */
    KEDGE_DATA_IGNORE_MAX = 2048,   /* bytes of all names of columns left out */
};
#define KEDGE_DATA_FILE_MAX ((uint64_t)4 << 30)

/* Makes the rows indices[0 … count) into out, count × features, on any thread; indices[count … count + after)
 * are likely to be asked for next. */
struct kedge_dataset_maker {
    void (*make)(const struct kedge_dataset_maker *maker, const uint32_t *indices, uint32_t count,
                 uint32_t after, float *out);
};

/* n samples of `features` values. Bytes stay bytes (a quarter of the memory) and are scaled as they are
 * used. */
struct kedge_dataset {
    uint32_t n, features;
    uint32_t classes;     /* largest label + 1; 0: is_real */
    int32_t *labels;      /* owned, n: classes; is_real: the bits of F32, read by kedge_dataset_target */
    bool is_real;         /* what is to be predicted are reals */
    const uint8_t *bytes; /* n × features, to be multiplied by scale; or NULL */
    const float *reals;   /* n × features, scaled already; or NULL */
    float scale;
    uint32_t stride; /* values from one row to the next; 0: features. Windows of a text overlap */
    void *storage;   /* owned: what bytes or reals points into */
    const struct kedge_dataset_maker *maker; /* neither bytes nor reals: who makes rows as they are used */
};
void kedge_dataset_deinit(struct kedge_dataset *ds);
/* Rows indices[0..count) (each below n) as scaled F32 into out, count × features; indices NULL: rows
 * 0..count. */
void kedge_dataset_gather(const struct kedge_dataset *ds, const uint32_t *indices, uint32_t count,
                          float *out);
/* One value, scaled, of bytes or reals: made rows are only gathered and labelled. */
float kedge_dataset_value(const struct kedge_dataset *ds, uint32_t row, uint32_t feature);
/* Of each feature (ret, features of them) the mean, or with means the mean squared distance from those. n >
 * 0, reals or bytes without a stride. */
void kedge_dataset_moments(const struct kedge_dataset *ds, const double *means, double *ret);
/* Every feature less its mean, divided by its deviation (above 0); reals from then on. KEDGE_E_FORMAT:
 * windows of a text, or values too far from the mean for F32; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_dataset_scale(struct kedge_dataset *ds, const double *means,
                                        const double *deviations, struct kedge_diag *reterr);
/* Missing values (NaN) of both sets become the mean of the training set's. columns: names of the features,
 * packed, or NULL. KEDGE_E_FORMAT: a feature has none there; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_dataset_fill(struct kedge_dataset *train, struct kedge_dataset *test,
                                       const char *columns, struct kedge_diag *reterr);
/* Both sets by mean and standard deviation of the training set's; a feature that is constant there is only
 * shifted. Errors as kedge_dataset_scale. */
KEDGE_NODISCARD int kedge_dataset_standardize(struct kedge_dataset *train, struct kedge_dataset *test,
                                              struct kedge_diag *reterr);
/* What is to be predicted, as a number. */
float kedge_dataset_target(const struct kedge_dataset *ds, uint32_t row);
/* A copy of the rows indices[0..count), count > 0. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_dataset_pick(const struct kedge_dataset *ds, const uint32_t *indices,
                                       uint32_t count, struct kedge_dataset *ret);

enum kedge_data_format { KEDGE_DATA_IDX = 1, KEDGE_DATA_CSV, KEDGE_DATA_NPZ, KEDGE_DATA_TEXT };
enum { KEDGE_DATA_WINDOW_MAX = 4096, KEDGE_DATA_STEP_MAX = 65536 };

struct kedge_data_source {
    enum kedge_data_format format;
    char path[KEDGE_DATA_PATH_MAX];        /* idx: images */
    char labels_path[KEDGE_DATA_PATH_MAX]; /* idx only */
    char x[KEDGE_DATA_ARRAY_MAX];          /* npz: array of features; text: the alphabet */
    char y[KEDGE_DATA_ARRAY_MAX];          /* npz: array of labels; csv: label column */
    uint32_t window, step;                 /* text: characters of a sample, and to the next one */
    double scale;
    struct kedge_csv_options csv;       /* csv: without its pointers, which loading sets */
    char ignore[KEDGE_DATA_IGNORE_MAX]; /* csv.ignore's names */
};
enum kedge_data_standardize { KEDGE_DATA_AS_IT_IS, KEDGE_DATA_STANDARDIZE_LOCAL };
struct kedge_data_binding {
    struct kedge_data_source train, test;
    bool has_test;
    double split; /* share of train kept for training when there is no test; 1: all */
    enum kedge_data_standardize standardize;
    enum kedge_csv_target target; /* what the job predicts; parsing leaves it CLASS */
    uint32_t classes_count;
    char classes[KEDGE_DATA_CLASSES_MAX]; /* as struct kedge_names */
    bool tells_classes;                   /* "classes":"federated" */
};

KEDGE_NODISCARD int kedge_data_binding_from_json(const struct kedge_json *doc, uint32_t at,
                                                 struct kedge_data_binding *ret, struct kedge_diag *reterr);

/* Reads and checks one data set; errors name the file. The caller deinits ret after success. */
KEDGE_NODISCARD int kedge_dataset_load(const struct kedge_data_source *source, struct kedge_dataset *ret,
                                       struct kedge_diag *reterr);
/* Both sets; test->n is 0 when there is none. With a split the same samples are held out every time
 * (shuffle by a constant stream), at least one on either side. */
KEDGE_NODISCARD int kedge_data_binding_load(const struct kedge_data_binding *binding,
                                            struct kedge_dataset *train, struct kedge_dataset *test,
                                            struct kedge_diag *reterr);

/* Names of classes in byte order, each with its NUL, then an empty one. */
struct kedge_data_labels {
    uint32_t count;
    char text[KEDGE_CLASS_NAMES_BYTES_MAX + 1];
};
/* The same of a binding with tells_classes, whose labels are names: *ret_labels has those of both files, and
 * the sets' labels are places in it. KEDGE_E_SHAPE: another format than csv, or more than
 * KEDGE_CLASS_NAMES_BYTES_MAX bytes of names. kedge_data_binding_load refuses such a binding. */
KEDGE_NODISCARD int kedge_data_binding_find(const struct kedge_data_binding *binding,
                                            struct kedge_dataset *train, struct kedge_dataset *test,
                                            struct kedge_data_labels *ret_labels, struct kedge_diag *reterr);

/* What a binding's files hold, for their owner. */
struct kedge_data_column {
    char name[KEDGE_CSV_NAME_MAX + 1];
    uint32_t missing; /* values, in the training and test files together */
};
struct kedge_data_class {
    char name[KEDGE_CSV_NAME_MAX + 1]; /* its number where it has no name */
    uint32_t train, test;              /* samples */
};
struct kedge_data_facts {
    uint32_t train, test, features;    /* samples; values of each */
    uint32_t dropped;                  /* rows left out for a missing value */
    struct kedge_data_column *columns; /* owned, features; NULL where the format has no names */
    bool is_real;                      /* labels are reals, not classes: */
    float least, most;
    bool wants_classes;     /* labels are names, found in the training file; training needs "classes" */
    bool tells_classes;     /* labels are names, found in both files, which may be told */
    uint32_t classes_count; /* at most KEDGE_CSV_CLASSES_MAX; of more only the first */
    struct kedge_data_class *classes; /* owned */
};
/* Loads both sets as training would, but takes any kind of labels. Errors as kedge_data_binding_load: the
 * first line that is bad, with file, line and column. The caller deinits ret after success. */
KEDGE_NODISCARD int kedge_data_binding_facts(const struct kedge_data_binding *binding,
                                             struct kedge_data_facts *ret, struct kedge_diag *reterr);
void kedge_data_facts_deinit(struct kedge_data_facts *facts);
/* How many columns of a CSV file are features (kedge_csv_count_features). */
KEDGE_NODISCARD int kedge_data_csv_features(const struct kedge_data_source *source, uint32_t *ret,
                                            struct kedge_diag *reterr);
/* A descriptor for reading a regular file, or a negative error that names the path. Never waits and opens
 * nothing else: KEDGE_E_IO for a folder, FIFO, socket or device. */
KEDGE_NODISCARD int kedge_data_file_open(const char *path, struct kedge_diag *reterr);
/* The whole regular file, at most KEDGE_DATA_FILE_MAX bytes; *ret_bytes is owned by the caller
 * (kedge_mem_free). */
KEDGE_NODISCARD int kedge_data_file_read(const char *path, uint8_t **ret_bytes, size_t *ret_len,
                                         struct kedge_diag *reterr);

#endif
