/* A store whose writer was killed is opened with four syncs: three folders and its log's mark, each a commit
 * of the file system's journal. With thousands of stores that is all that a start waits for. syncfs(2) does
 * the same for all of them in one commit, so between begin and end a path is only noted, by its file system,
 * and end syncs each file system once.
 *
 * The file systems are those whose syncfs is known to reach the disk. FUSE, for one, answers it without
 * asking the program that holds the files. */
#include "chain/store/kv/kv_together.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "chain/store/kv/kv.h"
#include "common/base/os/file.h"

/* linux/magic.h has some of them only. */
#define EXT_MAGIC 0xef53u
#define XFS_MAGIC 0x58465342u
#define BTRFS_MAGIC 0x9123683eu
#define F2FS_MAGIC 0xf2f52010u
#define TMPFS_MAGIC_ 0x01021994u

enum { FILE_SYSTEMS_MAX = 8 };

static struct {
    pthread_mutex_t mutex;
    bool has_begun;
    bool has_failed;       /* from then on nothing counts as done */
    unsigned begun, ended; /* how often */
    unsigned count;
    struct file_system {
        dev_t device;
        int fd; /* -1: not to be synced by one call */
    } of[FILE_SYSTEMS_MAX];
} together = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool is_known(int fd)
{
    struct statfs s;
    if (fstatfs(fd, &s) != 0) {
        return false;
    }
    const unsigned type = (unsigned)s.f_type;
    return type == EXT_MAGIC || type == XFS_MAGIC || type == BTRFS_MAGIC || type == F2FS_MAGIC
           || type == TMPFS_MAGIC_;
}

/* The descriptor by which the path's file system is synced, or -1; the mutex is held. */
static int file_system_of(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return -1;
    }
    for (unsigned i = 0; i < together.count; i++) {
        if (together.of[i].device == st.st_dev) {
            return together.of[i].fd;
        }
    }
    if (together.count == FILE_SYSTEMS_MAX) {
        return -1;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat opened;
    if (fd >= 0 && (fstat(fd, &opened) != 0 || opened.st_dev != st.st_dev || !is_known(fd))) {
        close(fd);
        fd = -1;
    }
    together.of[together.count++] = (struct file_system){st.st_dev, fd};
    return fd;
}

unsigned kedgei_sync_together(const char *path)
{
    pthread_mutex_lock(&together.mutex);
    const unsigned number = together.has_begun && file_system_of(path) >= 0 ? together.begun : 0;
    pthread_mutex_unlock(&together.mutex);
    return number;
}

bool kedgei_synced_together(unsigned number)
{
    pthread_mutex_lock(&together.mutex);
    const bool is_synced = number == 0 || (!together.has_failed && number <= together.ended);
    pthread_mutex_unlock(&together.mutex);
    return is_synced;
}

void kedge_kv_lmdb_sync_together_begin(void)
{
    pthread_mutex_lock(&together.mutex);
    together.begun += together.has_begun ? 0 : 1;
    together.has_begun = true;
    pthread_mutex_unlock(&together.mutex);
}

int kedge_kv_lmdb_sync_together_end(struct kedge_diag *reterr)
{
    int err = KEDGE_OK;
    pthread_mutex_lock(&together.mutex);
    for (unsigned i = 0; i < together.count; i++) {
        const int fd = together.of[i].fd;
        if (fd >= 0 && !err && syncfs(fd) != 0) {
            err = kedge_diag_set(reterr, kedge_errno(errno), "the stores' file system cannot be synced: %s",
                                 strerror(errno));
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    together.count = 0;
    together.has_begun = false;
    together.has_failed = together.has_failed || err;
    together.ended = together.begun;
    pthread_mutex_unlock(&together.mutex);
    return err;
}
