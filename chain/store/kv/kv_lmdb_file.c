/* Reads LMDB's pages without LMDB. It serves two purposes that LMDB itself cannot: an auditor learns that
 * one flipped byte in the first pages does not silently give an older state, and the scrubber learns
 * which bytes no read returns. Every number that comes from the file is checked against the file's size
 * before it is used, for the file may be damaged or made by an enemy. */
#include "chain/store/kv/kv_lmdb_file.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/base/try.h"

enum {
    AT_FLAGS = 10,
    AT_LOWER = 12,
    AT_UPPER = 14,
    AT_PAGES = 12,
    AT_MAGIC = KEDGEI_LMDB_HEADER,
    AT_VERSION = KEDGEI_LMDB_HEADER + 4,
    AT_PAGE_SIZE = KEDGEI_LMDB_HEADER + 24, /* the first word of the list of freed pages' own record */
    AT_FREE_ROOT = KEDGEI_LMDB_HEADER + 64,
    AT_ROOT = KEDGEI_LMDB_HEADER + 112,
    AT_LAST = KEDGEI_LMDB_HEADER + 120,
    AT_NUMBER = KEDGEI_LMDB_HEADER + 128,
    META_LEN = AT_NUMBER + 8,
    META = 8, /* flag of the first two pages */
    NODE_LEN =
        8, /* u16 and u16 data length, u16 flags, u16 key length; a branch has a child's number first */
    FREED_KEY_LEN = 8,
    TABLE_LEN = 48, /* what is told of a table, its root last */
    DEPTH_MAX = 32, /* of a tree, LMDB's own limit */
    PAGE_MAX = 65536,
    CHUNK = 512,
};
#define MAGIC UINT32_C(0xBEEFC0DE)
#define PAGES_MAX (INT64_MAX / PAGE_MAX)

static uint16_t load16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static uint32_t load32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static uint64_t load64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* ---- the two states ---- */

static bool read_state(int fd, uint64_t offset, struct kedgei_lmdb_state *ret, uint32_t *ret_page_size)
{
    uint8_t b[META_LEN];
    if (kedge_fd_read_at(fd, b, sizeof b, offset) || !(load16(b + AT_FLAGS) & META)
        || load32(b + AT_MAGIC) != MAGIC || load32(b + AT_VERSION) != 1) {
        return false;
    }
    *ret = (struct kedgei_lmdb_state){load64(b + AT_FREE_ROOT), load64(b + AT_ROOT), load64(b + AT_LAST),
                                      load64(b + AT_NUMBER)};
    uint32_t size = *ret_page_size = load32(b + AT_PAGE_SIZE);
    return size >= 512 && size <= PAGE_MAX && (size & (size - 1)) == 0 && ret->last < PAGES_MAX;
}

/* A transaction with an even number writes the first page and one with an odd number the second, so the
 * newer number must be at its own place and exactly one above the other. A page that was damaged or
 * restored from elsewhere breaks one of the two. */
bool kedgei_lmdb_file_read(int fd, struct kedgei_lmdb_file *ret)
{
    struct kedgei_lmdb_state state[2];
    uint32_t size[2];
    if (!read_state(fd, 0, &state[0], &size[0]) || !read_state(fd, size[0], &state[1], &size[1])
        || size[0] != size[1]) {
        return false;
    }
    size_t newer = state[1].number > state[0].number;
    *ret = (struct kedgei_lmdb_file){fd, size[0], state[newer], state[1 - newer], NULL};
    return ret->newest.number % 2 == newer && ret->newest.number == ret->older.number + 1;
}

/* ---- pages and nodes ---- */

/* The same eight bytes say two things: in a leaf length and flags of the data, in a branch the 48 bits of
 * a child's page number. */
struct kedgei_lmdb_node kedgei_lmdb_node_of(const struct kedgei_lmdb_page *page, size_t i)
{
    size_t at = load16(page->bytes + KEDGEI_LMDB_HEADER + 2 * i);
    const uint8_t *p = page->bytes + at;
    struct kedgei_lmdb_node n = {.key = at + NODE_LEN, .key_len = load16(p + 6)};
    uint64_t low = load16(p) | (uint64_t)load16(p + 2) << 16;
    n.data = n.key + n.key_len;
    if (!page->is_leaf) {
        n.number = low | (uint64_t)load16(p + 4) << 32;
        return n;
    }
    n.flags = load16(p + 4);
    n.data_len = (uint32_t)low;
    n.number = n.flags & KEDGEI_LMDB_BIG ? load64(p + NODE_LEN + n.key_len) : KEDGEI_LMDB_NO_PAGE;
    return n;
}

