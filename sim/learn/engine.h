/* Inside sim/learn: the state of a run and the parts that work on it. A round is: shift the data → select →
 * find groups (cold start, newcomers, migration) → train, each item on a thread of its own → close, as jobs
 * are closed (close.h) → evaluate → tell. What threads or processes share out are items with results
 * of a fixed size, put back in the order of the items; everything else runs once, in order, on every rank. So
 * results depend on neither. */
#ifndef KEDGE_SIM_LEARN_ENGINE_H
#define KEDGE_SIM_LEARN_ENGINE_H

#include "client/daemon/update/shift.h"
#include "client/train/net.h"
#include "common/base/rng.h"
#include "common/tensor/layout.h"
#include "coordinator/core/coord.h"
#include "coordinator/schedule/target.h"
#include "sim/learn/learn.h"
#include "sim/learn/trace.h"
#include "sim/learn/vectors.h"
#include "sim/partition/clients.h"
#include "sim/partition/recipes.h"

enum {
    KEDGEI_LEARN_CLASSES_MAX = 1024,
    KEDGEI_LEARN_CHUNK = 256, /* samples of an evaluation in one pass */
    KEDGEI_LEARN_THREADS_MAX = 64,
};

/* Streams of KEDGE_RNG_LEARN: what a seed means, never renumber. */
enum kedgei_learn_stream {
    KEDGEI_LEARN_STREAM_ATTACKERS = 1,
    KEDGEI_LEARN_STREAM_DEVICES = 2,
    KEDGEI_LEARN_STREAM_AVAILABLE = 3, /* by round */
    KEDGEI_LEARN_STREAM_FAIL = 4,      /* by round, site */
    KEDGEI_LEARN_STREAM_SHIFT = 5,     /* by round */
    KEDGEI_LEARN_STREAM_JOIN = 7,      /* by site: a random group */
    KEDGEI_LEARN_STREAM_UPDATES = 9,   /* synthetic updates */
    KEDGEI_LEARN_STREAM_ROOT = 10,     /* root data */
    KEDGEI_LEARN_STREAM_TENANTS = 11,
};
static inline uint64_t kedgei_learn_stream(enum kedgei_learn_stream stream, uint32_t round)
{
    return (uint64_t)stream << 32 | round;
}

/* ---- names (names.c) ---- */

struct kedgei_names {
    const struct kedge_job_spec *job; /* which names the tenants */
    uint32_t sites;                   /* the engine's, and after them its root where a rule needs one */
    uint32_t *tenant, *number;        /* of each site: whose, and which of these, from 1; owned */
    uint32_t *order;                  /* the sites by (tenant, name), as jobs count them; owned */
    int digits;
};
struct kedgei_learn;
/* The root goes to the tenant with the fewest sites. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_names_init(struct kedgei_names *n, struct kedgei_learn *l);
void kedgei_names_deinit(struct kedgei_names *n);
void kedgei_names_tenant(const struct kedgei_names *n, uint32_t tenant, struct kedge_id *ret); /* "org-a" */
void kedgei_names_site(const struct kedgei_names *n, uint32_t site, struct kedge_id *ret);     /* "site-1" */
/* Of the shuffles of a site's task in this round of the job. */
uint64_t kedgei_names_seed(const struct kedgei_names *n, uint32_t round, uint32_t site);

/* ---- data (pool.c) ---- */

/* All samples of all sites. A value is (byte − mean) · inverse of its column, or a real. */
struct kedgei_learn_pool {
    uint32_t n, train_n, features, classes;
    uint32_t side;                /* of square images, else 0: these cannot turn */
    uint8_t *bytes;               /* owned */
    float *reals;                 /* owned */
    int32_t *labels;              /* owned */
    uint32_t *writers;            /* owned */
    struct kedge_clients clients; /* of that partition: its values and labels are reals and labels here */
    float *mean, *inverse;        /* owned, one a feature */
    uint32_t *turned[4]; /* owned: where pixel i of an image that was turned k times comes from; [0] NULL */
};
KEDGE_NODISCARD int kedgei_learn_pool_load(struct kedgei_learn_pool *pool,
                                           const struct kedge_learn_spec *spec,
                                           struct kedge_partition *ret_partition, struct kedge_diag *reterr);
