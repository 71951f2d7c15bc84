/* Who must have signed each statement, decided by the order of the ledger alone. Whether they did is
 * signatures.c's. */
#include <stdio.h>
#include <string.h>

#include "chain/audit/identity/authority.h"
#include "chain/audit/record.h"
#include "chain/statement/keybook.h"
#include "chain/statement/statement_position.h"
#include "common/base/mem.h"

static void set_key(struct kedgei_fact *fact, bool known, const struct kedge_public_key *key)
{
    fact->has_key = known;
    if (known) {
        fact->key = *key;
    }
}

static bool check_tenant(struct kedgei_audit *a, const struct kedgei_log *log, const struct kedgei_fact *fact,
                         const struct kedge_id *tenant)
{
    if (kedge_id_eq(tenant, &log->tenant)) {
        return true;
    }
    kedgei_error(&a->findings, KEDGE_AUDIT_MISPLACED, log, fact->index, "a statement about tenant \"%s\"",
                 tenant->s);
    return false;
}

/* What is known of a tenant's keys on the way through its ledger. */
struct walk {
    struct kedgei_audit *a;
    struct kedgei_log *log;
    uint32_t tenant; /* index of the log */
    struct kedgei_authority *authority;
    struct kedge_keybook book;
    struct kedge_statement *st; /* the entry that is looked at; too large for a stack */
};

/* The site's key in force at this entry; false when there is none. An update or evaluation of a site that
 * was revoked before is an error, though its signature may be good: the tenant had withdrawn it. A group
 * assignment is the coordinator's statement about the site, so there only the enrolment is asked for. */
static bool site_key(struct walk *w, struct kedgei_fact *fact, const struct kedge_id *site,
                     struct kedge_public_key *ret)
{
    const struct kedge_book_key *k = kedge_keybook_of(&w->book, KEDGE_ROLE_SITE, site);
    const char *what = kedge_statement_kind_name((enum kedge_statement_kind)fact->kind);
    if (!k) {
        kedgei_error(&w->a->findings, KEDGE_AUDIT_SITE_UNKNOWN, w->log, fact->index,
                     "%s of site \"%s\", which the tenant had not enrolled", what, site->s);
        return false;
    }
    *ret = k->key;
    if (!kedge_book_key_in_force(k) && fact->kind != KEDGE_ST_GROUP_ASSIGNED) {
        kedgei_error(&w->a->findings, KEDGE_AUDIT_SITE_REVOKED, w->log, fact->index,
                     "%s of site \"%s\", which the tenant revoked in entry %llu", what, site->s,
                     (unsigned long long)k->until);
    }
    return true;
}

/* Entry 0. Without a trust file it is what this tenant's admin is known by. The admin key is the root of
 * everything that the tenant says; all its other keys follow from entry 0 in order. */
static void check_admin(struct walk *w, struct kedgei_fact *fact)
{
    const struct kedge_st_key *k = fact->body;
    struct kedgei_log *log = w->log;
    if (fact->index != 0 || k->scope != KEDGE_SCOPE_ADMIN) {
        kedgei_error(&w->a->findings, KEDGE_AUDIT_MISPLACED, log, fact->index,
                     "a key statement; expected one, of scope admin, as entry 0");
    }
    if (!log->has_authority && !w->a->trust && fact->index == 0) {
        log->authority = k->public_key;
        log->has_authority = true;
    }
    if (log->has_authority && !kedge_public_key_eq(&log->authority, &k->public_key)) {
        kedgei_error(&w->a->findings, KEDGE_AUDIT_KEY, log, fact->index, "not the admin key that is trusted");
    }
    set_key(fact, true, &k->public_key);
}

static enum kedge_audit_code code_of(int err)
{
    return err == KEDGE_E_NOT_FOUND ? KEDGE_AUDIT_SITE_UNKNOWN
           : err == KEDGE_E_REVOKED ? KEDGE_AUDIT_KEY_REVOKED
                                    : KEDGE_AUDIT_KEY;
}

/* Who must have signed what admins and holders of keys state. One signature is checked later, in parallel
 * with the others; several now. False when they are not those. Statements with one signature are left to
 * the parallel pass over all signatures. Those with several (a rotation, signed by the old and the new
 * key) decide about later keys and are few. */
