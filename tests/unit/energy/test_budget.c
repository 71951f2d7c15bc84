#include "client/energy/budget.h"

#include <math.h>
#include <string.h>

#include "common/base/rng.h"
#include "tests/unit/base/check.h"

static const struct kedge_budget_clock noon = {100, 720};
static const struct kedge_id job_a = {"a"}, job_b = {"b"};

static void round_of(const struct kedge_budget_rules *rules, struct kedge_budget *b, double joules,
                     enum kedge_budget_answer expected)
{
    ck_assert_int_eq((int)kedge_budget_begin(rules, b, &job_a, 100, &noon), (int)expected);
    if (expected == KEDGE_BUDGET_YES) {
        const struct kedge_joules used = kedge_joules_measured(joules);
        kedge_budget_end(b, &job_a, &used);
    }
}

/* By hand: a floor of 20 % holds until 25 %. */
START_TEST(the_floor_has_hysteresis)
{
    const struct kedge_budget_rules rules = {.battery_floor = 20};
    static const struct {
        double percent;
        enum kedge_budget_answer answer;
    } steps[] = {{30, KEDGE_BUDGET_YES},   {20, KEDGE_BUDGET_YES},     {19.9, KEDGE_BUDGET_FLOOR},
                 {20, KEDGE_BUDGET_FLOOR}, {24.9, KEDGE_BUDGET_FLOOR}, {25, KEDGE_BUDGET_YES},
                 {20, KEDGE_BUDGET_YES},   {19, KEDGE_BUDGET_FLOOR}};
    struct kedge_budget b = {.day = 0};
    struct kedge_surroundings s = {.has_battery = true, .knows_battery = true, .charging = true};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        s.battery_percent = steps[i].percent;
        ck_assert_int_eq((int)kedge_budget_ask(&rules, &b, &s, &noon), (int)steps[i].answer);
    }
    s.knows_battery = false;
    b.below_floor = false;
    ck_assert_int_eq((int)kedge_budget_ask(&rules, &b, &s, &noon), (int)KEDGE_BUDGET_NO_BATTERY);
    s.has_battery = false; /* on mains alone */
    ck_assert_int_eq((int)kedge_budget_ask(&rules, &b, &s, &noon), (int)KEDGE_BUDGET_YES);
}
END_TEST

START_TEST(chargers_hours_and_heat)
{
    struct kedge_budget_rules rules = {.charging_only = true, .celsius_max = 80, .hours_count = 1};
    struct kedge_budget b = {.day = 0};
    struct kedge_surroundings s = {.has_battery = true, .knows_battery = true, .battery_percent = 90};
    struct kedge_budget_clock clock = {100, 30};
    rules.hours[0].from = 22 * 60;
    rules.hours[0].to = 6 * 60;
    ck_assert_int_eq((int)kedge_budget_ask(&rules, &b, &s, &clock), (int)KEDGE_BUDGET_CHARGER);
    s.charging = true;
    ck_assert_int_eq((int)kedge_budget_ask(&rules, &b, &s, &noon), (int)KEDGE_BUDGET_HOURS);
    ck_assert_int_eq((int)kedge_budget_ask(&rules, &b, &s, &clock), (int)KEDGE_BUDGET_NO_CELSIUS);
    s.knows_celsius = true;
    static const struct {
        double celsius;
        enum kedge_budget_answer answer;
    } steps[] = {{80, KEDGE_BUDGET_YES},
                 {81, KEDGE_BUDGET_HOT},
                 {76, KEDGE_BUDGET_HOT},
                 {75, KEDGE_BUDGET_YES},
                 {79, KEDGE_BUDGET_YES}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        s.celsius = steps[i].celsius;
        ck_assert_int_eq((int)kedge_budget_ask(&rules, &b, &s, &clock), (int)steps[i].answer);
    }
    clock.minute = 6 * 60;
    ck_assert_int_eq((int)kedge_budget_ask(&rules, &b, &s, &clock), (int)KEDGE_BUDGET_HOURS);
    clock.minute = 22 * 60;
    ck_assert_int_eq((int)kedge_budget_ask(&rules, &b, &s, &clock), (int)KEDGE_BUDGET_YES);
}
END_TEST

