/* Inside of the simulated federation: one coordinator core, many site cores, virtual time, and everything
 * that goes wrong, drawn from one seed. Durable state is plain arrays here; a crash throws a core away and
 * keeps only them. Models and updates are hashes of what they were made from; signatures are a keyed hash or,
 * when wanted, those of chain/.
 *
 * The world plays the hosts; what must hold is checked outside of the cores, in checks*.c, against the
 * durable arrays. Out of memory ends the program: a simulation has nothing to save. */
#ifndef KEDGE_SIM_WORLD_H
#define KEDGE_SIM_WORLD_H

#include "chain/statement/statement.h"
#include "client/core/rare.h"
#include "client/core/site.h"
#include "common/base/rng.h"
#include "coordinator/core/coord.h"
#include "coordinator/core/rare.h"
#include "sim/faults.h"
#include "sim/index.h"
#include "sim/payload.h"

enum {
    SIM_JOBS_MAX = 3,
    SIM_SLOTS_MAX = 2,    /* jobs that the coordinator has room for at once */
    SIM_UPLOADS_KEPT = 4, /* of a site, at the coordinator */
    SIM_SENT_MAX = 3 * SIM_JOBS_MAX,
    SIM_SITE_BYTES = 16384,
};
#define SIM_SECOND UINT64_C(1000000000)
#define SIM_NONE KEDGE_COORD_NONE
/* Why an update cannot be stored: of all faults only this one comes with this error, so that a halt for it
 * can be told from others. */
#define SIM_UNSTORED_ERR KEDGE_E_FULL

/* Rates are in permille. */
struct sim_config {
    uint32_t tenants, sites, jobs, slots;
    uint32_t loss, duplicate, delay_ms, slow; /* network, one way */
    uint32_t disk_fail, disk_lie, disk_ms;    /* write failed; failed but done; longest latency */
    uint32_t blob_fail; /* an update cannot be stored, as it comes or once it is verified */
    uint32_t work_fail, train_fail, train_ms, train_slow;
    uint32_t bad, two_faced, forged, nosy, hang_up;
    uint32_t crash_loading, crash_written, crash_midway; /* of either side, per chance to */
    uint32_t server_crashes, device_crashes, revocations, halts, clock_jumps, server_clock_jumps;
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
    enum kedge_coord_why why; /* ASSIGNED */
    bool listed;              /* an UPDATE: in the input list of a round */
    struct kedge_digest envelope, update, base;
    uint64_t weight;
};

struct sim_ledger {
    uint32_t count, max;
    uint64_t hash;    /* running, of all entries: append-only */
    uint64_t busy_ns; /* writes are in order */
    struct sim_entry *entries;
    struct sim_index index; /* idempotency keys → entries */
};

struct sim_input {
    uint32_t site, leaf, group, round; /* round: of its task */
    enum kedge_task_kind kind;
    struct kedge_digest envelope, update;
    uint64_t weight; /* as it is signed */
    uint64_t
        counted; /* in an aggregate: what the cap on shares leaves of it, pretraining: of 1; 0: in none */
};

/* What a group's aggregate adds up to. */
struct sim_sum {
    struct kedge_digest model;
    uint64_t weight;
    uint32_t count;
};

enum sim_main_type { SIM_JOB_OPENED, SIM_ROUND_OPENED, SIM_ROUND_CLOSED, SIM_JOB_CLOSED };
struct sim_main { /* of the main chain */
    enum sim_main_type type;
    uint32_t job, round;
    uint64_t at_ns, crashes; /* of the world by then */
    uint32_t selected_count, input_count, refused_count;
    uint8_t *selected;         /* ROUND_OPENED: a bit per site */
    uint32_t draw;             /* ROUND_OPENED: how often its sites were drawn again */
    uint32_t *tasks;           /* ROUND_OPENED, asynchronous: round of each site's task, or SIM_NONE */
    uint8_t *settled;          /* ROUND_CLOSED, asynchronous: 1 for each site that this settles */
    enum kedge_task_kind kind; /* of the round */
    bool regroup;              /* ROUND_CLOSED: it asks for new groups */
    bool tries;                /* ROUND_CLOSED: it has trials */
    bool keeps;                /* ROUND_CLOSED: it was to make new groups, and too few came */
    uint32_t group_count;      /* ROUND_CLOSED: aggregates … */
    struct sim_sum *sums;      /* … per group */
    uint32_t model_count;      /* … and models, each of a group */
    struct kedge_digest *models;
    uint64_t inputs_hash;
    uint32_t *groups; /* ROUND_CLOSED, by site: what it gives, or SIM_NONE; NULL: nothing to anybody */
    enum kedge_job_state state;   /* JOB_CLOSED */
    struct kedge_digest envelope; /* of its statement, with real signatures */
};

