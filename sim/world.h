/* A simulated federation: one coordinator core, many site cores, virtual time, and everything that goes
 * wrong, drawn from one seed. Durable state is plain arrays here; a crash throws a core away and keeps only
 * them. Signatures are a keyed hash, models are hashes of what they were made from.
 *
 * The world plays the hosts; what must hold is checked outside of the cores, in checks.c, against the durable
 * arrays. */
#ifndef KEDGE_SIM_WORLD_H
#define KEDGE_SIM_WORLD_H

#include "client/core/site.h"
#include "common/base/rng.h"
#include "coordinator/core/coord.h"

enum {
    SIM_TENANTS_MAX = 3,
    SIM_SITES_MAX = 12,
    SIM_JOBS_MAX = 2,
    SIM_GROUPS_MAX = 4,
    SIM_LEDGER_MAX = 2048,
    SIM_MAIN_MAX = 256,
    SIM_INPUTS_MAX = 2 * SIM_SITES_MAX,
    SIM_BLOBS_MAX = 64,
    SIM_TICKETS_MAX = 256,
    SIM_REQUESTS_MAX = 512,
    SIM_SENT_MAX = 3 * SIM_JOBS_MAX,
    SIM_STATE_BYTES = 1024,
};
#define SIM_SECOND UINT64_C(1000000000)

/* Rates are in permille. */
struct sim_config {
    uint32_t tenants, sites, jobs;
    uint32_t loss, duplicate, delay_ms;    /* network, one way */
    uint32_t disk_fail, disk_lie, disk_ms; /* write failed; failed but done; longest latency */
    uint32_t work_fail, train_fail, train_ms, bad, two_faced;
    uint32_t server_crashes, device_crashes, revocations, halts;
    uint32_t lazy; /* sites that take no task */
    bool late_sites, cancel;
    uint64_t chaos_ns; /* faults stop here */
    uint64_t limit_ns; /* jobs must have ended */
};

enum sim_entry_type { SIM_JOINED, SIM_REVOKED, SIM_UPDATE, SIM_EVALUATION, SIM_ASSIGNED };
struct sim_entry { /* of a tenant's ledger */
    enum sim_entry_type type;
    uint32_t site, job, round, group;
    enum kedge_task_kind kind;
    struct kedge_digest envelope, update;
    uint64_t weight;
};

struct sim_input {
    uint32_t site, leaf, group;
    enum kedge_task_kind kind;
    struct kedge_digest envelope, update;
};

enum sim_main_type { SIM_JOB_OPENED, SIM_ROUND_OPENED, SIM_ROUND_CLOSED, SIM_JOB_CLOSED };
struct sim_main { /* of the main chain */
    enum sim_main_type type;
    uint32_t job, round;
    uint32_t selected; /* bit per site */
    uint32_t model_count, input_count;
    struct kedge_digest models[SIM_GROUPS_MAX];
    struct sim_input inputs[SIM_INPUTS_MAX];
    uint32_t groups[SIM_SITES_MAX]; /* ROUND_CLOSED of round 0: assigned group or KEDGE_COORD_NONE */
    enum kedge_job_state state;     /* JOB_CLOSED */
};

struct sim_ledger {
    uint32_t count;
    uint64_t hash;    /* running, of all entries: append-only */
    uint64_t busy_ns; /* writes are in order */
    struct sim_entry entries[SIM_LEDGER_MAX];
};

struct sim_job {
    bool stored, cancel_wanted;
    struct kedge_coord_job_params params;
    struct kedge_digest initial;
    enum kedge_job_state state; /* as JOB_STATE stored it */
    int reason;
    struct sim_main pending; /* computed, not yet durable */
    bool computed;
};

/* The last result that a site sent for a job, per kind: it must not change before it is settled. */
struct sim_sent {
    bool used, settled;
    uint32_t round;
    struct kedge_digest envelope;
};

