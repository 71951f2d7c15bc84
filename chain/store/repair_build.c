/* Entries come from the copy; those that it withholds or does not have yet, from the damaged store, read in
 * children a stretch at a time: a stretch that kills its child is asked for one by one. None of them is
 * believed: the tree's root was signed. */
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/store/blob/guard.h"
#include "chain/store/repair_impl.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum {
    STRETCH = 256,
    STRETCH_BYTES = STRETCH * (KEDGE_ENTRY_MAX + 8),
    STRETCH_MS = 10000,
    NOTES_BYTES = 8 << 20, /* of checkpoints at a time: a log may have millions */
    BATCH_BYTES = 4 << 20,
};

/* ---- the damaged store ---- */

struct salvage {
    const char *store, *origin;
    uint64_t from, to;
};

static const struct kedge_kv_lmdb_options salvage_options = {.read_only = true, .no_lock = true};

/* u32 length and bytes of each entry, length 0 where there is none. Runs in the child. What it finds goes
 * through a pipe as bytes, so the parent never touches the damaged mapping. */
static int salvage_entries(void *arg, struct kedge_buf *ret_out, struct kedge_diag *d)
{
    const struct salvage *s = arg;
    struct kedge_kv *kv;
    struct kedge_kv_tx *tx;
    struct kedge_buf room;
    kedge_buf_init(&room, KEDGE_ENTRY_MAX);
    KEDGE_TRY(kedge_kv_lmdb_open(s->store, &salvage_options, &kv, d));
    KEDGE_TRY(kedge_kv_begin(kv, false, &tx, d));
    for (uint64_t i = s->from; i < s->to; i++) {
        struct kedgei_key key = kedgei_key_index(i);
        struct kedge_view entry = kedge_view_of(NULL, 0);
        int bad = kedge_kv_peek(tx, KEDGE_KV_ENTRY, kedgei_key_view(&key), &entry);
        bad = bad ? bad : kedge_entry_load(entry, &room, &entry);
        if (bad == KEDGE_E_NOMEM) {
            return bad;
        }
        bool usable = !bad && entry.len > 0 && entry.len <= KEDGE_ENTRY_MAX;
        kedge_buf_put_u32(ret_out, usable ? (uint32_t)entry.len : 0);
        if (usable) {
            kedge_buf_put(ret_out, entry.ptr, entry.len);
        }
        KEDGE_TRY(ret_out->err);
    }
    return KEDGE_OK;
}

/* Entries [from, to) of the damaged store into out, as above; what cannot be read is empty. A stretch
 * that failed is asked for entry by entry, each in a child of its own: one bad page costs the entries on
 * it and not its 255 neighbours. */
static int salvage(const struct kedgei_rebuild *b, uint64_t from, uint64_t to, struct kedge_buf *out)
{
    struct salvage s = {b->store, b->r->origin, from, to};
    kedge_buf_clear(out);
    int err = kedge_store_guarded(salvage_entries, &s, STRETCH_MS, out, NULL);
    if (!err || err == KEDGE_E_NOMEM) {
        return err;
    }
    kedge_buf_clear(out);
    for (uint64_t i = from; i < to && out->err == KEDGE_OK; i++) {
        size_t start = out->len;
        s = (struct salvage){b->store, b->r->origin, i, i + 1};
        err =
            to - from > 1 ? kedge_store_guarded(salvage_entries, &s, STRETCH_MS, out, NULL) : KEDGE_E_CORRUPT;
        if (err) {
            out->len = start;
            kedge_buf_put_u32(out, 0);
        }
    }
    return out->err;
}

/* ---- checkpoints, wherever they are ---- */

/* u64 size, u32 length, note: as many as fit. */
struct notes {
    struct kedge_view origin;
    struct kedge_buf *out, room;
};

/* Checkpoints that cannot be read are passed over here and not refused: whether one counts is decided by
 * its signature and root (raise_goal, put_head). */
static int put_note(void *arg, struct kedge_view key, struct kedge_view stored)
{
    struct notes *n = arg;
    struct kedge_buf *out = n->out;
    struct kedge_view note;
    if (key.len != 8 || stored.len > KEDGE_NOTE_MAX) {
        return KEDGE_OK;
    }
    int err = kedge_head_load(n->origin, kedge_load_be64(key.ptr), stored, &n->room, &note);
    if (err) {
        return err == KEDGE_E_NOMEM ? err : KEDGE_OK;
    }
    if (out->len + key.len + sizeof(uint32_t) + note.len > NOTES_BYTES) {
        return KEDGE_E_FULL;
    }
    kedge_buf_put(out, key.ptr, key.len);
    kedge_buf_put_u32(out, (uint32_t)note.len);
    kedge_buf_put(out, note.ptr, note.len);
    return out->err;
}

