/* Following a log: a copy (chain/store/replica.h) grows to the log's newest checkpoint, read as
 * c2sp.org/tlog-tiles resources from a source that is not trusted. Before an entry is stored it is proven to
 * belong to a tree that the log signed and that extends the copy; a log that shows something else than before
 * is refused, with evidence where it convicts itself. No network here: the caller fetches. */
#ifndef KEDGE_CHAIN_FOLLOW_FOLLOW_H
#define KEDGE_CHAIN_FOLLOW_FOLLOW_H

#include "chain/log/note.h"
#include "chain/store/ledger.h"

/* Where resources come from: appends the one at `path` below the log's prefix ("checkpoint",
 * "tile/0/000.p/3", "tile/entries/000"), at most what ret takes. KEDGE_E_NOT_FOUND when the log has none;
 * errors are handed on. */
struct kedge_follow_source {
    int (*fetch)(void *arg, const char *path, struct kedge_buf *ret, struct kedge_diag *reterr);
    void *arg;
};

typedef void kedge_follow_progress(void *arg, uint64_t done, uint64_t total);

struct kedge_follow {
    struct kedge_follow_source source;
    struct kedge_ledger *copy;       /* kedge_replica_open */
    struct kedge_vkey vkey;          /* of the log's checkpoints; its name is the origin */
    bool whole;                      /* its reader may read all of it: a withheld record is KEDGE_E_VERIFY */
    kedge_follow_progress *progress; /* entries; may be NULL */
    void *progress_arg;
};

struct kedge_follow_result {
    uint64_t before, after; /* entries of the copy */
};

/* Brings the copy up to the log's newest checkpoint and stores that. What was stored before an error stays:
 * it was proven.
 *
 * KEDGE_E_VERIFY: the checkpoint is not the log's, or its tiles or entries do not add up to it.
 *
 * KEDGE_E_FORK: the log signed two histories; ret_evidence (chain/log/fork_evidence.h) convicts it, unless
 * empty.
 *
 * KEDGE_E_SHORTER: the log shows fewer entries than it has shown, and these are the same: an old backup. The
 * copy keeps the checkpoint that it has; ret_evidence takes the smaller one, a note.
 *
 * Beside these, what the source and the copy return. ret_evidence takes what was appended on the last two
 * errors only. */
KEDGE_NODISCARD int kedge_follow_log(const struct kedge_follow *f, struct kedge_follow_result *ret,
                                     struct kedge_buf *ret_evidence, struct kedge_diag *reterr);

#endif
