/* Statements: every signed fact of Kedge, as an in-toto Statement v1 with predicate type
 * https://kedge.dev/NAME/v1 in a DSSE envelope. Typed both ways: a struct per kind, one table row per field
 * (statement_kinds.c), so that a new kind is a struct and its rows.
 *
 * Reading is strict: known kind, every field present with its type and range (optional ones where their value
 * is not zero), nothing unknown, no duplicate keys, exactly one subject, depth and size bounded, the envelope
 * in Kedge's one spelling. Reals are decimal strings, 64-bit values (seeds, weight sums) decimal strings,
 * counts JSON integers of at most 2^53. An array that stands for a set is strictly ascending by its key, so
 * that nobody is counted twice. Pure. */
#ifndef KEDGE_CHAIN_STATEMENT_STATEMENT_H
#define KEDGE_CHAIN_STATEMENT_STATEMENT_H

#include <stdint.h>

#include "chain/log/dsse.h"
#include "chain/statement/main_entry.h"
#include "common/base/diag.h"
#include "common/base/labels.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/tensor/class_names.h"
#include "crypto/sign.h"

enum {
    KEDGE_ST_TIERS_MAX = 2,
    KEDGE_ST_HOLD_MAX = 1000,
    KEDGE_ST_PROMISES_MAX = 256, /* jobs with deadlines at one time */
    KEDGE_ST_SHARES = 16,        /* of the time of a job's sites */
    KEDGE_ST_DRAWS_MAX = 99,     /* openings of one round after its first */
    KEDGE_ST_TENANTS_MAX = 128,  /* tenants named by one statement: what fits into KEDGE_ENTRY_MAX */
    KEDGE_ST_REASON_MAX = 200,
    KEDGE_ST_CLOSED_REASON_MAX = 64,
    KEDGE_ST_CODE_MAX = 48, /* name of an error (common/base/err.def) */
    KEDGE_ST_AUTHORITY_MAX = 128,
    KEDGE_ST_ENGINE_MAX = 64,
    KEDGE_ST_HOW_MAX = 120,
    KEDGE_ST_RULE_MAX = 64,
    KEDGE_ST_NAME_MAX = 128,         /* deployment, file */
    KEDGE_ST_LABELS_TEXT_MAX = 1023, /* of a site: KEDGE_LABELS_TEXT_MAX */
    KEDGE_ST_LABELS_MAX = 99999999,  /* changes of one site's labels: eight digits of a key */
    KEDGE_ST_QUORUM_MAX =
        14, /* organisations that approve: with the old and new key, signatures fit one envelope */
};
#define KEDGE_ST_COUNT_MAX ((uint64_t)1 << 53)      /* JSON integers that every reader gets right */
#define KEDGE_ST_WEIGHT_SUM_MAX ((uint64_t)1 << 62) /* DESIGN §6 */
enum { KEDGE_ST_QUOTA_MAX = 1000000 };              /* sites, jobs, tokens, statements a second */
#define KEDGE_ST_QUOTA_BYTES_MAX ((uint64_t)1 << 40)
#define KEDGE_ST_CHARGE_MAX ((uint64_t)1 << 62)

enum kedge_statement_kind {
    KEDGE_ST_KEY,
    KEDGE_ST_KEY_ADDED,
    KEDGE_ST_KEY_ROTATED,
    KEDGE_ST_KEY_REVOKED,
    KEDGE_ST_KEY_RECOVERED,
    KEDGE_ST_SITE_ENROLLED,
    KEDGE_ST_SITE_REVOKED,
    KEDGE_ST_WITNESS_ENROLLED,
    KEDGE_ST_WITNESS_REVOKED,
    KEDGE_ST_JOB_JOINED,
    KEDGE_ST_JOB_LEFT,
    KEDGE_ST_UPDATE,
    KEDGE_ST_EVALUATION,
    KEDGE_ST_GROUP_ASSIGNED,
    KEDGE_ST_ERASED,
    KEDGE_ST_CONTACT,
    KEDGE_ST_SITE_LABELS,
    KEDGE_ST_POLICY,
    KEDGE_ST_ROLE_GRANTED,
    KEDGE_ST_ROLE_REVOKED,
    KEDGE_ST_STATEMENT_KEY_ROTATED,
    KEDGE_ST_POLICY_CHANGED,
    KEDGE_ST_QUOTA_SET,
    KEDGE_ST_JOB_ADMITTED,
    KEDGE_ST_JOB_REFUSED,
    KEDGE_ST_JOB_OPENED,
    KEDGE_ST_ROUND_OPENED,
    KEDGE_ST_AGGREGATE,
    KEDGE_ST_STEP,
    KEDGE_ST_ROUND_TESTED,
    KEDGE_ST_RELEASE,
    KEDGE_ST_JOB_CLOSED,
    KEDGE_ST_CLOSED,  /* a signed reply, never logged */
    KEDGE_ST_REFUSED, /* the same */
    KEDGE_ST_KIND_COUNT,
};

