/* The full check: everything that can be derived is derived again from the entries and compared. Order:
 * entries against leaf hashes, tiles above, root and state; then, on a tree known to be good, pointers
 * and checkpoints; at last every table by each way of reading it. */
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/store/ledger_impl.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum {
    META_RECORDS = 4
}; /* schema, origin, key, state; words where entries are packed; a copy: that it is one */

/* Right edge of one level while the tree is built again. */
struct level {
    uint64_t count; /* hashes so far, full tiles included */
    struct kedge_hash hashes[KEDGEI_TILE_WIDTH];
};

struct check {
    struct kedge_ledger *l;
    struct kedge_kv_tx *tx;
    struct kedge_diag *reterr;
    kedge_ledger_progress *progress;
    kedge_ledger_damage *damage; /* NULL: the first one ends the check */
    void *arg;                   /* of both */
    uint64_t found;
    bool has_state;
    bool unsigned_heads; /* nobody verifies the checkpoints' signatures here */
    struct kedgei_state stored;
    uint64_t entries, tiles, pointers, heads, records;
    enum kedge_kv_table table; /* whose pointers are visited */
    struct kedge_buf room;     /* of an entry */
    struct kedge_frontier frontier;
    struct kedge_vkey vkey;
    struct kedge_note_verdict verdict;
    struct level levels[KEDGEI_TILE_LEVELS];
};

static const char *said_of(int err)
{
    return err == KEDGE_E_CORRUPT ? "the table cannot be read beyond this record" : kedge_strerror(err);
}

/* Returns what ends the check, or KEDGE_OK to go on to the next damage. With a callback the check goes
 * on: an operator who repairs wants the whole list, and one damage must not hide another. Without one the
 * first damage ends it, which is all that an auditor or repair needs. */
static int damaged(struct check *c, enum kedge_kv_table table, uint64_t index, const char *what)
{
    int err = kedge_diag_set(c->reterr, KEDGE_E_CORRUPT, "ledger %s: %s table, index %llu: %s", c->l->origin,
                             kedge_kv_table_name(table), (unsigned long long)index, what);
    c->found++;
    if (!c->damage) {
        return err;
    }
    c->damage(c->arg, table, index, what);
    return KEDGE_OK;
}

/* The tile at the right edge of a level, as derived, must be what is stored. After a difference the
 * stored hash is taken over, so the levels above are derived from what the tree says. Otherwise one
 * changed entry would be reported at each level up to the root. */
static int compare_tile(struct check *c, unsigned level)
{
    struct level *v = &c->levels[level];
    uint64_t tile = (v->count - 1) / KEDGEI_TILE_WIDTH;
    size_t used = (size_t)((v->count - 1) % KEDGEI_TILE_WIDTH) + 1;
    struct kedgei_key key = kedgei_key_tile(level, tile);
    struct kedge_view stored;
    int err = kedge_kv_peek(c->tx, KEDGE_KV_TILE, kedgei_key_view(&key), &stored);
    if (err && err != KEDGE_E_NOT_FOUND && err != KEDGE_E_CORRUPT) {
        return kedge_diag_set(c->reterr, err, "ledger %s: tile table: %s", c->l->origin, kedge_strerror(err));
    }
    c->tiles++;
    if (err || stored.len != used * KEDGE_HASH_LEN) {
        return damaged(c, KEDGE_KV_TILE, tile, "tile missing or of wrong length");
    }
    for (size_t i = 0; i < used; i++) {
        if (memcmp(stored.ptr + i * KEDGE_HASH_LEN, v->hashes[i].b, KEDGE_HASH_LEN) == 0) {
            continue;
        }
        err = level > 0
                  ? damaged(c, KEDGE_KV_TILE, tile, "hash of an inner level is wrong")
                  : damaged(c, KEDGE_KV_ENTRY, tile * KEDGEI_TILE_WIDTH + i,
                            "entry does not have the leaf hash that the tree has (entry or tile changed)");
        if (err) {
            return err;
        }
        memcpy(v->hashes[i].b, stored.ptr + i * KEDGE_HASH_LEN, KEDGE_HASH_LEN); /* one damage, one finding */
    }
    return KEDGE_OK;
}