void kedgei_learn_pool_deinit(struct kedgei_learn_pool *pool);
/* One sample, turned `turn` times by 90°, as floats. */
void kedgei_learn_pool_row(const struct kedgei_learn_pool *pool, uint32_t row, uint32_t turn, float *out);
/* The sample is wanted soon: a site's samples lie anywhere in memory. */
void kedgei_learn_pool_prefetch(const struct kedgei_learn_pool *pool, uint32_t row);

/* clients.c: the partition "clients". */
KEDGE_NODISCARD int kedgei_learn_clients_load(struct kedgei_learn_pool *pool,
                                              const struct kedge_learn_spec *spec,
                                              struct kedge_partition *ret_partition,
                                              struct kedge_diag *reterr);

/* ---- sites (site.c) ---- */

struct kedgei_learn_site {
    uint32_t *train, *test; /* rows of the pool, borrowed from the run's list or from rows */
    uint32_t *rows;         /* owned, or NULL */
    uint32_t train_count, test_count, train_all; /* train_all: with what is not released yet */
    uint32_t turn, truth;                        /* truth: planted group */
    uint32_t group;                              /* KEDGE_ROUND_NONE: cold */
    uint32_t tenant, device;
    bool attacker;
    bool shifted;  /* its data, and it has not pre-trained since */
    bool is_input; /* close.c */
    /* of a strategy that needs them; owned, d values each */
    float *own;           /* Ditto's or a lone site's model; the model with its head; FeSEM's last model */
    int32_t *control;     /* SCAFFOLD's, in units of the job's scale */
    int32_t *pretraining; /* last pre-training update */
    int32_t *left;        /* of its updates, what compression has not sent yet, to the model of left_group */
    uint32_t left_group;
    uint32_t since;  /* round of the job in which a pre-training of its own last gave it a group */
    uint32_t joined; /* round in which it came to its group */
};

/* ---- training (train.c) ---- */

struct kedgei_learn_item {
    uint32_t site;
    const float *base;    /* the model that it begins with */
    uint32_t round;       /* of the job: its task's */
    const float *control; /* SCAFFOLD's, of the server; NULL: zeros */
    bool pretrain, loss_wanted;
    bool failed; /* does not answer */
    uint32_t staleness;
};
/* What comes back, followed by `vectors` vectors of d four-byte values: the update (int32), then a change of
 * control variate (int32) or the site's own model (float). */
struct kedgei_learn_result {
    int32_t err;     /* KEDGE_OK, or why there is no update */
    uint32_t choice; /* group, where the site chose: of who sets it */
    uint64_t steps, samples;
    double loss_before, loss, moved; /* moved: ‖w − base‖ */
    double tested_loss;              /* on its own test samples, where its evaluation says that; else 0 */
};

/* A site in an asynchronous run. */
struct kedgei_learn_flight {
    uint32_t round, lost; /* round: of the job, that its task is of; 0: none. lost: nothing will come of it */
    double finish_s;
};

/* The model that a site chose (IFCA). */
struct kedgei_learn_choice {
    uint32_t group;
    double loss;
};

/* What an evaluation asks of a site, and a share of it for one thread. */
struct kedgei_learn_plan {
    const float *model;
    uint32_t order, site; /* order: of the model */
};
struct kedgei_learn_chunk {
    const float *model;
    uint32_t first, count; /* of the plan */
};

/* A site's samples: which rows of the pool they are, in memory that grows as sites are larger. */
struct kedgei_learn_room {
    struct kedge_dataset_maker maker; /* first: the room is found by it */
    const struct kedgei_learn *l;
    uint32_t *rows, most; /* rows, labels: owned, room for `most` */
    int32_t *labels;
    uint32_t turn;
    bool is_poisoned;
};