static int check_signers(struct walk *w, struct kedgei_fact *fact, const struct kedge_signed_statement *entry)
{
    struct kedge_public_key keys[KEDGE_DSSE_SIGNATURES_MAX];
    struct kedge_diag d = {.text = ""};
    int err;
    if (entry->signature_count == 1) {
        err = kedge_keybook_signers(&w->book, w->st, entry->signatures, 1, keys, &d);
        set_key(fact, !err, &keys[0]);
    } else {
        err = kedge_keybook_verify(&w->book, w->st, entry, &d);
        w->a->counts.signatures += entry->signature_count;
    }
    if (err && err != KEDGE_E_NOMEM) {
        kedgei_error(&w->a->findings,
                     err == KEDGE_E_REVOKED ? KEDGE_AUDIT_KEY_REVOKED : KEDGE_AUDIT_SIGNATURE, w->log,
                     fact->index, "%s", d.text);
    }
    return err;
}

/* What a revoked key signed before stays valid; readers of the record should know. */
static void mark_revoked(struct walk *w, const struct kedgei_fact *fact)
{
    char where[KEDGE_AUDIT_WHERE_MAX];
    const char *reason =
        fact->kind == KEDGE_ST_KEY_REVOKED ? w->st->u.key_revoked.reason : w->st->u.key_recovered.reason;
    snprintf(where, sizeof where, "%s[%llu]", w->log->name, (unsigned long long)fact->index);
    kedgei_find(&w->a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_KEY_REVOKED, where,
                "%s (\"%.80s\"): what was signed before stays valid",
                fact->kind == KEDGE_ST_KEY_REVOKED ? "a key is revoked here"
                                                   : "all admin keys are revoked here",
                reason);
}

static int log_root(void *arg, uint64_t size, struct kedge_hash *ret)
{
    kedgei_log_root(arg, size, ret);
    return KEDGE_OK;
}

/* What stands here was signed for this place: not for another deployment, nor before what it rests on. A
 * statement names what its signer had seen of the ledger. Without that, a statement signed for another
 * deployment or for an earlier state could be put where it was never meant to stand. */
static int check_position(struct walk *w, const struct kedgei_fact *fact)
{
    struct kedge_position_ledger ledger = {.main_log_key = w->a->main.has_vkey ? &w->a->main.vkey.key : NULL,
                                           .size = fact->index,
                                           .root = log_root,
                                           .arg = w->log};
    struct kedge_diag d = {.text = ""};
    int err = kedge_position_judge(&w->book, w->st, &ledger, &d);
    if (err) {
        kedgei_error(&w->a->findings, KEDGE_AUDIT_POSITION, w->log, fact->index, "%s: %s",
                     kedge_statement_kind_name((enum kedge_statement_kind)fact->kind), d.text);
    }
    return err;
}

/* A statement of an admin, or one that changes keys. A statement that nobody entitled signed has no
 * effect. An entry that fails here changes no keys: later entries are judged as if it were not there, so
 * a forged "key-added" cannot make its own followers valid. */
static int check_authority(struct walk *w, struct kedgei_fact *fact, const struct kedge_id *tenant)
{
    struct kedge_signed_statement entry;
    struct kedge_diag d = {.text = ""};
    if (!check_tenant(w->a, w->log, fact, tenant)) {
        return KEDGE_OK;
    }
    int err = kedge_statement_read(kedgei_entry_at(w->log, fact->index), w->st, &entry, &d);
    if (!err && fact->kind == KEDGE_ST_KEY) {
        check_admin(w, fact);
    } else if (!err) {
        err = check_signers(w, fact, &entry);
    }
    kedge_buf_deinit(&entry.payload);
    if (!err) {
        err = check_position(w, fact);
    }
    if (err) {
        return err == KEDGE_E_NOMEM ? err : KEDGE_OK;
    }
    err = kedge_keybook_apply(&w->book, w->st, fact->index, &d);
    if (err == KEDGE_E_NOMEM) {
        return err;
    }
    if (err) {
        kedgei_error(&w->a->findings, code_of(err), w->log, fact->index, "%s: %s",
                     kedge_statement_kind_name((enum kedge_statement_kind)fact->kind), d.text);
    } else if (fact->kind == KEDGE_ST_KEY_REVOKED || fact->kind == KEDGE_ST_KEY_RECOVERED) {
        mark_revoked(w, fact);
    }
    return KEDGE_OK;
}

