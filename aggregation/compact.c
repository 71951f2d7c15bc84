/* Reading of compact updates, and their sizes. The bytes come from a site: each reader checks lengths,
 * codes and products before a value is used. */
#include "aggregation/compact.h"

#include <string.h>

#include "common/base/err.h"
#include "common/base/try.h"

enum { MAGIC_LEN = 7, CODE_MAX = 127, STEP_LEN = 4, BIAS = 127, SIGNIFICAND = 7, EXPONENT_MAX = 30 };
static const uint8_t magic[MAGIC_LEN] = {'k', 'd', 'g', 'u', 'p', 'd', '1'};

const char *kedge_compact_name(enum kedge_compact_kind kind)
{
    static const char *const names[KEDGE_COMPACT_KINDS] = {"none", "int8", "bf16", "topk", "topk-int8"};
    return names[kind];
}

bool kedge_compact_is_sparse(enum kedge_compact_kind kind)
{
    return kind == KEDGE_COMPACT_TOPK || kind == KEDGE_COMPACT_TOPK_INT8;
}

uint64_t kedge_compact_entries_most(const struct kedge_compact *c, uint64_t n)
{
    if (!kedge_compact_is_sparse(c->kind)) {
        return n;
    }
    const uint64_t one = KEDGE_COMPACT_SHARE_ONE; /* in two parts, which cannot overflow */
    return n / one * c->share + (n % one * c->share + one - 1) / one;
}

/* An upload is refused by this bound before a byte of it is stored. */
uint64_t kedge_compact_len_most(const struct kedge_compact *c, uint64_t n)
{
    const uint64_t blocks = (n + KEDGE_COMPACT_BLOCK - 1) / KEDGE_COMPACT_BLOCK;
    const uint64_t entries = kedge_compact_entries_most(c, n);
    switch (c->kind) {
    case KEDGE_COMPACT_INT8:
        return KEDGE_COMPACT_HEAD + blocks * STEP_LEN + n;
    case KEDGE_COMPACT_BF16:
        return KEDGE_COMPACT_HEAD + 2 * n;
    case KEDGE_COMPACT_TOPK:
        return KEDGE_COMPACT_HEAD + blocks * 2 + entries * (2 + 4);
    case KEDGE_COMPACT_TOPK_INT8:
        return KEDGE_COMPACT_HEAD + blocks * (2 + STEP_LEN) + entries * (2 + 1);
    case KEDGE_COMPACT_NONE:
    case KEDGE_COMPACT_KINDS:
        break;
    }
    return 0;
}

static uint32_t load32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

bool kedge_compact_is_head(struct kedge_view head)
{
    return head.len >= KEDGE_COMPACT_HEAD && memcmp(head.ptr, magic, MAGIC_LEN) == 0;
}

int kedge_compact_head_read(const uint8_t head[KEDGE_COMPACT_HEAD], enum kedge_compact_kind *ret_kind,
                            uint64_t *ret_count)
{
    const uint8_t kind = head[MAGIC_LEN];
    if (memcmp(head, magic, MAGIC_LEN) != 0 || kind <= KEDGE_COMPACT_NONE || kind >= KEDGE_COMPACT_KINDS) {
        return KEDGE_E_FORMAT;
    }
    *ret_kind = (enum kedge_compact_kind)kind;
    *ret_count = load32(head + 8) | (uint64_t)load32(head + 12) << 32;
    return KEDGE_OK;
}

void kedge_compact_head_write(enum kedge_compact_kind kind, uint64_t count, uint8_t out[KEDGE_COMPACT_HEAD])
{
    memcpy(out, magic, MAGIC_LEN);
    out[MAGIC_LEN] = (uint8_t)kind;
    for (unsigned i = 0; i < 8; i++) {
        out[8 + i] = (uint8_t)(count >> 8 * i);
    }
}

size_t kedge_compact_block_len(enum kedge_compact_kind kind, size_t n, const uint8_t first[2])
{
    if (kedge_compact_is_sparse(kind)) {
        return 2 + ((size_t)first[0] | (size_t)first[1] << 8);
    }
    return kind == KEDGE_COMPACT_BF16 ? 2 * n : STEP_LEN + n;
}

/* The step of a block, whose codes it can take as far as 127 … or fewer: products are looked at one by one.
 */
static bool read_step(const uint8_t *p, uint32_t *ret)
{
    *ret = load32(p);
    return *ret >= 1 && *ret <= INT32_MAX;
}

