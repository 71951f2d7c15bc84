/* A ledger damaged in every way there is, built anew from another copy; and the copies that are refused. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/store/blob/guard.h"
#include "chain/store/fsck.h"
#include "chain/store/repair.h"
#include "chain/store/replica.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "ledger_fixture.h"

enum { ENTRIES = 700, BACKUP = 400, BATCH = 10, PAGE = 4096 };

static struct fixture f;
static char here[80], backup[80], store_file[128];

/* Entry N has the key "key-N"; each whose number ends in 7, a blob with its text. */
static int index_of(void *arg, struct kedge_view entry, struct kedge_buf *ret_key,
                    struct kedge_hash *ret_refs, size_t *ret_count)
{
    (void)arg;
    kedge_buf_printf(ret_key, "key-%.*s", (int)entry.len, (const char *)entry.ptr);
    *ret_count = entry.len > 0 && entry.ptr[entry.len - 1] == '7';
    if (*ret_count > 0) {
        kedge_sha256(entry, ret_refs);
    }
    return ret_key->err;
}

static void append_to(struct kedge_ledger *l, struct kedge_blobs *blobs, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i += BATCH) {
        struct kedge_ledger_append items[BATCH];
        char texts[BATCH][32], keys[BATCH][40];
        struct kedge_hash digest;
        for (size_t k = 0; k < BATCH; k++) {
            items[k] = (struct kedge_ledger_append){.entry = entry_text(i + k, texts[k])};
            snprintf(keys[k], sizeof keys[k], "key-%s", texts[k]);
            items[k].idem_key = kedge_view_str(keys[k]);
        }
        ck_assert_int_eq(kedge_blobs_put(blobs, &items[7].entry, 1, &digest, NULL), KEDGE_OK);
        items[7].refs = &digest;
        items[7].ref_count = 1;
        ck_assert_int_eq(kedge_ledger_append(l, items, BATCH, NULL, NULL, NULL), KEDGE_OK);
    }
}

static void copy_folder(const char *from, const char *to)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s && cp -r %s %s", to, from, to);
    ck_assert_int_eq(system(command), 0);
}

/* f.dir/log: the log's folder of ENTRIES entries; f.dir/backup: it as it was at `backup_at` entries. */
static void make_log(uint64_t backup_at)
{
    struct kedge_blobs *blobs;
    fixture_init(&f);
    snprintf(here, sizeof here, "%s/log", f.dir);
    snprintf(backup, sizeof backup, "%s/backup", f.dir);
    snprintf(f.store, sizeof f.store, "%s/log/ledger.lmdb", f.dir);
    snprintf(store_file, sizeof store_file, "%s/data.mdb", f.store);
    ck_assert_int_eq(kedge_blobs_open(here, NULL, &blobs, NULL), KEDGE_OK);
    for (int half = 0; half < 2; half++) {
        f.kv = fixture_lmdb(f.store, true);
        fixture_must_open(&f, true);
        append_to(f.l, blobs, half ? backup_at : 0, half ? ENTRIES : backup_at);
        kedge_ledger_close(f.l);
        kedge_kv_close(f.kv);
        f.l = NULL;
        f.kv = NULL;
        if (half == 0) {
            copy_folder(here, backup);
        }
    }
    kedge_blobs_close(blobs);
}

static int repair(const char *from, bool mark_is_lost, struct kedge_repaired *ret, struct kedge_diag *d)
{
    struct kedge_repair r = {.dir = here,
                             .from = from,
                             .origin = ORIGIN,
                             .key = &f.key,
                             .mark = f.mark,
                             .mark_is_lost = mark_is_lost,
                             .index = index_of};
    return kedge_repair_ledger(&r, ret, d);
}

static void count_finding(void *arg, const struct kedge_fsck_finding *finding)
{
    uint64_t *n = arg;
    *n += finding->severity == KEDGE_FSCK_DAMAGE;
}

struct checked {
    const char *dir;
    bool beside;
};

