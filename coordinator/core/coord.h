/* The coordinator's state machine: jobs, rounds, groups, and who may do what when. Pure: no I/O, no clock, no
 * threads, no allocation after init. One event in, effects out; the daemon and the simulator are its two
 * hosts.
 *
 * What it is not: it never sees model vectors, keys, envelopes or JSON, only handles, digests and counts.
 *
 * Contract between core and host
 *  - The host executes effects in array order. An effect that depends on a write is only emitted after the
 * event that reports the write durable.
 *  - Appends are idempotent (the ledger has an idempotency key per statement). A failed append has an unknown
 * outcome: the core asks for the same append again after a pause (the job is halted meanwhile) until it
 * succeeds, so nothing that is durable is ever left out of an input list. A failure that cannot be repaired
 * ends the process instead. Two exceptions. What can never be stored (EXISTS: another entry has its key;
 * TOO_LONG, FORMAT, ARG, BUG) is definite: a site's statement is refused (EXISTS as DUPLICATE), any other
 * ends its job as failed with that reason, without job-closed where job-opened could not be stored. And for a
 * revoked site KEDGE_E_REVOKED is definite (the ledger holds site-revoked and not this statement, and will
 * never hold it); the host answers an append after site-revoked so. An identical leaf is OK.
 *  - A completion echoes tenant, site, job, round, group, kind and ticket of its effect. Every VERIFY,
 * APPEND, MAIN_*, CLOSE_ROUND, ASSIGN and APPEND_ASSIGNED is completed exactly once. MAIN_ROUND_CLOSED is one
 * atomic write.
 *  - A receipt may be lost and its round closed since: before it executes CLOSED, or TURN_AWAY with
 * KEDGE_E_NO_JOB, the host looks for an identical leaf in the tenant's ledger and, if there is one, answers
 * with its receipt instead.
 *  - Restart: kedge_coord_init, LOAD_* events with what was durable, then START. There is no other recovery
 * path. A job whose job-closed is durable has ended, even if another state was stored. LOAD_JOB: models as in
 * JOB_SUBMIT, err the reason stored with the state (JOB_STATE's err): HALTED with KEDGE_OK is the
 * operator's halt, any other is derived anew; a host that keeps no other state says ENROLLING after a
 * durable job-opened. Then LOAD_ROUND closed (the last one), LOAD_ROUND open, LOAD_ROW, LOAD_GROUP,
 * LOAD_REFUSED, LOAD_ACCEPTED, LOAD_EVALUATED. TENANT_ADDED, SITE_ADDED come before them; SITE_REVOKED,
 * JOB_JOINED and JOB_LEFT may come before START, too.
 *  - A refusal that belongs into the record of the round (TURN_AWAY with recorded) is made durable by the
 * host before it is told, and comes back by LOAD_REFUSED as long as its round is open; so a round neither
 * waits again for a site that was refused nor forgets to say so. A host that cannot keep it may leave it
 * out: then the site is asked again.
 *  - A site that cannot serve a task says so (TASK_ENDED). Its part in the round ends with that, and for as
 * long as it said it is no candidate of that job, unless the job cannot do without: then a round that could
 * close without it opens with it. A round of which nobody is left and that has too few updates is HALTED with
 * KEDGE_E_SITES, and goes on when one of its sites is able again; or, when nothing has come to it and
 * sites_min others are able, with these: MAIN_ROUND_OPENED again, of the same round and the next draw. When
 * all its sites have failed and nobody else is there, KEDGE_COORD_FAILURES_MAX times in a row each, or once
 * if all diverged, the job fails with that reason: unless it is one that its owners or time may mend (data
 * not bound, policy, disk, memory, energy). Nothing of this is durable: after a restart sites are asked
 * again, and say it again.
 *  - A ticket is the host's handle of one submission (envelope, staged blob); the host keeps it until
 * TURN_AWAY, CLOSED or RECEIPT of that ticket's request has been executed.
 *
 * Life of a round: MAIN_ROUND_OPENED (durable) → tasks → accepted inputs (each durable in its tenant's
 * ledger) → CLOSE_ROUND work → MAIN_ROUND_CLOSED (durable) → the groups that it gave, each by APPEND_ASSIGNED
 * (durable) → next. A round is of one kind (kedge_coord_round_kind): TRAIN, or PRETRAIN, in which the
 * selected sites pre-train from the initial model and are grouped by what comes of it: round 0 of a job that
 * begins so (the cold start), and every later round in which groups are made anew.
 *
 * Groups. A site is in at most one group of a job. The group in force is that of its last
 * group-assigned; tasks, bases and what the site may read follow from it alone. It changes in two
 * ways:
 *  - by the site's own accepted pre-training in an open TRAIN round: a newcomer's, or (a migration) one whose
 *    data have shifted, as its polls say. ASSIGN finds the nearest group, APPEND_ASSIGNED states it with this
 *    round. Until then the site is asked for nothing; then it trains, if it is selected, for the new group.
 *    What it had accepted before stays in the group that it was made for (kedge_coord_input.group). A site
 *    that is not selected may migrate; the round does not wait for it.
 *  - by the close of a round: ROUND_COMPUTED lists sites and groups. The close must make the list durable,
 * for a restart tells the core of those whose group-assigned is missing. All are durable before the next
 * round opens. Numbers of groups may mean others from then on, and there may be more or fewer of them. In a
 * job of KEDGE_ENTRY_CHOICE there is no group-assigned: the group is the one that the site's last accepted
 * update was for. */
