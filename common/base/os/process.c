/* Starting a program so that failure to start is told apart from a program that fails. Between fork and
 * exec the child can report nothing by a return value, so it has a pipe that closes at exec: what the
 * parent reads there is the child's errno; end of file means that the program runs.
 *
 * The same pipe carries, before exec, what the sandbox could not do, for the child alone knows it. Where
 * the kernel refuses namespaces, the half-made child is thrown away and started once more without them: a
 * process cannot undo a namespace that it has entered.
 *
 * A confined child has a process group of its own. It is killed as a group, and before its number is given
 * back: while the child is a zombie, the kernel gives its number to nobody else, so the signal cannot hit
 * a stranger. */
#include "common/base/os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "common/base/try.h"

extern char **environ;

struct pipes {
    int in[2], out[2], err[2], status[2], log;
};

/* What a child that could not start says before it ends; one that goes on says 0 and what its sandbox lacks,
 * when it lacks anything. */
struct complaint {
    int os_errno;
    bool separate; /* it was the namespaces: all else may go well without them */
    struct kedge_sandbox_gaps gaps;
};

static _Noreturn void complain(int status_fd, bool separate)
{
    struct complaint c = {.os_errno = errno, .separate = separate};
    ssize_t n = write(status_fd, &c, sizeof c);
    (void)n;
    _exit(127);
}

/* Memory is limited before exec, so the program cannot take more even at its start. */
static bool set_up(const struct kedge_process_options *o, const struct pipes *p)
{
    bool ok = dup2(p->in[0], STDIN_FILENO) >= 0;
    if (p->out[1] >= 0) {
        ok = ok && dup2(p->out[1], STDOUT_FILENO) >= 0;
    }
    if (p->err[1] >= 0 || p->log >= 0) {
        ok = ok && dup2(p->err[1] >= 0 ? p->err[1] : p->log, STDERR_FILENO) >= 0;
    }
    if (o->memory_max) {
        struct rlimit limit = {o->memory_max, o->memory_max};
        ok = ok && setrlimit(RLIMIT_AS, &limit) == 0;
    }
    return ok;
}

/* Runs in the child between fork and exec: only async-signal-safe calls. Never returns.
 * The status pipe is moved to the descriptor after stderr, so that all higher ones can be closed in one
 * call. The signal mask is emptied and SIGPIPE restored because both survive exec. */
static _Noreturn void exec_child(const struct kedge_process_options *o, const struct pipes *p, pid_t parent,
                                 const struct kedge_sandbox_maps *maps)
{
    int status_fd = p->status[1];
    if (o->die_with_parent && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)) {
        _exit(127);
    }
    bool ok = set_up(o, p);
    if (ok && o->sandbox) {
        const int keep = STDERR_FILENO + 1;
        ok = status_fd == keep || dup3(status_fd, keep, O_CLOEXEC) >= 0;
        status_fd = ok ? keep : status_fd;
        ok = ok && kedgei_sandbox_limit(o->sandbox, keep);
        struct complaint lacks = {.gaps = {.unbounded = o->sandbox->processes_max > 0, .sees_others = true}};
        if (ok && maps && !kedgei_sandbox_separate(o->sandbox, maps, parent, &lacks.gaps)) {
            complain(status_fd, true);
        }
        if (ok && (lacks.gaps.unbounded || lacks.gaps.sees_others)) {
            ok = write(status_fd, &lacks, sizeof lacks) == sizeof lacks;
        }
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
    complain(status_fd, false);
}

