/* kedge ledger, audit, sim, doctor as their users meet them: the program itself, over a small record; what it
 * says, and how it ends. */
#include <check.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/log/note.h"
#include "common/base/os/clock.h"
#include "common/base/os/process.h"
#include "common/base/os/slots.h"
#include "tests/fixtures/federation.h"
#include "tests/fixtures/run.h"
#include "tests/unit/cli/support.h"

START_TEST(test_list_and_show)
{
    json_t *root;
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    const char *state = at("fx/state");
    ck_assert_int_eq(kedge("ledger list --state %s", state), 0);
    ck_assert_ptr_nonnull(strstr(out, "\nmain "));
    ck_assert_ptr_nonnull(strstr(out, "\norg-b "));
    ck_assert_int_eq(kedge("ledger ls --state %s --format json", state), 0);
    const json_t *logs = json_object_get(data_of(&root), "logs");
    ck_assert_uint_eq(json_array_size(logs), 3);
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(logs, 0), "log")), "main");
    json_int_t size = json_integer_value(json_object_get(json_array_get(logs, 1), "size"));
    ck_assert_int_gt(size, 10);
    json_decref(root);
    ck_assert_int_eq(kedge("ledger show org-a --state %s --from 1 --limit 2 --format json", state), 0);
    const json_t *rows = json_object_get(data_of(&root), "entries");
    ck_assert_uint_eq(json_array_size(rows), 2);
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(rows, 0), "kind")), "site-enrolled");
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(rows, 0), "who")), "org-a/s1");
    json_decref(root);
    ck_assert_int_eq(kedge("ledger show main 0 --state %s", state), 0);
    ck_assert_ptr_nonnull(strstr(out, "\"predicateType\": \"https://kedge.dev/policy/v1\""));
    ck_assert_int_eq(kedge("ledger show main 3 --state %s", state), 0);
    ck_assert_ptr_nonnull(strstr(out, "checkpoint"));
    ck_assert_int_eq(kedge("ledger show main %lld --state %s", (long long)1 << 40, state), 3);
    ck_assert_int_eq(kedge("ledger show nobody --state %s", state), 3);
    ck_assert_int_eq(kedge("ledger show Not-A-Log! --state %s", state), 2);
    ck_assert_int_eq(kedge("ledger show --state %s", state), 2);
    ck_assert_int_eq(kedge("ledger show main -1 --state %s", state), 2);
    ck_assert_int_eq(kedge("ledger show main --limit 0 --state %s", state), 2);
    ck_assert_int_eq(kedge("ledger list --state %s", at("none")), 3);
    ck_assert(has_text(at("stderr"), "no state folder"));
    remove_scratch();
}
END_TEST

/* A page of the store turned to noise: an error, never a crash and never 0. */
START_TEST(test_damaged_store)
{
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    const char *data = at("fx/state/tenants/org-a/ledger.lmdb/data.mdb");
    ck_assert(truncate(data, 100) == 0);
    int code = kedge("ledger show org-a --state %s", at("fx/state"));
    ck_assert_msg(code == 5 || code == 3, "exit %d", code);
    code = kedge("ledger list --state %s", at("fx/state"));
    ck_assert_msg(code == 5 || code == 3, "exit %d", code);
    ck_assert_ptr_nonnull(strstr(out, "\norg-b ")); /* the others are shown all the same */
    ck_assert_int_eq(kedge("audit verify %s --trust %s", at("fx"), at("fx/trust.json")), 1);
    ck_assert_int_eq(kedge("doctor %s", at("fx")), 1);
    ck_assert_ptr_nonnull(strstr(out, "FAIL  log org-a"));
    remove_scratch();
}
END_TEST

