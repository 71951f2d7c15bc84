/* Executes the coordinator's effects: answers go into the network, work and writes into the future. */
#include <string.h>

#include "sim/world.h"

/* The request is over for the coordinator once it has answered, also when the network loses the answer,
 * doubles it or lets a later one come first: the site then asks again, with a call of another number. */
static void reply(struct sim *w, uint32_t request, const struct kedge_site_reply *r, uint64_t leaf,
                  uint32_t proof)
{
    struct sim_request *q = sim_request_find(w, request);
    if (!q) {
        return; /* the connection is gone */
    }
    q->used = false;
    if (sim_fault(w, SIM_FAULT_LOST, w->config.loss)) {
        return;
    }
    for (int copies = sim_fault(w, SIM_FAULT_DOUBLED, w->config.duplicate) ? 2 : 1; copies > 0; copies--) {
        struct sim_event *ev = sim_push(w, SIM_TO_DEVICE, w->now_ns + sim_delay(w));
        ev->site = q->site;
        ev->term = q->term;
        ev->serial = q->serial;
        ev->reply = *r;
        if (r->kind == KEDGE_SITE_REPLY_TASK || r->kind == KEDGE_SITE_REPLY_WAIT) {
            /* Entry 0 of every main chain is the policy, of which there is no model here. */
            ev->reply.shown =
                (struct kedge_site_chain){1 + (uint64_t)w->main_count, sim_to_site(&w->main_root)};
        }
        ev->weight = leaf;
        ev->proof = proof;
    }
}

static void give_task(struct sim *w, const struct kedge_coord_effect *fx)
{
    struct kedge_site_reply r = {.kind = KEDGE_SITE_REPLY_TASK};
    struct kedge_site_task *t = &r.task;
    t->job = w->jobs[fx->job].params.id;
    t->spec.b[0] = (uint8_t)fx->job;
    memcpy(t->base.b, fx->base.b, sizeof t->base.b);
    t->spec_len = t->base_len = t->update_len = 100;
    t->round = fx->round;
    t->kind = fx->kind == KEDGE_TASK_PRETRAIN ? KEDGE_SITE_PRETRAIN
              : fx->kind == KEDGE_TASK_TRAIN  ? KEDGE_SITE_TRAIN
                                              : KEDGE_SITE_EVALUATE;
    t->group = fx->group == KEDGE_COORD_NONE ? KEDGE_SITE_NONE : fx->group;
    t->evaluate_base = fx->evaluate_base;
    struct kedge_digest trial;
    const bool evaluates = t->kind == KEDGE_SITE_EVALUATE || t->evaluate_base;
    if (w->payload && evaluates
        && w->payload->trial(w->payload->arg, fx->group, fx->evaluate_round, &trial)) {
        t->has_trial = true;
        t->trial = sim_to_site(&trial);
    }
    t->remaining_ns = fx->remaining_ns;
    t->seed = w->jobs[fx->job].params.seed;
    struct kedge_coord_job_view view;
    if (fx->choice && sim_job_view(w, fx->job, &view)) {
        t->choice_count = view.model_count;
        for (uint32_t g = 0; g < view.model_count; g++) {
            t->choices[g] = sim_to_site(&view.models[g]);
        }
    }
    reply(w, fx->request, &r, 0, 0);
}

/* The answer may be lost and come again: a leaf with this very envelope earns its receipt, whatever came
 * since. */
static bool find_leaf(const struct sim *w, const struct sim_ticket *t, uint64_t *ret_leaf)
{
    const struct kedge_site_result *r = &t->result;
    struct sim_entry like = {.type = r->kind == KEDGE_SITE_EVALUATE ? SIM_EVALUATION : SIM_UPDATE,
                             .site = t->site,
                             .job = sim_job_of(&r->job),
                             .round = r->round,
                             .kind = r->kind == KEDGE_SITE_PRETRAIN ? KEDGE_TASK_PRETRAIN
                                     : r->kind == KEDGE_SITE_TRAIN  ? KEDGE_TASK_TRAIN
                                                                    : KEDGE_TASK_EVALUATE};
    uint32_t leaf;
    const struct sim_entry *e = sim_ledger_find(w, w->devices[t->site].tenant, &like, &leaf);
    if (!e || memcmp(e->envelope.b, r->envelope.b, sizeof r->envelope.b) != 0) {
        return false;
    }
    *ret_leaf = leaf;
    return true;
}

/* Durable before it is told: a restart finds it. */
static void store_refusal(struct sim *w, const struct kedge_coord_effect *fx, const struct sim_ticket *t)
{
    w->jobs[fx->job].told[fx->site] = (struct sim_refusal){.err = fx->err,
                                                           .kind = fx->kind,
                                                           .envelope = sim_of_site(&t->result.envelope),
                                                           .update = sim_of_site(&t->result.update),
                                                           .weight = t->weight};
    if (fx->kind == KEDGE_TASK_PRETRAIN) {
        w->devices[fx->site].refused_round[fx->job] = fx->round;
    }
}