static void close_if(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

static void close_pair(const int fds[2])
{
    close_if(fds[0]), close_if(fds[1]);
}

/* All ends close at exec, except those that become the child's standard streams. */
static int open_pipes(const struct kedge_process_options *o, struct pipes *ret, struct kedge_diag *reterr)
{
    struct pipes p = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, -1};
    if (o->stderr_path && !o->pipe_stderr) {
        p.log = kedge_file_open(o->stderr_path, O_WRONLY | O_CREAT | O_APPEND, reterr);
        if (p.log < 0) {
            return p.log;
        }
    }
    if ((o->pipe_stdin ? pipe2(p.in, O_CLOEXEC) : (p.in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
            != 0
        || (o->pipe_stdout && pipe2(p.out, O_CLOEXEC) != 0)
        || (o->pipe_stderr && pipe2(p.err, O_CLOEXEC) != 0) || pipe2(p.status, O_CLOEXEC) != 0) {
        int e = errno;
        close_pair(p.in), close_pair(p.out), close_pair(p.err), close_if(p.log);
        return kedge_diag_set(reterr, kedge_errno(e), "%s: cannot make pipes: %s", o->argv[0], strerror(e));
    }
    *ret = p;
    return KEDGE_OK;
}

/* True when there is one; until the child has become its program, or has ended. Reading ends when exec closes
 * the child's end of the pipe; a complaint with errno 0 only tells gaps. */
static bool has_complaint(int status_fd, struct complaint *ret, struct kedge_sandbox_gaps *ret_gaps)
{
    *ret_gaps = (struct kedge_sandbox_gaps){.unbounded = false};
    for (;;) { /* two at most */
        ssize_t n = read(status_fd, ret, sizeof *ret);
        if (n == sizeof *ret && ret->os_errno == 0) {
            *ret_gaps = ret->gaps;
        } else if (n >= 0 || errno != EINTR) {
            return n > 0;
        }
    }
}

/* maps: for namespaces, or NULL for none. *ret_complaint.separate: try again without. */
static int start(const struct kedge_process_options *o, const struct kedge_sandbox_maps *maps,
                 struct kedge_process *ret, struct complaint *ret_complaint, struct kedge_diag *reterr)
{
    struct pipes p = {.log = -1};
    struct complaint c = {.os_errno = 0};
    KEDGE_TRY(open_pipes(o, &p, reterr));
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        exec_child(o, &p, parent, maps);
    }
    int fork_errno = errno;
    close_if(p.in[0]), close_if(p.out[1]), close_if(p.err[1]), close_if(p.log), close_if(p.status[1]);
    struct kedge_sandbox_gaps gaps = {.unbounded = false};
    bool failed = pid < 0 || has_complaint(p.status[0], &c, &gaps);
    close_if(p.status[0]);
    if (failed) {
        close_if(p.in[1]), close_if(p.out[0]), close_if(p.err[0]);
        if (pid > 0) {
            waitpid(pid, NULL, 0);
        }
        *ret_complaint = c;
        int e = pid < 0 ? fork_errno : c.os_errno;
        return kedge_diag_set(reterr, kedge_errno(e), "%s: cannot start: %s", o->argv[0], strerror(e));
    }
    enum kedge_confined confined = maps ? KEDGE_CONFINED_NAMESPACES : KEDGE_CONFINED_LIMITS;
    *ret = (struct kedge_process){pid, p.in[1], p.out[0], p.err[0], o->sandbox ? confined : 0, gaps};
    return KEDGE_OK;
}

/* The maps are written before the fork: after it, in the child, only calls that are safe in a
 * signal handler may be made. */
int kedge_process_start(const struct kedge_process_options *o, struct kedge_process *ret,
                        struct kedge_diag *reterr)
{
    struct complaint complaint = {.separate = false};
    struct kedge_sandbox_maps maps;
    if (o->sandbox) {
        kedgei_sandbox_maps(o->sandbox, &maps);
    }
    int err = start(o, o->sandbox ? &maps : NULL, ret, &complaint, reterr);
    return err && complaint.separate ? start(o, NULL, ret, &complaint, reterr) : err;
}

static void forget(struct kedge_process *p)
{
    close_if(p->in_fd);
    close_if(p->out_fd);
    close_if(p->err_fd);
    *p = (struct kedge_process){.in_fd = -1, .out_fd = -1, .err_fd = -1};
}

/* The group is killed while its leader is a zombie, see above; only then is the leader's number
 * given back by waitpid. */
bool kedge_process_poll(struct kedge_process *p, int *ret_status)
{
    int status = 0;
    siginfo_t info = {.si_pid = 0};
    if (p->pid != 0 && p->confined && waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0
        && info.si_pid == p->pid) {
        kill(-p->pid, SIGKILL); /* what it has started and left */
    }
    if (p->pid == 0 || waitpid(p->pid, &status, WNOHANG) != p->pid) {
        return false;
    }
    *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    forget(p);
    return true;
}

void kedge_process_close_input(struct kedge_process *p)
{
    close_if(p->in_fd);
    p->in_fd = -1;
}

void kedge_process_signal(const struct kedge_process *p, int signal_number)
{
    if (p->pid != 0) {
        kill(p->confined ? -p->pid : p->pid, signal_number);
    }
}

/* Asked first, killed after the time-out: a trainer that is asked can save what it has. */
void kedge_process_stop(struct kedge_process *p, int signal_number, uint32_t timeout_ms)
{
    if (p->pid == 0) {
        return;
    }
    int status;
    if (p->confined) { /* the end of its input asks it to end */
        kedge_process_close_input(p);
    } else {
        kedge_process_signal(p, signal_number);
    }
    for (uint32_t waited = 0; waited < timeout_ms; waited += 5) {
        if (kedge_process_poll(p, &status)) {
            return;
        }
        kedge_os_sleep_ms(5);
    }
    kedge_process_signal(p, SIGKILL);
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
