#include "client/energy/profile.h"

#include <math.h>

#include "tests/unit/base/check.h"

/* A device whose time grows below 150 W and whose energy has its least at 150 W: 100 W cost more again. */
static void measure(struct kedge_profile *p, uint32_t i)
{
    static const double seconds[] = {1, 1.02, 1.05, 1.06, 1.2, 1.5, 2.6};
    const double w[] = {240, 215, 195, 172, 148, 124, 99};
    kedge_profile_saw(p, i, 10, 10 * seconds[i], 10 * seconds[i] * w[i]);
}

static struct kedge_profile measured(const struct kedge_profile_options *o)
{
    struct kedge_profile p;
    bool tries = true;
    ck_assert_int_eq(kedge_profile_init(&p, true, 250, 100), KEDGE_OK);
    ck_assert_uint_eq(p.count, 7);
    for (int i = 0; i < 20 && tries; i++) {
        const uint32_t at = kedge_profile_choose(&p, o, &tries);
        ck_assert(!tries || p.levels[at].windows == 0);
        if (tries) {
            measure(&p, at);
        }
    }
    ck_assert(!tries);
    return p;
}

START_TEST(each_rule_by_hand)
{
    static const struct {
        enum kedge_profile_rule rule;
        double eta, slowdown, time_s, level;
    } cases[] = {{KEDGE_RULE_POWER_ENERGY, 0.5, 1, 0, 150},   {KEDGE_RULE_POWER_COST, 1, 1, 0, 150},
                 {KEDGE_RULE_POWER_COST, 0, 1, 0, 250},       {KEDGE_RULE_POWER_COST, 0.5, 1, 0, 175},
                 {KEDGE_RULE_POWER_SLOWDOWN, 1, 1.1, 0, 175}, {KEDGE_RULE_POWER_SLOWDOWN, 1, 1.03, 0, 225},
                 {KEDGE_RULE_POWER_DEADLINE, 1, 1, 106, 175}, {KEDGE_RULE_POWER_DEADLINE, 1, 1, 1000, 150}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kedge_profile_options o = {.rule = cases[i].rule,
                                          .eta = cases[i].eta,
                                          .power_max_w = 250,
                                          .slowdown = cases[i].slowdown,
                                          .work = 100};
        struct kedge_profile p = measured(&o);
        bool tries;
        o.time_s = cases[i].time_s;
        const uint32_t at = kedge_profile_choose(&p, &o, &tries);
        ck_assert_msg(fabs(p.levels[at].level - cases[i].level) < 0.1, "case %zu: %g", i, p.levels[at].level);
    }
}
END_TEST

/* No level is tried that may miss the round's end; with nothing in time the highest is used. */
START_TEST(deadlines_bound_tries)
{
    struct kedge_profile_options o = {.rule = KEDGE_RULE_POWER_ENERGY,
                                      .eta = 1,
                                      .power_max_w = 250,
                                      .slowdown = 1,
                                      .work = 100,
                                      .time_s = 120};
    struct kedge_profile p = measured(&o);
    ck_assert(p.levels[0].windows == 1 && p.levels[1].windows == 0);
    bool tries;
    o.time_s = 10;
    ck_assert_uint_eq(kedge_profile_choose(&p, &o, &tries), 0);
}
END_TEST

START_TEST(windows_are_trusted_or_not)
{
    struct kedge_profile p;
    ck_assert_int_eq(kedge_profile_init(&p, false, 4, 1), KEDGE_OK);
    ck_assert_uint_eq(p.count, 4);
    kedge_profile_saw(&p, 0, 10, 0.9, 100);
    kedge_profile_saw(&p, 0, 10, 2, (double)NAN);
    kedge_profile_saw(&p, 9, 10, 2, 100);
    ck_assert_uint_eq(p.levels[0].windows, 0);
    kedge_profile_saw(&p, 0, 10, 2, 100);
    ck_assert_uint_eq(p.levels[0].windows, 1);
    ck_assert(kedge_profile_init(&p, true, 100, 120) == KEDGE_E_ARG
              && kedge_profile_init(&p, true, 100, 0) == KEDGE_E_ARG);
    ck_assert_int_eq(kedge_profile_init(&p, true, 120, 100), KEDGE_OK);
    ck_assert(p.count == 2 && fabs(p.levels[1].level - 100) < 1e-9);
}
END_TEST

START_TEST(rules_have_names)
{
    enum kedge_profile_rule rule;
    double slowdown = 0;
    ck_assert(kedge_profile_rule_parse("cost", &rule, &slowdown) == KEDGE_OK
              && rule == KEDGE_RULE_POWER_COST);
    ck_assert(kedge_profile_rule_parse("energy", &rule, &slowdown) == KEDGE_OK
              && rule == KEDGE_RULE_POWER_ENERGY);
    ck_assert(kedge_profile_rule_parse("deadline", &rule, &slowdown) == KEDGE_OK
              && rule == KEDGE_RULE_POWER_DEADLINE);
    ck_assert(kedge_profile_rule_parse("slowdown=1.1", &rule, &slowdown) == KEDGE_OK
              && fabs(slowdown - 1.1) < 1e-12);
    ck_assert(kedge_profile_rule_parse("slowdown=0.9", &rule, &slowdown)
              && kedge_profile_rule_parse("slowdown=", &rule, &slowdown)
              && kedge_profile_rule_parse("fast", &rule, &slowdown));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {each_rule_by_hand, deadlines_bound_tries, windows_are_trusted_or_not,
                                  rules_have_names};
    return run_suite("profile", tests, sizeof tests / sizeof tests[0]);
}
