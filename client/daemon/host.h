/* Inside of kedge-client: what the files of this room share.
 *
 * The loop thread owns the core (client/core) and executes its effects. Helper threads each do one blocking
 * thing at a time: of each work of the core `call` (long polls and submissions) and `work` (fetch, train,
 * upload), from its first task on, and for all of them `beat` (heartbeats). They post completions as items;
 * nothing else is shared but the flags below.
 *
 *   SITE/site.json      who and where: tenant, site, server, server_key (made by enrolment)
 *   SITE/policy.json    the owner's policy: jobs, data, trainer, limits
 *   SITE/trust.json     optional: keys to check receipts by (the format of docs/record.md)
 *   SITE/keys/          tls.pem, statement.pem (made here, never leave)
 *   SITE/memory         unfinished results with their envelopes, and what was signed last; see stored.h
 *   SITE/energy         what was used of energy budgets and learnt of batches; see energy_stored.h
 *   SITE/power-found    power caps as they were found, while others are set
 *   SITE/seen-main      the last main checkpoint seen
 *   SITE/refused-main/  `seen` and `shown`, evidence of a cut or forked main chain: stops all work; `latest`,
 *                       what was shown last. refused-main.* are those of former times, see heal.c
 *   SITE/status.json    what it does, for its owner; see status.h
 *   SITE/kept/          what is kept of jobs from one training to the next, see kept.h
 *   SITE/bases/         frozen bases of models by their digests, see base.h
 *   SITE/personal/      the site's own models (Ditto) as the last training left them, for its owner
 *   SITE/trainers/NAME/ the folder of a trainer of the owner's own; see trainer.h
 *   SITE/work/          models and updates in use, and former ones whose room the next ones take; those of
 *                       the second task at once are in work-1, and so on */
#ifndef KEDGE_CLIENT_DAEMON_HOST_H
#define KEDGE_CLIENT_DAEMON_HOST_H

#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "chain/statement/statement.h"
#include "client/core/site.h"
#include "client/daemon/chain/identity.h"
#include "client/daemon/data_files.h"
#include "client/daemon/policy.h"
#include "client/daemon/status.h"
#include "client/daemon/stored.h"
#include "client/daemon/trainer/metrics.h"
#include "common/base/os/file.h"
#include "common/base/os/process.h"
#include "common/base/os/queue.h"
#include "common/net/client.h"
#include "common/wire/messages.h"
#include "job/job_spec.h"

struct kedge_site_host;
struct kedge_client_work;
struct kedge_site_item {
    void (*run)(struct kedge_client_work *w, struct kedge_site_item *item);  /* on a helper thread, or NULL */
    void (*handle)(struct kedge_site_host *h, struct kedge_site_item *item); /* on the loop; frees the item */
    struct kedge_client_work *work;                                          /* whose thread ran it */
};

enum { KEDGE_TRAINER_SAID_LEN = 256, KEDGE_TRAINER_SAID_MAX = 100 };
struct kedge_trainer {
    struct kedge_process process;
    struct kedge_id name;              /* of the owner's own that runs; "": the built-in one */
    struct kedge_buf line;             /* read so far of the reply */
    uint64_t asked;                    /* requests so far */
    uint64_t used_ns;                  /* when the last one ended */
    char said[KEDGE_TRAINER_SAID_LEN]; /* the last line of its stderr */
    size_t said_len;
    bool said_ends;      /* the line is whole */
    uint32_t said_lines; /* of this task */
};

/* The main chain was cut or forked. */
struct kedge_site_refusal {
    int err; /* KEDGE_OK: it was not */
    struct kedge_site_chain seen, shown;
};

/* Around the site: signals, the service manager, the policy in force, status.json. The loop's. */
struct kedge_site_service {
    struct kedge_status status;
    char why[KEDGE_STATUS_TEXT_MAX]; /* of the completion that the core is handling, in words; "": none */
    bool changed;                    /* since status.json was written, which may be again at … */
    uint64_t next_write_ns;
    char line[KEDGE_STATUS_TEXT_MAX]; /* what the service manager was told last */
    uint64_t watchdog_ns, bark_ns;    /* how often, and when next; 0: no watchdog */
    uint64_t finish_ns;               /* finishing: the end of patience */
    struct kedge_data_files data;
    json_t *policy; /* as the file says it */
    char policy_error[KEDGE_STATUS_TEXT_MAX], waits_for[KEDGE_STATUS_TEXT_MAX];
    struct kedge_idle idle;
    bool allow_all, insecure;
    char proxy[KEDGE_POLICY_PROXY_MAX + 1]; /* in use since the start, as `insecure` and … */
    char proxy_login_file[KEDGE_POLICY_PROXY_MAX + 1];
    uint32_t allowed_count, stop_seconds, jobs_at_once;
    struct kedge_id allowed[KEDGE_POLICY_JOBS_MAX];
};

