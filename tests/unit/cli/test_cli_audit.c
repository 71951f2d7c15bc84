/* kedge audit as an auditor meets it: the files that it leaves, where models come from. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/os/file.h"
#include "crypto/hash.h"
#include "tests/fixtures/federation.h"
#include "tests/fixtures/run.h"
#include "tests/unit/cli/support.h"

static const char *text_of(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));
    return s ? s : "";
}

/* Lines of a JSON Lines file; counts those whose verdict is not `verdict`. */
static size_t read_lines(const char *path, const char *verdict, size_t *ret_others, char first_code[64])
{
    char line[4096];
    size_t count = 0;
    FILE *f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    *ret_others = 0;
    while (fgets(line, sizeof line, f)) {
        json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        ck_assert_msg(o != NULL, "line %zu is no JSON object", count + 1);
        ck_assert_uint_eq(strlen(text_of(o, "leaf")), KEDGE_HASH_HEX_LEN);
        ck_assert(json_is_integer(json_object_get(o, "index")) && *text_of(o, "kind"));
        const json_t *codes = json_object_get(o, "codes");
        ck_assert_uint_eq(json_array_size(codes) > 0, strcmp(text_of(o, "verdict"), "no") == 0);
        if (strcmp(text_of(o, "verdict"), verdict) != 0 && (*ret_others)++ == 0) {
            const char *c = json_string_value(json_array_get(codes, 0));
            snprintf(first_code, 64, "%s", c ? c : "");
        }
        json_decref(o);
        count++;
    }
    fclose(f);
    return count;
}

/* What nothing names is a fault, but not while a coordinator has the folder; it has it before its door opens
 * and while it is too busy to answer there. */
START_TEST(test_beside_a_coordinator_that_does_not_answer)
{
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    ck_assert_int_eq(kedge_dir_make(at("fx/state/tenants/org-a/blobs/2d"), 0700, NULL), KEDGE_OK);
    put_file(at("fx/state/tenants/org-a/blobs/2d/"
                "711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"),
             "x");
    ck_assert_int_eq(kedge_dir_make(at("fx/state/coordinator.lmdb"), 0700, NULL), KEDGE_OK);
    int lock = kedge_file_lock(at("fx/state/coordinator.lmdb/kedge.lock"), NULL);
    ck_assert_int_ge(lock, 0);
    ck_assert_msg(kedge("audit verify %s --trust %s", at("fx"), at("fx/trust.json")) == 0, "%s", out);
    close(lock);
    ck_assert_int_eq(kedge("audit verify %s --trust %s", at("fx"), at("fx/trust.json")), 1);
    remove_scratch();
}
END_TEST

START_TEST(test_files_of_an_audit)
{
    char code[64];
    size_t others;
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    fx_federation(at("bad"), FX_OTHER_SITE_SIGNS);
    const char *lines = at("lines"), *report = at("report.md");
    for (int replay = 0; replay < 2; replay++) {
        const char *verb = replay ? "replay" : "verify";
        ck_assert_int_eq(kedge("audit %s %s --trust %s --statements %s --report %s", verb, at("fx"),
                               at("fx/trust.json"), lines, report),
                         0);
        ck_assert_uint_gt(read_lines(lines, "ok", &others, code), 70);
        ck_assert_uint_eq(others, 0);
        ck_assert(has_text(report, "VERIFIED.") && has_text(report, "audit") && has_text(report, verb));
        ck_assert(has_text(report, "## Trust anchors") && has_text(report, "admin key: "));
        ck_assert(has_text(report, "SHA-256 of the signed checkpoint"));
        ck_assert(has_text(report, "models-re-executed: that the models are what") == !replay);
        ck_assert(has_text(report, "digest of all results") == replay);
        ck_assert(access(at("lines.partial"), F_OK) != 0);
    }
    ck_assert_int_eq(kedge("audit verify %s --trust %s --statements %s --report %s", at("bad"),
                           at("bad/trust.json"), lines, report),
                     1);
    ck_assert_uint_gt(read_lines(lines, "ok", &others, code), 70);
    ck_assert_uint_ge(others, 1);
    ck_assert_str_eq(code, "signature");
    ck_assert(has_text(report, "NOT VERIFIED.") && has_text(report, "(signature): "));
    ck_assert(has_text(report, "\n  - 1 more like it\n"));
    ck_assert_ptr_nonnull(strstr(out, "[signature]\n  1 more like it\n"));
    ck_assert_int_eq(kedge("audit verify %s --statements %s --report %s", at("fx"), lines, report), 1);
    ck_assert_uint_gt(read_lines(lines, "self-consistent", &others, code), 70);
    ck_assert_uint_eq(others, 0);
    ck_assert(has_text(report, "SELF-CONSISTENT ONLY."));
    remove_scratch();
}
END_TEST

