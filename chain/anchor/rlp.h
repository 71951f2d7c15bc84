/* Recursive Length Prefix, Ethereum's serialisation (Yellow Paper, appendix B): strings of bytes and lists of
 * items, exactly one encoding each. The reader is strict: it refuses long forms of short things, lengths with
 * leading zeros, single bytes in a string's clothing, and integers with leading zeros. Pure. */
#ifndef KEDGE_CHAIN_ANCHOR_RLP_H
#define KEDGE_CHAIN_ANCHOR_RLP_H

#include "common/base/bytes.h"

/* ---- writing: appends to a buffer, whose sticky error is checked once at the end ---- */

void kedge_rlp_put_string(struct kedge_buf *out, struct kedge_view bytes);
/* Big-endian without leading zeros; 0 is the empty string. */
void kedge_rlp_put_u64(struct kedge_buf *out, uint64_t v);
/* A big-endian integer of any width, such as r and s of a signature: its leading zeros are left out. */
void kedge_rlp_put_integer(struct kedge_buf *out, struct kedge_view big_endian);
/* A list around items that are already encoded. */
void kedge_rlp_put_list(struct kedge_buf *out, struct kedge_view items);

/* ---- reading: views into the caller's bytes, one level at a time ---- */

struct kedge_rlp_item {
    bool is_list;
    struct kedge_view body;  /* of a string its bytes, of a list its items */
    struct kedge_view whole; /* with the prefix */
};

/* Takes the first item off *rest. KEDGE_E_FORMAT leaves *rest as it was; also when nothing is left. What is
 * in a list is not looked into. */
KEDGE_NODISCARD int kedge_rlp_take(struct kedge_view *rest, struct kedge_rlp_item *ret_item);
/* The same, demanding a string; a string of exactly len bytes; a list. */
KEDGE_NODISCARD int kedge_rlp_take_string(struct kedge_view *rest, struct kedge_view *ret_bytes);
KEDGE_NODISCARD int kedge_rlp_take_fixed(struct kedge_view *rest, uint8_t *out, size_t len);
KEDGE_NODISCARD int kedge_rlp_take_list(struct kedge_view *rest, struct kedge_view *ret_items);
KEDGE_NODISCARD int kedge_rlp_take_u64(struct kedge_view *rest, uint64_t *ret_v);
/* An integer of at most len bytes, as len bytes big-endian. */
KEDGE_NODISCARD int kedge_rlp_take_integer(struct kedge_view *rest, uint8_t *out, size_t len);
/* The bytes are exactly one item. */
KEDGE_NODISCARD int kedge_rlp_decode(struct kedge_view bytes, struct kedge_rlp_item *ret_item);

#endif
