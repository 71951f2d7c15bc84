/* A trust file that demands witnesses: which cosigned checkpoints satisfy the auditor, and what the others
 * are called. */
#include <jansson.h>

#include "chain/audit/explain/explain.h"
#include "chain/log/checkpoint.h"
#include "chain/log/cosignature.h"
#include "chain/state/state.h"
#include "common/base/mem.h"
#include "crypto/keyfile.h"
#include "tests/fixtures/trust_file.h"
#include "tests/unit/audit/tampered.h"

enum { WITNESSES = 2 };

struct scene {
    struct kedge_state_log main;
    struct kedge_key_pair log_key, witnesses[WITNESSES];
    struct kedge_buf note; /* the main chain's newest checkpoint */
    uint64_t size;
};

static void witness_name(int i, char out[32])
{
    snprintf(out, 32, "witness-%d.example", i);
}

/* Demands both witnesses in the copy's trust file. */
static void demand_both(struct scene *s)
{
    struct kedge_trust trust;
    struct kedge_buf text;
    kedge_buf_init(&text, 4096);
    ck_assert_int_eq(kedge_trust_read(at("fx/trust.json"), &trust, NULL), KEDGE_OK);
    kedge_buf_put_str(&text, "log ");
    kedge_vkey_encode(&trust.main_log, &text);
    for (int i = 0; i < WITNESSES; i++) {
        struct kedge_vkey vkey;
        char name[32];
        witness_name(i, name);
        ck_assert_int_eq(
            kedge_vkey_make(kedge_view_str(name), KEDGE_KEY_COSIGNATURE, &s->witnesses[i].public, &vkey),
            KEDGE_OK);
        kedge_buf_printf(&text, "\nwitness w%d\t", i); /* a tab separates as well */
        kedge_vkey_encode(&vkey, &text);
    }
    kedge_buf_put_str(&text, "\ngroup both all w0 w1\nquorum both\n");
    kedge_buf_put_u8(&text, 0);
    trust.witness_policy = kedge_mem_strdup((const char *)text.ptr);
    ck_assert_int_eq(fx_trust_write(at("fx/trust.json"), &trust, NULL), KEDGE_OK);
    kedge_trust_deinit(&trust);
    kedge_buf_deinit(&text);
}

static void scene_init(struct scene *s)
{
    copy_base();
    memset(s, 0, sizeof *s);
    kedge_buf_init(&s->note, KEDGE_NOTE_MAX);
    struct kedge_diag d = {.text = ""};
    ck_assert_msg(kedge_state_log_open(at("fx/state"), NULL, KEDGE_STATE_COPY, &s->main, &d) == KEDGE_OK,
                  "%s", d.text);
    ck_assert_int_eq(kedge_ledger_checkpoint(s->main.ledger, &s->note, &s->size), KEDGE_OK);
    ck_assert_int_eq(kedge_keyfile_read_private(at("fx/state/keys/log-main.pem"), &s->log_key, &d), KEDGE_OK);
    kedge_state_log_close(&s->main);
    for (int i = 0; i < WITNESSES; i++) {
        kedge_key_generate(&s->witnesses[i]);
    }
    demand_both(s);
}

/* Writes main/cosigned.note: the note with the cosignatures of the first `count` witnesses. */
static void cosign(struct scene *s, int count)
{
    struct kedge_buf line, next;
    kedge_buf_init(&line, KEDGE_COSIGNATURE_LINE_MAX);
    for (int i = 0; i < count; i++) {
        struct kedge_note parsed;
        char name[32];
        witness_name(i, name);
        kedge_buf_init(&next, KEDGE_NOTE_MAX);
        kedge_buf_clear(&line);
        ck_assert_int_eq(kedge_note_parse(kedge_buf_view(&s->note), &parsed), KEDGE_OK);
        ck_assert_int_eq(
            kedge_cosignature_make(parsed.text, kedge_view_str(name), &s->witnesses[i], 1767225600, &line),
            KEDGE_OK);
        ck_assert_int_eq(kedge_note_add_line(kedge_buf_view(&s->note), kedge_buf_view(&line), &next),
                         KEDGE_OK);
        kedge_buf_deinit(&s->note);
        s->note = next;
    }
    kedge_buf_deinit(&line);
    ck_assert_int_eq(
        kedge_file_write(at("fx/state/main/cosigned.note"), kedge_buf_view(&s->note), 0600, NULL), KEDGE_OK);
}

