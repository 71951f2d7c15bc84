/* The job spec: one JSON object that says everything which decides a job's models. Its bytes are a blob of
 * the main chain; job-opened and every tenant's job-joined name it by SHA-256. Strict: unknown keys, wrong
 * types and values out of range are errors that name the key. Parsing fills every field (defaults included).
 * Pure. DESIGN §7. */
#ifndef KEDGE_JOB_JOB_SPEC_H
#define KEDGE_JOB_JOB_SPEC_H

#include <stdint.h>

#include "aggregation/compact.h"
#include "aggregation/rule/rule.h"
#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "common/base/labels.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/tensor/layout.h"
#include "common/tensor/model.h"
#include "common/tensor/part.h"
#include "crypto/hash.h"
#include "strategy/grouping.h"

enum { KEDGE_SPEC_TARGETS_MAX = 2, KEDGE_SPEC_PRIORITY = 50 };
enum { KEDGE_SPEC_TENANTS_MAX = 128, KEDGE_DATA_NAME_MAX = 63 };
enum {
    KEDGE_SPEC_CLASSES_MAX = 1024,
    KEDGE_SPEC_CLASS_MAX = 127,           /* bytes of a class's name */
    KEDGE_SPEC_CLASSES_BYTES_MAX = 16384, /* of all names, with their NULs */
};
enum { KEDGE_EXTERNAL_TENSORS_MAX = 32768, KEDGE_EXTERNAL_SETTINGS_MAX = 4095 };

/* What the sites' own trainers train ("model": "external"): tensors instead of layers. */
struct kedge_external {
    struct kedge_id trainer; /* the name that each site's owner binds to a command */
    uint32_t tensors_len;    /* names and shapes, packed; read by kedge_job_spec_layout */
    uint8_t tensors[KEDGE_EXTERNAL_TENSORS_MAX];
    char settings[KEDGE_EXTERNAL_SETTINGS_MAX
                  + 1]; /* a JSON object for the trainer, opaque; "{}" by default */
};

enum kedge_grouping { KEDGE_GROUPING_NONE, KEDGE_GROUPING_FLEXCFL };
/* How a site finds out that its data are no longer those that it was grouped by (grouping/shift.h). */
enum kedge_shift_test {
    KEDGE_SHIFT_TEST_NONE,
    KEDGE_SHIFT_TEST_LABELS,
    KEDGE_SHIFT_TEST_COUNTS,
    KEDGE_SHIFT_TEST_UPDATE,
    KEDGE_SHIFT_TEST_LOSS
};

/* How the learning rate follows a batch that sites choose: not at all, by the square root of batch / start,
 * or by that itself. */
enum kedge_rate_rule { KEDGE_RATE_NONE, KEDGE_RATE_SQRT, KEDGE_RATE_LINEAR };
enum { KEDGE_SPEC_BATCHES_MAX = 17 };
/* How far products of a training may be rounded where it runs on a device that can; each next rounds more. */
enum kedge_precision { KEDGE_PRECISION_F32, KEDGE_PRECISION_TF32, KEDGE_PRECISION_BF16 };

/* What sites do to their features before they train; UNSAID: what each site's owner says. */
enum kedge_spec_standardize {
    KEDGE_STANDARDIZE_UNSAID,
    KEDGE_STANDARDIZE_NONE,
    KEDGE_STANDARDIZE_LOCAL,
    KEDGE_STANDARDIZE_FEDERATED, /* all sites together, in the first two rounds: common/tensor/scales.h */
};

/* What the job's trainings may take in all ("budget"); see docs/record.md, "Budgets". */
enum kedge_job_budget_unit {
    KEDGE_JOB_BUDGET_NONE,
    KEDGE_JOB_BUDGET_JOULES,
    KEDGE_JOB_BUDGET_SITE_MINUTES, /* minutes of training, added up over sites */
    KEDGE_JOB_BUDGET_MONEY         /* by the prices below */
};
struct kedge_job_budget {
    enum kedge_job_budget_unit unit;
    double most;                       /* units, 10^-6 to 10^12 */
    double per_joule, per_site_minute; /* units that they cost: 1 and 0, 0 and 1, or prices, 0 to 10^6 */
    double watts; /* most that a site counts as drawing, and what it is charged with where it states no
                     joules; 0: joules cost nothing */
};