/* Asynchronous jobs (params.buffer > 0, one group). A site is selected from the round in which it is drawn
 * until its update is in a list, is refused, or counts no more: at most one task of a job at a time, and the
 * round of that task (kedge_coord_row.task_round) is what its tasks, uploads and statements name. A round
 * opens with those who are at work, of whom those who are online hold a place, and as many more drawn from
 * the other candidates as make sites_per_round (kedge_coord_draws); it closes once `buffer` updates of any of
 * them are accepted, and takes no more of them. Between rounds a site that is at work is told BUSY; after the
 * last round of its task, CLOSED. Restart: LOAD_ROUND closed of the last staleness_max + 1 rounds, ascending;
 * LOAD_ROW of all who are at work, round: of their task, also where no round is open. */
#ifndef KEDGE_COORDINATOR_CORE_COORD_H
#define KEDGE_COORDINATOR_CORE_COORD_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/labels.h"
#include "common/base/limits.h"
#include "common/base/task_kind.h"
#include "common/base/text.h"
#include "common/base/trouble.h"
#include "grouping/entry.h"

enum {
    KEDGE_JOB_TENANTS_MAX = 128,  /* a round-opened statement lists them and must fit one ledger entry */
    KEDGE_COORD_DRAWS_MAX = 99,   /* of one round after the first; then it waits for those it has */
    KEDGE_COORD_FAILURES_MAX = 3, /* of each site, in a row, before a job fails because all of them do */
    KEDGE_COORD_EFFECTS_MAX = 64, /* effects of one step; the rest follows by calling STEP_MORE */
};
#define KEDGE_COORD_NONE UINT32_MAX /* no tenant, site, job, group, ticket or request */

/* 32 bytes that the core compares and copies; the host knows them as SHA-256 digests. */
struct kedge_digest {
    uint8_t b[32];
};

/* By which the core knows a label: the host's number for it, the same exactly for the same label. */
struct kedge_coord_label {
    uint64_t high, low;
};

/* Below 0, 0 or above it, as a is before b, b, or after it. */
static inline int kedge_coord_label_cmp(const struct kedge_coord_label *a, const struct kedge_coord_label *b)
{
    const int by = (a->high > b->high) - (a->high < b->high);
    return by != 0 ? by : (a->low > b->low) - (a->low < b->low);
}

/* DESIGN §7. HALTED keeps what it was doing; PENDING, QUEUED are before the main chain knows the job. */
enum kedge_job_state {
    KEDGE_JOB_PENDING,
    KEDGE_JOB_QUEUED,
    KEDGE_JOB_ENROLLING, /* waits for tenants to join and sites to come */
    KEDGE_JOB_GROUPING,  /* round 0 */
    KEDGE_JOB_TRAINING,
    KEDGE_JOB_HALTED,  /* by the operator, by missing quorum, or by storage; job_reason says which */
    KEDGE_JOB_STORING, /* last evaluations, release, job-closed */
    KEDGE_JOB_COMPLETED,
    KEDGE_JOB_FAILED,
    KEDGE_JOB_CANCELLED,
};
const char *kedge_job_state_name(enum kedge_job_state state); /* "training" */
/* May a job move from one of these states to the other? False outside the list; never from an end. */
bool kedge_job_state_allows(enum kedge_job_state from, enum kedge_job_state to);

struct kedge_coord_limits {
    uint32_t tenants_max, sites_max, jobs_max; /* ≥ 1, at most KEDGE_TENANTS_MAX, _SITES_MAX, _JOBS_MAX */
};