/* A clock that jumps back opens no new day, and neither does one that comes to the same day again. */
START_TEST(days_only_begin_once)
{
    /* After one round half of it is the deviation. */
    const struct kedge_budget_rules rules = {.joules_per_day = 350};
    struct kedge_budget b = {.day = 0};
    struct kedge_budget_clock clock = {100, 0};
    for (int i = 0; i < 3; i++) {
        round_of(&rules, &b, 100, KEDGE_BUDGET_YES);
    }
    round_of(&rules, &b, 100, KEDGE_BUDGET_DAY);
    static const int64_t days[] = {99, 100, 1, 100};
    for (size_t i = 0; i < 4; i++) {
        clock.day = days[i];
        ck_assert_int_eq((int)kedge_budget_begin(&rules, &b, &job_a, 100, &clock), (int)KEDGE_BUDGET_DAY);
    }
    clock.day = 101;
    ck_assert_int_eq((int)kedge_budget_begin(&rules, &b, &job_a, 100, &clock), (int)KEDGE_BUDGET_YES);
}
END_TEST

START_TEST(jobs_have_budgets_of_their_own)
{
    const struct kedge_budget_rules rules = {.joules_per_job = 350};
    struct kedge_budget b = {.day = 0};
    char text[KEDGE_BUDGET_TEXT_MAX];
    const struct kedge_surroundings s = {.has_battery = false};
    for (int i = 0; i < 3; i++) {
        round_of(&rules, &b, 100, KEDGE_BUDGET_YES);
    }
    round_of(&rules, &b, 100, KEDGE_BUDGET_JOB);
    kedge_budget_text(KEDGE_BUDGET_JOB, &rules, &b, &s, &noon, &job_a, 100, text);
    ck_assert_str_eq(text, "this job has used 300 J of 350 J (joules_per_job), and a round may need 100 J");
    ck_assert_int_eq((int)kedge_budget_begin(&rules, &b, &job_b, 100, &noon), (int)KEDGE_BUDGET_YES);
}
END_TEST

/* 360,000 J, for an hour at 100 W, is no reason to refuse a round on a day of 50,000 J: it is begun, and
 * measured. What was measured is one, and then the site need not rest for it. */
START_TEST(an_estimate_refuses_nothing)
{
    const struct kedge_budget_rules rules = {.joules_per_day = 50000, .joules_per_job = 100000};
    struct kedge_budget b = {.day = 0};
    const struct kedge_surroundings s = {.has_battery = false};
    struct kedge_budget_clock clock = noon;
    char text[KEDGE_BUDGET_TEXT_MAX];
    const struct kedge_joules dear = kedge_joules_measured(30000), dearer = kedge_joules_measured(60000);
    ck_assert_int_eq((int)kedge_budget_begin(&rules, &b, &job_a, 360000, &clock), (int)KEDGE_BUDGET_YES);
    ck_assert_double_eq_tol(b.open[0].reserved, 50000, 1e-9);
    kedge_budget_end(&b, &job_a, &dear);
    ck_assert_int_eq((int)kedge_budget_begin(&rules, &b, &job_a, 360000, &clock), (int)KEDGE_BUDGET_DAY);
    ck_assert_int_eq((int)kedge_budget_begin(&rules, &b, &job_b, 360000, &clock), (int)KEDGE_BUDGET_DAY);
    clock.day++; /* two deviations above 30,000 J are 60,000 J: they do not keep it from the next day */
    ck_assert_int_eq((int)kedge_budget_begin(&rules, &b, &job_a, 360000, &clock), (int)KEDGE_BUDGET_YES);
    kedge_budget_cancel(&b, &job_a);
    ck_assert_int_eq((int)kedge_budget_begin(&rules, &b, &job_b, 1, &clock), (int)KEDGE_BUDGET_YES);
    kedge_budget_end(&b, &job_b, &dearer);
    clock.day++;
    ck_assert_int_eq((int)kedge_budget_begin(&rules, &b, &job_b, 1, &clock), (int)KEDGE_BUDGET_TOO_DEAR);
    kedge_budget_text(KEDGE_BUDGET_TOO_DEAR, &rules, &b, &s, &clock, &job_b, 1, text);
    ck_assert_str_eq(text, "a round of this job takes 60000 J, and a whole day has 50000 J (joules_per_day)");
    ck_assert_int_eq((int)kedge_budget_begin(&rules, &b, &job_a, 1, &clock), (int)KEDGE_BUDGET_YES);
}
END_TEST

