#include "strategy/strategy.h"

#include <math.h>

#include "aggregation/share_cap.h"
#include "strategy/blend.h"
#include "strategy/server.h"
#include "tests/unit/aggregation/support.h"

START_TEST(rows_are_whole)
{
    ck_assert_uint_ge(kedge_strategy_count(), 20);
    for (size_t i = 0; i < kedge_strategy_count(); i++) {
        const struct kedge_strategy *s = kedge_strategy_at(i);
        ck_assert_ptr_eq(kedge_strategy_find(s->name), s); /* so no name twice */
        ck_assert(s->title[0] && s->what[0] && s->source[0] && s->uses && s->weigh);
        struct kedge_strategy_options options = s->defaults;
        size_t used = 0, words = s->uses[0] ? 1 : 0;
        for (size_t k = 0; k < KEDGE_STRATEGY_OPTION_COUNT; k++) {
            const struct kedge_strategy_option *o = kedge_strategy_option_at(k);
            ck_assert_int_eq(
                kedge_strategy_option_set(&options, o, kedge_strategy_option_get(&s->defaults, o)),
                KEDGE_OK); /* defaults are in range */
            used += kedge_strategy_uses(s, o);
        }
        for (const char *c = s->uses; *c; c++) {
            words += *c == ' ';
        }
        ck_assert_uint_eq(used, words); /* every word of `uses` is an option */
        ck_assert(!s->asynchronous || kedge_strategy_uses(s, kedge_strategy_option_find("buffer")));
        ck_assert(s->choose == KEDGE_CHOOSE_FIXED || s->grouping == KEDGE_GROUPING_KIND_FLEXCFL);
        ck_assert(s->server != KEDGE_SERVER_MOMENTUM
                  || kedge_strategy_uses(s, kedge_strategy_option_find("momentum")));
    }
    static const char *const names[] = {
        "fedavg",   "fedprox",      "scaffold",   "fednova", "fedavgm",      "fedadam", "fedyogi",
        "qffl",     "ditto",        "fedadagrad", "fedbuff", "ifca",         "fesem",   "cfl",
        "fedclust", "hierarchical", "flexcfl",    "rac",     "flexcfl-madc", "rcc",     "flexcfl-adaptive"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ck_assert_ptr_nonnull(kedge_strategy_find(names[i]));
    }
    ck_assert_ptr_null(kedge_strategy_find("fedprox "));
    ck_assert_ptr_null(kedge_strategy_find(""));
}
END_TEST

/* What a method says of itself is what a host can do; a row reads the options that its method plans by. */
START_TEST(local_methods)
{
    static const struct kedge_strategy_options none;
    for (size_t i = 0; i < kedge_strategy_count(); i++) {
        const struct kedge_strategy *s = kedge_strategy_at(i);
        const struct kedge_local *local = s->local;
        ck_assert(local && local->name[0]);
        ck_assert(local->kept || (!local->has_own_model && !local->variate));
        ck_assert(!local->has_head || (local->kept && !local->has_own_model && !local->variate));
        ck_assert(!local->is_head_first || local->has_head);
        ck_assert(!local->has_base || (!local->has_head && !local->has_own_model && !local->variate));
        ck_assert(!local->sends_nothing || local->has_own_model);
        ck_assert(s->comparison_only
                  || !(local->sends_nothing || local->is_judged_tuned)); /* no job does it */
        struct kedge_strategy_options o = {.proximal = 2, .personal = 5, .head_epochs = 7};
        struct kedge_local_plan plan = kedge_local_plan(local, &o), zero = kedge_local_plan(local, &none);
        ck_assert(plan.pull == (kedge_strategy_uses(s, kedge_strategy_option_find("proximal")) ? 2 : 0));
        ck_assert(plan.personal_pull
                  == (kedge_strategy_uses(s, kedge_strategy_option_find("personal")) ? 5 : 0));
        ck_assert_uint_eq(plan.head_epochs,
                          kedge_strategy_uses(s, kedge_strategy_option_find("head_epochs")) ? 7 : 0);
        ck_assert(zero.pull == 0 && zero.personal_pull == 0);
    }
    const struct kedge_local *scaffold = kedge_strategy_find("scaffold")->local;
    ck_assert_str_eq(scaffold->variate, "control");
    ck_assert(kedge_strategy_find("fedavg")->local != scaffold
              && !kedge_strategy_find("fedavg")->local->kept);
    ck_assert(kedge_strategy_find("ditto")->local->has_own_model);
    ck_assert(kedge_strategy_find("local")->local->sends_nothing);
    ck_assert(kedge_strategy_find("finetune")->local->is_judged_tuned);
}
END_TEST