/* A round as computed, not yet durable. */
struct sim_pending {
    bool computed, regroup, tries, keeps;
    enum kedge_task_kind kind;
    uint32_t round, group_count, input_count, refused_count, model_count;
    struct sim_sum sums[KEDGE_GROUPS_MAX];
    struct kedge_digest models[KEDGE_GROUPS_MAX];
    struct sim_input *inputs; /* at most 2 per site */
    uint32_t *groups;         /* by site: what the close gives it, or SIM_NONE */
    int *refused;             /* by site: why its part in the round is turned away, KEDGE_OK: it is not */
};

struct sim_refusal {
    int err; /* KEDGE_OK: none */
    enum kedge_task_kind kind;
    struct kedge_digest envelope, update;
    uint64_t weight;
};

struct sim_fresh { /* an update that is in no input list yet */
    uint32_t tenant, leaf;
};

struct sim_job {
    bool stored, cancel_wanted;
    uint32_t slot; /* its handle in the core, SIM_NONE: the core does not know it (any more) */
    struct kedge_coord_job_params params;
    uint32_t share_max;             /* of a tenant in an aggregate, in millionths */
    uint32_t shifts, moves, drifts; /* of data; closes that move sites, that ask for new groups (permille) */
    uint32_t crash_grouping; /* permille: the coordinator crashes once a close or a pretraining is written */
    uint32_t flapping, wrong_choice;              /* permille */
    uint32_t drawn_term, drawn_round, drawn_draw; /* candidates of this round and draw were looked at, in this
                                                     term; SIM_NONE: none */
    uint32_t computing;                           /* the last round that the core has begun to compute */
    struct kedge_digest initial;
    struct kedge_digest begin[KEDGE_GROUPS_MAX]; /* the models that it begins with, the first is `initial` */
    enum kedge_job_state state;                  /* as JOB_STATE stored it */
    int reason;
    struct sim_pending pending;
    uint8_t *joined;                         /* by tenant: durable */
    uint32_t opened, closed;                 /* entries of the main chain, SIM_NONE: none … */
    uint32_t *rounds_opened, *rounds_closed; /* … by round */
    uint32_t last_opened, last_closed;       /* rounds, SIM_NONE: none */
    uint64_t
        charged_set; /* by_charge: stands for the candidates of the last round, 0: it was none of training */
    uint32_t fresh_count, fresh_max;
    struct sim_fresh *fresh;
    struct sim_refusal *told; /* by site: its last contribution that the open round refused; durable */
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
    bool up, enrolled, revoke_wanted, revoked_told, revoked, lazy; /* revoked: in the ledger */
    uint32_t term, tenant;
    uint64_t clock_ns;                            /* its clock is so far ahead of the world's */
    uint32_t works, at_once;                      /* places for tasks, and how many take some */
    uint64_t open_call[KEDGE_SITE_WORKS_MAX + 1]; /* serials by work, the heartbeat's last: each is answered
                                                     once … */
    enum kedge_site_call call_of[KEDGE_SITE_WORKS_MAX]; /* … and what was asked */
    uint64_t open_upload[KEDGE_SITE_WORKS_MAX];
    uint64_t poll;     /* serial of its newest poll for work … */
    uint32_t left_out; /* … and the jobs that it leaves out, a bit each */
    uint64_t heard;    /* the latest serial that came to the coordinator */
    uint64_t timer_ns;
    struct sim_window cut_to_server, cut_to_site, disk_full;
    struct kedge_site *core;
    union {
        max_align_t align;
        uint8_t bytes[SIM_SITE_BYTES];
    } mem;
    struct kedge_site_memory stored; /* durable */
    struct kedge_site_chain seen;    /* of the main chain */
    uint64_t disk_busy_ns;
    uint32_t group[SIM_JOBS_MAX],
        assigned[SIM_JOBS_MAX];        /* from its ledger: group, leaf of group-assigned … */
    uint32_t grouped_by[SIM_JOBS_MAX]; /* … of the pretrain update that its last group rests on */
    uint32_t pretrained[SIM_JOBS_MAX], trained[SIM_JOBS_MAX],
        evaluated[SIM_JOBS_MAX];        /* … of its last updates and evaluation */
    uint32_t prior_group[SIM_JOBS_MAX]; /* its group when the last round closed */
    bool shifted[SIM_JOBS_MAX],
        answered[SIM_JOBS_MAX];             /* its data have; it pretrained since, no receipt yet */
    uint32_t told_term[SIM_JOBS_MAX];       /* the coordinator heard of it: 1 + its term, 0: it did not … */
    uint32_t refused_round[SIM_JOBS_MAX];   /* … and refused its pretraining */
    uint64_t fetched[KEDGE_SITE_WORKS_MAX]; /* a bit per model to choose from */
    enum kedge_charge said;                 /* of its battery, and what the coordinator heard last … */
    uint8_t said_since[SIM_JOBS_MAX];       /* … a bit per class, since the job's last round-opened */
    uint32_t waited[SIM_JOBS_MAX]; /* rounds in a row as one of the same candidates, never selected */
    uint32_t upload_count;
    struct kedge_digest uploads[SIM_UPLOADS_KEPT];
    int upload_err[SIM_JOBS_MAX]; /* why an update could last not be stored as it came; the core knows */
    uint32_t unstored_round[SIM_JOBS_MAX]; /* whose update cannot be stored, in either way; SIM_NONE: none */
    uint64_t unable_ns[SIM_JOBS_MAX]; /* by the coordinator's clock: it said that it cannot before then … */
    uint32_t ended_round[SIM_JOBS_MAX]; /* … and ended its part in this round; SIM_NONE: in none */
    struct sim_sent sent[SIM_SENT_MAX];
    uint32_t ack_count, ack_max;
    struct sim_ack *acks;
};

