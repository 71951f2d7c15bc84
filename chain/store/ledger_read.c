/* Reading: each function takes one short read transaction; sizes beyond the handle's state are refused.
 *
 * A read transaction sees one committed state of LMDB, but possibly a newer one than the handle's; so
 * bounds come from the handle and records from the transaction, and what is newer counts as not there.
 * Nothing that is read is believed before it has been hashed to the tree. */
#include <string.h>

#include "chain/store/ledger_impl.h"
#include "common/base/try.h"

/* A damaged record that a reader met: the file is evidence from now on, whatever becomes of the reader. */
static int noting(struct kedge_ledger *l, int err)
{
    if (err == KEDGE_E_CORRUPT) {
        kedge_kv_keep(l->kv);
    }
    return err;
}

const char *kedge_ledger_origin(const struct kedge_ledger *l)
{
    return l->origin;
}

uint64_t kedge_ledger_size(struct kedge_ledger *l)
{
    pthread_mutex_lock(&l->mutex);
    uint64_t size = l->state.frontier.size;
    pthread_mutex_unlock(&l->mutex);
    return size;
}

bool kedge_ledger_is_copy(const struct kedge_ledger *l)
{
    return l->is_copy;
}

/* The mutex covers the copy of a few hundred bytes; the writer holds it only to exchange pointers, so
 * neither waits for the other's I/O. */
int kedge_ledger_checkpoint(struct kedge_ledger *l, struct kedge_buf *ret_note, uint64_t *ret_size)
{
    int err = KEDGE_OK;
    pthread_mutex_lock(&l->mutex);
    if (!l->has_note) {
        err = KEDGE_E_NOT_FOUND;
    } else if (ret_note) {
        err = kedge_buf_reserve(ret_note, l->note.len);
        if (!err) {
            kedge_buf_put(ret_note, l->note.ptr, l->note.len);
        }
    }
    if (!err && ret_size) {
        *ret_size = l->note_size;
    }
    pthread_mutex_unlock(&l->mutex);
    return err;
}

/* The newest checkpoint is asked for in memory first, because it is stored only with the next
 * transaction. */
int kedge_ledger_checkpoint_at(struct kedge_ledger *l, uint64_t size, struct kedge_buf *ret_note)
{
    uint64_t newest;
    int err = kedge_ledger_checkpoint(l, NULL, &newest);
    if (!err && newest == size) { /* may not be stored yet */
        err = kedge_ledger_checkpoint(l, ret_note, &newest);
        if (err || newest == size) {
            return err;
        }
        return KEDGE_E_BUSY; /* another commit came between: ask again */
    }
    struct kedge_kv_tx *tx;
    KEDGE_TRY(kedge_kv_begin(l->kv, false, &tx, NULL));
    struct kedgei_key key = kedgei_key_index(size);
    struct kedge_buf room KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_view note;
    kedge_buf_init(&room, KEDGE_CHECKPOINT_MAX);
    err = kedge_kv_peek(tx, KEDGE_KV_HEAD, kedgei_key_view(&key), &note);
    if (!err) {
        err = kedge_head_load(kedge_view_str(l->origin), size, note, &room, &note);
    }
    if (!err) {
        err = kedge_buf_reserve(ret_note, note.len);
    }
    if (!err) {
        kedge_buf_put(ret_note, note.ptr, note.len);
    }
    kedge_kv_abort(tx);
    return noting(l, err);
}

/* Counted only when it is new: the same checkpoint is put again when it is signed anew after a crash, and
 * the count in the state is how a lost one is noticed. */
int kedgei_head_put(const struct kedge_ledger *l, struct kedge_kv_tx *tx, uint64_t size,
                    struct kedge_view note, uint64_t *io_count)
{
    struct kedgei_key key = kedgei_key_index(size);
    struct kedge_buf room KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_view old;
    kedge_buf_init(&room, KEDGE_CHECKPOINT_MAX);
    int err = kedge_kv_peek(tx, KEDGE_KV_HEAD, kedgei_key_view(&key), &old);
    if (err && err != KEDGE_E_NOT_FOUND) {
        return err;
    }
    *io_count += err == KEDGE_E_NOT_FOUND;
    if (l->forms == KEDGE_FORMS_SHORT) {
        note = kedgei_head_store(kedge_view_str(l->origin), size, note, &room);
    }
    return kedge_kv_put(tx, KEDGE_KV_HEAD, kedgei_key_view(&key), note, KEDGE_KV_PUT);
}

