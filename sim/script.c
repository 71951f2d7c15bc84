/* What a seed makes of everything: sizes, rates, jobs, and the script of what does not follow from the cores.
 */

#include "aggregation/share_cap.h"
#include "sim/world.h"

enum {
    MS = 1000000,
    SEED_TENANTS_MAX = 3,
    SEED_SITES_MAX = 12,
    SEED_GROUPS_MAX = 3,
    LARGE_TENANTS_MAX = 12, /* of one seed in LARGE_EVERY */
    LARGE_SITES_MAX = 70,
    LARGE_GROUPS_MAX = 16,
    LARGE_EVERY = 32,
    RARE_ENABLED = 400, /* permille: each run has some of the rare branches … */
    RARE_PERMILLE = 60, /* … and then often */
    WHILE_MAX_S = 15,
    CLOCK_JUMP_MAX_S = 120,
    GROUPS_STREAM = 4, /* of the seed; the first ones are taken */
    SHIFTS_STREAM = 5,
    BUFFER_STREAM = 6,
    SEATS_STREAM = 7,
    CHARGE_STREAM = 8,
    WORKS_STREAM = 9,
};

static uint32_t between(struct sim *w, uint32_t least, uint32_t most)
{
    return least + (uint32_t)sim_below(w, most - least + 1);
}

static uint32_t maybe(struct sim *w, uint32_t most)
{
    return between(w, 0, 1) ? between(w, 0, most) : 0;
}

static void draw_rates(struct sim *w, struct sim_config *g)
{
    g->loss = maybe(w, 200);
    g->duplicate = maybe(w, 200);
    g->delay_ms = between(w, 1, 80);
    g->slow = maybe(w, 60);
    g->disk_fail = maybe(w, 200);
    g->disk_lie = maybe(w, 200);
    g->disk_ms = between(w, 1, 60);
    g->work_fail = maybe(w, 200);
    g->train_fail = maybe(w, 150);
    g->train_ms = between(w, 50, 3000);
    g->train_slow = maybe(w, 40);
    g->bad = maybe(w, 150);
    g->two_faced = maybe(w, 200);
    g->forged = maybe(w, 100);
    g->nosy = maybe(w, 200);
    g->hang_up = maybe(w, 100);
    g->crash_loading = maybe(w, 20);
    g->crash_written = maybe(w, 15);
    g->crash_midway = maybe(w, 5);
    g->blob_fail = maybe(w, 200);
}

/* Now and then the coordinator's times are others than the usual ones, short ones above all. */
static void draw_times(struct sim *w)
{
    struct kedge_coord_times *t = &w->server.times;
    if (between(w, 0, 1)) {
        return;
    }
    t->lease = between(w, 2000, 20000) * (uint64_t)MS;
    t->offline_grace = between(w, 1, 6000) * (uint64_t)MS;
    t->settle = between(w, 1, 3000) * (uint64_t)MS;
    t->poll_max = between(w, 1, 20000) * (uint64_t)MS;
    t->retry = between(w, 10, 3000) * (uint64_t)MS;
    t->evaluate_max = between(w, 100, 30000) * (uint64_t)MS;
}

static void draw_config(struct sim *w)
{
    struct sim_config *g = &w->config;
    bool large = sim_below(w, LARGE_EVERY) == 0;
    g->tenants = between(w, 1, large ? LARGE_TENANTS_MAX : SEED_TENANTS_MAX);
    g->sites = between(w, 3, large ? LARGE_SITES_MAX : SEED_SITES_MAX);
    g->jobs = sim_below(w, 4) == 0 ? between(w, 2, SIM_JOBS_MAX) : 1;
    g->slots = between(w, 1, SIM_SLOTS_MAX);
    draw_rates(w, g);
    draw_times(w);
    g->server_crashes = maybe(w, 12);
    g->device_crashes = maybe(w, 20);
    g->clock_jumps = maybe(w, 8);
    g->server_clock_jumps = sim_below(w, 4) == 0 ? between(w, 1, 3) : 0;
    g->revocations = maybe(w, g->sites / 3);
    g->halts = maybe(w, 3);
    g->lazy = maybe(w, g->sites / 3);
    g->late_sites = between(w, 0, 1);
    g->cancel = sim_below(w, 8) == 0;
    g->chaos_ns = between(w, 15, 60) * SIM_SECOND;
    g->limit_ns = g->chaos_ns + 900 * SIM_SECOND;
}

/* Groups that change, in half of the grouped jobs.
 *
 * This and what follows draw from streams of their own. The run of a seed is the order of its draws: one draw
 * more from the common stream would make every later one another, and seeds that once found something would
 * no longer find it. */
