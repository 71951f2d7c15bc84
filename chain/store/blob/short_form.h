/* Content of up to 16 KiB as fewer bytes. A small job's updates are integers that use half of their bits, its
 * lists the same words in each row; deflated they take half the disk.
 *
 *   stream:  the content, deflated (RFC 1951, a window of 4 kB) with the words below as its preset dictionary
 *
 * Of safetensors the header comes first, as it is, then the values' bytes, not value by value but the highest
 * byte of all of them, the next, and so on: the noise of low bytes stays apart from high ones, which are
 * mostly zeros. Before that each value v of 32 bits becomes v << 1 with its sign as the lowest bit; if it is
 * an integer (how 2) and negative, its other bits are inverted, of a real number (how 3) they stay.
 *
 * What a pack has of a blob in this form, if it is not encrypted (blob_cipher.h has the other):
 *
 *   head (16):  "KEDGEZLB" ‖ u8 how (1: as it comes, 2, 3) ‖ u24 length of the content ‖ u32 CRC-32 (of zlib)
 * of these four bytes and the stream, big-endian stream
 *
 * What the content is worth its digest tells; the checksum finds those bits of a stream that change nothing.
 * Pure. */
#ifndef KEDGE_CHAIN_STORE_BLOB_SHORT_FORM_H
#define KEDGE_CHAIN_STORE_BLOB_SHORT_FORM_H

#include "common/base/bytes.h"

/* Readers hold the content of such a file whole, those of a round all at a time: no more than this. */
enum { KEDGEI_SHORT_HEAD = 16, KEDGEI_SHORT_CONTENT_MAX = 16 << 10 };

enum kedgei_short_how {
    KEDGEI_SHORT_NOT = 0, /* as it is */
    KEDGEI_SHORT_BYTES = 1,
    KEDGEI_SHORT_INTEGERS = 2,
    KEDGEI_SHORT_REALS = 3,
};

/* The stream, into out, which has room for `most` bytes. KEDGEI_SHORT_NOT: it does not fit there, the content
 * is too long, or memory is short. */
enum kedgei_short_how kedgei_shorten(struct kedge_view content, uint8_t *out, size_t most, size_t *ret_len);
/* The content of a stream, exactly len bytes of it. KEDGE_E_CORRUPT: it is not that of such content. */
KEDGE_NODISCARD int kedgei_lengthen(enum kedgei_short_how how, struct kedge_view stream, uint8_t *out,
                                    size_t len);

/* Whether bytes begin like those of a file in this form, which 8 of them tell. Content that does lies in no
 * pack. */
bool kedgei_short_is(struct kedge_view file);
/* Head and stream, into out, which has room for content.len bytes; false: it would hardly be shorter. */
bool kedgei_short_file(struct kedge_view content, uint8_t *out, size_t *ret_len);
/* Length of the content of such a file, from its head. KEDGE_E_CORRUPT. */
KEDGE_NODISCARD int kedgei_short_length(struct kedge_view file, size_t *ret_len);
/* The content of such a file, of that length. KEDGE_E_CORRUPT. */
KEDGE_NODISCARD int kedgei_short_open(struct kedge_view file, uint8_t *out, size_t len);

/* What shortening has to save to be worth it: less is lost in a pack, where records begin at its multiples.
 */
enum { KEDGEI_SHORT_GAIN_MIN = 64 };

#endif
