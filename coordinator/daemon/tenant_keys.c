/* Reads who may sign what for a tenant from its own ledger. No other table says it: what the ledger
 * holds is in force, so a restart, a copy and an auditor come to the same keys.
 *
 * A ledger may have millions of entries, and only a few of them concern keys. They are found by
 * their idempotency keys, which begin with the kind, so the start reads those few. */
#include "coordinator/daemon/tenant_keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/mem.h"
#include "common/base/try.h"

enum { ENTRIES_MAX = 1 << 22 };

struct found {
    uint64_t *indexes;
    size_t count, cap;
};

static int note_index(void *arg, struct kedge_view key, uint64_t index)
{
    struct found *f = arg;
    (void)key;
    KEDGE_TRY_MEM(f->count < ENTRIES_MAX
                  && kedge_mem_grow(&f->indexes, &f->cap, f->count, 64, sizeof *f->indexes));
    f->indexes[f->count++] = index;
    return KEDGE_OK;
}

static int compare(const void *pa, const void *pb)
{
    uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;
    return (a > b) - (a < b);
}

/* The scans bring each kind in the order of its keys, not of the log. Keys are judged by order (who
 * was in force when this was signed), so the indexes are sorted before anything is read. */
int kedge_entries_of(struct kedge_ledger *ledger, bool (*wanted)(enum kedge_statement_kind kind),
                     uint64_t **ret, size_t *ret_count)
{
    struct found f = {.indexes = NULL};
    int err = KEDGE_OK;
    for (int kind = 0; kind < KEDGE_ST_KIND_COUNT && !err; kind++) {
        char prefix[64];
        if (wanted((enum kedge_statement_kind)kind)) {
            snprintf(prefix, sizeof prefix, "%s/",
                     kedge_statement_kind_name((enum kedge_statement_kind)kind));
            err = kedge_ledger_scan_keys(ledger, kedge_view_str(prefix), note_index, &f);
        }
    }
    if (!err && f.count > 1) {
        qsort(f.indexes, f.count, sizeof *f.indexes, compare);
    }
    *ret = f.indexes;
    *ret_count = f.count;
    return err;
}

static bool concerns(enum kedge_statement_kind kind)
{
    return kedge_keybook_takes(kind);
}

static int read_and_apply(struct kedge_tenant *t, uint64_t index, struct kedge_statement *st,
                          struct kedge_diag *why)
{
    struct kedge_signed_statement entry;
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&bytes, KEDGE_ENTRY_MAX);
    KEDGE_TRY(kedge_ledger_get(t->log.ledger, index, &bytes));
    int err = kedge_statement_read(kedge_buf_view(&bytes), st, &entry, why);
    kedge_buf_deinit(&entry.payload);
    return err ? err : kedge_keybook_apply(&t->keys, st, index, why);
}

/* An entry that the keybook refuses cannot have been appended by this program: the ledger is
 * damaged or was replaced, and the start ends with the entry's number. */
static int take(struct kedge_tenant *t, uint64_t index, struct kedge_statement *st, struct kedge_diag *d)
{
    struct kedge_diag why = {.text = ""};
    int err = read_and_apply(t, index, st, &why);
    if (err == KEDGE_E_NOMEM) {
        return kedge_diag_set(d, err, "%s", kedge_strerror(err));
    }
    if (err) {
        return kedge_diag_set(d, KEDGE_E_CORRUPT, "log %s, entry %" PRIu64 ": %s", t->log.origin, index,
                              why.text[0] ? why.text : kedge_strerror(err));
    }
    if (st->kind == KEDGE_ST_KEY) {
        t->admin_key = st->u.key.public_key;
    }
    return KEDGE_OK;
}

int kedge_tenant_keys_load(struct kedge_tenant *t, struct kedge_diag *d)
{
    uint64_t *indexes = NULL;
    size_t count = 0;
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    kedge_keybook_init(&t->keys, &t->id);
    int err = st ? kedge_entries_of(t->log.ledger, concerns, &indexes, &count) : KEDGE_E_NOMEM;
    if (err) {
        (void)kedge_diag_set(d, err, "log %s: cannot read its keys: %s", t->log.origin, kedge_strerror(err));
    } else if (count == 0 || indexes[0] != 0) {
        err = kedge_diag_set(d, KEDGE_E_CORRUPT, "tenant %s: its ledger does not begin with an admin key",
                             t->id.s);
    }
    for (size_t i = 0; i < count && !err; i++) {
        err = take(t, indexes[i], st, d);
    }
    kedge_mem_free(indexes);
    kedge_mem_free(st);
    return err;
}

bool kedge_tenant_has_admin(const struct kedge_tenant *t, const struct kedge_public_key *key)
{
    const struct kedge_book_key *found = kedge_keybook_find(&t->keys, key);
    return found && found->role == KEDGE_ROLE_ADMIN && kedge_book_key_in_force(found);
}

bool kedge_tenant_shows_to(const struct kedge_tenant *t, const struct kedge_public_key *key)
{
    bool yes = kedge_tenant_has_admin(t, key);
    for (uint32_t i = 0; i < t->viewer_count && !yes; i++) {
        yes = kedge_public_key_eq(&t->viewers[i].key, key);
    }
    return yes;
}
