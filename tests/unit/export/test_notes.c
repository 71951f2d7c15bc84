/* Checkpoints in an export: an exporter who brings those of another history, of nobody, or too few witnesses;
 * and records that go on, or hold what nobody verified, while they are exported. */
#include <jansson.h>

#include "chain/cosignature.h"
#include "chain/entry_index.h"
#include "chain/export/check.h"
#include "chain/export/export.h"
#include "chain/export/internal.h"
#include "chain/export/oms.h"
#include "chain/proof.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "crypto/keyfile.h"
#include "tests/fixtures/federation_impl.h"
#include "tests/unit/audit/support.h"

struct made {
    struct kedge_trust trust;
    struct kedge_export_options o;
    struct kedge_export_check_options look;
    struct kedge_export_check sum;
    struct kedge_export_summary made;
    struct kedge_state_log main;
    struct kedge_key_pair witness;
    struct kedge_diag d;
};

static const char witness_name[] = "witness.example";

static void prepare(struct made *m)
{
    static const struct kedge_seed seed = {{9}};
    memset(m, 0, sizeof *m);
    make_scratch();
    fx_federation(at("fed"), FX_NONE);
    ck_assert_int_eq(kedge_trust_read(at("fed/trust.json"), &m->trust, &m->d), KEDGE_OK);
    m->o = (struct kedge_export_options){
        .trust = &m->trust, .all_tenants = true, .time_s = 1, .tool = "kedge test", .audit = {.threads = 1}};
    kedge_key_from_seed(&seed, &m->o.key);
    memset(m->o.model_key.secret, 5, sizeof m->o.model_key.secret);
    kedge_key_generate(&m->witness);
    m->look.trust = &m->trust;
}

static void make(struct made *m)
{
    m->d.text[0] = '\0';
    ck_assert_msg(kedge_export(at("fed"), at("out"), &m->o, &m->made, &m->d) == KEDGE_OK, "%s", m->d.text);
}

/* The main chain with its key; close_main before the next export. */
static void open_main(struct made *m)
{
    ck_assert_int_eq(kedge_state_log_open(at("fed/state"), NULL, KEDGE_STATE_WRITE, &m->main, &m->d),
                     KEDGE_OK);
}

static void close_main(struct made *m)
{
    kedge_state_log_close(&m->main);
}

static void finish(struct made *m)
{
    kedge_trust_deinit(&m->trust);
    remove_scratch();
}

static int look(struct made *m)
{
    m->d.text[0] = '\0';
    int err = kedge_export_check(at("out"), &m->look, &m->sum, &m->d);
    ck_assert_msg(err == KEDGE_OK || m->d.text[0] != '\0', "no word about %s", kedge_err_name(err));
    return err;
}

