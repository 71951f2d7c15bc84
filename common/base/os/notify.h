/* Words to the service manager that started this process: the protocol of sd_notify(3), a datagram to the
 * socket that NOTIFY_SOCKET names, without its library. Where nobody listens (no such variable) nothing
 * happens. */
#ifndef KEDGE_COMMON_BASE_OS_NOTIFY_H
#define KEDGE_COMMON_BASE_OS_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

enum { KEDGE_NOTIFY_MAX = 1024 }; /* bytes of one message; a longer one is cut */

/* One message: `words`, constant lines such as "READY=1", and STATUS=`status` for people (NULL: none), whose
 * control characters become '?', so that no text of others adds a line. True when it was sent. Never blocks.
 */
bool kedge_notify(const char *words, const char *status);
/* "RELOADING=1" with the time, which Type=notify-reload demands; READY=1 must follow. */
bool kedge_notify_reloading(void);
/* Half of WATCHDOG_USEC: say WATCHDOG=1 as often. 0: no watchdog, or it is another process's (WATCHDOG_PID).
 */
uint64_t kedge_notify_watchdog_ns(void);

#endif
