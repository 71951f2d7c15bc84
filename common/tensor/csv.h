/* Numeric CSV with labels: fields separated by commas, one sample a line (LF or CR LF), an optional header
 * line. One column holds the label, a whole number from 0; all others are features. Pure. */
#ifndef KEDGE_COMMON_TENSOR_CSV_H
#define KEDGE_COMMON_TENSOR_CSV_H

#include "common/base/bytes.h"
#include "common/base/diag.h"

enum { KEDGE_CSV_COLUMNS_MAX = 65536, KEDGE_CSV_LABEL_MAX = 65535 };

struct kedge_csv {
    uint32_t rows, features;
    float *x;        /* owned, rows × features */
    int32_t *labels; /* owned, rows, each 0 to KEDGE_CSV_LABEL_MAX */
};

/* label: "last", or the name of a column of the header line. The first line is a header when any of its
 * fields is not a number; blank lines at the end are ignored. Names may stand in double quotes.
 * KEDGE_E_FORMAT names line and column; KEDGE_E_NOT_FOUND when there is no such column. The caller deinits
 * ret after success. */
KEDGE_NODISCARD int kedge_csv_read(struct kedge_view file, const char *label, struct kedge_csv *ret,
                                   struct kedge_diag *reterr);
void kedge_csv_deinit(struct kedge_csv *csv);

#endif
