/* Tasks that end without a result. The coordinator hears of each at once, with a reason, so that no round
 * waits for it, and how long the site wants no task of that job. Other jobs are none the wiser: the pause is
 * the job's, not the site's. It doubles from one failed task of the job to the next and ends with one that
 * goes well. What is remembered of jobs here is gone after a restart, and by then something may be better: so
 * the first poll says that what was told before holds no more, and so it is with a new policy. */
#include <string.h>

#include "client/core/core.h"

enum { END_ATTEMPTS_MAX = 4 }; /* then the round finds out by its deadline */

static struct trouble *find_trouble(struct kedge_site *s, const struct kedge_id *job)
{
    for (uint32_t i = 0; i < s->trouble_count; i++) {
        if (kedge_id_eq(&s->troubles[i].job, job)) {
            return &s->troubles[i];
        }
    }
    return NULL;
}

/* Of too many jobs the one goes that may be tried again first. */
static struct trouble *find_or_make(struct kedge_site *s, const struct kedge_id *job)
{
    struct trouble *t = find_trouble(s, job);
    if (t) {
        return t;
    }
    if (s->trouble_count < KEDGE_SITE_TROUBLES_MAX) {
        t = &s->troubles[s->trouble_count++];
    } else {
        t = &s->troubles[0];
        for (uint32_t i = 1; i < KEDGE_SITE_TROUBLES_MAX; i++) {
            t = s->troubles[i].until_ns < t->until_ns ? &s->troubles[i] : t;
        }
    }
    *t = (struct trouble){.job = *job};
    return t;
}

/* What the owner forbids is allowed by a new policy, which ends the pause. What could not be fetched may only
 * have been of a round that is over: the next one is another matter. */
static uint64_t pause_of(struct kedge_site *s, const struct trouble *t, bool fetched)
{
    const struct kedge_site_times *times = &s->params.times;
    bool refused = t->why == KEDGE_TROUBLE_POLICY || t->why == KEDGE_TROUBLE_ENERGY;
    uint64_t pause = refused ? times->refused_pause : fetched ? times->trouble_min : times->backoff_min;
    uint64_t most = fetched || refused ? times->trouble_max : times->backoff_max;
    for (uint32_t i = 1; i < t->in_a_row && pause < most; i++) {
        pause = pause <= most / 2 ? pause * 2 : most;
    }
    return pause - kedge_rng_below(&s->rng, pause / 4 + 1);
}

/* A task that is ended goes by ENDING, whose call tells the coordinator. The reason that the owner is shown
 * stays the task's, whatever becomes of that call. */
static void tell(struct kedge_site *s, int err, const struct trouble *t)
{
    s->w->failures = 0;
    s->w->trouble = t->why;
    kedgei_site_go(s, MUTANT(MUTANT_SITE_FAILS_UNTOLD) ? KEDGE_SITE_POLLING : KEDGE_SITE_ENDING);
    s->w->reason = err;
    if (MUTANT(MUTANT_SITE_FAILS_UNTOLD)) {
        s->w->wake_ns = kedgei_site_after(s, s->params.times.poll_min);
    }
}

/* Was the task's input here, so that the failure says something about the job? A fetch that failed may only
 * mean that the round is over. A spec that was fetched and then refused (DENIED) counts as a failure of the
 * job: the next task has the same spec. */
void kedgei_site_end_task(struct kedge_site *s, int err, enum kedge_trouble why)
{
    KEDGE_ASSERT(err != KEDGE_OK && s->w->open == 0);
    bool fetched = s->w->state != KEDGE_SITE_FETCHING || err == KEDGE_E_DENIED;
    struct trouble *t = find_or_make(s, &s->w->task.job);
    t->why = why != KEDGE_TROUBLE_NONE ? why : kedge_trouble_of(err);
    t->in_a_row = t->in_a_row < UINT32_MAX ? t->in_a_row + 1 : t->in_a_row;
    t->offered = 0;
    t->until_ns = kedgei_site_after(s, pause_of(s, t, fetched));
    tell(s, err, t);
}

bool kedgei_site_still_troubled(struct kedge_site *s)
{
    struct trouble *t = find_trouble(s, &s->w->task.job);
    if (!t || t->until_ns <= s->now_ns) {
        return false;
    }
    t->offered = t->offered < UINT32_MAX ? t->offered + 1 : t->offered;
    tell(s, KEDGE_E_BUSY, t);
    return true;
}

