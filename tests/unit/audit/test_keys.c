/* The keys of a ledger: a script of statements each, and what the auditor must call it. No job runs. */
#include "chain/statement/entry_index.h"
#include "chain/statement/keybook.h"
#include "common/base/mem.h"
#include "tests/fixtures/federation_impl.h"
#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

enum { OPS_MAX = 12 };

enum op_kind { END, SITE, SITE_GONE, WITNESS, WITNESS_GONE, ADD, RECOVERY, ROTATE, REVOKE, RECOVER, SAY };

/* Keys are named by what they are made from (fx_key_of); "org-a" is the tenant's first admin key. */
struct op {
    enum op_kind kind;
    const char *by;        /* signs; several with a space between */
    const char *holder;    /* site or witness; "" for a rotated admin key, "!" for a recovery key */
    const char *key, *tls; /* the key that it is about; its TLS key, or the key that comes */
};

struct script {
    const char *what;
    enum kedge_audit_code code; /* at entry `at`; none when `at` is 0 */
    int at;
    bool loose;             /* sites speak of a job that is not there: other findings are none of ours */
    struct op ops[OPS_MAX]; /* entries 1, 2, … of org-a's ledger */
};

static const struct script scripts[] = {
    {"witnesses come and go",
     KEDGE_AUDIT_KEY,
     0,
     false,
     {{WITNESS, "org-a", "eye", "cosign", "tls"},
      {WITNESS, "org-a", "ear", "cosign2", "tls2"},
      {WITNESS_GONE, "org-a", "eye", "cosign", NULL}}},
    {"a witness that its site's key enrolled",
     KEDGE_AUDIT_SIGNATURE,
     2,
     false,
     {{SITE, "org-a", "s1", "s1-key", "s1-tls"}, {WITNESS, "s1-key", "eye", "cosign", "tls"}}},
    {"a witness with the admin's key",
     KEDGE_AUDIT_KEY,
     1,
     false,
     {{WITNESS, "org-a", "eye", "org-a", "tls"}}},
    {"a witness with a site's TLS key",
     KEDGE_AUDIT_KEY,
     2,
     false,
     {{SITE, "org-a", "s1", "s1-key", "s1-tls"}, {WITNESS, "org-a", "eye", "cosign", "s1-tls"}}},
    {"a witness with a site's statement key",
     KEDGE_AUDIT_KEY,
     2,
     false,
     {{SITE, "org-a", "s1", "s1-key", "s1-tls"}, {WITNESS, "org-a", "eye", "s1-key", "tls"}}},
    {"two witnesses with one TLS key",
     KEDGE_AUDIT_KEY,
     2,
     false,
     {{WITNESS, "org-a", "eye", "cosign", "tls"}, {WITNESS, "org-a", "ear", "cosign2", "tls"}}},
    {"a witness twice",
     KEDGE_AUDIT_DOUBLED,
     2,
     false,
     {{WITNESS, "org-a", "eye", "cosign", "tls"}, {WITNESS, "org-a", "eye", "cosign2", "tls2"}}},
    {"a witness revoked before it was enrolled",
     KEDGE_AUDIT_SITE_UNKNOWN,
     1,
     false,
     {{WITNESS_GONE, "org-a", "eye", "cosign", NULL}, {WITNESS, "org-a", "eye", "cosign", "tls"}}},
    {"a witness revoked with another key",
     KEDGE_AUDIT_KEY,
     2,
     false,
     {{WITNESS, "org-a", "eye", "cosign", "tls"}, {WITNESS_GONE, "org-a", "eye", "cosign2", NULL}}},
    {"a site with the admin's key", KEDGE_AUDIT_KEY, 1, false, {{SITE, "org-a", "s1", "org-a", "s1-tls"}}},
    {"a site with one key for both", KEDGE_AUDIT_KEY, 1, false, {{SITE, "org-a", "s1", "s1-key", "s1-key"}}},

    /* rotation: its own entry is the boundary */
    {"before its rotation the old key signs, behind it the new one",
     KEDGE_AUDIT_KEY,
     0,
     false,
     {{SITE, "org-a", "s1", "s1-key", "s1-tls"},
      {ROTATE, "org-a a2", "", "org-a", "a2"},
      {SITE, "a2", "s2", "s2-key", "s2-tls"},
      {ROTATE, "a3 a2", "", "a2", "a3"},
      {SITE_GONE, "a3", "s1", "s1-key", NULL}}},
    {"the old key behind the rotation",
     KEDGE_AUDIT_KEY_REVOKED,
     2,
     false,
     {{ROTATE, "org-a a2", "", "org-a", "a2"}, {SITE, "org-a", "s1", "s1-key", "s1-tls"}}},
    {"the new key before the rotation",
     KEDGE_AUDIT_SIGNATURE,
     1,
     false,
     {{SITE, "a2", "s1", "s1-key", "s1-tls"}, {ROTATE, "org-a a2", "", "org-a", "a2"}}},
    {"a rotation without the new key",
     KEDGE_AUDIT_SIGNATURE,
     1,
     false,
     {{ROTATE, "org-a", "", "org-a", "a2"}}},
    {"a rotation without the old key", KEDGE_AUDIT_SIGNATURE, 1, false, {{ROTATE, "a2", "", "org-a", "a2"}}},
    {"a rotation with a stranger's signature",
     KEDGE_AUDIT_SIGNATURE,
     1,
     false,
     {{ROTATE, "org-a a2 a3", "", "org-a", "a2"}}},
    {"an old rotation replayed",
     KEDGE_AUDIT_KEY_REVOKED,
     2,
     false,
     {{ROTATE, "org-a a2", "", "org-a", "a2"}, {ROTATE, "org-a a2", "", "org-a", "a2"}}},
    {"an old rotation replayed under the key's name",
     KEDGE_AUDIT_DOUBLED,
     2,
     false,
     {{ROTATE, "org-a a2", "", "org-a", "a2"}, {ROTATE, "org-a a2", "", "org-a", "a2"}}},
    {"back to a key that went",
     KEDGE_AUDIT_KEY,
     2,
     false,
     {{ROTATE, "org-a a2", "", "org-a", "a2"}, {ROTATE, "a2 org-a", "", "a2", "org-a"}}},
    {"rotated to a site's key",
     KEDGE_AUDIT_KEY,
     2,
     false,
     {{SITE, "org-a", "s1", "s1-key", "s1-tls"}, {ROTATE, "org-a s1-key", "", "org-a", "s1-key"}}},
    /* a site's key */
    {"a site speaks with the key of its time",
     KEDGE_AUDIT_KEY,
     0,
     true,
     {{SITE, "org-a", "s1", "s1-key", "s1-tls"},
      {SAY, "s1-key", "s1", "1", NULL},
      {ROTATE, "s1-key s1-new", "s1", "s1-key", "s1-new"},
      {SAY, "s1-new", "s1", "2", NULL},
      {SITE_GONE, "org-a", "s1", "s1-new", NULL}}},
    {"a site speaks with its old key",
     KEDGE_AUDIT_SIGNATURE,
     3,
     true,
     {{SITE, "org-a", "s1", "s1-key", "s1-tls"},
      {ROTATE, "s1-key s1-new", "s1", "s1-key", "s1-new"},
      {SAY, "s1-key", "s1", "1", NULL}}},
    {"a site speaks with its new key too early",
     KEDGE_AUDIT_SIGNATURE,
     2,
     true,
     {{SITE, "org-a", "s1", "s1-key", "s1-tls"},
      {SAY, "s1-new", "s1", "1", NULL},
      {ROTATE, "s1-key s1-new", "s1", "s1-key", "s1-new"}}},
    {"a site speaks after it was revoked",
     KEDGE_AUDIT_SITE_REVOKED,
     3,
     true,
     {{SITE, "org-a", "s1", "s1-key", "s1-tls"},
      {SITE_GONE, "org-a", "s1", "s1-key", NULL},
      {SAY, "s1-key", "s1", "1", NULL}}},
    {"another site's key is rotated",
     KEDGE_AUDIT_KEY,
     3,
     false,
     {{SITE, "org-a", "s1", "s1-key", "s1-tls"},
      {SITE, "org-a", "s2", "s2-key", "s2-tls"},
      {ROTATE, "s1-key s3-key", "s2", "s1-key", "s3-key"}}},
    {"a site is revoked with the key it had before",
     KEDGE_AUDIT_KEY_REVOKED,
     3,
     false,
     {{SITE, "org-a", "s1", "s1-key", "s1-tls"},
      {ROTATE, "s1-key s1-new", "s1", "s1-key", "s1-new"},
      {SITE_GONE, "org-a", "s1", "s1-key", NULL}}},
    /* several admins */
    {"two of three admins revoke the third",
     KEDGE_AUDIT_KEY,
     0,
     false,
     {{ADD, "org-a a2", NULL, "a2", NULL},
      {ADD, "org-a a2 a3", NULL, "a3", NULL},
      {SITE, "org-a", "s1", "s1-key", "s1-tls"},
      {REVOKE, "a2 a3", "", "org-a", NULL},
      {SITE, "a3", "s2", "s2-key", "s2-tls"}}},
    {"a revoked admin key signs on",
     KEDGE_AUDIT_KEY_REVOKED,
     4,
     false,
     {{ADD, "org-a a2", NULL, "a2", NULL},
      {ADD, "org-a a2 a3", NULL, "a3", NULL},
      {REVOKE, "a2 a3", "", "org-a", NULL},
      {SITE, "org-a", "s1", "s1-key", "s1-tls"}}},
    {"one of three admins revokes another",
     KEDGE_AUDIT_SIGNATURE,
     3,
     false,
     {{ADD, "org-a a2", NULL, "a2", NULL},
      {ADD, "org-a a2 a3", NULL, "a3", NULL},
      {REVOKE, "a2", "", "org-a", NULL}}},
    {"an admin key that did not sign for itself",
     KEDGE_AUDIT_SIGNATURE,
     1,
     false,
     {{ADD, "org-a", NULL, "a2", NULL}}},
    {"an admin key that one of two added",
     KEDGE_AUDIT_SIGNATURE,
     2,
     false,
     {{ADD, "org-a a2", NULL, "a2", NULL}, {ADD, "org-a a3", NULL, "a3", NULL}}},
    {"the last admin key is revoked", KEDGE_AUDIT_KEY, 1, false, {{REVOKE, "org-a", "", "org-a", NULL}}},
    /* recovery */
    {"the recovery key recovers",
     KEDGE_AUDIT_KEY,
     0,
     false,
     {{RECOVERY, "org-a safe", NULL, "safe", NULL},
      {RECOVER, "safe a9", NULL, "a9", NULL},
      {SITE, "a9", "s1", "s1-key", "s1-tls"},
      {ROTATE, "safe safe2", "!", "safe", "safe2"}}},
    {"a lost key that turns up after the recovery",
     KEDGE_AUDIT_KEY_REVOKED,
     3,
     false,
     {{RECOVERY, "org-a safe", NULL, "safe", NULL},
      {RECOVER, "safe a9", NULL, "a9", NULL},
      {SITE, "org-a", "s1", "s1-key", "s1-tls"}}},
    {"an admin recovers without the recovery key",
     KEDGE_AUDIT_SIGNATURE,
     2,
     false,
     {{RECOVERY, "org-a safe", NULL, "safe", NULL}, {RECOVER, "org-a a9", NULL, "a9", NULL}}},
    {"a recovery without a recovery key",
     KEDGE_AUDIT_SIGNATURE,
     1,
     false,
     {{RECOVER, "org-a a9", NULL, "a9", NULL}}},
    {"a second recovery key",
     KEDGE_AUDIT_KEY,
     2,
     false,
     {{RECOVERY, "org-a safe", NULL, "safe", NULL}, {RECOVERY, "org-a safe2", NULL, "safe2", NULL}}},
    {"the recovery key signs a site in",
     KEDGE_AUDIT_SIGNATURE,
     2,
     false,
     {{RECOVERY, "org-a safe", NULL, "safe", NULL}, {SITE, "safe", "s1", "s1-key", "s1-tls"}}},
};

