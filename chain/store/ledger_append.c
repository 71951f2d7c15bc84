/* Appending: the writer's side of the ledger. Order of one append (a crash at any point loses nothing
 * that was answered): begin · re-check state · validate every batch · put entries, keys, references ·
 * read the new entries back and hash them again · tiles, frontier, state · compare the tiles' root with
 * the frontier's · commit · sign · raise the high-water mark · answer. Nothing is put for a batch before
 * all of it is known to be good. */
#include <string.h>

#include "chain/store/ledger_impl.h"
#include "common/base/try.h"

/* The writer's copy of the state: it becomes the handle's only after the commit, so readers never see a
 * size that a failed transaction took back. */
struct run {
    struct kedge_ledger *l;
    struct kedge_kv_tx *tx;
    struct kedgei_state state;         /* as it will be */
    uint64_t base;                     /* size before */
    size_t staged;                     /* new entries so far: leaves[0…staged) */
    struct kedge_hash *leaves;         /* of the transaction under way, KEDGE_APPEND_MAX */
    struct kedge_entry_packer *packer; /* NULL: entries are stored as they are */
    struct kedge_buf stored;           /* an entry as it is stored, and as it is read back */
};

/* A statement that is stored packed takes a third of the room, and 20 microseconds. When so many come
 * together that their number is what matters, they are stored as they are. */
enum { PACK_MOST = 64 };

/* Finds an idempotency key used earlier in the same batch; its place or `i` when there is none.
 * Quadratic, in a batch of at most KEDGE_APPEND_MAX items. */
static size_t find_twin(const struct kedge_ledger_batch *b, size_t i)
{
    if (b->items[i].idem_key.len > 0) {
        for (size_t j = 0; j < i; j++) {
            if (kedge_view_eq(b->items[j].idem_key, b->items[i].idem_key)) {
                return j;
            }
        }
    }
    return i;
}

/* Leaf hash of an entry that exists or is staged. */
static int leaf_of(const struct run *r, uint64_t index, struct kedge_hash *ret)
{
    if (index >= r->base) {
        *ret = r->leaves[index - r->base];
        return KEDGE_OK;
    }
    return kedgei_tile_subtree(r->tx, 0, index, ret);
}

/* Index under which the key is stored, its tag checked. KEDGE_E_NOT_FOUND. Batches of the same
 * transaction are staged but not committed; their keys are in the table already, so the bound is base +
 * staged. A tag that does not match is damage and not "not found": taken for absent, the statement would
 * be appended a second time. */
static int find_stored(const struct run *r, struct kedge_view idem_key, uint64_t *ret_index)
{
    struct kedge_view value;
    KEDGE_TRY(kedge_kv_peek(r->tx, KEDGE_KV_IDEM, idem_key, &value));
    uint64_t index = value.len == KEDGEI_POINTER_LEN ? kedge_load_be64(value.ptr) : UINT64_MAX;
    struct kedge_hash leaf;
    if (index >= r->base + r->staged || leaf_of(r, index, &leaf)) {
        return KEDGE_E_CORRUPT;
    }
    uint8_t expected[KEDGEI_POINTER_LEN];
    kedgei_pointer_encode(idem_key, index, &leaf, expected);
    if (!kedge_view_eq(value, kedge_view_of(expected, sizeof expected))) {
        return KEDGE_E_CORRUPT;
    }
    *ret_index = index;
    return KEDGE_OK;
}