/* Another checkpoint by the log's key in the note's place. */
static void sign_instead(struct scene *s, uint64_t size, bool other_root, const struct kedge_key_pair *key)
{
    struct kedge_checkpoint c;
    struct kedge_note parsed;
    struct kedge_hash root;
    ck_assert_int_eq(kedge_note_parse(kedge_buf_view(&s->note), &parsed), KEDGE_OK);
    ck_assert_int_eq(kedge_checkpoint_parse(parsed.text, &c), KEDGE_OK);
    root = c.root;
    root.b[0] ^= other_root;
    struct kedge_buf note;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_checkpoint_sign(c.origin, size, &root, key, &note), KEDGE_OK);
    kedge_buf_deinit(&s->note);
    s->note = note;
}

enum what {
    NO_FILE,
    NO_COSIGNATURE,
    ONE_OF_TWO,
    OTHER_LOG_KEY,
    OTHER_HISTORY,
    LONGER_THAN_THE_LOG,
    NO_NOTE,
    WHAT_COUNT,
};

START_TEST(what_is_not_enough)
{
    static const enum kedge_audit_code codes[WHAT_COUNT] = {
        KEDGE_AUDIT_NOT_FINAL, KEDGE_AUDIT_COSIGNED,  KEDGE_AUDIT_COSIGNED, KEDGE_AUDIT_COSIGNED,
        KEDGE_AUDIT_FORK,      KEDGE_AUDIT_TRUNCATED, KEDGE_AUDIT_COSIGNED};
    struct scene s;
    scene_init(&s);
    struct kedge_key_pair other;
    kedge_key_generate(&other);
    switch ((enum what)_i) {
    case NO_FILE:
        break;
    case NO_COSIGNATURE:
        cosign(&s, 0);
        break;
    case ONE_OF_TWO:
        cosign(&s, 1);
        break;
    case OTHER_LOG_KEY:
        sign_instead(&s, s.size, false, &other);
        cosign(&s, WITNESSES);
        break;
    case OTHER_HISTORY:
        sign_instead(&s, s.size, true, &s.log_key);
        cosign(&s, WITNESSES);
        break;
    case LONGER_THAN_THE_LOG:
        sign_instead(&s, s.size + 1, true, &s.log_key);
        cosign(&s, WITNESSES);
        break;
    case NO_NOTE:
        ck_assert_int_eq(
            kedge_file_write(at("fx/state/main/cosigned.note"), kedge_view_str("no note\n"), 0600, NULL),
            KEDGE_OK);
        break;
    case WHAT_COUNT:
    default:
        ck_abort();
    }
    expect(NULL, false, codes[_i], KEDGE_AUDIT_NO);
    if (_i != NO_FILE) { /* whatever is wrong with it, the releases lack the quorum */
        expect(NULL, false, KEDGE_AUDIT_NOT_FINAL, KEDGE_AUDIT_NO);
    }
    kedge_buf_deinit(&s.note);
}
END_TEST

START_TEST(both_are_enough)
{
    struct scene s;
    struct kedge_audit_options options = {.threads = 1};
    scene_init(&s);
    cosign(&s, WITNESSES);
    struct kedge_audit_report r = run(at("fx"), at("fx/trust.json"), NULL, false, options);
    if (r.verdict != KEDGE_AUDIT_YES) {
        print_findings(&r);
    }
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_YES);
    ck_assert_uint_eq(r.counts.final_entries, s.size);
    ck_assert_uint_eq(r.evidence_count, 1);
    ck_assert_int_eq(r.evidence[0].source, KEDGE_AUDIT_BY_WITNESSES);
    ck_assert_uint_eq(r.evidence[0].log, 0);
    ck_assert_uint_eq(r.evidence[0].size, s.size);
    kedge_audit_report_deinit(&r);
    kedge_buf_deinit(&s.note);
}
END_TEST