/* What is said outside of the hours: the time, the hours, and when work begins again. */
START_TEST(hours_are_said)
{
    struct kedge_budget_rules rules = {.hours_count = 2};
    struct kedge_budget b = {.day = 0};
    const struct kedge_surroundings s = {.has_battery = false};
    char text[KEDGE_BUDGET_TEXT_MAX];
    rules.hours[0].from = 22 * 60;
    rules.hours[0].to = 6 * 60;
    rules.hours[1].from = 13 * 60 + 30;
    rules.hours[1].to = 14 * 60;
    kedge_budget_text(KEDGE_BUDGET_HOURS, &rules, &b, &s, &noon, &job_a, 1, text);
    ck_assert_str_eq(
        text, "it is 12:00, and its owner permits work from 22:00 to 06:00 and 13:30 to 14:00 (hours); "
              "it begins again at 13:30");
    ck_assert_uint_eq(kedge_budget_next_hour(&rules, 14 * 60 + 1), 22 * 60);
    ck_assert_uint_eq(kedge_budget_next_hour(&rules, 23 * 60), 13 * 60 + 30);
}
END_TEST

/* Rounds of two jobs at once: what is reserved for one is not there for the other, until it has ended. */
START_TEST(several_are_open)
{
    const struct kedge_budget_rules rules = {.joules_per_day = 250};
    struct kedge_budget b = {.day = 0};
    char text[KEDGE_BUDGET_TEXT_MAX];
    const struct kedge_surroundings s = {.has_battery = false};
    const struct kedge_id job_c = {"c"};
    const struct kedge_joules used = kedge_joules_measured(20);
    ck_assert_int_eq((int)kedge_budget_begin(&rules, &b, &job_a, 100, &noon), (int)KEDGE_BUDGET_YES);
    ck_assert_int_eq((int)kedge_budget_begin(&rules, &b, &job_b, 100, &noon), (int)KEDGE_BUDGET_YES);
    ck_assert_int_eq((int)kedge_budget_begin(&rules, &b, &job_c, 100, &noon), (int)KEDGE_BUDGET_RESERVED);
    kedge_budget_text(KEDGE_BUDGET_RESERVED, &rules, &b, &s, &noon, &job_c, 100, text);
    ck_assert_str_eq(
        text,
        "today 0 J of 250 J (joules_per_day) are used, 200 J are reserved for what runs, and a round may "
        "need 100 J");
    ck_assert(kedge_budget_grow(&b, &job_b, 90) && b.open[0].reserved < 101 && b.open[1].reserved > 101);
    kedge_budget_end(&b, &job_a, &used);
    ck_assert_double_eq_tol(b.day_joules, 20, 1e-9);
    ck_assert(b.open_count == 1 && kedge_id_eq(&b.open[0].job, &job_b));
    kedge_budget_cancel(&b, &job_b);
    ck_assert(b.open_count == 0 && b.job_count == 1);
    ck_assert_int_eq((int)kedge_budget_begin(&rules, &b, &job_b, 100, &noon), (int)KEDGE_BUDGET_YES);
    ck_assert_int_eq((int)kedge_budget_begin(&rules, &b, &job_c, 100, &noon), (int)KEDGE_BUDGET_YES);
    kedge_budget_recover(&b); /* a crash: both have used what was reserved */
    ck_assert_double_eq_tol(b.day_joules, 220, 1e-9);
    ck_assert_uint_eq(b.open_count, 0);
    ck_assert_int_eq((int)kedge_budget_begin(&rules, &b, &job_c, 100, &noon), (int)KEDGE_BUDGET_DAY);
}
END_TEST

/* Rounds of a, 20 of them 90 to 110 J: the estimate is their mean and two deviations; unknown ones count as
 * what was reserved, and teach nothing. */
START_TEST(estimates_are_learnt)
{
    const struct kedge_budget_rules none = {.battery_floor = 0};
    struct kedge_budget b = {.day = 0};
    for (int i = 0; i < 20; i++) {
        round_of(&none, &b, i % 2 ? 90 : 110, KEDGE_BUDGET_YES);
    }
    const double upper = kedge_budget_upper(&b, &job_a, 5000);
    ck_assert_double_eq_tol(upper, 100 + 2 * 10 * sqrt(20.0 / 19), 1e-9);
    ck_assert_int_eq((int)kedge_budget_begin(&none, &b, &job_a, 5000, &noon), (int)KEDGE_BUDGET_YES);
    const struct kedge_joules unknown = kedge_joules_unknown("x");
    kedge_budget_end(&b, &job_a, &unknown);
    ck_assert_double_eq_tol(b.day_joules, 2000 + upper, 1e-9);
    ck_assert_double_eq_tol(kedge_budget_upper(&b, &job_a, 5000), upper, 1e-9);
    ck_assert(b.open_count == 0 && kedge_budget_upper(&b, &job_b, 5000) > 4999);
    struct kedge_id many = {"j0"};
    for (int i = 0; i < 20; i++) { /* the oldest are forgotten */
        many.s[1] = (char)('a' + i);
        ck_assert_int_eq((int)kedge_budget_begin(&none, &b, &many, 1, &noon), (int)KEDGE_BUDGET_YES);
        kedge_budget_recover(&b);
    }
    ck_assert_uint_eq(b.job_count, KEDGE_BUDGET_JOBS_MAX);
}
END_TEST

