/* Who speaks for the federation, as the main chain says it: the statement key, operators, auditors,
 * and how many organisations must approve a change. Read from the chain at every start. Files in
 * STATE/keys only hold private keys; which of them is in force the chain decides. */
#include "coordinator/daemon/admin/authority.h"

#include <inttypes.h>

#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/admin/authority_impl.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/tenant_keys.h"

/* ---- at start ---- */

static bool concerns(enum kedge_statement_kind kind)
{
    return kedge_mainbook_concerns(kind);
}

static int read_and_apply(struct kedge_host *h, uint64_t index, struct kedge_statement *st,
                          struct kedge_diag *why)
{
    struct kedge_signed_statement entry;
    struct kedge_main_entry parts;
    struct kedge_buf bytes KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&bytes, KEDGE_ENTRY_MAX);
    KEDGE_TRY(kedge_ledger_get(h->main.ledger, index, &bytes));
    KEDGE_TRY(kedge_main_entry_decode(kedge_buf_view(&bytes), &parts));
    int err = kedge_statement_read(parts.body, st, &entry, why);
    kedge_buf_deinit(&entry.payload);
    return err ? err : kedge_mainbook_apply(&h->authority.book, st, index, why);
}

static int take_entry(struct kedge_host *h, uint64_t index, struct kedge_statement *st, struct kedge_diag *d)
{
    struct kedge_diag why = {.text = ""};
    int err = read_and_apply(h, index, st, &why);
    if (err == KEDGE_E_NOMEM) {
        return kedge_diag_set(d, err, "%s", kedge_strerror(err));
    }
    return err ? kedge_diag_set(d, KEDGE_E_CORRUPT, "log %s, entry %" PRIu64 ": %s", h->main.origin, index,
                                why.text[0] ? why.text : kedge_strerror(err))
               : KEDGE_OK;
}

/* Sites that know an old statement key follow these envelopes to the new one, each signed by the
 * key before it. The newest ones are kept, as far as they fit. */
void kedge_authority_list_rotations(struct kedge_host *h)
{
    struct kedge_authority *a = &h->authority;
    struct kedge_buf entry;
    size_t room = KEDGE_ROTATIONS_MAX;
    uint32_t first = a->book.key_count;
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    while (first > 1) { /* the first key came with the policy */
        kedge_buf_clear(&entry);
        if (kedge_ledger_get(h->main.ledger, a->book.keys[first - 1].from, &entry) != KEDGE_OK
            || entry.len + 4 > room) {
            break;
        }
        room -= entry.len + 4;
        first--;
    }
    kedge_buf_clear(&a->rotations);
    for (uint32_t i = first; i < a->book.key_count; i++) {
        kedge_buf_clear(&entry);
        if (i > 0 && kedge_ledger_get(h->main.ledger, a->book.keys[i].from, &entry) == KEDGE_OK) {
            kedge_buf_put_u32(&a->rotations, (uint32_t)entry.len);
            kedge_buf_put(&a->rotations, entry.ptr, entry.len);
        }
    }
    kedge_buf_deinit(&entry);
}

/* The key of the file and the key in force: after a crash between the rotation and the renaming the file's
 * comes next. */
static int check_key(struct kedge_host *h, struct kedge_diag *d)
{
    const struct kedge_public_key *now = kedge_mainbook_key(&h->authority.book);
    char path[KEDGE_PATH_MAX], hex[2 * KEDGE_KEY_LEN + 1];
    struct kedge_key_pair next;
    int err = kedge_state_path(path, d, h->state, "keys/statement-next.pem");
    bool begun = !err && kedge_file_exists(path);
    if (err || kedge_public_key_eq(now, &h->statement_key.public)) {
        if (begun) {
            kedge_log(KEDGE_LOG_WARN, "statement key",
                      "a rotation was begun and is not in the main chain; `kedge key rotate-statement` "
                      "goes on with it");
        }
        return err;
    }
    if (begun) {
        err = kedge_state_key(h->state, KEDGE_STATE_KEY_STATEMENT_NEXT, &next, d);
        if (err) {
            return err;
        }
        if (kedge_public_key_eq(now, &next.public)) {
            err = kedge_state_key_switch(h->state, d);
            h->statement_key = next;
            kedge_key_wipe(&next);
            kedge_log(KEDGE_LOG_INFO, "statement key", "an interrupted rotation is complete");
            return err;
        }
        kedge_key_wipe(&next);
    }
    kedge_hex_encode(now->b, sizeof now->b, hex);
    (void)kedge_diag_set(d, KEDGE_E_KEY, "keys/statement.pem is not the statement key in force, %s", hex);
    return kedge_diag_hint(d, "the main chain's entry %" PRIu64 " names it: put that key's file there",
                           h->authority.book.keys[h->authority.book.key_count - 1].from);
}

