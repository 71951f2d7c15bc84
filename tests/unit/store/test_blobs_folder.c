/* A blob that was answered is there after a power cut, its folder too: the one that puts the first blob that
 * this process has in a folder has the folder's own entry synced, also when another has made the folder. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "chain/store/blob/blobs.h"

static ino_t watched; /* blobs/ */
static unsigned syncs;

int fsync(int fd)
{
    struct stat st;
    syncs += fstat(fd, &st) == 0 && st.st_ino == watched;
    return (int)syscall(SYS_fsync, fd);
}

static void put(struct kedge_blobs *b, const char *text)
{
    struct kedge_view part = kedge_view_str(text);
    struct kedge_hash digest;
    ck_assert_int_eq(kedge_blobs_put(b, &part, 1, &digest, NULL), KEDGE_OK);
}

START_TEST(the_folders_entry_is_synced_whoever_made_it)
{
    char dir[64] = "/tmp/kedge-folder-XXXXXX", path[KEDGE_PATH_MAX], hex[KEDGE_HASH_HEX_LEN + 1];
    struct kedge_blobs *b;
    struct kedge_hash digest;
    struct stat st;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(kedge_blobs_open(dir, NULL, &b, NULL), KEDGE_OK);
    snprintf(path, sizeof path, "%s/blobs", dir);
    ck_assert_int_eq(stat(path, &st), 0);
    watched = st.st_ino;
    kedge_sha256(kedge_view_str("one"), &digest);
    kedge_hash_hex(&digest, hex);
    snprintf(path, sizeof path, "%s/blobs/%.2s", dir, hex);
    if (_i == 0) { /* another thread is between mkdir and its sync, or a process was killed there */
        ck_assert_int_eq(mkdir(path, 0700), 0);
    }
    put(b, "one");
    ck_assert_uint_eq(syncs, 1);
    put(b, "one");
    ck_assert_uint_eq(syncs, 1); /* once is enough */
    put(b, "two");
    ck_assert_uint_eq(syncs, 2);
    syncs = 0;
    kedge_blobs_close(b);
    ck_assert_int_eq(kedge_dir_remove(dir), KEDGE_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("blobs folder");
    TCase *t = tcase_create("durable");
    tcase_add_loop_test(t, the_folders_entry_is_synced_whoever_made_it, 0, 2);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