/* What a key of a tenant's ledger is for; statements that add or revoke keys name the first two, those that
 * rotate them the first four. */
enum kedge_key_role {
    KEDGE_ROLE_ADMIN,
    KEDGE_ROLE_RECOVERY,
    KEDGE_ROLE_SITE, /* a site's statements */
    KEDGE_ROLE_SITE_TLS,
    KEDGE_ROLE_WITNESS, /* cosignatures */
    KEDGE_ROLE_WITNESS_TLS,
};
enum kedge_key_scope { KEDGE_SCOPE_ADMIN, KEDGE_SCOPE_COORDINATOR, KEDGE_SCOPE_LOG };
/* Whether a tenant is served. */
enum kedge_tenant_standing { KEDGE_TENANT_ACTIVE, KEDGE_TENANT_SUSPENDED };
/* Who may ask the coordinator besides sites and witnesses, by TLS key: everything, or only what reads. */
enum kedge_chain_role { KEDGE_CHAIN_OPERATOR, KEDGE_CHAIN_AUDITOR };
enum kedge_train_kind { KEDGE_TRAIN_PRETRAIN, KEDGE_TRAIN_TRAIN };
enum kedge_energy_quality { KEDGE_ENERGY_MEASURED, KEDGE_ENERGY_MODELLED, KEDGE_ENERGY_UNKNOWN };
/* Why a site is in a group; the first two are the first assignment of a site, the others later ones. */
enum kedge_group_how {
    KEDGE_GROUP_COLD_START, /* of round 0, with many others */
    KEDGE_GROUP_NEWCOMER,   /* the nearest group, alone and later */
    KEDGE_GROUP_MIGRATION,  /* its data have shifted: it pre-trained again */
    KEDGE_GROUP_RECLUSTER,  /* all groups were made anew */
    KEDGE_GROUP_SPLIT,      /* its group was split */
    KEDGE_GROUP_MERGE,      /* its group became one with another */
    KEDGE_GROUP_CHOICE,     /* the site's own, by its loss */
    KEDGE_GROUP_NEAREST,    /* whose model is nearest to the site's last one */
};
enum kedge_job_outcome { KEDGE_OUTCOME_COMPLETED, KEDGE_OUTCOME_CANCELLED, KEDGE_OUTCOME_FAILED };

/* Tenant's ledger. A key is in force from its own entry on. Subject: SHA-256(public_key). */
struct kedge_st_key {
    enum kedge_key_scope scope;
    struct kedge_id tenant; /* empty for the coordinator's own keys */
    struct kedge_public_key public_key;
};

/* Who must sign the next four, and what they do, is said in chain/statement/keybook.h. Subject: SHA-256 of
 * the key that comes (goes, in key-revoked). */
struct kedge_st_key_added {
    struct kedge_id tenant;
    enum kedge_key_role role; /* admin or recovery */
    struct kedge_public_key public_key;
};

struct kedge_st_key_rotated {
    struct kedge_id tenant;
    enum kedge_key_role role;
    struct kedge_id site; /* roles site and site-tls; else empty */
    struct kedge_public_key old_key, new_key;
};

struct kedge_st_key_revoked {
    struct kedge_id tenant;
    enum kedge_key_role role; /* admin or recovery */
    struct kedge_public_key public_key;
    char reason[KEDGE_ST_REASON_MAX + 1];
};

