/* Inside of the coordinator's core: its tables, and the functions that its files share.
 *
 * The idea: events change tables and mark jobs dirty; kedgei_pump then looks at what is the case (never at
 * what just happened) and emits what follows from it. So a restart, a retry and a first attempt are one and
 * the same path.
 *
 * Calls between its files go one way, in about the order below: what a row, a site or a poll is by itself
 * calls nobody; refresh.c, items.c and members.c stand on that, then able.c, assign.c and submit.c, then
 * round.c and load.c; coord.c calls them all. scripts/check-dependencies finds circles.
 *
 * Invariants (kedge_coord_is_valid)
 *  - at most one main effect (MAIN_*, CLOSE_ROUND) of a job is out; at most one effect per (job, site, item)
 * is out
 *  - a round leaves COLLECT only when none of its inputs and assignments is in flight
 *  - the counts of a job are the sums of the flags of its rows
 *  - a site is in exactly one presence list; a parked poll is in the heap */
#ifndef KEDGE_COORDINATOR_CORE_CORE_H
#define KEDGE_COORDINATOR_CORE_CORE_H

#include "common/base/planted.h"
#include "coordinator/core/coord.h"
#include "coordinator/core/rare.h"

/* Mutants: numbered bugs that the simulator's checkers must find. */
enum {
    MUTANT_TASK_BEFORE_OPENED = 1, /* tasks go out before round-opened is durable */
    MUTANT_RECEIPT_BEFORE_APPEND,  /* receipt with the append still out */
    MUTANT_DUPLICATE_COUNTED,      /* another update of an accepted site replaces the first */
    MUTANT_CLOSE_WHILE_APPENDING,  /* the round closes with an append out */
    MUTANT_FAILED_IS_NOT_DONE,     /* a failed append is taken for one that stored nothing */
    MUTANT_FORGET_ASSIGNED,        /* a restart does not ask again for missing group-assigned statements */
    MUTANT_ACCEPT_REVOKED,         /* a revoked site's updates are still taken */
    MUTANT_CLOSED_BEFORE_DURABLE,  /* "closed" is said while the close is still being computed */
    MUTANT_MODEL_BEFORE_CLOSED,    /* new models are used once computed, before the close is durable */
    MUTANT_FORGET_ASSIGN_WORK,     /* a restart forgets newcomers that were between pretrain and group */
    MUTANT_NO_DEADLINE,            /* the deadline of a round is not looked at */
    MUTANT_FORGET_ACCEPTED,        /* a restart forgets what the open round had accepted */
    MUTANT_FORGET_WEIGHT,          /* a restart takes every weight for 1 */
    MUTANT_FORGET_QUORUM,          /* a restart lets the open round close with what is there */
    MUTANT_SILENT_REFUSAL,         /* a second update of a site gets no answer */
    MUTANT_REFUSAL_UNRECORDED,     /* what a site got wrong is told to it, but not recorded */
    MUTANT_FOREIGN_MODEL,          /* a site may read the models of other groups */
    MUTANT_FOREIGN_TASK,           /* a site is told to train the model of another group */
    MUTANT_GROUP_DRAWN_AGAIN,      /* a failed group-assigned is asked for again with another group */
    MUTANT_POLL_FORGOTTEN,         /* a parked poll is dropped without an answer */
    MUTANT_FORGET_REFUSED,         /* a restart forgets what the open round had refused */
    MUTANT_UNSTORED_UNTOLD,        /* an update that cannot be stored does not halt its job */
    MUTANT_UNSTORED_FOREVER,       /* … or its job stays halted when it is stored after all */
    MUTANT_MOVED_BEFORE_CLOSED,    /* groups that a close gives hold once computed, before it is durable */
    MUTANT_MOVES_NOT_AWAITED,      /* the next round opens before the groups that a close gave are durable */
    MUTANT_FORGET_MOVES,           /* a restart forgets the moves of the last close that are not yet stated */
    MUTANT_FORGET_REGROUP,         /* a restart forgets that the last close asked for new groups */
    MUTANT_FORGET_MIGRATION,       /* a restart forgets a migration between its pretraining and its group */
    MUTANT_MIGRATES_AT_WILL,       /* no pause is kept between two migrations */
    MUTANT_MIGRATES_UNSTATED,      /* a migrating site is in its new group before that is durable */
    MUTANT_MOVES_AFTER_TRAINING,   /* a site that has trained in a round moves in it, if it is quick */
    MUTANT_TRAINS_BEFORE_MIGRATING, /* a site whose data have shifted trains for its old group first */
    MUTANT_FORMER_MEMBER,    /* who is in a group now may read what it was before the numbers changed */
    MUTANT_CHOICE_UNCHECKED, /* a site may name a group whose model it did not train */
    MUTANT_FORGET_CHOICE,    /* a restart takes an update for one of the first group */
    MUTANT_TENANTS_UNEQUAL,  /* a tenant with more sites has more of those whose updates make groups */
    MUTANT_KEPT_ANYWAY,      /* at the deadline groups are kept, however many came to make new ones */
    MUTANT_TOO_FEW_TAKEN,    /* at the deadline groups are made anew of too few */
    MUTANT_CANCEL_WAITS,     /* what failed of a cancelled job is neither tried again nor given up */
    MUTANT_COUNT,
};

