/* The n-th storage call fails, for all n, in each way that a disk fails: an error with nothing done, an error
 * behind the deed, no space, a write that comes up short. libc's functions are taken over. Whatever was
 * answered before must be there afterwards, whole, and exactly once; and it can be gone on with. Faults pass,
 * or stay: a disk that is full from the n-th call on. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../contract/ledger_fixture.h"
#include "chain/store/blob/blobs.h"

enum { APPENDS = 6, BATCH = 3, N_MAX = 2000 };
enum fault { FAULT_EIO, FAULT_EIO_BUT_DONE, FAULT_ENOSPC, FAULT_SHORT, FAULT_FULL_FROM_NOW, FAULTS };
static const char *const fault_names[FAULTS] = {"EIO", "EIO, but done", "ENOSPC", "short write",
                                                "full from now on"};

/* ---- faults ---- */

static enum fault fault;
static long countdown; /* 0: no fault is planned; else the fault strikes when it comes to 1 */
static bool has_struck;

/* True when this call is the one. */
static bool strikes(void)
{
    if (countdown == 0) {
        return false;
    }
    if (countdown > 1) {
        countdown--;
        return false;
    }
    countdown = fault == FAULT_FULL_FROM_NOW ? 1 : 0;
    has_struck = true;
    return true;
}

static bool is_space(void)
{
    return fault == FAULT_ENOSPC || fault == FAULT_FULL_FROM_NOW;
}

static ssize_t fail_write(ssize_t done)
{
    if (fault == FAULT_SHORT && done > 1) {
        return done;
    }
    errno = is_space() ? ENOSPC : EIO;
    return -1;
}

/* How much of `len` is really written by a call that strikes. */
static size_t len_of(size_t len)
{
    return fault == FAULT_EIO_BUT_DONE ? len : fault == FAULT_SHORT ? len / 2 : 0;
}

ssize_t pwrite(int fd, const void *buf, size_t len, off_t offset)
{
    if (!strikes()) {
        return syscall(SYS_pwrite64, fd, buf, len, offset);
    }
    size_t part = len_of(len);
    return fail_write(part > 0 ? syscall(SYS_pwrite64, fd, buf, part, offset) : 0);
}

ssize_t write(int fd, const void *buf, size_t len)
{
    if (fd <= STDERR_FILENO || !strikes()) {
        return syscall(SYS_write, fd, buf, len);
    }
    size_t part = len_of(len);
    return fail_write(part > 0 ? syscall(SYS_write, fd, buf, part) : 0);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    if (fd <= STDERR_FILENO || !strikes()) {
        return syscall(SYS_writev, fd, parts, count);
    }
    size_t part = len_of(parts[0].iov_len);
    return fail_write(part > 0 ? syscall(SYS_write, fd, parts[0].iov_base, part) : 0);
}

/* A call without a length: done or not. A sync has nothing to do with space. */
static int fail_call(long done)
{
    (void)done;
    errno = is_space() ? ENOSPC : EIO;
    return -1;
}

int fsync(int fd)
{
    bool now = !is_space() && strikes();
    return now ? fail_call(fault == FAULT_EIO_BUT_DONE ? syscall(SYS_fsync, fd) : 0)
               : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    bool now = !is_space() && strikes();
    return now ? fail_call(fault == FAULT_EIO_BUT_DONE ? syscall(SYS_fdatasync, fd) : 0)
               : (int)syscall(SYS_fdatasync, fd);
}

int ftruncate(int fd, off_t len)
{
    bool now = strikes();
    return now ? fail_call(fault == FAULT_EIO_BUT_DONE ? syscall(SYS_ftruncate, fd, len) : 0)
               : (int)syscall(SYS_ftruncate, fd, len);
}

int rename(const char *from, const char *to)
{
    bool now = strikes();
    return now ? fail_call(fault == FAULT_EIO_BUT_DONE ? syscall(SYS_rename, from, to) : 0)
               : (int)syscall(SYS_rename, from, to);
}

int mkdir(const char *path, mode_t mode)
{
    bool now = strikes();
    return now ? fail_call(fault == FAULT_EIO_BUT_DONE ? syscall(SYS_mkdir, path, mode) : 0)
               : (int)syscall(SYS_mkdir, path, mode);
}

/* ---- what goes on meanwhile ---- */

struct acknowledged {
    uint64_t size;      /* entries, from the first on */
    bool blob[APPENDS]; /* were stored */
    struct kedge_hash digests[APPENDS];
};

static struct fixture f;
static char log_dir[100];

static struct kedge_view blob_text(unsigned i, char out[64])
{
    int n = snprintf(out, 64, "content of blob %u", i);
    return kedge_view_of(out, (size_t)n);
}

/* Appends entries of round i; after an error of the disk as the daemon does: reopen, and again with the same
 * keys. */