/* A thread's tools. */
struct kedgei_learn_lane {
    struct kedge_net *net;
    float *x;
    int32_t *labels;
    struct kedgei_learn_room room;
    float *towards; /* d values */
    float *start;   /* d values */
};

/* view.c: arrays of a struct kedge_learn_view, one value a site; owned. */
struct kedgei_learn_seen {
    uint32_t *group, *tenant, *truth, *train, *test;
    double *accuracy;
    bool evaluated;
};

struct kedge_sink;
typedef int kedgei_learn_work(struct kedgei_learn *l, struct kedgei_learn_lane *lane, uint32_t item,
                              void *result);

struct kedgei_learn {
    const struct kedge_learn_spec *spec;
    const struct kedge_learn_host *host;
    struct kedge_diag *reterr;
    /* close.c: the job that closes see, what is known between its rounds, and the vectors that this names */
    struct kedge_job_spec job;
    struct kedge_coord_job_params params;
    struct kedge_layout layout;
    bool has_layout;
    int32_t limit; /* largest |q| of an update */
    struct kedge_round_state at;
    struct kedge_schedule_held held; /* of the job's targets … */
    uint32_t tier;                   /* … and how many are reached */
    struct kedgei_vectors vectors;
    struct kedgei_names names;
    struct kedgei_learn_pool pool;
    struct kedge_partition partition; /* rows are moved within its order by shifts */
    struct kedge_partition *steps;    /* what sites have from each later step on */
    uint32_t steps_count;
    struct kedgei_learn_site *sites;
    uint32_t n;
    uint64_t d;
    uint64_t
        shared; /* of these so many travel, the first; the others are a head that each site keeps (head.c) */
    uint32_t travels;       /* vectors of so many: model and update, with control variates as many again */
    uint32_t slots;         /* models that there is room for */
    uint32_t groups;        /* in use */
    float *models;          /* slots × d: as they are trained from and evaluated */
    float *w0, *aux, *next; /* d; aux: mean of the models trained last */
    float *control;         /* d: SCAFFOLD's, of the server; else NULL */
    bool trained[KEDGE_LEARN_GROUPS_MAX];
    /* the round's items and results */
    struct kedgei_learn_item *items;
    uint32_t items_count;
    uint32_t items_max, *item_order;
    uint8_t *results; /* items_max × result_size */
    size_t result_size;
    uint32_t *selected, selected_count; /* room for all sites */
    uint32_t chunk;                     /* samples of an evaluation in one pass */
    uint32_t *correct;                  /* sites: of the last evaluation */
    struct kedgei_learn_seen seen;
    double *share;                     /* scratch, one a site */
    struct kedgei_learn_plan *plan;    /* sites */
    struct kedgei_learn_chunk *chunks; /* sites */
    bool tuning;                       /* this evaluation trains each site's model first */
    struct kedge_learn_round line;
    bool keeps_updates; /* all pre-training updates, for closes to come */
    bool has_truth;     /* sites[].truth means something */
    bool has_trace;
    struct kedgei_trace trace;
    const struct kedge_rule *rule;
    uint32_t *order;                /* scratch, one a site */
    struct kedge_groupeds *grouped; /* migrate.c: of each site; NULL: nobody looks for shifts */
    int32_t *whole; /* compress.c: an update on its way, d values, where updates are compressed */
    /* flight.c */
    struct kedgei_learn_flight *flight; /* of each site */
    float *bases;                       /* models of the last rounds */
    /* threads.c */
    struct kedgei_learn_lane *lanes;
    uint32_t lanes_count;
    struct kedgei_learn_together *together; /* together.c; NULL: each item by itself, on the processor */
    void *owner;                            /* of the maker by kedgei_learn_new */
    /* Closes decide whether sites are served by what their own training makes of their group's model;
     * is_personal: they are. */
    bool asks_own, is_personal;
};

/* run.c: everything that is needed before the first round; and without it. reterr is kept. */
KEDGE_NODISCARD int kedgei_learn_new(const struct kedge_learn_spec *spec, const struct kedge_learn_host *host,
                                     struct kedge_diag *reterr, struct kedgei_learn **ret);
