/* The witness protocol's add-checkpoint call (c2sp.org/tlog-witness v1.0.0): its request, and what a witness
 * answers. No storage and no HTTP here. A witness does, in this order:
 *
 *   1. kedge_add_checkpoint_open: is the request well-formed, of a known log, and signed by it? The costly
 *      part, outside any transaction.
 *   2. In one write transaction: read the recorded size and root of request->checkpoint.origin,
 *      kedge_add_checkpoint_decide, and on 200 write the checkpoint's size and root; commit, durably.
 *   3. Only then kedge_cosignature_make over request->text, and kedge_add_checkpoint_reply.
 *
 * Checking and writing must be atomic: else two requests both pass, the larger one is stored, and the smaller
 * one rolls it back. Pure. */
#ifndef KEDGE_CHAIN_LOG_ADD_CHECKPOINT_H
#define KEDGE_CHAIN_LOG_ADD_CHECKPOINT_H

#include "chain/log/checkpoint.h"
#include "chain/log/cosignature.h"

enum {
    KEDGE_ADD_CHECKPOINT_HASHES_MAX = 63, /* the protocol's */
    /* Bytes of a request: "old" line, proof lines, empty line, note. */
    KEDGE_ADD_CHECKPOINT_MAX = 24 + KEDGE_ADD_CHECKPOINT_HASHES_MAX * 45 + 1 + KEDGE_NOTE_MAX,
    KEDGE_ADD_CHECKPOINT_BODY_MAX = KEDGE_NOTE_MAX, /* bytes of an answer that a client reads */
};

/* Appends a request: the checkpoint note, and the consistency path from old_size to its size (empty when
 * old_size is 0 or the note's own size). KEDGE_E_ARG: too many hashes, size or note too large, note empty. */
KEDGE_NODISCARD int kedge_add_checkpoint_format(uint64_t old_size, const struct kedge_hash *path,
                                                size_t path_len, struct kedge_view note,
                                                struct kedge_buf *ret_request);

enum kedge_witness_status {
    KEDGE_WITNESS_OK = 200,
    KEDGE_WITNESS_BAD_REQUEST = 400,
    KEDGE_WITNESS_FORBIDDEN = 403,
    KEDGE_WITNESS_NOT_FOUND = 404,
    KEDGE_WITNESS_CONFLICT = 409,
    KEDGE_WITNESS_UNPROCESSABLE = 422,
};

/* A log that the witness knows; several entries may share an origin (keys that overlap in time). */
struct kedge_witnessed_log {
    struct kedge_view origin;
    struct kedge_vkey key; /* type 01 */
};

/* A well-formed request; views into the caller's bytes. */
struct kedge_add_checkpoint {
    uint64_t old_size;
    struct kedge_path path;             /* at most KEDGE_ADD_CHECKPOINT_HASHES_MAX */
    struct kedge_view note;             /* verbatim */
    struct kedge_view text;             /* the note's, which is what gets cosigned */
    struct kedge_checkpoint checkpoint; /* a size 0 may state any root: decide refuses it */
};

/* Parses a request strictly. KEDGE_E_FORMAT, KEDGE_E_TOO_LONG (status 400 both), KEDGE_E_NOMEM. Signature
 * lines are read leniently in one respect, trailing bits of their base64, because upstream's vectors want 403
 * and not 400 for it; kedge_add_checkpoint_open takes no such line for a signature. */
KEDGE_NODISCARD int kedge_add_checkpoint_parse(struct kedge_view bytes,
                                               struct kedge_add_checkpoint *ret_request);

/* Rows 1 to 4 of the protocol's checks: 400 malformed, 404 unknown origin, 403 no valid signature of the log
 * or one of its keys' that fails, 400 old size above the checkpoint's. Returns KEDGE_OK with
 * *ret_status = KEDGE_WITNESS_OK when step 2 may follow, else another status, with ret_request written only
 * when it was well-formed (status other than the first 400) and *ret_reason, a static text. KEDGE_E_NOMEM;
 * KEDGE_E_ARG: a log's key is not of type 01 or twice there. */
KEDGE_NODISCARD int kedge_add_checkpoint_open(struct kedge_view bytes, const struct kedge_witnessed_log *logs,
                                              size_t log_count, struct kedge_add_checkpoint *ret_request,
                                              enum kedge_witness_status *ret_status, const char **ret_reason);

/* What the witness decides about an opened request. */
struct kedge_witness_decision {
    enum kedge_witness_status status;
    uint64_t recorded_size; /* the body of a 409 */
    /* The log signed two roots at the recorded size, whatever the status (422, or 409 when the client's old
     * size was wrong, too): keep both notes (chain/log/fork_evidence.h), tell people, cosign nothing of this
     * log any more. A proof that fails is no evidence by itself. */
    bool is_fork;
    const char *reason; /* static text for people; "" when 200 */
};
/* Rows 5 to 9: 409 old size is not the recorded one, 422 root or proof wrong, else 200. recorded_size is 0
 * when nothing was cosigned of this origin; recorded_root is then not looked at and may be NULL. */
void kedge_add_checkpoint_decide(const struct kedge_add_checkpoint *request, uint64_t recorded_size,
                                 const struct kedge_hash *recorded_root,
                                 struct kedge_witness_decision *ret_decision);

/* Appends the body of the answer and returns its Content-Type: for 200 the cosignature lines, for 409 the
 * recorded size; all others have no body. The buffer's err tells. */
const char *kedge_add_checkpoint_reply(const struct kedge_witness_decision *decision, struct kedge_view lines,
                                       struct kedge_buf *ret_body);

/* For clients: the size that a 409 states (decimal, LF); KEDGE_E_FORMAT. A 200's body is for
 * kedge_cosignature_accept. */
KEDGE_NODISCARD int kedge_add_checkpoint_read_conflict(struct kedge_view body, uint64_t *ret_size);

enum { KEDGE_MONITORING_PATH_LEN = KEDGE_HASH_HEX_LEN + 11 };
/* "<hex SHA-256 of the origin>/checkpoint", below a witness's monitoring prefix. */
void kedge_witness_monitoring_path(struct kedge_view origin, char out[KEDGE_MONITORING_PATH_LEN + 1]);

#endif