static struct kedge_public_key public_of(const char *name)
{
    struct kedge_key_pair pair;
    fx_key_of(name, &pair);
    return pair.public;
}

static void fill_holder(const struct op *op, struct kedge_statement *st)
{
    struct kedge_id tenant = fx_id_of("org-a"), holder = fx_id_of(op->holder);
    if (op->kind == SITE) {
        st->kind = KEDGE_ST_SITE_ENROLLED;
        st->u.site_enrolled =
            (struct kedge_st_site_enrolled){tenant, holder, public_of(op->tls), public_of(op->key)};
    } else if (op->kind == SITE_GONE) {
        st->kind = KEDGE_ST_SITE_REVOKED;
        st->u.site_revoked = (struct kedge_st_site_revoked){tenant, holder, public_of(op->key), "gone"};
    } else if (op->kind == WITNESS) {
        st->kind = KEDGE_ST_WITNESS_ENROLLED;
        st->u.witness_enrolled = (struct kedge_st_witness_enrolled){tenant, holder, public_of(op->tls),
                                                                    public_of(op->key), "org-a.example/w"};
    } else if (op->kind == WITNESS_GONE) {
        st->kind = KEDGE_ST_WITNESS_REVOKED;
        st->u.witness_revoked = (struct kedge_st_witness_revoked){tenant, holder, public_of(op->key), "gone"};
    } else {
        st->kind = KEDGE_ST_EVALUATION;
        st->u.evaluation =
            (struct kedge_st_evaluation){.tenant = tenant, .site = holder, .job = fx_id_of("none")};
        st->u.evaluation.round = (uint32_t)(op->key[0] - '0');
    }
}

