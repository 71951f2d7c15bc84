/* zlib finds repeated bytes, not numbers of similar size. So what begins like a tensor file has its
 * values' bytes sorted by significance, with the sign in the lowest bit: the high bytes of small numbers
 * are then long rows of zeros, and the noise of the low bytes is kept apart from them. */
#include "chain/store/blob/short_form.h"

#include <string.h>

#define ZLIB_CONST
#include <zlib.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "crypto/sign.h"

enum {
    WINDOW_BITS = -12, /* without a header of zlib's; must hold the words */
    MEMORY_LEVEL = 6,
    LEVEL = 4,
    WORD = 4,
    PREFIX = 8, /* safetensors: length of the header, little-endian */
    AT_HOW = 8,
    AT_LENGTH = 9,
    AT_SUM = 12,
};

static const uint8_t magic[AT_HOW] = {'K', 'E', 'D', 'G', 'E', 'Z', 'L', 'B'};

/* What begins most tensor files, and rows of lists. They never change: others would be another form. */
static const char WORDS[] =
    "{\"0.weight\":{\"dtype\":\"F32\",\"shape\":[10,64],\"data_offsets\":[0,2560]},\"0.bias\":{\"dtype\":"
    "\"I32\","
    "\"shape\":[10],\"data_offsets\":[2560,2600]}}   "
    "{\"site\":\"site-1\",\"use\":\"selected\",\"group\":0,\"leaf\":"
    "\"candidate\"refused\",\"weight\":\"0\",\"reason\":\"\"}\n{\"site\":\"site-1\",\"use\":\"aggregated\","
    "\"group\":"
    "0,\"leaf\":1,\"leaf_hash\":\"\",\"update\":\"\",\"weight\":\"1\",\"reason\":\"\"}\n";

static void *take(void *arg, uInt count, uInt size)
{
    (void)arg;
    return kedge_mem_new(count, size);
}

static void give_back(void *arg, void *ptr)
{
    (void)arg;
    kedge_mem_free(ptr);
}

/* ---- the values' bytes in another order ---- */

/* Where the values of a tensor file begin; false: it is none. The first eight bytes of a safetensors file
 * are the length of its header; content that merely looks so is handled alike in both directions, so a
 * wrong guess costs space and no correctness. */
static bool values_begin(struct kedge_view content, size_t *ret)
{
    uint64_t header = 0;
    if (content.len < PREFIX) {
        return false;
    }
    for (unsigned i = PREFIX; i > 0; i--) {
        header = header << 8 | content.ptr[i - 1];
    }
    if (header > content.len - PREFIX || (content.len - PREFIX - header) % WORD != 0) {
        return false;
    }
    *ret = PREFIX + (size_t)header;
    return true;
}

/* A file with both kinds, or with neither, goes as it comes: the head has room for one answer. */
static enum kedgei_short_how how_of(struct kedge_view content, size_t *ret_begin)
{
    static const char integers[] = "\"dtype\":\"I32\"", reals[] = "\"dtype\":\"F32\"";
    *ret_begin = content.len;
    size_t begin;
    if (!values_begin(content, &begin) || begin < PREFIX + sizeof integers) {
        return KEDGEI_SHORT_BYTES;
    }
    bool is_int = memmem(content.ptr + PREFIX, begin - PREFIX, integers, sizeof integers - 1) != NULL;
    bool is_real = memmem(content.ptr + PREFIX, begin - PREFIX, reals, sizeof reals - 1) != NULL;
    if (is_int == is_real) {
        return KEDGEI_SHORT_BYTES;
    }
    *ret_begin = begin;
    return is_int ? KEDGEI_SHORT_INTEGERS : KEDGEI_SHORT_REALS;
}

/* The highest bytes of all values, then the next. Zigzag for integers (v << 1 ^ sign mask), so that -1 is
 * as short as 1; for reals the sign bit alone moves, since mantissa and exponent do not grow with the
 * sign. */
static void spread(struct kedge_view values, enum kedgei_short_how how, uint8_t *out)
{
    const size_t count = values.len / WORD;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = values.ptr + WORD * i;
        uint32_t v = (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
        uint32_t sign = v >> 31;
        v = how == KEDGEI_SHORT_INTEGERS ? v << 1 ^ (0U - sign) : v << 1 | sign;
        out[i] = (uint8_t)(v >> 24);
        out[count + i] = (uint8_t)(v >> 16);
        out[2 * count + i] = (uint8_t)(v >> 8);
        out[3 * count + i] = (uint8_t)v;
    }
}