/* Adds a leaf hash and whatever it completes above. Only the right edge of each level is in memory, 256
 * hashes each, so the check needs the same few kilobytes for a thousand entries and for ten million. */
static int add_leaf(struct check *c, struct kedge_hash hash)
{
    for (unsigned level = 0; level < KEDGEI_TILE_LEVELS; level++) {
        struct level *v = &c->levels[level];
        v->hashes[v->count++ % KEDGEI_TILE_WIDTH] = hash;
        if (v->count % KEDGEI_TILE_WIDTH != 0) {
            break;
        }
        KEDGE_TRY(compare_tile(c, level));
        kedgei_fold(v->hashes, 8, &hash);
    }
    return KEDGE_OK;
}

/* Goes over entries that are not there, by their leaf hashes. The tree still knows their hashes, so the
 * rest of the log can be checked as if they were there. */
static int skip_to(struct check *c, uint64_t index)
{
    int err = KEDGE_OK;
    while (c->entries < index && !err) {
        struct kedge_hash leaf;
        err = kedgei_tile_subtree(c->tx, 0, c->entries, &leaf);
        err = err ? KEDGE_E_CORRUPT : add_leaf(c, leaf);
        c->entries++;
    }
    return err;
}

/* A withheld entry of a copy has no bytes to hash; its leaf comes from the tile, and the signed root
 * tells whether that is the right one. An entry that cannot be unpacked is told once and then gone over
 * in the same way. */
static int visit_entry(void *arg, struct kedge_view key, struct kedge_view stored)
{
    struct check *c = arg;
    uint64_t size = c->stored.frontier.size;
    uint64_t index = key.len == 8 ? kedge_load_be64(key.ptr) : 0;
    if (key.len != 8 || index < c->entries) {
        return damaged(c, KEDGE_KV_ENTRY, c->entries, "a key that is no index");
    }
    if (index >= size) {
        return damaged(c, KEDGE_KV_ENTRY, index, "entry beyond the stored size");
    }
    if (index > c->entries) {
        KEDGE_TRY(damaged(c, KEDGE_KV_ENTRY, c->entries, "entry missing"));
        KEDGE_TRY(skip_to(c, index));
    }
    struct kedge_view entry;
    int err = kedge_entry_load(stored, &c->room, &entry);
    if (err) {
        err =
            err == KEDGE_E_CORRUPT ? damaged(c, KEDGE_KV_ENTRY, c->entries, "not an entry in any form") : err;
        return err ? err : skip_to(c, c->entries + 1);
    }
    bool withheld = entry.len == 0 && c->l->is_copy;
    if ((entry.len == 0 && !withheld) || entry.len > KEDGE_ENTRY_MAX) {
        err = damaged(c, KEDGE_KV_ENTRY, c->entries, "impossible length");
        return err ? err : skip_to(c, c->entries + 1);
    }
    struct kedge_hash leaf;
    if (!withheld) {
        kedge_merkle_leaf(entry, &leaf);
    } else if (kedgei_tile_subtree(c->tx, 0, c->entries, &leaf)) { /* the root tells whether it is right */
        err = damaged(c, KEDGE_KV_TILE, c->entries / KEDGEI_TILE_WIDTH, "tile missing or of wrong length");
        return err ? err : KEDGE_E_CORRUPT;
    }
    c->entries++;
    KEDGE_TRY(kedge_frontier_append(&c->frontier, &leaf));
    err = add_leaf(c, leaf);
    if (!err && c->progress && c->entries % 1024 == 0) {
        c->progress(c->arg, c->entries, size);
    }
    return err;
}

/* The root is compared only when no damage was found in the tree: after a damage the frontier was made of
 * hashes as found, and a second finding would say nothing new. Tiles are counted because a tile beyond
 * the size is read by nobody today and would be taken as a hash by a later append. */
