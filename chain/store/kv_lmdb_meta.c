/* LMDB keeps its last two states, each told by one of the file's first two pages, and takes the one with the
 * higher transaction number. Nothing in it notices a number or a root that was changed into an earlier one,
 * and so a state that is silently a transaction old. Here the two pages are read without LMDB, by the layout
 * of its data format 1 (lmdb 0.9, 64-bit, this machine's byte order). As every transaction from the second on
 * frees pages, the table of freed pages (transaction -> count, numbers) tells how far a state has come: its
 * last key is the state's number, and the state's own root is not in it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "chain/store/kv_dir.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"

enum {
    HEADER = 16, /* of a page: u64 number, u16, u16 flags at 10, u16 end of the node table at 12 */
    AT_FLAGS = 10,
    AT_LOWER = 12,
    AT_MAGIC = HEADER,
    AT_VERSION = HEADER + 4,
    AT_PAGE_SIZE = HEADER + 24, /* the first word of the list of freed pages' own record */
    AT_FREE_ROOT = HEADER + 64,
    AT_ROOT = HEADER + 112,
    AT_NUMBER = HEADER + 128,
    META_LEN = AT_NUMBER + 8,
    NODE_LEN =
        8,       /* u16 and u16 data length, u16 flags, u16 key length; a branch has a child's number first */
    KEY_LEN = 8, /* in the table of freed pages */
    BIG = 1,     /* flag of a node: its data name the page behind whose header they lie */
    BRANCH = 1,
    LEAF = 2,
    META = 8,
    DEPTH_MAX = 32, /* of a tree, LMDB's own limit */
    PAGE_MAX = 65536,
    CHUNK = 512,
    PAGES_MAX = 1 << 22, /* of one table: the walk ends */
};
#define MAGIC UINT32_C(0xBEEFC0DE)
#define NO_PAGE UINT64_MAX

struct meta {
    uint64_t free_root, root, number;
    uint32_t page_size;
};

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

static bool read_at(int fd, uint64_t offset, uint8_t *out, size_t len)
{
    if (offset > INT64_MAX - len) {
        return false;
    }
    ssize_t n;
    do {
        n = pread(fd, out, len, (off_t)offset);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)len;
}

static bool read_meta(int fd, uint64_t offset, struct meta *ret)
{
    uint8_t b[META_LEN];
    if (!read_at(fd, offset, b, sizeof b) || !(load16(b + AT_FLAGS) & META) || load32(b + AT_MAGIC) != MAGIC
        || load32(b + AT_VERSION) != 1) {
        return false;
    }
    *ret = (struct meta){load64(b + AT_FREE_ROOT), load64(b + AT_ROOT), load64(b + AT_NUMBER),
                         load32(b + AT_PAGE_SIZE)};
    uint32_t size = ret->page_size;
    return size >= 512 && size <= PAGE_MAX && (size & (size - 1)) == 0;
}

/* ---- the table of freed pages ---- */

struct walk {
    int fd;
    const struct meta *m;
    uint64_t newest; /* key seen last, 0: none */
    uint8_t page[PAGE_MAX];
    size_t count; /* of its nodes */
    bool lists_root;
};

static bool read_page(struct walk *w, uint64_t at)
{
    uint32_t size = w->m->page_size;
    if (at > INT64_MAX / PAGE_MAX || !read_at(w->fd, at * size, w->page, size)) {
        return false;
    }
    size_t lower = load16(w->page + AT_LOWER);
    if (load64(w->page) != at || lower <= HEADER || lower > size || lower % 2 != 0) {
        return false;
    }
    w->count = (lower - HEADER) / 2;
    return true;
}

/* Offset of a node whose key lies in the page; 0 when it does not. */
static size_t node_at(const struct walk *w, size_t i)
{
    size_t node = load16(w->page + HEADER + 2 * i);
    return node >= HEADER && node + NODE_LEN + KEY_LEN + 8 <= w->m->page_size ? node : 0;
}