static void gather(const uint8_t *spread_out, size_t count, enum kedgei_short_how how, uint8_t *out)
{
    const uint32_t turn = how == KEDGEI_SHORT_INTEGERS ? UINT32_MAX : UINT32_C(1) << 31;
    for (size_t i = 0; i < count; i++) {
        uint32_t v = (uint32_t)spread_out[i] << 24 | (uint32_t)spread_out[count + i] << 16
                     | (uint32_t)spread_out[2 * count + i] << 8 | spread_out[3 * count + i];
        v = v >> 1 ^ (v & 1) * turn;
        for (unsigned k = 0; k < WORD; k++) {
            out[WORD * i + k] = (uint8_t)(v >> (8 * k));
        }
    }
}

/* ---- deflating ---- */

/* Header and each row of bytes are blocks of their own: what is noise is stored in one, as it is. Z_BLOCK
 * ends a block at each row's end. Deflate builds one code for a block, and a block with both zeros and
 * noise would have a bad one. */
static bool deflate_parts(z_stream *z, const uint8_t *bytes, size_t begin, size_t len)
{
    const size_t part = begin < len ? (len - begin) / WORD : 0;
    z->next_in = bytes;
    z->avail_in = (uInt)begin;
    for (unsigned i = 0; i < WORD && part > 0; i++) {
        if (deflate(z, Z_BLOCK) != Z_OK || z->avail_in > 0 || z->avail_out == 0) {
            return false;
        }
        z->avail_in = (uInt)part;
    }
    return deflate(z, Z_FINISH) == Z_STREAM_END;
}

enum kedgei_short_how kedgei_shorten(struct kedge_view content, uint8_t *out, size_t most, size_t *ret_len)
{
    size_t begin;
    if (content.len == 0 || content.len > KEDGEI_SHORT_CONTENT_MAX || most == 0) {
        return KEDGEI_SHORT_NOT;
    }
    enum kedgei_short_how how = how_of(content, &begin);
    uint8_t *bytes = kedge_mem_new(content.len, 1);
    z_stream z = {.zalloc = take, .zfree = give_back};
    if (!bytes
        || deflateInit2(&z, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        kedge_mem_free(bytes);
        return KEDGEI_SHORT_NOT;
    }
    memcpy(bytes, content.ptr, begin);
    spread(kedge_view_of(content.ptr + begin, content.len - begin), how, bytes + begin);
    z.next_out = out;
    z.avail_out = (uInt)most;
    bool is_fine = deflateSetDictionary(&z, (const Bytef *)WORDS, sizeof WORDS - 1) == Z_OK
                   && deflate_parts(&z, bytes, begin, content.len);
    *ret_len = most - z.avail_out;
    (void)deflateEnd(&z);
    kedge_wipe(bytes, content.len);
    kedge_mem_free(bytes);
    return is_fine ? how : KEDGEI_SHORT_NOT;
}

/* Exactly len bytes, of exactly this input. The output's room is the stated length and the input must be
 * used up: neither a bomb nor bytes after the stream get through. */
static int inflate_all(struct kedge_view stream, uint8_t *out, size_t len)
{
    z_stream z = {.zalloc = take, .zfree = give_back};
    if (inflateInit2(&z, WINDOW_BITS) != Z_OK) {
        return KEDGE_E_NOMEM;
    }
    int rc = inflateSetDictionary(&z, (const Bytef *)WORDS, sizeof WORDS - 1);
    if (rc == Z_OK) {
        z.next_in = stream.ptr;
        z.avail_in = (uInt)stream.len;
        z.next_out = out;
        z.avail_out = (uInt)len;
        rc = inflate(&z, Z_FINISH);
    }
    bool is_all = rc == Z_STREAM_END && z.avail_in == 0 && z.avail_out == 0;
    (void)inflateEnd(&z);
    return rc == Z_MEM_ERROR ? KEDGE_E_NOMEM : is_all ? KEDGE_OK : KEDGE_E_CORRUPT;
}

/* The header is read from what was inflated and bounded again there, because the stream may come from a
 * damaged or hostile file. */
int kedgei_lengthen(enum kedgei_short_how how, struct kedge_view stream, uint8_t *out, size_t len)
{
    size_t begin;
    if (how < KEDGEI_SHORT_BYTES || how > KEDGEI_SHORT_REALS || len == 0 || len > KEDGEI_SHORT_CONTENT_MAX
        || stream.len > KEDGEI_SHORT_CONTENT_MAX) {
        return KEDGE_E_CORRUPT;
    }
    if (how == KEDGEI_SHORT_BYTES) {
        return inflate_all(stream, out, len);
    }
    uint8_t *bytes = kedge_mem_new(len, 1);
    int err = bytes ? inflate_all(stream, bytes, len) : KEDGE_E_NOMEM;
    if (!err && !values_begin(kedge_view_of(bytes, len), &begin)) {
        err = KEDGE_E_CORRUPT;
    }
    if (!err) {
        memcpy(out, bytes, begin);
        gather(bytes + begin, (len - begin) / WORD, how, out + begin);
    }
    if (bytes) {
        kedge_wipe(bytes, len);
    }
    kedge_mem_free(bytes);
    return err;
}

/* ---- files ---- */

static void put_be32(uint8_t *out, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++) {
        out[i] = (uint8_t)(v >> (24 - 8 * i));
    }
}