START_TEST(options)
{
    struct kedge_strategy_options o = {.proximal = 1};
    const struct kedge_strategy_option *mu = kedge_strategy_option_find("proximal");
    ck_assert_int_eq(kedge_strategy_option_set(&o, mu, 0.5), KEDGE_OK);
    ck_assert(o.proximal == 0.5 && kedge_strategy_option_get(&o, mu) == 0.5);
    ck_assert_int_eq(kedge_strategy_option_set(&o, mu, -0.1), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_strategy_option_set(&o, mu, 1000.5), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_strategy_option_set(&o, mu, (double)NAN), KEDGE_E_ARG);
    ck_assert(o.proximal == 0.5);
    ck_assert_ptr_null(kedge_strategy_option_find("prox"));
    const struct kedge_strategy *prox = kedge_strategy_find("fedprox");
    ck_assert(kedge_strategy_uses(prox, mu));
    ck_assert(!kedge_strategy_uses(prox, kedge_strategy_option_find("server_lr")));
    /* "momentum" is not "second_moment", nor the other way round */
    const struct kedge_strategy *ada = kedge_strategy_find("fedadagrad");
    ck_assert(!kedge_strategy_uses(ada, kedge_strategy_option_find("second_moment")));
}
END_TEST

/* A step has directions estimated again, or trials, of each of its groups: of 64 groups both would not fit an
 * entry of a ledger (tests/unit/chain/test_entry_index.c). */
START_TEST(nobody_estimates_and_tries)
{
    const struct kedge_strategy_option *refresh = kedge_strategy_option_find("refresh");
    const struct kedge_strategy_option *trials = kedge_strategy_option_find("trial_every");
    size_t estimate = 0, try = 0;
    for (size_t i = 0; i < kedge_strategy_count(); i++) {
        const struct kedge_strategy *row = kedge_strategy_at(i);
        const bool may_estimate =
            kedge_strategy_uses(row, refresh) || kedge_strategy_option_get(&row->defaults, refresh) > 0;
        const bool may_try =
            kedge_strategy_uses(row, trials) || kedge_strategy_option_get(&row->defaults, trials) > 0;
        ck_assert_msg(!may_estimate || !may_try, "%s", row->name);
        estimate += may_estimate;
        try += may_try;
    }
    ck_assert(estimate > 0 && try > 0);
}
END_TEST

static const struct kedge_strategy_options none;

/* Shares that the whole numbers stand for. */
static void weigh(kedge_strategy_weigh_fn *fn, const struct kedge_strategy_options *o,
                  const struct kedge_strategy_input *in, size_t n, double *share)
{
    uint64_t weight[64], divisor = 0;
    ck_assert_int_eq(fn(o, in, n, 0.1, weight, &divisor), KEDGE_OK);
    ck_assert(divisor >= 1 && divisor <= UINT64_C(1) << 44);
    for (size_t i = 0; i < n; i++) {
        ck_assert(weight[i] >= 1 && weight[i] < UINT64_C(1) << 31);
        share[i] = (double)weight[i] / (double)divisor;
    }
}

static void close_to(const double *got, const double *want, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ck_assert(fabs(got[i] - want[i]) <= 1e-5 * fabs(want[i]));
    }
}

