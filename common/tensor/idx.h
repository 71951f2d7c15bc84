/* The IDX container of the MNIST family: magic 00 00 TT DD, DD big-endian 32-bit dimensions, then the
 * values. In scope: unsigned bytes (TT 08), one to four dimensions. Pure. Format: yann.lecun.com/exdb/mnist
 * (archived). */
#ifndef KEDGE_COMMON_TENSOR_IDX_H
#define KEDGE_COMMON_TENSOR_IDX_H

#include "common/base/bytes.h"
#include "common/base/diag.h"

enum { KEDGE_IDX_DIMS_MAX = 4 };

struct kedge_idx {
    uint32_t dims_count;
    uint32_t dims[KEDGE_IDX_DIMS_MAX]; /* outermost (samples) first, none zero */
    uint64_t count;                    /* values: product of dims */
    const uint8_t *data;               /* borrowed from the file's view */
};

/* KEDGE_E_FORMAT says what the file is instead, or how its size differs from what its header promises. */
KEDGE_NODISCARD int kedge_idx_read(struct kedge_view file, struct kedge_idx *ret, struct kedge_diag *reterr);
/* Appends the header, which the values follow, as many as the product of the dimensions; the error is in
 * out->err. */
void kedge_idx_put_header(const uint32_t *dims, uint32_t dims_count, struct kedge_buf *out);

/* What a file looks like by its first bytes: "50 4b 03 04 (a zip archive)"; for messages of every reader
 * here. */
enum { KEDGE_SNIFF_TEXT_MAX = 64 };
void kedge_sniff_text(struct kedge_view file, char out[KEDGE_SNIFF_TEXT_MAX]);

#endif
