#include "client/energy/meter.h"

#include <math.h>
#include <string.h>

#include "common/base/rng.h"
#include "tests/unit/base/check.h"

static const uint64_t second = 1000000000u;

static struct kedge_meter zone(uint64_t range, double power_max_w)
{
    return (struct kedge_meter){.source = KEDGE_METER_RAPL,
                                .part = KEDGE_PART_CPU,
                                .way = KEDGE_WAY_COUNTER,
                                .unit = 1e-6,
                                .range = range,
                                .power_max_w = power_max_w,
                                .window_min_ns = second / 10};
}

static struct kedge_joules run(struct kedge_meter *m, const uint64_t *counts, size_t n, uint64_t period)
{
    kedge_meter_begin(m, 7 * second);
    for (size_t i = 0; i < n; i++) {
        kedge_meter_see(m, 7 * second + i * period, &counts[i]);
    }
    return kedge_meter_end(m, 7 * second + (n - 1) * period, second);
}

static void is_measured(struct kedge_joules j, double joules)
{
    ck_assert_int_eq((int)j.quality, (int)KEDGE_QUALITY_MEASURED);
    ck_assert_double_eq_tol(j.joules, joules, 1e-6);
}

static void is_unknown(struct kedge_joules j, const char *why)
{
    ck_assert_int_eq((int)j.quality, (int)KEDGE_QUALITY_UNKNOWN);
    ck_assert(isnan(j.joules) && j.why != NULL);
    ck_assert_msg(strstr(j.why, why) != NULL, "%s", j.why);
}

/* Trap 1: 262,143.328850 J, the range of many zones; 40 J before its end and 60 J behind it are 100 J. */
START_TEST(a_counter_wraps)
{
    const uint64_t range = 262143328850u, counts[] = {range - 40000000, 60000000, 160000000};
    struct kedge_meter m = zone(range, 200);
    is_measured(run(&m, counts, 3, second), 200);
    m = zone(65712999613u, 300); /* in 3.7 minutes: still once a second; a hundredth of it, twice as often */
    ck_assert_uint_eq(kedge_meter_period_ns(&m), second);
    m = zone(100000000, 200);
    ck_assert_uint_eq(kedge_meter_period_ns(&m), second / 4);
}
END_TEST

/* Trap 2: one of two zones begins again; the sum is theirs. */
START_TEST(one_zone_wraps_alone)
{
    const uint64_t range = 65712999613u, a[] = {range - 10000000, 20000000}, b[] = {1000000, 31000000};
    struct kedge_meter m = zone(range, 300), n = zone(range, 300);
    struct kedge_joule_sum sum = {.measured = 0};
    struct kedge_joules j = run(&m, a, 2, second);
    kedge_joules_add(&sum, &j);
    j = run(&n, b, 2, second);
    kedge_joules_add(&sum, &j);
    is_measured(kedge_joules_total(&sum), 60);
}
END_TEST

/* Trap 3: set back by a suspend, it seems to have gone up by nearly a whole range; and a gap in which it may
 * have done so twice. */
START_TEST(a_reset_is_no_wrap)
{
    const uint64_t range = 262143328850u, reset[] = {100000000000u, 5000}, gone[] = {1000000, 51000000};
    struct kedge_meter m = zone(range, 100);
    is_unknown(run(&m, reset, 2, second), "jumped");
    m = zone(range, 100);
    is_unknown(run(&m, gone, 2, 2700 * second), "more than once");
    m = zone(0, 100); /* a GPU's counter has no range: it began again with its driver */
    is_unknown(run(&m, reset, 2, second), "began again");
    m = zone(range, 100); /* what follows does not mend the window */
    const uint64_t after[] = {100000000000u, 5000, 50005000, 100005000};
    is_unknown(run(&m, after, 4, second), "jumped");
}
END_TEST

