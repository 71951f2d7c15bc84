/* What a trainer, a program of somebody else, may do on the site's machine. Linux only.
 *
 * Limits hold everywhere. Namespaces need no privilege where user namespaces are permitted; where they are
 * not, the caller starts the child again without them and says so, instead of refusing to train: many
 * hosts forbid them.
 *
 * Order matters. The user namespace gives the right to make the others and to mount. The capabilities go
 * out of the bounding set, so that the program has none after exec, while the steps up to exec still have
 * them. RLIMIT_NPROC is set inside, where it counts the namespace's processes alone. A process of its own
 * is forked at last: the first one in a process namespace is its process 1, and when it dies the kernel
 * kills all others, so that nothing of a trainer survives it. */
#include "common/base/os/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/os/sandbox_view.h"
#include "common/base/text.h"

enum {
    CPU_GRACE_S = 2,
    CAPABILITIES_MAX = 64,
    PIDS_RESERVED = 300, /* numbers that the kernel gives once only */
    LINUX_MAJOR = 5,     /* of the first kernel that counts processes by user namespace */
    LINUX_MINOR = 14
};

static bool limit(int which, uint64_t soft, uint64_t hard)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)which, &now) != 0) {
        return false;
    }
    if (now.rlim_max != RLIM_INFINITY && hard > now.rlim_max) { /* nobody may raise what is less already */
        hard = now.rlim_max;
        soft = soft < hard ? soft : hard;
    }
    struct rlimit wanted = {soft, hard};
    return setrlimit((__rlimit_resource_t)which, &wanted) == 0;
}

/* Each limit may already be lower from outside; it is then kept, for it cannot be raised. */
bool kedgei_sandbox_limit(const struct kedge_sandbox *s, int keep_fd)
{
    bool ok = setsid() >= 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    ok = ok && close_range((unsigned)keep_fd + 1, ~0U, 0) == 0;
    ok = ok && limit(RLIMIT_CORE, 0, 0);
    ok = ok
         && (!s->cpu_seconds_max || limit(RLIMIT_CPU, s->cpu_seconds_max, s->cpu_seconds_max + CPU_GRACE_S));
    ok = ok && (!s->file_bytes_max || limit(RLIMIT_FSIZE, s->file_bytes_max, s->file_bytes_max));
    return ok && (!s->files_max || limit(RLIMIT_NOFILE, s->files_max, s->files_max));
}

/* By the kernel's version: before 5.14 the limit counts the user's processes over all namespaces,
 * and a trainer could start none of its own where the user has many. */
static bool counts_apart(void)
{
    struct utsname u;
    uint64_t major = 0, minor = 0;
    if (uname(&u) != 0) {
        return false;
    }
    size_t dot = strcspn(u.release, "."),
           digits = strspn(u.release + dot + (u.release[dot] == '.'), "0123456789");
    return u.release[dot] == '.'
           && kedge_decimal_decode(kedge_view_of(u.release, dot), UINT32_MAX, &major) == KEDGE_OK
           && kedge_decimal_decode(kedge_view_of(u.release + dot + 1, digits), UINT32_MAX, &minor) == KEDGE_OK
           && (major > LINUX_MAJOR || (major == LINUX_MAJOR && minor >= LINUX_MINOR));
}

void kedgei_sandbox_maps(const struct kedge_sandbox *s, struct kedge_sandbox_maps *ret)
{
    ret->counts_apart = counts_apart();
    ret->is_root = geteuid() == 0;
    snprintf(ret->pids, sizeof ret->pids, "%" PRIu64, PIDS_RESERVED + s->processes_max);
    snprintf(ret->outside, sizeof ret->outside, "/proc/%ld/cmdline", (long)getpid());
    snprintf(ret->uid, sizeof ret->uid, "%u %u 1", (unsigned)geteuid(), (unsigned)geteuid());
    snprintf(ret->gid, sizeof ret->gid, "%u %u 1", (unsigned)getegid(), (unsigned)getegid());
}

static bool put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    size_t len = strlen(text);
    bool ok = fd >= 0 && write(fd, text, len) == (ssize_t)len;
    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

/* Without any capability even root of a user namespace can undo nothing of this. */
static bool drop_capabilities(void)
{
    for (int c = 0; c < CAPABILITIES_MAX; c++) {
        if (prctl(PR_CAPBSET_DROP, c, 0, 0, 0) != 0) {
            return c > 0 && errno == EINVAL; /* that was the last one */
        }
    }
    return true;
}

/* The process outside: ends with the one inside, and takes it along. SIGTERM, which comes to both, is for
 * the one inside to answer. */
static _Noreturn void stand_for(pid_t inside, pid_t parent)
{
    int status = 0;
    close_range(0, ~0U, 0);
    signal(SIGTERM, SIG_IGN);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != parent) {
        _exit(127);
    }
    while (waitpid(inside, &status, 0) < 0 && errno == EINTR) {
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* Before it, RLIMIT_NPROC would count all other processes of the user, too. The one that stands for it is
 * among those counted. */
static bool bound_processes(const struct kedge_sandbox *s, const struct kedge_sandbox_maps *maps)
{
    return s->processes_max > 0 && maps->counts_apart
           && limit(RLIMIT_NPROC, s->processes_max + 1, s->processes_max + 1) && !maps->is_root;
}

bool kedgei_sandbox_separate(const struct kedge_sandbox *s, const struct kedge_sandbox_maps *maps,
                             pid_t parent, struct kedge_sandbox_gaps *ret_gaps)
{
    int spaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNS | (s->network ? 0 : CLONE_NEWNET);
    if (unshare(spaces) != 0 || !put("/proc/self/setgroups", "deny") || !put("/proc/self/uid_map", maps->uid)
        || !put("/proc/self/gid_map", maps->gid) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0
        || (s->guarded && !kedgei_sandbox_guard(s)) || !drop_capabilities()) {
        return false;
    }
    bool bounded = bound_processes(s, maps);
    pid_t inside = _Fork();
    if (inside > 0) {
        stand_for(inside, parent);
    }
    /* When the one outside is killed, the kernel kills this one, and with it, process 1 of its kind, all
     * others. */
    if (inside != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) {
        return false;
    }
    bounded =
        bounded || (s->processes_max > 0 && maps->is_root && put("/proc/sys/kernel/pid_max", maps->pids));
    *ret_gaps = (struct kedge_sandbox_gaps){.unbounded = s->processes_max > 0 && !bounded,
                                            .sees_others = !kedgei_sandbox_own_proc(maps->outside)};
    return true;
}
