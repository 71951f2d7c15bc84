/* Batteries, mains and temperature: /sys/class/power_supply, /sys/class/thermal. */
#include <stdio.h>
#include <string.h>

#include "client/energy/host/impl.h"
#include "client/energy/host/nvml.h"
#include "client/energy/host/state.h"
#include "common/base/mem.h"

static int number(const char *dir, const char *file, uint64_t *ret)
{
    char path[KEDGE_PATH_MAX];
    const int err = kedge_sys_path(path, "%s/%s", dir, file);
    return err ? err : kedge_sys_number(path, ret);
}

/* Currents and powers have a sign or not, by driver (trap 19). */
static int size(const char *dir, const char *file, uint64_t *ret)
{
    char path[KEDGE_PATH_MAX];
    const int err = kedge_sys_path(path, "%s/%s", dir, file);
    return err ? err : kedge_sys_size(path, ret);
}

static bool says(const char *dir, const char *file, const char *text)
{
    char path[KEDGE_PATH_MAX], got[64];
    return kedge_sys_path(path, "%s/%s", dir, file) == KEDGE_OK
           && kedge_sys_text(path, got, sizeof got) == KEDGE_OK && strcmp(got, text) == 0;
}

/* µWh; of batteries that count µAh by the voltage now. */
static int energy_of(const char *dir, const char *energy, const char *charge, uint64_t *ret)
{
    uint64_t a, v;
    if (number(dir, energy, ret) == KEDGE_OK) {
        return KEDGE_OK;
    }
    if (number(dir, charge, &a) || number(dir, "voltage_now", &v) || a > 1000000000u || v > 1000000000u) {
        return KEDGE_E_NOT_FOUND;
    }
    *ret = a * (v / 1000) / 1000;
    return KEDGE_OK;
}

static void find_batteries(struct kedge_meters *m, const struct kedge_meters_options *options)
{
    (void)options;
    char class[KEDGE_PATH_MAX], dir[KEDGE_PATH_MAX];
    struct kedgei_entries *found = kedge_mem_new(1, sizeof *found);
    uint64_t full = 0, value;
    bool counted = true;
    if (found && kedge_sys_path(class, "%s/sys/class/power_supply", m->root) == KEDGE_OK) {
        kedgei_entries(class, found);
        for (uint32_t i = 0; i < found->count && m->battery_count < KEDGE_BATTERIES_MAX; i++) {
            if (kedge_sys_path(dir, "%s/%s", class, found->names[i]) == KEDGE_OK
                && says(dir, "type", "Battery") && !says(dir, "scope", "Device")) { /* a mouse's */
                counted = counted && energy_of(dir, "energy_full", "charge_full", &value) == KEDGE_OK;
                full += counted ? value : 0;
                snprintf(m->batteries[m->battery_count++], KEDGE_PATH_MAX, "%s", dir);
            }
        }
    }
    kedge_mem_free(found);
    for (int power = 0; power < 2 && m->battery_count > 0 && counted; power++) {
        struct kedge_meter *meter =
            kedgei_meter_add(m, KEDGE_METER_BATTERY, KEDGE_PART_DEVICE,
                             power ? KEDGE_WAY_POWER : KEDGE_WAY_CHARGE, power ? 1e-6 : 3.6e-3);
        if (meter) {
            snprintf(meter->name, sizeof meter->name, "battery");
            meter->step = (double)full / 100; /* until finer ones are seen */
            meter->power_max_w = 300;
        }
    }
}

/* µWh in all; KEDGE_E_BUSY: one is being charged, or none is in use. While one battery is charged, the sum of
 * charges says nothing of what the device draws, so the whole reading is refused. With none discharging the
 * device runs from the mains. */
static int read_charge(const struct kedge_meters *m, uint64_t *ret)
{
    uint64_t sum = 0, value;
    bool used = false;
    for (uint32_t i = 0; i < m->battery_count; i++) {
        const char *dir = m->batteries[i];
        if (says(dir, "status", "Charging")) {
            return KEDGE_E_BUSY;
        }
        used = used || says(dir, "status", "Discharging");
        const int err = energy_of(dir, "energy_now", "charge_now", &value);
        if (err) {
            return err;
        }
        sum += value;
    }
    *ret = sum;
    return used ? KEDGE_OK : KEDGE_E_BUSY;
}