/* Of asynchronous jobs. */
enum {
    MUTANT_AT_WORK_FORGOTTEN = 61, /* a restart between two rounds forgets who is at work */
    MUTANT_STALE_FORGOTTEN,        /* a restart forgets accepted updates whose tasks are of earlier rounds */
    MUTANT_STALE_TAKEN,            /* an update counts however old it is */
    MUTANT_DRAWN_AT_WORK,          /* who is at work may be drawn for another task */
    MUTANT_NEWEST_BASE,            /* who asks again gets the newest model for an older task */
    MUTANT_AT_WORK_AGAIN,          /* an update that is in a list stands in the next one, too */
    MUTANT_LATE_IS_CLOSED,         /* "closed" is said as soon as the round of the task is closed */
    MUTANT_FORGET_TASK_ROUND,      /* a restart takes every task for one of the open round */
    MUTANT_PLACES_FORGOTTEN,       /* as many are drawn as if nobody were at work */
    MUTANT_BUFFER_RUNS_OVER,       /* a round takes all that comes before it closes */
};

/* Of groups that no pretraining makes. */
enum {
    MUTANT_NEAREST_ONCE =
        81, /* a site stays in its first group, though its last model is nearest to another */
    MUTANT_TENANTS_SHUFFLED, /* not all sites of a tenant are in its group */
    MUTANT_OFFERS_AT_WORK,   /* a site is offered a second task of a job that it has in hand */
};

/* Of selection by charge. */
enum {
    MUTANT_CHARGE_KEPT = 91, /* what a site said first of its battery is what counts for ever */
    MUTANT_CHARGE_UNUSED,    /* sites are drawn as if nobody had said anything */
    MUTANT_NO_TURNS,         /* all places are drawn, none goes round */
};

/* Of sites that cannot serve a task. */
enum {
    MUTANT_ENDED_AWAITED = 94, /* a round waits for a site that has ended its part in it */
    MUTANT_UNABLE_DRAWN,       /* a site is a candidate of a job that it said it cannot serve */
    MUTANT_ENDED_ANY_ROUND,    /* what was told of another round ends a site's part in the open one */
    MUTANT_UNABLE_FOR_GOOD,    /* a site that took itself out of a job is never asked again */
    MUTANT_DRAWN_OVER,         /* sites are drawn again although an update has come to the round */
};