static uint32_t get_be32(const uint8_t *in)
{
    return (uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 | (uint32_t)in[2] << 8 | in[3];
}

static uint32_t sum_of(struct kedge_view file)
{
    uint32_t sum = (uint32_t)crc32(0, file.ptr + AT_HOW, AT_SUM - AT_HOW);
    return (uint32_t)crc32(sum, file.ptr + KEDGEI_SHORT_HEAD, (uInt)(file.len - KEDGEI_SHORT_HEAD));
}

bool kedgei_short_is(struct kedge_view file)
{
    return file.len >= sizeof magic && memcmp(file.ptr, magic, sizeof magic) == 0;
}

bool kedgei_short_file(struct kedge_view content, uint8_t *out, size_t *ret_len)
{
    size_t len;
    if (content.len <= KEDGEI_SHORT_HEAD + KEDGEI_SHORT_GAIN_MIN) {
        return false;
    }
    enum kedgei_short_how how = kedgei_shorten(content, out + KEDGEI_SHORT_HEAD,
                                               content.len - KEDGEI_SHORT_HEAD - KEDGEI_SHORT_GAIN_MIN, &len);
    if (how == KEDGEI_SHORT_NOT) {
        return false;
    }
    memcpy(out, magic, sizeof magic);
    put_be32(out + AT_HOW, (uint32_t)how << 24 | (uint32_t)content.len);
    put_be32(out + AT_SUM, sum_of(kedge_view_of(out, KEDGEI_SHORT_HEAD + len)));
    *ret_len = KEDGEI_SHORT_HEAD + len;
    return true;
}

int kedgei_short_length(struct kedge_view file, size_t *ret_len)
{
    if (file.len < KEDGEI_SHORT_HEAD) {
        return KEDGE_E_CORRUPT;
    }
    uint32_t len = get_be32(file.ptr + AT_HOW) & 0xFFFFFF, how = file.ptr[AT_HOW];
    if (how < KEDGEI_SHORT_BYTES || how > KEDGEI_SHORT_REALS || len == 0 || len > KEDGEI_SHORT_CONTENT_MAX) {
        return KEDGE_E_CORRUPT;
    }
    *ret_len = len;
    return KEDGE_OK;
}

int kedgei_short_open(struct kedge_view file, uint8_t *out, size_t len)
{
    size_t said;
    KEDGE_TRY(kedgei_short_length(file, &said));
    if (said != len || file.len > KEDGEI_SHORT_CONTENT_MAX || get_be32(file.ptr + AT_SUM) != sum_of(file)) {
        return KEDGE_E_CORRUPT;
    }
    return kedgei_lengthen((enum kedgei_short_how)file.ptr[AT_HOW],
                           kedge_view_of(file.ptr + KEDGEI_SHORT_HEAD, file.len - KEDGEI_SHORT_HEAD), out,
                           len);
}