struct kedge_client_energy; /* energy.h */
struct kedge_train_item;    /* train.h */

/* A policy in force, shared by those that work under it. */
struct kedge_policy_held {
    atomic_uint holders;
    struct kedge_site_policy policy;
};

/* A place for one task: what the host has of a work of the core. */
struct kedge_client_work {
    struct kedge_site_host *h;
    uint32_t index;
    bool started; /* its threads run */
    pthread_t threads[2];
    struct kedge_queue *call_queue, *work_queue;
    atomic_uint_fast64_t abort_serial; /* the work with this serial or a lower one is to stop */
    atomic_int trainer_pid;            /* of its trainer, for status.json; 0: none runs */
    /* The loop's. */
    struct kedge_admission_ask runs; /* what its training takes of what is shared */
    struct kedge_train_item *waits;  /* one that does not fit beside those that run … */
    char why[KEDGE_ADMISSION_TEXT_MAX];
    bool used;                              /* it has had a task since its files were removed … */
    uint64_t idle_since_ns;                 /* … and has had none since then; 0: it has one */
    uint64_t waits_since;                   /* … in the order of `waits_count` … */
    uint32_t passed;                        /* … and how many have begun since */
    char ended[KEDGE_TROUBLE_TEXT_MAX + 1]; /* why its task ended without a result, in words */
    char classes[KEDGE_CLASS_NAMES_ROOM];   /* that the last task brought */
    /* The work thread's. */
    const struct kedge_site_policy *policy; /* held */
    enum kedge_trouble trouble; /* why what it does fails, where more is known than an error says */
    struct kedge_trainer trainer;
    struct kedge_id spec_job; /* job of `spec` */
    struct kedge_hash spec_digest;
    struct kedge_job_spec *spec;
    struct kedge_layout layout; /* of models and updates of the job … */
    struct kedge_layout whole;  /* … and of what is trained: with the site's head or the frozen base */
    struct kedge_site_digest model_digest;   /* the model that was fetched last … */
    struct kedge_site_digest control_digest; /* … the server's control variate, … */
    struct kedge_site_digest trial_digest;   /* … the trial of two groups … */
    struct kedge_site_digest base_digest;    /* … and the frozen base, which is in SITE/bases */
};

struct kedge_site_host {
    char dir[KEDGE_PATH_MAX];
    struct kedge_site_config config;
    const struct kedge_site_policy *policy; /* the newest, held */
    atomic_uint_fast64_t witness_age_max_s;
    struct kedge_site_service service;
    struct kedge_client_energy *energy;
    struct kedge_site_trust trust;
    struct kedge_key_pair tls_key, statement_key;
    struct kedge_net_client *net;
    struct kedge_queue *queue, *beat_queue;
    struct kedge_client_work works[KEDGE_SITE_WORKS_MAX];
    uint64_t waits_count; /* trainings that had to wait, so far */
    void *site_mem;
    struct kedge_site *site;
    void (*execute)(struct kedge_site_host *h, const struct kedge_site_effect *fx); /* effects.c */
    struct kedge_site_envelope envelopes[KEDGE_SITE_STORED_MAX]; /* of the results in the core's memory */
    struct kedge_site_signeds signeds;
    struct kedge_groupeds groupeds;   /* the data that the site was grouped by */
    struct kedge_kept_table kept;     /* which kept vectors belong to what the coordinator has */
    struct kedge_site_memory written; /* what the memory file says, durably */
    uint64_t memory_sequence;         /* of that write; 0: none yet */
    bool memory_is_behind;            /* results were settled since: `settled` is what it should say */
    struct kedge_site_memory settled;
    struct kedge_site_chain seen; /* the newest of the main chain … */
    struct kedge_buf seen_note;   /* … as it was signed */
    struct kedge_view shown_note; /* of the reply that the core is handling */
    struct kedge_site_refusal refusal;
    struct kedge_site_heal {
        uint64_t next_ns,
            pause_ns; /* when the coordinator is asked again, and how long after the last time */
        bool asks;
    } heal;
    bool stop;
    bool again; /* the process is to begin anew */
    int fatal;
};

