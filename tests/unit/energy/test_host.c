/* The meters of machines that are folders: every layout and every trap as files below a temporary root, and
 * GPUs as a library that is loaded like NVIDIA's. */
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/energy/host/caps.h"
#include "client/energy/host/meters.h"
#include "client/energy/host/state.h"
#include "common/base/os/clock.h"
#include "tests/unit/base/check.h"

static char root[64];
static struct kedge_meters meters;
static const uint64_t second = 1000000000u;

static void begin_tree(void)
{
    snprintf(root, sizeof root, "/tmp/kedge-energy-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void end_tree(void)
{
    kedge_meters_close(&meters);
    ck_assert_int_eq(kedge_dir_remove(root), KEDGE_OK);
}

static void put(const char *content, const char *format, ...) KEDGE_PRINTF(2, 3);
static void put(const char *content, const char *format, ...)
{
    char name[512], path[KEDGE_PATH_MAX], dir[KEDGE_PATH_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    snprintf(path, sizeof path, "%s/%s", root, name);
    snprintf(dir, sizeof dir, "%s", path);
    *strrchr(dir, '/') = '\0';
    ck_assert_int_eq(kedge_dir_make(dir, 0700, NULL), KEDGE_OK);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "%s\n", content);
    ck_assert_int_eq(fclose(f), 0);
}

static void number(unsigned long long value, const char *name)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", value);
    put(text, "%s", name);
}

static void zone(const char *id, const char *name, unsigned long long uj)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", uj);
    put(name, "sys/class/powercap/%s/name", id);
    put(text, "sys/class/powercap/%s/energy_uj", id);
    put("262143328850", "sys/class/powercap/%s/max_energy_range_uj", id);
}

/* 10 s of processor time of two processors until now, `busy` hundredths of a second of them busy. */
static void cpu(unsigned busy)
{
    char text[128];
    snprintf(text, sizeof text, "cpu  %u 0 0 %u 0 0 0 0 0 0", 100 + busy, 5000 - busy);
    put(text, "proc/stat");
}

static void open_meters(const char *gpus, const char *gpu)
{
    if (gpus) {
        char path[128];
        put(gpus, "gpus");
        snprintf(path, sizeof path, "%s/gpus", root);
        setenv("FAKE_NVML_FILE", path, 1);
    }
    const struct kedge_meters_options options = {.root = root, .nvml = gpus ? FAKE_NVML : "", .gpu = gpu};
    ck_assert_int_eq(kedge_meters_open(&meters, &options), KEDGE_OK);
}

static struct kedge_joules total(uint64_t seconds)
{
    struct kedge_joule_sum sum;
    double load;
    kedge_meters_finish(&meters, seconds * second, &sum, &load);
    return kedge_joules_total(&sum);
}

static void is_measured(struct kedge_joules j, double joules)
{
    ck_assert_msg(j.quality == KEDGE_QUALITY_MEASURED, "%s", j.why ? j.why : "modelled");
    ck_assert_double_eq_tol(j.joules, joules, 1e-6);
}

/* Traps 7, 8, 9, 10: two packages with memory, a platform zone, parts, and the first package by MMIO, too; an
 * MSR device lies there and is not touched (a FIFO: reading it would wait). */
START_TEST(packages_and_memory)
{
    char text[KEDGE_METER_HINT_MAX], msr[128];
    begin_tree();
    put("", "dev/cpu/0/here");
    snprintf(msr, sizeof msr, "%s/dev/cpu/0/msr", root);
    ck_assert_int_eq(mkfifo(msr, 0600), 0);
    static const struct {
        const char *id, *name;
        unsigned joules; /* in the window */
    } zones[] = {{"intel-rapl:0", "package-0", 10},      {"intel-rapl:0:0", "core", 7},
                 {"intel-rapl:0:1", "dram", 2},          {"intel-rapl:1", "package-1", 20},
                 {"intel-rapl:1:0", "dram", 3},          {"intel-rapl:2", "psys", 50},
                 {"intel-rapl-mmio:0", "package-0", 10}, {"intel-rapl:3", "package-0-die-1", 4}};
    for (size_t i = 0; i < sizeof zones / sizeof zones[0]; i++) {
        zone(zones[i].id, zones[i].name, 1000000);
    }
    cpu(0);
    open_meters(NULL, "");
    kedge_meters_describe(&meters, text);
    ck_assert_str_eq(text, "rapl 5");
    kedge_meters_begin(&meters, 0);
    for (size_t i = 0; i < sizeof zones / sizeof zones[0]; i++) {
        zone(zones[i].id, zones[i].name, 1000000 + zones[i].joules * 1000000ull);
    }
    cpu(100);
    is_measured(total(1), 39);
    end_tree();
}
END_TEST

