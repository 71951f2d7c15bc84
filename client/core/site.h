/* The state machine of one site: enrol, poll, fetch, train, upload, submit, and do it all again after any
 * crash, for one job or for several at once. Pure: no I/O, no clock, no threads, no allocation. One event in,
 * effects out; the daemon and the simulator are its two hosts.
 *
 * What it is not: it never sees model vectors, keys, envelopes or frames, only digests and plain fields.
 *
 * Contract between core and host
 *  - The host executes effects in array order. Every CALL is answered by exactly one REPLY or CALL_FAILED
 * with the same `serial` (a time-out is a CALL_FAILED); every FETCH, TRAIN, UPLOAD and PERSIST by exactly one
 * completion with the same `serial`. At most one busy poll (heartbeat) is open, and of each work one thing;
 * late answers are ignored.
 *  - A site has `works` places for tasks, each of another job; each effect says which work it is for. At most
 * `at_once` of them take tasks; those beyond finish what they have. Polls say which jobs are at work, so that
 * the coordinator offers others. A poll that leaves out a job that has become free is followed by another one
 * at once; the coordinator answers the older one by WAIT.
 *  - TRAINED means: the update file and the signed envelopes of `results` are durable in the host's state
 * folder, under their digests. They become known to a later START by PERSIST only, and nothing is uploaded
 * before PERSISTED, so a crash repeats the training or resumes the upload, and never signs two updates for
 * one task that left the device.
 *  - PERSIST carries the whole memory and replaces the stored one atomically. FORGET comes after the PERSIST
 * that no longer names a result; its files are deleted once that one is durable. A PERSIST that is not
 * awaited may fail.
 *  - A receipt whose proof does not hold is not a REPLY but CALL_FAILED with KEDGE_E_VERIFY; so is a "closed"
 * whose signature does not.
 *  - What the coordinator shows of the main chain is checked by the host (signature) and judged by the core
 * (client/core/chain.h). SEEN replaces what is remembered of it; it may be lost, then less is known. REFUSE
 * is durable before the host does anything else, and a later START says so: nothing but its owner makes a
 * site go on.
 *  - SHIFTED tells the core that the data of a job are no longer those that the site was grouped by. The core
 * remembers (PERSIST) and says so in its polls, until a pre-training that was done since is acknowledged. The
 * host says it again when it sees it again; saying it twice does no harm.
 *  - POLICY replaces which jobs are allowed. Work on one that no longer is stops before anything is signed;
 * what is signed already is still sent.
 *  - A task that fails, or that the site will not do, is told to the coordinator at once (ENDED), so that its
 * round does not wait. The site then wants no task of that job for a while, which doubles from failure to
 * failure; what it does for other jobs goes on. A task of that job that comes all the same is ended at once,
 * with the same reason. After START and POLICY the polls say (anew) that what was told so far holds no more.
 *  - REST: no work is asked for, nor taken, until REST says otherwise; what is in hand goes on, and what is
 * signed is sent. The coordinator sees a site that is away.
 *  - Restart: kedge_site_init and START with the stored memory. There is no other recovery path. */
#ifndef KEDGE_CLIENT_CORE_SITE_H
#define KEDGE_CLIENT_CORE_SITE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/base/trouble.h"

enum {
    KEDGE_SITE_RESULTS_MAX = 2, /* one task yields an update, an evaluation, or both */
    KEDGE_SITE_WORKS_MAX = 4,   /* tasks in hand at once, each of another job */
    KEDGE_SITE_STORED_MAX = KEDGE_SITE_WORKS_MAX * KEDGE_SITE_RESULTS_MAX,
    KEDGE_SITE_EFFECTS_MAX = 8 + 3 * (KEDGE_SITE_WORKS_MAX - 1), /* effects of one step, at most */
    KEDGE_SITE_TROUBLES_MAX =
        16, /* jobs in trouble; of more the one that may be tried again first is forgotten */
    KEDGE_SITE_SHIFTS_MAX = 4, /* jobs whose data have shifted; of more the oldest are forgotten */
};
#define KEDGE_SITE_NONE UINT32_MAX /* no group */

