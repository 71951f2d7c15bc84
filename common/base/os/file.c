/* Files as Kedge needs them: whole, bounded, and durable when a call says so.
 *
 * A file is replaced by writing another one beside it, syncing it, renaming it over the old one and
 * syncing the folder. Writing in place would be shorter, but a crash in the middle would leave neither the
 * old content nor the new; without the second sync the rename itself could be lost. So a reader sees one
 * of the two, whole.
 *
 * A read has a bound of the caller's, and only regular files are opened unless a pipe is asked for: a FIFO
 * in the place of a file would block its reader for ever, and a device may act when it is opened. */
#include "common/base/os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/base/os/log.h"

enum { LOCK_POLL_MS = 20 };

int kedge_path_join(char out[KEDGE_PATH_MAX], const char *dir, const char *name)
{
    char joined[KEDGE_PATH_MAX];
    int n = snprintf(joined, sizeof joined, "%s/%s", dir, name);
    if (n < 0 || n >= KEDGE_PATH_MAX) {
        return KEDGE_E_TOO_LONG;
    }
    memcpy(out, joined, (size_t)n + 1);
    return KEDGE_OK;
}

/* A read-only file system counts as a full one: for what Kedge wants to do it is the same, and both
 * can pass. */
int kedge_errno(int os_errno)
{
    switch (os_errno) {
    case ENOENT:
    case ENOTDIR:
        return KEDGE_E_NOT_FOUND;
    case ENOSPC:
    case EDQUOT:
    case EROFS:
        return KEDGE_E_DISK_FULL;
    case EACCES:
    case EPERM:
        return KEDGE_E_DENIED;
    case ENOMEM:
        return KEDGE_E_NOMEM;
    default:
        return KEDGE_E_IO;
    }
}

static int fail(struct kedge_diag *d, const char *what, const char *path)
{
    int e = errno;
    return kedge_diag_set(d, kedge_errno(e), "%s: cannot %s: %s", path, what, strerror(e));
}

int kedge_path_real(const char *path, char out[KEDGE_PATH_MAX], struct kedge_diag *reterr)
{
    char real[PATH_MAX];
    if (!realpath(path, real)) {
        return fail(reterr, "find", path);
    }
    size_t len = strlen(real);
    if (len >= KEDGE_PATH_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s: its path has %zu bytes, at most %d", path, len,
                              KEDGE_PATH_MAX - 1);
    }
    memcpy(out, real, len + 1);
    return KEDGE_OK;
}

static int refuse_kind(struct kedge_diag *d, const char *path, mode_t mode)
{
    if (S_ISDIR(mode)) {
        errno = EISDIR;
        return fail(d, "open", path);
    }
    const char *kind = S_ISFIFO(mode)   ? "a FIFO"
                       : S_ISSOCK(mode) ? "a socket"
                       : S_ISCHR(mode)  ? "a character device"
                       : S_ISBLK(mode)  ? "a block device"
                                        : "something else";
    return kedge_diag_set(d, KEDGE_E_IO, "%s: not a regular file but %s", path, kind);
}

int kedge_file_check(const char *path, struct kedge_diag *reterr)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return fail(reterr, "look at", path);
    }
    return S_ISREG(st.st_mode) ? KEDGE_OK : refuse_kind(reterr, path, st.st_mode);
}

/* Looks before it opens, because opening alone makes some devices act (a watchdog, a tape), and again after,
 * because another process may have put something else there; O_NONBLOCK is for that one. */
int kedge_file_open(const char *path, int flags, struct kedge_diag *reterr)
{
    struct stat st;
    int look = flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0;
    if (fstatat(AT_FDCWD, path, &st, look) == 0 && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) {
        return refuse_kind(reterr, path, st.st_mode);
    }
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0) {
        return fail(reterr, flags & O_CREAT ? "create" : "open", path);
    }
    int err = fstat(fd, &st) != 0    ? fail(reterr, "look at", path)
              : !S_ISREG(st.st_mode) ? refuse_kind(reterr, path, st.st_mode)
                                     : KEDGE_OK;
    if (err) {
        close(fd);
        return err;
    }
    return fd;
}

/* Reads to the end and not as many bytes as stat told: the file may grow while it is read, and what stands
 * in /proc has size 0. */
static int read_rest(int fd, const char *path, struct kedge_buf *ret, struct kedge_diag *reterr)
{
    size_t start = ret->len;
    int err = KEDGE_OK;
    for (;;) {
        size_t room = ret->max - ret->len;
        size_t want = room < 65536 ? room + 1 : 65536; /* one byte more shows that the file is too long */
        uint8_t chunk[65536];
        ssize_t n = read(fd, chunk, want);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            err = fail(reterr, "read", path);
            break;
        }
        if (n == 0) {
            break;
        }
        if ((size_t)n > room) {
            err = kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s: longer than %zu bytes", path, ret->max);
            break;
        }
        kedge_buf_put(ret, chunk, (size_t)n);
        if (ret->err) {
            err = kedge_diag_set(reterr, ret->err, "%s: %s", path, kedge_strerror(ret->err));
            break;
        }
    }
    if (err) {
        ret->len = start;
    }
    return err;
}