/* Trap 4: numbers above 32 bits, and nothing behind the number. */
START_TEST(numbers_are_strict)
{
    uint64_t v = 0;
    ck_assert_int_eq(kedge_reading_parse(kedge_view_str("262143328850\n"), &v), KEDGE_OK);
    ck_assert_uint_eq(v, 262143328850u);
    ck_assert_int_eq(kedge_reading_parse(kedge_view_str("18446744073709551615"), &v), KEDGE_OK);
    ck_assert_uint_eq(v, UINT64_MAX);
    static const char *const wrong[] = {
        "", "\n", "12a", "12 \n", "-1", "1.5", "0x10", "12\n\n", "18446744073709551616"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(kedge_reading_parse(kedge_view_str(wrong[i]), &v) != KEDGE_OK, "%s", wrong[i]);
    }
    ck_assert_int_eq(kedge_reading_parse_size(kedge_view_str("-1500000\n"), &v), KEDGE_OK);
    ck_assert_uint_eq(v, 1500000);
    ck_assert(kedge_reading_parse_size(kedge_view_str("-"), &v) != KEDGE_OK);
}
END_TEST

/* Traps 5 and 6: one reading is no value, two of the same instant are one, and a short window tells nothing.
 */
START_TEST(first_and_short)
{
    const uint64_t counts[] = {5000000, 5000001, 25000000};
    struct kedge_meter m = zone(1u << 30, 200);
    is_unknown(run(&m, counts, 1, second), "short");
    m = zone(1u << 30, 200);
    is_unknown(run(&m, counts, 2, second / 20), "short");
    m = zone(1u << 30, 200);
    kedge_meter_begin(&m, 0);
    kedge_meter_see(&m, 0, &counts[0]);
    kedge_meter_see(&m, 1000, &counts[2]); /* 20 J in a microsecond */
    ck_assert(m.seen == 1);
    kedge_meter_see(&m, second, &counts[2]);
    is_measured(kedge_meter_end(&m, second, second), 20);
}
END_TEST

/* Trap 13: processor time passes and the counter stands still. */
START_TEST(a_standing_counter_is_unknown)
{
    const uint64_t counts[] = {777, 777, 777};
    struct kedge_meter m = zone(1u << 30, 200);
    is_unknown(run(&m, counts, 3, second), "stands still");
    kedge_meter_begin(&m, 0);
    is_unknown(kedge_meter_end(&m, second, second), "could not be read");
}
END_TEST

/* Trap 14: power is a mean over a second, so shorter windows tell nothing; gaps leave less than the whole. */
START_TEST(power_is_integrated)
{
    struct kedge_meter m = {.source = KEDGE_METER_NVML_POWER,
                            .part = KEDGE_PART_GPU,
                            .way = KEDGE_WAY_POWER,
                            .unit = 1e-3,
                            .power_max_w = 300,
                            .window_min_ns = second};
    const uint64_t counts[] = {100000, 200000, 200000};
    is_measured(run(&m, counts, 3, second), 350);
    is_unknown(run(&m, counts, 2, second / 2), "short");
    kedge_meter_begin(&m, 0); /* 7 of 10 seconds: more is guessed, and said */
    for (uint64_t t = 0; t <= 7; t++) {
        kedge_meter_see(&m, t * second, &counts[1]);
    }
    const struct kedge_joules j = kedge_meter_end(&m, 10 * second, 1);
    ck_assert_int_eq((int)j.quality, (int)KEDGE_QUALITY_MODELLED);
    ck_assert_double_eq_tol(j.low, 1400, 1e-6);
    ck_assert_double_eq_tol(j.joules, 2000, 1e-6);
    ck_assert_double_eq_tol(j.high, 2300, 1e-6);
    is_unknown(kedge_meter_end(&m, 20 * second, 1), "too little");
    const uint64_t absurd[] = {100000, 4000000000u, 100000};
    is_unknown(run(&m, absurd, 3, second), "too little");
}
END_TEST

static struct kedge_meter named(enum kedge_meter_source source, enum kedge_meter_part part, const char *name)
{
    struct kedge_meter m = {.source = source,
                            .part = part,
                            .way = KEDGE_WAY_COUNTER,
                            .unit = 1e-6,
                            .power_max_w = 200,
                            .window_min_ns = second / 10};
    memcpy(m.name, name, strlen(name) + 1);
    return m;
}

