/* What readers of logs can ask for, by the paths of c2sp.org/tlog-tiles: checkpoints, tiles of
 * hashes, bundles of entries, and beside these blobs. A path is parsed on the loop into what is
 * asked; a worker opens and reads it.
 *
 * Entries that a reader may not see are replaced by records of length 0 while the bundle is made.
 * The hashes are public, so the reader can check the whole tree all the same. */
#include "coordinator/daemon/web/resources.h"

#include <string.h>

#include "chain/store/blob/pruned.h"
#include "chain/store/ledger_tiles.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/web/main_view.h"

/* ---- finding ---- */

static bool skip(struct kedge_view *rest, const char *start)
{
    size_t len = strlen(start);
    if (rest->len < len || memcmp(rest->ptr, start, len) != 0) {
        return false;
    }
    *rest = kedge_view_of(rest->ptr + len, rest->len - len);
    return true;
}

/* The log that the path's first part names, as far as the reader may know of it. */
static int find_log(const struct kedge_host *h, const struct kedge_log_reader *reader, struct kedge_view name,
                    struct kedge_resource_ask *r)
{
    struct kedge_id id;
    if (kedge_view_eq(name, kedge_view_str("main"))) {
        r->log = &h->main;
        r->pruned = &h->pruned;
        r->viewer = reader->auditor ? NULL : &h->tenants[reader->tenant];
        return KEDGE_OK;
    }
    if (kedge_id_from(name, &id) != KEDGE_OK) {
        return KEDGE_E_NOT_FOUND;
    }
    uint32_t tenant = kedge_host_tenant_find(h, &id);
    if (tenant == KEDGE_COORD_NONE || (!reader->auditor && tenant != reader->tenant)) {
        return KEDGE_E_NOT_FOUND;
    }
    r->log = &h->tenants[tenant].log;
    return KEDGE_OK;
}

int kedge_host_resource_ask(const struct kedge_host *h, const struct kedge_log_reader *reader,
                            struct kedge_view path, struct kedge_resource_ask *ret)
{
    struct kedge_resource_ask a = {
        .kind = KEDGE_RESOURCE_CHECKPOINT, .main_view = h->main_view, .state = h->state};
    struct kedge_view rest = path;
    const uint8_t *slash = rest.len > 0 ? memchr(rest.ptr, '/', rest.len) : NULL;
    if (!slash) {
        return KEDGE_E_NOT_FOUND;
    }
    struct kedge_view name = kedge_view_of(rest.ptr, (size_t)(slash - rest.ptr));
    rest = kedge_view_of(slash + 1, rest.len - name.len - 1);
    int err = find_log(h, reader, name, &a);
    if (!err && kedge_tile_parse(rest, &a.tile) == KEDGE_OK) {
        a.kind = a.tile.kind == KEDGE_TILE_HASHES ? KEDGE_RESOURCE_TILE : KEDGE_RESOURCE_BUNDLE;
    } else if (!err && skip(&rest, "blob/")) {
        a.kind = KEDGE_RESOURCE_BLOB;
        err = kedge_hash_from_hex(rest, &a.blob);
    } else if (!err && !kedge_view_eq(rest, kedge_view_str("checkpoint"))) {
        err = KEDGE_E_NOT_FOUND;
    }
    if (err) {
        return KEDGE_E_NOT_FOUND;
    }
    *ret = a;
    return KEDGE_OK;
}

/* ---- bundles ---- */

/* A window over bytes that come one after the other. */
struct window {
    uint64_t offset, at;   /* where it begins; how much has come */
    uint8_t *out;          /* len bytes; or */
    struct kedge_buf *buf; /* this, up to what it takes */
    size_t len, got;
};

/* Takes from the stream only what falls into the window. The stream itself is made anew for each
 * piece: a bundle can be 256 entries of 64 KiB, and holding it for slow readers would cost 16 MiB
 * each. */