static void fill(const struct op *op, struct kedge_statement *st)
{
    struct kedge_id tenant = fx_id_of("org-a");
    memset(st, 0, sizeof *st);
    switch (op->kind) {
    case ADD:
    case RECOVERY:
        st->kind = KEDGE_ST_KEY_ADDED;
        st->u.key_added = (struct kedge_st_key_added){
            tenant, op->kind == ADD ? KEDGE_ROLE_ADMIN : KEDGE_ROLE_RECOVERY, public_of(op->key)};
        break;
    case ROTATE:
        st->kind = KEDGE_ST_KEY_ROTATED;
        st->u.key_rotated = (struct kedge_st_key_rotated){
            .tenant = tenant, .old_key = public_of(op->key), .new_key = public_of(op->tls)};
        if (op->holder[0] == '!') {
            st->u.key_rotated.role = KEDGE_ROLE_RECOVERY;
        } else if (op->holder[0]) {
            st->u.key_rotated.role = KEDGE_ROLE_SITE;
            st->u.key_rotated.site = fx_id_of(op->holder);
        }
        break;
    case REVOKE:
        st->kind = KEDGE_ST_KEY_REVOKED;
        st->u.key_revoked =
            (struct kedge_st_key_revoked){tenant, KEDGE_ROLE_ADMIN, public_of(op->key), "stolen"};
        break;
    case RECOVER:
        st->kind = KEDGE_ST_KEY_RECOVERED;
        st->u.key_recovered = (struct kedge_st_key_recovered){tenant, public_of(op->key), "lost"};
        break;
    case END:
    case SITE:
    case SITE_GONE:
    case WITNESS:
    case WITNESS_GONE:
    case SAY:
        fill_holder(op, st);
        break;
    }
}

