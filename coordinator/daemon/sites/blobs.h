/* Models and updates on their way: pieces out, pieces in. */
#ifndef KEDGE_COORDINATOR_DAEMON_SITES_BLOBS_H
#define KEDGE_COORDINATOR_DAEMON_SITES_BLOBS_H

#include "common/base/diag.h"
#include "common/net/server.h"
#include "common/wire/messages.h"
#include "crypto/hash.h"

struct kedge_host;

/* msg: BLOB_GET or BLOB_GET_SINCE. */
void kedge_host_blob_get(struct kedge_host *h, struct kedge_net_request *req, uint32_t site,
                         const struct kedge_msg *msg);
/* A piece of a blob that the peer may have, as it is. On the loop thread; a worker answers. */
void kedge_host_blob_send(struct kedge_host *h, struct kedge_net_request *req,
                          const struct kedge_hash *digest, uint64_t offset, uint32_t max);
/* msg: BLOB_PUT or BLOB_PUT_PACKED. */
void kedge_host_blob_put(struct kedge_host *h, struct kedge_net_request *req, uint32_t site,
                         const struct kedge_msg *msg);
/* Removes blobs that no statement names: what a crash left between a blob's rename and its statement;
 * and those whose tenant had ordered their erasure. */
KEDGE_NODISCARD int kedge_host_sweep(struct kedge_host *h, struct kedge_diag *d);

#endif
