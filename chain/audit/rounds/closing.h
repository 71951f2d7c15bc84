/* A round's close once more: the engine that made it (round/close) runs over what is recorded, and each of
 * its decisions is held against the record. It goes on from the record's word, so that what is wrong is found
 * where it was decided, and once. Internal to this room. */
#ifndef KEDGE_CHAIN_AUDIT_ROUNDS_CLOSING_H
#define KEDGE_CHAIN_AUDIT_ROUNDS_CLOSING_H

#include "chain/audit/rounds/replay.h"
#include "round/close/close.h"

/* What is recorded of one close. */
struct kedgei_closing {
    const struct kedgei_replay *r;
    const struct kedgei_job *job;
    const struct kedgei_round *round;
    const struct kedge_st_step *step; /* NULL: it was never finished */
    const struct kedge_st_step *last; /* of the round before, NULL: groups are made, or there is none */
    bool is_blind;                    /* verify: no input and no file is looked at, only what steps say */
    struct kedge_close close;
    struct kedge_round_result result;
    struct kedgei_inputs inputs, members; /* rows of its lists; sites that had a group: close.others */
    const bool *lacks;                    /* by group: not all its inputs are known; NULL: by is_blind */
    bool unlisted;                        /* a statement of an input is missing: verify says so */
    int since_err;                        /* why it is not known what edges have added up */
    /* While it runs: */
    struct kedgei_decision *items; /* that it is to answer */
    size_t item_count;
    struct kedgei_findings *f;
    struct kedge_diag diag;
    uint32_t parts;   /* directions of parts that the engine gives next */
    bool judge_parts; /* … from the same updates as the recorded ones */
    bool asks_cuts;   /* no groups are joined: each may be cut … */
    uint32_t cuts;    /* … of which so many had their turn */
    bool one;         /* the aggregate of one group is all that is wanted */
};

/* Fills in what the close of this decision's round began with. one: with the inputs of its group alone.
 * Deinit also after an error: KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_closing_init(struct kedgei_closing *c, const struct kedgei_replay *r,
                                        const struct kedgei_decision *of, bool one);
/* The same without lists and files, for kedgei_closing_state: of each group that has an aggregate an input
 * that is gone. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_closing_init_blind(struct kedgei_closing *c, const struct kedgei_replay *r,
                                              const struct kedgei_job *job, const struct kedgei_round *round);
/* The same with these inputs, which become the closing's, for what they weigh; lacks: by group, there are
 * more of which nothing is known. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_closing_init_listed(struct kedgei_closing *c, const struct kedgei_replay *r,
                                               const struct kedgei_job *job, const struct kedgei_round *round,
                                               struct kedgei_inputs *inputs, const bool *lacks);
/* What the step would say of that close, if each of its decisions is what is recorded of it.
 * KEDGE_E_NOMEM; else the record lacks a decision. */
KEDGE_NODISCARD int kedgei_closing_state(struct kedgei_closing *c, struct kedge_st_step *ret);
void kedgei_closing_deinit(struct kedgei_closing *c);

/* These decisions, which are of one close. one: that is one aggregate, for which nothing else of its round is
 * read. */
void kedgei_replay_close(const struct kedgei_replay *r, struct kedgei_decision *items, size_t count, bool one,
                         struct kedgei_findings *f);

/* judgement.c. The host of the close: each decision as it is made. arg: the closing. */
int kedgei_closing_decided(void *arg, struct kedge_decision *io, struct kedge_diag *d);
/* After it: what it did not come to, and err is why; who was to be moved. */
void kedgei_closing_end(struct kedgei_closing *c, int err);

#endif
