/* The choice of a batch size by cost (after Zeus, You et al. 2023): a bandit over sizes. batch.h is the
 * contract.
 *
 * Costs of a size are a window of the newest ones, so that it follows a device that ages or gets warmer. A
 * size is tried only while the worst case, a try that is stopped and repeated, is paid for by what was saved
 * so far: what a site spends beyond the default is bounded by `explore` times what the default would have
 * cost. Among sizes that are known, draws by Thompson's rule decide. */
#include "client/energy/batch.h"

#include <math.h>

enum { PLAYS_BEFORE_FAR = 20 };

static const double least_deviation = 0.02; /* of a cost: two equal ones in a row do not make it certain */

struct kedge_batch_options kedge_batch_defaults(void)
{
    return (struct kedge_batch_options){.stop = 1.5, .explore = 0.5, .far_share = 0.1, .far_worse = 1.5};
}

int kedge_batch_init(struct kedge_batch *b, const struct kedge_batch_options *options, const uint32_t *sizes,
                     uint32_t count, uint32_t start, struct kedge_diag *reterr)
{
    if (count < 1 || count > KEDGE_BATCH_SIZES_MAX || start >= count) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "batch sizes: expected 1 to %d, the default among them",
                              KEDGE_BATCH_SIZES_MAX);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (sizes[i] == 0 || (i > 0 && sizes[i] <= sizes[i - 1])) {
            return kedge_diag_set(reterr, KEDGE_E_ARG, "batch sizes: expected ascending numbers above 0");
        }
    }
    if (!(options->stop > 1 && options->stop <= 100 && options->explore >= 0 && options->explore <= 100
          && options->far_share >= 0 && options->far_share <= 1 && options->far_worse >= 1
          && options->far_worse <= 100)) {
        return kedge_diag_set(reterr, KEDGE_E_ARG, "batch sizes: an option is out of its range");
    }
    *b = (struct kedge_batch){.options = *options, .count = count, .start = start};
    for (uint32_t i = 0; i < count; i++) {
        b->sizes[i].size = sizes[i];
    }
    return KEDGE_OK;
}

static uint32_t costs_of(const struct kedge_batch_size *s)
{
    return s->plays < KEDGE_BATCH_WINDOW ? s->plays : KEDGE_BATCH_WINDOW;
}

static double mean_of(const struct kedge_batch_size *s)
{
    double sum = 0;
    for (uint32_t i = 0; i < costs_of(s); i++) {
        sum += s->cost[i];
    }
    return sum / costs_of(s);
}

double kedge_batch_mean(const struct kedge_batch *b, uint32_t place)
{
    return mean_of(&b->sizes[place]);
}

uint32_t kedge_batch_best(const struct kedge_batch *b)
{
    uint32_t best = b->start;
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->sizes[i].plays > 0
            && (b->sizes[best].plays == 0 || mean_of(&b->sizes[i]) < mean_of(&b->sizes[best]))) {
            best = i;
        }
    }
    return best;
}

/* `plays` counts up to twice the window and then falls back by one window: it keeps the place in the ring and
 * says "full", and cannot overflow in a device that runs for years. A failure counts against a size only if
 * it never went well. */
void kedge_batch_saw(struct kedge_batch *b, uint32_t place, double cost, bool reached)
{
    if (place >= b->count || !(cost > 0) || !isfinite(cost)) {
        return;
    }
    struct kedge_batch_size *s = &b->sizes[place];
    b->runs++;
    b->spent += cost;
    if (reached) {
        b->reached++;
        s->cost[s->plays++ % KEDGE_BATCH_WINDOW] = cost;
        s->plays = s->plays < 2 * KEDGE_BATCH_WINDOW
                       ? s->plays
                       : s->plays - KEDGE_BATCH_WINDOW; /* as full, same place */
    } else {
        s->fails = s->fails || s->plays == 0;
    }
}

static bool is_untried(const struct kedge_batch_size *s)
{
    return s->plays == 0 && !s->fails;
}

/* The first untried size in one direction, not beyond one that fails or is clearly worse; count when there is
 * none. */
