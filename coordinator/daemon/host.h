/* Inside of kedge-coordinator: what the files of this room share.
 *
 * Threads. The loop thread owns everything in struct kedge_host unless said otherwise; it takes items from
 * one queue. Workers run the heavy parts (signatures, file I/O, aggregation) on values that the loop handed
 * over, and post their completion back as an item. Committers (one thread per ledger) call back from their
 * thread and only post items. So does the network's. There are no locks but those of the queues. */
#ifndef KEDGE_COORDINATOR_DAEMON_HOST_H
#define KEDGE_COORDINATOR_DAEMON_HOST_H

#include <jansson.h>
#include <pthread.h>

#include "chain/compute/compute.h"
#include "chain/dsse.h"
#include "chain/job_spec.h"
#include "chain/state/state.h"
#include "chain/statement.h"
#include "chain/store/committer.h"
#include "common/base/os/queue.h"
#include "common/net/server.h"
#include "common/wire/messages.h"
#include "coordinator/core/coord.h"
#include "coordinator/daemon/config.h"

struct kedge_host;

/* ---- items and work ---- */

/* Anything that the loop does next. `handle` runs on the loop thread and frees the item's owner. */
struct kedge_item {
    void (*handle)(struct kedge_host *h, struct kedge_item *item);
};
/* Work for a worker thread: `run` there, then item.handle on the loop. First member so that it can be cast
 * back. */
struct kedge_work {
    struct kedge_item item;
    void (*run)(struct kedge_host *h, struct kedge_work *work);
};
/* From any thread; waits for room. */
void kedge_host_post(struct kedge_host *h, struct kedge_item *item);
/* From the loop thread. Never fails: a full queue makes the loop wait, workers never wait for the loop's
 * queue. */
void kedge_host_work(struct kedge_host *h, struct kedge_work *work);

/* ---- members ---- */

enum { KEDGE_SITE_INDEX_SIZE = 4 * KEDGE_SITES_MAX }; /* open addressing by TLS key */

struct kedge_tenant {
    struct kedge_id id;
    struct kedge_public_key admin_key;
    struct kedge_hash salted;
    struct kedge_state_log log; /* reads from any thread; writes through the committer */
    struct kedge_committer *committer;
    uint64_t anchored_size; /* size of its last checkpoint in the main chain */
};

struct kedge_site_entry {
    uint32_t tenant;
    struct kedge_id id;
    struct kedge_public_key tls_key, statement_key;
    bool active;           /* signed in and not signed out */
    uint64_t last_seen_ms; /* wall clock */
    /* The one upload of a site. `upload_busy`: a worker has it. */
    bool upload_busy, upload_done;
    struct kedge_upload *upload;
    struct kedge_hash upload_digest;
    int upload_err; /* why a piece could last not be stored; the core knows of it */
};

/* ---- submissions ---- */

struct kedge_ticket {
    bool used;
    uint32_t request, site, job;
    struct kedge_statement *st; /* owned: update or evaluation */
    struct kedge_buf envelope;
    struct kedge_hash envelope_hash; /* SHA-256 of the bytes */
    uint64_t leaf;
    bool blob_committed;
};

/* ---- jobs ---- */

enum { KEDGE_HISTORY_MAX = 4096 }; /* rounds that `job show` can tell of; older ones are in the record */

struct kedge_group_metric {
    uint64_t samples, correct;
    double loss_sum; /* sum of loss · samples */
    uint32_t sites;
};
struct kedge_round_history {
    uint32_t round;
    uint32_t groups, selected, accepted, refused;
    uint32_t members[KEDGE_GROUPS_MAX]; /* accepted inputs per group */
    uint64_t opened_ms, closed_ms;      /* wall clock; 0: before this process */
    uint64_t main_size;
    uint64_t statements;                                 /* in all logs together when it closed */
    struct kedge_group_metric metrics[KEDGE_GROUPS_MAX]; /* of the models that the round gave */
};

/* What CLOSE_ROUND computed and MAIN_ROUND_CLOSED records. Kept until durable. */
struct kedge_round_result {
    uint32_t round, groups;
    enum kedge_task_kind kind;
    struct kedge_hash before[KEDGE_GROUPS_MAX], aggregate[KEDGE_GROUPS_MAX], after[KEDGE_GROUPS_MAX];
    struct kedge_hash directions[KEDGE_GROUPS_MAX];
    bool trained[KEDGE_GROUPS_MAX];
    bool mixed;
    uint32_t aggregate_count;
    struct kedge_st_aggregate *aggregates; /* aggregate_count, owned */
    uint32_t assigned_count;
    uint32_t *assigned_sites, *assigned_groups; /* owned */
    uint32_t members[KEDGE_GROUPS_MAX];
};

