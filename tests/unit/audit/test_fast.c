/* Signatures in an audit are libsodium's to accept. This program's own curve arithmetic (crypto/key_tables.c)
 * is replaced here by one that accepts everything: the audit refuses forged records all the same, unless it
 * was asked to be fast. */
#include "chain/audit/base/shown.h"
#include "crypto/key_tables.h"
#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

/* The linker's --wrap gives the function this name.
 * NOLINTNEXTLINE(cert-dcl37-c,cert-dcl51-cpp,bugprone-reserved-identifier) */
bool __wrap_kedgei_known_key_accepts(const struct kedge_public_key *key, struct kedge_view message,
                                     const struct kedge_signature *sig);

static bool poisoned;

/* NOLINTNEXTLINE(cert-dcl37-c,cert-dcl51-cpp,bugprone-reserved-identifier): the linker's --wrap names it */
bool __wrap_kedgei_known_key_accepts(const struct kedge_public_key *key, struct kedge_view message,
                                     const struct kedge_signature *sig)
{
    (void)key;
    (void)message;
    (void)sig;
    return poisoned;
}

/* Another character of a signature in base64, behind the key's name. */
static void spoil(char *sig)
{
    sig[40] = sig[40] == 'A' ? 'B' : 'A';
}

/* The first statement of a site keeps its signer's name and loses its signature. */
static size_t edit_signature(struct fx_entry *e, size_t n)
{
    static char bytes[KEDGE_ENTRY_MAX + 1];
    for (size_t i = 0; i < n; i++) {
        struct kedge_view key = e[i].idem_key;
        if (key.len > 7 && memcmp(key.ptr, "update/", 7) == 0) {
            memcpy(bytes, e[i].entry.ptr, e[i].entry.len);
            bytes[e[i].entry.len] = '\0';
            char *sig = strstr(bytes, "\"sig\":\"");
            ck_assert_ptr_nonnull(sig);
            spoil(sig + 7);
            e[i].entry.ptr = (const uint8_t *)bytes;
            return n;
        }
    }
    ck_abort_msg("no update in the ledger");
}

/* A checkpoint that names the log's key and is not signed by it. */
static void spoil_checkpoint(const char *path)
{
    struct kedge_buf note;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    fx_checkpoint(at("fx"), NULL, path);
    ck_assert_int_eq(kedge_file_read(path, &note, NULL), KEDGE_OK);
    kedge_buf_put_u8(&note, 0);
    char *line = strstr((char *)note.ptr, "\n\n\xe2\x80\x94 ");
    ck_assert_ptr_nonnull(line);
    spoil(strchr(line + 6, ' ') + 1);
    ck_assert_int_eq(kedge_file_write(path, kedge_view_of(note.ptr, note.len - 1), 0600, NULL), KEDGE_OK);
    kedge_buf_deinit(&note);
}

enum forgery { STATEMENT, CHECKPOINT, FORGERIES };

static const enum kedge_audit_code codes[FORGERIES] = {KEDGE_AUDIT_SIGNATURE, KEDGE_AUDIT_SEEN};

static struct kedge_audit_report judge(enum forgery what, bool fast, bool replay)
{
    const char *seen = NULL;
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    if (what == STATEMENT) {
        fx_rewrite(at("fx"), "org-a", edit_signature, false);
    } else {
        seen = at("seen.note");
        spoil_checkpoint(seen);
    }
    struct kedge_audit_report r =
        run(at("fx"), at("fx/trust.json"), seen, replay, (struct kedge_audit_options){.fast = fast});
    remove_scratch();
    return r;
}

START_TEST(an_audit_does_not_believe_this_programs_own_arithmetic)
{
    poisoned = true;
    enum forgery what = (enum forgery)(_i / 2);
    struct kedge_audit_report r = judge(what, false, _i % 2 == 1);
    ck_assert(!r.fast && r.verdict == KEDGE_AUDIT_NO && has_code(&r, codes[what]));
    kedge_audit_report_deinit(&r);
}
END_TEST

/* The poison works, so the test above can fail; and the report says what was not confirmed. */
START_TEST(a_fast_audit_does_and_says_so)
{
    poisoned = true;
    struct kedge_audit_report r = judge((enum forgery)_i, true, false);
    struct kedge_audit_claims c;
    ck_assert(r.fast && !has_code(&r, codes[_i]));
    ck_assert_int_eq(r.verdict, _i == CHECKPOINT ? KEDGE_AUDIT_YES : KEDGE_AUDIT_NO); /* a rewritten ledger */
    ck_assert_int_eq(kedge_audit_claims(&r, &c), KEDGE_OK);
    bool told = r.verdict == KEDGE_AUDIT_NO;
    for (size_t i = 0; i < c.count; i++) {
        told = told || (c.items[i].level == KEDGE_AUDIT_SIGNED && strstr(c.items[i].how, "without --fast"));
    }
    ck_assert(told);
    kedge_audit_claims_deinit(&c);
    kedge_audit_report_deinit(&r);
}
END_TEST

START_TEST(a_fast_audit_that_is_not_poisoned_refuses_too)
{
    poisoned = false;
    struct kedge_audit_report r = judge((enum forgery)_i, true, false);
    ck_assert(r.verdict == KEDGE_AUDIT_NO && has_code(&r, codes[_i]));
    kedge_audit_report_deinit(&r);
}
END_TEST

/* Everybody else who accepts signatures: sites' receipts, replicas, witnesses, exports. A fast audit before
 * leaves nothing behind. */
START_TEST(all_others_get_libsodium)
{
    struct kedge_key_pair pair;
    struct kedge_signature sig = {{0}};
    struct kedge_view message = kedge_view_str("a statement");
    poisoned = true;
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
    kedge_key_generate(&pair);
    ck_assert_int_eq(kedge_verify(message, &sig, &pair.public), KEDGE_E_VERIFY);
    struct kedge_audit_report r = judge(CHECKPOINT, true, false);
    kedge_audit_report_deinit(&r);
    ck_assert_int_eq(kedge_verify(message, &sig, &pair.public), KEDGE_E_VERIFY);
    ck_assert(!kedge_verify_allow_tables(true));
    ck_assert_int_eq(kedge_verify(message, &sig, &pair.public), KEDGE_OK);
    ck_assert(kedge_verify_allow_tables(false));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("audit-fast");
    TCase *t = tcase_create("fast");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, an_audit_does_not_believe_this_programs_own_arithmetic, 0, 2 * FORGERIES);
    tcase_add_loop_test(t, a_fast_audit_does_and_says_so, 0, FORGERIES);
    tcase_add_loop_test(t, a_fast_audit_that_is_not_poisoned_refuses_too, 0, FORGERIES);
    tcase_add_test(t, all_others_get_libsodium);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