enum {
    BASES_KEPT = KEDGE_STALENESS_MAX + 1,
    EFFECTS_OF_JOB_MAX = 12,                                 /* one advance of one job emits no more */
    EFFECTS_OF_EVENT_MAX = 4,                                /* an event before the pump emits no more */
    EFFECTS_FEW = EFFECTS_OF_JOB_MAX + EFFECTS_OF_EVENT_MAX, /* so much is enough to get on */
};

enum presence { PRESENCE_GONE, PRESENCE_OFFLINE, PRESENCE_ONLINE };

struct site {
    struct kedge_id id;
    uint32_t tenant;
    bool active; /* not revoked */
    enum presence presence;
    uint64_t until_ns;   /* when the presence falls by one */
    uint32_t prev, next; /* in the list of its presence, oldest first */
    uint32_t request;    /* parked poll, KEDGE_COORD_NONE: none */
    uint64_t park_until_ns;
    uint64_t at_work;         /* jobs that the parked poll leaves out, a bit each */
    uint32_t heap_pos;        /* of the parked poll */
    uint32_t next_job;        /* where the search for its next task starts */
    enum kedge_charge charge; /* as it said last */
    uint32_t position;        /* in the site order, where a job's set of eligible sites is not stale */
    uint64_t given;           /* jobs of which it has a task, as far as is known: a bit each */
    bool takes_several;       /* it asks for tasks while it has some in hand */
    uint32_t label_count;
    struct kedge_coord_label labels[KEDGE_LABEL_COUNT_MAX]; /* ascending */
};

struct tenant {
    struct kedge_id id;
    uint32_t active, online, gone; /* active sites, and how many of them are online or gone */
};

struct site_list {
    uint32_t head, tail;
};

/* What a job may have out for one site. */
enum item_kind { ITEM_PRETRAIN, ITEM_TRAIN, ITEM_EVALUATE, ITEM_ASSIGN, ITEM_COUNT };
struct item {
    uint32_t request; /* who waits for the answer */
    bool out;         /* an effect is with the host */
    bool failed;      /* its last attempt failed; asked for again by the retry timer */
};

enum assign_step { ASSIGN_NONE, ASSIGN_WORK, ASSIGN_APPEND };

struct row {
    struct kedge_coord_row pub;
    struct kedge_coord_input evaluation; /* the last one: in flight or accepted */
    uint32_t evaluation_round;
    struct item item[ITEM_COUNT];
    enum assign_step assign;
    enum kedge_coord_why why; /* of the assignment under way */
    uint32_t next_group;      /* what the computed close gives it, KEDGE_COORD_NONE: nothing */
    uint32_t former_group;    /* in which it was before its group last changed … */
    uint32_t changed_after;   /* … which was after the close of this round; KEDGE_COORD_NONE: after none */
    /* flags counted in the job */
    bool unresolved; /* selected, active, neither accepted nor refused nor ended */
    bool ended;      /* selected, neither accepted nor refused, and it has told that it will not */
    bool testing;    /* the round awaits its evaluation, of a trial */
    bool awaited;    /* the job waits for it now: unresolved or still to evaluate, and not gone */
    bool accepted, refused;
    bool busy;         /* an input or assignment of the round is in flight: the round cannot close */
    bool in_flight;    /* busy, or an evaluation is */
    uint32_t failures; /* tasks in a row that ended its part in a round */
    bool touched;      /* in the job's list of those that the open round has to do with */
    uint64_t given_ns; /* where the site's `given` says so: since when it has the task */
};

enum stage {
    STAGE_JOB_OPENING,
    STAGE_WAITING_TO_OPEN, /* wants to open `round` */
    STAGE_ROUND_OPENING,
    STAGE_COLLECT,
    STAGE_COMPUTE,
    STAGE_ROUND_CLOSING,
    STAGE_ASSIGNING, /* the round is closed, its group-assigned statements are not all durable */
    STAGE_EVALUATE,  /* the last round is closed, or one whose evaluations are to be told */
    STAGE_TESTING,   /* … and they are on their way into the main chain */
    STAGE_JOB_CLOSING,
    STAGE_ENDED, /* freed by the next event */
};

