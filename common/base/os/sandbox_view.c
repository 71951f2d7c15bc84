/* The guarded folder is mounted over itself, read only, and so is, as it is, each folder above it: a mount
 * point cannot be renamed or removed, so nobody in here can put another folder in its place. The folder that
 * holds the child's own becomes an empty file system in which only its own is mounted, writable; an empty
 * file and an empty folder of it, both without any permission, cover what is hidden. All of it is in the
 * child's mount namespace, and goes with it; its own user namespaces could not undo it, for the kernel locks
 * the mounts that such a one is born with. */
#include "common/base/os/sandbox_view.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/os/file.h"

enum { EMPTY_FLAGS = MS_NOSUID | MS_NODEV | MS_NOEXEC };

static const char empty_file[] = "HIDDEN-FILE", empty_folder[] = "HIDDEN-FOLDER"; /* no trainer's names */

static bool join(char out[KEDGE_PATH_MAX], const char *folder, size_t folder_len, const char *name)
{
    size_t len = strlen(name);
    if (folder_len + len + 2 > KEDGE_PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(out, folder, folder_len);
    out[folder_len] = '/';
    memcpy(out + folder_len + 1, name, len + 1);
    return true;
}

static bool bind_to(const char *from, const char *to)
{
    return mount(from, to, NULL, MS_BIND | MS_REC, NULL) == 0;
}

/* With all that is mounted below. */
static bool make_read_only(const char *folder)
{
#ifdef SYS_mount_setattr
    const struct {
        uint64_t set, clear, propagation, user_namespace;
    } attributes = {.set = 1 /* MOUNT_ATTR_RDONLY */};
    if (syscall(SYS_mount_setattr, AT_FDCWD, folder, AT_RECURSIVE, &attributes, sizeof attributes) == 0) {
        return true;
    }
#endif
    struct statvfs now; /* before Linux 5.12: it alone, and flags that are locked must be named again */
    if (statvfs(folder, &now) != 0) {
        return false;
    }
    static const unsigned long flags[][2] = {
        {ST_NOSUID, MS_NOSUID},   {ST_NODEV, MS_NODEV},           {ST_NOEXEC, MS_NOEXEC},
        {ST_NOATIME, MS_NOATIME}, {ST_NODIRATIME, MS_NODIRATIME}, {ST_RELATIME, MS_RELATIME},
    };
    unsigned long kept = MS_REMOUNT | MS_BIND | MS_RDONLY;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        kept |= now.f_flag & flags[i][0] ? flags[i][1] : 0;
    }
    return mount(NULL, folder, NULL, kept, NULL) == 0;
}

/* Every folder on the way to it, and itself. */
static bool pin(const char *path)
{
    char at[KEDGE_PATH_MAX];
    for (size_t i = 1; path[i]; i++) {
        if (i >= sizeof at) {
            errno = ENAMETOOLONG;
            return false;
        }
        memcpy(at, path, i);
        at[i] = '\0';
        if (path[i] == '/' && !bind_to(at, at)) {
            return false;
        }
    }
    return bind_to(path, path);
}

/* The file system in which its own folder lies alone, with what covers others. The working folder is its own,
 * where it can still be written to. */
static bool make_room(const char *own, const char *holder, size_t holder_len)
{
    char path[KEDGE_PATH_MAX];
    if (mount("none", holder, "tmpfs", EMPTY_FLAGS, "mode=0755,size=64k,nr_inodes=8") != 0
        || mkdir(own, 0700) != 0 || !bind_to(".", own) || !join(path, holder, holder_len, empty_folder)
        || mkdir(path, 0) != 0 || !join(path, holder, holder_len, empty_file)) {
        return false;
    }
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0);
    return fd >= 0 && close(fd) == 0;
}

static bool hide(const struct kedge_sandbox *s, const char *holder, size_t holder_len)
{
    char path[KEDGE_PATH_MAX], cover[KEDGE_PATH_MAX];
    for (size_t i = 0; s->hidden && s->hidden[i]; i++) {
        struct stat st;
        if (!join(path, s->guarded, strlen(s->guarded), s->hidden[i])) {
            return false;
        }
        if (lstat(path, &st) != 0) {
            if (errno != ENOENT) {
                return false;
            }
            continue;
        }
        if (!join(cover, holder, holder_len, S_ISDIR(st.st_mode) ? empty_folder : empty_file)
            || !bind_to(cover, path)) {
            return false;
        }
    }
    return true;
}

bool kedgei_sandbox_guard(const struct kedge_sandbox *s)
{
    char holder[KEDGE_PATH_MAX];
    const char *slash = strrchr(s->own, '/');
    size_t len = slash ? (size_t)(slash - s->own) : 0;
    if (len >= sizeof holder || len <= strlen(s->guarded)
        || strncmp(s->own, s->guarded, strlen(s->guarded)) != 0) {
        errno = EINVAL;
        return false;
    }
    memcpy(holder, s->own, len);
    holder[len] = '\0';
    return chdir(s->own) == 0 && pin(s->guarded) && make_read_only(s->guarded)
           && make_room(s->own, holder, len) && hide(s, holder, len)
           && mount(NULL, holder, NULL, MS_REMOUNT | MS_RDONLY | EMPTY_FLAGS, NULL) == 0;
}

bool kedgei_sandbox_own_proc(const char *other)
{
    return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0
           || access(other, R_OK) != 0;
}