static int check_tree(struct check *c)
{
    uint64_t found = c->found;
    struct kedge_view all = kedge_view_of(NULL, 0);
    int err = kedge_kv_scan(c->tx, KEDGE_KV_ENTRY, all, all, visit_entry, c);
    if (err) {
        return c->reterr->err == err ? err : damaged(c, KEDGE_KV_ENTRY, c->entries, said_of(err));
    }
    if (c->entries < c->stored.frontier.size) {
        KEDGE_TRY(damaged(c, KEDGE_KV_ENTRY, c->entries, "entry missing"));
        KEDGE_TRY(skip_to(c, c->stored.frontier.size));
    }
    for (unsigned level = 0; level < KEDGEI_TILE_LEVELS; level++) {
        if (c->levels[level].count % KEDGEI_TILE_WIDTH != 0) {
            err = compare_tile(c, level);
            if (err) {
                return err;
            }
        }
    }
    uint64_t tiles;
    err = kedge_kv_count(c->tx, KEDGE_KV_TILE, &tiles);
    if (err || tiles != c->tiles) {
        err = damaged(c, KEDGE_KV_TILE, c->tiles, "there are tiles that belong to no entries");
        return err;
    }
    struct kedge_hash root;
    kedge_frontier_root(&c->frontier, &root);
    if (c->found == found && !kedge_hash_eq(&root, &c->stored.root)) {
        return damaged(c, KEDGE_KV_META, 0, "stored root is not the root of the entries");
    }
    return KEDGE_OK;
}

static int visit_pointer(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct check *c = arg;
    uint64_t index;
    c->pointers++;
    int err = kedgei_pointer_check(c->tx, key, value, c->stored.frontier.size, &index);
    return err ? damaged(c, c->table, value.len >= 8 ? kedge_load_be64(value.ptr) : 0,
                         "key and entry do not belong together")
               : KEDGE_OK;
}

/* Bytes under a key by themselves, as readers ask for them: the way down the tree is another than a
 * scan's. Damage in a branch page can leave a scan whole and lose a key, or the other way round. */
static bool is_found_again(const struct check *c, struct kedge_view key, struct kedge_view value)
{
    struct kedge_view again;
    return kedge_kv_peek(c->tx, c->table, key, &again) == KEDGE_OK && kedge_view_eq(again, value);
}

static int visit_any(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct check *c = arg;
    if (!is_found_again(c, key, value)) {
        return damaged(c, c->table, c->records, "a record is not found by its key");
    }
    c->records++;
    return KEDGE_OK;
}

/* How many records a table must have when all that went before was right. */
static uint64_t expected_records(const struct check *c, enum kedge_kv_table table)
{
    switch ((int)table) {
    case KEDGE_KV_ENTRY:
        return c->stored.frontier.size;
    case KEDGE_KV_TILE:
        return c->tiles;
    case KEDGE_KV_HEAD:
        return c->stored.head_count;
    case KEDGE_KV_META:
        return META_RECORDS + (c->l->is_copy ? 1u : 0u) + (c->l->forms != KEDGE_FORMS_AS_IS ? 1u : 0u);
    case KEDGE_KV_IDEM:
        return c->stored.idem_count;
    case KEDGE_KV_REF:
        return c->stored.ref_count;
    default:
        return 0; /* not a ledger's */
    }
}

/* Scan, count, last record and search by key tell the same of every table, and there is no record too
 * many. When the state itself is damaged (has_state is false), nothing says how many records there must
 * be; then only scan, count and search are compared with each other. */