void kedgei_learn_free(struct kedgei_learn *l);
KEDGE_NODISCARD int kedgei_learn_rounds(struct kedgei_learn *l); /* all of them */

/* The number that a job has for this round: its first round of training is 1. */
static inline uint32_t kedgei_learn_job_round(uint32_t round)
{
    return round + 1;
}

static inline float *kedgei_learn_model(const struct kedgei_learn *l, uint32_t group)
{
    return l->models + (size_t)group * l->d;
}
static inline struct kedgei_learn_result *kedgei_learn_result(const struct kedgei_learn *l, uint32_t item)
{
    return (struct kedgei_learn_result *)(void *)(l->results + (size_t)item * l->result_size);
}
/* Vector k of a result, of an item's. */
static inline int32_t *kedgei_learn_result_vector(const struct kedgei_learn *l, struct kedgei_learn_result *r,
                                                  uint32_t k)
{
    return (int32_t *)(void *)(r + 1) + (size_t)k * l->d;
}
static inline int32_t *kedgei_learn_vector(const struct kedgei_learn *l, uint32_t item, uint32_t k)
{
    return kedgei_learn_result_vector(l, kedgei_learn_result(l, item), k);
}

/* site.c: sites from the partition, tenants, devices, attackers. */
KEDGE_NODISCARD int kedgei_learn_sites_init(struct kedgei_learn *l);
void kedgei_learn_sites_deinit(struct kedgei_learn *l);

/* clients.c: the data's later steps, and the one that begins in this round. */
KEDGE_NODISCARD int kedgei_learn_steps_init(struct kedgei_learn *l);
void kedgei_learn_steps_deinit(struct kedgei_learn *l);
void kedgei_learn_step(struct kedgei_learn *l, uint32_t round);

/* view.c: an evaluation begins; its first `count` sites of the plan are judged; the host looks. */
KEDGE_NODISCARD int kedgei_learn_view_init(struct kedgei_learn *l);
void kedgei_learn_view_deinit(struct kedgei_learn *l);
void kedgei_learn_view_forget(struct kedgei_learn *l);
void kedgei_learn_view_evaluated(struct kedgei_learn *l, uint32_t count);
KEDGE_NODISCARD int kedgei_learn_look(struct kedgei_learn *l, bool is_last);
/* goals.c: what the round's updates are charged of the job's budget; the first `count` of l->plan were
 * evaluated, which may reach a target; after this round none follows, and if that is for one of these the
 * host is told. */
uint64_t kedgei_learn_charge(struct kedgei_learn *l);
void kedgei_learn_tested(struct kedgei_learn *l, uint32_t count);
bool kedgei_learn_is_last(struct kedgei_learn *l);

/* threads.c: calls work for every item of 0 … count − 1, in about this order (NULL: by number), on some lane,
 * and fills results (count × size bytes), shared out over threads and processes. */
KEDGE_NODISCARD int kedgei_learn_spread(struct kedgei_learn *l, uint32_t count, const uint32_t *order,
                                        size_t size, kedgei_learn_work *work, void *results);
KEDGE_NODISCARD int kedgei_learn_lanes_init(struct kedgei_learn *l);
void kedgei_learn_lanes_deinit(struct kedgei_learn *l);

/* head.c: which values are shared. */
KEDGE_NODISCARD int kedgei_learn_head_init(struct kedgei_learn *l);
/* The site's own head, where it has one by now, into the weights of a model. */
void kedgei_learn_head_join(const struct kedgei_learn *l, uint32_t site, float *w);
/* After a training from base: all of it to ret_own, where sites keep heads; w has the head of the base then.
 */
void kedgei_learn_head_split(const struct kedgei_learn *l, const float *base, float *w, float *ret_own);
/* Make the site's own vector, its control variate, zeros, where it has none. */
KEDGE_NODISCARD int kedgei_learn_own(struct kedgei_learn *l, uint32_t site);
KEDGE_NODISCARD int kedgei_learn_control(struct kedgei_learn *l, uint32_t site);

