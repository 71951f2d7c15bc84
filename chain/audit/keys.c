/* Who must have signed each statement, decided by the order of the ledger alone; then, in parallel, whether
 * they did. Stored checkpoints, tenants' checkpoints in the main chain and checkpoints seen elsewhere are
 * notes of log keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/audit/record.h"
#include "chain/dsse.h"
#include "chain/main_entry.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"

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

/* The site's key in force at this entry; false when there is none. */
static bool site_key(struct kedgei_audit *a, const struct kedgei_log *log, struct kedgei_fact *fact,
                     const struct kedge_id *site, struct kedge_public_key *ret)
{
    const struct kedgei_fact *enrolled = kedgei_log_find(log, "site-enrolled/%s", site->s);
    const struct kedgei_fact *revoked = kedgei_log_find(log, "site-revoked/%s", site->s);
    const char *what = kedge_statement_kind_name((enum kedge_statement_kind)fact->kind);
    if (!enrolled || enrolled->index > fact->index) {
        kedgei_error(&a->findings, KEDGE_AUDIT_SITE_UNKNOWN, log, fact->index,
                     "%s of site \"%s\", which the tenant had not signed in", what, site->s);
        return false;
    }
    *ret = ((const struct kedge_st_site_enrolled *)enrolled->body)->statement_key;
    if (revoked && revoked->index < fact->index && fact->kind != KEDGE_ST_GROUP_ASSIGNED) {
        kedgei_error(&a->findings, KEDGE_AUDIT_SITE_REVOKED, log, fact->index,
                     "%s of site \"%s\", which the tenant signed out in entry %llu", what, site->s,
                     (unsigned long long)revoked->index);
    }
    return true;
}

static void check_admin(struct kedgei_audit *a, struct kedgei_log *log, struct kedgei_fact *fact)
{
    const struct kedge_st_key *k = fact->body;
    if (!check_tenant(a, log, fact, &k->tenant)) {
        return;
    }
    if (fact->index != 0 || k->scope != KEDGE_SCOPE_ADMIN) {
        kedgei_error(&a->findings, KEDGE_AUDIT_MISPLACED, log, fact->index,
                     "a key statement; expected one, of scope admin, as entry 0");
    }
    if (!log->has_authority && !a->trust && fact->index == 0) {
        log->authority = k->public_key;
        log->has_authority = true;
    }
    if (log->has_authority && !kedge_public_key_eq(&log->authority, &k->public_key)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_KEY, log, fact->index, "not the admin key that is trusted");
    }
    set_key(fact, true, &k->public_key);
}

static void check_enrolled(struct kedgei_audit *a, struct kedgei_log *log, struct kedgei_fact *fact)
{
    const struct kedge_st_site_enrolled *e = fact->body;
    set_key(fact, log->has_authority, &log->authority);
    (void)check_tenant(a, log, fact, &e->tenant);
    a->counts.sites++;
}

static void check_revoked(struct kedgei_audit *a, struct kedgei_log *log, struct kedgei_fact *fact)
{
    const struct kedge_st_site_revoked *r = fact->body;
    const struct kedgei_fact *e = kedgei_log_find(log, "site-enrolled/%s", r->site.s);
    set_key(fact, log->has_authority, &log->authority);
    if (!check_tenant(a, log, fact, &r->tenant)) {
        return;
    }
    if (!e || e->index > fact->index) {
        kedgei_error(&a->findings, KEDGE_AUDIT_SITE_UNKNOWN, log, fact->index,
                     "site \"%s\" is signed out, but was not signed in", r->site.s);
    } else if (!kedge_public_key_eq(&((const struct kedge_st_site_enrolled *)e->body)->statement_key,
                                    &r->statement_key)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_KEY, log, fact->index,
                     "site \"%s\" is signed out with another key than it was signed in with", r->site.s);
    }
}

