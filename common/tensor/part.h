/* A part of a model: those of its tensors that some words name. A word is the name of a tensor, or what comes
 * before the first dot of several ("0" for "0.weight" and "0.bias"). Without words the part is all but the
 * last layer: what stands before the dot in the last tensor's name. Pure. */
#ifndef KEDGE_COMMON_TENSOR_PART_H
#define KEDGE_COMMON_TENSOR_PART_H

#include "common/tensor/layout.h"

enum { KEDGE_PART_WORDS_MAX = 256, KEDGE_PART_BYTES_MAX = 4096 };

struct kedge_part {
    uint32_t count;
    uint32_t bytes;
    char words[KEDGE_PART_BYTES_MAX]; /* one after the other, each with its NUL */
};

/* KEDGE_E_FORMAT: empty, longer than a tensor's name, or there already; KEDGE_E_TOO_LONG: no room. */
KEDGE_NODISCARD int kedge_part_add(struct kedge_part *p, const char *word, struct kedge_diag *reterr);
/* Whether tensor i of the layout is in the part. */
bool kedge_part_has(const struct kedge_part *p, const struct kedge_layout *layout, uint32_t i);
/* KEDGE_E_SHAPE: a word names no tensor of the layout, or the part is all of it. */
KEDGE_NODISCARD int kedge_part_check(const struct kedge_part *p, const struct kedge_layout *layout,
                                     struct kedge_diag *reterr);
/* The layout of what is in the part, or of what is not, in the order of the whole; the caller deinits it. */
KEDGE_NODISCARD int kedge_part_layout(const struct kedge_part *p, const struct kedge_layout *layout, bool in,
                                      struct kedge_layout *ret, struct kedge_diag *reterr);
/* Copies what is in the part (or what is not) out of the values of the whole, one after the other, or back.
 */
void kedge_part_take(const struct kedge_part *p, const struct kedge_layout *layout, bool in,
                     const float *whole, float *ret);
void kedge_part_put(const struct kedge_part *p, const struct kedge_layout *layout, bool in,
                    const float *values, float *whole);

#endif