/* 32 bytes that the core compares and copies; the host knows them as SHA-256 digests. */
struct kedge_site_digest {
    uint8_t b[32];
};

/* A checkpoint of the main chain; size 0: none. */
struct kedge_site_chain {
    uint64_t size;
    struct kedge_site_digest root;
};

/* Values as on the wire. */
enum kedge_site_kind { KEDGE_SITE_PRETRAIN = 1, KEDGE_SITE_TRAIN = 2, KEDGE_SITE_EVALUATE = 3 };

/* What the coordinator asks for. */
struct kedge_site_task {
    struct kedge_id job;
    struct kedge_site_digest spec, base;
    uint64_t spec_len, base_len, update_len; /* bytes */
    uint32_t round;                          /* EVALUATE: the round whose result the base is */
    enum kedge_site_kind kind;
    uint32_t group;     /* KEDGE_SITE_NONE: not yet in a group */
    bool evaluate_base; /* TRAIN: evaluate the base first, as the result of round - 1 */
    uint32_t percent;   /* TRAIN: of its data that the site trains on, 1 to 100; 0: all, it is not planned */
    uint64_t remaining_ns; /* until the round's deadline, when the task was sent */
    uint64_t seed;
    uint64_t control_len; /* the server's control variate (TRAIN) or the frozen base, fetched after the model;
                             0: none … */
    struct kedge_site_digest control; /* … and zero then */
    bool
        has_trial; /* of an evaluation: another model, as long as the base, is fetched and evaluated, too … */
    struct kedge_site_digest trial; /* … and zero without */
    uint32_t choice_count; /* TRAIN, group KEDGE_SITE_NONE: the site trains that of these models which it
                              likes best, and its result says which: group, base. Else 0. base is zero then,
                              base_len that of each */
    struct kedge_site_digest choices[KEDGE_GROUPS_MAX]; /* by group */
};

/* One finished, signed, not yet acknowledged result. */
struct kedge_site_result {
    struct kedge_id job;
    enum kedge_site_kind kind; /* EVALUATE has no update */
    uint32_t round, group;
    uint32_t work; /* which of the site's works it is of; set by the core */
    struct kedge_site_digest base, update, envelope;
    uint64_t update_len;
};

/* The data of a job have shifted. */
struct kedge_site_shift {
    struct kedge_id job;
    bool answered; /* a pre-training was done since; it counts once it is acknowledged */
};

/* What survives a crash. */
struct kedge_site_memory {
    bool enrolled;         /* the coordinator has confirmed the site once */
    uint32_t result_count; /* those of one work, which are of one job, in the order of submission */
    struct kedge_site_result results[KEDGE_SITE_STORED_MAX];
    uint32_t shift_count; /* oldest first */
    struct kedge_site_shift shifts[KEDGE_SITE_SHIFTS_MAX];
};

/* Times of the site, in ns. */
struct kedge_site_times {
    uint64_t poll_wait;     /* wait asked for in a long poll (20 s) */
    uint64_t poll_min;      /* least pause between two polls that brought no task (20 ms) */
    uint64_t heartbeat;     /* busy polls while working (4 s) */
    uint64_t backoff_min;   /* first pause after a failure (100 ms); doubled, jittered … */
    uint64_t backoff_max;   /* … up to this (15 s) */
    uint64_t trouble_min;   /* no task of a job after one that failed (5 s); doubled, jittered … */
    uint64_t refused_pause; /* … or was refused: by policy, or because the site rests (30 s) … */
    uint64_t trouble_max;   /* … up to this (15 min) */
    uint64_t stopped_poll;  /* while revoked or blocked (10 min) */
};
void kedge_site_times_default(struct kedge_site_times *ret);