START_TEST(test_receipts)
{
    char vkey[KEDGE_VKEY_MAX + 1], other[KEDGE_VKEY_MAX + 1];
    json_t *root;
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    const char *state = at("fx/state");
    ck_assert_int_eq(kedge("ledger list --state %s --format json", state), 0);
    const json_t *logs = json_object_get(data_of(&root), "logs");
    snprintf(vkey, sizeof vkey, "%s", json_string_value(json_object_get(json_array_get(logs, 1), "vkey")));
    snprintf(other, sizeof other, "%s", json_string_value(json_object_get(json_array_get(logs, 2), "vkey")));
    json_decref(root);
    ck_assert_int_eq(
        kedge("ledger prove org-a 3 --state %s --out %s --entry-out %s", state, at("receipt"), at("entry")),
        0);
    ck_assert(has_text(at("receipt"), "c2sp.org/tlog-proof@v1\n"));
    /* offline: no state folder at all */
    ck_assert_int_eq(kedge("ledger verify %s --log %s --entry %s --state %s", at("receipt"), vkey,
                           at("entry"), at("none")),
                     0);
    ck_assert_ptr_nonnull(strstr(out, "Verified: this entry is number 3 of the log fx.kedge.local/org-a"));
    ck_assert_int_eq(kedge("ledger verify %s --log %s --state %s", at("receipt"), vkey, state), 0);
    ck_assert_int_eq(kedge("ledger verify %s --log %s --state %s", at("receipt"), vkey, at("none")), 3);
    ck_assert_int_eq(kedge("ledger verify %s --log %s --entry %s", at("receipt"), other, at("entry")), 1);
    fx_flip(at("entry"), 40);
    ck_assert_int_eq(
        kedge("ledger verify %s --log %s --entry %s --format json", at("receipt"), vkey, at("entry")), 1);
    const json_t *verified = json_object_get(data_of(&root), "verified");
    ck_assert(json_is_false(verified));
    json_decref(root);
    fx_flip(at("entry"), 40);
    fx_flip(at("receipt"), -10); /* in the checkpoint's signature */
    ck_assert_int_eq(kedge("ledger verify %s --log %s --entry %s", at("receipt"), vkey, at("entry")), 1);
    put_file(at("receipt"), "no receipt\n");
    ck_assert_int_eq(kedge("ledger verify %s --log %s --entry %s", at("receipt"), vkey, at("entry")), 1);
    ck_assert_int_eq(kedge("ledger verify %s --log %s", at("absent"), vkey), 3);
    ck_assert_int_eq(kedge("ledger verify %s --log junk", at("receipt")), 2);
    ck_assert_int_eq(kedge("ledger verify %s", at("receipt")), 2);
    ck_assert_int_eq(kedge("ledger prove org-a 1000 --state %s", state), 3);
    ck_assert_int_eq(kedge("ledger prove org-a --state %s", state), 2);
    ck_assert_int_eq(kedge("ledger prove org-a 3 --from 2 --state %s", state), 2);
    remove_scratch();
}
END_TEST

static void get_hash(const json_t *o, struct kedge_hash *ret)
{
    ck_assert_int_eq(kedge_hash_from_hex(kedge_view_str(json_string_value(o)), ret), KEDGE_OK);
}

START_TEST(test_consistency)
{
    struct kedge_hash from_root, to_root, path[KEDGE_PROOF_MAX];
    json_t *root;
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    const char *state = at("fx/state");
    ck_assert_int_eq(kedge("ledger prove main --from 5 --to 20 --state %s --format json", state), 0);
    const json_t *data = data_of(&root), *hashes = json_object_get(data, "path");
    get_hash(json_object_get(data, "from_root"), &from_root);
    get_hash(json_object_get(data, "to_root"), &to_root);
    for (size_t i = 0; i < json_array_size(hashes); i++) {
        get_hash(json_array_get(hashes, i), &path[i]);
    }
    ck_assert_int_eq(kedge_consistency_verify(5, 20, &from_root, &to_root, path, json_array_size(hashes)),
                     KEDGE_OK);
    ck_assert_int_ne(kedge_consistency_verify(6, 20, &from_root, &to_root, path, json_array_size(hashes)),
                     KEDGE_OK);
    json_decref(root);
    ck_assert_int_eq(kedge("ledger prove main --from 5 --to 20 --state %s --out %s", state, at("proof")), 0);
    ck_assert(has_text(at("proof"), "\"from_root\""));
    ck_assert_int_eq(kedge("ledger prove main --from 20 --to 5 --state %s", state), 2);
    ck_assert_int_eq(kedge("ledger prove main --from 1 --to 100000 --state %s", state), 2);
    ck_assert_int_eq(kedge("ledger prove main --from 0 --state %s", state), 2);
    remove_scratch();
}
END_TEST