/* attack.c: what a bad site does to a training sample. */
void kedgei_learn_poison(const struct kedgei_learn *l, uint32_t row, float *x);
int32_t kedgei_learn_poisoned_label(const struct kedgei_learn *l, uint32_t row, int32_t label);
/* … to the updates of the round's items, all bad sites acting together. */
KEDGE_NODISCARD int kedgei_learn_attack(struct kedgei_learn *l);
/* … to the pre-training updates of the items. */
void kedgei_learn_attack_pretraining(struct kedgei_learn *l);
/* Share of the honest sites' test samples that get the attacker's label once they bear the trigger. */
KEDGE_NODISCARD int kedgei_learn_backdoor(struct kedgei_learn *l, double *ret);

/* data.c: what the site trains on now, or tests models with itself, as kedge-train would load it. It lies in
 * the room until that is used again; its rows are made as they are used. */
KEDGE_NODISCARD int kedgei_learn_data(const struct kedgei_learn *l, uint32_t site, bool test,
                                      struct kedgei_learn_room *room, struct kedge_dataset *ret);

/* train.c: how the item's site trains, but for the bend. */
struct kedge_train_params kedgei_learn_params(const struct kedgei_learn *l,
                                              const struct kedgei_learn_item *item);
/* How an item's steps are bent, in its first training or in that of the site's own model; towards: d values
 * that the bend may point to. */
struct kedge_proximal_term kedgei_learn_bend(const struct kedgei_learn *l,
                                             const struct kedgei_learn_item *item, bool own, float *towards);
/* … and what it begins with. */
const float *kedgei_learn_begin(const struct kedgei_learn *l, const struct kedgei_learn_item *item, bool own);
/* The item's training, on any thread; result_size bytes at ret. */
void kedgei_learn_train_item(struct kedgei_learn *l, struct kedgei_learn_lane *lane,
                             const struct kedgei_learn_item *item, struct kedgei_learn_result *ret);
/* Room for so many items; then all items of the run into its results. */
KEDGE_NODISCARD int kedgei_learn_items_reserve(struct kedgei_learn *l, uint32_t count);
KEDGE_NODISCARD int kedgei_learn_train(struct kedgei_learn *l);
/* The site's model after another E epochs, for evaluations: what its training of the next round would make of
 * it. It is left in the lane's net. */
KEDGE_NODISCARD int kedgei_learn_finetune(struct kedgei_learn *l, struct kedgei_learn_lane *lane,
                                          uint32_t site, const float *model);
/* Mean cross-entropy of a model on a site's training data. */
KEDGE_NODISCARD int kedgei_learn_loss(struct kedgei_learn *l, struct kedgei_learn_lane *lane, uint32_t site,
                                      const float *model, double *ret);

/* synthetic.c: a planted update instead of a trained one; how near a model is to the site's goal, in [0, 1].
 */
KEDGE_NODISCARD int kedgei_learn_synthesise(struct kedgei_learn *l, struct kedgei_learn_lane *lane,
                                            const struct kedgei_learn_item *item, int32_t *out,
                                            struct kedgei_learn_result *r);
double kedgei_learn_closeness(const struct kedgei_learn *l, uint32_t site, const float *model);

/* groups.c: room for models, first models; groups that a close makes, of pre-trainings of this round of the
 * job; before a round's training, who is in which group. */
KEDGE_NODISCARD int kedgei_learn_groups_init(struct kedgei_learn *l);
KEDGE_NODISCARD int kedgei_learn_groups_start(struct kedgei_learn *l);
KEDGE_NODISCARD int kedgei_learn_make_groups(struct kedgei_learn *l, uint32_t job_round);
/* Appends a pre-training of the site, for that round of the job, to the items, whose room is reserved. */
void kedgei_learn_add_pretraining(struct kedgei_learn *l, uint32_t site, uint32_t job_round);
/* The items' sites, which pre-train now, get their groups by that. */
KEDGE_NODISCARD int kedgei_learn_take_in(struct kedgei_learn *l, uint32_t job_round);
void kedgei_learn_tell_bytes(struct kedgei_learn *l, uint64_t models_down, uint64_t models_up);
KEDGE_NODISCARD int kedgei_learn_groups_before(struct kedgei_learn *l);

