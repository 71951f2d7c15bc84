/* Inside of sim/protocol: a payload (sim/payload.h) of real vectors. Updates and models are files under their
 * digests in a folder of the run; what the last durable close made stands in `last`, what a close computed in
 * `next`, which becomes `last` once it is durable: a coordinator that crashes between the two computes it
 * again. */
#ifndef KEDGE_SIM_PROTOCOL_IMPL_H
#define KEDGE_SIM_PROTOCOL_IMPL_H

#include <string.h>

#include "job/job_spec.h"
#include "round/close/close.h"
#include "round/compute.h"
#include "sim/learn/engine.h"
#include "sim/world.h"

/* ---- files (files.c) ---- */

struct kedgei_files {
    char dir[KEDGE_PATH_MAX];
    bool is_own; /* made here: removed whole at the end */
};
/* scratch NULL: a new folder of the system's for such. */
KEDGE_NODISCARD int kedgei_files_open(const char *scratch, struct kedgei_files *ret, struct kedge_diag *d);
void kedgei_files_close(struct kedgei_files *f);
void kedgei_files_path(const struct kedgei_files *f, const struct kedge_digest *digest,
                       char out[KEDGE_PATH_MAX]);
bool kedgei_files_has(const struct kedgei_files *f, const struct kedge_digest *digest);
void kedgei_files_drop(const struct kedgei_files *f, const struct kedge_digest *digest);

/* A file on its way: bytes go to the sink; the end gives its digest and name, or after an error removes it.
 */
struct kedgei_file {
    struct kedgei_files *files;
    struct kedge_hasher *hasher;
    int fd;
    char path[KEDGE_PATH_MAX];
    struct kedge_sink sink;
};
KEDGE_NODISCARD int kedgei_file_begin(struct kedgei_files *f, uint32_t number, struct kedgei_file *ret,
                                      struct kedge_diag *d);
KEDGE_NODISCARD int kedgei_file_end(struct kedgei_file *f, int err, struct kedge_digest *ret,
                                    struct kedge_diag *d);

/* ---- the sites' work (work.c) ---- */

/* One training of a site; PRETRAIN and TRAIN have a place each. */
struct kedgei_work {
    bool used, done;
    uint32_t site, round;
    bool pretrain;
    struct kedge_digest base, update; /* base: with choices, what stands for all of them */
    struct kedge_hash control;        /* the server's control variate, zero: none, or it is zero */
    uint32_t choice_count, choice;    /* choice: that the site took */
    uint32_t group;                   /* of a training without choices */
    uint64_t len;                     /* of its compact update, 0: it comes whole */
    double tested_loss; /* where groups are tried: of what it has trained on its test samples; else 0 */
    struct kedge_digest choices[KEDGE_GROUPS_MAX];
    int err;
};
/* What is known of an update besides its file. */
struct kedgei_update {
    struct kedge_digest digest;
    struct kedge_digest base;
    uint32_t site, round;
    bool pretrain, dropped; /* dropped: its file */
    uint64_t samples, steps;
    double base_loss, loss, moved;
};

/* What a site will have for itself (its own model or head, its control variate, what compression has left)
 * once the update `by` counts; NULL: as it is. What it has is the engine's: struct kedgei_learn_site. */
struct kedgei_next {
    float *own;
    int32_t *control, *left;
    uint32_t left_group;
    struct kedge_digest by;
    uint64_t sends; /* bytes of the update that it made last; 0: it comes whole */
};
/* What a site has found of its group's model and of the trial of round `round`, when it evaluated. */
struct kedgei_found {
    bool has;
    uint32_t round, group;
    uint64_t samples;
    double loss, trial_loss, personal_loss; /* of what it has trained of its model: 0 where it has not */
};
/* What a site trained last, of what is in a closed round; zero: nothing. */
struct kedgei_trained {
    struct kedge_hash update, base;
};

/* ---- rounds ---- */

struct kedgei_close {
    struct kedge_round_result r; /* groups: 0 before the first close */
    uint32_t *assigned;          /* by site: what the close gives it, KEDGE_COORD_NONE: nothing */
    uint32_t input_count;
    struct kedge_digest *inputs; /* updates that came: room for all sites */
    uint64_t *weights;           /* what each of them weighs in its group's aggregate, 0: it was left out */
};
/* A model that was some group's before the last close. */
struct kedgei_former {
    uint32_t round; /* the last one in which it was */
    struct kedge_hash model;
};