/* All admin keys go, this one comes. */
struct kedge_st_key_recovered {
    struct kedge_id tenant;
    struct kedge_public_key public_key;
    char reason[KEDGE_ST_REASON_MAX + 1];
};

/* By the tenant's admin key. Subject: SHA-256(statement_key). */
struct kedge_st_site_enrolled {
    struct kedge_id tenant, site;
    struct kedge_public_key tls_key, statement_key;
};

/* By the tenant's admin key. Subject: SHA-256(statement_key). */
struct kedge_st_site_revoked {
    struct kedge_id tenant, site;
    struct kedge_public_key statement_key;
    char reason[KEDGE_ST_REASON_MAX + 1];
};

/* By the tenant's admin key: who may read this ledger as a witness (tls_key) and whose cosignatures count
 * (cosign_key under name, both of its vkey). Subject: SHA-256(cosign_key). */
struct kedge_st_witness_enrolled {
    struct kedge_id tenant, witness;
    struct kedge_public_key tls_key, cosign_key;
    char name[KEDGE_ST_NAME_MAX + 1]; /* a key's name as in chain/log/note.h */
};

/* By the tenant's admin key. Subject: SHA-256(cosign_key). */
struct kedge_st_witness_revoked {
    struct kedge_id tenant, witness;
    struct kedge_public_key cosign_key;
    char reason[KEDGE_ST_REASON_MAX + 1];
};

/* By the tenant's admin key. Subject: digest of the job spec. */
struct kedge_st_job_joined {
    struct kedge_id tenant, job;
};

/* By the tenant's admin key, of a job that it joined. Subject: digest of the job spec. */
struct kedge_st_job_left {
    struct kedge_id tenant, job;
    char reason[KEDGE_ST_REASON_MAX + 1];
};

/* By the site. Subject: SHA-256 of the update file. */
struct kedge_st_update {
    struct kedge_id tenant, site, job;
    uint32_t round, group;
    enum kedge_train_kind update_kind;
    struct kedge_hash base; /* digest of the model that training began from */
    uint64_t samples, steps, batch;
    double learning_rate;
    double energy_joules; /* NaN: not stated, for it is unknown; never 0 for that */
    enum kedge_energy_quality energy_quality;
    double seconds;
    double loss; /* optional: mean loss of the base model on the site's training data; 0: not stated */
    uint64_t
        data_samples; /* optional: that the site has, of which it trained on a planned part; 0: not stated */
    char engine[KEDGE_ST_ENGINE_MAX + 1];  /* an auditor keeps of it what there is, and nothing after it */
    char energy_how[KEDGE_ST_HOW_MAX + 1]; /* optional: what was read, of what; bounds of a modelled number */
    char choice[KEDGE_ST_HOW_MAX + 1];     /* optional: why this batch, and with what power */
    char classes[KEDGE_CLASS_NAMES_ROOM];  /* optional: the labels in the site's files, where the job asks */
};

/* By the site: loss is the mean over its test samples. Subject: digest of the model. */
struct kedge_st_evaluation {
    struct kedge_id tenant, site, job;
    uint32_t round, group;
    uint64_t samples, correct;
    double loss;
    /* Optional, 0: not stated. On the same samples: of the model that the site keeps for itself (Ditto), or,
     * where groups are tried, of what its own training has made of the model. */
    uint64_t personal_correct;
    double personal_loss;
    /* Optional: of the trial that the step of the round has for the site's group, on the same samples. */
    struct kedge_hash trial;
    uint64_t trial_correct;
    double trial_loss;
};

/* By the coordinator. Subject: digest of the update that the decision rests on. */
struct kedge_st_group_assigned {
    struct kedge_id tenant, site, job;
    uint32_t round, group;
    enum kedge_group_how how;
    double similarity;
    struct kedge_hash update; /* equals the subject */
};

/* By the tenant's admin key: the file of an update is no longer kept; what the record says of it is. Subject:
 * SHA-256 of that file. */
struct kedge_st_erased {
    struct kedge_id tenant;
    struct kedge_hash update;                   /* equals the subject */
    uint64_t entry;                             /* of this ledger: the first update statement of that file */
    char reason[KEDGE_ST_REASON_MAX + 1];       /* not empty */
    char authority[KEDGE_ST_AUTHORITY_MAX + 1]; /* who ordered it, by what right; not empty */
};

