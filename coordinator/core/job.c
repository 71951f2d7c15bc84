/* Life of a job: its states as the host and its watchers see them, and what the operator may do to it.
 *
 * A job's stage is what happens next; the state that is told follows from the stage and from reasons to
 * halt. Several reasons may hold at once: one is told, by a fixed order with the operator first, and each
 * goes away by itself. Every told change must be one that the table of transitions allows, so that no
 * watcher sees a completed job train again. */
#include <string.h>

#include "coordinator/core/core.h"

static const char *const state_names[] = {
    [KEDGE_JOB_PENDING] = "pending",     [KEDGE_JOB_QUEUED] = "queued",
    [KEDGE_JOB_ENROLLING] = "enrolling", [KEDGE_JOB_GROUPING] = "grouping",
    [KEDGE_JOB_TRAINING] = "training",   [KEDGE_JOB_HALTED] = "halted",
    [KEDGE_JOB_STORING] = "storing",     [KEDGE_JOB_COMPLETED] = "completed",
    [KEDGE_JOB_FAILED] = "failed",       [KEDGE_JOB_CANCELLED] = "cancelled",
};

const char *kedge_job_state_name(enum kedge_job_state state)
{
    return (size_t)state < sizeof state_names / sizeof state_names[0] ? state_names[state] : "unknown";
}

#define TO(name) (1u << KEDGE_JOB_##name)
#define TO_ENDS (TO(FAILED) | TO(CANCELLED))

/* DESIGN §7: which state may follow which. The core itself lifts a halt before it ends a job; a restart that
 * finds the end of a halted job in the main chain goes there at once. */
static const uint32_t transitions[] = {
    [KEDGE_JOB_PENDING] = TO(QUEUED),
    [KEDGE_JOB_QUEUED] = TO(ENROLLING) | TO(HALTED) | TO_ENDS,
    [KEDGE_JOB_ENROLLING] = TO(GROUPING) | TO(TRAINING) | TO(HALTED) | TO_ENDS,
    [KEDGE_JOB_GROUPING] = TO(TRAINING) | TO(HALTED) | TO_ENDS,
    [KEDGE_JOB_TRAINING] = TO(STORING) | TO(HALTED) | TO_ENDS,
    [KEDGE_JOB_HALTED] =
        TO(QUEUED) | TO(ENROLLING) | TO(GROUPING) | TO(TRAINING) | TO(STORING) | TO(HALTED) | TO_ENDS,
    [KEDGE_JOB_STORING] = TO(COMPLETED) | TO(HALTED) | TO_ENDS,
    [KEDGE_JOB_COMPLETED] = 0,
    [KEDGE_JOB_FAILED] = 0,
    [KEDGE_JOB_CANCELLED] = 0,
};

bool kedge_job_state_allows(enum kedge_job_state from, enum kedge_job_state to)
{
    enum { STATES = sizeof transitions / sizeof transitions[0] };
    return (size_t)from < STATES && (size_t)to < STATES && (transitions[from] & 1u << to) != 0;
}

/* The table of transitions is asked here, at the one place where a state is told, so no path
 * through the stages can tell a change that watchers must not see. */
static void tell(struct kedge_coord *c, uint32_t job, enum kedge_job_state state, int reason)
{
    struct job *j = &c->jobs[job];
    if (j->told == state && j->told_reason == reason) {
        return;
    }
    KEDGE_ASSERT(kedge_job_state_allows(j->told, state));
    struct kedge_coord_effect *fx = kedgei_emit_job(c, KEDGE_FX_JOB_STATE, job);
    fx->from = j->told;
    fx->state = state;
    fx->err = reason;
    j->told = state;
    j->told_reason = reason;
}

void kedgei_job_tell(struct kedge_coord *c, uint32_t job)
{
    const struct job *j = &c->jobs[job];
    KEDGE_ASSERT(j->used && j->stage != STAGE_ENDED);
    /* The operator comes first: a restart must know that it was the operator, for nobody else lifts that
     * halt. A halt before job-opened is durable takes effect after it. */
    if (j->halted_by_operator && j->stage != STAGE_JOB_OPENING) {
        tell(c, job, KEDGE_JOB_HALTED, KEDGE_OK);
    } else if (j->failed_count > 0) {
        tell(c, job, KEDGE_JOB_HALTED, j->stored_err);
    } else if ((j->stalled && j->stage == STAGE_COLLECT)
               || (j->short_of_sites && j->stage == STAGE_WAITING_TO_OPEN)) {
        tell(c, job, KEDGE_JOB_HALTED, KEDGE_E_SITES);
    } else if (j->over_budget && j->stage == STAGE_WAITING_TO_OPEN) {
        tell(c, job, KEDGE_JOB_HALTED, KEDGE_E_BUDGET);
    } else if (j->halted_by_quorum) {
        tell(c, job, KEDGE_JOB_HALTED, KEDGE_E_TIMEOUT);
    } else if (j->unstored_site != KEDGE_COORD_NONE) {
        tell(c, job, KEDGE_JOB_HALTED, j->unstored_err);
    } else {
        tell(c, job, j->base, KEDGE_OK);
    }
}

