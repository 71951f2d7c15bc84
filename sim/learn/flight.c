/* Asynchronous rounds (FedBuff), as jobs have them (coordinator/core/buffer.c): when a round opens, sites
 * that can be asked are drawn for the free places, each begins with the newest model, and the round closes
 * when `buffer` updates have come. When a site ends is known from its device and its data, so the sites of a
 * round can be found first and trained together. */
#include "sim/learn/flight.h"

#include <math.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"

enum { DRAWS_MAX = 16 }; /* of one round: nothing came of those before */

/* The models of rounds whose tasks still count. */
static uint32_t bases_count(const struct kedgei_learn *l)
{
    const uint32_t rounds = l->job.rounds, most = l->job.staleness_max;
    return most < rounds ? most + 1 : rounds;
}

static float *base_of(const struct kedgei_learn *l, uint32_t job_round)
{
    return l->bases + (size_t)(job_round % bases_count(l)) * l->d;
}

int kedgei_learn_flight_init(struct kedgei_learn *l)
{
    if (!l->spec->job.strategy->asynchronous) {
        return KEDGE_OK;
    }
    l->flight = kedge_mem_new(l->n, sizeof *l->flight);
    l->bases = kedge_mem_new((size_t)bases_count(l) * l->d, sizeof *l->bases);
    return l->flight && l->bases
               ? KEDGE_OK
               : kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for %u models at work", bases_count(l));
}

void kedgei_learn_flight_deinit(struct kedgei_learn *l)
{
    kedge_mem_free(l->flight);
    kedge_mem_free(l->bases);
}

void kedgei_learn_flight_visit(struct kedgei_learn *l, void (*visit)(void *arg, void *value, size_t len),
                               void *arg)
{
    if (l->flight) {
        visit(arg, l->flight, l->n * sizeof *l->flight);
        visit(arg, l->bases, bases_count(l) * l->d * sizeof *l->bases);
    }
}

/* The site begins with the round's model. One that will not answer holds no place, and is not drawn again
 * while its task would count. */
static void begin(struct kedgei_learn *l, uint32_t site, uint32_t job_round)
{
    const double seconds = kedgei_learn_seconds(l, site);
    l->flight[site] = (struct kedgei_learn_flight){.round = job_round,
                                                   .lost = kedgei_learn_fails(l, job_round - 1, site)
                                                           || !kedgei_learn_stays(l, site, seconds),
                                                   .finish_s = l->line.virtual_s + seconds};
    l->line.joules += kedgei_learn_joules(l, site);
    kedgei_learn_tell_bytes(l, 1, 0);
}

/* Draws sites for the places that nobody holds. scratch: 3 for each site. */
static void open_round(struct kedgei_learn *l, uint32_t job_round, uint32_t *scratch)
{
    uint32_t *there = scratch, *picks = scratch + l->n, places = 0, count = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const uint32_t site = l->names.order[i];
        struct kedgei_learn_flight *f = &l->flight[site];
        if (f->round > 0 && f->round + l->job.staleness_max < job_round) {
            f->round = 0; /* its update would be too old */
        }
        places += f->round > 0 && !f->lost;
        if (f->round == 0 && kedgei_learn_is_there(l, site)) {
            there[count++] = site;
        }
    }
    const uint32_t k = kedge_coord_draws(l->job.sites_per_round, places, count);
    kedge_coord_pick(l->job.seed, job_round, count, k, picks + l->n, picks);
    for (uint32_t i = 0; i < k; i++) {
        begin(l, there[picks[i]], job_round);
    }
}

/* Who ends first, of equal ones the first by name; l->n: nobody is at work. */
static uint32_t find_first(const struct kedgei_learn *l)
{
    uint32_t first = l->n;
    for (uint32_t i = 0; i < l->n; i++) {
        const uint32_t site = l->names.order[i];
        const struct kedgei_learn_flight *f = &l->flight[site];
        if (f->round > 0 && !f->lost && (first == l->n || f->finish_s < l->flight[first].finish_s)) {
            first = site;
        }
    }
    return first;
}

/* Nothing came and nothing will: all that were drawn are forgotten, once their time is over. False: nobody
 * will be there to be drawn. */
static bool forget(struct kedgei_learn *l)
{
    double now = l->line.virtual_s;
    for (uint32_t i = 0; i < l->n; i++) {
        now = l->flight[i].round > 0 && l->flight[i].finish_s > now ? l->flight[i].finish_s : now;
        l->flight[i].round = 0;
    }
    l->line.virtual_s = now;
    const double somebody = kedgei_learn_somebody_s(l);
    l->line.virtual_s = isfinite(somebody) ? somebody : now;
    return isfinite(somebody);
}

static void take(struct kedgei_learn *l, uint32_t site, uint32_t job_round)
{
    struct kedgei_learn_flight *f = &l->flight[site];
    const double now = l->line.virtual_s;
    l->items[l->items_count++] = (struct kedgei_learn_item){.site = site,
                                                            .base = base_of(l, f->round),
                                                            .round = f->round,
                                                            .loss_wanted = l->job.strategy->needs_loss,
                                                            .staleness = job_round - f->round};
    l->line.virtual_s = f->finish_s > now ? f->finish_s : now; /* what came before waits for the opening */
    f->round = 0;
    kedgei_learn_tell_bytes(l, 0, 1);
}

int kedgei_learn_fly(struct kedgei_learn *l, uint32_t round)
{
    const uint32_t job_round = kedgei_learn_job_round(round), buffer = kedge_job_spec_buffer(&l->job);
    uint32_t *scratch = kedge_mem_new(3 * (size_t)l->n, sizeof *scratch), draws = 0;
    if (!scratch) {
        return kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for %u sites", l->n);
    }
    int err = kedgei_learn_items_reserve(l, buffer);
    l->items_count = 0;
    if (!err) {
        memcpy(base_of(l, job_round), kedgei_learn_model(l, 0), l->d * sizeof(float));
        open_round(l, job_round, scratch);
    }
    while (l->items_count < buffer && !err) {
        const uint32_t site = find_first(l);
        if (site < l->n) {
            take(l, site, job_round);
        } else if (l->items_count == 0 && ++draws < DRAWS_MAX && forget(l)) {
            open_round(l, job_round, scratch);
        } else {
            break;
        }
    }
    kedge_mem_free(scratch);
    return err;
}
