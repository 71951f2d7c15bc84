/* The learning simulator: a federation in one process whose sites really train. It runs the strategies,
 * rules, grouping and server optimisers that the coordinator runs (strategy/, grouping/, aggregation/), over
 * vectors in memory and under virtual time: partitions, shifts, device classes, availability, faults and
 * attacks are drawn from the seed, each from a stream of its own, so that every strategy meets the same
 * sites, the same data and the same shifts in the same round. Same spec and program, same bytes, whatever the
 * number of threads and processes. Not the protocol: that is sim/sim.h. */
#ifndef KEDGE_SIM_LEARN_LEARN_H
#define KEDGE_SIM_LEARN_LEARN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/diag.h"
#include "common/tensor/csv.h"
#include "job/job_spec.h"

enum {
    KEDGE_LEARN_PATH_MAX = 1024,
    KEDGE_LEARN_GROUPS_MAX = KEDGE_GROUPS_MAX,
    KEDGE_LEARN_SITES_MAX = 100000
};

enum kedge_learn_partition {
    KEDGE_LEARN_IID,
    KEDGE_LEARN_DIRICHLET, /* label shares of a site ~ Dirichlet(alpha) */
    KEDGE_LEARN_SHARDS,    /* shards of one label each, `per_site` of them */
    KEDGE_LEARN_MNIST,     /* clustering.md §9, MNIST-1000 */
    KEDGE_LEARN_LETTERS,   /* … the letters recipe, with or without its leak */
    KEDGE_LEARN_FASHION,   /* … FashionMNIST-500 */
    KEDGE_LEARN_SYNTHETIC, /* … Synthetic(alpha, beta) */
    KEDGE_LEARN_ROTATED,   /* … four planted groups by rotation */
    KEDGE_LEARN_WRITERS,   /* natural: a column or file says whose sample it is */
    KEDGE_LEARN_CLIENTS,   /* natural, by name: sim/partition/clients.h */
};
enum kedge_learn_shift {
    KEDGE_LEARN_SHIFT_NONE,
    KEDGE_LEARN_SHIFT_SWAP_ALL,
    KEDGE_LEARN_SHIFT_SWAP_PART,
    KEDGE_LEARN_SHIFT_INCREMENTAL,
    KEDGE_LEARN_SHIFT_ROTATE, /* images turn by 90°: label shares stay */
};
enum kedge_learn_attack {
    KEDGE_LEARN_ATTACK_NONE,
    KEDGE_LEARN_ATTACK_SIGN_FLIP,
    KEDGE_LEARN_ATTACK_SCALE,
    KEDGE_LEARN_ATTACK_LABEL_FLIP,
    KEDGE_LEARN_ATTACK_ALIE,
    KEDGE_LEARN_ATTACK_INNER_PRODUCT,
    KEDGE_LEARN_ATTACK_BACKDOOR,
    KEDGE_LEARN_ATTACK_SYBIL, /* pre-training updates steered into another's group */
};

/* What a run goes through. */
enum kedge_learn_through {
    KEDGE_LEARN_THROUGH_ROUNDS,   /* the loop of this engine: quick, and what no job runs goes, too */
    KEDGE_LEARN_THROUGH_PROTOCOL, /* the state machines of coordinator and site, closed as jobs are:
                                     sim/protocol */
};

/* What the sites' steps are computed on. */
enum kedge_learn_train_on {
    KEDGE_LEARN_ON_CPU,
    KEDGE_LEARN_ON_CUDA, /* a round's sites together, where there is a device; else as ON_CPU */
};

/* Scales of features (common/tensor/scales.h), as the job's spec has them. */
enum kedge_learn_standardize {
    KEDGE_LEARN_AS_IT_IS,
    KEDGE_LEARN_STANDARDIZE_LOCAL,     /* each site by its own training samples */
    KEDGE_LEARN_STANDARDIZE_FEDERATED, /* all by those of all together */
};