/* Failure comes before cancellation: a job that failed while it was being cancelled says why it
 * could not go on. */
enum kedge_job_state kedgei_outcome(const struct job *j)
{
    return j->failing != KEDGE_OK ? KEDGE_JOB_FAILED
           : j->cancelling        ? KEDGE_JOB_CANCELLED
                                  : KEDGE_JOB_COMPLETED;
}

/* The last state is told from the state without halts: a watcher sees what the job was doing when it ended.
 */
void kedgei_job_tell_end(struct kedge_coord *c, uint32_t job, enum kedge_job_state end)
{
    kedgei_job_tell(c, job); /* back from a halt, if any */
    tell(c, job, end, c->jobs[job].failing);
    c->jobs[job].stage = STAGE_ENDED;
}

/* The one statement or close that the job's stage asks for. Which it is follows from the stage, not from
 * the caller: what is repeated after a failure is the same again. */
void kedgei_main_emit(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    KEDGE_ASSERT(!j->main.out);
    enum kedge_coord_effect_type type = KEDGE_FX_MAIN_JOB_OPENED;
    switch (j->stage) {
    case STAGE_JOB_OPENING:
        break;
    case STAGE_ROUND_OPENING:
        type = KEDGE_FX_MAIN_ROUND_OPENED;
        break;
    case STAGE_COMPUTE:
        type = KEDGE_FX_CLOSE_ROUND;
        break;
    case STAGE_ROUND_CLOSING:
        type = KEDGE_FX_MAIN_ROUND_CLOSED;
        break;
    case STAGE_TESTING:
        type = KEDGE_FX_MAIN_ROUND_TESTED;
        break;
    case STAGE_JOB_CLOSING:
        type = KEDGE_FX_MAIN_JOB_CLOSED;
        break;
    case STAGE_WAITING_TO_OPEN:
    case STAGE_COLLECT:
    case STAGE_ASSIGNING:
    case STAGE_EVALUATE:
    case STAGE_ENDED:
        KEDGE_ASSERT(false);
        return; /* no main effect */
    }
    struct kedge_coord_effect *fx = kedgei_emit_job(c, type, job);
    fx->kind = j->kind;
    fx->draw = type == KEDGE_FX_MAIN_ROUND_OPENED ? j->draw : 0;
    fx->keeps = type == KEDGE_FX_CLOSE_ROUND && j->keeps;
    fx->charged = type == KEDGE_FX_CLOSE_ROUND ? kedgei_round_charge(j) : 0;
    if (type == KEDGE_FX_MAIN_JOB_CLOSED) {
        fx->state = kedgei_outcome(j);
        fx->err = j->failing;
    }
    j->main.out = true;
}

/* The host has checked the spec; what is asserted here are the bounds that tables and arithmetic of
 * the core rely on. */
static void check_params(const struct kedge_coord *c, const struct kedge_coord_job_params *p)
{
    KEDGE_ASSERT(p->tenant_count >= 1 && p->tenant_count <= KEDGE_JOB_TENANTS_MAX);
    KEDGE_ASSERT(p->rounds >= 1 && p->rounds <= KEDGE_ROUNDS_MAX && p->sites_min >= 1 && p->quorum >= 1);
    KEDGE_ASSERT(p->groups >= 1 && p->groups <= KEDGE_GROUPS_MAX && p->weight_max >= 1);
    KEDGE_ASSERT(!p->has_targets || (p->evaluate_every > 0 && p->buffer == 0));
    KEDGE_ASSERT(p->buffer == 0 || (p->groups == 1 && p->staleness_max <= KEDGE_STALENESS_MAX));
    for (uint32_t i = 0; i < p->tenant_count; i++) {
        KEDGE_ASSERT(p->tenants[i] < c->tenant_count);
    }
}

/* A job begins in a place whose memory stays; everything else is set, so nothing of the place's former job
 * can be seen. */