/* Trap 2, in the tree: one zone begins again, alone. Trap 13: one stands still. */
START_TEST(zones_have_states_of_their_own)
{
    begin_tree();
    zone("intel-rapl:0", "package-0", 262143328850u - 5000000);
    zone("intel-rapl:1", "package-1", 1000000);
    cpu(0);
    open_meters(NULL, "");
    kedge_meters_begin(&meters, 0);
    zone("intel-rapl:0", "package-0", 5000000);
    zone("intel-rapl:1", "package-1", 21000000);
    cpu(100);
    is_measured(total(1), 30);
    kedge_meters_begin(&meters, 0);
    zone("intel-rapl:0", "package-0", 15000000);
    cpu(200);
    const struct kedge_joules j = total(1);
    ck_assert(j.quality == KEDGE_QUALITY_UNKNOWN && isnan(j.joules));
    end_tree();
}
END_TEST

/* Traps 11 and 12: readable by root only; a link that leads nowhere. Both are said, and no number comes. */
START_TEST(what_can_not_be_read_is_said)
{
    char path[128], to[128];
    const bool is_root = geteuid() == 0;
    ck_assert(!is_root || seteuid(65534) == 0); /* whom modes of files hold for */
    begin_tree();
    zone("intel-rapl:0", "package-0", 5);
    snprintf(path, sizeof path, "%s/sys/class/powercap/intel-rapl:0/energy_uj", root);
    ck_assert_int_eq(chmod(path, 0), 0);
    open_meters(NULL, "");
    ck_assert_ptr_nonnull(strstr(meters.hint, "udev rule"));
    kedge_meters_begin(&meters, 0);
    ck_assert_int_eq((int)total(1).quality, (int)KEDGE_QUALITY_UNKNOWN);
    kedge_meters_close(&meters);
    snprintf(path, sizeof path, "%s/sys/class/powercap/intel-rapl:1", root);
    snprintf(to, sizeof to, "%s/sys/devices/virtual/powercap/intel-rapl:1", root);
    ck_assert_int_eq(symlink(to, path), 0);
    snprintf(path, sizeof path, "%s/sys/class/powercap/intel-rapl:0", root);
    ck_assert_int_eq(kedge_dir_remove(path), KEDGE_OK);
    open_meters(NULL, "");
    ck_assert_ptr_nonnull(strstr(meters.hint, "leads nowhere"));
    ck_assert_uint_eq(meters.count, 0);
    kedge_meters_begin(&meters, 0); /* a machine without any meter */
    ck_assert_int_eq((int)total(1).quality, (int)KEDGE_QUALITY_UNKNOWN);
    end_tree();
    ck_assert(!is_root || seteuid(0) == 0);
}
END_TEST

/* Traps 4 and 21: trailing text is no number; a disabled channel, parts beside their sum and unknown chips do
 * not count. */
START_TEST(chips_by_their_table)
{
    begin_tree();
    put("amd_energy", "sys/class/hwmon/hwmon0/name");
    put("Ecore000", "sys/class/hwmon/hwmon0/energy1_label");
    number(9, "sys/class/hwmon/hwmon0/energy1_input");
    put("Esocket0", "sys/class/hwmon/hwmon0/energy2_label");
    number(1000000, "sys/class/hwmon/hwmon0/energy2_input");
    put("Esocket1", "sys/class/hwmon/hwmon0/energy3_label");
    number(1000000, "sys/class/hwmon/hwmon0/energy3_input");
    number(0, "sys/class/hwmon/hwmon0/energy3_enable");
    put("somethingelse", "sys/class/hwmon/hwmon1/name");
    number(77, "sys/class/hwmon/hwmon1/energy1_input");
    put("xe", "sys/class/hwmon/hwmon2/name");
    put("pkg", "sys/class/hwmon/hwmon2/energy2_label");
    number(500, "sys/class/hwmon/hwmon2/energy2_input");
    put("card", "sys/class/hwmon/hwmon2/energy1_label");
    put("500 J", "sys/class/hwmon/hwmon2/energy1_input");
    open_meters(NULL, "");
    ck_assert_uint_eq(meters.count, 1);
    kedge_meters_begin(&meters, 0);
    number(8000000, "sys/class/hwmon/hwmon0/energy2_input");
    is_measured(total(1), 7);
    end_tree();
}
END_TEST