/* A device class: share of the sites, and what a second of it does. */
struct kedge_learn_device {
    double share;                           /* of all sites, > 0; shares are scaled to 1 */
    double samples_per_s, bytes_per_s;      /* > 0 */
    double joules_per_sample, joules_per_s; /* ≥ 0 */
    double available;                       /* share of rounds in which such a site can be asked, (0, 1] */
};
enum { KEDGE_LEARN_DEVICES_MAX = 8, KEDGE_LEARN_COLUMN_MAX = 128, KEDGE_LEARN_STEPS_MAX = 15 };

/* Rounds in ascending order. */
struct kedge_learn_rounds {
    uint32_t count, at[KEDGE_LEARN_STEPS_MAX];
};

/* A simulation: a job, and the world that it meets. */
struct kedge_learn_spec {
    struct kedge_job_spec job; /* in_world; its number of tenants is that of the world's */
    /* data */
    char images[KEDGE_LEARN_PATH_MAX]; /* folder with the four IDX files, unpacked, or X-images.idx beside
                                          X-labels.idx, or a CSV; unused for Synthetic */
    enum kedge_learn_partition partition;
    uint32_t sites;     /* 0 where the data say which there are */
    double alpha, beta; /* Dirichlet, Synthetic */
    uint32_t per_site;  /* shards, classes */
    bool leak;          /* letters: as released */
    /* clients: columns or arrays of the file, "": the usual ones or none; and a file of true groups */
    char client[KEDGE_LEARN_COLUMN_MAX], label[KEDGE_LEARN_COLUMN_MAX], group[KEDGE_LEARN_COLUMN_MAX],
        step[KEDGE_LEARN_COLUMN_MAX], truth[KEDGE_LEARN_PATH_MAX];
    enum kedge_csv_missing missing; /* values that CSV files do not have */
    enum kedge_learn_standardize standardize;
    struct kedge_learn_rounds steps; /* in which the data's steps 1, 2, … begin */
    uint32_t planted; /* no training: planted directions and noise, for the control of grouping and rules, of
                         so many kinds of sites; 0: sites train */
    double held_back; /* share of a site's training samples that it judges by; 0: as the strategy needs */
    enum kedge_learn_shift shift;
    double shift_rate;
    enum kedge_learn_attack attack;
    double attackers; /* share of the sites */
    double attack_scale;
    double fail; /* chance that a selected site does not answer */
    uint32_t device_count;
    struct kedge_learn_device devices[KEDGE_LEARN_DEVICES_MAX];
    char trace[KEDGE_LEARN_PATH_MAX]; /* CSV file of who can be asked when (trace.h); empty: none */
    double trace_period_s;            /* after which the trace begins again, 0: it does not */
    enum kedge_learn_through through;
    enum kedge_learn_train_on train_on; /* not through the protocol */
    bool faults; /* through the protocol: messages lost, disks that fail, crashes of either side, drawn from
                    the seed */
};

/* One line of the results. Accuracies are shares in [0, 1], NAN where not evaluated. */
struct kedge_learn_round {
    uint32_t round;
    double virtual_s;                       /* since the start */
    uint64_t bytes_up, bytes_down, updates; /* since the start */
    double joules;
    double accuracy;           /* absolute test accuracy, clustering.md §2.9 */
    double accuracy_sites;     /* mean over sites */
    double accuracy_worst;     /* mean of the worst tenth of the sites */
    double accuracy_auxiliary; /* of the mean of the groups' models; = accuracy without groups */
    double accuracy_personal;  /* of the sites' own models: Ditto, fine-tuning, alone; else NAN */
    double backdoor;    /* share of triggered samples that get the attacker's label, NAN without attack */
    double loss;        /* mean training loss of the round */
    double discrepancy; /* mean ‖w_local − w_group‖ */
    double rand_index;  /* adjusted, against the planted truth; NAN where there is none */
    uint32_t groups;    /* in use */
    uint32_t members[KEDGE_LEARN_GROUPS_MAX];
    uint32_t detections, migrations; /* since the start */
    uint64_t digest; /* of all models so far: the same for every number of threads and processes */
    /* Accuracy of the sites that came to their group in this round, less that of their groups; NAN where none
     * came or nothing was evaluated. */
    double newcomers;
    double accuracy_personal_worst; /* mean of the worst tenth of the sites by their own models, else NAN */
};