/* Whether the item is well-formed, as a KEDGE error of the item. */
static int check_item(const struct kedge_ledger_append *item)
{
    if (item->entry.len > KEDGE_ENTRY_MAX || item->idem_key.len > KEDGE_IDEM_KEY_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    bool is_bad = item->entry.len == 0 || !item->entry.ptr || item->ref_count > KEDGE_APPEND_REFS_MAX
                  || (item->ref_count > 0 && !item->refs);
    return is_bad ? KEDGE_E_ARG : KEDGE_OK;
}

/* Decides what happens to each item of the batch, changing nothing in the store. A fault of the batch
 * goes to its err; the return value is for faults of the store. *ret_new: how many entries it adds. The
 * same key with the same entry is a repeated request, whose first answer was lost on the way: it gets the
 * old index, so sites and the coordinator may always send again. The same key with another entry is a
 * contradiction, and nothing of the batch is put. Leaf hashes of new entries go behind those staged,
 * where put_item and grow_tree find them. */
static int plan_batch(struct run *r, struct kedge_ledger_batch *b, size_t *ret_new)
{
    size_t fresh = 0;
    b->err = KEDGE_OK;
    for (size_t i = 0; i < b->count && !b->err; i++) {
        const struct kedge_ledger_append *item = &b->items[i];
        b->bad_item = i;
        b->err = check_item(item);
        if (b->err) {
            break;
        }
        struct kedge_hash leaf, other;
        kedge_merkle_leaf(item->entry, &leaf);
        uint64_t index;
        size_t twin = find_twin(b, i);
        int err = twin < i ? KEDGE_OK : KEDGE_E_NOT_FOUND;
        if (twin < i) {
            index = b->results[twin].index;
        } else if (item->idem_key.len > 0) {
            err = find_stored(r, item->idem_key, &index);
        }
        if (err == KEDGE_E_NOT_FOUND) {
            b->results[i] = (struct kedge_ledger_appended){r->base + r->staged + fresh, false};
            r->leaves[r->staged + fresh++] = leaf;
            continue;
        }
        if (!err) {
            err = leaf_of(r, index, &other);
        }
        if (err) {
            return err;
        }
        b->results[i] = (struct kedge_ledger_appended){index, true};
        b->err = kedge_hash_eq(&leaf, &other) ? KEDGE_OK : KEDGE_E_EXISTS;
    }
    *ret_new = b->err ? 0 : fresh;
    return KEDGE_OK;
}

/* Entries are put with APPEND and keys with PUT_IF_ABSENT: the plan says that neither is there, so a
 * record that is there all the same means that the table was written past its state, and the transaction
 * is given up as damage. Of references the first entry wins, because a blob is named by the statement
 * that brought it and later ones only mention it. */
static int put_item(struct run *r, const struct kedge_ledger_append *item, uint64_t index)
{
    const struct kedge_hash *leaf = &r->leaves[index - r->base];
    struct kedgei_key key = kedgei_key_index(index);
    uint8_t pointer[KEDGEI_POINTER_LEN];
    struct kedge_view value = kedge_view_of(pointer, sizeof pointer);
    const bool has_forms = r->l->forms != KEDGE_FORMS_AS_IS;
    int err = has_forms ? kedge_entry_store(r->packer, item->entry, &r->stored) : KEDGE_OK;
    struct kedge_view stored = has_forms ? kedge_buf_view(&r->stored) : item->entry;
    if (!err) {
        err = kedge_kv_put(r->tx, KEDGE_KV_ENTRY, kedgei_key_view(&key), stored, KEDGE_KV_APPEND);
    }
    if (!err && item->idem_key.len > 0) {
        kedgei_pointer_encode(item->idem_key, index, leaf, pointer);
        err = kedge_kv_put(r->tx, KEDGE_KV_IDEM, item->idem_key, value, KEDGE_KV_PUT_IF_ABSENT);
        r->state.idem_count++;
    }
    for (size_t i = 0; i < item->ref_count && !err; i++) {
        struct kedge_view digest = kedge_view_of(item->refs[i].b, KEDGE_HASH_LEN);
        kedgei_pointer_encode(digest, index, leaf, pointer);
        err = kedge_kv_put(r->tx, KEDGE_KV_REF, digest, value, KEDGE_KV_PUT_IF_ABSENT);
        if (err == KEDGE_E_EXISTS) {
            err = KEDGE_OK; /* an earlier entry was the first */
        } else {
            r->state.ref_count++;
        }
    }
    return err == KEDGE_E_EXISTS ? KEDGE_E_CORRUPT : err; /* the table is ahead of its own state */
}

static int put_batch(struct run *r, const struct kedge_ledger_batch *b, size_t fresh)
{
    for (size_t i = 0; i < b->count; i++) {
        if (!b->results[i].existing) {
            KEDGE_TRY(put_item(r, &b->items[i], b->results[i].index));
        }
    }
    r->staged += fresh;
    return KEDGE_OK;
}

/* The store's own bytes must have the hashes that enter the tree: memory errors stop here, before the
 * root. Bytes are read through the transaction and unpacked, so a bug in the packer or a flipped bit
 * between the caller's buffer and LMDB's page is found while the transaction can still be aborted. Once a
 * root is signed, a wrong entry could never be put right. */
static int rehash(struct run *r, struct kedge_diag *reterr)
{
    for (size_t i = 0; i < r->staged; i++) {
        struct kedgei_key key = kedgei_key_index(r->base + i);
        struct kedge_view entry;
        struct kedge_hash leaf;
        int err = kedge_kv_peek(r->tx, KEDGE_KV_ENTRY, kedgei_key_view(&key), &entry);
        if (!err) {
            err = kedge_entry_load(entry, &r->stored, &entry);
        }
        if (err == KEDGE_E_NOMEM) {
            return kedge_diag_set(reterr, err, "ledger %s: out of memory", r->l->origin);
        }
        if (!err) {
            kedge_merkle_leaf(entry, &leaf);
        }
        if (err || !kedge_hash_eq(&leaf, &r->leaves[i])) {
            kedge_diag_set(reterr, KEDGE_E_CORRUPT,
                           "ledger %s: entry %llu changed while it was stored; not committed", r->l->origin,
                           (unsigned long long)(r->base + i));
            kedge_diag_hint(reterr, "test this machine's memory");
            return KEDGE_E_CORRUPT;
        }
    }
    return KEDGE_OK;
}

/* Tiles, frontier and state of the new size; both ways to the root must agree. The frontier in memory and
 * the tiles in the store grow by different code. If an old tile was damaged, the frontier alone would
 * still give a valid root, and no proof from the tiles would ever verify against it. */
static int grow_tree(struct run *r, struct kedge_diag *reterr)
{
    int err = kedgei_tiles_append(r->tx, r->base, r->leaves, r->staged);
    for (size_t i = 0; i < r->staged && !err; i++) {
        err = kedge_frontier_append(&r->state.frontier, &r->leaves[i]);
    }
    if (err) {
        return kedge_diag_set(reterr, err, "ledger %s: cannot extend the tree: %s", r->l->origin,
                              kedge_strerror(err));
    }
    kedge_frontier_root(&r->state.frontier, &r->state.root);
    struct kedge_hash root;
    err = kedge_merkle_root(kedgei_tile_subtree, r->tx, r->state.frontier.size, &root);
    if (err || !kedge_hash_eq(&root, &r->state.root)) {
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT, "ledger %s: tiles are damaged near entry %llu",
                              r->l->origin, (unsigned long long)r->base);
    }
    err = kedgei_state_write(r->tx, &r->state);
    return err ? kedge_diag_set(reterr, err, "ledger %s: %s", r->l->origin, kedge_strerror(err)) : KEDGE_OK;
}