static void check_witness(struct kedgei_audit *a, struct kedgei_log *log, struct kedgei_fact *fact)
{
    const struct kedge_st_witness_enrolled *e = fact->body;
    const struct kedge_st_witness_revoked *r = fact->body;
    set_key(fact, log->has_authority, &log->authority);
    if (fact->kind == KEDGE_ST_WITNESS_ENROLLED) {
        (void)check_tenant(a, log, fact, &e->tenant);
        return;
    }
    const struct kedgei_fact *first = kedgei_log_find(log, "witness-enrolled/%s", r->witness.s);
    if (!check_tenant(a, log, fact, &r->tenant)) {
        return;
    }
    if (!first || first->index > fact->index) {
        kedgei_error(&a->findings, KEDGE_AUDIT_SITE_UNKNOWN, log, fact->index,
                     "witness \"%s\" is signed out, but was not signed in", r->witness.s);
    } else if (!kedge_public_key_eq(&((const struct kedge_st_witness_enrolled *)first->body)->cosign_key,
                                    &r->cosign_key)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_KEY, log, fact->index,
                     "witness \"%s\" is signed out with another key than it was signed in with",
                     r->witness.s);
    }
}

static void assign_tenant(struct kedgei_audit *a, struct kedgei_log *log, struct kedgei_fact *fact)
{
    const struct kedge_st_update *u = fact->body;
    const struct kedge_st_evaluation *e = fact->body;
    const struct kedge_st_group_assigned *g = fact->body;
    struct kedge_public_key key;
    switch (fact->kind) {
    case KEDGE_ST_KEY:
        check_admin(a, log, fact);
        break;
    case KEDGE_ST_SITE_ENROLLED:
        check_enrolled(a, log, fact);
        break;
    case KEDGE_ST_SITE_REVOKED:
        check_revoked(a, log, fact);
        break;
    case KEDGE_ST_WITNESS_ENROLLED:
    case KEDGE_ST_WITNESS_REVOKED:
        check_witness(a, log, fact);
        break;
    case KEDGE_ST_JOB_JOINED:
        (void)check_tenant(a, log, fact, &((const struct kedge_st_job_joined *)fact->body)->tenant);
        set_key(fact, log->has_authority, &log->authority);
        break;
    case KEDGE_ST_UPDATE:
        if (check_tenant(a, log, fact, &u->tenant) && site_key(a, log, fact, &u->site, &key)) {
            set_key(fact, true, &key);
        }
        break;
    case KEDGE_ST_EVALUATION:
        if (check_tenant(a, log, fact, &e->tenant) && site_key(a, log, fact, &e->site, &key)) {
            set_key(fact, true, &key);
        }
        break;
    case KEDGE_ST_GROUP_ASSIGNED:
        (void)(check_tenant(a, log, fact, &g->tenant) && site_key(a, log, fact, &g->site, &key));
        set_key(fact, a->main.has_authority, &a->main.authority);
        break;
    case KEDGEI_FACT_BAD:
        break;
    default:
        kedgei_error(&a->findings, KEDGE_AUDIT_MISPLACED, log, fact->index,
                     "a \"%s\" statement does not belong into a tenant's ledger",
                     kedge_statement_kind_name((enum kedge_statement_kind)fact->kind));
        break;
    }
}

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

static void assign_main(struct kedgei_audit *a, struct kedgei_fact *fact)
{
    switch (fact->kind) {
    case KEDGE_ST_POLICY:
        check_policy(a, fact);
        break;
    case KEDGE_ST_JOB_OPENED:
    case KEDGE_ST_ROUND_OPENED:
    case KEDGE_ST_AGGREGATE:
    case KEDGE_ST_STEP:
    case KEDGE_ST_RELEASE:
    case KEDGE_ST_JOB_CLOSED:
    case KEDGEI_FACT_CHECKPOINT:
    case KEDGEI_FACT_BAD:
        break;
    default:
        kedgei_error(&a->findings, KEDGE_AUDIT_MISPLACED, &a->main, fact->index,
                     "a \"%s\" statement does not belong into the main chain",
                     kedge_statement_kind_name((enum kedge_statement_kind)fact->kind));
        break;
    }
    if (fact->kind >= 0 && fact->kind < KEDGE_ST_KIND_COUNT) {
        set_key(fact, a->main.has_authority, &a->main.authority);
    }
}

