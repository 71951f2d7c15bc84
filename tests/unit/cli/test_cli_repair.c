/* kedge ledger fsck and repair as their users meet them: over a small record that is damaged in one way after
 * the other, mended from a backup, and judged by the auditor. */
#include <check.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/store/kv/kv.h"
#include "common/base/os/file.h"
#include "common/base/rng.h"
#include "tests/fixtures/federation.h"
#include "tests/fixtures/run.h"
#include "tests/unit/cli/support.h"

static void copy(const char *from, const char *to)
{
    char command[512];
    snprintf(command, sizeof command, "rm -rf %s && cp -r %s %s", to, from, to);
    ck_assert_int_eq(system(command), 0);
}

static void make_record(void)
{
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    struct kedge_kv_lmdb_options options = {.create =
                                                true}; /* the coordinator's own, as any start makes it */
    struct kedge_kv *kv;
    ck_assert_int_eq(kedge_kv_lmdb_open(at("fx/state/coordinator.lmdb"), &options, &kv, NULL), KEDGE_OK);
    kedge_kv_close(kv);
    copy(at("fx"), at("bk"));
}

/* The first file below folder. */
static const char *first_file(const char *folder)
{
    static char path[KEDGE_PATH_MAX];
    char command[512];
    snprintf(command, sizeof command, "find %s -type f | sort | head -1", folder);
    FILE *p = popen(command, "r");
    ck_assert_ptr_nonnull(p);
    ck_assert_ptr_nonnull(fgets(path, sizeof path, p));
    pclose(p);
    path[strcspn(path, "\n")] = '\0';
    return path;
}

/* Turns a bit in each copy of the text. */
static void flip(const char *path, const char *text)
{
    struct kedge_buf b;
    size_t len = strlen(text), found = 0;
    kedge_buf_init(&b, 64 << 20);
    ck_assert_int_eq(kedge_file_read(path, &b, NULL), KEDGE_OK);
    int fd = open(path, O_WRONLY);
    for (size_t i = 0; i + len <= b.len; i++) {
        if (memcmp(b.ptr + i, text, len) == 0) {
            uint8_t byte = b.ptr[i] ^ 1;
            ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)i), 1);
            found++;
        }
    }
    close(fd);
    ck_assert_uint_gt(found, 0);
    kedge_buf_deinit(&b);
}

static void make_noise(const char *path, uint64_t from)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 9, KEDGE_RNG_TEST, 0, 0);
    int fd = open(path, O_WRONLY);
    for (uint64_t i = from; i < (uint64_t)kedge_file_size(path); i++) {
        uint8_t byte = (uint8_t)kedge_rng_below(&rng, 256);
        ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)i), 1);
    }
    close(fd);
}

static const char *verdict_of(int want_exit, const char *arguments)
{
    static char verdict[32];
    json_t *root;
    int code = kedge("ledger fsck %s --format json", arguments);
    ck_assert_msg(code == want_exit, "%d\n%s%s", code, out, err_out);
    snprintf(verdict, sizeof verdict, "%s", json_string_value(json_object_get(data_of(&root), "verdict")));
    json_decref(root);
    return verdict;
}

START_TEST(test_fsck)
{
    char path[KEDGE_PATH_MAX];
    make_record();
    ck_assert_str_eq(verdict_of(0, at("fx")), "clean");
    ck_assert_str_eq(verdict_of(0, at("fx/state")), "clean");
    ck_assert_str_eq(verdict_of(0, at("fx/state/tenants/org-a")), "clean");
    ck_assert_str_eq(verdict_of(0, at("fx/state/main/ledger.lmdb")), "clean");
    ck_assert_int_eq(kedge("ledger fsck --state %s", at("fx/state")), 0);
    ck_assert_ptr_nonnull(strstr(out, "No damage"));
    ck_assert_int_eq(kedge("ledger fsck %s org-b main", at("fx/state")), 0);
    ck_assert_ptr_null(strstr(out, "org-a"));
    ck_assert_int_eq(kedge("ledger fsck %s org-x", at("fx/state")), 3);
    ck_assert_int_eq(kedge("ledger fsck %s", at("none")), 3);
    ck_assert_int_eq(kedge("ledger fsck %s --deep", at("fx/state")), 2);
    /* what is no damage, and does not belong there either */
    put_file(at("fx/state/main/blobs/notes.txt"), "by hand");
    ck_assert_str_eq(verdict_of(1, at("fx")), "strays");
    ck_assert_int_eq(unlink(at("fx/state/main/blobs/notes.txt")), 0);
    ck_assert_int_eq(rename(at("fx/state/high-water/org-a"), at("mark")), 0);
    ck_assert_str_eq(verdict_of(1, at("fx")), "strays");
    ck_assert_ptr_nonnull(strstr(out, "\"part\":\"high-water\""));
    ck_assert_int_eq(rename(at("mark"), at("fx/state/high-water/org-a")), 0);
    /* damage by table and index, by file */
    flip(at("fx/state/tenants/org-a/ledger.lmdb/data.mdb"), "site-enrolled/s");
    ck_assert_int_eq(kedge("ledger fsck %s org-a", at("fx/state")), 5);
    ck_assert_ptr_nonnull(strstr(out, ": idem "));
    ck_assert_ptr_nonnull(strstr(out, "kedge ledger repair"));
    ck_assert_int_eq(kedge("ledger fsck %s org-b", at("fx/state")), 0); /* a neighbour is none the worse */
    snprintf(path, sizeof path, "%s", first_file(at("fx/state/tenants/org-b/blobs")));
    make_noise(path, 0);
    ck_assert_int_eq(kedge("ledger fsck %s org-b", at("fx/state")), 5);
    ck_assert_ptr_nonnull(strstr(out, path));
    make_noise(at("fx/state/main/ledger.lmdb/data.mdb"), 0);
    ck_assert_str_eq(verdict_of(5, at("fx")), "damaged");
    remove_scratch();
}
END_TEST

