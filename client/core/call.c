/* What the coordinator answers, and what it does not. Nothing here trusts it: answers that make no sense
 * are failures, pauses are bounded.
 *
 * Answers are matched by serial number with what is open now. A late one, of a call that was given up or
 * of a task that was refused meanwhile, is passed over. Two calls may cross: a poll that was sent before
 * another answer showed a longer main chain may show a shorter one, and that is not a fork (chain.h). */
#include "client/core/chain.h"
#include "client/core/core.h"

/* *ret_late: more has been seen since it was asked for. KEDGE_E_FORMAT: the answer shows no main chain, so it
 * is none; KEDGE_E_SHORTER, KEDGE_E_FORK: the site refuses from now on. */
static int look_at_chain(struct kedge_site *s, const struct kedge_site_reply *r, uint64_t asked_size,
                         bool *ret_late)
{
    *ret_late = false;
    if (r->kind != KEDGE_SITE_REPLY_TASK && r->kind != KEDGE_SITE_REPLY_WAIT) {
        return KEDGE_OK;
    }
    asked_size = MUTANT(MUTANT_SITE_TAKES_LATE_FOR_CUT) ? s->seen.size : asked_size;
    switch (kedge_site_chain_judge(&s->seen, asked_size, &r->shown, r->breaks)) {
    case KEDGE_SITE_CHAIN_SAME:
        return KEDGE_OK;
    case KEDGE_SITE_CHAIN_LATE:
        *ret_late = true;
        return KEDGE_OK;
    case KEDGE_SITE_CHAIN_NEWER:
        s->seen = r->shown;
        kedgei_site_emit(s, KEDGE_SITE_FX_SEEN)->seen = s->seen;
        return KEDGE_OK;
    case KEDGE_SITE_CHAIN_MISSING:
        return KEDGE_E_FORMAT;
    case KEDGE_SITE_CHAIN_SHORTER:
        kedgei_site_refuse(s, KEDGE_E_SHORTER, &r->shown);
        return KEDGE_E_SHORTER;
    case KEDGE_SITE_CHAIN_FORK:
        kedgei_site_refuse(s, KEDGE_E_FORK, &r->shown);
        return KEDGE_E_FORK;
    }
    return KEDGE_E_BUG;
}

/* Until the tenant has enrolled it a site asks again, patiently: that waits for a person. An error that will
 * not change (a token that was used, or that nobody issued) stops it instead, since only its owner can help.
 * When it is confirmed, all works begin with what they have, which after a restore from a backup may be
 * results. */
static void enroll_answered(struct kedge_site *s, const struct kedge_site_reply *r)
{
    if (r->kind == KEDGE_SITE_REPLY_ENROLLED && r->active) {
        s->memory.enrolled = true;
        s->w->failures = 0;
        s->w->reason = KEDGE_OK;
        kedgei_site_log(s, KEDGE_SITE_NOTE_ENROLLED, KEDGE_OK);
        kedgei_site_persist(s);
        for (uint32_t i = s->params.works; i-- > 0;) {
            s->w = &s->works[i];
            kedgei_site_next_result(s);
        }
    } else if (r->kind == KEDGE_SITE_REPLY_ENROLLED) {
        kedgei_site_back_off(s, KEDGE_E_NOT_ENROLLED, r->retry_ns); /* the tenant has not enrolled it yet */
    } else if (r->kind == KEDGE_SITE_REPLY_ERROR && !kedgei_site_is_transient(r->err)) {
        kedgei_site_stop(s, r->err);
    } else {
        int err = r->kind == KEDGE_SITE_REPLY_ERROR ? r->err : KEDGE_E_FORMAT;
        kedgei_site_log(s, KEDGE_SITE_NOTE_UNREACHABLE, err);
        kedgei_site_back_off(s, err, r->retry_ns);
    }
}