/* The newest checkpoint goes along with this transaction; the state counts it. A transaction of its own
 * would cost two syncs more for each commit. Until then the checkpoint is in memory only; when a crash
 * loses it, opening signs the same bytes again. */
static int put_note(struct run *r)
{
    struct kedge_ledger *l = r->l;
    if (!l->has_note || l->note_is_stored) {
        return KEDGE_OK;
    }
    return kedgei_head_put(l, r->tx, l->note_size, kedge_buf_view(&l->note), &r->state.head_count);
}

/* Everything between begin and commit. The stored state must be the one in memory: the lock keeps other
 * writers out, so a difference means that the file was exchanged or damaged under a running coordinator. */
static int fill(struct run *r, struct kedge_ledger_batch *batches, size_t count, struct kedge_diag *reterr)
{
    struct kedgei_state stored;
    int err = kedgei_state_read(r->tx, &stored);
    if (!err && (stored.frontier.size != r->base || !kedge_hash_eq(&stored.root, &r->state.root))) {
        err = KEDGE_E_CORRUPT;
    }
    if (!err) {
        err = put_note(r);
    }
    for (size_t i = 0; i < count && !err; i++) {
        size_t fresh;
        err = plan_batch(r, &batches[i], &fresh);
        if (!err && !batches[i].err) {
            err = put_batch(r, &batches[i], fresh);
        }
    }
    if (err) {
        return kedge_diag_set(reterr, err, "ledger %s: cannot append: %s", r->l->origin, kedge_strerror(err));
    }
    if (r->staged == 0) {
        return KEDGE_OK;
    }
    err = rehash(r, reterr);
    return err ? err : grow_tree(r, reterr);
}

/* After these two the store and the memory may differ, so every further append is refused until the
 * ledger is reopened and verified. A full disk is not among them: then nothing was changed, and the same
 * handle can try again. */
static void set_status(struct kedge_ledger *l, int err)
{
    if (err == KEDGE_E_IO || err == KEDGE_E_CORRUPT) {
        pthread_mutex_lock(&l->mutex);
        l->status = err;
        pthread_mutex_unlock(&l->mutex);
    }
}

/* One durable transaction; on success the handle's state is the new one. */
static int commit_batches(struct kedge_ledger *l, struct kedge_ledger_batch *batches, size_t count,
                          size_t entries, struct kedge_diag *reterr)
{
    struct kedge_hash leaves[KEDGE_APPEND_MAX];
    struct run r = {.l = l, .state = l->state, .base = l->state.frontier.size, .leaves = leaves};
    const bool packs = l->forms != KEDGE_FORMS_AS_IS && entries <= PACK_MOST;
    r.packer = packs ? kedge_entry_packer_new(l->forms) : NULL;
    kedge_buf_init(&r.stored, KEDGE_ENTRY_STORED_MAX);
    int err = kedge_kv_begin(l->kv, true, &r.tx, reterr);
    if (!err) {
        err = fill(&r, batches, count, reterr);
        if (err || r.staged == 0) {
            kedge_kv_abort(r.tx);
        } else {
            err = kedge_kv_commit(r.tx, reterr);
        }
    }
    kedge_entry_packer_free(r.packer);
    kedge_buf_deinit(&r.stored);
    set_status(l, err);
    if (!err && r.staged > 0) {
        pthread_mutex_lock(&l->mutex);
        l->state = r.state;
        l->note_is_stored = true;
        pthread_mutex_unlock(&l->mutex);
    }
    return err;
}