START_TEST(test_files_that_cannot_be_written)
{
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    ck_assert_int_eq(kedge("audit verify %s --statements %s", at("fx"), at("no/such/folder")), 3);
    ck_assert(strstr(err_out, "no/such/folder") != NULL);
    ck_assert_int_eq(kedge("audit verify %s --report %s", at("fx"), at("no/such/report")), 3);
    put_file(at("lines"), "kept\n");
    ck_assert_int_eq(kedge("audit verify %s --statements %s", at("nothing"), at("lines")), 3);
    ck_assert(has_text(at("lines"), "kept")); /* nothing was judged, nothing was written */
    ck_assert(access(at("lines.partial"), F_OK) != 0);
    remove_scratch();
}
END_TEST

/* ---- explain ---- */

static size_t columns_of(const char *line, size_t len)
{
    size_t columns = 0;
    for (size_t i = 0; i < len; i++) {
        columns += ((uint8_t)line[i] & 0xc0) != 0x80;
    }
    return columns;
}

/* A folder that calls itself a copy is judged as one, and said to be one. */
START_TEST(test_explain_copy)
{
    json_t *root;
    char model[256];
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    snprintf(model, sizeof model, "%s", at("flex-g1.safetensors"));
    ck_assert_int_eq(rename(at("fx/models/flex-g1.safetensors"), model), 0);
    fx_replica(at("fx"), "org-b");
    ck_assert_int_eq(kedge("audit explain %s %s --trust %s", model, at("fx"), at("fx/trust.json")), 0);
    ck_assert_ptr_nonnull(strstr(out, "This copy is verified"));
    ck_assert_ptr_null(strstr(out, "The record is verified"));
    ck_assert_int_eq(
        kedge("audit explain %s %s --trust %s --format json", model, at("fx"), at("fx/trust.json")), 0);
    const json_t *data = data_of(&root); /* json_is_true evaluates what it is given twice */
    ck_assert(json_is_true(json_object_get(data, "copy")));
    json_decref(root);
    remove_scratch();
}
END_TEST

