/* The companion process kedge-events, as the loop sees it: a pipe into which whole frames are written or
 * nothing, and a watch that starts it, notices that it hangs or has ended, and starts it again. Nothing here
 * waits. */
#ifndef KEDGE_COORDINATOR_DAEMON_EVENTS_COMPANION_H
#define KEDGE_COORDINATOR_DAEMON_EVENTS_COMPANION_H

#include <stdint.h>

#include "common/base/os/file.h"
#include "common/base/os/process.h"
#include "common/net/server.h"
#include "coordinator/events/frame.h"

enum {
    KEDGE_COMPANION_BEAT_MS = 1000,
    KEDGE_COMPANION_HANG_MS = 5000, /* a beat that is not answered for so long: it hangs */
    KEDGE_COMPANION_LISTEN_MAX = 3,
};

struct kedge_companion {
    char program[KEDGE_PATH_MAX], folder[KEDGE_PATH_MAX], socket[KEDGE_PATH_MAX];
    char listen[KEDGE_COMPANION_LISTEN_MAX][KEDGE_NET_URL_MAX];
    unsigned listen_count;
    struct kedge_process process;
    uint64_t due_ns;   /* of the next look; KEDGE_TIME_NEVER: there is no companion */
    uint64_t start_ns; /* when it was started, or is to be started again */
    uint64_t asked_ns; /* of the oldest beat that is not answered; 0: none */
    unsigned failures; /* starts after which it did not live for ten seconds */
    uint64_t lost;     /* frames that the pipe had no room for, since that was last told */
    bool is_ended, was_killed;
};

/* Finds the program beside this one; false: it is not there. The process is started by the first look. */
bool kedge_companion_find(struct kedge_companion *c);
/* Looks after it. *ret_started: a new process was started, which has to be told what is to be open. */
void kedge_companion_look(struct kedge_companion *c, uint64_t now_ns, bool *ret_started);
/* Into the pipe, if there is room; else the frame is lost, and counted. */
void kedge_companion_write(struct kedge_companion *c, const struct kedge_event_frame *f);
/* Asks it to end by closing its input, waits for a second, kills it. Fine when there is none. */
void kedge_companion_stop(struct kedge_companion *c);

#endif
