/* Opening and reading. A handle's state is what was committed when it last looked (the writer: always the
 * newest); reads take their own short transaction, so they never wait for the writer nor see half of a
 * commit. */
#include "chain/store/ledger.h"

#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/store/ledger_impl.h"
#include "common/base/mem.h"
#include "common/base/try.h"

static struct kedge_view meta_key(const char *name)
{
    return kedge_view_str(name);
}

/* ---- checkpoints ---- */

/* Takes the newest stored checkpoint into the handle. None is fine; one beyond the size is a cut-off log.
 * The stored checkpoint was signed for a committed size, so a store with fewer entries than its newest
 * checkpoint says has lost committed entries and must not grow again. Memory is exchanged under the mutex
 * and the former note freed after it, because readers of other threads copy the note under the same
 * mutex. */
static int load_note(struct kedge_ledger *l, struct kedge_kv_tx *tx, uint64_t size, struct kedge_diag *reterr)
{
    struct kedge_buf key, note, stored;
    struct kedge_view whole;
    kedge_buf_init(&key, KEDGE_KV_KEY_MAX);
    kedge_buf_init(&stored, KEDGE_NOTE_MAX);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    int err = kedge_kv_last(tx, KEDGE_KV_HEAD, &key, &stored);
    if (!err && (key.len != 8 || kedge_load_be64(key.ptr) > size)) {
        err = kedge_diag_set(reterr, KEDGE_E_CORRUPT,
                             "ledger %s has %llu entries, fewer than its newest checkpoint: it was cut off",
                             l->origin, (unsigned long long)size);
    } else if (err && err != KEDGE_E_NOT_FOUND) {
        kedge_diag_set(reterr, err, "ledger %s: head table: %s", l->origin, kedge_strerror(err));
    }
    if (!err) {
        err = kedge_head_load(kedge_view_str(l->origin), kedge_load_be64(key.ptr), kedge_buf_view(&stored),
                              &note, &whole);
        if (!err && whole.ptr == stored.ptr) {
            kedge_buf_put(&note, whole.ptr, whole.len);
            err = note.err;
        }
        err = err ? kedge_diag_set(reterr, err, "ledger %s: head table: %s", l->origin, kedge_strerror(err))
                  : KEDGE_OK;
    }
    if (!err) {
        pthread_mutex_lock(&l->mutex);
        struct kedge_buf old = l->note;
        l->note = note;
        l->note_size = kedge_load_be64(key.ptr);
        l->has_note = l->note_is_stored = true;
        pthread_mutex_unlock(&l->mutex);
        note = old;
    }
    kedge_buf_deinit(&stored);
    kedge_buf_deinit(&key);
    kedge_buf_deinit(&note);
    return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
}

/* ---- opening ---- */

/* Which log this is, under which key, and how its entries are written. The name, the key and the words of
 * the dictionary lie in the store itself, so a folder can be audited without the program's configuration.
 * `copy` is the last row because only a replica has it: it is what keeps a replica from ever being opened
 * for signing. */
static int put_identity(const struct kedge_ledger *l, struct kedge_kv_tx *tx)
{
    const struct kedge_view key = kedge_view_of(l->public_key.b, KEDGE_KEY_LEN);
    const struct {
        const char *name;
        struct kedge_view value;
    } rows[] = {{"schema", kedge_view_str(KEDGEI_LEDGER_SCHEMA)},
                {"origin", kedge_view_str(l->origin)},
                {"key", key},
                {"words", kedge_entry_words(KEDGE_FORMS_SHORT)},
                {"copy", kedge_view_str("1")}}; /* the last of a copy only */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] - (l->is_copy ? 0 : 1); i++) {
        KEDGE_TRY(kedge_kv_put(tx, KEDGE_KV_META, meta_key(rows[i].name), rows[i].value, KEDGE_KV_PUT));
    }
    return KEDGE_OK;
}

/* The identity of a new ledger. State and identity are one transaction: a crash leaves either no ledger
 * at all, which can be made anew, or an empty one with its identity. A schema without a state would look
 * like damage. */
static int create(struct kedge_ledger *l, struct kedge_diag *reterr)
{
    struct kedge_kv_tx *tx;
    KEDGE_TRY(kedge_kv_begin(l->kv, true, &tx, reterr));
    struct kedgei_state empty;
    memset(&empty, 0, sizeof empty);
    kedge_merkle_empty_root(&empty.root);
    int err = put_identity(l, tx);
    l->forms = KEDGE_FORMS_SHORT;
    if (!err) {
        err = kedgei_state_write(tx, &empty);
    }
    if (err) {
        kedge_kv_abort(tx);
        return kedge_diag_set(reterr, err, "ledger %s: cannot create: %s", l->origin, kedge_strerror(err));
    }
    return kedge_kv_commit(tx, reterr);
}