struct kedge_site_params {
    struct kedge_site_times times;
    uint64_t seed;  /* of the jitter; differs between sites */
    bool allow_all; /* policy "*": any job that the tenant joined */
    uint32_t allowed_count;
    const struct kedge_id *allowed; /* job ids that policy.json allows; borrowed while the site lives */
    uint64_t base_max, update_max;  /* longest model and update files that the site will handle, bytes */
    uint32_t works;                 /* as kedge_site_size was asked for: 1 … KEDGE_SITE_WORKS_MAX, 0: 1 */
    uint32_t at_once;               /* of them so many take tasks, 0: all */
};

/* ---- events ---- */
enum kedge_site_event_type {
    KEDGE_SITE_EV_START,         /* memory, seen, err: why the main chain was refused before, or KEDGE_OK */
    KEDGE_SITE_EV_REPLY,         /* serial, reply */
    KEDGE_SITE_EV_CALL_FAILED,   /* serial, err: nothing is known of what the coordinator did */
    KEDGE_SITE_EV_FETCHED,       /* serial: the blob is here and has its digest */
    KEDGE_SITE_EV_FETCH_FAILED,  /* serial, err; KEDGE_E_DENIED: the spec is here, but policy forbids it */
    KEDGE_SITE_EV_TRAINED,       /* serial, result_count, results (update first, then evaluation) */
    KEDGE_SITE_EV_TRAIN_FAILED,  /* serial, err */
    KEDGE_SITE_EV_UPLOADED,      /* serial: the coordinator has the whole file */
    KEDGE_SITE_EV_UPLOAD_FAILED, /* serial, err: from the coordinator or of the transfer */
    KEDGE_SITE_EV_PERSISTED,     /* serial, err */
    KEDGE_SITE_EV_SHIFTED,       /* job: at any time after START */
    KEDGE_SITE_EV_POLICY,        /* allow_all, allowed_count, allowed, at_once: at any time after START */
    KEDGE_SITE_EV_REST,          /* rest: at any time after START */
    KEDGE_SITE_EV_TIMER,
};

enum kedge_site_reply_kind {
    KEDGE_SITE_REPLY_ENROLLED, /* active: the tenant has enrolled the site; else ask again after retry_ns */
    KEDGE_SITE_REPLY_TASK,
    KEDGE_SITE_REPLY_WAIT,    /* retry_ns */
    KEDGE_SITE_REPLY_RECEIPT, /* checked by the host */
    KEDGE_SITE_REPLY_CLOSED,  /* the round was closed without this statement; checked by the host */
    KEDGE_SITE_REPLY_NOTED,   /* of ENDED */
    KEDGE_SITE_REPLY_ERROR,   /* err, retry_ns */
};
struct kedge_site_reply {
    enum kedge_site_reply_kind kind;
    bool active;
    int err;
    uint64_t retry_ns;
    struct kedge_site_task task;
    struct kedge_site_chain shown; /* TASK, WAIT: the main chain, as signed as the host demands */
    bool breaks; /* `shown` has the size of what was seen when asking and another root, or is larger and its
                    proof does not show that it grew out of that */
};

struct kedge_site_event {
    enum kedge_site_event_type type;
    uint64_t now_ns; /* monotonic, never decreasing */
    uint64_t serial;
    int err;
    enum kedge_trouble trouble; /* FETCH_FAILED, TRAIN_FAILED: if more is known than err says, else NONE */
    struct kedge_site_memory memory; /* START */
    struct kedge_site_chain seen;    /* START: the newest of the main chain that is remembered */
    struct kedge_site_reply reply;   /* REPLY */
    struct kedge_id job;             /* SHIFTED */
    bool rest;                       /* REST */
    bool allow_all;                  /* POLICY: in place of those of kedge_site_init … */
    uint32_t at_once;
    uint32_t allowed_count;
    const struct kedge_id *allowed; /* … borrowed while the site lives, or until the next one */
    uint32_t result_count;          /* TRAINED: 1 or 2 */
    struct kedge_site_result results[KEDGE_SITE_RESULTS_MAX];
};