/* The task of a late answer is not taken: the next poll brings it again, with a chain that grew out of what
 * has been seen by now. Nor is one of a job that is at work already: two polls may have crossed, and two
 * tasks of one job would make two updates for one round. The coordinator's pause is believed up to
 * backoff_max. */
static void poll_answered(struct kedge_site *s, const struct kedge_site_reply *r, bool late)
{
    if (r->kind == KEDGE_SITE_REPLY_TASK || r->kind == KEDGE_SITE_REPLY_WAIT) {
        s->w->failures = 0;
        s->w->reason = KEDGE_OK;
        kedgei_site_go(s, KEDGE_SITE_POLLING);
        bool task = r->kind == KEDGE_SITE_REPLY_TASK && !late;
        if (task && kedgei_site_has_room(s)
            && !kedgei_site_is_at_work(s, &r->task.job)) { /* polls may cross */
            kedgei_site_take_task(s, &r->task);
            return;
        }
        const struct kedge_site_times *t = &s->params.times;
        uint64_t pause = r->retry_ns > t->poll_min ? r->retry_ns : t->poll_min;
        s->w->wake_ns = kedgei_site_after(s, pause < t->backoff_max ? pause : t->backoff_max);
    } else if (r->kind == KEDGE_SITE_REPLY_ERROR && r->err == KEDGE_E_REVOKED) {
        kedgei_site_stop(s, r->err);
    } else {
        int err = r->kind == KEDGE_SITE_REPLY_ERROR ? r->err : KEDGE_E_FORMAT;
        kedgei_site_log(s, KEDGE_SITE_NOTE_UNREACHABLE, err);
        kedgei_site_back_off(s, err, r->retry_ns);
    }
}

/* BLOB_MISSING has two meanings. If the upload went well, the coordinator has lost the file (a restart of its
 * own, another upload of this site): it is sent again. If the coordinator had refused the file, it is refused
 * for good: it will never take a statement whose file it does not take. Of all other errors the class
 * decides, so that a new error in err.def needs no change here: REJECT is final, the rest is tried again with
 * the same bytes. */
static void submit_refused(struct kedge_site *s, const struct kedge_site_reply *r)
{
    const bool missing = r->err == KEDGE_E_BLOB_MISSING;
    if (r->err == KEDGE_E_REVOKED) {
        kedgei_site_stop(s, r->err);
    } else if (missing && !s->w->upload_refused && kedgei_site_first(s, s->w)->kind != KEDGE_SITE_EVALUATE) {
        kedgei_site_go(s, KEDGE_SITE_UPLOADING);
        kedgei_site_back_off(s, r->err, r->retry_ns);
    } else if ((missing
                && s->w->upload_refused) /* what does not take the file will never take the statement */
               || kedge_err_class(r->err) == KEDGE_CLASS_REJECT || MUTANT(MUTANT_SITE_TAKES_BUSY_FOR_NO)) {
        kedgei_site_settle(s, r->err);
    } else {
        kedgei_site_back_off(s, r->err, r->retry_ns);
    }
}

static void submit_answered(struct kedge_site *s, const struct kedge_site_reply *r)
{
    if (r->kind == KEDGE_SITE_REPLY_RECEIPT) {
        kedgei_site_settle(s, KEDGE_OK);
    } else if (r->kind == KEDGE_SITE_REPLY_CLOSED) {
        kedgei_site_settle(s, KEDGE_E_ROUND_CLOSED);
    } else if (r->kind == KEDGE_SITE_REPLY_ERROR) {
        submit_refused(s, r);
    } else {
        kedgei_site_log(s, KEDGE_SITE_NOTE_UNREACHABLE, KEDGE_E_FORMAT);
        kedgei_site_back_off(s, KEDGE_E_FORMAT, 0);
    }
}

