/* A coordinator that hands out another model, or another spec: what kedge job model takes is what the main
 * chain, under a key that was known before, says of the job; else nothing is taken. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/log/note.h"
#include "chain/log/proof.h"
#include "chain/statement/statement.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "crypto/hash.h"
#include "crypto/keyfile.h"
#include "tests/fixtures/run.h"
#include "tests/unit/cli/fake.h"
#include "tests/unit/cli/support.h"

/* The blob is handed out as the model and as the spec: one digest for both. */
#define CONTENT "the bytes of a model"
#define OTHER "the bytes of another model"

enum lie {
    TRUTH,
    OTHER_DIGEST,  /* the model's digest is not the released one */
    OTHER_JOB,     /* the release is of another job */
    OTHER_GROUP,   /* … of another group */
    OTHER_KIND,    /* the entry is no release */
    OTHER_LOG_KEY, /* the checkpoint is signed by a key that nobody knows */
    OTHER_ORIGIN,  /* … for another log */
    OTHER_ENTRY,   /* the proof is of another entry */
    NO_PROOF,
    OTHER_SPEC,  /* the spec is not the one that the job was opened with */
    NO_SPEC,     /* nothing is shown of the spec */
    OTHER_BYTES, /* all is proven, and other bytes are sent */
    NO_QUORUM,   /* the trust file's witnesses have not cosigned */
    LIES
};

static struct kedge_key_pair coordinator, log_key, stranger, witness;
static struct fake fake;

static void digest_of(const char *content, struct kedge_hash *ret)
{
    kedge_sha256(kedge_view_str(content), ret);
}

static char *sign(struct kedge_statement *st)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_buf text;
    kedge_buf_init(&text, KEDGE_ENTRY_MAX + 1);
    ck_assert_msg(kedge_statement_sign(st, &coordinator, &text, &d) == KEDGE_OK, "%s", d.text);
    kedge_buf_put_u8(&text, 0);
    char *copy = kedge_mem_strdup((const char *)text.ptr);
    kedge_buf_deinit(&text);
    kedge_mem_free(st);
    return copy;
}

static struct kedge_statement *about(enum kedge_statement_kind kind, const char *subject)
{
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    ck_assert_ptr_nonnull(st);
    st->kind = kind;
    digest_of(subject, &st->subject);
    return st;
}

static char *release(enum lie lie)
{
    struct kedge_statement *st = about(KEDGE_ST_RELEASE, lie == OTHER_DIGEST ? OTHER : CONTENT);
    st->u.release = (struct kedge_st_release){
        .job = {"j"}, .round = 3, .group = lie == OTHER_GROUP ? 1 : 0, .file = "j-g0.safetensors"};
    if (lie == OTHER_JOB) {
        st->u.release.job = (struct kedge_id){"k"};
    }
    return sign(st);
}

static char *opening(enum lie lie)
{
    struct kedge_statement *st = about(KEDGE_ST_JOB_OPENED, lie == OTHER_SPEC ? OTHER : CONTENT);
    st->u.job_opened = (struct kedge_st_job_opened){.job = {"j"}, .parameters = 15, .tenant_count = 1};
    return sign(st);
}

/* That the entry is the only one of the log. */
static void put_proof(json_t *o, const char *name, const char *entry, enum lie lie)
{
    static struct kedge_proof proof;
    struct kedge_hash leaf;
    struct kedge_buf note, text;
    const char *origin = lie == OTHER_ORIGIN ? "fake/elsewhere" : "fake/main";
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&text, KEDGE_PROOF_TEXT_MAX);
    kedge_merkle_leaf(kedge_view_str(lie == OTHER_ENTRY ? "{}" : entry), &leaf);
    ck_assert_int_eq(kedge_checkpoint_sign(kedge_view_str(origin), 1, &leaf,
                                           lie == OTHER_LOG_KEY ? &stranger : &log_key, &note),
                     KEDGE_OK);
    proof = (struct kedge_proof){.note = kedge_buf_view(&note)};
    kedge_proof_encode(&proof, &text);
    json_object_set_new(o, name, json_stringn((const char *)text.ptr, text.len));
    kedge_buf_deinit(&note);
    kedge_buf_deinit(&text);
}

static char *answer_of(enum lie lie)
{
    struct kedge_hash digest;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    digest_of(CONTENT, &digest);
    kedge_hash_hex(&digest, hex);
    char *released = lie == OTHER_KIND ? opening(lie) : release(lie), *opened = opening(lie);
    json_t *row = json_pack("{s:i,s:s,s:s}", "group", 0, "digest", hex, "release", released);
    if (lie != NO_PROOF) {
        put_proof(row, "proof", released, lie);
    }
    json_t *o =
        json_pack("{s:s,s:s,s:s,s:[o]}", "job", "j", "state", "completed", "spec", hex, "models", row);
    if (lie != NO_SPEC) {
        json_object_set_new(o, "opened", json_string(opened));
        put_proof(o, "opened_proof", opened, TRUTH);
    }
    char *text = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    kedge_mem_free(released);
    kedge_mem_free(opened);
    return text;
}

static void vkey_of(const char *name, enum kedge_key_type type, const struct kedge_key_pair *pair,
                    char out_text[KEDGE_VKEY_MAX + 1])
{
    struct kedge_vkey v;
    struct kedge_buf text;
    kedge_buf_init(&text, KEDGE_VKEY_MAX);
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(name), type, &pair->public, &v), KEDGE_OK);
    kedge_vkey_encode(&v, &text);
    snprintf(out_text, KEDGE_VKEY_MAX + 1, "%.*s", (int)text.len, (const char *)text.ptr);
    kedge_buf_deinit(&text);
}

