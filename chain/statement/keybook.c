/* Which keys speak for a tenant, as its ledger says, at each entry. A row is never removed: a key that has
 * gone must still be found, to refuse its return (one key, one role, once) and to say when it went.
 *
 * Rows lie in the order of their coming. Two hash tables find them by key and by holder with open
 * addressing; they are at most half full, so a free slot ends every search. All that a statement changes
 * is checked first and room is made before the first change, so that a refused or failed statement leaves
 * the book as it was.
 *
 * For each holder the book also keeps the entry that last spoke of it (kedge_keybook_rests_on): a
 * statement whose signer had not seen that entry was signed for another state of things. */
#include "chain/statement/keybook.h"

#include <string.h>

#include "common/base/mem.h"

void kedge_keybook_init(struct kedge_keybook *book, const struct kedge_id *tenant)
{
    *book = (struct kedge_keybook){.tenant = *tenant};
}

void kedge_keybook_deinit(struct kedge_keybook *book)
{
    kedge_mem_free(book->keys);
    kedge_mem_free(book->by_key);
    kedge_mem_free(book->by_holder);
    *book = (struct kedge_keybook){.tenant = book->tenant};
}

/* ---- finding ---- */

/* FNV-1a, 32 bits. */
static uint32_t hash_bytes(uint32_t h, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        h = (h ^ ((const uint8_t *)bytes)[i]) * 16777619u;
    }
    return h;
}

static uint32_t hash_key(const struct kedge_public_key *key)
{
    return hash_bytes(2166136261u, key->b, sizeof key->b);
}

static uint32_t hash_holder(enum kedge_key_role role, const struct kedge_id *holder)
{
    return hash_bytes(2166136261u + (uint32_t)role, holder->s, strlen(holder->s));
}

/* The slot that has the key, or the free one where it belongs. There is always a free one. */
static uint32_t key_slot(const struct kedge_keybook *book, const struct kedge_public_key *key)
{
    uint32_t at = hash_key(key) & (book->slots - 1);
    while (book->by_key[at] && !kedge_public_key_eq(&book->keys[book->by_key[at] - 1].key, key)) {
        at = (at + 1) & (book->slots - 1);
    }
    return at;
}

static uint32_t holder_slot(const struct kedge_keybook *book, enum kedge_key_role role,
                            const struct kedge_id *holder)
{
    uint32_t at = hash_holder(role, holder) & (book->slots - 1);
    while (book->by_holder[at]) {
        const struct kedge_book_key *k = &book->keys[book->by_holder[at] - 1];
        if (k->role == role && kedge_id_eq(&k->holder, holder)) {
            break;
        }
        at = (at + 1) & (book->slots - 1);
    }
    return at;
}

const struct kedge_book_key *kedge_keybook_find(const struct kedge_keybook *book,
                                                const struct kedge_public_key *key)
{
    uint32_t i = book->slots ? book->by_key[key_slot(book, key)] : 0;
    return i ? &book->keys[i - 1] : NULL;
}

const struct kedge_book_key *kedge_keybook_of(const struct kedge_keybook *book, enum kedge_key_role role,
                                              const struct kedge_id *holder)
{
    uint32_t i = book->slots ? book->by_holder[holder_slot(book, role, holder)] : 0;
    return i ? &book->keys[i - 1] : NULL;
}

uint32_t kedge_keybook_admins(const struct kedge_keybook *book)
{
    return book->admins;
}

uint32_t kedge_keybook_quorum(const struct kedge_keybook *book)
{
    return book->admins / 2 + 1;
}

const struct kedge_book_key *kedge_keybook_recovery(const struct kedge_keybook *book)
{
    return book->recovery ? &book->keys[book->recovery - 1] : NULL;
}

/* ---- what may come ---- */

const char *kedge_key_role_name(enum kedge_key_role role)
{
    static const char *const names[] = {"admin key",      "recovery key",    "site's statement key",
                                        "site's TLS key", "cosignature key", "witness's TLS key"};
    return names[role];
}

