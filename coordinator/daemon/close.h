/* Internal to closing a round: what close.c (models) and close_lists.c (input lists) share. */
#ifndef KEDGE_COORDINATOR_DAEMON_CLOSE_H
#define KEDGE_COORDINATOR_DAEMON_CLOSE_H

#include "chain/compute/aggregate.h"
#include "chain/input_list.h"
#include "chain/store/blob_file.h"
#include "common/base/os/file.h"
#include "coordinator/core/coord.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/rounds.h"

/* One row of some input list. */
struct close_row {
    uint32_t tenant, list_group; /* list_group: the aggregate whose list it stands in */
    struct kedge_input_row row;
};
/* An input that takes part in the computation. */
struct close_input {
    uint32_t site, tenant, group;
    uint32_t round;  /* of its task */
    uint32_t former; /* the group that its site is in, KEDGE_COORD_NONE: none */
    struct kedge_coord_input in;
    uint64_t weight; /* in its group's aggregate */
    char path[KEDGE_PATH_MAX];
    struct kedge_blob_at file; /* at path */
    bool left_out;
    uint32_t
        to; /* where its group is cut: the number of its part, if that is the one that was cut off; else 0 */
};
/* A site with a group: in a round in which groups are made anew one that sent nothing to it, where directions
 * are estimated again any. In site order. */
struct close_other {
    uint32_t site, former;
    uint32_t tenant;          /* place in the spec */
    struct kedge_hash update; /* by which it was given its group */
};
struct close_work;
struct kedge_blob_writer;
/* What one worker does of it. */
struct close_part {
    struct kedge_work work;
    struct close_work *close;
    int err;
    struct kedge_diag diag;
};
struct close_work {
    struct close_part models, lists;
    unsigned parts_left; /* the loop's */
    struct kedge_job *job;
    struct kedge_round_result *result; /* models writes models and directions, lists the aggregates */
    struct close_input *inputs;        /* in site order */
    size_t input_count;
    struct close_other *others;
    size_t other_count;
    struct close_row *rows;
    size_t row_count;
    struct kedge_digest digests[KEDGE_GROUPS_MAX]; /* of the models, for the core */
    uint32_t former_count;                         /* models of two rounds ago */
    struct kedge_hash former[KEDGE_GROUPS_MAX];
    const struct kedge_rule *rule[KEDGE_GROUPS_MAX]; /* that runs for the group, once it is weighed */
    uint64_t divisor[KEDGE_GROUPS_MAX];
};

/* Blobs of the main chain that a worker makes: begin, write to the sink, end with the error so far. */
KEDGE_NODISCARD int kedgei_close_blob_begin(struct kedge_host *h, uint64_t len,
                                            struct kedge_blob_writer **ret, struct kedge_sink *ret_sink,
                                            struct kedge_diag *d);
KEDGE_NODISCARD int kedgei_close_blob_end(struct kedge_blob_writer *writer, int err, struct kedge_hash *ret,
                                          struct kedge_diag *d);

/* Place of a tenant in the job's spec. */
uint32_t kedgei_close_place(const struct kedge_job *job, uint32_t tenant);

/* Sets members and trained of a group, and what each of its inputs weighs. For jobs that weigh by samples and
 * take the mean it reads nothing, so that the loop may call it; else it reads statements and files. `cold`:
 * of the pre-training that made the group. */
KEDGE_NODISCARD int kedgei_close_weigh(struct kedge_host *h, struct close_work *w, uint32_t group, bool cold);
/* Behind the steps of a hierarchical job's round: the meeting, when it is time. On a worker. */
KEDGE_NODISCARD int kedgei_close_edges(struct kedge_host *h, struct close_work *w);
/* The aggregate of a group that is weighed, and the server's step, where the job has one. On a worker. */
KEDGE_NODISCARD int kedgei_close_group(struct kedge_host *h, struct close_work *w, uint32_t group, bool cold);

/* The direction of a group's members. On a worker. */
KEDGE_NODISCARD int kedgei_close_direction(struct kedge_host *h, struct close_work *w, uint32_t group);
/* A PRETRAIN round behind the first: groups, models, directions, and the groups of all who have one. On a
 * worker. */
KEDGE_NODISCARD int kedgei_close_regroup(struct kedge_host *h, struct close_work *w);

/* Pre-training updates by which sites have a group. */
struct close_signs {
    char (*path)[KEDGE_PATH_MAX];
    struct kedge_blob_at *files;
    uint32_t *tenant;
    size_t count;
};
/* Those of the group that were chosen (an item for each of w->others) and are still here. */
KEDGE_NODISCARD int kedgei_close_signs(struct kedge_host *h, const struct close_work *w, const bool *selected,
                                       uint32_t group, struct close_signs *s);
/* Groups that are cut or become one, once directions are estimated. On a worker. */
KEDGE_NODISCARD int kedgei_close_reshape(struct kedge_host *h, struct close_work *w, const bool *selected,
                                         struct close_signs *s);

/* Behind the steps of a round of training: directions estimated again, where it is time. On a worker. */
KEDGE_NODISCARD int kedgei_close_refresh(struct kedge_host *h, struct close_work *w);

/* Behind the steps of a CFL job's round: groups whose updates pull apart are cut. On a worker. */
KEDGE_NODISCARD int kedgei_close_split(struct close_work *w);
/* Keeps which updates the moves of this close rest on. */
void kedgei_close_note_moved(struct kedge_job *job, const struct close_work *w);

/* Writes the input lists and fills result->aggregates. Groups, weights and which groups were trained must be
 * known; the models need not be. On a worker. */
int kedgei_close_lists(struct kedge_host *h, struct close_work *w, struct kedge_diag *d);

/* The group's inputs in site order; *ret is the caller's to free, also after an error. */
KEDGE_NODISCARD int kedgei_close_gather(const struct kedge_host *h, const struct close_work *w,
                                        uint32_t group, struct kedge_compute_input **ret, size_t *ret_count);
/* control.c: the step of a job whose updates carry control variates (kedge_compute_control_step). On a
 * worker. */
KEDGE_NODISCARD int kedgei_close_control(struct kedge_host *h, struct close_work *w, uint32_t group,
                                         const char *before, const char *aggregate, const char *state,
                                         struct kedge_sink model, struct kedge_sink state_after);

#endif
