/* kedge ledger tiles as its users meet it: the files of a log and of one that has grown, and the folders that
 * it does not touch. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chain/log/checkpoint.h"
#include "chain/log/tile.h"
#include "common/base/os/file.h"
#include "tests/fixtures/federation.h"
#include "tests/fixtures/run.h"
#include "tests/unit/cli/support.h"

static struct kedge_buf file_of(const char *name)
{
    struct kedge_buf b;
    kedge_buf_init(&b, KEDGE_BUNDLE_BYTES_MAX);
    ck_assert_msg(kedge_file_read(at(name), &b, NULL) == KEDGE_OK, "%s", name);
    return b;
}

/* The log of a folder (fewer than 256 entries): its tile has the checkpoint's root, its entries the tile's
 * hashes. Returns its size. */
static uint64_t check_log(const char *folder, const char *origin, bool entries)
{
    char name[128];
    snprintf(name, sizeof name, "%s/checkpoint", folder);
    struct kedge_buf bytes = file_of(name), tile, bundle;
    struct kedge_note note;
    struct kedge_checkpoint cp;
    ck_assert_int_eq(kedge_note_parse(kedge_buf_view(&bytes), &note), KEDGE_OK);
    ck_assert_int_eq(kedge_checkpoint_parse(note.text, &cp), KEDGE_OK);
    ck_assert(kedge_view_eq(cp.origin, kedge_view_str(origin)));
    ck_assert(cp.size > 0 && cp.size < KEDGE_TILE_WIDTH);
    snprintf(name, sizeof name, "%s/tile/0/000.p/%u", folder, (unsigned)cp.size);
    tile = file_of(name);
    ck_assert_uint_eq(tile.len, cp.size * KEDGE_HASH_LEN);
    struct kedge_frontier f = {0};
    struct kedge_hash hash;
    for (uint64_t i = 0; i < cp.size; i++) {
        memcpy(hash.b, tile.ptr + i * KEDGE_HASH_LEN, KEDGE_HASH_LEN);
        ck_assert_int_eq(kedge_frontier_append(&f, &hash), KEDGE_OK);
    }
    kedge_frontier_root(&f, &hash);
    ck_assert(kedge_hash_eq(&hash, &cp.root));
    snprintf(name, sizeof name, "%s/tile/entries/000.p/%u", folder, (unsigned)cp.size);
    ck_assert(kedge_file_exists(at(name)) == entries);
    if (entries) {
        struct kedge_view views[KEDGE_TILE_WIDTH];
        bundle = file_of(name);
        ck_assert_int_eq(kedge_bundle_decode(kedge_buf_view(&bundle), cp.size, views), KEDGE_OK);
        for (uint64_t i = 0; i < cp.size; i++) {
            kedge_merkle_leaf(views[i], &hash);
            ck_assert_mem_eq(hash.b, tile.ptr + i * KEDGE_HASH_LEN, KEDGE_HASH_LEN);
        }
        kedge_buf_deinit(&bundle);
    }
    uint64_t size = cp.size;
    kedge_buf_deinit(&tile);
    kedge_buf_deinit(&bytes);
    return size;
}

static long long number_of(const char *key)
{
    json_t *root;
    long long n = (long long)json_integer_value(json_object_get(data_of(&root), key));
    json_decref(root);
    return n;
}