/* A new manifest over what is there now, signed by the exporter's key. */
static void sign_manifest(struct made *m, const char *type)
{
    struct kedge_oms_list list;
    struct kedge_buf text, envelope;
    struct kedge_hash digest;
    json_t *files = json_array();
    kedge_buf_init(&text, 1 << 22);
    kedge_buf_init(&envelope, 1 << 20);
    ck_assert_int_eq(kedge_oms_read(at("out"), NULL, &list, NULL), KEDGE_OK);
    for (size_t i = 0; i < list.count; i++) {
        if (strncmp(list.files[i].name, "manifest.", 9) != 0) {
            json_array_append_new(files, json_pack("{s:s,s:i,s:o}", "path", list.files[i].name, "size", 1,
                                                   "sha256", kedgei_ex_hex(&list.files[i].digest)));
        }
    }
    json_t *manifest = json_pack("{s:o}", "files", files);
    ck_assert_int_eq(kedgei_ex_dump(manifest, &text), KEDGE_OK);
    kedge_sha256(kedge_buf_view(&text), &digest);
    json_t *subject = json_pack("[{s:s,s:o}]", "name", "manifest.json", "digest", kedgei_ex_digest(&digest));
    ck_assert_int_eq(
        kedgei_ex_envelope(kedgei_ex_statement(subject, type, json_object()), &m->o.key, &envelope),
        KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(at("out/manifest.json"), kedge_buf_view(&text), 0600, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(at("out/manifest.intoto.json"), kedge_buf_view(&envelope), 0600, NULL),
                     KEDGE_OK);
    json_decref(manifest);
    kedge_oms_list_deinit(&list);
    kedge_buf_deinit(&text);
    kedge_buf_deinit(&envelope);
}

static void sign_again(struct made *m)
{
    sign_manifest(m, "https://kedge.dev/export/v1");
}

static void expect(struct made *m, const char *text)
{
    int err = look(m);
    ck_assert_msg(err == KEDGE_E_VERIFY, "expected \"%s\": %s", text, kedge_err_name(err));
    ck_assert_msg(strstr(m->d.text, text) != NULL, "expected \"%s\": %s", text, m->d.text);
}

static void put(const char *name, struct kedge_view bytes)
{
    ck_assert_int_eq(kedge_file_write(at(name), bytes, 0600, NULL), KEDGE_OK);
}

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

/* ---- statement keys that rotate ---- */

static void append_signed(struct made *m, const struct kedge_statement *st, const struct kedge_key_pair *by,
                          const struct kedge_key_pair *and_by)
{
    struct kedge_buf one, both, idem;
    kedge_buf_init(&one, KEDGE_ENTRY_MAX);
    kedge_buf_init(&both, KEDGE_ENTRY_MAX);
    kedge_buf_init(&idem, KEDGE_IDEM_KEY_MAX);
    ck_assert_msg(kedge_statement_sign(st, by, &one, &m->d) == KEDGE_OK, "%s", m->d.text);
    if (and_by) {
        ck_assert_int_eq(kedge_statement_cosign(kedge_buf_view(&one), and_by, &both, &m->d), KEDGE_OK);
    }
    kedge_statement_key(st->kind, &st->u, &idem);
    const struct kedge_ledger_append item = {.entry = kedge_buf_view(and_by ? &both : &one),
                                             .idem_key =
                                                 kedge_buf_view(and_by ? &idem : &(struct kedge_buf){0})};
    ck_assert_msg(kedge_ledger_append(m->main.ledger, &item, 1, NULL, NULL, &m->d) == KEDGE_OK, "%s",
                  m->d.text);
    kedge_buf_deinit(&one);
    kedge_buf_deinit(&both);
    kedge_buf_deinit(&idem);
}

/* All of the main chain's proofs in the export under its newest checkpoint, and its newest entry with them.
 */
static void prove_again(struct made *m, uint64_t old_size)
{
    struct kedge_buf note, entry;
    char name[96];
    uint64_t size = kedge_ledger_size(m->main.ledger);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_ledger_checkpoint(m->main.ledger, &note, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_get(m->main.ledger, size - 1, &entry), KEDGE_OK);
    snprintf(name, sizeof name, "out/entries/main-%08llu.json", (unsigned long long)(size - 1));
    put(name, kedge_buf_view(&entry));
    for (uint64_t i = 0; i < size; i++) {
        struct kedge_buf text;
        struct kedge_proof proof = {.index = i, .note = kedge_buf_view(&note)};
        snprintf(name, sizeof name, "out/proofs/main-%08llu.tlog-proof", (unsigned long long)i);
        if (i + 1 == size || kedge_file_exists(at(name))) {
            kedge_buf_init(&text, KEDGE_PROOF_TEXT_MAX);
            ck_assert_int_eq(kedge_ledger_inclusion(m->main.ledger, i, size, &proof.path), KEDGE_OK);
            kedge_proof_encode(&proof, &text);
            put(name, kedge_buf_view(&text));
            kedge_buf_deinit(&text);
        }
    }
    snprintf(name, sizeof name, "out/checkpoints/main-%llu.note", (unsigned long long)old_size);
    ck_assert_int_eq(unlink(at(name)), 0);
    snprintf(name, sizeof name, "out/checkpoints/main-%llu.note", (unsigned long long)size);
    put(name, kedge_buf_view(&note));
    kedge_buf_deinit(&note);
    kedge_buf_deinit(&entry);
}

/* A release, once more, by that key: the last entry of the export. */
static void say_by(struct made *m, const struct kedge_key_pair *key)
{
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    struct kedge_buf entry;
    ck_assert_ptr_nonnull(st);
    open_main(m);
    uint64_t size = kedge_ledger_size(m->main.ledger);
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    for (uint64_t i = 0; i < size && st->kind != KEDGE_ST_RELEASE; i++) {
        kedge_buf_clear(&entry);
        ck_assert_int_eq(kedge_ledger_get(m->main.ledger, i, &entry), KEDGE_OK);
        (void)!kedge_statement_open(kedge_buf_view(&entry), &m->trust.statement_key, st, NULL);
    }
    ck_assert_int_eq(st->kind, KEDGE_ST_RELEASE);
    append_signed(m, st, key, NULL);
    prove_again(m, size);
    close_main(m);
    kedge_buf_deinit(&entry);
    kedge_mem_free(st);
}

START_TEST(statement_keys_are_followed_along_their_rotations)
{
    struct made m;
    struct kedge_key_pair old, new;
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    struct kedge_buf keys;
    ck_assert_ptr_nonnull(st);
    prepare(&m);
    kedge_key_generate(&new);
    ck_assert_int_eq(kedge_keyfile_read_private(at("fed/state/keys/statement.pem"), &old, &m.d), KEDGE_OK);
    open_main(&m);
    st->kind = KEDGE_ST_STATEMENT_KEY_ROTATED;
    st->u.statement_key_rotated = (struct kedge_st_statement_key_rotated){
        .of = {.main_log_key = m.trust.main_log.key, .before = 100000},
        .old_key = old.public,
        .new_key = new.public};
    snprintf(st->u.statement_key_rotated.of.deployment, sizeof st->u.statement_key_rotated.of.deployment,
             "%s", m.trust.deployment);
    append_signed(&m, st, &old, &new);
    close_main(&m);
    make(&m);
    ck_assert_msg(look(&m) == KEDGE_OK, "%s", m.d.text);
    kedge_buf_init(&keys, 1 << 20);
    ck_assert_int_eq(kedge_file_read(at("out/keys.jsonl"), &keys, NULL), KEDGE_OK);
    ck_assert_ptr_nonnull(memmem(keys.ptr, keys.len, "\"valid_until\":", 14));
    kedge_buf_deinit(&keys);
    say_by(&m, &new);
    sign_again(&m);
    ck_assert_msg(look(&m) == KEDGE_OK, "%s", m.d.text);
    say_by(&m, &old);
    sign_again(&m);
    expect(&m, "not signed by a key that was in force");
    kedge_mem_free(st);
    finish(&m);
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
    tcase_add_test(t, statement_keys_are_followed_along_their_rotations);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