/* How much of its data each site trains on in a round ("plan"); see docs/record.md, "Plans". */
enum { KEDGE_JOB_PLAN_WEIGHT_MAX = 1000 };
struct kedge_job_plan {
    bool is_on;                /* else all of it */
    double data, energy, time; /* what a round is worth: 0 to KEDGE_JOB_PLAN_WEIGHT_MAX */
    uint32_t least;            /* percent: no site trains on less, 1 to 100 */
};

struct kedge_job_spec {
    bool in_world;         /* of a simulation: what its world says by itself may be missing, see below */
    struct kedge_id name;  /* required */
    uint32_t tenant_count; /* required, 1…128, ascending, no duplicates */
    struct kedge_id tenants[KEDGE_SPEC_TENANTS_MAX];
    uint64_t seed;                 /* decimal string, default "1" */
    struct kedge_model_spec model; /* required: {"preset":…} or {"layers":[…]}, or "external": */
    bool is_external;              /* then `model` is empty, and initial_model is required */
    struct kedge_external external;
    bool has_initial_model; /* initial weights by digest; else made from the seed; of a job with a base the
                               whole model */
    struct kedge_hash initial_model;
    char data[KEDGE_DATA_NAME_MAX + 1];         /* required: the name that each site binds to its own files */
    uint32_t classes_count;                     /* names of the labels, default none: */
    char classes[KEDGE_SPEC_CLASSES_BYTES_MAX]; /* class i is the i-th name, each with its NUL */
    bool learns_classes; /* "classes": "federated": the sites name them together in round 1 */
    enum kedge_spec_standardize standardize;
    bool shows_loss; /* "metric": "loss", which is the default where a number is predicted; else "accuracy" */
    uint32_t rounds; /* required, 1…1,000,000 */
    uint32_t sites_per_round;     /* 0 = all, default 0 … */
    uint32_t sites_least;         /* … of a range the second number, and this the first; 0: it is none */
    uint32_t sites_min;           /* default 1 */
    uint32_t quorum;              /* default 1 */
    bool by_charge;               /* "selection": "charged"; default "uniform" */
    uint32_t priority;            /* among jobs that share sites, default KEDGE_SPEC_PRIORITY */
    struct kedge_label_set needs; /* "needs": labels that a site must have; default none */
    uint32_t local_epochs;        /* default 1 */
    uint32_t batch;               /* default 10; where sites choose theirs, that which they begin with */
    bool batch_auto;              /* "batch": "auto" … */
    uint32_t batch_least, batch_most; /* … from and to which: batch · 2^n; else 0 */
    enum kedge_rate_rule rate_rule;   /* "learning_rate_rule": "none", "sqrt" (default), "linear" */
    double learning_rate;             /* decimal string, default "0.01", > 0 */
    double l2;                        /* decimal string, default "0", ≥ 0 */
    double local_momentum;            /* of the sites' own steps: decimal string, default "0", below 1 */
    double clip;                      /* longest gradient of a site's step; default "0": as long as it is */
    enum kedge_precision precision;   /* what sites' devices may round to: "f32" (default), "tf32", "bf16" */
    enum kedge_grouping grouping;     /* "none" (default) or "flexcfl" */
    uint32_t groups;                  /* flexcfl: 2…64, required; else 1 */
    uint32_t pretrain_steps;          /* flexcfl: SGD iterations of a pre-training, default 50 */
    uint32_t pretrain_sites;          /* flexcfl: sites of the cold start, 0 = all, default 20 × groups */
    enum kedge_shift_test shift;      /* flexcfl: "labels" (default), "counts", "update", "none" */
    uint32_t regroup_every;           /* flexcfl: rounds between two new groupings, default 0 = never */
    uint32_t migration_pause;         /* flexcfl: least rounds between two groups of a site, default 1 */
    double mixing;                    /* inter-group rate η_g, decimal string, default "0", 0…1000 */
    double bound;                     /* largest |value| of an update, decimal string, default "64" */
    unsigned scale;                   /* bits s of the fixed point, default 20, 1…30 */
    uint64_t weight_max;              /* largest sample count of an update, default 1,000,000 */
    uint32_t tenant_share_max;        /* most of a group's weight that is one tenant's, in millionths: decimal
                                         string in (0, 1] of at most 6 places, default "1" = no cap; at least
                                         one part in as many as there are tenants. aggregation/share_cap.h */
    uint32_t evaluate_every;          /* rounds, 0 = never, default 1 */
    uint32_t round_timeout_s;         /* default 3600 */
    uint32_t enrol_within_s;          /* until its first round opens, default 86,400 */
    uint32_t deadline_s;              /* from the submission to the end of all rounds, default 0: none */
    uint32_t round_s;                 /* that a round is expected to take, default 0: not known */
    uint32_t target_count;            /* "targets": accuracies, ascending, in millionths; default none */
    uint32_t targets[KEDGE_SPEC_TARGETS_MAX];
    uint32_t hold;                  /* evaluations in a row for which a target must be reached, default 3 */
    struct kedge_job_budget budget; /* default: none */
    struct kedge_job_plan plan;     /* default: off */
    uint32_t staleness_max; /* asynchronous strategies: rounds for which an update waits, default 16 */
    const struct kedge_strategy
        *strategy;            /* a row of strategy/'s table; default "fedavg", grouped "flexcfl" */
    struct kedge_part share;  /* of strategies whose sites keep a head: the tensors that travel, default all
                                 but  the last layer's */
    enum kedge_choose choose; /* what decides the number of groups: "fixed", "silhouette", "gap"; default: the
                                 strategy's */
    struct kedge_strategy_options options; /* the strategy's defaults and what the spec says */
    enum kedge_server server;              /* default: the strategy's */
    const struct kedge_rule *rule;         /* a row of aggregation/'s table; default "mean" */
    struct kedge_rule_params
        rule_params;                  /* decimal strings "rule_fraction", "rule_bound"; default: the rule's */
    struct kedge_compact compression; /* how updates of training come; kind NONE (default): whole */
    uint32_t control_sites;           /* of strategy "scaffold": sites that share a control variate; else 0 */
    uint32_t root_tenant;      /* "root_site": "TENANT/SITE", of the rule that needs a root update, and … */
    struct kedge_id root_site; /* … of no other: place of the tenant, name of its site, else empty */
};