struct sim_ack { /* a receipt that a site got */
    uint32_t leaf;
    struct kedge_digest envelope;
};

struct sim_device {
    bool up, enrolled, revoke_wanted, revoked_told, lazy;
    uint32_t term, tenant;
    uint64_t open_call[2]; /* serials, so that each is answered once */
    uint64_t timer_ns;
    struct kedge_site *core;
    union {
        max_align_t align;
        uint8_t bytes[2 * SIM_STATE_BYTES + 2048];
    } mem;
    struct kedge_site_memory stored; /* durable */
    uint64_t disk_busy_ns;
    struct sim_sent sent[SIM_SENT_MAX];
    uint32_t ack_count;
    struct sim_ack acks[SIM_LEDGER_MAX / 8];
};

struct sim_request {
    bool used;
    uint32_t site, term;
    uint64_t serial;
};
struct sim_ticket {
    bool used, appended; /* an APPEND was asked for */
    bool after_revoked;  /* it came behind SITE_REVOKED */
    uint32_t site;
    struct kedge_site_result result;
    uint64_t weight;
};

struct sim_server {
    bool up;
    uint32_t term;
    uint64_t timer_ns;
    struct kedge_coord *core;
    void *mem;
    uint32_t request_count, ticket_count;
    struct sim_request requests[SIM_REQUESTS_MAX];
    struct sim_ticket tickets[SIM_TICKETS_MAX];
    uint64_t main_busy_ns;
};

enum sim_event_type {
    SIM_TO_SERVER,
    SIM_TO_DEVICE,
    SIM_CALL_TIMEOUT,
    SIM_UPLOAD,
    SIM_DEVICE_DONE, /* site_event */
    SIM_DEVICE_DISK, /* memory, then PERSISTED */
    SIM_DEVICE_TIMER,
    SIM_SERVER_DONE, /* work: effect, looked at when done */
    SIM_SERVER_DISK, /* write: effect */
    SIM_SERVER_JOIN, /* write of job-joined: site is a tenant here */
    SIM_SERVER_REVOKE,
    SIM_SERVER_TIMER,
    SIM_SERVER_CRASH,
    SIM_SERVER_UP,
    SIM_DEVICE_CRASH,
    SIM_DEVICE_UP,
    SIM_ENROL,
    SIM_REVOKE,
    SIM_JOIN,
    SIM_SUBMIT_JOB,
    SIM_HALT,
    SIM_RESUME,
    SIM_CANCEL,
    SIM_HEAL,
};
struct sim_event {
    uint64_t at_ns, seq;
    enum sim_event_type type;
    uint32_t site, job, term;
    uint64_t serial, wait_ns, weight;
    bool busy;
    enum kedge_site_call call;
    struct kedge_site_result result;
    struct kedge_site_reply reply;
    struct kedge_site_event site_event;
    struct kedge_coord_effect effect;
    int err;
    struct sim_event *next_free;
};

/* Told of everything that happens, when wanted. */
typedef void sim_trace(uint64_t now_ns, const char *what, uint64_t a, uint64_t b, uint64_t c);

struct sim {
    uint64_t seed, now_ns, seq, steps, digest;
    struct kedge_rng rng;
    struct sim_config config;
    bool healed, failed;
    sim_trace *trace;
    char why[256]; /* the first violation */
    struct sim_event **queue;
    uint32_t queue_count, queue_max;
    struct sim_event *free_events;
    struct sim_server server;
    struct sim_device devices[SIM_SITES_MAX];
    struct sim_ledger ledgers[SIM_TENANTS_MAX];
    uint32_t main_count;
    uint64_t main_hash;
    struct sim_main main[SIM_MAIN_MAX];
    struct sim_job jobs[SIM_JOBS_MAX];
    uint32_t blob_count;
    struct kedge_digest blobs[SIM_BLOBS_MAX]; /* the last ones uploaded */
};

