/* The coordinator of a crowd: its core, ledgers that only count, and a main chain that is a hash.
 *
 * A crowd is for size: up to as many sites as a core may have, without faults. So nothing is stored that
 * would grow with sites times rounds, and what is checked is what can be counted: each round has as many
 * updates as sites were selected, none comes from a site that sleeps, and each has a receipt at the end. */
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "sim/crowd_impl.h"
#include "sim/index.h"
#include "sim/world.h"

enum { MS = 1000000 };

static uint32_t tenant_of(const struct crowd *c, uint32_t site)
{
    return (uint32_t)((uint64_t)site * c->spec.tenants / c->spec.sites);
}

static struct kedge_coord_event blank(const struct crowd *c, enum kedge_coord_event_type type)
{
    return (struct kedge_coord_event){.type = type,
                                      .now_ns = c->now_ns,
                                      .tenant = KEDGE_COORD_NONE,
                                      .site = KEDGE_COORD_NONE,
                                      .job = KEDGE_COORD_NONE,
                                      .round = KEDGE_COORD_NONE,
                                      .group = KEDGE_COORD_NONE,
                                      .request = KEDGE_COORD_NONE,
                                      .ticket = KEDGE_COORD_NONE};
}

static void answer(struct crowd *c, const struct kedge_coord_effect *fx, const struct kedge_site_reply *reply)
{
    uint32_t site = fx->request / CROWD_CALLS;
    enum crowd_call call = (enum crowd_call)(fx->request % CROWD_CALLS);
    const struct crowd_site *s = crowd_site_find(c, site);
    struct crowd_event *ev = crowd_push(c, CROWD_TO_SITE, 5 * MS + crowd_mix(site, 7) % (50 * MS), site);
    ev->call = call;
    ev->born = s ? s->born : 0;
    ev->to_site.reply = *reply;
    ev->to_site.reply.shown = (struct kedge_site_chain){c->main_count, sim_to_site(&c->main_root)};
}

static void give_task(struct crowd *c, const struct kedge_coord_effect *fx)
{
    struct kedge_site_reply r = {.kind = KEDGE_SITE_REPLY_TASK};
    struct kedge_site_task *t = &r.task;
    t->job = c->params->id;
    memcpy(t->base.b, fx->base.b, sizeof t->base.b);
    t->spec_len = t->base_len = t->update_len = 100;
    t->round = fx->round;
    t->kind = KEDGE_SITE_TRAIN;
    t->group = fx->group;
    t->remaining_ns = fx->remaining_ns;
    t->seed = c->params->seed;
    answer(c, fx, &r);
}

static void finish(struct crowd *c, const struct kedge_coord_effect *fx, enum kedge_coord_event_type type,
                   uint64_t after_ns)
{
    struct crowd_event *ev = crowd_push(c, CROWD_SERVER_DONE, after_ns, 0);
    ev->to_server = blank(c, type);
    ev->to_server.tenant = fx->tenant;
    ev->to_server.site = fx->site;
    ev->to_server.job = fx->job;
    ev->to_server.round = fx->round;
    ev->to_server.group = fx->group;
    ev->to_server.kind = fx->kind;
    ev->to_server.ticket = fx->ticket;
}

static void append(struct crowd *c, const struct kedge_coord_effect *fx)
{
    const struct crowd_site *s = crowd_site_find(c, fx->site);
    if (!s || c->input_count >= c->spec.sites_per_round) {
        crowd_violate(c, "an update is appended that nobody sent, or one too many");
        return;
    }
    struct crowd_input *in = &c->inputs[c->input_count++];
    *in = (struct crowd_input){fx->site, s->weight, sim_of_site(&s->result.update)};
    c->updates++;
    finish(c, fx, KEDGE_EV_APPENDED, 2 * MS);
}

/* A sum, so that the order in which updates came does not matter. */
static struct kedge_digest model_next(const struct crowd *c)
{
    uint64_t sum = 0, weight = 0;
    for (uint32_t i = 0; i < c->input_count; i++) {
        const struct crowd_input *in = &c->inputs[i];
        uint64_t value;
        memcpy(&value, in->update.b, sizeof value);
        sum += in->weight * crowd_mix(in->site, value);
        weight += in->weight;
    }
    return sim_digest(sum, weight, c->input_count, &c->model, sizeof c->model);
}

static void close_round(struct crowd *c, const struct kedge_coord_effect *fx)
{
    if (c->input_count != c->spec.sites_per_round) {
        crowd_violate(c, "a round is closed without one of its selected sites");
    }
    c->model = model_next(c);
    c->input_count = 0;
    finish(c, fx, KEDGE_EV_ROUND_COMPUTED, 5 * MS);
}

