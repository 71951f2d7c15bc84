/* Inside of `kedge poc`: the federation on this machine. */
#ifndef KEDGE_CLI_POC_POC_H
#define KEDGE_CLI_POC_POC_H

#include "cli/cli.h"
#include "cli/sim/active_clock.h"
#include "common/base/os/process.h"
#include "sim/partition/clients.h"

enum {
    KEDGE_POC_TENANTS_MAX = 16,
    KEDGE_POC_SITES_MAX = 64,
    KEDGE_POC_ROUNDS_MAX = 100000,
    KEDGE_POC_GROUPS_MAX = 10,
    KEDGE_POC_MIXING_MAX = 1000,  /* of job specs */
    KEDGE_POC_DIR_MAX = 107 - 22, /* bytes: a Unix socket's path, less "/state/coordinator.ipc" */
};

struct kedge_poc_child {
    char name[KEDGE_PATH_MAX]; /* for messages: "kedge-client org-a/site-1" */
    char program[KEDGE_PATH_MAX], log[KEDGE_PATH_MAX], folder[KEDGE_PATH_MAX], token[KEDGE_PATH_MAX];
    struct kedge_process process;
    uint64_t started_ms, started_ns; /* by the system's clock; by kedge_poc_now_ns */
    uint32_t restarts;
    uint32_t early_ends; /* in a row, each soon after its start */
};

struct kedge_poc {
    struct kedge_cli *cli;
    char dir[KEDGE_PATH_MAX], state[KEDGE_PATH_MAX], bin[KEDGE_PATH_MAX];
    uint64_t tenants, sites, rounds, groups, seed;
    const char *dataset, *partition;
    const char *mixing;                   /* the grouped job's rate, decimal; "": the default of job specs */
    const char *strategy, *rule, *server; /* keys of job specs, "": their defaults */
    /* Own clients (poc_clients.c); data "": a data set of Kedge's is split. */
    const char *data, *client, *label, *group, *missing, *standardize;
    json_t *own; /* what was found in them, NULL: none */
    struct kedge_id tenant_ids[KEDGE_POC_TENANTS_MAX];
    struct kedge_key_pair admins[KEDGE_POC_TENANTS_MAX];
    struct kedge_poc_child coordinator, *clients; /* tenants × sites */
    uint64_t restarts;
    struct kedge_active_clock clock; /* of all deadlines: a pause of this process brings none */
    uint64_t first_round_ms, begin_ms;
    uint32_t inputs, classes;
    /* For measuring: another model than the data's own, and another trainer than kedge-train. */
    uint64_t model_inputs, model_classes; /* 0: the data's */
    bool insecure;                        /* plain tcp:// in place of TLS */
    bool plain_blobs;                     /* updates are not encrypted at rest */
    const char *trainer;                  /* absolute path; "": kedge-train */
    uint64_t first_seen_ms,
        last_seen_ms; /* of the first job: when rounds were first seen closed, and its end */
    uint64_t first_seen_rounds;
};

/* ---- poc_setup.c ---- */
/* DIR/poc.json keeps the parameters: the same DIR again goes on with them. */
KEDGE_NODISCARD int kedge_poc_params(struct kedge_poc *p, struct kedge_diag *d);
KEDGE_NODISCARD int kedge_poc_state(struct kedge_poc *p, struct kedge_diag *d);
/* Splits the data set: DIR/sites/T/S/data and policy.json. */
KEDGE_NODISCARD int kedge_poc_data(struct kedge_poc *p, struct kedge_diag *d);
KEDGE_NODISCARD int kedge_poc_tenants(struct kedge_poc *p, struct kedge_diag *d);
/* Writes DIR/trust.json, and the sites' copies. */
KEDGE_NODISCARD int kedge_poc_trust(struct kedge_poc *p, bool sites, struct kedge_diag *d);
KEDGE_NODISCARD int kedge_poc_tokens(struct kedge_poc *p, struct kedge_diag *d);

/* ---- poc_clients.c ---- */
/* The site's policy.json; binding: JSON of its data. */
KEDGE_NODISCARD int kedge_poc_put_policy(const struct kedge_poc *p, uint32_t site, struct kedge_view binding,
                                         struct kedge_diag *d);
/* --data and its companions, --dataset, --partition; 2 after a usage error, else 0. */
KEDGE_NODISCARD int kedge_poc_take_data(struct kedge_cli *c, struct kedge_poc *p);
/* Of a new folder: how many sites and groups there are, and what the first job is to know: p->own. */
KEDGE_NODISCARD int kedge_poc_read_clients(struct kedge_poc *p, struct kedge_diag *d);
/* p->own, from this or an earlier run, as settings. */
KEDGE_NODISCARD int kedge_poc_take_clients(struct kedge_poc *p, struct kedge_diag *d);
/* DIR/sites/T/S/data and policy.json, and sites.csv. */
KEDGE_NODISCARD int kedge_poc_put_clients(const struct kedge_poc *p, struct kedge_diag *d);
/* The keys of the job's spec that the data want, each with a comma in front. */
void kedge_poc_put_client_keys(const struct kedge_poc *p, struct kedge_buf *out);

/* ---- poc_run.c ---- */
KEDGE_NODISCARD int kedge_poc_start(struct kedge_poc *p, struct kedge_poc_child *child, struct kedge_diag *d);
void kedge_poc_stop(struct kedge_poc *p);
uint64_t kedge_poc_now_ns(struct kedge_poc *p);
/* After a request that ended with *err: true when it is worth repeating, since the coordinator is away for a
 * moment and less than timeout_ms have gone since begun_ns (kedge_poc_now_ns). A coordinator that ended in
 * the meantime has the whole time again from its new start: how often that may be is a matter of restarts.
 * Starts again what died; *err tells when that is no use. */
KEDGE_NODISCARD bool kedge_poc_wait(struct kedge_poc *p, uint64_t begun_ns, uint32_t timeout_ms, int *err,
                                    struct kedge_diag *d);
/* As kedge_cli_admin, but waits out a coordinator that is being started again, as kedge_poc_wait does. */
KEDGE_NODISCARD int kedge_poc_ask(struct kedge_poc *p, json_t *request, uint32_t timeout_ms, json_t **ret,
                                  struct kedge_diag *d);
/* The keys of the job's spec that --strategy, --rule and --server choose, each with a comma in front. A
 * strategy that groups by pre-trainings is the grouped job's alone; the other has the default. */
void kedge_poc_put_choices(const struct kedge_poc *p, bool grouped, struct kedge_buf *out);
void kedge_poc_put_groups(const struct kedge_poc *p, struct kedge_buf *out); /* those of a grouped job */
/* KEDGE_E_USAGE: --strategy, --rule, --server, --groups do not make a job. */
KEDGE_NODISCARD int kedge_poc_check_choices(const struct kedge_poc *p, struct kedge_diag *d);
KEDGE_NODISCARD int kedge_poc_sign_in(struct kedge_poc *p, struct kedge_diag *d);
/* Submits (or finds) the job, joins it for all tenants, shows progress until it ends; *ret is its job.show.
 */
KEDGE_NODISCARD int kedge_poc_job(struct kedge_poc *p, const char *name, bool grouped, json_t **ret,
                                  struct kedge_diag *d);

#endif