/* Times of the coordinator, in ns. */
struct kedge_coord_times {
    uint64_t lease;         /* a site not heard of for so long counts as offline (default 15 s) */
    uint64_t offline_grace; /* unresolved selected sites offline for so long no longer hold a round (5 s) */
    uint64_t settle;        /* wait for known sites to come before a round opens without them (1 s) */
    uint64_t poll_max;      /* longest parked poll; init cuts it to half a lease (7.5 s) */
    uint64_t retry;         /* pause before a failed append or work is asked for again (1 s) */
    uint64_t unable_max;    /* longest time for which a site can take itself out of a job (1 h) */
    uint64_t evaluate_max;  /* longest wait for evaluations after the last round (30 s) */
    uint32_t share_floor;   /* no time: of its equal share of sites that several jobs use each job keeps so
                               many millionths, whatever others weigh (500,000) */
};
void kedge_coord_times_default(struct kedge_coord_times *ret);

/* What a site says of its battery, and no more: class 0 says nothing. */
enum kedge_charge { KEDGE_CHARGE_UNTOLD, KEDGE_CHARGE_LOW, KEDGE_CHARGE_ENOUGH, KEDGE_CHARGE_MAINS };

struct kedge_coord_job_params {
    struct kedge_id id;
    uint32_t tenant_count;                   /* 1…KEDGE_JOB_TENANTS_MAX */
    uint32_t tenants[KEDGE_JOB_TENANTS_MAX]; /* tenant handles */
    uint32_t rounds;                         /* 1…KEDGE_ROUNDS_MAX */
    uint32_t sites_per_round;                /* 0: all candidates */
    uint32_t sites_min;                      /* candidates needed to open a round, ≥ 1 */
    uint32_t quorum; /* accepted updates needed to close at the deadline, ≥ 1; to make
                        groups anew at least as many as there are groups */
    uint64_t round_timeout_ns;
    uint64_t enrol_within_ns; /* a job of which no round could open by then ends as failed, with
                                 KEDGE_E_ENROL_TIME; not while the operator halts it. 0: it waits for ever */
    uint64_t seed;
    uint32_t groups;         /* most groups at any time; 1: no grouping, no round 0 */
    enum kedge_entry entry;  /* with groups > 1: how sites come to their first group. PRETRAIN: round 0 makes
                                the groups,  and a group-assigned states each. TOGETHER, TENANT: without
                                statement. NEAREST: before a  selected site trains, ASSIGN says which group
                                that  is, stated where it is not the one in  force. CHOICE: without statement,
                                migrate_every and regroup_every are 0, closes list no  sites */
    uint32_t pretrain_sites; /* sites of a PRETRAIN round, 0: all candidates (α·m of FlexCFL); at most
                                KEDGE_PRETRAIN_SITES_MAX, as equal a number of each tenant as may be */
    uint32_t evaluate_every; /* rounds between evaluations, 0: never */
    bool has_targets;     /* after a round that is evaluated, but the last, the job waits for the evaluations,
                             and MAIN_ROUND_TESTED says what came of them; not with buffer */
    uint32_t turn_weight; /* of a job that shares sites with others, until its first of two targets is
                             reached, and below it again (useful of MAIN_APPENDED); 0: 1, as all others … */
    uint64_t due_ns;      /* … when the host wants all rounds done, as events' now_ns; 0: whenever */
    uint64_t weight_max;  /* largest sample count of one update */
    bool has_root; /* the update of one site is the root of trust: it is selected in every round, no round
                      opens while it is not online, none closes without its accepted update. groups is 1,
                      sites_per_round not 1, sites_min and quorum are at least 2 … */
    uint32_t root_tenant;      /* … a tenant handle of this job */
    struct kedge_id root_site; /* … and the name of its site, which need not be enrolled yet */
    /* with groups > 1; all 0: groups are made in round 0 and never change */
    uint32_t migrate_every; /* a site whose data shift may change its group when its last group-assigned is so
                               many rounds ago, 0: never. So a site can move (rounds / migrate_every) times */
    uint32_t regroup_every; /* every so many rounds is a PRETRAIN round, 0: only when a close asks for it */
    uint32_t buffer; /* an asynchronous job: a round closes with so many updates, while other sites are still
                        at work; groups is 1 then. 0: rounds wait for their sites */
    uint32_t staleness_max; /* asynchronous: rounds after that of its task in which an update still counts,
                               at most KEDGE_STALENESS_MAX */
    uint32_t priority;      /* among jobs that share sites: the higher one waits for no lower one's turn */
    bool elastic;        /* candidates are only sites that no other job's open round waits for, sites_min of
                            them at least; not with has_root or buffer */
    uint32_t need_count; /* only sites with all of these labels are asked; not with has_root. Numbers that the
                            host gives to labels, ascending; 0: whatever labels they have */
    struct kedge_coord_label needs[KEDGE_LABEL_COUNT_MAX];
    bool by_charge; /* TRAIN rounds take sites by what they say of their batteries, see
                       kedge_coord_pick_charged; asynchronous and root jobs do not */
};

