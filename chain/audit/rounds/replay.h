/* What replay.c re-executes and where its inputs come from. Internal to this room. */
#ifndef KEDGE_CHAIN_AUDIT_ROUNDS_REPLAY_H
#define KEDGE_CHAIN_AUDIT_ROUNDS_REPLAY_H

#include "chain/audit/record.h"

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
    KEDGEI_SPLIT, /* by the round's updates */
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

/* What a decision's function says and adds: replay.c. */
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
/* A hasher, and a sink into it. */
struct kedge_sink;
KEDGE_NODISCARD int kedgei_replay_sink(struct kedge_hasher **ret_hasher, struct kedge_sink *ret_sink);

/* closing.c: these decisions, which are of one close. one: that is one aggregate, for which nothing else of
 * its round is read. */
void kedgei_replay_close(const struct kedgei_replay *r, struct kedgei_decision *items, size_t count, bool one,
                         struct kedgei_findings *f);

/* nearest.c: the decisions of a ledger, and the update that one rests on (NULL: the initial model). */
void kedgei_nearest_decisions(struct kedgei_replay *r, const struct kedgei_log *log,
                              void (*add)(struct kedgei_replay *r, struct kedgei_decision d));
const struct kedgei_fact *kedgei_nearest_by(const struct kedgei_replay *r, const struct kedgei_decision *d);
void kedgei_replay_nearest(const struct kedgei_replay *r, struct kedgei_decision *d,
                           struct kedgei_findings *f);
/* split.c: the cuts of a round, one decision for each group that trained. */
void kedgei_split_decisions(struct kedgei_replay *r, const struct kedgei_job *job,
                            const struct kedgei_round *round,
                            void (*add)(struct kedgei_replay *r, struct kedgei_decision d));

/* All decisions of the record, in order; items are a block of the audit's scratch. KEDGE_E_NOMEM … */
KEDGE_NODISCARD int kedgei_decisions_collect(struct kedgei_replay *r);

/* One input of a decision. */
struct kedgei_input {
    struct kedge_input_row row;
    uint32_t place; /* of its tenant in the spec */
};
struct kedgei_inputs {
    struct kedgei_input *items; /* in site order */
    size_t count, cap;
};

/* The inputs of a decision from the lists of its round's aggregates, in site order; free items afterwards,
 * also after an error: KEDGE_E_NOT_FOUND when a list cannot be read or there are none. */
KEDGE_NODISCARD int kedgei_inputs_read(const struct kedgei_replay *r, const struct kedgei_decision *d,
                                       struct kedgei_inputs *ret, struct kedgei_findings *f);
/* Adds one. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_inputs_add(struct kedgei_inputs *in, uint32_t place,
                                      const struct kedge_input_row *row);
void kedgei_inputs_sort(struct kedgei_inputs *in);
void kedgei_inputs_deinit(struct kedgei_inputs *in);
/* reshape.c: the groups of which a group-assigned names the one that its site's update is nearest to: the
 * first `groups`, of a site that was cut off the part and what it was cut from, or (0) the one that it names.
 * How many. */
uint32_t kedgei_chosen_among(const struct kedgei_decision *d, uint32_t groups,
                             uint32_t ret[KEDGE_GROUPS_MAX]);
/* refresh.c: sites that had this group when the round closed (KEDGE_GROUP_NONE: any), with the update that
 * gave it, leaf: the entry that says so. chosen: those who speak for their groups. */
KEDGE_NODISCARD int kedgei_members_read(const struct kedgei_replay *r, const struct kedgei_decision *d,
                                        bool chosen, struct kedgei_inputs *ret);
/* refresh.c: likewise of a direction that was estimated again: the newest updates of the group's sites. */
KEDGE_NODISCARD int kedgei_signs_read(const struct kedgei_replay *r, const struct kedgei_decision *d,
                                      struct kedgei_inputs *ret);
/* Candidates of all tenants in the order (tenant id, site id); likewise. */
KEDGE_NODISCARD int kedgei_candidates_read(const struct kedgei_replay *r, const struct kedgei_decision *d,
                                           struct kedgei_inputs *ret, struct kedgei_findings *f);

/* weights.c: what these inputs of a round, all of those that count, weigh by their statements; takes them.
 * unlisted: by group, some of its inputs are not known. Where files decide as well, that is replay's part. */
void kedgei_check_weights(struct kedgei_audit *a, const struct kedgei_job *job,
                          const struct kedgei_round *round, struct kedgei_inputs *inputs,
                          const bool *unlisted, struct kedgei_findings *f);

/* replay_inputs.c: the decision as one over the updates of its aggregate: what a server's step with control
 * variates reads. */
struct kedgei_decision kedgei_as_aggregate(const struct kedgei_decision *d);

/* charged.c: what a row of round-opened weighs is what jobs that draw by weights allow, else nothing; … */
bool kedgei_draw_fits(const struct kedgei_job *job, const struct kedgei_round *round,
                      const struct kedge_input_row *row);
/* … and who is selected by that. scratch holds three items for each of *in. */
void kedgei_replay_charged(const struct kedge_job_spec *spec, uint32_t round, const struct kedgei_inputs *in,
                           uint32_t *scratch, bool *ret_selected);

#endif