static void count_kinds(struct kedgei_audit *a, const struct kedgei_log *log)
{
    for (uint64_t i = 0; i < log->count; i++) {
        if (log->facts[i].kind >= 0 && log->facts[i].kind < KEDGE_ST_KIND_COUNT) {
            a->counts.statements[log->facts[i].kind]++;
        }
    }
}

struct held_key {
    struct kedge_public_key key;
    uint64_t index; /* of the statement that names it */
};

static int compare_held(const void *pa, const void *pb)
{
    const struct held_key *a = pa, *b = pb;
    int c = memcmp(&a->key, &b->key, sizeof a->key);
    return c ? c : (a->index > b->index) - (a->index < b->index);
}

/* The keys that a statement gives a holder: at most two. */
static size_t keys_given(const struct kedgei_fact *fact, struct held_key *out)
{
    const struct kedge_st_site_enrolled *s = fact->body;
    const struct kedge_st_witness_enrolled *w = fact->body;
    if (fact->kind == KEDGE_ST_KEY) {
        out[0] = (struct held_key){((const struct kedge_st_key *)fact->body)->public_key, fact->index};
        return 1;
    }
    if (fact->kind == KEDGE_ST_SITE_ENROLLED) {
        out[0] = (struct held_key){s->tls_key, fact->index};
        out[1] = (struct held_key){s->statement_key, fact->index};
        return 2;
    }
    if (fact->kind == KEDGE_ST_WITNESS_ENROLLED) {
        out[0] = (struct held_key){w->tls_key, fact->index};
        out[1] = (struct held_key){w->cosign_key, fact->index};
        return 2;
    }
    return 0;
}

/* One key in two hands or two roles: its holders could speak for each other. */
static int check_distinct(struct kedgei_audit *a, const struct kedgei_log *log)
{
    struct held_key *keys = kedge_mem_new(2 * (size_t)log->count + 1, sizeof *keys);
    size_t count = 0;
    if (!keys) {
        return KEDGE_E_NOMEM;
    }
    for (uint64_t i = 0; i < log->count; i++) {
        count += keys_given(&log->facts[i], &keys[count]);
    }
    if (count > 1) {
        qsort(keys, count, sizeof *keys, compare_held);
    }
    for (size_t i = 1; i < count; i++) {
        if (kedge_public_key_eq(&keys[i - 1].key, &keys[i].key)) {
            kedgei_error(&a->findings, KEDGE_AUDIT_KEY, log, keys[i].index,
                         "a key that entry %llu gave another role or holder",
                         (unsigned long long)keys[i - 1].index);
        }
    }
    kedge_mem_free(keys);
    return KEDGE_OK;
}

int kedgei_check_keys(struct kedgei_audit *a)
{
    int err = KEDGE_OK;
    for (uint64_t i = 0; i < a->main.count; i++) {
        assign_main(a, &a->main.facts[i]);
    }
    if (a->main.count == 0
        || (a->main.facts[0].kind != KEDGE_ST_POLICY && a->main.facts[0].kind != KEDGEI_FACT_BAD)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_MISPLACED, &a->main, 0, "expected the policy as entry 0");
    }
    count_kinds(a, &a->main);
    for (uint32_t t = 0; t < a->tenant_count && !err; t++) {
        struct kedgei_log *log = &a->tenants[t];
        for (uint64_t i = 0; i < log->count; i++) {
            assign_tenant(a, log, &log->facts[i]);
        }
        if (log->count > 0 && log->facts[0].kind != KEDGE_ST_KEY && log->facts[0].kind != KEDGEI_FACT_BAD) {
            kedgei_error(&a->findings, KEDGE_AUDIT_MISPLACED, log, 0, "expected the admin key as entry 0");
        }
        count_kinds(a, log);
        err = check_distinct(a, log);
    }
    return err;
}