/* Every kind must be named here or is misplaced: a new kind that nobody thought of would otherwise pass
 * without a signature being asked for. */
static int assign_tenant(struct walk *w, struct kedgei_fact *fact)
{
    struct kedgei_audit *a = w->a;
    struct kedgei_log *log = w->log;
    const struct kedge_st_update *u = fact->body;
    const struct kedge_st_evaluation *e = fact->body;
    const struct kedge_st_group_assigned *g = fact->body;
    struct kedge_public_key key;
    const struct kedge_public_key *coordinator;
    switch (fact->kind) {
    case KEDGE_ST_SITE_ENROLLED:
        a->counts.sites++;
        return check_authority(w, fact, fact->body);
    case KEDGE_ST_KEY:
        return check_authority(w, fact, &((const struct kedge_st_key *)fact->body)->tenant);
    case KEDGE_ST_KEY_ADDED:
    case KEDGE_ST_KEY_ROTATED:
    case KEDGE_ST_KEY_REVOKED:
    case KEDGE_ST_KEY_RECOVERED:
    case KEDGE_ST_SITE_REVOKED:
    case KEDGE_ST_WITNESS_ENROLLED:
    case KEDGE_ST_WITNESS_REVOKED:
    case KEDGE_ST_JOB_JOINED:
    case KEDGE_ST_JOB_LEFT:
    case KEDGE_ST_ERASED:
    case KEDGE_ST_CONTACT:
    case KEDGE_ST_SITE_LABELS: /* all begin with their tenant */
        return check_authority(w, fact, fact->body);
    case KEDGE_ST_UPDATE:
        if (check_tenant(a, log, fact, &u->tenant) && site_key(w, fact, &u->site, &key)) {
            set_key(fact, true, &key);
        }
        break;
    case KEDGE_ST_EVALUATION:
        if (check_tenant(a, log, fact, &e->tenant) && site_key(w, fact, &e->site, &key)) {
            set_key(fact, true, &key);
        }
        break;
    case KEDGE_ST_GROUP_ASSIGNED:
        (void)(check_tenant(a, log, fact, &g->tenant) && site_key(w, fact, &g->site, &key));
        coordinator = kedgei_authority_at(w->authority, w->tenant, fact->index);
        set_key(fact, coordinator != NULL, coordinator);
        break;
    case KEDGEI_FACT_BAD:
    case KEDGEI_FACT_WITHHELD:
        break;
    default:
        kedgei_error(&a->findings, KEDGE_AUDIT_MISPLACED, log, fact->index,
                     "a \"%s\" statement does not belong into a tenant's ledger",
                     kedge_statement_kind_name((enum kedge_statement_kind)fact->kind));
        break;
    }
    return KEDGE_OK;
}

/* Without a trust file the policy's keys are taken, or nothing could be judged; the verdict is then
 * "self-consistent" and never "yes". */
static void check_policy(struct kedgei_audit *a, struct kedgei_fact *fact)
{
    const struct kedge_st_policy *p = fact->body;
    if (fact->index != 0) {
        kedgei_error(&a->findings, KEDGE_AUDIT_MISPLACED, &a->main, fact->index,
                     "a policy that is not entry 0");
        return;
    }
    if (strcmp(p->deployment, a->deployment) != 0) {
        kedgei_error(&a->findings, KEDGE_AUDIT_STATE, &a->main, 0,
                     "policy of deployment \"%s\", expected \"%s\"", p->deployment, a->deployment);
    }
    if (!a->trust) {
        a->main.authority = p->statement_key;
        a->main.has_authority = true;
        a->main.has_vkey = kedge_vkey_make(kedge_view_str(a->main.origin), KEDGE_KEY_ED25519,
                                           &p->main_log_key, &a->main.vkey)
                           == KEDGE_OK;
        return;
    }
    if (!kedge_public_key_eq(&p->statement_key, &a->main.authority)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_KEY, &a->main, 0,
                     "policy names another statement key than the trust file");
    }
    if (!kedge_public_key_eq(&p->main_log_key, &a->main.vkey.key)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_KEY, &a->main, 0,
                     "policy names another log key than the trust file");
    }
}