/* With a witness of whom nothing is heard. */
static void put_trust(void)
{
    static char text[4096];
    char log[KEDGE_VKEY_MAX + 1], cosigner[KEDGE_VKEY_MAX + 1], hex[2 * KEDGE_KEY_LEN + 1];
    vkey_of("fake/main", KEDGE_KEY_ED25519, &log_key, log);
    vkey_of("w", KEDGE_KEY_COSIGNATURE, &witness, cosigner);
    kedge_hex_encode(coordinator.public.b, KEDGE_KEY_LEN, hex);
    snprintf(text, sizeof text,
             "{\"schema_version\":1,\"deployment\":\"fake\",\"statement_key\":\"%s\",\"main_log\":\"%s\","
             "\"tenants\":[],\"witness_policy\":\"log %s\\nwitness w %s\\nquorum w\\n\"}",
             hex, log, log, cosigner);
    put_file(at("trust.json"), text);
}

static void begin(void)
{
    make_scratch();
    ck_assert_int_eq(kedge("init %s --deployment fake", at("state")), 0);
    kedge_key_from_seed(&(struct kedge_seed){{1}}, &coordinator);
    kedge_key_from_seed(&(struct kedge_seed){{2}}, &log_key);
    kedge_key_from_seed(&(struct kedge_seed){{3}}, &stranger);
    kedge_key_from_seed(&(struct kedge_seed){{4}}, &witness);
    ck_assert_int_eq(kedge_keyfile_write_private(at("state/keys/log-main.pem"), &log_key, NULL), KEDGE_OK);
    put_trust();
    fake = (struct fake){.blob = CONTENT};
    fake_open(&fake);
}

static int take(const char *more)
{
    return kedge("job model j --out %s --state %s --evidence --format json%s", at("models"), at("state"),
                 more);
}

START_TEST(test_lies)
{
    char trust[LINE_LEN];
    json_t *root;
    begin();
    char *answer = answer_of((enum lie)_i);
    fake.answer = answer;
    fake.blob = _i == OTHER_BYTES ? OTHER : CONTENT;
    snprintf(trust, sizeof trust, " --trust %s", at("trust.json"));
    int code = take(_i == NO_QUORUM ? trust : "");
    if (_i == TRUTH) {
        const json_t *row = json_array_get(json_object_get(data_of(&root), "models"), 0);
        ck_assert(json_is_true(json_object_get(row, "released")));
        ck_assert_int_eq(json_integer_value(json_object_get(row, "entry")), 0);
        ck_assert(has_text(at("models/j-g0.safetensors"), CONTENT)
                  && has_text(at("models/j-g0.json"), CONTENT));
        ck_assert(kedge_file_exists(at("models/j-g0.release.tlog-proof")));
        json_decref(root);
    } else {
        ck_assert_msg(code == 1, "lie %d: exit %d; %s%s", _i, code, out, err_out);
        const json_t *error = error_of(&root);
        ck_assert_str_eq(json_string_value(json_object_get(error, "code")),
                         _i == OTHER_BYTES ? "BLOB_DIGEST" : "VERIFY");
        ck_assert_msg(!kedge_file_exists(at("models/j-g0.safetensors"))
                          && !kedge_file_exists(at("models/j-g0.json"))
                          && !kedge_file_exists(at("models/j-g0.release.json")),
                      "lie %d: it was taken all the same", _i);
        json_decref(root);
    }
    fake_close();
    free(answer);
    remove_scratch();
}
END_TEST

/* What is in use has no release: beside the coordinator it is taken, and that is said. */
START_TEST(test_in_use)
{
    struct kedge_hash digest;
    char hex[KEDGE_HASH_HEX_LEN + 1], answer[512];
    begin();
    digest_of(CONTENT, &digest);
    kedge_hash_hex(&digest, hex);
    snprintf(
        answer, sizeof answer,
        "{\"job\":\"j\",\"state\":\"training\",\"spec\":\"%s\",\"models\":[{\"group\":0,\"digest\":\"%s\"}]}",
        hex, hex);
    fake.answer = answer;
    ck_assert_int_eq(kedge("job model j --out %s --state %s", at("models"), at("state")), 0);
    ck_assert_msg(strstr(out, "not released") != NULL, "%s", out);
    ck_assert_int_eq(take(""), 1); /* of which there is no evidence */
    ck_assert_ptr_nonnull(strstr(err_out, "no evidence yet"));
    fake_close();
    remove_scratch();
}
END_TEST

START_TEST(test_misspelt_trust)
{
    begin();
    char *answer = answer_of(TRUTH);
    fake.answer = answer;
    put_file(at("wrong.json"), "{\"schema_version\":1,\"deploymnt\":\"fake\"}");
    ck_assert_int_ne(
        kedge("job model j --out %s --state %s --trust %s", at("models"), at("state"), at("wrong.json")), 0);
    ck_assert_msg(strstr(err_out, "did you mean \"deployment\"?") != NULL, "%s", err_out);
    fake_close();
    free(answer);
    remove_scratch();
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("model");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, test_lies, 0, LIES);
    tcase_add_test(t, test_in_use);
    tcase_add_test(t, test_misspelt_trust);
    Suite *s = suite_create("cli model");
    suite_add_tcase(s, t);
    return run_suite(s);
}