/* By the tenant's admin key: who answers for a site or for the tenant, by a salted commitment
 * (chain/statement/contact.h); the newest one about somebody counts. Subject: the commitment. */
struct kedge_st_contact {
    struct kedge_id tenant, about; /* about: a site; empty: the tenant */
    struct kedge_hash commitment;  /* equals the subject */
};

/* By the tenant's admin key: what a site is, in words that jobs may need (common/base/labels.h); the one with
 * the highest number counts, and before the first a site has no labels. Subject: SHA-256(statement_key). */
struct kedge_st_site_labels {
    struct kedge_id tenant, site;
    struct kedge_public_key statement_key;     /* the site's, in force */
    uint32_t number;                           /* 1, 2, …: so many of this site there are with this one */
    char labels[KEDGE_ST_LABELS_TEXT_MAX + 1]; /* all that it has from here on */
};

/* First entry of the main chain. Subject: SHA-256(main_log_key). */
struct kedge_st_policy {
    char deployment[KEDGE_ST_NAME_MAX + 1];
    struct kedge_public_key statement_key, main_log_key;
};

/* What the next four begin with. Who must sign them, and what they do, is said in chain/statement/mainbook.h.
 */
struct kedge_st_main_bound {
    char deployment[KEDGE_ST_NAME_MAX + 1]; /* for people … */
    struct kedge_public_key main_log_key;   /* … and the main chain that it is for, which is the only one */
    uint64_t before;                        /* it stands there before this entry, or nowhere */
};

/* Subject: SHA-256(public_key). */
struct kedge_st_role_granted {
    struct kedge_st_main_bound of;
    enum kedge_chain_role role;
    struct kedge_id name;
    struct kedge_public_key public_key;
};

/* Subject: SHA-256(public_key). */
struct kedge_st_role_revoked {
    struct kedge_st_main_bound of;
    enum kedge_chain_role role;
    struct kedge_public_key public_key;
    char reason[KEDGE_ST_REASON_MAX + 1];
};

/* The coordinator's key for statements. Subject: SHA-256(new_key). */
struct kedge_st_statement_key_rotated {
    struct kedge_st_main_bound of;
    struct kedge_public_key old_key, new_key;
    char reason[KEDGE_ST_REASON_MAX + 1];
};

/* Subject: SHA-256(main_log_key). */
struct kedge_st_policy_changed {
    struct kedge_st_main_bound of;
    uint64_t number;       /* 1, 2, …: so many changes of the policy there are with this one */
    uint32_t admin_quorum; /* organisations that approve statements such as these; 0: the coordinator's word
                              is enough */
};

/* By the statement key. Subject: id. What the operator lets a tenant have; 0: what every tenant may. The
 * numbers of a tenant's quotas count from 1 without gaps; the newest is in force. */
struct kedge_st_quota_set {
    struct kedge_hash id; /* the tenant, salted */
    uint64_t number;
    enum kedge_tenant_standing standing;
    uint32_t sites;  /* that were ever enrolled: their places stay taken */
    uint32_t jobs;   /* that go on and name the tenant */
    uint32_t tokens; /* for sites, that were ever made */
    uint32_t statements_per_s;
    uint64_t bytes_per_s; /* of its sites' uploads */
    char reason[KEDGE_ST_REASON_MAX + 1];
};

struct kedge_st_first_model {
    uint32_t group; /* ascending */
    struct kedge_hash model;
};

/* In the statements of a job's life `time_ms` is the coordinator's clock when it made the statement: unix
 * time in milliseconds, at most KEDGE_ST_COUNT_MAX; optional, 0: not stated. Nobody can check it. */

enum kedge_promise_source {
    KEDGE_PROMISE_DECLARED, /* the spec */
    KEDGE_PROMISE_MEDIAN,   /* the median of the other jobs with deadlines */
    KEDGE_PROMISE_TIMEOUT,  /* the time after which a round closes */
};

/* job-admitted, job-refused: what was decided of a job with a deadline, and from what. Subject: digest of the
 * job spec. */