static int assign_main(struct kedgei_audit *a, struct kedgei_authority *authority, struct kedgei_fact *fact)
{
    bool own = false; /* its signatures are looked at with authority's */
    switch (fact->kind) {
    case KEDGE_ST_POLICY:
        check_policy(a, fact);
        break;
    case KEDGE_ST_ROLE_GRANTED:
    case KEDGE_ST_ROLE_REVOKED:
    case KEDGE_ST_STATEMENT_KEY_ROTATED:
    case KEDGE_ST_POLICY_CHANGED:
        own = true;
        break;
    case KEDGE_ST_QUOTA_SET:
    case KEDGE_ST_JOB_ADMITTED:
    case KEDGE_ST_JOB_REFUSED:
    case KEDGE_ST_JOB_OPENED:
    case KEDGE_ST_ROUND_OPENED:
    case KEDGE_ST_AGGREGATE:
    case KEDGE_ST_STEP:
    case KEDGE_ST_ROUND_TESTED:
    case KEDGE_ST_RELEASE:
    case KEDGE_ST_JOB_CLOSED:
    case KEDGEI_FACT_CHECKPOINT:
    case KEDGEI_FACT_BAD:
    case KEDGEI_FACT_WITHHELD:
        break;
    default:
        kedgei_error(&a->findings, KEDGE_AUDIT_MISPLACED, &a->main, fact->index,
                     "a \"%s\" statement does not belong into the main chain",
                     kedge_statement_kind_name((enum kedge_statement_kind)fact->kind));
        break;
    }
    int err = kedgei_authority_take(authority, fact);
    const struct kedge_public_key *now = kedgei_authority_now(authority);
    if (!own && fact->kind >= 0 && fact->kind < KEDGE_ST_KIND_COUNT) {
        set_key(fact, now != NULL, now);
    }
    return err;
}

static void count_kinds(struct kedgei_audit *a, const struct kedgei_log *log)
{
    for (uint64_t i = 0; i < log->count; i++) {
        int kind = kedgei_fact_at(log, i)->kind;
        if (kind >= 0 && kind < KEDGE_ST_KIND_COUNT) {
            a->counts.statements[kind]++;
        }
    }
}

static int check_tenant_keys(struct kedgei_audit *a, struct kedgei_authority *authority, uint32_t t)
{
    struct kedgei_log *log = &a->tenants[t];
    struct walk w = {
        .a = a, .log = log, .tenant = t, .authority = authority, .st = kedge_mem_new(1, sizeof *w.st)};
    int err = w.st ? KEDGE_OK : KEDGE_E_NOMEM;
    kedge_keybook_init(&w.book, &log->tenant);
    for (uint64_t i = 0; i < log->count && !err; i++) {
        err = assign_tenant(&w, kedgei_fact_at(log, i));
    }
    if (!err && log->count > 0 && log->facts[0].kind != KEDGE_ST_KEY
        && log->facts[0].kind != KEDGEI_FACT_BAD) {
        kedgei_error(&a->findings, KEDGE_AUDIT_MISPLACED, log, 0, "expected the admin key as entry 0");
    }
    if (!err) {
        err = kedgei_authority_tenant(authority, t, &w.book);
    }
    kedge_keybook_deinit(&w.book);
    kedge_mem_free(w.st);
    return err;
}

/* The main chain first: its rotations decide which coordinator's key stands behind assignments in the
 * tenants' ledgers. */
int kedgei_check_keys(struct kedgei_audit *a)
{
    struct kedgei_authority *authority = NULL;
    int err = kedgei_authority_new(a, &authority);
    for (uint64_t i = 0; i < a->main.count && !err; i++) {
        err = assign_main(a, authority, kedgei_fact_at(&a->main, i));
    }
    if (a->main.count == 0
        || (a->main.facts[0].kind != KEDGE_ST_POLICY && a->main.facts[0].kind != KEDGEI_FACT_BAD)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_MISPLACED, &a->main, 0, "expected the policy as entry 0");
    }
    count_kinds(a, &a->main);
    for (uint32_t t = 0; t < a->tenant_count && !err; t++) {
        err = check_tenant_keys(a, authority, t);
        count_kinds(a, &a->tenants[t]);
    }
    if (!err) {
        err = kedgei_authority_approvals(authority);
    }
    kedgei_authority_free(authority);
    return err;
}
