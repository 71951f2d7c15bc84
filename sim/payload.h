/* What stands behind the digests of a simulated federation. Without a payload models and updates are hashes
 * of what they were made from; with one they are digests of real vectors, trained by the sites and closed by
 * the arithmetic of jobs (sim/protocol). The world asks, the payload answers; neither knows the other's
 * inside. What a payload answers must follow from what it is asked alone: the world crashes, asks again, and
 * compares. */
#ifndef KEDGE_SIM_PAYLOAD_H
#define KEDGE_SIM_PAYLOAD_H

#include "client/core/site.h"
#include "coordinator/core/coord.h"

/* An update that takes part in the close of a round. */
struct sim_close_input {
    uint32_t site, tenant;
    uint32_t group;  /* TRAIN: that it is for */
    uint32_t former; /* that its site is in, KEDGE_COORD_NONE: none */
    uint32_t round;  /* of its task */
    struct kedge_digest update;
};
/* A site with a group: in a PRETRAIN round one that sent nothing, else any. */
struct sim_close_other {
    uint32_t site, tenant, former;
    uint32_t input;             /* its place among the inputs of a TRAIN round, KEDGE_COORD_NONE: none */
    struct kedge_digest update; /* its last pre-training */
};
struct sim_close {
    uint32_t round;
    enum kedge_task_kind kind;
    uint32_t input_count, other_count, evaluated_count;
    const struct sim_close_input *inputs; /* in site order */
    const struct sim_close_other *others;
    const uint32_t *evaluated; /* sites whose evaluation of the round before is durable, in site order */
    uint32_t model_count, aggregates; /* before: groups; behind: those that the round has, and how many of
                                         them are its aggregates' */
    struct kedge_digest models[KEDGE_GROUPS_MAX];
    bool keeps;      /* before: too few came to make groups anew, all stays as it is */
    bool regroup;    /* behind: it asks for new groups */
    bool tries;      /* behind: it has trials, of which the next round awaits what all sites find */
    uint32_t *given; /* behind, by site: the group that the close gives it; KEDGE_COORD_NONE before: none */
};

enum sim_transfer {
    SIM_TRANSFER_UP,
    SIM_TRANSFER_DOWN,   /* to train with, or to try */
    SIM_TRANSFER_JUDGED, /* a round's model, of which the site says only how good it is */
};

struct sim_payload {
    void *arg;
    void (*site_id)(void *arg, uint32_t site, struct kedge_id *ret);
    void (*tenant_id)(void *arg, uint32_t tenant, struct kedge_id *ret);
    /* How long the site is at this work, and a model's or an update's way through its link, in ns. */
    uint64_t (*work_ns)(void *arg, uint32_t site, const struct kedge_site_task *task);
    uint64_t (*transfer_ns)(void *arg, uint32_t site, enum sim_transfer what);
    /* The site begins its work; what comes of it is asked for later, and then is what it was the first time.
     */
    void (*begin)(void *arg, uint32_t site, const struct kedge_site_task *task);
    /* KEDGE_OK and the update's digest, or why there is none. Of a task with choices also which the site
     * took. */
    int (*end)(void *arg, uint32_t site, const struct kedge_site_task *task, struct kedge_digest *ret_update,
               uint32_t *ret_choice);
    /* Did the site, which has just done this, see that its data are not those any more that it was grouped
     * by? */
    bool (*has_shifted)(void *arg, uint32_t site, const struct kedge_site_task *task);
    /* The trial that an evaluation of this group's model of that round is also about. False: there is none.
     */
    bool (*trial)(void *arg, uint32_t group, uint32_t round, struct kedge_digest *ret);
    uint64_t (*weight)(void *arg, const struct kedge_digest *update); /* samples */
    int (*verify)(void *arg, const struct kedge_digest *update);
    /* The group of a newcomer's or migrating site's update, among those behind the last closed round; of a
     * job with `nearest` (update NULL) that of the site's last model. */
    int (*nearest)(void *arg, uint32_t site, const struct kedge_digest *update, uint32_t *ret_group);
    int (*close)(void *arg, struct sim_close *close); /* may be asked again for the same round */
    /* What is durable: once for each round. */
    void (*opened)(void *arg, uint32_t round, enum kedge_task_kind kind);
    void (*closed)(void *arg, uint32_t round, uint64_t now_ns);
};

#endif