enum member { MEMBER_NO, MEMBER_INVITED, MEMBER_JOINED, MEMBER_LEFT };

struct job {
    bool used, dirty;
    struct kedge_coord_job_params params;
    enum stage stage;
    enum kedge_job_state base; /* state without halts */
    enum kedge_job_state told; /* state that the host knows */
    int told_reason;
    bool halted_by_operator, halted_by_quorum, cancelling;
    uint32_t unstored_site; /* whose update cannot be stored, KEDGE_COORD_NONE: all can; its tries go on … */
    int unstored_err;       /* … and this is why they fail */
    int failing;            /* kedge_err that ends the job, KEDGE_OK: none */
    int stored_err;         /* why storage or work last failed */
    uint32_t failed_count;  /* items (and the main one) whose last attempt failed */
    struct item main;
    uint32_t round;                   /* current, or wanted next */
    uint32_t draw;                    /* how often its sites were drawn again */
    enum kedge_task_kind kind;        /* of `round` */
    enum kedge_task_kind closed_kind; /* of closed_round */
    bool regroup, next_regroup;       /* the last close, the computed one, asks for new groups … */
    bool tries, next_tries;           /* … has trials, of which all sites are to say what they find */
    bool useful;                      /* the first of two targets is reached */
    bool tested, reached; /* the last closed one: its evaluations are told; the job is at its end */
    bool over_budget, next_over_budget; /* … leaves too little for another round */
    bool keeps;                         /* the computed one leaves groups and models as they are */
    uint32_t closed_round, prior_round; /* the last two closed ones, KEDGE_COORD_NONE: none */
    uint32_t quorum;                    /* of the open round */
    uint32_t model_count, prior_count, next_count;
    struct kedge_digest initial;
    struct kedge_digest models[KEDGE_GROUPS_MAX], prior[KEDGE_GROUPS_MAX], next[KEDGE_GROUPS_MAX];
    struct kedge_digest bases[BASES_KEPT]; /* asynchronous: the model before round r, at r modulo … */
    uint32_t joined_count, selected_count;
    uint32_t unresolved_count, awaited_count, accepted_count, refused_count, busy_count, in_flight_count;
    uint32_t testing_count;
    uint32_t ended_count;
    bool stalled;            /* the open round needs more, and nobody is left of whom it could come */
    bool short_of_sites;     /* the next round cannot open: enough are online, too few are able */
    bool lacks_free;         /* … enough are able, but too few have nothing to do for other jobs */
    uint64_t able_ns;        /* when the first that is unable may be asked again, UINT64_MAX: all are able */
    uint64_t open_ns;        /* since when the open round collects */
    uint64_t enrol_ns;       /* until when the first round must have opened, UINT64_MAX: whenever */
    uint64_t ready_since_ns; /* since when the next round could open, UINT64_MAX: it cannot */
    uint64_t deadline_ns;    /* of the open round or of the last evaluations, UINT64_MAX: none … */
    bool late;               /* … or passed */
    uint64_t retry_ns;       /* when failed items are asked for again, UINT64_MAX: none */
    uint32_t supply;         /* sites that had what it needs as its last round opened … */
    uint64_t openings;       /* … of which there were so many since the start, draws too */
    /* among jobs that share sites, see turns.c */
    uint64_t served_ns; /* of each of its rounds the longest task, as it counted by the share that the job had
                           then, before the last one that opened … */
    uint32_t share;     /* … and that of the one that opened last */
    uint64_t round_ns;  /* … of the round before that … */
    uint64_t longest_ns;   /* … and since */
    uint64_t turn_ns;      /* it could open its next round and leaves that to others until then at most,
                                UINT64_MAX: it does not wait for them */
    uint32_t sweep, offer; /* positions in the site order, KEDGE_COORD_NONE: idle */
    bool offer_touched;    /* offer is a position in the list of touched rows: nobody else can have a task */
    bool eligible_stale;   /* sites or tenants came: the sets are to be made anew */
    uint32_t eligible_count, touched_count;
    uint32_t *eligible_counts; /* by block */
    uint64_t *eligible;        /* a bit per place in the site order: online, of a tenant that joined … */
    uint64_t *candidates;      /* … and as it was when the last round opened */
    uint32_t *touched;         /* sites */
    uint8_t *members;          /* enum member by tenant */
    struct row *rows;          /* by site */
};

