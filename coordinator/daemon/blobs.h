/* Models and updates on their way: pieces out, pieces in. */
#ifndef KEDGE_COORDINATOR_DAEMON_BLOBS_H
#define KEDGE_COORDINATOR_DAEMON_BLOBS_H

#include "common/base/diag.h"
#include "common/net/server.h"
#include "common/wire/messages.h"

struct kedge_host;

/* msg: BLOB_GET or BLOB_GET_SINCE. */
void kedge_host_blob_get(struct kedge_host *h, struct kedge_net_request *req, uint32_t site,
                         const struct kedge_msg *msg);
/* msg: BLOB_PUT or BLOB_PUT_PACKED. */
void kedge_host_blob_put(struct kedge_host *h, struct kedge_net_request *req, uint32_t site,
                         const struct kedge_msg *msg);
/* Removes blobs that no statement names: what a crash left between a blob's rename and its statement;
 * and those whose tenant had ordered their erasure. */
KEDGE_NODISCARD int kedge_host_sweep(struct kedge_host *h, struct kedge_diag *d);

#endif
