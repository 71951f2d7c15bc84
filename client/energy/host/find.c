/* What there is below /sys: RAPL zones, chips of hwmon, rails of Jetson boards.
 *
 * Drivers name the same thing in different ways and list parts beside their sums, so each source says which
 * channels are believed and what they mean; the numbers in "trap N" are those of the tests
 * (tests/unit/energy), which build such a tree with its trap. Entries are sorted, for the order of readdir
 * differs from boot to boot, and the first of several equal meters counts. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/energy/host/impl.h"
#include "common/base/mem.h"

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

void kedgei_entries(const char *dir, struct kedgei_entries *ret)
{
    ret->count = 0;
    DIR *d = opendir(dir);
    struct dirent *e;
    while (d && ret->count < KEDGEI_ENTRIES_MAX && (e = readdir(d)) != NULL) {
        const size_t len = strlen(e->d_name);
        if (e->d_name[0] != '.' && len < KEDGEI_NAME_MAX) {
            memcpy(ret->names[ret->count++], e->d_name, len + 1);
        }
    }
    if (d) {
        closedir(d);
    }
    qsort(ret->names, ret->count, KEDGEI_NAME_MAX, compare_names);
}

struct kedge_meter *kedgei_meter_add(struct kedge_meters *m, enum kedge_meter_source source,
                                     enum kedge_meter_part part, enum kedge_meter_way way, double unit)
{
    static const double most[] = {
        [KEDGE_PART_CPU] = 1000,    [KEDGE_PART_DRAM] = 300,    [KEDGE_PART_GPU] = 2000,
        [KEDGE_PART_MODULE] = 3000, [KEDGE_PART_DEVICE] = 5000, [KEDGE_PART_NONE] = 5000};
    static const uint64_t ms = 1000000;
    if (m->count == KEDGE_METERS_MAX) {
        return NULL;
    }
    struct kedge_meter *meter = &m->meters[m->count];
    m->places[m->count++] = (struct kedge_meter_place){.factor = 1, .fd = -1};
    const bool slow = way == KEDGE_WAY_POWER || source == KEDGE_METER_NVML_ENERGY; /* trap 14 */
    *meter = (struct kedge_meter){.source = source,
                                  .part = part,
                                  .way = way,
                                  .unit = unit,
                                  .power_max_w = most[part],
                                  .window_min_ns = slow ? 1000 * ms : 100 * ms};
    return meter;
}

struct kedge_meter_place *kedgei_place_of(struct kedge_meters *m, const struct kedge_meter *meter)
{
    return &m->places[meter - m->meters];
}

/* ---- RAPL ---- */

/* The zone above "intel-rapl:0:1" is "intel-rapl:0". */
static bool parent_of(const char *zone, char out[KEDGEI_NAME_MAX])
{
    const char *first = strchr(zone, ':'), *last = strrchr(zone, ':');
    if (!first || first == last) {
        return false;
    }
    memcpy(out, zone, (size_t)(last - zone));
    out[last - zone] = '\0';
    return true;
}

/* The most that the zone may draw, by any of its limits. */
static void find_most(const char *dir, struct kedge_meter *meter)
{
    static const char *const files[] = {"constraint_0_max_power_uw", "constraint_0_power_limit_uw",
                                        "constraint_1_max_power_uw", "constraint_1_power_limit_uw"};
    char path[KEDGE_PATH_MAX];
    uint64_t most = 0, value;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (kedge_sys_path(path, "%s/%s", dir, files[i]) == KEDGE_OK
            && kedge_sys_number(path, &value) == KEDGE_OK && value > most && value < 100000u * 1000000ull) {
            most = value;
        }
    }
    meter->power_max_w = most > 0 ? (double)most / 1e6 : meter->power_max_w;
}