START_TEST(samples_and_equal)
{
    const struct kedge_strategy_input in[2] = {{.samples = 30, .steps = 1}, {.samples = 10, .steps = 1}};
    uint64_t weight[2], divisor = 0;
    ck_assert_int_eq(kedge_weigh_samples(&none, in, 2, 0.1, weight, &divisor), KEDGE_OK);
    ck_assert(weight[0] == 30 && weight[1] == 10 && divisor == 40);
    ck_assert_int_eq(kedge_weigh_equal(&none, in, 2, 0.1, weight, &divisor), KEDGE_OK);
    ck_assert(weight[0] == 1 && weight[1] == 1 && divisor == 2);
    ck_assert_int_eq(kedge_weigh_first(&none, in, 2, 0.1, weight, &divisor), KEDGE_OK);
    ck_assert(weight[0] == 1 && weight[1] == 0 && divisor == 1);
    struct kedge_strategy_input bad = {.samples = 0, .steps = 1};
    ck_assert_int_eq(kedge_weigh_samples(&none, &bad, 1, 0.1, weight, &divisor), KEDGE_E_ARG);
    bad.samples = UINT64_C(1) << 31;
    ck_assert_int_eq(kedge_weigh_samples(&none, &bad, 1, 0.1, weight, &divisor), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_weigh_samples(&none, in, 0, 0.1, weight, &divisor), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_weigh_equal(&none, in, 0, 0.1, weight, &divisor), KEDGE_E_ARG);
    ck_assert(weight[0] == 1 && divisor == 1);
}
END_TEST

/* p = 3/4, 1/4; a = 10, 40: Σ p a = 17.5; shares p · 17.5 / a = 1.3125, 0.109375, not 1 in all. */
START_TEST(fednova_by_hand)
{
    const struct kedge_strategy_input in[2] = {{.samples = 30, .steps = 10}, {.samples = 10, .steps = 40}};
    double share[64];
    const double want[2] = {1.3125, 0.109375};
    weigh(kedge_weigh_fednova, &none, in, 2, share);
    close_to(share, want, 2);
    const struct kedge_strategy_input alike[2] = {{.samples = 30, .steps = 7}, {.samples = 10, .steps = 7}};
    const double mean[2] = {0.75, 0.25};
    weigh(kedge_weigh_fednova, &none, alike, 2, share);
    close_to(share, mean, 2);
    /* p = 1/4 each; a = 10, 10, 10, 1000: Σ p a = 257.5, but at most 16 · 10; shares 4, 0.04, 4, 4 */
    const struct kedge_strategy_input one_far[4] = {{.samples = 5, .steps = 10},
                                                    {.samples = 5, .steps = 1000},
                                                    {.samples = 5, .steps = 10},
                                                    {.samples = 5, .steps = 10}};
    const double bounded[4] = {4, 10486 / 0x1p18, 4, 4}, pair[2] = {1.3125, 0.109375};
    uint64_t weights[4], parts;
    ck_assert_int_eq(kedge_weigh_fednova_bounded(one_far, 4, KEDGE_FEDNOVA_MEDIANS, weights, &parts),
                     KEDGE_OK);
    for (size_t i = 0; i < 4; i++) {
        share[i] = (double)weights[i] / (double)parts;
    }
    close_to(share, bounded, 4);
    ck_assert_int_eq(kedge_weigh_fednova_bounded(in, 2, KEDGE_FEDNOVA_MEDIANS, weights, &parts), KEDGE_OK);
    share[0] = (double)weights[0] / (double)parts;
    share[1] = (double)weights[1] / (double)parts;
    close_to(share, pair, 2); /* nobody is far off: as it was */
    struct kedge_rng rng = new_stream(1);
    for (int run = 0; run < 200; run++) { /* against the formula, extremes too */
        struct kedge_strategy_input some[64];
        double samples = 0.0, work = 0.0, exact[64];
        const size_t n = 1 + (size_t)kedge_rng_below(&rng, 64);
        for (size_t i = 0; i < n; i++) {
            some[i] = (struct kedge_strategy_input){
                .samples = 1 + kedge_rng_below(&rng, UINT64_C(1) << kedge_rng_below(&rng, 20)),
                .steps = 1 + kedge_rng_below(&rng, UINT64_C(1) << kedge_rng_below(&rng, 20))};
            samples += (double)some[i].samples;
            work += (double)some[i].samples * (double)some[i].steps;
        }
        double most = 0.0;
        for (size_t i = 0; i < n; i++) {
            exact[i] = (double)some[i].samples * work / (samples * samples * (double)some[i].steps);
            most = exact[i] > most ? exact[i] : most;
        }
        if (most > KEDGE_WEIGHT_ONE) {
            continue;
        }
        weigh(kedge_weigh_fednova, &none, some, n, share);
        for (size_t i = 0; i < n; i++) { /* half a part of 2^20 of the largest, at least one part */
            ck_assert(fabs(share[i] - exact[i]) <= most * 2.1e-6);
        }
    }
    const struct kedge_strategy_input bad = {.samples = 3, .steps = 0};
    uint64_t weight, divisor;
    ck_assert_int_eq(kedge_weigh_fednova(&none, &bad, 1, 0.1, &weight, &divisor), KEDGE_E_ARG);
    const struct kedge_strategy_input odd = {.samples = 3, .steps = 1, .rate = (double)NAN};
    ck_assert_int_eq(kedge_weigh_fednova(&none, &odd, 1, 0.1, &weight, &divisor), KEDGE_E_ARG);
}
END_TEST