/* Damage, unless it is what a program before this one wrote. It is told apart from damage
 * (KEDGE_E_VERSION), because the hint for damage, repair from another copy, would not help here: the
 * statements themselves lack what this program checks. */
static int refuse_schema(const struct kedge_ledger *l, struct kedge_view schema, struct kedge_diag *reterr)
{
    if (!kedge_view_eq(schema, kedge_view_str(KEDGEI_LEDGER_SCHEMA_BEFORE))) {
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT, "ledger %s: unknown schema, expected \"%s\"",
                              l->origin, KEDGEI_LEDGER_SCHEMA);
    }
    return kedge_diag_set(
        reterr, KEDGE_E_VERSION,
        "ledger %s: a \"%s\", in which tenants' statements do not name their place: read it "
        "with the program that wrote it; this one reads \"%s\"",
        l->origin, KEDGEI_LEDGER_SCHEMA_BEFORE, KEDGEI_LEDGER_SCHEMA);
}

/* Each form that was ever written stays readable, and a ledger keeps the form it began with: a store with
 * two forms could not be read by the program that made it. */
static bool read_schema(struct kedge_view schema, enum kedge_entry_forms *ret)
{
    static const char *const names[] = {[KEDGE_FORMS_AS_IS] = KEDGEI_LEDGER_SCHEMA_AS_IS,
                                        [KEDGE_FORMS_PACKED] = KEDGEI_LEDGER_SCHEMA_PACKED,
                                        [KEDGE_FORMS_SHORT] = KEDGEI_LEDGER_SCHEMA};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (kedge_view_eq(schema, kedge_view_str(names[i]))) {
            *ret = (enum kedge_entry_forms)i;
            return true;
        }
    }
    return false;
}

/* Schema, origin and key are those asked for; what was not asked for is taken over. The words are
 * compared whole: entries that were deflated with other words would inflate to other bytes. Of a reader
 * without a given origin or key (`kedge audit` on a folder) the stored ones are taken, but what was given
 * is never replaced. A copy is refused to a signer, and the log itself to a replica: both would append
 * what the other's log does not have. */
static int check_identity(struct kedge_ledger *l, const struct kedge_ledger_options *options,
                          struct kedge_kv_tx *tx, struct kedge_diag *reterr)
{
    struct kedge_view schema, origin, key, words;
    int err = kedge_kv_peek(tx, KEDGE_KV_META, meta_key("schema"), &schema);
    if (err == KEDGE_E_NOT_FOUND) {
        return kedge_diag_set(reterr, err, "there is no ledger %s here", l->origin);
    }
    if (!err && !read_schema(schema, &l->forms)) {
        return refuse_schema(l, schema, reterr);
    }
    if (!err && l->forms != KEDGE_FORMS_AS_IS) {
        err = kedge_kv_peek(tx, KEDGE_KV_META, meta_key("words"), &words);
        err = !err && !kedge_view_eq(words, kedge_entry_words(l->forms)) ? KEDGE_E_CORRUPT : err;
    }
    if (err || kedge_kv_peek(tx, KEDGE_KV_META, meta_key("origin"), &origin) != KEDGE_OK
        || kedge_kv_peek(tx, KEDGE_KV_META, meta_key("key"), &key) != KEDGE_OK || origin.len == 0
        || origin.len > KEDGE_ORIGIN_MAX || memchr(origin.ptr, 0, origin.len) || key.len != KEDGE_KEY_LEN) {
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT, "ledger %s: meta table is damaged", l->origin);
    }
    if (options->origin && !kedge_view_eq(origin, kedge_view_str(l->origin))) {
        return kedge_diag_set(reterr, KEDGE_E_STATE, "the store holds ledger %.*s, expected %s",
                              (int)origin.len, (const char *)origin.ptr, l->origin);
    }
    memcpy(l->origin, origin.ptr, origin.len);
    l->origin[origin.len] = '\0';
    bool is_given = options->key || options->public_key;
    if (is_given && !kedge_view_eq(key, kedge_view_of(l->public_key.b, KEDGE_KEY_LEN))) {
        return kedge_diag_set(reterr, KEDGE_E_STATE, "ledger %s belongs to another signing key", l->origin);
    }
    memcpy(l->public_key.b, key.ptr, KEDGE_KEY_LEN);
    struct kedge_view copy;
    err = kedge_kv_peek(tx, KEDGE_KV_META, meta_key("copy"), &copy);
    if (err ? err != KEDGE_E_NOT_FOUND : !kedge_view_eq(copy, kedge_view_str("1"))) {
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT, "ledger %s: meta table is damaged", l->origin);
    }
    l->is_copy = !err;
    if (l->is_copy ? options->key != NULL : options->copy) {
        return kedge_diag_set(reterr, KEDGE_E_STATE, "ledger %s: %s", l->origin,
                              l->is_copy ? "this is a copy of somebody else's log; it cannot be written to"
                                         : "this is the log itself and no copy");
    }
    return KEDGE_OK;
}

