/* Rows of jobs with two targets: what weight and floor do to them, by the very function that the coordinator
 * asks (coordinator/schedule/share.h), in virtual time. The curves are recorded trainings of Zeus's traces:
 * when each of 45 reached a first and a last target, alone. A fifth as many places as jobs, at most one to
 * each; arrivals uniform over 1,800 s where every job is scaled to 3,600 s, else over 7,200 s. */
#include <math.h>
#include <stdio.h>

#include "bench/rows.h"
#include "bench/zeus_traces.h"
#include "common/base/err.h"
#include "common/base/rng.h"
#include "coordinator/schedule/share.h"

enum { SEEDS = 200, CURVES_MAX = 64, JOBS_MAX = 20, SETTINGS = 5, MIXES = 3 };

struct run {
    double arrives_s, goal_s[2]; /* work until the first and the last target */
    double done_s, at_s[2];      /* when they were reached, from the arrival on; below 0: not yet */
};

/* What the published replay gives: time to the first target, and the worst job's to the last, in parts of
 * that with equal shares, as means over seeds. */
static const struct {
    uint32_t weight, floor;
    double first[MIXES], worst[MIXES];
} table[SETTINGS] = {
    {4, 0, {0.761, 0.877, 0.861}, {1.11, 3.29, 4.05}},
    {4, 250000, {0.798, 0.905, 0.894}, {1.10, 2.04, 2.29}},
    {4, 500000, {0.844, 0.937, 0.932}, {1.08, 1.50, 1.59}}, /* the default */
    {8, 500000, {0.808, 0.915, 0.906}, {1.09, 1.69, 1.81}},
    {KEDGE_SCHEDULE_WEIGHT_MAX, 500000, {0.767, 0.890, 0.875}, {1.10, 1.98, 2.12}},
};
enum { DEFAULT = 2 };
static const struct {
    uint32_t jobs;
    bool is_scaled;
} mixes[MIXES] = {{10, true}, {10, false}, {20, false}};

static void draw(const struct zeus_curve *curves, uint32_t count, uint32_t mix, uint64_t seed,
                 struct run *ret)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, seed, KEDGE_RNG_TEST, 13, mix);
    for (uint32_t i = 0; i < mixes[mix].jobs; i++) {
        const struct zeus_curve *c = &curves[kedge_rng_below(&rng, count)];
        const double scale = mixes[mix].is_scaled ? 3600 / c->last_s : 1;
        ret[i] = (struct run){.arrives_s = kedge_rng_unit(&rng) * (mixes[mix].is_scaled ? 1800 : 7200),
                              .goal_s = {c->first_s * scale, c->last_s * scale},
                              .at_s = {-1, -1}};
    }
}

static bool is_active(const struct run *r, double now)
{
    return r->arrives_s <= now && r->at_s[1] < 0;
}

/* To the next arrival or target. Returns the time then. */
static double advance(struct run *runs, uint32_t count, uint32_t weight, uint32_t floor, double now)
{
    struct kedge_schedule_claim claims[JOBS_MAX] = {{0}};
    uint64_t shares[JOBS_MAX];
    uint32_t active[JOBS_MAX], n = 0;
    double next = INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        if (is_active(&runs[i], now)) {
            claims[n] = (struct kedge_schedule_claim){.weight = runs[i].at_s[0] < 0 ? weight : 1};
            active[n++] = i;
        } else if (runs[i].at_s[1] < 0) {
            next = fmin(next, runs[i].arrives_s);
        }
    }
    kedge_schedule_divide(claims, n, (uint64_t)count * KEDGE_SCHEDULE_WHOLE / 5, floor, shares);
    for (uint32_t k = 0; k < n; k++) {
        const struct run *r = &runs[active[k]];
        const double left = r->goal_s[r->at_s[0] < 0 ? 0 : 1] - r->done_s;
        next = fmin(next, now + left * KEDGE_SCHEDULE_WHOLE / (double)shares[k]);
    }
    for (uint32_t k = 0; k < n; k++) {
        struct run *r = &runs[active[k]];
        r->done_s += (next - now) * (double)shares[k] / KEDGE_SCHEDULE_WHOLE;
        for (int t = 0; t < 2; t++) {
            r->at_s[t] =
                r->at_s[t] < 0 && r->done_s >= r->goal_s[t] - 1e-6 ? next - r->arrives_s : r->at_s[t];
        }
    }
    return next;
}

static void replay(struct run *runs, uint32_t count, uint32_t weight, uint32_t floor)
{
    double now = 0;
    for (bool more = true; more;) {
        now = advance(runs, count, weight, floor, now);
        more = false;
        for (uint32_t i = 0; i < count; i++) {
            more = more || runs[i].at_s[1] < 0;
        }
    }
}

struct outcome {
    double first, worst, worst_of_all;
};

static struct outcome compare(const struct zeus_curve *curves, uint32_t curve_count, uint32_t mix,
                              uint32_t weight, uint32_t floor)
{
    struct outcome o = {0, 0, 0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct run equal[JOBS_MAX] = {{0}}, runs[JOBS_MAX] = {{0}};
        double sum = 0, sum_equal = 0, worst = 0;
        draw(curves, curve_count, mix, seed, equal);
        draw(curves, curve_count, mix, seed, runs);
        replay(equal, mixes[mix].jobs, 1, 0);
        replay(runs, mixes[mix].jobs, weight, floor);
        for (uint32_t i = 0; i < mixes[mix].jobs; i++) {
            sum += runs[i].at_s[0];
            sum_equal += equal[i].at_s[0];
            worst = fmax(worst, runs[i].at_s[1] / equal[i].at_s[1]);
        }
        o.first += sum / sum_equal / SEEDS;
        o.worst += worst / SEEDS;
        o.worst_of_all = fmax(o.worst_of_all, worst);
    }
    return o;
}

int kedge_row_targets(struct row rows[ROWS_MAX], int *ret_count)
{
    struct zeus_curve curves[CURVES_MAX];
    double off_first = 0, off_worst = 0, first = 0, most = 0;
    const uint32_t count = zeus_curves(curves, CURVES_MAX);
    *ret_count = 0;
    if (count == 0) {
        return KEDGE_OK;
    }
    for (uint32_t s = 0; s < SETTINGS; s++) {
        for (uint32_t m = 0; m < MIXES; m++) {
            const struct outcome o = compare(curves, count, m, table[s].weight, table[s].floor);
            off_first = fmax(off_first, fabs(o.first - table[s].first[m]));
            off_worst = fmax(off_worst, fabs(o.worst / table[s].worst[m] - 1));
            first = s == DEFAULT && m == 0 ? o.first : first;
            most = s == DEFAULT ? fmax(most, o.worst_of_all) : most;
            fprintf(stderr, "weight %u, floor %.2f, %u jobs: %.3f / %.2f, %.2f\n", (unsigned)table[s].weight,
                    table[s].floor / 1e6, (unsigned)mixes[m].jobs, o.first, o.worst, o.worst_of_all);
        }
    }
    rows[0] = (struct row){"targets-first", "of equal", first, 0.844, 0.864, false, first <= 0.864};
    rows[1] = (struct row){"targets-worst", "of equal", most, 1.95, 2, false, most < 2};
    rows[2] = (struct row){"targets-replay", "apart", off_first, off_worst, 0.02, false, off_first <= 0.02};
    *ret_count = 3;
    return KEDGE_OK;
}
