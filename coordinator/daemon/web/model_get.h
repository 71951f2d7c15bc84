/* Models and specs for those who take them with `kedge job model`: pieces, as sites get them. */
#ifndef KEDGE_COORDINATOR_DAEMON_WEB_MODEL_GET_H
#define KEDGE_COORDINATOR_DAEMON_WEB_MODEL_GET_H

#include "common/net/server.h"
#include "common/wire/messages.h"

struct kedge_host;

/* Of a peer that may ask job.model of this job: a piece of its spec, or of a model that job.model names. */
void kedge_host_model_get(struct kedge_host *h, struct kedge_net_request *req,
                          const struct kedge_msg_blob_get *get);

#endif