START_TEST(test_a_log_becomes_files)
{
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    const char *state = at("fx/state");
    ck_assert_int_eq(kedge("ledger tiles org-a --out %s --state %s", at("deep/a"), state), 0);
    uint64_t size = check_log("deep/a", "fx.kedge.local/org-a", true);
    struct stat st;
    ck_assert(stat(at("deep/a"), &st) == 0 && (st.st_mode & 0777) == 0700);
    ck_assert(!kedge_file_exists(at("deep/a.part")));
    /* the entries of the main chain only when they are asked for */
    ck_assert_int_eq(kedge("ledger tiles main --out %s/ --state %s", at("m"), state), 0);
    ck_assert_ptr_nonnull(strstr(out, "the entries were left out"));
    (void)check_log("m", "fx.kedge.local/main", false);
    ck_assert_int_eq(kedge("ledger tiles main --out %s --entries yes --state %s", at("m"), state), 0);
    (void)check_log("m", "fx.kedge.local/main", true);
    ck_assert_int_eq(kedge("ledger tiles org-b --out %s --entries no --state %s", at("b"), state), 0);
    (void)check_log("b", "fx.kedge.local/org-b", false);
    /* once more: nothing to do; a file that has changed is put right */
    ck_assert_int_eq(kedge("ledger tiles org-a --out %s --state %s --format json", at("deep/a"), state), 0);
    ck_assert(number_of("written") == 0 && number_of("kept") == 3 && number_of("size") == (long long)size);
    char tile[64];
    snprintf(tile, sizeof tile, "deep/a/tile/0/000.p/%u", (unsigned)size);
    fx_flip(at(tile), 40);
    ck_assert_int_eq(kedge("ledger tiles org-a --out %s --state %s --format json", at("deep/a"), state), 0);
    ck_assert_int_eq(number_of("written"), 1);
    (void)check_log("deep/a", "fx.kedge.local/org-a", true);
    remove_scratch();
}
END_TEST

/* A checkpoint as somebody else may have left it: its signature is not what is judged here. */
static void put_checkpoint(const char *folder, const char *origin, unsigned size)
{
    static const char empty_root[] = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="; /* SHA-256("") */
    char name[128], text[512];
    ck_assert_int_eq(kedge_dir_make(at(folder), 0700, NULL), KEDGE_OK);
    snprintf(name, sizeof name, "%s/checkpoint", folder);
    snprintf(text, sizeof text, "%s\n%u\n%s\n\n\xe2\x80\x94 x AAAAAAA=\n", origin, size, empty_root);
    put_file(at(name), text);
}