START_TEST(test_audit)
{
    json_t *root;
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    const char *dir = at("fx"), *trust = at("fx/trust.json");
    ck_assert_int_eq(kedge("audit verify %s --trust %s --threads 2", dir, trust), 0);
    ck_assert_ptr_nonnull(strstr(out, "\nVerified: "));
    ck_assert_int_eq(kedge("audit replay %s --trust %s --format json", dir, trust), 0);
    const json_t *data = data_of(&root);
    ck_assert_str_eq(json_string_value(json_object_get(data, "verdict")), "yes");
    ck_assert_int_gt(json_integer_value(json_object_get(json_object_get(data, "counts"), "decisions")), 0);
    json_decref(root);
    ck_assert_int_eq(kedge("audit verify %s --format json", dir), 1);
    ck_assert_str_eq(json_string_value(json_object_get(data_of(&root), "verdict")), "self-consistent");
    json_decref(root);
    ck_assert_int_eq(kedge("audit verify %s", at("none")), 3);
    ck_assert(has_text(at("stderr"), "no record"));
    ck_assert_int_eq(kedge("audit verify %s --trust %s", at("fx"), at("none")), 3);
    put_file(at("trust"), "{}");
    ck_assert_int_eq(kedge("audit verify %s --trust %s", at("fx"), at("trust")), 3);
    ck_assert_int_eq(kedge("audit verify %s --seen %s", at("fx"), at("none")), 3);
    ck_assert_int_eq(kedge("audit verify %s --threads 0", at("fx")), 2);
    ck_assert_int_eq(kedge("audit verify %s --turst x", at("fx")), 2);
    ck_assert_int_eq(kedge("audit verify"), 2);
    ck_assert_int_eq(kedge("audit trust --state %s", at("fx/state")), 3); /* nobody runs there */
    remove_scratch();
}
END_TEST

START_TEST(test_audit_says_no)
{
    json_t *root;
    make_scratch();
    fx_federation(at("fx"), FX_WRONG_BASE);
    ck_assert_int_eq(kedge("audit verify %s --trust %s --format json", at("fx"), at("fx/trust.json")), 1);
    const json_t *data = data_of(&root), *findings = json_object_get(data, "findings");
    ck_assert_str_eq(json_string_value(json_object_get(data, "verdict")), "no");
    ck_assert_uint_gt(json_array_size(findings), 0);
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(findings, 0), "code")), "base");
    json_decref(root);
    ck_assert_int_eq(kedge("audit verify %s --trust %s", at("fx"), at("fx/trust.json")), 1);
    ck_assert_ptr_nonnull(strstr(out, "\nNOT verified: "));
    /* a checkpoint seen earlier, longer than what is left */
    fx_federation(at("long"), FX_NONE);
    fx_federation(at("short"), FX_UNFINISHED);
    fx_checkpoint(at("long"), NULL, at("seen"));
    ck_assert_int_eq(
        kedge("audit verify %s --trust %s --seen %s", at("long"), at("long/trust.json"), at("seen")), 0);
    ck_assert_int_eq(
        kedge("audit verify %s --trust %s --seen %s", at("short"), at("short/trust.json"), at("seen")), 1);
    remove_scratch();
}
END_TEST

static const struct {
    const char *spec;
    int code;
    const char *says; /* on stderr */
} specs[] = {
    {"{\"seeds\":2,\"seed\":\"3\",\"rounds\":3}", 0, ""},
    {"{\"seeds\":2,\"faults\":\"none\",\"groups\":1,\"tenants\":1,\"sites\":3,\"rounds\":2}", 0, ""},
    {"{\"seeds\":0}", 2, "\"seeds\": expected a whole number from 1"},
    {"{\"seeds\":\"2\"}", 2, "\"seeds\""},
    {"{\"seed\":3}", 2, "\"seed\""},
    {"{\"seed\":\"18446744073709551615\"}", 2, "\"seed\""},
    {"{\"faults\":\"some\"}", 2, "\"faults\""},
    {"{\"sites\":0}", 2, "\"sites\""},
    {"{\"rounds\":100000000}", 2, "\"rounds\""},
    {"{\"round\":5}", 2, "unknown key \"round\""},
    {"{\"seeds\":1,\"seeds\":1}", 2, ""},
    {"[]", 2, ""},
    {"", 2, ""},
};

START_TEST(test_sim)
{
    make_scratch();
    put_file(at("spec.json"), specs[_i].spec);
    ck_assert_msg(kedge("sim %s", at("spec.json")) == specs[_i].code, "spec %s", specs[_i].spec);
    ck_assert(has_text(at("stderr"), specs[_i].code ? "spec.json" : "") || specs[_i].code == 0);
    ck_assert(specs[_i].says[0] == '\0' || has_text(at("stderr"), specs[_i].says));
    remove_scratch();
}
END_TEST

