/* Compact updates as tiles: block by block, wherever the file's bytes are. */
#include "round/compact_files.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"

enum { BLOCK = KEDGE_COMPACT_BLOCK, WINDOW = 32768 };
_Static_assert((int)WINDOW >= (int)KEDGE_COMPACT_BLOCK_BYTES_MAX, "a window holds any block");

static uint64_t blocks_of(const struct kedge_layout *layout)
{
    return (layout->values_count + BLOCK - 1) / BLOCK;
}

static size_t values_of(const struct kedge_layout *layout, uint64_t block)
{
    const uint64_t left = layout->values_count - block * BLOCK;
    return left < BLOCK ? (size_t)left : BLOCK;
}

/* len bytes of the content from `at` on, at most a window. KEDGE_E_FORMAT: it ends before. An encrypted
 * file is read through a window that is longer than any block: reading ahead makes most blocks cost
 * nothing, and a block that crosses the window's end is fetched whole by a new one that begins with it. */
static int get(const struct kedge_blob_file *f, struct kedgei_compact_file *c, uint64_t at, size_t len,
               const uint8_t **ret)
{
    if (at > f->size || len > f->size - at) {
        return KEDGE_E_FORMAT;
    }
    if (!f->is_sealed) {
        *ret = f->map.ptr + at;
        return KEDGE_OK;
    }
    if (at < c->window_at || at - c->window_at > c->window_len || len > c->window_len - (at - c->window_at)) {
        const uint64_t left = f->size - at;
        const size_t n = left < c->window_max ? (size_t)left : c->window_max;
        int err = kedge_blob_file_read(f, at, c->window, n);
        if (err) {
            c->window_len = 0;
            return err;
        }
        c->window_at = at;
        c->window_len = n;
    }
    *ret = c->window + (at - c->window_at);
    return KEDGE_OK;
}

/* The block that stands at c->at. Its length follows from its first two bytes, which the sender chose: it
 * is bounded before anything is read by it. */
static int get_block(const struct kedge_layout *layout, const struct kedge_blob_file *f,
                     struct kedgei_compact_file *c, struct kedge_view *ret)
{
    const uint8_t *p = NULL;
    int err = get(f, c, c->at, 2, &p); /* no block is shorter */
    if (err) {
        return err;
    }
    const size_t len = kedge_compact_block_len(c->kind, values_of(layout, c->block), p);
    if (len > KEDGE_COMPACT_BLOCK_BYTES_MAX) {
        return KEDGE_E_FORMAT;
    }
    err = get(f, c, c->at, len, &p);
    *ret = kedge_view_of(p, err ? 0 : len);
    return err;
}

/* Blocks have no table of where they are, since that would cost more bytes than they save. So the way is
 * from one to the next; tiles are read forwards, and a second pass begins at the first block again. */
static int go_to(const struct kedge_layout *layout, const struct kedge_blob_file *f,
                 struct kedgei_compact_file *c, uint64_t block)
{
    struct kedge_view bytes;
    if (block < c->block) {
        c->block = 0;
        c->at = KEDGE_COMPACT_HEAD;
    }
    while (c->block < block) {
        int err = get_block(layout, f, c, &bytes);
        if (err) {
            return err;
        }
        c->at += bytes.len;
        c->block++;
    }
    return KEDGE_OK;
}

/* A file that does not begin as a compact update is no error: it is an ordinary one, and the caller checks
 * it as such. */
int kedgei_compact_open(const struct kedge_layout *layout, const struct kedge_blob_file *f,
                        struct kedgei_compact_file *ret, struct kedge_diag *d)
{
    struct kedgei_compact_file c = {.kind = KEDGE_COMPACT_NONE, .at = KEDGE_COMPACT_HEAD};
    uint8_t head[KEDGE_COMPACT_HEAD];
    uint64_t count = 0;
    int err = f->size < sizeof head ? KEDGE_OK : KEDGE_E_NOT_FOUND;
    if (err == KEDGE_E_NOT_FOUND && f->is_sealed) {
        err = kedge_blob_file_read(f, 0, head, sizeof head);
    } else if (err == KEDGE_E_NOT_FOUND) {
        memcpy(head, f->map.ptr, sizeof head);
        err = KEDGE_OK;
    } else {
        *ret = c;
        return KEDGE_OK;
    }
    if (err || !kedge_compact_is_head(kedge_view_of(head, sizeof head))) {
        *ret = c;
        return err ? kedge_diag_set(d, err, "%s", kedge_strerror(err)) : KEDGE_OK;
    }
    err = kedge_compact_head_read(head, &c.kind, &count);
    if (err) {
        return kedge_diag_set(d, err, "begins as a compact update, of no kind that there is");
    }
    if (count != layout->values_count) {
        return kedge_diag_set(d, KEDGE_E_SHAPE, "a compact update of %llu values, the model has %llu",
                              (unsigned long long)count, (unsigned long long)layout->values_count);
    }
    if (f->is_sealed) {
        c.window_max = f->size < WINDOW ? (size_t)f->size : WINDOW;
        c.window = kedge_mem_new(c.window_max, 1);
        if (!c.window) {
            return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for a compact update");
        }
    }
    *ret = c;
    return KEDGE_OK;
}

void kedgei_compact_close(struct kedgei_compact_file *c)
{
    kedge_mem_free(c->window);
    *c = (struct kedgei_compact_file){.kind = KEDGE_COMPACT_NONE};
}

/* A block that lies in the range as a whole is unpacked where it belongs; of those at the ends a part is
 * copied. */
int kedgei_compact_read(const struct kedge_layout *layout, const struct kedge_blob_file *f,
                        struct kedgei_compact_file *c, uint64_t first, size_t n, int32_t *out)
{
    int32_t part[BLOCK];
    for (size_t done = 0; done < n;) {
        const uint64_t block = (first + done) / BLOCK;
        const size_t skip = (size_t)((first + done) % BLOCK), all = values_of(layout, block);
        const size_t some = all - skip < n - done ? all - skip : n - done;
        int32_t *to = some == all ? out + done : part;
        struct kedge_view bytes = kedge_view_of(NULL, 0);
        uint32_t entries;
        KEDGE_TRY(go_to(layout, f, c, block));
        KEDGE_TRY(get_block(layout, f, c, &bytes));
        KEDGE_TRY(kedge_compact_block_read(c->kind, bytes, all, to, &entries));
        if (to == part) {
            memcpy(out + done, part + skip, some * sizeof *out);
        }
        done += some;
    }
    return KEDGE_OK;
}

/* Bytes after the last block are refused: nobody would read them, and a file could carry anything there. */
bool kedgei_compact_is_read(const struct kedge_layout *layout, const struct kedge_blob_file *f,
                            struct kedgei_compact_file *c)
{
    struct kedge_view bytes;
    const uint64_t blocks = blocks_of(layout);
    if (blocks == 0) {
        return f->size == KEDGE_COMPACT_HEAD;
    }
    return go_to(layout, f, c, blocks - 1) == KEDGE_OK && get_block(layout, f, c, &bytes) == KEDGE_OK
           && c->at + bytes.len == f->size;
}
