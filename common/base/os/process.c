#include "common/base/os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/base/os/file.h"

extern char **environ;

/* Runs in the child between fork and exec: only async-signal-safe calls. Never returns. */
static _Noreturn void exec_child(const struct kedge_process_options *o, int in_fd, int out_fd, int log_fd,
                                 int status_fd, pid_t parent)
{
    if (o->die_with_parent && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)) {
        _exit(127);
    }
    bool ok = dup2(in_fd, STDIN_FILENO) >= 0;
    if (out_fd >= 0) {
        ok = ok && dup2(out_fd, STDOUT_FILENO) >= 0;
    }
    if (log_fd >= 0) {
        ok = ok && dup2(log_fd, STDERR_FILENO) >= 0;
    }
    if (o->memory_max) {
        struct rlimit limit = {o->memory_max, o->memory_max};
        ok = ok && setrlimit(RLIMIT_AS, &limit) == 0;
    }
    ok = ok && (!o->directory || chdir(o->directory) == 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (ok) {
        if (o->env) {
            environ = (char **)(uintptr_t)o->env;
        }
        execvp(o->argv[0], (char *const *)(uintptr_t)o->argv);
    }
    int e = errno;
    ssize_t n = write(status_fd, &e, sizeof e);
    (void)n;
    _exit(127);
}

static void close_if(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

int kedge_process_start(const struct kedge_process_options *o, struct kedge_process *ret,
                        struct kedge_diag *reterr)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, status[2] = {-1, -1}, log = -1;
    if (o->stderr_path) {
        log = kedge_file_open(o->stderr_path, O_WRONLY | O_CREAT | O_APPEND, reterr);
        if (log < 0) {
            return log;
        }
    }
    if ((o->pipe_stdin ? pipe2(in, O_CLOEXEC) : (in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) != 0
        || (o->pipe_stdout && pipe2(out, O_CLOEXEC) != 0) || pipe2(status, O_CLOEXEC) != 0) {
        int e = errno;
        close_if(in[0]), close_if(in[1]), close_if(out[0]), close_if(out[1]), close_if(log);
        return kedge_diag_set(reterr, kedge_errno(e), "%s: cannot make pipes: %s", o->argv[0], strerror(e));
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        exec_child(o, in[0], out[1], log, status[1], parent);
    }
    int fork_errno = errno, exec_errno = 0;
    close_if(in[0]), close_if(out[1]), close_if(log), close_if(status[1]);
    ssize_t n = 0;
    if (pid > 0) {
        do {
            n = read(status[0], &exec_errno, sizeof exec_errno);
        } while (n < 0 && errno == EINTR);
    }
    close_if(status[0]);
    if (pid < 0 || n > 0) {
        close_if(in[1]), close_if(out[0]);
        if (pid > 0) {
            waitpid(pid, NULL, 0);
        }
        int e = pid < 0 ? fork_errno : exec_errno;
        return kedge_diag_set(reterr, kedge_errno(e), "%s: cannot start: %s", o->argv[0], strerror(e));
    }
    *ret = (struct kedge_process){pid, in[1], out[0]};
    return KEDGE_OK;
}

static void forget(struct kedge_process *p)
{
    close_if(p->in_fd);
    close_if(p->out_fd);
    *p = (struct kedge_process){0, -1, -1};
}

bool kedge_process_poll(struct kedge_process *p, int *ret_status)
{
    int status = 0;
    if (p->pid == 0 || waitpid(p->pid, &status, WNOHANG) != p->pid) {
        return false;
    }
    *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    forget(p);
    return true;
}

void kedge_process_stop(struct kedge_process *p, int signal_number, uint32_t timeout_ms)
{
    if (p->pid == 0) {
        return;
    }
    int status;
    kill(p->pid, signal_number);
    for (uint32_t waited = 0; waited < timeout_ms; waited += 5) {
        if (kedge_process_poll(p, &status)) {
            return;
        }
        kedge_os_sleep_ms(5);
    }
    kill(p->pid, SIGKILL);
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) {
    }
    forget(p);
}

int kedge_process_own_dir(char *out, size_t out_len)
{
    ssize_t n = readlink("/proc/self/exe", out, out_len - 1);
    if (n <= 0) {
        return KEDGE_E_NOT_FOUND;
    }
    out[n] = '\0';
    char *slash = strrchr(out, '/');
    if (!slash) {
        return KEDGE_E_NOT_FOUND;
    }
    *slash = '\0';
    return KEDGE_OK;
}
