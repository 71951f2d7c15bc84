/* LOG_READ: a piece of a log's resource for a witness. */
#ifndef KEDGE_COORDINATOR_DAEMON_WEB_LOG_READ_H
#define KEDGE_COORDINATOR_DAEMON_WEB_LOG_READ_H

#include "common/net/server.h"
#include "common/wire/messages.h"
#include "coordinator/daemon/web/resources.h"

void kedge_host_log_read(struct kedge_host *h, struct kedge_net_request *req,
                         const struct kedge_log_reader *reader, const struct kedge_msg_log_read *msg);

#endif
