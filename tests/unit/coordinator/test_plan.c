/* Figures of the published setting stand in the project's requirements, where they were solved by another
 * program. */
#include <math.h>
#include <string.h>

#include "common/base/rng.h"
#include "coordinator/plan/plan.h"
#include "tests/fixtures/run.h"

static const struct {
    double latency_weight, charge_per_round, optimum, one_step,
        priced; /* the last two: parts of the optimum */
} rows[] = {
    {3, 1, 4.91176, 1, 1},
    {3, 0.5, 3.03214, 1, 1},
    {3, 0.3, 1.65911, 0.984, 0.9998},
    {3, 0.15, 0.51182, 0.929, 0.994},
    {12, 1, 3.81214, 0.882, 1},
    {12, 0.5, 2.14382, 0.769, 0.998},
    {12, 0.3, 1.01907, 0.616, 0.984},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

START_TEST(three_devices_by_the_table)
{
    for (size_t i = 0; i < ROWS; i++) {
        const struct kedge_plan_setting s =
            kedge_plan_setting_published(rows[i].latency_weight, rows[i].charge_per_round);
        double optimum = 0, price = -1;
        struct kedge_plan_value plain, priced;
        ck_assert_int_eq(kedge_plan_check(&s, NULL), KEDGE_OK);
        ck_assert_int_eq(kedge_plan_optimum(&s, 3, &optimum), KEDGE_OK);
        ck_assert_int_eq(kedge_plan_evaluate(&s, 3, 0, &plain), KEDGE_OK);
        ck_assert_int_eq(kedge_plan_price(&s, 3, &price, &priced), KEDGE_OK);
        ck_assert_double_eq_tol(optimum, rows[i].optimum, 1e-4);
        ck_assert_double_eq_tol(plain.reward / optimum, rows[i].one_step, 6e-4);
        ck_assert_double_ge(priced.reward / optimum, rows[i].priced - 6e-4);
        ck_assert_double_le(priced.reward, optimum + 1e-9);
        ck_assert_double_ge(priced.reward, plain.reward);
        ck_assert(rows[i].one_step < 1 ? price > 0 : price <= 0);
    }
}
END_TEST

START_TEST(little_energy_per_unit_in_the_published_setting)
{
    const struct kedge_plan_setting s = kedge_plan_setting_published(3, 1);
    struct kedge_plan_value v;
    ck_assert_int_eq(kedge_plan_evaluate(&s, 3, 0, &v), KEDGE_OK);
    ck_assert_double_le(v.energy / v.data, 0.34);
    ck_assert_double_eq_tol(1000 / v.data, 160, 1); /* rounds to a thousand units */
}
END_TEST

START_TEST(rates)
{
    static const double terms[] = {-0.7552, -0.6808, -0.6778, -0.6846};
    struct kedge_plan_setting s = kedge_plan_setting_published(3, 1);
    double reward;
    ck_assert_uint_eq(kedge_plan_rate(&s, &reward), 7);
    for (uint32_t rate = 5; rate <= 8; rate++) {
        s.rate_least = s.rate_most = rate;
        ck_assert_uint_eq(kedge_plan_rate(&s, &reward), rate);
        ck_assert_double_eq_tol(reward + s.cost_per_second * s.fixed_seconds, terms[rate - 5], 5e-5);
    }
    static const uint32_t by_arrivals[] = {8, 6, 6};
    for (uint32_t arrivals = 1; arrivals <= 3; arrivals++) {
        s = kedge_plan_setting_published(3, 1);
        s.arrivals_per_hour = arrivals;
        ck_assert_uint_eq(kedge_plan_rate(&s, &reward), by_arrivals[arrivals - 1]);
    }
    s = kedge_plan_setting_published(12, 1);
    ck_assert_uint_eq(kedge_plan_rate(&s, &reward), 8);
    s = kedge_plan_setting_published(1, 1);
    ck_assert_uint_eq(kedge_plan_rate(&s, &reward), 5);
}
END_TEST

/* Worth of choices, by the formulas and nothing else; -INFINITY when a device cannot. */
static double worth_of(const struct kedge_plan_setting *s, const struct kedge_plan_device *devices,
                       const struct kedge_plan_choice *choices, uint32_t count, double price)
{
    double worth = 0, slowest = 0;
    for (uint32_t i = 0; i < count; i++) {
        const double d = choices[i].data, e = choices[i].energy;
        if (choices[i].energy > devices[i].charge || (choices[i].data == 0) != (choices[i].energy == 0)) {
            return -INFINITY;
        }
        const double hertz =
            e > 0 ? sqrt(e * s->joules_per_unit / (s->capacitance * s->cycles_per_unit * d)) : 0;
        if (hertz > s->hertz_per_share * devices[i].share) {
            return -INFINITY;
        }
        if (e > 0) {
            slowest = fmax(slowest, s->cycles_per_unit * d / hertz);
        }
        const double left = devices[i].charge - e;
        double mean = 0, p = exp(-s->charge_per_round), rest = 1;
        for (int came = 0; left + came < s->charge_levels; came++) {
            mean += p * (left + came);
            rest -= p;
            p *= s->charge_per_round / (came + 1);
        }
        mean += rest * s->charge_levels;
        worth += s->reward_per_data * d - s->cost_per_energy * e + price * mean;
    }
    return worth - s->cost_per_second * slowest;
}

START_TEST(no_other_choice_is_better)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 7, KEDGE_RNG_TEST, 0, 0);
    for (int trial = 0; trial < 400; trial++) {
        struct kedge_plan_setting s = kedge_plan_setting_published((double)kedge_rng_below(&rng, 15),
                                                                   0.1 * (double)kedge_rng_below(&rng, 15));
        const double price = 0.3 * (double)kedge_rng_below(&rng, 10);
        const uint32_t count = 1 + (uint32_t)kedge_rng_below(&rng, 3);
        struct kedge_plan_device devices[3];
        struct kedge_plan_choice chosen[3], other[3];
        for (uint32_t i = 0; i < count; i++) {
            devices[i] = (struct kedge_plan_device){(uint32_t)kedge_rng_below(&rng, 4),
                                                    (uint32_t)kedge_rng_below(&rng, 4)};
        }
        ck_assert_int_eq(kedge_plan_round(&s, devices, count, price, chosen), KEDGE_OK);
        const double worth = worth_of(&s, devices, chosen, count, price);
        double best = -INFINITY;
        for (uint32_t all = 0; all < 16 * 16 * 16; all++) {
            for (uint32_t i = 0; i < count; i++) {
                other[i] =
                    (struct kedge_plan_choice){.data = all >> (4 * i) & 3, .energy = all >> (4 * i + 2) & 3};
            }
            best = fmax(best, worth_of(&s, devices, other, count, price));
        }
        ck_assert_double_eq_tol(worth, best, 1e-9);
    }
}
END_TEST

