/* Rows of batch sizes learnt within one job, by blocks of rounds (client/energy/rounds.h), on Zeus's traces:
 * what a round costs and how far it comes with each batch is as recorded; what the site knows of the use of
 * samples is a noise scale, as it measures one at work, fitted to the epochs that the batches needed. Against
 * the default throughout, each batch at its best power cap. */
#include <math.h>

#include "bench/rows.h"
#include "bench/zeus_traces.h"
#include "client/energy/rounds.h"

enum { SEEDS = 20, ROUNDS = 300, EARLY = 60, SAMPLES = 100000 };
static const double noise_of_rounds = 0.05, noise_of_pairs = 0.2;

/* epochs ≈ e (1 + b / φ), least squares of the parts by which they are missed. */
static double fit_noise(const struct zeus_task *t)
{
    double best = INFINITY, scale = 1;
    for (int step = 0; step < 284; step++) { /* to a million */
        const double phi = pow(1.05, step);
        double up = 0, down = 0, off = 0;
        for (int pass = 0; pass < 2; pass++) {
            const double e = pass && down > 0 ? up / down : 0;
            for (uint32_t i = 0; i < t->count; i++) {
                const double x = (1 + t->sizes[i].batch / phi) / zeus_mean_epochs(&t->sizes[i]);
                up += pass ? 0 : x;
                down += pass ? 0 : x * x;
                off += pass ? (e * x - 1) * (e * x - 1) : 0;
            }
        }
        if (off < best) {
            best = off;
            scale = phi;
        }
    }
    return scale;
}

/* Without sizes that never reached the target: an owner's bounds leave them out. */
static void keep_converging(struct zeus_task *t)
{
    uint32_t kept = 0, start = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        if (zeus_mean_epochs(&t->sizes[i]) > 0) {
            start = i <= t->start ? kept : start;
            t->sizes[kept++] = t->sizes[i];
        }
    }
    t->count = kept;
    t->start = start;
}

struct outcome {
    double early, whole, best; /* cost per way, in parts of the default's */
};

static void ask_noise(struct kedge_rounds *r, const struct zeus_task *t, double scale, struct kedge_rng *rng)
{
    const double small = t->sizes[0].batch, large = 8 * small;
    for (int pair = 0; pair < 2; pair++) {
        const double off = 1 + noise_of_pairs * (2 * kedge_rng_unit(rng) - 1), s = scale * off;
        kedge_noise_saw(&r->noise, small, 1 + s / small, large, 1 + s / large);
    }
}

static int live(const struct zeus_task *t, double scale, uint64_t seed, struct outcome *sum)
{
    const struct kedge_batch_options options = kedge_batch_defaults();
    uint32_t sizes[KEDGE_BATCH_SIZES_MAX];
    struct kedge_rounds r;
    struct kedge_rng rng;
    double spent = 0, way = 0, least = INFINITY;
    for (uint32_t i = 0; i < t->count; i++) {
        sizes[i] = t->sizes[i].batch;
        least = fmin(least, t->sizes[i].cost * zeus_mean_epochs(&t->sizes[i]));
    }
    const struct zeus_size *normal = &t->sizes[t->start];
    const double normally = normal->cost * zeus_mean_epochs(normal); /* of the whole way */
    int err = kedge_rounds_init(&r, &options, sizes, t->count, t->start, NULL);
    kedge_rng_init(&rng, seed, KEDGE_RNG_TEST, 0, 0);
    for (int round = 0; round < ROUNDS && !err; round++) {
        const struct kedge_rounds_ask ask = {.samples = SAMPLES};
        const struct kedge_rounds_choice c = kedge_rounds_choose(&r, &ask, &rng);
        const struct zeus_size *s = &t->sizes[c.place];
        const double off = 1 + noise_of_rounds * (2 * kedge_rng_unit(&rng) - 1);
        if (c.wants_noise) {
            ask_noise(&r, t, scale, &rng);
        }
        const struct kedge_rounds_saw saw = {.place = c.place,
                                             .samples = SAMPLES,
                                             .seconds = s->time * off,
                                             .joules = kedge_joules_measured(s->energy * off),
                                             .skip = c.wants_noise,
                                             .eta = 0.5,
                                             .power_max_w = t->cap_most};
        kedge_rounds_saw(&r, &saw);
        spent += s->cost * off; /* an epoch of the trace */
        way += 1 / zeus_mean_epochs(s);
        if (round + 1 == EARLY) {
            sum->early += spent / way / normally / SEEDS;
        }
    }
    sum->whole += spent / way / normally / SEEDS;
    sum->best = least / normally;
    return err;
}

int kedge_row_rounds(struct row rows[ROWS_MAX], int *ret_count)
{
    struct outcome mean = {0}, worst = {0};
    *ret_count = 0;
    for (uint32_t k = 0; k < ZEUS_ROWS; k++) {
        struct outcome sum = {0};
        struct zeus_task t;
        if (!zeus_load(k, &t)) {
            return KEDGE_OK;
        }
        keep_converging(&t);
        const double scale = fit_noise(&t);
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            int err = live(&t, scale, 1000 * (uint64_t)k + seed, &sum);
            if (err) {
                return err;
            }
        }
        mean.early += log(sum.early) / ZEUS_ROWS;
        mean.whole += log(sum.whole) / ZEUS_ROWS;
        mean.best += log(sum.best) / ZEUS_ROWS;
        worst.early = fmax(worst.early, sum.early);
        worst.whole = fmax(worst.whole, sum.whole);
    }
    const double early = exp(mean.early), whole = exp(mean.whole), best = exp(mean.best), early_target = 0.95,
                 target = 0.85, worst_target = 1.05;
    rows[0] = (struct row){"batch-job-60",
                           "of default",
                           early,
                           worst.early,
                           early_target,
                           false,
                           early <= early_target && worst.early <= worst_target};
    rows[1] = (struct row){"batch-job-300",
                           "of default",
                           whole,
                           worst.whole,
                           target,
                           false,
                           whole <= target && worst.whole <= worst_target};
    rows[2] = (struct row){"batch-job-best", "of default", whole / best, 1, 1.1, false, whole / best <= 1.1};
    *ret_count = 3;
    return KEDGE_OK;
}