struct sim_request {
    bool used;
    uint32_t id, site, term;
    uint64_t serial, at_ns;
    uint32_t at_work; /* jobs that the poll leaves out */
    uint32_t round;   /* of the task that has ended */
};
struct sim_ticket {
    bool used, appended; /* an APPEND was asked for */
    bool after_revoked;  /* it came behind SITE_REVOKED */
    uint32_t id, site;
    struct kedge_site_result result;
    uint64_t weight;
};

struct sim_server {
    bool up;
    uint32_t term;
    uint64_t clock_ns; /* its clock is so far ahead of the world's */
    uint64_t timer_ns;
    struct kedge_coord_times times;
    struct kedge_coord *core;
    void *mem;
    uint32_t slots[SIM_SLOTS_MAX]; /* job of a slot, or SIM_NONE */
    uint32_t request_count, request_max, ticket_count, ticket_max;
    struct sim_request *requests; /* by id modulo max */
    struct sim_ticket *tickets;
    uint64_t main_busy_ns;
    struct sim_window disk_full, disk_slow;
};

enum sim_event_type {
    SIM_TO_SERVER,
    SIM_TO_DEVICE,
    SIM_CALL_TIMEOUT,
    SIM_HANG_UP, /* serial: a request */
    SIM_UPLOAD,
    SIM_DEVICE_DONE, /* site_event */
    SIM_DEVICE_DISK, /* memory, then PERSISTED */
    SIM_DEVICE_TIMER,
    SIM_CLOCK_JUMP,  /* wait_ns: by how much */
    SIM_SHIFT,       /* of the site's data for the job */
    SIM_SERVER_DONE, /* work: effect, looked at when done */
    SIM_SERVER_DISK, /* write: effect */
    SIM_SERVER_JOIN, /* write of job-joined: site is a tenant here */
    SIM_SERVER_REVOKE,
    SIM_SERVER_TIMER,
    SIM_SERVER_CRASH,
    SIM_SERVER_CLOCK_JUMP, /* wait_ns: by how much */
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
    enum kedge_charge charge;   /* TO_SERVER, a poll */
    uint32_t shifted;           /* TO_SERVER, a poll: jobs whose data have shifted, a bit each */
    uint32_t at_work;           /* TO_SERVER, a poll: jobs that it leaves out, a bit each */
    bool anew;                  /* TO_SERVER, a poll */
    enum kedge_trouble trouble; /* TO_SERVER, ENDED: of result's job, round, kind */
    uint32_t proof;             /* with an answer: of sim_proof_*, 0: none */
    int err;
    enum kedge_site_call call;
    union {
        struct kedge_site_result result; /* TO_SERVER, UPLOAD */
        struct kedge_site_reply reply;   /* TO_DEVICE */
        struct kedge_site_event site_event;
        struct kedge_coord_effect effect;
    };
    struct sim_event *next_free;
};