/* Appends the number of damages. */
static int fsck_in_child(void *arg, struct kedge_buf *ret_out, struct kedge_diag *d)
{
    const struct checked *c = arg;
    char store[128];
    uint64_t n = 0;
    struct kedge_fsck fsck = {.report = count_finding, .arg = &n, .beside = c->beside};
    struct kedge_fsck_ledger ledger = {.dir = store, .mark = f.mark, .origin = ORIGIN, .key = &f.key.public};
    struct kedge_fsck_counts counts = {0};
    struct kedge_buf refs;
    snprintf(store, sizeof store, "%s/ledger.lmdb", c->dir);
    kedge_buf_init(&refs, 1 << 20);
    int err = kedge_fsck_ledger(&fsck, &ledger, &refs, &counts, d);
    struct kedge_fsck_blobs blobs = {.dir = c->dir, .refs = kedge_buf_view(&refs)};
    err = err ? err : kedge_fsck_blobs(&fsck, &blobs, &counts, d);
    kedge_buf_put_u64(ret_out, n);
    return err;
}

/* How much fsck finds; a crash counts as one. */
static uint64_t damages_in(const char *dir)
{
    struct checked c = {dir, false};
    struct kedge_buf out;
    struct kedge_diag d = {.text = ""};
    kedge_buf_init(&out, 8);
    int err = kedge_store_guarded(fsck_in_child, &c, 10000, &out, &d);
    ck_assert_msg(err == KEDGE_OK || err == KEDGE_E_CORRUPT, "%s", d.text);
    uint64_t n = err ? 1 : kedge_load_be64(out.ptr);
    kedge_buf_deinit(&out);
    return n;
}

/* All as it was, and it can be gone on with. */
static void check_whole(uint64_t size)
{
    ck_assert_uint_eq(damages_in(here), 0);
    f.kv = fixture_lmdb(f.store, false);
    fixture_must_open(&f, false);
    ck_assert_uint_eq(kedge_ledger_size(f.l), size);
    for (uint64_t i = 0; i < size; i += 13) {
        char key[40];
        uint64_t index;
        snprintf(key, sizeof key, "key-entry-%llu", (unsigned long long)i);
        ck_assert_int_eq(kedge_ledger_find(f.l, kedge_view_str(key), &index), KEDGE_OK);
        ck_assert_uint_eq(index, i);
    }
    check_is_clean(f.l);
    for (uint64_t i = BATCH; i <= BACKUP; i += BATCH) { /* what was signed before is still told */
        struct kedge_buf note;
        kedge_buf_init(&note, KEDGE_NOTE_MAX);
        ck_assert_int_eq(kedge_ledger_checkpoint_at(f.l, i, &note), KEDGE_OK);
        kedge_buf_deinit(&note);
    }
    ck_assert_int_eq(append_range(f.l, size, size + 3, 3, NULL), KEDGE_OK);
    kedge_ledger_close(f.l);
    kedge_kv_close(f.kv);
    f.l = NULL;
    f.kv = NULL;
}

/* ---- damages ---- */

static void overwrite(uint64_t from, uint64_t to, uint64_t seed)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, seed, KEDGE_RNG_TEST, 0, 0);
    int fd = open(store_file, O_RDWR);
    ck_assert_int_ge(fd, 0);
    for (uint64_t at = from; at < to; at += 8) {
        uint64_t noise = kedge_rng_below(&rng, UINT64_MAX);
        ck_assert_int_eq(pwrite(fd, &noise, 8, (off_t)at), 8);
    }
    close(fd);
}

/* Turns the byte at `offset` from each place of `bytes` in the file, outdated copies and keys included. */
static void flip_after(const void *bytes, size_t len, size_t offset)
{
    struct kedge_buf b;
    size_t found = 0;
    kedge_buf_init(&b, 64 << 20);
    ck_assert_int_eq(kedge_file_read(store_file, &b, NULL), KEDGE_OK);
    int fd = open(store_file, O_RDWR);
    for (size_t at = 0; at + len + offset <= b.len; at++) {
        if (memcmp(b.ptr + at, bytes, len) == 0) {
            uint8_t byte = b.ptr[at + offset] ^ 4;
            ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)(at + offset)), 1);
            found++;
        }
    }
    close(fd);
    ck_assert_uint_gt(found, 0);
    kedge_buf_deinit(&b);
}

static void flip_text(const char *text)
{
    flip_after(text, strlen(text), 1);
}

