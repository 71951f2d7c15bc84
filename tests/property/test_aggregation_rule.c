/* Bad updates, as many as a rule tolerates and of every sort, move its result no farther than its row says;
 * one more, or the plain mean, and they do: the checks can fail. SEED=n repeats one seed. */
#include "aggregation/share_cap.h"
#include "tests/unit/aggregation/rule_support.h"

enum { SEEDS = 40, D_MAX = 60, GOOD = 2000, LIMIT = 1 << 26 };

enum attack { FLIP, HUGE_ALIKE, HUGE_APART, EDGE, COPY, SPIKE, SHIFT, ATTACKS };

static struct updates u;
static bool is_bad[UPDATES_MAX];

/* ---- updates ---- */

/* Good updates: a common direction and noise. */
static void draw_good(struct kedge_rng *rng, size_t n)
{
    draw_updates(rng, &u, n, 2 + (size_t)kedge_rng_below(rng, D_MAX - 2), GOOD);
    memset(u.model, 0, sizeof u.model);
    for (size_t i = 0; i < u.dimension; i++) {
        const int32_t common = draw_int(rng, 4 * GOOD);
        for (size_t k = 0; k <= n; k++) {
            u.values[k][i] += common;
        }
    }
    memset(is_bad, 0, sizeof is_bad);
}

/* Least and greatest good value of a coordinate. */
static void range_of(size_t i, int32_t *ret_low, int32_t *ret_high)
{
    *ret_low = INT32_MAX;
    *ret_high = INT32_MIN;
    for (size_t k = 0; k < u.count; k++) {
        if (!is_bad[k]) {
            *ret_low = u.values[k][i] < *ret_low ? u.values[k][i] : *ret_low;
            *ret_high = u.values[k][i] > *ret_high ? u.values[k][i] : *ret_high;
        }
    }
}

static void make_bad(struct kedge_rng *rng, size_t k, enum attack attack)
{
    const size_t victim = (size_t)kedge_rng_below(rng, u.count);
    is_bad[k] = true;
    for (size_t i = 0; i < u.dimension; i++) {
        int32_t low, high;
        range_of(i, &low, &high);
        const int32_t value[ATTACKS] = {
            [FLIP] = -8 * u.values[k][i],        [HUGE_ALIKE] = LIMIT,
            [HUGE_APART] = draw_int(rng, LIMIT), [EDGE] = high,
            [COPY] = u.values[victim][i],        [SPIKE] = i == 0 ? LIMIT : u.values[k][i],
            [SHIFT] = high + (high - low) / 4};
        u.values[k][i] = value[attack];
    }
}

/* The first `bad` of a random order; one attack for all, or one each. */
static void attack_updates(struct kedge_rng *rng, size_t bad)
{
    uint32_t order[UPDATES_MAX];
    for (uint32_t k = 0; k < u.count; k++) {
        order[k] = k;
    }
    kedge_rng_sample(rng, order, u.count, bad);
    const uint64_t one = kedge_rng_below(rng, ATTACKS + 1);
    for (size_t k = 0; k < bad; k++) {
        make_bad(rng, order[k], (enum attack)(one < ATTACKS ? one : kedge_rng_below(rng, ATTACKS)));
    }
}

static double distance(size_t a, size_t b)
{
    double sum = 0;
    for (size_t i = 0; i < u.dimension; i++) {
        const double d = (double)u.values[a][i] - u.values[b][i];
        sum += d * d;
    }
    return sqrt(sum);
}

static double length_of(size_t k)
{
    double sum = 0;
    for (size_t i = 0; i < u.dimension; i++) {
        sum += (double)u.values[k][i] * u.values[k][i];
    }
    return sqrt(sum);
}

/* ---- what rules promise ---- */

/* Rounding to float is monotone, so that the ends need no tolerance. */
static bool is_between_good(void)
{
    for (size_t i = 0; i < u.dimension; i++) {
        int32_t low, high;
        range_of(i, &low, &high);
        if (u.out[i] < (float)((double)low / 65536) || u.out[i] > (float)((double)high / 65536)) {
            return false;
        }
    }
    return true;
}

static bool is_a_width_from_good(void)
{
    for (size_t i = 0; i < u.dimension; i++) {
        int32_t low, high;
        range_of(i, &low, &high);
        const double width = (double)high - low, value = (double)u.out[i] * 65536, room = 1e-6 * fabs(value);
        if (value < low - width - room || value > high + width + room) {
            return false;
        }
    }
    return true;
}

/* Every update taken lies within D · sqrt((n − f − 2) / (n − 2f − 1)) of a good one. */
static bool is_near_good(size_t f)
{
    const double n = (double)u.count;
    double diameter = 0;
    for (size_t a = 0; a < u.count; a++) {
        for (size_t b = 0; b < a; b++) {
            const double d = distance(a, b);
            diameter = !is_bad[a] && !is_bad[b] && d > diameter ? d : diameter;
        }
    }
    const double bound = 1.01 * diameter * sqrt((n - (double)f - 2) / (n - 2 * (double)f - 1));
    for (size_t k = 0; k < u.count; k++) {
        bool near = u.weight[k] == 0;
        for (size_t j = 0; j < u.count; j++) {
            near = near || (!is_bad[j] && distance(k, j) <= bound);
        }
        if (!near) {
            return false;
        }
    }
    return true;
}