static void answer_submission(struct sim *w, const struct kedge_coord_effect *fx)
{
    struct kedge_site_reply r = {.kind = KEDGE_SITE_REPLY_ERROR, .err = fx->err, .retry_ns = fx->retry_ns};
    uint64_t leaf = fx->leaf;
    uint32_t proof = 0;
    if (fx->type == KEDGE_FX_RECEIPT) {
        r.kind = KEDGE_SITE_REPLY_RECEIPT;
    } else if (fx->type == KEDGE_FX_CLOSED) {
        r.kind = KEDGE_SITE_REPLY_CLOSED;
    }
    struct sim_ticket *t = sim_ticket_find(w, fx->ticket);
    if (t && fx->recorded) {
        store_refusal(w, fx, t);
    }
    bool history =
        fx->type == KEDGE_FX_CLOSED || (fx->type == KEDGE_FX_TURN_AWAY && fx->err == KEDGE_E_NO_JOB);
    if (t && history && find_leaf(w, t, &leaf)) {
        r.kind = KEDGE_SITE_REPLY_RECEIPT;
    }
    if (t && r.kind == KEDGE_SITE_REPLY_RECEIPT) {
        proof = sim_prove_receipt(w, w->devices[t->site].tenant, (uint32_t)leaf);
    } else if (t && r.kind == KEDGE_SITE_REPLY_CLOSED) {
        proof = sim_prove_closed(w, t->site, &t->result);
    }
    if (t) {
        t->used = false;
    }
    reply(w, fx->request, &r, leaf, proof);
}

/* The state is written only over the one that the core believes to be there; another one there means that
 * core and disk have parted. */
static void store_state(struct sim *w, const struct kedge_coord_effect *fx)
{
    struct sim_job *j = &w->jobs[fx->job];
    if (j->state != fx->from) {
        sim_violate(w, "job %u: compare-and-swap from %s, but it is %s", fx->job,
                    kedge_job_state_name(fx->from), kedge_job_state_name(j->state));
    }
    j->state = fx->state;
    j->reason = fx->err;
}

/* What takes time becomes an event that bears the number of this life of the coordinator (`term`). After a
 * crash events of earlier lives are dropped, as a dead process's work is; only writes that the disk had done
 * by then are kept (keep_writes in server.c). */
void sim_server_execute(struct sim *w, const struct kedge_coord_effect *fx)
{
    struct sim_event *ev;
    struct kedge_site_reply noted = {.kind = KEDGE_SITE_REPLY_NOTED};
    struct kedge_site_reply wait = {.kind = KEDGE_SITE_REPLY_WAIT, .retry_ns = fx->retry_ns};
    switch (fx->type) {
    case KEDGE_FX_TASK:
        give_task(w, fx);
        return;
    case KEDGE_FX_WAIT:
        reply(w, fx->request, &wait, 0, 0);
        return;
    case KEDGE_FX_NOTED:
        reply(w, fx->request, &noted, 0, 0);
        return;
    case KEDGE_FX_RECEIPT:
    case KEDGE_FX_TURN_AWAY:
    case KEDGE_FX_CLOSED:
        answer_submission(w, fx);
        return;
    case KEDGE_FX_VERIFY:
    case KEDGE_FX_CLOSE_ROUND:
    case KEDGE_FX_ASSIGN:
        ev = sim_push(w, SIM_SERVER_DONE, w->now_ns + 1 + sim_below(w, SIM_SECOND / 5));
        break;
    case KEDGE_FX_APPEND:
    case KEDGE_FX_APPEND_ASSIGNED:
        ev = sim_push(w, SIM_SERVER_DISK, sim_disk(w, &w->ledgers[fx->tenant].busy_ns, &w->server.disk_slow));
        break;
    case KEDGE_FX_MAIN_JOB_OPENED:
    case KEDGE_FX_MAIN_ROUND_OPENED:
    case KEDGE_FX_MAIN_ROUND_CLOSED:
    case KEDGE_FX_MAIN_ROUND_TESTED: /* of jobs with targets, of which there are none here */
    case KEDGE_FX_MAIN_JOB_CLOSED:
        ev = sim_push(w, SIM_SERVER_DISK, sim_disk(w, &w->server.main_busy_ns, &w->server.disk_slow));
        break;
    case KEDGE_FX_JOB_STATE:
        store_state(w, fx);
        return;
    default:
        KEDGE_ASSERT(false);
        return;
    }
    ev->effect = *fx;
    ev->term = w->server.term;
}