struct kedge_st_job_admission {
    struct kedge_id job;
    uint64_t main_size;      /* what was known of other jobs: the main chain's first so many entries */
    struct kedge_hash queue; /* of the jobs that were promised a deadline, see round/close/promise.h … */
    uint32_t queued;         /* … and how many they are */
    uint64_t round_ms;       /* that its rounds are taken to last … */
    enum kedge_promise_source round_from; /* … and who says so */
    uint64_t deadline_ms;                 /* unix time */
    uint64_t guard_ms;                    /* optional, 0: none; coordinator/schedule/deadline.h */
    uint32_t share;                       /* admitted: sixteenths of its sites' time that it needs */
    uint32_t too_large; /* refused: 1: by the guard; 0: not everybody would end in time … */
    uint64_t
        earliest_ms; /* … and the nearest deadline that was found possible, unix time; optional, 0: none */
    uint64_t time_ms;
};

/* Subject: digest of the job spec. tenants: salted ids, ascending. */
struct kedge_st_job_opened {
    struct kedge_id job;
    uint64_t parameters; /* values of the model */
    struct kedge_hash initial_model;
    struct kedge_hash base_model; /* optional, zero: none; the whole model, of which only a part is trained */
    uint32_t
        first_model_count; /* optional, 0: every group begins with the initial model; else of groups 1 … */
    struct kedge_st_first_model first_models[KEDGE_GROUPS_MAX - 1];
    uint32_t tenant_count;
    struct kedge_hash tenants[KEDGE_ST_TENANTS_MAX];
    uint64_t time_ms;
};

struct kedge_st_round_tenant {
    struct kedge_hash id; /* salted; ascending */
    uint32_t candidates, selected;
    struct kedge_hash list; /* input list blob */
};

/* Subject: digest of the job spec. main_size and main_root: the latest main checkpoint, before this entry. */
struct kedge_st_round_opened {
    struct kedge_id job;
    uint32_t round;
    uint32_t draw; /* 0: the first of this round; else it stands in the place of the one before */
    enum kedge_train_kind round_kind;
    uint64_t seed;
    uint64_t main_size;
    struct kedge_hash main_root;
    uint64_t time_ms;
    uint32_t tenant_count;
    struct kedge_st_round_tenant tenants[KEDGE_ST_TENANTS_MAX];
};

struct kedge_st_aggregate_tenant {
    struct kedge_hash id; /* salted; ascending */
    uint32_t accepted;
    uint64_t weight_sum;
    uint32_t refused;
    struct kedge_hash list; /* input list blob */
};

/* Subject: digest of the result. */
struct kedge_st_aggregate {
    struct kedge_id job;
    uint32_t round, group;
    char rule[KEDGE_ST_RULE_MAX + 1];
    uint32_t scale; /* bits of the fixed point */
    uint64_t weight_sum;
    uint32_t count;
    struct kedge_hash base;
    uint32_t tenant_count;
    struct kedge_st_aggregate_tenant tenants[KEDGE_ST_TENANTS_MAX];
};

struct kedge_st_step_group {
    uint32_t group; /* ascending */
    struct kedge_hash before, aggregate, after;
    struct kedge_hash direction; /* all zero where the rule has none */
    /* Optional, all zero where there is none: the model that the server's optimiser made, where that is not
     * `after`; the optimiser's state before (zeros: it begins) and after. */
    struct kedge_hash stepped, state_before, state_after;
    struct kedge_hash
        made; /* the direction with which the group was made; all zero: `direction` is that one */
    /* Where this close cut groups in two or made one of several, else zero. Groups are numbered from 1 in the
     * next three, so that 0 is none. */
    struct kedge_hash whole; /* of a group that was cut: its direction before */
    uint32_t split_of;       /* of a part that was cut off: from which group */
    uint32_t merged_into;    /* of a group that has become part of another one, then and ever after */
    uint32_t tried_with;     /* of a group whose sites are to judge whether it becomes one with this … */
    struct kedge_hash trial; /* … by this model */
};

