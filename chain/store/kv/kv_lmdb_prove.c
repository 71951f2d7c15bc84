/* Before the scrubber touches a file, LMDB itself is asked where each record lies. The layout that
 * kv_lmdb_file.c reads is private to LMDB: a version that lays its pages out in another way would make of a
 * page in use an unused one. So all records of all tables are walked twice, by that reading and through LMDB,
 * and each key and each value must have the same place and length in both, the reading's as an offset in the
 * file, LMDB's as an address in its map of it, always with the same difference. Then every byte that a read
 * can return is one that the reading knows as in use. Compared are sums over the two rows of places, so that
 * nothing need be kept; nobody gains by making them equal who can write to the file anyway. */
#include <string.h>

#include "chain/store/kv/kv_lmdb_file.h"
#include "common/base/try.h"

#define FACTOR UINT64_C(0x9E3779B97F4A7C15) /* odd: no step loses anything of the sum */

struct sum {
    uint64_t value, count;
};

/* The sum depends on the order, so two rows with the same places in another order differ. It is not a
 * cryptographic hash: it has to find a layout that is read wrongly, not an enemy. */
static void add(struct sum *s, uint64_t word)
{
    s->value = (s->value ^ word) * FACTOR;
    s->value ^= s->value >> 29;
}

static void add_record(struct sum *s, uint64_t key, uint64_t key_len, uint64_t data, uint64_t data_len)
{
    add(s, key);
    add(s, key_len);
    add(s, data);
    add(s, data_len);
    s->count++;
}

/* ---- as it is read here ---- */

struct reading {
    const struct kedgei_lmdb_file *f;
    uint64_t roots[KEDGE_KV_TABLES]; /* by the names in the main tree */
    unsigned found;
    struct sum sum;
    uint64_t first_key; /* of the table at hand */
};

/* Every table of the store must be found by its name, no more and no less: a table that this program does
 * not know would hold records that nobody compares. */
static bool note_table(void *arg, const struct kedgei_lmdb_page *page)
{
    struct reading *r = arg;
    for (size_t i = 0; i < page->count && page->is_leaf; i++) {
        struct kedgei_lmdb_node n = kedgei_lmdb_node_of(page, i);
        struct kedge_view name = kedge_view_of(page->bytes + n.key, n.key_len);
        unsigned table = 0;
        while (table < KEDGE_KV_TABLES
               && !kedge_view_eq(name, kedge_view_str(kedge_kv_table_name((enum kedge_kv_table)table)))) {
            table++;
        }
        if (table == KEDGE_KV_TABLES || !kedgei_lmdb_table_root(page, &n, &r->roots[table])) {
            return false;
        }
        r->found++;
    }
    return true;
}

static bool note_records(void *arg, const struct kedgei_lmdb_page *page)
{
    struct reading *r = arg;
    if (!page->is_leaf) {
        return page->count > 1; /* LMDB ends the process at a branch of one */
    }
    for (size_t i = 0; i < page->count; i++) {
        struct kedgei_lmdb_node n = kedgei_lmdb_node_of(page, i);
        uint64_t start = page->number * r->f->page_size, data = start + n.data;
        if (n.flags & KEDGEI_LMDB_BIG) {
            data = n.number * r->f->page_size + KEDGEI_LMDB_HEADER;
        }
        r->first_key = r->sum.count == 0 ? start + n.key : r->first_key;
        add_record(&r->sum, start + n.key, n.key_len, data, n.data_len);
    }
    return true;
}

/* ---- as LMDB finds it ---- */

struct found {
    uintptr_t base; /* where the file is mapped; 0: not known yet */
    uint64_t first_key;
    struct sum sum;
};

/* LMDB gives addresses in its map. The first record of the first table that has one fixes where the map
 * begins; from then on every address must fit. */
static int see_record(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct found *f = arg;
    f->base = f->base ? f->base : (uintptr_t)key.ptr - (uintptr_t)f->first_key;
    add_record(&f->sum, (uintptr_t)key.ptr - f->base, key.len, (uintptr_t)value.ptr - f->base, value.len);
    return KEDGE_OK;
}

static int prove_table(struct kedge_kv_tx *tx, enum kedge_kv_table table, struct reading *r, struct found *f)
{
    const struct kedge_view all = kedge_view_of(NULL, 0);
    r->sum = f->sum = (struct sum){.value = 0};
    int err = kedgei_lmdb_walk(r->f, r->roots[table], note_records, r);
    f->first_key = r->first_key;
    if (!err) {
        err = kedge_kv_scan(tx, table, all, all, see_record, f);
    }
    bool same = f->sum.count == r->sum.count && f->sum.value == r->sum.value;
    return err || same ? err : KEDGE_E_CORRUPT;
}

/* The transaction must read the very state that was walked; with a commit in between the two rows would
 * be of different trees. */
int kedgei_lmdb_prove(struct kedge_kv *kv, const struct kedgei_lmdb_file *file)
{
    struct reading r = {.f = file};
    struct found f = {.base = 0};
    struct kedge_kv_tx *tx;
    int err = kedgei_lmdb_walk(file, file->newest.root, note_table, &r);
    err = err || r.found == KEDGE_KV_TABLES ? err : KEDGE_E_CORRUPT;
    if (err) {
        return err;
    }
    KEDGE_TRY(kedge_kv_begin(kv, false, &tx, NULL));
    err = kedgei_lmdb_number_of(tx) == file->newest.number ? KEDGE_OK : KEDGE_E_CORRUPT;
    for (unsigned t = 0; t < KEDGE_KV_TABLES && !err; t++) {
        err = prove_table(tx, (enum kedge_kv_table)t, &r, &f);
    }
    kedge_kv_abort(tx);
    return err;
}