struct kedge_ops; /* client/train/ops.h */

/* Shares the sites' training out over several processes: rank r of `size` trains the items i with i mod size
 * = r, then everybody gets everything. allgather: `mine` bytes of this rank to all; ret is size × max bytes,
 * row by rank, lens[rank] their lengths. Blocks. KEDGE_E_IO when a peer is gone. */
struct kedge_learn_exchange {
    uint32_t rank, size;
    void *arg;
    int (*allgather)(void *arg, const void *mine, uint64_t len, void *ret, uint64_t max, uint64_t *lens);
};

/* What is to be seen of the sites after a round; arrays of `sites` values, borrowed until it returns. */
struct kedge_learn_view {
    uint32_t round, sites, groups; /* groups: models there are */
    bool is_last;                  /* no round follows: these are the job's models */
    const char *const *names;      /* clients as the data name them; NULL: they do not */
    const uint32_t *tenant;
    const uint32_t *truth;        /* true group; NULL: nobody knows */
    const uint32_t *train, *test; /* samples when the run began */
    const uint32_t *group;        /* UINT32_MAX: none yet */
    const double *accuracy;       /* on its own test samples, NAN where not judged; NULL: no evaluation */
    const float *models;          /* one behind the other */
};

struct kedge_learn_host {
    const char *scratch; /* a folder for files that are needed while it runs, NULL: one of its own */
    uint32_t threads;    /* 0: as many as processors */
    const struct kedge_learn_exchange *exchange; /* NULL: alone */
    /* Called after every round; false stops the run. */
    bool (*on_round)(void *arg, const struct kedge_learn_round *round);
    /* Called after every round, before on_round. Its error ends the run. NULL: none. */
    int (*look)(void *arg, const struct kedge_learn_view *view);
    /* Called with all state every `save_every` rounds (0: never), for resume; NULL: none. */
    int (*save)(void *arg, uint32_t round, const void *state, uint64_t len);
    uint32_t save_every;
    /* Called with a line for people, without its end: that there is no device. NULL: nobody hears it. */
    void (*say)(void *arg, const char *line);
    void *arg;
    const struct kedge_ops *device; /* of train_on "cuda"; NULL: that of the module beside the program */
    uint32_t together_max;          /* sites in one step of it; 0: as many as there is room for */
    const void *resume; /* a state that was saved by the same spec and program, NULL: from the start */
    uint64_t resume_len;
};

/* Whether the data say which sites there are, so that spec->sites is not read. */
static inline bool kedge_learn_spec_is_natural(const struct kedge_learn_spec *spec)
{
    return spec->partition == KEDGE_LEARN_WRITERS || spec->partition == KEDGE_LEARN_CLIENTS;
}

/* Sites that are selected for a round, of so many. */
static inline uint32_t kedge_learn_spec_each_round(const struct kedge_learn_spec *spec, uint32_t sites)
{
    return spec->job.strategy->everybody || spec->job.sites_per_round == 0 ? sites
                                                                           : spec->job.sites_per_round;
}

/* So many tenants, called as those of "world": "org-a" and so on, from 27 on "org-0000". */
void kedge_learn_spec_set_tenants(struct kedge_learn_spec *spec, uint32_t count);
/* KEDGE_E_FORMAT names the field that is out of range or does not go with another. */
KEDGE_NODISCARD int kedge_learn_spec_check(const struct kedge_learn_spec *spec, struct kedge_diag *reterr);
/* Runs it. KEDGE_E_NOT_FOUND and the file's name when the data are absent; KEDGE_E_ARG for a spec that goes
 * through the protocol. */
KEDGE_NODISCARD int kedge_learn_run(const struct kedge_learn_spec *spec, const struct kedge_learn_host *host,
                                    struct kedge_diag *reterr);

#endif
