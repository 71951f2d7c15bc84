/* Internal to this room: a compact update (aggregation/compact.h) among tensor files. One thread at a time.
 */
#ifndef KEDGE_ROUND_COMPACT_FILES_H
#define KEDGE_ROUND_COMPACT_FILES_H

#include "aggregation/compact.h"
#include "chain/store/blob/blob_file.h"
#include "common/base/diag.h"
#include "common/tensor/layout.h"

/* Where such a file is being read: its blocks stand one behind the other. */
struct kedgei_compact_file {
    enum kedge_compact_kind kind; /* NONE: the file is no compact update */
    uint64_t block, at;           /* the block looked at last, and where it begins */
    uint8_t *window;              /* encrypted: so much of its content is here, … */
    uint64_t window_at;           /* … from here on */
    size_t window_len, window_max;
};

/* What the file is: KEDGE_OK and NONE where it does not begin as a compact update. KEDGE_E_FORMAT, _SHAPE:
 * another number of values. Close after success. An encrypted one takes up to 32 KiB. */
KEDGE_NODISCARD int kedgei_compact_open(const struct kedge_layout *layout, const struct kedge_blob_file *f,
                                        struct kedgei_compact_file *ret, struct kedge_diag *d);
void kedgei_compact_close(struct kedgei_compact_file *c);
/* Values first … first + n − 1, within the layout. Forwards it is one pass over the file; a step back begins
 * again. KEDGE_E_FORMAT; errors of the file. */
KEDGE_NODISCARD int kedgei_compact_read(const struct kedge_layout *layout, const struct kedge_blob_file *f,
                                        struct kedgei_compact_file *c, uint64_t first, size_t n,
                                        int32_t *out);
/* The last block ends where the file does. */
bool kedgei_compact_is_read(const struct kedge_layout *layout, const struct kedge_blob_file *f,
                            struct kedgei_compact_file *c);

#endif
