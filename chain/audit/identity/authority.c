/* Who spoke for the coordinator, and when. Its statement key can be rotated, with the approval of
 * organisations; so which key must have signed an entry follows from the main chain's order, and for
 * entries of tenants' ledgers from how far these were anchored when the rotation came. The rules are
 * those of chain/statement/mainbook.h; here the record is walked through them. */
#include "chain/audit/identity/authority.h"

#include <string.h>

#include "chain/statement/mainbook.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* An admin key of a tenant, and when it was in force. */
struct admin {
    struct kedge_hash id;
    struct kedge_public_key key;
    uint32_t tenant;
    uint64_t from, until;
};

struct kedgei_authority {
    struct kedgei_audit *a;
    struct kedge_mainbook book;
    struct kedge_statement *st; /* the one that is looked at; too large for a stack */
    uint64_t *anchored;         /* by tenant: size in the last checkpoint that was taken */
    uint64_t
        *boundaries; /* tenant_count for each statement key but the first: sizes in front of its coming */
    struct admin *admins;
    size_t admin_count, admin_cap;
};

int kedgei_authority_new(struct kedgei_audit *a, struct kedgei_authority **ret)
{
    struct kedgei_authority *y = kedge_mem_new(1, sizeof *y);
    KEDGE_TRY_MEM(y);
    y->a = a;
    kedge_mainbook_init(&y->book);
    y->st = kedge_mem_new(1, sizeof *y->st);
    y->anchored = kedge_mem_new((size_t)a->tenant_count + 1, sizeof *y->anchored);
    if (!y->st || !y->anchored) {
        kedgei_authority_free(y);
        return KEDGE_E_NOMEM;
    }
    *ret = y;
    return KEDGE_OK;
}

void kedgei_authority_free(struct kedgei_authority *y)
{
    if (y) {
        kedge_mainbook_deinit(&y->book);
        kedge_mem_free(y->st);
        kedge_mem_free(y->anchored);
        kedge_mem_free(y->boundaries);
        kedge_mem_free(y->admins);
        kedge_mem_free(y);
    }
}

/* ---- the main chain ---- */

/* Fills y->st; *entry->payload is the caller's. */
static int read_fact(struct kedgei_authority *y, const struct kedgei_fact *fact,
                     struct kedge_signed_statement *entry)
{
    struct kedge_main_entry parts;
    kedge_buf_init(&entry->payload, 0);
    int err = kedge_main_entry_decode(kedgei_entry_at(&y->a->main, fact->index), &parts);
    return err ? err : kedge_statement_read(parts.body, y->st, entry, NULL);
}

static void tell(struct kedgei_authority *y, const struct kedgei_fact *fact, enum kedge_audit_code code,
                 const struct kedge_diag *d)
{
    kedgei_error(&y->a->findings, code, &y->a->main, fact->index, "%s: %s",
                 kedge_statement_kind_name((enum kedge_statement_kind)fact->kind), d->text);
}

static void take_checkpoint(struct kedgei_authority *y, const struct kedgei_fact *fact)
{
    const struct kedgei_anchor *anchor = fact->body;
    if (anchor->tenant < y->a->tenant_count && anchor->size > y->anchored[anchor->tenant]) {
        y->anchored[anchor->tenant] = anchor->size;
    }
}

/* A rotation was taken in: where the ledgers were. A rotation stands in the main chain, group assignments
 * in the tenants' ledgers: without this table nothing would say under which key an assignment must be
 * signed. An entry below the size anchored before the rotation belongs to the old key. */
static int put_boundary(struct kedgei_authority *y)
{
    size_t row = y->a->tenant_count, rows = y->book.key_count - 1;
    uint64_t *p = row > 0 ? kedge_mem_resize(y->boundaries, rows * row, sizeof *p) : NULL;
    if (row > 0 && !p) {
        return KEDGE_E_NOMEM;
    }
    if (row > 0) {
        y->boundaries = p;
        memcpy(p + (rows - 1) * row, y->anchored, row * sizeof *p);
    }
    return KEDGE_OK;
}

/* The first key is the trust file's where there is one, whatever the policy says. Who wrote the
 * record wrote the policy, too. The trust file's key is what an auditor has from elsewhere. */
