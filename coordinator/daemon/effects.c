/* Executes what the core decides. One function per effect; heavy ones hand their work to workers or
 * committers and report its end as another event.
 *
 * Blobs are made durable before the statement that names them, so an update whose statement is then
 * refused leaves a file without an entry. It is removed here, unless another submission of the same bytes
 * is still under way. */
#include "coordinator/daemon/effects.h"

#include <string.h>

#include "common/base/os/log.h"
#include "coordinator/daemon/events/events.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/rounds/rounds.h"
#include "coordinator/daemon/rounds/troubles.h"
#include "coordinator/daemon/sites/refusals.h"
#include "coordinator/daemon/sites/refused.h"
#include "coordinator/daemon/sites/requests.h"
#include "coordinator/daemon/sites/submit.h"

enum { NS_PER_MS = 1000000 };

/* A task names everything by digest: spec, base, trial, control variate. The site fetches what it
 * lacks by separate requests, so a task stays small and what the site has is not sent again. With
 * it comes the newest checkpoint of the main chain and the proof that it extends the one that the
 * site has seen; a site that finds a contradiction refuses to train. */
static void send_task(struct kedge_host *h, const struct kedge_coord_effect *fx)
{
    uint64_t seen_size = kedge_host_request_seen(h, fx->request);
    struct kedge_net_request *req = kedge_host_request_take(h, fx->request);
    if (!req) {
        return;
    }
    const struct kedge_job *job = &h->jobs[fx->job];
    struct kedge_shown_chain shown;
    struct kedge_msg msg = {.type = KEDGE_MSG_TASK};
    struct kedge_msg_task *t = &msg.u.task;
    kedge_host_show_chain(h, seen_size, &shown);
    t->job = job->spec.name;
    memcpy(t->spec, job->spec_digest.b, sizeof t->spec);
    t->spec_len = job->spec_len;
    t->kind = (uint8_t)fx->kind;
    t->round = fx->kind == KEDGE_TASK_EVALUATE ? fx->evaluate_round : fx->round;
    t->group = fx->group;
    memcpy(t->base, fx->base.b, sizeof t->base);
    struct kedge_coord_job_view view;
    if (fx->choice && kedge_coord_job(h->coord, job->slot, &view)) {
        t->choices = kedge_view_of(view.models, view.model_count * sizeof view.models[0]);
    }
    t->base_len = job->model_len;
    t->update_len = job->update_len;
    const struct kedge_hash *control = kedge_host_control(job, fx->kind);
    if (control) {
        t->control = kedge_view_of(control->b, KEDGE_HASH_LEN);
        t->control_len = job->control_len;
    }
    const struct kedge_hash *trial = kedge_host_trial(job, fx->group, fx->evaluate_round);
    t->trial = trial ? kedge_view_of(trial->b, KEDGE_HASH_LEN) : (struct kedge_view){NULL, 0};
    t->classes = kedge_view_of(job->classes, kedge_class_names_len(job->classes));
    t->remaining_ms = fx->remaining_ns / NS_PER_MS;
    t->percent = fx->kind == KEDGE_TASK_TRAIN ? (uint8_t)job->sites[fx->site].percent : 0;
    t->evaluate_base = fx->evaluate_base;
    t->seed = kedge_job_task_seed(job, fx->round, &h->sites[fx->site].id);
    t->main_checkpoint = kedge_buf_view(&shown.newest);
    t->since_seen = kedge_shown_path(&shown.since_seen);
    t->cosigned = kedge_buf_view(&shown.cosigned);
    t->since_cosigned = kedge_shown_path(&shown.since_cosigned);
    kedge_host_reply(req, &msg);
    kedge_shown_chain_deinit(&shown);
}

/* WAIT carries the newest checkpoint, too: a site that is never selected must see the main chain
 * grow like the others, or a fork could be shown to it unnoticed. */
static void send_wait(struct kedge_host *h, const struct kedge_coord_effect *fx)
{
    uint64_t seen_size = kedge_host_request_seen(h, fx->request);
    struct kedge_net_request *req = kedge_host_request_take(h, fx->request);
    if (req) {
        kedge_host_reply_wait(h, req, seen_size, fx->retry_ns);
    }
}