static int read_int8(struct kedge_view block, size_t n, int32_t *out)
{
    uint32_t step;
    if (block.len != STEP_LEN + n || !read_step(block.ptr, &step)) {
        return KEDGE_E_FORMAT;
    }
    const int8_t *codes = (const int8_t *)block.ptr + STEP_LEN;
    int32_t most = 0;
    for (size_t i = 0; i < n; i++) { /* no branch: vectors */
        int32_t size = codes[i] < 0 ? -codes[i] : codes[i];
        most = size > most ? size : most;
        out[i] = (int32_t)((uint32_t)codes[i] * step);
    }
    return most > CODE_MAX || (uint64_t)(uint32_t)most * step > INT32_MAX ? KEDGE_E_FORMAT : KEDGE_OK;
}

/* Only whole numbers are taken: an exponent below that of 1 or bits below the point would be a fraction of
 * a step, which an integer update cannot hold. A zero has one form, all bits 0. */
static int read_bf16(struct kedge_view block, size_t n, int32_t *out)
{
    if (block.len != 2 * n) {
        return KEDGE_E_FORMAT;
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)block.ptr[2 * i] | (uint32_t)block.ptr[2 * i + 1] << 8;
        const uint32_t exponent = bits >> SIGNIFICAND & 0xff, whole = (bits & 127) | 128;
        if (bits == 0) {
            out[i] = 0;
            continue;
        }
        if (exponent < BIAS || exponent > BIAS + EXPONENT_MAX) {
            return KEDGE_E_FORMAT;
        }
        const uint32_t power = exponent - BIAS;
        const uint32_t size =
            power >= SIGNIFICAND ? whole << (power - SIGNIFICAND) : whole >> (SIGNIFICAND - power);
        if (power < SIGNIFICAND && size << (SIGNIFICAND - power) != whole) {
            return KEDGE_E_FORMAT; /* not a whole number */
        }
        out[i] = bits >> 15 ? -(int32_t)size : (int32_t)size;
    }
    return KEDGE_OK;
}

/* The gap at *at, which then stands behind it. */
static bool read_gap(struct kedge_view rest, size_t *at, size_t *ret)
{
    if (*at >= rest.len) {
        return false;
    }
    size_t gap = rest.ptr[(*at)++];
    if (gap >= 128) { /* two bytes reach further than a block is long */
        if (*at >= rest.len || rest.ptr[*at] == 0 || rest.ptr[*at] >= 128) {
            return false;
        }
        gap = (gap & 127) | (size_t)rest.ptr[(*at)++] << 7;
    }
    *ret = gap;
    return true;
}

/* Entries are gap and value, in ascending order by construction: a gap adds to the place of the last entry,
 * so none can stand twice. An entry of value 0 says nothing and is refused. */
static int read_sparse(struct kedge_view block, size_t n, bool coded, int32_t *out, uint32_t *ret_entries)
{
    uint32_t step = 1, entries = 0;
    size_t at = 0, index = 0, gap;
    memset(out, 0, n * sizeof *out);
    if (block.len < 2 || block.len != kedge_compact_block_len(KEDGE_COMPACT_TOPK, n, block.ptr)) {
        return KEDGE_E_FORMAT;
    }
    struct kedge_view rest = kedge_view_of(block.ptr + 2, block.len - 2);
    if (coded && rest.len > 0) {
        if (rest.len <= STEP_LEN || !read_step(rest.ptr, &step)) {
            return KEDGE_E_FORMAT;
        }
        at = STEP_LEN;
    }
    const size_t width = coded ? 1 : 4;
    for (; at < rest.len; at += width, index++, entries++) {
        if (!read_gap(rest, &at, &gap) || rest.len - at < width || index >= n || gap >= n - index) {
            return KEDGE_E_FORMAT;
        }
        index += gap;
        const int64_t value =
            coded ? (int64_t)(int8_t)rest.ptr[at] * (int64_t)step : (int64_t)(int32_t)load32(rest.ptr + at);
        if (value == 0 || value > INT32_MAX || value < -INT32_MAX || (coded && rest.ptr[at] == 128)) {
            return KEDGE_E_FORMAT;
        }
        out[index] = (int32_t)value;
    }
    *ret_entries = entries;
    return KEDGE_OK;
}

int kedge_compact_block_read(enum kedge_compact_kind kind, struct kedge_view block, size_t n, int32_t *out,
                             uint32_t *ret_entries)
{
    if (n < 1 || n > KEDGE_COMPACT_BLOCK) {
        return KEDGE_E_FORMAT;
    }
    if (kedge_compact_is_sparse(kind)) {
        return read_sparse(block, n, kind == KEDGE_COMPACT_TOPK_INT8, out, ret_entries);
    }
    KEDGE_TRY(kind == KEDGE_COMPACT_BF16 ? read_bf16(block, n, out) : read_int8(block, n, out));
    *ret_entries = (uint32_t)n;
    return KEDGE_OK;
}