/* Trap 18: the counter says five times what the power sensor of the same chip does. */
START_TEST(an_amd_gpu_that_counts_wrong)
{
    begin_tree();
    put("amdgpu", "sys/class/hwmon/hwmon0/name");
    number(0, "sys/class/hwmon/hwmon0/energy1_input");
    number(100000000, "sys/class/hwmon/hwmon0/power1_average");
    open_meters(NULL, "");
    kedge_meters_begin(&meters, 0);
    number(500000000, "sys/class/hwmon/hwmon0/energy1_input");
    is_measured(total(1), 100);
    kedge_meters_begin(&meters, second);
    number(620000000, "sys/class/hwmon/hwmon0/energy1_input");
    is_measured(total(2), 120);
    end_tree();
}
END_TEST

/* Trap 22: the total rail in the old layout and in the new one; a combined rail is no processor's; shunts and
 * disabled channels are nothing (trap 21). */
START_TEST(jetson_rails)
{
    static const char *const old = "sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0";
    begin_tree();
    put("POM_5V_IN", "%s/rail_name_0", old);
    put("4000", "%s/in_power0_input", old);
    put("POM_5V_GPU", "%s/rail_name_1", old);
    put("1500", "%s/in_power1_input", old);
    open_meters(NULL, "");
    kedge_meters_begin(&meters, 0);
    is_measured(total(2), 8);
    ck_assert_int_eq(kedge_dir_remove(root), KEDGE_OK);
    kedge_meters_close(&meters);
    static const char *const new = "sys/bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon3";
    put("VDD_IN", "%s/in1_label", new);
    put("5000", "%s/in1_input", new);
    put("2000", "%s/curr1_input", new);
    put("VDD_CPU_GPU_CV", "%s/in2_label", new);
    put("5000", "%s/in2_input", new);
    put("1000", "%s/curr2_input", new);
    put("5V_IN", "%s/in3_label", new);
    put("5000", "%s/in3_input", new);
    put("1000", "%s/curr3_input", new);
    put("0", "%s/in3_enable", new);
    put("VDD_TOTAL", "%s/in7_label", new);
    put("5000", "%s/in7_input", new);
    put("9000", "%s/curr7_input", new);
    open_meters(NULL, "");
    kedge_meters_begin(&meters, 0);
    is_measured(total(2), 20);
    end_tree();
}
END_TEST

static void battery(const char *status, const char *current, const char *charge)
{
    put("Battery", "sys/class/power_supply/BAT0/type");
    put(status, "sys/class/power_supply/BAT0/status");
    put(charge, "sys/class/power_supply/BAT0/charge_now");
    put("4000000", "sys/class/power_supply/BAT0/charge_full");
    put("12000000", "sys/class/power_supply/BAT0/voltage_now");
    put(current, "sys/class/power_supply/BAT0/current_now");
}

/* Traps 19 and 20: charge and no energy; both signs of the current are the same power; none while charging; a
 * mouse's battery is not the machine's. */
START_TEST(batteries_of_every_kind)
{
    static const char *const currents[] = {"-1000000", "1000000"};
    begin_tree();
    put("Battery", "sys/class/power_supply/mouse/type");
    put("Device", "sys/class/power_supply/mouse/scope");
    put("5", "sys/class/power_supply/mouse/capacity");
    for (int i = 0; i < 2; i++) {
        battery("Discharging", currents[i], "2000000");
        open_meters(NULL, "");
        ck_assert_uint_eq(meters.battery_count, 1);
        kedge_meters_begin(&meters, 0);
        kedge_meters_tick(&meters, second);
        const struct kedge_joules j = total(2);
        ck_assert_int_eq((int)j.quality, (int)KEDGE_QUALITY_MODELLED);
        ck_assert_double_eq_tol(j.joules, 24, 1e-6);
        kedge_meters_close(&meters);
    }
    battery("Charging", "1000000", "2000000");
    struct kedge_surroundings s;
    open_meters(NULL, "");
    kedge_meters_begin(&meters, 0);
    ck_assert_int_eq((int)total(2).quality, (int)KEDGE_QUALITY_UNKNOWN);
    kedge_surroundings_see(&meters, &s);
    ck_assert(s.has_battery && s.knows_battery && s.charging && !s.knows_celsius);
    ck_assert_double_eq_tol(s.battery_percent, 50, 1e-9);
    battery("Discharging", "1000000", "600000");
    put("87000", "sys/class/thermal/thermal_zone0/temp");
    put("41000", "sys/class/thermal/thermal_zone1/temp");
    kedge_surroundings_see(&meters, &s);
    ck_assert(!s.charging && s.knows_celsius);
    ck_assert_double_eq_tol(s.battery_percent, 15, 1e-9);
    ck_assert_double_eq_tol(s.celsius, 87, 1e-9);
    put("Mains", "sys/class/power_supply/AC/type");
    put("1", "sys/class/power_supply/AC/online");
    kedge_surroundings_see(&meters, &s);
    ck_assert(s.charging);
    end_tree();
}
END_TEST