/* ---- signatures ---- */

struct signing {
    struct kedgei_audit *audit;
    const struct kedgei_log *log;
};

static void verify_statement(const struct kedgei_log *log, const struct kedgei_fact *fact,
                             struct kedgei_findings *f)
{
    struct kedge_view envelope = log->entries[fact->index];
    struct kedge_dsse_entry entry;
    struct kedge_buf payload;
    kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
    int err = kedge_dsse_decode(envelope, &payload, &entry);
    err = err ? err : kedge_dsse_entry_verify(&entry, kedge_buf_view(&payload), &fact->key);
    kedge_buf_deinit(&payload);
    f->nomem = f->nomem || err == KEDGE_E_NOMEM;
    if (err) {
        kedgei_error(f, KEDGE_AUDIT_SIGNATURE, log, fact->index, "%s: not signed by the key in force",
                     kedge_statement_kind_name((enum kedge_statement_kind)fact->kind));
    }
}

static void verify_anchor(const struct signing *s, const struct kedgei_fact *fact, struct kedgei_findings *f)
{
    const struct kedgei_anchor *anchor = fact->body;
    const struct kedgei_log *log =
        anchor->tenant < s->audit->tenant_count ? &s->audit->tenants[anchor->tenant] : NULL;
    struct kedge_checkpoint c;
    if (!log || !log->has_vkey) {
        return;
    }
    int err = kedge_checkpoint_open(anchor->note, kedge_view_str(log->origin), &log->vkey, 1, &c, NULL);
    f->nomem = f->nomem || err == KEDGE_E_NOMEM;
    if (err) {
        kedgei_error(f, KEDGE_AUDIT_SIGNATURE, s->log, fact->index,
                     "checkpoint of \"%s\": not signed by its log's key", log->name);
    }
}

static void verify_fact(void *arg, uint64_t i, struct kedgei_findings *f)
{
    const struct signing *s = arg;
    const struct kedgei_fact *fact = &s->log->facts[i];
    if (fact->kind == KEDGEI_FACT_CHECKPOINT) {
        verify_anchor(s, fact, f);
    } else if (fact->has_key) {
        verify_statement(s->log, fact, f);
    }
}

/* A stored checkpoint: of this log, signed by its key, with the root that the entries give. */
static void verify_head(void *arg, uint64_t i, struct kedgei_findings *f)
{
    const struct signing *s = arg;
    const struct kedgei_log *log = s->log;
    const struct kedgei_head *head = &log->heads[i];
    char where[KEDGE_AUDIT_WHERE_MAX];
    struct kedge_checkpoint c;
    struct kedge_note note;
    snprintf(where, sizeof where, "%s checkpoint %llu", log->name, (unsigned long long)head->size);
    int err;
    if (log->has_vkey) {
        err = kedge_checkpoint_open(head->note, kedge_view_str(log->origin), &log->vkey, 1, &c, NULL);
    } else {
        err = kedge_note_parse(head->note, &note);
        err = err ? err : kedge_checkpoint_parse(note.text, &c);
    }
    f->nomem = f->nomem || err == KEDGE_E_NOMEM;
    if (err == KEDGE_E_VERIFY) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_SIGNATURE, where, "not signed by the key of %s",
                    log->origin);
    } else if (err) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_HEAD, where, "malformed: %s", kedge_strerror(err));
    } else if (c.size != head->size || c.size > log->count) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_HEAD, where,
                    "states size %llu, the log has %llu entries", (unsigned long long)c.size,
                    (unsigned long long)log->count);
    } else {
        struct kedge_hash root;
        kedgei_log_root(log, c.size, &root);
        if (!kedge_hash_eq(&root, &c.root)) {
            kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_HEAD, where, "its root is not that of the entries");
        }
    }
}