static void add_zone(struct kedge_meters *m, const char *class, const char *zone)
{
    char dir[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX], name[KEDGEI_NAME_MAX], above[KEDGEI_NAME_MAX];
    char parent[KEDGEI_NAME_MAX] = "";
    uint64_t value = 0;
    if (kedge_sys_path(dir, "%s/%s", class, zone) || kedge_sys_path(path, "%s/name", dir)) {
        return;
    }
    int err = kedge_sys_text(path, name, sizeof name);
    if (err == KEDGE_E_NOT_FOUND && strchr(zone, ':')) { /* trap 12 */
        snprintf(m->hint, sizeof m->hint,
                 "%.80s leads nowhere: a container needs /sys/devices/virtual/powercap of its host", zone);
    }
    if (err || kedge_sys_path(path, "%s/energy_uj", dir)) {
        return;
    }
    if (parent_of(zone, above) && kedge_sys_path(path, "%s/%s/name", class, above) == KEDGE_OK
        && kedge_sys_text(path, parent, sizeof parent - 1) == KEDGE_OK) {
        const size_t len = strlen(parent);
        parent[len] = '/';
        parent[len + 1] = '\0';
    }
    struct kedge_meter *meter =
        kedgei_meter_add(m, KEDGE_METER_RAPL, kedge_rapl_part(kedge_view_str(name)), KEDGE_WAY_COUNTER, 1e-6);
    if (!meter || kedge_sys_path(kedgei_place_of(m, meter)->path, "%s/energy_uj", dir)) {
        return;
    }
    snprintf(meter->name, sizeof meter->name, "%.31s%.31s", parent, name);
    find_most(dir, meter);
    if (kedge_sys_path(path, "%s/max_energy_range_uj", dir) == KEDGE_OK
        && kedge_sys_number(path, &value) == KEDGE_OK) {
        meter->range = value;
    }
    err = kedge_sys_number(kedgei_place_of(m, meter)->path, &value);
    if (err == KEDGE_E_DENIED) { /* trap 11 */
        snprintf(m->hint, sizeof m->hint,
                 "%.80s/energy_uj is for root only: let a udev rule or tmpfiles.d make it readable for the "
                 "group of "
                 "kedge-client (never run it as root)",
                 zone);
    }
}

static void find_rapl(struct kedge_meters *m, const struct kedge_meters_options *options)
{
    (void)options;
    char class[KEDGE_PATH_MAX];
    static const char *const families[] = {"intel-rapl:", "intel-rapl-mmio:"}; /* trap 8: in this order */
    struct kedgei_entries *zones = kedge_mem_new(1, sizeof *zones);
    if (zones && kedge_sys_path(class, "%s/sys/class/powercap", m->root) == KEDGE_OK) {
        kedgei_entries(class, zones);
        for (size_t family = 0; family < 2; family++) {
            for (uint32_t i = 0; i < zones->count; i++) {
                if (strncmp(zones->names[i], families[family], strlen(families[family])) == 0) {
                    add_zone(m, class, zones->names[i]);
                }
            }
        }
    }
    kedge_mem_free(zones);
}

const struct kedgei_source kedgei_source_rapl = {.find = find_rapl};

/* ---- hwmon ---- */

/* Chips whose channels are known; of others nothing is believed (trap 21). label NULL: the channel has none,
 * or any. */
static const struct {
    const char *chip, *file, *label;
    enum kedge_meter_part part;
    enum kedge_meter_way way;
} chips[] = {
    {"amd_energy", "energy%u_input", "Esocket", KEDGE_PART_CPU, KEDGE_WAY_COUNTER},
    {"amdgpu", "energy%u_input", NULL, KEDGE_PART_GPU, KEDGE_WAY_COUNTER},
    {"amdgpu", "power%u_average", NULL, KEDGE_PART_GPU, KEDGE_WAY_POWER},
    {"amdgpu", "power%u_input", NULL, KEDGE_PART_GPU, KEDGE_WAY_POWER},
    {"i915", "energy%u_input", NULL, KEDGE_PART_GPU, KEDGE_WAY_COUNTER},
    {"xe", "energy%u_input", "card", KEDGE_PART_GPU, KEDGE_WAY_COUNTER},
    {"power_meter", "power%u_average", NULL, KEDGE_PART_DEVICE, KEDGE_WAY_POWER},
};