/* What a site does with a budget, with a true consumption that the budget never sees whole: rounds of all
 * lengths, a power cut at any moment, meters that fail. The durable copy is all that a crash leaves. */
static double live(struct kedge_rng *rng, const struct kedge_budget_rules *rules, double first,
                   double *ret_largest)
{
    struct kedge_budget durable = {.day = 0}, b = durable;
    double truth = 0;
    *ret_largest = 0;
    for (int i = 0; i < 60; i++) {
        const double scale = 20 + 200 * kedge_rng_unit(rng);
        if (kedge_budget_begin(rules, &b, &job_a, first, &noon) != KEDGE_BUDGET_YES) {
            continue;
        }
        durable = b;
        const double whole = scale * (0.5 + kedge_rng_unit(rng)), step = whole / 50;
        const bool crashes = kedge_rng_below(rng, 3) == 0;
        const double end = crashes ? whole * kedge_rng_unit(rng) : whole;
        double used = 0;
        while (used < end) { /* a tick: what it uses until the next one is small beside the reserve */
            used += step;
            if (kedge_budget_grow(&b, &job_a, used)) {
                durable = b;
            }
        }
        truth += used;
        *ret_largest = fmax(*ret_largest, used);
        if (crashes) {
            b = durable;
            kedge_budget_recover(&b);
        } else {
            const struct kedge_joules j =
                kedge_rng_below(rng, 10) == 0 ? kedge_joules_unknown("x") : kedge_joules_measured(used);
            kedge_budget_end(&b, &job_a, &j);
        }
        durable = b;
    }
    return truth;
}

/* E11. */
START_TEST(exceeded_by_one_round_at_most)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 11, KEDGE_RNG_TEST, 0, 0);
    double most = 0;
    for (int run = 0; run < 10000; run++) {
        double largest;
        const double budget = 500 + 3000 * kedge_rng_unit(&rng);
        const struct kedge_budget_rules rules = {.joules_per_day = run % 2 ? budget : 0,
                                                 .joules_per_job = run % 2 ? 0 : budget};
        const double truth = live(&rng, &rules, run % 4 < 2 ? 400 : 20, &largest); /* or far too few */
        ck_assert_msg(truth <= budget + largest, "run %d: %g of %g, largest round %g", run, truth, budget,
                      largest);
        most = fmax(most, truth / budget);
    }
    ck_assert(most > 0.5); /* and it is used */
}
END_TEST

/* Three words and silence; 20 points above the floor it is no longer low. */
START_TEST(what_may_be_told)
{
    const struct kedge_budget_rules rules = {.battery_floor = 20}, none = {.battery_floor = 0};
    struct kedge_surroundings s = {.has_battery = false};
    ck_assert_int_eq(kedge_battery_class(&rules, &s), KEDGE_BATTERY_MAINS);
    s = (struct kedge_surroundings){.has_battery = true, .knows_battery = false, .battery_percent = 100};
    ck_assert_int_eq(kedge_battery_class(&rules, &s), KEDGE_BATTERY_UNTOLD);
    s.knows_battery = true;
    ck_assert_int_eq(kedge_battery_class(&rules, &s), KEDGE_BATTERY_ENOUGH);
    s.battery_percent = 39.9;
    ck_assert_int_eq(kedge_battery_class(&rules, &s), KEDGE_BATTERY_LOW);
    ck_assert_int_eq(kedge_battery_class(&none, &s), KEDGE_BATTERY_ENOUGH);
    s.charging = true;
    ck_assert_int_eq(kedge_battery_class(&rules, &s), KEDGE_BATTERY_MAINS);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {the_floor_has_hysteresis,
                                  chargers_hours_and_heat,
                                  days_only_begin_once,
                                  jobs_have_budgets_of_their_own,
                                  estimates_are_learnt,
                                  exceeded_by_one_round_at_most,
                                  what_may_be_told,
                                  several_are_open,
                                  an_estimate_refuses_nothing,
                                  hours_are_said};
    return run_suite("budget", tests, sizeof tests / sizeof tests[0]);
}
