/* A coordinator that lies: for every command that appends, "it is appended" is believed only with a receipt
 * under a key that was known before, and the receipt is kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chain/log/merkle.h"
#include "chain/log/note.h"
#include "chain/statement/statement.h"
#include "chain/statement/statement_position.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "crypto/keyfile.h"
#include "tests/fixtures/run.h"
#include "tests/unit/cli/fake.h"
#include "tests/unit/cli/support.h"

#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* "@" stands for the scratch folder. */
static const struct {
    const char *words;
    bool made; /* the coordinator makes the statement */
} commands[] = {
    {"tenant add org-a --admin-key @/admin.pem", false},
    {"site approve org-a s1 --admin-key @/admin.pem", false},
    {"site revoke org-a s1 --admin-key @/admin.pem", false},
    {"site rotate org-a s1 --site-folder @/site --only statement", false},
    {"contact set org-a --text-file @/text --opening @/opening --admin-key @/admin.pem", false},
    {"job join j org-a --admin-key @/admin.pem", false},
    {"key add org-a --admin-key @/admin.pem --new-key @/new.pem", false},
    {"key rotate org-a --admin-key @/admin.pem --new-key @/new.pem", false},
    {"key revoke org-a KEY --admin-key @/admin.pem", false},
    {"key recover org-a --recovery-key @/admin.pem --new-key @/new.pem", false},
    {"key send @/change.json", false},
    {"witness enroll org-a w --tls-key KEY --vkey VKEY --admin-key @/admin.pem", false},
    {"witness revoke org-a w --admin-key @/admin.pem", false},
    {"ledger erase org-a --job j --reason r --admin-key @/admin.pem", false},
    {"role submit @/role.json", false},
    {"role grant ops --role operator --public KEY", true},
    {"role revoke KEY", true},
    {"role quorum 2", true},
    {"key rotate-statement", true},
    {"job submit @/spec.json", true},
    {"job stop j --cancel", true},
};
enum { COMMANDS = sizeof commands / sizeof commands[0], GRANT = 15, SUBMIT = 19, CANCEL = 20 };

static struct fake fake;
static struct kedge_key_pair admin, log_key, site_tls, site_key;
static char *other, *told;

static void hex_of(const struct kedge_public_key *key, char out_hex[2 * KEDGE_KEY_LEN + 1])
{
    kedge_hex_encode(key->b, KEDGE_KEY_LEN, out_hex);
}

static char *sign(struct kedge_statement *st, const struct kedge_key_pair *by)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_buf text;
    struct kedge_hash none;
    kedge_merkle_empty_root(&none);
    if (kedge_statement_has_position(st->kind)) {
        st->at = kedge_position_make(&log_key.public, 0, &none, 10);
    }
    kedge_buf_init(&text, KEDGE_ENTRY_MAX + 1);
    ck_assert_msg(kedge_statement_sign(st, by, &text, &d) == KEDGE_OK, "%s", d.text);
    kedge_buf_put_u8(&text, 0);
    char *copy = kedge_mem_strdup((const char *)text.ptr);
    kedge_buf_deinit(&text);
    kedge_mem_free(st);
    return copy;
}

static struct kedge_statement *new_statement(enum kedge_statement_kind kind)
{
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    ck_assert_ptr_nonnull(st);
    st->kind = kind;
    return st;
}

static char *revocation(const char *site)
{
    struct kedge_statement *st = new_statement(KEDGE_ST_SITE_REVOKED);
    st->u.site_revoked = (struct kedge_st_site_revoked){
        .tenant = {"org-a"}, .statement_key = site_key.public, .reason = "revoked by the tenant's admin"};
    ck_assert_int_eq(kedge_id_from(kedge_view_str(site), &st->u.site_revoked.site), KEDGE_OK);
    return sign(st, &admin);
}

static char *addition(void)
{
    struct kedge_statement *st = new_statement(KEDGE_ST_KEY_ADDED);
    st->u.key_added = (struct kedge_st_key_added){
        .tenant = {"org-a"}, .role = KEDGE_ROLE_RECOVERY, .public_key = site_tls.public};
    return sign(st, &admin);
}