/* A record's page numbers, `len` bytes of the file from `offset` on: their count, then they. */
static bool take_list(struct walk *w, uint64_t offset, uint64_t len)
{
    uint64_t chunk[CHUNK], number = len / sizeof chunk[0];
    if (len % sizeof chunk[0] != 0 || number == 0) {
        return false;
    }
    for (uint64_t i = 0; i < number;) {
        size_t n = number - i < CHUNK ? (size_t)(number - i) : CHUNK;
        if (!read_at(w->fd, offset + i * sizeof chunk[0], (uint8_t *)chunk, n * sizeof chunk[0])
            || (i == 0 && chunk[0] != number - 1)) {
            return false;
        }
        for (size_t k = i == 0; k < n; k++) {
            w->lists_root = w->lists_root || chunk[k] == w->m->root;
        }
        i += n;
    }
    return true;
}

static bool take_records(struct walk *w, uint64_t at)
{
    for (size_t i = 0; i < w->count; i++) {
        size_t node = node_at(w, i);
        const uint8_t *p = w->page + node;
        if (node == 0 || load16(p + 6) != KEY_LEN || load64(p + NODE_LEN) <= w->newest) {
            return false;
        }
        w->newest = load64(p + NODE_LEN);
        uint64_t offset = at * w->m->page_size + node + NODE_LEN + KEY_LEN;
        if (load16(p + 4) & BIG) {
            uint64_t big = load64(p + NODE_LEN + KEY_LEN);
            if (big > INT64_MAX / PAGE_MAX) {
                return false;
            }
            offset = big * w->m->page_size + HEADER;
        }
        if (!take_list(w, offset, load16(p) | (uint64_t)load16(p + 2) << 16)) {
            return false;
        }
    }
    return true;
}

/* The whole table in key order. */
static bool walk_freed(struct walk *w)
{
    struct {
        uint64_t at;
        size_t next;
    } stack[DEPTH_MAX] = {{w->m->free_root, 0}};
    size_t depth = 1;
    for (long steps = 0; depth > 0; steps++) {
        uint64_t at = stack[depth - 1].at;
        if (steps > PAGES_MAX || !read_page(w, at)) {
            return false;
        }
        size_t i = stack[depth - 1].next++;
        if (load16(w->page + AT_FLAGS) & LEAF) {
            if (!take_records(w, at)) {
                return false;
            }
            depth--;
        } else if (i == w->count) {
            depth--;
        } else {
            size_t node = load16(w->page + HEADER + 2 * i);
            if (node < HEADER || node + NODE_LEN > w->m->page_size || depth == DEPTH_MAX) {
                return false;
            }
            const uint8_t *p = w->page + node;
            stack[depth].at = load16(p) | (uint64_t)load16(p + 2) << 16 | (uint64_t)load16(p + 4) << 32;
            stack[depth++].next = 0;
        }
    }
    return true;
}

static bool is_as_written(int fd, const struct meta *m, unsigned place, struct walk *w)
{
    if (m->number % 2 != place) {
        return false;
    }
    if (m->number < 2) {
        return m->free_root == NO_PAGE;
    }
    w->fd = fd;
    w->m = m;
    w->newest = 0;
    w->lists_root = false;
    return m->free_root != NO_PAGE && walk_freed(w) && w->newest == m->number && !w->lists_root;
}

static bool follow_each_other(int fd, struct walk *w)
{
    struct meta m[2];
    return read_meta(fd, 0, &m[0]) && read_meta(fd, m[0].page_size, &m[1]) && m[0].page_size == m[1].page_size
           && (m[0].number + 1 == m[1].number || m[1].number + 1 == m[0].number)
           && is_as_written(fd, &m[0], 0, w) && is_as_written(fd, &m[1], 1, w);
}

int kedgei_lmdb_check_newest(const char *dir, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX];
    int err = kedge_path_join(path, dir, "data.mdb");
    int fd = err ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        err = err ? err : kedge_errno(errno);
        return kedge_diag_set(reterr, err, "%s/data.mdb: cannot open: %s", dir, kedge_strerror(err));
    }
    struct walk *w = kedge_mem_new(1, sizeof *w);
    bool ok = w && follow_each_other(fd, w);
    close(fd);
    if (!w) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: out of memory", path);
    }
    kedge_mem_free(w);
    if (!ok) {
        kedge_diag_set(reterr, KEDGE_E_CORRUPT,
                       "%s: its first two pages do not tell of two states that follow each other", path);
        kedge_diag_hint(reterr, "the file is damaged, or was copied while it was written; copy it again");
        return KEDGE_E_CORRUPT;
    }
    return KEDGE_OK;
}