/* The word of a precision, and back: KEDGE_E_FORMAT for other words and NULL. */
const char *kedge_precision_name(enum kedge_precision precision);
KEDGE_NODISCARD int kedge_precision_parse(const char *word, enum kedge_precision *ret);
/* Parses and checks text; *ret is written only on success. reterr names the key. KEDGE_E_FORMAT, _ARG,
 * _TOO_LONG. */
KEDGE_NODISCARD int kedge_job_spec_parse(struct kedge_view text, struct kedge_job_spec *ret,
                                         struct kedge_diag *reterr);
/* The job of a simulation, whose keys are a job's beside its "world". Strategies that are there to be
 * compared with are taken, too; "control_sites" (all), "root_site" (one more) are the world's to say and stay
 * empty, as does "sites_min" (0: all) where it is not said. Else as kedge_job_spec_parse. */
struct json_t;
KEDGE_NODISCARD int kedge_job_spec_read_in_world(const struct json_t *keys, struct kedge_job_spec *ret,
                                                 struct kedge_diag *reterr);
/* Deletes from keys what a simulated job of their strategy, server, rule and batch does not read, but for
 * what `own` has: settings that several jobs share are each job's own only as far as it has a use for them.
 * KEDGE_E_FORMAT: one of those four is none. */
KEDGE_NODISCARD int kedge_job_spec_drop_unread(struct json_t *keys, const struct json_t *own,
                                               struct kedge_diag *reterr);
/* Of a text that parses: KEDGE_E_FORMAT names a key that the job does not read, with another value than the
 * usual one; KEDGE_E_TOO_LONG, KEDGE_E_SHAPE: its model fits, but not an update or a state of the server of
 * it. To be asked where a job begins; specs of records are what they are. */
KEDGE_NODISCARD int kedge_job_spec_check_read(struct kedge_view text, const struct kedge_job_spec *spec,
                                              struct kedge_diag *reterr);
