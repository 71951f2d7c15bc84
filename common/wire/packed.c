/* Packs blocks of 256 words with as many bits as the largest of them needs. Updates are small
 * numbers of both signs, and differences of models even more so; zigzag puts small negative numbers
 * beside small positive ones, so both need few bits.
 *
 * Within a block words lie in eight lanes, word i in lane i mod 8: a lane's bits are shifted like
 * those of the seven others, which compilers turn into vector instructions, and the bytes are the
 * same on every machine (words are little-endian). */
#include "common/wire/packed.h"

#include <string.h>

enum { LANES = 8, ROWS = 32, WORDS = LANES * ROWS, ROW_BYTES = LANES * 4, WIDTH_MAX = 32 };

_Static_assert(WORDS * 4 == KEDGE_PACKED_BLOCK, "a block is 256 words");

/* ---- words ---- */

static void swap_words(uint32_t *words, size_t count)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    for (size_t i = 0; i < count; i++) {
        words[i] = __builtin_bswap32(words[i]);
    }
#else
    (void)words, (void)count;
#endif
}

static void load(const uint8_t *from, size_t len, uint32_t words[WORDS])
{
    if (len < KEDGE_PACKED_BLOCK) {
        memset(words, 0, KEDGE_PACKED_BLOCK);
    }
    memcpy(words, from, len);
    swap_words(words, WORDS);
}

static void store_row(uint8_t *to, const uint32_t row[LANES])
{
    uint32_t words[LANES];
    memcpy(words, row, sizeof words);
    swap_words(words, LANES);
    memcpy(to, words, sizeof words);
}

static void load_row(const uint8_t *from, uint32_t row[LANES])
{
    memcpy(row, from, ROW_BYTES);
    swap_words(row, LANES);
}

static uint32_t word_at(const uint8_t *from)
{
    uint32_t word;
    memcpy(&word, from, sizeof word);
    swap_words(&word, 1);
    return word;
}

/* 0, -1, 1, -2 … become 0, 1, 2, 3 … */
static uint32_t zigzag(uint32_t word)
{
    return word << 1 ^ (0 - (word >> 31));
}

/* The bits that the largest number of a block needs. */
static unsigned width_of(const uint8_t *from, size_t len)
{
    uint32_t rest[WORDS], any = 0;
    unsigned width = 0;
    if (len < KEDGE_PACKED_BLOCK) {
        memcpy(memset(rest, 0, sizeof rest), from, len);
        from = (const uint8_t *)rest;
    }
    for (size_t i = 0; i < WORDS; i++) {
        any |= zigzag(word_at(from + 4 * i));
    }
    for (; any != 0; any >>= 1) {
        width++;
    }
    return width;
}

static size_t block_len(size_t left)
{
    return left < KEDGE_PACKED_BLOCK ? left : KEDGE_PACKED_BLOCK;
}

/* ---- packing ---- */

/* Each lane gathers bits from the lowest on; when a word of 32 is full, all eight lanes are stored
 * together as a row. */
static void pack_block(const uint32_t words[WORDS], unsigned width, uint8_t *out)
{
    uint32_t gathered[LANES] = {0};
    unsigned used = 0; /* bits of each lane's word that is being gathered */
    for (size_t row = 0; row < ROWS; row++) {
        const uint32_t *w = words + row * LANES;
        for (size_t lane = 0; lane < LANES; lane++) {
            gathered[lane] |= zigzag(w[lane]) << used;
        }
        used += width;
        if (used >= 32) {
            store_row(out, gathered);
            out += ROW_BYTES;
            used -= 32;
            for (size_t lane = 0; lane < LANES; lane++) {
                gathered[lane] = used > 0 ? zigzag(w[lane]) >> (width - used) : 0;
            }
        }
    }
}

/* The length is found without packing, so that a caller can decide whether it is worth it. */
size_t kedge_packed_len(struct kedge_view content)
{
    size_t sum = 0;
    for (size_t at = 0; at < content.len; at += KEDGE_PACKED_BLOCK) {
        sum += 1 + (size_t)ROW_BYTES * width_of(content.ptr + at, block_len(content.len - at));
    }
    return sum;
}

