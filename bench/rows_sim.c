/* The row of the simulated federation's seeds. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/rows.h"
#include "common/base/err.h"
#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "common/base/os/process.h"
#include "common/base/text.h"
#include "common/base/try.h"

enum { SEEDS = 10000, PROCESSES = 2, SAID_MAX = 4096, POLL_US = 1000 };

/* kedge-sim-check beside this program. */
static int start(int part, struct kedge_process *ret)
{
    char dir[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX], seeds[32];
    const int share = SEEDS / PROCESSES;
    (void)snprintf(seeds, sizeof seeds, "%d-%d", 1 + part * share, (part + 1) * share);
    const char *argv[] = {path, "--seeds", seeds, NULL};
    struct kedge_process_options options = {.argv = argv, .pipe_stdout = true, .die_with_parent = true};
    KEDGE_TRY(kedge_process_own_dir(dir, sizeof dir));
    KEDGE_TRY(kedge_path_join(path, dir, "kedge-sim-check"));
    return kedge_process_start(&options, ret, NULL);
}

/* The events of "seeds 1-5000: 0 failed, 9631784 events, …", 0 when it does not say so. */
static double events_of(const char *said)
{
    const char *from = strstr(said, ": 0 failed, "), *to = from ? strstr(from, " events") : NULL;
    uint64_t count = 0;
    from = from ? from + strlen(": 0 failed, ") : NULL;
    bool fine =
        to && kedge_decimal_decode(kedge_view_of(from, (size_t)(to - from)), UINT64_MAX, &count) == KEDGE_OK;
    return fine ? (double)count : 0;
}

/* Waits for its end; the events of its seeds, 0 when one failed. */
static double finish(struct kedge_process *p)
{
    char said[SAID_MAX + 1];
    size_t len = 0;
    int status = 1;
    for (ssize_t n = 1; n > 0 && len<SAID_MAX; len += n> 0 ? (size_t)n : 0) {
        n = read(p->out_fd, said + len, SAID_MAX - len);
    }
    said[len] = '\0';
    while (p->pid > 0 && !kedge_process_poll(p, &status)) {
        usleep(POLL_US);
    }
    kedge_process_stop(p, SIGKILL, 0);
    return status == 0 ? events_of(said) : 0;
}

int kedge_row_chaos(struct row rows[ROWS_MAX], int *ret_count)
{
    const double target = 300;
    struct kedge_process parts[PROCESSES];
    double events = 0;
    bool fine = true;
    int err = KEDGE_OK;
    uint64_t from = kedge_os_now_ns();
    for (int i = 0; i < PROCESSES; i++) {
        parts[i] = (struct kedge_process){.in_fd = -1, .out_fd = -1, .err_fd = -1};
    }
    for (int i = 0; i < PROCESSES && !err; i++) {
        err = start(i, &parts[i]);
    }
    for (int i = 0; i < PROCESSES && !err; i++) {
        double some = finish(&parts[i]);
        fine = fine && some > 0;
        events += some;
    }
    for (int i = 0; i < PROCESSES; i++) {
        kedge_process_stop(&parts[i], SIGKILL, 0);
    }
    double seconds = 1e-9 * (double)(kedge_os_now_ns() - from);
    if (!err) {
        rows[0] = (struct row){
            "chaos-10000", "s", seconds, 1e-6 * events, target, false, fine && seconds <= target};
        *ret_count = 1;
    }
    return err;
}
