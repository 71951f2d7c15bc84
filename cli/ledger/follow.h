/* What the parts of kedge ledger follow share: who is watched, through which connection, how far. */
#ifndef KEDGE_CLI_LEDGER_FOLLOW_H
#define KEDGE_CLI_LEDGER_FOLLOW_H

#include "chain/follow/erased.h"
#include "chain/state/copy.h"
#include "cli/cli.h"
#include "cli/local.h"
#include "cli/witness/witness_folder.h"
#include "common/wire/messages.h"

enum { KEDGEI_FOLLOW_CALL_MS = 30000, KEDGEI_FOLLOW_PIECE = 1024 * 1024 };

enum kedgei_blobs { KEDGEI_BLOBS_NONE, KEDGEI_BLOBS_LISTS, KEDGEI_BLOBS_ALL };

/* What was cosigned last. */
struct kedgei_said {
    uint64_t size, when_ns; /* when_ns 0: nothing yet */
};

struct kedgei_watch {
    struct kedge_cli *c;
    const char *dir;
    struct kedge_witness_folder w;
    struct kedge_net_client *client;
    struct kedge_state_log main, own;
    struct kedge_buf frame;
    enum kedgei_blobs blobs;
    uint64_t main_blobs_from, own_blobs_from; /* entries whose blobs are here */
    struct kedge_follow_erased erased;        /* by the tenant: a replica does not keep these either */
    uint64_t refused_told;                    /* of its refusals, how many were told */
    uint64_t final_size;                      /* of the main chain, as the coordinator tells */
    uint64_t final_taken;                     /* of that, what this folder has */
    struct kedgei_said main_said, own_said;
};

/* ---- reading ---- */

/* One request; *ret borrows from the reply. An ERROR message is the coordinator's error. */
KEDGE_NODISCARD int kedgei_follow_call(struct kedgei_watch *f, const struct kedge_msg *ask,
                                       struct kedge_net_reply *reply, struct kedge_msg *ret,
                                       struct kedge_diag *d);
/* A piece of a resource; *ret_total is how much there is of it, and the piece is empty at its end only. */
KEDGE_NODISCARD int kedgei_follow_piece(struct kedgei_watch *f, const char *path, uint64_t offset,
                                        struct kedge_net_reply *reply, struct kedge_view *ret,
                                        uint64_t *ret_total, struct kedge_diag *d);
/* All of it, at most what ret takes. */
KEDGE_NODISCARD int kedgei_follow_resource(struct kedgei_watch *f, const char *path, struct kedge_buf *ret,
                                           struct kedge_diag *d);

/* ---- cosigning ---- */

/* Cosigns the copy's newest checkpoint, which is the largest tree of that log that was ever seen here. */
KEDGE_NODISCARD int kedgei_follow_cosign(struct kedgei_watch *f, const struct kedge_state_log *log,
                                         struct kedge_diag *d);
/* A coordinator that shows less, or other, than it signed is told what it signed: it stops then. */
void kedgei_follow_show(struct kedgei_watch *f, const struct kedge_state_log *log);

/* ---- blobs ---- */

struct kedgei_blob_count {
    uint64_t count, bytes;
};

/* Fetches what the copies name and removes what the tenant had erased. KEDGE_E_BLOB_MISSING: an update is not
 * there, which an erasure that is on its way may be the reason of; all others were taken. */
KEDGE_NODISCARD int kedgei_follow_take_blobs(struct kedgei_watch *f, struct kedgei_blob_count *ret,
                                             struct kedge_diag *d);

#endif
