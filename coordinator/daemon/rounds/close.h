/* Internal to closing a round: what close.c (models, by round/close) and close_lists.c (input lists)
 * share. */
#ifndef KEDGE_COORDINATOR_DAEMON_ROUNDS_CLOSE_H
#define KEDGE_COORDINATOR_DAEMON_ROUNDS_CLOSE_H

#include "chain/statement/input_list.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/rounds/rounds.h"
#include "round/close/close.h"

/* One row of some input list. */
struct close_row {
    uint32_t tenant, list_group; /* list_group: the aggregate whose list it stands in */
    struct kedge_input_row row;
};
struct close_work;
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
    struct kedge_close close; /* models writes models and directions of its result, lists the aggregates */
    uint32_t groups; /* that lists are of: models may cut off more meanwhile, of which nobody sent anything */
    struct close_row *rows;
    size_t row_count;
    char classes[KEDGE_CLASS_NAMES_ROOM];          /* what the inputs name, where the round asks for it … */
    char classes_fault[KEDGE_DIAG_TEXT_MAX];       /* … or why the job has no use for them; "" */
    struct kedge_digest digests[KEDGE_GROUPS_MAX]; /* of the models, for the core */
    uint32_t former_count;                         /* models of two rounds ago */
    struct kedge_hash former[KEDGE_GROUPS_MAX];
};

/* The statement of an input, into st. Any thread. */
KEDGE_NODISCARD int kedgei_close_update(struct kedge_host *h, const struct kedge_close_input *in,
                                        struct kedge_statement *st, struct kedge_diag *d);
/* Reads what the statements of a round name that asks for classes: w->classes, or w->classes_fault. On a
 * worker. */
KEDGE_NODISCARD int kedgei_close_classes(struct kedge_host *h, struct close_work *w, struct kedge_diag *d);
/* Writes the input lists and fills result->aggregates. Groups, weights and which groups were trained must be
 * known; the models need not be. On a worker. */
int kedgei_close_lists(struct kedge_host *h, struct close_work *w, struct kedge_diag *d);

#endif
