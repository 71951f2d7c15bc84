/* perf's energy events, on folders that look like machines and with the kernel played by the test. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/energy/host/meters.h"
#include "client/energy/host/perf.h"
#include "tests/unit/base/check.h"

#define POWER "sys/bus/event_source/devices/power"

static char root[64];
static struct kedge_meters meters;
static const uint64_t second = 1000000000u;

/* ---- the kernel ---- */

enum { EVENTS_MAX = 16, FIRST_FD = 1000 };
static struct {
    uint32_t opened, open_now;
    struct {
        uint64_t config, value, enabled, running;
        uint32_t cpu;
        bool gone, closed;
    } events[EVENTS_MAX];
    bool denied;
    uint32_t absent_cpu; /* has no such event */
} kernel;

static int play_open(uint32_t type, uint64_t config, uint32_t cpu)
{
    ck_assert_uint_eq(type, 22);
    if (kernel.denied || cpu == kernel.absent_cpu) {
        return kernel.denied ? KEDGE_E_DENIED : KEDGE_E_NOT_FOUND;
    }
    ck_assert_uint_lt(kernel.opened, EVENTS_MAX);
    kernel.events[kernel.opened].config = config;
    kernel.events[kernel.opened].cpu = cpu;
    kernel.open_now++;
    return FIRST_FD + (int)kernel.opened++;
}

static int play_read(int fd, struct kedge_perf_count *ret)
{
    const int i = fd - FIRST_FD;
    ck_assert(i >= 0 && i < (int)kernel.opened && !kernel.events[i].closed);
    if (kernel.events[i].gone) {
        return KEDGE_E_NOT_FOUND;
    }
    *ret =
        (struct kedge_perf_count){kernel.events[i].value, kernel.events[i].enabled, kernel.events[i].running};
    return KEDGE_OK;
}

static void play_close(int fd)
{
    ck_assert(!kernel.events[fd - FIRST_FD].closed);
    kernel.events[fd - FIRST_FD].closed = true;
    kernel.open_now--;
}

static const struct kedge_perf_calls played = {play_open, play_read, play_close};

/* So many joules more on every event, over a second. */
static void draw(double joules)
{
    for (uint32_t i = 0; i < kernel.opened; i++) {
        kernel.events[i].value += (uint64_t)(joules * 4294967296.0);
        kernel.events[i].enabled += second;
        kernel.events[i].running += second;
    }
}

/* ---- the machine ---- */

static void put(const char *name, const char *content)
{
    char path[KEDGE_PATH_MAX], dir[KEDGE_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, name);
    snprintf(dir, sizeof dir, "%s", path);
    *strrchr(dir, '/') = '\0';
    ck_assert_int_eq(kedge_dir_make(dir, 0700, NULL), KEDGE_OK);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "%s\n", content);
    ck_assert_int_eq(fclose(f), 0);
}

static void event(const char *name, const char *config)
{
    char path[128];
    snprintf(path, sizeof path, POWER "/events/%s", name);
    put(path, config);
    snprintf(path, sizeof path, POWER "/events/%s.unit", name);
    put(path, "Joules");
    snprintf(path, sizeof path, POWER "/events/%s.scale", name);
    put(path, "2.3283064365386962890625e-10");
}