START_TEST(test_explain_release)
{
    json_t *root;
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    const char *trust = at("fx/trust.json"), *model = at("fx/models/flex-g1.safetensors");
    ck_assert_int_eq(kedge("audit explain %s %s --trust %s", model, at("fx"), trust), 0);
    ck_assert_int_eq(strncmp(out, "model ", 6), 0);
    static const char *const parts[] = {"released as flex-g1.safetensors, group 1",
                                        "job flex",
                                        "org-a joined; org-a[",
                                        "contributions",
                                        "decisions that put sites into group 1",
                                        "round 2, opened in main[",
                                        "step flexcfl-mixing/v1",
                                        "energy unknown",
                                        "checkpoint of ",
                                        "verified under the trusted keys"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        ck_assert_msg(strstr(out, parts[i]) != NULL, "no \"%s\" in\n%s", parts[i], out);
    }
    for (const char *p = out; *p;) {
        size_t len = strcspn(p, "\n");
        ck_assert_msg(columns_of(p, len) <= 100, "%.*s", (int)len, p);
        p += len + (p[len] == '\n');
    }
    ck_assert_int_eq(kedge("audit explain %s %s --trust %s --format json", model, at("fx"), trust), 0);
    const json_t *data = data_of(&root), *tree = json_object_get(data, "provenance");
    ck_assert_str_eq(text_of(data, "verdict"), "yes");
    ck_assert_str_eq(text_of(tree, "role"), "release");
    ck_assert_uint_eq(json_array_size(json_object_get(tree, "rounds")), 3);
    double sum = 0;
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(tree, "tenants"), i, row)
    {
        sum += json_number_value(json_object_get(row, "mean_share_percent"));
    }
    ck_assert(sum > 99.99 && sum < 100.01);
    const json_t *last = json_array_get(json_object_get(tree, "rounds"), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(last, "round")), 2);
    json_decref(root);
    remove_scratch();
}
END_TEST

START_TEST(test_explain_others)
{
    json_t *root;
    char after[KEDGE_HASH_HEX_LEN + 1], first[KEDGE_HASH_HEX_LEN + 1], base[KEDGE_HASH_HEX_LEN + 1];
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    const char *trust = at("fx/trust.json");
    ck_assert_int_eq(kedge("audit explain %s %s --trust %s --format json",
                           at("fx/models/plain-g0.safetensors"), at("fx"), trust),
                     0);
    const json_t *tree = json_object_get(data_of(&root), "provenance");
    const json_t *round = json_array_get(json_object_get(tree, "rounds"), 1);
    snprintf(after, sizeof after, "%s", text_of(json_object_get(round, "step"), "after"));
    snprintf(base, sizeof base, "%s", text_of(json_object_get(round, "aggregate"), "base"));
    snprintf(first, sizeof first, "%s", text_of(json_object_get(tree, "job"), "initial_model"));
    ck_assert_str_eq(base, first);
    json_decref(root);
    ck_assert_int_eq(kedge("audit explain %s %s --trust %s", after, at("fx"), trust), 0);
    ck_assert(strstr(out, "not released: round-result of group 0") && strstr(out, "turned away, BOUND"));
    ck_assert(strstr(out, "round 1, ") && !strstr(out, "round 2, "));
    ck_assert_int_eq(kedge("audit explain %s %s --trust %s", first, at("fx"), trust), 0);
    ck_assert(strstr(out, "not released: initial-model") && !strstr(out, "contributions"));
    /* what the record does not know, and records that do not hold */
    put_file(at("other"), "not a model of this record");
    ck_assert_int_eq(kedge("audit explain %s %s --trust %s", at("other"), at("fx"), trust), 1);
    ck_assert(strstr(out, "does not know this model") != NULL);
    ck_assert_int_eq(kedge("audit explain %s %s", after, at("fx")), 1);
    ck_assert(strstr(out, "Self-consistent only") != NULL);
    ck_assert_int_eq(kedge("audit explain %s %s", at("none"), at("fx")), 3);
    ck_assert_int_eq(kedge("audit explain %s", after), 2);
    ck_assert_int_eq(kedge("audit explain %s %s", after, at("none")), 3);
    remove_scratch();
}
END_TEST

/* ---- what was shown ---- */

/* The levels of an array of claims, joined by blanks. */
static const char *levels_of(const json_t *data, const char *name)
{
    static char text[200];
    size_t i;
    json_t *claim;
    text[0] = '\0';
    json_array_foreach(json_object_get(data, name), i, claim)
    {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 text_of(claim, "level"));
    }
    return text;
}

