/* Pieces of updates and models in few bytes. An update is an array of 32-bit integers, most of them small: a
 * weight that one round hardly changed. Bit packing by blocks (frame of reference without a base, in the
 * layout by lanes of Lemire and Boytsov, "Decoding billions of integers per second through vectorization",
 * 2015) sends each with as many bits as the largest of its block needs; nothing is lost, whatever the bytes
 * are. Pure, libc only.
 *
 * Packed form of n bytes: for each block of 1,024 bytes, the last one filled up with zeros, u8 w (0 to 32),
 * then 32 · w bytes. The block's 256 words (little-endian) are zigzag-coded, so that small negative numbers
 * are small: 0, -1, 1, -2 become 0, 1, 2, 3. Word 8 · row + lane stands in lane `lane`; each lane is a string
 * of 32 numbers of w bits, the first in the lowest bits, cut into w words (little-endian); the words of the
 * eight lanes stand side by side.
 *
 * Content has many packed forms: w may be larger than it need be, and what fills the last block up is not
 * looked at. What counts is the content, which has a digest. */
#ifndef KEDGE_COMMON_WIRE_PACKED_H
#define KEDGE_COMMON_WIRE_PACKED_H

#include "common/base/bytes.h"

enum { KEDGE_PACKED_BLOCK = 1024 }; /* bytes of content */

/* Bytes of the packed form of content; at most len + len / 1024 + 1,024. */
size_t kedge_packed_len(struct kedge_view content);
/* Writes that many bytes to out and returns their number. It stops before a block that goes beyond
 * `room`: a mapped file may have changed since its packed form was measured. */
size_t kedge_pack(struct kedge_view content, uint8_t *out, size_t room);

struct kedge_unpacker {
    struct kedge_view in; /* what is still packed */
    size_t left;          /* bytes of content still to come */
};
/* KEDGE_E_FORMAT unless packed is well-formed and stands for `len` bytes. Borrows packed. */
KEDGE_NODISCARD int kedge_unpack_begin(struct kedge_unpacker *u, struct kedge_view packed, size_t len);
/* Writes the next bytes, as many blocks as fit into `room` >= KEDGE_PACKED_BLOCK bytes, and returns their
 * number; 0 at the end. Cannot fail after a successful begin. */
size_t kedge_unpack(struct kedge_unpacker *u, uint8_t *out, size_t room);

/* What a piece of a model has that the same piece of the model before it has not: word by word
 * (little-endian, what is left of a word by bytes), modulo 2^32. The words are floats, and as integers the
 * distance of two floats that differ little is small. kedge_words_add takes it back: words then holds what
 * `now` was. out may be neither of the others; words and before do not overlap. */
void kedge_words_since(const uint8_t *now, const uint8_t *before, size_t len, uint8_t *out);
void kedge_words_add(uint8_t *words, const uint8_t *before, size_t len);

#endif
