/* What replay.c re-executes and where its inputs come from. Internal to this room. */
#ifndef KEDGE_CHAIN_AUDIT_REPLAY_H
#define KEDGE_CHAIN_AUDIT_REPLAY_H

#include "chain/audit/record.h"

enum kedgei_decision_kind {
    KEDGEI_INITIAL,
    KEDGEI_SELECTION,
    KEDGEI_GROUPING,
    KEDGEI_DIRECTION,
    KEDGEI_ASSIGNED,
    KEDGEI_AGGREGATE,
    KEDGEI_MIXING
};

struct kedgei_decision {
    enum kedgei_decision_kind kind;
    const struct kedgei_job *job;
    const struct kedgei_round *round;
    const struct kedgei_log *log;   /* KEDGEI_ASSIGNED: whose ledger */
    const struct kedgei_fact *fact; /* KEDGEI_ASSIGNED, KEDGEI_AGGREGATE */
    uint32_t group;                 /* KEDGEI_DIRECTION, KEDGEI_AGGREGATE */
    uint32_t erased;                /* inputs of it that their tenant had erased: it is left out */
    struct kedge_hash result;       /* over what was computed; zero before, and when that failed */
};

struct kedgei_replay {
    struct kedgei_audit *a;
    struct kedgei_decision *items;
    size_t count, cap;
    bool nomem;
};

/* All decisions of the record, in order; items are a block of the audit's scratch. KEDGE_E_NOMEM … */
KEDGE_NODISCARD int kedgei_decisions_collect(struct kedgei_replay *r);

/* One input of a decision. */
struct kedgei_input {
    struct kedge_input_row row;
    uint32_t place; /* of its tenant in the spec */
    char path[KEDGE_PATH_MAX];
    struct kedge_blob_keys *keys; /* of its tenant */
};
struct kedgei_inputs {
    struct kedgei_input *items; /* in site order */
    size_t count, cap;
};

/* The inputs of a decision from the lists of its round's aggregates, in site order; free items afterwards,
 * also after an error: KEDGE_E_NOT_FOUND when a list cannot be read or there are none. */
KEDGE_NODISCARD int kedgei_inputs_read(const struct kedgei_replay *r, const struct kedgei_decision *d,
                                       struct kedgei_inputs *ret, struct kedgei_findings *f);
/* Candidates of all tenants in the order (tenant id, site id); likewise. */
KEDGE_NODISCARD int kedgei_candidates_read(const struct kedgei_replay *r, const struct kedgei_decision *d,
                                           struct kedgei_inputs *ret, struct kedgei_findings *f);
/* Its file, for kedge_compute_…; borrows the input. */
struct kedge_blob_at kedgei_input_at(const struct kedgei_input *in);
/* All files; NULL when out of memory. */
struct kedge_blob_at *kedgei_inputs_at(const struct kedgei_inputs *in);

#endif
