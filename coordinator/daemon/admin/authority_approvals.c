/* What organisations approved of a change of authority, and whether the main chain has it. */
#include <stdio.h>

#include "chain/statement/entry_index.h"
#include "common/base/mem.h"
#include "coordinator/daemon/admin/authority_impl.h"
#include "coordinator/daemon/host.h"

/* A signature names its key by a hash only. One key may be an admin's of two tenants; then nobody
 * could say which organisation approved, so that is an error and no choice. */
static int find_admin(void *arg, const struct kedge_hash *keyid, uint32_t *ret_tenant,
                      struct kedge_public_key *ret_key)
{
    const struct kedge_host *h = arg;
    const struct kedge_book_key *k;
    int found = KEDGE_E_NOT_FOUND;
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        int err = kedge_keybook_admin(&h->tenants[i].keys, keyid, &k);
        if (err == KEDGE_OK && found == KEDGE_OK) {
            return KEDGE_E_EXISTS;
        }
        if (err == KEDGE_OK) {
            *ret_tenant = i;
            *ret_key = k->key;
            found = KEDGE_OK;
        } else if (err == KEDGE_E_REVOKED && found != KEDGE_OK) {
            found = err;
        }
    }
    return found;
}

/* Adds to the refusal who has approved and who may still. */
static int tell_missing(const struct kedge_host *h, const struct kedge_approvals *a, struct kedge_diag *d)
{
    char text[KEDGE_DIAG_TEXT_MAX], missing[KEDGE_DIAG_TEXT_MAX] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < h->tenant_count && at + KEDGE_ID_MAX + 8 < sizeof missing / 2; i++) {
        bool has = false;
        for (uint32_t k = 0; k < a->count; k++) {
            has = has || a->tenants[k] == i;
        }
        if (!has) {
            at += (size_t)snprintf(missing + at, sizeof missing - at, "%s%s", at ? ", " : "",
                                   h->tenants[i].id.s);
        }
    }
    snprintf(text, sizeof text, "%s", d->text);
    return kedge_diag_set(d, KEDGE_E_DENIED, "%.300s; not yet by: %s", text,
                          missing[0] ? missing : "nobody else is here");
}

/* Approvals are judged by the tenants' keys as they are durable. While a tenant's keys are changing
 * the answer would depend on which statement arrives first, so it has to wait. */
int kedge_authority_approved(struct kedge_host *h, struct kedge_authority_change *c,
                             const struct kedge_signed_statement *entry, struct kedge_diag *d)
{
    struct kedge_organisations from = {find_admin, h};
    struct kedge_approvals approvals;
    int err = kedge_mainbook_approved(&h->authority.book, c->st, entry, &from, &approvals, d);
    if (err == KEDGE_E_DENIED && approvals.count < kedge_mainbook_quorum(&h->authority.book, c->st)) {
        err = tell_missing(h, &approvals, d);
    }
    for (uint32_t i = 0; i < approvals.count && !err; i++) {
        if (h->tenants[approvals.tenants[i]].keys_pending) {
            err = kedge_diag_set(d, KEDGE_E_BUSY, "the keys of tenant %s are changing",
                                 h->tenants[approvals.tenants[i]].id.s);
        }
    }
    c->approvals = approvals.count;
    return err;
}

int kedge_authority_check_approvals(struct kedge_host *h, struct kedge_authority_change *c,
                                    struct kedge_diag *d)
{
    struct kedge_signed_statement entry;
    int err = kedge_statement_read(kedge_buf_view(&c->envelope), c->st, &entry, d);
    if (!err) {
        err = kedge_authority_approved(h, c, &entry, d);
    }
    kedge_buf_deinit(&entry.payload);
    return err;
}

/* Compared byte for byte: the key alone could be that of another statement of the same kind. */
bool kedge_authority_is_stored(const struct kedge_host *h, struct kedge_authority_change *c)
{
    struct kedge_buf key, entry;
    kedge_buf_init(&key, KEDGE_IDEM_KEY_MAX);
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    kedge_statement_key(c->st->kind, &c->st->u, &key);
    bool same = !key.err && kedge_ledger_find(h->main.ledger, kedge_buf_view(&key), &c->index) == KEDGE_OK
                && kedge_ledger_get(h->main.ledger, c->index, &entry) == KEDGE_OK
                && kedge_view_eq(kedge_buf_view(&entry), kedge_buf_view(&c->envelope));
    kedge_buf_deinit(&key);
    kedge_buf_deinit(&entry);
    return same;
}

void kedge_authority_free(struct kedge_authority_change *c)
{
    kedge_main_batch_free(c->batch);
    kedge_buf_deinit(&c->envelope);
    kedge_key_wipe(&c->next);
    kedge_mem_free(c->st);
    kedge_mem_free(c);
}
