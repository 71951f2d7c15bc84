/* The record as the rooms of the auditor share it. Logs are copied out of their stores once; everything after
 * that works on the copy. Tables whose length is that of the record are blocks of scratch.h. Internal to this
 * room. */
#ifndef KEDGE_CHAIN_AUDIT_RECORD_H
#define KEDGE_CHAIN_AUDIT_RECORD_H

#include <stdatomic.h>

#include "chain/audit/base/report.h"
#include "chain/audit/base/scratch.h"
#include "chain/log/checkpoint.h"
#include "chain/state/state.h"
#include "chain/statement/input_list.h"
#include "coordinator/schedule/target.h"
#include "job/job_spec.h"

enum {
    KEDGEI_FACT_BAD = -1,                         /* no well-formed entry */
    KEDGEI_FACT_WITHHELD = -2,                    /* its hash is all that this copy has of it */
    KEDGEI_FACT_CHECKPOINT = KEDGE_ST_KIND_COUNT, /* a tenant's checkpoint in the main chain */
    KEDGEI_LEVELS = 40,                           /* of a Merkle tree in memory */
};
#define KEDGEI_NEVER UINT64_MAX

/* One entry, understood. body is the kedge_st_… of its kind, or a kedgei_anchor. */
struct kedgei_fact {
    int kind;
    bool has_key;           /* key must have signed it */
    bool has_classes;       /* an update or a step that names classes, which its body has not */
    uint32_t listed;        /* rows of input lists that name this update */
    _Atomic uint64_t codes; /* bit c: an error of code c about this entry or what it names */
    uint64_t index;
    struct kedge_hash subject;
    struct kedge_public_key key;
    void *body; /* in the log's arena; no longer than its arrays are full */
};

struct kedgei_anchor {
    struct kedge_view note;
    uint32_t tenant; /* index of the tenant's log; UINT32_MAX: unknown */
    uint64_t size;
    struct kedge_hash root;
};

struct kedgei_head {
    uint64_t size;
    int err; /* of its signature and form, once they are verified */
    struct kedge_view note;
};

struct kedgei_key_row {
    struct kedge_view key;
    uint64_t index;
};

struct kedgei_place {
    uint64_t main_index, size;
};

struct kedgei_log {
    struct kedge_id tenant; /* empty: main chain */
    const char *name;       /* "main" or the tenant's */
    char origin[KEDGE_ORIGIN_MAX + 1];
    struct kedge_hash salted;
    bool has_vkey;
    struct kedge_vkey vkey;            /* of its checkpoints */
    struct kedge_public_key authority; /* admin key of a tenant, statement key of the main chain */
    bool has_authority;
    bool is_copy; /* kept by somebody else: without table of keys; entries without bytes are withheld, ptr is
                     their leaf hash */
    struct kedgei_scratch *scratch; /* where the tables below are: kedgei_fact_at … below */
    struct kedge_view records;      /* spool.h: what everything below points into */
    struct kedgei_arena bodies;
    uint64_t count;
    struct kedge_view *entries;
    struct kedgei_fact *facts;
    struct kedge_hash
        *levels[KEDGEI_LEVELS]; /* levels[0]: leaf hashes; levels[k][i]: root of leaves [i·2^k, (i+1)·2^k) */
    struct kedgei_head *heads;
    size_t head_count;
    struct kedgei_key_row *stored_keys; /* the table of idempotency keys, ascending */
    size_t stored_key_count;
    uint8_t *key_text;           /* of keys, where they are not the stored ones */
    struct kedgei_key_row *keys; /* keys that the statements have, ascending by (key, index) */
    size_t key_count;
    struct kedgei_place *anchors; /* its checkpoints in the main chain, ascending */
    size_t anchor_count, anchor_cap;
    struct kedge_blobs *blobs;
    size_t own_blob_keys; /* keys of its encrypted blobs that lie in the folder */
};

struct kedgei_round {
    uint32_t number;
    bool pretrain;       /* its updates make groups: round 0, and when groups are made anew … */
    bool kept;           /* … but that too few came, so that they stay as they were */
    bool replaced;       /* by another opening of it: only that one has more than `opened` */
    uint32_t grouped_in; /* the last round up to this one in which groups were made, 0: none */
    struct kedgei_fact *opened, *step;
    struct kedgei_fact *tested; /* what its evaluations say of the job's targets; NULL */
    uint32_t aggregate_count;
    struct kedgei_fact *aggregates[KEDGE_GROUPS_MAX]; /* by group, NULL: none */
    size_t update_first, update_count;                /* in kedgei_audit.updates */
};

