/* What an audit says that it has shown. The holder of a record's keys can write another one: without an
 * update, without a job, with a wrong model, everything signed as it should be. Such a record must get no
 * claim that only somebody else's word, or a replay, can give. */
#include "chain/audit/base/shown.h"

#include <jansson.h>

#include "chain/log/checkpoint.h"
#include "chain/state/state.h"
#include "crypto/keyfile.h"
#include "tests/fixtures/run.h"
#include "tests/unit/audit/support.h"

static void make_true_record(void)
{
    make_scratch();
    fx_take_keys(NULL);
    fx_federation(at("true"), FX_NONE);
    fx_take_keys(at("true"));
    fx_checkpoint(at("true"), NULL, at("main.note"));
    fx_checkpoint(at("true"), "org-a", at("org-a.note"));
}

static struct kedge_audit_claims claims_of(const struct kedge_audit_report *r)
{
    struct kedge_audit_claims c;
    ck_assert_int_eq(kedge_audit_claims(r, &c), KEDGE_OK);
    return c;
}

/* The first such claim, or NULL. */
static const struct kedge_audit_claim *find(const struct kedge_audit_claims *c, enum kedge_audit_level level,
                                            bool shown)
{
    for (size_t i = 0; i < c->count; i++) {
        if (c->items[i].level == level && c->items[i].shown == shown) {
            return &c->items[i];
        }
    }
    return NULL;
}

static bool says(const struct kedge_audit_report *r, enum kedge_audit_level level, bool shown)
{
    struct kedge_audit_claims c = claims_of(r);
    const struct kedge_audit_claim *claim = find(&c, level, shown);
    bool found = claim != NULL;
    ck_assert(!found || claim->text[0]);
    ck_assert(!found || (claim->how[0] != '\0') == !shown);
    kedge_audit_claims_deinit(&c);
    return found;
}

static struct kedge_audit_report judge(const char *name, const char *seen, bool replay)
{
    struct kedge_audit_report r =
        run(at(name), at("true/trust.json"), seen, replay, (struct kedge_audit_options){.threads = 1});
    if (r.verdict != KEDGE_AUDIT_YES && !seen) {
        print_findings(&r);
    }
    return r;
}

/* ---- another history by the same keys ---- */

static void without_a_job(void)
{
    fx_ungrouped(at("fx"), NULL, FX_NONE);
}

static void without_an_update(void)
{
    fx_federation(at("fx"), FX_UPDATE_GONE);
}

static void with_a_wrong_model(void)
{
    fx_federation(at("fx"), FX_AGGREGATE);
}

static const struct history {
    void (*write)(void);
    bool replay_finds;        /* else it is as good as any other, and only others know better */
    const char *convicted_by; /* a checkpoint of the true record */
    enum kedge_audit_code as;
} histories[] = {
    {without_a_job, false, "main.note", KEDGE_AUDIT_TRUNCATED},
    {without_an_update, false, "org-a.note", KEDGE_AUDIT_TRUNCATED},
    {without_an_update, false, "main.note", KEDGE_AUDIT_FORK},
    {with_a_wrong_model, true, "main.note", KEDGE_AUDIT_FORK},
};

