/* Rows of what metering itself takes, on a folder that looks like a machine with two processors and a
 * battery. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/rows.h"
#include "client/energy/host/meters.h"
#include "client/energy/host/state.h"
#include "common/base/os/clock.h"

enum { TIMES = 2000 };
static const uint64_t second = 1000000000u;

static int put(const char *root, const char *name, const char *text)
{
    char path[KEDGE_PATH_MAX], dir[KEDGE_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, name);
    snprintf(dir, sizeof dir, "%s", path);
    *strrchr(dir, '/') = '\0';
    int err = kedge_dir_make(dir, 0700, NULL);
    return err ? err : kedge_file_write(path, kedge_view_str(text), 0600, NULL);
}

static int make_tree(const char *root)
{
    static const char *const files[][2] = {
        {"sys/class/powercap/intel-rapl:0/name", "package-0\n"},
        {"sys/class/powercap/intel-rapl:0/energy_uj", "1\n"},
        {"sys/class/powercap/intel-rapl:0:0/name", "dram\n"},
        {"sys/class/powercap/intel-rapl:0:0/energy_uj", "1\n"},
        {"sys/class/powercap/intel-rapl:1/name", "package-1\n"},
        {"sys/class/powercap/intel-rapl:1/energy_uj", "1\n"},
        {"sys/class/powercap/intel-rapl:1:0/name", "dram\n"},
        {"sys/class/powercap/intel-rapl:1:0/energy_uj", "1\n"},
        {"sys/class/power_supply/BAT0/type", "Battery\n"},
        {"sys/class/power_supply/BAT0/status", "Discharging\n"},
        {"sys/class/power_supply/BAT0/energy_now", "30000000\n"},
        {"sys/class/power_supply/BAT0/energy_full", "50000000\n"},
        {"sys/class/thermal/thermal_zone0/temp", "50000\n"},
        {"sys/class/thermal/thermal_zone1/temp", "51000\n"},
        {"proc/stat", "cpu  100 0 0 900 0 0 0 0 0 0\n"},
    };
    int err = KEDGE_OK;
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !err; i++) {
        err = put(root, files[i][0], files[i][1]);
    }
    return err;
}

int kedge_row_meter(struct row rows[ROWS_MAX], int *ret_count)
{
    static struct kedge_meters meters;
    char root[] = "/tmp/kedge-bench-meter-XXXXXX";
    struct kedge_surroundings s;
    *ret_count = 0;
    if (!mkdtemp(root)) {
        return KEDGE_E_IO;
    }
    const struct kedge_meters_options options = {.root = root, .nvml = "", .gpu = ""};
    int err = make_tree(root);
    err = err ? err : kedge_meters_open(&meters, &options);
    double read_ms = 0, look_ms = 0;
    if (!err) {
        kedge_meters_begin(&meters, 0);
        uint64_t began = kedge_os_processor_ns();
        for (uint64_t i = 1; i <= TIMES; i++) {
            kedge_meters_tick(&meters, i * second);
        }
        read_ms = 1e-6 * (double)(kedge_os_processor_ns() - began) / TIMES;
        began = kedge_os_processor_ns();
        for (uint64_t i = 1; i <= TIMES; i++) {
            kedge_surroundings_see(&meters, &s);
        }
        look_ms = 1e-6 * (double)(kedge_os_processor_ns() - began) / TIMES;
        kedge_meters_close(&meters);
    }
    const int left = kedge_dir_remove(root);
    err = err ? err : left;
    if (!err) {
        const double core = (read_ms + look_ms) / 10; /* percent of a second */
        rows[0] = (struct row){"meter-core", "% of a core", core, look_ms / 10, 0.5, false, core <= 0.5};
        rows[1] = (struct row){"meter-reading", "ms", read_ms, 4, 1, false, read_ms <= 1};
        *ret_count = 2;
    }
    return err;
}
