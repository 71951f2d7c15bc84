/* Order of one call: checkpoint · compare with what the copy has · window by window: leaf hashes, proof that
 * they extend the copy towards the signed root, entries, store. A window bounds the memory; the proof in
 * front of each means that a crash leaves a copy of what was signed. */
#include "chain/follow/follow.h"

#include <string.h>

#include "chain/follow/evidence.h"
#include "chain/follow/remote.h"
#include "chain/log/checkpoint.h"
#include "chain/store/replica.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { WINDOW = 64 * KEDGE_TILE_WIDTH }; /* leaves, whole tiles: half a MiB of hashes */

struct run {
    const struct kedge_follow *f;
    struct kedge_diag *reterr;
    struct kedge_buf note; /* the log's newest checkpoint */
    struct kedge_checkpoint target;
    struct kedgei_remote remote;
    struct kedge_buf bundle;
    struct kedge_hash leaves[WINDOW];
    struct kedge_replica_entry entries[KEDGE_TILE_WIDTH];
    struct kedge_view records[KEDGE_TILE_WIDTH];
};

static const char *origin_of(const struct run *r)
{
    return r->f->vkey.name;
}

static int get_checkpoint(struct run *r)
{
    kedge_buf_clear(&r->note);
    int err = r->f->source.fetch(r->f->source.arg, "checkpoint", &r->note, r->reterr);
    if (err) {
        return kedge_diag_wrap(r->reterr, err, "log %s: checkpoint", origin_of(r));
    }
    err = kedge_checkpoint_open(kedge_buf_view(&r->note), kedge_view_str(origin_of(r)), &r->f->vkey, 1,
                                &r->target, NULL);
    return err ? kedge_diag_set(
               r->reterr, err == KEDGE_E_NOMEM ? err : KEDGE_E_VERIFY,
               "log %s: its checkpoint is malformed or not signed by the key that is trusted", origin_of(r))
               : KEDGE_OK;
}

/* Leaf hashes [from, to) into r->leaves, and the frontier with them. */
static int get_leaves(struct run *r, uint64_t from, uint64_t to, struct kedge_frontier *frontier)
{
    for (uint64_t i = from; i < to;) {
        const struct kedgei_remote_tile *tile;
        size_t at = (size_t)(i % KEDGE_TILE_WIDTH);
        int err = kedgei_remote_tile(&r->remote, 0, i / KEDGE_TILE_WIDTH, &tile);
        for (; !err && i < to && at < tile->width; at++, i++) {
            r->leaves[i - from] = tile->hashes[at];
            err = kedge_frontier_append(frontier, &tile->hashes[at]);
        }
        if (err) {
            return err;
        }
    }
    return KEDGE_OK;
}

/* That the tree of the frontier, which is the copy and the window after it, is the signed one or a prefix
 * of it. One consistency proof shows both that the copy is of the same history and that the window's leaf
 * hashes are those that the log signed. */
static int prove(struct run *r, const struct kedge_frontier *frontier)
{
    struct kedge_hash root;
    struct kedge_path path = {.count = 0};
    kedge_frontier_root(frontier, &root);
    KEDGE_TRY(frontier->size == r->target.size
                  ? KEDGE_OK
                  : kedge_consistency_prove(kedgei_remote_subtree, &r->remote, frontier->size, r->target.size,
                                            &path));
    return kedge_consistency_verify(frontier->size, r->target.size, &root, &r->target.root, path.hashes,
                                    path.count);
}

/* Entries [from, to) of one tile, whose leaf hashes are proven. */
static int store_tile(struct run *r, uint64_t from, uint64_t to, const struct kedge_hash *leaves)
{
    uint64_t index = from / KEDGE_TILE_WIDTH;
    size_t skip = (size_t)(from % KEDGE_TILE_WIDTH), count = (size_t)(to - from);
    uint16_t width = kedge_tile_width(0, index, r->target.size);
    kedge_buf_clear(&r->bundle);
    KEDGE_TRY(kedgei_remote_bundle(&r->remote, index, width, &r->bundle));
    int err = kedge_bundle_decode(kedge_buf_view(&r->bundle), width, r->records);
    if (err && width < KEDGE_TILE_WIDTH) { /* the full bundle in the place of a partial one */
        err = kedge_bundle_decode(kedge_buf_view(&r->bundle), KEDGE_TILE_WIDTH, r->records);
    }
    if (err) {
        return kedge_diag_set(r->reterr, KEDGE_E_VERIFY, "log %s: entry bundle %llu is malformed",
                              origin_of(r), (unsigned long long)index);
    }
    for (size_t i = 0; i < count; i++) {
        if (r->f->whole && r->records[skip + i].len == 0) {
            return kedge_diag_set(r->reterr, KEDGE_E_VERIFY,
                                  "log %s: entry %llu is withheld from a reader that may read all of it",
                                  origin_of(r), (unsigned long long)(from + i));
        }
        r->entries[i] = (struct kedge_replica_entry){r->records[skip + i], leaves[i]};
    }
    struct kedge_view note = to == r->target.size ? kedge_buf_view(&r->note) : kedge_view_of(NULL, 0);
    return kedge_replica_extend(r->f->copy, r->entries, count, note, r->reterr);
}

