/* Checkpoints in an export: an exporter who brings those of another history, of nobody, or too few witnesses;
 * and records that go on, or hold what nobody verified, while they are exported. */
#include "tests/unit/export/made.h"

/* A checkpoint of the main chain's first entries by its own key; other_root: which it never had. */
static void sign_note(struct made *m, uint64_t size, bool other_root, struct kedge_buf *note)
{
    struct kedge_hash root;
    kedge_buf_init(note, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_ledger_root(m->main.ledger, size, &root), KEDGE_OK);
    root.b[0] ^= other_root;
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str(m->main.origin), size, &root, &m->main.key, note),
                     KEDGE_OK);
}

/* ---- one history ---- */

START_TEST(proofs_under_two_checkpoints_are_refused)
{
    struct made m;
    struct kedge_buf note, text;
    struct kedge_proof proof = {.index = 0};
    prepare(&m);
    make(&m);
    open_main(&m);
    sign_note(&m, 3, false, &note);
    ck_assert_int_eq(kedge_ledger_inclusion(m.main.ledger, 0, 3, &proof.path), KEDGE_OK);
    close_main(&m);
    proof.note = kedge_buf_view(&note);
    kedge_buf_init(&text, KEDGE_PROOF_TEXT_MAX);
    kedge_proof_encode(&proof, &text);
    put("out/proofs/main-00000000.tlog-proof", kedge_buf_view(&text));
    sign_again(&m);
    expect(&m, "another checkpoint than the other proofs");
    kedge_buf_deinit(&text);
    kedge_buf_deinit(&note);
    finish(&m);
}
END_TEST

START_TEST(checkpoints_are_of_the_same_history)
{
    struct made m;
    struct kedge_buf note;
    prepare(&m);
    open_main(&m);
    sign_note(&m, 4, false, &note);
    close_main(&m);
    put("seen.note", kedge_buf_view(&note));
    kedge_buf_deinit(&note);
    const char *seen[] = {at("seen.note")};
    m.o.seen = seen;
    m.o.seen_count = 1;
    make(&m);
    ck_assert_msg(look(&m) == KEDGE_OK, "%s", m.d.text);
    ck_assert_uint_ge(m.sum.checkpoints, 2);
    open_main(&m);
    sign_note(&m, 4, true, &note); /* the log's key speaks of two histories */
    put("out/checkpoints/main-4-forked.note", kedge_buf_view(&note));
    kedge_buf_deinit(&note);
    sign_again(&m);
    expect(&m, "another history");
    sign_note(&m, 5, false, &note);
    close_main(&m);
    ck_assert_int_eq(unlink(at("out/checkpoints/main-4-forked.note")), 0);
    put("out/checkpoints/main-5-lonely.note", kedge_buf_view(&note));
    sign_again(&m);
    expect(&m, "without the proof");
    note.ptr[note.len - 10] ^= 1;
    put("out/checkpoints/main-5-lonely.note", kedge_buf_view(&note));
    sign_again(&m);
    expect(&m, "no checkpoint that a log key");
    put("out/checkpoints/main-5-lonely.note", kedge_view_str("a note\n"));
    sign_again(&m);
    expect(&m, "no checkpoint that a log key");
    put("out/checkpoints/main-1-2.consistency.json", kedge_view_str("{\"from\":1,\"to\":2}"));
    ck_assert_int_eq(unlink(at("out/checkpoints/main-5-lonely.note")), 0);
    sign_again(&m);
    expect(&m, "does not prove");
    kedge_buf_deinit(&note);
    finish(&m);
}
END_TEST

START_TEST(a_manifest_is_signed_as_one)
{
    struct made m;
    prepare(&m);
    make(&m);
    sign_manifest(&m, "https://slsa.dev/provenance/v1"); /* about other bytes, by the same key */
    expect(&m, "no statement about an export");
    finish(&m);
}
END_TEST

/* ---- time stamps ---- */

