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
    /* A folder that it cannot write to, nor put another in its place: an absolute path without links; or
     * NULL, then the next two are not looked at. */
    const char *guarded;
    const char *own;           /* two or more levels below it: it may write here, and of what lies beside
                                  it sees nothing */
    const char *const *hidden; /* names in `guarded` of files and folders that it cannot open; those that
                                  are not there are skipped. Ends with NULL; or NULL */
};

/* How far a child could be confined. */
enum kedge_confined {
    KEDGE_CONFINED_LIMITS = 1, /* all but the following, which the kernel did not permit */
    KEDGE_CONFINED_NAMESPACES, /* also: processes of its own, its network unless it keeps it, the guarded
                                  folder */
};

/* Of namespaces, what may still be missing. */
struct kedge_sandbox_gaps {
    bool unbounded;   /* processes_max does not hold */
    bool sees_others; /* other processes are in its /proc, command lines included; it can signal none */
};

/* Only these two are called, between fork and exec: async-signal-safe calls alone.
 * First: session, limits, privileges, descriptors from keep_fd + 1 on. False: errno says why. */
bool kedgei_sandbox_limit(const struct kedge_sandbox *s, int keep_fd);
/* Then, if wanted: namespaces. Returns in a child of its own, while the caller's process stays to wait for it
 * and ends as it ends (with its status, or 128 + signal), killed when `parent`, its own, dies. `maps` as
 * kedgei_sandbox_maps made them, in `parent`. False: errno says why, and the process has to be thrown away.
 * processes_max holds by RLIMIT_NPROC, which a user namespace counts for itself since Linux 5.14, but not for
 * the system's root; for that one by the namespace's pid_max since 6.14, which takes 300 more. A /proc of its
 * own is not permitted where parts of the system's are covered (containers, ProtectKernelTunables= of a
 * unit); there it sees others unless /proc is mounted with hidepid (ProtectProc=). */
struct kedge_sandbox_maps {
    char uid[64], gid[64], pids[24], outside[40];
    bool counts_apart; /* RLIMIT_NPROC counts what is in a user namespace alone … */
    bool is_root;      /* … and holds for this user */
};
void kedgei_sandbox_maps(const struct kedge_sandbox *s, struct kedge_sandbox_maps *ret);
bool kedgei_sandbox_separate(const struct kedge_sandbox *s, const struct kedge_sandbox_maps *maps,
                             pid_t parent, struct kedge_sandbox_gaps *ret_gaps);

#endif
