/* A round's close: from the inputs that count to models, groups and directions, in the order in which they
 * follow from each other. kedge-coordinator and the simulation of jobs (sim/protocol) call it, each with
 * files of its own, and the auditor, with the record's files or with none.
 *
 *      TRAIN     weigh every group, then kedge_close_train: aggregate and server's step of each, mixing or
 *                meeting; directions estimated again; groups that are joined or cut
 *      PRETRAIN  kedge_close_pretrain: groups are made, or made anew; their models and directions
 *                kedge_close_keep: they stay what they are
 *
 * Before, the host fills in what the round begins with; behind it `result` is what the record says. */
#ifndef KEDGE_ROUND_CLOSE_CLOSE_H
#define KEDGE_ROUND_CLOSE_CLOSE_H

#include "chain/statement/statement.h"
#include "common/base/os/file.h"
#include "coordinator/core/coord.h"
#include "round/aggregate.h"
#include "round/close/decision.h"
#include "round/state.h"

/* What CLOSE_ROUND computed and MAIN_ROUND_CLOSED records. */
struct kedge_round_result {
    uint32_t round, groups;
    enum kedge_task_kind kind;
    struct kedge_hash before[KEDGE_GROUPS_MAX], aggregate[KEDGE_GROUPS_MAX], after[KEDGE_GROUPS_MAX];
    struct kedge_hash directions[KEDGE_GROUPS_MAX];
    struct kedge_hash made[KEDGE_GROUPS_MAX]; /* with which groups were made, zero: `directions` */
    double drift;                             /* how far the ones are from the others, where it was asked */
    /* groups that the close cuts or joins, numbered from 1 as in the step; merged_into also of earlier ones
     */
    struct kedge_hash whole[KEDGE_GROUPS_MAX];
    uint32_t split_of[KEDGE_GROUPS_MAX], merged_into[KEDGE_GROUPS_MAX];
    bool joined[KEDGE_GROUPS_MAX]; /* `after` is made of several groups' models */
    /* what the server's optimiser made of the aggregate, the aggregate without one; its state, zero: none */
    struct kedge_hash stepped[KEDGE_GROUPS_MAX];
    struct kedge_hash state_before[KEDGE_GROUPS_MAX], state_after[KEDGE_GROUPS_MAX];
    bool trained[KEDGE_GROUPS_MAX];
    bool mixed;
    bool regroup; /* directions have drifted: the next round makes new groups, unless it is the last */
    bool kept;    /* too few came to make groups anew: `after` and all else is what it was */
    bool met;     /* edges: `after` is that of all */
    /* trials (round/trial.h): what the step before has, and what this one has; groups from 1 */
    struct kedge_hash trial_before[KEDGE_GROUPS_MAX], trial[KEDGE_GROUPS_MAX];
    uint32_t tried_before[KEDGE_GROUPS_MAX], tried_with[KEDGE_GROUPS_MAX];
    struct kedge_hash whole_before[KEDGE_GROUPS_MAX]; /* of both parts of a cut that the step before has: the
                                                         direction that the whole had; else zero */
    bool is_personal; /* what sites make of their group's model serves them better; at first as it was before
                       */
    uint64_t since[KEDGE_GROUPS_MAX]; /* edges: what each has added up since the last meeting, behind it */
    uint64_t charged, spent; /* what the round's updates are charged, the host's; and with it all rounds' */
    uint32_t aggregate_count;
    struct kedge_st_aggregate *aggregates; /* the host's: aggregate_count, owned */
    uint32_t assigned_count;
    uint32_t *assigned_sites, *assigned_groups; /* what the close gives to whom; owned */
    uint32_t members[KEDGE_GROUPS_MAX];
};
void kedge_round_result_free(struct kedge_round_result *r); /* and what it owns; NULL is fine */