static char *grant(enum kedge_chain_role role, const char *name)
{
    struct kedge_statement *st = new_statement(KEDGE_ST_ROLE_GRANTED);
    st->u.role_granted.of =
        (struct kedge_st_main_bound){.deployment = "fake", .main_log_key = log_key.public, .before = 1000};
    st->u.role_granted.role = role;
    ck_assert_int_eq(kedge_id_from(kedge_view_str(name), &st->u.role_granted.name), KEDGE_OK);
    st->u.role_granted.public_key = site_tls.public;
    return sign(st, &admin);
}

static char *closing(const char *job, enum kedge_job_outcome outcome)
{
    struct kedge_statement *st = new_statement(KEDGE_ST_JOB_CLOSED);
    st->u.job_closed = (struct kedge_st_job_closed){.rounds = 1, .outcome = outcome};
    ck_assert_int_eq(kedge_id_from(kedge_view_str(job), &st->u.job_closed.job), KEDGE_OK);
    return sign(st, &admin);
}

static void put_key(const char *name, const struct kedge_key_pair *pair)
{
    ck_assert_int_eq(kedge_keyfile_write_private(at(name), pair, NULL), KEDGE_OK);
}

static void make_answer(const struct kedge_public_key *main_log)
{
    char main_hex[2 * KEDGE_KEY_LEN + 1], tls[2 * KEDGE_KEY_LEN + 1], key[2 * KEDGE_KEY_LEN + 1];
    hex_of(main_log, main_hex);
    hex_of(&site_tls.public, tls);
    hex_of(&site_key.public, key);
    json_t *o =
        json_pack("{s:s,s:s,s:i,s:s,s:i,s:s,s:s,s:s,s:i,s:i,s:[],s:[{s:s,s:s,s:s,s:s}],s:[{s:s,s:s,s:s}],"
                  "s:[{s:i,s:i,s:i,s:i,s:s,s:s,s:s,s:s}]}",
                  "tenant", "org-a", "main_log_key", main_hex, "size", 0, "root", EMPTY, "leaf_index", 0,
                  "job", "j", "state", "cancelled", "spec", HASH, "keys_destroyed", 0, "next", 0, "history",
                  "sites", "tenant", "org-a", "site", "s1", "tls_key", tls, "statement_key", key, "witnesses",
                  "tenant", "org-a", "witness", "w", "cosign_key", key, "updates", "entry", 3, "bytes", 9,
                  "stored_ms", 1, "round", 1, "kind", "train", "update", HASH, "job", "j", "site", "s1");
    ck_assert_ptr_nonnull(o);
    told = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    fake.answer = told;
}

static void begin(enum fake_receipt receipt, bool is_main)
{
    make_scratch();
    ck_assert_int_eq(kedge("init %s --deployment fake", at("state")), 0);
    kedge_key_from_seed(&(struct kedge_seed){{1}}, &admin);
    kedge_key_from_seed(&(struct kedge_seed){{2}}, &log_key);
    kedge_key_from_seed(&(struct kedge_seed){{3}}, &site_tls);
    kedge_key_from_seed(&(struct kedge_seed){{4}}, &site_key);
    put_key("state/keys/log-main.pem", &log_key);
    put_key("state/keys/log-org-a.pem", &log_key);
    put_key("admin.pem", &admin);
    ck_assert_int_eq(mkdir(at("site"), 0700), 0);
    ck_assert_int_eq(mkdir(at("site/keys"), 0700), 0);
    put_key("site/keys/tls.pem", &site_tls);
    put_key("site/keys/statement.pem", &site_key);
    put_file(at("text"), "Alice\n");
    put_file(at("spec.json"),
             "{\"name\":\"j\",\"tenants\":[\"org-a\"],\"data\":\"d\",\"rounds\":1,\"batch\":1,"
             "\"learning_rate\":\"0.1\",\"model\":{\"preset\":\"mclr\",\"inputs\":4,"
             "\"classes\":3}}");
    char *change = addition(), *role = grant(KEDGE_CHAIN_AUDITOR, "court");
    put_file(at("change.json"), change);
    put_file(at("role.json"), role);
    kedge_mem_free(change);
    kedge_mem_free(role);
    fake =
        (struct fake){.receipt = receipt, .log_key = log_key, .origin = is_main ? "fake/main" : "fake/org-a"};
    other = revocation("another");
    fake.other_entry = other;
    make_answer(&log_key.public);
    fake_open(&fake);
}

