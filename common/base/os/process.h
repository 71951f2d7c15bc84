/* Child processes with pipes, for trainers and for `kedge poc`. */
#ifndef KEDGE_COMMON_BASE_OS_PROCESS_H
#define KEDGE_COMMON_BASE_OS_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#include "common/base/diag.h"
#include "common/base/os/sandbox.h"

struct kedge_process {
    pid_t pid;                       /* 0: not running */
    int in_fd;                       /* write end of the child's stdin, -1 if not piped */
    int out_fd;                      /* read end of the child's stdout, -1 if not piped */
    int err_fd;                      /* read end of its stderr, -1 if not piped */
    enum kedge_confined confined;    /* 0: it was not asked for */
    struct kedge_sandbox_gaps lacks; /* of what was asked for */
};

struct kedge_process_options {
    const char *const *argv;             /* NULL-terminated; argv[0] looked up in PATH */
    const char *const *env;              /* NULL-terminated whole environment, or NULL to inherit */
    const char *directory;               /* working folder, or NULL */
    const char *stderr_path;             /* appended to, or NULL to inherit */
    bool pipe_stdin, pipe_stdout;        /* else /dev/null and inherit */
    bool pipe_stderr;                    /* instead of stderr_path */
    bool die_with_parent;                /* SIGKILL the child when this process dies (Linux) */
    uint64_t memory_max;                 /* RLIMIT_AS in bytes, 0: none */
    const struct kedge_sandbox *sandbox; /* NULL: none; else it is stopped with all that it has started */
};

KEDGE_NODISCARD int kedge_process_start(const struct kedge_process_options *options,
                                        struct kedge_process *ret, struct kedge_diag *reterr);
/* True when it ended; then *ret_status holds the exit status, or 128 + signal, and pid is 0. Does not block.
 */
bool kedge_process_poll(struct kedge_process *p, int *ret_status);
/* The end of its input, which asks a program that reads requests to end. */
void kedge_process_close_input(struct kedge_process *p);
/* To it, and in a sandbox to what it has started, too. Fine when not running. */
void kedge_process_signal(const struct kedge_process *p, int signal_number);
/* Sends the signal (one in a sandbox sees the end of its input instead); waits up to timeout_ms, then
 * SIGKILL; closes the pipes. Fine when not running. */
void kedge_process_stop(struct kedge_process *p, int signal_number, uint32_t timeout_ms);

/* The folder of the running executable, for finding sibling programs. */
KEDGE_NODISCARD int kedge_process_own_dir(char *out, size_t out_len);

#endif