static void main_append(struct crowd *c, const struct kedge_coord_effect *fx)
{
    c->main_root =
        sim_digest((uint64_t)fx->type, fx->round, ++c->main_count, &c->main_root, sizeof c->main_root);
    c->rounds_closed += fx->type == KEDGE_FX_MAIN_ROUND_CLOSED;
    finish(c, fx, KEDGE_EV_MAIN_APPENDED, 3 * MS);
}

static void execute(struct crowd *c, const struct kedge_coord_effect *fx)
{
    struct kedge_site_reply reply = {.kind = KEDGE_SITE_REPLY_WAIT, .retry_ns = fx->retry_ns};
    crowd_note(c, 64 + (uint64_t)fx->type, fx->site);
    switch (fx->type) {
    case KEDGE_FX_TASK:
        give_task(c, fx);
        return;
    case KEDGE_FX_WAIT:
        answer(c, fx, &reply);
        return;
    case KEDGE_FX_VERIFY:
        finish(c, fx, KEDGE_EV_VERIFIED, MS);
        return;
    case KEDGE_FX_APPEND:
        append(c, fx);
        return;
    case KEDGE_FX_RECEIPT:
        reply.kind = KEDGE_SITE_REPLY_RECEIPT;
        answer(c, fx, &reply);
        return;
    case KEDGE_FX_MAIN_JOB_OPENED:
    case KEDGE_FX_MAIN_ROUND_OPENED:
    case KEDGE_FX_MAIN_ROUND_CLOSED:
    case KEDGE_FX_MAIN_ROUND_TESTED: /* of jobs with targets, of which there are none here */
    case KEDGE_FX_MAIN_JOB_CLOSED:
        main_append(c, fx);
        return;
    case KEDGE_FX_CLOSE_ROUND:
        close_round(c, fx);
        return;
    case KEDGE_FX_JOB_STATE:
        c->completed = fx->state == KEDGE_JOB_COMPLETED;
        if (fx->state == KEDGE_JOB_HALTED || fx->state == KEDGE_JOB_FAILED) {
            crowd_violate(c, "the job is halted or has failed, and nothing went wrong");
        }
        return;
    case KEDGE_FX_NOTED:
    case KEDGE_FX_TURN_AWAY:
    case KEDGE_FX_CLOSED:
    case KEDGE_FX_ASSIGN:
    case KEDGE_FX_APPEND_ASSIGNED:
        crowd_violate(c, "a site is turned away, or gets a group that there is not");
        return;
    }
}

/* A timer goes into the queue only when it is due before the one that is there: one for each step would fill
 * the queue with timers that are not due. */
static void step(struct crowd *c, struct kedge_coord_event *ev)
{
    ev->now_ns = c->now_ns;
    bool more = kedge_coord_step(c->core, ev, &c->fx);
    for (;;) {
        for (uint32_t i = 0; i < c->fx.count; i++) {
            execute(c, &c->fx.items[i]);
        }
        if (!more) {
            break;
        }
        more = kedge_coord_more(c->core, &c->fx);
    }
    uint64_t due = kedge_coord_deadline_ns(c->core);
    if (due < c->server_timer_ns) {
        c->server_timer_ns = due;
        crowd_push(c, CROWD_SERVER_TIMER, due > c->now_ns ? due - c->now_ns : 0, 0);
    }
}

static void poll(struct crowd *c, uint32_t site, enum crowd_call call)
{
    struct kedge_coord_event ev = blank(c, KEDGE_EV_POLL);
    ev.tenant = tenant_of(c, site);
    ev.site = site;
    ev.request = site * CROWD_CALLS + (uint32_t)call;
    ev.busy = call == CROWD_BEAT;
    ev.wait_ns = UINT64_MAX;
    step(c, &ev);
}

static void submit(struct crowd *c, uint32_t site)
{
    const struct crowd_site *s = crowd_site_find(c, site);
    struct kedge_digest want = crowd_sign(site, s->result.round, s->weight, &s->result.update);
    if (memcmp(want.b, s->result.envelope.b, sizeof want.b) != 0) {
        crowd_violate(c, "a statement is not signed by its site");
        return;
    }
    struct kedge_coord_event ev = blank(c, KEDGE_EV_SUBMIT);
    ev.tenant = tenant_of(c, site);
    ev.site = ev.ticket = site;
    ev.job = 0;
    ev.round = s->result.round;
    ev.group = s->result.group;
    ev.kind = KEDGE_TASK_TRAIN;
    ev.request = site * CROWD_CALLS + CROWD_SUBMIT;
    ev.weight = s->weight;
    ev.envelope = sim_of_site(&s->result.envelope);
    ev.update = sim_of_site(&s->result.update);
    ev.base = sim_of_site(&s->result.base);
    step(c, &ev);
}

