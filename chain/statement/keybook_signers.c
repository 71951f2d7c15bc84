/* Who must sign what. To add a key to a tenant's, or to revoke another's, takes a majority of its admins,
 * so that one stolen admin key neither adds its thief nor removes the others. A key that joins the admins
 * signs too, which proves that somebody holds it. Exactly the keys that are needed may sign, no others: a
 * signature that nobody asked for would be stored for ever and mean nothing.
 *
 * A recovery key replaces all admins at once and is meant to be kept off line; it can be used alone, for
 * it is there for the day on which the admins' keys are lost. */
#include <stdio.h>

#include "chain/statement/keybook.h"

static int deny(struct kedge_diag *d, const struct kedge_statement *st, const char *expected)
{
    return kedge_diag_set(d, KEDGE_E_DENIED, "%s: expected the signature of %s, and no other",
                          kedge_statement_kind_name(st->kind), expected);
}

/* A key of that role whose hash is keyid. */
static int find_signer(const struct kedge_keybook *book, enum kedge_key_role role,
                       const struct kedge_hash *keyid, const struct kedge_book_key **ret)
{
    for (uint32_t n = book->last_admin; n; n = book->keys[n - 1].earlier) {
        const struct kedge_book_key *k = &book->keys[n - 1];
        if (k->role != role) {
            continue;
        }
        if (kedge_hash_eq(&k->id, keyid)) {
            *ret = k;
            return kedge_book_key_in_force(k) ? KEDGE_OK : KEDGE_E_REVOKED;
        }
    }
    return KEDGE_E_DENIED;
}

int kedge_keybook_admin(const struct kedge_keybook *book, const struct kedge_hash *keyid,
                        const struct kedge_book_key **ret)
{
    int err = find_signer(book, KEDGE_ROLE_ADMIN, keyid, ret);
    return err == KEDGE_E_DENIED ? KEDGE_E_NOT_FOUND : err;
}

static int refuse_signer(struct kedge_diag *d, const struct kedge_statement *st, int err,
                         const struct kedge_book_key *k, const char *expected)
{
    if (err != KEDGE_E_REVOKED) {
        return deny(d, st, expected);
    }
    return kedge_diag_set(d, err, "%s: signed by an %s that %s with entry %llu",
                          kedge_statement_kind_name(st->kind), kedge_key_role_name(k->role),
                          k->revoked ? "was revoked" : "was rotated away", (unsigned long long)k->until);
}

static bool is_hash_of(const struct kedge_hash *keyid, const struct kedge_public_key *key)
{
    struct kedge_hash h;
    kedge_public_key_hash(key, &h);
    return kedge_hash_eq(keyid, &h);
}

/* Exactly these keys, each once. */
static int exactly(const struct kedge_statement *st, const struct kedge_dsse_entry *s, uint32_t count,
                   const struct kedge_public_key *const *keys, uint32_t key_count,
                   struct kedge_public_key *ret, const char *expected, struct kedge_diag *d)
{
    for (uint32_t i = 0; i < count && count == key_count; i++) {
        uint32_t k = 0;
        while (k < key_count && !is_hash_of(&s[i].keyid, keys[k])) {
            k++;
        }
        if (k == key_count) {
            return deny(d, st, expected);
        }
        ret[i] = *keys[k]; /* keyids are distinct, so each key is met once */
    }
    return count == key_count ? KEDGE_OK : deny(d, st, expected);
}

/* A quorum of admins, and `with` when there is one. */
static int admins_sign(const struct kedge_keybook *book, const struct kedge_statement *st,
                       const struct kedge_dsse_entry *s, uint32_t count, const struct kedge_public_key *with,
                       struct kedge_public_key *ret, struct kedge_diag *d)
{
    char expected[120];
    uint32_t admins = 0;
    bool has_new = !with;
    const struct kedge_book_key *k = NULL;
    snprintf(expected, sizeof expected, "%u of the %u admin keys in force%s", kedge_keybook_quorum(book),
             book->admins, with ? " and of the key that comes" : "");
    for (uint32_t i = 0; i < count; i++) {
        if (with && is_hash_of(&s[i].keyid, with)) {
            ret[i] = *with;
            has_new = true;
            continue;
        }
        int err = find_signer(book, KEDGE_ROLE_ADMIN, &s[i].keyid, &k);
        if (err) {
            return refuse_signer(d, st, err, k, expected);
        }
        ret[i] = k->key;
        admins++;
    }
    return has_new && admins >= kedge_keybook_quorum(book) ? KEDGE_OK : deny(d, st, expected);
}