/* One accepted or refused contribution of a site to a round. */
enum kedge_input_progress {
    KEDGE_INPUT_NONE,
    KEDGE_INPUT_VERIFYING,
    KEDGE_INPUT_APPENDING, /* the outcome of its append is open; the round cannot close */
    KEDGE_INPUT_ACCEPTED,  /* durable in the tenant's ledger */
    KEDGE_INPUT_REFUSED,   /* invalid; counts as resolved, recorded as turned away with its reason */
};
struct kedge_coord_input {
    enum kedge_input_progress progress;
    int reason;                   /* kedge_err when REFUSED */
    uint32_t ticket;              /* host handle while VERIFYING or APPENDING, else KEDGE_COORD_NONE */
    uint64_t leaf;                /* index in the tenant's ledger when ACCEPTED */
    struct kedge_digest envelope; /* SHA-256 of the envelope */
    struct kedge_digest update;   /* SHA-256 of the update file */
    uint64_t weight;              /* sample count */
    uint64_t cost;  /* of the job's budget, in units of the host's; at most KEDGE_SCHEDULE_MOST */
    uint32_t group; /* TRAIN: that it is for. PRETRAIN: that it gave its site, KEDGE_COORD_NONE:
                       none yet, or none but by the close */
};
/* What the core knows of one site in the current round of one job. */
struct kedge_coord_row {
    bool candidate, selected;
    uint32_t group;       /* KEDGE_COORD_NONE: cold */
    bool group_durable;   /* in force: its group-assigned is in the tenant's ledger, or none is needed */
    uint32_t group_round; /* of its last group-assigned, KEDGE_COORD_NONE: there is none */
    bool shifted;         /* its polls say so, and it has not pre-trained since */
    struct kedge_coord_input
        pretrain; /* PRETRAIN round, or a newcomer's or migrating site's in a TRAIN round */
    struct kedge_coord_input train;
    uint32_t task_round; /* asynchronous, while selected: the round of its task, this one or an earlier one */
    bool away; /* … it was not online when the round opened, and holds no place in it; its update counts */
    uint32_t evaluated_round;  /* highest round whose result it evaluated, KEDGE_COORD_NONE: none */
    enum kedge_trouble unable; /* why it is no candidate now, NONE: it is one … */
    uint64_t unable_ns;        /* … until then */
    enum kedge_trouble ended;  /* why its part in the open round ended without an update, NONE: it did not */
    uint8_t draw; /* by_charge, a candidate of a TRAIN round: what it weighed when sites were drawn; else 0 */
};

