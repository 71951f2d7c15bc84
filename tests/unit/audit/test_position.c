/* Statements of tenants that a coordinator let in where they do not belong: the auditor convicts it. */
#include "tests/fixtures/federation_impl.h"
#include "tests/unit/audit/tampered.h"

#include "chain/statement/entry_index.h"
#include "chain/statement/statement_position.h"

static struct kedge_statement st;
static struct kedge_state_log log_of_a;

static void open_log(void)
{
    struct kedge_id tenant = fx_id_of("org-a");
    ck_assert_int_eq(kedge_state_log_open(at("fx/state"), &tenant, KEDGE_STATE_WRITE, &log_of_a, NULL),
                     KEDGE_OK);
}

static void close_log(void)
{
    ck_assert_int_eq(kedge_ledger_flush(log_of_a.ledger, NULL), KEDGE_OK);
    kedge_state_log_close(&log_of_a);
}

/* Who answers for a site, or for the tenant: nothing else of the record rests on it. */
static void make_contact(const char *about, uint8_t commitment)
{
    st = (struct kedge_statement){.kind = KEDGE_ST_CONTACT};
    st.u.contact.tenant = fx_id_of("org-a");
    st.u.contact.commitment.b[0] = commitment;
    if (about[0]) {
        st.u.contact.about = fx_id_of(about);
    }
    fx_position(&log_of_a, &st);
}

static void append(void)
{
    struct kedge_key_pair admin;
    struct kedge_buf key;
    fx_key_of("org-a", &admin);
    kedge_buf_init(&key, KEDGE_IDEM_KEY_MAX + 1);
    kedge_statement_key(st.kind, &st.u, &key);
    kedge_buf_put_u8(&key, 0);
    fx_append(&log_of_a, &st, &admin, "%s", (const char *)key.ptr);
    kedge_buf_deinit(&key);
}

static void judged(enum kedge_audit_code code, enum kedge_audit_verdict verdict)
{
    close_log();
    expect(NULL, false, code, verdict);
}

START_TEST(one_in_its_place)
{
    copy_base();
    open_log();
    make_contact("", 1);
    append();
    close_log();
    struct kedge_audit_report r =
        run(at("fx"), at("fx/trust.json"), NULL, false, (struct kedge_audit_options){0});
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    kedge_audit_report_deinit(&r);
}
END_TEST

START_TEST(one_of_another_deployment)
{
    struct kedge_key_pair elsewhere;
    copy_base();
    open_log();
    fx_key_of("another main log", &elsewhere);
    make_contact("", 1);
    st.at.main_log_key = elsewhere.public;
    append();
    judged(KEDGE_AUDIT_POSITION, KEDGE_AUDIT_NO);
}
END_TEST

START_TEST(one_of_another_history)
{
    copy_base();
    open_log();
    make_contact("", 1);
    st.at.seen_root.b[0] ^= 1;
    append();
    judged(KEDGE_AUDIT_POSITION, KEDGE_AUDIT_NO);
}
END_TEST

START_TEST(one_that_was_kept_back_for_too_long)
{
    copy_base();
    open_log();
    make_contact("", 1);
    st.at = kedge_position_make(&st.at.main_log_key, st.at.seen_size, &st.at.seen_root, 1);
    struct kedge_statement kept = st;
    make_contact("s1", 2);
    append();
    st = kept;
    append();
    judged(KEDGE_AUDIT_POSITION, KEDGE_AUDIT_NO);
}
END_TEST

/* One that the admin signed, and a second admin's key that came before it was played. */
START_TEST(one_from_before_the_keys_changed)
{
    struct kedge_key_pair admin, second;
    struct kedge_buf one, both;
    copy_base();
    open_log();
    make_contact("", 1);
    struct kedge_statement kept = st;
    fx_key_of("org-a", &admin);
    fx_key_of("second", &second);
    st = (struct kedge_statement){.kind = KEDGE_ST_KEY_ADDED};
    st.u.key_added = (struct kedge_st_key_added){fx_id_of("org-a"), KEDGE_ROLE_ADMIN, second.public};
    fx_position(&log_of_a, &st);
    kedge_buf_init(&one, KEDGE_ENTRY_MAX);
    kedge_buf_init(&both, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_statement_sign(&st, &admin, &one, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_statement_cosign(kedge_buf_view(&one), &second, &both, NULL), KEDGE_OK);
    char hex[2 * KEDGE_KEY_LEN + 1], key[KEDGE_IDEM_KEY_MAX + 1];
    kedge_hex_encode(second.public.b, KEDGE_KEY_LEN, hex);
    snprintf(key, sizeof key, "key-added/%s", hex);
    fx_append_bytes(&log_of_a, kedge_buf_view(&both), key);
    st = kept;
    append();
    kedge_buf_deinit(&one);
    kedge_buf_deinit(&both);
    judged(KEDGE_AUDIT_POSITION, KEDGE_AUDIT_NO);
}
END_TEST

/* What an admin says of a site now, and what the coordinator plays later: the older one would count. */
START_TEST(an_older_contact_played_after_a_newer_one)
{
    copy_base();
    open_log();
    make_contact("", 1);
    struct kedge_statement kept = st;
    make_contact("", 2);
    append();
    st = kept;
    append();
    judged(KEDGE_AUDIT_POSITION, KEDGE_AUDIT_NO);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-position");
    TCase *t = tcase_create("position");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, one_in_its_place);
    tcase_add_test(t, one_of_another_deployment);
    tcase_add_test(t, one_of_another_history);
    tcase_add_test(t, one_that_was_kept_back_for_too_long);
    tcase_add_test(t, one_from_before_the_keys_changed);
    tcase_add_test(t, an_older_contact_played_after_a_newer_one);
    suite_add_tcase(s, t);
    return run_tampered(s);
}
