/* Tokens with which others read logs over HTTPS: of a tenant, or of an auditor. "kedge-read-1." and 64 hex
 * digits; shown once, only the SHA-256 of the 32 bytes is kept (coordinator.lmdb, records.h). On the loop
 * thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_WEB_READ_TOKENS_H
#define KEDGE_COORDINATOR_DAEMON_WEB_READ_TOKENS_H

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "common/net/server.h"
#include "coordinator/daemon/web/resources.h"

struct json_t;
struct kedge_host;

enum { KEDGE_READ_TOKENS_MAX = 4096, KEDGE_READ_TOKENS_TENANT_MAX = 64, KEDGE_READ_TOKEN_LEN = 13 + 64 };

/* Whose token it is. KEDGE_E_DENIED for one that is malformed, unknown, expired or revoked, without saying
 * which; other errors are ours. */
KEDGE_NODISCARD int kedge_read_token_check(struct kedge_host *h, struct kedge_view text,
                                           struct kedge_log_reader *ret);
/* read.token, read.list, read.revoke */
void kedge_admin_read(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                      const struct json_t *args);

#endif