static bool append_round(unsigned i)
{
    struct kedge_ledger_append items[BATCH];
    char texts[BATCH][32];
    for (unsigned k = 0; k < BATCH; k++) {
        items[k] = (struct kedge_ledger_append){.entry = entry_text(i * BATCH + k, texts[k])};
        items[k].idem_key = items[k].entry;
    }
    int err = kedge_ledger_append(f.l, items, BATCH, NULL, NULL, NULL);
    if (err == KEDGE_E_IO || err == KEDGE_E_UNKNOWN) {
        err = kedge_ledger_reopen(f.l, NULL);
        err = err ? err : kedge_ledger_append(f.l, items, BATCH, NULL, NULL, NULL);
    } else if (err) {
        err = kedge_ledger_append(f.l, items, BATCH, NULL, NULL, NULL);
    }
    ck_assert_msg(err != KEDGE_E_CORRUPT && err != KEDGE_E_FORK && err != KEDGE_E_EXISTS, "append: %d", err);
    return err == KEDGE_OK;
}

static void run(struct acknowledged *a)
{
    struct kedge_kv_lmdb_options options = {.create = false};
    struct kedge_blobs *blobs = NULL;
    if (kedge_kv_lmdb_open(f.store, &options, &f.kv, NULL)) {
        f.kv = NULL;
        return;
    }
    if (fixture_open(&f, false, NULL)) {
        f.l = NULL;
    }
    if (f.l && kedge_blobs_open(log_dir, NULL, &blobs, NULL) == KEDGE_OK) {
        for (unsigned i = 0; i < APPENDS; i++) {
            char text[64];
            struct kedge_view part = blob_text(i, text);
            a->blob[i] = kedge_blobs_put(blobs, &part, 1, &a->digests[i], NULL) == KEDGE_OK;
            if (!append_round(i)) {
                break;
            }
            a->size = kedge_ledger_size(f.l);
        }
        kedge_blobs_close(blobs);
    }
    kedge_ledger_close(f.l);
    kedge_kv_close(f.kv);
    f.l = NULL;
    f.kv = NULL;
}

static void check(const struct acknowledged *a, const char *what, long n)
{
    struct kedge_blobs *blobs;
    struct kedge_diag d = {.text = ""};
    char text[32];
    f.kv = fixture_lmdb(f.store, false);
    ck_assert_msg(fixture_open(&f, false, &d) == KEDGE_OK, "%s at call %ld: %s", what, n, d.text);
    uint64_t size = kedge_ledger_size(f.l), index;
    ck_assert_msg(size >= a->size && size % BATCH == 0, "%s at call %ld: %llu entries of %llu", what, n,
                  (unsigned long long)size, (unsigned long long)a->size);
    for (uint64_t i = 0; i < size; i++) { /* each once, in order */
        ck_assert_int_eq(kedge_ledger_find(f.l, entry_text(i, text), &index), KEDGE_OK);
        ck_assert_uint_eq(index, i);
    }
    ck_assert_msg(kedge_ledger_check(f.l, NULL, NULL, &d) == KEDGE_OK, "%s at call %ld: %s", what, n, d.text);
    ck_assert_int_eq(kedge_blobs_open(log_dir, NULL, &blobs, NULL), KEDGE_OK);
    for (unsigned i = 0; i < APPENDS; i++) {
        if (a->blob[i]) {
            ck_assert_int_eq(kedge_blobs_verify(blobs, &a->digests[i], NULL), KEDGE_OK);
        }
        char content[64];
        struct kedge_view part = blob_text(i, content);
        struct kedge_hash digest;
        ck_assert_int_eq(kedge_blobs_put(blobs, &part, 1, &digest, NULL), KEDGE_OK);
    }
    kedge_blobs_close(blobs);
    for (unsigned i = 0; i < APPENDS; i++) { /* all of it once more: what is there is there */
        ck_assert(append_round(i));
    }
    ck_assert_uint_eq(kedge_ledger_size(f.l), APPENDS * BATCH);
    kedge_ledger_close(f.l);
    kedge_kv_close(f.kv);
    f.l = NULL;
    f.kv = NULL;
}

START_TEST(nothing_answered_is_lost)
{
    long n = 1;
    fault = (enum fault)_i;
    for (has_struck = true; has_struck; n++) {
        struct acknowledged a = {.size = 0};
        ck_assert_int_lt(n, N_MAX);
        fixture_init(&f);
        snprintf(log_dir, sizeof log_dir, "%s/log", f.dir);
        f.kv = fixture_lmdb(f.store, true);
        fixture_must_open(&f, true);
        kedge_ledger_close(f.l);
        kedge_kv_close(f.kv);
        f.l = NULL;
        f.kv = NULL;
        has_struck = false;
        countdown = n;
        run(&a);
        countdown = 0;
        check(&a, fault_names[_i], n);
        fixture_deinit(&f);
    }
    printf("%s: each of %ld storage calls\n", fault_names[_i], n - 2);
    ck_assert_int_gt(n, 60);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store nth");
    TCase *t = tcase_create("faults");
    tcase_set_timeout(t, 0); /* ctest has one */
    tcase_add_loop_test(t, nothing_answered_is_lost, 0, FAULTS);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