/* ---- loop.c ---- */
void kedge_client_post(struct kedge_site_host *h, struct kedge_site_item *item);
void kedge_client_step(struct kedge_site_host *h, struct kedge_site_event *ev);

/* ---- effects.c ---- */
/* Carries out what the core decided: what `execute` of the host is. */
void kedge_client_execute(struct kedge_site_host *h, const struct kedge_site_effect *fx);

/* ---- turns.c ---- */
/* Until `stop`; returns `fatal`. */
int kedge_client_run(struct kedge_site_host *h);

/* ---- files.c ---- */
KEDGE_NODISCARD int kedge_client_path(const struct kedge_site_host *h, char out[KEDGE_PATH_MAX],
                                      const char *format, ...) KEDGE_PRINTF(3, 4);
/* Replaces a file of less than a sector: readers and a killed process find the old or the new content. Not
 * synced: after a power cut either may be there. */
KEDGE_NODISCARD int kedge_client_put_file(const char *path, struct kedge_view content);
/* A file of the working folder that takes the room of a former one: what is in it is overwritten, which costs
 * neither new blocks nor new pages. Ended, it is exactly len bytes long. */
KEDGE_NODISCARD int kedge_client_reuse_begin(const char *path, int *ret_fd);
KEDGE_NODISCARD int kedge_client_reuse_end(int fd, uint64_t len);
/* Makes the file `old`, where there is one, the room of the next file at `path`. */
void kedge_client_reuse_give(const char *old, const char *path);
/* "work/KIND-<hex>": path of a working file by digest. */
KEDGE_NODISCARD int kedge_client_work_path(const struct kedge_client_work *w, const char *kind,
                                           const struct kedge_site_digest *digest, char out[KEDGE_PATH_MAX]);
/* "work/NAME", in the work's folder; NAME "" is that itself. */
KEDGE_NODISCARD int kedge_client_work_file(const struct kedge_client_work *w, const char *name,
                                           char out[KEDGE_PATH_MAX]);
/* Removes the working files of this kind, whole or half-written, but those of these digests. */
void kedge_client_work_trim(const struct kedge_client_work *w, const char *kind,
                            const struct kedge_site_digest *keep, size_t count);

/* ---- folder.c ---- */
/* Makes the folder from an enrolment token: keys, site.json, a policy.json that allows all jobs but binds no
 * data. */
KEDGE_NODISCARD int kedge_client_enroll_folder(const char *dir, struct kedge_view token,
                                               struct kedge_diag *d);
KEDGE_NODISCARD int kedge_client_open_folder(struct kedge_site_host *h, struct kedge_diag *d);
/* policy.json, with the built-in trainer where it names none; *ret_shown is the whole object, the caller's.
 */
KEDGE_NODISCARD int kedge_client_read_policy(const struct kedge_site_host *h,
                                             const struct kedge_site_policy **ret, json_t **ret_shown,
                                             struct kedge_diag *d);
/* A policy that kedge_client_read_policy gave has one holder; the last one that lets go frees it. */
void kedge_client_policy_hold(const struct kedge_site_policy *p);
void kedge_client_policy_let_go(const struct kedge_site_policy *p);
void kedge_client_close_folder(struct kedge_site_host *h);

/* ---- outcomes.c ---- */
/* One event for the core, about something that failed for a reason in words. */
void kedge_client_service_step(struct kedge_site_host *h, struct kedge_site_event *ev, const char *why);
/* The coordinator has answered. */
void kedge_client_service_answered(struct kedge_site_host *h);
/* An effect LOG. */
void kedge_client_service_note(struct kedge_site_host *h, const struct kedge_site_effect *fx);

/* ---- service.c ---- */
/* The signals that the daemon waits for; blocked before any thread begins. */
void kedge_client_service_signals(sigset_t *ret);
/* The folder is open. */
void kedge_client_service_open(struct kedge_site_host *h);
KEDGE_NODISCARD int kedge_client_service_start(struct kedge_site_host *h, const pthread_attr_t *attr);
/* A connection has come about, or was lost. From any thread. */
void kedge_client_service_connection(void *host);
/* Between two events of the loop, and when it next must be. May set h->stop. */
void kedge_client_service_turn(struct kedge_site_host *h);
uint64_t kedge_client_service_deadline_ns(const struct kedge_site_host *h);
void kedge_client_service_end(struct kedge_site_host *h);

