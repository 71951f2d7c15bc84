/* LMDB demands that one process opens an environment once only: closing the second opening would drop the
 * first one's locks. A registry by device and inode refuses it, whatever the spelling of the path. */
#include "chain/store/kv/kv_dir.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "chain/store/kv/kv_together.h"
#include "common/base/try.h"

enum { FREE_SPACE_LEAST = 1 << 20, CLOSED_MAX = 96, REGISTRY_BITS = 12 };

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct kedgei_kv_dir *registry[1 << REGISTRY_BITS];

/* File systems give inodes in strides; the product's upper bits spread those, too. */
static struct kedgei_kv_dir **place_of(const struct kedgei_kv_dir *d)
{
    return &registry[(d->inode ^ d->device) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - REGISTRY_BITS)];
}

static bool register_dir(struct kedgei_kv_dir *d)
{
    struct kedgei_kv_dir **place = place_of(d);
    bool is_free = true;
    pthread_mutex_lock(&registry_mutex);
    for (const struct kedgei_kv_dir *i = *place; i; i = i->next) {
        is_free = is_free && !(i->device == d->device && i->inode == d->inode);
    }
    if (is_free) {
        d->next = *place;
        *place = d;
    }
    pthread_mutex_unlock(&registry_mutex);
    return is_free;
}

static void unregister_dir(struct kedgei_kv_dir *d)
{
    pthread_mutex_lock(&registry_mutex);
    for (struct kedgei_kv_dir **i = place_of(d); *i; i = &(*i)->next) {
        if (*i == d) {
            *i = d->next;
            break;
        }
    }
    pthread_mutex_unlock(&registry_mutex);
}

/* LMDB opens its files by path and would wait at a FIFO for ever; an absent one is not judged here. */
static int check_files(const char *dir, struct kedge_diag *reterr)
{
    static const char *const names[] = {"data.mdb", "lock.mdb"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char file[KEDGE_PATH_MAX];
        int err = kedge_path_join(file, dir, names[i]);
        if (err) {
            return kedge_diag_set(reterr, err, "%s: path too long", dir);
        }
        err = kedge_file_exists(file) ? kedge_file_check(file, reterr) : KEDGE_OK;
        if (err) {
            return err;
        }
    }
    return KEDGE_OK;
}

/* Makes the folder when it may; afterwards there is one. An empty file would be taken by LMDB for a new
 * store and filled with empty tables: a ledger whose file was cut to nothing would start again from zero
 * entries. Only a caller who may create accepts it. */
static int find_or_make(struct kedgei_kv_dir *d, bool create, struct kedge_diag *reterr)
{
    char file[KEDGE_PATH_MAX];
    int err = kedge_path_join(file, d->path, "data.mdb");
    if (err) {
        return kedge_diag_set(reterr, err, "%s: path too long", d->path);
    }
    KEDGE_TRY(check_files(d->path, reterr));
    int64_t size = kedge_file_size(file);
    if (size == KEDGE_E_NOT_FOUND && create) {
        return kedge_dir_make(d->path, 0700, reterr);
    }
    if (size == KEDGE_E_NOT_FOUND) {
        kedge_diag_set(reterr, KEDGE_E_NOT_FOUND, "%s: there is no store here", d->path);
        kedge_diag_hint(reterr, "check the path; a missing store is never made silently");
        return KEDGE_E_NOT_FOUND;
    }
    if (size < 0) {
        return kedge_diag_set(reterr, (int)size, "%s: cannot look at the store", file);
    }
    if (size == 0 && !create) {
        return kedge_diag_set(reterr, KEDGE_E_CORRUPT, "%s: the file is empty", file);
    }
    return KEDGE_OK;
}

/* What the lock's file says after an orderly close, until the store changes. A copy of the folder has other
 * inodes, so its names and marks are synced by its first opener. It is never synced itself: where the
 * power failed, what is read is on the disk by itself; and where a writer was killed, this machine has seen
 * that it took the words out before it changed anything. A store that is opened and not changed keeps them,
 * so that the start of a coordinator with thousands of idle tenants writes nothing. */
static bool name_folder(const struct kedgei_kv_dir *d, char text[CLOSED_MAX])
{
    char file[KEDGE_PATH_MAX];
    struct stat st;
    if (kedge_path_join(file, d->path, "data.mdb") != KEDGE_OK || stat(file, &st) != 0) {
        return false;
    }
    snprintf(text, CLOSED_MAX, "closed %llu %llu %llu\n", (unsigned long long)d->device,
             (unsigned long long)d->inode, (unsigned long long)st.st_ino);
    return true;
}

/* Words of another folder are taken out; what cannot be taken out is not believed either. */
static void read_closed(struct kedgei_kv_dir *d)
{
    char said[CLOSED_MAX + 1] = "", text[CLOSED_MAX];
    ssize_t n = pread(d->lock_fd, said, CLOSED_MAX, 0);
    d->was_closed = n > 0 && name_folder(d, text) && strcmp(said, text) == 0;
    atomic_store(&d->says_closed, d->was_closed);
    if (n != 0 && !d->was_closed) {
        (void)!ftruncate(d->lock_fd, 0);
    }
}

