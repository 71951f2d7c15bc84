/* Time that went by while this process ran. A deadline by the system's clock also counts the time for which
 * the process was stopped (SIGSTOP, a debugger, a machine asleep); those whom it waits for were perhaps
 * stopped, too. */
#ifndef KEDGE_CLI_SIM_ACTIVE_CLOCK_H
#define KEDGE_CLI_SIM_ACTIVE_CLOCK_H

#include <stdint.h>

struct kedge_active_clock { /* zeroed: not read yet */
    uint64_t seen_ns, passed_ns;
};

/* Nanoseconds since the first reading, at now_ns of a clock that never goes back. From one reading to the
 * next at most KEDGE_ACTIVE_STEP_NS pass: who polls reads it several times a second. */
#define KEDGE_ACTIVE_STEP_NS UINT64_C(2000000000)
uint64_t kedge_active_clock_read(struct kedge_active_clock *c, uint64_t now_ns);

#endif