/* Sites that learn at rates of their own: 40 steps of 0.1 go as far as 10 of 0.4, so both weigh as their
 * samples do; 10 of 0.1 and 40 of 0.1 are the pair above, in any unit of the rate. */
START_TEST(fednova_divides_by_rates)
{
    double share[2];
    const struct kedge_strategy_input alike[2] = {{.samples = 30, .steps = 10, .rate = 0.4},
                                                  {.samples = 10, .steps = 40, .rate = 0.1}};
    const double mean[2] = {0.75, 0.25}, pair[2] = {1.3125, 0.109375};
    weigh(kedge_weigh_fednova, &none, alike, 2, share);
    close_to(share, mean, 2);
    const struct kedge_strategy_input one[2] = {{.samples = 30, .steps = 10, .rate = 0.1},
                                                {.samples = 10, .steps = 40, .rate = 0.1}};
    weigh(kedge_weigh_fednova, &none, one, 2, share);
    close_to(share, pair, 2);
}
END_TEST

/* lr 0.1, L = 10; F = 4, 1; ‖Δ‖² = 0.04, 0.01, ‖G‖² = 4, 1.
 * q = 1: L F = 40, 10; h = 4 + 40, 1 + 10: Σ = 55. q = 1/2: L √F = 20, 10; h = ½ · ½ · 4 + 20, ½ + 10: Σ
 * = 31.5. q = 3/2: L F^1.5 = 80, 10; h = 1.5 · 2 · 4 + 80, 1.5 + 10: Σ = 103.5. */
START_TEST(qffl_by_hand)
{
    struct kedge_strategy_input in[2] = {{.samples = 1, .steps = 1, .loss = 4, .norm_sq = 0.04},
                                         {.samples = 1, .steps = 1, .loss = 1, .norm_sq = 0.01}};
    static const double q[4] = {0, 0.5, 1, 1.5};
    static const double want[4][2] = {
        {0.5, 0.5}, {20 / 31.5, 10 / 31.5}, {40 / 55.0, 10 / 55.0}, {80 / 103.5, 10 / 103.5}};
    double share[2];
    struct kedge_strategy_options o = {.fairness = 0};
    for (int i = 0; i < 4; i++) {
        o.fairness = q[i];
        weigh(kedge_weigh_qffl, &o, in, 2, share);
        close_to(share, want[i], 2);
    }
    uint64_t weight[2], divisor;
    o.fairness = 0.3; /* not in halves */
    ck_assert_int_eq(kedge_weigh_qffl(&o, in, 2, 0.1, weight, &divisor), KEDGE_E_ARG);
    o.fairness = 1;
    ck_assert_int_eq(kedge_weigh_qffl(&o, in, 2, 0, weight, &divisor), KEDGE_E_ARG);
    in[1].loss = 0; /* counts 1e-10 */
    in[1].norm_sq = 0;
    weigh(kedge_weigh_qffl, &o, in, 2, share);
    ck_assert(share[1] < 1e-5);
    in[1].loss = (double)NAN;
    ck_assert_int_eq(kedge_weigh_qffl(&o, in, 2, 0.1, weight, &divisor), KEDGE_E_ARG);
    in[1].loss = -1;
    ck_assert_int_eq(kedge_weigh_qffl(&o, in, 2, 0.1, weight, &divisor), KEDGE_E_ARG);
}
END_TEST