static int take_policy(struct kedgei_authority *y, const struct kedgei_fact *fact, struct kedge_diag *d)
{
    int err = kedge_mainbook_apply(&y->book, y->st, fact->index, d);
    if (!err && y->a->main.has_authority) {
        y->book.keys[0].key = y->a->main.authority;
    }
    return err == KEDGE_E_NOMEM ? err : KEDGE_OK; /* a second policy is MISPLACED, which is said already */
}

static enum kedge_audit_code code_of(int err)
{
    return err == KEDGE_E_DENIED || err == KEDGE_E_STATE || err == KEDGE_E_EXISTS ? KEDGE_AUDIT_MISPLACED
                                                                                  : KEDGE_AUDIT_KEY;
}

/* Signatures are verified now and not with the others in parallel, because whether this change counts
 * decides which key the next entries need. */
static int take_change(struct kedgei_authority *y, const struct kedgei_fact *fact,
                       const struct kedge_signed_statement *entry)
{
    struct kedge_diag d = {.text = ""};
    uint32_t others, keys = y->book.key_count;
    if (fact->kind == KEDGE_ST_POLICY) {
        return take_policy(y, fact, &d);
    }
    y->a->counts.signatures += entry->signature_count;
    int err = kedge_mainbook_verify(&y->book, y->st, entry, &others, &d);
    if (err) { /* nobody entitled said it: it has no effect */
        tell(y, fact, err == KEDGE_E_REVOKED ? KEDGE_AUDIT_KEY_REVOKED : KEDGE_AUDIT_SIGNATURE, &d);
        return err == KEDGE_E_NOMEM ? err : KEDGE_OK;
    }
    err = kedge_mainbook_apply(&y->book, y->st, fact->index, &d);
    if (err && err != KEDGE_E_NOMEM) {
        tell(y, fact, code_of(err), &d);
        return KEDGE_OK;
    }
    return err || y->book.key_count == keys ? err : put_boundary(y);
}

int kedgei_authority_take(struct kedgei_authority *y, const struct kedgei_fact *fact)
{
    struct kedge_signed_statement entry;
    if (fact->kind == KEDGEI_FACT_CHECKPOINT) {
        take_checkpoint(y, fact);
    }
    if (fact->kind < 0 || fact->kind >= KEDGE_ST_KIND_COUNT
        || !kedge_mainbook_concerns((enum kedge_statement_kind)fact->kind)) {
        return KEDGE_OK;
    }
    int err = read_fact(y, fact, &entry);
    if (!err) {
        err = take_change(y, fact, &entry);
    }
    kedge_buf_deinit(&entry.payload);
    return err == KEDGE_E_NOMEM ? err : KEDGE_OK; /* what is malformed is so said already */
}

const struct kedge_public_key *kedgei_authority_now(const struct kedgei_authority *y)
{
    const struct kedge_public_key *now = kedge_mainbook_key(&y->book);
    return now ? now : y->a->main.has_authority ? &y->a->main.authority : NULL;
}

/* From the newest key back to the first whose boundary does not lie beyond the entry; there are few keys.
 */
const struct kedge_public_key *kedgei_authority_at(const struct kedgei_authority *y, uint32_t tenant,
                                                   uint64_t entry)
{
    uint32_t k = y->book.key_count ? y->book.key_count - 1 : 0;
    while (k > 0 && y->boundaries[(size_t)(k - 1) * y->a->tenant_count + tenant] > entry) {
        k--;
    }
    return k > 0 ? &y->book.keys[k].key : y->book.begun ? &y->book.keys[0].key : kedgei_authority_now(y);
}

/* ---- approvals ---- */

/* Admin keys are collected while the tenants' ledgers are walked; approvals in the main chain are judged
 * afterwards, when all are known. */
int kedgei_authority_tenant(struct kedgei_authority *y, uint32_t tenant, const struct kedge_keybook *book)
{
    for (uint32_t i = 0; i < book->count; i++) {
        const struct kedge_book_key *k = &book->keys[i];
        if (k->role != KEDGE_ROLE_ADMIN) {
            continue;
        }
        KEDGE_TRY_MEM(kedge_mem_grow(&y->admins, &y->admin_cap, y->admin_count, 64, sizeof *y->admins));
        y->admins[y->admin_count++] = (struct admin){k->id, k->key, tenant, k->from, k->until};
    }
    return KEDGE_OK;
}