/* µW of all; KEDGE_E_BUSY: none is in use. */
static int read_power(const struct kedge_meters *m, uint64_t *ret)
{
    uint64_t sum = 0, current, volts;
    bool used = false;
    for (uint32_t i = 0; i < m->battery_count; i++) {
        const char *dir = m->batteries[i];
        if (!says(dir, "status", "Discharging")) { /* by status, not by the sign of the current (trap 19) */
            continue;
        }
        used = true;
        uint64_t power = 0;
        if (size(dir, "power_now", &power) != KEDGE_OK) {
            if (size(dir, "current_now", &current) || number(dir, "voltage_now", &volts)
                || current > 1000000000u || volts > 1000000000u) {
                return KEDGE_E_NOT_FOUND;
            }
            power = current / 1000 * (volts / 1000);
        }
        sum += power;
    }
    *ret = sum;
    return used ? KEDGE_OK : KEDGE_E_BUSY;
}

static int read_battery(const struct kedge_meters *m, uint32_t i, uint64_t *ret)
{
    return m->meters[i].way == KEDGE_WAY_CHARGE ? read_charge(m, ret) : read_power(m, ret);
}

const struct kedgei_source kedgei_source_battery = {.find = find_batteries, .read = read_battery};

/* ---- what decides whether to train ---- */

/* A percentage of several batteries is formed of charges, as those of a large and a small one cannot be
 * averaged; a battery that tells only its percentage is believed if it is the only one. */
static void see_batteries(const struct kedge_meters *m, struct kedge_surroundings *ret)
{
    uint64_t left = 0, full = 0, value, most, percent = 0;
    bool all = true;
    for (uint32_t i = 0; i < m->battery_count; i++) {
        const char *dir = m->batteries[i];
        ret->has_battery = true;
        ret->charging = ret->charging || says(dir, "status", "Charging") || says(dir, "status", "Full");
        if (energy_of(dir, "energy_now", "charge_now", &value) == KEDGE_OK
            && energy_of(dir, "energy_full", "charge_full", &most) == KEDGE_OK && most > 0) {
            left += value;
            full += most;
        } else if (number(dir, "capacity", &value) == KEDGE_OK && value <= 100) {
            percent = value > percent ? value : percent;
            all = all && m->battery_count == 1;
        } else {
            all = false;
        }
    }
    if (all && m->battery_count > 0) {
        ret->battery_percent = full > 0 ? (double)left * 100 / (double)full : (double)percent;
        ret->knows_battery = true;
    }
}

static void see_mains(const struct kedge_meters *m, struct kedgei_entries *list,
                      struct kedge_surroundings *ret)
{
    char class[KEDGE_PATH_MAX], dir[KEDGE_PATH_MAX];
    uint64_t online;
    if (kedge_sys_path(class, "%s/sys/class/power_supply", m->root)) {
        return;
    }
    kedgei_entries(class, list);
    for (uint32_t i = 0; i < list->count; i++) {
        if (kedge_sys_path(dir, "%s/%s", class, list->names[i]) == KEDGE_OK && !says(dir, "type", "Battery")
            && number(dir, "online", &online) == KEDGE_OK && online == 1) {
            ret->charging = true;
        }
    }
}

/* The hottest of all zones and GPUs: the owner's limit is on the device. Readings that no device survives are
 * sensors that are not there. */
static void see_temperature(const struct kedge_meters *m, struct kedgei_entries *list,
                            struct kedge_surroundings *ret)
{
    char class[KEDGE_PATH_MAX], dir[KEDGE_PATH_MAX];
    uint64_t value;
    if (kedge_sys_path(class, "%s/sys/class/thermal", m->root) == KEDGE_OK) {
        kedgei_entries(class, list);
        for (uint32_t i = 0; i < list->count; i++) {
            if (strncmp(list->names[i], "thermal_zone", 12) == 0
                && kedge_sys_path(dir, "%s/%s", class, list->names[i]) == KEDGE_OK
                && number(dir, "temp", &value) == KEDGE_OK && value < 200000) {
                const double c = (double)value / 1000;
                ret->celsius = ret->knows_celsius && ret->celsius > c ? ret->celsius : c;
                ret->knows_celsius = true;
            }
        }
    }
    for (unsigned i = 0; m->nvml && i < kedge_nvml_count(m->nvml); i++) {
        if (kedge_nvml_celsius(m->nvml, i, &value) == KEDGE_OK && value < 200) {
            const double c = (double)value;
            ret->celsius = ret->knows_celsius && ret->celsius > c ? ret->celsius : c;
            ret->knows_celsius = true;
        }
    }
}

void kedge_surroundings_see(const struct kedge_meters *m, struct kedge_surroundings *ret)
{
    struct kedgei_entries *list = kedge_mem_new(1, sizeof *list);
    *ret = (struct kedge_surroundings){.has_battery = false};
    see_batteries(m, ret);
    if (list) {
        see_mains(m, list, ret);
        see_temperature(m, list, ret);
    }
    kedge_mem_free(list);
}
