#include "bench/bench_torch.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/os/process.h"
#include "common/base/text.h"

/* The faster of the rates in what it printed, lines "GB/s RATE"; 0 without any. */
static double best_rate(const char *said)
{
    double best = 0, rate;
    for (const char *line = strstr(said, "GB/s "); line; line = strstr(line, "GB/s ")) {
        line += 5;
        const struct kedge_view number = kedge_view_of(line, strcspn(line, "\n"));
        if (kedge_real_decode(number, &rate) == KEDGE_OK) {
            best = rate > best ? rate : best;
        }
    }
    return best;
}

static double ask(const char *python)
{
    const char *const argv[] = {python, KEDGE_BENCH_SCRIPTS "/compare_torch.py", "--torch", NULL};
    const struct kedge_process_options options = {.argv = argv, .pipe_stdout = true, .die_with_parent = true};
    struct kedge_process process;
    struct kedge_diag diag;
    char said[1024] = "";
    size_t len = 0;
    if (kedge_process_start(&options, &process, &diag) != KEDGE_OK) {
        return 0;
    }
    for (ssize_t n = 1; n > 0 && len + 1 < sizeof said; len += n > 0 ? (size_t)n : 0) {
        n = read(process.out_fd, said + len, sizeof said - 1 - len);
    }
    said[len] = '\0';
    kedge_process_stop(&process, SIGTERM, 1000);
    return best_rate(said);
}

int kedge_bench_torch(double *ret_gbps)
{
    double best = ask("python3");
    if (best <= 0) {
        best = ask("/usr/bin/python3"); /* the system's, whose packages another one in PATH may hide */
    }
    if (best <= 0) {
        return KEDGE_E_NOT_FOUND;
    }
    *ret_gbps = best;
    return KEDGE_OK;
}
