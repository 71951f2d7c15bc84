/* What must hold of every effect and of every statement, whatever goes wrong. The checkers look at effects
 * and durable arrays only, never into a core's tables. */
#include <string.h>

#include "sim/world.h"

/* Is this group's model of the last durable close before `round` the one given? */
static bool is_base(const struct sim *w, uint32_t job, uint32_t round, uint32_t group,
                    const struct kedge_digest *model)
{
    const struct sim_job *j = &w->jobs[job];
    const struct sim_main *m = round > 0 ? sim_main_find(w, SIM_ROUND_CLOSED, job, round - 1) : NULL;
    if (!m) {
        bool first = round == 1 && kedge_coord_first_round(&j->params) == 1;
        uint32_t count = kedge_coord_first_models(&j->params);
        return first && group < count && sim_same(model, &j->begin[group]);
    }
    return group < m->model_count && sim_same(&m->models[group], model);
}

static void check_task(struct sim *w, const struct kedge_coord_effect *fx)
{
    const struct sim_main *open = sim_main_find(w, SIM_ROUND_OPENED, fx->job, fx->round);
    const struct sim_device *d = &w->devices[fx->site];
    if (!open) {
        sim_violate(w, "task of job %u round %u before round-opened is durable", fx->job, fx->round);
        return;
    }
    if (d->revoked_told) {
        sim_violate(w, "task for revoked site %u", fx->site);
    }
    const struct sim_request *asked = sim_request_find(w, fx->request);
    if (asked && (asked->at_work >> fx->job & 1) != 0) {
        sim_violate(w, "task of job %u for site %u, which has one in hand", fx->job, fx->site);
    }
    sim_check_group_task(w, fx);
    if (fx->kind == KEDGE_TASK_EVALUATE) {
        if (!is_base(w, fx->job, fx->round + 1, fx->group, &fx->base)) {
            sim_violate(w, "evaluation of a model that round %u did not publish for group %u", fx->round,
                        fx->group);
        }
        return;
    }
    bool migrates = fx->kind == KEDGE_TASK_PRETRAIN && sim_is_warm(w, fx->site, fx->job);
    if (!sim_is_selected(open, fx->site) && !migrates) {
        sim_violate(w, "task of round %u for site %u, which is not selected", fx->round, fx->site);
    }
    if (open->tasks) {
        sim_check_async_task(w, fx);
    } else if (sim_main_find(w, SIM_ROUND_CLOSED, fx->job, fx->round)) {
        sim_violate(w, "task of round %u, which is closed", fx->round);
    }
    bool base = fx->choice                        ? w->jobs[fx->job].params.entry == KEDGE_ENTRY_CHOICE
                : fx->kind == KEDGE_TASK_PRETRAIN ? sim_same(&fx->base, &w->jobs[fx->job].initial)
                                                  : is_base(w, fx->job, fx->round, fx->group, &fx->base);
    if (!base) {
        sim_violate(w, "task of round %u for site %u: its base is not what is durable for group %u",
                    fx->round, fx->site, fx->group);
    }
}

static void check_receipt(struct sim *w, const struct kedge_coord_effect *fx)
{
    const struct sim_ticket *t = sim_ticket_find(w, fx->ticket);
    const struct sim_ledger *l = &w->ledgers[fx->tenant];
    if (t
        && (fx->leaf >= l->count || memcmp(l->entries[fx->leaf].envelope.b, t->result.envelope.b, 32) != 0)) {
        sim_violate(w, "receipt for site %u before its statement is durable", fx->site);
    }
}

/* What a selected site got wrong in the open round: the core must ask for it to be recorded. */
static void check_recorded(struct sim *w, const struct kedge_coord_effect *fx, const struct sim_ticket *t)
{
    bool content = fx->err == KEDGE_E_WEIGHT || fx->err == KEDGE_E_BOUND || fx->err == KEDGE_E_WRONG_BASE
                   || fx->err == KEDGE_E_WRONG_GROUP;
    uint32_t job = sim_job_of(&t->result.job);
    if (!content || t->result.kind == KEDGE_SITE_EVALUATE || job >= w->config.jobs) {
        return;
    }
    if (!fx->recorded) {
        sim_violate(w, "site %u is refused with %s, and it is not to be recorded", fx->site,
                    kedge_err_code(fx->err));
    }
}