/* Told of everything that happens, when wanted. */
typedef void sim_trace(uint64_t now_ns, const char *what, uint64_t a, uint64_t b, uint64_t c);
typedef void sim_tick(void *arg, uint32_t rounds_done);

struct sim_real; /* keys, envelopes, trees: real.c */

struct sim {
    uint64_t seed, now_ns, seq, steps, steps_max, digest;
    struct kedge_rng rng;
    struct sim_config config;
    bool healed, failed, stopped; /* stopped: by the one who watches */
    sim_trace *trace;
    sim_tick *tick;
    void *tick_arg;
    char why[256]; /* the first violation */
    struct sim_event **queue;
    uint32_t queue_count, queue_max;
    struct sim_event *free_events;
    struct sim_server server;
    struct sim_device *devices;
    struct sim_ledger *ledgers;
    uint32_t main_count, main_max;
    struct kedge_digest main_root; /* stands for the root of the main chain */
    struct sim_main *main;
    struct sim_job jobs[SIM_JOBS_MAX];
    struct sim_index published;        /* (job, group, model) of durable closes */
    struct sim_real *real;             /* NULL: signatures are a keyed hash */
    const struct sim_payload *payload; /* NULL: models and updates are hashes; of one job only */
    struct kedge_coord_rare coord_rare;
    struct kedge_site_rare site_rare;
    uint32_t rounds_closed;
    uint64_t fired[SIM_FAULT_COUNT];
};

/* queue.c: time, chance, digests */
bool sim_chance(struct sim *w, uint32_t permille);                      /* never once healed */
bool sim_fault(struct sim *w, enum sim_fault fault, uint32_t permille); /* a chance that is counted */
bool sim_inside(const struct sim *w, const struct sim_window *window);  /* now; never once healed */
void sim_count(struct sim *w, enum sim_fault fault);
uint64_t sim_crashes(const struct sim *w); /* of either side, so far */
uint64_t sim_below(struct sim *w, uint64_t n);
uint64_t sim_hash(uint64_t hash, const void *ptr, size_t len);
#define SIM_HASH_START UINT64_C(0xcbf29ce484222325)
struct kedge_digest sim_digest(uint64_t a, uint64_t b, uint64_t c, const void *ptr, size_t len);
bool sim_same(const struct kedge_digest *a, const struct kedge_digest *b);
struct kedge_digest sim_of_site(const struct kedge_site_digest *d);
struct kedge_site_digest sim_to_site(const struct kedge_digest *d);
void sim_note(struct sim *w, const char *what, uint64_t a, uint64_t b,
              uint64_t c); /* into digest and trace */