struct kedgei_job {
    struct kedge_id id;
    struct kedgei_fact *opened, *closed;
    bool usable;     /* spec and layout are known */
    bool has_unmade; /* replay: models were pruned, and then updates erased that they were made of */
    struct kedge_job_spec spec;
    struct kedge_layout layout, update_layout; /* of a training update */
    int32_t limit;                             /* largest |q| of an update */
    uint32_t tenants[KEDGE_SPEC_TENANTS_MAX];  /* indexes of tenants' logs, as in the spec */
    uint32_t groups;                           /* after the first round; 1 before */
    struct kedgei_scratch *scratch;            /* where rounds are: kedgei_round_at */
    struct kedgei_round *rounds;
    size_t round_count, round_cap;
    struct kedgei_round *replaced; /* openings that another one stands in the place of */
    size_t replaced_count, replaced_cap;
    struct kedgei_fact *releases[KEDGE_GROUPS_MAX];
    struct kedge_schedule_held held; /* as the last round-tested says … */
    uint32_t tier, tier_before;      /* … and how many targets are reached by that, and were before */
    uint32_t tier_releases;          /* of that round, so far */
};

/* A job-admitted. */
struct kedgei_admission {
    struct kedgei_fact *fact;
    struct kedge_job_spec *spec; /* owned; NULL once its job is opened */
    struct kedgei_job *job;      /* NULL before that */
};

/* An update of a round that exists. */
struct kedgei_update {
    uint32_t job, round, tenant;
    struct kedgei_fact *fact;
};

/* A train update of a job that begins with several random models. */
struct kedgei_trained {
    uint32_t tenant;
    const struct kedgei_fact *fact;
};

/* What a copy of some tenants' ledgers leaves open. */
struct kedgei_skipped {
    atomic_uint_fast64_t withheld, anchors, approvals, lists, blobs, models, decisions, specs;
};

struct kedgei_audit {
    struct kedgei_scratch scratch;
    char state[KEDGE_PATH_MAX], models[KEDGE_PATH_MAX]; /* models empty: no such folder */
    char deployment[KEDGE_DEPLOYMENT_MAX + 1];
    const struct kedge_trust *trust;
    struct kedge_audit_options options;
    uint32_t threads;
    struct kedgei_log main;
    struct kedgei_log *tenants; /* ascending */
    uint32_t tenant_count;
    struct kedgei_job **jobs;
    uint32_t job_count;
    struct kedgei_admission *admissions; /* in order */
    uint32_t admission_count;
    struct kedgei_update *updates; /* ascending by job, round, tenant, index */
    size_t update_count;
    struct kedgei_trained *trained; /* ascending by tenant, job, site, index */
    size_t trained_count;
    struct kedge_audit_anchor *outside; /* anchors that hold; ascending by size */
    uint32_t outside_count;
    struct kedge_audit_evidence *evidence; /* what others saw of logs, where it holds */
    uint32_t evidence_count;
    struct kedge_audit_refusal *refusals; /* as options.refusals; NULL: not looked at */
    struct kedgei_findings findings;
    struct kedgei_skipped *skipped; /* NULL: the record is to be whole */
    struct kedge_audit_counts counts;
    struct kedge_hash results;   /* of replay */
    struct kedge_buf pruned;     /* digests of models that are given up and may be */
    struct kedge_blobs *rebuilt; /* where they are made again; NULL */
    char rebuilt_dir[KEDGE_PATH_MAX];
    struct kedge_diag diag;
};

/* ---- what lies in tables ----
 * A table may be a mapped file, whose pieces become resident as they are touched. Tables are therefore asked,
 * not indexed: each question is a step of kedgei_scratch_evict_if_large, and how much of them is resident at
 * once does not hang on who remembers to look. What an item points to may be touched with it. */
static inline struct kedgei_fact *kedgei_fact_at(const struct kedgei_log *log, uint64_t index)
{
    kedgei_scratch_evict_if_large(log->scratch);
    return &log->facts[index];
}

static inline struct kedge_view kedgei_entry_at(const struct kedgei_log *log, uint64_t index)
{
    kedgei_scratch_evict_if_large(log->scratch);
    return log->entries[index];
}

static inline struct kedgei_head *kedgei_head_at(const struct kedgei_log *log, size_t i)
{
    kedgei_scratch_evict_if_large(log->scratch);
    return &log->heads[i];
}

