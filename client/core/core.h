/* Inside of the site's core: its table, and the functions that its files share.
 *
 * The idea: a work does one thing at a time (`open` is its serial), and what that is follows from its state
 * alone, so a retry, a restart and a first attempt are the same path: act() in site.c. A site has as many
 * works as it may be in jobs at once, and a step is about one of them, s->w. What they share (works.c): one
 * poll asks for all that are free, one heartbeat tells of all, one memory has all results. */
#ifndef KEDGE_CLIENT_CORE_CORE_H
#define KEDGE_CLIENT_CORE_CORE_H

#include "client/core/rare.h"
#include "client/core/site.h"
#include "common/base/planted.h"
#include "common/base/rng.h"

/* Mutants: numbered bugs that the simulator's checkers must find. */
enum {
    MUTANT_SITE_SEND_UNPERSISTED = 41, /* a result is sent before it is persisted */
    MUTANT_SITE_NO_RETRY,              /* a failed call is not repeated */
    MUTANT_SITE_FORGETS_EARLY,         /* a result is forgotten when its answer is lost */
    MUTANT_SITE_FORGETS_ALL,           /* a restart forgets the results that were persisted */
    MUTANT_SITE_TAKES_BUSY_FOR_NO,     /* "try again later" is taken for a refusal */
    MUTANT_SITE_TAKES_LATE_FOR_CUT, /* an answer that was overtaken is taken for a main chain that was cut */
    MUTANT_SITE_FORGETS_SHIFTS,     /* a restart forgets that data have shifted */
    MUTANT_SITE_SHIFT_FOR_GOOD,     /* a shift is told for ever */
    MUTANT_SITE_CHOOSES_UNSEEN,     /* of the models to choose from only the first is fetched */
    MUTANT_SITE_TAKES_TWICE,    /* polls do not say what is at work, and a second task of a job is taken */
    MUTANT_SITE_POLL_STALE,     /* a job that has become free is not asked for before the poll is answered */
    MUTANT_SITE_KEEPS_ONE,      /* what is persisted has the results of one work only */
    MUTANT_SITE_STOPS_ONE,      /* revoked, a site goes on with what else it has in hand */
    MUTANT_SITE_SENDS_OTHERS,   /* a work submits the result of another one */
    MUTANT_SITE_SENDS_TOGETHER, /* works upload over each other */
    MUTANT_SITE_FAILS_UNTOLD,   /* a task that failed is not told */
};

/* One task in hand, or none. */
struct work {
    enum kedge_site_state state; /* POLLING: none. All works are NEW, REFUSING together; ENROLLING and STOPPED
                                    are the first's, which asks for all */
    int reason;
    struct kedge_site_task task;
    enum kedge_site_blob blob; /* FETCHING: which one */
    uint32_t choice;           /* … and which of the models to choose from */
    bool upload_refused; /* the coordinator did not want the first result's file: its answer to SUBMIT says
                            why */
    uint64_t open;       /* serial of the one thing being done, 0: none */
    enum kedge_site_effect_type open_type;
    enum kedge_site_call open_call;
    uint64_t asked_size;        /* of the main chain, when the open call began */
    uint64_t wake_ns;           /* nothing is begun before */
    uint32_t failures;          /* in a row, for the back-off */
    enum kedge_trouble trouble; /* ENDING: why */
    bool sends; /* from its upload to its answer: the coordinator keeps one upload of a site */
};

/* A job of which a task failed or was refused. */
struct trouble {
    struct kedge_id job;
    enum kedge_trouble why;
    uint32_t in_a_row; /* tasks that were tried and failed */
    uint32_t offered;  /* tasks that came before `until_ns` and were not tried */
    uint64_t until_ns; /* none is tried before */
};

struct kedge_site {
    struct kedge_site_params params;
    uint64_t now_ns;
    struct kedge_site_memory memory; /* results of one work stand in their order */
    uint64_t last_serial;
    struct kedge_site_chain seen; /* the newest of the main chain */
    uint64_t beat_asked_size;     /* its size when the open heartbeat began */
    uint64_t beat;                /* serial of the open heartbeat, 0: none */
    uint64_t beat_ns;             /* when the next one is due */
    uint64_t poll;                /* serial of the newest poll that asks for work */
    bool poll_is_stale;           /* it leaves out a job that is not at work any more */
    bool rests;                   /* no work is asked for */
    bool anew;                    /* polls say that what was told of jobs holds no more … */
    uint64_t anew_poll;           /* … and this one was the first that did, 0: none yet */
    uint32_t trouble_count;
    struct trouble troubles[KEDGE_SITE_TROUBLES_MAX];
    uint64_t tasks, receipts, dropped;
    struct kedge_rng rng;
    struct kedge_site_effects *fx; /* while stepping … */
    struct work *w;                /* … this one */
    struct kedge_site_rare *rare;  /* the host's, or NULL */
    struct work works[];           /* params.works of them */
};