struct kedge_coord {
    struct kedge_coord_limits limits;
    struct kedge_coord_times times;
    bool started, stepping;
    uint64_t now_ns;
    uint32_t tenant_count, site_count, parked_count;
    struct tenant *tenants;
    struct site *sites;
    uint32_t *order;   /* site handles by (tenant id, site id) */
    uint32_t *heap;    /* sites with a parked poll, earliest first */
    uint32_t *scratch; /* of a selection … */
    uint32_t *picks;   /* … and its result */
    uint8_t *weights;  /* of candidates, where they are drawn by them */
    struct site_list online, offline;
    struct job *jobs;
    struct kedge_coord_effects *fx; /* while stepping */
    uint32_t elastic_count;         /* jobs */
    uint32_t fx_max;                /* how many of them this step may use */
    struct kedge_coord_rare *rare;  /* the host's, or NULL */
};

/* rare.c */
bool kedgei_coord_rare(struct kedge_coord *c, enum kedge_coord_rare_site site);
#define KEDGE_RARE(c, name) kedgei_coord_rare((c), KEDGE_COORD_RARE_##name)

/* emit.c */
struct kedge_coord_effect *kedgei_emit(struct kedge_coord *c, enum kedge_coord_effect_type type);
struct kedge_coord_effect *kedgei_emit_job(struct kedge_coord *c, enum kedge_coord_effect_type type,
                                           uint32_t job);
struct kedge_coord_effect *kedgei_emit_site(struct kedge_coord *c, enum kedge_coord_effect_type type,
                                            uint32_t job, uint32_t site);
uint32_t kedgei_room(const struct kedge_coord *c);
uint64_t kedgei_after(const struct kedge_coord *c, uint64_t pause_ns); /* saturates */

/* members.c */
void kedgei_tenant_added(struct kedge_coord *c, const struct kedge_coord_event *ev);
void kedgei_site_added(struct kedge_coord *c, const struct kedge_coord_event *ev);
void kedgei_site_labels(struct kedge_coord *c, const struct kedge_coord_event *ev);
void kedgei_site_revoked(struct kedge_coord *c, const struct kedge_coord_event *ev);
/* Sites of the job's tenants that have joined and that have what it needs. */
struct kedgei_crowd {
    uint32_t active, online, gone;
};
struct kedgei_crowd kedgei_crowd_of(const struct kedge_coord *c, const struct job *j);
void kedgei_presence_start(struct kedge_coord *c);                /* known sites get a lease to come back */
void kedgei_presence_touch(struct kedge_coord *c, uint32_t site); /* it was heard of */
void kedgei_presence_expire(struct kedge_coord *c);
/* KEDGE_OK when the event's site may speak about its job at all. */
int kedgei_check_speaker(const struct kedge_coord *c, const struct kedge_coord_event *ev);

/* parked.c */
void kedgei_park(struct kedge_coord *c, uint32_t site, uint32_t request, uint64_t until_ns);
uint32_t kedgei_unpark(struct kedge_coord *c, uint32_t site); /* the parked request or KEDGE_COORD_NONE */
uint64_t kedgei_poll_deadline(const struct kedge_coord *c);

/* poll.c */
void kedgei_poll(struct kedge_coord *c, const struct kedge_coord_event *ev);
void kedgei_request_gone(struct kedge_coord *c, const struct kedge_coord_event *ev);
bool kedgei_offer(struct kedge_coord *c, uint32_t site); /* answers a parked poll if there is a task */
void kedgei_poll_expired(struct kedge_coord *c);         /* answers the earliest parked poll by WAIT */