/* A key that was ever in the book cannot come again, in no role: a key that was revoked may be in a
 * stranger's hands, and one key in two roles would let a signature for the one be shown as made for the
 * other. */
static int check_new(const struct kedge_keybook *book, const struct kedge_public_key *key,
                     struct kedge_diag *d)
{
    const struct kedge_book_key *k = kedge_keybook_find(book, key);
    return k ? kedge_diag_set(d, KEDGE_E_KEY,
                              "a key that has been the %s%s%s since entry %llu; one key, one role",
                              kedge_key_role_name(k->role), k->holder.s[0] ? " of " : "", k->holder.s,
                              (unsigned long long)k->from)
             : KEDGE_OK;
}

static int check_holder(const struct kedge_keybook *book, enum kedge_key_role role,
                        const struct kedge_id *holder, const struct kedge_public_key *key,
                        const struct kedge_public_key *tls, struct kedge_diag *d)
{
    if (kedge_keybook_of(book, role, holder)) {
        return kedge_diag_set(d, KEDGE_E_EXISTS, "\"%s\" was enrolled before; names are not reused",
                              holder->s);
    }
    if (kedge_public_key_eq(key, tls)) {
        return kedge_diag_set(d, KEDGE_E_KEY, "\"%s\": one key for two roles", holder->s);
    }
    int err = check_new(book, key, d);
    return err ? err : check_new(book, tls, d);
}

/* `key` is the holder's key of this role, and in force. */
static int check_held(const struct kedge_keybook *book, enum kedge_key_role role,
                      const struct kedge_id *holder, const struct kedge_public_key *key, struct kedge_diag *d)
{
    const struct kedge_book_key *k = kedge_keybook_find(book, key);
    bool named = holder->s[0] != '\0';
    if (named && !kedge_keybook_of(book, role, holder)) {
        return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "\"%s\" was not enrolled", holder->s);
    }
    if (!k || k->role != role || !kedge_id_eq(&k->holder, holder)) {
        return kedge_diag_set(d, KEDGE_E_KEY, "not the %s%s%s", kedge_key_role_name(role),
                              named ? " of " : " of this tenant", holder->s);
    }
    if (!kedge_book_key_in_force(k)) {
        return kedge_diag_set(d, KEDGE_E_REVOKED, "a key that %s with entry %llu",
                              k->revoked ? "was revoked" : "was rotated away", (unsigned long long)k->until);
    }
    return KEDGE_OK;
}

static int check_added(const struct kedge_keybook *book, const struct kedge_st_key_added *a,
                       struct kedge_diag *d)
{
    if (a->role == KEDGE_ROLE_RECOVERY && kedge_keybook_recovery(book)) {
        return kedge_diag_set(d, KEDGE_E_EXISTS, "a recovery key is in force; it is rotated by itself");
    }
    if (a->role == KEDGE_ROLE_ADMIN && book->admins == KEDGE_ADMIN_KEYS_MAX) {
        return kedge_diag_set(d, KEDGE_E_FULL, "at most %d admin keys are in force", KEDGE_ADMIN_KEYS_MAX);
    }
    return check_new(book, &a->public_key, d);
}

/* Without an admin key nobody could sign anything for the tenant any more, not even a new admin key. So
 * the last one can be exchanged, but not taken away. */
static int check_revoked(const struct kedge_keybook *book, const struct kedge_st_key_revoked *r,
                         struct kedge_diag *d)
{
    struct kedge_id nobody = {.s = ""};
    int err = check_held(book, r->role, &nobody, &r->public_key, d);
    if (!err && r->role == KEDGE_ROLE_ADMIN && book->admins == 1) {
        err = kedge_diag_set(d, KEDGE_E_DENIED, "the last admin key stays: rotate it, or recover");
    }
    return err;
}

/* The tenant that the statement names; every kind of this page begins with it. */
static const struct kedge_id *tenant_of(const struct kedge_statement *st)
{
    return st->kind == KEDGE_ST_KEY ? &st->u.key.tenant : &st->u.key_added.tenant;
}

