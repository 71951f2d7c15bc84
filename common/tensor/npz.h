/* NumPy's .npz: a zip of .npy arrays, read (stored and deflated members, .npy versions 1 and 2, C order,
 * little endian f4 f8 i4 i8 u1, and texts, U and S) and written (numbers; stored, deterministic bytes).
 * Object arrays, which need pickle, and everything else are refused. Zip64 archives beyond 4 GiB are out of
 * scope. Pure; zlib in npz.c alone. Formats: NumPy "npy-format"; PKWARE APPNOTE 6.3. */
#ifndef KEDGE_COMMON_TENSOR_NPZ_H
#define KEDGE_COMMON_TENSOR_NPZ_H

#include "common/base/bytes.h"
#include "common/tensor/layout.h"

enum { KEDGE_NPZ_ENTRIES_MAX = 2 * KEDGE_TENSORS_MAX };
/* Bytes of one array after inflation. */
#define KEDGE_NPY_BYTES_MAX ((uint64_t)4 << 30)

/* Characters of a value of an array of texts. */
enum { KEDGE_NPY_TEXT_MAX = 4096 };

enum kedge_npy_type {
    KEDGE_NPY_F4 = 1,
    KEDGE_NPY_F8,
    KEDGE_NPY_I4,
    KEDGE_NPY_I8,
    KEDGE_NPY_U1,
    KEDGE_NPY_TEXT,  /* <U: UTF-32, each value as long as the longest */
    KEDGE_NPY_BYTES, /* |S: bytes, the same */
};
/* "<f4" and so on. */
const char *kedge_npy_type_name(enum kedge_npy_type type);
/* Bytes of a value; of a character for texts. */
uint32_t kedge_npy_type_size(enum kedge_npy_type type);

struct kedge_npy {
    enum kedge_npy_type type;
    uint32_t dims_count;
    uint64_t dims[KEDGE_TENSOR_DIMS_MAX]; /* none zero */
    uint64_t count;
    uint32_t size;       /* bytes of a value */
    const uint8_t *data; /* count values, little endian, unaligned; in the file's view or in storage */
    uint8_t *storage;    /* owned, NULL when the data are in the view */
};
/* A bare .npy; ret borrows the view. */
KEDGE_NODISCARD int kedge_npy_read(struct kedge_view file, struct kedge_npy *ret, struct kedge_diag *reterr);
void kedge_npy_deinit(struct kedge_npy *npy);
/* Values as F32 (rounded to nearest); KEDGE_E_NOT_FINITE when one is NaN, infinite or beyond F32. */
KEDGE_NODISCARD int kedge_npy_to_f32(const struct kedge_npy *npy, float *out, struct kedge_diag *reterr);
/* Integer arrays only, each value in [0, max]: else KEDGE_E_FORMAT. */
KEDGE_NODISCARD int kedge_npy_to_labels(const struct kedge_npy *npy, int32_t max, int32_t *out,
                                        struct kedge_diag *reterr);
/* Value i of an array of texts, in UTF-8, with its NUL; bytes as they are. KEDGE_E_FORMAT: not of texts, a
 * character that is none, a NUL before others; KEDGE_E_TOO_LONG: it takes more than out_len bytes. */
KEDGE_NODISCARD int kedge_npy_text(const struct kedge_npy *npy, uint64_t i, char *out, size_t out_len,
                                   struct kedge_diag *reterr);

struct kedge_npz_entry {
    char name[KEDGE_TENSOR_NAME_MAX + 1]; /* without ".npy" */
    bool deflated;
    uint32_t crc32;
    uint64_t packed_len, len;
    uint64_t local_offset;
};
struct kedge_npz {
    struct kedge_view file;
    struct kedge_npz_entry *entries; /* owned */
    uint32_t count;
};
/* Reads the directory of an archive that must stay alive as long as ret. */
KEDGE_NODISCARD int kedge_npz_open(struct kedge_view file, struct kedge_npz *ret, struct kedge_diag *reterr);
void kedge_npz_close(struct kedge_npz *npz);
/* Inflates, checks the CRC and reads one array; KEDGE_E_NOT_FOUND names the arrays there are. */
KEDGE_NODISCARD int kedge_npz_read(const struct kedge_npz *npz, const char *name, struct kedge_npy *ret,
                                   struct kedge_diag *reterr);

struct kedge_npz_array {
    const char *name; /* without ".npy" */
    enum kedge_npy_type type;
    uint32_t dims_count;
    const uint64_t *dims;
    const void *data; /* little endian, count × size bytes */
};
/* Appends a whole archive (stored, no time stamps: the same arrays give the same bytes). */
KEDGE_NODISCARD int kedge_npz_write(const struct kedge_npz_array *arrays, uint32_t count,
                                    struct kedge_buf *out);

/* A model: one F4 array a tensor, under its name. values holds layout->values_count floats in layout order.
 */
KEDGE_NODISCARD int kedge_npz_write_model(const struct kedge_layout *layout, const float *values,
                                          struct kedge_buf *out);

#endif
