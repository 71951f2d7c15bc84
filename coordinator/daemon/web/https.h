/* Logs over HTTPS, read-only: the loop finds out who asks and what for, a worker reads, the HTTP server
 * sends. What there is to read is in resources.h, who may in read_tokens.h. */
#ifndef KEDGE_COORDINATOR_DAEMON_WEB_HTTPS_H
#define KEDGE_COORDINATOR_DAEMON_WEB_HTTPS_H

#include "common/base/diag.h"

struct kedge_host;

/* Listens when config.json has "https_listen", else does nothing; writes the address with its real port to
 * STATE/https-address. */
KEDGE_NODISCARD int kedge_host_https_open(struct kedge_host *h, struct kedge_diag *d);
/* Ends all connections; before workers and loop end. Fine when nothing is open. */
void kedge_host_https_close(struct kedge_host *h);
/* The address, NULL: not listening. */
const char *kedge_host_https_url(const struct kedge_host *h);

#endif