/* Those of size `from` and above. */
static int read_notes(struct kedge_kv *kv, const char *origin, uint64_t from, struct kedge_buf *out,
                      struct kedge_diag *d)
{
    struct notes n = {.origin = kedge_view_str(origin), .out = out};
    struct kedgei_key least = kedgei_key_index(from);
    struct kedge_kv_tx *tx;
    kedge_buf_init(&n.room, KEDGE_NOTE_MAX);
    int err = kedge_kv_begin(kv, false, &tx, d);
    if (!err) {
        err = kedge_kv_scan(tx, KEDGE_KV_HEAD, kedge_view_of(NULL, 0), kedgei_key_view(&least), put_note, &n);
        kedge_kv_abort(tx);
    }
    kedge_buf_deinit(&n.room);
    return err == KEDGE_E_FULL ? KEDGE_OK : err;
}

static int salvage_notes(void *arg, struct kedge_buf *ret_out, struct kedge_diag *d)
{
    const struct salvage *s = arg;
    struct kedge_kv *kv;
    int err = kedge_kv_lmdb_open(s->store, &salvage_options, &kv, d);
    if (!err) {
        err = read_notes(kv, s->origin, s->from, ret_out, d);
    }
    return err == KEDGE_E_CORRUPT ? KEDGE_OK : err; /* up to the first that cannot be read */
}

static int read_notes_here(const struct kedgei_rebuild *b, uint64_t from, struct kedge_buf *out)
{
    struct salvage s = {b->store, b->r->origin, from, 0};
    int err = kedge_store_guarded(salvage_notes, &s, STRETCH_MS, out, NULL);
    if (err && err != KEDGE_E_NOMEM) {
        kedge_buf_clear(out); /* then there are none */
    }
    return err == KEDGE_E_NOMEM ? err : KEDGE_OK;
}

typedef int take_note(void *arg, uint64_t size, struct kedge_view note);

/* Checkpoints of size `from` and above in either store, ascending, a piece of them in memory. In pieces
 * of NOTES_BYTES, each from the size after the last one seen: a log of millions of commits has gigabytes
 * of checkpoints. A piece that goes backwards would loop for ever, so it is damage. */
static int walk_notes(const struct kedgei_rebuild *b, bool in_copy, uint64_t from, take_note *take, void *arg)
{
    struct kedge_buf notes;
    kedge_buf_init(&notes, NOTES_BYTES);
    int err = KEDGE_OK;
    for (bool more = true; more && !err;) {
        kedge_buf_clear(&notes);
        err = in_copy ? read_notes(b->copy->kv, b->r->origin, from, &notes, NULL)
                      : read_notes_here(b, from, &notes);
        struct kedge_reader r = kedge_reader_of(kedge_buf_view(&notes));
        more = false;
        while (!err && r.rest.len > 0) {
            uint64_t size = kedge_read_u64(&r);
            struct kedge_view note = kedge_read_bytes(&r, kedge_read_u32(&r));
            err = r.failed || size < from ? KEDGE_E_CORRUPT : take(arg, size, note);
            more = size < UINT64_MAX;
            from = more ? size + 1 : from;
        }
    }
    kedge_buf_deinit(&notes);
    return err;
}

static int make_vkey(const struct kedgei_rebuild *b, struct kedge_vkey *ret)
{
    return kedge_vkey_make(kedge_view_str(b->r->origin), KEDGE_KEY_ED25519, &b->r->key->public, ret);
}

/* A checkpoint by the log's key is proof that this size was signed, wherever it was found, so it raises
 * the goal even when it comes from the damaged store. */
static int raise_goal(void *arg, uint64_t size, struct kedge_view note)
{
    struct kedgei_rebuild *b = arg;
    struct kedge_checkpoint c;
    struct kedge_vkey vkey;
    KEDGE_TRY(make_vkey(b, &vkey));
    if (size > b->goal.size
        && kedge_checkpoint_open(note, kedge_view_str(b->r->origin), &vkey, 1, &c, NULL) == KEDGE_OK
        && c.size == size) {
        b->goal = (struct kedgei_high_water){size, c.root};
    }
    return KEDGE_OK;
}

int kedgei_rebuild_raise(struct kedgei_rebuild *b)
{
    return walk_notes(b, false, b->goal.size + 1, raise_goal, b);
}

/* ---- entries, wherever they are ---- */