/* Statements on their way into the main chain: the same bytes again when the outcome was unknown. */
struct kedge_main_batch {
    struct kedge_buf bytes;
    struct kedge_ledger_append items[KEDGE_TENANTS_MAX];
    char keys[KEDGE_TENANTS_MAX][KEDGE_IDEM_KEY_MAX + 1];
    size_t offsets[KEDGE_TENANTS_MAX], lens[KEDGE_TENANTS_MAX];
    struct kedge_hash *refs; /* owned, all items' together */
    size_t ref_first[KEDGE_TENANTS_MAX], ref_counts[KEDGE_TENANTS_MAX], ref_count, ref_cap;
    uint64_t tenant_sizes[KEDGE_TENANTS_MAX]; /* new anchored sizes, by tenant handle; 0: unchanged */
    size_t count;
};

struct kedge_job {
    bool used;
    bool unopened; /* restored, but the main chain does not know it yet */
    uint32_t slot;
    struct kedge_job_spec spec;
    struct kedge_hash spec_digest, initial_model;
    uint32_t spec_len;
    struct kedge_layout layout;
    uint64_t model_len, update_len;
    int32_t limit; /* largest |q| */
    enum kedge_job_state state;
    int reason;
    int stored_state; /* what its record says, -1: no record yet */
    uint64_t created_ms;
    char token_hash[KEDGE_HASH_HEX_LEN + 1]; /* of the submit token, "" without */
    bool *joined;                            /* by tenant handle, KEDGE_TENANTS_MAX */
    uint32_t model_count; /* after the last closed round; of an ended job the released ones */
    struct kedge_hash models[KEDGE_GROUPS_MAX];
    struct kedge_hash directions[KEDGE_GROUPS_MAX];
    struct kedge_hash *pretrain; /* per site: digest of its accepted pre-training update */
    uint32_t round;              /* of the open or last round */
    bool has_refusals;           /* stored by this process, of refused_round */
    uint32_t refused_round;
    struct kedge_round_history *history; /* ring of KEDGE_HISTORY_MAX by round */
    struct kedge_round_result *result;   /* between ROUND_COMPUTED and the durable close */
    struct kedge_main_batch *batch;      /* between the first try of a main append and its success */
    struct kedge_coord_job_params params;
};

struct kedge_request_slot {
    struct kedge_net_request *req; /* NULL: free */
    uint32_t site, ticket, next_free;
};

enum { KEDGE_REQUESTS_MAX = KEDGE_NET_CONTEXTS_MAX, KEDGE_TICKETS_MAX = 2 * KEDGE_SITES_MAX };

struct kedge_host {
    struct kedge_config config;
    char state[KEDGE_PATH_MAX];
    struct kedge_key_pair tls_key, statement_key;
    struct kedge_state_log main;
    struct kedge_committer *main_committer;
    struct kedge_kv *kv; /* coordinator.lmdb */
    struct kedge_tenant *tenants;
    uint32_t tenant_count;
    struct kedge_site_entry *sites;
    uint32_t site_count;
    uint32_t *site_index;   /* KEDGE_SITE_INDEX_SIZE */
    struct kedge_job *jobs; /* KEDGE_JOBS_MAX */
    struct kedge_ticket *tickets;
    uint32_t ticket_hint;
    struct kedge_request_slot *requests;
    uint32_t request_free;
    void *coord_mem;
    struct kedge_coord *coord;
    struct kedge_coord_effects fx;
    struct kedge_queue *queue, *work_queue;
    struct kedge_net_server *server;
    pthread_t *workers;
    unsigned worker_count;
    volatile int stop; /* set on the loop thread */
    int fatal;         /* a kedge_err that ends the process */
};

/* ---- loop.c ---- */
/* Steps the core and executes its effects until none are left. ev->now_ns is set here. */
void kedge_host_step(struct kedge_host *h, struct kedge_coord_event *ev);
/* The same after what is going on now: for effects whose outcome is known at once. */
void kedge_host_post_event(struct kedge_host *h, const struct kedge_coord_event *ev);
int kedge_host_run(struct kedge_host *h);
/* Ends the process after the current item: storage is damaged or the outcome can not be known. */
void kedge_host_fail(struct kedge_host *h, int err, const char *what);

