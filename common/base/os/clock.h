/* Clocks and sleep: the only place that reads them. */
#ifndef KEDGE_COMMON_BASE_OS_CLOCK_H
#define KEDGE_COMMON_BASE_OS_CLOCK_H

#include <stdint.h>

#define KEDGE_TIME_NEVER UINT64_MAX

uint64_t kedge_os_now_ns(void);  /* monotonic, for deadlines */
uint64_t kedge_os_unix_ms(void); /* wall clock, for records and people */
void kedge_os_sleep_ms(uint32_t ms);
uint64_t kedge_os_processor_ns(void); /* spent by all threads of this process */

#endif