int kedge_file_read(const char *path, struct kedge_buf *ret, struct kedge_diag *reterr)
{
    int fd = kedge_file_open(path, O_RDONLY, reterr);
    if (fd < 0) {
        return fd;
    }
    int err = read_rest(fd, path, ret, reterr);
    close(fd);
    return err;
}

int kedge_file_or_pipe_read(const char *path, struct kedge_buf *ret, struct kedge_diag *reterr)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISFIFO(st.st_mode)) {
        return kedge_file_read(path, ret, reterr);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC); /* waits until somebody writes */
    if (fd < 0) {
        return kedge_diag_set(reterr, KEDGE_E_IO, "%s: cannot open the pipe", path);
    }
    int err = read_rest(fd, path, ret, reterr);
    close(fd);
    return err;
}

int kedge_stdin_read(struct kedge_buf *ret, struct kedge_diag *reterr)
{
    return read_rest(STDIN_FILENO, "standard input", ret, reterr);
}

int kedge_fd_write(int fd, struct kedge_view v)
{
    while (v.len > 0) {
        ssize_t n = write(fd, v.ptr, v.len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return kedge_errno(errno);
        }
        v.ptr += n;
        v.len -= (size_t)n;
    }
    return KEDGE_OK;
}

int kedge_fd_read_at(int fd, uint8_t *out, size_t len, uint64_t offset)
{
    while (len > 0) {
        ssize_t n = pread(fd, out, len, (off_t)offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? kedge_errno(errno) : KEDGE_E_CORRUPT;
        }
        out += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return KEDGE_OK;
}

/* The name of a new file is in its folder, which has to be synced, too. */
static int sync_parent(const char *path)
{
    char dir[KEDGE_PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    if (len >= sizeof dir) {
        return KEDGE_E_TOO_LONG;
    }
    memcpy(dir, path, len);
    dir[len] = '\0';
    return kedge_dir_sync(slash ? (len ? dir : "/") : ".");
}

/* Written under another name, synced, renamed, and the folder synced: after a crash the file has the old
 * content or the new one, never a part. */
int kedge_file_write(const char *path, struct kedge_view content, unsigned mode, struct kedge_diag *reterr)
{
    static atomic_uint writes; /* threads may write one path (a blob, say) at the same time */
    char temporary[KEDGE_PATH_MAX];
    int n = snprintf(temporary, sizeof temporary, "%s.%ld.%u.tmp", path, (long)getpid(),
                     atomic_fetch_add(&writes, 1));
    if (n < 0 || n >= KEDGE_PATH_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s: path too long", path);
    }
    unlink(temporary); /* of an earlier process with our number that died; O_EXCL follows no link */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) {
        return fail(reterr, "create", temporary);
    }
    int err = KEDGE_OK;
    if (kedge_fd_write(fd, content) != KEDGE_OK) {
        err = fail(reterr, "write", temporary);
    } else if (fsync(fd) != 0) {
        err = fail(reterr, "sync", temporary);
    }
    if (close(fd) != 0 && !err) {
        err = fail(reterr, "close", temporary);
    }
    if (!err && rename(temporary, path) != 0) {
        err = fail(reterr, "rename to", path);
    }
    if (err) {
        unlink(temporary);
        return err;
    }
    err = sync_parent(path);
    return err ? kedge_diag_set(reterr, err, "%s: cannot sync its folder", path) : KEDGE_OK;
}

/* A folder that is there already is no error, and neither is one that another process makes at the
 * same moment. */
int kedge_dir_make(const char *path, unsigned mode, struct kedge_diag *reterr)
{
    char part[KEDGE_PATH_MAX];
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof part) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s: path too long", path);
    }
    for (size_t i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i] != '\0') {
            continue;
        }
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, mode) != 0 && errno != EEXIST) {
            return fail(reterr, "create folder", part);
        }
    }
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return kedge_diag_set(reterr, KEDGE_E_IO, "%s: exists and is not a folder", path);
    }
    return KEDGE_OK;
}

int kedge_dir_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return kedge_errno(errno);
    }
    int err = fsync(fd) == 0 ? KEDGE_OK : kedge_errno(errno);
    close(fd);
    return err;
}

/* Depth-first without recursion: remove what can be removed, descend into the first folder that is in the
 * way. */