struct kedgei_protocol {
    const struct kedge_learn_spec *spec;
    const struct kedge_learn_host *host;
    struct kedge_diag *d;
    struct kedge_buf job_text;
    struct kedge_job_spec job;
    struct kedge_layout layout, update_layout; /* update_layout: of a training */
    int32_t limit;
    uint32_t sites; /* of the job: the engine's, and behind them the root site where there is one */
    struct kedgei_learn *l;
    struct kedgei_files files;
    struct sim *w;
    struct kedge_digest initial, begin[KEDGE_GROUPS_MAX]; /* begin: of each group, the first is `initial` */
    struct kedge_round_state at;                          /* after the last durable close */
    struct kedgei_work *works;                            /* 2 a site: pre-training, training */
    struct kedgei_next *next_of;                          /* of each site */
    struct kedgei_trained *trained;
    struct kedgei_found *found; /* of each site; NULL: groups are not tried */
    uint32_t *queue, queued;    /* works that are begun and not done */
    struct kedgei_update *updates;
    uint32_t update_count, update_max, kept_from; /* kept_from: those before have no file but pre-trainings */
    struct sim_index index;                       /* of updates */
    struct kedgei_close last, next;
    struct kedgei_former *former; /* whose files are there */
    uint32_t former_count, former_max, file_count;
    uint64_t first_ns; /* when the first round opened */
    bool is_open;
    uint32_t told; /* rounds that were told before this run */
    int err;       /* what ended the run */
    int record;    /* record.jsonl, -1: none */
};

/* job.c: what no job does is refused by name; the job, once sites and names are known. */
KEDGE_NODISCARD int kedgei_protocol_refuse(const struct kedge_learn_spec *spec, struct kedge_diag *d);
KEDGE_NODISCARD int kedgei_protocol_job(struct kedgei_protocol *p);

/* work.c */
void kedgei_protocol_begin(void *arg, uint32_t site, const struct kedge_site_task *task);
int kedgei_protocol_end(void *arg, uint32_t site, const struct kedge_site_task *task,
                        struct kedge_digest *ret_update, uint32_t *ret_choice);
bool kedgei_protocol_trial(void *arg, uint32_t group, uint32_t round, struct kedge_digest *ret);
bool kedgei_protocol_has_shifted(void *arg, uint32_t site, const struct kedge_site_task *task);
void kedgei_protocol_train(struct kedgei_protocol *p); /* all that is begun */
struct kedgei_update *kedgei_protocol_update(const struct kedgei_protocol *p,
                                             const struct kedge_digest *digest);

/* Behind a durable close: what its updates leave behind at their sites. */
void kedgei_protocol_settle(struct kedgei_protocol *p);

void kedgei_protocol_nexts_free(struct kedgei_protocol *p);

/* close.c */
int kedgei_protocol_close(void *arg, struct sim_close *close);
int kedgei_protocol_nearest(void *arg, uint32_t site, const struct kedge_digest *update, uint32_t *ret_group);
/* Where the update's file is. */
void kedgei_protocol_at(const struct kedgei_protocol *p, const struct kedge_digest *update,
                        char path[KEDGE_PATH_MAX], struct kedge_blob_at *ret);
static inline struct kedge_hash kedgei_protocol_hash(const struct kedge_digest *d)
{
    struct kedge_hash hash;
    memcpy(hash.b, d->b, sizeof hash.b);
    return hash;
}
static inline struct kedge_digest kedgei_protocol_digest(const struct kedge_hash *h)
{
    struct kedge_digest digest;
    memcpy(digest.b, h->b, sizeof digest.b);
    return digest;
}

/* export.c */
KEDGE_NODISCARD int kedgei_protocol_put_files(struct kedgei_protocol *p, const char *dir);

/* trouble.c: from now on things go wrong. */
void kedgei_protocol_trouble(struct kedgei_protocol *p);

/* lines.c: what a durable close has made, into a line and into record.jsonl. */
void kedgei_protocol_opened(void *arg, uint32_t round, enum kedge_task_kind kind);
void kedgei_protocol_closed(void *arg, uint32_t round, uint64_t now_ns);

#endif
