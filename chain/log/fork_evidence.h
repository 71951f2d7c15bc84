/* Evidence that a log signed two histories, as one text file that convinces a stranger who has nothing but
 * the log's vkey: two signed checkpoints of one origin that cannot both be true.
 *
 *   kedge.dev/fork-evidence@v1
 *   BASE64 of a hash                  (none for equal sizes; else a path, its first hash spelled out)
 *   …
 *                                     (empty line)
 *   the note of the smaller size, verbatim, with its own empty line
 *                                     (empty line)
 *   the note of the larger size, verbatim
 *
 * Equal sizes with different roots prove themselves. For sizes m < n the path is a consistency path that
 * rebuilds the root signed for n: by the hash's collision resistance its nodes are then the log's own, and so
 * is the root of the first m leaves that comes out of them. When that differs from the root signed for m, the
 * log has changed its past. An honest log cannot be framed, as its nodes lead to the root it signed. Pure. */
#ifndef KEDGE_CHAIN_LOG_FORK_EVIDENCE_H
#define KEDGE_CHAIN_LOG_FORK_EVIDENCE_H

#include "chain/log/checkpoint.h"
#include "common/base/diag.h"

enum { KEDGE_FORK_EVIDENCE_MAX = 2 * KEDGE_NOTE_MAX + 64 * 45 + 64 }; /* bytes of a file that is read */

/* Well-formed, not yet believed; views into the caller's bytes. */
struct kedge_fork_evidence {
    struct kedge_path path; /* empty exactly when the sizes are equal */
    struct kedge_view old_note, new_note;
    struct kedge_checkpoint old_checkpoint, new_checkpoint; /* old size <= new size */
};

/* Appends evidence of two signed checkpoints in either order, and the path between them when their sizes
 * differ (kedge_consistency_prove_explicit over the larger tree), else NULL. KEDGE_E_FORMAT,
 * KEDGE_E_TOO_LONG: a note is no signed checkpoint; KEDGE_E_ARG: a path where none belongs, or none where one
 * does. Whether it proves anything is for kedge_fork_evidence_verify: do so before keeping or showing it. */
KEDGE_NODISCARD int kedge_fork_evidence_encode(struct kedge_view note, struct kedge_view other,
                                               const struct kedge_path *path, struct kedge_buf *ret_text);
/* KEDGE_E_FORMAT, KEDGE_E_TOO_LONG, KEDGE_E_NOMEM. One encoding: encode(decode(b)) == b. */
KEDGE_NODISCARD int kedge_fork_evidence_decode(struct kedge_view text,
                                               struct kedge_fork_evidence *ret_evidence);

/* KEDGE_OK: the evidence proves that the holder of the given keys (the log's, type 01) signed two histories.
 * KEDGE_E_VERIFY: it does not, for the reason in reterr. KEDGE_E_ARG, KEDGE_E_NOMEM. On success
 * ret_actual_root, which may be NULL, gets the root that the larger tree has at the smaller one's size (for
 * equal sizes: that of the second note). */
KEDGE_NODISCARD int kedge_fork_evidence_verify(const struct kedge_fork_evidence *evidence,
                                               const struct kedge_vkey *log_keys, size_t key_count,
                                               struct kedge_hash *ret_actual_root, struct kedge_diag *reterr);
/* Appends two or three lines for people: what the log said first, and what it said then. */
void kedge_fork_evidence_describe(const struct kedge_fork_evidence *evidence,
                                  const struct kedge_hash *actual_root, struct kedge_buf *out);

#endif