static double bad_share(const uint64_t *weight)
{
    double bad = 0, all = 0;
    for (size_t k = 0; k < u.count; k++) {
        bad += is_bad[k] ? (double)weight[k] : 0;
        all += (double)weight[k];
    }
    return bad / all;
}

/* Within 2 (1 − e) / (1 − 2e) · r of the good ones' mean. */
static bool is_central(void)
{
    double mean[DIMENSION_MAX] = {0}, off = 0, radius = 0, good = 0;
    for (size_t k = 0; k < u.count; k++) {
        good += is_bad[k] ? 0 : 1;
        for (size_t i = 0; i < u.dimension; i++) {
            mean[i] += is_bad[k] ? 0 : u.values[k][i];
        }
    }
    for (size_t i = 0; i < u.dimension; i++) {
        mean[i] /= good;
        const double d = (double)u.out[i] * 65536 - mean[i];
        off += d * d;
    }
    for (size_t k = 0; k < u.count; k++) {
        double sum = 0;
        for (size_t i = 0; i < u.dimension && !is_bad[k]; i++) {
            const double d = u.values[k][i] - mean[i];
            sum += d * d;
        }
        radius = sqrt(sum) > radius ? sqrt(sum) : radius;
    }
    const double e = bad_share(u.base);
    return sqrt(off) <= 1.01 * 2 * (1 - e) / (1 - 2 * e) * radius;
}

/* ---- one seed ---- */

/* The given one instead of all. */
static uint64_t given_seed(uint64_t seed)
{
    const char *given = getenv("SEED");
    return given ? strtoull(given, NULL, 10) : seed;
}

#define MUST(what, seed, name)                                                                           \
    do {                                                                                                 \
        if (!(what)) {                                                                                   \
            ck_abort_msg("SEED=%llu %s of %zu: %s", (unsigned long long)(seed), (name), u.count, #what); \
        }                                                                                                \
    } while (0)

/* Draws updates of which as many are bad as `rule` tolerates, and runs it. Returns f. */
static size_t run_attacked(const struct kedge_rule *rule, struct kedge_rule_params *params, uint64_t seed)
{
    struct kedge_rng rng = new_stream(6000 + seed);
    const size_t n = 3 + (size_t)kedge_rng_below(&rng, UPDATES_MAX - 3);
    params->fraction = 0.45 * kedge_rng_unit(&rng);
    while (rule->per_bad > 0 && tolerated_by(rule, params, n) == 0 && params->fraction * (double)n >= 1) {
        params->fraction *= 0.9; /* until there are votes enough */
    }
    draw_good(&rng, n);
    const size_t f = tolerated_by(rule, params, n);
    attack_updates(&rng, f < n ? f : n - 1);
    run_updates(rule, params, &u);
    return f;
}

START_TEST(coordinates_stay_between)
{
    static const char *const names[] = {"median", "trimmed-mean"};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        for (size_t r = 0; r < 2; r++) {
            struct kedge_rule_params params = {0, 0};
            const uint64_t use = given_seed(seed);
            (void)run_attacked(rule_of(names[r]), &params, use);
            MUST(is_between_good(), use, names[r]);
        }
    }
}
END_TEST

START_TEST(krum_stays_near)
{
    static const char *const names[] = {"krum", "multi-krum"};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        for (size_t r = 0; r < 2; r++) {
            struct kedge_rule_params params = {0, 0};
            const uint64_t use = given_seed(seed);
            const size_t f = run_attacked(rule_of(names[r]), &params, use);
            MUST(is_near_good(f), use, names[r]);
        }
    }
}
END_TEST

START_TEST(bulyan_stays_near)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kedge_rule_params params = {0, 0};
        const uint64_t use = given_seed(seed);
        (void)run_attacked(rule_of("bulyan"), &params, use);
        MUST(is_a_width_from_good(), use, "bulyan");
    }
}
END_TEST

START_TEST(centre_stays)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kedge_rule_params params = {0, 0};
        struct kedge_rng rng = new_stream(6100 + given_seed(seed));
        const size_t n = 3 + (size_t)kedge_rng_below(&rng, UPDATES_MAX - 3);
        draw_good(&rng, n);
        attack_updates(&rng, (size_t)kedge_rng_below(&rng, n / 2 + 1));
        if (bad_share(u.samples) < 0.49) {
            run_updates(rule_of("geometric-median"), &params, &u);
            MUST(is_central(), given_seed(seed), "geometric-median");
        }
    }
}
END_TEST