/* A refusal says why, and when to come again if that may help. */
static void check_refusal(struct sim *w, const struct kedge_coord_effect *fx)
{
    enum kedge_err_class class = kedge_err_class(fx->err);
    bool again = class == KEDGE_CLASS_RETRY || class == KEDGE_CLASS_FULL || class == KEDGE_CLASS_UNKNOWN;
    const struct sim_ticket *t = sim_ticket_find(w, fx->ticket);
    if (fx->err == KEDGE_OK || again != (fx->retry_ns > 0)) {
        sim_violate(w, "site %u is refused by %s with a pause of %u ms", fx->site, kedge_err_code(fx->err),
                    (unsigned)(fx->retry_ns / 1000000));
    }
    if (t) {
        check_recorded(w, fx, t);
    }
}

/* Nobody may read a model whose close is not durable. */
static void check_closing(struct sim *w, const struct kedge_coord_effect *fx)
{
    const struct sim_pending *p = &w->jobs[fx->job].pending;
    for (uint32_t g = 0; g < p->model_count; g++) {
        bool known = sim_is_published(w, fx->job, &p->models[g]);
        for (uint32_t begin = 0; begin < w->jobs[fx->job].params.groups; begin++) {
            known = known || sim_same(&p->models[g], &w->jobs[fx->job].begin[begin]);
        }
        for (uint32_t i = 0; i < w->config.sites && !known; i++) {
            if (sim_may_read(w, fx->job, i, &p->models[g])) {
                sim_violate(w, "model of job %u round %u readable before its close is durable", fx->job,
                            fx->round);
            }
        }
    }
}

/* Each request is answered once. */
static void check_answer(struct sim *w, const struct kedge_coord_effect *fx)
{
    const struct sim_request *r = &w->server.requests[fx->request % w->server.request_max];
    if (fx->request == SIM_NONE || r->used || r->id != fx->request) {
        return;
    }
    sim_violate(w, "request %u of site %u is answered twice", fx->request, r->site);
}

static void check_append(struct sim *w, const struct kedge_coord_effect *fx)
{
    struct sim_ticket *t = sim_ticket_find(w, fx->ticket);
    if (!t) {
        sim_violate(w, "an answered submission of site %u is to be appended", fx->site);
        return;
    }
    if (t->after_revoked && !t->appended) {
        sim_violate(w, "statement of revoked site %u is to be appended", fx->site);
    }
    t->appended = true;
}

/* The outcome of an append that is out is not known: its round cannot be closed. */
static void check_close(struct sim *w, const struct kedge_coord_effect *fx)
{
    for (uint32_t i = 0; i < w->server.ticket_max; i++) {
        const struct sim_ticket *t = &w->server.tickets[i];
        bool out = t->used && t->appended && t->result.kind != KEDGE_SITE_EVALUATE;
        bool of_round = t->result.round == fx->round || w->jobs[fx->job].params.buffer > 0;
        if (out && sim_job_of(&t->result.job) == fx->job && of_round) {
            sim_violate(w, "round %u is computed while the update of site %u is being appended", fx->round,
                        t->site);
        }
    }
}

static void check_verify(struct sim *w, const struct kedge_coord_effect *fx)
{
    const struct sim_ticket *t = sim_ticket_find(w, fx->ticket);
    if (!t || t->after_revoked) {
        sim_violate(w, "submission of revoked site %u is taken", fx->site);
    }
}

