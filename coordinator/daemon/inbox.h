/* Requests on their way from the network to the loop, in lines: one for each tenant with all who ask for it
 * (sites, admins, witnesses, readers over HTTPS), one for operators and auditors, one for readers of whom
 * nothing is known yet, one for strangers. The loop takes them by deficit round robin over the time that each
 * line's requests took (coordinator/schedule/fair.h), so what one tenant asks makes others wait for a turn of
 * its line and not for the line. */
#ifndef KEDGE_COORDINATOR_DAEMON_INBOX_H
#define KEDGE_COORDINATOR_DAEMON_INBOX_H

#include <stdbool.h>

#include "common/base/diag.h"
#include "coordinator/schedule/fair.h"

struct kedge_host;
struct kedge_inbox; /* kedge_host.inbox */

enum {
    KEDGE_LINE_OWN, /* nobody's: what the coordinator does by itself, see workers.h */
    KEDGE_LINE_STRANGERS,
    KEDGE_LINE_OPERATORS,
    KEDGE_LINE_READERS,
    KEDGE_LINE_TENANTS, /* tenant t: KEDGE_LINE_TENANTS + t, modulo what there are */
    KEDGE_LINES = 8192,
};

/* First member of what stands in line. `handle` runs on the loop thread and frees the item's owner. */
struct kedge_inbox_item {
    struct kedge_fair_item in_line;
    void (*handle)(struct kedge_host *h, struct kedge_inbox_item *item);
};

/* Before the network opens, and after it and the loop have ended. */
KEDGE_NODISCARD int kedge_inbox_open(struct kedge_host *h, struct kedge_diag *d);
void kedge_inbox_close(struct kedge_host *h);
/* Which line a tenant's requests stand in. */
uint32_t kedge_inbox_line(uint32_t tenant);
/* From any thread, does not wait; false: the line is full, its owner is to come back later. */
bool kedge_inbox_put(struct kedge_host *h, uint32_t line, struct kedge_inbox_item *item);
/* On the loop thread: handles the next request, if there is one. True: there are more. */
bool kedge_inbox_serve(struct kedge_host *h);

#endif