START_TEST(a_thousand_devices)
{
    enum { MANY = 1000 };
    static struct kedge_plan_device devices[MANY];
    static struct kedge_plan_choice chosen[MANY], other[MANY];
    struct kedge_plan_setting s = kedge_plan_setting_published(12, 0.5);
    struct kedge_rng rng;
    s.cost_per_second *= 40; /* so that the slowest matters among so many */
    kedge_rng_init(&rng, 8, KEDGE_RNG_TEST, 0, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        devices[i] = (struct kedge_plan_device){(uint32_t)kedge_rng_below(&rng, 4),
                                                (uint32_t)kedge_rng_below(&rng, 4)};
    }
    ck_assert_int_eq(kedge_plan_round(&s, devices, MANY, 0.5, chosen), KEDGE_OK);
    const double worth = worth_of(&s, devices, chosen, MANY, 0.5);
    ck_assert(isfinite(worth));
    for (int trial = 0; trial < 2000; trial++) { /* nobody does better alone */
        const uint32_t i = (uint32_t)kedge_rng_below(&rng, MANY);
        memcpy(other, chosen, sizeof other);
        other[i] = (struct kedge_plan_choice){.data = (uint32_t)kedge_rng_below(&rng, 4),
                                              .energy = (uint32_t)kedge_rng_below(&rng, 4)};
        ck_assert_double_le(worth_of(&s, devices, other, MANY, 0.5), worth + 1e-9);
    }
}
END_TEST