/* world.c: time, chance, digests */
bool sim_chance(struct sim *w, uint32_t permille); /* never once healed */
uint64_t sim_below(struct sim *w, uint64_t n);
uint64_t sim_hash(uint64_t hash, const void *ptr, size_t len);
struct kedge_digest sim_digest(uint64_t a, uint64_t b, uint64_t c, const void *ptr, size_t len);
bool sim_same(const struct kedge_digest *a, const struct kedge_digest *b);
void sim_note(struct sim *w, const char *what, uint64_t a, uint64_t b,
              uint64_t c); /* into digest and trace */
struct sim_event *sim_push(struct sim *w, enum sim_event_type type, uint64_t at_ns);
struct sim_event *sim_pop(struct sim *w);
void sim_recycle(struct sim *w, struct sim_event *ev);
uint64_t sim_delay(struct sim *w);                   /* one way through the network */
uint64_t sim_disk(struct sim *w, uint64_t *busy_ns); /* when a write of now is done */
void sim_violate(struct sim *w, const char *format, ...) KEDGE_PRINTF(2, 3);

/* server.c, restart.c: the coordinator's host */
void sim_server_event(struct sim *w, struct sim_event *ev);
void sim_server_start(struct sim *w);
void sim_server_crash(struct sim *w);
void sim_server_step(struct sim *w, struct kedge_coord_event *ev);
struct kedge_coord_event sim_server_blank(const struct sim *w, enum kedge_coord_event_type type);
void sim_server_execute(struct sim *w, const struct kedge_coord_effect *fx); /* effects.c */

/* store.c: durable arrays */
int sim_ledger_append(struct sim *w, uint32_t tenant, const struct sim_entry *entry, uint64_t *ret_leaf);
void sim_main_append(struct sim *w, const struct sim_main *entry);
const struct sim_main *sim_main_find(const struct sim *w, enum sim_main_type type, uint32_t job,
                                     uint32_t round);
const struct sim_entry *sim_ledger_find(const struct sim *w, enum sim_entry_type type, uint32_t job,
                                        uint32_t round, enum kedge_task_kind kind, uint32_t site,
                                        uint64_t *ret_leaf);
void sim_compute(struct sim *w, uint32_t job,
                 struct sim_main *ret); /* result of the open round from its rows */
uint32_t sim_group_of(const struct kedge_digest *update, uint32_t groups);
int sim_write(struct sim *w, const struct kedge_coord_effect *fx, uint64_t *ret_leaf); /* of a disk effect */

/* device.c: the sites' host */
void sim_device_event(struct sim *w, struct sim_event *ev);
void sim_device_start(struct sim *w, uint32_t site);
void sim_device_crash(struct sim *w, uint32_t site);
struct kedge_digest sim_sign(uint32_t site, const struct kedge_site_result *result, uint64_t weight);
uint32_t sim_job_of(const struct kedge_id *id); /* "j0" */

/* checks.c */
void sim_check_effect(struct sim *w, const struct kedge_coord_effect *fx);
void sim_check_main(struct sim *w, const struct sim_main *entry); /* before it is appended */
void sim_check_entry(struct sim *w, uint32_t tenant, const struct sim_entry *entry);
void sim_check_sent(struct sim *w, uint32_t site, const struct kedge_site_result *result);
void sim_check_settled(struct sim *w, uint32_t site, const struct kedge_site_result *result);
void sim_check_fetched(struct sim *w, uint32_t site, uint32_t job, const struct kedge_digest *model);
void sim_check_end(struct sim *w);
bool sim_job_is_stuck(const struct sim *w, uint32_t job); /* its quorum can not come any more */

/* The whole run. Returns false when a check failed (w->why says which); w->digest is the digest of all
 * effects. */
struct sim *sim_new(uint64_t seed, sim_trace *trace);
bool sim_run(struct sim *w);
void sim_free(struct sim *w);

#endif
