/* Who answers for whom: statements that commit to it, and openings that an auditor is shown. */
#include "tests/fixtures/federation_impl.h"
#include "tests/unit/audit/tampered.h"

static struct kedge_contact contact_of(const char *tenant, const char *about)
{
    struct kedge_contact c = {.tenant = fx_id_of(tenant), .text = "Dr Erika Musterfrau"};
    if (about[0]) {
        c.about = fx_id_of(about);
    }
    memset(c.salt.b, 7, sizeof c.salt.b);
    return c;
}

static void commit_to(const struct kedge_contact *c, const char *signer)
{
    static struct kedge_statement st;
    struct kedge_state_log log;
    struct kedge_key_pair key;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    ck_assert_int_eq(kedge_state_log_open(at("fx/state"), &c->tenant, KEDGE_STATE_WRITE, &log, NULL),
                     KEDGE_OK);
    fx_key_of(signer, &key);
    st = (struct kedge_statement){.kind = KEDGE_ST_CONTACT};
    st.u.contact = (struct kedge_st_contact){.tenant = c->tenant, .about = c->about};
    kedge_contact_commitment(c, &st.u.contact.commitment);
    kedge_hash_hex(&st.u.contact.commitment, hex);
    fx_append(&log, &st, &key, "contact/%s", hex);
    ck_assert_int_eq(kedge_ledger_flush(log.ledger, NULL), KEDGE_OK);
    kedge_state_log_close(&log);
}

static const char *site(void)
{
    return "s1";
}

static void expect_opening(const struct kedge_contact *c, enum kedge_audit_verdict verdict)
{
    struct kedge_audit_options options = {.contacts = c, .contact_count = 1};
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    bool is_told = false;
    for (uint32_t i = 0; i < r.finding_count; i++) {
        is_told = is_told
                  || (r.findings[i].code == KEDGE_AUDIT_CONTACT
                      && (r.findings[i].severity == KEDGE_AUDIT_ERROR) == (verdict == KEDGE_AUDIT_NO));
    }
    ck_assert_int_eq(r.verdict, verdict);
    ck_assert(is_told);
    kedge_audit_report_deinit(&r);
}

START_TEST(an_opening_is_held_to_the_ledger)
{
    copy_base();
    struct kedge_contact c = contact_of("org-a", site()), other = c;
    commit_to(&c, "org-a");
    expect_opening(&c, KEDGE_AUDIT_YES);
    other.text[0] = 'd';
    expect_opening(&other, KEDGE_AUDIT_NO);
    other = c;
    other.salt.b[0] ^= 1;
    expect_opening(&other, KEDGE_AUDIT_NO);
    other = contact_of("org-a", ""); /* the same words about the tenant */
    expect_opening(&other, KEDGE_AUDIT_NO);
    other = contact_of("org-b", site());
    expect_opening(&other, KEDGE_AUDIT_NO);
    struct kedge_audit_report r =
        run(at("fx"), at("fx/trust.json"), NULL, false, (struct kedge_audit_options){0});
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES); /* nobody shows it, nothing is asked */
    ck_assert_uint_eq(r.counts.statements[KEDGE_ST_CONTACT], 1);
    kedge_audit_report_deinit(&r);
}
END_TEST

START_TEST(the_tenant_itself)
{
    copy_base();
    struct kedge_contact c = contact_of("org-a", "");
    commit_to(&c, "org-a");
    expect_opening(&c, KEDGE_AUDIT_YES);
}
END_TEST

START_TEST(a_site_that_is_not_there)
{
    copy_base();
    struct kedge_contact c = contact_of("org-a", "nowhere");
    commit_to(&c, "org-a");
    expect(NULL, false, KEDGE_AUDIT_SITE_UNKNOWN, KEDGE_AUDIT_NO);
}
END_TEST

START_TEST(not_by_the_admin)
{
    copy_base();
    struct kedge_contact c = contact_of("org-a", site());
    commit_to(&c, "org-b");
    expect(NULL, false, KEDGE_AUDIT_SIGNATURE, KEDGE_AUDIT_NO);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-contacts");
    TCase *t = tcase_create("contacts");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, an_opening_is_held_to_the_ledger);
    tcase_add_test(t, the_tenant_itself);
    tcase_add_test(t, a_site_that_is_not_there);
    tcase_add_test(t, not_by_the_admin);
    suite_add_tcase(s, t);
    return run_tampered(s);
}