static inline struct kedgei_key_row *kedgei_key_at(const struct kedgei_log *log, size_t i)
{
    kedgei_scratch_evict_if_large(log->scratch);
    return &log->keys[i];
}

static inline struct kedge_hash *kedgei_hash_at(const struct kedgei_log *log, unsigned level, uint64_t index)
{
    kedgei_scratch_evict_if_large(log->scratch);
    return &log->levels[level][index];
}

static inline struct kedgei_round *kedgei_round_at(const struct kedgei_job *job, size_t i)
{
    kedgei_scratch_evict_if_large(job->scratch);
    return &job->rounds[i];
}

/* All openings: of its rounds, and behind them those that another one stands in the place of. */
static inline size_t kedgei_opening_count(const struct kedgei_job *job)
{
    return job->round_count + job->replaced_count;
}

static inline struct kedgei_round *kedgei_opening_at(const struct kedgei_job *job, size_t i)
{
    return i < job->round_count ? kedgei_round_at(job, i) : &job->replaced[i - job->round_count];
}

static inline struct kedgei_update *kedgei_update_at(const struct kedgei_audit *a, size_t i)
{
    kedgei_scratch_evict_if_large(a->main.scratch);
    return &a->updates[i];
}

/* ---- findings about entries ---- */
void kedgei_error(struct kedgei_findings *f, enum kedge_audit_code code, const struct kedgei_log *log,
                  uint64_t index, const char *format, ...) KEDGE_PRINTF(5, 6);
/* Says nothing, but this entry will not be called good: what it names is not what it should be. */
void kedgei_flaw(const struct kedgei_log *log, uint64_t index, enum kedge_audit_code code);
/* As error; but in a record that is still being written a note, when the entry is newer than what the main
 * chain that was read first can know. */
void kedgei_error_if_settled(const struct kedgei_audit *a, struct kedgei_findings *f,
                             enum kedge_audit_code code, const struct kedgei_log *log, uint64_t index,
                             const char *format, ...) KEDGE_PRINTF(6, 7);

/* ---- partial.c: copies that hold some tenants only ---- */
/* Counts what cannot be checked and returns true; false in a record that is to be whole: then it is an error.
 */
#define KEDGEI_SKIP(a, what) ((a)->skipped && (atomic_fetch_add(&(a)->skipped->what, 1), true))
/* Whether the options name this tenant; true when they name none. */
bool kedgei_holds(const struct kedgei_audit *a, const struct kedge_id *tenant);
/* Whether job-opened names it, be its ledger here or not. */
bool kedgei_job_names(const struct kedgei_job *job, const struct kedge_hash *salted);
/* Every tenant of the job is here. */
bool kedgei_job_whole(const struct kedgei_job *job);
/* Notes about all that was counted. */
void kedgei_tell_skipped(struct kedgei_audit *a);

/* ---- pool.c ---- */
typedef void kedgei_task(void *arg, uint64_t i, struct kedgei_findings *f);
/* Runs task(0…count-1) on the audit's threads; findings come in the order of i. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_parallel(struct kedgei_audit *a, const char *what, uint64_t count,
                                    kedgei_task *task, void *arg);

/* ---- load.c ---- */
/* Reads config, tenants and all logs. *ret_readable: every log could be read. */
KEDGE_NODISCARD int kedgei_record_load(struct kedgei_audit *a, const char *dir, bool *ret_readable);
void kedgei_log_deinit(struct kedgei_audit *a, struct kedgei_log *log);

/* ---- log.c: one log by itself ---- */
/* Leaf hashes, tree, facts, idempotency keys of every log. */
KEDGE_NODISCARD int kedgei_logs_read(struct kedgei_audit *a);
/* Root of the first size ≤ count entries. */
void kedgei_log_root(const struct kedgei_log *log, uint64_t size, struct kedge_hash *ret);
/* The first statement with that idempotency key, or NULL. */
struct kedgei_fact *kedgei_log_find(const struct kedgei_log *log, const char *format, ...) KEDGE_PRINTF(2, 3);
/* Row of keys: the first that is not below the key. */
size_t kedgei_log_lower(const struct kedgei_log *log, struct kedge_view key);
/* Size of the log in its last checkpoint in the main chain before that index; 0: none. */
uint64_t kedgei_anchored_before(const struct kedgei_log *log, uint64_t main_index);
/* The same after that index; KEDGEI_NEVER: none. */
uint64_t kedgei_anchored_after(const struct kedgei_log *log, uint64_t main_index);