/* Subject: `after` of the first group listed. */
struct kedge_st_step {
    struct kedge_id job;
    uint32_t round;
    char rule[KEDGE_ST_RULE_MAX + 1];
    double eta;
    double drift; /* how far directions that were estimated again are from those that the groups were made
                     with (grouping/shift.h); 0: not at all, or none was estimated */
    /* optional, of a job with a budget, in millionths of its unit: what this round's updates are charged, and
     * what all rounds so far are */
    uint64_t charged, spent;
    uint32_t personal; /* 1: sites are served best by what their own training makes of their group's model */
    uint64_t time_ms;
    uint32_t group_count; /* at least 1 */
    struct kedge_st_step_group groups[KEDGE_GROUPS_MAX];
    char classes[KEDGE_CLASS_NAMES_ROOM]; /* optional: what the updates of this round name together */
};

/* What evaluations of the round's models say of the job's targets: all that the tenants' ledgers hold up to
 * their last checkpoints before this entry. Subject: digest of the job spec. */
struct kedge_st_round_tested {
    struct kedge_id job;
    uint32_t round;
    uint32_t evaluations;
    uint64_t samples, correct;
    uint32_t held,
        held_last; /* optional: how often in a row the first target and the last of two are reached */
    uint32_t tier; /* so many of the targets are; all: the job ends */
    uint64_t time_ms;
};

/* Subject: digest of the model. file is a name without folders. */
struct kedge_st_release {
    struct kedge_id job;
    uint32_t round, group;
    char file[KEDGE_ST_NAME_MAX + 1];
    uint32_t
        tier; /* optional, 0: the job's last models; else those with which so many targets were reached */
};

/* Subject: digest of the job spec. */
struct kedge_st_job_closed {
    struct kedge_id job;
    uint32_t rounds;
    enum kedge_job_outcome outcome;
    char reason[KEDGE_ST_REASON_MAX + 1];
    uint64_t time_ms;
};

/* Subject: SHA-256 of the refused envelope. */
struct kedge_st_closed {
    struct kedge_id job;
    uint32_t round;
    struct kedge_id tenant, site;
    char reason[KEDGE_ST_CLOSED_REASON_MAX + 1];
};

/* By the coordinator, to the site: its update is turned away. Subject: SHA-256 of the refused envelope.
 * main_size and main_root: the main chain as the coordinator knew it then; it says which statement key was in
 * force and which jobs and rounds were open. */
struct kedge_st_refused {
    struct kedge_id job;
    uint32_t round, group;
    enum kedge_train_kind update_kind;
    struct kedge_id tenant, site;
    struct kedge_hash update; /* the digest that the refused statement names */
    char code[KEDGE_ST_CODE_MAX + 1];
    char reason[KEDGE_ST_REASON_MAX + 1];
    uint32_t listed; /* 1: an input list of the round says so, unless a later update of the site is there */
    uint64_t main_size;
    struct kedge_hash main_root;
    uint64_t kept_until_s; /* optional, unix time: so long envelope and file are kept; 0: they are not */
};

/* Where a statement of a tenant belongs, and nowhere else: chain/statement/statement_position.h says how it
 * is judged. In the predicate of every kind that a tenant's admins, sites or keys sign about themselves. */
struct kedge_st_position {
    struct kedge_public_key main_log_key; /* of the deployment, by the key of its main chain */
    uint64_t before;                      /* the statement stands before this entry, or nowhere */
    uint64_t seen_size;          /* what its signer has seen of the tenant's ledger: so many entries … */
    struct kedge_hash seen_root; /* … with this root */
};