struct sim_event *sim_push(struct sim *w, enum sim_event_type type, uint64_t at_ns);
struct sim_event *sim_pop(struct sim *w);
void sim_recycle(struct sim *w, struct sim_event *ev);
uint64_t sim_delay(struct sim *w); /* one way through the network */
uint64_t sim_disk(struct sim *w, uint64_t *busy_ns,
                  const struct sim_window *slow); /* when a write of now is done */
void sim_violate(struct sim *w, const char *format, ...) KEDGE_PRINTF(2, 3);

/* server.c, effects.c, restart.c: the coordinator's host */
void sim_server_event(struct sim *w, struct sim_event *ev);
void sim_server_start(struct sim *w);
void sim_server_crash(struct sim *w, enum sim_fault why);
void sim_server_step(struct sim *w,
                     struct kedge_coord_event *ev); /* may crash on the way: look at server.up */
bool sim_slot_take(struct sim *w, uint32_t job);    /* false: all are in use */
/* The core's view of a job, by our number of it; false when the core does not know it. */
bool sim_job_view(const struct sim *w, uint32_t job, struct kedge_coord_job_view *ret);
const struct kedge_coord_row *sim_job_row(const struct sim *w, uint32_t job, uint32_t site);
bool sim_may_read(const struct sim *w, uint32_t job, uint32_t site, const struct kedge_digest *model);
struct kedge_coord_event sim_server_blank(enum kedge_coord_event_type type);
void sim_server_execute(struct sim *w, const struct kedge_coord_effect *fx); /* effects.c */
struct sim_request *sim_request_find(struct sim *w, uint32_t id);            /* NULL: not open */
struct sim_ticket *sim_ticket_find(struct sim *w, uint32_t id);
/* The order of ids is not that of handles. */
void sim_site_id(const struct sim *w, uint32_t site, struct kedge_id *ret);
void sim_tenant_id(const struct sim *w, uint32_t tenant, struct kedge_id *ret);

/* requests.c */
void sim_server_unstored(struct sim *w, uint32_t job, uint32_t site, int err); /* what is known of it now */
void sim_server_receive(struct sim *w, const struct sim_event *ev);
void sim_server_upload(struct sim *w, const struct sim_event *ev);
void sim_server_hang_up(struct sim *w, const struct sim_event *ev);

/* keys.c: by which rule a site gets a group, and the idempotency key of an entry, hashed */
enum kedge_group_how sim_how_of(const struct sim *w, const struct sim_entry *e);
uint64_t sim_key_of(const struct sim *w, const struct sim_entry *e);

/* store.c: durable arrays. A key that another entry has: KEDGE_E_EXISTS, and a violation. */
int sim_ledger_append(struct sim *w, uint32_t tenant, const struct sim_entry *entry, uint64_t *ret_leaf);
const struct sim_entry *sim_ledger_find(const struct sim *w, uint32_t tenant, const struct sim_entry *like,
                                        uint32_t *ret_leaf);
const struct sim_main *sim_main_find(const struct sim *w, enum sim_main_type type, uint32_t job,
                                     uint32_t round);
uint64_t sim_published_key(uint32_t job, const struct kedge_digest *model);
bool sim_is_published(const struct sim *w, uint32_t job, const struct kedge_digest *model);
/* What the last close gave this site and no statement says yet, or SIM_NONE. */
uint32_t sim_unstated(const struct sim *w, uint32_t job, uint32_t site);
const struct sim_main *sim_last_closed(const struct sim *w, uint32_t job);             /* NULL: none */
int sim_write(struct sim *w, const struct kedge_coord_effect *fx, uint64_t *ret_leaf); /* of a disk effect */
/* Result of the open round from its rows, into pending. Errors are those of a payload. */
/* keeps: nothing is to be made anew. */
KEDGE_NODISCARD int sim_compute(struct sim *w, uint32_t job, bool keeps);
/* The group of an update that is in an aggregate of PRETRAIN. */
uint32_t sim_group_of_input(const struct sim *w, uint32_t job, const struct kedge_digest *update);
/* The nearest of so many groups to the update of a newcomer or of a site that moves; where the job goes by
 * sites' last models, to that of the site (update is not looked at). */