/* ---- keys.c: who must have signed; signatures.c: whether they did ---- */
KEDGE_NODISCARD int kedgei_check_keys(struct kedgei_audit *a);
KEDGE_NODISCARD int kedgei_check_signatures(struct kedgei_audit *a);
KEDGE_NODISCARD int kedgei_check_seen(struct kedgei_audit *a, const char *const *paths, size_t count);
KEDGE_NODISCARD int kedgei_check_finality(struct kedgei_audit *a);

/* ---- contacts.c: who answers for whom, and openings of such commitments ---- */
KEDGE_NODISCARD int kedgei_check_contacts(struct kedgei_audit *a);

/* ---- quotas.c: what the operator lets tenants have; once all logs are read ---- */
KEDGE_NODISCARD int kedgei_check_quotas(struct kedgei_audit *a);

/* ---- labels.c: what sites are, as their tenants say ---- */
KEDGE_NODISCARD int kedgei_check_labels(struct kedgei_audit *a);
/* The candidate of a round that opened with that entry of the main chain had what the job needs. */
void kedgei_check_needs(const struct kedgei_audit *a, const struct kedgei_job *job,
                        const struct kedgei_log *log, const struct kedge_id *site, uint64_t at,
                        struct kedgei_findings *f);

/* ---- refusals.c: signed refusals that the auditor was shown; behind check_inputs ---- */
KEDGE_NODISCARD int kedgei_check_refusals(struct kedgei_audit *a);

/* ---- anchors.c: anchors outside; only reads the main chain ---- */
KEDGE_NODISCARD int kedgei_check_anchors(struct kedgei_audit *a);

/* ---- main_chain.c, tenants.c: statements in order ---- */
KEDGE_NODISCARD int kedgei_check_main(struct kedgei_audit *a);
KEDGE_NODISCARD int kedgei_check_tenants(struct kedgei_audit *a);

/* ---- jobs.c: jobs and rounds that are known ---- */
struct kedgei_job *kedgei_job_find(const struct kedgei_audit *a, const struct kedge_id *id);
struct kedgei_round *kedgei_round_find(const struct kedgei_job *job, uint32_t number);
/* Log of a tenant of the job by its salted id, or NULL. */
struct kedgei_log *kedgei_job_tenant(const struct kedgei_audit *a, const struct kedgei_job *job,
                                     const struct kedge_hash *salted);
/* The model that a group begins with, as job-opened says; the group's model before the round: false when the
 * record does not tell. */
struct kedge_hash kedgei_first_model(const struct kedgei_job *job, uint32_t group);
bool kedgei_model_before(const struct kedgei_job *job, const struct kedgei_round *round, uint32_t group,
                         struct kedge_hash *ret);
const struct kedge_st_step_group *kedgei_step_group(const struct kedgei_fact *step, uint32_t group);
/* The group of a site of that tenant which no statement gave one: its edge, 0 in other jobs. */
uint32_t kedgei_first_group(const struct kedgei_audit *a, const struct kedgei_job *job,
                            const struct kedgei_log *log);

/* ---- rounds.c ---- */
/* round-opened, aggregate and step against the job; they join the job's rounds. */
KEDGE_NODISCARD int kedgei_round_opened(struct kedgei_audit *a, struct kedgei_job *job,
                                        struct kedgei_fact *fact);
void kedgei_round_aggregate(struct kedgei_audit *a, struct kedgei_job *job, struct kedgei_fact *fact);
void kedgei_round_step(struct kedgei_audit *a, struct kedgei_job *job, struct kedgei_fact *fact);
/* Whether as many pre-trained as it takes to make groups anew, where the round's updates are all here. */
void kedgei_check_enough(const struct kedgei_audit *a, const struct kedgei_job *job,
                         const struct kedgei_round *round, struct kedgei_findings *f);
/* weights.c: the rows of this round weigh by a rule over all of them, not each by itself. */
bool kedgei_weighs_together(const struct kedgei_job *job, const struct kedgei_round *round);
/* step.c: what the round's step says of its groups. */
void kedgei_check_step(struct kedgei_audit *a, const struct kedgei_job *job,
                       const struct kedgei_round *round);

/* ---- site_groups.c: which group a site is in, by the order of its ledger ---- */
/* The site's last group-assigned in front of that entry, or its first one behind it; NULL: there is none. */
const struct kedgei_fact *kedgei_group_before(const struct kedgei_log *log, const struct kedge_id *job,
                                              const struct kedge_id *site, uint64_t index);
