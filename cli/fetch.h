/* Blobs of a job out of the coordinator, through its door or from elsewhere. */
#ifndef KEDGE_CLI_FETCH_H
#define KEDGE_CLI_FETCH_H

#include "cli/cli.h"
#include "common/net/client.h"
#include "common/wire/messages.h"
#include "crypto/hash.h"

/* A client of the coordinator that the command line names; key and server live as long as it does, and the
 * caller wipes the key. */
KEDGE_NODISCARD int kedge_cli_dial(struct kedge_cli *c, struct kedge_key_pair *key,
                                   struct kedge_public_key *server, struct kedge_net_client **ret,
                                   struct kedge_diag *d);
/* One call; waits a while for a coordinator that is busy. *ret points into the reply, which is released
 * before it is written. */
KEDGE_NODISCARD int kedge_cli_call(struct kedge_net_client *client, struct kedge_view frame,
                                   struct kedge_net_reply *reply, struct kedge_msg *ret);

/* Writes the blob of this digest to path (0600): beside it first, then renamed when its SHA-256 is right, so
 * that path never holds a part or another blob. *ret_size: its bytes. KEDGE_E_BLOB_DIGEST: the coordinator
 * sent something else. */
KEDGE_NODISCARD int kedge_cli_fetch(struct kedge_cli *c, const char *job, const struct kedge_hash *digest,
                                    const char *path, uint64_t *ret_size, struct kedge_diag *d);

#endif