/* eligible.c */
uint32_t kedgei_eligible_words(uint32_t sites);
void kedgei_eligible_update(struct kedge_coord *c, struct job *j, uint32_t site); /* it came, went, joined */
/* How many are eligible now. */
uint32_t kedgei_eligible_count(struct kedge_coord *c, struct job *j);
/* The sites that are eligible now are the candidates, no others; returns how many. */
uint32_t kedgei_candidates_mark(struct kedge_coord *c, struct job *j);
uint32_t kedgei_candidate_at(const struct kedge_coord *c, const struct job *j, uint32_t rank);
bool kedgei_eligible_is_valid(const struct kedge_coord *c, const struct job *j);
/* Marks candidates, and as many of them as a round of this kind wants as selected, which are touched by that.
 */
void kedgei_select(struct kedge_coord *c, struct job *j);
/* Every row that a round changes is in the list of touched ones until a close leaves nothing of it. */
void kedgei_touch(struct job *j, uint32_t site);
void kedgei_touched_tidy(struct job *j);
/* Parked polls are looked at again: of all sites, or of those touched when nobody else can have a task. */
void kedgei_offer_all(struct job *j);
void kedgei_offer_touched(struct job *j);

/* free.c: elastic jobs, and sites that have nothing to do for other jobs */
/* What this job (KEDGE_COORD_NONE: any) has for the site to do has changed: may others have it now? */
void kedgei_free_changed(struct kedge_coord *c, uint32_t job, uint32_t site);
/* All that a job has for sites to do has changed: it was halted, or goes on. */
void kedgei_free_all(struct kedge_coord *c);
void kedgei_free_begin(struct kedge_coord *c, uint32_t job); /* the job has its place … */
void kedgei_free_end(struct kedge_coord *c, uint32_t job);   /* … and gives it back, with all its sites */

/* Its place among the candidates, which are marked. */
uint32_t kedgei_candidate_rank(const struct job *j, const struct site *site);

/* able.c: sites that cannot serve a job, or not now */
void kedgei_task_ended(struct kedge_coord *c, const struct kedge_coord_event *ev);
void kedgei_able(struct kedge_coord *c, uint32_t site);       /* for all jobs: it says so */
void kedgei_able_all(struct kedge_coord *c, uint32_t job);    /* all of its sites may be asked */
void kedgei_able_expire(struct kedge_coord *c, uint32_t job); /* those whose time has passed */
void kedgei_able_again(struct kedge_coord *c, uint32_t job, uint32_t site); /* it has sent an update */
/* The open round needs more than can come, though nothing is under way. Asks those again that have become
 * able; else tells, and fails the job if nobody ever brings anything. */
void kedgei_stall(struct kedge_coord *c, uint32_t job, bool stalled);
/* Nothing has come to the open round, nobody of it is left, and others are there that can. */
bool kedgei_may_draw_again(struct kedge_coord *c, uint32_t job);

/* root.c */
/* The job's root site, KEDGE_COORD_NONE: it is not enrolled (jobs that have one only). */
uint32_t kedgei_root_find(const struct kedge_coord *c, const struct job *j);
/* The job has no root site, or that is online; … or its update of the open round is accepted. */
bool kedgei_root_is_there(const struct kedge_coord *c, const struct job *j);
bool kedgei_root_is_in(const struct kedge_coord *c, const struct job *j);

/* rows.c: a row by itself */
struct row *kedgei_row(struct kedge_coord *c, uint32_t job, uint32_t site);
struct kedge_coord_input *kedgei_input(struct row *row, enum item_kind kind);
bool kedgei_in_flight(const struct kedge_coord_input *in); /* VERIFYING or APPENDING */
void kedgei_row_init(struct kedge_coord *c, struct job *j, uint32_t site);
bool kedgei_is_member(const struct kedge_coord *c, const struct job *j,
                      uint32_t site);                                              /* joined and active */