/* rare.c */
bool kedgei_site_rare(struct kedge_site *s, enum kedge_site_rare_site site);
#define KEDGE_RARE(s, name) kedgei_site_rare((s), KEDGE_SITE_RARE_##name)

/* site.c */
struct kedge_site_effect *kedgei_site_emit(struct kedge_site *s, enum kedge_site_effect_type type);
struct kedge_site_effect *kedgei_site_log(struct kedge_site *s, enum kedge_site_note note, int err);
uint64_t kedgei_site_after(const struct kedge_site *s, uint64_t pause_ns);
void kedgei_site_go(struct kedge_site *s, enum kedge_site_state state); /* at once */
void kedgei_site_back_off(struct kedge_site *s, int err, uint64_t at_least_ns);
void kedgei_site_stop(struct kedge_site *s, int err); /* all works */
void kedgei_site_abort_work(struct kedge_site *s);    /* what is open is, if it is work, given up */
/* For good: two signed checkpoints contradict each other (ledger rule: stop signing, never heal by oneself).
 */
void kedgei_site_refuse(struct kedge_site *s, int err, const struct kedge_site_chain *shown);
bool kedgei_site_is_transient(int err); /* may the same attempt go well later? */

/* works.c: what the works of a site share */
bool kedgei_site_is_working(const struct work *w);
/* Results of a work in s->memory: the first, NULL when there is none. */
const struct kedge_site_result *kedgei_site_first(const struct kedge_site *s, const struct work *w);
/* Adds a work's results to those in s->memory; takes its first out of it. */
void kedgei_site_results_add(struct kedge_site *s, const struct kedge_site_result *results, uint32_t count);
void kedgei_site_results_drop_first(struct kedge_site *s);
/* What is to be durable. */
void kedgei_site_remember(const struct kedge_site *s, struct kedge_site_memory *ret);
bool kedgei_site_is_at_work(const struct kedge_site *s, const struct kedge_id *job);
bool kedgei_site_has_room(const struct kedge_site *s); /* for another task */
void kedgei_site_tell_at_work(const struct kedge_site *s, struct kedge_site_effect *poll);
/* A work without a task stands by while another one asks, or enough is in hand; one with a result while
 * another one sends. */
bool kedgei_site_stands_by(const struct kedge_site *s, const struct work *w);
bool kedgei_site_works_are_valid(const struct kedge_site *s);

/* shift.c: data that are no longer those that the site was grouped by */
void kedgei_site_shifted(struct kedge_site *s, const struct kedge_id *job);
void kedgei_site_shift_tell(struct kedge_site *s, struct kedge_site_effect *poll);
void kedgei_site_shift_answered(struct kedge_site *s,
                                const struct kedge_site_result *result); /* it is made */
void kedgei_site_shift_settle(struct kedge_site *s, const struct kedge_site_result *result, bool done);
bool kedgei_site_shifts_are_valid(const struct kedge_site *s);

/* trouble.c: tasks that end without a result */
/* Tells it, then the work is free for other jobs; why NONE: what follows from err. */
void kedgei_site_end_task(struct kedge_site *s, int err, enum kedge_trouble why);
/* Is this job left alone for now? Then its task is ended unseen, and true is the answer. */
bool kedgei_site_still_troubled(struct kedge_site *s);
void kedgei_site_ended(struct kedge_site *s, struct kedge_site_effect *call);
void kedgei_site_end_answered(struct kedge_site *s, const struct kedge_site_reply *r);
void kedgei_site_end_failed(struct kedge_site *s, int err);                      /* no answer came */
void kedgei_site_trouble_over(struct kedge_site *s, const struct kedge_id *job); /* a task went well */
bool kedgei_site_lacks_data(const struct kedge_site *s);
void kedgei_site_troubles_forget(struct kedge_site *s); /* and say so */
void kedgei_site_anew_tell(struct kedge_site *s, struct kedge_site_effect *poll);
void kedgei_site_anew_told(struct kedge_site *s, uint64_t serial); /* that poll was answered */

/* call.c: answers of the coordinator */
void kedgei_site_reply(struct kedge_site *s, const struct kedge_site_event *ev);
void kedgei_site_call_failed(struct kedge_site *s, const struct kedge_site_event *ev);

/* work.c: completions of the host */
void kedgei_site_take_task(struct kedge_site *s, const struct kedge_site_task *task);
void kedgei_site_policy(struct kedge_site *s, const struct kedge_site_event *ev);
void kedgei_site_worked(struct kedge_site *s, const struct kedge_site_event *ev);
void kedgei_site_next_result(struct kedge_site *s);
void kedgei_site_persist(struct kedge_site *s); /* without waiting for it */
/* The first result is settled: acknowledged (KEDGE_OK) or dropped. */
void kedgei_site_settle(struct kedge_site *s, int err);

#endif