/* The same of an object; what is no key of a job is passed over. */
KEDGE_NODISCARD int kedge_job_spec_check_keys(const struct json_t *keys, const struct kedge_job_spec *spec,
                                              struct kedge_diag *reterr);
/* The F32 layout of the job's models, of layers or external: what travels, where sites keep a head or have a
 * base without that; the caller deinits it. KEDGE_E_SHAPE, KEDGE_E_TOO_LONG, KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_job_spec_layout(const struct kedge_job_spec *spec, struct kedge_layout *ret,
                                          struct kedge_diag *reterr);
/* The layout of what a site trains: the same, with the head or the base. */
KEDGE_NODISCARD int kedge_job_spec_whole_layout(const struct kedge_job_spec *spec, struct kedge_layout *ret,
                                                struct kedge_diag *reterr);
/* Not all tensors travel: those that `share` names do. */
bool kedge_job_spec_is_in_parts(const struct kedge_job_spec *spec);
/* Each site keeps the tensors that are not shared (strategies "fedper", "fedrep"). */
bool kedge_job_spec_has_head(const struct kedge_job_spec *spec);
/* The tensors that are not shared are frozen: `initial_model` is the whole model, which has them; the job's
 * first model is the shared part of it (strategy "adapters"). */
bool kedge_job_spec_has_base(const struct kedge_job_spec *spec);
/* What a site does in a round of training. */
struct kedge_site_plan {
    struct kedge_local_plan numbers;
    bool has_own_model; /* it keeps a model of its own, trained and judged, too */
    bool is_head_first; /* its head is trained before the shared part, each by itself */
    bool sends_loss;    /* its update states the loss of the model given */
};
struct kedge_site_plan kedge_job_spec_site_plan(const struct kedge_job_spec *spec);
/* The built-in model has one output and the loss "mse": labels are reals, and there is no accuracy. */
bool kedge_job_spec_predicts_number(const struct kedge_job_spec *spec);
/* Sites and server keep control variates, and updates carry their changes (strategy "scaffold"). */
bool kedge_job_spec_has_control(const struct kedge_job_spec *spec);
/* Layouts of such a job; the caller deinits them. A training update: the model's tensors, and where there are
 * control variates all of them once more behind it, as "control/NAME". The server's control variate: these
 * alone. KEDGE_E_SHAPE, KEDGE_E_TOO_LONG: there is no room for them; KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_job_spec_update_layout(const struct kedge_job_spec *spec,
                                                 const struct kedge_layout *layout, struct kedge_layout *ret,
                                                 struct kedge_diag *reterr);
KEDGE_NODISCARD int kedge_job_spec_control_layout(const struct kedge_layout *layout, struct kedge_layout *ret,
                                                  struct kedge_diag *reterr);
/* The layout of a file of the server's state: the model's tensors once for each state vector, as
 * "momentum/NAME", then "second_moment/NAME"; SCAFFOLD's as "control/NAME". Empty without a state. The caller
 * deinits it. Errors as above. */
KEDGE_NODISCARD int kedge_job_spec_state_layout(const struct kedge_layout *layout, enum kedge_server server,
                                                struct kedge_layout *ret, struct kedge_diag *reterr);
/* The form in which updates come: NULL, whole, as tensors (all pre-trainings, for groups are made of them).
 */
const struct kedge_compact *kedge_job_spec_compact(const struct kedge_job_spec *spec, bool pretrain);
/* Is this the site whose update is the root of trust (rule "root-trust")? place: of its tenant in the spec.
 */
bool kedge_job_spec_is_root(const struct kedge_job_spec *spec, uint32_t place, const struct kedge_id *site);
/* How its sites come to their first group; of a job with one group nothing follows from it. */
enum kedge_entry kedge_job_spec_entry(const struct kedge_job_spec *spec);
/* Models that the job begins with, each a group's of its own, without a pre-training; 1 where the first model
 * is that of all. */
uint32_t kedge_job_spec_models(const struct kedge_job_spec *spec);
/* These models are random, each from a seed of its own (round/beginning.h); in hierarchical jobs they
 * are one. */
bool kedge_job_spec_has_model_per_group_at_start(const struct kedge_job_spec *spec);
/* How the record tells which group a site is in. Those who read records ask this, and not which strategy the
 * job has. */
