/* Waiting for a job to change: by the coordinator's stream of events where there is one, else for a while.
 * Who waits asks afterwards; an event is only the reason to ask. */
#ifndef KEDGE_CLI_EVENTS_WAKE_H
#define KEDGE_CLI_EVENTS_WAKE_H

#include "cli/cli.h"

struct kedge_cli_wake;

/* Subscribes, if it can. NULL: without a stream, which is fine for the others. */
struct kedge_cli_wake *kedge_cli_wake_new(struct kedge_cli *c, const char *job);
/* Waits until the job has an event, for a second at most; without a stream for poll_ms. True when it was
 * interrupted. */
bool kedge_cli_wake_wait(struct kedge_cli_wake *w, uint32_t poll_ms);
/* For KEDGE_CLEANUP; a pointer to NULL is fine. */
void kedge_cli_wake_drop(struct kedge_cli_wake **w);

#endif
