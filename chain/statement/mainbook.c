/* Who decides in a federation, as its main chain says: the coordinator's statement key and, once tenants
 * have made it so, a number of organisations that must approve changes.
 *
 * Raising or lowering that number takes the larger of the old and the new one (kedge_mainbook_quorum), so
 * that few organisations can neither lower it nor raise it for the others. Two admins of one tenant count
 * once. Every change names the main chain that it is for and an entry before which it must stand:
 * approvals that were collected and not used cannot be used later or elsewhere. */
#include "chain/statement/mainbook.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"

void kedge_mainbook_init(struct kedge_mainbook *book)
{
    *book = (struct kedge_mainbook){.begun = false};
}

void kedge_mainbook_deinit(struct kedge_mainbook *book)
{
    kedge_mem_free(book->keys);
    kedge_mem_free(book->roles);
    kedge_mainbook_init(book);
}

bool kedge_mainbook_concerns(enum kedge_statement_kind kind)
{
    return kind >= KEDGE_ST_POLICY && kind <= KEDGE_ST_POLICY_CHANGED;
}

/* ---- finding ---- */

static bool is_hash_of(const struct kedge_hash *keyid, const struct kedge_public_key *key)
{
    struct kedge_hash h;
    kedge_public_key_hash(key, &h);
    return kedge_hash_eq(keyid, &h);
}

const struct kedge_public_key *kedge_mainbook_key(const struct kedge_mainbook *book)
{
    return book->begun ? &book->keys[book->key_count - 1].key : NULL;
}

const struct kedge_main_key *kedge_mainbook_find(const struct kedge_mainbook *book,
                                                 const struct kedge_hash *keyid)
{
    for (uint32_t i = book->key_count; i > 0; i--) { /* the newest is the likeliest */
        if (is_hash_of(keyid, &book->keys[i - 1].key)) {
            return &book->keys[i - 1];
        }
    }
    return NULL;
}

const struct kedge_main_role *kedge_mainbook_role(const struct kedge_mainbook *book,
                                                  const struct kedge_public_key *key)
{
    for (uint32_t i = 0; i < book->role_count; i++) {
        if (book->roles[i].until == KEDGE_MAINBOOK_ALWAYS && kedge_public_key_eq(&book->roles[i].key, key)) {
            return &book->roles[i];
        }
    }
    return NULL;
}

bool kedge_mainbook_names(const struct kedge_mainbook *book, const struct kedge_public_key *key)
{
    bool named = book->begun && kedge_public_key_eq(&book->main_log_key, key);
    for (uint32_t i = 0; i < book->key_count; i++) {
        named = named || kedge_public_key_eq(&book->keys[i].key, key);
    }
    for (uint32_t i = 0; i < book->role_count; i++) {
        named = named || kedge_public_key_eq(&book->roles[i].key, key);
    }
    return named;
}

uint32_t kedge_mainbook_quorum(const struct kedge_mainbook *book, const struct kedge_statement *st)
{
    uint32_t next = st->kind == KEDGE_ST_POLICY_CHANGED ? st->u.policy_changed.admin_quorum : 0;
    return next > book->admin_quorum ? next : book->admin_quorum;
}

/* ---- who signs ---- */

/* The coordinator's keys that must have signed: one, or two of a rotation. */
static uint32_t own_keys(const struct kedge_mainbook *book, const struct kedge_statement *st,
                         const struct kedge_public_key *ret[2])
{
    ret[0] = st->kind == KEDGE_ST_POLICY ? &st->u.policy.statement_key : kedge_mainbook_key(book);
    ret[1] = &st->u.statement_key_rotated.new_key;
    return !ret[0] ? 0 : st->kind == KEDGE_ST_STATEMENT_KEY_ROTATED ? 2 : 1;
}

/* Which of them a signature claims to be by; `count`: none. */
static uint32_t own_key_of(const struct kedge_dsse_entry *s, const struct kedge_public_key *const *keys,
                           uint32_t count)
{
    uint32_t k = 0;
    while (k < count && !is_hash_of(&s->keyid, keys[k])) {
        k++;
    }
    return k;
}