static int one_admin_signs(const struct kedge_keybook *book, const struct kedge_statement *st,
                           const struct kedge_dsse_entry *s, uint32_t count, struct kedge_public_key *ret,
                           struct kedge_diag *d)
{
    const struct kedge_book_key *k = NULL;
    int err = count == 1 ? find_signer(book, KEDGE_ROLE_ADMIN, &s->keyid, &k) : KEDGE_E_DENIED;
    if (err) {
        return refuse_signer(d, st, err, k, "an admin key in force");
    }
    ret[0] = k->key;
    return KEDGE_OK;
}

static int revoked_signers(const struct kedge_keybook *book, const struct kedge_statement *st,
                           const struct kedge_dsse_entry *s, uint32_t count, struct kedge_public_key *ret,
                           struct kedge_diag *d)
{
    const struct kedge_st_key_revoked *r = &st->u.key_revoked;
    const struct kedge_public_key *own = &r->public_key;
    if (r->role == KEDGE_ROLE_RECOVERY || (count == 1 && is_hash_of(&s->keyid, own))) {
        return exactly(st, s, count, &own, 1, ret, "the recovery key itself", d);
    }
    return admins_sign(book, st, s, count, NULL, ret, d);
}

/* The key that goes and the key that comes; of a site's TLS key the site's statement key, because the one
 * that goes is for connections and may be the stolen one. */
static int rotated_signers(const struct kedge_keybook *book, const struct kedge_statement *st,
                           const struct kedge_dsse_entry *s, uint32_t count, struct kedge_public_key *ret,
                           struct kedge_diag *d)
{
    const struct kedge_st_key_rotated *r = &st->u.key_rotated;
    const struct kedge_public_key *two[2] = {&r->old_key, &r->new_key};
    if (r->role != KEDGE_ROLE_SITE_TLS) {
        return exactly(st, s, count, two, 2, ret, "the key that goes and of the one that comes", d);
    }
    const struct kedge_book_key *site = kedge_keybook_of(book, KEDGE_ROLE_SITE, &r->site);
    if (!site) {
        return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "\"%s\" was not enrolled", r->site.s);
    }
    if (!kedge_book_key_in_force(site)) {
        return refuse_signer(d, st, KEDGE_E_REVOKED, site, "");
    }
    two[0] = &site->key;
    return exactly(st, s, count, two, 2, ret, "the site's statement key and of the TLS key that comes", d);
}

int kedge_keybook_signers(const struct kedge_keybook *book, const struct kedge_statement *st,
                          const struct kedge_dsse_entry *signatures, uint32_t count,
                          struct kedge_public_key ret_keys[KEDGE_DSSE_SIGNATURES_MAX],
                          struct kedge_diag *reterr)
{
    const struct kedge_public_key *two[2];
    const struct kedge_book_key *recovery = kedge_keybook_recovery(book);
    switch ((int)st->kind) {
    case KEDGE_ST_KEY:
        two[0] = &st->u.key.public_key;
        return exactly(st, signatures, count, two, 1, ret_keys, "the key itself", reterr);
    case KEDGE_ST_KEY_ADDED:
        return admins_sign(book, st, signatures, count, &st->u.key_added.public_key, ret_keys, reterr);
    case KEDGE_ST_KEY_ROTATED:
        return rotated_signers(book, st, signatures, count, ret_keys, reterr);
    case KEDGE_ST_KEY_REVOKED:
        return revoked_signers(book, st, signatures, count, ret_keys, reterr);
    case KEDGE_ST_KEY_RECOVERED:
        if (!recovery) {
            return kedge_diag_set(reterr, KEDGE_E_DENIED, "key-recovered: this tenant has no recovery key");
        }
        two[0] = &recovery->key;
        two[1] = &st->u.key_recovered.public_key;
        return exactly(st, signatures, count, two, 2, ret_keys, "the recovery key and of the key that comes",
                       reterr);
    default:
        return one_admin_signs(book, st, signatures, count, ret_keys, reterr);
    }
}

int kedge_keybook_verify(const struct kedge_keybook *book, const struct kedge_statement *st,
                         const struct kedge_signed_statement *entry, struct kedge_diag *reterr)
{
    struct kedge_public_key keys[KEDGE_DSSE_SIGNATURES_MAX];
    int err = kedge_keybook_signers(book, st, entry->signatures, entry->signature_count, keys, reterr);
    for (uint32_t i = 0; i < entry->signature_count && !err; i++) {
        err = kedge_dsse_entry_verify(&entry->signatures[i], kedge_buf_view(&entry->payload), &keys[i]);
        if (err) {
            (void)kedge_diag_set(reterr, err, "%s: signature %u: %s", kedge_statement_kind_name(st->kind),
                                 i + 1, kedge_strerror(err));
        }
    }
    return err;
}