static void damage(int kind)
{
    uint64_t size = (uint64_t)kedge_file_size(store_file);
    char path[200];
    switch (kind) {
    case 0: /* an entry */
        flip_text("entry-123");
        break;
    case 1: /* an idempotency key */
        flip_text("key-entry-77");
        break;
    case 2:                                          /* a checkpoint */
        flip_after("\0\0\0\0\0\0\0\x32\x01", 9, 12); /* its key, its form: within the root */
        break;
    case 3: /* the first two pages */
        overwrite(0, 2 * PAGE, 1);
        break;
    case 4: /* everything */
        overwrite(0, size, 2);
        break;
    case 5: /* pages in the middle */
        overwrite(size / 2, size / 2 + 4 * PAGE, 3);
        break;
    case 6: /* cut off */
        ck_assert_int_eq(truncate(store_file, (off_t)(size / 2)), 0);
        break;
    case 7: /* empty */
        ck_assert_int_eq(truncate(store_file, 0), 0);
        break;
    case 8: /* gone */
        ck_assert_int_eq(kedge_dir_remove(f.store), KEDGE_OK);
        break;
    case 9: /* no file */
        snprintf(path, sizeof path, "%s/data.mdb", f.store);
        ck_assert_int_eq(unlink(path), 0);
        break;
    default: /* a page by itself, one after the other */
        overwrite((uint64_t)(kind - 8) * PAGE, (uint64_t)(kind - 8) * PAGE + PAGE, (uint64_t)kind);
        break;
    }
}

enum { DAMAGES = 24 };

START_TEST(every_damage_is_mended)
{
    struct kedge_repaired done;
    struct kedge_diag d = {.text = ""};
    struct stat st;
    make_log(ENTRIES);
    ck_assert_uint_eq(damages_in(here), 0);
    damage(_i);
    bool gone = _i == 8, is_seen = gone || _i == 9 || damages_in(here) > 0;
    if (_i < 10) {
        ck_assert(is_seen);
    }
    ck_assert_msg(repair(backup, false, &done, &d) == KEDGE_OK, "%s", d.text);
    ck_assert_uint_eq(done.size, ENTRIES);
    ck_assert_uint_eq(done.from_here, 0);
    ck_assert_int_eq(done.aside[0] == '\0', gone);
    ck_assert(gone || stat(done.aside, &st) == 0);
    check_whole(ENTRIES);
    fixture_deinit(&f);
}
END_TEST

/* What an older copy has not is taken from the damaged store, where it is intact. */
START_TEST(an_older_copy_helps_with_what_is_intact_here)
{
    struct kedge_repaired done;
    struct kedge_diag d = {.text = ""};
    make_log(BACKUP);
    flip_text(_i ? "entry-650" : "entry-123");
    int err = repair(backup, false, &done, &d);
    if (_i) {
        ck_assert_int_eq(err, KEDGE_E_SHORTER);
        ck_assert_ptr_nonnull(strstr(d.text, "too old"));
        ck_assert_uint_gt(damages_in(here), 0); /* all is as it was */
    } else {
        ck_assert_msg(err == KEDGE_OK, "%s", d.text);
        ck_assert_uint_eq(done.from_here, ENTRIES - BACKUP);
        check_whole(ENTRIES);
    }
    fixture_deinit(&f);
}
END_TEST

static void refused(const char *from, int err, const char *why)
{
    struct kedge_repaired done;
    struct kedge_diag d = {.text = ""};
    char building[128];
    uint64_t before = damages_in(here);
    ck_assert_int_eq(repair(from, false, &done, &d), err);
    ck_assert_msg(strstr(d.text, why) != NULL, "%s", d.text);
    ck_assert(d.hint[0]);
    ck_assert_uint_eq(damages_in(here), before);
    snprintf(building, sizeof building, "%s/ledger.lmdb.building", here);
    ck_assert(!kedge_file_exists(building));
}