static int store_window(struct run *r, uint64_t from, uint64_t to)
{
    for (uint64_t at = from; at < to;) {
        uint64_t end = (at / KEDGE_TILE_WIDTH + 1) * KEDGE_TILE_WIDTH;
        end = end < to ? end : to;
        KEDGE_TRY(store_tile(r, at, end, &r->leaves[at - from]));
        at = end;
        if (r->f->progress) {
            r->f->progress(r->f->progress_arg, at, r->target.size);
        }
    }
    return KEDGE_OK;
}

/* A window ends where a tile ends, so that no tile and no bundle is fetched for two windows. Where a
 * proof fails, evidence.c judges whether the log contradicts itself. Other errors, of the network or of
 * the store, are passed on, and the next call goes on from what is stored. */
static int extend(struct run *r, struct kedge_buf *ret_evidence)
{
    uint64_t from = kedge_ledger_size(r->f->copy);
    while (from < r->target.size) {
        uint64_t to = (from / KEDGE_TILE_WIDTH) * KEDGE_TILE_WIDTH + WINDOW;
        struct kedge_frontier frontier;
        to = to < r->target.size ? to : r->target.size;
        kedge_replica_frontier(r->f->copy, &frontier);
        int err = get_leaves(r, from, to, &frontier);
        if (!err) {
            err = prove(r, &frontier);
        }
        if (err == KEDGE_E_VERIFY) {
            return kedgei_follow_convict(r->f, &r->remote, kedge_buf_view(&r->note), &r->target, ret_evidence,
                                         r->reterr);
        }
        if (!err) {
            err = store_window(r, from, to);
        }
        if (err) {
            return err;
        }
        from = to;
    }
    return KEDGE_OK;
}

/* Stores the checkpoint of the copy's size, unless it is the very one that is stored. */
static int store_note(struct run *r)
{
    struct kedge_buf stored;
    uint64_t size = 0;
    kedge_buf_init(&stored, KEDGE_NOTE_MAX);
    int err = kedge_ledger_checkpoint(r->f->copy, &stored, &size);
    bool is_stored =
        !err && size == r->target.size && kedge_view_eq(kedge_buf_view(&stored), kedge_buf_view(&r->note));
    kedge_buf_deinit(&stored);
    return is_stored ? KEDGE_OK
                     : kedge_replica_extend(r->f->copy, NULL, 0, kedge_buf_view(&r->note), r->reterr);
}

/* A checkpoint of no more entries than the copy has. Another root than the copy's own at that size is a
 * second history. The same root at a smaller size than was signed before is no forgery but a loss: the
 * operator restored an old backup, and if it goes on from there, the log will have two histories. */
static int compare(struct run *r, uint64_t known, struct kedge_buf *ret_evidence)
{
    struct kedge_hash root;
    uint64_t size = r->target.size;
    int err = kedge_ledger_root(r->f->copy, size, &root);
    if (err) {
        return kedge_diag_set(r->reterr, err, "copy of log %s: %s", origin_of(r), kedge_strerror(err));
    }
    if (!kedge_hash_eq(&root, &r->target.root)) {
        return kedgei_follow_convict(r->f, NULL, kedge_buf_view(&r->note), &r->target, ret_evidence,
                                     r->reterr);
    }
    if (size < known) {
        kedge_buf_put(ret_evidence, r->note.ptr, r->note.len);
        (void)kedge_diag_set(r->reterr, KEDGE_E_SHORTER,
                             "log %s shows %llu entries, and signed %llu before: an old backup was restored",
                             origin_of(r), (unsigned long long)size, (unsigned long long)known);
        (void)kedge_diag_hint(r->reterr, "the copy has what is missing; tell the coordinator's operator");
        return KEDGE_E_SHORTER;
    }
    return size == kedge_ledger_size(r->f->copy)
               ? store_note(r)
               : KEDGE_OK; /* a copy that was cut short on its way to a later checkpoint: ask again */
}

int kedge_follow_log(const struct kedge_follow *f, struct kedge_follow_result *ret,
                     struct kedge_buf *ret_evidence, struct kedge_diag *reterr)
{
    struct run *r = kedge_mem_new(1, sizeof *r);
    if (!r) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "log %s: out of memory", f->vkey.name);
    }
    r->f = f;
    r->reterr = reterr;
    kedge_buf_init(&r->note, KEDGE_NOTE_MAX);
    kedge_buf_init(&r->bundle, KEDGE_BUNDLE_BYTES_MAX);
    *ret = (struct kedge_follow_result){.before = kedge_ledger_size(f->copy)};
    uint64_t known = 0;
    int err = kedge_ledger_checkpoint(f->copy, NULL, &known);
    err = err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
    if (!err) {
        err = get_checkpoint(r);
    }
    if (!err) {
        r->remote.source = &f->source;
        r->remote.reterr = reterr;
        r->remote.origin = f->vkey.name;
        r->remote.size = r->target.size;
        err = r->target.size <= ret->before ? compare(r, known, ret_evidence) : extend(r, ret_evidence);
    }
    ret->after = kedge_ledger_size(f->copy);
    kedge_buf_deinit(&r->note);
    kedge_buf_deinit(&r->bundle);
    kedge_mem_free(r);
    return err;
}