/* compress.c: writes the update io into the sink (NULL: nowhere), as sites send it, and leaves in io what it
 * does not send; what earlier updates to this group's model have left of the site's is added. */
KEDGE_NODISCARD int kedgei_learn_compact(const struct kedgei_learn *l, int32_t *io,
                                         const struct kedge_sink *sink, uint64_t *ret_len);
void kedgei_learn_add_left(const struct kedgei_learn *l, uint32_t site, uint32_t group, int32_t *io);
/* The updates of the round's items become what their sites send of them; bytes of the line. */
KEDGE_NODISCARD int kedgei_learn_compress(struct kedgei_learn *l);
/* Bytes of an update, at most. */
uint64_t kedgei_learn_update_bytes(const struct kedgei_learn *l);

/* round.c */
KEDGE_NODISCARD int kedgei_learn_round(struct kedgei_learn *l, uint32_t round);
/* Members, Rand index and digest into the line. */
void kedgei_learn_tell_groups(struct kedgei_learn *l);
/* Rounds until every site was asked once, for strategies with groups; 0 for the others. */
/* device.c. Of a site's part in a round: the model down, E epochs, the update up. */
double kedgei_learn_seconds(const struct kedgei_learn *l, uint32_t site);
double kedgei_learn_joules(const struct kedgei_learn *l, uint32_t site);
/* Whether a site can be asked now, by the trace; whether it stays for so long. */
bool kedgei_learn_is_there(const struct kedgei_learn *l, uint32_t site);
bool kedgei_learn_stays(const struct kedgei_learn *l, uint32_t site, double seconds);
/* When the first site can be asked, now or later; INFINITY: never. */
double kedgei_learn_somebody_s(const struct kedgei_learn *l);
/* Whether a site that is asked does not answer. */
bool kedgei_learn_fails(const struct kedgei_learn *l, uint64_t round, uint32_t site);
uint32_t kedgei_learn_first_rounds(const struct kedgei_learn *l);

/* site.c: what sites keep for themselves of the trainings of the round's items. */
KEDGE_NODISCARD int kedgei_learn_keep_own(struct kedgei_learn *l);
/* means.c: the auxiliary model, the mean of the trained groups' models, into l->aux; and what a meeting of
 * the edges would give now. */
KEDGE_NODISCARD int kedgei_learn_auxiliary(struct kedgei_learn *l);
KEDGE_NODISCARD int kedgei_learn_meet(struct kedgei_learn *l, float *ret);

/* evaluate.c: accuracies of the line. */
KEDGE_NODISCARD int kedgei_learn_evaluate(struct kedgei_learn *l, uint32_t round);

/* migrate.c: whose data have shifted since it was grouped. A site that has pre-trained is grouped by what it
 * has now; who trained looks; who has found a shift pre-trains and finds its group again. */
KEDGE_NODISCARD int kedgei_learn_grouped_init(struct kedgei_learn *l);
void kedgei_learn_note_labels(struct kedgei_learn *l, uint32_t site, uint32_t job_round);
bool kedgei_learn_has_shifted(const struct kedgei_learn *l, uint32_t site, uint32_t job_round);
void kedgei_learn_look_for_shifts(struct kedgei_learn *l, uint32_t job_round);
KEDGE_NODISCARD int kedgei_learn_migrate(struct kedgei_learn *l);

/* shift.c: before the first round, what is released of the data; what happens to the sites' data before this
 * round. */
void kedgei_learn_release(struct kedgei_learn *l, uint32_t round);
KEDGE_NODISCARD int kedgei_learn_shift(struct kedgei_learn *l, uint32_t round);

#endif