/* Another history of the log, by its own key: only a coordinator without its mark could sign it. */
static void make_fork(const char *dir, uint64_t from)
{
    struct kedge_ledger_options options = {.origin = ORIGIN, .key = &f.key, .create = true};
    struct kedge_ledger *l;
    char store[128];
    snprintf(store, sizeof store, "%s/ledger.lmdb", dir);
    ck_assert_int_eq(kedge_dir_make(dir, 0700, NULL), KEDGE_OK);
    struct kedge_kv *kv = fixture_lmdb(store, true);
    ck_assert_int_eq(kedge_ledger_open(kv, &options, &l, NULL), KEDGE_OK);
    for (uint64_t i = 0; i < ENTRIES + 50; i += BATCH) {
        struct kedge_ledger_append items[BATCH];
        char texts[BATCH][32];
        for (uint64_t k = 0; k < BATCH; k++) {
            unsigned long long number = i + k;
            int n = snprintf(texts[k], sizeof texts[k], i < from ? "entry-%llu" : "other-%llu", number);
            items[k] = (struct kedge_ledger_append){.entry = kedge_view_of(texts[k], (size_t)n)};
        }
        ck_assert_int_eq(kedge_ledger_append(l, items, BATCH, NULL, NULL, NULL), KEDGE_OK);
    }
    kedge_ledger_close(l);
    kedge_kv_close(kv);
}

START_TEST(copies_that_are_no_help_are_refused)
{
    char other[100];
    make_log(ENTRIES);
    damage(4);
    snprintf(other, sizeof other, "%s/fork", f.dir);
    make_fork(other, 300);
    refused(other, KEDGE_E_FORK, "another root at size 700");
    snprintf(other, sizeof other, "%s/nothing", f.dir);
    refused(other, KEDGE_E_NOT_FOUND, "no store");
    struct kedge_key_pair own = f.key;
    kedge_key_generate(&f.key);
    refused(backup, KEDGE_E_STATE, "another signing key");
    f.key = own;
    snprintf(store_file, sizeof store_file, "%s/ledger.lmdb/data.mdb", backup);
    flip_text("entry-500");
    refused(backup, KEDGE_E_CORRUPT, "damaged itself");
    fixture_deinit(&f);
}
END_TEST

START_TEST(an_old_copy_is_refused_when_nothing_is_left_here)
{
    make_log(BACKUP);
    damage(4);
    refused(backup, KEDGE_E_SHORTER, "too old");
    fixture_deinit(&f);
}
END_TEST

START_TEST(a_log_in_use_is_refused)
{
    make_log(ENTRIES);
    f.kv = fixture_lmdb(f.store, false);
    struct kedge_repaired done;
    struct kedge_diag d = {.text = ""};
    ck_assert_int_eq(repair(backup, false, &done, &d), KEDGE_E_LOCKED);
    ck_assert_ptr_nonnull(strstr(d.text, "stop the coordinator"));
    fixture_deinit(&f);
}
END_TEST

START_TEST(a_lost_mark_needs_a_word)
{
    struct kedge_repaired done;
    struct kedge_diag d = {.text = ""};
    bool is_old = _i >= 2; /* the copy; but checkpoints here tell what was signed since */
    make_log(is_old ? BACKUP : ENTRIES);
    damage(0);
    if (_i == 3) {
        flip_text("entry-650");
    }
    ck_assert_int_eq(_i % 2 ? truncate(f.mark, 5) : unlink(f.mark), 0);
    ck_assert_int_eq(repair(backup, false, &done, &d), KEDGE_E_CORRUPT);
    ck_assert_ptr_nonnull(strstr(d.hint, "--mark-lost"));
    ck_assert_int_eq(repair(backup, true, &done, &d), _i == 3 ? KEDGE_E_SHORTER : KEDGE_OK);
    if (_i < 3) {
        check_whole(ENTRIES);
    }
    fixture_deinit(&f);
}
END_TEST