static void draw_groups(struct sim *w, uint32_t job)
{
    struct sim_job *j = &w->jobs[job];
    struct kedge_coord_job_params *p = &j->params;
    struct kedge_rng rng;
    kedge_rng_init(&rng, w->seed, KEDGE_RNG_SIM, GROUPS_STREAM, job);
    uint64_t how = kedge_rng_below(&rng, 8);
    if (p->groups == 1 || how < 4) {
        return;
    }
    p->entry = how == 4 ? KEDGE_ENTRY_CHOICE : how == 5 ? KEDGE_ENTRY_TOGETHER : KEDGE_ENTRY_PRETRAIN;
    if (p->entry == KEDGE_ENTRY_CHOICE) {
        j->wrong_choice = (uint32_t)kedge_rng_below(&rng, 200);
        return;
    }
    j->crash_grouping = (uint32_t)kedge_rng_below(&rng, 100);
    p->migrate_every = (uint32_t)kedge_rng_below(&rng, 4);
    p->regroup_every = how == 6 ? 0 : (uint32_t)kedge_rng_below(&rng, 6);
    j->moves = (uint32_t)kedge_rng_below(&rng, 500);
    j->drifts = (uint32_t)kedge_rng_below(&rng, 300);
    j->shifts = p->migrate_every > 0 ? (uint32_t)kedge_rng_below(&rng, 2 * w->config.sites + 1) : 0;
    j->flapping =
        p->migrate_every > 0 && kedge_rng_below(&rng, 3) == 0 ? (uint32_t)kedge_rng_below(&rng, 300) : 0;
}

/* Half of the grouped jobs whose groups do not change have groups that no pretraining makes: those of
 * tenants, or of the nearest models. From a stream of its own, too. */
static void draw_seats(struct sim *w, uint32_t job)
{
    struct kedge_coord_job_params *p = &w->jobs[job].params;
    struct kedge_rng rng;
    kedge_rng_init(&rng, w->seed, KEDGE_RNG_SIM, SEATS_STREAM, job);
    uint64_t how = kedge_rng_below(&rng, 4);
    bool fixed = p->groups > 1 && p->entry == KEDGE_ENTRY_PRETRAIN && p->migrate_every == 0
                 && p->regroup_every == 0 && w->jobs[job].moves == 0 && w->jobs[job].drifts == 0;
    p->entry = fixed && how == 0 ? KEDGE_ENTRY_TENANT : fixed && how == 1 ? KEDGE_ENTRY_NEAREST : p->entry;
}

void sim_seat_tenants(struct sim *w)
{
    for (uint32_t i = 0; i < w->config.sites; i++) {
        for (uint32_t j = 0; j < w->config.jobs; j++) {
            const struct kedge_coord_job_params *p = &w->jobs[j].params;
            struct sim_device *d = &w->devices[i];
            if (p->entry == KEDGE_ENTRY_TENANT && d->tenant < p->tenant_count) {
                d->group[j] = d->prior_group[j] = d->tenant % p->groups;
            }
        }
    }
}

/* Half of the jobs without groups are asynchronous. From a stream of its own, too. */
static void draw_buffer(struct sim *w, uint32_t job)
{
    struct kedge_coord_job_params *p = &w->jobs[job].params;
    struct kedge_rng rng;
    kedge_rng_init(&rng, w->seed, KEDGE_RNG_SIM, BUFFER_STREAM, job);
    if (p->groups == 1 && kedge_rng_below(&rng, 2) == 0) {
        p->buffer = 1 + (uint32_t)kedge_rng_below(&rng, 4);
        p->staleness_max = (uint32_t)kedge_rng_below(&rng, 6);
    }
}

/* Half of the jobs that may draw their sites by charge do. From a stream of its own, too. */
static void draw_charge(struct sim *w, uint32_t job)
{
    struct kedge_coord_job_params *p = &w->jobs[job].params;
    struct kedge_rng rng;
    kedge_rng_init(&rng, w->seed, KEDGE_RNG_SIM, CHARGE_STREAM, job);
    p->by_charge = p->buffer == 0 && kedge_rng_below(&rng, 2) == 0;
}