int kedge_keybook_check(const struct kedge_keybook *book, const struct kedge_statement *st,
                        struct kedge_diag *reterr)
{
    struct kedge_id nobody = {.s = ""};
    const struct kedge_st_key_rotated *o = &st->u.key_rotated;
    const struct kedge_st_site_enrolled *s = &st->u.site_enrolled;
    const struct kedge_st_witness_enrolled *w = &st->u.witness_enrolled;
    int err = KEDGE_OK;
    if (!kedge_keybook_concerns(st->kind) && st->kind != KEDGE_ST_SITE_LABELS) {
        return KEDGE_OK;
    }
    if (!kedge_id_eq(tenant_of(st), &book->tenant)) {
        return kedge_diag_set(reterr, KEDGE_E_DENIED, "a statement about tenant \"%s\"", tenant_of(st)->s);
    }
    switch ((int)st->kind) {
    case KEDGE_ST_KEY:
        return book->count == 0 && st->u.key.scope == KEDGE_SCOPE_ADMIN
                   ? KEDGE_OK
                   : kedge_diag_set(reterr, KEDGE_E_EXISTS, "the first admin key is entry 0, and there only");
    case KEDGE_ST_KEY_ADDED:
        return check_added(book, &st->u.key_added, reterr);
    case KEDGE_ST_KEY_ROTATED:
        err = check_held(book, o->role, o->role > KEDGE_ROLE_RECOVERY ? &o->site : &nobody, &o->old_key,
                         reterr);
        return err ? err : check_new(book, &o->new_key, reterr);
    case KEDGE_ST_KEY_REVOKED:
        return check_revoked(book, &st->u.key_revoked, reterr);
    case KEDGE_ST_KEY_RECOVERED:
        return check_new(book, &st->u.key_recovered.public_key, reterr);
    case KEDGE_ST_SITE_ENROLLED:
        return check_holder(book, KEDGE_ROLE_SITE, &s->site, &s->statement_key, &s->tls_key, reterr);
    case KEDGE_ST_SITE_REVOKED:
        return check_held(book, KEDGE_ROLE_SITE, &st->u.site_revoked.site, &st->u.site_revoked.statement_key,
                          reterr);
    case KEDGE_ST_SITE_LABELS:
        return check_held(book, KEDGE_ROLE_SITE, &st->u.site_labels.site, &st->u.site_labels.statement_key,
                          reterr);
    case KEDGE_ST_WITNESS_ENROLLED:
        return check_holder(book, KEDGE_ROLE_WITNESS, &w->witness, &w->cosign_key, &w->tls_key, reterr);
    default:
        return check_held(book, KEDGE_ROLE_WITNESS, &st->u.witness_revoked.witness,
                          &st->u.witness_revoked.cosign_key, reterr);
    }
}

/* ---- what comes and goes ---- */

static void index_key(struct kedge_keybook *book, uint32_t i)
{
    const struct kedge_book_key *k = &book->keys[i];
    book->by_key[key_slot(book, &k->key)] = i + 1;
    if (k->holder.s[0]) {
        book->by_holder[holder_slot(book, k->role, &k->holder)] = i + 1;
    }
}

/* Room for two keys more, which is the most that a statement brings. Tables are built anew at twice the
 * size; they have twice as many slots as there is room for keys, so at least half of the slots stay free
 * and every search ends. */
static int reserve(struct kedge_keybook *book)
{
    if (book->count + 2 <= book->cap) {
        return KEDGE_OK;
    }
    uint32_t cap = book->cap ? 2 * book->cap : 8, slots = 2 * cap;
    struct kedge_book_key *keys = kedge_mem_resize(book->keys, cap, sizeof *keys);
    book->keys = keys ? keys : book->keys;
    uint32_t *by_key = kedge_mem_new(slots, sizeof *by_key);
    uint32_t *by_holder = kedge_mem_new(slots, sizeof *by_holder);
    if (!keys || !by_key || !by_holder) {
        kedge_mem_free(by_key);
        kedge_mem_free(by_holder);
        return KEDGE_E_NOMEM;
    }
    kedge_mem_free(book->by_key);
    kedge_mem_free(book->by_holder);
    book->by_key = by_key;
    book->by_holder = by_holder;
    book->cap = cap;
    book->slots = slots;
    for (uint32_t i = 0; i < book->count; i++) { /* in order: the last of a holder stays */
        index_key(book, i);
    }
    return KEDGE_OK;
}