static int verify_one(const struct kedge_statement *st, const struct kedge_signed_statement *entry,
                      uint32_t i, const struct kedge_public_key *key, struct kedge_diag *d)
{
    int err = kedge_dsse_entry_verify(&entry->signatures[i], kedge_buf_view(&entry->payload), key);
    return err ? kedge_diag_set(d, err, "%s: signature %u: %s", kedge_statement_kind_name(st->kind), i + 1,
                                kedge_strerror(err))
               : KEDGE_OK;
}

int kedge_mainbook_verify(const struct kedge_mainbook *book, const struct kedge_statement *st,
                          const struct kedge_signed_statement *entry, uint32_t *ret_others,
                          struct kedge_diag *reterr)
{
    const struct kedge_public_key *keys[2];
    uint32_t count = own_keys(book, st, keys), own = 0, others = 0;
    const struct kedge_main_key *gone = NULL;
    for (uint32_t i = 0; i < entry->signature_count; i++) {
        uint32_t k = own_key_of(&entry->signatures[i], keys, count);
        if (k == count) {
            const struct kedge_main_key *other = kedge_mainbook_find(book, &entry->signatures[i].keyid);
            gone = other ? other : gone;
            others++;
            continue;
        }
        KEDGE_TRY(verify_one(st, entry, i, keys[k], reterr));
        own++; /* keyids are distinct, so each key is met once */
    }
    if (gone) {
        return kedge_diag_set(reterr, KEDGE_E_REVOKED,
                              "%s: signed by a statement key that was rotated away with entry %llu",
                              kedge_statement_kind_name(st->kind), (unsigned long long)gone->until);
    }
    if (count == 0 || own != count) {
        return kedge_diag_set(reterr, KEDGE_E_DENIED, "%s: expected the signature of the statement key%s",
                              kedge_statement_kind_name(st->kind),
                              st->kind == KEDGE_ST_STATEMENT_KEY_ROTATED
                                  ? " that goes and of the one that comes"
                                  : " in force");
    }
    *ret_others = others;
    return KEDGE_OK;
}

static void count_tenant(struct kedge_approvals *a, uint32_t tenant)
{
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->tenants[i] == tenant) {
            return; /* two admins of one tenant are one organisation */
        }
    }
    a->tenants[a->count++] = tenant;
}

static int refuse_approval(const struct kedge_statement *st, uint32_t i, int err, struct kedge_diag *d)
{
    static const char format[] = "%s: signature %u is by %s";
    const char *kind = kedge_statement_kind_name(st->kind);
    if (err == KEDGE_E_REVOKED) {
        return kedge_diag_set(d, err, format, kind, i + 1, "an admin key that is in force no more");
    }
    return kedge_diag_set(d, KEDGE_E_DENIED, format, kind, i + 1,
                          err == KEDGE_E_EXISTS
                              ? "a key that is an admin's in several tenants: it approves nothing"
                              : "no admin of an organisation of this federation");
}

int kedge_mainbook_approved(const struct kedge_mainbook *book, const struct kedge_statement *st,
                            const struct kedge_signed_statement *entry,
                            const struct kedge_organisations *from, struct kedge_approvals *ret,
                            struct kedge_diag *reterr)
{
    const struct kedge_public_key *keys[2];
    uint32_t count = own_keys(book, st, keys), needed = kedge_mainbook_quorum(book, st);
    *ret = (struct kedge_approvals){.count = 0};
    for (uint32_t i = 0; i < entry->signature_count; i++) {
        struct kedge_public_key key;
        uint32_t tenant;
        if (own_key_of(&entry->signatures[i], keys, count) < count) {
            continue;
        }
        int err = from->find(from->arg, &entry->signatures[i].keyid, &tenant, &key);
        if (err) {
            return refuse_approval(st, i, err, reterr);
        }
        err = verify_one(st, entry, i, &key, reterr);
        if (err) {
            return err;
        }
        count_tenant(ret, tenant);
    }
    return ret->count >= needed ? KEDGE_OK
                                : kedge_diag_set(reterr, KEDGE_E_DENIED,
                                                 "%s: approved by %u of the %u organisations that it takes",
                                                 kedge_statement_kind_name(st->kind), ret->count, needed);
}

/* ---- what may come ---- */

static int check_new(const struct kedge_mainbook *book, const struct kedge_public_key *key,
                     struct kedge_diag *d)
{
    return kedge_mainbook_names(book, key)
               ? kedge_diag_set(d, KEDGE_E_KEY, "this key has or had another role here; one key, one role")
               : KEDGE_OK;
}