/* Within the size every entry must be there, so one that is missing is damage. Length 0 is allowed to a
 * copy alone, for entries that its reader may not see; the log itself never has one, since it refuses
 * empty entries. */
int kedgei_peek_entry(const struct kedge_ledger *l, struct kedge_kv_tx *tx, uint64_t index,
                      struct kedge_buf *room, struct kedge_view *ret)
{
    struct kedgei_key key = kedgei_key_index(index);
    struct kedge_view entry;
    struct kedge_hash leaf, expected;
    int err = kedge_kv_peek(tx, KEDGE_KV_ENTRY, kedgei_key_view(&key), &entry);
    if (!err) {
        err = kedge_entry_load(entry, room, &entry);
    }
    if (err || entry.len > KEDGE_ENTRY_MAX) {
        return err && err != KEDGE_E_NOT_FOUND ? err : KEDGE_E_CORRUPT;
    }
    KEDGE_TRY(kedgei_tile_subtree(tx, 0, index, &expected));
    if (entry.len == 0 && l->is_copy) { /* nothing is known but the hash */
        *ret = entry;
        return KEDGE_OK;
    }
    kedge_merkle_leaf(entry, &leaf);
    if (!kedge_hash_eq(&leaf, &expected)) {
        return KEDGE_E_CORRUPT;
    }
    *ret = entry;
    return KEDGE_OK;
}

int kedge_ledger_get(struct kedge_ledger *l, uint64_t index, struct kedge_buf *ret)
{
    if (index >= kedge_ledger_size(l)) {
        return KEDGE_E_NOT_FOUND;
    }
    struct kedge_kv_tx *tx;
    KEDGE_TRY(kedge_kv_begin(l->kv, false, &tx, NULL));
    struct kedge_view entry;
    struct kedge_buf room;
    kedge_buf_init(&room, KEDGE_ENTRY_MAX);
    int err = kedgei_peek_entry(l, tx, index, &room, &entry);
    if (!err && entry.len == 0) {
        err = KEDGE_E_WITHHELD;
    }
    if (!err) {
        err = kedge_buf_reserve(ret, entry.len);
    }
    if (!err) {
        kedge_buf_put(ret, entry.ptr, entry.len);
    }
    kedge_buf_deinit(&room);
    kedge_kv_abort(tx);
    return noting(l, err);
}

int kedge_ledger_leaf_hash(struct kedge_ledger *l, uint64_t index, struct kedge_hash *ret)
{
    if (index >= kedge_ledger_size(l)) {
        return KEDGE_E_NOT_FOUND;
    }
    struct kedge_kv_tx *tx KEDGE_CLEANUP(kedge_kv_drop) = NULL;
    int err = kedge_kv_begin(l->kv, false, &tx, NULL);
    return noting(l, err ? err : kedgei_tile_subtree(tx, 0, index, ret));
}

int kedge_ledger_root(struct kedge_ledger *l, uint64_t size, struct kedge_hash *ret)
{
    if (size > kedge_ledger_size(l)) {
        return KEDGE_E_ARG;
    }
    struct kedge_kv_tx *tx KEDGE_CLEANUP(kedge_kv_drop) = NULL;
    int err = kedge_kv_begin(l->kv, false, &tx, NULL);
    return noting(l, err ? err : kedge_merkle_root(kedgei_tile_subtree, tx, size, ret));
}

int kedge_ledger_inclusion(struct kedge_ledger *l, uint64_t index, uint64_t size, struct kedge_path *ret_path)
{
    if (size > kedge_ledger_size(l)) {
        return KEDGE_E_ARG;
    }
    struct kedge_kv_tx *tx KEDGE_CLEANUP(kedge_kv_drop) = NULL;
    int err = kedge_kv_begin(l->kv, false, &tx, NULL);
    return noting(l, err ? err : kedge_inclusion_prove(kedgei_tile_subtree, tx, index, size, ret_path));
}

