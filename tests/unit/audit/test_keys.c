/* The keys of a ledger: a script of statements each, and what the auditor must call it. No job runs. */
#include "chain/statement.h"
#include "common/base/mem.h"
#include "tests/fixtures/federation_impl.h"
#include "tests/unit/audit/support.h"

enum { OPS_MAX = 12 };

enum op_kind { END, SITE, SITE_GONE, WITNESS, WITNESS_GONE };

/* Keys are named by what they are made from (fx_key_of); "org-a" is the tenant's first admin key. */
struct op {
    enum op_kind kind;
    const char *by;        /* signs */
    const char *holder;    /* site or witness */
    const char *key, *tls; /* statement or cosignature key; TLS key */
};

struct script {
    const char *what;
    enum kedge_audit_code code; /* at entry `at`; none when `at` is 0 */
    int at;
    struct op ops[OPS_MAX]; /* entries 1, 2, … of org-a's ledger */
};

static const struct script scripts[] = {
    {"witnesses come and go",
     KEDGE_AUDIT_KEY,
     0,
     {{WITNESS, "org-a", "eye", "cosign", "tls"},
      {WITNESS, "org-a", "ear", "cosign2", "tls2"},
      {WITNESS_GONE, "org-a", "eye", "cosign", NULL}}},
    {"a witness that its site's key signed in",
     KEDGE_AUDIT_SIGNATURE,
     2,
     {{SITE, "org-a", "s1", "s1-key", "s1-tls"}, {WITNESS, "s1-key", "eye", "cosign", "tls"}}},
    {"a witness with the admin's key", KEDGE_AUDIT_KEY, 1, {{WITNESS, "org-a", "eye", "org-a", "tls"}}},
    {"a witness with a site's TLS key",
     KEDGE_AUDIT_KEY,
     2,
     {{SITE, "org-a", "s1", "s1-key", "s1-tls"}, {WITNESS, "org-a", "eye", "cosign", "s1-tls"}}},
    {"a witness with a site's statement key",
     KEDGE_AUDIT_KEY,
     2,
     {{SITE, "org-a", "s1", "s1-key", "s1-tls"}, {WITNESS, "org-a", "eye", "s1-key", "tls"}}},
    {"two witnesses with one TLS key",
     KEDGE_AUDIT_KEY,
     2,
     {{WITNESS, "org-a", "eye", "cosign", "tls"}, {WITNESS, "org-a", "ear", "cosign2", "tls"}}},
    {"a witness twice",
     KEDGE_AUDIT_DOUBLED,
     2,
     {{WITNESS, "org-a", "eye", "cosign", "tls"}, {WITNESS, "org-a", "eye", "cosign2", "tls2"}}},
    {"a witness signed out before it was signed in",
     KEDGE_AUDIT_SITE_UNKNOWN,
     1,
     {{WITNESS_GONE, "org-a", "eye", "cosign", NULL}, {WITNESS, "org-a", "eye", "cosign", "tls"}}},
    {"a witness signed out with another key",
     KEDGE_AUDIT_KEY,
     2,
     {{WITNESS, "org-a", "eye", "cosign", "tls"}, {WITNESS_GONE, "org-a", "eye", "cosign2", NULL}}},
    {"a site with the admin's key", KEDGE_AUDIT_KEY, 1, {{SITE, "org-a", "s1", "org-a", "s1-tls"}}},
    {"a site with one key for both", KEDGE_AUDIT_KEY, 1, {{SITE, "org-a", "s1", "s1-key", "s1-key"}}},
};

static struct kedge_public_key public_of(const char *name)
{
    struct kedge_key_pair pair;
    fx_key_of(name, &pair);
    return pair.public;
}

static void fill(const struct op *op, struct kedge_statement *st, char idem[KEDGE_IDEM_KEY_MAX + 1])
{
    struct kedge_id tenant = fx_id_of("org-a"), holder = fx_id_of(op->holder);
    const char *word = "";
    memset(st, 0, sizeof *st);
    switch (op->kind) {
    case SITE:
        st->kind = KEDGE_ST_SITE_ENROLLED;
        st->u.site_enrolled =
            (struct kedge_st_site_enrolled){tenant, holder, public_of(op->tls), public_of(op->key)};
        word = "site-enrolled";
        break;
    case SITE_GONE:
        st->kind = KEDGE_ST_SITE_REVOKED;
        st->u.site_revoked = (struct kedge_st_site_revoked){tenant, holder, public_of(op->key), "gone"};
        word = "site-revoked";
        break;
    case WITNESS:
        st->kind = KEDGE_ST_WITNESS_ENROLLED;
        st->u.witness_enrolled = (struct kedge_st_witness_enrolled){tenant, holder, public_of(op->tls),
                                                                    public_of(op->key), "org-a.example/w"};
        word = "witness-enrolled";
        break;
    case WITNESS_GONE:
        st->kind = KEDGE_ST_WITNESS_REVOKED;
        st->u.witness_revoked = (struct kedge_st_witness_revoked){tenant, holder, public_of(op->key), "gone"};
        word = "witness-revoked";
        break;
    case END:
        break;
    }
    snprintf(idem, KEDGE_IDEM_KEY_MAX + 1, "%s/%s", word, holder.s);
}

/* As the store would never take it: what stands under a key twice gets another key in the store's table. */
static void append(struct fx *x, const struct kedge_statement *st, const char *by, const char *idem)
{
    struct kedge_key_pair pair;
    uint64_t index;
    bool again = kedge_ledger_find(x->log[0].ledger, kedge_view_str(idem), &index) == KEDGE_OK;
    fx_key_of(by, &pair);
    fx_append(&x->log[0], st, &pair, "%s%s", idem, again ? "/again" : "");
}

static void write_script(const char *dir, const struct script *s)
{
    struct fx *x = kedge_mem_new(1, sizeof *x);
    static struct kedge_statement st;
    char idem[KEDGE_IDEM_KEY_MAX + 1];
    ck_assert_ptr_nonnull(x);
    snprintf(x->dir, sizeof x->dir, "%s", dir);
    fx_make_state(x);
    for (int i = 0; i < OPS_MAX && s->ops[i].kind != END; i++) {
        fill(&s->ops[i], &st, idem);
        append(x, &st, s->ops[i].by, idem);
    }
    for (uint32_t t = 0; t < FX_TENANTS; t++) {
        fx_add_checkpoint(x, t);
    }
    fx_close_logs(x);
    kedge_mem_free(x);
}

static bool has_finding(const struct kedge_audit_report *r, enum kedge_audit_code code, int at_entry)
{
    char where[32];
    snprintf(where, sizeof where, "org-a[%d]", at_entry);
    for (uint32_t i = 0; i < r->finding_count; i++) {
        if (r->findings[i].code == code && strcmp(r->findings[i].where, where) == 0) {
            return true;
        }
    }
    return false;
}

START_TEST(test_script)
{
    const struct script *s = &scripts[_i];
    struct kedge_audit_options options = {.threads = 1};
    make_scratch();
    write_script(at("fx"), s);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    bool as_expected = s->at ? has_finding(&r, s->code, s->at) : r.finding_count == 0;
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
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