/* "energy1_input" is disabled where "energy1_enable", or "power1_enable", says 0. */
static bool is_disabled(const char *dir, const char *kind, unsigned channel)
{
    char path[KEDGE_PATH_MAX];
    uint64_t value;
    return kedge_sys_path(path, "%s/%s%u_enable", dir, kind, channel) == KEDGE_OK
           && kedge_sys_number(path, &value) == KEDGE_OK && value == 0;
}

static void add_channel(struct kedge_meters *m, const char *dir, const char *id, size_t row, unsigned channel)
{
    char path[KEDGE_PATH_MAX], file[32], label[KEDGEI_NAME_MAX];
    const bool counter = chips[row].way == KEDGE_WAY_COUNTER;
    const char *kind = counter ? "energy" : "power";
    uint64_t value;
    const char *rest = strchr(chips[row].file, '_');
    snprintf(file, sizeof file, "%s%u%s", kind, channel, rest);
    if (kedge_sys_path(path, "%s/%s", dir, file) || kedge_sys_number(path, &value)
        || is_disabled(dir, kind, channel)) {
        return;
    }
    char label_path[KEDGE_PATH_MAX];
    const bool labelled = kedge_sys_path(label_path, "%s/%s%u_label", dir, kind, channel) == KEDGE_OK
                          && kedge_sys_text(label_path, label, sizeof label) == KEDGE_OK;
    const char *wanted = chips[row].label;
    if (wanted && (!labelled || strncmp(label, wanted, strlen(wanted)) != 0)) {
        return; /* a part beside its sum, or the other way round */
    }
    struct kedge_meter *meter = kedgei_meter_add(m, KEDGE_METER_HWMON, chips[row].part, chips[row].way, 1e-6);
    if (meter) {
        snprintf(meter->name, sizeof meter->name, "%.20s %.20s%s%.20s", chips[row].chip, id,
                 labelled && wanted ? " " : "", labelled && wanted ? label : "");
        snprintf(kedgei_place_of(m, meter)->path, KEDGE_PATH_MAX, "%s", path);
    }
}

static void find_hwmon(struct kedge_meters *m, const struct kedge_meters_options *options)
{
    (void)options;
    char class[KEDGE_PATH_MAX], dir[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX], name[KEDGEI_NAME_MAX];
    struct kedgei_entries *found = kedge_mem_new(1, sizeof *found);
    if (found && kedge_sys_path(class, "%s/sys/class/hwmon", m->root) == KEDGE_OK) {
        kedgei_entries(class, found);
        for (uint32_t i = 0; i < found->count; i++) {
            if (kedge_sys_path(dir, "%s/%s", class, found->names[i]) || kedge_sys_path(path, "%s/name", dir)
                || kedge_sys_text(path, name, sizeof name)) {
                continue;
            }
            for (size_t row = 0; row < sizeof chips / sizeof chips[0]; row++) {
                for (unsigned channel = 1; channel <= 16 && strcmp(chips[row].chip, name) == 0; channel++) {
                    add_channel(m, dir, found->names[i], row, channel);
                }
            }
        }
    }
    kedge_mem_free(found);
}

const struct kedgei_source kedgei_source_hwmon = {.find = find_hwmon};

/* ---- Jetson ---- */