const struct kedgei_fact *kedgei_group_behind(const struct kedgei_log *log, const struct kedge_id *job,
                                              const struct kedge_id *site, uint64_t index);
/* The group that a row's site was in when it sent the row's update, KEDGE_GROUP_NONE: none. */
uint32_t kedgei_group_then(const struct kedgei_log *log, const struct kedge_id *job,
                           const struct kedge_input_row *row);
/* Whether that was the site's group at a time when the log had some size from least on, below most. */
bool kedgei_group_was(const struct kedgei_log *log, const struct kedge_id *job, const struct kedge_id *site,
                      uint64_t least, uint64_t most, uint32_t group);
/* The last closed round up to `number`; NULL: there is none. */
const struct kedgei_round *kedgei_round_closed(const struct kedgei_job *job, uint32_t number);
/* Groups that the job has behind its last closed round up to `number`; 0: none is closed. */
uint32_t kedgei_groups_after(const struct kedgei_job *job, uint32_t number);
/* Groups were made anew in this round. */
static inline bool kedgei_regroups(const struct kedgei_round *round)
{
    return round->pretrain && round->number > 0 && !round->kept;
}
/* Groups were made in this round: at the beginning or anew. */
static inline bool kedgei_makes_groups(const struct kedgei_round *round)
{
    return round->pretrain && !round->kept;
}
/* The last round up to `number` in which groups were made, 0 when none. */
uint32_t kedgei_grouped_in(const struct kedgei_job *job, uint32_t number);
/* ---- steps.c: what a round's step says of its groups ---- */
/* The rule of a step or an aggregate says that too few came to make groups anew. */
bool kedgei_rule_keeps(const char *rule);
/* After this round of training directions are estimated again; its close asked for new groups. */
bool kedgei_refreshes(const struct kedgei_job *job, const struct kedgei_round *round);
bool kedgei_drifted(const struct kedgei_round *round);
/* A round of training of a job whose groups are tried against each other. */
bool kedgei_tries(const struct kedgei_job *job, const struct kedgei_round *round);
/* After this round's step the edges' models become one. */
bool kedgei_meets(const struct kedgei_job *job, const struct kedgei_round *round);
/* This step makes the group part of another one; makes its model of several groups'. */
bool kedgei_merges(const struct kedgei_job *job, const struct kedgei_round *round, uint32_t group);
/* Had the log's tenant left the job before that entry of its ledger? */
bool kedgei_has_left(const struct kedgei_log *log, const struct kedge_id *job, uint64_t before);
bool kedgei_is_joined(const struct kedgei_job *job, const struct kedgei_round *round, uint32_t group);
/* The part that this step cuts off the group, 0: none. */
uint32_t kedgei_part_of(const struct kedgei_round *round, uint32_t group);
/* The direction in force after this step: of a group that is part of another one that one's. NULL: no such
 * group. */
const struct kedge_hash *kedgei_direction_of(const struct kedgei_fact *step, uint32_t group);
/* The direction that a closed round of training has estimated of the group, before it was cut; NULL: none. */
const struct kedge_hash *kedgei_estimate_of(const struct kedgei_job *job, const struct kedgei_round *round,
                                            uint32_t group);

/* ---- assignments.c: rows of closes and what their sites were told ---- */
/* What is wrong with the statement that follows a row of this update, NULL: nothing. */
const char *kedgei_assignment_matches_row(const struct kedgei_job *job, const struct kedgei_round *round,
                                          const struct kedgei_log *log, const struct kedgei_fact *update,
                                          const struct kedge_input_row *row);
/* The evaluation is of the group in which all begin, and no cut had moved its site when the round closed. */
bool kedgei_unsplit_at_close(const struct kedgei_job *job, const struct kedgei_log *log,
                             const struct kedge_st_evaluation *e, const struct kedgei_round *round,
                             uint64_t index);
/* ---- groups.c ---- */
/* A group-assigned of a usable job against what stands before it. */
void kedgei_check_assigned(struct kedgei_audit *a, const struct kedgei_job *job, const struct kedgei_log *log,
                           const struct kedgei_fact *fact);
/* ---- trained.c ---- */
KEDGE_NODISCARD int kedgei_trained_collect(struct kedgei_audit *a);
/* The site's last train update in front of that entry, in a job that kedgei_trained is about; NULL: none. */
const struct kedgei_fact *kedgei_trained_before(const struct kedgei_audit *a, const struct kedgei_log *log,
                                                const struct kedge_id *job, const struct kedge_id *site,
                                                uint64_t index);