int kedgei_kv_dir_changing(struct kedgei_kv_dir *d, struct kedge_diag *reterr)
{
    if (!atomic_load(&d->says_closed)) {
        return KEDGE_OK;
    }
    if (ftruncate(d->lock_fd, 0) != 0) {
        int e = errno;
        return kedge_diag_set(reterr, kedge_errno(e), "%s/kedge.lock: cannot be changed: %s", d->path,
                              strerror(e));
    }
    atomic_store(&d->says_closed, false);
    return KEDGE_OK;
}

/* Two locks, for two dangers: the registry keeps this process from opening the environment twice, the
 * file lock keeps another process from writing. Readers take no file lock, for LMDB lets them read beside
 * a writer. A second writer waits lock_wait_ms at most. */
int kedgei_kv_dir_open(struct kedgei_kv_dir *d, const char *path, bool create, bool read_only,
                       uint32_t lock_wait_ms, struct kedge_diag *reterr)
{
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof d->path) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "the store's path is empty or too long");
    }
    memcpy(d->path, path, len + 1);
    d->lock_fd = -1;
    int err = find_or_make(d, create && !read_only, reterr);
    if (err) {
        return err;
    }
    struct stat st;
    if (stat(d->path, &st) != 0) {
        return kedge_diag_set(reterr, kedge_errno(errno), "%s: %s", d->path, strerror(errno));
    }
    d->device = (uint64_t)st.st_dev;
    d->inode = (uint64_t)st.st_ino;
    if (!register_dir(d)) {
        return kedge_diag_set(reterr, KEDGE_E_LOCKED, "%s: this process has the store open already", d->path);
    }
    if (!read_only) {
        char lock[KEDGE_PATH_MAX];
        err = kedge_path_join(lock, d->path, "kedge.lock");
        int fd = err ? err : kedge_file_lock_within(lock, lock_wait_ms, reterr);
        if (fd < 0) {
            unregister_dir(d);
            return kedge_diag_wrap(reterr, fd, "%s: cannot lock the store for writing", d->path);
        }
        d->lock_fd = fd;
        read_closed(d);
    }
    return KEDGE_OK;
}

/* The folder, the log's, and the one of all logs: LMDB syncs its file, and nobody else its name. A folder
 * that was just made exists on the disk only when its parent was synced; without that a power cut could
 * take away a whole store whose commits were all answered. */
int kedgei_kv_dir_settle(struct kedgei_kv_dir *d, int err, struct kedge_diag *reterr)
{
    if (d->was_closed) {
        return err; /* its last writer has */
    }
    static const char *const above[] = {"", "/..", "/../.."};
    char path[KEDGE_PATH_MAX + 8];
    for (size_t i = 0; i < sizeof above / sizeof above[0] && !err && d->lock_fd >= 0; i++) {
        snprintf(path, sizeof path, "%s%s", d->path, above[i]);
        const unsigned together = kedgei_sync_together(path);
        if (together) {
            d->together = together;
            continue;
        }
        err = kedge_dir_sync(path);
        err =
            err == KEDGE_E_DENIED && i > 0 ? KEDGE_OK : err; /* not ours to look into, so not ours to make */
        err = err ? kedge_diag_set(reterr, err, "%s: cannot be synced: %s", path, kedge_strerror(err))
                  : KEDGE_OK;
    }
    return err;
}

void kedgei_kv_dir_close(struct kedgei_kv_dir *d, bool in_order)
{
    char text[CLOSED_MAX];
    unregister_dir(d);
    if (d->lock_fd < 0) {
        return;
    }
    if (!in_order) {
        (void)!kedgei_kv_dir_changing(d, NULL);
    } else if (!atomic_load(&d->says_closed)
               && name_folder(d, text)) { /* without the words the next start syncs again */
        (void)!pwrite(d->lock_fd, text, strlen(text), 0);
    }
    close(d->lock_fd);
    d->lock_fd = -1;
}

int64_t kedgei_kv_dir_file_size(const struct kedgei_kv_dir *d)
{
    char file[KEDGE_PATH_MAX];
    int err = kedge_path_join(file, d->path, "data.mdb");
    return err ? err : kedge_file_size(file);
}

int kedgei_kv_dir_is_there(const struct kedgei_kv_dir *d, struct kedge_diag *reterr)
{
    return kedgei_kv_dir_file_size(d) > 0
               ? KEDGE_OK
               : kedge_diag_set(reterr, KEDGE_E_CORRUPT,
                                "%s: data.mdb was removed or emptied while this process had it", d->path);
}

/* Without write permission LMDB cannot enter a reader into lock.mdb; such a store is opened without
 * locks, as an auditor's copy is. */
bool kedgei_kv_dir_can_lock(const struct kedgei_kv_dir *d)
{
    char lock[KEDGE_PATH_MAX];
    return kedge_path_join(lock, d->path, "lock.mdb") == KEDGE_OK && access(lock, W_OK) == 0;
}

/* LMDB reports a write that came up short as EIO, whether the disk is full, a quota is reached or it is
 * broken. The difference matters: after the first the same handle may go on, after the last it must be
 * reopened and verified. */
bool kedgei_kv_dir_is_full(const struct kedgei_kv_dir *d)
{
    struct statvfs space;
    if (statvfs(d->path, &space) == 0 && (uint64_t)space.f_frsize * space.f_bavail < FREE_SPACE_LEAST) {
        return true;
    }
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return false;
    }
    int64_t size = kedgei_kv_dir_file_size(d);
    return size >= 0 && (uint64_t)size + FREE_SPACE_LEAST > limit.rlim_cur;
}
