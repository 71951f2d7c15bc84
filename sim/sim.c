/* The world of a spec: sizes are given, what goes wrong and when is drawn. */
#include "sim/sim.h"

#include <stdio.h>
#include <string.h>

#include "aggregation/share_cap.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "sim/world.h"

enum {
    STREAM = 1,       /* of the seed; kedge-sim-check draws from stream 0 */
    CALM_ROUNDS = 20, /* so many rounds take about a minute of virtual time */
    ROUND_LIMIT_S = 60,
    END_LIMIT_S = 900,
};

static int check_range(const char *key, uint32_t value, uint32_t least, uint32_t most, struct kedge_diag *d)
{
    if (value < least || value > most) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "\"%s\": expected a whole number from %u to %u, not %u", key,
                              least, most, value);
    }
    return KEDGE_OK;
}

int kedge_sim_spec_check(const struct kedge_sim_spec *s, struct kedge_diag *reterr)
{
    KEDGE_TRY(check_range("tenants", s->tenants, 1, KEDGE_SIM_TENANTS_MAX, reterr));
    KEDGE_TRY(check_range("sites", s->sites, 1, KEDGE_SIM_SITES_MAX, reterr));
    KEDGE_TRY(check_range("rounds", s->rounds, 1, KEDGE_SIM_ROUNDS_MAX, reterr));
    KEDGE_TRY(check_range("groups", s->groups, 1, KEDGE_SIM_GROUPS_MAX, reterr));
    int err = check_range("sites_per_round", s->sites_per_round, 0, KEDGE_SIM_SITES_MAX, reterr);
    if (!err && s->tenants * s->sites > KEDGE_SIM_SITES_MAX) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT,
                             "\"tenants\" × \"sites\": expected at most %d sites together, not %u",
                             KEDGE_SIM_SITES_MAX, s->tenants * s->sites);
    }
    if (!err && s->real && s->tenants * s->sites * s->rounds > KEDGE_SIM_REAL_MAX) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT,
                             "\"signatures\": \"real\" is for at most %d updates (\"tenants\" × \"sites\" × "
                             "\"rounds\"), not %u",
                             KEDGE_SIM_REAL_MAX, s->tenants * s->sites * s->rounds);
    }
    return err;
}

static uint32_t between(struct sim *w, uint32_t least, uint32_t most)
{
    return least + (uint32_t)sim_below(w, most - least + 1);
}

/* A statement per draw: their order is part of the run. Rates of crashes at a site's writes are for all sites
 * together, so that a federation of many is not always down. */
static void draw_faults(struct sim *w, uint32_t scale)
{
    struct sim_config *g = &w->config;
    g->loss = between(w, 0, 200);
    g->duplicate = between(w, 0, 200);
    g->slow = between(w, 0, 60);
    g->disk_fail = between(w, 0, 200);
    g->disk_lie = between(w, 0, 200);
    g->work_fail = between(w, 0, 200);
    g->train_fail = between(w, 0, 150);
    g->train_slow = between(w, 0, 20);
    g->bad = between(w, 0, 150);
    g->two_faced = between(w, 0, 200);
    g->forged = between(w, 0, 50);
    g->hang_up = between(w, 0, 50);
    g->crash_loading = w->config.sites < 100 ? between(w, 0, 10) : 0;
    g->crash_written = between(w, 0, 200) / g->sites;
    g->crash_midway = between(w, 0, 50) / g->sites;
    g->server_crashes = scale * between(w, 1, 12);
    g->device_crashes = scale * between(w, 1, 20);
    g->clock_jumps = scale * between(w, 0, 8);
    g->server_clock_jumps = between(w, 0, 2);
    g->halts = between(w, 0, 3);
    g->blob_fail = between(w, 0, 200);
}

/* Times for faults and the limit of the run grow with the rounds, else faults would all fall into the first
 * rounds of a long job. */
static void set_config(struct sim *w, const struct kedge_sim_spec *s)
{
    struct sim_config *g = &w->config;
    uint32_t scale = 1 + s->rounds / CALM_ROUNDS;
    g->tenants = s->tenants;
    g->sites = s->tenants * s->sites;
    g->jobs = g->slots = 1;
    g->delay_ms = between(w, 1, 80);
    g->disk_ms = between(w, 1, 60);
    g->train_ms = between(w, 50, 3000);
    g->chaos_ns = SIM_SECOND;
    if (s->faults) {
        draw_faults(w, scale);
        g->chaos_ns = (uint64_t)between(w, 15, 60) * scale * SIM_SECOND;
    }
    g->limit_ns = g->chaos_ns + (END_LIMIT_S + ROUND_LIMIT_S * (uint64_t)s->rounds) * SIM_SECOND;
}

