/* Asynchronous rounds (FedBuff): so many sites are at work at any time, each from the model that was newest
 * when it began; the server steps when `buffer` updates have come. When a site ends is known from its device
 * and its data, so the sites of a step can be found first and trained together. */
#include "sim/learn/flight.h"

#include <math.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/rng.h"

static bool is_at_work(const struct kedgei_learn *l, uint32_t site)
{
    for (uint32_t i = 0; i < l->flight_count; i++) {
        if (l->flight[i].site == site && l->flight[i].busy) {
            return true;
        }
    }
    return false;
}

/* The next site, not one at work, begins in slot i with the newest model. */
static void begin(struct kedgei_learn *l, uint32_t i, uint32_t round, double now)
{
    struct kedgei_learn_flight *f = &l->flight[i];
    struct kedge_rng rng;
    kedge_rng_init(&rng, l->spec->job.seed, KEDGE_RNG_SELECT, l->started, 1);
    f->busy = 0;
    uint32_t site = (uint32_t)kedge_rng_below(&rng, l->n);
    for (uint32_t k = 0; k < l->n && (is_at_work(l, site) || !kedgei_learn_is_there(l, site)); k++) {
        site = (site + 1) % l->n;
    }
    if (!kedgei_learn_is_there(l, site)) { /* nobody is free: the slot waits */
        *f = (struct kedgei_learn_flight){
            .site = site, .round = round, .finish_s = kedgei_learn_somebody_s(l)};
        f->finish_s = f->finish_s > now ? f->finish_s : now + 1; /* who is there is at work */
        return;
    }
    *f = (struct kedgei_learn_flight){.site = site,
                                      .round = round,
                                      .busy = 1,
                                      .stream = l->started++,
                                      .finish_s = now + kedgei_learn_seconds(l, site)};
    memcpy(l->bases + (size_t)i * l->d, kedgei_learn_model(l, 0), l->d * sizeof(float));
    kedgei_learn_tell_bytes(l, 1, 0);
}

int kedgei_learn_flight_init(struct kedgei_learn *l)
{
    if (!l->spec->job.strategy->asynchronous) {
        return KEDGE_OK;
    }
    uint32_t buffer = (uint32_t)l->spec->job.options.buffer;
    l->flight_count = kedge_learn_spec_each_round(l->spec, l->n);
    l->flight = kedge_mem_new(l->flight_count, sizeof *l->flight);
    l->bases = kedge_mem_new((size_t)l->flight_count + buffer, l->d * sizeof *l->bases);
    if (!l->flight || !l->bases) {
        return kedge_diag_set(l->reterr, KEDGE_E_NOMEM, "no memory for %u models at work", l->flight_count);
    }
    return KEDGE_OK;
}

void kedgei_learn_flight_deinit(struct kedgei_learn *l)
{
    kedge_mem_free(l->flight);
    kedge_mem_free(l->bases);
}

static uint32_t find_first(const struct kedgei_learn *l)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < l->flight_count; i++) {
        first = l->flight[i].finish_s < l->flight[first].finish_s ? i : first;
    }
    return first;
}

int kedgei_learn_fly(struct kedgei_learn *l, uint32_t round)
{
    uint32_t buffer = (uint32_t)l->spec->job.options.buffer, tries = 0;
    int err = kedgei_learn_items_reserve(l, buffer);
    l->items_count = 0;
    for (uint32_t i = 0; i < l->flight_count && l->started < l->flight_count && !err; i++) {
        begin(l, i, round, 0);
    }
    while (l->items_count < buffer && !err && tries++ < 1000 * buffer) {
        uint32_t i = find_first(l);
        struct kedgei_learn_flight f = l->flight[i];
        float *base = l->bases + (size_t)(l->flight_count + l->items_count) * l->d;
        if (!isfinite(f.finish_s)) { /* nobody comes any more */
            break;
        }
        l->line.virtual_s = f.finish_s;
        if (!f.busy) {
            begin(l, i, round, f.finish_s);
            continue;
        }
        l->line.joules += kedgei_learn_joules(l, f.site);
        if (!kedgei_learn_fails(l, f.stream, f.site)
            && kedgei_learn_is_there(l, f.site)) { /* who fails is replaced and nobody waits */
            memcpy(base, l->bases + (size_t)i * l->d, l->d * sizeof *base);
            l->items[l->items_count++] =
                (struct kedgei_learn_item){.site = f.site,
                                           .base = base,
                                           .stream = f.stream,
                                           .loss_wanted = l->spec->job.strategy->needs_loss,
                                           .staleness = round - f.round};
            kedgei_learn_tell_bytes(l, 0, 1);
        }
        begin(l, i, round, f.finish_s);
    }
    return err;
}