/* ---- effects ---- */
enum kedge_site_effect_type {
    KEDGE_SITE_FX_CALL,   /* serial, call: send a request, report REPLY or CALL_FAILED */
    KEDGE_SITE_FX_FETCH,  /* serial, blob, digest, len of task's job; at once FETCHED when it is already here.
                             Of a task with choices each model is fetched; keep them until it is trained */
    KEDGE_SITE_FX_TRAIN,  /* serial, task: train or evaluate, make the update, sign; → TRAINED */
    KEDGE_SITE_FX_UPLOAD, /* serial, result: send the update file, resuming where the coordinator has it; →
                             UPLOADED */
    KEDGE_SITE_FX_PERSIST, /* serial, memory: store atomically; → PERSISTED */
    KEDGE_SITE_FX_FORGET,  /* result: its update file and envelope are no longer needed */
    KEDGE_SITE_FX_ABORT,   /* serial: stop that FETCH, TRAIN or UPLOAD; its completion will be ignored */
    KEDGE_SITE_FX_SEEN,    /* seen: the newest of the main chain, as the reply in hand shows it */
    KEDGE_SITE_FX_REFUSE,  /* seen, shown (by the reply in hand), err: keep both as evidence, durably */
    KEDGE_SITE_FX_LOG,     /* note, err, job, round, kind */
};

enum kedge_site_call {
    KEDGE_SITE_CALL_ENROLL,
    KEDGE_SITE_CALL_POLL,   /* wait_ns, busy */
    KEDGE_SITE_CALL_SUBMIT, /* result: the envelope with result.envelope */
    KEDGE_SITE_CALL_ENDED,  /* task, trouble, wait_ns: no task of its job is wanted for so long */
};
enum kedge_site_blob {
    KEDGE_SITE_BLOB_SPEC,
    KEDGE_SITE_BLOB_MODEL,
    KEDGE_SITE_BLOB_CONTROL,
    KEDGE_SITE_BLOB_TRIAL
};

enum kedge_site_note {
    KEDGE_SITE_NOTE_ENROLLED,    /* the coordinator knows this site */
    KEDGE_SITE_NOTE_TASK,        /* a task is taken */
    KEDGE_SITE_NOTE_REFUSED,     /* a task is refused: policy, size, or it makes no sense (err) */
    KEDGE_SITE_NOTE_FAILED,      /* a fetch, training, upload or write failed (err); tried again */
    KEDGE_SITE_NOTE_RECEIPT,     /* a result is acknowledged */
    KEDGE_SITE_NOTE_DROPPED,     /* a result is dropped: closed or refused (err) */
    KEDGE_SITE_NOTE_UNREACHABLE, /* a call failed (err); tried again */
    KEDGE_SITE_NOTE_STOPPED,     /* revoked or blocked (err): polls rarely */
    KEDGE_SITE_NOTE_RESUMED,     /* START found unfinished results */
    KEDGE_SITE_NOTE_REFUSING,    /* the main chain is not the one that was seen (err); said again and again */
};
const char *kedge_site_note_name(enum kedge_site_note note); /* "receipt" */

