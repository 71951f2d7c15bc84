/* Signed refusals against the record: an honest one is confirmed, an invented reason is convicted, one that
 * no list has is named. The good record's list of round 1 has one refusal at the door: site 0 of org-a, for
 * BOUND. */
#include <inttypes.h>

#include "chain/audit/record.h"
#include "chain/state/refused.h"
#include "chain/statement/entry_index.h"
#include "common/base/os/kept.h"
#include "tests/fixtures/federation_impl.h"
#include "tests/unit/audit/tampered.h"

static struct kedge_statement update, refusal, taken;
static char refused_dir[KEDGE_PATH_MAX], shown[KEDGE_PATH_MAX];
static uint64_t signed_at;      /* entries of the main chain that refusals name; KEDGEI_NEVER: all */
static bool names_another_main; /* … of another history */

/* The first update of org-a's for round 1: what the site really sent, with its key. */
static void take_update(const char *job)
{
    struct kedge_state_log log;
    struct kedge_buf entry;
    struct kedge_id tenant = fx_id_of("org-a");
    bool found = false;
    ck_assert_int_eq(kedge_state_log_open(at("fx/state"), &tenant, KEDGE_STATE_WRITE, &log, NULL), KEDGE_OK);
    for (uint64_t i = 0; i < kedge_ledger_size(log.ledger) && !found; i++) {
        struct kedge_signed_statement s = {.signature_count = 0};
        kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
        ck_assert_int_eq(kedge_ledger_get(log.ledger, i, &entry), KEDGE_OK);
        if (kedge_statement_read(kedge_buf_view(&entry), &taken, &s, NULL) == KEDGE_OK) {
            found = taken.kind == KEDGE_ST_UPDATE && taken.u.update.round == 1
                    && taken.u.update.update_kind == KEDGE_TRAIN_TRAIN
                    && strcmp(taken.u.update.job.s, job) == 0;
        }
        kedge_buf_deinit(&s.payload);
        kedge_buf_deinit(&entry);
    }
    ck_assert(found);
    update = taken;
    kedge_state_log_close(&log);
}

static void put(const struct kedge_id *site, const struct kedge_hash *about, const char *kind,
                struct kedge_view v, char path[KEDGE_PATH_MAX])
{
    ck_assert_int_eq(kedge_kept_path(path, refused_dir, site, about->b, kind), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(path, v, 0600, NULL), KEDGE_OK);
}

static void open_main(struct kedge_state_log *ret)
{
    ck_assert_int_eq(kedge_state_log_open(at("fx/state"), NULL, KEDGE_STATE_WRITE, ret, NULL), KEDGE_OK);
}

/* The main chain that the refusal names. */
static void place(struct kedge_st_refused *r)
{
    struct kedge_state_log main;
    open_main(&main);
    r->main_size = signed_at == KEDGEI_NEVER ? kedge_ledger_size(main.ledger) : signed_at;
    if (r->main_size <= kedge_ledger_size(main.ledger)) {
        ck_assert_int_eq(kedge_ledger_root(main.ledger, r->main_size, &r->main_root), KEDGE_OK);
    }
    r->main_root.b[0] ^= names_another_main;
    kedge_state_log_close(&main);
}

enum signer { HONEST, NO_SITE, NO_COORDINATOR, NEXT_KEY };

/* What `update` says, signed by its site and refused for `code` by the coordinator, or by somebody else in
 * the place of one of them; the refusal is at `shown`. */