static int check_table(struct check *c, enum kedge_kv_table table)
{
    struct kedge_view all = kedge_view_of(NULL, 0);
    struct kedge_buf last;
    uint64_t count = 0;
    c->table = table;
    c->records = 0;
    int err = kedge_kv_scan(c->tx, table, all, all, visit_any, c);
    if (err) {
        return c->reterr->err == err ? err : damaged(c, table, c->records, said_of(err));
    }
    err = kedge_kv_count(c->tx, table, &count);
    bool as_many = !c->has_state || count == expected_records(c, table);
    if (err || count != c->records || !as_many) {
        err = damaged(c, table, c->records, "records are missing or too many");
        if (err) {
            return err;
        }
    }
    kedge_buf_init(&last, KEDGE_KV_KEY_MAX);
    err = kedge_kv_last(c->tx, table, &last, NULL);
    kedge_buf_deinit(&last);
    if (err != KEDGE_OK && !(err == KEDGE_E_NOT_FOUND && count == 0)) {
        return err == KEDGE_E_NOMEM ? err : damaged(c, table, c->records, "the last record is not found");
    }
    return KEDGE_OK;
}

/* An error that only says "damage" has been told already, so the next table is looked at. */
static int check_tables(struct check *c)
{
    int err = KEDGE_OK;
    for (unsigned t = 0; t < KEDGE_KV_TABLES && !err; t++) {
        c->reterr->err = KEDGE_OK;
        err = check_table(c, (enum kedge_kv_table)t);
        err = err == KEDGE_E_CORRUPT && c->damage ? KEDGE_OK : err;
    }
    return err;
}

static int check_pointers(struct check *c, enum kedge_kv_table table, uint64_t expected)
{
    struct kedge_view all = kedge_view_of(NULL, 0);
    c->table = table;
    c->pointers = 0;
    int err = kedge_kv_scan(c->tx, table, all, all, visit_pointer, c);
    if (err) {
        return c->reterr->err == err ? err : damaged(c, table, c->pointers, said_of(err));
    }
    if (c->pointers != expected) {
        return damaged(c, table, c->pointers, "records are missing or too many");
    }
    return KEDGE_OK;
}

/* All of a checkpoint but its signature. */
static int read_head(const struct check *c, struct kedge_view bytes, struct kedge_checkpoint *ret)
{
    struct kedge_note note;
    KEDGE_TRY(kedge_note_parse(bytes, &note));
    int err = kedge_checkpoint_parse(note.text, ret);
    return err || kedge_view_eq(ret->origin, kedge_view_str(c->l->origin)) ? err : KEDGE_E_FORMAT;
}

/* Every stored checkpoint must be of a prefix of this tree: one with another root is the log's own
 * signature under a second history. Where the caller has no key that it trusts (unsigned_heads), text and
 * root are checked and the signature is left to it. */
static int visit_head(void *arg, struct kedge_view key, struct kedge_view note)
{
    struct check *c = arg;
    uint64_t size = key.len == 8 ? kedge_load_be64(key.ptr) : UINT64_MAX;
    if (size > c->stored.frontier.size) {
        return damaged(c, KEDGE_KV_HEAD, size,
                       "checkpoint of more entries than there are: the log was cut off");
    }
    c->heads++;
    struct kedge_checkpoint checkpoint;
    struct kedge_hash root;
    int err = kedge_head_load(kedge_view_str(c->l->origin), size, note, &c->room, &note);
    if (!err) {
        err = c->unsigned_heads ? read_head(c, note, &checkpoint)
                                : kedge_checkpoint_open(note, kedge_view_str(c->l->origin), &c->vkey, 1,
                                                        &checkpoint, &c->verdict);
    }
    if (err == KEDGE_E_NOMEM) {
        return err;
    }
    if (err) {
        return damaged(c, KEDGE_KV_HEAD, size, "checkpoint is malformed or not signed by the log's key");
    }
    err = kedge_merkle_root(kedgei_tile_subtree, c->tx, size, &root);
    if (err || checkpoint.size != size || !kedge_hash_eq(&checkpoint.root, &root)) {
        return damaged(c, KEDGE_KV_HEAD, size, "checkpoint does not have the root of its size");
    }
    return KEDGE_OK;
}

