/* Log records of the programs: one JSON line each on stderr. Never secrets, never model data.
 *   kedge_log(KEDGE_LOG_INFO, "round opened", "job=%s round=%u", …) prints
 *   {"time":"2023-11-14T22:13:20.000Z","level":"info","program":"kedge-coordinator",
 *    "event":"round opened","detail":"job=a round=3"} on one line, the time as RFC 3339 has it. Where stderr
 * is the journal (JOURNAL_STREAM), its priority stands before the line: <3>, <4>, <6> or <7>. */
#ifndef KEDGE_COMMON_BASE_OS_LOG_H
#define KEDGE_COMMON_BASE_OS_LOG_H

#include "common/base/err.h"

enum kedge_log_level { KEDGE_LOG_DEBUG, KEDGE_LOG_INFO, KEDGE_LOG_WARN, KEDGE_LOG_ERROR };

/* Once at start; `program` must live as long as the process. Records below `least` are dropped. */
void kedge_log_init(const char *program, enum kedge_log_level least);
void kedge_log(enum kedge_log_level level, const char *event, const char *format, ...) KEDGE_PRINTF(3, 4);

#endif