bool kedgei_fits(const struct kedge_coord *c, const struct job *j, uint32_t site); /* has what it needs */
bool kedgei_evaluates(const struct job *j); /* is the last closed round one that sites evaluate? */
/* The last closed round is one whose evaluations are to be told, and are not yet. */
bool kedgei_is_to_test(const struct job *j);
bool kedgei_evaluation_due(const struct job *j, const struct row *row);
bool kedgei_is_unable(const struct row *row); /* it cannot serve the job, or not now */
const struct kedge_digest *kedgei_base(const struct job *j, uint32_t group); /* of its TRAIN tasks */
void kedgei_input_clear(struct kedge_coord_input *in);
void kedgei_group_set(const struct job *j, struct row *row, uint32_t group, bool durable);
uint32_t kedgei_prior_group(const struct job *j, const struct row *row); /* as the last round closed */

/* refresh.c: what a change of a row means for its job */
void kedgei_row_refresh(struct kedge_coord *c, uint32_t job, uint32_t site); /* flags, counts, dirty mark */
void kedgei_rows_refresh(struct kedge_coord *c, uint32_t job); /* those that the job's stage can change */
void kedgei_rows_refresh_all(struct kedge_coord *c, uint32_t job);

/* items.c */
void kedgei_item_failed(struct kedge_coord *c, uint32_t job, struct item *item, int err);
void kedgei_item_done(struct job *j, struct item *item);
void kedgei_item_emit(struct kedge_coord *c, uint32_t job, uint32_t site, enum item_kind kind);
/* A site's update of the open round could not be stored (err), or now can (KEDGE_OK). The job is told halted
 * until then, or until the round closes without it; the site goes on trying. */
void kedgei_job_unstored(struct kedge_coord *c, uint32_t job, uint32_t site, int err);

/* sweep.c */
void kedgei_sweep_row(struct kedge_coord *c, uint32_t job,
                      uint32_t site); /* emits its failed or waiting items */

/* job.c */
void kedgei_job_reset(struct kedge_coord *c, uint32_t job, const struct kedge_coord_event *ev);
void kedgei_job_submit(struct kedge_coord *c, const struct kedge_coord_event *ev);
void kedgei_job_member(struct kedge_coord *c, const struct kedge_coord_event *ev); /* joined, left */
void kedgei_job_operate(struct kedge_coord *c, const struct kedge_coord_event *ev);
void kedgei_upload(struct kedge_coord *c, const struct kedge_coord_event *ev);
void kedgei_job_tell(struct kedge_coord *c, uint32_t job); /* JOB_STATE when the host knows another one */
void kedgei_job_tell_end(struct kedge_coord *c, uint32_t job, enum kedge_job_state end);
void kedgei_main_emit(struct kedge_coord *c, uint32_t job); /* the main effect of the job's stage */
enum kedge_job_state kedgei_outcome(const struct job *j);

/* buffer.c: asynchronous jobs */
bool kedgei_is_asynchronous(const struct job *j);
/* Of a selected site's task: in other jobs the current round. */
uint32_t kedgei_task_round(const struct job *j, const struct row *row);
bool kedgei_is_on(const struct job *j, const struct row *row, uint32_t round); /* selected, for that task */
bool kedgei_is_full(const struct job *j); /* the open round has what it closes with */
bool kedgei_has_room(const struct job *j); /* … and will not have it when all that is under way is accepted */
void kedgei_base_keep(struct job *j);      /* the model that the next round begins with */
const struct kedge_digest *kedgei_train_base(const struct job *j, const struct row *row); /* of its task */
/* After the close of closed_round: is the site still working on its task? Its input is unchanged. */
bool kedgei_stays_at_work(const struct kedge_coord *c, const struct job *j, uint32_t site);
/* Who is at work as a round opens: counts them as selected, marks who is away; returns places held. */
uint32_t kedgei_places(struct kedge_coord *c, struct job *j);