/* As no coordinator would take it: what is there under its key already gets another one in the store's table.
 */
static void append(struct fx *x, struct kedge_statement *st, const struct op *op)
{
    fx_position(&x->log[0], st);
    struct kedge_buf idem, envelope, more;
    char by[64], *rest = by;
    uint64_t index;
    kedge_buf_init(&idem, KEDGE_IDEM_KEY_MAX);
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    snprintf(by, sizeof by, "%s", op->by);
    for (char *name = strtok_r(by, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        struct kedge_key_pair pair;
        fx_key_of(name, &pair);
        kedge_buf_init(&more, KEDGE_ENTRY_MAX);
        ck_assert_int_eq(envelope.len ? kedge_statement_cosign(kedge_buf_view(&envelope), &pair, &more, NULL)
                                      : kedge_statement_sign(st, &pair, &more, NULL),
                         KEDGE_OK);
        kedge_buf_deinit(&envelope);
        envelope = more;
    }
    kedge_statement_key(st->kind, &st->u, &idem);
    if (kedge_ledger_find(x->log[0].ledger, kedge_buf_view(&idem), &index) == KEDGE_OK) {
        kedge_buf_put_str(&idem, "/again");
    }
    kedge_buf_put_u8(&idem, 0);
    fx_append_bytes(&x->log[0], kedge_buf_view(&envelope), (const char *)idem.ptr);
    kedge_buf_deinit(&idem);
    kedge_buf_deinit(&envelope);
}

static void write_script(const char *dir, const struct script *s)
{
    struct fx *x = kedge_mem_new(1, sizeof *x);
    static struct kedge_statement st;
    ck_assert_ptr_nonnull(x);
    snprintf(x->dir, sizeof x->dir, "%s", dir);
    fx_make_state(x);
    for (int i = 0; i < OPS_MAX && s->ops[i].kind != END; i++) {
        fill(&s->ops[i], &st);
        append(x, &st, &s->ops[i]);
    }
    for (uint32_t t = 0; t < FX_TENANTS; t++) {
        fx_add_checkpoint(x, t);
    }
    fx_close_logs(x);
    kedge_mem_free(x);
}

static bool has_finding(const struct kedge_audit_report *r, enum kedge_audit_code code, const char *log,
                        int at_entry)
{
    char where[32];
    snprintf(where, sizeof where, "%s[%d]", log, at_entry);
    for (uint32_t i = 0; i < r->finding_count; i++) {
        if (r->findings[i].code == code && strcmp(r->findings[i].where, where) == 0) {
            return true;
        }
    }
    return false;
}

/* Is it a finding about keys? */
static bool is_ours(const struct kedge_audit_finding *f)
{
    return f->severity == KEDGE_AUDIT_ERROR
           && (f->code == KEDGE_AUDIT_KEY || f->code == KEDGE_AUDIT_KEY_REVOKED
               || f->code == KEDGE_AUDIT_SIGNATURE || f->code == KEDGE_AUDIT_SITE_UNKNOWN
               || f->code == KEDGE_AUDIT_SITE_REVOKED || f->code == KEDGE_AUDIT_MISPLACED);
}

/* Is it about an entry in front of that one? */
static bool is_before(const struct kedge_audit_finding *f, int at_entry)
{
    char where[32];
    bool before = false;
    for (int i = 0; i < at_entry && !before; i++) {
        snprintf(where, sizeof where, "org-a[%d]", i);
        before = strcmp(where, f->where) == 0;
    }
    return before;
}

START_TEST(test_script)
{
    const struct script *s = &scripts[_i];
    struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    write_script(at("fx"), s);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    bool as_expected = !s->at || has_finding(&r, s->code, "org-a", s->at);
    for (uint32_t i = 0; i < r.finding_count; i++) { /* nothing else is held against it */
        as_expected =
            as_expected && (!is_ours(&r.findings[i]) || (s->at && !is_before(&r.findings[i], s->at)));
    }
    if (!as_expected) {
        print_findings(&r);
    }
    ck_assert_msg(as_expected, "%s", s->what);
    ck_assert_int_eq(r.verdict, s->at || s->loose ? KEDGE_AUDIT_NO : KEDGE_AUDIT_YES);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

/* ---- roles in the main chain ---- */

struct role_op {
    bool revoke;
    enum kedge_chain_role role;
    const char *key, *by; /* by NULL: the coordinator's statement key */
};

static const struct role_script {
    const char *what;
    enum kedge_audit_code code;
    int at; /* 0: all is well */
    struct role_op ops[3];
} role_scripts[] = {
    {"roles come and go",
     KEDGE_AUDIT_KEY,
     0,
     {{false, KEDGE_CHAIN_OPERATOR, "op", NULL},
      {false, KEDGE_CHAIN_AUDITOR, "court", NULL},
      {true, KEDGE_CHAIN_OPERATOR, "op", NULL}}},
    {"a role that a tenant's admin granted",
     KEDGE_AUDIT_SIGNATURE,
     1,
     {{false, KEDGE_CHAIN_OPERATOR, "op", "org-a"}}},
    {"a role that an operator granted",
     KEDGE_AUDIT_SIGNATURE,
     2,
     {{false, KEDGE_CHAIN_OPERATOR, "op", NULL}, {false, KEDGE_CHAIN_OPERATOR, "friend", "op"}}},
    {"two roles for one key",
     KEDGE_AUDIT_DOUBLED,
     2,
     {{false, KEDGE_CHAIN_OPERATOR, "op", NULL}, {false, KEDGE_CHAIN_AUDITOR, "op", NULL}}},
    {"revoked and not granted", KEDGE_AUDIT_KEY, 1, {{true, KEDGE_CHAIN_OPERATOR, "op", NULL}}},
    {"revoked before it is granted",
     KEDGE_AUDIT_KEY,
     1,
     {{true, KEDGE_CHAIN_OPERATOR, "op", NULL}, {false, KEDGE_CHAIN_OPERATOR, "op", NULL}}},
    {"revoked in another role",
     KEDGE_AUDIT_KEY,
     2,
     {{false, KEDGE_CHAIN_OPERATOR, "op", NULL}, {true, KEDGE_CHAIN_AUDITOR, "op", NULL}}},
    {"the statement key as an operator's", KEDGE_AUDIT_KEY, 1, {{false, KEDGE_CHAIN_OPERATOR, "", NULL}}},
};

static void append_role(struct fx *x, const struct role_op *op)
{
    static struct kedge_statement st;
    struct kedge_key_pair signer = x->statement_key;
    struct kedge_public_key key = op->key[0] ? public_of(op->key) : x->statement_key.public;
    struct kedge_buf idem;
    memset(&st, 0, sizeof st);
    if (op->by) {
        fx_key_of(op->by, &signer);
    }
    if (op->revoke) {
        st.kind = KEDGE_ST_ROLE_REVOKED;
        st.u.role_revoked = (struct kedge_st_role_revoked){fx_bound(x), op->role, key, "left"};
    } else {
        st.kind = KEDGE_ST_ROLE_GRANTED;
        st.u.role_granted = (struct kedge_st_role_granted){fx_bound(x), op->role, fx_id_of("somebody"), key};
    }
    kedge_buf_init(&idem, KEDGE_IDEM_KEY_MAX);
    kedge_statement_key(st.kind, &st.u, &idem);
    uint64_t index;
    bool again = kedge_ledger_find(x->main.ledger, kedge_buf_view(&idem), &index) == KEDGE_OK;
    fx_append(&x->main, &st, &signer, "%.*s%s", (int)idem.len, (const char *)idem.ptr, again ? "/again" : "");
    kedge_buf_deinit(&idem);
}

START_TEST(test_roles)
{
    const struct role_script *s = &role_scripts[_i];
    struct kedge_audit_options options = {.threads = 1};
    struct fx *x = kedge_mem_new(1, sizeof *x);
    make_scratch();
    ck_assert_ptr_nonnull(x);
    snprintf(x->dir, sizeof x->dir, "%s", at("fx"));
    fx_make_state(x);
    for (int i = 0; i < 3 && s->ops[i].key; i++) {
        append_role(x, &s->ops[i]);
    }
    for (uint32_t t = 0; t < FX_TENANTS; t++) {
        fx_add_checkpoint(x, t);
    }
    fx_close_logs(x);
    kedge_mem_free(x);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    bool as_expected = s->at ? has_finding(&r, s->code, "main", s->at) : r.finding_count == 0;
    if (!as_expected) {
        print_findings(&r);
    }
    ck_assert_msg(as_expected, "%s", s->what);
    ck_assert_int_eq(r.verdict, s->at ? KEDGE_AUDIT_NO : KEDGE_AUDIT_YES);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-keys");
    TCase *t = tcase_create("keys");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_script, 0, (int)(sizeof scripts / sizeof scripts[0]));
    tcase_add_loop_test(t, test_roles, 0, (int)(sizeof role_scripts / sizeof role_scripts[0]));
    suite_add_tcase(s, t);
    return run_suite(s);
}
