/* A stream of events for many subscribers: an nng PUB socket. Who connects is sent all that is said from then
 * on; one that does not read loses the oldest of what waits for it, and nobody waits for one. */
#ifndef KEDGE_COORDINATOR_EVENTS_HOST_PUBLISH_H
#define KEDGE_COORDINATOR_EVENTS_HOST_PUBLISH_H

#include "common/base/bytes.h"
#include "common/base/diag.h"

enum {
    KEDGE_PUBLISH_WAITING_MAX = 256,   /* messages that wait for one subscriber */
    KEDGE_PUBLISH_SUBSCRIBERS_MAX = 64 /* of one stream; more are turned away */
};

struct kedge_publish;

/* Closed again by kedge_publish_close. KEDGE_E_NOMEM, KEDGE_E_UNREACHABLE. */
KEDGE_NODISCARD int kedge_publish_open(struct kedge_publish **ret, struct kedge_diag *reterr);
/* Listens at url too: ipc://PATH, tcp://HOST:PORT or ws://HOST:PORT/PATH. *ret_port: the port that it has, 0
 * for ipc. KEDGE_E_UNREACHABLE says why not. */
KEDGE_NODISCARD int kedge_publish_listen(struct kedge_publish *p, const char *url, int *ret_port,
                                         struct kedge_diag *reterr);
/* How many are connected. */
unsigned kedge_publish_subscribers(struct kedge_publish *p);
/* To all who are connected. Does not wait. */
KEDGE_NODISCARD int kedge_publish_say(struct kedge_publish *p, struct kedge_view message);
void kedge_publish_close(struct kedge_publish *p); /* NULL is fine */

#endif