/* ---- events ---- */
enum kedge_coord_event_type {
    /* before START: what was durable */
    KEDGE_EV_LOAD_JOB, /* job, params, state (HALTED by operator, ENROLLING…; ended jobs are not loaded) */
    KEDGE_EV_LOAD_ROUND, /* kind; the last closed round (closed, models, regroup as ROUND_COMPUTED had it) or
                            the open one (rows via LOAD_ROW) */
    KEDGE_EV_LOAD_ROW,   /* candidate/selected of the open round; asynchronous: round of the task */
    KEDGE_EV_LOAD_GROUP, /* site's group in a job. durable: round and group of its last group-assigned (with
                            CHOICE: of its last update that is in a closed round). After that, not
                            durable: the group that the last close gave it, when no group-assigned of that
                            round is there; void when one of a later round is */
    KEDGE_EV_LOAD_REFUSED, /* kind, err, envelope, update, weight of a `recorded` refusal of the open round */
    KEDGE_EV_LOAD_ACCEPTED,  /* an update of the open round that is durable in its tenant's ledger; TRAIN:
                                group */
    KEDGE_EV_LOAD_EVALUATED, /* site's last evaluation: round whose result it is about, envelope, leaf */
    KEDGE_EV_START,
    /* members, at any time (also used for loading) */
    KEDGE_EV_TENANT_ADDED,
    KEDGE_EV_SITE_ADDED,   /* its site-enrolled statement is durable */
    KEDGE_EV_SITE_LABELS,  /* its site-labels statement is durable: label_count, labels, all that it has */
    KEDGE_EV_SITE_REVOKED, /* sent BEFORE site-revoked is appended: from here on nothing of it is accepted */
    /* operator and tenants */
    KEDGE_EV_JOB_SUBMIT, /* spec and initial models are durable blobs; models[0] is the initial model, the
                            base of all pre-training */
    KEDGE_EV_JOB_JOINED, /* tenant's job-joined statement is durable */
    KEDGE_EV_JOB_LEFT, /* sent BEFORE the tenant's job-left is appended: from here on no site of it is in the
                          job, as if each had been revoked for this job */
    KEDGE_EV_JOB_HALT,
    KEDGE_EV_JOB_RESUME,
    KEDGE_EV_JOB_CANCEL,
    /* sites */
    KEDGE_EV_POLL, /* request parked until a TASK or WAIT effect answers it; busy: heartbeat, WAIT at once.
                      shifted: the site says that its data for these jobs have; again and again, until it
                      could pre-train. at_work: it has tasks of these jobs in hand, and is offered none of
                      them */
    KEDGE_EV_TASK_ENDED, /* round, kind, trouble: a task ended without a result; the site wants none of the
                            job for wait_ns. Answered by NOTED */
    KEDGE_EV_SUBMIT, /* signature of the envelope is verified, its facts are parsed; blob not yet looked at */
    KEDGE_EV_REQUEST_GONE, /* the connection of a parked poll is lost */
    KEDGE_EV_UPLOAD, /* err: the host could not store a piece of the site's update, or OK: now it can again */
    /* completions */
    KEDGE_EV_VERIFIED, /* of VERIFY: err KEDGE_OK or why the update is refused (RETRY class: ask again) */
    KEDGE_EV_APPENDED, /* of APPEND: err, leaf */
    KEDGE_EV_MAIN_APPENDED,  /* of MAIN_*: err; of MAIN_ROUND_TESTED: reached, useful */
    KEDGE_EV_ROUND_COMPUTED, /* of CLOSE_ROUND: err, models, regroup, assigned_*. A PRETRAIN round lists every
                                site that has a group (revoked or not) and every newcomer that gets one; a
                                TRAIN round those that move, among them all whose group is not below
                                model_count. Each that is listed gets a group-assigned, also one that stays
                                where it is. One that keeps groups lists nobody, and its models are those
                                that there are */
    KEDGE_EV_ASSIGNED, /* of ASSIGN: err (class REJECT: it fits no group; it stays where it is), group */
    KEDGE_EV_ASSIGN_APPENDED, /* of APPEND_ASSIGNED: err */
    KEDGE_EV_TIMER,
};

struct kedge_coord_event {
    enum kedge_coord_event_type type;
    uint64_t now_ns; /* monotonic, never decreasing */
    uint32_t tenant, site,
        job; /* handles; dense, given by the host: tenants and sites from 0, jobs a free slot */
    uint32_t round, group;
    uint32_t draw;    /* LOAD_ROUND open: of its last round-opened */
    uint32_t request; /* host handle of a parked or waiting request */
    uint32_t ticket;
    int err;
    enum kedge_task_kind kind; /* of a SUBMIT, LOAD_ROUND (PRETRAIN or TRAIN), LOAD_ACCEPTED */
    bool closed, durable, selected, busy;
    bool anew;                  /* POLL: what it said by TASK_ENDED so far holds no more */
    enum kedge_trouble trouble; /* TASK_ENDED */
    enum kedge_charge charge;   /* POLL */
    bool tries;   /* likewise: sites judge trials; the next round awaits the evaluations of all */
    bool regroup; /* ROUND_COMPUTED, LOAD_ROUND closed: the groups have drifted, the next round is to make new
                     ones (after a TRAIN round, and unless it would be the last) */
    enum kedge_job_state state; /* LOAD_JOB */
    uint64_t wait_ns;           /* POLL: longest wait wanted; TASK_ENDED */
    uint64_t shifted, at_work;  /* POLL: a bit per job, 1 << handle */
    bool useful;                /* likewise: the first of two targets is reached */
    bool tested, reached;       /* LOAD_ROUND closed: its round-tested is durable, if it has one. And, as
                                   MAIN_APPENDED of that: the job has reached its last target, and ends */
    bool over_budget; /* ROUND_COMPUTED, LOAD_ROUND closed: what is left of the budget may not do for another
                         round: none opens, and the job is HALTED with KEDGE_E_BUDGET */
    uint64_t leaf, weight;
    uint64_t cost;        /* SUBMIT of an update, LOAD_ACCEPTED: what it takes of the job's budget */
    struct kedge_id id;   /* TENANT_ADDED, SITE_ADDED */
    uint32_t label_count; /* SITE_LABELS, at most KEDGE_LABEL_COUNT_MAX … */
    const struct kedge_coord_label *labels; /* … numbers of labels, ascending; copied */
    struct kedge_digest envelope, update, base;
    const struct kedge_coord_job_params *params; /* LOAD_JOB, JOB_SUBMIT: copied */
    uint64_t waited_ns;   /* LOAD_JOB, JOB_SUBMIT: how much of enrol_within_ns had passed before */
    uint32_t model_count; /* groups of LOAD_ROUND, JOB_SUBMIT, LOAD_JOB, ROUND_COMPUTED */
    const struct kedge_digest *models; /* model_count digests, copied */
    uint32_t assigned_count;           /* ROUND_COMPUTED; each site once */
    const uint32_t *assigned_sites, *assigned_groups;
};