struct kedge_site_effect {
    enum kedge_site_effect_type type;
    uint32_t work; /* which work it is for; a heartbeat is for all */
    uint64_t serial;
    enum kedge_site_call call;
    uint64_t wait_ns;                /* CALL POLL, ENDED */
    enum kedge_trouble trouble;      /* CALL ENDED */
    bool anew;                       /* CALL POLL: what ENDED said of jobs so far holds no more */
    bool busy;                       /* CALL POLL: a heartbeat while working, answered at once by WAIT */
    enum kedge_site_blob blob;       /* FETCH */
    struct kedge_site_digest digest; /* FETCH */
    uint64_t len;                    /* FETCH */
    enum kedge_site_note note;       /* LOG */
    int err;                         /* LOG */
    struct kedge_site_task
        task; /* FETCH, TRAIN, CALL ENDED; LOG: job, round, kind where it is about a task */
    struct kedge_site_result result; /* UPLOAD, FORGET, CALL SUBMIT; LOG RECEIPT and DROPPED */
    struct kedge_site_chain seen;    /* SEEN, REFUSE; CALL POLL: what an answer is to grow out of */
    struct kedge_site_chain shown;   /* REFUSE */
    uint32_t shifted_count;          /* CALL POLL: jobs whose data have shifted, to be told now */
    struct kedge_id shifted[KEDGE_SITE_SHIFTS_MAX];
    uint32_t at_work_count; /* CALL POLL, not busy: jobs that no task is wanted of */
    struct kedge_id at_work[KEDGE_SITE_WORKS_MAX - 1];
    struct kedge_site_memory memory; /* PERSIST; undefined in others, and after its counts */
};

struct kedge_site_effects {
    uint32_t count;
    struct kedge_site_effect items[KEDGE_SITE_EFFECTS_MAX];
};

/* ---- the machine ---- */
struct kedge_site;

/* Bytes that kedge_site_init needs for so many works. */
size_t kedge_site_size(uint32_t works);
/* Makes a site in mem (kedge_site_size bytes, aligned as malloc). KEDGE_E_ARG: mem too small, a time of 0,
 * too many works, or a list without entries where allow_all is false and allowed_count is not 0. */
KEDGE_NODISCARD int kedge_site_init(void *mem, size_t mem_len, const struct kedge_site_params *params,
                                    struct kedge_site **ret);
/* Handles one event; *ret_fx is overwritten. What the coordinator says never trips an assertion; a host that
 * breaks the contract does. */
void kedge_site_step(struct kedge_site *s, const struct kedge_site_event *ev,
                     struct kedge_site_effects *ret_fx);
/* When TIMER is due, UINT64_MAX: never. */
uint64_t kedge_site_deadline_ns(const struct kedge_site *s);
/* The invariants; checked by the simulator after each step. */
bool kedge_site_is_valid(const struct kedge_site *s);

const char *kedge_site_kind_name(enum kedge_site_kind kind); /* "train" */

/* ---- view, valid until the next step ---- */
enum kedge_site_state {
    KEDGE_SITE_NEW, /* before START */
    KEDGE_SITE_ENROLLING,
    KEDGE_SITE_POLLING,
    KEDGE_SITE_FETCHING,
    KEDGE_SITE_TRAINING,
    KEDGE_SITE_PERSISTING,
    KEDGE_SITE_UPLOADING,
    KEDGE_SITE_SUBMITTING,
    KEDGE_SITE_ENDING,   /* tells that a task ends without a result */
    KEDGE_SITE_STOPPED,  /* revoked by the tenant, or the token was refused; reason says which */
    KEDGE_SITE_REFUSING, /* the main chain was cut or forked: results are kept, nothing is asked, sent or
                            signed */
};
const char *kedge_site_state_name(enum kedge_site_state state); /* "training" */

struct kedge_site_work_view {
    enum kedge_site_state state;
    int reason;                             /* last error, KEDGE_OK when the last thing went well */
    const struct kedge_site_task *task;     /* FETCHING, TRAINING, ENDING: what is worked on, else NULL */
    const struct kedge_site_result *result; /* the first unfinished one, else NULL */
};
struct kedge_site_view {
    enum kedge_site_state state; /* of the first work that has something in hand, else of the first … */
    int reason;                  /* … and so are these two */
    const struct kedge_site_task *task;
    const struct kedge_site_memory *memory; /* as far as the core knows, durable or about to be */
    uint64_t tasks, receipts, dropped;      /* since START */
    bool lacks_data; /* a job is left alone because of the data that it would be trained with */
    uint32_t work_count;
    struct kedge_site_work_view works[KEDGE_SITE_WORKS_MAX];
};
void kedge_site_view(const struct kedge_site *s, struct kedge_site_view *ret);

#endif