static struct kedge_meter rapl(const char *name, const char *zone_name)
{
    return named(KEDGE_METER_RAPL, kedge_rapl_part(kedge_view_str(zone_name)), name);
}

/* Traps 7, 8, 9: the published example is 14.4 W summed, 9.6 W true; MSR and MMIO tell the same zone; dies
 * and sockets add up. */
START_TEST(each_part_once)
{
    struct kedge_meter m[] = {rapl("package-0", "package-0"),
                              rapl("package-0/core", "core"),
                              rapl("package-0/uncore", "uncore"),
                              rapl("package-0/dram", "dram"),
                              rapl("psys", "psys"),
                              rapl("package-1", "package-1"),
                              rapl("package-1/dram", "dram"),
                              rapl("package-0", "package-0"),
                              rapl("package-0-die-1", "package-0-die-1")};
    const bool counts[] = {true, false, false, true, false, true, true, false, true};
    kedge_meters_choose(m, sizeof m / sizeof m[0]);
    for (size_t i = 0; i < sizeof m / sizeof m[0]; i++) {
        ck_assert_msg(m[i].counts == counts[i], "%s %zu", m[i].name, i);
    }
    kedge_meters_choose(m + 4, 1); /* psys alone */
    ck_assert(m[4].counts);
}
END_TEST

/* Trap 16: the module's number has the processor in it. A GPU beside packages adds to them, once. */
START_TEST(modules_and_gpus)
{
    struct kedge_meter m[] = {named(KEDGE_METER_NVML_ENERGY, KEDGE_PART_MODULE, "GPU-1"),
                              rapl("package-0", "package-0"), rapl("package-0/dram", "dram"),
                              named(KEDGE_METER_HWMON, KEDGE_PART_CPU, "amd_energy")};
    kedge_meters_choose(m, 4);
    ck_assert(m[0].counts && !m[1].counts && !m[2].counts && !m[3].counts);
    struct kedge_meter g[] = {named(KEDGE_METER_NVML_ENERGY, KEDGE_PART_GPU, "GPU-1"),
                              named(KEDGE_METER_NVML_POWER, KEDGE_PART_GPU, "GPU-1"),
                              named(KEDGE_METER_NVML_POWER, KEDGE_PART_GPU, "GPU-2"),
                              rapl("package-0", "package-0"),
                              named(KEDGE_METER_HWMON, KEDGE_PART_CPU, "amd_energy")};
    kedge_meters_choose(g, 5);
    ck_assert(g[0].counts && !g[1].counts && g[2].counts && g[3].counts && !g[4].counts);
    struct kedge_meter j[] = {named(KEDGE_METER_JETSON, KEDGE_PART_DEVICE, "VDD_IN"),
                              named(KEDGE_METER_JETSON, KEDGE_PART_NONE, "VDD_CPU_GPU_CV"), /* trap 22 */
                              rapl("package-0", "package-0"),
                              named(KEDGE_METER_BATTERY, KEDGE_PART_DEVICE, "battery")};
    kedge_meters_choose(j, 4);
    ck_assert(j[0].counts && !j[1].counts && !j[2].counts && !j[3].counts);
}
END_TEST

/* Trap 18: 300 J by the counter and 100 J by the power of the same chip: the power is believed. */
START_TEST(a_counter_is_held_against_power)
{
    struct kedge_meter m[2] = {named(KEDGE_METER_HWMON, KEDGE_PART_GPU, "amdgpu"),
                               named(KEDGE_METER_HWMON, KEDGE_PART_GPU, "amdgpu")};
    m[1].way = KEDGE_WAY_POWER;
    for (int wrong = 0; wrong < 2; wrong++) {
        kedge_meters_choose(m, 2);
        struct kedge_joule_sum sum = {.measured = 0};
        const uint64_t watts = 100000000, first = 0, last = wrong ? 300000000 : 110000000;
        const uint64_t *counts[2][2] = {{&first, &last}, {&watts, &watts}};
        for (int i = 0; i < 2; i++) {
            kedge_meter_begin(&m[i], 0);
            kedge_meter_see(&m[i], 0, counts[i][0]);
            kedge_meter_see(&m[i], second, counts[i][1]);
        }
        kedge_meters_end(m, 2, second, second, &sum);
        is_measured(kedge_joules_total(&sum), wrong ? 100 : 110);
    }
    ck_assert(!kedge_meter_agrees(100, 100, 0.4));
}
END_TEST

