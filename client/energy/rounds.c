/* The bandit of batch.h fed with rounds of a federated job. rounds.h is the contract and has the sources.
 *
 * In a job no single site sees "the target is reached", so the value of a round is modelled by how much its
 * samples teach at that batch size, given the noise of the gradients. A cost is the cost of some rounds
 * divided by that. One round is noisy, so a size is kept for a block of rounds and judged by the block. */
#include "client/energy/rounds.h"

#include <math.h>
#include <stdio.h>

static const double scale_least = 0.0625, scale_most = 1048576, in_time = 0.8, model_error = 0.05;

/* The two unknowns of E|g|² = |G|² + S / batch from two batches. Both are summed over pairs and divided only
 * at the end: single estimates may be negative, and the ratio of sums is far less biased than the mean of
 * ratios. */
void kedge_noise_saw(struct kedge_noise *n, double small, double small_sq, double large, double large_sq)
{
    if (!(small >= 1) || !(large > small) || !(small_sq >= 0) || !(large_sq >= 0) || !isfinite(small_sq)
        || !isfinite(large_sq)) {
        return;
    }
    n->pairs++;
    n->s += (small_sq - large_sq) / (1 / small - 1 / large);
    n->g2 += (large * large_sq - small * small_sq) / (large - small);
}

double kedge_noise_scale(const struct kedge_noise *n)
{
    if (n->pairs < KEDGE_ROUNDS_NOISE_MIN || !(n->s > 0)) {
        return 0;
    }
    return n->g2 > 0 ? fmin(scale_most, fmax(scale_least, n->s / n->g2)) : scale_most;
}

double kedge_noise_useful(double scale, double start, double batch)
{
    return (scale + start) / (scale + batch);
}

int kedge_rounds_init(struct kedge_rounds *r, const struct kedge_batch_options *options,
                      const uint32_t *sizes, uint32_t count, uint32_t start, struct kedge_diag *reterr)
{
    struct kedge_rounds fresh = {.quality = KEDGE_QUALITY_UNKNOWN};
    const int err = kedge_batch_init(&fresh.batch, options, sizes, count, start, reterr);
    if (!err) {
        *r = fresh;
    }
    return err;
}

/* Seconds of a round with the size, by what was seen of it, else of the nearest larger one, whose steps take
 * no less time, or of the nearest smaller one. 0: nothing was seen. */
static double seconds_of(const struct kedge_rounds *r, uint32_t place, double samples)
{
    if (r->speed[place] > 0) {
        return r->speed[place] * samples;
    }
    for (uint32_t i = place + 1; i < r->batch.count; i++) {
        if (r->speed[i] > 0) {
            return r->speed[i] * samples * r->batch.sizes[i].size / r->batch.sizes[place].size;
        }
    }
    for (uint32_t i = place; i-- > 0;) {
        if (r->speed[i] > 0) {
            return r->speed[i] * samples;
        }
    }
    return 0;
}

static bool is_in_time(const struct kedge_rounds *r, uint32_t place, const struct kedge_rounds_ask *ask)
{
    return !(ask->seconds > 0) || !(ask->samples > 0)
           || seconds_of(r, place, ask->samples) <= in_time * ask->seconds;
}

/* The nearest size that is in time and does not fail; where there is none the quickest. */
static uint32_t fit(const struct kedge_rounds *r, uint32_t place, const struct kedge_rounds_ask *ask)
{
    uint32_t quickest = place;
    for (uint32_t off = 0; off < r->batch.count; off++) {
        const uint32_t up = place + off, down = place - off;
        if (up < r->batch.count && !r->batch.sizes[up].fails && is_in_time(r, up, ask)) {
            return up;
        }
        if (off <= place && !r->batch.sizes[down].fails && is_in_time(r, down, ask)) {
            return down;
        }
    }
    for (uint32_t i = 0; i < r->batch.count; i++) {
        if (!r->batch.sizes[i].fails
            && seconds_of(r, i, ask->samples) <= seconds_of(r, quickest, ask->samples)) {
            quickest = i;
        }
    }
    return quickest;
}

/* That a size is cheaper is said by a model of what samples are worth, which misses by several percent: for
 * less than that the start, which the job's owner named, is not left. */
static bool is_worth_it(const struct kedge_batch *b, uint32_t place)
{
    return b->sizes[place].plays == 0 || b->sizes[b->start].plays == 0
           || kedge_batch_mean(b, place) <= (1 - model_error) * kedge_batch_mean(b, b->start);
}

static void open_block(struct kedge_rounds *r, struct kedge_rng *rng)
{
    struct kedge_batch_choice c = kedge_batch_choose(&r->batch, r->again, rng);
    if (!is_worth_it(&r->batch, c.place)) {
        c = (struct kedge_batch_choice){.place = r->batch.start, .limit = INFINITY};
    }
    r->block = (struct kedge_rounds_block){.is_open = true, .place = c.place, .limit = c.limit};
}