static void come(struct kedge_keybook *book, enum kedge_key_role role, const struct kedge_id *holder,
                 const struct kedge_public_key *key, uint64_t index)
{
    uint32_t i = book->count++;
    struct kedge_book_key *k = &book->keys[i];
    *k = (struct kedge_book_key){.key = *key, .role = role, .from = index, .until = KEDGE_KEYBOOK_ALWAYS};
    kedge_public_key_hash(key, &k->id);
    if (holder) {
        k->holder = *holder;
    } else {
        k->earlier = book->last_admin;
        book->last_admin = i + 1;
    }
    book->admins += role == KEDGE_ROLE_ADMIN;
    book->recovery = role == KEDGE_ROLE_RECOVERY ? i + 1 : book->recovery;
    index_key(book, i);
}

static void go(struct kedge_keybook *book, uint32_t i, uint64_t index, bool revoked)
{
    struct kedge_book_key *k = &book->keys[i];
    k->until = index;
    k->revoked = revoked;
    book->admins -= k->role == KEDGE_ROLE_ADMIN;
    book->recovery = book->recovery == i + 1 ? 0 : book->recovery;
}

static void holder_goes(struct kedge_keybook *book, enum kedge_key_role role, const struct kedge_id *holder,
                        uint64_t index)
{
    go(book, book->by_holder[holder_slot(book, role, holder)] - 1, index, true);
}

/* No step here can fail: all conditions were checked and room was made, so a statement is taken in whole
 * or not at all. */
static void take_in(struct kedge_keybook *book, const struct kedge_statement *st, uint64_t index)
{
    const struct kedge_st_key_rotated *o = &st->u.key_rotated;
    const struct kedge_st_site_enrolled *s = &st->u.site_enrolled;
    const struct kedge_st_witness_enrolled *w = &st->u.witness_enrolled;
    switch ((int)st->kind) {
    case KEDGE_ST_KEY:
        come(book, KEDGE_ROLE_ADMIN, NULL, &st->u.key.public_key, index);
        break;
    case KEDGE_ST_KEY_ADDED:
        come(book, st->u.key_added.role, NULL, &st->u.key_added.public_key, index);
        break;
    case KEDGE_ST_KEY_ROTATED:
        go(book, book->by_key[key_slot(book, &o->old_key)] - 1, index, false);
        come(book, o->role, o->role > KEDGE_ROLE_RECOVERY ? &o->site : NULL, &o->new_key, index);
        break;
    case KEDGE_ST_KEY_REVOKED:
        go(book, book->by_key[key_slot(book, &st->u.key_revoked.public_key)] - 1, index, true);
        break;
    case KEDGE_ST_KEY_RECOVERED:
        for (uint32_t n = book->last_admin; n; n = book->keys[n - 1].earlier) {
            if (book->keys[n - 1].role == KEDGE_ROLE_ADMIN && kedge_book_key_in_force(&book->keys[n - 1])) {
                go(book, n - 1, index, true);
            }
        }
        come(book, KEDGE_ROLE_ADMIN, NULL, &st->u.key_recovered.public_key, index);
        break;
    case KEDGE_ST_SITE_ENROLLED:
        come(book, KEDGE_ROLE_SITE, &s->site, &s->statement_key, index);
        come(book, KEDGE_ROLE_SITE_TLS, &s->site, &s->tls_key, index);
        break;
    case KEDGE_ST_SITE_REVOKED:
        holder_goes(book, KEDGE_ROLE_SITE, &st->u.site_revoked.site, index);
        holder_goes(book, KEDGE_ROLE_SITE_TLS, &st->u.site_revoked.site, index);
        break;
    case KEDGE_ST_WITNESS_ENROLLED:
        come(book, KEDGE_ROLE_WITNESS, &w->witness, &w->cosign_key, index);
        come(book, KEDGE_ROLE_WITNESS_TLS, &w->witness, &w->tls_key, index);
        break;
    default:
        holder_goes(book, KEDGE_ROLE_WITNESS, &st->u.witness_revoked.witness, index);
        holder_goes(book, KEDGE_ROLE_WITNESS_TLS, &st->u.witness_revoked.witness, index);
        break;
    }
}

