/* Internal to chain/export: a verified record, opened for reading: which jobs and rounds there are, and where
 * their statements stand. Only indexes are kept; statements are read when they are needed. */
#ifndef KEDGE_CHAIN_EXPORT_RECORD_H
#define KEDGE_CHAIN_EXPORT_RECORD_H

#include "chain/audit/audit.h"
#include "chain/export/export.h"
#include "chain/state/state.h"
#include "chain/statement/input_list.h"
#include "chain/statement/statement.h"
#include "job/job_spec.h"

#define KEDGEI_EX_NONE UINT64_MAX

struct kedgei_ex_log {
    struct kedge_state_log log;
    bool open;
    struct kedge_hash salted;
    char name[KEDGE_HASH_HEX_LEN + 1]; /* "main", the tenant's name, or 12 digits of its salted id if it is
                                          not to be named */
    bool permitted;                    /* its statements may be exported; always true of the main chain */
    struct kedge_buf note;             /* the checkpoint under which its entries are proved; empty: none */
    uint64_t size;                     /* of that checkpoint */
    uint64_t anchor;                   /* of a tenant: index in the main chain of that checkpoint, or none */
};

/* Times are the coordinator's clock, unix time in milliseconds; 0: not stated. */
struct kedgei_ex_round {
    uint32_t number, aggregate_count;
    bool pretrain;         /* its updates make groups */
    uint64_t opened, step; /* indexes in the main chain, or none */
    uint64_t aggregates[KEDGE_GROUPS_MAX];
    uint64_t opened_ms, closed_ms, used, refused; /* updates */
};

/* What an organisation gave to a job, as aggregate statements say. */
struct kedgei_ex_part {
    struct kedge_hash id; /* salted */
    uint64_t used, refused;
    double weight; /* of its training updates, over all rounds and groups */
};

/* A site of a permitted tenant. */
struct kedgei_ex_site {
    uint32_t tenant; /* of the record's tenants */
    struct kedge_id id;
    uint64_t sent, used, samples; /* updates; samples that the last one was trained with */
};

/* Sums over the permitted tenants' statements. */
struct kedgei_ex_metrics {
    uint32_t round; /* the latest that was evaluated */
    uint64_t sites, samples, correct;
    double loss_sum; /* loss times samples */
};

/* Rounds that a picture of a job has room for; of more, each point stands for several. */
enum { KEDGEI_EX_POINTS_MAX = 240 };

struct kedgei_ex_job {
    struct kedge_id id;
    struct kedge_hash spec_digest, initial_model, base_model; /* base_model: zero without one */
    struct kedge_job_spec spec;
    uint64_t opened, closed;
    uint64_t opened_ms, closed_ms;
    enum kedge_job_outcome outcome;       /* of a job that is closed, with … */
    char reason[KEDGE_ST_REASON_MAX + 1]; /* … what the coordinator says about it */
    uint32_t part_count;
    struct kedgei_ex_part *parts; /* ascending by salted id, as job-opened has them */
    struct kedgei_ex_site *sites; /* ascending by tenant and name */
    size_t site_count, site_cap;
    size_t points;                       /* 0 until something is evaluated */
    struct kedgei_ex_metrics *evaluated; /* points × groups, by point */
    struct kedgei_ex_round *rounds;      /* ascending */
    size_t round_count, round_cap;
    uint64_t
        releases[KEDGE_GROUPS_MAX]; /* index in the main chain, or none; only those that were asked for */
    const char *files[KEDGE_GROUPS_MAX]; /* where the model was found by the caller, or NULL */
    size_t release_count;
    struct kedgei_ex_metrics metrics[KEDGE_GROUPS_MAX];
    double joules;
    bool joules_known;    /* measured or modelled by every update that was read … */
    bool joules_modelled; /* … by one of them not measured */
    uint64_t updates;     /* that were read */
};

struct kedgei_ex_record {
    char state[KEDGE_PATH_MAX], models[KEDGE_PATH_MAX]; /* models empty: no such folder */
    char deployment[KEDGE_DEPLOYMENT_MAX + 1];
    struct kedgei_ex_log main;
    struct kedgei_ex_log *tenants; /* ascending by name */
    uint32_t tenant_count;
    struct kedgei_ex_job **jobs;
    uint32_t job_count;
    uint64_t policy;     /* index of the policy statement */
    uint64_t *rotations; /* indexes of the statement key's rotations, ascending */
    uint32_t rotation_count;
    bool all_permitted;
};

/* ---- summary.c: who gave what to a job, when, and how good its models were ---- */
/* From statements of the main chain about this job; job-opened first. */
KEDGE_NODISCARD int kedgei_ex_job_take(struct kedgei_ex_job *job, const struct kedge_statement *st);
/* From a statement of a permitted tenant's ledger about this job. */
KEDGE_NODISCARD int kedgei_ex_job_sum(struct kedgei_ex_job *job, uint32_t tenant,
                                      const struct kedge_statement *st);
/* An update of that site was used. */
KEDGE_NODISCARD int kedgei_ex_job_used(struct kedgei_ex_job *job, uint32_t tenant,
                                       const struct kedge_id *site);
/* Groups that the job may have, at least 1. */
uint32_t kedgei_ex_job_groups(const struct kedgei_ex_job *job);
void kedgei_ex_job_deinit(struct kedgei_ex_job *job);

/* Opens the record beside nobody (copy) or beside a coordinator that writes it, as far as `report`, which
 * says yes, goes. deinit in every case. KEDGE_E_VERIFY: it is not the record of that report. */
KEDGE_NODISCARD int kedgei_ex_record_open(const char *dir, const struct kedge_export_options *options,
                                          const struct kedge_audit_report *report,
                                          struct kedgei_ex_record *ret, struct kedge_diag *reterr);
void kedgei_ex_record_deinit(struct kedgei_ex_record *r);

/* The bytes of an entry, appended; what they state (a statement, unverified: the record was). */
KEDGE_NODISCARD int kedgei_ex_entry(struct kedgei_ex_log *log, uint64_t index, struct kedge_buf *ret,
                                    struct kedge_diag *reterr);
KEDGE_NODISCARD int kedgei_ex_read(struct kedgei_ex_log *log, uint64_t index, struct kedge_statement *ret,
                                   struct kedge_diag *reterr);
/* The tenant with that salted id, or NULL. */
struct kedgei_ex_log *kedgei_ex_tenant(struct kedgei_ex_record *r, const struct kedge_hash *salted);
/* Its input list; deinit afterwards. */
KEDGE_NODISCARD int kedgei_ex_list(struct kedgei_ex_log *tenant, const struct kedge_hash *digest,
                                   struct kedge_input_list *ret, struct kedge_diag *reterr);

#endif