/* A walk over all entries in order, the damaged store's a stretch ahead. */
struct walk {
    struct kedgei_rebuild *b;
    struct kedge_buf stretch;
    uint64_t stretch_from, stretch_to;
    struct kedge_diag *reterr;
    int (*take)(struct walk *w, uint64_t index, struct kedge_view entry, const struct kedge_hash *leaf);
    void *arg;
};

/* The damaged store's entry; empty when it has none. Entries are asked for in ascending order, so the
 * next stretch begins at the one that is missing from this. */
static int entry_here(struct walk *w, uint64_t index, struct kedge_view *ret)
{
    uint64_t size = w->b->goal.size;
    if (index < w->stretch_from || index >= w->stretch_to) {
        w->stretch_from = index;
        w->stretch_to = size - index < STRETCH ? size : index + STRETCH;
        KEDGE_TRY(salvage(w->b, w->stretch_from, w->stretch_to, &w->stretch));
    }
    struct kedge_reader r = kedge_reader_of(kedge_buf_view(&w->stretch));
    for (uint64_t i = w->stretch_from; i <= index; i++) {
        *ret = kedge_read_bytes(&r, kedge_read_u32(&r));
    }
    return r.failed ? KEDGE_E_BUG : KEDGE_OK;
}

/* Within the copy's size its tile says what hash the entry must have. Beyond it nothing does until the
 * root is compared; a wrong entry is then found by kedgei_rebuild_check. */
static int take_here(struct walk *w, uint64_t index, const struct kedge_hash *expected)
{
    struct kedge_view entry = kedge_view_of(NULL, 0);
    struct kedge_hash leaf;
    int err = entry_here(w, index, &entry);
    if (err) {
        return kedge_diag_set(w->reterr, err, "%s: %s", w->b->store, kedge_strerror(err));
    }
    if (entry.len > 0) {
        kedge_merkle_leaf(entry, &leaf);
    }
    if (entry.len == 0 || (expected && !kedge_hash_eq(&leaf, expected))) {
        (void)kedge_diag_set(w->reterr, KEDGE_E_SHORTER,
                             expected
                                 ? "%s: entry %llu is withheld in this copy, and damaged here"
                                 : "%s: this copy ends before entry %llu, which was signed and is damaged "
                                   "here: the copy is too old",
                             w->b->r->from, (unsigned long long)index);
        (void)kedge_diag_hint(w->reterr, "name another replica or backup; nothing was changed");
        return KEDGE_E_SHORTER;
    }
    w->b->from_here++;
    return w->take(w, index, entry, &leaf);
}

static int visit_copy(void *arg, uint64_t index, struct kedge_view entry)
{
    struct walk *w = arg;
    struct kedge_hash leaf;
    if (index >= w->b->goal.size) {
        return KEDGE_OK;
    }
    if (entry.len > 0) {
        kedge_merkle_leaf(entry, &leaf);
        return w->take(w, index, entry, &leaf);
    }
    int err = kedge_ledger_leaf_hash(w->b->copy, index, &leaf);
    return err ? err : take_here(w, index, &leaf);
}

static int walk_all(struct walk *w)
{
    uint64_t size = kedge_ledger_size(w->b->copy);
    w->b->from_here = 0;
    kedge_buf_init(&w->stretch, STRETCH_BYTES);
    int err = kedge_ledger_for_each(w->b->copy, 0, visit_copy, w);
    for (uint64_t i = size; i < w->b->goal.size && !err; i++) {
        err = take_here(w, i, NULL);
    }
    kedge_buf_deinit(&w->stretch);
    if (err && !w->reterr->text[0]) {
        (void)kedge_diag_set(w->reterr, err, "%s: %s", w->b->store, kedge_strerror(err));
    }
    return err;
}

/* ---- first walk: is it the tree that was signed? ---- */

static int grow_frontier(struct walk *w, uint64_t index, struct kedge_view entry,
                         const struct kedge_hash *leaf)
{
    (void)index;
    (void)entry;
    return kedge_frontier_append(w->arg, leaf);
}

/* The one proof that all entries are those of the signed log, in order and complete. It is a walk of its
 * own, so that a copy which does not suffice costs no half-built store. */