/* ---- memory.c ---- */
/* Also fills h->envelopes, h->signeds and what else the file has. */
KEDGE_NODISCARD int kedge_client_memory_read(struct kedge_site_host *h, struct kedge_site_memory *ret,
                                             struct kedge_diag *d);
/* Durable. */
KEDGE_NODISCARD int kedge_client_memory_write(struct kedge_site_host *h,
                                              const struct kedge_site_memory *memory, struct kedge_diag *d);
/* True when the memory file has all that is in `memory`: it says less, because results were settled. */
bool kedge_client_memory_covers(const struct kedge_site_host *h, const struct kedge_site_memory *memory);
/* NULL when it is not among those that wait. */
struct kedge_site_envelope *kedge_client_envelope_find(struct kedge_site_host *h,
                                                       const struct kedge_site_digest *digest);

/* ---- seen.c: the main chain ---- */
/* What a signed checkpoint says; key NULL: nobody knows who should have signed it. KEDGE_E_FORMAT,
 * KEDGE_E_VERIFY. */
KEDGE_NODISCARD int kedge_client_chain_of(struct kedge_view note, const struct kedge_vkey *key,
                                          struct kedge_site_chain *ret);
/* Fills h->seen and h->refusal. A damaged seen-main is said and forgotten: it is an aid against forks, and
 * without it the site can still train. */
void kedge_client_seen_read(struct kedge_site_host *h);
/* Execute SEEN and REFUSE with h->shown_note; tell people about the refusal and what to do. */
void kedge_client_seen_keep(struct kedge_site_host *h, const struct kedge_site_effect *fx);
void kedge_client_seen_refuse(struct kedge_site_host *h, const struct kedge_site_effect *fx);
void kedge_client_seen_say(const struct kedge_site_host *h);

/* ---- heal.c: a site that refuses, and what makes it go on ---- */
void kedge_client_heal_turn(struct kedge_site_host *h);
uint64_t kedge_client_heal_deadline_ns(const struct kedge_site_host *h);
/* SIGHUP: true, and the process is to begin anew, when its owner has accepted what was refused. */
bool kedge_client_heal_reload(struct kedge_site_host *h);
/* Renames DIR/refused-main, which is evidence: "refused-main.WHY-SECONDS". */
KEDGE_NODISCARD int kedge_client_heal_set_aside(const char *dir, const char *why, struct kedge_diag *d);

/* ---- growth.c: on the threads of calls ---- */
/* The main chain as an answer shows it. */
struct kedge_shown_main {
    struct kedge_view newest, since_seen, cosigned, since_cosigned;
};
/* `seen` is what was seen when asking. *ret_breaks: the chain shown has its size and another root, or is
 * larger and its proof does not show that it grew out of it. KEDGE_E_FORMAT: it is larger and there is no
 * proof at all, as when the coordinator could not make one: no answer, and no evidence against it.
 * KEDGE_E_VERIFY: not signed as it must be; KEDGE_E_DENIED: the quorum that the owner demands is not there
 * (all are logged); KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_client_check_main(const struct kedge_site_host *h,
                                            const struct kedge_site_chain *seen,
                                            const struct kedge_shown_main *shown,
                                            struct kedge_site_chain *ret, bool *ret_breaks);

/* Whether what is shown has grown out of what was seen, or is that; `breaks` as kedge_client_check_main has
 * it. Pure. */
bool kedge_client_heals(const struct kedge_site_chain *seen, const struct kedge_site_chain *shown,
                        bool breaks);

/* ---- refusals.c: on the threads of calls ---- */
/* A signed refusal of the update `r` that was sent in `envelope`: checked as its signer and what it is about,
 * and kept with both in SITE/refusals/, where an auditor can be shown it. *ret_why: the refusal's reason.
 * KEDGE_E_VERIFY: it is not the coordinator's word about this envelope, so nothing is known; KEDGE_E_NOMEM.
 */
KEDGE_NODISCARD int kedge_client_take_refused(struct kedge_client_work *w, const struct kedge_msg *msg,
                                              const struct kedge_site_result *r, struct kedge_view envelope,
                                              int *ret_why);

/* ---- update.c: on the work thread ---- */
struct kedge_client_control;
struct kedge_kept;
/* Makes the update file from two models and writes its digest and length to r. Where the job has a control
 * variate (control.h), the file has its change over so many steps, too, and `control` is what it is then;
 * where its updates come compact, `residual` (kept.h) has what is left then. Else NULL. */