/* About 12 KiB: keep few on a stack. */
struct kedge_statement {
    enum kedge_statement_kind kind;
    struct kedge_hash subject;
    struct kedge_st_position at; /* kinds that have one (kedge_statement_has_position); else zeros */
    union {
        struct kedge_st_key key;
        struct kedge_st_key_added key_added;
        struct kedge_st_key_rotated key_rotated;
        struct kedge_st_key_revoked key_revoked;
        struct kedge_st_key_recovered key_recovered;
        struct kedge_st_site_enrolled site_enrolled;
        struct kedge_st_site_revoked site_revoked;
        struct kedge_st_witness_enrolled witness_enrolled;
        struct kedge_st_witness_revoked witness_revoked;
        struct kedge_st_job_joined job_joined;
        struct kedge_st_job_left job_left;
        struct kedge_st_update update;
        struct kedge_st_evaluation evaluation;
        struct kedge_st_group_assigned group_assigned;
        struct kedge_st_erased erased;
        struct kedge_st_contact contact;
        struct kedge_st_site_labels site_labels;
        struct kedge_st_policy policy;
        struct kedge_st_role_granted role_granted;
        struct kedge_st_role_revoked role_revoked;
        struct kedge_st_statement_key_rotated statement_key_rotated;
        struct kedge_st_policy_changed policy_changed;
        struct kedge_st_quota_set quota_set;
        struct kedge_st_job_admission job_admission;
        struct kedge_st_job_opened job_opened;
        struct kedge_st_round_opened round_opened;
        struct kedge_st_aggregate aggregate;
        struct kedge_st_step step;
        struct kedge_st_round_tested round_tested;
        struct kedge_st_release release;
        struct kedge_st_job_closed job_closed;
        struct kedge_st_closed closed;
        struct kedge_st_refused refused;
    } u;
};

/* "site-enrolled", …; static storage. */
const char *kedge_statement_kind_name(enum kedge_statement_kind kind);
const char *kedge_group_how_name(enum kedge_group_how how); /* "cold-start", … */

/* Does a statement of this kind name its position (st->at)? */
bool kedge_statement_has_position(enum kedge_statement_kind kind);
/* Do both say the same, without regard to their position and their signers? False also without memory. */
bool kedge_statement_says_same(const struct kedge_statement *a, const struct kedge_statement *b);

/* Sets st->subject where the kind derives it from its fields (key, key-*, site-*, witness-*, group-assigned,
 * erased, policy, role-*, step);
 * other kinds keep the subject that the caller gave. Encoding does this by itself. */
void kedge_statement_derive_subject(struct kedge_statement *st);
/* Sorts the array of the kind, if it has one, into the ascending order that records demand. */
void kedge_statement_sort(struct kedge_statement *st);

/* Appends the payload: one line of JSON, fields in the table's order. KEDGE_E_ARG names the field out of
 * range. */
KEDGE_NODISCARD int kedge_statement_encode(const struct kedge_statement *st, struct kedge_buf *ret_payload,
                                           struct kedge_diag *reterr);
/* KEDGE_E_FORMAT (names the field), KEDGE_E_TOO_LONG, KEDGE_E_NOMEM. Verifies nothing. */
KEDGE_NODISCARD int kedge_statement_decode(struct kedge_view payload, struct kedge_statement *ret_st,
                                           struct kedge_diag *reterr);

/* Encodes, signs, appends the envelope: these bytes are the ledger entry. */
KEDGE_NODISCARD int kedge_statement_sign(const struct kedge_statement *st, const struct kedge_key_pair *pair,
                                         struct kedge_buf *ret_envelope, struct kedge_diag *reterr);
/* The same with another signature, for the kinds that may bear several. Errors of kedge_dsse_add. */
KEDGE_NODISCARD int kedge_statement_cosign(struct kedge_view envelope, const struct kedge_key_pair *pair,
                                           struct kedge_buf *ret_envelope, struct kedge_diag *reterr);

/* An entry of a ledger, taken apart and verified by nobody yet: its statement, and who claims to have signed.
 * Kinds that one key signs have one signature. */
struct kedge_signed_statement {
    struct kedge_buf payload; /* what is signed; owned: deinit it, also after an error */
    struct kedge_dsse_entry signatures[KEDGE_DSSE_SIGNATURES_MAX];
    uint32_t signature_count;
};
KEDGE_NODISCARD int kedge_statement_read(struct kedge_view envelope, struct kedge_statement *ret_st,
                                         struct kedge_signed_statement *ret, struct kedge_diag *reterr);

/* Verifies an envelope by one key and decodes what it signed: signature first, content second. KEDGE_E_VERIFY
 * and the errors of decoding. */
KEDGE_NODISCARD int kedge_statement_open(struct kedge_view envelope, const struct kedge_public_key *key,
                                         struct kedge_statement *ret_st, struct kedge_diag *reterr);

#endif