static void begin_tree(const char *cpus)
{
    memset(&kernel, 0, sizeof kernel);
    kernel.absent_cpu = UINT32_MAX;
    snprintf(root, sizeof root, "/tmp/kedge-perf-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    put(POWER "/type", "22");
    put(POWER "/cpumask", cpus);
    event("energy-cores", "event=0x01");
    event("energy-pkg", "event=0x02");
    event("energy-gpu", "event=0x04");
    put("proc/stat", "cpu  100 0 0 900 0 0 0 0 0 0");
}

static void end_tree(void)
{
    kedge_meters_close(&meters);
    ck_assert_uint_eq(kernel.open_now, 0);
    ck_assert_int_eq(kedge_dir_remove(root), KEDGE_OK);
}

static void open_meters(const char *expected)
{
    char text[KEDGE_METER_HINT_MAX];
    const struct kedge_meters_options options = {.root = root, .nvml = "", .gpu = "", .perf = &played};
    ck_assert_int_eq(kedge_meters_open(&meters, &options), KEDGE_OK);
    kedge_meters_describe(&meters, text);
    ck_assert_str_eq(text, expected);
}

static struct kedge_joules total(void)
{
    struct kedge_joule_sum sum;
    double load;
    put("proc/stat", "cpu  200 0 0 900 0 0 0 0 0 0");
    kedge_meters_finish(&meters, second, &sum, &load);
    return kedge_joules_total(&sum);
}

static void zone(const char *id, const char *name, const char *uj)
{
    char path[128];
    snprintf(path, sizeof path, "sys/class/powercap/%s/name", id);
    put(path, name);
    snprintf(path, sizeof path, "sys/class/powercap/%s/energy_uj", id);
    put(path, uj);
}

/* ---- tests ---- */

/* Traps 7 and 9: an event on one processor of every package; cores and graphics are in the package. The
 * platform's is for where there is nothing else. */
START_TEST(packages_and_memory)
{
    begin_tree("0,18");
    event("energy-ram", "event=0x03");
    event("energy-psys", "event=0x05");
    open_meters("perf 4");
    kedge_meters_begin(&meters, 0);
    draw(5);
    const struct kedge_joules j = total();
    ck_assert_int_eq((int)j.quality, (int)KEDGE_QUALITY_MEASURED);
    ck_assert_double_eq_tol(j.joules, 20, 1e-6);
    for (uint32_t i = 0; i < kernel.opened; i++) {
        const uint64_t config = kernel.events[i].config;
        ck_assert(config != 1 && config != 4);
        ck_assert_uint_eq(kernel.events[i].cpu, i % 2 ? 18 : 0);
    }
    end_tree();
    begin_tree("0");
    put(POWER "/events/energy-pkg.unit", "");
    event("energy-psys", "event=0x05");
    open_meters("perf 1");
    end_tree();
}
END_TEST

/* Trap 8: where powercap may be read nothing is opened, for it is the same counter. */
START_TEST(powercap_comes_first)
{
    begin_tree("0");
    zone("intel-rapl:0", "package-0", "1000000");
    open_meters("rapl 1");
    ck_assert_uint_eq(kernel.opened, 0);
    kedge_meters_begin(&meters, 0);
    zone("intel-rapl:0", "package-0", "8000000");
    ck_assert_double_eq_tol(total().joules, 7, 1e-6);
    end_tree();
}
END_TEST

/* Trap 11, the other way: powercap is root's alone, perf is permitted. The zone's limit is open to all. */
START_TEST(powercap_is_closed)
{
    char path[160];
    const bool is_root = geteuid() == 0;
    ck_assert(!is_root || seteuid(65534) == 0);
    begin_tree("0");
    zone("intel-rapl:0", "package-0", "1");
    put("sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", "65000000");
    snprintf(path, sizeof path, "%s/sys/class/powercap/intel-rapl:0/energy_uj", root);
    ck_assert_int_eq(chmod(path, 0), 0);
    open_meters("perf 1");
    ck_assert_str_eq(meters.hint, "");
    ck_assert_double_eq_tol(meters.meters[1].power_max_w, 65, 1e-9);
    kedge_meters_begin(&meters, 0);
    draw(9);
    ck_assert_double_eq_tol(total().joules, 9, 1e-6);
    kedge_meters_close(&meters);
    kernel.denied = true; /* both ways are closed: unknown, and both are said */
    open_meters("rapl 1");
    ck_assert(strstr(meters.hint, "udev rule") && strstr(meters.hint, "CAP_PERFMON"));
    kedge_meters_begin(&meters, 0);
    ck_assert_int_eq((int)total().quality, (int)KEDGE_QUALITY_UNKNOWN);
    end_tree();
    ck_assert(!is_root || seteuid(0) == 0);
}
END_TEST

/* perf_event_paranoid, or a container: one line, and no number. */
START_TEST(not_permitted)
{
    begin_tree("0");
    kernel.denied = true;
    open_meters("none");
    ck_assert_str_eq(
        meters.hint,
        "perf's energy events are not permitted: give kedge-client CAP_PERFMON (containers mostly "
        "forbid them)");
    kedge_meters_begin(&meters, 0);
    const struct kedge_joules j = total();
    ck_assert(j.quality == KEDGE_QUALITY_UNKNOWN && isnan(j.joules));
    end_tree();
}
END_TEST

/* A package that cannot be counted makes the sum too small: then none is. */
START_TEST(all_packages_or_none)
{
    begin_tree("0-2");
    kernel.absent_cpu = 2;
    open_meters("none");
    ck_assert_uint_eq(kernel.opened, 2);
    ck_assert_uint_eq(kernel.open_now, 0);
    ck_assert_str_eq(meters.hint, "");
    end_tree();
}
END_TEST

/* Shared out between several users, gone with its processor, standing still, set back: unknown. */
START_TEST(counters_that_lie)
{
    for (int how = 0; how < 4; how++) {
        begin_tree("0,1");
        open_meters("perf 2");
        draw(1);
        kedge_meters_begin(&meters, 0);
        draw(how == 2 ? 0 : 5);
        kernel.events[1].running -= how == 0 ? second / 2 : 0;
        kernel.events[1].gone = how == 1;
        kernel.events[1].value = how == 3 ? 7 : kernel.events[1].value;
        const struct kedge_joules j = total();
        ck_assert_msg(j.quality == KEDGE_QUALITY_UNKNOWN && isnan(j.joules), "way %d: %g", how, j.joules);
        end_tree();
    }
}
END_TEST

/* Trap 4 and what is like it: a file that says something else is nothing that is known. */
START_TEST(files_that_lie)
{
    static const struct {
        const char *file, *text;
    } wrong[] = {{POWER "/type", "22 x"},
                 {POWER "/type", "99999999999"},
                 {POWER "/cpumask", ""},
                 {POWER "/cpumask", "0-"},
                 {POWER "/cpumask", "1-0"},
                 {POWER "/cpumask", "0,"},
                 {POWER "/cpumask", "0 1"},
                 {POWER "/cpumask", "0-16"},
                 {POWER "/cpumask", "0-3,4-7,8-11,12-16"},
                 {POWER "/cpumask", "0-18446744073709551615"},
                 {POWER "/events/energy-pkg", "event=0x"},
                 {POWER "/events/energy-pkg", "event=0x2g"},
                 {POWER "/events/energy-pkg", "event=0x2,umask=0x1"},
                 {POWER "/events/energy-pkg", "event=0x123456789"},
                 {POWER "/events/energy-pkg.unit", "Watts"},
                 {POWER "/events/energy-pkg.scale", "0"},
                 {POWER "/events/energy-pkg.scale", "-1e-9"},
                 {POWER "/events/energy-pkg.scale", "nan"},
                 {POWER "/events/energy-pkg.scale", "2e300"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        begin_tree("0");
        put(wrong[i].file, wrong[i].text);
        open_meters("none");
        ck_assert_msg(kernel.opened == 0, "%s: %s", wrong[i].file, wrong[i].text);
        end_tree();
    }
}
END_TEST

/* The system calls themselves, with an event of every Linux: the clock of processor 0; where even that is not
 * permitted, that is the answer. */
START_TEST(the_calls)
{
    struct kedge_perf_count before, after;
    const int fd = kedge_perf_linux.open(1, 0, 0);
    ck_assert_int_lt(kedge_perf_linux.open(UINT32_MAX, 0, 0), 0);
    if (fd < 0) {
        printf("perf events are not permitted here: %s\n", kedge_strerror(fd));
        return;
    }
    ck_assert_int_eq(kedge_perf_linux.read(fd, &before), KEDGE_OK);
    usleep(20000);
    ck_assert_int_eq(kedge_perf_linux.read(fd, &after), KEDGE_OK);
    ck_assert(after.value > before.value && after.enabled_ns > before.enabled_ns);
    kedge_perf_linux.close(fd);
    ck_assert_int_lt(kedge_perf_linux.read(fd, &after), 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        packages_and_memory,  powercap_comes_first, powercap_is_closed, not_permitted,
        all_packages_or_none, counters_that_lie,    files_that_lie,     the_calls};
    return run_suite("energy perf", tests, sizeof tests / sizeof tests[0]);
}