static void end(void)
{
    fake_close();
    kedge_mem_free(fake.envelope);
    kedge_mem_free(other);
    free(told);
    remove_scratch();
}

/* "@", KEY and VKEY in a command's words. */
static int run(const char *words)
{
    char line[LINE_LEN] = "", key[2 * KEDGE_KEY_LEN + 1], vkey[KEDGE_VKEY_MAX + 1] = "";
    struct kedge_vkey v;
    struct kedge_buf text;
    size_t used = 0;
    hex_of(&site_tls.public, key);
    kedge_buf_init(&text, KEDGE_VKEY_MAX);
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str("w"), KEDGE_KEY_COSIGNATURE, &site_key.public, &v),
                     KEDGE_OK);
    kedge_vkey_encode(&v, &text);
    snprintf(vkey, sizeof vkey, "%.*s", (int)text.len, (const char *)text.ptr);
    kedge_buf_deinit(&text);
    for (const char *p = words; *p && used + 256 < sizeof line;) {
        bool is_vkey = strncmp(p, " VKEY", 5) == 0, is_key = strncmp(p, " KEY", 4) == 0;
        if (is_vkey || is_key) {
            used += (size_t)snprintf(line + used, sizeof line - used, " %s", is_vkey ? vkey : key);
            p += is_vkey ? 5 : 4;
        } else if (*p == '@') {
            used += (size_t)snprintf(line + used, sizeof line - used, "%s", scratch);
            p++;
        } else {
            line[used++] = *p++;
            line[used] = '\0';
        }
    }
    return kedge("%s --state %s --receipts %s --format json", line, at("state"), at("receipts"));
}

static bool is_of_main(int i)
{
    return commands[i].made || strncmp(commands[i].words, "role", 4) == 0;
}

START_TEST(test_lies)
{
    static const enum fake_receipt lies[] = {FAKE_SHOWS_ANSWER,      FAKE_SHOWS_OTHER_KEY,
                                             FAKE_SHOWS_OTHER_LOG,   FAKE_SHOWS_OTHER_ENTRY,
                                             FAKE_SHOWS_WRONG_ENTRY, FAKE_SHOWS_ERROR};
    for (size_t k = 0; k < sizeof lies / sizeof lies[0]; k++) {
        begin(lies[k], is_of_main(_i));
        int code = run(commands[_i].words);
        if (_i == SUBMIT && lies[k] == FAKE_SHOWS_ERROR) { /* it promises nothing */
            ck_assert_int_eq(code, 0);
            ck_assert_ptr_nonnull(strstr(err_out, "No entry of the main chain proves it yet"));
            end();
            continue;
        }
        ck_assert_msg(code == 3, "%s, lie %zu: exit %d; %s%s", commands[_i].words, k, code, out, err_out);
        json_t *root, *error = error_of(&root);
        ck_assert_str_eq(json_string_value(json_object_get(error, "code")), "UNKNOWN");
        ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(error, "message")), "prove"));
        json_decref(root);
        ck_assert(!strstr(err_out, "for good") && !strstr(err_out, "Enrolled")
                  && !strstr(err_out, "in force"));
        ck_assert_msg(!kedge_file_exists(at("receipts")) || _i == CANCEL || _i == SUBMIT,
                      "%s: a lie was kept", commands[_i].words);
        ck_assert_msg(kedge_file_exists(at("admin.pem")), "a key that may be in force is gone");
        end();
    }
}
END_TEST

