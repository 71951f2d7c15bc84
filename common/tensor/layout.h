/* The shape of a model or an update: named tensors, one element type, laid out contiguously in a stated
 * order. The same layout serves F32 models and I32 updates, both four bytes an element. Pure. */
#ifndef KEDGE_COMMON_TENSOR_LAYOUT_H
#define KEDGE_COMMON_TENSOR_LAYOUT_H

#include <stdint.h>

#include "common/base/diag.h"
#include "common/base/limits.h"

enum { KEDGE_TENSOR_NAME_MAX = 127 };
/* Elements of one model: 256 GiB of F32. Files of models are mapped or read by pieces, so what bounds them is
 * the disk, which is asked before a file is begun, and the owner's "model_bytes_max" at a site. Sums over as
 * many elements hold: those of inner products reach 2^22 * 2^36, those of squares are of 128 bits. */
#define KEDGE_LAYOUT_VALUES_MAX ((uint64_t)1 << 36)

enum kedge_dtype {
    KEDGE_DTYPE_F32 = 1,
    KEDGE_DTYPE_I32 = 2,
};
/* "F32" or "I32", as in safetensors. */
const char *kedge_dtype_name(enum kedge_dtype dtype);
/* Bytes of one element. */
uint64_t kedge_dtype_size(enum kedge_dtype dtype);

struct kedge_tensor {
    char name[KEDGE_TENSOR_NAME_MAX + 1]; /* printable ASCII without '"' and '\\' */
    uint32_t dims_count;                  /* 0 (a scalar) to KEDGE_TENSOR_DIMS_MAX */
    uint64_t dims[KEDGE_TENSOR_DIMS_MAX]; /* outermost first, none zero */
    uint64_t count;                       /* elements: product of dims */
    uint64_t offset;                      /* of the first byte in the data part */
};

struct kedge_layout {
    struct kedge_tensor *tensors; /* owned */
    uint32_t count, cap;
    uint64_t values_count; /* elements of all tensors together */
    enum kedge_dtype dtype;
};

void kedge_layout_init(struct kedge_layout *layout, enum kedge_dtype dtype);
void kedge_layout_deinit(struct kedge_layout *layout);
/* Appends a tensor after the last one. KEDGE_E_SHAPE for a bad or repeated name, a zero dimension or too
 * many elements, KEDGE_E_TOO_LONG beyond KEDGE_TENSORS_MAX, KEDGE_E_NOMEM; the layout is unchanged then. */
KEDGE_NODISCARD int kedge_layout_add(struct kedge_layout *layout, const char *name, const uint64_t *dims,
                                     uint32_t dims_count, struct kedge_diag *reterr);
/* The tensor of that name, or NULL. */
const struct kedge_tensor *kedge_layout_find(const struct kedge_layout *layout, const char *name);
/* Bytes of the data part. */
uint64_t kedge_layout_data_len(const struct kedge_layout *layout);
/* KEDGE_OK when got has dtype and exactly expected's tensors, in its order and shapes (expected's own dtype
 * does not matter). Else KEDGE_E_SHAPE, naming the first wrong, extra or missing tensor, shape or type. */
KEDGE_NODISCARD int kedge_layout_check_same(const struct kedge_layout *expected,
                                            const struct kedge_layout *got, enum kedge_dtype dtype,
                                            struct kedge_diag *reterr);
/* "[10,64]" for people. */
enum { KEDGE_SHAPE_TEXT_MAX = 192 };
void kedge_shape_text(const uint64_t *dims, uint32_t dims_count, char out[KEDGE_SHAPE_TEXT_MAX]);

#endif
