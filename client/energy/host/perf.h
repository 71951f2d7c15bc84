/* Energy events of the kernel's perf ("power" in /sys/bus/event_source/devices), a second way to the counters
 * of RAPL: for sites that may not read powercap and may count perf events (CAP_PERFMON, or a
 * perf_event_paranoid below 1). */
#ifndef KEDGE_CLIENT_ENERGY_HOST_PERF_H
#define KEDGE_CLIENT_ENERGY_HOST_PERF_H

#include <stdint.h>

#include "common/base/err.h"

/* What read gives: the count since it was opened, and for how long (ns) it was asked for and really counted.
 */
struct kedge_perf_count {
    uint64_t value, enabled_ns, running_ns;
};
/* The system calls, so that a test can play the kernel. */
struct kedge_perf_calls {
    /* One event on one processor, for all processes: a file descriptor, or a negative kedge_err
     * (KEDGE_E_DENIED: not permitted; others: there is no such event). */
    int (*open)(uint32_t type, uint64_t config, uint32_t cpu);
    /* KEDGE_E_NOT_FOUND: the processor has gone (end of file). */
    int (*read)(int fd, struct kedge_perf_count *ret);
    void (*close)(int fd);
};
extern const struct kedge_perf_calls kedge_perf_linux;

#endif