enum kedge_grouped_by {
    KEDGE_GROUPED_BY_NOTHING,  /* there is one group */
    KEDGE_GROUPED_BY_PLACE,    /* its tenant's place in the spec, for good (kedge_job_spec_edge) */
    KEDGE_GROUPED_BY_UPDATE,   /* each update of training names the group that its site took */
    KEDGE_GROUPED_BY_PRETRAIN, /* a statement after each of its pre-trainings; round 0 makes the groups */
    KEDGE_GROUPED_BY_TASK,     /* a statement before each of its trainings, by its last model */
    KEDGE_GROUPED_BY_CUT, /* a statement where a close has cut its group (round/split.h); before that 0 */
};
enum kedge_grouped_by kedge_job_spec_grouped_by(const struct kedge_job_spec *spec);
/* Statements tell the groups: the last three. */
bool kedge_job_spec_states_groups(const struct kedge_job_spec *spec);
/* Where the group is told by the tenant's place: its group. After the step of some rounds the groups' models
 * meet. */
uint32_t kedge_job_spec_edge(uint32_t place);
bool kedge_job_spec_meets(const struct kedge_job_spec *spec, uint32_t round);
/* What an update adds to its edge's weight at the next meeting: its samples where the rule counts samples,
 * else 1; nothing where the rule left it out (weight, of its row in the list, 0). */
uint64_t kedge_job_spec_meeting_share(const struct kedge_job_spec *spec, uint64_t weight, uint64_t samples);
/* The bounds between which the number of groups is chosen; both `groups` where that is the number. A
 * coordinator has room for *ret_most models. */
void kedge_job_spec_groups(const struct kedge_job_spec *spec, uint32_t *ret_least, uint32_t *ret_most);
uint32_t kedge_job_spec_groups_most(const struct kedge_job_spec *spec);
/* The close of this round, if it is one of training, estimates directions again (option "refresh"). */
bool kedge_job_spec_refreshes(const struct kedge_job_spec *spec, uint32_t round);
/* Groups become one where their sites find a trial model no worse than their own (option "trial_every"). */
bool kedge_job_spec_tries(const struct kedge_job_spec *spec);
/* … and they begin as one, which is cut where the sites find that better (`choose` "one"). */
bool kedge_job_spec_begins_as_one(const struct kedge_job_spec *spec);
/* Sites that train after this round say what their training has made of its models (round/trial.h). */
bool kedge_job_spec_asks_own(const struct kedge_job_spec *spec, uint32_t round);
/* The close of this round of training has trials; has_joined: it has joined groups. */
bool kedge_job_spec_tries_after(const struct kedge_job_spec *spec, uint32_t round, bool has_joined);
/* … and begins with cuts of all groups, whose parts are tried each by its own updates. */
bool kedge_job_spec_cuts_after(const struct kedge_job_spec *spec, uint32_t round);
/* Directions that have moved so far ask for new groups: the next round makes them, unless it is the last. */
bool kedge_job_spec_drifted(double drift);
/* The first coordinate of what sites are grouped by: 0, or with one-shot clustering that of the last layer.
 */
uint64_t kedge_job_spec_sign_first(const struct kedge_job_spec *spec, const struct kedge_layout *layout);
/* The word of the key "server" for what the spec has; static. */
const char *kedge_job_spec_server_name(const struct kedge_job_spec *spec);
/* Updates with which a round of an asynchronous job closes; 0: rounds wait for their sites. */
uint32_t kedge_job_spec_buffer(const struct kedge_job_spec *spec);
/* An update weighs as much as it has samples (FedAvg), lowered where a tenant's share is capped. */
bool kedge_job_spec_weighs_samples(const struct kedge_job_spec *spec);
/* Steps and loss that a training update states are such that it can be weighed: steps 1 … 2^31 − 1 and a loss
 * of at most KEDGE_LOSS_MAX where the strategy is none that weighs as FedAvg; with FedNova no more steps than
 * the job's passes over so many samples are, for a claim of more bends all other weights. Others are
 * refused at the door. */
#define KEDGE_LOSS_MAX 1e6
bool kedge_job_spec_takes(const struct kedge_job_spec *spec, uint64_t samples, uint64_t steps, double loss);
/* The sizes that sites choose from, ascending, and the place of the one to begin with; one where the job says
 * it. The learning rate that goes with one. */