/* Where sites choose: whether this group was the site's choice in front of the entry, or at the close of the
 * round. */
bool kedgei_choice_matches(const struct kedgei_audit *a, const struct kedgei_round *round,
                           const struct kedgei_log *log, const struct kedge_st_evaluation *e, uint64_t index);
void kedgei_check_first_models(struct kedgei_audit *a, const struct kedgei_job *job);

/* ---- inputs.c, lists.c ---- */
KEDGE_NODISCARD int kedgei_check_inputs(struct kedgei_audit *a);
/* ---- targets.c ---- */
/* round-tested, and a release of models that have reached a target, against the job. */
void kedgei_round_tested(struct kedgei_audit *a, struct kedgei_job *job, struct kedgei_fact *fact);
void kedgei_check_tier_release(struct kedgei_audit *a, struct kedgei_job *job,
                               const struct kedgei_fact *fact);
/* Of this round, the last one, what was to be told is told: before another opens, or the job is closed. */
void kedgei_check_told(struct kedgei_audit *a, const struct kedgei_job *job, const struct kedgei_fact *next);
/* All of the job's targets are reached, so it ends. */
bool kedgei_is_at_target(const struct kedgei_job *job);
/* What round-tested statements count, once all ledgers are known. */
void kedgei_check_tests(struct kedgei_audit *a);

/* ---- promises.c ---- */
/* job-admitted or job-refused against the entries before it. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_check_admission(struct kedgei_audit *a, struct kedgei_fact *fact);
/* The job is opened: was it admitted, if its spec has a deadline? */
void kedgei_check_promised(struct kedgei_audit *a, struct kedgei_job *job);
void kedgei_admissions_deinit(struct kedgei_audit *a);

/* ---- budget.c: what rounds are charged; behind check_tenants, which collects the updates ---- */
KEDGE_NODISCARD int kedgei_check_budgets(struct kedgei_audit *a);
/* ---- plan.c: parts of data that openings give; likewise ---- */
KEDGE_NODISCARD int kedgei_check_plans(struct kedgei_audit *a);
/* An update is of the part that its round's opening gives the site. row: that selects it, NULL: there is
 * none. */
void kedgei_check_part(const struct kedgei_job *job, const struct kedgei_log *log,
                       const struct kedgei_fact *update, const struct kedge_input_row *row,
                       struct kedgei_findings *f);
/* An input list of tenant t's blobs; errors become findings about main[index]; deinit afterwards. */
bool kedgei_list_read(const struct kedgei_audit *a, const struct kedgei_log *log,
                      const struct kedge_hash *digest, uint64_t index, struct kedge_input_list *ret,
                      struct kedgei_findings *f);

/* ---- trials.c ---- */
/* A row of what a site has found of a trial, in a list of this round: what is wrong with it, NULL: nothing.
 */
const char *kedgei_trial_row_fault(const struct kedgei_job *job, const struct kedgei_round *round,
                                   const struct kedgei_log *log, const struct kedge_input_row *row);
/* Whether the round's `listed` such rows of the tenant, the last of which names entry `last`, are all that
 * came until then. */
bool kedgei_trial_rows_whole(const struct kedgei_job *job, const struct kedgei_round *round,
                             const struct kedgei_log *log, uint64_t listed, uint64_t last);

/* ---- files.c, blobs.c ---- */
KEDGE_NODISCARD int kedgei_check_models(struct kedgei_audit *a);
KEDGE_NODISCARD int kedgei_check_blobs(struct kedgei_audit *a);

/* ---- statements.c ---- */
/* Calls options.each for every entry. Returns its error. */
KEDGE_NODISCARD int kedgei_tell_entries(struct kedgei_audit *a);
/* What is known of each log, for the report. */
KEDGE_NODISCARD int kedgei_describe_logs(const struct kedgei_audit *a, struct kedge_audit_report *ret);

/* ---- replay.c ---- */
KEDGE_NODISCARD int kedgei_replay(struct kedgei_audit *a);

/* ---- evidence.c ---- */
/* The log has the first `size` entries that `from` says; what proves less of it is forgotten. */
void kedgei_add_evidence(struct kedgei_audit *a, const struct kedgei_log *log, uint64_t size,
                         enum kedge_audit_source source, const char *from);

#endif