START_TEST(a_time_stamp_is_of_a_checkpoint_of_the_logs)
{
    struct made m;
    static const char *const from[] = {"checkpoint/tenant_a_8_cosigned.note", "rfc3161/checkpoint.tsr",
                                       "rfc3161/ca.pem"};
    static const char *const to[] = {"out/report.note", "out/tsa/01.tsr", "ca.pem"};
    if (!kedge_file_exists("../shared/vectors/rfc3161/ca.pem")) {
        printf("skipped: ../shared/vectors absent\n");
        return;
    }
    prepare(&m);
    make(&m);
    ck_assert_int_eq(kedge_dir_make(at("out/tsa"), 0700, NULL), KEDGE_OK);
    for (size_t i = 0; i < 3; i++) {
        char path[128];
        struct kedge_buf bytes;
        snprintf(path, sizeof path, "../shared/vectors/%s", from[i]);
        kedge_buf_init(&bytes, 1 << 20);
        ck_assert_int_eq(kedge_file_read(path, &bytes, NULL), KEDGE_OK);
        put(to[i], kedge_buf_view(&bytes));
        kedge_buf_deinit(&bytes);
    }
    put("out/tsa/index.json",
        kedge_view_str("{\"tokens\":[{\"token\":\"tsa/01.tsr\",\"checkpoint\":\"report.note\"}]}"));
    m.look.tsa_ca = at("ca.pem");
    sign_again(&m);
    expect(&m, "no checkpoint");
    ck_assert_int_eq(rename(at("out/report.note"), at("out/checkpoints/other-8.note")), 0);
    put("out/tsa/index.json",
        kedge_view_str(
            "{\"tokens\":[{\"token\":\"tsa/01.tsr\",\"checkpoint\":\"checkpoints/other-8.note\"}]}"));
    sign_again(&m);
    expect(&m, "no checkpoint that a log key");
    finish(&m);
}
END_TEST

/* ---- witnesses ---- */

/* From here on the trust file demands our witness. */
static void demand(struct made *m)
{
    struct kedge_buf text;
    struct kedge_vkey vkey;
    kedge_buf_init(&text, 4096);
    kedge_buf_put_str(&text, "log ");
    kedge_vkey_encode(&m->trust.main_log, &text);
    ck_assert_int_eq(
        kedge_vkey_make(kedge_view_str(witness_name), KEDGE_KEY_COSIGNATURE, &m->witness.public, &vkey),
        KEDGE_OK);
    kedge_buf_put_str(&text, "\nwitness w ");
    kedge_vkey_encode(&vkey, &text);
    kedge_buf_put_str(&text, "\nquorum w\n");
    kedge_buf_put_u8(&text, 0);
    m->trust.witness_policy = kedge_mem_strdup((const char *)text.ptr);
    kedge_buf_deinit(&text);
}

/* main/cosigned.note of that size; with_log: the log's own signature is in it. */
static void cosign(struct made *m, uint64_t size, bool with_log)
{
    struct kedge_buf note, line, whole;
    struct kedge_note parsed;
    open_main(m);
    sign_note(m, size, false, &note);
    close_main(m);
    kedge_buf_init(&line, KEDGE_COSIGNATURE_LINE_MAX);
    kedge_buf_init(&whole, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_note_parse(kedge_buf_view(&note), &parsed), KEDGE_OK);
    ck_assert_int_eq(
        kedge_cosignature_make(parsed.text, kedge_view_str(witness_name), &m->witness, 1767225600, &line),
        KEDGE_OK);
    kedge_buf_put(&whole, note.ptr, with_log ? note.len : parsed.text.len + 1);
    kedge_buf_put(&whole, line.ptr, line.len);
    put("fed/state/main/cosigned.note", kedge_buf_view(&whole));
    kedge_buf_deinit(&note);
    kedge_buf_deinit(&line);
    kedge_buf_deinit(&whole);
}

static uint64_t main_size(struct made *m)
{
    open_main(m);
    uint64_t size = kedge_ledger_size(m->main.ledger);
    close_main(m);
    return size;
}

START_TEST(releases_have_the_quorum_that_the_trust_file_demands)
{
    struct made m;
    prepare(&m);
    make(&m); /* nobody demanded it then */
    ck_assert_msg(look(&m) == KEDGE_OK, "%s", m.d.text);
    demand(&m);
    expect(&m, "quorum of witnesses");
    ck_assert_int_eq(kedge_dir_remove(at("out")), KEDGE_OK);
    uint64_t size = main_size(&m);
    cosign(&m, size, true);
    make(&m);
    ck_assert_msg(look(&m) == KEDGE_OK, "%s", m.d.text);
    ck_assert_uint_eq(m.sum.final_entries, size);
    finish(&m);
}
END_TEST

START_TEST(a_cosigned_note_without_the_logs_signature_is_left_alone)
{
    struct made m;
    prepare(&m);
    cosign(&m, main_size(&m), false);
    make(&m);
    ck_assert_msg(look(&m) == KEDGE_OK, "%s", m.d.text);
    finish(&m);
}
END_TEST

/* ---- a record that goes on ---- */