/* ---- effects ---- */
enum kedge_coord_effect_type {
    KEDGE_FX_TASK,      /* answer request with a task */
    KEDGE_FX_WAIT,      /* answer request: nothing to do, poll again after retry_ns */
    KEDGE_FX_NOTED,     /* answer request of TASK_ENDED; ended: the open round does not wait for the site */
    KEDGE_FX_VERIFY,    /* check the ticket's blob: digest, shape, bounds; make it durable; → VERIFIED */
    KEDGE_FX_APPEND,    /* append the ticket's envelope to its tenant's ledger; → APPENDED */
    KEDGE_FX_RECEIPT,   /* answer request with the receipt of leaf */
    KEDGE_FX_TURN_AWAY, /* answer request with err (RETRY class: client tries again after retry_ns) */
    KEDGE_FX_CLOSED,    /* answer request with a signed "closed" */
    KEDGE_FX_MAIN_JOB_OPENED,   /* append job-opened; → MAIN_APPENDED */
    KEDGE_FX_MAIN_ROUND_OPENED, /* append round-opened: rows of the job say who; → MAIN_APPENDED */
    KEDGE_FX_CLOSE_ROUND, /* compute the round from its rows: aggregates and step, or grouping; keeps: too
                             few came to make groups anew; → ROUND_COMPUTED */
    KEDGE_FX_MAIN_ROUND_CLOSED, /* append checkpoints, aggregates, step of the computed round; → MAIN_APPENDED
                                 */
    KEDGE_FX_ASSIGN, /* newcomer or migrating: nearest group of its accepted pretrain update; → ASSIGNED */
    KEDGE_FX_APPEND_ASSIGNED, /* append group-assigned (job, site, round, group, why) to the tenant's ledger;
                                 → ASSIGN_APPENDED. One per (job, site, round, why is CLOSE): a site that
                                 moved by itself may be moved by the close of that round, too */
    KEDGE_FX_MAIN_ROUND_TESTED, /* append round-tested of the last closed round; no evaluation of it is taken
                                   until that is done; → MAIN_APPENDED */
    KEDGE_FX_MAIN_JOB_CLOSED, /* append release per group (COMPLETED only) and job-closed; → MAIN_APPENDED. A
                                 main append of the job that failed before is given up by it; err: why it
                                 FAILED */
    KEDGE_FX_JOB_STATE,       /* the job moved to state (from): store by compare-and-swap, tell watchers */
};

/* Why a site gets a group. */
enum kedge_coord_why {
    KEDGE_WHY_CLOSE,     /* the close of `round` said so: a PRETRAIN round, or a move in a TRAIN round */
    KEDGE_WHY_NEWCOMER,  /* its first one, by its pre-training in `round` */
    KEDGE_WHY_MIGRATION, /* its data have shifted: by its pre-training in `round` */
    KEDGE_WHY_NEAREST,   /* by its last model, before it trains in `round` */
};

struct kedge_coord_effect {
    enum kedge_coord_effect_type type;
    uint32_t tenant, site, job, round, group, request, ticket;
    int err;
    enum kedge_task_kind kind;
    uint32_t draw; /* MAIN_ROUND_OPENED: 0, or how often this round's sites were drawn again: it stands in the
                      place of the round's statement before, to which nothing has come */
    bool keeps; /* CLOSE_ROUND: groups and models stay as they are, what came to the round counts for nothing
                 */
    uint64_t charged; /* CLOSE_ROUND: the sum of its accepted updates' costs */
    bool ended;       /* NOTED */
    bool recorded;    /* TURN_AWAY: the refusal stands on the site's input of the open round, see above */
    enum kedge_coord_why why; /* APPEND_ASSIGNED */
    bool choice; /* TASK TRAIN, job of KEDGE_ENTRY_CHOICE: group is KEDGE_COORD_NONE, base zero; the site
                    takes any of the job's models (view), and its update says whose */
    bool evaluate_base;      /* TASK TRAIN: evaluate the base model first and submit the evaluation */
    uint32_t evaluate_round; /* the round whose result the base model is (TASK TRAIN with evaluate_base,
                                EVALUATE) */
    enum kedge_job_state from, state; /* JOB_STATE; MAIN_JOB_CLOSED: outcome in state */
    uint64_t leaf, retry_ns, remaining_ns;
    struct kedge_digest base; /* TASK */
};