/* ---- what a statement rests on ---- */

/* The row that keeps when a statement was last about this one's holder; NULL: it is about none. */
static struct kedge_book_key *subject_row(const struct kedge_keybook *book, const struct kedge_statement *st)
{
    const struct kedge_id *holder = NULL;
    enum kedge_key_role role = KEDGE_ROLE_SITE;
    switch ((int)st->kind) {
    case KEDGE_ST_KEY_ROTATED:
        holder = &st->u.key_rotated.site;
        break;
    case KEDGE_ST_SITE_ENROLLED:
        holder = &st->u.site_enrolled.site;
        break;
    case KEDGE_ST_SITE_REVOKED:
        holder = &st->u.site_revoked.site;
        break;
    case KEDGE_ST_CONTACT:
        holder = &st->u.contact.about;
        break;
    case KEDGE_ST_SITE_LABELS:
        holder = &st->u.site_labels.site;
        break;
    case KEDGE_ST_WITNESS_ENROLLED:
    case KEDGE_ST_WITNESS_REVOKED:
        role = KEDGE_ROLE_WITNESS;
        holder = st->kind == KEDGE_ST_WITNESS_ENROLLED ? &st->u.witness_enrolled.witness
                                                       : &st->u.witness_revoked.witness;
        break;
    default:
        break;
    }
    uint32_t i = book->slots && holder && holder->s[0] ? book->by_holder[holder_slot(book, role, holder)] : 0;
    return i ? &book->keys[i - 1] : NULL;
}

static bool is_of_site(const struct kedge_statement *st)
{
    return st->kind == KEDGE_ST_KEY_ROTATED && st->u.key_rotated.role > KEDGE_ROLE_RECOVERY;
}

static bool is_of_tenant(const struct kedge_statement *st)
{
    return st->kind == KEDGE_ST_CONTACT && !st->u.contact.about.s[0];
}

uint64_t kedge_keybook_rests_on(const struct kedge_keybook *book, const struct kedge_statement *st)
{
    const struct kedge_book_key *row = subject_row(book, st);
    uint64_t seen = is_of_site(st) ? 0 : book->changed;
    uint64_t spoken = row ? row->spoken : is_of_tenant(st) ? book->spoken : 0;
    return spoken > seen ? spoken : seen;
}

/* After take_in: the row is the holder's newest. */
static void note_spoken(struct kedge_keybook *book, const struct kedge_statement *st, uint64_t index)
{
    struct kedge_book_key *row = subject_row(book, st);
    if (st->kind <= KEDGE_ST_KEY_RECOVERED && !is_of_site(st)) {
        book->changed = index + 1;
    }
    if (row) {
        row->spoken = index + 1;
    } else if (is_of_tenant(st)) {
        book->spoken = index + 1;
    }
}

int kedge_keybook_apply(struct kedge_keybook *book, const struct kedge_statement *st, uint64_t index,
                        struct kedge_diag *reterr)
{
    int err = kedge_keybook_check(book, st, reterr);
    if (!err && kedge_keybook_takes(st->kind) && !kedge_keybook_concerns(st->kind)) {
        note_spoken(book, st, index);
    }
    if (err || !kedge_keybook_concerns(st->kind)) {
        return err;
    }
    err = reserve(book);
    if (err) {
        return kedge_diag_set(reterr, err, "%s", kedge_strerror(err));
    }
    take_in(book, st, index);
    note_spoken(book, st, index);
    return KEDGE_OK;
}