struct kedge_rounds_choice kedge_rounds_choose(struct kedge_rounds *r, const struct kedge_rounds_ask *asked,
                                               struct kedge_rng *rng)
{
    struct kedge_rounds_ask given = *asked;
    const struct kedge_rounds_ask *ask = &given;
    given.samples = asked->samples > 0 ? asked->samples : r->samples;
    struct kedge_rounds_choice c = {.place = r->batch.start, .why = ""};
    const double scale = kedge_noise_scale(&r->noise);
    const char *why;
    if (ask->fixed) {
        why = "the owner has switched the choice off";
    } else if (!(scale > 0)) {
        c.wants_noise = true;
        why = "the noise of the gradients is not known yet";
    } else {
        if (!r->block.is_open) {
            open_block(r, rng);
            c.wants_noise =
                r->noise.pairs < KEDGE_ROUNDS_NOISE_ENOUGH || r->batch.runs % KEDGE_ROUNDS_NOISE_EVERY == 0;
        }
        c.place = r->block.place;
        why = c.place == kedge_batch_best(&r->batch) ? "the least cost so far"
              : r->batch.sizes[c.place].plays == 0   ? "tried"
              : c.place == r->batch.start && !is_worth_it(&r->batch, kedge_batch_best(&r->batch))
                  ? "no other is clearly cheaper"
                  : "sampled";
    }
    if (!ask->fixed) {
        const uint32_t wanted = c.place;
        c.place = fit(r, wanted, ask);
        if (c.place != wanted) {
            why = "others would be late, or diverged";
            r->block.is_open = false;
        }
    }
    c.size = r->batch.sizes[c.place].size;
    snprintf(c.why, sizeof c.why, "%s", why);
    return c;
}

/* Costs of another quality are not held against these: such a round is left out, and when no other come all
 * that was learnt of costs goes. */
static bool is_comparable(struct kedge_rounds *r, enum kedge_quality quality)
{
    if (!r->has_costs || r->quality == quality) {
        r->quality = quality;
        r->has_costs = true;
        r->forgiven = 0;
        return true;
    }
    if (++r->forgiven >= KEDGE_ROUNDS_FORGIVEN_MAX) {
        struct kedge_batch fresh = {
            .options = r->batch.options, .count = r->batch.count, .start = r->batch.start};
        for (uint32_t i = 0; i < fresh.count; i++) {
            fresh.sizes[i].size = r->batch.sizes[i].size;
            fresh.sizes[i].fails = r->batch.sizes[i].fails;
        }
        r->batch = fresh;
        r->block.is_open = r->has_costs = r->again = false;
        r->forgiven = 0;
    }
    return false;
}

static void close_block(struct kedge_rounds *r, bool reached)
{
    struct kedge_rounds_block *b = &r->block;
    if (b->useful > 0 && b->cost > 0) {
        kedge_batch_saw(&r->batch, b->place, b->cost / b->useful, reached);
    }
    r->again = !reached;
    b->is_open = false;
}

/* A size that diverged is out, but for the start, which the job's owner has named and which the site must be
 * able to fall back to. */
void kedge_rounds_saw(struct kedge_rounds *r, const struct kedge_rounds_saw *saw)
{
    struct kedge_rounds_block *b = &r->block;
    if (saw->place >= r->batch.count) {
        return;
    }
    if (saw->diverged) {
        r->batch.sizes[saw->place].fails = saw->place != r->batch.start;
        r->batch.sizes[saw->place].plays =
            saw->place != r->batch.start ? 0 : r->batch.sizes[saw->place].plays;
        b->is_open = false;
        r->again = true;
        return;
    }
    if (!(saw->samples > 0) || !(saw->seconds > 0)) {
        return;
    }
    r->speed[saw->place] = saw->seconds / saw->samples;
    r->samples = saw->samples;
    if (saw->skip || !b->is_open || b->place != saw->place) {
        return;
    }
    const bool known = saw->joules.quality != KEDGE_QUALITY_UNKNOWN && saw->power_max_w > 0;
    if (!is_comparable(r, known ? saw->joules.quality : KEDGE_QUALITY_UNKNOWN)) {
        return;
    }
    const double size = r->batch.sizes[saw->place].size, start = r->batch.sizes[r->batch.start].size;
    b->cost += known ? saw->eta * saw->joules.joules + (1 - saw->eta) * saw->power_max_w * saw->seconds
                     : saw->seconds;
    b->useful +=
        saw->samples * kedge_noise_useful(kedge_noise_scale(&r->noise), start, fmin(size, saw->samples));
    b->rounds++;
    const bool dear = b->rounds > 1 && b->cost > b->limit * b->useful;
    if (b->rounds >= KEDGE_ROUNDS_BLOCK || dear) {
        close_block(r, true);
    }
}