struct kedge_coord_effects {
    uint32_t count;
    struct kedge_coord_effect items[KEDGE_COORD_EFFECTS_MAX];
};

/* ---- the machine ---- */
struct kedge_coord;

/* Bytes that kedge_coord_init needs for these limits. */
size_t kedge_coord_size(const struct kedge_coord_limits *limits);
/* Makes a coordinator in mem (kedge_coord_size bytes, aligned as malloc). Borrows mem until the caller frees
 * it. */
KEDGE_NODISCARD int kedge_coord_init(void *mem, size_t mem_len, const struct kedge_coord_limits *limits,
                                     const struct kedge_coord_times *times, struct kedge_coord **ret);
/* Handles one event; *ret_fx is overwritten. Returns true when more effects wait: call kedge_coord_more until
 * false (after executing the first ones) before the next event. Outside input never trips an assertion; a
 * host that breaks the contract does. */
bool kedge_coord_step(struct kedge_coord *c, const struct kedge_coord_event *ev,
                      struct kedge_coord_effects *ret_fx);
bool kedge_coord_more(struct kedge_coord *c, struct kedge_coord_effects *ret_fx);
/* When TIMER is due, UINT64_MAX: never. */
uint64_t kedge_coord_deadline_ns(const struct kedge_coord *c);

/* The invariants, O(jobs · sites): for the simulator and tests after each step; debug builds check it
 * themselves. */
bool kedge_coord_is_valid(const struct kedge_coord *c);

/* ---- views, valid until the next step ---- */
struct kedge_coord_job_view {
    const struct kedge_coord_job_params *params;
    enum kedge_job_state state;
    int reason;                  /* kedge_err of HALTED or FAILED */
    struct kedge_digest initial; /* the model that the job began with: base of every pretrain task */
    uint32_t round;              /* current or last round, or the one that is to open */
    uint32_t closed_round;       /* the last one with a step; 0: none, or that one */
    bool round_open;
    enum kedge_task_kind round_kind; /* of the current or last round */
    uint32_t model_count;
    const struct kedge_digest
        *models;            /* per group, after the last closed round; those it began with before */
    uint32_t fitting_count; /* sites, online or not, of tenants that joined, with the labels that the job
                               needs; online_count: of them */
    uint32_t joined_count, online_count, accepted_count, selected_count, refused_count;
    uint64_t open_ns;     /* since when the open round collects, as events' now_ns … */
    uint64_t deadline_ns; /* … and when its time is over; UINT64_MAX: none is open, or it is over */
    uint64_t enrol_ns;    /* a job that waits for its first round: until when that must open, or it ends as
                             failed; UINT64_MAX: it does not wait for it, or may wait for ever */
    bool lacks_free; /* … or too many of its sites have something to do for other jobs: of an elastic job … */
    uint32_t free_count; /* … so many have not */
    uint64_t turn_ns; /* other jobs have their turn on the same sites: until then at most the next round does
                         not open; UINT64_MAX: it does not wait for them */
};
/* False when the slot is free. */
bool kedge_coord_job(const struct kedge_coord *c, uint32_t job, struct kedge_coord_job_view *ret);
/* Row of a site in a job, NULL when either is unknown. */
const struct kedge_coord_row *kedge_coord_row(const struct kedge_coord *c, uint32_t job, uint32_t site);
bool kedge_coord_is_online(const struct kedge_coord *c, uint32_t site); /* heard of within its lease */
/* Site handles in the order of (tenant id, site id): the order of candidates, inputs and decisions. */
const uint32_t *kedge_coord_site_order(const struct kedge_coord *c, uint32_t *ret_count);
/* May this site read this model now (a base of its tasks in a job its tenant joined, or what its evaluations
 * of the last two closed rounds are about)? */
bool kedge_coord_may_read(const struct kedge_coord *c, uint32_t job, uint32_t site,
                          const struct kedge_digest *model);
/* May this site upload an update for (job, round) now (it is selected, or may migrate)? KEDGE_OK or why not.
 */
KEDGE_NODISCARD int kedge_coord_may_upload(const struct kedge_coord *c, uint32_t job, uint32_t site,
                                           uint32_t round);