/* A verdict claims what was shown, and names what was not with what would show it. */
START_TEST(test_says_no_more_than_was_shown)
{
    json_t *root;
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    const char *trust = at("fx/trust.json"), *seen = at("main.note");
    fx_checkpoint(at("fx"), NULL, seen);
    ck_assert_int_eq(kedge("audit verify %s --trust %s", at("fx"), trust), 0);
    ck_assert(!strstr(out, "left out or counted twice") && !strstr(out, "nothing was altered"));
    ck_assert(strstr(out, "Verified: this copy is consistent and signed by the trusted keys: ") != NULL);
    ck_assert(strstr(out, "Not shown: that nothing was left out") && strstr(out, "--seen CHECKPOINT"));
    ck_assert(strstr(out, "Not shown: that the models are") && strstr(out, "kedge audit replay"));
    ck_assert(!strstr(out, "complete as of") && strstr(out, "  checked by libsodium"));
    ck_assert_int_eq(kedge("audit verify %s --trust %s --format json", at("fx"), trust), 0);
    const json_t *data = data_of(&root);
    ck_assert_str_eq(levels_of(data, "shown"), "consistent signed");
    ck_assert_str_eq(levels_of(data, "not_shown"), "complete-as-of models-re-executed");
    ck_assert_str_eq(text_of(data, "signatures"), "libsodium");
    json_decref(root);
    ck_assert_int_eq(
        kedge("audit replay %s --trust %s --seen %s --fast --report %s", at("fx"), trust, seen, at("r.md")),
        0);
    ck_assert(strstr(out, "Shown: complete as of checkpoint ") && strstr(out, seen));
    ck_assert(strstr(out, "Shown: models re-executed: ") && strstr(out, "--fast: first pass only"));
    ck_assert(strstr(out, "Not shown: that libsodium accepts") != NULL);
    ck_assert_int_eq(
        kedge("audit replay %s --trust %s --seen %s --format json --fast", at("fx"), trust, seen), 0);
    data = data_of(&root);
    ck_assert_str_eq(levels_of(data, "shown"), "consistent signed complete-as-of models-re-executed");
    ck_assert_str_eq(levels_of(data, "not_shown"), "signed");
    ck_assert_str_eq(text_of(data, "signatures"), "first-pass");
    json_decref(root);
    remove_scratch();
}
END_TEST

/* ---- archives ---- */

START_TEST(test_archives)
{
    char command[1024];
    static const struct {
        const char *name, *options;
    } kinds[] = {{"r.tar", "-cf"}, {"r.tar.gz", "-czf"}, {"r.tar.zst", "--zstd -cf"}};
    make_scratch();
    ck_assert_int_eq(kedge_dir_make(at("tmp"), 0700, NULL), KEDGE_OK);
    fx_federation(at("fx"), FX_NONE);
    ck_assert_int_eq(setenv("TMPDIR", at("tmp"), 1), 0);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const char *archive = at(kinds[i].name);
        snprintf(command, sizeof command, "tar -C '%s' %s '%s' fx 2>/dev/null", scratch, kinds[i].options,
                 archive);
        if (system(command) != 0) {
            printf("skipped: this machine's tar cannot make %s\n", kinds[i].name);
            continue;
        }
        ck_assert_int_eq(
            kedge("audit verify %s --trust %s --report %s", archive, at("fx/trust.json"), at("report.md")),
            0);
        ck_assert(has_text(at("report.md"), "VERIFIED."));
        ck_assert_int_eq(kedge("audit replay %s --trust %s", archive, at("fx/trust.json")), 0);
        ck_assert_int_eq(kedge("audit explain %s %s --trust %s", at("fx/models/flex-g0.safetensors"), archive,
                               at("fx/trust.json")),
                         0);
        ck_assert_int_eq(rmdir(at("tmp")), 0); /* nothing is left in it */
        ck_assert_int_eq(kedge_dir_make(at("tmp"), 0700, NULL), KEDGE_OK);
    }
    put_file(at("no.tar"), "no archive");
    ck_assert_int_eq(kedge("audit verify %s --trust %s", at("no.tar"), at("fx/trust.json")), 3);
    ck_assert(strstr(err_out, "not a whole tar archive") != NULL);
    ck_assert_int_eq(unsetenv("TMPDIR"), 0);
    remove_scratch();
}
END_TEST

