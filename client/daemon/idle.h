/* "idle" of policy.json: work is begun only while others leave the device alone. What is running is not
 * stopped. */
#ifndef KEDGE_CLIENT_DAEMON_IDLE_H
#define KEDGE_CLIENT_DAEMON_IDLE_H

#include "common/base/bytes.h"
#include "common/base/diag.h"

enum { KEDGE_IDLE_TEXT_MAX = 120, KEDGE_IDLE_WINDOW_S = 5 };

struct json_t;

struct kedge_idle_rules {
    uint32_t cpu_percent; /* most that others may use of all processors; 0: no rule */
    uint32_t input_s;     /* seconds since somebody typed at a terminal; 0: no rule */
};

/* Busy time and all time of the processors since the start, in ticks. */
struct kedge_idle_ticks {
    uint64_t busy, all;
};

struct kedge_idle {
    struct kedge_idle_rules rules;
    struct kedge_idle_ticks before;
    uint64_t next_ns; /* when the window ends */
    uint32_t percent; /* of the last window */
    bool has_before, has_percent;
};

/* The value of the key; NULL: no rules. KEDGE_E_FORMAT names what is wrong. Pure. */
KEDGE_NODISCARD int kedge_idle_parse(const struct json_t *v, const char *where, struct kedge_idle_rules *ret,
                                     struct kedge_diag *reterr);
/* The first line of /proc/stat, proc(5): busy is user, system, irq and softirq time, without that of niced
 * processes, of which the daemon and its trainer are. False when it is no such line. Pure. */
bool kedge_idle_read_ticks(struct kedge_view text, struct kedge_idle_ticks *ret);
/* Why nothing is to be begun, "" when it may; root is "/". What cannot be read is as if nobody were there but
 * for processors, which then are taken for busy. At most one look per window. */
void kedge_idle_ask(struct kedge_idle *idle, const char *root, uint64_t now_ns,
                    char out[KEDGE_IDLE_TEXT_MAX]);

#endif