size_t kedge_pack(struct kedge_view content, uint8_t *out, size_t room)
{
    uint32_t words[WORDS];
    size_t sum = 0;
    for (size_t at = 0; at < content.len; at += KEDGE_PACKED_BLOCK) {
        unsigned width = width_of(content.ptr + at, block_len(content.len - at));
        size_t bytes = 1 + (size_t)ROW_BYTES * width;
        if (bytes > room - sum) {
            break;
        }
        out[sum] = (uint8_t)width;
        if (width > 0) {
            load(content.ptr + at, block_len(content.len - at), words);
            pack_block(words, width, out + sum + 1);
        }
        sum += bytes;
    }
    return sum;
}

/* ---- unpacking ---- */

static void unpack_block(const uint8_t *in, unsigned width, uint32_t words[WORDS])
{
    const uint32_t mask = width < 32 ? (UINT32_C(1) << width) - 1 : UINT32_MAX;
    uint32_t now[LANES], next[LANES];
    unsigned used = 32; /* bits of each lane's word that were taken */
    memset(now, 0, sizeof now);
    for (size_t row = 0; row < ROWS; row++) {
        uint32_t *w = words + row * LANES;
        if (used == 32) {
            load_row(in, now);
            in += ROW_BYTES;
            used = 0;
        }
        for (size_t lane = 0; lane < LANES; lane++) {
            w[lane] = now[lane] >> used;
        }
        used += width;
        if (used > 32) { /* the rest stands in the lane's next word */
            load_row(in, next);
            in += ROW_BYTES;
            used -= 32;
            for (size_t lane = 0; lane < LANES; lane++) {
                w[lane] |= next[lane] << (width - used);
                now[lane] = next[lane];
            }
        }
        for (size_t lane = 0; lane < LANES; lane++) {
            uint32_t v = w[lane] & mask;
            w[lane] = v >> 1 ^ (0 - (v & 1));
        }
    }
    swap_words(words, WORDS);
}

/* Walks over the widths first. When it says yes, every block lies inside the bytes and there are
 * exactly as many as the content needs, so unpacking needs no checks and cannot end half way. */
int kedge_unpack_begin(struct kedge_unpacker *u, struct kedge_view packed, size_t len)
{
    size_t at = 0;
    for (size_t left = len; left > 0; left -= block_len(left)) {
        if (at >= packed.len || packed.ptr[at] > WIDTH_MAX) {
            return KEDGE_E_FORMAT;
        }
        size_t bytes = 1 + (size_t)ROW_BYTES * packed.ptr[at];
        if (bytes > packed.len - at) {
            return KEDGE_E_FORMAT;
        }
        at += bytes;
    }
    if (at != packed.len) {
        return KEDGE_E_FORMAT;
    }
    *u = (struct kedge_unpacker){packed, len};
    return KEDGE_OK;
}

size_t kedge_unpack(struct kedge_unpacker *u, uint8_t *out, size_t room)
{
    uint32_t words[WORDS];
    size_t sum = 0;
    while (u->left > 0 && room - sum >= KEDGE_PACKED_BLOCK) {
        size_t len = block_len(u->left);
        unsigned width = u->in.ptr[0];
        if (width == 0) {
            memset(out + sum, 0, len);
        } else {
            unpack_block(u->in.ptr + 1, width, words);
            memcpy(out + sum, words, len);
        }
        size_t bytes = 1 + (size_t)ROW_BYTES * width;
        u->in = kedge_view_of(u->in.ptr + bytes, u->in.len - bytes);
        u->left -= len;
        sum += len;
    }
    return sum;
}

/* ---- differences ---- */

static void put_word(uint8_t *to, uint32_t word)
{
    swap_words(&word, 1);
    memcpy(to, &word, sizeof word);
}

/* Modulo 2^32, so that adding brings back the very bits, whatever the words mean; the last bytes of
 * a file that is no multiple of four are taken by themselves. */
void kedge_words_since(const uint8_t *now, const uint8_t *before, size_t len, uint8_t *out)
{
    size_t whole = len / 4 * 4;
    for (size_t i = 0; i < whole; i += 4) {
        put_word(out + i, word_at(now + i) - word_at(before + i));
    }
    for (size_t i = whole; i < len; i++) {
        out[i] = (uint8_t)(now[i] - before[i]);
    }
}

void kedge_words_add(uint8_t *words, const uint8_t *before, size_t len)
{
    size_t whole = len / 4 * 4;
    for (size_t i = 0; i < whole; i += 4) {
        put_word(words + i, word_at(words + i) + word_at(before + i));
    }
    for (size_t i = whole; i < len; i++) {
        words[i] = (uint8_t)(words[i] + before[i]);
    }
}