static int check_bound(const struct kedge_mainbook *book, const struct kedge_st_main_bound *of,
                       uint64_t index, struct kedge_diag *d)
{
    if (!book->begun) {
        return kedge_diag_set(d, KEDGE_E_STATE, "it stands before the policy");
    }
    if (strcmp(of->deployment, book->deployment) != 0
        || !kedge_public_key_eq(&of->main_log_key, &book->main_log_key)) {
        return kedge_diag_set(d, KEDGE_E_DENIED, "a statement for another main chain, of deployment \"%s\"",
                              of->deployment);
    }
    return index < of->before
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_STATE, "it was to stand before entry %llu: propose it anew",
                                (unsigned long long)of->before);
}

static int check_rotated(const struct kedge_mainbook *book, const struct kedge_st_statement_key_rotated *r,
                         struct kedge_diag *d)
{
    if (!kedge_public_key_eq(&r->old_key, kedge_mainbook_key(book))) {
        return kedge_diag_set(d, KEDGE_E_KEY, "the key that goes is not the statement key in force");
    }
    if (book->key_count == KEDGE_STATEMENT_KEYS_MAX) {
        return kedge_diag_set(d, KEDGE_E_FULL, "a main chain has at most %d statement keys",
                              KEDGE_STATEMENT_KEYS_MAX);
    }
    return check_new(book, &r->new_key, d);
}

static int check_granted(const struct kedge_mainbook *book, const struct kedge_st_role_granted *g,
                         struct kedge_diag *d)
{
    return book->role_count == KEDGE_ROLES_MAX
               ? kedge_diag_set(d, KEDGE_E_FULL, "no more than %d roles were ever granted", KEDGE_ROLES_MAX)
               : check_new(book, &g->public_key, d);
}

static int check_revoked(const struct kedge_mainbook *book, const struct kedge_st_role_revoked *r,
                         struct kedge_diag *d)
{
    const struct kedge_main_role *now = kedge_mainbook_role(book, &r->public_key);
    if (!now) {
        return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "this key has no role here now");
    }
    return now->role == r->role ? KEDGE_OK
                                : kedge_diag_set(d, KEDGE_E_KEY, "another role than entry %llu granted",
                                                 (unsigned long long)now->from);
}

int kedge_mainbook_check(const struct kedge_mainbook *book, const struct kedge_statement *st, uint64_t index,
                         struct kedge_diag *reterr)
{
    if (!kedge_mainbook_concerns(st->kind)) {
        return KEDGE_OK;
    }
    if (st->kind == KEDGE_ST_POLICY) {
        return !book->begun && index == 0
                   ? KEDGE_OK
                   : kedge_diag_set(reterr, KEDGE_E_EXISTS, "the policy is entry 0, and there only");
    }
    /* all four begin with their bound */
    KEDGE_TRY(check_bound(book, &st->u.role_granted.of, index, reterr));
    switch ((int)st->kind) {
    case KEDGE_ST_ROLE_GRANTED:
        return check_granted(book, &st->u.role_granted, reterr);
    case KEDGE_ST_ROLE_REVOKED:
        return check_revoked(book, &st->u.role_revoked, reterr);
    case KEDGE_ST_STATEMENT_KEY_ROTATED:
        return check_rotated(book, &st->u.statement_key_rotated, reterr);
    default:
        return st->u.policy_changed.number == book->changes + 1
                   ? KEDGE_OK
                   : kedge_diag_set(reterr, KEDGE_E_EXISTS, "change %llu of the policy, expected %llu",
                                    (unsigned long long)st->u.policy_changed.number,
                                    (unsigned long long)book->changes + 1);
    }
}

/* ---- what comes and goes ---- */

static int add_key(struct kedge_mainbook *book, const struct kedge_public_key *key, uint64_t index)
{
    struct kedge_main_key *keys = kedge_mem_resize(book->keys, (size_t)book->key_count + 1, sizeof *keys);
    KEDGE_TRY_MEM(keys);
    book->keys = keys;
    if (book->key_count > 0) {
        keys[book->key_count - 1].until = index;
    }
    keys[book->key_count++] = (struct kedge_main_key){*key, index, KEDGE_MAINBOOK_ALWAYS};
    return KEDGE_OK;
}