/* When the commit was durable but no checkpoint could be made, the answer is KEDGE_E_UNKNOWN and never
 * success: a receipt needs the checkpoint. The caller sends again with the same keys, and the next append
 * or flush signs what is there. A total that does not fit is counted with a cap, so that a hostile count
 * cannot overflow the sum. */
int kedge_ledger_append_batches(struct kedge_ledger *l, struct kedge_ledger_batch *batches, size_t count,
                                struct kedge_diag *reterr)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += batches[i].count <= KEDGE_APPEND_MAX ? batches[i].count : KEDGE_APPEND_MAX + 1;
    }
    int err = KEDGE_OK;
    if (total > KEDGE_APPEND_MAX) {
        err = kedge_diag_set(reterr, KEDGE_E_ARG, "more than %d entries in one append", KEDGE_APPEND_MAX);
    } else if (!l->key) {
        err = kedge_diag_set(reterr, KEDGE_E_STATE, "ledger %s is open for reading only", l->origin);
    } else if (l->status) {
        err = kedge_diag_set(reterr, l->status, "ledger %s is out of service after an error: %s", l->origin,
                             kedge_strerror(l->status));
        kedge_diag_hint(reterr, "it must be reopened, which checks it");
    }
    if (!err) {
        err = commit_batches(l, batches, count, total, reterr);
    }
    if (!err && (!l->has_note || l->note_size != l->state.frontier.size)) {
        err = kedgei_publish(l, reterr);
        if (err && kedge_err_class(err) != KEDGE_CLASS_CORRUPT) {
            err = kedge_diag_wrap(reterr, KEDGE_E_UNKNOWN, "stored, but no checkpoint was signed");
        }
    }
    for (size_t i = 0; i < count && err; i++) {
        batches[i].err = err;
    }
    return err;
}

int kedge_ledger_append(struct kedge_ledger *l, const struct kedge_ledger_append *items, size_t count,
                        uint64_t *ret_index, bool *ret_existing, struct kedge_diag *reterr)
{
    struct kedge_ledger_appended results[KEDGE_APPEND_MAX];
    struct kedge_ledger_batch batch = {.items = items, .count = count, .results = results};
    KEDGE_TRY(kedge_ledger_append_batches(l, &batch, 1, reterr));
    if (batch.err) {
        return kedge_diag_set(reterr, batch.err, "ledger %s: item %zu: %s", l->origin, batch.bad_item,
                              batch.err == KEDGE_E_EXISTS ? "its idempotency key belongs to another entry"
                                                          : kedge_strerror(batch.err));
    }
    for (size_t i = 0; i < count; i++) {
        if (ret_index) {
            ret_index[i] = results[i].index;
        }
        if (ret_existing) {
            ret_existing[i] = results[i].existing;
        }
    }
    return KEDGE_OK;
}

/* The newest checkpoint usually travels with the next append's transaction, which costs nothing. When no
 * append comes, this stores it. */
int kedge_ledger_flush(struct kedge_ledger *l, struct kedge_diag *reterr)
{
    if (!l->key) {
        return KEDGE_OK;
    }
    if (l->status) {
        return kedge_diag_set(reterr, l->status, "ledger %s is out of service after an error", l->origin);
    }
    int err = KEDGE_OK;
    if (!l->has_note || l->note_size != l->state.frontier.size) {
        err = kedgei_publish(l, reterr);
    }
    if (err || l->note_is_stored) {
        return err;
    }
    struct run r = {.l = l, .state = l->state, .base = l->state.frontier.size};
    err = kedge_kv_begin(l->kv, true, &r.tx, reterr);
    if (!err) {
        err = put_note(&r);
        if (!err) {
            err = kedgei_state_write(r.tx, &r.state);
        }
        if (err) {
            kedge_kv_abort(r.tx);
            kedge_diag_set(reterr, err, "ledger %s: cannot store the checkpoint: %s", l->origin,
                           kedge_strerror(err));
        } else {
            err = kedge_kv_commit(r.tx, reterr);
        }
    }
    set_status(l, err);
    if (!err) {
        pthread_mutex_lock(&l->mutex);
        l->state = r.state;
        l->note_is_stored = true;
        pthread_mutex_unlock(&l->mutex);
    }
    return err;
}