/* ---- copies of one tenant ---- */

START_TEST(test_one_tenants_copy)
{
    char code[64];
    size_t others;
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    fx_replica(at("fx"), "org-a");
    const char *trust = at("fx/trust.json"), *lines = at("lines"), *report = at("report.md");
    ck_assert_int_eq(kedge("audit verify %s --trust %s --tenant org-a --statements %s --report %s", at("fx"),
                           trust, lines, report),
                     0);
    ck_assert(strstr(out, "not checked: the ledger of \"org-b\" is not here") != NULL);
    ck_assert(has_text(report, "(not-checked): ") && has_text(report, "VERIFIED."));
    ck_assert_uint_gt(read_lines(lines, "ok", &others, code), 50);
    ck_assert_uint_eq(others, 5); /* checkpoints of org-b, each "not-checked" */
    ck_assert(has_text(lines, "\"kind\":\"withheld\"") && has_text(lines, "\"verdict\":\"not-checked\""));
    ck_assert_int_eq(kedge("audit replay %s --trust %s --tenant org-a", at("fx"), trust), 0);
    ck_assert(strstr(out, "decisions over inputs that are not here") != NULL);
    ck_assert_int_eq(kedge("audit verify %s --trust %s", at("fx"), trust), 1);
    ck_assert_int_eq(kedge("audit verify %s --trust %s --tenant org-b", at("fx"), trust), 1);
    ck_assert_int_eq(kedge("audit verify %s --trust %s --tenant Nobody!", at("fx"), trust), 2);
    /* Where a model comes from is told without saying whose copy it is. */
    ck_assert_int_eq(
        kedge("audit explain %s %s --trust %s", at("fx/models/plain-g0.safetensors"), at("fx"), trust), 0);
    ck_assert_msg(strstr(out, "not anchored outside yet") != NULL, "%s", out);
    ck_assert(strstr(out, "org-a: ") != NULL && strstr(out, "org-b") == NULL);
    ck_assert(strstr(out, "(ledger not here): ") != NULL);
    ck_assert_int_eq(kedge("audit explain %s %s --trust %s --format json",
                           at("fx/models/plain-g0.safetensors"), at("fx"), trust),
                     0);
    ck_assert(strstr(out, "\"anchors\": []") != NULL || strstr(out, "\"anchors\":[]") != NULL);
    /* What it holds goes out, and says what it does not. */
    ck_assert_int_eq(kedge("audit export %s --out %s --trust %s --keys %s --tenant org-a", at("fx"),
                           at("export"), trust, at("keys")),
                     0);
    ck_assert(strstr(out, "A copy with the ledger of org-a") != NULL);
    ck_assert(has_text(at("export/verify-report.json"), "ledgers of other tenants are not in it"));
    ck_assert(!has_text(at("export/verify-report.json"), "org-b"));
    ck_assert_int_eq(
        kedge("audit verify-export %s --trust %s --keys %s", at("export"), trust, at("export/keys")), 0);
    ck_assert_int_eq(kedge("audit export %s --out %s --trust %s --keys %s --tenant org-b", at("fx"),
                           at("none"), trust, at("keys")),
                     3);
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cli-audit");
    TCase *t = tcase_create("audit");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, test_files_of_an_audit);
    tcase_add_test(t, test_beside_a_coordinator_that_does_not_answer);
    tcase_add_test(t, test_files_that_cannot_be_written);
    tcase_add_test(t, test_explain_release);
    tcase_add_test(t, test_explain_copy);
    tcase_add_test(t, test_explain_others);
    tcase_add_test(t, test_says_no_more_than_was_shown);
    tcase_add_test(t, test_archives);
    tcase_add_test(t, test_one_tenants_copy);
    suite_add_tcase(s, t);
    return run_suite(s);
}