/* Traps 19 and 20: only while nothing charges; ten steps of the gauge at least, else its power, as modelled.
 */
START_TEST(batteries_are_coarse)
{
    struct kedge_meter m[2] = {named(KEDGE_METER_BATTERY, KEDGE_PART_DEVICE, "battery"),
                               named(KEDGE_METER_BATTERY, KEDGE_PART_DEVICE, "battery")};
    m[0].way = KEDGE_WAY_CHARGE;
    m[0].unit = 3.6e-3;
    m[0].step = 500000; /* 1 % of 50 Wh: 1,800 J */
    m[1].way = KEDGE_WAY_POWER;
    kedge_meters_choose(m, 2);
    ck_assert(m[0].counts && !m[1].counts);
    for (uint64_t steps = 9; steps <= 10; steps++) {
        struct kedge_joule_sum sum = {.measured = 0};
        const uint64_t watts = 10000000, period = 180 * second;
        kedge_meter_begin(&m[0], 0);
        kedge_meter_begin(&m[1], 0);
        m[0].step = 500000;
        for (uint64_t i = 0; i <= steps; i++) {
            const uint64_t left = 50000000 - i * 500000;
            kedge_meter_see(&m[0], i * period, &left);
        }
        for (uint64_t t = 0; t <= steps * period; t += second) {
            kedge_meter_see(&m[1], t, &watts);
        }
        kedge_meters_end(m, 2, steps * period, second, &sum);
        const struct kedge_joules j = kedge_joules_total(&sum);
        ck_assert_int_eq((int)j.quality,
                         steps < 10 ? (int)KEDGE_QUALITY_MODELLED : (int)KEDGE_QUALITY_MEASURED);
        ck_assert_double_eq_tol(j.joules, (double)steps * 1800, 1e-3);
    }
    const uint64_t less = 40000000, more = 41000000;
    kedge_meter_begin(&m[0], 0);
    kedge_meter_see(&m[0], 0, &less);
    kedge_meter_see(&m[0], second, &more);
    is_unknown(kedge_meter_end(&m[0], second, 1), "charged");
    kedge_meter_begin(&m[0], 0);
    kedge_meter_see(&m[0], 0, &less);
    kedge_meter_see(&m[0], second, NULL);
    is_unknown(kedge_meter_end(&m[0], second, 1), "charged");
}
END_TEST

/* Trap 23, E7: shares of all that ran make what is above idle, to a tenth of a percent. */
START_TEST(shares_make_the_whole)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 5, KEDGE_RNG_TEST, 0, 0);
    for (int turn = 0; turn < 1000; turn++) {
        double cpu[8], all = 0, shared = 0, idle = 0;
        const struct kedge_joules whole = kedge_joules_measured(50 + 1000 * kedge_rng_unit(&rng));
        for (int i = 0; i < 8; i++) {
            cpu[i] = kedge_rng_unit(&rng);
            all += cpu[i];
        }
        for (int i = 0; i < 8; i++) {
            const struct kedge_joules j = kedge_joules_share(&whole, 4, 10, cpu[i], all, &idle);
            ck_assert_int_eq((int)j.quality, (int)KEDGE_QUALITY_MODELLED);
            shared += j.joules;
        }
        ck_assert_double_eq_tol(idle, 40, 1e-9);
        ck_assert_double_eq_tol(shared, whole.joules - 40, 0.001 * whole.joules);
    }
    double idle;
    const struct kedge_joules none = kedge_joules_unknown("no meter"), some = kedge_joules_measured(5);
    ck_assert_int_eq((int)kedge_joules_share(&none, 4, 10, 1, 2, &idle).quality, (int)KEDGE_QUALITY_UNKNOWN);
    is_unknown(kedge_joules_share(&some, 4, 10, 1, 0, &idle), "processor time");
}
END_TEST