int kedgei_rebuild_check(struct kedgei_rebuild *b, struct kedge_diag *reterr)
{
    struct kedge_frontier frontier;
    struct kedge_hash root;
    struct kedge_diag d = {.text = ""};
    memset(&frontier, 0, sizeof frontier);
    struct walk w = {.b = b, .reterr = &d, .take = grow_frontier, .arg = &frontier};
    int err = walk_all(&w);
    if (err) {
        if (reterr) {
            *reterr = d;
        }
        return err;
    }
    kedge_frontier_root(&frontier, &root);
    if (!kedge_hash_eq(&root, &b->goal.root)) {
        (void)kedge_diag_set(
            reterr, KEDGE_E_SHORTER,
            "%s: this copy is too old: it ends at entry %llu, and of what was signed behind that, up to "
            "%llu, something is damaged here; or it is of another history",
            b->r->from, (unsigned long long)kedge_ledger_size(b->copy), (unsigned long long)b->goal.size);
        (void)kedge_diag_hint(reterr, "name a newer replica or backup; nothing was changed");
        return KEDGE_E_SHORTER;
    }
    return KEDGE_OK;
}

/* ---- second walk: the new store ---- */

struct filling {
    struct kedge_kv *kv;
    struct kedge_kv_tx *tx; /* under way; NULL: none */
    struct kedgei_state state;
    struct kedge_hash leaves[KEDGE_APPEND_MAX];
    size_t staged, bytes;
    struct kedge_buf key, stored;
    struct kedge_entry_packer *packer;
};

static int commit(struct filling *f, struct kedge_diag *d)
{
    if (!f->tx) {
        return KEDGE_OK;
    }
    uint64_t base = f->state.frontier.size - f->staged;
    int err = kedgei_tiles_append(f->tx, base, f->leaves, f->staged);
    kedge_frontier_root(&f->state.frontier, &f->state.root);
    if (!err) {
        err = kedgei_state_write(f->tx, &f->state);
    }
    struct kedge_kv_tx *tx = f->tx;
    f->tx = NULL;
    f->staged = f->bytes = 0;
    return kedge_kv_end(tx, err, d);
}

/* Keys and references follow from the entries (index), so the new tables agree with the log whatever the
 * old ones had. A second statement under one idempotency key cannot be in a sound log and is an error. */
static int put_pointer(struct filling *f, enum kedge_kv_table table, struct kedge_view key, uint64_t index,
                       const struct kedge_hash *leaf, uint64_t *count)
{
    uint8_t pointer[KEDGEI_POINTER_LEN];
    kedgei_pointer_encode(key, index, leaf, pointer);
    int err = kedge_kv_put(f->tx, table, key, kedge_view_of(pointer, sizeof pointer), KEDGE_KV_PUT_IF_ABSENT);
    *count += err == KEDGE_OK;
    return err == KEDGE_E_EXISTS && table == KEDGE_KV_REF ? KEDGE_OK
                                                          : err; /* an earlier entry was the first */
}

/* Batches are bound in entries and bytes, which keeps LMDB's dirty pages few. All forms become the newest
 * one: the new store has the present schema. */
static int put_entry(struct walk *w, uint64_t index, struct kedge_view entry, const struct kedge_hash *leaf)
{
    struct filling *f = w->arg;
    const struct kedge_repair *r = w->b->r;
    struct kedge_hash refs[KEDGE_APPEND_REFS_MAX];
    size_t ref_count = 0;
    struct kedgei_key key = kedgei_key_index(index);
    KEDGE_TRY(f->tx ? KEDGE_OK : kedge_kv_begin(f->kv, true, &f->tx, w->reterr));
    kedge_buf_clear(&f->key);
    if (r->index) {
        KEDGE_TRY(r->index(r->index_arg, entry, &f->key, refs, &ref_count));
    }
    KEDGE_TRY(kedge_entry_store(f->packer, entry, &f->stored));
    KEDGE_TRY(kedge_kv_put(f->tx, KEDGE_KV_ENTRY, kedgei_key_view(&key), kedge_buf_view(&f->stored),
                           KEDGE_KV_APPEND));
    if (f->key.len > 0) {
        KEDGE_TRY(put_pointer(f, KEDGE_KV_IDEM, kedge_buf_view(&f->key), index, leaf, &f->state.idem_count));
    }
    for (size_t i = 0; i < ref_count; i++) {
        KEDGE_TRY(put_pointer(f, KEDGE_KV_REF, kedge_view_of(refs[i].b, KEDGE_HASH_LEN), index, leaf,
                              &f->state.ref_count));
    }
    KEDGE_TRY(kedge_frontier_append(&f->state.frontier, leaf));
    f->leaves[f->staged++] = *leaf;
    f->bytes += entry.len;
    if (f->staged == KEDGE_APPEND_MAX || f->bytes >= BATCH_BYTES) {
        KEDGE_TRY(commit(f, w->reterr));
        if (r->progress) {
            r->progress(r->progress_arg, index + 1, w->b->goal.size);
        }
    }
    return KEDGE_OK;
}