static void send_noted(struct kedge_host *h, const struct kedge_coord_effect *fx)
{
    struct kedge_net_request *req = kedge_host_request_take(h, fx->request);
    if (req) {
        struct kedge_msg msg = {.type = KEDGE_MSG_NOTED};
        msg.u.noted.ended = fx->ended;
        kedge_host_reply(req, &msg);
    }
}

/* A blob that was made durable for a statement that will not be appended is nobody's. Two
 * submissions may carry the same bytes, so it goes only with the last of them, and never if the
 * ledger names it. */
static void drop_orphan(struct kedge_host *h, uint32_t ticket)
{
    const struct kedge_ticket *t = &h->tickets[ticket];
    struct kedge_tenant *tenant = &h->tenants[h->sites[t->site].tenant];
    struct kedge_diag d = {.text = ""};
    for (uint32_t i = 0; t->blob_committed && i < KEDGE_TICKETS_MAX; i++) {
        const struct kedge_ticket *o = &h->tickets[i];
        if (i != ticket && o->used && h->sites[o->site].tenant == h->sites[t->site].tenant
            && kedge_hash_eq(&o->st->subject, &t->st->subject)) {
            return; /* the same bytes, on their way into the ledger by another: the last of them removes them
                     */
        }
    }
    if (t->blob_committed
        && kedge_ledger_find_ref(tenant->log.ledger, &t->st->subject, NULL) == KEDGE_E_NOT_FOUND
        && kedge_blobs_drop(tenant->log.blobs, &t->st->subject, &d) != KEDGE_OK) {
        kedge_log(KEDGE_LOG_WARN, "orphan blob", "%s", d.text);
    }
}

/* The refused file, where it is still in staging or was made a blob for nothing, by this submission or
 * another of the same bytes; else the worker that looked at it has kept it. A blob that the ledger names
 * stays anyway.
 */
static void keep_file(struct kedge_host *h, uint32_t ticket)
{
    const struct kedge_ticket *t = &h->tickets[ticket];
    const struct kedge_site_upload *u = &h->sites[t->site].upload;
    const struct kedge_hash *update = &t->st->subject;
    struct kedge_ledger *ledger = h->tenants[h->sites[t->site].tenant].log.ledger;
    if (t->blob_committed || kedge_ledger_find_ref(ledger, update, NULL) == KEDGE_E_NOT_FOUND) {
        kedge_host_refused_keep_blob(h, t->site, update);
    }
    if (!u->is_busy && u->file && u->is_whole && kedge_hash_eq(&u->digest, update)) {
        kedge_host_refused_keep_file(h, t->site, update, kedge_upload_path(u->file));
    }
}

/* False: not one that is signed, or nobody waits for the answer any more. */
static bool refuse(struct kedge_host *h, const struct kedge_coord_effect *fx, struct kedge_net_request *req)
{
    const struct kedge_ticket *t = fx->ticket == KEDGE_COORD_NONE ? NULL : &h->tickets[fx->ticket];
    if (!t || !kedge_host_refuses(h, t->site, t->st, fx->err)) {
        return false;
    }
    keep_file(h, fx->ticket);
    kedge_host_event_refused(h, t->site, t->st, fx->err);
    if (req) {
        kedge_host_refuse(h, &(struct kedge_refused_update){.req = req,
                                                            .site = t->site,
                                                            .st = t->st,
                                                            .envelope = kedge_buf_view(&t->envelope),
                                                            .hash = t->envelope_hash,
                                                            .err = fx->err,
                                                            .listed = fx->recorded});
    }
    return req != NULL;
}

/* The order matters. What belongs into the record of the round is stored before anybody is told.
 * Then the ledger is asked whether the statement is in it after all: an append that was given up
 * may have become durable, and a site that is told "no job" in that case would believe that its
 * update does not count. Only then a refusal is signed, and the orphaned blob goes last, after the
 * refused file had its chance to be kept as evidence. */
static void turn_away(struct kedge_host *h, const struct kedge_coord_effect *fx)
{
    if (fx->recorded && fx->ticket != KEDGE_COORD_NONE) {
        kedge_host_refusal_store(h, fx);
    }
    bool answered = fx->err == KEDGE_E_NO_JOB && fx->ticket != KEDGE_COORD_NONE
                    && kedge_host_receipt_if_known(h, fx->ticket);
    struct kedge_net_request *req = answered ? NULL : kedge_host_request_take(h, fx->request);
    if (!answered && refuse(h, fx, req)) {
        req = NULL;
    }
    if (req) {
        kedge_host_reply_error(req, fx->err, (uint32_t)(fx->retry_ns / NS_PER_MS), kedge_strerror(fx->err));
    }
    if (fx->ticket != KEDGE_COORD_NONE) {
        drop_orphan(h, fx->ticket);
        kedge_host_ticket_free(h, fx->ticket);
    }
}

