/* The world's memory and its main loop. There is one queue of events in virtual time. The loop takes the
 * earliest and gives it to the coordinator's host (server.c) or to a site's (device.c), whose core answers
 * with effects, and these become later events. Nothing else moves: no thread, no clock, no file. */
#include "sim/world.h"

#include "common/base/mem.h"

enum {
    TICK_STEPS = 4096,
};

struct sim *sim_blank(uint64_t seed, uint64_t stream, bool real)
{
    struct sim *w = sim_new_array(1, sizeof *w);
    w->seed = seed;
    w->digest = SIM_HASH_START;
    kedge_rng_init(&w->rng, seed, KEDGE_RNG_SIM, stream, 0);
    kedge_coord_times_default(&w->server.times);
    if (real) {
        sim_real_new(w);
    }
    return w;
}

struct sim *sim_new(uint64_t seed, bool real, sim_trace *trace)
{
    struct sim *w = sim_blank(seed, 0, real);
    w->trace = trace;
    sim_script_draw(w);
    return w;
}

/* Faults are over: everything comes up; from now on the operator lifts halts of its own, for nobody else may,
 * and gives up jobs that cannot go on. Whatever else was in the way must mend itself. */
static void heal(struct sim *w)
{
    w->healed = true;
    w->coord_rare.permille = w->site_rare.permille = 0;
    for (uint32_t i = 0; i < w->config.jobs; i++) {
        if (w->jobs[i].state == KEDGE_JOB_HALTED && w->jobs[i].reason == KEDGE_OK) {
            sim_push(w, SIM_RESUME, w->now_ns)->job = i;
        }
        if (w->server.up && sim_job_is_stuck(w, i)) {
            sim_push(w, SIM_CANCEL, w->now_ns + 1)->job = i;
        }
    }
    sim_push(w, SIM_HEAL, w->now_ns + 20 * SIM_SECOND);
}

static bool is_over(const struct sim *w)
{
    for (uint32_t i = 0; i < w->config.jobs; i++) {
        if (w->jobs[i].state < KEDGE_JOB_COMPLETED) {
            return false;
        }
    }
    return w->healed;
}

static bool is_of_site(enum sim_event_type type)
{
    return type == SIM_TO_DEVICE || type == SIM_CALL_TIMEOUT || type == SIM_DEVICE_DONE
           || type == SIM_DEVICE_DISK || type == SIM_DEVICE_TIMER || type == SIM_DEVICE_CRASH
           || type == SIM_DEVICE_UP || type == SIM_CLOCK_JUMP || type == SIM_SHIFT;
}

/* Until limit_ns the jobs must have ended; sim_check_end says which have not. When all have, the run goes on
 * for a minute of virtual time, in which the last receipts must reach their sites. A federation that
 * exchanges messages for ever without an end to come is told by the number of steps. */
bool sim_run(struct sim *w)
{
    uint64_t end = w->config.limit_ns;
    bool over = false;
    while (!w->failed && !w->stopped && w->queue_count > 0 && w->queue[0]->at_ns <= end) {
        struct sim_event *ev = sim_pop(w);
        w->now_ns = ev->at_ns;
        w->steps++;
        if (ev->type == SIM_HEAL) {
            heal(w);
        } else if (is_of_site(ev->type)) {
            sim_device_event(w, ev);
        } else {
            sim_server_event(w, ev);
        }
        sim_recycle(w, ev);
        if (w->steps > w->steps_max) {
            sim_violate(w, "it never comes to rest");
        }
        if (w->tick && w->steps % TICK_STEPS == 0) {
            w->tick(w->tick_arg, w->rounds_closed);
        }
        if (!over && is_over(w)) {
            over = true;
            end = w->now_ns + 60 * SIM_SECOND; /* for the last receipts */
        }
    }
    if (!w->stopped) {
        sim_check_end(w);
    }
    return !w->failed;
}

static void free_job(struct sim_job *j)
{
    kedge_mem_free(j->joined);
    kedge_mem_free(j->told);
    kedge_mem_free(j->rounds_opened);
    kedge_mem_free(j->rounds_closed);
    kedge_mem_free(j->pending.inputs);
    kedge_mem_free(j->pending.groups);
    kedge_mem_free(j->pending.refused);
    kedge_mem_free(j->fresh);
}

static void free_record(struct sim *w)
{
    for (uint32_t i = 0; i < w->config.tenants; i++) {
        kedge_mem_free(w->ledgers[i].entries);
        sim_index_deinit(&w->ledgers[i].index);
    }
    for (uint32_t i = 0; i < w->config.sites; i++) {
        kedge_mem_free(w->devices[i].acks);
    }
    for (uint32_t i = 0; i < w->main_count; i++) {
        kedge_mem_free(w->main[i].selected);
        kedge_mem_free(w->main[i].tasks);
        kedge_mem_free(w->main[i].settled);
        kedge_mem_free(w->main[i].sums);
        kedge_mem_free(w->main[i].models);
        kedge_mem_free(w->main[i].groups);
    }
    for (uint32_t i = 0; i < w->config.jobs; i++) {
        free_job(&w->jobs[i]);
    }
    kedge_mem_free(w->main);
    kedge_mem_free(w->ledgers);
    kedge_mem_free(w->devices);
    sim_index_deinit(&w->published);
}

void sim_free(struct sim *w)
{
    while (w->queue_count > 0) {
        sim_recycle(w, sim_pop(w));
    }
    while (w->free_events) {
        struct sim_event *next = w->free_events->next_free;
        kedge_mem_free(w->free_events);
        w->free_events = next;
    }
    free_record(w);
    sim_real_free(w);
    kedge_mem_free(w->queue);
    kedge_mem_free(w->server.mem);
    kedge_mem_free(w->server.requests);
    kedge_mem_free(w->server.tickets);
    kedge_mem_free(w);
}