/* Bytes that the i-th node takes, 0 when it is none or does not lie behind `upper`. Nodes begin at even
 * offsets and are padded to even length, as LMDB lays them. Unknown flags (duplicates, which this store
 * never uses) are no node: what is not understood must not be taken for free space. */
static size_t node_len(const struct kedgei_lmdb_page *page, size_t i, size_t page_size)
{
    size_t at = load16(page->bytes + KEDGEI_LMDB_HEADER + 2 * i);
    if (at < page->upper || at > page_size - NODE_LEN || at % 2 != 0) {
        return 0;
    }
    const uint8_t *p = page->bytes + at;
    uint64_t len = NODE_LEN + (uint64_t)load16(p + 6);
    uint16_t flags = load16(p + 4);
    if (page->is_leaf && flags & KEDGEI_LMDB_BIG) {
        len += sizeof(uint64_t);
    } else if (page->is_leaf) {
        len += load16(p) | (uint64_t)load16(p + 2) << 16;
    }
    bool is_known = !page->is_leaf || flags == 0 || flags == KEDGEI_LMDB_BIG || flags == KEDGEI_LMDB_TABLE;
    len += len % 2;
    return is_known && len <= page_size - at ? (size_t)len : 0;
}

/* Two sums prove that the nodes neither overlap nor leave a gap: the lowest begins at `upper`, and
 * together they are as long as what lies behind it. Only with that is the middle of the page known to be
 * unused. */
bool kedgei_lmdb_page_read(const struct kedgei_lmdb_file *f, uint64_t number, uint8_t *buffer,
                           struct kedgei_lmdb_page *ret)
{
    size_t size = f->page_size, lowest = size, sum = 0;
    if (number < 2 || number > f->newest.last
        || kedge_fd_read_at(f->fd, buffer, size, number * size) != KEDGE_OK) {
        return false;
    }
    uint16_t flags = load16(buffer + AT_FLAGS);
    struct kedgei_lmdb_page p = {.bytes = buffer,
                                 .number = number,
                                 .is_leaf = flags == KEDGEI_LMDB_LEAF,
                                 .lower = load16(buffer + AT_LOWER),
                                 .upper = load16(buffer + AT_UPPER)};
    if (load64(buffer) != number || !(p.is_leaf || flags == KEDGEI_LMDB_BRANCH)
        || p.lower <= KEDGEI_LMDB_HEADER || p.lower % 2 != 0 || p.upper < p.lower || p.upper > size) {
        return false;
    }
    p.count = (p.lower - KEDGEI_LMDB_HEADER) / 2;
    for (size_t i = 0; i < p.count; i++) {
        size_t at = load16(buffer + KEDGEI_LMDB_HEADER + 2 * i), len = node_len(&p, i, size);
        if (len == 0) {
            return false;
        }
        lowest = at < lowest ? at : lowest;
        sum += len;
    }
    *ret = p;
    return lowest == p.upper && sum == size - p.upper;
}

/* A run must be at least as long as the value it holds and end within the file's pages; 0 stands for "no
 * run", since a run has one page at least. */
uint32_t kedgei_lmdb_run_pages(const struct kedgei_lmdb_file *f, const struct kedgei_lmdb_node *node)
{
    uint8_t header[KEDGEI_LMDB_HEADER];
    if (node->number < 2 || node->number > f->newest.last
        || kedge_fd_read_at(f->fd, header, sizeof header, node->number * f->page_size) != KEDGE_OK
        || load64(header) != node->number || load16(header + AT_FLAGS) != KEDGEI_LMDB_RUN) {
        return 0;
    }
    uint32_t pages = load32(header + AT_PAGES);
    bool is_inside = pages <= f->newest.last - node->number + 1;
    return is_inside && (uint64_t)pages * f->page_size >= KEDGEI_LMDB_HEADER + (uint64_t)node->data_len
               ? pages
               : 0;
}

bool kedgei_lmdb_table_root(const struct kedgei_lmdb_page *page, const struct kedgei_lmdb_node *node,
                            uint64_t *ret_root)
{
    if (node->flags != KEDGEI_LMDB_TABLE || node->data_len != TABLE_LEN) {
        return false;
    }
    *ret_root = load64(page->bytes + node->data + TABLE_LEN - sizeof(uint64_t));
    return true;
}

/* ---- trees ---- */

/* `buffers` holds DEPTH_MAX pages. Depth first with a stack of its own, because a damaged tree may be of
 * any shape: DEPTH_MAX bounds how deep it goes, and the number of pages bounds the steps, so a page that
 * leads back to its parent ends the walk and not the program. */