static void draw_job(struct sim *w, uint32_t job)
{
    struct kedge_coord_job_params *p = &w->jobs[job].params;
    p->tenant_count = job == 0 ? w->config.tenants : between(w, 1, w->config.tenants);
    for (uint32_t i = 0; i < p->tenant_count; i++) {
        p->tenants[i] = i;
    }
    p->rounds = between(w, 1, 12);
    p->sites_per_round = between(w, 0, w->config.sites);
    p->sites_min = between(w, 1, 2);
    p->quorum = between(w, 1, 3);
    p->round_timeout_ns = between(w, 3, 20) * SIM_SECOND;
    p->seed = kedge_rng_u64(&w->rng);
    uint32_t groups_max = w->config.sites > SEED_SITES_MAX ? LARGE_GROUPS_MAX : SEED_GROUPS_MAX;
    p->groups = between(w, 0, 1) ? between(w, 2, groups_max) : 1;
    p->pretrain_sites = between(w, 0, w->config.sites);
    p->evaluate_every = between(w, 0, 2);
    p->weight_max = 100;
    w->jobs[job].share_max = KEDGE_SHARE_ONE;
    if (sim_below(w, 3) == 0) { /* as a spec has it: so low that its tenants can all keep it */
        uint32_t least = (KEDGE_SHARE_ONE + p->tenant_count - 1) / p->tenant_count;
        w->jobs[job].share_max = between(w, least, KEDGE_SHARE_ONE);
    }
    draw_groups(w, job);
    draw_buffer(w, job);
    draw_seats(w, job);
    draw_charge(w, job);
}

/* Sites that may be in several jobs at once: where there are several, most of them; now and then one whose
 * owner allows fewer than it has begun. From a stream of its own, too. */
static void draw_works(struct sim *w)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, w->seed, KEDGE_RNG_SIM, WORKS_STREAM, 0);
    for (uint32_t i = 0; i < w->config.sites; i++) {
        uint64_t draw = kedge_rng_below(&rng, 24);
        w->devices[i].works = draw < (w->config.jobs > 1 ? 16 : 3) ? 2 : 1;
        w->devices[i].at_once = kedge_rng_below(&rng, 8) == 0 ? 1 : w->devices[i].works;
    }
}

static void write_shifts(struct sim *w)
{
    for (uint32_t i = 0; i < w->config.jobs; i++) {
        struct kedge_rng rng;
        kedge_rng_init(&rng, w->seed, KEDGE_RNG_SIM, SHIFTS_STREAM, i);
        for (uint32_t n = 0; n < w->jobs[i].shifts; n++) {
            uint64_t at = 1 + kedge_rng_below(&rng, w->config.chaos_ns);
            struct sim_event *ev = sim_push(w, SIM_SHIFT, at);
            ev->site = (uint32_t)kedge_rng_below(&rng, w->config.sites);
            ev->job = i;
        }
    }
}

static uint64_t in_chaos(struct sim *w)
{
    return 1 + sim_below(w, w->config.chaos_ns);
}

/* Rates make faults that come alone; windows make them come together and stay: a full disk, a slow one, a
 * partition that lasts for seconds. Some defects need the second. */
static struct sim_window draw_window(struct sim *w)
{
    uint64_t from = in_chaos(w), len = (1 + sim_below(w, WHILE_MAX_S)) * SIM_SECOND;
    return (struct sim_window){from, from + len};
}

/* A partition: some sites cannot be heard, cannot hear, or both. */
static void draw_partition(struct sim *w)
{
    struct sim_window window = draw_window(w);
    uint32_t ways = between(w, 1, 3);
    for (uint32_t i = 0; i < w->config.sites; i++) {
        bool beyond = between(w, 0, 1);
        w->devices[i].cut_to_server = beyond && (ways & 1) ? window : w->devices[i].cut_to_server;
        w->devices[i].cut_to_site = beyond && (ways & 2) ? window : w->devices[i].cut_to_site;
    }
}

void sim_draw_windows(struct sim *w)
{
    if (between(w, 0, 2) == 0) {
        draw_partition(w);
    }
    if (between(w, 0, 3) == 0) {
        w->server.disk_full = draw_window(w);
    }
    if (between(w, 0, 3) == 0) {
        w->server.disk_slow = draw_window(w);
    }
    for (uint32_t i = 0; i < w->config.sites; i++) {
        if (between(w, 0, 9) == 0) {
            w->devices[i].disk_full = draw_window(w);
        }
    }
}

static void push_site(struct sim *w, enum sim_event_type type, uint64_t at_ns, uint32_t site)
{
    sim_push(w, type, at_ns)->site = site;
}

