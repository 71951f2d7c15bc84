/* What replay.c re-executes and where its inputs come from. Internal to this room. */
#ifndef KEDGE_CHAIN_AUDIT_ROUNDS_REPLAY_H
#define KEDGE_CHAIN_AUDIT_ROUNDS_REPLAY_H

#include "chain/audit/rounds/replay_inputs.h"

enum kedgei_decision_kind {
    KEDGEI_INITIAL,
    KEDGEI_SELECTION,
    KEDGEI_GROUPING,
    KEDGEI_DIRECTION,
    KEDGEI_ASSIGNED,
    KEDGEI_AGGREGATE,
    KEDGEI_MIXING,
    KEDGEI_SERVER, /* behind the others: their numbers are in digests of results */
    KEDGEI_MEETING,
    KEDGEI_NEAREST, /* of a site's last model */
    KEDGEI_DRIFT,
    KEDGEI_RESHAPE, /* group: KEDGE_GROUP_NONE */
    KEDGEI_JOINED,
    KEDGEI_SPLIT,  /* by the round's updates */
    KEDGEI_TRIALS, /* which groups join by what their sites found, and which are tried; group:
                      KEDGE_GROUP_NONE */
};

struct kedgei_decision {
    enum kedgei_decision_kind kind;
    const struct kedgei_job *job;
    const struct kedgei_round *round;
    const struct kedgei_log *log;   /* KEDGEI_ASSIGNED: whose ledger */
    const struct kedgei_fact *fact; /* KEDGEI_ASSIGNED, KEDGEI_AGGREGATE */
    uint32_t group;                 /* KEDGEI_DIRECTION, KEDGEI_AGGREGATE, KEDGEI_SERVER */
    bool sealed;                    /* an input of it is encrypted under a key that is not here */
    bool lacks_model;               /* a model that it needs was pruned, and cannot be made again: prune.h */
    uint32_t erased;                /* inputs of it that their tenant had erased: it is left out */
    bool is_taken, is_answered;     /* of a close: the record's word is taken; the engine came to it */
    struct kedge_hash result;       /* over what was computed; zero before, and when that failed */
};

struct kedgei_replay {
    struct kedgei_audit *a;
    struct kedgei_decision *items;
    size_t count, cap;
    bool nomem;
    struct kedge_blob_writer *writer; /* prune.c: where an aggregate goes, too; NULL */
};

/* results.c: what a decision's function says and adds. */
void kedgei_replay_failed(const struct kedgei_replay *r, struct kedgei_decision *d, uint64_t index,
                          const char *what, int err, const struct kedge_diag *diag,
                          struct kedgei_findings *f);
void kedgei_replay_compare(const struct kedgei_replay *r, const struct kedgei_decision *d,
                           enum kedge_audit_code code, uint64_t index, uint32_t group,
                           const struct kedge_hash *expected, const struct kedge_hash *recorded,
                           struct kedgei_findings *f);
/* Adds to the result of a decision: what two replays of a record must have in common, whatever was recorded.
 */
void kedgei_replay_add(struct kedgei_decision *d, const void *bytes, size_t len);
void kedgei_replay_add_number(struct kedgei_decision *d, uint64_t number);
void kedgei_replay_add_real(struct kedgei_decision *d, double real);
/* A hasher, and a sink into it. */
struct kedge_sink;
KEDGE_NODISCARD int kedgei_replay_sink(struct kedge_hasher **ret_hasher, struct kedge_sink *ret_sink);

/* decisions.c: all decisions of the record, in order; items are a block of the audit's scratch. KEDGE_E_NOMEM
 * …
 */
KEDGE_NODISCARD int kedgei_decisions_collect(struct kedgei_replay *r);

/* selection.c, places.c: a decision that is of no close. */
void kedgei_replay_selection(const struct kedgei_replay *r, struct kedgei_decision *d,
                             struct kedgei_findings *f);
void kedgei_replay_place(const struct kedgei_replay *r, struct kedgei_decision *d, struct kedgei_findings *f);
/* The update that a place by a site's last model rests on; NULL: it had trained nothing. */
const struct kedgei_fact *kedgei_placed_by(const struct kedgei_replay *r, const struct kedgei_decision *d);

#endif
