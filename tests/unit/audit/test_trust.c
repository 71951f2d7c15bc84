/* The trust file: what it must look like, and what a record under foreign keys is called. */
#include "tests/unit/audit/tampered.h"

#include "tests/fixtures/trust_file.h"

static void make_vkey(const char *name, const struct kedge_public_key *key, struct kedge_vkey *ret)
{
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(name), KEDGE_KEY_ED25519, key, ret), KEDGE_OK);
}

enum foreign { FOREIGN_STATEMENT, FOREIGN_MAIN, FOREIGN_ADMIN, FOREIGN_LOG, FOREIGN_TENANT, FOREIGN_COUNT };

START_TEST(test_foreign_trust)
{
    static const enum kedge_audit_code codes[FOREIGN_COUNT] = {
        KEDGE_AUDIT_KEY, KEDGE_AUDIT_KEY, KEDGE_AUDIT_KEY, KEDGE_AUDIT_SIGNATURE, KEDGE_AUDIT_TENANT_UNKNOWN};
    struct kedge_trust trust;
    struct kedge_key_pair other;
    copy_base();
    kedge_key_generate(&other);
    ck_assert_int_eq(kedge_trust_read(at("fx/trust.json"), &trust, NULL), KEDGE_OK);
    if (_i == FOREIGN_STATEMENT) {
        trust.statement_key = other.public;
    } else if (_i == FOREIGN_MAIN) {
        make_vkey("fx.kedge.local/main", &other.public, &trust.main_log);
    } else if (_i == FOREIGN_ADMIN) {
        trust.tenants[0].admin_key = other.public;
    } else if (_i == FOREIGN_LOG) {
        make_vkey("fx.kedge.local/org-b", &other.public, &trust.tenants[1].log);
    } else {
        trust.tenant_count--;
    }
    ck_assert_int_eq(fx_trust_write(at("fx/trust.json"), &trust, NULL), KEDGE_OK);
    kedge_trust_deinit(&trust);
    expect(NULL, false, codes[_i], KEDGE_AUDIT_NO);
}
END_TEST

START_TEST(test_trust_file)
{
    struct kedge_trust a, b;
    struct kedge_diag d = {.text = ""};
    char *seen[1] = {(char *)(uintptr_t) "a \"quoted\" note\n"};
    copy_base();
    ck_assert_int_eq(kedge_trust_read(at("fx/trust.json"), &a, &d), KEDGE_OK);
    char **own_seen = a.seen;
    a.seen = seen;
    a.seen_count = 1;
    ck_assert_int_eq(fx_trust_write(at("again.json"), &a, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_trust_read(at("again.json"), &b, &d), KEDGE_OK);
    ck_assert_uint_eq(b.tenant_count, 2);
    ck_assert_uint_eq(b.seen_count, 1);
    ck_assert_str_eq(b.seen[0], seen[0]);
    ck_assert_mem_eq(&a.statement_key, &b.statement_key, sizeof a.statement_key);
    kedge_trust_deinit(&b);
    a.seen = own_seen;
    a.seen_count = 0;
    struct kedge_trust_tenant x = a.tenants[0];
    a.tenants[0] = a.tenants[1];
    a.tenants[1] = x;
    ck_assert_int_eq(fx_trust_write(at("again.json"), &a, &d), KEDGE_E_ARG);
    kedge_trust_deinit(&a);
    static const char *const bad[][2] = {
        {"\"schema_version\": 1", "\"schema_version\": 2"},
        {"\"deployment\"", "\"deploymend\""},
        {"\"statement_key\": \"", "\"statement_key\": 7"},
        {"fx.kedge.local/main+", "fx.kedge.local/main-"},
        {"\"tenant\": \"org-a\"", "\"tenant\": \"ORG-A\""},
        {"fx.kedge.local/org-b", "fx.kedge.local/org-c"},
        {"\"seen\": []", "\"sean\": []"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fx_copy(at("good/trust.json"), at("bad.json"));
        replace(at("bad.json"), bad[i][0], bad[i][1]);
        ck_assert_msg(kedge_trust_read(at("bad.json"), &b, &d) == KEDGE_E_FORMAT, "%s", bad[i][1]);
        ck_assert_ptr_nonnull(strstr(d.text, "bad.json"));
    }
    ck_assert_int_eq(kedge_trust_read(at("none.json"), &b, &d), KEDGE_E_NOT_FOUND);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-trust");
    TCase *t = tcase_create("trust");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, test_foreign_trust, 0, FOREIGN_COUNT);
    tcase_add_test(t, test_trust_file);
    suite_add_tcase(s, t);
    return run_tampered(s);
}