/* Logs why a commit failed, for callbacks that keep its code only; nothing when it did not. Any thread. */
void kedge_host_log_commit(const struct kedge_commit_result *result);
/* The outcome of a commit, to be called by its callback, with what operators can act on: UNKNOWN says only
 * that the entries are stored without a signed checkpoint, so the ledger is asked what keeps it from signing.
 * Stays UNKNOWN when nothing does any more. For the core every failure but REVOKED is of unknown outcome. */
int kedge_host_commit_err(struct kedge_ledger *l, const struct kedge_commit_result *result);

/* ---- effects.c ---- */
void kedge_host_execute(struct kedge_host *h, const struct kedge_coord_effect *fx);

/* ---- members.c ---- */
uint32_t kedge_host_tenant_find(const struct kedge_host *h, const struct kedge_id *id); /* KEDGE_COORD_NONE */
uint32_t kedge_host_site_find(const struct kedge_host *h, uint32_t tenant, const struct kedge_id *id);
uint32_t kedge_host_site_by_key(const struct kedge_host *h, const struct kedge_public_key *tls_key);
/* Opens its log and tells the core. The admin key is that of its ledger's first entry;
 * KEDGE_E_NOT_FOUND: there is none yet, a crash came between the making of the ledger and that entry. */
KEDGE_NODISCARD int kedge_host_tenant_load(struct kedge_host *h, const struct kedge_id *id,
                                           struct kedge_diag *d);
/* Adds a site whose statement is durable; KEDGE_E_FULL, KEDGE_E_EXISTS. */
KEDGE_NODISCARD int kedge_host_site_add(struct kedge_host *h, uint32_t tenant,
                                        const struct kedge_st_site_enrolled *st, uint32_t *ret_site);
void kedge_host_site_revoke(struct kedge_host *h, uint32_t site);

/* ---- requests.c ---- */
void kedge_host_on_request(void *arg, struct kedge_net_request *req); /* the network's thread */
/* The most that the reply to a frame can have, 0: little; on the network's thread too. */
size_t kedge_host_reply_size(void *arg, struct kedge_view frame);
void kedge_host_reply(struct kedge_net_request *req, const struct kedge_msg *msg);
void kedge_host_reply_error(struct kedge_net_request *req, int err, uint32_t retry_ms, const char *text);
/* Takes the net request out of its slot and frees the slot; NULL when it is gone. */
struct kedge_net_request *kedge_host_request_take(struct kedge_host *h, uint32_t request);
uint32_t kedge_host_request_put(struct kedge_host *h, struct kedge_net_request *req, uint32_t site);
/* Appends the current main checkpoint note. */
void kedge_host_main_note(struct kedge_host *h, struct kedge_buf *out);

/* ---- blobs.c ---- */
void kedge_host_blob_get(struct kedge_host *h, struct kedge_net_request *req, uint32_t site,
                         const struct kedge_msg_blob_get *msg);
void kedge_host_blob_put(struct kedge_host *h, struct kedge_net_request *req, uint32_t site,
                         const struct kedge_msg_blob_put *msg);
/* Removes blobs that no statement names: what a crash left between a blob's rename and its statement. */
KEDGE_NODISCARD int kedge_host_sweep(struct kedge_host *h, struct kedge_diag *d);

/* ---- submit.c ---- */
void kedge_host_submit(struct kedge_host *h, struct kedge_net_request *req, uint32_t site,
                       struct kedge_view envelope);
void kedge_host_verify(struct kedge_host *h, uint32_t ticket);
void kedge_host_append(struct kedge_host *h, uint32_t ticket);
void kedge_host_receipt(struct kedge_host *h, uint32_t request, uint32_t tenant, uint64_t leaf);
/* A receipt may have been lost: answers with it when this very statement is in the ledger. */
bool kedge_host_receipt_if_known(struct kedge_host *h, uint32_t ticket);
/* Answers a submission to a closed round: the receipt when this very statement is in the ledger, else
 * "closed". */
void kedge_host_closed(struct kedge_host *h, uint32_t ticket, uint32_t round);
void kedge_host_ticket_free(struct kedge_host *h, uint32_t ticket);

/* ---- rounds.c, close.c, groups.c ---- */
void kedge_host_job_opened(struct kedge_host *h, struct kedge_job *job);
void kedge_host_round_opened(struct kedge_host *h, struct kedge_job *job, uint32_t round,
                             enum kedge_task_kind kind);
void kedge_host_close_round(struct kedge_host *h, struct kedge_job *job, uint32_t round,
                            enum kedge_task_kind kind);
