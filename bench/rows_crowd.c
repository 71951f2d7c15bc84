/* A crowd of a million sites: what a round costs, and what is held. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/rows.h"
#include "common/base/err.h"
#include "common/base/os/clock.h"
#include "sim/crowd.h"

enum { SITES = 1000000, FEW_SITES = 10000, PER_ROUND = 1000, ROUNDS = 200, TENANTS = 100 };

struct result {
    double many, few; /* rounds per second of processor time behind the first round */
    bool holds;
};

struct watch {
    double first, last;
};

static void round_done(void *arg, uint32_t rounds)
{
    struct watch *w = arg;
    w->last = 1e-9 * (double)kedge_os_processor_ns();
    w->first = rounds == 1 ? w->last : w->first;
}

static double rate(uint32_t sites, bool *holds)
{
    struct kedge_crowd_spec spec = {
        .seed = 1, .tenants = TENANTS, .sites = sites, .rounds = ROUNDS, .sites_per_round = PER_ROUND};
    struct kedge_crowd_outcome o = {.holds = false};
    struct watch w = {0, 0};
    int err = kedge_crowd_run(&spec, round_done, &w, &o, NULL);
    *holds = *holds && err == KEDGE_OK && o.holds;
    return w.last > w.first ? (ROUNDS - 1) / (w.last - w.first) : 0;
}

/* In a process of its own, so that what it holds can be told. */
int kedge_row_crowd(struct row rows[ROWS_MAX], int *ret_count)
{
    const double rate_target = 50, memory_target = 1000;
    struct result r = {0, 0, true};
    struct rusage usage;
    int ends[2], status = 1;
    if (pipe(ends) != 0) {
        return KEDGE_E_IO;
    }
    pid_t child = fork();
    if (child == 0) {
        r.many = rate(SITES, &r.holds);
        r.few = rate(FEW_SITES, &r.holds);
        _exit(write(ends[1], &r, sizeof r) == (ssize_t)sizeof r ? 0 : 1);
    }
    close(ends[1]);
    bool told = child > 0 && read(ends[0], &r, sizeof r) == (ssize_t)sizeof r;
    close(ends[0]);
    if (child <= 0 || wait4(child, &status, 0, &usage) != child || status != 0 || !told) {
        return KEDGE_E_IO;
    }
    double mb = (double)usage.ru_maxrss * 1024e-6;
    rows[0] = (struct row){
        "sim-crowd-1m", "rounds/s", r.many, r.few, rate_target, true, r.holds && r.many >= rate_target};
    rows[1] = (struct row){"sim-crowd-1m-memory",         "MB", mb, memory_target, memory_target, false,
                           r.holds && mb <= memory_target};
    *ret_count = 2;
    return KEDGE_OK;
}