/* E9: unknown never prints or sums as 0 J; labels are never mixed. */
START_TEST(unknown_is_never_zero)
{
    struct kedge_joule_sum sum = {.measured = 0};
    char text[KEDGE_JOULES_TEXT_MAX];
    kedge_joules_text(&sum, text);
    ck_assert_str_eq(text, "unknown");
    ck_assert_int_eq((int)kedge_joules_total(&sum).quality, (int)KEDGE_QUALITY_UNKNOWN);
    struct kedge_joules a = kedge_joules_measured(12), b = kedge_joules_unknown("x"),
                        c = kedge_joules_modelled(4, 2, 8);
    kedge_joules_add(&sum, &a);
    kedge_joules_text(&sum, text);
    ck_assert_str_eq(text, "12 J measured");
    kedge_joules_add(&sum, &c);
    ck_assert_double_eq_tol(kedge_joules_total(&sum).low, 14, 1e-9);
    kedge_joules_text(&sum, text);
    ck_assert_str_eq(text, "16 J modelled");
    kedge_joules_add(&sum, &b);
    kedge_joules_text(&sum, text);
    ck_assert_str_eq(text, "≥ 16 J, 1 of 3 unknown");
    ck_assert(isnan(kedge_joules_total(&sum).joules));
    ck_assert_int_eq((int)kedge_joules_measured(-1).quality, (int)KEDGE_QUALITY_UNKNOWN);
    ck_assert_int_eq((int)kedge_joules_modelled(1, 2, 3).quality, (int)KEDGE_QUALITY_UNKNOWN);
    c = kedge_joules_model(10, 50, 0.5, 10);
    ck_assert(c.quality == KEDGE_QUALITY_MODELLED && fabs(c.joules - 300) < 1e-9
              && fabs(c.high - 600) < 1e-9);
    is_unknown(kedge_joules_model(0, 50, 0.5, 10), "power_idle_w");
}
END_TEST

/* E6: whatever is read, no number is below 0 or above 2 · P_max. */
START_TEST(no_number_is_absurd)
{
    struct kedge_rng rng;
    kedge_rng_init(&rng, 9, KEDGE_RNG_TEST, 0, 0);
    for (int turn = 0; turn < 20000; turn++) {
        struct kedge_meter m = zone(kedge_rng_below(&rng, 2) ? 1000000000u : 0, 100);
        m.way = (enum kedge_meter_way)kedge_rng_below(&rng, 3);
        m.unit = m.way == KEDGE_WAY_CHARGE ? 3.6e-3 : 1e-6;
        uint64_t t = 0, count = kedge_rng_below(&rng, 1000000000u);
        kedge_meter_begin(&m, 0);
        for (int i = 0; i < 6; i++) {
            const uint64_t jump = kedge_rng_below(&rng, 8);
            count = jump == 0  ? kedge_rng_below(&rng, UINT64_MAX)
                    : jump < 4 ? count + kedge_rng_below(&rng, 150000000)
                               : count - kedge_rng_below(&rng, 20000);
            kedge_meter_see(&m, t, jump == 7 ? NULL : &count);
            t += kedge_rng_below(&rng, 2 * second);
        }
        const struct kedge_joules j = kedge_meter_end(&m, t, second);
        const double most = 200.0 * (double)t / 1e9 + m.step * m.unit + 1e-9;
        ck_assert(j.quality == KEDGE_QUALITY_UNKNOWN
                  || (j.joules >= 0 && j.joules <= most && j.low <= j.joules && j.joules <= j.high));
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_counter_wraps,       one_zone_wraps_alone,
        a_reset_is_no_wrap,    numbers_are_strict,
        first_and_short,       a_standing_counter_is_unknown,
        power_is_integrated,   each_part_once,
        modules_and_gpus,      a_counter_is_held_against_power,
        batteries_are_coarse,  shares_make_the_whole,
        unknown_is_never_zero, no_number_is_absurd,
    };
    return run_suite("meter", tests, sizeof tests / sizeof tests[0]);
}