KEDGE_NODISCARD int kedge_client_make_update(struct kedge_client_work *w, const char *base_path,
                                             const char *out_path, struct kedge_client_control *control,
                                             struct kedge_kept *residual, uint64_t steps,
                                             struct kedge_site_result *r, struct kedge_diag *d);
/* Sign what r says of a task; *ret_envelope is the caller's. */
struct kedge_energy_plan;
KEDGE_NODISCARD int kedge_client_sign_update(struct kedge_client_work *w, const struct kedge_site_task *t,
                                             const struct kedge_energy_plan *plan,
                                             const struct kedge_metrics *m, struct kedge_site_result *r,
                                             struct kedge_site_envelope *ret_envelope, struct kedge_diag *d);
KEDGE_NODISCARD int kedge_client_sign_evaluation(struct kedge_client_work *w, const struct kedge_site_task *t,
                                                 const struct kedge_metrics *m, struct kedge_site_result *r,
                                                 struct kedge_site_envelope *ret_envelope,
                                                 struct kedge_diag *d);

/* ---- calls.c, transfer.c, train.c: start what an effect asks for ---- */
void kedge_client_call(struct kedge_site_host *h, const struct kedge_site_effect *fx);
void kedge_client_fetch(struct kedge_site_host *h, const struct kedge_site_effect *fx);
void kedge_client_upload(struct kedge_site_host *h, const struct kedge_site_effect *fx);
void kedge_client_train(struct kedge_site_host *h, const struct kedge_site_effect *fx);
void kedge_client_trainer_stop(struct kedge_client_work *w);
/* trainer_idle.c: a trainer without a task is kept for policy.json's trainer_idle_seconds: until when
 * (KEDGE_TIME_NEVER: none runs), and what ends it then. It may take patience_ms after the end of its input,
 * and as long again after SIGTERM. The next task starts it again. */
enum { KEDGE_TRAINER_PATIENCE_MS = 3000 };
uint64_t kedge_client_trainer_deadline_ns(const struct kedge_client_work *w);
void kedge_client_trainer_end_idle(struct kedge_client_work *w, uint32_t patience_ms);
/* Work with this serial is to stop. Any thread. */
static inline bool kedge_client_aborted(const struct kedge_client_work *w, uint64_t serial)
{
    return atomic_load(&w->abort_serial) >= serial;
}

/* ---- trainer/spec.c ---- */
/* The work thread only: the spec of a job, read from work/ and kept. */
KEDGE_NODISCARD int kedge_client_spec(struct kedge_client_work *w, const struct kedge_id *job,
                                      const struct kedge_site_digest *digest, struct kedge_diag *d);

/* ---- work_idle.c: on the loop; files of tasks that are done go when no other comes ---- */
void kedge_client_work_idle_turn(struct kedge_site_host *h, const struct kedge_site_view *v, uint64_t now);
uint64_t kedge_client_work_idle_deadline_ns(const struct kedge_site_host *h);

/* ---- ended.c: on the loop ---- */
/* A fetch or a training has failed: its reason into the event, its words for the coordinator, if the owner
 * lets them out. */
void kedge_client_ended_note(struct kedge_client_work *w, enum kedge_trouble why, const char *text,
                             struct kedge_site_event *ev);
/* The request of an effect CALL ENDED. */
struct kedge_msg;
void kedge_client_ended_put(const struct kedge_site_host *h, const struct kedge_site_effect *fx,
                            struct kedge_msg *ret);

/* ---- works.c: the places for tasks, on the loop ---- */
void kedge_client_works_open(struct kedge_site_host *h);
/* Puts the item on a helper thread of the work, which is begun where it does not run yet. */
void kedge_client_works_call(struct kedge_client_work *w, struct kedge_site_item *item);
void kedge_client_works_do(struct kedge_client_work *w, struct kedge_site_item *item);
/* An effect ABORT. */
void kedge_client_works_stop(struct kedge_client_work *w, uint64_t serial);
/* All work that is open stops. */
void kedge_client_works_abort(struct kedge_site_host *h);
void kedge_client_works_close(struct kedge_site_host *h);
/* Begins the training, or lets it wait for those that run: threads, memory and the GPU are shared. */
void kedge_client_works_train(struct kedge_client_work *w, struct kedge_train_item *t);
/* A training has ended, or a new policy is in force: who waited may begin. */
void kedge_client_works_trained(struct kedge_client_work *w);
void kedge_client_works_policy(struct kedge_site_host *h);

#endif