/* What is gone as a whole, which no look at what is left can tell. */
START_TEST(test_fsck_misses)
{
    static const char *const gone[] = {"tenants/org-a", "tenants/org-a/tenant.json",
                                       "tenants/org-a/ledger.lmdb", "main/ledger.lmdb", "coordinator.lmdb"};
    char path[KEDGE_PATH_MAX], store[KEDGE_PATH_MAX];
    bool is_log = strncmp(gone[_i], "coord", 5) != 0;
    make_record();
    snprintf(path, sizeof path, "fx/state/%s", gone[_i]);
    snprintf(store, sizeof store, "%s", at(path));
    ck_assert_int_eq(rename(store, at("away")), 0);
    ck_assert_str_eq(verdict_of(is_log ? 5 : 1, at("fx")), is_log ? "damaged" : "strays");
    ck_assert_msg(strstr(out, gone[_i]) != NULL, "%s", out);
    remove_scratch();
}
END_TEST

START_TEST(test_fsck_tenant_file)
{
    static const char *const texts[] = {"", "{}", "{\"tenant\": \"org-a\", \"salt\": \"12\"}"};
    make_record();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        put_file(at("fx/state/tenants/org-a/tenant.json"), texts[i]);
        ck_assert_str_eq(verdict_of(5, at("fx")), "damaged");
        ck_assert_ptr_nonnull(strstr(out, "org-a/tenant.json"));
    }
    /* what an interrupted tenant.add leaves, and a mark in the making */
    remove_scratch();
    make_record();
    put_file(at("fx/state/high-water/org-x"),
             "kedge high-water 1\nfx.kedge.local/org-x\n0\n"
             "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n");
    put_file(at("fx/state/high-water/org-a.1.2.tmp"), "kedge");
    ck_assert_str_eq(verdict_of(0, at("fx")), "clean");
    remove_scratch();
}
END_TEST

START_TEST(test_repair)
{
    static const char *const logs[] = {"org-a", "main"};
    static const char *const folders[] = {"fx/state/tenants/org-a", "fx/state/main"};
    char file[KEDGE_PATH_MAX], blob[KEDGE_PATH_MAX];
    json_t *root;
    make_record();
    snprintf(file, sizeof file, "%s/ledger.lmdb/data.mdb", at(folders[_i]));
    make_noise(file, 8192);
    snprintf(blob, sizeof blob, "%s/blobs", at(folders[_i]));
    ck_assert_int_eq(unlink(first_file(blob)), 0);
    ck_assert_int_ne(kedge("audit verify %s --trust %s", at("fx"), at("fx/trust.json")), 0);
    ck_assert_int_eq(kedge("ledger repair %s %s --from %s --format json", at("fx/state"), logs[_i], at("bk")),
                     0);
    ck_assert_int_eq(json_integer_value(json_object_get(data_of(&root), "blobs_brought")), 1);
    json_decref(root);
    ck_assert_int_eq(kedge("ledger fsck %s", at("fx")), 0);
    ck_assert_int_eq(kedge("audit verify %s --trust %s", at("fx"), at("fx/trust.json")), 0);
    ck_assert_int_eq(kedge("audit replay %s --trust %s", at("fx"), at("fx/trust.json")), 0);
    remove_scratch();
}
END_TEST

START_TEST(test_repair_refuses)
{
    make_record();
    const char *state = at("fx/state"), *backup = at("bk");
    ck_assert_int_eq(kedge("ledger repair %s org-a", state), 2);
    ck_assert_int_eq(kedge("ledger repair --from %s", backup), 2);
    ck_assert_int_eq(kedge("ledger repair %s org-x --from %s", state, backup), 3);
    ck_assert_int_eq(kedge("ledger repair %s No! --from %s", state, backup), 2);
    ck_assert_int_eq(kedge("ledger repair %s org-a --from %s", state, at("none")), 3);
    /* another log's folder */
    ck_assert_int_eq(kedge("ledger repair %s org-a --from %s", state, at("bk/state/tenants/org-b")), 1);
    ck_assert(has_text(at("stderr"), "org-b"));
    /* a copy that is damaged itself */
    make_noise(at("bk/state/tenants/org-a/ledger.lmdb/data.mdb"), 8192);
    ck_assert_int_eq(kedge("ledger repair %s org-a --from %s", state, backup), 1);
    ck_assert(has_text(at("stderr"), "damaged itself"));
    ck_assert_int_eq(kedge("ledger fsck %s", state), 0); /* nothing was changed */
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cli-repair");
    TCase *t = tcase_create("repair");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, test_fsck);
    tcase_add_loop_test(t, test_fsck_misses, 0, 5);
    tcase_add_test(t, test_fsck_tenant_file);
    tcase_add_loop_test(t, test_repair, 0, 2);
    tcase_add_test(t, test_repair_refuses);
    suite_add_tcase(s, t);
    return run_suite(s);
}