/* budget.c */
uint64_t kedgei_round_charge(const struct job *j); /* of all that the open round has accepted */

/* turns.c: whose round opens, where jobs share sites */
void kedgei_turn_begins(struct kedge_coord *c, uint32_t job, uint32_t site); /* it gets a task */
void kedgei_turn_ends(struct kedge_coord *c, uint32_t job, uint32_t site);   /* it has none of this job … */
/* … or none of any but these, a bit per job */
void kedgei_turns_end(struct kedge_coord *c, uint32_t site, uint64_t but);
/* The job could open a round since ready_since_ns: does it leave that to others? Sets turn_ns. */
bool kedgei_turn_waits(struct kedge_coord *c, uint32_t job);
void kedgei_turn_taken(struct kedge_coord *c, uint32_t job); /* its round opens: selected_count are asked */
void kedgei_turns_pass(struct kedge_coord *c, uint32_t job); /* others that wait for this one look again */

/* round.c */
void kedgei_advance(struct kedge_coord *c, uint32_t job); /* everything that follows from the tables */
void kedgei_main_appended(struct kedge_coord *c, const struct kedge_coord_event *ev);
void kedgei_round_computed(struct kedge_coord *c, const struct kedge_coord_event *ev);
uint64_t kedgei_job_deadline(const struct kedge_coord *c, const struct job *j);
void kedgei_assign_all(struct kedge_coord *c,
                       uint32_t job); /* a round is closed: the groups that it gave into the ledgers */
void kedgei_next_round(struct kedge_coord *c, uint32_t job);
/* Accepted updates that the round needs, once its sites are selected. */
uint32_t kedgei_quorum(const struct job *j);
/* It waits for its first round, with nothing that could open it. */
bool kedgei_is_enrolling(const struct job *j);
/* The open round waits for nobody any more, only for what is in flight. */
bool kedgei_is_due(const struct kedge_coord *c, const struct job *j);
void kedgei_collect(struct kedge_coord *c, uint32_t job); /* the round is open: its clock starts */

/* ends.c */
bool kedgei_is_final(int err);                /* what failed so will fail so however often it is tried */
bool kedgei_is_ending(const struct job *j);   /* it is cancelled or has failed; job-closed may be out */
void kedgei_job_fail(struct job *j, int err); /* the first reason counts */
void kedgei_job_cancel(struct job *j);

/* submit.c */
void kedgei_input_give_up(struct kedge_coord *c, uint32_t job, uint32_t site, enum item_kind kind);
void kedgei_submit(struct kedge_coord *c, const struct kedge_coord_event *ev);
void kedgei_verified(struct kedge_coord *c, const struct kedge_coord_event *ev);
void kedgei_appended(struct kedge_coord *c, const struct kedge_coord_event *ev);

/* migrate.c */
/* May this site change its group by a pretraining in the open round? */
bool kedgei_may_migrate(const struct job *j, const struct row *row);
/* May it send this update though it was not selected? */
bool kedgei_migrates(const struct job *j, const struct row *row);
void kedgei_shifted(struct kedge_coord *c, const struct kedge_coord_event *ev); /* POLL */

/* assign.c */
/* A job of which nearest is true: asks for the groups of all selected sites that are to train. */
void kedgei_assign_nearest(struct kedge_coord *c, uint32_t job);
void kedgei_assign_start(struct kedge_coord *c, uint32_t job, uint32_t site, enum assign_step step);
void kedgei_assigned(struct kedge_coord *c, const struct kedge_coord_event *ev);
void kedgei_assign_appended(struct kedge_coord *c, const struct kedge_coord_event *ev);

/* load.c */
void kedgei_load(struct kedge_coord *c, const struct kedge_coord_event *ev);
void kedgei_start(struct kedge_coord *c);

#endif
