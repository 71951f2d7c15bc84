/* Updates without training, for the control of grouping and rules: every site has a planted group (its
 * truth), a group a direction of its own, and an update is that direction and noise of half its length. What
 * the sites' models are good for is measured by their distance to the group's goal. */
#include <math.h>
#include <string.h>

#include "aggregation/quantise.h"
#include "common/base/rng.h"
#include "sim/learn/engine.h"

/* Values of a stream in [−1, 1). */
static float draw(struct kedge_rng *rng)
{
    return (float)(2.0 * kedge_rng_unit(rng) - 1.0);
}

/* The goal of a planted group is w0 and this direction, value after value. */
static void open_direction(const struct kedgei_learn *l, uint32_t truth, struct kedge_rng *rng)
{
    kedge_rng_init(rng, l->spec->job.seed, KEDGE_RNG_LEARN,
                   kedgei_learn_stream(KEDGEI_LEARN_STREAM_UPDATES, 0), truth);
}

int kedgei_learn_synthesise(struct kedgei_learn *l, struct kedgei_learn_lane *lane,
                            const struct kedgei_learn_item *item, int32_t *out, struct kedgei_learn_result *r)
{
    enum { GOAL_SHARE_DEN = 4 }; /* an update goes a quarter of the way to the goal */
    struct kedge_rng goal, noise;
    uint32_t which = item->pretrain ? 1 : 2;
    double sum = 0;
    open_direction(l, l->sites[item->site].truth, &goal);
    kedge_rng_init(&noise, l->spec->job.seed, KEDGE_RNG_LEARN,
                   kedgei_learn_stream(KEDGEI_LEARN_STREAM_UPDATES, which) ^ (uint64_t)item->round << 8,
                   item->site);
    for (uint64_t i = 0; i < l->d; i++) {
        float step =
            (l->w0[i] + draw(&goal) - item->base[i]) / GOAL_SHARE_DEN + draw(&noise) / (2 * GOAL_SHARE_DEN);
        lane->start[i] = item->base[i] + step;
        sum += (double)step * (double)step;
    }
    r->moved = sqrt(sum);
    r->steps = 1;
    r->loss = r->loss_before = sum / (double)l->d;
    return kedge_quantise(item->base, lane->start, l->d, l->spec->job.scale, l->spec->job.bound, out, NULL);
}

double kedgei_learn_closeness(const struct kedgei_learn *l, uint32_t site, const float *model)
{
    struct kedge_rng goal;
    double off = 0, all = 0;
    open_direction(l, l->sites[site].truth, &goal);
    for (uint64_t i = 0; i < l->d; i++) {
        double g = (double)draw(&goal), v = (double)l->w0[i] + g - (double)model[i];
        off += v * v;
        all += g * g;
    }
    return off >= all ? 0 : 1 - sqrt(off / all);
}