static int check_heads(struct check *c)
{
    int err = kedge_vkey_make(kedge_view_str(c->l->origin), KEDGE_KEY_ED25519, &c->l->public_key, &c->vkey);
    if (err) {
        return kedge_diag_set(c->reterr, err == KEDGE_E_NOMEM ? err : KEDGE_E_CORRUPT,
                              "ledger %s: its origin and key make no verifier key", c->l->origin);
    }
    struct kedge_view all = kedge_view_of(NULL, 0);
    err = kedge_kv_scan(c->tx, KEDGE_KV_HEAD, all, all, visit_head, c);
    if (err) {
        return c->reterr->err == err ? err : damaged(c, KEDGE_KV_HEAD, 0, said_of(err));
    }
    uint64_t count;
    err = kedge_kv_count(c->tx, KEDGE_KV_HEAD, &count);
    if (err || count != c->stored.head_count || c->heads != count) {
        return damaged(c, KEDGE_KV_HEAD, c->heads, "checkpoints are missing or too many");
    }
    return KEDGE_OK;
}

static int check_idem(struct check *c)
{
    return check_pointers(c, KEDGE_KV_IDEM, c->stored.idem_count);
}

static int check_refs(struct check *c)
{
    return check_pointers(c, KEDGE_KV_REF, c->stored.ref_count);
}

/* Each part by itself, so that damage in one does not hide damage in another. */
static int check_parts(struct check *c)
{
    static int (*const parts[])(struct check *) = {check_tree, check_idem, check_refs, check_heads,
                                                   check_tables};
    size_t first = c->has_state ? 0 : sizeof parts / sizeof parts[0] - 1; /* what needs no state */
    int err = KEDGE_OK;
    for (size_t i = first; i < sizeof parts / sizeof parts[0] && !err; i++) {
        c->reterr->err = KEDGE_OK;
        err = parts[i](c);
        err = err == KEDGE_E_CORRUPT && c->damage ? KEDGE_OK : err;
    }
    return err;
}

/* Messages go into a diag of this function's own, because a callback must not see half of one, and the
 * caller's is filled only when the check ends with an error. One read transaction covers everything, so a
 * writer at work beside it changes nothing that is compared. */
static int run_check(struct kedge_ledger *l, bool unsigned_heads, kedge_ledger_damage *damage,
                     kedge_ledger_progress *progress, void *arg, struct kedge_diag *reterr)
{
    struct kedge_diag own = {.err = KEDGE_OK};
    struct check *c = kedge_mem_new(1, sizeof *c);
    if (!c) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "ledger %s: out of memory", l->origin);
    }
    c->l = l;
    kedge_buf_init(&c->room, KEDGE_ENTRY_MAX);
    c->unsigned_heads = unsigned_heads;
    c->reterr = &own;
    c->progress = progress;
    c->damage = damage;
    c->arg = arg;
    int err = kedge_kv_begin(l->kv, false, &c->tx, &own);
    if (!err) {
        err = kedgei_state_read(c->tx, &c->stored);
        c->has_state = !err;
        if (err && damage) {
            err = damaged(c, KEDGE_KV_META, 0, "the record of the state is damaged");
        } else if (err) {
            err =
                kedge_diag_set(&own, err, "ledger %s: meta table, state: %s", l->origin, kedge_strerror(err));
        }
        if (!err) {
            err = check_parts(c);
        }
        kedge_kv_abort(c->tx);
    }
    if (c->found > 0 || err == KEDGE_E_CORRUPT) {
        kedge_kv_keep(l->kv);
    }
    kedge_buf_deinit(&c->room);
    kedge_mem_free(c);
    if (err && reterr) {
        *reterr = own;
    }
    return err;
}

int kedge_ledger_check_all(struct kedge_ledger *l, kedge_ledger_damage *damage,
                           kedge_ledger_progress *progress, void *arg, struct kedge_diag *reterr)
{
    return run_check(l, false, damage, progress, arg, reterr);
}

int kedge_ledger_check_unsigned(struct kedge_ledger *l, struct kedge_diag *reterr)
{
    return run_check(l, true, NULL, NULL, NULL, reterr);
}

int kedge_ledger_check(struct kedge_ledger *l, kedge_ledger_progress *progress, void *arg,
                       struct kedge_diag *reterr)
{
    return kedge_ledger_check_all(l, NULL, progress, arg, reterr);
}