START_TEST(fedbuff_by_hand)
{
    const struct kedge_strategy_input in[3] = {{.samples = 9, .steps = 1},
                                               {.samples = 1, .steps = 1, .staleness = 3},
                                               {.samples = 1, .steps = 1, .staleness = 8}};
    const double want[3] = {1 / 3.0, 0.5 / 3.0, 1 / 9.0};
    double share[3];
    weigh(kedge_weigh_fedbuff, &none, in, 3, share);
    close_to(share, want, 3);
}
END_TEST

/* What every row makes of a model of one value, 1, in two rounds with its own defaults: site A, 30 samples,
 * 10 steps, loss 4, brings +1; site B, 10 samples, 40 steps, loss 1, 3 rounds stale, brings −1. Mean updates:
 * by samples (30 − 10) / 40, equal 0, FedNova 1.3125 − 0.109375, q-FFL (40 − 10) / 55, FedBuff (1 − 1/2) / 2.
 */
static const struct {
    const char *name;
    double first, second;
} by_hand[] = {
    {"fedavg", 1.5, 2},
    {"fedprox", 1.5, 2},
    {"scaffold", 1.5, 2},
    {"fednova", 2.203125, 3.40625},
    {"fedavgm", 1.05, 1.145}, /* 0.1 · 0.5, 0.1 · (0.9 · 0.5 + 0.5) */
    /* 0.1 · 0.5 / (√0.25 + 0.001), 0.1 · 0.5 / (√0.5 + 0.001) */
    {"fedadagrad", 1.0998004, 1.1704112},
    /* m 0.05, 0.095; v 0.0025, 0.0025 + 0.0025; 0.01 · m / (√v + 0.001) */
    {"fedyogi", 1.0098039, 1.0230516},
    /* m as above; v 0.0025, 0.99 · 0.0025 + 0.0025; 0.1 · m / (√v + 0.001) */
    {"fedadam", 1.0980392, 1.2308437},
    {"qffl", 1.5454545, 2.0909091},
    {"fedbuff", 1.25, 1.5},
    {"ditto", 1.5, 2},
    {"fedper", 1.5, 2},
    {"fedrep", 1.5, 2},
    {"adapters", 1.5, 2},
    {"finetune", 1.5, 2},
    {"local", 1.5, 2},
    {"hierarchical", 1.5, 2},
    {"ifca", 1, 1},
    {"ifca-as-released", 2, 3},
    {"fesem", 1, 1},
    {"fesem-as-released", 2, 3},
    {"cfl", 1.5, 2},
    {"fedclust", 1.5, 2},
    {"flexcfl", 1.5, 2},
    {"flexcfl-plain", 1.5, 2},
    {"flexcfl-madc", 1.5, 2},
    {"rac", 1.5, 2},
    {"rcc", 1.5, 2},
    {"flexcfl-adaptive", 1.5, 2},
};
enum { BY_HAND = sizeof by_hand / sizeof by_hand[0] };

START_TEST(rows_by_hand)
{
    const struct kedge_strategy_input in[2] = {
        {.samples = 30, .steps = 10, .loss = 4, .norm_sq = 0.04},
        {.samples = 10, .steps = 40, .loss = 1, .norm_sq = 0.01, .staleness = 3}};
    ck_assert_uint_eq(kedge_strategy_count(), BY_HAND);
    for (size_t i = 0; i < BY_HAND; i++) {
        const struct kedge_strategy *s = kedge_strategy_find(by_hand[i].name);
        ck_assert_msg(s != NULL, "%s", by_hand[i].name);
        uint64_t weight[2], divisor;
        float x = 1, m = 0, v = 0;
        float *const state[KEDGE_SERVER_STATES_MAX] = {&m, &v};
        ck_assert_int_eq(s->weigh(&s->defaults, in, 2, 0.1, weight, &divisor), KEDGE_OK);
        const double mean = ((double)weight[0] - (double)weight[1]) / (double)divisor;
        for (int round = 0; round < 2; round++) {
            const double want = round == 0 ? by_hand[i].first : by_hand[i].second;
            float aggregate = (float)((double)x + mean);
            const struct kedge_strategy_options now = kedge_server_options(&s->defaults, (uint32_t)round + 1);
            ck_assert_int_eq(kedge_server_step(s->server, &now, &x, &aggregate, state, 1, &x), KEDGE_OK);
            ck_assert_msg(fabs((double)x - want) < 3e-6, "%s, round %d: %.9g, expected %.9g", s->name,
                          round + 1, (double)x, want);
        }
    }
}
END_TEST