void kedgei_job_reset(struct kedge_coord *c, uint32_t job, const struct kedge_coord_event *ev)
{
    KEDGE_ASSERT(job < c->limits.jobs_max && !c->jobs[job].used);
    KEDGE_ASSERT(ev->params && ev->models);
    check_params(c, ev->params);
    KEDGE_ASSERT(ev->model_count == kedge_coord_first_models(ev->params));
    struct job *j = &c->jobs[job];
    uint8_t *members = j->members;
    *j = (struct job){.members = members,
                      .rows = j->rows,
                      .touched = j->touched,
                      .eligible = j->eligible,
                      .candidates = j->candidates,
                      .eligible_counts = j->eligible_counts};
    j->used = j->dirty = j->eligible_stale = true;
    j->params = *ev->params;
    kedgei_free_begin(c, job);
    j->initial = ev->models[0];
    memcpy(j->models, ev->models, ev->model_count * sizeof j->models[0]);
    j->model_count = ev->model_count;
    j->round = kedge_coord_first_round(&j->params);
    j->kind = kedge_coord_round_kind(&j->params, j->round, KEDGE_TASK_NONE, false);
    j->closed_round = j->prior_round = j->unstored_site = KEDGE_COORD_NONE;
    kedgei_base_keep(j);
    j->ready_since_ns = j->deadline_ns = j->retry_ns = j->able_ns = j->turn_ns = UINT64_MAX;
    uint64_t within = j->params.enrol_within_ns;
    j->enrol_ns = within == 0 ? UINT64_MAX
                              : kedgei_after(c, within - (ev->waited_ns < within ? ev->waited_ns : within));
    j->sweep = j->offer = KEDGE_COORD_NONE;
    j->main.request = KEDGE_COORD_NONE;
    memset(members, MEMBER_NO, c->limits.tenants_max);
    for (uint32_t i = 0; i < ev->params->tenant_count; i++) {
        KEDGE_ASSERT(members[ev->params->tenants[i]] == MEMBER_NO); /* each tenant once */
        members[ev->params->tenants[i]] = MEMBER_INVITED;
    }
    for (uint32_t i = 0; i < c->site_count; i++) {
        kedgei_row_init(c, j, i);
    }
}

/* PENDING is the state before the first effect; the host knows the job from here on as queued. */
void kedgei_job_submit(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    kedgei_job_reset(c, ev->job, ev);
    struct job *j = &c->jobs[ev->job];
    j->told = KEDGE_JOB_PENDING;
    j->base = KEDGE_JOB_QUEUED;
    j->stage = STAGE_JOB_OPENING;
    kedgei_job_tell(c, ev->job);
    kedgei_main_emit(c, ev->job);
}

static void joined(struct job *j, uint32_t tenant)
{
    j->members[tenant] = MEMBER_JOINED;
    j->joined_count++;
    KEDGE_ASSERT(j->joined_count <= j->params.tenant_count);
    j->eligible_stale = true; /* its sites are; nobody was selected before all had joined */
}

/* Its sites are awaited no more, so the open round may be full or due now. What they had accepted stays in
 * it: they signed it when the tenant was in the job. joined_count stays, too: the job goes on without the
 * tenant and does not wait for it again. */
static void left(struct kedge_coord *c, struct job *j, uint32_t job, uint32_t tenant)
{
    j->members[tenant] = MEMBER_LEFT;
    for (uint32_t i = 0; i < c->site_count; i++) {
        if (c->sites[i].tenant == tenant) {
            kedgei_row_refresh(c, job, i);
        }
    }
}

/* Of a job that has ended, or that does not name the tenant, it means nothing, nor what was said before. */
void kedgei_job_member(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    KEDGE_ASSERT(ev->job < c->limits.jobs_max && ev->tenant < c->tenant_count);
    struct job *j = &c->jobs[ev->job];
    const bool leaves = ev->type == KEDGE_EV_JOB_LEFT;
    if (!j->used || j->members[ev->tenant] != (leaves ? MEMBER_JOINED : MEMBER_INVITED)) {
        return;
    }
    if (leaves) {
        left(c, j, ev->job, ev->tenant);
    } else {
        joined(j, ev->tenant);
    }
    j->dirty = true;
}

/* Nothing can be asked of a job that is ending. Resuming tries at once what waited for a pause: the
 * operator has made room on the disk, or changed what kept sites away. */
void kedgei_job_operate(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    KEDGE_ASSERT(ev->job < c->limits.jobs_max);
    struct job *j = &c->jobs[ev->job];
    if (!j->used || j->stage == STAGE_JOB_CLOSING || j->cancelling || j->failing != KEDGE_OK) {
        return;
    }
    if (ev->type == KEDGE_EV_JOB_HALT) {
        j->halted_by_operator = true;
        kedgei_turns_pass(c, ev->job);
    } else if (ev->type == KEDGE_EV_JOB_RESUME) {
        j->halted_by_operator = false;
        j->retry_ns = j->failed_count > 0 ? c->now_ns : j->retry_ns; /* what failed is tried at once … */
        kedgei_able_all(c, ev->job); /* … and who could not serve it is asked once more */
        kedgei_offer_all(j);
    } else {
        KEDGE_ASSERT(ev->type == KEDGE_EV_JOB_CANCEL);
        kedgei_job_cancel(j);
    }
    kedgei_free_all(c);
    j->dirty = true;
}

void kedgei_upload(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    KEDGE_ASSERT(ev->job < c->limits.jobs_max && ev->site < c->site_count);
    if (c->jobs[ev->job].used && c->jobs[ev->job].stage != STAGE_ENDED) {
        kedgei_job_unstored(c, ev->job, ev->site, ev->err);
    }
}