/* The policy is entry 0 and has no name after its kind, so the scan by kinds does not find it. */
int kedge_host_authority_load(struct kedge_host *h, struct kedge_diag *d)
{
    uint64_t *indexes KEDGE_CLEANUP(kedge_mem_release) = NULL;
    size_t count = 0;
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    kedge_mainbook_init(&h->authority.book);
    kedge_buf_init(&h->authority.rotations, KEDGE_ROTATIONS_MAX);
    int err = st ? kedge_entries_of(h->main.ledger, concerns, &indexes, &count) : KEDGE_E_NOMEM;
    if (err) {
        return kedge_diag_set(d, err, "log %s: cannot read its keys: %s", h->main.origin,
                              kedge_strerror(err));
    }
    KEDGE_TRY(take_entry(h, 0, st, d));
    for (size_t i = 0; i < count; i++) {
        KEDGE_TRY(take_entry(h, indexes[i], st, d));
    }
    KEDGE_TRY(check_key(h, d));
    kedge_authority_list_rotations(h);
    return KEDGE_OK;
}

void kedge_host_authority_close(struct kedge_host *h)
{
    kedge_mainbook_deinit(&h->authority.book);
    kedge_buf_deinit(&h->authority.rotations);
}

/* One key has one role in the whole federation. A key with two could sign a statement in one role
 * that is taken as one in the other. */
bool kedge_host_key_is_known(const struct kedge_host *h, const struct kedge_public_key *key)
{
    bool known =
        kedge_public_key_eq(key, &h->tls_key.public) || kedge_mainbook_names(&h->authority.book, key);
    for (uint32_t i = 0; i < h->tenant_count && !known; i++) {
        known = kedge_keybook_find(&h->tenants[i].keys, key)
                || kedge_public_key_eq(key, &h->tenants[i].log.key.public);
    }
    return known;
}

/* The same for keys that a tenant's statement brings: they must not be the coordinator's own, nor
 * those of operators and auditors. A TLS key decides what its holder may ask, so it must not be
 * another site's or witness's either. */
int kedge_host_check_coming(const struct kedge_host *h, const struct kedge_statement *st,
                            struct kedge_diag *d)
{
    const struct kedge_public_key *keys[2] = {NULL, NULL};
    bool taken = false;
    switch ((int)st->kind) {
    case KEDGE_ST_KEY_ADDED:
        keys[0] = &st->u.key_added.public_key;
        break;
    case KEDGE_ST_KEY_ROTATED:
        keys[0] = &st->u.key_rotated.new_key;
        taken = st->u.key_rotated.role == KEDGE_ROLE_SITE_TLS
                && (kedge_host_site_by_key(h, keys[0]) != KEDGE_COORD_NONE
                    || kedge_host_witness_by_key(h, keys[0]) != KEDGE_COORD_NONE);
        break;
    case KEDGE_ST_KEY_RECOVERED:
        keys[0] = &st->u.key_recovered.public_key;
        break;
    case KEDGE_ST_SITE_ENROLLED:
        keys[0] = &st->u.site_enrolled.tls_key;
        keys[1] = &st->u.site_enrolled.statement_key;
        break;
    case KEDGE_ST_WITNESS_ENROLLED:
        keys[0] = &st->u.witness_enrolled.tls_key;
        keys[1] = &st->u.witness_enrolled.cosign_key;
        break;
    default:
        break;
    }
    for (int i = 0; i < 2 && keys[i]; i++) {
        taken = taken || kedge_public_key_eq(keys[i], &h->tls_key.public)
                || kedge_mainbook_names(&h->authority.book, keys[i]);
    }
    return taken
               ? kedge_diag_set(d, KEDGE_E_KEY, "a key that has or had another role here; one key, one role")
               : KEDGE_OK;
}

/* ---- becoming durable ---- */

bool kedge_authority_sets_quota(const struct kedge_host *h, const struct kedge_hash *tenant)
{
    const struct kedge_authority_change *c = h->authority.pending;
    return c && c->st->kind == KEDGE_ST_QUOTA_SET && kedge_hash_eq(&c->st->u.quota_set.id, tenant);
}

bool kedge_host_authority_holds(const struct kedge_host *h)
{
    return h->authority.holds;
}