START_TEST(test_what_is_not_this_log_is_left_alone)
{
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    const char *state = at("fx/state");
    put_checkpoint("other", "fx.kedge.local/org-b", 0);
    put_checkpoint("ahead", "fx.kedge.local/org-a", 100000);
    put_checkpoint("fork", "fx.kedge.local/org-a", 2);
    put_checkpoint("start", "fx.kedge.local/org-a", 0);
    ck_assert_int_eq(kedge_dir_make(at("broken"), 0700, NULL), KEDGE_OK);
    put_file(at("broken/checkpoint"), "no checkpoint\n");
    ck_assert_int_eq(kedge_dir_make(at("busy.part"), 0700, NULL), KEDGE_OK);
    put_file(at("file"), "x");
    static const struct {
        const char *folder;
        int code;
        const char *says;
    } cases[] = {
        {"other", 1, "holds the log fx.kedge.local/org-b"},
        {"ahead", 1, "old backup"},
        {"fork", 5, "another root"},
        {"broken", 1, "expected a signed checkpoint"},
        {"fx", 1, "not empty and holds no exported log"},
        {"busy", 1, "under way or was interrupted"},
        {"file", 1, "not a folder"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char tile[64];
        int code = kedge("ledger tiles org-a --out %s --state %s", at(cases[i].folder), state);
        ck_assert_msg(code == cases[i].code, "%s: exit %d", cases[i].folder, code);
        ck_assert_msg(strstr(err_out, cases[i].says) != NULL, "%s: %s", cases[i].folder, err_out);
        snprintf(tile, sizeof tile, "%s/tile", cases[i].folder);
        ck_assert(!kedge_file_exists(at(tile)));
    }
    ck_assert_int_eq(kedge("ledger tiles org-a --out %s --state %s", at("start"), state), 0);
    (void)check_log("start", "fx.kedge.local/org-a", true);
    ck_assert_int_eq(kedge("ledger tiles org-z --out %s --state %s", at("z"), state), 3);
    ck_assert(!kedge_file_exists(at("z")) && !kedge_file_exists(at("z.part")));
    ck_assert_int_eq(kedge("ledger tiles org-a --state %s", state), 2);
    ck_assert_int_eq(kedge("ledger tiles --out %s --state %s", at("z"), state), 2);
    ck_assert_int_eq(kedge("ledger tiles org-a --out %s --entries some --state %s", at("z"), state), 2);
    remove_scratch();
}
END_TEST

#ifdef NO_FOLDER_SYNC
/* The folder above cannot be synced: the export is whole by then, and what stands beside it is nobody's to
 * remove.
 */
START_TEST(test_what_stands_beside_an_export_stays)
{
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    ck_assert_int_eq(kedge_dir_make(at("above"), 0700, NULL), KEDGE_OK);
    put_file(at("above/precious"), "x");
    ck_assert_int_eq(setenv("LD_PRELOAD", NO_FOLDER_SYNC, 1), 0);
    int code = kedge("ledger tiles org-a --out %s --state %s", at("above/log"), at("fx/state"));
    ck_assert_int_eq(unsetenv("LD_PRELOAD"), 0);
    ck_assert_int_eq(code, 3);
    ck_assert_msg(strstr(err_out, "cannot be synced") != NULL, "%s", err_out);
    ck_assert(kedge_file_exists(at("above/precious")));
    (void)check_log("above/log", "fx.kedge.local/org-a", true);
    remove_scratch();
}
END_TEST
#endif

/* A checkpoint with a stranger's line is exported as it is; one that is not the log's is not. */
START_TEST(test_a_checkpoint_of_choice)
{
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    const char *state = at("fx/state");
    ck_assert_int_eq(kedge("ledger tiles org-a --out %s --state %s", at("a"), state), 0);
    struct kedge_buf note = file_of("a/checkpoint"), again;
    kedge_buf_put_str(&note, "\xe2\x80\x94 witness.example AAAAAAA=\n");
    kedge_buf_put_u8(&note, 0);
    put_file(at("cosigned"), (const char *)note.ptr);
    ck_assert_int_eq(
        kedge("ledger tiles org-a --out %s --checkpoint %s --state %s", at("a"), at("cosigned"), state), 0);
    again = file_of("a/checkpoint");
    ck_assert(again.len == note.len - 1 && memcmp(again.ptr, note.ptr, again.len) == 0);
    (void)check_log("a", "fx.kedge.local/org-a", true);
    kedge_buf_deinit(&again);
    ck_assert_int_eq(
        kedge("ledger tiles org-b --out %s --checkpoint %s --state %s", at("b"), at("cosigned"), state), 1);
    ck_assert_ptr_nonnull(strstr(err_out, "no checkpoint that the key of log org-b signed"));
    note.ptr[40] = note.ptr[40] == 'A' ? 'B' : 'A'; /* in the root, another digit of base64 */
    put_file(at("cosigned"), (const char *)note.ptr);
    ck_assert_int_eq(
        kedge("ledger tiles org-a --out %s --checkpoint %s --state %s", at("c"), at("cosigned"), state), 1);
    ck_assert_int_eq(
        kedge("ledger tiles org-a --out %s --checkpoint %s --state %s", at("c"), at("absent"), state), 3);
    ck_assert(!kedge_file_exists(at("b")) && !kedge_file_exists(at("c")));
    kedge_buf_deinit(&note);
    remove_scratch();
}
END_TEST

/* A damaged record gives no files at all, and none of its log is left behind. */
START_TEST(test_a_damaged_log_is_not_exported)
{
    make_scratch();
    fx_federation(at("fx"), FX_NONE);
    const char *data = at("fx/state/tenants/org-a/ledger.lmdb/data.mdb");
    int64_t size = kedge_file_size(data);
    for (int64_t from = 8192; from < size; from += 4096) { /* all pages but LMDB's own first two */
        fx_flip(data, (int)from + 4000);
    }
    int code = kedge("ledger tiles org-a --out %s --state %s", at("a"), at("fx/state"));
    ck_assert_msg(code == 5, "exit %d: %s", code, err_out);
    ck_assert(!kedge_file_exists(at("a")) && !kedge_file_exists(at("a.part")));
    remove_scratch();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cli tiles");
    TCase *t = tcase_create("tiles");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, test_a_log_becomes_files);
    tcase_add_test(t, test_what_is_not_this_log_is_left_alone);
#ifdef NO_FOLDER_SYNC
    tcase_add_test(t, test_what_stands_beside_an_export_stays);
#endif
    tcase_add_test(t, test_a_checkpoint_of_choice);
    tcase_add_test(t, test_a_damaged_log_is_not_exported);
    suite_add_tcase(s, t);
    return run_suite(s);
}