static void set_job(struct sim *w, const struct kedge_sim_spec *s)
{
    struct kedge_coord_job_params *p = &w->jobs[0].params;
    p->tenant_count = s->tenants;
    for (uint32_t i = 0; i < s->tenants; i++) {
        p->tenants[i] = i;
    }
    p->rounds = s->rounds;
    p->sites_per_round = s->sites_per_round;
    p->sites_min = p->quorum = 1;
    p->round_timeout_ns = between(w, 10, 20) * SIM_SECOND;
    p->seed = kedge_rng_u64(&w->rng);
    p->groups = s->groups;
    p->evaluate_every = 1;
    p->weight_max = 100;
    w->jobs[0].share_max = KEDGE_SHARE_ONE;
}

struct watch {
    kedge_sim_progress *progress;
    void *arg;
};

static void tick(void *arg, uint32_t rounds)
{
    struct watch *watch = arg;
    watch->progress(watch->arg, rounds);
}

static void put_round(const struct sim *w, const struct sim_main *closed, struct kedge_sim_outcome *o)
{
    const struct sim_main *opened = sim_main_find(w, SIM_ROUND_OPENED, 0, closed->round);
    o->rounds[o->round_count++] =
        (struct kedge_sim_round){.round = closed->round,
                                 .groups = closed->model_count,
                                 .selected = opened->selected_count,
                                 .accepted = closed->input_count,
                                 .refused = closed->refused_count,
                                 .crashes = (uint32_t)(closed->crashes - opened->crashes),
                                 .opened_ns = opened->at_ns,
                                 .closed_ns = closed->at_ns};
}

static void put_outcome(const struct sim *w, struct kedge_sim_outcome *o)
{
    *o = (struct kedge_sim_outcome){.holds = !w->failed, .events = w->steps, .digest = w->digest};
    (void)snprintf(o->why, sizeof o->why, "%s", w->failed ? w->why : "");
    o->virtual_ns = w->now_ns;
    o->lost = w->fired[SIM_FAULT_LOST] + w->fired[SIM_FAULT_CUT_TO_SERVER] + w->fired[SIM_FAULT_CUT_TO_SITE];
    o->crashes = sim_crashes(w);
    o->statements = w->main_count;
    for (uint32_t i = 0; i < w->config.tenants; i++) {
        o->statements += w->ledgers[i].count;
    }
    o->rounds = sim_new_array(w->rounds_closed, sizeof *o->rounds);
    for (uint32_t i = 0; i < w->main_count; i++) {
        if (w->main[i].type == SIM_ROUND_CLOSED) {
            put_round(w, &w->main[i], o);
        }
    }
    o->faults = sim_new_array(SIM_FAULT_COUNT, sizeof *o->faults);
    for (; o->fault_count < SIM_FAULT_COUNT; o->fault_count++) {
        enum sim_fault fault = (enum sim_fault)o->fault_count;
        o->faults[fault] =
            (struct kedge_sim_count){sim_fault_name(fault), sim_fault_text(fault), w->fired[fault]};
    }
}

int kedge_sim_run(const struct kedge_sim_spec *spec, uint64_t seed, kedge_sim_progress *progress, void *arg,
                  struct kedge_sim_outcome *ret, struct kedge_diag *reterr)
{
    struct watch watch = {progress, arg};
    KEDGE_TRY(kedge_sim_spec_check(spec, reterr));
    struct sim *w = sim_blank(seed, STREAM, spec->real);
    w->tick = progress ? tick : NULL;
    w->tick_arg = &watch;
    set_config(w, spec);
    set_job(w, spec);
    sim_allocate(w);
    if (spec->faults) {
        sim_draw_windows(w);
    }
    sim_script_common(w);
    (void)sim_run(w);
    put_outcome(w, ret);
    sim_free(w);
    return KEDGE_OK;
}

void kedge_sim_outcome_deinit(struct kedge_sim_outcome *o)
{
    kedge_mem_free(o->rounds);
    kedge_mem_free(o->faults);
    *o = (struct kedge_sim_outcome){.round_count = 0};
}