static void put(struct window *w, const uint8_t *ptr, size_t len)
{
    uint64_t from = w->at, end = w->at + len;
    w->at = end;
    if (end <= w->offset || w->got == w->len || len == 0) {
        return;
    }
    size_t skipped = from < w->offset ? (size_t)(w->offset - from) : 0;
    size_t n = len - skipped < w->len - w->got ? len - skipped : w->len - w->got;
    if (w->buf) {
        kedge_buf_put(w->buf, ptr + skipped, n);
    } else {
        memcpy(w->out + w->got, ptr + skipped, n);
    }
    w->got += n;
}

/* Entries as they pass by on their way into a bundle. That bundle stays empty: all its records are of length
 * 0, and what the reader gets is made here, so that memory does not depend on its size. */
struct collect {
    const struct kedge_resource_ask *ask;
    struct window window;
    int err;
};

static struct kedge_main_viewer viewer_of(const struct kedge_resource_ask *a)
{
    return (struct kedge_main_viewer){
        .origin = a->viewer->log.origin, .salted = &a->viewer->salted, .own = a->viewer->log.ledger};
}

/* The length is in 16 bits before each entry (tlog-tiles). False: the ledger's own bundle stays
 * empty. */
static bool collect_entry(void *arg, uint64_t index, struct kedge_view entry)
{
    struct collect *c = arg;
    bool may = true;
    if (c->err) {
        return false;
    }
    if (c->ask->viewer) {
        struct kedge_main_viewer viewer = viewer_of(c->ask);
        c->err = kedge_main_view_entry(c->ask->main_view, &viewer, index, entry, &may);
    }
    size_t len = may ? entry.len : 0;
    const uint8_t head[2] = {(uint8_t)(len >> 8), (uint8_t)len};
    put(&c->window, head, sizeof head);
    put(&c->window, entry.ptr, len);
    return false;
}

/* One pass over the entries; *ret_size: of the whole bundle. */
static int walk_bundle(const struct kedge_resource_ask *a, struct window window, uint64_t *ret_size)
{
    struct kedge_buf scrap;
    struct collect c = {.ask = a, .window = window, .err = KEDGE_OK};
    kedge_buf_init(&scrap, 2 * KEDGE_TILE_WIDTH);
    int err = kedge_ledger_bundle(a->log->ledger, a->tile.index, a->tile.width, collect_entry, &c, &scrap);
    kedge_buf_deinit(&scrap);
    *ret_size = c.window.at;
    return err ? err : c.err;
}

/* ---- blobs ---- */

/* Read and not mapped: where the disk fails, a read is an error for one reader, and a map a signal for the
 * whole coordinator. */
static int open_blob(struct kedge_resource *r)
{
    const struct kedge_resource_ask *a = &r->ask;
    char path[KEDGE_PATH_MAX];
    struct kedge_blob_at at;
    if (a->viewer) {
        bool may = true;
        struct kedge_main_viewer viewer = viewer_of(a);
        KEDGE_TRY(kedge_main_view_blob(a->main_view, &viewer, &a->blob, &may));
        KEDGE_TRY(may ? KEDGE_OK : KEDGE_E_NOT_FOUND);
    }
    int err = kedge_blobs_at(a->log->blobs, &a->blob, path, &at);
    if (!err) {
        err = kedge_blob_file_open(&at, KEDGE_BLOB_READ, &r->file, NULL);
    }
    if (err == KEDGE_E_NOT_FOUND && a->pruned && kedge_pruned_has(kedge_buf_view(a->pruned), &a->blob)) {
        err = KEDGE_E_WITHHELD;
    }
    r->size = err ? 0 : r->file.size;
    return err;
}

/* ---- checkpoints ---- */

/* Where the note's signatures begin, after the empty line; 0: nowhere. A note is text, an empty
 * line, signatures (c2sp.org/signed-note); two notes are about the same checkpoint if their texts
 * are equal, whatever signatures they have. */
