/* Memory, dispatch of events, and the pump that turns tables into effects.
 *
 * The core computes and never waits: one event goes in, effects come out, and time is a number in the
 * event. So a run can be repeated exactly from its events, which tests and simulations depend on. All
 * memory is one block that is laid out once; nothing is allocated later, so no event can fail for want of
 * memory.
 *
 * Effects come in an array of fixed size. When more are due than fit, the pump stops and notes where each
 * job's sweep and offers stand; the host executes what is there and asks for the rest. An event that
 * changes much, such as a round that opens for thousands of sites, therefore needs no large array. */
#include "coordinator/core/coord.h"

#include <string.h>

#include "coordinator/core/core.h"

enum { ALIGN = 16 };

void kedge_coord_times_default(struct kedge_coord_times *ret)
{
    static const uint64_t ms = 1000000;
    ret->lease = 15000 * ms;
    ret->offline_grace = 5000 * ms;
    ret->settle = 1000 * ms;
    ret->poll_max = ret->lease / 2;
    ret->retry = 1000 * ms;
    ret->unable_max = 3600000 * ms;
    ret->evaluate_max = 30000 * ms;
    ret->share_floor = 500000;
}

/* Takes len bytes of an arena at *used; only counts while base is NULL. */
static void *carve(uint8_t *base, size_t *used, size_t len)
{
    void *p = base ? base + *used : NULL;
    *used += (len + ALIGN - 1) / ALIGN * ALIGN;
    return p;
}

/* The one place that knows the layout. Rows are touched only for the sites of the jobs in use. */
static size_t lay_out(uint8_t *base, const struct kedge_coord_limits *limits, struct kedge_coord *c)
{
    size_t used = 0;
    struct kedge_coord none;
    struct kedge_coord *to = c ? c : &none;
    carve(base, &used, sizeof *c);
    to->tenants = carve(base, &used, limits->tenants_max * sizeof *to->tenants);
    to->sites = carve(base, &used, limits->sites_max * sizeof *to->sites);
    to->order = carve(base, &used, limits->sites_max * sizeof *to->order);
    to->heap = carve(base, &used, limits->sites_max * sizeof *to->heap);
    to->scratch = carve(base, &used, limits->sites_max * sizeof *to->scratch);
    to->picks = carve(base, &used, limits->sites_max * sizeof *to->picks);
    to->weights = carve(base, &used, limits->sites_max * sizeof *to->weights);
    to->jobs = carve(base, &used, limits->jobs_max * sizeof *to->jobs);
    for (uint32_t i = 0; i < limits->jobs_max; i++) {
        uint8_t *members = carve(base, &used, limits->tenants_max);
        struct row *rows = carve(base, &used, limits->sites_max * sizeof *rows);
        uint32_t *touched = carve(base, &used, limits->sites_max * sizeof *touched);
        uint32_t words = kedgei_eligible_words(limits->sites_max);
        uint64_t *eligible = carve(base, &used, words * sizeof *eligible);
        uint64_t *candidates = carve(base, &used, words * sizeof *candidates);
        uint32_t *counts = carve(base, &used, words * sizeof *counts);
        if (c) {
            c->jobs[i] = (struct job){.members = members,
                                      .rows = rows,
                                      .touched = touched,
                                      .eligible = eligible,
                                      .candidates = candidates,
                                      .eligible_counts = counts};
        }
    }
    return used;
}

static bool limits_are_valid(const struct kedge_coord_limits *limits)
{
    return limits->tenants_max >= 1 && limits->tenants_max <= KEDGE_TENANTS_MAX && limits->sites_max >= 1
           && limits->sites_max <= KEDGE_CORE_SITES_MAX && limits->jobs_max >= 1
           && limits->jobs_max <= KEDGE_JOBS_MAX;
}

size_t kedge_coord_size(const struct kedge_coord_limits *limits)
{
    KEDGE_ASSERT(limits_are_valid(limits));
    return lay_out(NULL, limits, NULL);
}

int kedge_coord_init(void *mem, size_t mem_len, const struct kedge_coord_limits *limits,
                     const struct kedge_coord_times *times, struct kedge_coord **ret)
{
    if (!limits_are_valid(limits) || times->lease < 2 || times->retry == 0 || times->poll_max == 0
        || mem_len < kedge_coord_size(limits)) {
        return KEDGE_E_ARG;
    }
    struct kedge_coord *c = mem;
    memset(c, 0, sizeof *c);
    lay_out(mem, limits, c);
    c->limits = *limits;
    c->times = *times;
    /* A site whose poll is held says nothing meanwhile: it must not count as away. */
    c->times.poll_max = times->poll_max < times->lease / 2 ? times->poll_max : times->lease / 2;
    c->online = c->offline = (struct site_list){KEDGE_COORD_NONE, KEDGE_COORD_NONE};
    *ret = c;
    return KEDGE_OK;
}