int kedge_ledger_consistency(struct kedge_ledger *l, uint64_t old_size, uint64_t size,
                             struct kedge_path *ret_path)
{
    if (size > kedge_ledger_size(l)) {
        return KEDGE_E_ARG;
    }
    struct kedge_kv_tx *tx KEDGE_CLEANUP(kedge_kv_drop) = NULL;
    int err = kedge_kv_begin(l->kv, false, &tx, NULL);
    return noting(l, err ? err : kedge_consistency_prove(kedgei_tile_subtree, tx, old_size, size, ret_path));
}

/* A pointer to an index that the handle does not know yet is no damage when the store's own state covers
 * it; that is looked at only in this rare case. */
static int find_pointer(struct kedge_ledger *l, enum kedge_kv_table table, struct kedge_view key,
                        uint64_t *ret_index)
{
    uint64_t size = kedge_ledger_size(l);
    struct kedge_kv_tx *tx;
    KEDGE_TRY(kedge_kv_begin(l->kv, false, &tx, NULL));
    struct kedge_view value;
    uint64_t index;
    int err = kedge_kv_peek(tx, table, key, &value);
    if (!err && value.len == KEDGEI_POINTER_LEN && kedge_load_be64(value.ptr) >= size) {
        /* Committed after the handle last looked: not there yet as far as it is concerned. */
        struct kedgei_state now;
        err = kedgei_state_read(tx, &now);
        if (!err && kedge_load_be64(value.ptr) < now.frontier.size) {
            err = KEDGE_E_NOT_FOUND;
        }
    }
    if (!err) {
        err = kedgei_pointer_check(tx, key, value, size, &index);
    }
    kedge_kv_abort(tx);
    if (!err && ret_index) {
        *ret_index = index;
    }
    return noting(l, err);
}

int kedge_ledger_find(struct kedge_ledger *l, struct kedge_view idem_key, uint64_t *ret_index)
{
    return find_pointer(l, KEDGE_KV_IDEM, idem_key, ret_index);
}

int kedge_ledger_find_ref(struct kedge_ledger *l, const struct kedge_hash *digest, uint64_t *ret_index)
{
    return find_pointer(l, KEDGE_KV_REF, kedge_view_of(digest->b, KEDGE_HASH_LEN), ret_index);
}

struct key_scan {
    struct kedge_kv_tx *tx;
    uint64_t size;
    kedge_ledger_visit_key *visit;
    void *arg;
};

/* Keys are visited in the order of their bytes and not of the log, so newer ones lie between. */
static int visit_key(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct key_scan *s = arg;
    if (value.len == KEDGEI_POINTER_LEN && kedge_load_be64(value.ptr) >= s->size) {
        return KEDGE_OK; /* newer than the handle's state */
    }
    uint64_t index;
    int err = kedgei_pointer_check(s->tx, key, value, s->size, &index);
    return err ? err : s->visit(s->arg, key, index);
}

int kedge_ledger_scan_keys(struct kedge_ledger *l, struct kedge_view prefix, kedge_ledger_visit_key *visit,
                           void *arg)
{
    return kedge_ledger_scan_keys_from(l, prefix, kedge_view_of(NULL, 0), visit, arg);
}

int kedge_ledger_scan_keys_from(struct kedge_ledger *l, struct kedge_view prefix, struct kedge_view from,
                                kedge_ledger_visit_key *visit, void *arg)
{
    struct key_scan scan = {.size = kedge_ledger_size(l), .visit = visit, .arg = arg};
    int err = kedge_kv_begin(l->kv, false, &scan.tx, NULL);
    if (!err) {
        err = kedge_kv_scan(scan.tx, KEDGE_KV_IDEM, prefix, from, visit_key, &scan);
        kedge_kv_abort(scan.tx);
    }
    return noting(l, err);
}

int kedge_ledger_for_each(struct kedge_ledger *l, uint64_t from, kedge_ledger_visit_entry *visit, void *arg)
{
    uint64_t size = kedge_ledger_size(l);
    struct kedge_kv_tx *tx;
    int err = kedge_kv_begin(l->kv, false, &tx, NULL);
    if (err) {
        return err;
    }
    struct kedge_buf room;
    kedge_buf_init(&room, KEDGE_ENTRY_MAX);
    for (uint64_t i = from; i < size && !err; i++) {
        struct kedge_view entry;
        err = kedgei_peek_entry(l, tx, i, &room, &entry);
        if (!err) {
            err = visit(arg, i, entry);
        }
    }
    kedge_buf_deinit(&room);
    kedge_kv_abort(tx);
    return noting(l, err);
}
