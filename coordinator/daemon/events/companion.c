/* Why a process and not a thread: nng runs threads of its own that nobody can end from outside; a process
 * that hangs can be killed. The loop never waits for it. Frames fit PIPE_BUF, so a write into the pipe, which
 * does not block, is whole or nothing; beats come back through another pipe and are read when the loop looks.
 *
 * A process that ends at once, again and again, is started after pauses that grow to a minute. */
#include "coordinator/daemon/events/companion.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/base/os/log.h"

#define NS_PER_MS UINT64_C(1000000)
enum {
    PIPE_BYTES = 1 << 20, /* asked for; the system may give less */
    PAUSE_MS = 500,       /* after the first end; doubled by each that follows soon */
    PAUSE_MAX_MS = 60000,
    FINE_MS = 10000, /* lived for so long, it is no start that failed */
    STOP_MS = 1000,
};

bool kedge_companion_find(struct kedge_companion *c)
{
    char dir[KEDGE_PATH_MAX];
    c->process = (struct kedge_process){.in_fd = -1, .out_fd = -1, .err_fd = -1};
    c->due_ns = KEDGE_TIME_NEVER;
    if (kedge_process_own_dir(dir, sizeof dir) != KEDGE_OK
        || kedge_path_join(c->program, dir, "kedge-events") != KEDGE_OK || access(c->program, X_OK) != 0) {
        return false;
    }
    c->is_ended = true;
    c->due_ns = c->start_ns = kedge_os_now_ns();
    return true;
}

static void fail_later(struct kedge_companion *c, uint64_t now_ns, const char *why)
{
    const bool lived = now_ns - c->start_ns >= FINE_MS * NS_PER_MS;
    c->failures = lived ? 1 : c->failures + 1;
    uint64_t pause_ms = PAUSE_MS;
    for (unsigned i = 1; i < c->failures && pause_ms < PAUSE_MAX_MS; i++) {
        pause_ms *= 2;
    }
    pause_ms = pause_ms < PAUSE_MAX_MS ? pause_ms : PAUSE_MAX_MS;
    kedge_log(KEDGE_LOG_WARN, "event stream",
              "kedge-events %s; %" PRIu64 " events did not reach it; again in %" PRIu64 " ms", why, c->lost,
              pause_ms);
    c->lost = 0;
    c->is_ended = true;
    c->was_killed = false;
    c->start_ns = now_ns + pause_ms * NS_PER_MS;
}

static void start(struct kedge_companion *c, uint64_t now_ns)
{
    struct kedge_diag d = {.text = ""};
    const char *argv[4 + 2 * KEDGE_COMPANION_LISTEN_MAX] = {c->program, "--folder", c->folder};
    for (unsigned i = 0; i < c->listen_count; i++) {
        argv[3 + 2 * i] = "--listen";
        argv[4 + 2 * i] = c->listen[i];
    }
    const struct kedge_process_options options = {
        .argv = argv, .pipe_stdin = true, .pipe_stdout = true, .die_with_parent = true};
    int err = kedge_process_start(&options, &c->process, &d);
    if (err) {
        fail_later(c, now_ns, d.text);
        return;
    }
    (void)fcntl(c->process.in_fd, F_SETFL, O_NONBLOCK);
    (void)fcntl(c->process.out_fd, F_SETFL, O_NONBLOCK);
    (void)fcntl(c->process.in_fd, F_SETPIPE_SZ, PIPE_BYTES);
    c->is_ended = false;
    c->asked_ns = 0;
    c->start_ns = now_ns;
}

/* A loop that was held up itself finds the answer that came meanwhile, and does not take the companion for
 * one that hangs: answers are read before times are compared. */
static void watch(struct kedge_companion *c, uint64_t now_ns)
{
    char bytes[64], why[64];
    int status;
    if (read(c->process.out_fd, bytes, sizeof bytes) > 0) {
        c->asked_ns = 0;
    }
    if (kedge_process_poll(&c->process, &status)) {
        snprintf(why, sizeof why, c->was_killed ? "hung and was killed" : "ended with code %d", status);
        fail_later(c, now_ns, why);
        return;
    }
    if (c->asked_ns > 0 && now_ns - c->asked_ns >= KEDGE_COMPANION_HANG_MS * NS_PER_MS && !c->was_killed) {
        kedge_process_signal(&c->process, SIGKILL);
        c->was_killed = true;
    }
}

void kedge_companion_look(struct kedge_companion *c, uint64_t now_ns, bool *ret_started)
{
    *ret_started = false;
    if (now_ns < c->due_ns || c->due_ns == KEDGE_TIME_NEVER) {
        return;
    }
    if (!c->is_ended) {
        watch(c, now_ns);
    }
    if (c->is_ended && now_ns >= c->start_ns) {
        start(c, now_ns);
        *ret_started = !c->is_ended;
    }
    if (c->lost > 0) {
        kedge_log(KEDGE_LOG_WARN, "event stream",
                  "%" PRIu64 " events were lost: kedge-events does not keep up", c->lost);
        c->lost = 0;
    }
    c->due_ns = now_ns + KEDGE_COMPANION_BEAT_MS * NS_PER_MS;
    c->due_ns = c->is_ended && c->start_ns < c->due_ns ? c->start_ns : c->due_ns;
}

/* A pipe without a reader is found out by the next look. */
void kedge_companion_write(struct kedge_companion *c, const struct kedge_event_frame *f)
{
    struct kedge_buf bytes;
    if (c->is_ended || c->process.in_fd < 0) {
        return;
    }
    kedge_buf_init(&bytes, KEDGE_EVENT_FRAME_MAX);
    int err = kedge_event_frame_encode(f, &bytes);
    if (!err && write(c->process.in_fd, bytes.ptr, bytes.len) < 0) {
        err = KEDGE_E_BUSY;
    }
    kedge_buf_deinit(&bytes);
    c->lost += err && f->type == KEDGE_EVENT_FRAME_SAY;
    if (f->type == KEDGE_EVENT_FRAME_BEAT && c->asked_ns == 0) { /* also when there was no room for it */
        c->asked_ns = kedge_os_now_ns();
    }
}

void kedge_companion_stop(struct kedge_companion *c)
{
    int status;
    if (c->is_ended || c->due_ns == KEDGE_TIME_NEVER) {
        return;
    }
    kedge_process_close_input(&c->process);
    for (unsigned waited = 0; waited < STOP_MS && c->process.pid != 0; waited += 5) {
        if (!kedge_process_poll(&c->process, &status)) {
            kedge_os_sleep_ms(5);
        }
    }
    kedge_process_stop(&c->process, SIGKILL, 1);
    c->is_ended = true;
    c->due_ns = KEDGE_TIME_NEVER;
}