static uint32_t look_beyond(const struct kedge_batch *b, uint32_t best, bool down, double worst)
{
    for (uint32_t i = best; down ? i > 0 : i + 1 < b->count;) {
        i = down ? i - 1 : i + 1;
        const struct kedge_batch_size *s = &b->sizes[i];
        if (is_untried(s)) {
            return i;
        }
        if (s->fails || mean_of(s) > worst) {
            break;
        }
    }
    return b->count;
}

/* A size worth a try, the smaller first, that may cost what it may; count when there is none. */
static uint32_t find_candidate(const struct kedge_batch *b, uint32_t best)
{
    const struct kedge_batch_options *o = &b->options;
    const double mean = mean_of(&b->sizes[best]);
    const double normal = b->sizes[b->start].plays > 0 ? mean_of(&b->sizes[b->start]) : mean;
    const double over = b->spent - (double)b->reached * normal; /* beyond what the default would have cost */
    const double worst = o->stop * mean + mean - normal;        /* stopped, and repeated with the best */
    const double left = o->explore * (double)b->reached * normal - over; /* for trying */
    if (worst > left) {
        return b->count;
    }
    if (best > 0 && is_untried(&b->sizes[best - 1])) {
        return best - 1;
    }
    if (best + 1 < b->count && is_untried(&b->sizes[best + 1])) {
        return best + 1;
    }
    if (b->runs < PLAYS_BEFORE_FAR || o->stop * mean > o->far_share * left) {
        return b->count;
    }
    const uint32_t below = look_beyond(b, best, true, o->far_worse * mean);
    return below < b->count ? below : look_beyond(b, best, false, o->far_worse * mean);
}

/* Standard normal, by Box and Muller (1958). */
static double draw_normal(struct kedge_rng *rng)
{
    const double turn = 6.283185307179586;
    const double length = sqrt(-2 * log(1 - kedge_rng_unit(rng)));
    return length * cos(turn * kedge_rng_unit(rng));
}

/* The size whose drawn mean is least. Deviations are pooled over sizes, in parts of their means. Draws narrow
 * with a size's costs, not with their root as what is known of a mean does: else the worse of two close sizes
 * is still played often when there is nothing left to learn. */
static uint32_t sample(const struct kedge_batch *b, struct kedge_rng *rng)
{
    double squares = 0, freedom = 0, least = INFINITY;
    uint32_t chosen = b->start;
    for (uint32_t i = 0; i < b->count; i++) {
        const struct kedge_batch_size *s = &b->sizes[i];
        for (uint32_t k = 0; k < costs_of(s); k++) {
            const double off = s->cost[k] / mean_of(s) - 1;
            squares += off * off;
            freedom += k > 0;
        }
    }
    const double deviation = fmax(least_deviation, sqrt(squares / fmax(1, freedom)));
    for (uint32_t i = 0; i < b->count; i++) {
        const struct kedge_batch_size *s = &b->sizes[i];
        if (s->plays > 0 && !s->fails) {
            const double drawn = mean_of(s) * (1 + deviation / costs_of(s) * draw_normal(rng));
            if (drawn < least) {
                least = drawn;
                chosen = i;
            }
        }
    }
    return chosen;
}

/* Before any run has reached the target: the default, then its untried neighbours, nearest and smaller first;
 * the default again when all have failed. */
static uint32_t find_first(const struct kedge_batch *b)
{
    for (uint32_t off = 0; off < b->count; off++) {
        if (off <= b->start && is_untried(&b->sizes[b->start - off])) {
            return b->start - off;
        }
        if (b->start + off < b->count && is_untried(&b->sizes[b->start + off])) {
            return b->start + off;
        }
    }
    return b->start;
}

struct kedge_batch_choice kedge_batch_choose(const struct kedge_batch *b, bool again, struct kedge_rng *rng)
{
    const uint32_t best = kedge_batch_best(b);
    if (b->reached == 0 || again) {
        return (struct kedge_batch_choice){b->reached == 0 ? find_first(b) : best, INFINITY};
    }
    const uint32_t candidate = find_candidate(b, best);
    const uint32_t chosen = candidate < b->count ? candidate : sample(b, rng);
    return (struct kedge_batch_choice){chosen, chosen == best ? (double)INFINITY
                                                              : b->options.stop * mean_of(&b->sizes[best])};
}