/* How long no task of this job is wanted goes with the call, so that the coordinator leaves the site out of
 * that job's rounds instead of finding out by deadlines. It is computed when the call is made, not when the
 * task failed: a call that is repeated says what is left of the pause. */
void kedgei_site_ended(struct kedge_site *s, struct kedge_site_effect *call)
{
    const struct trouble *t = find_trouble(s, &s->w->task.job);
    call->task = s->w->task;
    call->trouble = s->w->trouble;
    call->wait_ns = t && t->until_ns > s->now_ns ? t->until_ns - s->now_ns : 0;
}

/* The work is free again. A coordinator that offers the task again and again, as one that knows nothing of
 * ENDED does, is asked less and less often. */
static void leave(struct kedge_site *s, bool understood)
{
    const struct trouble *t = find_trouble(s, &s->w->task.job);
    int reason = s->w->reason;
    uint32_t again = t ? t->offered : 0;
    uint64_t pause = s->params.times.poll_min;
    kedgei_site_go(s, KEDGE_SITE_POLLING);
    s->w->failures = again > 0 ? again - 1 : 0;
    if (again > 0) {
        kedgei_site_back_off(s, reason, pause);
    } else {
        pause = understood ? pause : s->params.times.refused_pause;
        s->w->wake_ns = kedgei_site_after(s, pause);
    }
    s->w->failures = 0;
    s->w->reason = reason;
}

/* A work cannot hang on telling: after four attempts it is free, and the coordinator's deadline does the
 * rest. "No such job" and "not joined" count as understood: there is nothing left to tell. */
void kedgei_site_end_answered(struct kedge_site *s, const struct kedge_site_reply *r)
{
    bool error = r->kind == KEDGE_SITE_REPLY_ERROR;
    if (error && r->err == KEDGE_E_REVOKED) {
        kedgei_site_stop(s, r->err);
    } else if (error && kedgei_site_is_transient(r->err) && s->w->failures < END_ATTEMPTS_MAX) {
        int reason = s->w->reason;
        kedgei_site_back_off(s, r->err, r->retry_ns);
        s->w->reason = reason;
    } else {
        bool gone = error && (r->err == KEDGE_E_NO_JOB || r->err == KEDGE_E_NOT_JOINED);
        leave(s, r->kind == KEDGE_SITE_REPLY_NOTED || gone);
    }
}

void kedgei_site_end_failed(struct kedge_site *s, int err)
{
    int reason = s->w->reason;
    if (s->w->failures < END_ATTEMPTS_MAX) {
        kedgei_site_back_off(s, err, 0);
        s->w->reason = reason;
    } else {
        leave(s, true);
    }
}

void kedgei_site_trouble_over(struct kedge_site *s, const struct kedge_id *job)
{
    struct trouble *t = find_trouble(s, job);
    if (t) {
        *t = s->troubles[--s->trouble_count];
    }
}

bool kedgei_site_lacks_data(const struct kedge_site *s)
{
    bool lacks = false;
    for (uint32_t i = 0; i < s->trouble_count; i++) {
        enum kedge_trouble why = s->troubles[i].why;
        lacks = lacks || why == KEDGE_TROUBLE_DATA_MISSING || why == KEDGE_TROUBLE_DATA_BAD
                || why == KEDGE_TROUBLE_DATA_SHAPE;
    }
    return lacks;
}

void kedgei_site_troubles_forget(struct kedge_site *s)
{
    s->trouble_count = 0;
    s->anew = true;
    s->anew_poll = 0;
    s->poll_is_stale = true;
}

/* `anew` has to reach the coordinator once, and a poll may be lost. So every poll says it until one is
 * answered that was sent at or after the first that said it; the answer to an older poll proves nothing,
 * which is why the serial of that first poll is kept. */
void kedgei_site_anew_tell(struct kedge_site *s, struct kedge_site_effect *poll)
{
    poll->anew = s->anew;
    s->anew_poll = s->anew && s->anew_poll == 0 ? poll->serial : s->anew_poll;
}

void kedgei_site_anew_told(struct kedge_site *s, uint64_t serial)
{
    s->anew = s->anew && !(s->anew_poll != 0 && serial >= s->anew_poll);
}