/* An input that takes part in the computation. */
struct kedge_close_input {
    uint32_t site, tenant; /* handles */
    uint32_t place;        /* of the tenant in the spec */
    uint32_t group;        /* TRAIN: that it is for; PRETRAIN: that it makes, once it is known */
    uint32_t round;        /* of its task */
    uint32_t former;       /* the group that its site is in, KEDGE_COORD_NONE: none */
    struct kedge_coord_input in;
    uint64_t weight; /* in its group's aggregate */
    char path[KEDGE_PATH_MAX];
    struct kedge_blob_at file; /* at path */
    bool is_gone;              /* an auditor's: there is no such file here */
    bool is_root;              /* kedge_job_spec_is_root */
    bool left_out;
    uint32_t to; /* where its group is cut: the number of its part, if that is the one that was cut off */
};
/* A site with a group: in a round in which groups are made anew one that sent nothing to it, where directions
 * are estimated again or groups are tried any. In site order. */
struct kedge_close_other {
    uint32_t site, former;
    uint32_t place;           /* of its tenant in the spec */
    uint32_t input;           /* its place among the inputs of a round of training, KEDGE_COORD_NONE: none */
    struct kedge_hash update; /* by which it was given its group */
};

/* What a site has found of a trial of the step before, in time for this close. In site order. */
struct kedge_close_evaluation {
    uint32_t site, tenant; /* handles */
    uint32_t place;        /* of the tenant in the spec */
    uint32_t group;        /* that it was in */
    uint64_t leaf;         /* of its statement in the tenant's ledger */
    uint64_t samples;
    double loss, trial_loss;
    double personal_loss; /* of what the site's own training has made of its group's model; 0: not stated */
};

/* A file, or a vector, on its way. */
struct kedge_close_file {
    void *writer; /* the host's */
    struct kedge_sink sink;
};
/* Where a close finds and leaves its vectors: files, or a simulation's memory. Any thread. */
struct kedge_close_host {
    void *arg;
    /* Of a model, a direction, a state. path: room for where its file is. */
    int (*vector)(void *arg, const struct kedge_hash *digest, char path[KEDGE_PATH_MAX],
                  struct kedge_blob_at *ret_at);
    /* Of an update of the site; KEDGE_E_NOT_FOUND: it is gone. */
    int (*update)(void *arg, uint32_t site, const struct kedge_hash *digest, char path[KEDGE_PATH_MAX],
                  struct kedge_blob_at *ret_at);
    /* What the update's statement says of steps and loss. */
    int (*facts)(void *arg, const struct kedge_close_input *in, struct kedge_strategy_input *ret,
                 struct kedge_diag *d);
    /* A new file; len is what may be expected at most. end with the error so far, which it returns. */
    int (*begin)(void *arg, uint64_t len, struct kedge_close_file *ret, struct kedge_diag *d);
    int (*end)(void *arg, struct kedge_close_file *file, int err, struct kedge_hash *ret,
               struct kedge_diag *d);
    /* Each decision as it is made, also one that went wrong (decision.h): an auditor's, which says with which
     * error the close goes on; else NULL. Where it is set, `vector` may say KEDGE_E_NOT_FOUND, too. */
    int (*decided)(void *arg, struct kedge_decision *io, struct kedge_diag *d);
};

struct kedge_close {
    struct kedge_close_host host;
    const struct kedge_job_spec *spec;
    const struct kedge_layout *layout; /* of the model */
    int32_t limit;                     /* largest |q| of an update */
    struct kedge_hash initial;         /* the model of pre-trainings */
    struct kedge_round_result *result; /* begun by kedge_close_begin */
    struct kedge_close_input *inputs;  /* in site order */
    size_t input_count;
    struct kedge_close_other *others;
    size_t other_count;
    struct kedge_close_evaluation *evaluations;
    size_t evaluation_count;
    bool lacks_evaluations;                          /* an auditor's: not all of them are here */
    const struct kedge_rule *rule[KEDGE_GROUPS_MAX]; /* that runs for the group, once it is weighed */
    uint64_t divisor[KEDGE_GROUPS_MAX];
    struct kedge_diag *d;
};