/* One tenant of three quarters held to a half: its weight falls to the others', the divisor in proportion. */
START_TEST(cap_keeps_the_step)
{
    uint64_t weight[4] = {300, 300, 100, 100}, divisor = 1600; /* a strategy that takes half steps */
    const uint32_t tenant[4] = {0, 0, 1, 2};
    ck_assert_int_eq(kedge_strategy_cap(weight, tenant, 4, KEDGE_SHARE_ONE / 2, &divisor), KEDGE_OK);
    ck_assert(weight[0] == 100 && weight[1] == 100 && weight[2] == 100 && weight[3] == 100);
    ck_assert_uint_eq(divisor, 800);
    ck_assert_int_eq(kedge_strategy_cap(weight, tenant, 4, KEDGE_SHARE_ONE, &divisor), KEDGE_OK);
    ck_assert_uint_eq(divisor, 800);
    divisor = 0;
    ck_assert_int_eq(kedge_strategy_cap(weight, tenant, 4, KEDGE_SHARE_ONE, &divisor), KEDGE_E_ARG);
    divisor = 7;
    ck_assert_int_eq(kedge_strategy_cap(weight, tenant, 4, 0, &divisor), KEDGE_E_ARG);
    ck_assert_uint_eq(divisor, 7);
    weight[0] = 0;
    ck_assert_int_eq(kedge_strategy_cap(weight, tenant, 4, KEDGE_SHARE_ONE, &divisor), KEDGE_E_ARG);
    kedge_mem_fail_at(1);
    ck_assert_int_eq(kedge_strategy_cap(weight, tenant, 4, KEDGE_SHARE_ONE, &divisor), KEDGE_E_NOMEM);
    kedge_mem_fail_at(0);
}
END_TEST

START_TEST(blending)
{
    const float a[3] = {1, 2, 0.1f}, b[3] = {3, 6, 0.2f};
    const float *models[3] = {a, NULL, b};
    const uint64_t weight[3] = {1, 0, 3}, only[3] = {5, 0, 0}, zero[3] = {0};
    float out[3];
    ck_assert_int_eq(kedge_blend_tile(models, weight, 3, 0, 3, out), KEDGE_OK);
    ck_assert(out[0] == 2.5f && out[1] == 5.0f);
    ck_assert(out[2] == (float)((1.0 * (double)a[2] + 3.0 * (double)b[2]) / 4.0));
    ck_assert_int_eq(kedge_blend_tile(models, only, 3, 1, 2, out), KEDGE_OK);
    ck_assert(out[0] == 2.0f && out[1] == 0.1f);
    ck_assert_int_eq(kedge_blend_tile(models, zero, 3, 0, 3, out), KEDGE_E_ARG);
    const uint64_t huge[3] = {UINT64_C(1) << 53, 0, 1};
    ck_assert_int_eq(kedge_blend_tile(models, huge, 3, 0, 3, out), KEDGE_E_ARG);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {rows_are_whole,
                                  local_methods,
                                  nobody_estimates_and_tries,
                                  options,
                                  samples_and_equal,
                                  fednova_by_hand,
                                  fednova_divides_by_rates,
                                  qffl_by_hand,
                                  fedbuff_by_hand,
                                  cap_keeps_the_step,
                                  blending,
                                  rows_by_hand,
                                  NULL};
    return run_tests("strategy/strategy", tests);
}