START_TEST(test_truth)
{
    char vkey[KEDGE_VKEY_MAX + 1], receipt[1024], entry[1024];
    struct kedge_vkey v;
    struct kedge_buf text;
    if (commands[_i].made) {
        return;
    }
    begin(FAKE_SHOWS_RECEIPT, is_of_main(_i));
    int code = run(commands[_i].words);
    ck_assert_msg(code == 0, "%s: exit %d; %s%s", commands[_i].words, code, out, err_out);
    kedge_buf_init(&text, KEDGE_VKEY_MAX);
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(fake.origin), KEDGE_KEY_ED25519, &log_key.public, &v),
                     KEDGE_OK);
    kedge_vkey_encode(&v, &text);
    snprintf(vkey, sizeof vkey, "%.*s", (int)text.len, (const char *)text.ptr);
    kedge_buf_deinit(&text);
    /* what was kept is what others verify */
    struct kedge_hash leaf;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_merkle_leaf(kedge_view_str(fake.envelope), &leaf);
    kedge_hash_hex(&leaf, hex);
    snprintf(receipt, sizeof receipt, "receipts/%s-0-%.16s.tlog-proof", is_of_main(_i) ? "main" : "org-a",
             hex);
    snprintf(entry, sizeof entry, "receipts/%s-0-%.16s.json", is_of_main(_i) ? "main" : "org-a", hex);
    code = kedge("ledger verify %s --log %s --entry %s --format json", at(receipt), vkey, at(entry));
    ck_assert_msg(code == 0, "%s: %s%s", commands[_i].words, out, err_out);
    end();
}
END_TEST

/* What the coordinator makes of a request is held to the request. */
START_TEST(test_made)
{
    struct {
        int command;
        char *entry;
        int code;
    } cases[5];
    begin(FAKE_SHOWS_OTHER_ENTRY, true);
    cases[0].command = cases[1].command = cases[2].command = GRANT;
    cases[0].entry = grant(KEDGE_CHAIN_OPERATOR, "ops");
    cases[1].entry = grant(KEDGE_CHAIN_AUDITOR, "ops");
    cases[2].entry = grant(KEDGE_CHAIN_OPERATOR, "friend");
    cases[3].command = cases[4].command = CANCEL;
    cases[3].entry = closing("j", KEDGE_OUTCOME_CANCELLED);
    cases[4].entry = closing("another", KEDGE_OUTCOME_CANCELLED);
    for (int i = 0; i < 5; i++) {
        fake.other_entry = cases[i].entry;
        int code = run(commands[cases[i].command].words);
        ck_assert_msg(code == (i == 0 || i == 3 ? 0 : 3), "case %d: exit %d; %s%s", i, code, out, err_out);
        kedge_mem_free(cases[i].entry);
    }
    end();
}
END_TEST

/* A user of several keys sees which one it was that the coordinator refuses. */
START_TEST(test_key_is_named)
{
    const char *words = commands[_i].words;
    char hex[2 * KEDGE_KEY_LEN + 1];
    json_t *root;
    begin(FAKE_SHOWS_RECEIPT, is_of_main(_i));
    fake.refuse = KEDGE_E_DENIED;
    const char *option = strstr(words, "--admin-key")      ? "--admin-key"
                         : strstr(words, "--recovery-key") ? "--recovery-key"
                         : strstr(words, "--site-folder")  ? "--site-folder"
                                                           : NULL;
    bool of_site = option && strcmp(option, "--site-folder") == 0; /* found there, and named by nobody */
    const char *file = at(of_site ? "site/keys/statement.pem" : "admin.pem");
    hex_of(of_site ? &site_key.public : &admin.public, hex);
    ck_assert_int_ne(run(words), 0);
    const json_t *used = json_object_get(error_of(&root), "keys"), *row = json_array_get(used, 0);
    ck_assert_msg((used != NULL) == (option != NULL), "%s: %s", words, out);
    if (option) {
        ck_assert_str_eq(json_string_value(json_object_get(row, "option")), option);
        ck_assert_str_eq(json_string_value(json_object_get(row, "file")), file);
        ck_assert_str_eq(json_string_value(json_object_get(row, "public")), hex);
        ck_assert_msg(strstr(err_out, hex) && strstr(err_out, file), "%s: %s", words, err_out);
    }
    json_decref(root);
    end();
}
END_TEST

