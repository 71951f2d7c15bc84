/* Inside the CSV reader: records and fields (csv_fields.c), what a file is (csv_shape.c), rows (csv.c). */
#ifndef KEDGE_COMMON_TENSOR_CSV_IMPL_H
#define KEDGE_COMMON_TENSOR_CSV_IMPL_H

#include "common/tensor/csv.h"

struct kedgei_csv_field {
    struct kedge_view text; /* without the quotes and blanks around it */
    bool quoted, doubled;   /* doubled: "" in it stands for a quote */
    uint32_t line, column;  /* where it begins, both from 1 */
};

struct kedgei_csv_reader {
    struct kedge_view rest;
    char separator;
    bool more;             /* the record goes on */
    uint32_t line, column; /* of what comes next */
};
struct kedgei_csv_reader kedgei_csv_reader_of(struct kedge_view file, char separator);
/* To the next record that is not blank; false at the end of the file. */
bool kedgei_csv_next_record(struct kedgei_csv_reader *r);
/* The next field; only while r->more. KEDGE_E_FORMAT for quotes that are not RFC 4180's. */
KEDGE_NODISCARD int kedgei_csv_next_field(struct kedgei_csv_reader *r, struct kedgei_csv_field *ret,
                                          struct kedge_diag *reterr);

bool kedgei_csv_field_is(const struct kedgei_csv_field *f, const char *name);
bool kedgei_csv_is_missing(const struct kedgei_csv_field *f);
/* KEDGE_E_FORMAT when it is no number. */
KEDGE_NODISCARD int kedgei_csv_number(const struct kedgei_csv_field *f, bool decimal_comma, double *ret);
/* The field's text with its NUL; what does not fit is cut between characters, and false. */
bool kedgei_csv_text(const struct kedgei_csv_field *f, char *out, size_t out_len);

enum kedgei_csv_role {
    KEDGEI_CSV_FEATURE,
    KEDGEI_CSV_LABEL,
    KEDGEI_CSV_IGNORED,
    KEDGEI_CSV_KEPT, /* and so on: number of options.keep */
};

struct kedgei_csv_shape {
    struct kedge_view file; /* after byte order mark and "sep=" */
    uint32_t first_line;    /* the number of its first line */
    char separator;
    bool has_header;
    uint32_t columns, features, rows; /* rows: records but the header, at most */
    uint8_t *roles;                   /* owned (kedge_mem_free): of each column */
};
/* What the file is, by its first records and the options. */
KEDGE_NODISCARD int kedgei_csv_find_shape(struct kedge_view file, const struct kedge_csv_options *o,
                                          struct kedgei_csv_shape *ret, struct kedge_diag *reterr);
/* A reader at the first record of data. */
struct kedgei_csv_reader kedgei_csv_at_data(const struct kedgei_csv_shape *shape);
/* 'line 7, column 3 ("bmi"): found "n/a", expected a number'; shape NULL: without the column's name. */
int kedgei_csv_say(const struct kedgei_csv_shape *shape, const struct kedgei_csv_field *f,
                   const char *expected, struct kedge_diag *reterr);
/* The names of all columns, or of the features alone, packed; NULL without memory. */
char *kedgei_csv_names(const struct kedgei_csv_shape *shape);

#endif
