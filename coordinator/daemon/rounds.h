/* Rounds, from job-opened to job-closed: what they compute, and what the main chain and the ledgers say of
 * it. */
#ifndef KEDGE_COORDINATOR_DAEMON_ROUNDS_H
#define KEDGE_COORDINATOR_DAEMON_ROUNDS_H

#include "chain/statement.h"
#include "coordinator/core/coord.h"
#include "crypto/hash.h"

struct kedge_host;
struct kedge_job;

/* What CLOSE_ROUND computed and MAIN_ROUND_CLOSED records. Kept until durable. */
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
    bool met;                         /* edges: `after` is that of all */
    uint64_t since[KEDGE_GROUPS_MAX]; /* edges: kedge_job.since behind this round */
    uint32_t aggregate_count;
    struct kedge_st_aggregate *aggregates; /* aggregate_count, owned */
    uint32_t assigned_count;
    uint32_t *assigned_sites, *assigned_groups; /* owned */
    uint32_t members[KEDGE_GROUPS_MAX];
};

/* The group of a site whose update did not make the groups: the nearest direction, as of a newcomer's; of an
 * update that is gone, the nearest to the direction that its site's group had. Any thread. */
KEDGE_NODISCARD int kedge_host_regrouped(struct kedge_host *h, const struct kedge_job *job, uint32_t tenant,
                                         const struct kedge_hash *update, const struct kedge_hash *former,
                                         const struct kedge_hash *directions, uint32_t groups,
                                         uint32_t *ret_group, struct kedge_diag *d);
/* Groups that have become part of another one are found where that one is: its direction in their places. */
void kedge_host_merged_directions(struct kedge_hash *directions, const uint32_t *merged_into);
/* Where a site of group `from` goes when that is cut and `to` cut off: to the nearer of the two directions,
 * the first of equal ones; from where its update is gone. Any thread. */
KEDGE_NODISCARD int kedge_host_cut(struct kedge_host *h, const struct kedge_job *job, uint32_t tenant,
                                   const struct kedge_hash *update, const struct kedge_hash *directions,
                                   uint32_t from, uint32_t to, uint32_t *ret_group, struct kedge_diag *d);
/* Of a job in which the model nearest to a site's last one is the site's: which group that is of, among so
 * many; with groups of 0 how similar *ret_group's is. What is gone changes nothing. Any thread. */
KEDGE_NODISCARD int kedge_host_last_model(struct kedge_host *h, const struct kedge_job *job, uint32_t site,
                                          uint32_t groups, uint32_t *ret_group, double *ret_similarity,
                                          struct kedge_diag *d);
void kedge_host_job_opened(struct kedge_host *h, struct kedge_job *job);
void kedge_host_round_opened(struct kedge_host *h, struct kedge_job *job, uint32_t round,
                             enum kedge_task_kind kind);
void kedge_host_close_round(struct kedge_host *h, struct kedge_job *job, uint32_t round,
                            enum kedge_task_kind kind);
void kedge_host_round_closed(struct kedge_host *h, struct kedge_job *job, uint32_t round);
void kedge_host_job_closed(struct kedge_host *h, struct kedge_job *job, enum kedge_job_state outcome);
void kedge_host_assign(struct kedge_host *h, struct kedge_job *job, const struct kedge_coord_effect *fx);
void kedge_host_append_assigned(struct kedge_host *h, struct kedge_job *job,
                                const struct kedge_coord_effect *fx);
/* Hands over those that waited for the statement key. */
void kedge_host_assigned_go_on(struct kedge_host *h);
void kedge_round_result_free(struct kedge_round_result *r);

#endif