/* The selection rule of TRAIN rounds, for the auditor too: marks which of `count` candidates (in site order)
 * are selected.
 * scratch holds count items. k = 0 or ≥ count selects all. Stream: (seed, KEDGE_RNG_SELECT, round, 0). */
void kedge_coord_select(uint64_t seed, uint32_t round, uint32_t count, uint32_t k, uint32_t *scratch,
                        bool *ret_selected);
/* The same for k ≤ count, as a list in the order drawn, in time that grows with k alone where k is a small
 * part: ret_picks holds k items, scratch count. */
void kedge_coord_pick(uint64_t seed, uint32_t round, uint32_t count, uint32_t k, uint32_t *scratch,
                      uint32_t *ret_picks);
/* The rule of PRETRAIN rounds, in which no tenant may have more say for having more sites: of each tenant as
 * equal a number as their numbers allow (kedge_quota), k in all. Tenants in the site order, available[t] ≥ 1
 * their candidates; k at most their sum, see below. From the one stream (seed, KEDGE_RNG_SELECT, round, 0):
 * first the order in which tenants get the places that do not divide, then each tenant's sites, tenants in
 * site order. ret_picks: k ranks among all candidates; scratch: as many items as the largest tenant has. */
void kedge_coord_pick_by_quota(uint64_t seed, uint32_t round, const uint32_t *available, uint32_t tenants,
                               uint32_t k, uint32_t *scratch, uint32_t *ret_picks);
/* The same as marks, for the auditor: tenant[i] of each candidate, in site order; scratch holds 2 · count
 * items. */
void kedge_coord_select_by_quota(uint64_t seed, uint32_t round, const uint32_t *tenant, uint32_t count,
                                 uint32_t pretrain_sites, uint32_t *scratch, bool *ret_selected);
/* The rule of TRAIN rounds of a job with by_charge, so that devices with little charge are asked less often
 * and none is forgotten. Of the k places an eighth, rounded up, goes round: to the ranks from (round ·
 * places) modulo count on, so that a site that stays a candidate among the same ones is selected within
 * ⌈count / places⌉ rounds. The others are drawn one by one, each time a candidate with a chance that is in
 * proportion to its weight. weights: of candidates in site order, as kedge_coord_charge_weight has them
 * (others count as the nearest); scratch holds count items, ret_picks k. Stream as above. */
uint8_t kedge_coord_charge_weight(enum kedge_charge charge);
bool kedge_coord_is_charge_weight(uint64_t weight);
void kedge_coord_pick_charged(uint64_t seed, uint32_t round, const uint8_t *weights, uint32_t count,
                              uint32_t k, uint32_t *scratch, uint32_t *ret_picks);
/* The same as marks, for the auditor: k = 0 or ≥ count selects all; scratch holds 2 · count items. */
void kedge_coord_select_charged(uint64_t seed, uint32_t round, const uint8_t *weights, uint32_t count,
                                uint32_t k, uint32_t *scratch, bool *ret_selected);
/* How many of `count` candidates a PRETRAIN round takes: pretrain_sites, or all (0), but never more than
 * groups are sought among. */
uint32_t kedge_coord_pretrain_wanted(uint32_t pretrain_sites, uint32_t count);
/* The same two rules of a job with a root site: candidate number `root` and k − 1 of the other count − 1 by
 * the rule above, these numbered without the root (k = 0 or ≥ count: all). */
void kedge_coord_select_root(uint64_t seed, uint32_t round, uint32_t count, uint32_t root, uint32_t k,
                             uint32_t *scratch, bool *ret_selected);
void kedge_coord_pick_root(uint64_t seed, uint32_t round, uint32_t count, uint32_t root, uint32_t k,
                           uint32_t *scratch, uint32_t *ret_picks);
/* How many of `count` candidates that are not at work a round of an asynchronous job draws, by the rule above
 * (k = 0: nobody), where `places` are held by others. For the auditor too. */
uint32_t kedge_coord_draws(uint32_t sites_per_round, uint32_t places, uint32_t count);
/* The kind of a round, for the auditor too: given the kind of the round before it (NONE: it is the
 * first) and whether the close of that one asked for new groups. Never two PRETRAIN rounds in a row, and
 * none after which nothing is trained. */
enum kedge_task_kind kedge_coord_round_kind(const struct kedge_coord_job_params *params, uint32_t round,
                                            enum kedge_task_kind prior, bool regroup);
/* 0 when the job begins with a PRETRAIN round, else 1. */
uint32_t kedge_coord_first_round(const struct kedge_coord_job_params *params);
/* Models that a job begins with: one, or one per group. */
uint32_t kedge_coord_first_models(const struct kedge_coord_job_params *params);

#endif