/* As the tenants' ledgers were when they were last anchored: y->anchored. An approval counts only by a
 * key that was in force in the tenant's ledger as it was anchored at that moment: the coordinator, which
 * orders the entries, must not be able to use a key that was revoked before, nor one that came later. Two
 * organisations with one key would be counted twice, so that is an error. */
static int find_admin(void *arg, const struct kedge_hash *keyid, uint32_t *ret_tenant,
                      struct kedge_public_key *ret_key)
{
    const struct kedgei_authority *y = arg;
    int found = KEDGE_E_NOT_FOUND;
    for (size_t i = 0; i < y->admin_count; i++) {
        const struct admin *k = &y->admins[i];
        uint64_t size = y->anchored[k->tenant];
        if (!kedge_hash_eq(&k->id, keyid) || k->from >= size) {
            continue;
        }
        if (k->until < size) { /* it went with an entry that was anchored */
            found = found ? KEDGE_E_REVOKED : found;
            continue;
        }
        if (!found) {
            return KEDGE_E_EXISTS;
        }
        *ret_tenant = k->tenant;
        *ret_key = k->key;
        found = KEDGE_OK;
    }
    return found;
}

static int judge(struct kedgei_authority *y, struct kedge_mainbook *book, const struct kedgei_fact *fact,
                 const struct kedge_signed_statement *entry)
{
    struct kedge_organisations from = {find_admin, y};
    struct kedge_approvals approvals;
    struct kedge_diag d = {.text = ""};
    uint32_t others;
    if (fact->kind != KEDGE_ST_POLICY && kedge_mainbook_verify(book, y->st, entry, &others, NULL)) {
        return KEDGE_OK; /* said already */
    }
    if (fact->kind != KEDGE_ST_POLICY && (others > 0 || kedge_mainbook_quorum(book, y->st) > 0)
        && !KEDGEI_SKIP(y->a, approvals)) {
        int err = kedge_mainbook_approved(book, y->st, entry, &from, &approvals, &d);
        if (err == KEDGE_E_NOMEM) {
            return err;
        }
        if (err) {
            tell(y, fact, err == KEDGE_E_REVOKED ? KEDGE_AUDIT_KEY_REVOKED : KEDGE_AUDIT_SIGNATURE, &d);
        }
    }
    int err = kedge_mainbook_apply(book, y->st, fact->index, NULL);
    if (!err && fact->kind == KEDGE_ST_POLICY) {
        book->keys[0].key = y->book.keys[0].key;
    }
    return err == KEDGE_E_NOMEM ? err : KEDGE_OK;
}

/* The main chain is walked a second time with a book of its own, since the first walk came before the
 * tenants' ledgers were read. */
int kedgei_authority_approvals(struct kedgei_authority *y)
{
    const struct kedgei_log *main = &y->a->main;
    struct kedge_mainbook book;
    int err = KEDGE_OK;
    kedge_mainbook_init(&book);
    memset(y->anchored, 0, ((size_t)y->a->tenant_count + 1) * sizeof *y->anchored);
    for (uint64_t i = 0; i < main->count && err != KEDGE_E_NOMEM; i++) {
        const struct kedgei_fact *fact = kedgei_fact_at(main, i);
        struct kedge_signed_statement entry;
        if (fact->kind == KEDGEI_FACT_CHECKPOINT) {
            take_checkpoint(y, fact);
        } else if (fact->kind >= 0 && fact->kind < KEDGE_ST_KIND_COUNT
                   && kedge_mainbook_concerns((enum kedge_statement_kind)fact->kind)) {
            err = read_fact(y, fact, &entry);
            if (!err) {
                err = judge(y, &book, fact, &entry);
            }
            kedge_buf_deinit(&entry.payload);
        }
    }
    kedge_mainbook_deinit(&book);
    return err == KEDGE_E_NOMEM ? err : KEDGE_OK;
}