/* The key of a site that rotates, too: beside the one that speaks. */
START_TEST(test_keys_of_a_rotation)
{
    char hex[2 * KEDGE_KEY_LEN + 1];
    json_t *root;
    begin(FAKE_SHOWS_RECEIPT, false);
    fake.refuse = KEDGE_E_REVOKED;
    hex_of(&site_tls.public, hex);
    ck_assert_int_ne(run("site rotate org-a s1 --site-folder @/site --only tls"), 0);
    const json_t *used = json_object_get(error_of(&root), "keys"), *row = json_array_get(used, 1);
    ck_assert_uint_eq(json_array_size(used), 2);
    ck_assert_str_eq(json_string_value(json_object_get(row, "file")), at("site/keys/tls.pem"));
    ck_assert_str_eq(json_string_value(json_object_get(row, "public")), hex);
    json_decref(root);
    end();
}
END_TEST

/* … nor does one look for it who is not let in, or cannot get there. */
START_TEST(test_key_of_a_connection)
{
    char hex[2 * KEDGE_KEY_LEN + 1];
    json_t *root;
    begin(FAKE_SHOWS_RECEIPT, true);
    hex_of(&admin.public, hex);
    ck_assert_int_eq(kedge("job list --connect tls+tcp://127.0.0.1:1 --server-key %s --key %s --format json",
                           hex, at("admin.pem")),
                     3);
    const json_t *row = json_array_get(json_object_get(error_of(&root), "keys"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(row, "option")), "--key");
    ck_assert_str_eq(json_string_value(json_object_get(row, "public")), hex);
    json_decref(root);
    end();
}
END_TEST

/* It would have its tenants sign for another deployment. */
START_TEST(test_other_deployment)
{
    begin(FAKE_SHOWS_RECEIPT, false);
    free(told);
    make_answer(&site_key.public);
    ck_assert_int_ne(run("site revoke org-a s1 --admin-key @/admin.pem"), 0);
    json_t *root, *error = error_of(&root);
    ck_assert_str_eq(json_string_value(json_object_get(error, "code")), "POSITION");
    json_decref(root);
    ck_assert_ptr_null(fake.envelope);
    end();
}
END_TEST

/* Without a key that was known before nothing is sent. */
START_TEST(test_no_key)
{
    char key[2 * KEDGE_KEY_LEN + 1];
    begin(FAKE_SHOWS_RECEIPT, false);
    hex_of(&site_tls.public, key);
    ck_assert_int_eq(
        kedge("role quorum 2 --connect tls+tcp://127.0.0.1:9 --server-key %s --key %s --format json", key,
              at("admin.pem")),
        2);
    ck_assert_ptr_nonnull(strstr(err_out, "--trust FILE"));
    ck_assert_int_eq(remove(at("state/keys/log-org-a.pem")), 0);
    ck_assert_int_eq(run("site revoke org-a s1 --admin-key @/admin.pem"), 2);
    ck_assert_ptr_null(fake.envelope);
    end();
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("receipt");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_lies, 0, COMMANDS);
    tcase_add_loop_test(t, test_truth, 0, COMMANDS);
    tcase_add_test(t, test_made);
    tcase_add_loop_test(t, test_key_is_named, 0, COMMANDS);
    tcase_add_test(t, test_keys_of_a_rotation);
    tcase_add_test(t, test_key_of_a_connection);
    tcase_add_test(t, test_other_deployment);
    tcase_add_test(t, test_no_key);
    Suite *s = suite_create("cli receipt");
    suite_add_tcase(s, t);
    return run_suite(s);
}