/* Rail n of one INA3221: 1 to 3 are buses, what follows are shunts and their sum (trap 21). */
static void add_rail(struct kedge_meters *m, const char *dir, unsigned rail)
{
    char path[KEDGE_PATH_MAX], second[KEDGE_PATH_MAX] = "", name[KEDGEI_NAME_MAX];
    double factor = 1000;                                             /* mW */
    int err = kedge_sys_path(path, "%s/rail_name_%u", dir, rail - 1); /* old: rails from 0 */
    if (!err) {
        err = kedge_sys_text(path, name, sizeof name);
    }
    if (!err) {
        err = kedge_sys_path(path, "%s/in_power%u_input", dir, rail - 1);
    }
    if (err) {
        factor = 1; /* mV · mA */
        err = kedge_sys_path(path, "%s/in%u_label", dir, rail);
        if (!err) {
            err = kedge_sys_text(path, name, sizeof name);
        }
        if (!err) {
            err = kedge_sys_path(path, "%s/in%u_input", dir, rail);
        }
        if (!err) {
            err = kedge_sys_path(second, "%s/curr%u_input", dir, rail);
        }
    }
    if (err || is_disabled(dir, "in", rail)) {
        return;
    }
    const bool total = kedge_jetson_is_total(kedge_view_str(name));
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->meters[i].source == KEDGE_METER_JETSON && strcmp(m->meters[i].name, name) == 0) {
            return; /* the same chip by another way */
        }
    }
    struct kedge_meter *meter = kedgei_meter_add(
        m, KEDGE_METER_JETSON, total ? KEDGE_PART_DEVICE : KEDGE_PART_NONE, KEDGE_WAY_POWER, 1e-6);
    if (meter) {
        struct kedge_meter_place *place = kedgei_place_of(m, meter);
        snprintf(meter->name, sizeof meter->name, "%.60s", name);
        snprintf(place->path, sizeof place->path, "%s", path);
        snprintf(place->second, sizeof place->second, "%s", second);
        place->factor = factor;
        meter->power_max_w = 200;
    }
}

static void add_rails(struct kedge_meters *m, const char *dir)
{
    for (unsigned rail = 1; rail <= 3; rail++) {
        add_rail(m, dir, rail);
    }
}

/* The chip's folder, what is right below it, and what is below that. */
static void add_chip(struct kedge_meters *m, const char *chip, struct kedgei_entries *outer,
                     struct kedgei_entries *inner)
{
    char dir[KEDGE_PATH_MAX], below[KEDGE_PATH_MAX];
    add_rails(m, chip);
    kedgei_entries(chip, outer);
    for (uint32_t i = 0; i < outer->count; i++) {
        if ((strncmp(outer->names[i], "hwmon", 5) != 0 && strncmp(outer->names[i], "iio:", 4) != 0)
            || kedge_sys_path(dir, "%s/%s", chip, outer->names[i])) {
            continue;
        }
        add_rails(m, dir);
        kedgei_entries(dir, inner);
        for (uint32_t k = 0; k < inner->count; k++) {
            if (strncmp(inner->names[k], "hwmon", 5) == 0
                && kedge_sys_path(below, "%s/%s", dir, inner->names[k]) == KEDGE_OK) {
                add_rails(m, below);
            }
        }
    }
}

static void find_jetson(struct kedge_meters *m, const struct kedge_meters_options *options)
{
    (void)options;
    static const char *const drivers[] = {"ina3221", "ina3221x"};
    char driver[KEDGE_PATH_MAX], chip[KEDGE_PATH_MAX];
    struct kedgei_entries *lists = kedge_mem_new(3, sizeof *lists);
    for (size_t d = 0; lists && d < 2; d++) {
        if (kedge_sys_path(driver, "%s/sys/bus/i2c/drivers/%s", m->root, drivers[d])) {
            continue;
        }
        kedgei_entries(driver, &lists[0]);
        for (uint32_t i = 0; i < lists[0].count; i++) {
            if (kedge_sys_path(chip, "%s/%s", driver, lists[0].names[i]) == KEDGE_OK) {
                add_chip(m, chip, &lists[1], &lists[2]);
            }
        }
    }
    kedge_mem_free(lists);
}

const struct kedgei_source kedgei_source_jetson = {.find = find_jetson};