static void dispatch_member(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    if (ev->type == KEDGE_EV_TENANT_ADDED) {
        kedgei_tenant_added(c, ev);
    } else if (ev->type == KEDGE_EV_SITE_ADDED) {
        kedgei_site_added(c, ev);
    } else if (ev->type == KEDGE_EV_SITE_LABELS) {
        kedgei_site_labels(c, ev);
    } else {
        kedgei_site_revoked(c, ev);
    }
}

static void dispatch(struct kedge_coord *c, const struct kedge_coord_event *ev)
{
    switch (ev->type) {
    case KEDGE_EV_LOAD_JOB:
    case KEDGE_EV_LOAD_ROUND:
    case KEDGE_EV_LOAD_ROW:
    case KEDGE_EV_LOAD_GROUP:
    case KEDGE_EV_LOAD_REFUSED:
    case KEDGE_EV_LOAD_ACCEPTED:
    case KEDGE_EV_LOAD_EVALUATED:
        kedgei_load(c, ev);
        return;
    case KEDGE_EV_START:
        kedgei_start(c);
        return;
    case KEDGE_EV_TENANT_ADDED:
    case KEDGE_EV_SITE_ADDED:
    case KEDGE_EV_SITE_LABELS:
    case KEDGE_EV_SITE_REVOKED:
        dispatch_member(c, ev);
        return;
    case KEDGE_EV_JOB_SUBMIT:
        kedgei_job_submit(c, ev);
        return;
    case KEDGE_EV_JOB_JOINED:
    case KEDGE_EV_JOB_LEFT:
        kedgei_job_member(c, ev);
        return;
    case KEDGE_EV_JOB_HALT:
    case KEDGE_EV_JOB_RESUME:
    case KEDGE_EV_JOB_CANCEL:
        kedgei_job_operate(c, ev);
        return;
    case KEDGE_EV_POLL:
        kedgei_poll(c, ev);
        return;
    case KEDGE_EV_TASK_ENDED:
        kedgei_task_ended(c, ev);
        return;
    case KEDGE_EV_SUBMIT:
        kedgei_submit(c, ev);
        return;
    case KEDGE_EV_REQUEST_GONE:
        kedgei_request_gone(c, ev);
        return;
    case KEDGE_EV_UPLOAD:
        kedgei_upload(c, ev);
        return;
    case KEDGE_EV_VERIFIED:
        kedgei_verified(c, ev);
        return;
    case KEDGE_EV_APPENDED:
        kedgei_appended(c, ev);
        return;
    case KEDGE_EV_MAIN_APPENDED:
        kedgei_main_appended(c, ev);
        return;
    case KEDGE_EV_ROUND_COMPUTED:
        kedgei_round_computed(c, ev);
        return;
    case KEDGE_EV_ASSIGNED:
        kedgei_assigned(c, ev);
        return;
    case KEDGE_EV_ASSIGN_APPENDED:
        kedgei_assign_appended(c, ev);
        return;
    case KEDGE_EV_TIMER:
        return;
    }
    KEDGE_ASSERT(false); /* event of an unknown type */
}

/* One job's share of the pump; true when it filled the array before it was done. */
static bool pump_job(struct kedge_coord *c, uint32_t job)
{
    struct job *j = &c->jobs[job];
    if (j->used && j->dirty) {
        if (kedgei_room(c) < EFFECTS_OF_JOB_MAX) {
            return true;
        }
        j->dirty = false;
        kedgei_advance(c, job);
    }
    while (j->used && j->sweep < c->site_count) {
        if (kedgei_room(c) < ITEM_COUNT) {
            return true;
        }
        kedgei_sweep_row(c, job, c->order[j->sweep++]);
    }
    j->sweep = KEDGE_COORD_NONE;
    if (j->used && j->dirty && kedgei_is_ending(j)) { /* what failed is given up: now it can end */
        if (kedgei_room(c) < EFFECTS_OF_JOB_MAX) {
            return true;
        }
        j->dirty = false;
        kedgei_advance(c, job);
    }
    uint32_t offers = j->offer_touched ? j->touched_count : c->site_count;
    while (j->used && j->offer < offers) {
        if (kedgei_room(c) < 1) {
            return true;
        }
        uint32_t at = j->offer++;
        kedgei_offer(c, j->offer_touched ? j->touched[at] : c->order[at]);
    }
    j->offer = KEDGE_COORD_NONE;
    j->offer_touched = false;
    return false;
}