void kedge_host_round_closed(struct kedge_host *h, struct kedge_job *job, uint32_t round);
void kedge_host_job_closed(struct kedge_host *h, struct kedge_job *job, enum kedge_job_state outcome);
void kedge_host_assign(struct kedge_host *h, struct kedge_job *job, uint32_t site);
void kedge_host_append_assigned(struct kedge_host *h, struct kedge_job *job, uint32_t site, uint32_t group);
void kedge_round_result_free(struct kedge_round_result *r);

/* ---- main_batch.c ---- */
KEDGE_NODISCARD int kedge_main_batch_new(struct kedge_main_batch **ret);
void kedge_main_batch_free(struct kedge_main_batch *b);
/* Signs and adds a statement with its idempotency key and references. */
KEDGE_NODISCARD int kedge_main_batch_statement(struct kedge_main_batch *b, const struct kedge_key_pair *key,
                                               const struct kedge_statement *st,
                                               const struct kedge_hash *refs, size_t ref_count,
                                               struct kedge_diag *d, const char *key_format, ...)
    KEDGE_PRINTF(7, 8);
/* Adds the current checkpoint of the tenant's ledger when it grew since its last one. */
KEDGE_NODISCARD int kedge_main_batch_checkpoint(struct kedge_main_batch *b, struct kedge_host *h,
                                                uint32_t tenant);
/* Submits; MAIN_APPENDED follows with the outcome. On success the batch is freed and anchored sizes are
 * raised. */
void kedge_main_batch_submit(struct kedge_host *h, struct kedge_job *job);

/* ---- jobs.c ---- */
struct kedge_job *kedge_host_job_find(struct kedge_host *h, const struct kedge_id *id, bool ended_too);
/* Parses the spec and fills a free slot; the job is not yet known to the core. */
KEDGE_NODISCARD int kedge_host_job_make(struct kedge_host *h, struct kedge_view spec_text,
                                        struct kedge_job **ret, struct kedge_diag *d);
void kedge_host_job_free(struct kedge_job *job);
bool kedge_host_job_has_ended(const struct kedge_job *job);
/* Writes the job's record by compare-and-swap: KEDGE_E_EXISTS when it is not what this process wrote last.
 * With that of a job that has ended its refusals go. */
KEDGE_NODISCARD int kedge_host_job_store(struct kedge_host *h, struct kedge_job *job, struct kedge_diag *d);
struct kedge_round_history *kedge_job_history(struct kedge_job *job, uint32_t round, bool create);
void kedge_job_metric_add(struct kedge_job *job, const struct kedge_st_evaluation *ev);
uint64_t kedge_job_task_seed(const struct kedge_job *job, uint32_t round, const struct kedge_id *site);

/* ---- refusals.c ---- */
/* Makes the refusal that a TURN_AWAY with a ticket tells durable; when that fails it is only logged. */
void kedge_host_refusal_store(struct kedge_host *h, const struct kedge_coord_effect *fx);
/* Tells the core what the job's open round (job->round) had refused. */
KEDGE_NODISCARD int kedge_host_refusals_load(struct kedge_host *h, const struct kedge_job *job,
                                             struct kedge_diag *d);
/* Removes the job's refusals but those of round `keep`, KEDGE_COORD_NONE: all. */
KEDGE_NODISCARD int kedge_host_refusals_drop(struct kedge_kv_tx *tx, const struct kedge_id *job,
                                             uint32_t keep);
/* At start, when the jobs are loaded: reads every refusal there is, and removes those that no open round
 * needs any more. KEDGE_E_CORRUPT: one is damaged. */
KEDGE_NODISCARD int kedge_host_refusals_sweep(struct kedge_host *h, struct kedge_diag *d);

/* ---- restore.c ---- */
KEDGE_NODISCARD int kedge_host_restore(struct kedge_host *h, struct kedge_diag *d);

/* ---- admin*.c ---- */
void kedge_host_admin(struct kedge_host *h, struct kedge_net_request *req, struct kedge_view json);
/* Answers with {"…"} and steals `data`. */
void kedge_admin_ok(struct kedge_net_request *req, json_t *data);
void kedge_admin_error(struct kedge_net_request *req, int err, const struct kedge_diag *d);
void kedge_admin_members(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                         const json_t *args);
void kedge_admin_jobs(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                      const json_t *args);
/* ---- admin_enroll.c ---- */
void kedge_admin_site_token(struct kedge_host *h, struct kedge_net_request *req, const json_t *args);
void kedge_admin_site_pending(struct kedge_host *h, struct kedge_net_request *req, const json_t *args);
void kedge_host_enroll(struct kedge_host *h, struct kedge_net_request *req,
                       const struct kedge_msg_enroll *msg);

#endif
