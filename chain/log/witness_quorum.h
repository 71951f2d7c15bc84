/* Applying a witness policy: does a checkpoint count, who cosigned it, and is the policy's quorum large
 * enough to be worth demanding. Pure.
 *
 * Safe quorums. A quorum of k of n witnesses does without n−k of them. Two quorums share at least 2k−n, so
 * dishonest witnesses fewer than that cannot help a log to show two histories. For k >= 1 + floor(2n/3) the
 * ones that may be away are too few: with them dishonest, neither a second history nor a standstill is
 * possible (Sigsum's note on Byzantine witnesses, November 2023). For groups inside groups, n is the number
 * of witnesses below the quorum and k the size of its smallest satisfying set. That is conservative: a nested
 * quorum may be called unsafe although its structure makes all its sets overlap, never the other way round.
 */
#ifndef KEDGE_CHAIN_LOG_WITNESS_QUORUM_H
#define KEDGE_CHAIN_LOG_WITNESS_QUORUM_H

#include "chain/log/checkpoint.h"
#include "chain/log/witness_policy.h"

/* What is asked of a note besides the policy; all zero asks nothing more. */
struct kedge_witness_demand {
    struct kedge_view origin; /* the checkpoint's; ptr NULL: any that a log of the policy is named after */
    /* Keys of that origin's log known from elsewhere, in place of the policy's logs when log_count > 0; their
     * names need not be the origin, which must then be given. Type 01. */
    const struct kedge_vkey *logs;
    size_t log_count;
    /* Cosignatures of other times do not count; POSIX seconds, both inclusive, max 0: no upper bound. */
    uint64_t time_min_s, time_max_s;
};

enum kedge_witness_state {
    KEDGE_WITNESS_ABSENT,   /* no line of its key */
    KEDGE_WITNESS_COSIGNED, /* verified, counts */
    KEDGE_WITNESS_TOO_EARLY,
    KEDGE_WITNESS_TOO_LATE,
    KEDGE_WITNESS_UNSUPPORTED, /* a key that this program cannot check */
};

struct kedge_witness_evaluation {
    struct kedge_checkpoint checkpoint; /* views into the note */
    bool quorum_met;
    uint32_t cosigned_count;
    enum kedge_witness_state states[KEDGE_WITNESSES_MAX]; /* by the policy's order of witnesses */
    uint64_t times_s[KEDGE_WITNESSES_MAX];                /* of verified cosignatures, else 0 */
};

/* Whether the policy's quorum holds when exactly those witnesses cosigned (witness_count elements). */
bool kedge_witness_quorum_is_met(const struct kedge_witness_policy *policy, const bool *cosigned);

/* KEDGE_OK: a log's key signed the checkpoint and the quorum of cosignatures is there. KEDGE_E_DENIED: a log
 * signed, the quorum is not met; ret_evaluation is written then, too, and reterr names who cosigned.
 * KEDGE_E_FORMAT, KEDGE_E_TOO_LONG: no note or checkpoint. KEDGE_E_VERIFY: another origin, no log's
 * signature, or a known key whose signature fails, which spoils the whole note. KEDGE_E_ARG: logs without an
 * origin, of another type, more than KEDGE_KNOWN_LOGS_MAX, twice the same, or a witness's. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_witness_policy_evaluate(const struct kedge_witness_policy *policy,
                                                  struct kedge_view note,
                                                  const struct kedge_witness_demand *demand,
                                                  struct kedge_witness_evaluation *ret_evaluation,
                                                  struct kedge_diag *reterr);

enum { KEDGE_QUORUM_TEXT_MAX = 512 };
struct kedge_quorum_safety {
    bool is_safe;                     /* k >= needed, and k > 0 */
    bool is_reachable;                /* all supported witnesses together satisfy the quorum */
    bool is_nested;                   /* groups inside the quorum's group: the verdict is cautious */
    uint32_t n;                       /* witnesses below the quorum */
    uint32_t k;                       /* size of its smallest satisfying set */
    uint32_t needed;                  /* 1 + floor(2n/3) */
    char text[KEDGE_QUORUM_TEXT_MAX]; /* one sentence: the verdict and why */
};
void kedge_witness_quorum_safety(const struct kedge_witness_policy *policy,
                                 struct kedge_quorum_safety *ret_safety);
/* KEDGE_OK when the quorum is safe and reachable, or not strict; else KEDGE_E_DENIED with the reason and a
 * hint. ret_safety is always written, so that the lenient can warn; may be NULL. */
KEDGE_NODISCARD int kedge_witness_policy_require_safe(const struct kedge_witness_policy *policy, bool strict,
                                                      struct kedge_quorum_safety *ret_safety,
                                                      struct kedge_diag *reterr);
/* Appends what a person wants to know of a policy: its logs, witnesses, the quorum spelled out, the verdict
 * on its safety and what else looks odd (witnesses outside the quorum, keys that cannot be checked, a quorum
 * that one absent witness blocks). Lines of text; the buffer's err tells. */
void kedge_witness_policy_describe(const struct kedge_witness_policy *policy, struct kedge_buf *out);

#endif