/* A checkpoint joins when the log's key signed it for a prefix of this very tree. */
static int put_head(struct filling *f, const struct kedgei_rebuild *b, const struct kedge_vkey *vkey,
                    uint64_t size, struct kedge_view note)
{
    struct kedge_checkpoint checkpoint;
    struct kedge_hash root;
    struct kedgei_key key = kedgei_key_index(size);
    if (size > f->state.frontier.size
        || kedge_checkpoint_open(note, kedge_view_str(b->r->origin), vkey, 1, &checkpoint, NULL)
        || checkpoint.size != size || kedge_merkle_root(kedgei_tile_subtree, f->tx, size, &root)
        || !kedge_hash_eq(&root, &checkpoint.root)) {
        return KEDGE_OK;
    }
    note = kedgei_head_store(kedge_view_str(b->r->origin), size, note, &f->stored);
    int err = kedge_kv_put(f->tx, KEDGE_KV_HEAD, kedgei_key_view(&key), note, KEDGE_KV_PUT_IF_ABSENT);
    f->state.head_count += err == KEDGE_OK;
    return err == KEDGE_E_EXISTS ? KEDGE_OK : err;
}

struct heads {
    struct filling *f;
    const struct kedgei_rebuild *b;
    struct kedge_vkey vkey;
    struct kedge_diag *d;
};

static int take_head(void *arg, uint64_t size, struct kedge_view note)
{
    struct heads *h = arg;
    struct filling *f = h->f;
    KEDGE_TRY(f->tx ? KEDGE_OK : kedge_kv_begin(f->kv, true, &f->tx, h->d));
    KEDGE_TRY(put_head(f, h->b, &h->vkey, size, note));
    f->bytes += note.len;
    return f->bytes < BATCH_BYTES ? KEDGE_OK : commit(f, h->d);
}

/* Both copies', the damaged store's where they can be read at all. The damaged store's come last and only
 * where none of that size is there yet. */
static int put_all_heads(struct filling *f, const struct kedgei_rebuild *b, struct kedge_diag *d)
{
    struct heads h = {.f = f, .b = b, .d = d};
    KEDGE_TRY(make_vkey(b, &h.vkey));
    KEDGE_TRY(walk_notes(b, true, 0, take_head, &h));
    int err = walk_notes(b, false, 0, take_head, &h);
    return err ? err : commit(f, d);
}

/* An empty ledger with the log's identity, as any new one is made. */
static int make_empty(const struct kedgei_rebuild *b, const char *dir, struct filling *f,
                      struct kedge_diag *d)
{
    struct kedge_kv_lmdb_options options = {.create = true};
    struct kedge_ledger_options ledger = {.origin = b->r->origin, .key = b->r->key, .create = true};
    struct kedge_ledger *l;
    KEDGE_TRY(kedge_kv_lmdb_open(dir, &options, &f->kv, d));
    int err = kedge_ledger_open(f->kv, &ledger, &l, d);
    if (!err) {
        f->state = l->state;
        kedge_ledger_close(l);
    } else {
        kedge_kv_close(f->kv);
    }
    return err;
}

static int fill(struct walk *w, struct filling *f, struct kedge_diag *d)
{
    KEDGE_TRY(walk_all(w));
    KEDGE_TRY(commit(f, d));
    return put_all_heads(f, w->b, d);
}

int kedgei_rebuild_into(struct kedgei_rebuild *b, const char *dir, struct kedge_diag *reterr)
{
    struct kedge_diag d = {.text = ""};
    struct filling *f = kedge_mem_new(1, sizeof *f);
    if (!f) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: out of memory", dir);
    }
    struct walk w = {.b = b, .reterr = &d, .take = put_entry, .arg = f};
    kedge_buf_init(&f->key, KEDGE_IDEM_KEY_MAX);
    kedge_buf_init(&f->stored, KEDGE_ENTRY_STORED_MAX);
    f->packer = kedge_entry_packer_new(KEDGE_FORMS_SHORT);
    int err = make_empty(b, dir, f, &d);
    if (!err) {
        err = fill(&w, f, &d);
        kedge_kv_abort(f->tx);
        kedge_kv_close(f->kv);
    }
    if (err && !d.text[0]) {
        (void)kedge_diag_set(&d, err, "%s: %s", dir, kedge_strerror(err));
    }
    if (err && reterr) {
        *reterr = d;
    }
    kedge_entry_packer_free(f->packer);
    kedge_buf_deinit(&f->stored);
    kedge_buf_deinit(&f->key);
    kedge_mem_free(f);
    return err;
}