START_TEST(test_sim_repeats)
{
    static char first[OUTPUT_MAX + 1];
    json_t *root;
    make_scratch();
    put_file(at("spec.json"), "{\"seeds\":2,\"seed\":\"11\",\"rounds\":3}");
    ck_assert_int_eq(kedge("sim %s --format json", at("spec.json")), 0);
    const json_t *holds = json_object_get(data_of(&root), "holds");
    ck_assert(json_is_true(holds));
    json_decref(root);
    memcpy(first, out, sizeof first);
    ck_assert_int_eq(kedge("sim %s --format json", at("spec.json")), 0);
    ck_assert_str_eq(first, out);
    put_file(at("spec.json"), "{\"seeds\":2,\"seed\":\"12\",\"rounds\":3}");
    ck_assert_int_eq(kedge("sim %s --format json", at("spec.json")), 0);
    ck_assert_str_ne(first, out);
    ck_assert_int_eq(kedge("sim %s", at("none")), 3);
    ck_assert_int_eq(kedge("sim"), 2);
    remove_scratch();
}
END_TEST

START_TEST(test_doctor)
{
    make_scratch();
    (void)kedge("doctor"); /* what it says of this machine is this machine's affair */
    ck_assert_ptr_nonnull(strstr(out, "ok    TLS on loopback"));
    ck_assert_ptr_nonnull(strstr(out, "ok    cryptography"));
    fx_federation(at("fx"), FX_NONE);
    (void)kedge("doctor %s", at("fx"));
    ck_assert_ptr_nonnull(strstr(out, "ok    keys"));
    ck_assert_ptr_nonnull(strstr(out, "ok    logs: 3 open"));
    ck_assert_ptr_nonnull(strstr(out, "warn  coordinator: not running"));
    ck_assert(chmod(at("fx/state/keys/tls.pem"), 0644) == 0);
    ck_assert(unlink(at("fx/state/high-water/org-a")) == 0);
    put_file(at("fx/state/config.json"), "{\"deployment\":\"fx.kedge.local\",\"listne\":[]}");
    ck_assert_int_eq(kedge("doctor %s", at("fx/state")), 1);
    ck_assert_ptr_nonnull(strstr(out, "FAIL  key"));
    ck_assert_ptr_nonnull(strstr(out, "chmod 600"));
    ck_assert_ptr_nonnull(strstr(out, "FAIL  log org-a: its high-water mark is missing"));
    ck_assert_ptr_nonnull(strstr(out, "unknown key \"listne\""));
    put_file(at("fx/state/config.json"), "{\"deployment\":\"fx.kedge.local\",\"lease_ms\":99}");
    ck_assert_int_eq(kedge("doctor %s", at("fx/state")), 1);
    ck_assert_ptr_nonnull(strstr(out, "\"lease_ms\": expected a whole number from 5000 to 3600000"));
    ck_assert_int_eq(kedge("doctor %s", at("none")), 3);
    remove_scratch();
}
END_TEST

/* A new state folder leaves no words about what was absent before. */
START_TEST(test_new_state_says_nothing)
{
    struct kedge_diag d = {.text = "stale", .hint = "stale"};
    make_scratch();
    ck_assert_int_eq(kedge_state_create(at("new"), "d.example", &d), KEDGE_OK);
    ck_assert_str_eq(d.text, "");
    ck_assert_str_eq(d.hint, "");
    ck_assert_int_eq(kedge_state_create(at("new"), "d.example", &d), KEDGE_E_EXISTS);
    ck_assert_ptr_nonnull(strstr(d.text, "there is a state folder already"));
    remove_scratch();
}
END_TEST

static const char site_json[] =
    "{\"tenant\":\"org-a\",\"site\":\"s1\",\"server\":\"tls+tcp://127.0.0.1:1\","
    "\"server_key\":\"0000000000000000000000000000000000000000000000000000000000000000\"}";