enum { TAIL = 64 }; /* entries checked at open: what a crash could have touched */

/* State, tiles and the last entries agree. LMDB has no checksums, so a root is derived from the tiles and
 * compared with the stored one. That touches a tile of each level only and hardly depends on the size;
 * all entries are hashed by the full check alone (ledger_check.c). The last entries are hashed here as
 * well: they lie in the pages that a writer touched last, where a crash or a bad write shows first. */
static int load_state(struct kedge_ledger *l, struct kedge_kv_tx *tx, struct kedge_diag *reterr)
{
    struct kedgei_state state;
    struct kedge_hash root;
    int err = kedgei_state_read(tx, &state);
    if (err) {
        return kedge_diag_set(reterr, err, "ledger %s: meta table, state: %s", l->origin,
                              kedge_strerror(err));
    }
    uint64_t size = state.frontier.size, count;
    err = kedge_kv_count(tx, KEDGE_KV_ENTRY, &count);
    if (!err && count != size) {
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT, "ledger %s: %llu entries stored, expected %llu",
                              l->origin, (unsigned long long)count, (unsigned long long)size);
    }
    if (!err) {
        err = kedge_merkle_root(kedgei_tile_subtree, tx, size, &root);
    }
    if (err || !kedge_hash_eq(&root, &state.root)) {
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT, "ledger %s: tile table does not have the stored root",
                              l->origin);
    }
    struct kedge_buf room KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&room, KEDGE_ENTRY_MAX);
    for (uint64_t i = size > TAIL ? size - TAIL : 0; i < size; i++) {
        struct kedge_view entry;
        err = kedgei_peek_entry(l, tx, i, &room, &entry);
        if (err == KEDGE_E_NOMEM) {
            return kedge_diag_set(reterr, err, "ledger %s: out of memory", l->origin);
        }
        if (err) {
            return kedge_diag_set(reterr, KEDGE_E_CORRUPT, "ledger %s: entry table, index %llu is damaged",
                                  l->origin, (unsigned long long)i);
        }
    }
    pthread_mutex_lock(&l->mutex);
    l->state = state;
    pthread_mutex_unlock(&l->mutex);
    return KEDGE_OK;
}

/* The mark's history is a prefix of this ledger's. A missing mark needs the operator's word once there
 * are entries. Before the first signature there is nothing to fork from, so an empty ledger needs no
 * mark. A mark that cannot be read is an error and never "none": else deleting or damaging one small file
 * would let an old backup sign. */
static int check_high_water(struct kedge_ledger *l, struct kedge_kv_tx *tx, struct kedge_diag *reterr)
{
    uint64_t size = l->state.frontier.size;
    struct kedgei_high_water mark;
    int err = kedgei_high_water_read(l->high_water_path, l->origin, &mark, reterr);
    if (err == KEDGE_E_NOT_FOUND) {
        if (size == 0 || l->adopt_high_water) {
            return KEDGE_OK;
        }
        kedge_diag_set(
            reterr, KEDGE_E_CORRUPT,
            "%s: the high-water mark of ledger %s is missing; its %llu entries may be an old backup",
            l->high_water_path, l->origin, (unsigned long long)size);
        kedge_diag_hint(reterr,
                        "restore the file, or adopt the present size if you are sure that it is the newest");
        return KEDGE_E_CORRUPT;
    }
    if (err) {
        return err;
    }
    KEDGE_TRY(kedgei_high_water_allows(l->high_water_path, l->origin, size, &l->state.root, reterr));
    struct kedge_hash root;
    err = kedge_merkle_root(kedgei_tile_subtree, tx, mark.size, &root);
    if (err) {
        return kedge_diag_set(reterr, err, "ledger %s: tile table: %s", l->origin, kedge_strerror(err));
    }
    if (!kedge_hash_eq(&root, &mark.root)) {
        return kedge_diag_set(reterr, KEDGE_E_FORK,
                              "ledger %s has another root at size %llu than was signed before", l->origin,
                              (unsigned long long)mark.size);
    }
    return KEDGE_OK;
}

