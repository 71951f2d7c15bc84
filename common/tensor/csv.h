/* CSV as people have it: RFC 4180 and what spreadsheets, statistics programs and pandas make of it. One
 * record a sample; one column is the label, all others but those left out are features. Pure.
 *
 * Records end with LF, CR LF or CR; blank ones, and those of separators alone, count as nothing. A field may
 * stand in double quotes, within which a quote is written twice and lines may end. A byte order mark and
 * Excel's first line "sep=;" are understood. Numbers may be "+1", ".5", "5.", "1E-3", true and false. Missing
 * are empty fields and NA, N/A, #N/A, NaN, null, None, ?, in any case. */
#ifndef KEDGE_COMMON_TENSOR_CSV_H
#define KEDGE_COMMON_TENSOR_CSV_H

#include "common/base/bytes.h"
#include "common/base/diag.h"

enum {
    KEDGE_CSV_COLUMNS_MAX = 65536,
    KEDGE_CSV_LABEL_MAX = 65535,
    KEDGE_CSV_CLASSES_MAX = 1024,
    KEDGE_CSV_NAME_MAX = 127,  /* bytes of a class's or a column's name */
    KEDGE_CSV_IGNORE_MAX = 64, /* columns left out, by place */
    KEDGE_CSV_KEEP_MAX = 4,    /* columns whose text is kept */
};

/* Names one after the other, each with its NUL. */
struct kedge_names {
    uint32_t count;
    const char *text;
};
const char *kedge_names_next(const char *name);

enum kedge_csv_header { KEDGE_CSV_HEADER_DETECT, KEDGE_CSV_HEADER_YES, KEDGE_CSV_HEADER_NO };
/* What becomes of a value that is missing: an error; its row is left out; NaN in x, for the caller to fill
 * with the mean of the training samples. A missing label is an error but with DROP. */
enum kedge_csv_missing { KEDGE_CSV_MISSING_REFUSE, KEDGE_CSV_MISSING_DROP, KEDGE_CSV_MISSING_MEAN };
/* What the label column holds: a class; a real; or found out: classes by name or number, or reals. */
enum kedge_csv_target { KEDGE_CSV_TARGET_CLASS, KEDGE_CSV_TARGET_REAL, KEDGE_CSV_TARGET_ANY };

/* All zero: everything is found out, the label is in the last column, nothing may be missing. */
struct kedge_csv_options {
    const char *label;    /* a column's name, else "first" or "last"; NULL: "last" */
    uint32_t label_place; /* the label's column, the first is 1; 0: as `label` says */
    bool no_label;        /* there is none: all columns are features, labels are zero */
    enum kedge_csv_header header;
    char separator;     /* 0: found out of tab ; | , and blanks; ' ': any number of blanks and tabs */
    bool decimal_comma; /* 3,14 */
    bool as_it_is; /* the person who names the file can say nothing of these but `missing`: advice is about
                    * the file
                    */
    enum kedge_csv_missing missing;
    enum kedge_csv_target target;
    struct kedge_names classes; /* class i is the i-th name; none: labels are whole numbers from 0 */
    bool finds_classes;         /* every label is a name: those of the file are the classes, in byte order */
    struct kedge_names ignore;  /* columns left out, by name … */
    uint32_t ignore_count;      /* … and by place, the first is 1 */
    uint32_t ignore_places[KEDGE_CSV_IGNORE_MAX];
    const char *keep[KEDGE_CSV_KEEP_MAX]; /* names of columns that are no features: their text is kept, at
                                             most KEDGE_CSV_NAME_MAX bytes; NULL: none */
};

struct kedge_csv {
    uint32_t rows, features;
    float *x;          /* owned, rows × features */
    int32_t *labels;   /* owned, rows, each 0 to KEDGE_CSV_LABEL_MAX; NULL: */
    float *targets;    /* owned, rows */
    uint32_t dropped;  /* rows left out for a missing value */
    uint32_t *missing; /* owned, features: how many values of each are missing, of rows left out too */
    char *columns;     /* owned: the features' names, as struct kedge_names; without a header "column 3" */
    bool has_header;
    char separator;
    uint32_t classes_count; /* names found: finds_classes, or TARGET_ANY without classes; in byte order, … */
    char *classes;          /* … owned, as struct kedge_names; else 0 and NULL */
    char *kept[KEDGE_CSV_KEEP_MAX]; /* owned: of options.keep, a text a row, one after the other; or NULL */
};

/* KEDGE_E_FORMAT names line and column, what was found and what was expected; KEDGE_E_NOT_FOUND when there is
 * no such column. options NULL: all zero. The caller deinits ret after success. */
KEDGE_NODISCARD int kedge_csv_read(struct kedge_view file, const struct kedge_csv_options *options,
                                   struct kedge_csv *ret, struct kedge_diag *reterr);
void kedge_csv_deinit(struct kedge_csv *csv);
/* Columns that are neither the label nor left out. Errors as kedge_csv_read's, of the file's form alone. */
KEDGE_NODISCARD int kedge_csv_count_features(struct kedge_view file, const struct kedge_csv_options *options,
                                             uint32_t *ret, struct kedge_diag *reterr);

#endif