/* A tenant's copy, which has neither keys nor references, and of some entries the leaf hash only. */
START_TEST(a_replica_helps)
{
    struct kedge_repaired done;
    struct kedge_diag d = {.text = ""};
    struct kedge_ledger *copy;
    struct kedge_buf note;
    char replica[100], store[128];
    make_log(ENTRIES);
    snprintf(replica, sizeof replica, "%s/replica", f.dir);
    snprintf(store, sizeof store, "%s/ledger.lmdb", replica);
    ck_assert_int_eq(kedge_dir_make(replica, 0700, NULL), KEDGE_OK);
    struct kedge_kv *kv = fixture_lmdb(store, true);
    ck_assert_int_eq(kedge_replica_open(kv, ORIGIN, &f.key.public, true, &copy, NULL), KEDGE_OK);
    f.kv = fixture_lmdb(f.store, false);
    fixture_must_open(&f, false);
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    ck_assert_int_eq(kedge_ledger_checkpoint(f.l, &note, NULL), KEDGE_OK);
    for (uint64_t i = 0; i < ENTRIES; i += BATCH) {
        struct kedge_replica_entry e[BATCH];
        char texts[BATCH][32];
        for (size_t k = 0; k < BATCH; k++) {
            e[k].entry = entry_text(i + k, texts[k]);
            kedge_merkle_leaf(e[k].entry, &e[k].leaf);
            e[k].entry.len = i + k == 200 ? 0 : e[k].entry.len;
        }
        struct kedge_view last = i + BATCH == ENTRIES ? kedge_buf_view(&note) : kedge_view_of(NULL, 0);
        ck_assert_int_eq(kedge_replica_extend(copy, e, BATCH, last, NULL), KEDGE_OK);
    }
    kedge_buf_deinit(&note);
    kedge_ledger_close(copy);
    kedge_kv_close(kv);
    kedge_ledger_close(f.l);
    kedge_kv_close(f.kv);
    f.l = NULL;
    f.kv = NULL;
    flip_text("entry-333");
    if (_i) {
        flip_text("entry-200");
        ck_assert_int_eq(repair(replica, false, &done, &d), KEDGE_E_SHORTER);
        ck_assert_ptr_nonnull(strstr(d.text, "entry 200 is withheld"));
    } else {
        ck_assert_msg(repair(replica, false, &done, &d) == KEDGE_OK, "%s", d.text);
        ck_assert_uint_eq(done.from_here, 1);
        check_whole(ENTRIES);
    }
    fixture_deinit(&f);
}
END_TEST

START_TEST(blobs_come_back_by_digest)
{
    struct kedge_repaired_blobs n;
    struct kedge_blobs *blobs;
    struct kedge_hash digests[3];
    struct kedge_buf refs;
    char path[KEDGE_PATH_MAX], text[32];
    make_log(ENTRIES);
    kedge_buf_init(&refs, 4096);
    ck_assert_int_eq(kedge_blobs_open(here, NULL, &blobs, NULL), KEDGE_OK);
    for (uint64_t i = 0; i < 3; i++) {
        kedge_sha256(entry_text(10 * i + 7, text), &digests[i]);
        kedge_buf_put(&refs, digests[i].b, KEDGE_HASH_LEN);
        ck_assert_int_eq(kedge_blobs_path(blobs, &digests[i], path), KEDGE_OK);
        if (i == 0) {
            ck_assert_int_eq(unlink(path), 0);
        } else if (i == 1) {
            ck_assert_int_eq(truncate(path, 3), 0);
        }
    }
    ck_assert_uint_eq(damages_in(here), 2);
    struct kedge_repair_blobs r = {.dir = here, .from = backup, .refs = kedge_buf_view(&refs)};
    ck_assert_int_eq(kedge_repair_blobs(&r, &n, NULL), KEDGE_OK);
    ck_assert_uint_eq(n.fine, 1);
    ck_assert_uint_eq(n.brought, 2);
    ck_assert_uint_eq(n.lost, 0);
    ck_assert_uint_eq(damages_in(here), 0);
    ck_assert_int_eq(kedge_blobs_path(blobs, &digests[2], path), KEDGE_OK);
    ck_assert_int_eq(unlink(path), 0);
    r.from = "/nonexistent";
    ck_assert_int_eq(kedge_repair_blobs(&r, &n, NULL), KEDGE_OK);
    ck_assert_uint_eq(n.lost, 1);
    ck_assert(kedge_hash_eq(&n.first_lost, &digests[2]));
    kedge_blobs_close(blobs);
    kedge_buf_deinit(&refs);
    fixture_deinit(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store repair");
    TCase *t = tcase_create("repair");
    tcase_set_timeout(t, 100);
    tcase_add_loop_test(t, every_damage_is_mended, 0, DAMAGES);
    tcase_add_loop_test(t, an_older_copy_helps_with_what_is_intact_here, 0, 2);
    tcase_add_test(t, copies_that_are_no_help_are_refused);
    tcase_add_test(t, an_old_copy_is_refused_when_nothing_is_left_here);
    tcase_add_test(t, a_log_in_use_is_refused);
    tcase_add_loop_test(t, a_lost_mark_needs_a_word, 0, 4);
    tcase_add_loop_test(t, a_replica_helps, 0, 2);
    tcase_add_test(t, blobs_come_back_by_digest);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