/* True when there is more than fits. */
static bool pump(struct kedge_coord *c)
{
    for (uint32_t i = 0; i < c->limits.jobs_max; i++) {
        if (pump_job(c, i)) {
            return true;
        }
    }
    while (kedgei_poll_deadline(c) <= c->now_ns) {
        if (kedgei_room(c) < 1) {
            return true;
        }
        kedgei_poll_expired(c);
    }
    return false;
}

static void begin(struct kedge_coord *c, struct kedge_coord_effects *fx)
{
    c->stepping = true;
    c->fx = fx;
    c->fx_max = KEDGE_RARE(c, FEW_EFFECTS) ? EFFECTS_FEW : KEDGE_COORD_EFFECTS_MAX;
    fx->count = 0;
}

static bool run(struct kedge_coord *c, struct kedge_coord_effects *fx)
{
    bool more = c->started && pump(c);
    c->stepping = false;
    c->fx = NULL;
    KEDGE_ASSERT(fx->count <= KEDGE_COORD_EFFECTS_MAX);
#ifdef KEDGE_CORE_CHECKS
    KEDGE_ASSERT(more || kedge_coord_is_valid(c));
#endif
    return more;
}

/* One event. Ended jobs give their place free only here, at the next event: the host has read their last
 * effects by then. Deadlines that have passed mark their jobs, and the pump looks at marked jobs alone, so
 * an event of one site costs the same however many jobs wait. */
bool kedge_coord_step(struct kedge_coord *c, const struct kedge_coord_event *ev,
                      struct kedge_coord_effects *ret_fx)
{
    KEDGE_ASSERT(ev->now_ns >= c->now_ns);
    bool loads = ev->type <= KEDGE_EV_START;
    bool either = ev->type == KEDGE_EV_TENANT_ADDED || ev->type == KEDGE_EV_SITE_ADDED
                  || ev->type == KEDGE_EV_SITE_LABELS || ev->type == KEDGE_EV_SITE_REVOKED
                  || ev->type == KEDGE_EV_JOB_JOINED || ev->type == KEDGE_EV_JOB_LEFT;
    KEDGE_ASSERT(either || c->started != loads);
    c->now_ns = ev->now_ns;
    begin(c, ret_fx);
    for (uint32_t i = 0; i < c->limits.jobs_max; i++) {
        struct job *j = &c->jobs[i];
        KEDGE_ASSERT(!j->used || !c->started
                     || (j->sweep == KEDGE_COORD_NONE && j->offer == KEDGE_COORD_NONE));
        if (j->used && j->stage == STAGE_ENDED) {
            j->used = false;
            kedgei_free_end(c, i);
        }
    }
    if (c->started) {
        kedgei_presence_expire(c);
    }
    dispatch(c, ev);
    for (uint32_t i = 0; i < c->limits.jobs_max; i++) {
        struct job *j = &c->jobs[i];
        j->dirty = j->dirty || (j->used && kedgei_job_deadline(c, j) <= c->now_ns);
    }
    return run(c, ret_fx);
}

bool kedge_coord_more(struct kedge_coord *c, struct kedge_coord_effects *ret_fx)
{
    KEDGE_ASSERT(c->started);
    begin(c, ret_fx);
    return run(c, ret_fx);
}

/* When the host has to come back although nothing happens. The lists of present sites are ordered by time,
 * so their heads are enough; of jobs there are few. */
uint64_t kedge_coord_deadline_ns(const struct kedge_coord *c)
{
    uint64_t at = c->started ? kedgei_poll_deadline(c) : UINT64_MAX;
    if (c->online.head != KEDGE_COORD_NONE && c->sites[c->online.head].until_ns < at) {
        at = c->sites[c->online.head].until_ns;
    }
    if (c->offline.head != KEDGE_COORD_NONE && c->sites[c->offline.head].until_ns < at) {
        at = c->sites[c->offline.head].until_ns;
    }
    for (uint32_t i = 0; c->started && i < c->limits.jobs_max; i++) {
        uint64_t due = c->jobs[i].used ? kedgei_job_deadline(c, &c->jobs[i]) : UINT64_MAX;
        at = due < at ? due : at;
    }
    return at;
}
