/* What a child process may not do: limits, a session of its own, no new privileges, no descriptors but its
 * pipes and, where the kernel permits it, no network, no other processes and folders that it does not see. */
#ifndef KEDGE_COMMON_BASE_OS_SANDBOX_H
#define KEDGE_COMMON_BASE_OS_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct kedge_sandbox {
    uint64_t cpu_seconds_max; /* RLIMIT_CPU: SIGXCPU, 2 s later SIGKILL; 0: none */
    uint64_t file_bytes_max;  /* RLIMIT_FSIZE: the longest file that it may write; 0: none */
    uint64_t files_max;       /* RLIMIT_NOFILE; 0: as it is */
    uint64_t processes_max;   /* processes and threads at once, counted in its own namespaces; 0: no bound */
    bool network;             /* it keeps the network */
    const char *hidden;       /* a folder that it shall see empty, or NULL */
};

/* How far a child could be confined. */
enum kedge_confined {
    KEDGE_CONFINED_LIMITS = 1, /* all but the following, which the kernel did not permit */
    KEDGE_CONFINED_NAMESPACES, /* also: processes of its own, its network unless it keeps it, the hidden
                                  folder */
};

/* Only these two are called, between fork and exec: async-signal-safe calls alone.
 * First: session, limits, privileges, descriptors from keep_fd + 1 on. False: errno says why. */
bool kedgei_sandbox_limit(const struct kedge_sandbox *s, int keep_fd);
/* Then, if wanted: namespaces. Returns in a child of its own, while the caller's process stays to wait for it
 * and ends as it ends (with its status, or 128 + signal), killed when `parent`, its own, dies. `maps` as
 * kedgei_sandbox_maps made them. False: errno says why, and the process has to be thrown away. *ret_bounded:
 * processes_max holds, by RLIMIT_NPROC, which a user namespace counts for itself since Linux 5.14, but not
 * for the system's root; for that one by the namespace's pid_max since 6.14, which takes 300 more. */
struct kedge_sandbox_maps {
    char uid[64], gid[64], pids[24];
    bool counts_apart; /* RLIMIT_NPROC counts what is in a user namespace alone … */
    bool is_root;      /* … and holds for this user */
};
void kedgei_sandbox_maps(const struct kedge_sandbox *s, struct kedge_sandbox_maps *ret);
bool kedgei_sandbox_separate(const struct kedge_sandbox *s, const struct kedge_sandbox_maps *maps,
                             pid_t parent, bool *ret_bounded);

#endif