/* Everybody comes: sites start and are enrolled, jobs are submitted and joined. */
static void write_arrivals(struct sim *w)
{
    const struct sim_config *g = &w->config;
    uint64_t enrol = 1;
    uint64_t step = g->late_sites ? g->chaos_ns / g->sites : 3 * SIM_SECOND / g->sites;
    for (uint32_t i = 0; i < g->sites; i++) {
        struct sim_device *d = &w->devices[i];
        d->tenant = i % g->tenants;
        d->lazy = i >= g->sites - g->lazy;
        enrol += i > 2 ? sim_below(w, step) : sim_below(w, 500 * MS);
        push_site(w, SIM_ENROL, enrol, i);
        uint64_t up = 1 + sim_below(w, 2 * SIM_SECOND);
        push_site(w, SIM_DEVICE_UP, up, i);
    }
    sim_seat_tenants(w);
    sim_push(w, SIM_SERVER_UP, 1);
    for (uint32_t j = 0; j < g->jobs; j++) {
        uint64_t submit = 2 + sim_below(w, 5 * SIM_SECOND);
        sim_push(w, SIM_SUBMIT_JOB, submit)->job = j;
        for (uint32_t t = 0; t < w->jobs[j].params.tenant_count; t++) {
            struct sim_event *ev = sim_push(w, SIM_JOIN, 6 * SIM_SECOND + sim_below(w, 4 * SIM_SECOND));
            ev->job = j;
            ev->site = t;
        }
    }
}

static void write_operator(struct sim *w)
{
    const struct sim_config *g = &w->config;
    for (uint32_t j = 0; j < g->jobs; j++) {
        for (uint32_t i = 0; i < g->halts; i++) {
            uint64_t halt = in_chaos(w), resume = in_chaos(w);
            sim_push(w, SIM_HALT, halt)->job = j;
            sim_push(w, SIM_RESUME, resume)->job = j;
        }
    }
    if (g->cancel) {
        sim_push(w, SIM_CANCEL, in_chaos(w))->job = g->jobs - 1;
    }
}

static void write_one(struct sim *w, enum sim_event_type type, uint64_t wait_ns)
{
    uint64_t at = in_chaos(w);
    uint32_t site = (uint32_t)sim_below(w, w->config.sites);
    struct sim_event *ev = sim_push(w, type, at);
    ev->site = site;
    ev->wait_ns = wait_ns;
}

/* After `chaos_ns` the world is healed: nothing fails any more, and every job must come to its end. Without
 * that, safety alone could be checked, and a core that does nothing at all is safe. */
void sim_script_common(struct sim *w)
{
    const struct sim_config *g = &w->config;
    write_arrivals(w);
    write_operator(w);
    for (uint32_t i = 0; i < g->server_crashes; i++) {
        sim_push(w, SIM_SERVER_CRASH, in_chaos(w));
    }
    for (uint32_t i = 0; i < g->device_crashes; i++) {
        write_one(w, SIM_DEVICE_CRASH, 0);
    }
    for (uint32_t i = 0; i < g->clock_jumps; i++) {
        uint64_t by = (1 + sim_below(w, CLOCK_JUMP_MAX_S)) * SIM_SECOND;
        write_one(w, SIM_CLOCK_JUMP, by);
    }
    for (uint32_t i = 0; i < g->server_clock_jumps; i++) {
        uint64_t by = (1 + sim_below(w, CLOCK_JUMP_MAX_S)) * SIM_SECOND;
        write_one(w, SIM_SERVER_CLOCK_JUMP, by);
    }
    for (uint32_t i = 0; i < g->revocations; i++) {
        write_one(w, SIM_REVOKE, 0);
    }
    write_shifts(w);
    sim_push(w, SIM_HEAL, g->chaos_ns);
}

/* Branches that are taken seldom are forced at places that the cores mark. Each run has some of them, and
 * these often: with all of them at a low rate, hardly any run would meet two of them together. */
void sim_rare_draw(struct sim *w)
{
    kedge_rng_init(&w->coord_rare.rng, w->seed, KEDGE_RNG_SIM, 2, 0);
    kedge_rng_init(&w->site_rare.rng, w->seed, KEDGE_RNG_SIM, 3, 0);
    w->coord_rare.permille = w->site_rare.permille = RARE_PERMILLE;
    for (int i = 0; i < KEDGE_COORD_RARE_COUNT; i++) {
        w->coord_rare.enabled[i] = sim_below(w, 1000) < RARE_ENABLED;
    }
    for (int i = 0; i < KEDGE_SITE_RARE_COUNT; i++) {
        w->site_rare.enabled[i] = sim_below(w, 1000) < RARE_ENABLED;
    }
}

void sim_script_draw(struct sim *w)
{
    draw_config(w);
    for (uint32_t i = 0; i < w->config.jobs; i++) {
        draw_job(w, i);
    }
    sim_allocate(w);
    draw_works(w);
    sim_rare_draw(w);
    sim_draw_windows(w);
    sim_script_common(w);
}
