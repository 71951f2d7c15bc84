/* A replica is a ledger of somebody else's log: it has no signing key, takes entries only with hashes
 * that a signed checkpoint covers, and may lack the content of entries that its owner may not read. It is
 * written by the follower (chain/follow) and is what `kedge ledger repair` can build from. */
#include "chain/store/replica.h"

#include "chain/log/checkpoint.h"
#include "chain/store/ledger_impl.h"
#include "common/base/try.h"

int kedge_replica_open(struct kedge_kv *kv, const char *origin, const struct kedge_public_key *log_key,
                       bool create, struct kedge_ledger **ret, struct kedge_diag *reterr)
{
    struct kedge_ledger_options options = {
        .origin = origin, .public_key = log_key, .copy = true, .create = create};
    return kedge_ledger_open(kv, &options, ret, reterr);
}

void kedge_replica_frontier(struct kedge_ledger *l, struct kedge_frontier *ret)
{
    pthread_mutex_lock(&l->mutex);
    *ret = l->state.frontier;
    pthread_mutex_unlock(&l->mutex);
}

/* Frontier and root with the new leaves. An entry without content is taken by its leaf hash alone; one
 * with content must have that hash. So what the server sends as an entry can never differ from what its
 * tree says. */
static int grow(const struct kedge_ledger *l, const struct kedge_replica_entry *entries, size_t count,
                struct kedgei_state *state, struct kedge_diag *reterr)
{
    for (size_t i = 0; i < count; i++) {
        struct kedge_hash leaf;
        kedge_merkle_leaf(entries[i].entry, &leaf);
        if (entries[i].entry.len > KEDGE_ENTRY_MAX
            || (entries[i].entry.len > 0 && !kedge_hash_eq(&leaf, &entries[i].leaf))) {
            return kedge_diag_set(reterr, KEDGE_E_VERIFY,
                                  "log %s: entry %llu does not have the leaf hash of its tile", l->origin,
                                  (unsigned long long)state->frontier.size);
        }
        int err = kedge_frontier_append(&state->frontier, &entries[i].leaf);
        if (err) {
            return kedge_diag_set(reterr, err, "log %s: %s", l->origin, kedge_strerror(err));
        }
    }
    kedge_frontier_root(&state->frontier, &state->root);
    return KEDGE_OK;
}

/* The checkpoint's own size and root must be what the entries make: a signature over something else proves
 * nothing of them. */
static int check_note(const struct kedge_ledger *l, struct kedge_view note, const struct kedgei_state *state,
                      struct kedge_diag *reterr)
{
    struct kedge_checkpoint checkpoint;
    struct kedge_vkey vkey;
    int err = kedge_vkey_make(kedge_view_str(l->origin), KEDGE_KEY_ED25519, &l->public_key, &vkey);
    if (!err) {
        err = kedge_checkpoint_open(note, kedge_view_str(l->origin), &vkey, 1, &checkpoint, NULL);
    }
    if (!err && (checkpoint.size != state->frontier.size || !kedge_hash_eq(&checkpoint.root, &state->root))) {
        err = KEDGE_E_VERIFY;
    }
    return err ? kedge_diag_set(reterr, err, "log %s: the checkpoint is not the log's of size %llu",
                                l->origin, (unsigned long long)state->frontier.size)
               : KEDGE_OK;
}

/* In the log's form; without memory for a packer each is stored as it came, which every form allows. */
static int put_entries(const struct kedge_ledger *l, struct kedge_kv_tx *tx,
                       struct kedge_entry_packer *packer, uint64_t base,
                       const struct kedge_replica_entry *entries, size_t count)
{
    struct kedge_buf stored KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&stored, KEDGE_ENTRY_STORED_MAX);
    for (size_t i = 0; i < count; i++) {
        struct kedgei_key key = kedgei_key_index(base + i);
        struct kedge_view entry = entries[i].entry;
        if (l->forms != KEDGE_FORMS_AS_IS && entry.len > 0) {
            KEDGE_TRY(kedge_entry_store(packer, entry, &stored));
            entry = kedge_buf_view(&stored);
        }
        KEDGE_TRY(kedge_kv_put(tx, KEDGE_KV_ENTRY, kedgei_key_view(&key), entry, KEDGE_KV_APPEND));
    }
    return KEDGE_OK;
}