/* Against the same updates with nothing in the place of the bad ones. */
START_TEST(clipping_bounds)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        float with[DIMENSION_MAX];
        struct kedge_rng rng = new_stream(6200 + given_seed(seed));
        const size_t n = 3 + (size_t)kedge_rng_below(&rng, UPDATES_MAX - 3);
        const struct kedge_rule *rule = rule_of("norm-clipping");
        draw_good(&rng, n);
        attack_updates(&rng, (size_t)kedge_rng_below(&rng, n));
        struct kedge_rule_params params = {0, seed % 2 ? 0 : 0.01 + kedge_rng_unit(&rng)};
        run_updates(rule, &params, &u);
        memcpy(with, u.out, sizeof with);
        double bound = params.bound * 65536, longest = 0, off = 0;
        for (size_t k = 0; k < n; k++) {
            const double length = length_of(k);
            longest = !is_bad[k] && length > longest ? length : longest;
            if (is_bad[k]) {
                memset(u.values[k], 0, sizeof u.values[k]);
                u.weight[k] = 0;
            }
        }
        tile_updates(rule, &params, &u, 0, u.dimension);
        for (size_t i = 0; i < u.dimension; i++) {
            const double d = ((double)with[i] - (double)u.out[i]) * 65536;
            off += d * d;
        }
        const double e = bad_share(u.samples);
        bound = params.bound > 0 ? bound : longest;
        if (params.bound > 0 || e < 0.5) {
            MUST(sqrt(off) <= e * bound * (1 + 1e-5) + 1e-3, given_seed(seed), "norm-clipping");
        }
    }
}
END_TEST

/* Any number of bad updates; root data alone decide how far the model goes. */
START_TEST(root_bounds)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kedge_rule_params params = {0, 0};
        const uint64_t use = given_seed(seed);
        (void)run_attacked(rule_of("root-trust"), &params, use);
        double square = 0;
        for (size_t i = 0; i < u.dimension; i++) {
            square += (double)u.out[i] * 65536 * (double)u.out[i] * 65536;
        }
        MUST(sqrt(square) <= length_of(u.count) * (1 + 1e-5), use, "root-trust");
    }
}
END_TEST

/* A tenant with most of the sites, capped to a third of the votes, cannot take the median out of what the
 * others say, nor the trimmed mean, nor be Krum's choice. Without the cap it can. */
START_TEST(caps_hold)
{
    static const char *const names[] = {"median", "trimmed-mean", "krum", "multi-krum"};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kedge_rng rng = new_stream(6300 + given_seed(seed));
        const size_t n = 24 + (size_t)kedge_rng_below(&rng, UPDATES_MAX - 24), own = n / 2 + 2;
        draw_good(&rng, n);
        for (size_t k = 0; k < own; k++) {
            make_bad(&rng, k, HUGE_ALIKE);
        }
        for (size_t r = 0; r < 4; r++) {
            const struct kedge_rule *rule = rule_of(names[r]);
            struct kedge_share_input inputs[UPDATES_MAX];
            const struct kedge_rule_params params = {0.4, 0};
            run_updates(rule, &params, &u);
            MUST(!is_between_good(), given_seed(seed), names[r]);
            for (size_t k = 0; k < n; k++) {
                inputs[k] = (struct kedge_share_input){k < own ? 0 : (uint32_t)(1 + k % 5), u.base[k]};
            }
            ck_assert_int_eq(kedge_share_cap(inputs, n, KEDGE_SHARE_ONE / 3), KEDGE_OK);
            for (size_t k = 0; k < n; k++) {
                u.base[k] = inputs[k].weight;
            }
            ck_assert_ptr_eq(kedge_rule_effective(rule, &params, u.base, n), rule);
            ck_assert_int_eq(weigh_updates(rule, &params, &u, 0), KEDGE_OK);
            tile_updates(rule, &params, &u, 0, u.dimension);
            MUST(is_between_good(), given_seed(seed), names[r]);
        }
    }
}
END_TEST

/* The same attacks on the mean, and one bad update too many for the median. */
START_TEST(checks_can_fail)
{
    int mean_moved = 0, median_moved = 0, krum_moved = 0, centre_moved = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kedge_rule_params params = {0.2, 0};
        const struct kedge_rule *mean = rule_of("mean"), *median = rule_of("median"), *krum = rule_of("krum");
        struct kedge_rng rng = new_stream(6400 + seed);
        draw_good(&rng, 15);
        attack_updates(&rng, 3);
        run_updates(mean, &params, &u);
        mean_moved += !is_between_good();
        centre_moved += !is_central();
        draw_good(&rng, 15);
        attack_updates(&rng, 8);
        run_updates(median, &params, &u);
        median_moved += !is_between_good();
        run_updates(krum, &params, &u);
        krum_moved += !is_near_good(3);
    }
    ck_assert_int_gt(mean_moved, SEEDS / 3);
    ck_assert_int_gt(centre_moved, SEEDS / 3);
    ck_assert_int_gt(median_moved, SEEDS / 3);
    ck_assert_int_gt(krum_moved, SEEDS / 10);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {coordinates_stay_between,
                                  krum_stays_near,
                                  bulyan_stays_near,
                                  centre_stays,
                                  clipping_bounds,
                                  root_bounds,
                                  caps_hold,
                                  checks_can_fail,
                                  NULL};
    return run_tests("property/aggregation/rule", tests);
}
