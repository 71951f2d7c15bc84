/* Names and widths of tiles (c2sp.org/tlog-tiles): the tree is cut into tiles of 256 hashes and 8 levels,
 * so that a log can be served as plain files, of which a full one never changes and can be cached for
 * ever.
 *
 * One spelling per tile: parse reads exactly what path writes. A path comes from the network, and two
 * names for one file would be two answers to the question whether it may be read. */
#include "chain/log/tile.h"

#include <string.h>

#include "chain/log/lines.h"
#include "common/base/text.h"
#include "common/base/try.h"

enum { GROUP = 1000, GROUPS_MAX = 7 /* 19 digits */ };

/* Decimal digits of v < 10^count, zero-padded. */
static size_t put_digits(char *out, uint64_t v, size_t count)
{
    for (size_t i = count; i > 0; i--) {
        out[i - 1] = (char)('0' + v % 10);
        v /= 10;
    }
    return count;
}

static size_t put_decimal(char *out, unsigned v)
{
    return put_digits(out, v, v < 10 ? 1 : v < 100 ? 2 : 3);
}

/* "x001/x234/067": groups of three digits, all but the last marked. */
static size_t put_index(char *out, uint64_t index)
{
    unsigned groups[GROUPS_MAX];
    size_t count = 0, len = 0;
    do {
        groups[count++] = (unsigned)(index % GROUP);
        index /= GROUP;
    } while (index > 0);
    while (count > 1) {
        out[len++] = 'x';
        len += put_digits(out + len, groups[--count], 3);
        out[len++] = '/';
    }
    return len + put_digits(out + len, groups[0], 3);
}

/* Without its NUL. */
static size_t put_text(char *out, const char *text)
{
    size_t len = 0;
    for (; text[len]; len++) {
        out[len] = text[len];
    }
    return len;
}

void kedge_tile_path(const struct kedge_tile *tile, char out[KEDGE_TILE_PATH_MAX])
{
    KEDGE_ASSERT(tile->level <= KEDGE_TILE_LEVEL_MAX && tile->index <= KEDGE_TILE_INDEX_MAX);
    KEDGE_ASSERT(tile->width >= 1 && tile->width <= KEDGE_TILE_WIDTH);
    size_t len = put_text(out, "tile/");
    if (tile->kind == KEDGE_TILE_ENTRIES) {
        KEDGE_ASSERT(tile->level == 0);
        len += put_text(out + len, "entries");
    } else {
        len += put_decimal(out + len, tile->level);
    }
    out[len++] = '/';
    len += put_index(out + len, tile->index);
    if (tile->width < KEDGE_TILE_WIDTH) {
        len += put_text(out + len, ".p/");
        len += put_decimal(out + len, tile->width);
    }
    out[len] = '\0';
}

/* Takes the groups of an index off the front; false when they are not well formed. A leading group of
 * zeros cannot stand before another. The bound is tested before the multiplication, so 19 digits from the
 * network cannot wrap around to another tile. */
static bool take_index(struct kedge_view *rest, uint64_t *ret_index)
{
    uint64_t index = 0;
    bool more = true;
    for (size_t group = 0; more; group++) {
        more = kedgei_take_prefix(rest, "x");
        if (rest->len < 3) {
            return false;
        }
        uint64_t v = 0;
        for (size_t i = 0; i < 3; i++) {
            if (rest->ptr[i] < '0' || rest->ptr[i] > '9') {
                return false;
            }
            v = 10 * v + (uint64_t)(rest->ptr[i] - '0');
        }
        *rest = kedge_view_of(rest->ptr + 3, rest->len - 3);
        bool is_padding = group == 0 && more && v == 0;
        if (is_padding || index > (KEDGE_TILE_INDEX_MAX - v) / GROUP) {
            return false;
        }
        index = index * GROUP + v;
        if (more && !kedgei_take_prefix(rest, "/")) {
            return false;
        }
    }
    *ret_index = index;
    return true;
}

/* A width of 0 or of a full tile in the name is refused, since either would be a second name for a tile. */
int kedge_tile_parse(struct kedge_view path, struct kedge_tile *ret_tile)
{
    struct kedge_tile tile = {.width = KEDGE_TILE_WIDTH};
    uint64_t v = 0;
    if (!kedgei_take_prefix(&path, "tile/")) {
        return KEDGE_E_FORMAT;
    }
    if (kedgei_take_prefix(&path, "entries/")) {
        tile.kind = KEDGE_TILE_ENTRIES;
    } else {
        struct kedge_view level;
        if (!kedgei_cut(&path, '/', &level) || kedge_decimal_decode(level, KEDGE_TILE_LEVEL_MAX, &v)) {
            return KEDGE_E_FORMAT;
        }
        tile.level = (uint8_t)v;
    }
    if (!take_index(&path, &tile.index)) {
        return KEDGE_E_FORMAT;
    }
    if (path.len > 0) {
        if (!kedgei_take_prefix(&path, ".p/") || kedge_decimal_decode(path, KEDGE_TILE_WIDTH - 1, &v)
            || v == 0) {
            return KEDGE_E_FORMAT;
        }
        tile.width = (uint16_t)v;
    }
    *ret_tile = tile;
    return KEDGE_OK;
}

/* Hashes of a level: complete subtrees of 256^level leaves. */
static uint64_t hash_count(unsigned level, uint64_t size)
{
    return level < KEDGE_TILE_LEVELS ? size >> (8 * level) : 0;
}

uint64_t kedge_tile_full_count(unsigned level, uint64_t size)
{
    return hash_count(level, size) / KEDGE_TILE_WIDTH;
}

uint16_t kedge_tile_partial_width(unsigned level, uint64_t size)
{
    return (uint16_t)(hash_count(level, size) % KEDGE_TILE_WIDTH);
}

/* What a tree of that size has of a tile: 256, the rest at the right edge, or nothing. */
uint16_t kedge_tile_width(unsigned level, uint64_t index, uint64_t size)
{
    uint64_t full = kedge_tile_full_count(level, size);
    if (index < full) {
        return KEDGE_TILE_WIDTH;
    }
    return index == full ? kedge_tile_partial_width(level, size) : 0;
}

void kedge_bundle_put(struct kedge_buf *out, struct kedge_view entry)
{
    KEDGE_ASSERT(entry.len <= KEDGE_ENTRY_MAX);
    if (kedge_buf_reserve(out, 2 + entry.len)) {
        return; /* sticky: a length without its entry never stands alone */
    }
    kedge_buf_put_u16(out, (uint16_t)entry.len);
    kedge_buf_put(out, entry.ptr, entry.len);
}

/* All or nothing: exactly `count` entries and not a byte more. */
int kedge_bundle_decode(struct kedge_view bytes, size_t count, struct kedge_view *ret_entries)
{
    if (count == 0 || count > KEDGE_TILE_WIDTH) {
        return KEDGE_E_ARG;
    }
    struct kedge_view entries[KEDGE_TILE_WIDTH];
    struct kedge_reader r = kedge_reader_of(bytes);
    for (size_t i = 0; i < count; i++) {
        entries[i] = kedge_read_bytes(&r, kedge_read_u16(&r));
    }
    KEDGE_TRY(kedge_reader_end(&r));
    memcpy(ret_entries, entries, count * sizeof *entries);
    return KEDGE_OK;
}
