/* The safetensors container (8 bytes little-endian header length, JSON header, data): strict reader,
 * canonical writer. In scope: F32 and I32, one type per file.
 *
 * Canonical form (what Kedge signs and hashes): no metadata, tensors in layout order and contiguous from 0,
 * header text exactly as kedge_safetensors_header writes it, padded with spaces to 8 bytes. A file has one
 * canonical spelling: a canonical read accepts a header if and only if writing its layout again gives the
 * same bytes. The data part starts at a multiple of 8 bytes. Pure. Format:
 * https://github.com/huggingface/safetensors#format */
#ifndef KEDGE_COMMON_TENSOR_SAFETENSORS_H
#define KEDGE_COMMON_TENSOR_SAFETENSORS_H

#include "common/base/bytes.h"
#include "common/tensor/layout.h"

enum kedge_safetensors_form {
    KEDGE_SAFETENSORS_ANY,       /* also other key orders, white space and string metadata: imports */
    KEDGE_SAFETENSORS_CANONICAL, /* exactly the canonical bytes: everything on the wire and in the record */
};

/* From the first 8 bytes of a file the offset of its data part (8 + header). KEDGE_E_FORMAT when the header
 * is empty or longer than KEDGE_TENSOR_HEADER_MAX. A reader of a stream gets that many bytes, then reads
 * the layout. */
KEDGE_NODISCARD int kedge_safetensors_data_start(const uint8_t first[8], uint64_t *ret_start,
                                                 struct kedge_diag *reterr);

/* Reads the layout from head, the beginning of a file of file_len bytes, with at least its whole header in
 * it (head may be the whole mapped file). The data part is file[*ret_data_start .. file_len). ret_layout
 * must be uninitialised or deinitialised; the caller deinits it after success only. Errors: KEDGE_E_FORMAT
 * (not safetensors, holes, overlaps, wrong file size, not canonical), KEDGE_E_SHAPE (type or shape out of
 * scope). */
KEDGE_NODISCARD int kedge_safetensors_read(struct kedge_view head, uint64_t file_len,
                                           enum kedge_safetensors_form form, struct kedge_layout *ret_layout,
                                           uint64_t *ret_data_start, struct kedge_diag *reterr);

/* Appends the canonical header (length word, JSON, padding) for these tensors with element type dtype. The
 * file is this followed by the data. KEDGE_E_TOO_LONG beyond KEDGE_TENSOR_HEADER_MAX. */
KEDGE_NODISCARD int kedge_safetensors_header(const struct kedge_layout *layout, enum kedge_dtype dtype,
                                             struct kedge_buf *out);
/* Bytes of the whole canonical file; 0 when the header would be too long or memory is short. */
uint64_t kedge_safetensors_file_len(const struct kedge_layout *layout, enum kedge_dtype dtype);

#endif