START_TEST(another_history_gets_no_claim_that_it_does_not_deserve)
{
    const struct history *h = &histories[_i];
    make_true_record();
    h->write();
    struct kedge_audit_report r = judge("fx", NULL, false);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert(says(&r, KEDGE_AUDIT_CONSISTENT, true) && says(&r, KEDGE_AUDIT_SIGNED, true));
    ck_assert(!says(&r, KEDGE_AUDIT_COMPLETE, true) && says(&r, KEDGE_AUDIT_COMPLETE, false));
    ck_assert(!says(&r, KEDGE_AUDIT_REEXECUTED, true) && says(&r, KEDGE_AUDIT_REEXECUTED, false));
    kedge_audit_report_deinit(&r);

    r = judge("fx", at(h->convicted_by), false);
    if (!has_code(&r, h->as)) {
        print_findings(&r);
    }
    ck_assert(r.verdict == KEDGE_AUDIT_NO && has_code(&r, h->as));
    for (int level = 0; level < KEDGE_AUDIT_LEVEL_COUNT; level++) {
        ck_assert(!says(&r, (enum kedge_audit_level)level, true));
    }
    kedge_audit_report_deinit(&r);

    r = judge("fx", NULL, true);
    ck_assert_int_eq(r.verdict, h->replay_finds ? KEDGE_AUDIT_NO : KEDGE_AUDIT_YES);
    ck_assert(says(&r, KEDGE_AUDIT_REEXECUTED, true) == !h->replay_finds);
    ck_assert(!says(&r, KEDGE_AUDIT_COMPLETE, true));
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

/* ---- the true record ---- */

START_TEST(a_checkpoint_shows_as_much_as_it_covers)
{
    struct kedge_key_pair key;
    struct kedge_state_log log;
    struct kedge_hash root;
    struct kedge_buf note;
    make_true_record();
    struct kedge_audit_report r = judge("true", at("main.note"), true);
    struct kedge_audit_claims c = claims_of(&r);
    const struct kedge_audit_claim *claim = find(&c, KEDGE_AUDIT_COMPLETE, true);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_ptr_nonnull(claim);
    ck_assert_str_eq(claim->log, "fx.kedge.local/main");
    ck_assert_str_eq(claim->source, "seen");
    ck_assert_str_eq(claim->from, at("main.note"));
    ck_assert(claim->entries == r.logs[0].entries && claim->of == r.logs[0].entries);
    for (size_t i = 0; i < c.count; i++) { /* nothing remains open */
        ck_assert_msg(c.items[i].shown, "%s", c.items[i].text);
    }
    kedge_audit_claims_deinit(&c);
    kedge_audit_report_deinit(&r);

    /* An earlier one: what is newer is as open as without any. */
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_keyfile_read_private(at("true/state/keys/log-main.pem"), &key, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_state_log_open(at("true/state"), NULL, KEDGE_STATE_COPY, &log, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_root(log.ledger, 3, &root), KEDGE_OK);
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str(log.origin), 3, &root, &key, &note), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(at("early.note"), kedge_buf_view(&note), 0600, NULL), KEDGE_OK);
    kedge_state_log_close(&log);
    kedge_buf_deinit(&note);
    r = judge("true", at("early.note"), false);
    c = claims_of(&r);
    ck_assert_uint_eq(find(&c, KEDGE_AUDIT_COMPLETE, true)->entries, 3);
    ck_assert_ptr_nonnull(find(&c, KEDGE_AUDIT_COMPLETE, false));
    ck_assert_ptr_nonnull(strstr(find(&c, KEDGE_AUDIT_COMPLETE, false)->text, "entries 3 to "));
    kedge_audit_claims_deinit(&c);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

/* A tenant's checkpoint is about its ledger alone. */
START_TEST(a_tenants_checkpoint_does_not_vouch_for_the_main_chain)
{
    make_true_record();
    struct kedge_audit_report r = judge("true", at("org-a.note"), false);
    struct kedge_audit_claims c = claims_of(&r);
    ck_assert_str_eq(find(&c, KEDGE_AUDIT_COMPLETE, true)->log, "fx.kedge.local/org-a");
    ck_assert_str_eq(find(&c, KEDGE_AUDIT_COMPLETE, false)->log, "fx.kedge.local/main");
    ck_assert_uint_eq(find(&c, KEDGE_AUDIT_COMPLETE, false)->entries, 0);
    kedge_audit_claims_deinit(&c);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

START_TEST(without_keys_from_elsewhere_nothing_is_signed)
{
    make_true_record();
    struct kedge_audit_report r =
        run(at("true"), NULL, NULL, false, (struct kedge_audit_options){.threads = 1});
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_SELF_CONSISTENT);
    ck_assert(says(&r, KEDGE_AUDIT_CONSISTENT, true) && !says(&r, KEDGE_AUDIT_SIGNED, true));
    ck_assert(says(&r, KEDGE_AUDIT_SIGNED, false));
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

/* Of a copy of one tenant's ledger no more is said than of what it holds. */
START_TEST(a_copy_is_not_the_record)
{
    const struct kedge_id tenant = {.s = "org-a"};
    make_true_record();
    fx_copy(at("true"), at("copy"));
    fx_replica(at("copy"), "org-a");
    struct kedge_audit_report r =
        run(at("copy"), at("true/trust.json"), NULL, true,
            (struct kedge_audit_options){.threads = 1, .tenants = &tenant, .tenant_count = 1});
    struct kedge_audit_claims c = claims_of(&r);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_ptr_nonnull(strstr(find(&c, KEDGE_AUDIT_CONSISTENT, true)->text, "what this copy holds"));
    ck_assert_ptr_nonnull(find(&c, KEDGE_AUDIT_CONSISTENT, false));
    ck_assert_ptr_nonnull(find(&c, KEDGE_AUDIT_REEXECUTED, false));
    kedge_audit_claims_deinit(&c);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

START_TEST(programs_read_the_same)
{
    static const char *const levels[] = {"consistent", "signed", "complete-as-of", "models-re-executed"};
    make_true_record();
    struct kedge_audit_report r = judge("true", at("main.note"), true);
    struct kedge_audit_claims c = claims_of(&r);
    json_t *shown = kedge_audit_claims_json(&c, true), *open = kedge_audit_claims_json(&c, false);
    ck_assert_uint_eq(json_array_size(shown), 4);
    ck_assert_uint_eq(json_array_size(open), 0);
    for (size_t i = 0; i < 4; i++) {
        const json_t *o = json_array_get(shown, i);
        ck_assert_str_eq(json_string_value(json_object_get(o, "level")), levels[i]);
        ck_assert(json_string_length(json_object_get(o, "text")) > 0);
        ck_assert((json_object_get(o, "entries") != NULL) == (i == 2));
    }
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(shown, 2), "entries")),
                     (json_int_t)r.logs[0].entries);
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(shown, 2), "from")), at("main.note"));
    json_decref(shown);
    json_decref(open);
    kedge_audit_claims_deinit(&c);
    kedge_audit_report_deinit(&r);
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("audit-shown");
    TCase *t = tcase_create("shown");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, another_history_gets_no_claim_that_it_does_not_deserve, 0,
                        (int)(sizeof histories / sizeof histories[0]));
    tcase_add_test(t, a_checkpoint_shows_as_much_as_it_covers);
    tcase_add_test(t, a_tenants_checkpoint_does_not_vouch_for_the_main_chain);
    tcase_add_test(t, without_keys_from_elsewhere_nothing_is_signed);
    tcase_add_test(t, a_copy_is_not_the_record);
    tcase_add_test(t, programs_read_the_same);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