START_TEST(one_and_four_devices)
{
    for (uint32_t count = 1; count <= 4; count += 3) {
        struct kedge_plan_setting s = kedge_plan_setting_published(12, 0.3);
        double optimum, price;
        struct kedge_plan_value plain, priced;
        s.charge_levels = s.energy_levels = 2;
        ck_assert_int_eq(kedge_plan_optimum(&s, count, &optimum), KEDGE_OK);
        ck_assert_int_eq(kedge_plan_evaluate(&s, count, 0, &plain), KEDGE_OK);
        ck_assert_int_eq(kedge_plan_price(&s, count, &price, &priced), KEDGE_OK);
        ck_assert(plain.reward <= priced.reward && priced.reward <= optimum + 1e-9);
        ck_assert_double_ge(priced.energy, 0);
        ck_assert_double_le(priced.energy, 0.3 * count + 1e-9); /* no more than arrives */
    }
}
END_TEST

START_TEST(anchors)
{
    const double interval = kedge_plan_anchor_interval(18, 0.01);
    ck_assert_double_eq_tol(interval, 60, 1e-9);
    for (int other = 10; other < 600; other += 10) { /* 0.01 * T / 2 + 18 / T */
        ck_assert_double_ge(0.01 * other / 2 + 18.0 / other, 0.01 * interval / 2 + 18 / interval - 1e-12);
    }
    ck_assert_double_le(kedge_plan_anchor_interval(0, 0.01), 0);
    ck_assert_double_le(kedge_plan_anchor_interval(18, 0), 0);
}
END_TEST

START_TEST(what_is_refused)
{
    struct kedge_plan_setting s = kedge_plan_setting_published(3, 1);
    struct kedge_plan_device device = {1, 1};
    struct kedge_plan_choice choice;
    struct kedge_plan_value value;
    struct kedge_diag d = {.text = ""};
    double reward;
    ck_assert_int_eq(kedge_plan_round(&s, &device, 0, 0, &choice), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_plan_optimum(&s, 0, &reward), KEDGE_E_ARG);
    ck_assert_int_eq(kedge_plan_optimum(&s, 5, &reward), KEDGE_E_ARG);
    s.charge_levels = 8; /* 9 * 9 * 9 charges */
    ck_assert_int_eq(kedge_plan_evaluate(&s, 3, 0, &value), KEDGE_E_ARG);
    s.charge_levels = 9;
    ck_assert_int_eq(kedge_plan_check(&s, &d), KEDGE_E_ARG);
    ck_assert_ptr_nonnull(strstr(d.text, "charge_levels"));
    s = kedge_plan_setting_published(3, 1);
    s.cost_per_second = NAN;
    ck_assert_int_eq(kedge_plan_check(&s, &d), KEDGE_E_ARG);
    ck_assert_ptr_nonnull(strstr(d.text, "cost_per_second"));
    s = kedge_plan_setting_published(3, 1);
    s.arrivals_per_hour = 5;
    ck_assert_int_eq(kedge_plan_check(&s, &d), KEDGE_E_ARG);
    ck_assert_ptr_nonnull(strstr(d.text, "arrivals"));
    s.arrivals_per_hour = 4;
    s.rate_most = 68;
    ck_assert_int_eq(kedge_plan_check(&s, &d), KEDGE_OK);
    s.rate_most = 69;
    ck_assert_int_eq(kedge_plan_check(&s, &d), KEDGE_E_ARG);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("coordinator/plan");
    TCase *tests = tcase_create("plan");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, three_devices_by_the_table);
    tcase_add_test(tests, little_energy_per_unit_in_the_published_setting);
    tcase_add_test(tests, rates);
    tcase_add_test(tests, no_other_choice_is_better);
    tcase_add_test(tests, a_thousand_devices);
    tcase_add_test(tests, one_and_four_devices);
    tcase_add_test(tests, anchors);
    tcase_add_test(tests, what_is_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