KEDGE_NODISCARD int sim_nearest(const struct sim *w, uint32_t job, uint32_t site,
                                const struct kedge_digest *update, uint32_t groups, uint32_t *ret_group);
uint32_t sim_group_of(const struct kedge_digest *update, uint32_t groups);
/* moves.c: groups and models behind the round in pending, when its close changes them */
void sim_move(struct sim *w, uint32_t job);

uint32_t sim_job_of(const struct kedge_id *id); /* "j0" */

/* device.c, device_work.c: the sites' host */
void sim_device_event(struct sim *w, struct sim_event *ev);
void sim_device_start(struct sim *w, uint32_t site);
void sim_device_crash(struct sim *w, uint32_t site, enum sim_fault why);
void sim_device_execute(struct sim *w, uint32_t site, const struct kedge_site_effect *fx, uint64_t leaf);
/* With a payload: what came of the work that is done now, into its completion. */
void sim_device_worked(struct sim *w, uint32_t site, struct kedge_site_event *done);

/* sign.c: signed facts, and what proves them; real.c does it with chain/ */
void sim_sign_result(struct sim *w, uint32_t site, struct kedge_site_result *result, uint64_t weight);
/* Opens what came: KEDGE_OK, and *result, *weight are what was signed; or KEDGE_E_VERIFY. */
KEDGE_NODISCARD int sim_open_result(struct sim *w, uint32_t site, struct kedge_site_result *result,
                                    uint64_t *weight);
/* Envelope of a statement that is not a site's: by the tenant's admin or by the coordinator. */
void sim_sign_entry(struct sim *w, uint32_t tenant, struct sim_entry *entry);
void sim_entry_appended(struct sim *w, uint32_t tenant, const struct sim_entry *entry);
void sim_main_appended(struct sim *w, struct sim_main *entry);
/* A receipt or a signed "closed" on its way; 0: none. */
uint32_t sim_prove_receipt(struct sim *w, uint32_t tenant, uint32_t leaf);
uint32_t sim_prove_closed(struct sim *w, uint32_t site, const struct kedge_site_result *result);
bool sim_check_proof(struct sim *w, uint32_t site, const struct sim_event *answer,
                     const struct kedge_site_digest *envelope);
void sim_sign_check_end(struct sim *w); /* the whole record, opened and proved */
void sim_real_new(struct sim *w);
void sim_real_free(struct sim *w);

/* checks/checks.c, checks/round.c, checks/end.c */
void sim_check_effect(struct sim *w, const struct kedge_coord_effect *fx);
void sim_check_entry(struct sim *w, uint32_t tenant,
                     const struct sim_entry *entry); /* before it is appended */