static size_t text_len(struct kedge_view note)
{
    for (size_t i = 1; i < note.len; i++) {
        if (note.ptr[i] == '\n' && note.ptr[i - 1] == '\n') {
            return i + 1;
        }
    }
    return 0;
}

/* The newest checkpoint, with its witnesses' cosignatures when those of this very one have come (witness.c
 * keeps them). */
static int read_checkpoint(const struct kedge_resource_ask *a, struct kedge_buf *ret)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf cosigned KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&cosigned, KEDGE_NOTE_MAX);
    KEDGE_TRY(kedge_ledger_checkpoint(a->log->ledger, ret, NULL));
    const char *tenant = a->log->tenant.s;
    int err = tenant[0] ? kedge_state_path(path, NULL, a->state, "tenants/%s/cosigned.note", tenant)
                        : kedge_state_path(path, NULL, a->state, "main/cosigned.note");
    if (err || kedge_file_read(path, &cosigned, NULL) != KEDGE_OK) {
        return ret->err; /* none is no error: there need be no witness */
    }
    size_t len = text_len(kedge_buf_view(ret));
    if (len > 0 && len <= cosigned.len
        && kedge_view_eq(kedge_view_of(cosigned.ptr, len), kedge_view_of(ret->ptr, len))) {
        kedge_buf_clear(ret);
        kedge_buf_put(ret, cosigned.ptr, cosigned.len);
    }
    return ret->err;
}

/* ---- all ---- */

int kedge_resource_open(const struct kedge_resource_ask *ask, struct kedge_resource *ret)
{
    struct kedge_resource r = {.ask = *ask, .file = {.fd = -1}};
    struct kedge_ledger *l = ask->log->ledger;
    const struct kedge_tile *t = &ask->tile;
    int err = KEDGE_E_BUG;
    kedge_buf_init(&r.kept, KEDGE_RESOURCE_KEEP_MAX);
    switch (ask->kind) {
    case KEDGE_RESOURCE_CHECKPOINT:
        err = read_checkpoint(ask, &r.kept);
        r.size = r.kept.len;
        break;
    case KEDGE_RESOURCE_TILE:
        err = kedge_ledger_tile(l, t->level, t->index, t->width, &r.kept);
        r.size = r.kept.len;
        break;
    case KEDGE_RESOURCE_BUNDLE:
        err = walk_bundle(ask, (struct window){.buf = &r.kept, .len = KEDGE_RESOURCE_KEEP_MAX}, &r.size);
        if (!err) {
            err = r.kept.err;
        }
        break;
    case KEDGE_RESOURCE_BLOB:
        err = open_blob(&r);
        break;
    }
    if (err) {
        kedge_resource_close(&r);
        return err;
    }
    *ret = r;
    return KEDGE_OK;
}

/* What fits was kept when it was opened. A longer bundle is walked again up to the piece that is
 * wanted; the size must come out the same, since a full bundle never changes. */
int kedge_resource_read(const struct kedge_resource *r, uint64_t offset, uint8_t *out, size_t len)
{
    if (offset > r->size || len > r->size - offset) {
        return KEDGE_E_ARG;
    }
    if (len == 0) {
        return KEDGE_OK;
    }
    if (r->ask.kind == KEDGE_RESOURCE_BLOB) {
        return kedge_blob_file_read(&r->file, offset, out, len);
    }
    if (offset + len <= r->kept.len) {
        memcpy(out, r->kept.ptr + offset, len);
        return KEDGE_OK;
    }
    uint64_t size = 0;
    int err = walk_bundle(&r->ask, (struct window){.offset = offset, .out = out, .len = len}, &size);
    return !err && size != r->size ? KEDGE_E_BUG : err;
}

void kedge_resource_close(struct kedge_resource *r)
{
    kedge_blob_file_close(&r->file);
    kedge_buf_deinit(&r->kept);
}