START_TEST(test_doctor_of_a_site)
{
    json_t *root, *check;
    size_t i;
    bool policy = false, key = false;
    make_scratch();
    ck_assert_int_eq(kedge_dir_make(at("site/keys"), 0700, NULL), KEDGE_OK);
    put_file(at("site/site.json"), site_json);
    put_file(at("site/policy.json"), "{\"jobs\":\"*\",\"data\":{\"mine\":{\"train\":{\"format\":\"csv\","
                                     "\"path\":\"/none.csv\"}}}}");
    ck_assert_int_eq(kedge("doctor %s --format json", at("site")), 1);
    const json_t *checks = json_object_get(data_of(&root), "checks");
    json_array_foreach(checks, i, check)
    {
        const char *detail = json_string_value(json_object_get(check, "detail"));
        policy = policy || strstr(detail, "/none.csv cannot be read");
        key = key || strstr(detail, "keys/statement.pem is missing");
    }
    json_decref(root);
    (void)kedge("doctor %s", at("site"));
    ck_assert_ptr_nonnull(strstr(out, "not enrolled yet"));
    struct kedge_view memory = kedge_view_str("{\"enrolled\":true,\"results\":[]}");
    ck_assert_int_eq(kedge_slots_write(at("site/memory"), 1, memory, NULL), KEDGE_OK);
    (void)kedge("doctor %s", at("site"));
    ck_assert_ptr_null(strstr(out, "not enrolled yet"));
    ck_assert_ptr_nonnull(strstr(out, "ok    site: org-a/s1"));
    ck_assert(policy);
    ck_assert(key);
    remove_scratch();
}
END_TEST

/* Ctrl-C in the middle of a federation: everything stops, nothing is lost, the same folder goes on. */
START_TEST(test_poc_interrupted)
{
    struct kedge_process p;
    json_t *root;
    char line[KEDGE_PATH_MAX + 128];
    make_scratch();
    snprintf(line, sizeof line, "poc %s --tenants 1 --sites 2 --groups 1 --rounds 100 --format json",
             at("poc"));
    kedge_begin(&p, "%s", line);
    for (int i = 0; i < 30000 && !kedge_file_exists(at("poc/fedavg.json")); i++) { /* its job is submitted */
        kedge_os_sleep_ms(1);
    }
    ck_assert(kedge_file_exists(at("poc/fedavg.json")));
    kedge_os_sleep_ms(100);
    ck_assert_int_eq(kill(p.pid, SIGINT), 0);
    ck_assert_int_eq(kedge_end(&p), 130);
    ck_assert_str_eq(json_string_value(json_object_get(error_of(&root), "code")), "CANCELLED");
    ck_assert_ptr_nonnull(strstr(err_out, "the same folder goes on where it was: kedge poc"));
    json_decref(root);
    ck_assert_int_eq(kedge("poc %s --rounds 7 --format json", at("poc")), 0);
    ck_assert_ptr_nonnull(strstr(err_out, "begun earlier"));
    const json_t *job = json_object_get(data_of(&root), "grouped");
    ck_assert_str_eq(json_string_value(json_object_get(job, "state")), "completed");
    ck_assert_int_eq(json_integer_value(json_object_get(job, "rounds")), 100);
    json_decref(root);
    ck_assert_int_eq(kedge("audit replay %s --trust %s", at("poc"), at("poc/trust.json")), 0);
    remove_scratch();
}
END_TEST

/* ---- a job with a cap on a tenant's share, by real processes ---- */

enum { PROGRAMS_MAX = 8, READY_MS = 20000 };

static struct kedge_process programs[PROGRAMS_MAX];
static size_t program_count;

/* A program beside kedge over a folder; its messages go to scratch/log. */
static void start_program(const char *name, const char *option, const char *folder)
{
    static const char kedge_path[] = KEDGE_PROGRAM;
    char path[KEDGE_PATH_MAX];
    snprintf(path, sizeof path, "%.*s/%s", (int)(strrchr(kedge_path, '/') - kedge_path), kedge_path, name);
    const char *argv[] = {path, option, folder, NULL};
    struct kedge_process_options options = {.argv = argv, .stderr_path = at("log"), .die_with_parent = true};
    ck_assert_uint_lt(program_count, PROGRAMS_MAX);
    ck_assert_int_eq(kedge_process_start(&options, &programs[program_count++], NULL), KEDGE_OK);
}

static void stop_programs(void)
{
    while (program_count > 0) {
        kedge_process_stop(&programs[--program_count], SIGTERM, 10000);
    }
}

static const char capped_spec[] =
    "{\"name\":\"capped\",\"tenants\":[\"org-a\",\"org-b\",\"org-c\"],\"data\":\"digits\",\"rounds\":2,"
    "\"model\":{\"preset\":\"mclr\",\"inputs\":64,\"classes\":10},\"sites_min\":3,\"quorum\":3,"
    "\"round_timeout_s\":10,\"tenant_share_max\":\"0.333334\"}";

static const char other_spec[] =
    "{\"name\":\"capped\",\"tenants\":[\"org-a\"],\"data\":\"digits\",\"rounds\":2,\"model\":{\"preset\":"
    "\"mclr\",\"inputs\":64,\"classes\":10}}";