static void refuse(enum signer signer, const char *code, bool listed)
{
    struct kedge_key_pair site, key;
    char name[2 * KEDGE_ID_MAX];
    struct kedge_buf envelope, signed_refusal;
    char path[KEDGE_PATH_MAX];
    snprintf(name, sizeof name, "org-a/%s", signer == NO_SITE ? "nobody" : update.u.update.site.s);
    fx_key_of(name, &site);
    ck_assert_int_eq(kedge_state_key(at("fx/state"), KEDGE_STATE_KEY_STATEMENT, &key, NULL), KEDGE_OK);
    if (signer == NO_COORDINATOR || signer == NEXT_KEY) {
        fx_key_of(signer == NEXT_KEY ? "next" : "org-a", &key);
    }
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    kedge_buf_init(&signed_refusal, KEDGE_ENTRY_MAX);
    snprintf(refused_dir, sizeof refused_dir, "%s", at("fx/state/tenants/org-a/" KEDGE_REFUSED_DIR));
    ck_assert_int_eq(kedge_dir_make(refused_dir, 0700, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_statement_sign(&update, &site, &envelope, NULL), KEDGE_OK);
    const struct kedge_st_update *u = &update.u.update;
    refusal = (struct kedge_statement){.kind = KEDGE_ST_REFUSED};
    kedge_sha256(kedge_buf_view(&envelope), &refusal.subject);
    refusal.u.refused = (struct kedge_st_refused){.job = u->job,
                                                  .round = u->round,
                                                  .group = u->group,
                                                  .update_kind = u->update_kind,
                                                  .tenant = u->tenant,
                                                  .site = u->site,
                                                  .update = update.subject,
                                                  .listed = listed,
                                                  .kept_until_s = 1792592000};
    snprintf(refusal.u.refused.code, sizeof refusal.u.refused.code, "%s", code);
    place(&refusal.u.refused);
    ck_assert_int_eq(kedge_statement_sign(&refusal, &key, &signed_refusal, NULL), KEDGE_OK);
    put(&u->site, &refusal.subject, KEDGE_REFUSED_ENVELOPE, kedge_buf_view(&envelope), path);
    put(&u->site, &refusal.subject, KEDGE_REFUSED_REFUSAL, kedge_buf_view(&signed_refusal), shown);
    kedge_buf_deinit(&envelope);
    kedge_buf_deinit(&signed_refusal);
}

static void expect_words(enum kedge_audit_verdict verdict, const char *words)
{
    const char *const paths[] = {shown};
    struct kedge_audit_options options = {.refusals = paths, .refusal_count = 1};
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    bool told = false;
    for (uint32_t i = 0; i < r.finding_count; i++) {
        told = told
               || (r.findings[i].code == KEDGE_AUDIT_REFUSAL && strstr(r.findings[i].text, words)
                   && (r.findings[i].severity == KEDGE_AUDIT_ERROR) == (verdict == KEDGE_AUDIT_NO));
    }
    if (!told || r.verdict != verdict) {
        print_findings(&r);
    }
    ck_assert_msg(told, "not said: %s", words);
    ck_assert_int_eq(r.verdict, verdict);
    kedge_audit_report_deinit(&r);
}

/* What a program reads. */
static void expect_row(enum kedge_audit_refusal_verdict verdict)
{
    const char *const paths[] = {shown};
    struct kedge_audit_options options = {.refusals = paths, .refusal_count = 1};
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    ck_assert_uint_eq(r.refusal_count, 1);
    ck_assert_str_eq(kedge_audit_refusal_name(r.refusals[0].verdict), kedge_audit_refusal_name(verdict));
    ck_assert_str_eq(r.refusals[0].code,
                     verdict == KEDGE_AUDIT_REFUSAL_NOT_SIGNED ? "" : refusal.u.refused.code);
    kedge_audit_report_deinit(&r);
}

static void expect_verdict(enum kedge_audit_refusal_verdict verdict, const char *words)
{
    bool good = verdict == KEDGE_AUDIT_REFUSAL_NOT_SHOWN || verdict == KEDGE_AUDIT_REFUSAL_CONFIRMED;
    expect_row(verdict);
    expect_words(good ? KEDGE_AUDIT_YES : KEDGE_AUDIT_NO, words);
}

static void begin(void)
{
    copy_base();
    signed_at = KEDGEI_NEVER;
    names_another_main = false;
}

/* The update of the record's one refusal: a file that says "never stored". */
static void take_listed(void)
{
    begin();
    take_update("plain");
    update.u.update.site = fx_id_of("s1");
    kedge_sha256(kedge_view_str("never stored"), &update.subject);
}

START_TEST(an_honest_refusal_is_confirmed)
{
    char path[KEDGE_PATH_MAX];
    take_listed();
    refuse(HONEST, "BOUND", true);
    expect_words(KEDGE_AUDIT_YES, "the record's list has it; whether its reason is true is not shown");
    /* with the file its reason is judged: it is no update at all, which is another reason */
    put(&update.u.update.site, &update.subject, KEDGE_REFUSED_UPDATE, kedge_view_str("never stored"), path);
    expect_words(KEDGE_AUDIT_NO, "not what the update shows: the file shows FORMAT");
    put(&update.u.update.site, &update.subject, KEDGE_REFUSED_UPDATE, kedge_view_str("another file"), path);
    expect_words(KEDGE_AUDIT_YES, "the refused file is not here");
    refuse(HONEST, "SHAPE", true);
    expect_words(KEDGE_AUDIT_NO, "refused the update for SHAPE; the record's list says BOUND");
}
END_TEST

START_TEST(fields_that_the_record_decides)
{
    begin();
    take_update("plain");
    update.u.update.base.b[0] ^= 1;
    refuse(HONEST, "WRONG_BASE", false);
    expect_words(KEDGE_AUDIT_YES, "its reason is what the evidence shows");
    refuse(HONEST, "WEIGHT", false);
    expect_words(KEDGE_AUDIT_NO, "the job takes the samples, steps and batch");
    refuse(HONEST, "WRONG_GROUP", false);
    expect_words(KEDGE_AUDIT_NO, "it is for the group that the record gives the site");
    take_update("plain");
    update.u.update.samples = KEDGE_ST_COUNT_MAX;
    refuse(HONEST, "WEIGHT", false);
    expect_words(KEDGE_AUDIT_YES, "its reason is what the evidence shows");
    refuse(HONEST, "WRONG_BASE", false);
    expect_words(KEDGE_AUDIT_NO, "it started from the very model");
    update.u.update.group = 7;
    refuse(HONEST, "WRONG_GROUP", false);
    expect_words(KEDGE_AUDIT_YES, "its reason is what the evidence shows");
    refuse(HONEST, "NOT_SELECTED", false);
    expect_words(KEDGE_AUDIT_NO, "the site was selected");
    refuse(HONEST, "DUPLICATE", false);
    expect_words(KEDGE_AUDIT_YES, "its reason is what the evidence shows");
    refuse(HONEST, "OVERFLOW", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_NOT_SHOWN, "a reason that no record can show");
}
END_TEST

static uint64_t main_index(const char *idem_key)
{
    struct kedge_state_log main;
    uint64_t index;
    open_main(&main);
    ck_assert_int_eq(kedge_ledger_find(main.ledger, kedge_view_str(idem_key), &index), KEDGE_OK);
    kedge_state_log_close(&main);
    return index;
}

/* What was open when is the main chain's to say, at the size that the refusal names. */
START_TEST(reasons_about_time)
{
    begin();
    take_update("plain");
    uint64_t opened = main_index("round-opened/plain/00000001");
    signed_at = opened;
    refuse(HONEST, "ROUND_STALE", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_CONFIRMED, "its reason is what the evidence shows");
    refuse(HONEST, "WEIGHT", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_CONTRADICTED, "in which round 1 was not open yet");
    refuse(HONEST, "NO_JOB", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_INVENTED, "a round that was opened later was closed");
    refuse(HONEST, "NOT_JOINED", false); /* no checkpoint of its ledger is among the entries */
    expect_verdict(KEDGE_AUDIT_REFUSAL_NOT_SHOWN, "joined the job, before or later");
    signed_at = opened + 1;
    refuse(HONEST, "ROUND_STALE", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_INVENTED, "had opened the round");
    refuse(HONEST, "ARG", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_INVENTED, "asked for updates of this kind");
    update.u.update.update_kind = KEDGE_TRAIN_PRETRAIN;
    refuse(HONEST, "ARG", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_CONFIRMED, "its reason is what the evidence shows");
    take_update("plain");
    signed_at = main_index("job-closed/plain");
    refuse(HONEST, "NO_JOB", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_NOT_SHOWN, "no round was opened and closed later");
    refuse(HONEST, "NOT_JOINED", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_INVENTED, "the tenant had joined the job");
    signed_at++;
    refuse(HONEST, "NO_JOB", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_CONFIRMED, "its reason is what the evidence shows");
    signed_at = main_index("job-opened/plain");
    refuse(HONEST, "NO_JOB", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_CONFIRMED, "its reason is what the evidence shows");
    signed_at = 1 << 20;
    refuse(HONEST, "NO_JOB", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_NOT_SHOWN, "less than the main chain that it names");
    update.u.update.job = fx_id_of("nowhere");
    signed_at = KEDGEI_NEVER;
    refuse(HONEST, "NO_JOB", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_CONFIRMED, "its reason is what the evidence shows");
    take_update("plain");
    refuse(HONEST, "DUPLICATE", false); /* of what the record has accepted of the site: this very envelope */
    expect_verdict(KEDGE_AUDIT_REFUSAL_INVENTED, "is this very statement");
}
END_TEST

/* Org-a's admin orders the update's file to be erased, and it is. */
static void erase(void)
{
    static struct kedge_statement st;
    struct kedge_state_log log;
    struct kedge_key_pair key;
    struct kedge_id tenant = fx_id_of("org-a");
    char hex[KEDGE_HASH_HEX_LEN + 1];
    uint64_t first;
    ck_assert_int_eq(kedge_state_log_open(at("fx/state"), &tenant, KEDGE_STATE_WRITE, &log, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_find_ref(log.ledger, &update.subject, &first), KEDGE_OK);
    fx_key_of("org-a", &key);
    st = (struct kedge_statement){.kind = KEDGE_ST_ERASED};
    st.u.erased = (struct kedge_st_erased){tenant, update.subject, first, "no longer needed", "retention"};
    kedge_hash_hex(&update.subject, hex);
    fx_append(&log, &st, &key, "erased/%s", hex);
    ck_assert_int_eq(kedge_blobs_remove(log.blobs, &update.subject, NULL), KEDGE_OK);
    kedge_state_log_close(&log);
}

/* The main chain gets a checkpoint of all that org-a's ledger has; its entry. */
static uint64_t anchor(void)
{
    struct kedge_state_log log, main;
    struct kedge_id tenant = fx_id_of("org-a");
    const uint8_t salt[KEDGE_SALT_LEN] = {7};
    struct kedge_buf note, entry;
    char idem[KEDGE_IDEM_KEY_MAX + 1];
    uint64_t size;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_state_log_open(at("fx/state"), &tenant, KEDGE_STATE_WRITE, &log, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_checkpoint(log.ledger, &note, &size), KEDGE_OK);
    kedge_state_log_close(&log);
    ck_assert_int_eq(kedge_main_entry_encode(salt, kedge_buf_view(&note), &entry), KEDGE_OK);
    snprintf(idem, sizeof idem, "checkpoint/org-a/%020" PRIu64, size);
    open_main(&main);
    uint64_t index = fx_append_bytes(&main, kedge_buf_view(&entry), idem);
    kedge_state_log_close(&main);
    kedge_buf_deinit(&note);
    kedge_buf_deinit(&entry);
    return index;
}

/* Confirmed only where the order was anchored in the main chain that the refusal names: one that came later
 * is none that the coordinator could have obeyed. */
START_TEST(denied_because_it_was_erased)
{
    begin();
    take_update("plain");
    update.u.update.seconds += 1; /* the same file again, under another statement */
    refuse(HONEST, "DENIED", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_NOT_SHOWN, "the ledger has no order to erase it");
    erase();
    refuse(HONEST, "DENIED", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_NOT_SHOWN, "the order to erase it came about that time, or later");
    signed_at = anchor();
    refuse(HONEST, "DENIED", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_NOT_SHOWN, "the order to erase it came about that time, or later");
    signed_at++;
    refuse(HONEST, "DENIED", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_CONFIRMED, "its reason is what the evidence shows");
    update.subject.b[0] ^= 1; /* an order about one file is none about another */
    refuse(HONEST, "DENIED", false);
    expect_verdict(KEDGE_AUDIT_REFUSAL_NOT_SHOWN, "the ledger has no order to erase it");
}
END_TEST

/* Org-a's list of those selected for round 1 is gone; a list is a file named by its content. */
static void lose_selection(void)
{
    static struct kedge_statement st;
    struct kedge_signed_statement s = {.signature_count = 0};
    struct kedge_state_log main, log;
    struct kedge_id tenant = fx_id_of("org-a");
    struct kedge_buf entry;
    unsigned lost = 0;
    uint64_t index = main_index("round-opened/plain/00000001");
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    open_main(&main);
    ck_assert_int_eq(kedge_ledger_get(main.ledger, index, &entry), KEDGE_OK);
    kedge_state_log_close(&main);
    ck_assert_int_eq(kedge_statement_read(kedge_buf_view(&entry), &st, &s, NULL), KEDGE_OK);
    kedge_buf_deinit(&s.payload);
    kedge_buf_deinit(&entry);
    ck_assert_int_eq(kedge_state_log_open(at("fx/state"), &tenant, KEDGE_STATE_WRITE, &log, NULL), KEDGE_OK);
    for (uint32_t t = 0; t < st.u.round_opened.tenant_count; t++) {
        const struct kedge_hash *list = &st.u.round_opened.tenants[t].list;
        if (kedge_blobs_find(log.blobs, list, NULL) == KEDGE_OK) {
            ck_assert_int_eq(kedge_blobs_remove(log.blobs, list, NULL), KEDGE_OK);
            lost++;
        }
    }
    ck_assert_uint_gt(lost, 0); /* another tenant's may say the same as one of org-a's */
    kedge_state_log_close(&log);
}

/* Who was selected only the list says: a coordinator that has lost it, or removed it, has shown nothing. */
START_TEST(not_selected_needs_the_list)
{
    begin();
    take_update("plain");
    update.u.update.site = fx_id_of("s9"); /* who is in no list of the round */
    refuse(HONEST, "NOT_SELECTED", false);
    /* no ledger knows its key */
    ck_assert_int_eq(kedge_kept_remove(refused_dir, refusal.subject.b, KEDGE_REFUSED_ENVELOPE, NULL),
                     KEDGE_OK);
    expect_verdict(KEDGE_AUDIT_REFUSAL_CONFIRMED, "its reason is what the evidence shows");
    lose_selection();
    expect_row(KEDGE_AUDIT_REFUSAL_NOT_SHOWN);
    take_update("plain"); /* nor is one invented whose list would convict it */
    refuse(HONEST, "NOT_SELECTED", false);
    expect_row(KEDGE_AUDIT_REFUSAL_NOT_SHOWN);
    expect(NULL, false, KEDGE_AUDIT_LIST, KEDGE_AUDIT_NO); /* that a list is missing is an error of its own */
}
END_TEST

/* The statement key "next" comes, behind all that there is; its entry. */
static uint64_t rotate(void)
{
    static struct kedge_statement st;
    struct kedge_state_log main;
    struct kedge_key_pair key, next;
    struct kedge_buf one, both, idem;
    open_main(&main);
    ck_assert_int_eq(kedge_state_key(at("fx/state"), KEDGE_STATE_KEY_STATEMENT, &key, NULL), KEDGE_OK);
    fx_key_of("next", &next);
    st = (struct kedge_statement){.kind = KEDGE_ST_STATEMENT_KEY_ROTATED};
    struct kedge_st_statement_key_rotated *r = &st.u.statement_key_rotated;
    r->of = (struct kedge_st_main_bound){"fx.kedge.local", main.key.public, 1000000};
    r->old_key = key.public;
    r->new_key = next.public;
    kedge_buf_init(&one, KEDGE_ENTRY_MAX);
    kedge_buf_init(&both, KEDGE_ENTRY_MAX);
    kedge_buf_init(&idem, KEDGE_IDEM_KEY_MAX + 1);
    ck_assert_int_eq(kedge_statement_sign(&st, &key, &one, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_statement_cosign(kedge_buf_view(&one), &next, &both, NULL), KEDGE_OK);
    kedge_statement_key(st.kind, &st.u, &idem);
    kedge_buf_put_u8(&idem, 0);
    uint64_t index = fx_append_bytes(&main, kedge_buf_view(&both), (const char *)idem.ptr);
    kedge_buf_deinit(&one);
    kedge_buf_deinit(&both);
    kedge_buf_deinit(&idem);
    kedge_state_log_close(&main);
    return index;
}

/* A key signs from the entry that it came with up to the one that it went with. */
START_TEST(a_rotated_key)
{
    take_listed();
    uint64_t entry = rotate();
    signed_at = entry;
    refuse(HONEST, "BOUND", true);
    expect_verdict(KEDGE_AUDIT_REFUSAL_NOT_SHOWN, "the record's list has it");
    refuse(NEXT_KEY, "BOUND", true);
    expect_verdict(KEDGE_AUDIT_REFUSAL_NOT_SIGNED, "a statement key that was not in force at");
    signed_at = entry + 1;
    refuse(NEXT_KEY, "BOUND", true);
    expect_verdict(KEDGE_AUDIT_REFUSAL_NOT_SHOWN, "the record's list has it");
    refuse(HONEST, "BOUND", true);
    expect_verdict(KEDGE_AUDIT_REFUSAL_NOT_SIGNED, "a statement key that was not in force at");
    signed_at = entry + 100; /* this copy is shorter: the newest key may be in force, a former one is not */
    refuse(NEXT_KEY, "BOUND", true);
    expect_verdict(KEDGE_AUDIT_REFUSAL_NOT_SHOWN, "the record's list has it");
    refuse(HONEST, "BOUND", true);
    expect_verdict(KEDGE_AUDIT_REFUSAL_NOT_SIGNED, "a statement key that was not in force at");
    signed_at = 0; /* in front of every key */
    refuse(HONEST, "BOUND", true);
    expect_verdict(KEDGE_AUDIT_REFUSAL_NOT_SIGNED, "a statement key that was not in force at");
    signed_at = entry;
    names_another_main = true;
    refuse(HONEST, "BOUND", true);
    expect_verdict(KEDGE_AUDIT_REFUSAL_CONTRADICTED, "names another main chain");
}
END_TEST

/* The file is an update that the job takes, and the coordinator says that it is not. */
START_TEST(an_invented_reason_is_convicted)
{
    begin();
    take_update("plain");
    update.u.update.seconds +=
        1; /* another statement about the same good file, which is a blob of the record */
    refuse(HONEST, "BOUND", false);
    expect_words(KEDGE_AUDIT_NO,
                 "the refusal's reason is not what the update shows: the file is what the job asks");
}
END_TEST

START_TEST(one_that_no_list_has)
{
    begin();
    take_update("plain");
    kedge_sha256(kedge_view_str("other"), &update.subject);
    const struct kedge_id site = update.u.update.site;
    update.u.update.site = fx_id_of("s9"); /* who is in no list of the round */
    refuse(HONEST, "BOUND", true);
    expect_words(KEDGE_AUDIT_NO, "have none of site \"s9\"");
    update.u.update.site = site;
    take_update("plain");
    kedge_sha256(kedge_view_str("other"), &update.subject);
    refuse(HONEST, "BOUND", true);
    expect_words(KEDGE_AUDIT_YES, "another update of the site in its place");
    update.u.update.round = 77;
    refuse(HONEST, "BOUND", true);
    expect_words(KEDGE_AUDIT_YES, "this record has no such round");
}
END_TEST

START_TEST(whose_word_it_is)
{
    take_listed();
    refuse(NO_COORDINATOR, "BOUND", true);
    expect_words(KEDGE_AUDIT_NO, "not a refusal that a statement key of this deployment signed");
    refuse(NO_SITE, "BOUND", true);
    expect_words(KEDGE_AUDIT_NO, "not signed by a key of site");
    refuse(HONEST, "BOUND", true);
    snprintf(shown, sizeof shown, "%s", at("fx/trust.json"));
    expect_words(KEDGE_AUDIT_NO, "not a refusal");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit-refusals");
    TCase *t = tcase_create("refusals");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, an_honest_refusal_is_confirmed);
    tcase_add_test(t, fields_that_the_record_decides);
    tcase_add_test(t, reasons_about_time);
    tcase_add_test(t, denied_because_it_was_erased);
    tcase_add_test(t, not_selected_needs_the_list);
    tcase_add_test(t, a_rotated_key);
    tcase_add_test(t, an_invented_reason_is_convicted);
    tcase_add_test(t, one_that_no_list_has);
    tcase_add_test(t, whose_word_it_is);
    suite_add_tcase(s, t);
    return run_tampered(s);
}