/* The next one is due a heartbeat later, or when the coordinator said, if that is later. */
static void end_beat(struct kedge_site *s, uint64_t at_least_ns)
{
    const struct kedge_site_times *t = &s->params.times;
    uint64_t least = at_least_ns < t->backoff_max ? at_least_ns : t->backoff_max;
    s->beat = 0;
    if (s->beat_ns != UINT64_MAX) {
        s->beat_ns = kedgei_site_after(s, least > t->heartbeat ? least : t->heartbeat);
    }
}

/* The chain is looked at before the answer, and of heartbeats, too: they come most often while a site works,
 * and so show a cut or fork soonest. The serial is cleared first; from here on the work has nothing open, and
 * every branch below must leave it in a state with a time to wake. */
void kedgei_site_reply(struct kedge_site *s, const struct kedge_site_event *ev)
{
    const struct kedge_site_reply *r = &ev->reply;
    bool late;
    if (ev->serial != 0 && ev->serial == s->beat) {
        end_beat(s, r->kind == KEDGE_SITE_REPLY_ERROR ? r->retry_ns : 0);
        if (look_at_chain(s, r, s->beat_asked_size, &late) != KEDGE_OK) {
            return; /* a heartbeat is not repeated */
        }
        if (r->kind == KEDGE_SITE_REPLY_ERROR && r->err == KEDGE_E_REVOKED) {
            kedgei_site_stop(s, r->err);
        }
        return;
    }
    if (ev->serial == 0 || ev->serial != s->w->open || s->w->open_type != KEDGE_SITE_FX_CALL) {
        return; /* late: of something given up since */
    }
    s->w->open = 0;
    if (r->kind == KEDGE_SITE_REPLY_TASK || r->kind == KEDGE_SITE_REPLY_WAIT) {
        kedgei_site_anew_told(s, ev->serial);
    }
    int err = look_at_chain(s, r, s->w->asked_size, &late);
    if (s->w->state == KEDGE_SITE_REFUSING) {
        return;
    }
    if (err) {
        kedgei_site_log(s, KEDGE_SITE_NOTE_UNREACHABLE, err);
        kedgei_site_back_off(s, err, 0);
        return;
    }
    switch (s->w->open_call) {
    case KEDGE_SITE_CALL_ENROLL:
        enroll_answered(s, r);
        return;
    case KEDGE_SITE_CALL_POLL:
        poll_answered(s, r, late);
        return;
    case KEDGE_SITE_CALL_SUBMIT:
        submit_answered(s, r);
        return;
    case KEDGE_SITE_CALL_ENDED:
        kedgei_site_end_answered(s, r);
        return;
    }
}

/* Nothing is known of what the coordinator did with the request, so nothing is concluded from it: the state
 * stays, the same call goes out again after a pause. For SUBMIT this is what makes receipts exact: the second
 * attempt has the same envelope, and the coordinator answers it with the receipt of the first. */
void kedgei_site_call_failed(struct kedge_site *s, const struct kedge_site_event *ev)
{
    if (ev->serial != 0 && ev->serial == s->beat) {
        end_beat(s, 0);
        return;
    }
    if (ev->serial == 0 || ev->serial != s->w->open || s->w->open_type != KEDGE_SITE_FX_CALL) {
        return;
    }
    s->w->open = 0;
    if (s->w->failures == 0) { /* once per outage */
        kedgei_site_log(s, KEDGE_SITE_NOTE_UNREACHABLE, ev->err);
    }
    if (MUTANT(MUTANT_SITE_FORGETS_EARLY) && s->w->state == KEDGE_SITE_SUBMITTING) {
        kedgei_site_settle(s, KEDGE_OK);
        return;
    }
    if (s->w->open_call == KEDGE_SITE_CALL_ENDED) {
        kedgei_site_end_failed(s, ev->err);
        return;
    }
    kedgei_site_back_off(s, ev->err, 0);
    if (MUTANT(MUTANT_SITE_NO_RETRY)) {
        s->w->wake_ns = UINT64_MAX - 1;
    }
    KEDGE_ASSERT(s->w->open == 0);
}