uint32_t kedge_job_spec_batches(const struct kedge_job_spec *spec, uint32_t ret_sizes[KEDGE_SPEC_BATCHES_MAX],
                                uint32_t *ret_start);
double kedge_job_spec_rate(const struct kedge_job_spec *spec, uint32_t batch);
/* Where sites choose: the stated batch is one of those, the learning rate is its, to the bit, and there are
 * no more steps than passes in such batches have. */
bool kedge_job_spec_takes_batch(const struct kedge_job_spec *spec, uint64_t samples, uint64_t steps,
                                uint64_t batch, double learning_rate);
/* What an update is charged, in millionths of the budget's unit: at most 2^62; 0 without a budget. joules and
 * seconds: as its statement has them, 0 or more; joules are not read where it states none. */
uint64_t kedge_job_spec_charge(const struct kedge_job_spec *spec, bool states_joules, double joules,
                               double seconds);
/* The budget in millionths of its unit; 0: the job has none. */
uint64_t kedge_job_spec_budget(const struct kedge_job_spec *spec);
const char *kedge_job_budget_unit_name(enum kedge_job_budget_unit unit); /* "joules", … as in the spec */
/* The coordinator plans this round of training: each selected site has a part of its data, in percent. */
bool kedge_job_spec_plans(const struct kedge_job_spec *spec, uint32_t round);
/* A training update of that round that states so many samples, of so many that the site has, is of this part:
 * ⌈data_samples · percent / 100⌉ in a planned round; in others data_samples is not stated, which is 0. */
bool kedge_job_spec_takes_part(const struct kedge_job_spec *spec, uint32_t round, uint64_t samples,
                               uint64_t data_samples, uint32_t percent);
/* After this round a job with targets waits for its evaluations, and its record says what came of them; not
 * after the last one, which ends it anyway. */
bool kedge_job_spec_tests(const struct kedge_job_spec *spec, uint32_t round);
/* The round in which the sites name the classes together, and that in which nothing is trained for it. */
enum { KEDGE_CLASSES_ROUND = 1 };
bool kedge_job_spec_asks_classes(const struct kedge_job_spec *spec, uint32_t round);
/* An update of that round names at least one class, and no more than the model has outputs; one of another
 * round or job names none. names: as common/tensor/class_names.h. */
bool kedge_job_spec_takes_classes(const struct kedge_job_spec *spec, uint32_t round, const char *names);

/* Names of the rules that the spec's rounds use: they stand in aggregate and step statements. */
enum { KEDGE_RULE_NAME_MAX = 64 };
struct kedge_rule_name {
    char s[KEDGE_RULE_NAME_MAX + 1];
};
/* The rule of an aggregate of this job: of round 0 of a grouped job (cold_start) or of any other, where
 * `rule` is the one that ran (kedge_rule_effective). "fedavg/v1", "flexcfl-cold-start/v2": weighted and plain
 * mean; "…-capped/v1": with a cap on a tenant's share; "median/v1", "fednova/v1", "fednova+norm-clipping/v1",
 * "flexcfl-cold-start+median/v2". */
struct kedge_rule_name kedge_job_spec_aggregate_rule(const struct kedge_job_spec *spec, bool cold_start,
                                                     const struct kedge_rule *rule);
/* The rule of aggregates and step of a round that makes groups anew: "flexcfl-recluster/v2". */
extern const char KEDGE_RULE_RECLUSTER[];
/* The rule of such a round to which too few came, so that the groups stay as they are: "flexcfl-kept/v1". */
extern const char KEDGE_RULE_KEPT[];
/* The rule of a step behind which the edges meet: "edge-meeting/v1", "fedadam+edge-meeting/v1". */
struct kedge_rule_name kedge_job_spec_meeting_rule(const struct kedge_job_spec *spec);
/* The rule of a step: "flexcfl-cold-start/v2" in round 0; else "identity/v1" or the server's, "fedadam/v1";
 * with mixing "flexcfl-mixing/v1", "fedadam+flexcfl-mixing/v1". */
struct kedge_rule_name kedge_job_spec_step_rule(const struct kedge_job_spec *spec, bool cold_start,
                                                bool mixed);

#endif