static int add_role(struct kedge_mainbook *book, const struct kedge_st_role_granted *g, uint64_t index)
{
    struct kedge_main_role *roles =
        kedge_mem_resize(book->roles, (size_t)book->role_count + 1, sizeof *roles);
    KEDGE_TRY_MEM(roles);
    book->roles = roles;
    roles[book->role_count++] =
        (struct kedge_main_role){g->role, g->name, g->public_key, index, KEDGE_MAINBOOK_ALWAYS};
    return KEDGE_OK;
}

static int begin(struct kedge_mainbook *book, const struct kedge_st_policy *p)
{
    KEDGE_TRY(add_key(book, &p->statement_key, 0));
    book->begun = true;
    memcpy(book->deployment, p->deployment, sizeof book->deployment);
    book->main_log_key = p->main_log_key;
    return KEDGE_OK;
}

int kedge_mainbook_apply(struct kedge_mainbook *book, const struct kedge_statement *st, uint64_t index,
                         struct kedge_diag *reterr)
{
    int err = kedge_mainbook_check(book, st, index, reterr);
    if (err) {
        return err;
    }
    switch ((int)st->kind) {
    case KEDGE_ST_POLICY:
        err = begin(book, &st->u.policy);
        break;
    case KEDGE_ST_ROLE_GRANTED:
        err = add_role(book, &st->u.role_granted, index);
        break;
    case KEDGE_ST_ROLE_REVOKED:
        for (uint32_t i = 0; i < book->role_count; i++) {
            if (kedge_public_key_eq(&book->roles[i].key, &st->u.role_revoked.public_key)) {
                book->roles[i].until = index; /* a key is granted a role once */
            }
        }
        break;
    case KEDGE_ST_STATEMENT_KEY_ROTATED:
        err = add_key(book, &st->u.statement_key_rotated.new_key, index);
        break;
    case KEDGE_ST_POLICY_CHANGED:
        book->changes = st->u.policy_changed.number;
        book->admin_quorum = st->u.policy_changed.admin_quorum;
        break;
    default:
        break;
    }
    return err ? kedge_diag_set(reterr, err, "%s", kedge_strerror(err)) : KEDGE_OK;
}

/* ---- for sites ---- */

static int follow_one(struct kedge_view envelope, const char *deployment, struct kedge_statement *st,
                      struct kedge_public_key *key)
{
    struct kedge_signed_statement entry;
    struct kedge_mainbook book = {.begun = true, .key_count = 1};
    struct kedge_main_key now = {.key = *key};
    uint32_t others;
    int err = kedge_statement_read(envelope, st, &entry, NULL);
    const struct kedge_st_statement_key_rotated *r = &st->u.statement_key_rotated;
    if (!err && st->kind != KEDGE_ST_STATEMENT_KEY_ROTATED) {
        err = KEDGE_E_FORMAT;
    }
    if (!err && strcmp(r->of.deployment, deployment) != 0) {
        err = KEDGE_E_DENIED;
    }
    if (!err && kedge_public_key_eq(&r->old_key, key)) {
        book.keys = &now;
        err = kedge_mainbook_verify(&book, st, &entry, &others, NULL);
        *key = err ? *key : r->new_key;
    }
    kedge_buf_deinit(&entry.payload);
    return err;
}

int kedge_mainbook_follow(const struct kedge_public_key *first, const char *deployment,
                          struct kedge_view rotations, struct kedge_public_key *ret)
{
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    struct kedge_public_key key = *first;
    int err = st ? KEDGE_OK : KEDGE_E_NOMEM;
    for (size_t at = 0; at < rotations.len && !err;) {
        size_t len = 0;
        for (size_t i = 0; i < 4 && rotations.len - at >= 4; i++) {
            len = len << 8 | rotations.ptr[at + i];
        }
        if (rotations.len - at < 4 || len == 0 || len > rotations.len - at - 4) {
            err = KEDGE_E_FORMAT;
            break;
        }
        err = follow_one(kedge_view_of(rotations.ptr + at + 4, len), deployment, st, &key);
        at += 4 + len;
    }
    kedge_mem_free(st);
    if (!err) {
        *ret = key;
    }
    return err;
}
