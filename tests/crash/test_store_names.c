/* A new store's folders are synced, too, behind its file: a commit that nobody finds any more is a lost one.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "chain/store/kv/kv.h"
#include "common/base/os/file.h"

enum { SYNCED_MAX = 64 };

static char scratch[128], file[256];
static ino_t synced[SYNCED_MAX];
static size_t synced_count;

/* In place of the C library's: notes folders that are synced while the store's file is there. */
int fsync(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && kedge_file_exists(file) && synced_count < SYNCED_MAX) {
        synced[synced_count++] = st.st_ino;
    }
    return (int)syscall(SYS_fsync, fd);
}

static bool was_synced(const char *path)
{
    struct stat st;
    bool found = false;
    ck_assert_int_eq(stat(path, &st), 0);
    for (size_t i = 0; i < synced_count; i++) {
        found = found || synced[i] == st.st_ino;
    }
    return found;
}

START_TEST(a_stores_name_is_as_durable_as_its_commits)
{
    struct kedge_kv_lmdb_options options = {.create = true};
    struct kedge_diag d = {.text = ""};
    struct kedge_kv *kv;
    char path[200], above[200];
    snprintf(scratch, sizeof scratch, "%s/kedge-names-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    snprintf(path, sizeof path, "%s/tenants/one/ledger.lmdb", scratch);
    snprintf(file, sizeof file, "%s/data.mdb", path);
    ck_assert_msg(kedge_kv_lmdb_open(path, &options, &kv, &d) == KEDGE_OK, "%s", d.text);
    ck_assert(was_synced(path));
    snprintf(above, sizeof above, "%s/tenants/one", scratch);
    ck_assert(was_synced(above));
    snprintf(above, sizeof above, "%s/tenants", scratch);
    ck_assert(was_synced(above));
    kedge_kv_close(kv);
    synced_count = 0; /* a reader leaves the disk alone */
    options = (struct kedge_kv_lmdb_options){.read_only = true};
    ck_assert_msg(kedge_kv_lmdb_open(path, &options, &kv, &d) == KEDGE_OK, "%s", d.text);
    kedge_kv_close(kv);
    ck_assert_uint_eq(synced_count, 0);
    ck_assert_int_eq(kedge_dir_remove(scratch), KEDGE_OK);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store-names");
    TCase *t = tcase_create("names");
    tcase_add_test(t, a_stores_name_is_as_durable_as_its_commits);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