/* Traps 14, 15, 17: the energy counter is preferred, power where there is none; a device in parts is unknown;
 * the one that trains is found by its UUID wherever it stands. */
START_TEST(gpus)
{
    static const struct {
        const char *gpus, *gpu;
        double joules; /* in a window of two readings; below 0: unknown */
    } cases[] = {{"GPU-1 A100 normal", "", 100},
                 {"GPU-1 P100 no-energy", "", 300},
                 {"GPU-1 A100 mig", "", -1},
                 {"GPU-1 A100 no-permission", "", -1},
                 {"GPU-1 A100 lost", "", -1},
                 {"GPU-1 A100 reset", "", -1},
                 {"GPU-1 A100 normal GPU-2 P100 no-energy", "", 400},
                 {"GPU-1 A100 normal GPU-2 P100 no-energy", "GPU-2", 300},
                 {"GPU-2 P100 no-energy GPU-1 A100 normal", "GPU-1", 100},
                 {"GPU-1 A100 normal GPU-2 A100 mig", "", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin_tree();
        open_meters(cases[i].gpus, cases[i].gpu);
        kedge_meters_begin(&meters, 0);
        const struct kedge_joules j = total(2);
        ck_assert_msg(cases[i].joules < 0 ? j.quality == KEDGE_QUALITY_UNKNOWN
                                          : fabs(j.joules - cases[i].joules) < 1e-6,
                      "case %zu: %g", i, j.joules);
        end_tree();
    }
    begin_tree(); /* shorter than the second over which power is a mean */
    open_meters("GPU-1 P100 no-energy", "");
    kedge_meters_begin(&meters, 0);
    struct kedge_joule_sum sum;
    double load;
    kedge_meters_finish(&meters, second / 2, &sum, &load);
    ck_assert_uint_eq(sum.unknown_count, 1);
    end_tree();
}
END_TEST

/* Trap 16: the module's number holds the processor's; no library is no error. */
START_TEST(grace_hopper)
{
    char text[KEDGE_METER_HINT_MAX];
    begin_tree();
    zone("intel-rapl:0", "package-0", 1000000);
    open_meters("GPU-1 NVIDIA-GH200-480GB normal", "");
    kedge_meters_describe(&meters, text);
    ck_assert_str_eq(text, "nvml energy 1");
    kedge_meters_close(&meters);
    const struct kedge_meters_options none = {.root = root, .nvml = "libkedge-no-such.so.1", .gpu = ""};
    ck_assert_int_eq(kedge_meters_open(&meters, &none), KEDGE_OK);
    kedge_meters_describe(&meters, text);
    ck_assert_str_eq(text, "rapl 1");
    end_tree();
}
END_TEST

static unsigned long long read_number(const char *name)
{
    char path[256];
    uint64_t v = 0;
    snprintf(path, sizeof path, "%s/%s", root, name);
    ck_assert_int_eq(kedge_sys_number(path, &v), KEDGE_OK);
    return v;
}

#define LIMIT "sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw"

/* A cap is kept on the disk before it is changed, never goes above what was found, and is put back: at the
 * end, and by the next process when this one was killed. */
START_TEST(caps_are_put_back)
{
    static struct kedge_caps caps, next;
    char kept[128];
    struct kedge_diag d = {.text = ""};
    begin_tree();
    snprintf(kept, sizeof kept, "%s/caps", root);
    zone("intel-rapl:0", "package-0", 1);
    put("long_term", "sys/class/powercap/intel-rapl:0/constraint_0_name");
    number(125000000, LIMIT);
    open_meters(NULL, "");
    ck_assert_int_eq(kedge_caps_open(&caps, &meters, kept, false, &d), KEDGE_OK);
    ck_assert_double_eq_tol(kedge_caps_found_w(&caps), 125, 1e-9);
    ck_assert_int_eq(kedge_caps_set(&caps, 75, &d), KEDGE_OK);
    ck_assert(read_number(LIMIT) == 75000000 && kedge_file_exists(kept));
    ck_assert_int_eq(kedge_caps_set(&caps, 300, &d), KEDGE_OK);
    ck_assert_uint_eq(read_number(LIMIT), 125000000);
    ck_assert_int_eq(kedge_caps_set(&caps, 1, &d), KEDGE_OK);
    ck_assert_uint_eq(read_number(LIMIT), 125000000 / 4);
    /* killed here: the next one finds 31.25 W, and what there was */
    ck_assert_int_eq(kedge_caps_open(&next, &meters, kept, false, &d), KEDGE_OK);
    ck_assert(read_number(LIMIT) == 125000000 && !kedge_file_exists(kept));
    ck_assert_double_eq_tol(kedge_caps_found_w(&next), 125, 1e-9);
    ck_assert_int_eq(kedge_caps_set(&next, 100, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_caps_restore(&next, &d), KEDGE_OK);
    ck_assert(read_number(LIMIT) == 125000000 && !kedge_file_exists(kept));
    put("rapl 1 /tmp/other_power_limit_uw", "caps"); /* nothing else is ever written to */
    ck_assert_int_eq(kedge_caps_open(&next, &meters, kept, false, &d), KEDGE_E_FORMAT);
    end_tree();
}
END_TEST

START_TEST(caps_of_gpus)
{
    static struct kedge_caps caps;
    char kept[128];
    struct kedge_diag d = {.text = ""};
    begin_tree();
    snprintf(kept, sizeof kept, "%s/caps", root);
    open_meters("GPU-1 A100 normal", "");
    ck_assert_int_eq(kedge_caps_open(&caps, &meters, kept, true, &d), KEDGE_OK);
    ck_assert_double_eq_tol(kedge_caps_found_w(&caps), 300, 1e-9);
    ck_assert_double_eq_tol(kedge_caps_least_w(&caps), 100, 1e-9);
    ck_assert_int_eq(kedge_caps_set(&caps, 150, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_caps_restore_kept(&meters, kept, &d), KEDGE_OK);
    ck_assert_int_eq(kedge_caps_open(&caps, &meters, kept, true, &d), KEDGE_OK);
    ck_assert_double_eq_tol(kedge_caps_found_w(&caps), 300, 1e-9);
    kedge_meters_close(&meters);
    open_meters("GPU-1 A100 no-set", "");
    ck_assert_int_eq(kedge_caps_open(&caps, &meters, kept, true, &d), KEDGE_E_DENIED);
    ck_assert_ptr_nonnull(strstr(d.text, "root"));
    end_tree();
}
END_TEST

/* E8: a reading of RAPL takes no millisecond. */
START_TEST(reading_is_quick)
{
    begin_tree();
    zone("intel-rapl:0", "package-0", 1);
    zone("intel-rapl:0:0", "dram", 1);
    cpu(0);
    open_meters(NULL, "");
    kedge_meters_begin(&meters, 0);
    const uint64_t before = kedge_os_processor_ns();
    for (uint64_t i = 1; i <= 200; i++) {
        kedge_meters_tick(&meters, i * second);
    }
    const double each = (double)(kedge_os_processor_ns() - before) / 200 / 1e6;
    ck_assert_msg(each <= 1, "%g ms", each);
    end_tree();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {packages_and_memory,
                                  zones_have_states_of_their_own,
                                  what_can_not_be_read_is_said,
                                  chips_by_their_table,
                                  an_amd_gpu_that_counts_wrong,
                                  jetson_rails,
                                  batteries_of_every_kind,
                                  gpus,
                                  grace_hopper,
                                  caps_are_put_back,
                                  caps_of_gpus,
                                  reading_is_quick};
    return run_suite("energy host", tests, sizeof tests / sizeof tests[0]);
}
