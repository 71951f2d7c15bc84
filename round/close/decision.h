/* A decision of a round's close, as it is made: what an operation found, in the order in which one follows
 * from the other, which is the same everywhere.
 *
 * A coordinator takes each as it is. An auditor holds it against the record, and puts the record's word in
 * its place: so that a wrong decision is found once, where it was made, and what follows from it is judged by
 * itself. The same hook serves where a vector that the operation reads is gone (erased by its owner,
 * withheld, pruned, or no files are here at all): then nothing was computed, and the record's word is taken.
 */
#ifndef KEDGE_ROUND_CLOSE_DECISION_H
#define KEDGE_ROUND_CLOSE_DECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregation/rule/rule.h"
#include "crypto/hash.h"

enum kedge_decision_kind {
    KEDGE_DECISION_WEIGHTS,   /* of the group's inputs: weight, divisor, rule */
    KEDGE_DECISION_AGGREGATE, /* the group's: vector */
    KEDGE_DECISION_STEP,      /* of the server, for the group: vector, state */
    KEDGE_DECISION_MIX,       /* what mixing made of the group's model: vector */
    KEDGE_DECISION_MEET,      /* the model of all edges: vector */
    KEDGE_DECISION_JOIN,      /* the model of groups that become `group`: vector */
    KEDGE_DECISION_BLEND,     /* the model with which a group that is made anew begins: vector */
    KEDGE_DECISION_CLUSTER,   /* groups of all inputs: index, groups */
    KEDGE_DECISION_DIRECTION, /* the group's: vector; NO_DIRECTION where it has none: zero */
    KEDGE_DECISION_NEAREST,   /* the group of `site`: group */
    KEDGE_DECISION_DRIFT,     /* of all directions: drift */
    KEDGE_DECISION_MERGES,    /* what each group becomes part of: index */
    KEDGE_DECISION_VERDICTS,  /* the same by what sites found of the trials before: index */
    KEDGE_DECISION_PAIRS,     /* which group each is tried with: index */
    KEDGE_DECISION_TRIAL,     /* the model by which the sites of `group` and another judge: vector */
    KEDGE_DECISION_PERSONAL,  /* whether sites' own training serves them better: is_personal */
    KEDGE_DECISION_CUT,       /* whether the group is cut in two: is_cut; index: the part of each */
    KEDGE_DECISION_SPLIT,     /* the same by the round's own updates */
};

/* Arrays are the operation's: count items, to be overwritten in place. Numbers of groups begin at 0. */
struct kedge_decision {
    enum kedge_decision_kind kind;
    int err; /* of the operation: what follows is not set; NOT_FOUND: a vector that it reads is gone */
    uint32_t group, site; /* of which; NEAREST sets group */
    struct kedge_hash vector, state;
    uint32_t count;
    const uint32_t *input; /* WEIGHTS: places of the group's inputs among those of the close */
    uint32_t *index;       /* CLUSTER: KEDGE_GROUP_NONE where an input is left out */
    uint64_t *weight;      /* WEIGHTS; MEET, JOIN, BLEND, TRIAL: of the models, as they were */
    uint64_t divisor;
    const struct kedge_rule *rule;
    uint32_t groups;
    bool is_cut, is_personal;
    double drift;
};

#endif