void crowd_server_event(struct crowd *c, const struct crowd_event *ev)
{
    if (ev->type == CROWD_TO_SERVER) {
        const struct crowd_site *s = crowd_site_find(c, ev->site);
        if (!s || s->born != ev->born) {
            crowd_violate(c, "a call of a site that sleeps");
        } else if (ev->call == CROWD_SUBMIT) {
            submit(c, ev->site);
        } else {
            if (ev->call == CROWD_POLL) {
                crowd_site_sleep(c, ev->site);
            }
            poll(c, ev->site, ev->call);
        }
        return;
    }
    struct kedge_coord_event in = ev->type == CROWD_SERVER_DONE ? ev->to_server : blank(c, KEDGE_EV_TIMER);
    if (ev->type == CROWD_SERVER_TIMER) {
        c->server_timer_ns = UINT64_MAX;
    }
    if (in.type == KEDGE_EV_ROUND_COMPUTED) {
        in.models = &c->model;
        in.model_count = 1;
    }
    step(c, &in);
}

/* Sites that have nothing to do are asleep and cost the queue nothing. For that their one poll stays open for
 * as long as the run takes, so the lease and the longest poll are longer than any run. */
static int allocate(struct crowd *c)
{
    const struct kedge_crowd_spec *s = &c->spec;
    struct kedge_coord_limits limits = {.tenants_max = s->tenants, .sites_max = s->sites, .jobs_max = 1};
    struct kedge_coord_times times;
    kedge_coord_times_default(&times);
    times.lease = 1000000000 * CROWD_SECOND; /* who sleeps polls once, and is there */
    times.poll_max = times.lease;
    size_t len = kedge_coord_size(&limits);
    c->mem = kedge_mem_new(1, len);
    c->slot_of = kedge_mem_new(s->sites, sizeof *c->slot_of);
    c->inputs = kedge_mem_new(s->sites_per_round, sizeof *c->inputs);
    c->params = kedge_mem_new(1, sizeof *c->params);
    KEDGE_TRY_MEM(c->mem && c->slot_of && c->inputs && c->params);
    c->server_timer_ns = UINT64_MAX;
    return kedge_coord_init(c->mem, len, &limits, &times, &c->core);
}

static void add_members(struct crowd *c)
{
    for (uint32_t t = 0; t < c->spec.tenants; t++) {
        struct kedge_coord_event ev = blank(c, KEDGE_EV_TENANT_ADDED);
        ev.tenant = t;
        (void)snprintf(ev.id.s, sizeof ev.id.s, "t%03u", t);
        step(c, &ev);
    }
    for (uint32_t i = 0; i < c->spec.sites; i++) { /* in their order: each goes to the end of the list */
        struct kedge_coord_event ev = blank(c, KEDGE_EV_SITE_ADDED);
        ev.tenant = tenant_of(c, i);
        ev.site = i;
        (void)snprintf(ev.id.s, sizeof ev.id.s, "s%07u", i);
        step(c, &ev);
    }
}

/* All sites poll before there is a job. The coordinator holds these polls, so a site that sleeps is one with
 * an open poll, and the task that answers it is what wakes the site. */
int crowd_server_begin(struct crowd *c)
{
    KEDGE_TRY(allocate(c));
    add_members(c);
    struct kedge_coord_event start = blank(c, KEDGE_EV_START);
    step(c, &start);
    for (uint32_t i = 0; i < c->spec.sites; i++) {
        poll(c, i, CROWD_POLL);
    }
    struct kedge_coord_job_params *p = c->params;
    (void)snprintf(p->id.s, sizeof p->id.s, "crowd");
    p->tenant_count = c->spec.tenants;
    p->rounds = c->spec.rounds;
    p->sites_per_round = c->spec.sites_per_round;
    p->sites_min = p->quorum = p->groups = 1;
    p->seed = c->spec.seed;
    p->weight_max = 1000;
    p->round_timeout_ns = 3600 * CROWD_SECOND;
    for (uint32_t t = 0; t < c->spec.tenants; t++) {
        p->tenants[t] = t;
    }
    struct kedge_coord_event submit_job = blank(c, KEDGE_EV_JOB_SUBMIT);
    submit_job.job = 0;
    submit_job.params = p;
    submit_job.models = &c->model;
    submit_job.model_count = 1;
    step(c, &submit_job);
    for (uint32_t t = 0; t < c->spec.tenants; t++) {
        struct kedge_coord_event joined = blank(c, KEDGE_EV_JOB_JOINED);
        joined.job = 0;
        joined.tenant = t;
        step(c, &joined);
    }
    return KEDGE_OK;
}