void sim_check_effect(struct sim *w, const struct kedge_coord_effect *fx)
{
    uint64_t more = (uint64_t)fx->round << 32 | (uint64_t)fx->kind << 16 | (uint64_t)(uint16_t)fx->err;
    sim_note(w, "effect", (uint64_t)fx->type, (uint64_t)fx->site << 32 | fx->request, more);
    if (fx->type == KEDGE_FX_TASK || fx->type == KEDGE_FX_WAIT || fx->type == KEDGE_FX_RECEIPT
        || fx->type == KEDGE_FX_TURN_AWAY || fx->type == KEDGE_FX_CLOSED || fx->type == KEDGE_FX_NOTED) {
        check_answer(w, fx);
    }
    if (fx->type == KEDGE_FX_TASK) {
        check_task(w, fx);
    } else if (fx->type == KEDGE_FX_RECEIPT) {
        check_receipt(w, fx);
    } else if (fx->type == KEDGE_FX_TURN_AWAY) {
        check_refusal(w, fx);
    } else if (fx->type == KEDGE_FX_CLOSED) {
        if (fx->kind != KEDGE_TASK_EVALUATE && !sim_main_find(w, SIM_ROUND_CLOSED, fx->job, fx->round)) {
            sim_violate(w, "\"closed\" for job %u round %u before its close is durable", fx->job, fx->round);
        }
        if (fx->kind != KEDGE_TASK_EVALUATE) {
            sim_check_async_closed(w, fx);
        }
    } else if (fx->type == KEDGE_FX_MAIN_ROUND_CLOSED) {
        check_closing(w, fx);
    } else if (fx->type == KEDGE_FX_APPEND) {
        check_append(w, fx);
    } else if (fx->type == KEDGE_FX_VERIFY) {
        check_verify(w, fx);
    } else if (fx->type == KEDGE_FX_CLOSE_ROUND) {
        w->jobs[fx->job].computing = fx->round;
        check_close(w, fx);
    } else if (fx->type == KEDGE_FX_NOTED) {
        sim_check_noted(w, fx);
    } else if (fx->type == KEDGE_FX_MAIN_ROUND_OPENED) {
        sim_check_drawn(w, fx);
    } else if (fx->type == KEDGE_FX_JOB_STATE) {
        w->fired[SIM_FAULT_STALLED] += fx->state == KEDGE_JOB_HALTED && fx->err == KEDGE_E_SITES;
    }
}

void sim_check_entry(struct sim *w, uint32_t tenant, const struct sim_entry *e)
{
    uint32_t leaf;
    bool twice = sim_ledger_find(w, tenant, e, &leaf) != NULL;
    bool of_site = e->type == SIM_UPDATE || e->type == SIM_EVALUATION;
    if (twice && of_site) {
        sim_violate(w, "two statements of site %u for job %u round %u", e->site, e->job, e->round);
    }
    if (of_site && w->devices[e->site].revoked) {
        sim_violate(w, "statement of site %u behind its revocation", e->site);
    }
    if (e->type == SIM_ASSIGNED) {
        if (twice) {
            sim_violate(w, "two groups of site %u in job %u round %u", e->site, e->job, e->round);
        }
        sim_check_assigned(w, e);
    }
    if (e->type != SIM_UPDATE) {
        return;
    }
    bool train = e->kind == KEDGE_TASK_TRAIN;
    bool migrates = !train && sim_is_warm(w, e->site, e->job);
    if (!sim_is_selected(sim_main_find(w, SIM_ROUND_OPENED, e->job, e->round), e->site) && !migrates) {
        sim_violate(w, "update of site %u, which round %u did not select", e->site, e->round);
    }
    if (!train) {
        sim_check_migrates(w, e);
    }
    if (w->jobs[e->job].params.buffer > 0) {
        sim_check_async_update(w, e);
    } else if (sim_main_find(w, SIM_ROUND_CLOSED, e->job, e->round)) {
        sim_violate(w, "update of site %u accepted after the close of round %u", e->site, e->round);
    }
    const struct sim_device *d = &w->devices[e->site];
    bool base = train ? is_base(w, e->job, e->round, e->group, &e->base)
                      : sim_same(&e->base, &w->jobs[e->job].initial);
    const struct kedge_coord_job_params *params = &w->jobs[e->job].params;
    bool group = !train || params->groups == 1 || params->entry == KEDGE_ENTRY_CHOICE
                 || (d->group[e->job] == e->group && sim_unstated(w, e->job, e->site) == SIM_NONE);
    if (!base || !group) {
        sim_violate(w, "update of site %u in round %u from another group or base than its own", e->site,
                    e->round);
    }
}