/* An earlier checkpoint, before the releases. */
/* The newest stored checkpoint of the main chain becomes the scene's note; a model that was released. */
static void store_note(struct scene *s, struct kedge_hash *ret_model)
{
    struct kedge_trust trust;
    struct kedge_buf entry;
    struct kedge_kv_tx *tx;
    uint8_t key[8];
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    ck_assert_ptr_nonnull(st);
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_trust_read(at("fx/trust.json"), &trust, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_state_log_open(at("fx/state"), NULL, KEDGE_STATE_WRITE, &s->main, NULL), KEDGE_OK);
    for (uint64_t i = 0; i < s->size; i++) {
        kedge_buf_clear(&entry);
        ck_assert_int_eq(kedge_ledger_get(s->main.ledger, i, &entry), KEDGE_OK);
        if (kedge_statement_open(kedge_buf_view(&entry), &trust.statement_key, st, NULL) == KEDGE_OK
            && st->kind == KEDGE_ST_RELEASE) {
            *ret_model = st->subject;
        }
    }
    kedge_store_be64(key, s->size);
    ck_assert_int_eq(kedge_kv_begin(s->main.kv, true, &tx, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_kv_put(tx, KEDGE_KV_HEAD, kedge_view_of(key, sizeof key), kedge_buf_view(&s->note),
                                  KEDGE_KV_PUT),
                     KEDGE_OK);
    ck_assert_int_eq(kedge_kv_commit(tx, NULL), KEDGE_OK);
    kedge_state_log_close(&s->main);
    kedge_trust_deinit(&trust);
    kedge_buf_deinit(&entry);
    kedge_mem_free(st);
}

START_TEST(explain_names_those_whose_cosignature_holds)
{
    struct scene s;
    struct kedge_trust trust;
    struct kedge_audit_report r;
    struct kedge_hash model = {{0}};
    json_t *tree = NULL;
    scene_init(&s);
    cosign(&s, 1);
    kedge_buf_put_str(&s.note, "\xe2\x80\x94 famous.example AAAAAAAAAAAAAAAA\n"); /* a line of nobody's */
    store_note(&s, &model);
    ck_assert_int_eq(kedge_trust_read(at("fx/trust.json"), &trust, NULL), KEDGE_OK);
    const struct kedge_audit_options o = {.threads = 1};
    ck_assert_int_eq(kedge_audit_explain(at("fx"), &trust, NULL, 0, &o, &model, &r, &tree, NULL), KEDGE_OK);
    const json_t *names = json_object_get(json_array_get(json_object_get(tree, "logs"), 0), "cosignatures");
    ck_assert_uint_eq(json_array_size(names), 1);
    ck_assert_str_eq(json_string_value(json_array_get(names, 0)), "witness-0.example");
    json_decref(tree);
    kedge_audit_report_deinit(&r);
    kedge_trust_deinit(&trust);
    kedge_buf_deinit(&s.note);
}
END_TEST

START_TEST(what_was_cosigned_too_early_is_not_final)
{
    struct scene s;
    struct kedge_hash root;
    scene_init(&s);
    ck_assert_int_eq(kedge_state_log_open(at("fx/state"), NULL, KEDGE_STATE_COPY, &s.main, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_ledger_root(s.main.ledger, 3, &root), KEDGE_OK);
    struct kedge_buf note;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str(s.main.origin), 3, &root, &s.log_key, &note),
                     KEDGE_OK);
    kedge_state_log_close(&s.main);
    kedge_buf_deinit(&s.note);
    s.note = note;
    cosign(&s, WITNESSES);
    struct kedge_audit_report r =
        run(at("fx"), at("fx/trust.json"), NULL, false, (struct kedge_audit_options){0});
    ck_assert(has_code(&r, KEDGE_AUDIT_NOT_FINAL) && !has_code(&r, KEDGE_AUDIT_COSIGNED));
    ck_assert_uint_eq(r.counts.final_entries, 3);
    ck_assert_int_eq(r.verdict, KEDGE_AUDIT_NO);
    kedge_audit_report_deinit(&r);
    kedge_buf_deinit(&s.note);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("audit-finality");
    TCase *t = tcase_create("finality");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, what_is_not_enough, 0, WHAT_COUNT);
    tcase_add_test(t, both_are_enough);
    tcase_add_test(t, what_was_cosigned_too_early_is_not_final);
    tcase_add_test(t, explain_names_those_whose_cosignature_holds);
    suite_add_tcase(suite, t);
    return run_tampered(suite);
}