/* Only a signer is held against the mark here. A reader may look at an old backup; where it matters to
 * it, it asks kedge_ledger_check_high_water. */
static int verify(struct kedge_ledger *l, const struct kedge_ledger_options *options, struct kedge_kv_tx *tx,
                  struct kedge_diag *reterr)
{
    KEDGE_TRY(check_identity(l, options, tx, reterr));
    KEDGE_TRY(load_state(l, tx, reterr));
    KEDGE_TRY(load_note(l, tx, l->state.frontier.size, reterr));
    return l->key && l->high_water_path[0] ? check_high_water(l, tx, reterr) : KEDGE_OK;
}

/* Everything that open and reopen verify. A signer publishes at once, although nothing is new: a crash
 * between commit and signature left a committed size without a checkpoint. Ed25519 is deterministic, so
 * signing the same size and root again gives the same bytes, and what was handed out before the crash is
 * not contradicted. When the checkpoint was stored and there is no mark to raise, there is nothing to
 * make up for. */
static int load(struct kedge_ledger *l, const struct kedge_ledger_options *options, struct kedge_diag *reterr)
{
    struct kedge_kv_tx *tx;
    KEDGE_TRY(kedge_kv_begin(l->kv, false, &tx, reterr));
    int err = verify(l, options, tx, reterr);
    kedge_kv_abort(tx);
    if (err || !l->key) {
        return err;
    }
    bool was_stored = l->has_note && l->note_size == l->state.frontier.size;
    err = was_stored && !l->high_water_path[0] ? KEDGE_OK : kedgei_publish(l, reterr);
    return err ? err : kedge_ledger_flush(l, reterr);
}

static int init(struct kedge_ledger *l, struct kedge_kv *kv, const struct kedge_ledger_options *options,
                struct kedge_diag *reterr)
{
    const char *origin = options->origin ? options->origin : "";
    const char *path = options->high_water_path ? options->high_water_path : "";
    size_t origin_len = strlen(origin), path_len = strlen(path);
    bool needs_origin = options->key || options->create || options->copy;
    if (origin_len > KEDGE_ORIGIN_MAX || path_len >= KEDGE_PATH_MAX || (needs_origin && origin_len == 0)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG,
                              "the ledger's origin or high-water path is missing or too long");
    }
    if (options->key && kedge_kv_is_read_only(kv)) {
        return kedge_diag_set(reterr, KEDGE_E_STATE,
                              "ledger %s: a signing key was given for a read-only store", origin);
    }
    if (options->copy && (options->key || !options->public_key || path_len > 0)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG,
                              "ledger %s: a copy has the log's public key and nothing else", origin);
    }
    memcpy(l->origin, origin, origin_len + 1);
    memcpy(l->high_water_path, path, path_len + 1);
    l->kv = kv;
    l->key = options->key;
    l->adopt_high_water = options->adopt_high_water;
    l->is_copy = options->copy;
    if (options->key) {
        l->public_key = options->key->public;
    } else if (options->public_key) {
        l->public_key = *options->public_key;
    }
    kedge_buf_init(&l->note, KEDGE_NOTE_MAX);
    return KEDGE_OK;
}

/* Whether the store has a ledger at all. */
static int look(struct kedge_kv *kv, bool *ret_present, struct kedge_diag *reterr)
{
    struct kedge_kv_tx *tx;
    KEDGE_TRY(kedge_kv_begin(kv, false, &tx, reterr));
    struct kedge_view schema;
    int err = kedge_kv_peek(tx, KEDGE_KV_META, meta_key("schema"), &schema);
    kedge_kv_abort(tx);
    *ret_present = err != KEDGE_E_NOT_FOUND;
    return err == KEDGE_OK || err == KEDGE_E_NOT_FOUND
               ? KEDGE_OK
               : kedge_diag_set(reterr, err, "meta table: %s", kedge_strerror(err));
}

/* Earlier states in the file of a damaged or forked ledger may tell how it came about. So the file is not
 * cleaned when it is closed (kedge_kv_keep). */