/* A move that the history refuses changes nothing: what is stored stays what it was. */
static void store_state(struct kedge_host *h, const struct kedge_coord_effect *fx)
{
    struct kedge_job *job = &h->jobs[fx->job];
    const enum kedge_job_state before = job->state;
    const int reason_before = job->reason;
    job->state = fx->state;
    job->reason = fx->err;
    if (!kedge_host_job_move(h, job, fx->from)) {
        job->state = before;
        job->reason = reason_before;
        return;
    }
    if (fx->err == KEDGE_E_SITES) {
        kedge_host_troubles_tell(h, job);
    }
    kedge_log(KEDGE_LOG_INFO, "job", "job=%s %s -> %s%s%s", job->spec.name.s, kedge_job_state_name(fx->from),
              kedge_job_state_name(fx->state), fx->err ? ": " : "", fx->err ? kedge_strerror(fx->err) : "");
    kedge_host_job_keep(h, job);
}

/* Effects of a job as a whole. The cast to int lets the compiler accept a switch over a part of the
 * values; an unknown one is a contract that core and host no longer share. */
static void execute_job(struct kedge_host *h, const struct kedge_coord_effect *fx)
{
    struct kedge_job *job = &h->jobs[fx->job];
    switch ((int)fx->type) {
    case KEDGE_FX_MAIN_JOB_OPENED:
        kedge_host_job_opened(h, job);
        break;
    case KEDGE_FX_MAIN_ROUND_OPENED:
        kedge_host_round_opened(h, job, fx);
        break;
    case KEDGE_FX_CLOSE_ROUND:
        kedge_host_close_round(h, job, fx);
        break;
    case KEDGE_FX_MAIN_ROUND_CLOSED:
        kedge_host_round_closed(h, job, fx->round);
        break;
    case KEDGE_FX_ASSIGN:
        kedge_host_assign(h, job, fx);
        break;
    case KEDGE_FX_APPEND_ASSIGNED:
        kedge_host_append_assigned(h, job, fx);
        break;
    case KEDGE_FX_MAIN_ROUND_TESTED:
        kedge_host_round_tested(h, job, fx->round);
        break;
    case KEDGE_FX_MAIN_JOB_CLOSED:
        kedge_host_job_closed(h, job, fx->state, fx->err);
        break;
    default:
        KEDGE_ASSERT(false); /* an effect that this host does not know */
    }
}

void kedge_host_execute(struct kedge_host *h, const struct kedge_coord_effect *fx)
{
    switch ((int)fx->type) {
    case KEDGE_FX_TASK:
        send_task(h, fx);
        break;
    case KEDGE_FX_WAIT:
        send_wait(h, fx);
        break;
    case KEDGE_FX_NOTED:
        send_noted(h, fx);
        break;
    case KEDGE_FX_VERIFY:
        kedge_host_verify(h, fx->ticket);
        break;
    case KEDGE_FX_APPEND:
        kedge_host_append(h, fx->ticket);
        break;
    case KEDGE_FX_RECEIPT:
        if (fx->kind != KEDGE_TASK_EVALUATE) {
            kedge_host_trouble_over(h, fx->site, &h->jobs[fx->job]);
        }
        kedge_host_receipt(h, fx->request, h->sites[fx->site].tenant, fx->leaf);
        if (fx->ticket != KEDGE_COORD_NONE) {
            kedge_host_ticket_free(h, fx->ticket);
        }
        break;
    case KEDGE_FX_TURN_AWAY:
        turn_away(h, fx);
        break;
    case KEDGE_FX_CLOSED:
        kedge_host_closed(h, fx->ticket, fx->round);
        drop_orphan(h, fx->ticket);
        kedge_host_ticket_free(h, fx->ticket);
        break;
    case KEDGE_FX_JOB_STATE:
        store_state(h, fx);
        break;
    default:
        execute_job(h, fx);
        break;
    }
}