static int put_all(struct kedge_ledger *l, struct kedge_kv_tx *tx, const struct kedge_replica_entry *entries,
                   size_t count, struct kedge_view note, struct kedgei_state *state)
{
    struct kedge_hash leaves[KEDGE_APPEND_MAX];
    uint64_t base = state->frontier.size - count;
    for (size_t i = 0; i < count; i++) {
        leaves[i] = entries[i].leaf;
    }
    struct kedge_entry_packer *packer =
        l->forms != KEDGE_FORMS_AS_IS ? kedge_entry_packer_new(l->forms) : NULL;
    int err = put_entries(l, tx, packer, base, entries, count);
    kedge_entry_packer_free(packer);
    if (err) {
        return err;
    }
    KEDGE_TRY(kedgei_tiles_append(tx, base, leaves, count));
    if (note.len > 0) {
        KEDGE_TRY(kedgei_head_put(l, tx, state->frontier.size, note, &state->head_count));
    }
    return kedgei_state_write(tx, state);
}

/* What is there already although the state does not count it: the tables contradict each other. */
static int put(struct kedge_ledger *l, struct kedge_kv_tx *tx, const struct kedge_replica_entry *entries,
               size_t count, struct kedge_view note, struct kedgei_state *state)
{
    int err = put_all(l, tx, entries, count, note, state);
    return err == KEDGE_E_EXISTS ? KEDGE_E_CORRUPT : err;
}

static void keep(struct kedge_ledger *l, const struct kedgei_state *state, struct kedge_buf *note)
{
    pthread_mutex_lock(&l->mutex);
    l->state = *state;
    if (note->len > 0) {
        struct kedge_buf old = l->note;
        l->note = *note;
        *note = old;
        l->note_size = state->frontier.size;
        l->has_note = l->note_is_stored = true;
    }
    pthread_mutex_unlock(&l->mutex);
}

/* A copy takes entries together with the checkpoint that covers them, or entries of which a later call
 * brings the checkpoint. Everything is checked before the transaction begins. The checks need no
 * transaction, so a hostile server cannot make the copy hold the store's lock while it computes. */
int kedge_replica_extend(struct kedge_ledger *l, const struct kedge_replica_entry *entries, size_t count,
                         struct kedge_view note, struct kedge_diag *reterr)
{
    if (!l->is_copy || kedge_kv_is_read_only(l->kv)) {
        return kedge_diag_set(reterr, KEDGE_E_STATE, "ledger %s is no copy that may be extended", l->origin);
    }
    if (count > KEDGE_APPEND_MAX || note.len > KEDGE_NOTE_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "ledger %s: more than a copy takes at once", l->origin);
    }
    if (l->status) {
        return kedge_diag_set(reterr, l->status, "ledger %s is out of service after an error", l->origin);
    }
    struct kedgei_state state = l->state;
    struct kedge_kv_tx *tx;
    struct kedge_buf kept;
    kedge_buf_init(&kept, KEDGE_NOTE_MAX);
    kedge_buf_put(&kept, note.ptr, note.len);
    int err = kept.err ? kept.err : grow(l, entries, count, &state, reterr);
    err = err || note.len == 0 ? err : check_note(l, note, &state, reterr);
    if (!err) {
        err = kedge_kv_begin(l->kv, true, &tx, reterr);
    }
    if (!err) {
        err = put(l, tx, entries, count, note, &state);
        if (err) {
            kedge_kv_abort(tx);
            (void)kedge_diag_set(reterr, err, "log %s: cannot store: %s", l->origin, kedge_strerror(err));
        } else {
            err = kedge_kv_commit(tx, reterr);
        }
        if (err == KEDGE_E_IO || err == KEDGE_E_CORRUPT) {
            pthread_mutex_lock(&l->mutex);
            l->status = err;
            pthread_mutex_unlock(&l->mutex);
        }
    }
    if (!err) {
        keep(l, &state, &kept);
    }
    kedge_buf_deinit(&kept);
    return err;
}