int kedge_dir_remove(const char *path)
{
    char at[KEDGE_PATH_MAX];
    size_t base_len = strlen(path);
    if (base_len == 0 || base_len >= sizeof at) {
        return KEDGE_E_TOO_LONG;
    }
    memcpy(at, path, base_len + 1);
    struct stat st;
    if (lstat(path, &st) != 0) {
        return errno == ENOENT ? KEDGE_OK : kedge_errno(errno);
    }
    if (!S_ISDIR(st.st_mode)) { /* a link to a folder included: what it points at is not ours */
        return KEDGE_E_ARG;
    }
    for (;;) {
        DIR *dir = opendir(at);
        if (!dir) {
            return errno == ENOENT ? KEDGE_OK : kedge_errno(errno);
        }
        bool descend = false;
        struct dirent *entry;
        while (!descend && (entry = readdir(dir)) != NULL) {
            char child[KEDGE_PATH_MAX];
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
                continue;
            }
            if (kedge_path_join(child, at, entry->d_name) != KEDGE_OK) {
                closedir(dir);
                return KEDGE_E_TOO_LONG;
            }
            if (unlink(child) != 0 && rmdir(child) != 0) {
                int e = errno;
                if (e != ENOTEMPTY && e != EEXIST) {
                    closedir(dir);
                    return e == ENOTDIR ? KEDGE_E_DENIED : kedge_errno(e); /* a file that unlink refused */
                }
                memcpy(at, child, sizeof at);
                descend = true;
            }
        }
        closedir(dir);
        if (descend) {
            continue;
        }
        if (rmdir(at) != 0) {
            return kedge_errno(errno);
        }
        if (strlen(at) <= base_len) {
            return KEDGE_OK;
        }
        *strrchr(at, '/') = '\0';
    }
}

bool kedge_file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

int64_t kedge_file_size(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (int64_t)st.st_size : kedge_errno(errno);
}

/* A mapping begins at a page, so the pointer that is given out lies up to a page after its beginning;
 * close finds the beginning again from the pointer alone. */
int kedge_map_part(int fd, uint64_t offset, uint64_t len, struct kedge_map *ret)
{
    if (len == 0) {
        *ret = (struct kedge_map){NULL, 0};
        return KEDGE_OK;
    }
    size_t lead = (size_t)(offset % (uint64_t)sysconf(_SC_PAGESIZE));
    if (len > SIZE_MAX - lead) {
        return KEDGE_E_TOO_LONG;
    }
    const uint8_t *p = mmap(NULL, lead + (size_t)len, PROT_READ, MAP_SHARED, fd, (off_t)(offset - lead));
    if (p == MAP_FAILED) {
        return kedge_errno(errno);
    }
    *ret = (struct kedge_map){p + lead, (size_t)len};
    return KEDGE_OK;
}

int kedge_map_open(const char *path, struct kedge_map *ret, struct kedge_diag *reterr)
{
    int fd = kedge_file_open(path, O_RDONLY, reterr);
    if (fd < 0) {
        return fd;
    }
    struct stat st;
    if (fstat(fd, &st) != 0) {
        int err = fail(reterr, "look at", path);
        close(fd);
        return err;
    }
    int err = kedge_map_part(fd, 0, (uint64_t)st.st_size, ret);
    if (err) {
        err = fail(reterr, "map", path);
    }
    close(fd);
    return err;
}

void kedge_map_close(struct kedge_map *map)
{
    if (map->ptr) {
        size_t lead = (uintptr_t)map->ptr % (uintptr_t)sysconf(_SC_PAGESIZE);
        munmap((void *)((uintptr_t)map->ptr - lead), map->len + lead);
    }
    *map = (struct kedge_map){NULL, 0};
}

/* flock belongs to the open file and is released by the kernel when the process ends, killed ones
 * included: a lock file that is left by a crash locks nothing. */
int kedge_file_lock(const char *path, struct kedge_diag *reterr)
{
    int fd = kedge_file_open(path, O_RDWR | O_CREAT, reterr);
    if (fd < 0) {
        return fd;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return kedge_diag_set(reterr, KEDGE_E_LOCKED, "%s: in use by another process", path);
    }
    return fd;
}

int kedge_file_lock_within(const char *path, uint32_t wait_ms, struct kedge_diag *reterr)
{
    const uint64_t until = kedge_os_now_ns() + (uint64_t)wait_ms * 1000000u;
    int fd = kedge_file_lock(path, reterr);
    if (fd != KEDGE_E_LOCKED || wait_ms == 0) {
        return fd;
    }
    kedge_log(KEDGE_LOG_WARN, "waiting", "%s: in use by another process; waiting up to %u s for its end",
              path, (wait_ms + 999) / 1000);
    while (fd == KEDGE_E_LOCKED && kedge_os_now_ns() < until) {
        kedge_os_sleep_ms(LOCK_POLL_MS);
        fd = kedge_file_lock(path, reterr);
    }
    return fd == KEDGE_E_LOCKED ? kedge_diag_set(reterr, fd, "%s: still in use by another process after %u s",
                                                 path, (wait_ms + 999) / 1000)
                                : fd;
}