/* checks/groups.c: who is in which group, and by whose word */
void sim_check_assigned(struct sim *w, const struct sim_entry *entry);
void sim_check_group_task(struct sim *w, const struct kedge_coord_effect *fx);
void sim_check_migrates(struct sim *w, const struct sim_entry *entry); /* a pretraining */
void sim_check_groups_closed(struct sim *w, uint32_t job);             /* pending */
void sim_check_groups_stated(struct sim *w, const struct sim_main *entry);
void sim_check_selected(struct sim *w, const struct sim_main *entry);
/* checks/charge.c: jobs that draw sites by what they say of their batteries */
enum kedge_charge sim_charge_of(const struct sim *w, uint32_t site); /* now */
void sim_charge_heard(struct sim *w, uint32_t site, enum kedge_charge charge);
void sim_charge_forgotten(struct sim *w); /* the coordinator starts again */
void sim_check_charged(struct sim *w, const struct sim_main *entry);
/* checks/buffer.c: asynchronous jobs */
/* Round of the task that the site is at work on, as the record says it, or SIM_NONE. */
uint32_t sim_task_open(const struct sim *w, uint32_t job, uint32_t site);
/* What an update for the task of `task_round` counts in `round`: less when it comes late. */
uint64_t sim_counts(const struct sim *w, uint32_t job, uint32_t round, uint32_t task_round, uint64_t weight);
void sim_check_at_work(struct sim *w, const struct sim_main *entry);
void sim_check_buffer(struct sim *w, uint32_t job); /* pending */
void sim_check_async_task(struct sim *w, const struct kedge_coord_effect *fx);
void sim_check_async_closed(struct sim *w, const struct kedge_coord_effect *fx);
void sim_check_async_update(struct sim *w, const struct sim_entry *e);
bool sim_check_staleness(struct sim *w, uint32_t job, const struct sim_input *in, const struct sim_entry *e);
uint8_t *sim_settled(const struct sim *w, const struct sim_pending *p); /* the caller's */
void sim_count_too_stale(struct sim *w, const struct sim_main *closed);
void sim_check_shift_told(struct sim *w, uint32_t site, const struct kedge_site_effect *poll);
void sim_check_shift_kept(struct sim *w, uint32_t site); /* behind a start */
bool sim_is_own(const struct sim *w, uint32_t site, uint32_t job, const struct kedge_digest *model);
bool sim_is_warm(const struct sim *w, uint32_t site, uint32_t job);
void sim_check_round(struct sim *w, uint32_t job);  /* pending, before it is appended */
void sim_check_shares(struct sim *w, uint32_t job); /* pending, too */
void sim_check_main(struct sim *w, const struct sim_main *entry);
void sim_check_sent(struct sim *w, uint32_t site, const struct kedge_site_result *result);
void sim_check_settled(struct sim *w, uint32_t site, const struct kedge_site_result *result);
void sim_check_fetched(struct sim *w, uint32_t site, uint32_t job, const struct kedge_digest *model);
void sim_check_nosy(struct sim *w, uint32_t job);
/* After the core was told that an update cannot be stored (SIM_UNSTORED_ERR), or can again (KEDGE_OK). */
/* A site whose newest poll leaves out a job that is free asks again; what it sends goes one at a time. */
void sim_check_asks(struct sim *w, uint32_t site);
void sim_check_sends(struct sim *w, uint32_t site, const struct kedge_site_effect *fx);
void sim_check_unstored(struct sim *w, uint32_t job, uint32_t site, int err);
/* checks/able.c: sites that end their part, or cannot serve a job */
void sim_able_forgotten(struct sim *w); /* the coordinator starts again */
void sim_able_heard(struct sim *w, uint32_t site, uint32_t job, bool able, const struct sim_event *told);
void sim_check_noted(struct sim *w, const struct kedge_coord_effect *fx);
void sim_check_drawn(struct sim *w, const struct kedge_coord_effect *fx); /* a round is to open */
void sim_check_drawn_again(struct sim *w, const struct sim_main *entry);  /* it opens another time */
void sim_check_waits(struct sim *w, uint32_t job);                        /* for nobody in vain */
void sim_check_acks(struct sim *w);
void sim_check_end(struct sim *w);
bool sim_job_is_stuck(const struct sim *w, uint32_t job); /* its quorum cannot come any more */
bool sim_is_selected(const struct sim_main *opened, uint32_t site);

/* script.c: what a seed makes of everything */
void sim_script_draw(struct sim *w);
void sim_script_common(
    struct sim *w); /* windows, crashes, what operators and admins do; config and jobs are set */
void sim_seat_tenants(struct sim *w); /* sites in the groups of their tenants, in jobs with such */
void sim_rare_draw(struct sim *w);
void sim_draw_windows(struct sim *w);

/* world.c. sim_blank sets up everything but config, jobs and script; sim_allocate follows once config and
 * jobs are known. */
struct sim *sim_blank(uint64_t seed, uint64_t stream, bool real);
void sim_allocate(struct sim *w);
struct sim *sim_new(uint64_t seed, bool real, sim_trace *trace); /* everything drawn from the seed */
/* The whole run. Returns false when a check failed (w->why says which); w->digest is the digest of all
 * effects. */
bool sim_run(struct sim *w);
void sim_free(struct sim *w);

#endif