/* The coordinator caps, records what it used, and an auditor makes the same weights again. */
START_TEST(test_capped_job)
{
    make_scratch();
    const char *state = at("poc/state");
    ck_assert_int_eq(kedge("poc %s --tenants 3 --sites 1 --groups 1 --rounds 1", at("poc")), 0);
    start_program("kedge-coordinator", "--state", state);
    start_program("kedge-client", "--site", at("poc/sites/org-a/site-1"));
    start_program("kedge-client", "--site", at("poc/sites/org-b/site-1"));
    start_program("kedge-client", "--site", at("poc/sites/org-c/site-1"));
    int code = 3;
    for (int i = 0; i < READY_MS / 100 && code != 0; i++) {
        code = kedge("status --state %s", state);
        kedge_os_sleep_ms(100);
    }
    put_file(at("spec.json"), capped_spec);
    ck_assert_msg(kedge("job submit %s --state %s", at("spec.json"), state) == 0, "%s", err_out);
    put_file(at("other.json"), other_spec); /* what was agreed on is not what the coordinator has */
    ck_assert_msg(kedge("job join capped org-a --admin-key %s --state %s --spec %s",
                        at("poc/tenants/org-a/admin.pem"), state, at("other.json"))
                      == 1,
                  "%s", err_out);
    ck_assert_ptr_nonnull(strstr(err_out, "nothing was signed"));
    for (int tenant = 'a'; tenant <= 'c'; tenant++) {
        char key[64];
        snprintf(key, sizeof key, "poc/tenants/org-%c/admin.pem", tenant);
        ck_assert_msg(kedge("job join capped org-%c --admin-key %s --state %s --spec %s", tenant, at(key),
                            state, at("spec.json"))
                          == 0,
                      "%s", err_out);
    }
    ck_assert_msg(kedge("job wait capped --timeout 60 --state %s", state) == 0, "%s%s", out, err_out);
    ck_assert_int_eq(kedge("job model capped --out %s --state %s", at("poc/models"), state), 0);
    ck_assert_int_eq(kedge("ledger show main --limit 1000 --state %s", state), 0);
    ck_assert_ptr_nonnull(strstr(out, "fedavg-capped/v1: 3 used"));
    stop_programs();
    ck_assert_msg(kedge("audit replay %s --trust %s", at("poc"), at("poc/trust.json")) == 0, "%s", out);
    remove_scratch();
}
END_TEST

/* docs/cli.md tells of every command just what the command itself tells. */
START_TEST(test_page)
{
    char names[128][32], usage[LINE_LEN + 64];
    size_t count = 0;
    make_scratch();
    ck_assert_int_eq(kedge("--help"), 0);
    for (const char *line = out; line && count < 128; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "  kedge ", 8) == 0) { /* a name, two spaces or more, its help */
            const char *gap = strstr(line + 8, "  ");
            ck_assert(gap && gap < line + strcspn(line, "\n"));
            snprintf(names[count++], sizeof names[0], "%.*s", (int)(gap - line - 8), line + 8);
        }
    }
    ck_assert_uint_gt(count, 20);
    for (size_t i = 0; i < count; i++) {
        json_t *root;
        ck_assert_int_eq(kedge("%s -h --format json", names[i]), 0);
        const char *arguments = json_string_value(json_object_get(data_of(&root), "arguments"));
        snprintf(usage, sizeof usage, "\nkedge %s%s%s\n", names[i], arguments[0] ? " " : "", arguments);
        json_decref(root);
        ck_assert_msg(has_text("docs/cli.md", usage), "docs/cli.md lacks the line: %s", usage);
    }
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cli record");
    TCase *t = tcase_create("record");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, test_list_and_show);
    tcase_add_test(t, test_damaged_store);
    tcase_add_test(t, test_receipts);
    tcase_add_test(t, test_consistency);
    tcase_add_test(t, test_audit);
    tcase_add_test(t, test_audit_says_no);
    tcase_add_loop_test(t, test_sim, 0, sizeof specs / sizeof specs[0]);
    tcase_add_test(t, test_sim_repeats);
    tcase_add_test(t, test_doctor);
    tcase_add_test(t, test_new_state_says_nothing);
    tcase_add_test(t, test_doctor_of_a_site);
    tcase_add_test(t, test_poc_interrupted);
    tcase_add_test(t, test_capped_job);
    tcase_add_test(t, test_page);
    suite_add_tcase(s, t);
    return run_suite(s);
}
