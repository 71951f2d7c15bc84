/* A simulated job in a world where things go wrong: messages are lost, disks fail, the coordinator and sites
 * crash, clocks jump. */
#include <math.h>

#include "sim/protocol/impl.h"

#define SECONDS_MOST 1e9

enum {
    JUMP_S = 60,       /* a clock's, at most */
    ROUND_EXTRA_S = 3, /* of a round without training and transfers, about */
};

static double slowest_s(const struct kedgei_learn *l)
{
    double most = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        double s = kedgei_learn_seconds(l, i);
        most = s > most ? s : most;
    }
    return most;
}

/* Those that leave every vector what it is: nothing forged, nobody with two faces. Few messages are lost, for
 * a round opens when all sites are heard of. */
static void set_rates(struct sim_config *g)
{
    g->loss = 20;
    g->duplicate = 120;
    g->slow = 40;
    g->disk_fail = g->disk_lie = g->work_fail = g->blob_fail = 120;
    g->train_fail = 120;
    g->hang_up = 20;
    g->crash_loading = 5;
    g->crash_written = 300 / g->sites;
    g->crash_midway = 60 / g->sites;
}

static void push_some(struct sim *w, enum sim_event_type type, uint32_t count, uint64_t within_ns)
{
    for (uint32_t i = 0; i < count; i++) {
        struct sim_event *ev = sim_push(w, type, w->now_ns + 1 + sim_below(w, within_ns));
        ev->site = (uint32_t)sim_below(w, w->config.sites);
        ev->wait_ns = SIM_SECOND + sim_below(w, JUMP_S * SIM_SECOND);
    }
}

/* From the first round on, for about as long as the job lasts in peace; it lasts longer. */
void kedgei_protocol_trouble(struct kedgei_protocol *p)
{
    struct sim *w = p->w;
    uint32_t rounds = p->spec->job.rounds;
    const double seconds = (slowest_s(p->l) + ROUND_EXTRA_S) * rounds;
    uint64_t within_ns = (uint64_t)(fmin(seconds, SECONDS_MOST) * (double)SIM_SECOND);
    set_rates(&w->config);
    w->config.chaos_ns = w->now_ns + within_ns;
    sim_draw_windows(w);
    push_some(w, SIM_SERVER_CRASH, 1 + rounds / 4, within_ns);
    push_some(w, SIM_DEVICE_CRASH, w->config.sites / 4 + rounds / 2, within_ns);
    push_some(w, SIM_CLOCK_JUMP, 1 + rounds / 4, within_ns);
    sim_push(w, SIM_HEAL, w->config.chaos_ns);
}
