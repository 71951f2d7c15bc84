/* Compact updates: an update's integers in fewer bytes than four each, by a rule that loses something and
 * says what. The site makes one and keeps what was lost for its next update (error feedback); everybody else
 * decodes it to the same integers. Pure, integers only, any thread. Kinds:
 *
 *   int8       a code of -127 … 127 for each value, times a step for each block
 *   bf16       the eight leading bits of each value
 *   topk       a share of the values, the largest ones, as they are; the others are 0
 *   topk-int8  the same, with a code and a step as int8 has them
 *
 * A file is a head of 16 bytes and the blocks of KEDGE_COMPACT_BLOCK values each, the last may have fewer;
 * words are little-endian:
 *
 *   "kdgupd1" ‖ kind (u8: 1 … 4 in this order) ‖ count of values (u64)
 *   int8       step (u32, 1 … 2^31 - 1) ‖ codes (i8 each)
 *   bf16       bfloat16 bits (u16 each) of a whole number below 2^31 in magnitude, +0 for zero
 *   topk       length of the rest (u16) ‖ entries: gap ‖ value (i32, not 0)
 *   topk-int8  length of the rest (u16), 0: no entry ‖ step (u32) ‖ entries: gap ‖ code (i8, not 0)
 *
 * gap: how many values lie between this entry and the one before it in the block (or the block's begin),
 * seven bits a byte, low ones first, 128 added to a byte that another follows; the last is not 0 but where it
 * is the only one. Nothing follows the last block. After Seide et al. 2014, 1-bit SGD, and Stich et al. 2018,
 * Sparsified SGD with memory (arXiv:1809.07599), for keeping what was not sent. */
#ifndef KEDGE_AGGREGATION_COMPACT_H
#define KEDGE_AGGREGATION_COMPACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/bytes.h"
#include "common/base/err.h"

enum kedge_compact_kind {
    KEDGE_COMPACT_NONE,
    KEDGE_COMPACT_INT8,
    KEDGE_COMPACT_BF16,
    KEDGE_COMPACT_TOPK,
    KEDGE_COMPACT_TOPK_INT8,
    KEDGE_COMPACT_KINDS
};
enum {
    KEDGE_COMPACT_BLOCK = 4096,
    KEDGE_COMPACT_HEAD = 16,
    /* of a block: all values taken, gaps of one byte */
    KEDGE_COMPACT_BLOCK_BYTES_MAX = 2 + KEDGE_COMPACT_BLOCK * 5,
    KEDGE_COMPACT_SHARE_ONE = 1000000,
};

/* What a job says. share: of the values that are taken, in millionths, 1 … KEDGE_COMPACT_SHARE_ONE; of no
 * account for int8 and bf16. carry: of what earlier updates left, how much a site adds to its next, in
 * millionths, 0 … KEDGE_COMPACT_SHARE_ONE. */
struct kedge_compact {
    enum kedge_compact_kind kind;
    uint32_t share, carry;
};

/* "int8", "bf16", "topk", "topk-int8"; "none" for KEDGE_COMPACT_NONE. Static. */
const char *kedge_compact_name(enum kedge_compact_kind kind);
/* Only a share of the values is sent. */
bool kedge_compact_is_sparse(enum kedge_compact_kind kind);
/* Values of n that are taken at most: ⌈n · share⌉; n for kinds that take all. */
uint64_t kedge_compact_entries_most(const struct kedge_compact *c, uint64_t n);
/* The longest file of n values. */
uint64_t kedge_compact_len_most(const struct kedge_compact *c, uint64_t n);

/* ---- reading: every byte may be hostile ---- */

/* Does this begin as a compact update does? At least KEDGE_COMPACT_HEAD bytes; others: false. */
bool kedge_compact_is_head(struct kedge_view head);
/* Kind and count of values from KEDGE_COMPACT_HEAD bytes. KEDGE_E_FORMAT. */
KEDGE_NODISCARD int kedge_compact_head_read(const uint8_t head[KEDGE_COMPACT_HEAD],
                                            enum kedge_compact_kind *ret_kind, uint64_t *ret_count);
/* Bytes of a block of n values, 1 … KEDGE_COMPACT_BLOCK, whose first two bytes these are. Always 2 … 65,537.
 */
size_t kedge_compact_block_len(enum kedge_compact_kind kind, size_t n, const uint8_t first[2]);
/* The n values of a block, all of out written; *ret_entries: how many of them it states (n where all are).
 * KEDGE_E_FORMAT: it is no block of so many values in the one form above; out may then be partly written.
 * Every |value| is at most 2^31 - 1; the job's bound is kedge_update_check's to hold. */
KEDGE_NODISCARD int kedge_compact_block_read(enum kedge_compact_kind kind, struct kedge_view block, size_t n,
                                             int32_t *out, uint32_t *ret_entries);

/* ---- writing ---- */

/* values[i] becomes values[i] + left[i] · carry, rounded towards zero, held to ±(2^31 - 1): an update and
 * what earlier ones left. Neither holds -2^31. */
void kedge_compact_add(const struct kedge_compact *c, const int32_t *left, size_t n, int32_t *values);

/* What is taken of an update. */
struct kedge_compact_plan {
    enum kedge_compact_kind kind;
    uint32_t least; /* sparse: values of a larger magnitude are taken … */
    uint64_t ties;  /* … and so many of this one, those with the lowest indices */
};
/* Which of n values are the largest. |values[i]| at most 2^31 - 1. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_compact_plan(const struct kedge_compact *c, const int32_t *values, size_t n,
                                       struct kedge_compact_plan *ret);
void kedge_compact_head_write(enum kedge_compact_kind kind, uint64_t count, uint8_t out[KEDGE_COMPACT_HEAD]);
/* The next block, 1 … KEDGE_COMPACT_BLOCK values, blocks in their order: into out, at least
 * KEDGE_COMPACT_BLOCK_BYTES_MAX; returns its length. What is sent is within ±limit; values[i] becomes what is
 * left of it: what it was, less what the block says. A step is the least that reaches the largest value
 * taken (in ±limit) in 127; codes are rounded to the nearest, halves away from zero; bf16 to the nearest,
 * halves to even; towards zero where that would be beyond the limit. limit at least 1. */
size_t kedge_compact_block_write(struct kedge_compact_plan *plan, int32_t *values, size_t n, int32_t limit,
                                 uint8_t *out);

#endif