static bool walk_with(const struct kedgei_lmdb_file *f, uint64_t root, uint8_t *buffers,
                      kedgei_lmdb_visit *visit, void *arg)
{
    struct {
        struct kedgei_lmdb_page page;
        size_t next;
    } stack[DEPTH_MAX];
    uint64_t steps = 0, at = root; /* the next page to go down to */
    size_t depth = 0;
    do {
        if (at != KEDGEI_LMDB_NO_PAGE) {
            if (f->bad_page) {
                *f->bad_page = at;
            }
            if (depth == DEPTH_MAX || steps++ > f->newest.last
                || !kedgei_lmdb_page_read(f, at, buffers + depth * f->page_size, &stack[depth].page)
                || !visit(arg, &stack[depth].page)) {
                return false;
            }
            stack[depth++].next = 0;
        }
        at = KEDGEI_LMDB_NO_PAGE;
        const struct kedgei_lmdb_page *top = &stack[depth - 1].page;
        if (top->is_leaf || stack[depth - 1].next == top->count) {
            depth--;
        } else {
            at = kedgei_lmdb_node_of(top, stack[depth - 1].next++).number;
        }
    } while (depth > 0);
    return true;
}

int kedgei_lmdb_walk(const struct kedgei_lmdb_file *f, uint64_t root, kedgei_lmdb_visit *visit, void *arg)
{
    if (root == KEDGEI_LMDB_NO_PAGE) {
        return KEDGE_OK;
    }
    uint8_t *buffers = kedge_mem_new(DEPTH_MAX, f->page_size);
    KEDGE_TRY_MEM(buffers);
    bool ok = walk_with(f, root, buffers, visit, arg);
    kedge_mem_free(buffers);
    return ok ? KEDGE_OK : KEDGE_E_CORRUPT;
}

/* ---- the table of freed pages ---- */

struct freed {
    const struct kedgei_lmdb_file *f;
    uint64_t newest; /* key seen last, 0: none */
    kedgei_lmdb_visit_freed *visit;
    void *arg;
};

/* One record: count and numbers, `len` bytes of the file from `offset` on. In pieces, since a store that
 * was compacted may free millions of pages in one transaction. The first word says how many follow, and
 * must agree with the record's length. */
static bool show_list(const struct freed *w, uint64_t offset, uint64_t len)
{
    uint64_t chunk[CHUNK], words = len / sizeof chunk[0];
    if (len % sizeof chunk[0] != 0 || words == 0) {
        return false;
    }
    for (uint64_t i = 0; i < words;) {
        size_t n = words - i < CHUNK ? (size_t)(words - i) : CHUNK;
        if (kedge_fd_read_at(w->f->fd, (uint8_t *)chunk, n * sizeof chunk[0], offset + i * sizeof chunk[0])
            || (i == 0 && chunk[0] != words - 1)) {
            return false;
        }
        for (size_t k = i == 0; k < n; k++) {
            if (!w->visit(w->arg, w->newest, chunk[k])) {
                return false;
            }
        }
        i += n;
    }
    return true;
}

static bool show_lists(void *arg, const struct kedgei_lmdb_page *page)
{
    struct freed *w = arg;
    for (size_t i = 0; i < page->count && page->is_leaf; i++) {
        struct kedgei_lmdb_node n = kedgei_lmdb_node_of(page, i);
        if (n.key_len != FREED_KEY_LEN || n.flags & KEDGEI_LMDB_TABLE
            || load64(page->bytes + n.key) <= w->newest) {
            return false;
        }
        w->newest = load64(page->bytes + n.key);
        uint64_t offset = page->number * w->f->page_size + n.data;
        if (n.flags & KEDGEI_LMDB_BIG) {
            if (kedgei_lmdb_run_pages(w->f, &n) == 0) {
                return false;
            }
            offset = n.number * w->f->page_size + KEDGEI_LMDB_HEADER;
        }
        if (!show_list(w, offset, n.data_len)) {
            return false;
        }
    }
    return true;
}

/* LMDB writes this table last in each commit, so its last key tells which transaction finished. */
int kedgei_lmdb_walk_freed(const struct kedgei_lmdb_file *f, kedgei_lmdb_visit_freed *visit, void *arg)
{
    struct freed w = {.f = f, .visit = visit, .arg = arg};
    int err = kedgei_lmdb_walk(f, f->newest.free_root, show_lists, &w);
    uint64_t last = f->newest.number < 2 ? 0 : f->newest.number;
    return err || w.newest == last ? err : KEDGE_E_CORRUPT;
}