/* What the close begins with of what is known between rounds; ret: round, kind, kept and charged are set. */
void kedge_close_begin(const struct kedge_round_state *state, struct kedge_round_result *ret);
/* What is known after it. */
void kedge_close_end(const struct kedge_round_result *r, struct kedge_round_state *io);
/* What is left of the job's budget may not do for the round after this close (coordinator/schedule/budget.h);
 * false: it has none. state: before the close; or with r NULL after it. */
bool kedge_close_exceeds_budget(const struct kedge_round_state *state, const struct kedge_round_result *r,
                                const struct kedge_job_spec *spec);
/* What its step says of it; time and names of classes are the host's. */
void kedge_close_state_step(const struct kedge_round_result *r, const struct kedge_job_spec *spec,
                            struct kedge_st_step *ret);
/* The group of a site that a fold of the record leaves undecided (round/fold.h); state: after that close. */
KEDGE_NODISCARD int kedge_close_follow(const struct kedge_close_host *host, const struct kedge_layout *layout,
                                       const struct kedge_round_state *state, uint32_t site,
                                       const struct kedge_round_site *row, uint32_t *ret_group,
                                       struct kedge_diag *d);

/* What input lists say is known as soon as a round of training is weighed, for which no statements and files
 * are read. */
bool kedge_close_needs_no_files(const struct kedge_job_spec *spec);
/* The server steps by what updates carry beside the change of the model, and not by the aggregate alone. */
bool kedge_close_steps_by_updates(const struct kedge_job_spec *spec);
/* Sets members and trained of all groups of a round of training, and what each of its inputs weighs. */
KEDGE_NODISCARD int kedge_close_weigh(struct kedge_close *c);
/* The models of a round of training that is weighed, and all that follows. */
KEDGE_NODISCARD int kedge_close_train(struct kedge_close *c);
/* The whole of a PRETRAIN round. */
KEDGE_NODISCARD int kedge_close_pretrain(struct kedge_close *c);
/* … to which too few came to make groups anew: all inputs are left out. */
void kedge_close_keep(struct kedge_close *c);

/* What the group of a site follows from. */
struct kedge_place {
    uint32_t site;
    struct kedge_hash
        update; /* its pre-training; where it goes by its last model, what made that (zero: nothing yet) … */
    struct kedge_hash base;    /* … of this model … */
    struct kedge_hash initial; /* … and the one that it has then */
    uint32_t first, count;     /* the groups that it is compared with: all, or the one that it was given */
};
/* The nearest of those groups, and how near the site is to it: the cosine of its pre-training to the group's
 * direction (0 where one of them has none), or 1 / (1 + distance) of its last model to the group's. Where its
 * update is gone *io_group stays and the similarity is 0; likewise in jobs whose groups are cut by their own
 * updates. */
KEDGE_NODISCARD int kedge_close_place(const struct kedge_close_host *host, const struct kedge_job_spec *spec,
                                      const struct kedge_layout *layout,
                                      const struct kedge_round_state *state, const struct kedge_place *place,
                                      uint32_t *io_group, double *ret_similarity, struct kedge_diag *reterr);

/* The group of a site whose update did not make the groups: the nearest direction, as of a newcomer's; of an
 * update that is gone, the nearest to the direction that its site's group had; 0 where it is zero. */
KEDGE_NODISCARD int kedge_close_nearest(const struct kedge_close_host *host,
                                        const struct kedge_layout *layout, uint32_t site,
                                        const struct kedge_hash *update, const struct kedge_hash *former,
                                        const struct kedge_hash *directions, uint32_t groups,
                                        uint32_t *ret_group, struct kedge_diag *d);
/* Where a site of group `from` goes when that is cut and `to` cut off: to the nearer of the two directions,
 * the first of equal ones; from where its update is gone. */
KEDGE_NODISCARD int kedge_close_cut(const struct kedge_close_host *host, const struct kedge_layout *layout,
                                    uint32_t site, const struct kedge_hash *update,
                                    const struct kedge_hash *directions, uint32_t from, uint32_t to,
                                    uint32_t *ret_group, struct kedge_diag *d);
/* Groups that have become part of another one are found where that one is: its direction in their places. */
void kedge_close_merged_directions(struct kedge_hash *directions, const uint32_t *merged_into);

#endif