static void keep_evidence(struct kedge_kv *kv, int err)
{
    if (err == KEDGE_E_CORRUPT || err == KEDGE_E_FORK) {
        kedge_kv_keep(kv);
    }
}

/* Create and load are two steps on purpose: a new ledger is read back and verified in the same way as an
 * old one, so a store that loses what was just committed is noticed before the first append. */
int kedge_ledger_open(struct kedge_kv *kv, const struct kedge_ledger_options *options,
                      struct kedge_ledger **ret, struct kedge_diag *reterr)
{
    struct kedge_ledger *l = kedge_mem_new(1, sizeof *l);
    if (!l) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "cannot open a ledger: out of memory");
    }
    int err = init(l, kv, options, reterr);
    if (err) {
        kedge_mem_free(l);
        return err;
    }
    pthread_mutex_init(&l->mutex, NULL);
    l->mark_is_durable = kedge_kv_was_closed(kv) || kedge_kv_sync_together(kv, l->high_water_path);
    bool present;
    err = look(kv, &present, reterr);
    if (!err && !present && options->create && (options->key || options->copy)) {
        err = create(l, reterr);
    }
    if (!err) {
        err = load(l, options, reterr);
    }
    if (err) {
        keep_evidence(kv, err);
        kedge_buf_deinit(&l->note);
        pthread_mutex_destroy(&l->mutex);
        kedge_mem_free(l);
        return err;
    }
    *ret = l;
    return KEDGE_OK;
}

/* No state, tiles or checkpoints are looked at: kedge_ledger_check_all must be able to name damage there,
 * and opening in the usual way would end at the first of it. */
int kedgei_ledger_open_unchecked(struct kedge_kv *kv, const char *origin, const struct kedge_public_key *key,
                                 struct kedge_ledger **ret, struct kedge_diag *reterr)
{
    struct kedge_ledger_options options = {.origin = origin, .public_key = key};
    struct kedge_kv_tx *tx;
    struct kedge_ledger *l = kedge_mem_new(1, sizeof *l);
    if (!l) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "cannot open a ledger: out of memory");
    }
    int err = init(l, kv, &options, reterr);
    if (!err) {
        err = kedge_kv_begin(kv, false, &tx, reterr);
    }
    if (!err) {
        err = check_identity(l, &options, tx, reterr);
        kedge_kv_abort(tx);
    }
    if (err) {
        keep_evidence(kv, err);
        kedge_mem_free(l);
        return err;
    }
    pthread_mutex_init(&l->mutex, NULL);
    *ret = l;
    return KEDGE_OK;
}

/* A handle with an error status is not flushed: its state in memory may be ahead of or behind the
 * store's, and a checkpoint of it must not be stored. */
void kedge_ledger_close(struct kedge_ledger *l)
{
    if (!l) {
        return;
    }
    if (!l->status) {
        (void)!kedge_ledger_flush(
            l, NULL); /* what is not stored now is signed again at open, with the same bytes */
    }
    keep_evidence(l->kv, l->status);
    kedge_buf_deinit(&l->note);
    pthread_mutex_destroy(&l->mutex);
    kedge_mem_free(l);
}

/* After KEDGE_E_IO the last transaction may or may not be on the disk. So nothing in memory is believed:
 * the store is opened again, the state is read from it and verified, and the checkpoint is signed anew
 * for what is there. The mutex is held only for the handle's members, never during I/O. */
int kedge_ledger_reopen(struct kedge_ledger *l, struct kedge_diag *reterr)
{
    struct kedge_ledger_options options = {
        .origin = l->origin, .key = l->key, .public_key = &l->public_key, .copy = l->is_copy};
    int err = kedge_kv_reopen(l->kv, reterr);
    pthread_mutex_lock(&l->mutex);
    l->status = err ? KEDGE_E_IO : KEDGE_OK;
    l->has_note = l->note_is_stored = false;
    pthread_mutex_unlock(&l->mutex);
    if (err) {
        return err;
    }
    err = load(l, &options, reterr);
    if (err) {
        pthread_mutex_lock(&l->mutex);
        l->status = err;
        pthread_mutex_unlock(&l->mutex);
    }
    return err;
}

int kedge_ledger_refresh(struct kedge_ledger *l, struct kedge_diag *reterr)
{
    if (l->key) {
        return KEDGE_OK; /* the writer knows */
    }
    struct kedge_ledger_options options = {.origin = l->origin, .public_key = &l->public_key};
    return load(l, &options, reterr);
}