/* The coordinator releases a model once more right behind the reading of its log. */
static void release_again(void *arg, const char *what, uint64_t done, uint64_t total)
{
    struct made *m = arg;
    struct kedge_buf entry, last;
    struct kedge_ledger_append item = {.idem_key = {NULL, 0}};
    (void)what;
    if (m->made.files > 0 || done != total) {
        return;
    }
    m->made.files = 1;
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    kedge_buf_init(&last, KEDGE_ENTRY_MAX);
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    ck_assert_ptr_nonnull(st);
    open_main(m);
    for (uint64_t i = 0; i < kedge_ledger_size(m->main.ledger); i++) {
        kedge_buf_clear(&entry);
        ck_assert_int_eq(kedge_ledger_get(m->main.ledger, i, &entry), KEDGE_OK);
        if (kedge_statement_open(kedge_buf_view(&entry), &m->trust.statement_key, st, NULL) == KEDGE_OK
            && st->kind == KEDGE_ST_RELEASE) {
            kedge_buf_clear(&last);
            kedge_buf_put(&last, entry.ptr, entry.len);
        }
    }
    ck_assert_uint_gt(last.len, 0);
    item.entry = kedge_buf_view(&last);
    ck_assert_int_eq(kedge_ledger_append(m->main.ledger, &item, 1, NULL, NULL, &m->d), KEDGE_OK);
    close_main(m);
    kedge_mem_free(st);
    kedge_buf_deinit(&entry);
    kedge_buf_deinit(&last);
}

START_TEST(what_came_behind_the_verification_is_not_exported)
{
    struct made m;
    char name[64];
    prepare(&m);
    uint64_t size = main_size(&m);
    m.o.audit.progress = release_again;
    m.o.audit.progress_arg = &m;
    make(&m);
    ck_assert_uint_eq(main_size(&m), size + 1);
    snprintf(name, sizeof name, "out/checkpoints/main-%llu.note", (unsigned long long)size);
    ck_assert_msg(kedge_file_exists(at(name)), "%s", name);
    snprintf(name, sizeof name, "out/entries/main-%08llu.json", (unsigned long long)size);
    ck_assert_msg(!kedge_file_exists(at(name)), "%s", name);
    ck_assert_msg(look(&m) == KEDGE_OK, "%s", m.d.text);
    finish(&m);
}
END_TEST

/* ---- a tenant's copy ---- */

START_TEST(an_export_of_a_copy_claims_no_more_than_was_looked_at)
{
    static const char *const files[] = {"out/verification.intoto.json", "out/report.html"};
    static const char *const claims[] = {"KEDGE_EVERY_RECORDED_UPDATE_COUNTED_ONCE",
                                         "every update in it counts"};
    static const char *const says[] = {"KEDGE_COPY_VERIFIED", "were not checked"};
    struct made m;
    struct kedge_id tenant;
    for (int copy = 0; copy < 2; copy++) {
        prepare(&m);
        if (copy) {
            fx_replica(at("fed"), "org-b");
            ck_assert_int_eq(kedge_id_from(kedge_view_str("org-b"), &tenant), KEDGE_OK);
            m.o.audit.tenants = &tenant;
            m.o.audit.tenant_count = 1;
        }
        make(&m);
        for (size_t i = 0; i < 2; i++) {
            struct kedge_buf text, payload;
            kedge_buf_init(&text, 1 << 22);
            kedge_buf_init(&payload, 1 << 22);
            ck_assert_int_eq(kedge_file_read(at(files[i]), &text, NULL), KEDGE_OK);
            const uint8_t *from = memmem(text.ptr, text.len, "\"payload\":\"", 11);
            if (from) {
                const uint8_t *end = memchr(from + 11, '"', 1 << 20);
                ck_assert_int_eq(
                    kedge_base64_decode(kedge_view_of(from + 11, (size_t)(end - from) - 11), false, &payload),
                    KEDGE_OK);
            }
            kedge_buf_put(&text, payload.ptr, payload.len);
            ck_assert_int_eq(memmem(text.ptr, text.len, claims[i], strlen(claims[i])) != NULL, copy == 0);
            ck_assert_int_eq(memmem(text.ptr, text.len, says[i], strlen(says[i])) != NULL, copy != 0);
            kedge_buf_deinit(&text);
            kedge_buf_deinit(&payload);
        }
        finish(&m);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("export-notes");
    TCase *t = tcase_create("notes");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, proofs_under_two_checkpoints_are_refused);
    tcase_add_test(t, checkpoints_are_of_the_same_history);
    tcase_add_test(t, a_manifest_is_signed_as_one);
    tcase_add_test(t, a_time_stamp_is_of_a_checkpoint_of_the_logs);
    tcase_add_test(t, releases_have_the_quorum_that_the_trust_file_demands);
    tcase_add_test(t, a_cosigned_note_without_the_logs_signature_is_left_alone);
    tcase_add_test(t, what_came_behind_the_verification_is_not_exported);
    tcase_add_test(t, an_export_of_a_copy_claims_no_more_than_was_looked_at);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