static int check_log_signatures(struct kedgei_audit *a, const struct kedgei_log *log)
{
    struct signing s = {a, log};
    a->counts.signatures += log->has_vkey ? log->head_count : 0;
    for (uint64_t i = 0; i < log->count; i++) {
        a->counts.signatures += log->facts[i].has_key || log->facts[i].kind == KEDGEI_FACT_CHECKPOINT;
    }
    int err = kedgei_parallel(a, "signatures", log->count, verify_fact, &s);
    return err ? err : kedgei_parallel(a, "checkpoints", log->head_count, verify_head, &s);
}

int kedgei_check_signatures(struct kedgei_audit *a)
{
    int err = check_log_signatures(a, &a->main);
    for (uint32_t t = 0; t < a->tenant_count && !err; t++) {
        err = check_log_signatures(a, &a->tenants[t]);
    }
    return err;
}

/* ---- checkpoints seen earlier ---- */

static const struct kedgei_log *log_of(const struct kedgei_audit *a, struct kedge_view origin)
{
    if (kedge_view_eq(origin, kedge_view_str(a->main.origin))) {
        return &a->main;
    }
    for (uint32_t t = 0; t < a->tenant_count; t++) {
        if (kedge_view_eq(origin, kedge_view_str(a->tenants[t].origin))) {
            return &a->tenants[t];
        }
    }
    return NULL;
}

static void check_seen_note(struct kedgei_audit *a, struct kedge_view bytes, const char *where)
{
    struct kedgei_findings *f = &a->findings;
    struct kedge_note note;
    struct kedge_checkpoint c;
    struct kedge_hash root;
    if (kedge_note_parse(bytes, &note) != KEDGE_OK || kedge_checkpoint_parse(note.text, &c) != KEDGE_OK) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_SEEN, where, "not a signed checkpoint");
        return;
    }
    const struct kedgei_log *log = log_of(a, c.origin);
    if (!log) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_SEEN, where, "of log \"%.*s\", which is not here",
                    (int)(c.origin.len < 100 ? c.origin.len : 100), (const char *)c.origin.ptr);
        return;
    }
    if (log->has_vkey && kedge_checkpoint_open(bytes, c.origin, &log->vkey, 1, &c, NULL) != KEDGE_OK) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_SEEN, where, "not signed by the key of %s",
                    log->origin);
        return;
    }
    if (c.size > log->count) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_TRUNCATED, where,
                    "%s had %llu entries when this was seen, now it has %llu", log->origin,
                    (unsigned long long)c.size, (unsigned long long)log->count);
        return;
    }
    kedgei_log_root(log, c.size, &root);
    if (!kedge_hash_eq(&root, &c.root)) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_FORK, where,
                    "the first %llu entries of %s were others when this was seen", (unsigned long long)c.size,
                    log->origin);
    }
}

int kedgei_check_seen(struct kedgei_audit *a, const char *const *paths, size_t count)
{
    char where[KEDGE_AUDIT_WHERE_MAX];
    int err = KEDGE_OK;
    for (uint32_t i = 0; a->trust && i < a->trust->seen_count; i++) {
        snprintf(where, sizeof where, "trust file, seen[%u]", i);
        check_seen_note(a, kedge_view_str(a->trust->seen[i]), where);
    }
    for (size_t i = 0; i < count && !err; i++) {
        struct kedge_buf text;
        kedge_buf_init(&text, KEDGE_NOTE_MAX);
        err = kedge_file_read(paths[i], &text, &a->diag);
        if (!err) {
            check_seen_note(a, kedge_buf_view(&text), paths[i]);
        }
        kedge_buf_deinit(&text);
    }
    return err;
}
