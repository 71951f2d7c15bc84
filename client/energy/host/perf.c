/* perf: the energy events of packages and memory, each on one processor of every package. */
#include "client/energy/host/perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/energy/host/impl.h"
#include "common/base/os/file.h"
#include "common/base/text.h"

enum { CPUS_MAX = 16, TEXT_MAX = 256, CPU_MOST = 65535 };

static int linux_open(uint32_t type, uint64_t config, uint32_t cpu)
{
    struct perf_event_attr attr = {.type = type, .size = sizeof attr, .config = config};
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    const long fd = syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd >= 0) {
        return (int)fd;
    }
    return errno == EACCES || errno == EPERM || errno == ENOSYS ? KEDGE_E_DENIED : KEDGE_E_NOT_FOUND;
}

static int linux_read(int fd, struct kedge_perf_count *ret)
{
    uint64_t got[3];
    const ssize_t n = read(fd, got, sizeof got);
    if (n != (ssize_t)sizeof got) {
        return n < 0 ? kedge_errno(errno) : KEDGE_E_NOT_FOUND;
    }
    *ret = (struct kedge_perf_count){got[0], got[1], got[2]};
    return KEDGE_OK;
}

static void linux_close(int fd)
{
    close(fd);
}

const struct kedge_perf_calls kedge_perf_linux = {linux_open, linux_read, linux_close};

/* KEDGE_E_BUSY: others had the counter, too. */
static int read_perf(const struct kedge_meters *m, uint32_t i, uint64_t *ret)
{
    struct kedge_perf_count c;
    const int err = m->perf->read(m->places[i].fd, &c);
    if (err) {
        return err;
    }
    if (c.running_ns != c.enabled_ns) { /* others had the counter in turns: what it missed nobody knows */
        return KEDGE_E_BUSY;
    }
    *ret = c.value;
    return KEDGE_OK;
}

/* ---- what there is ---- */

/* "0,18" or "0-1": one processor of each package (trap 9). KEDGE_E_FORMAT. */
static int parse_cpus(const char *text, uint32_t cpus[CPUS_MAX], uint32_t *ret_count)
{
    uint32_t count = 0;
    for (const char *at = text; count <= CPUS_MAX;) {
        uint64_t first, last;
        size_t len = strspn(at, "0123456789");
        int err = kedge_decimal_decode(kedge_view_of(at, len), CPU_MOST, &first);
        at += len;
        last = first;
        if (!err && *at == '-') {
            len = strspn(++at, "0123456789");
            err = kedge_decimal_decode(kedge_view_of(at, len), CPU_MOST, &last);
            at += len;
        }
        if (err || last < first || last - first >= CPUS_MAX - count || (*at != ',' && *at != '\0')) {
            return KEDGE_E_FORMAT;
        }
        for (uint64_t cpu = first; cpu <= last; cpu++) {
            cpus[count++] = (uint32_t)cpu;
        }
        if (*at++ == '\0') {
            *ret_count = count;
            return KEDGE_OK;
        }
    }
    return KEDGE_E_FORMAT;
}

/* "event=0x02". */
static int parse_config(const char *text, uint64_t *ret)
{
    uint64_t v = 0;
    if (strncmp(text, "event=0x", 8) != 0 || text[8] == '\0' || strlen(text + 8) > 8) {
        return KEDGE_E_FORMAT;
    }
    for (const char *at = text + 8; *at; at++) {
        const char *digits = "0123456789abcdef", *digit = strchr(digits, *at);
        if (!digit) {
            return KEDGE_E_FORMAT;
        }
        v = v * 16 + (uint64_t)(digit - digits);
    }
    *ret = v;
    return KEDGE_OK;
}

struct source {
    char dir[KEDGE_PATH_MAX];
    uint32_t type, cpu_count, cpus[CPUS_MAX];
};

static int find_source(const struct kedge_meters *m, struct source *ret)
{
    char path[KEDGE_PATH_MAX], text[TEXT_MAX];
    uint64_t type = 0;
    if (kedge_sys_path(ret->dir, "%s/sys/bus/event_source/devices/power", m->root)
        || kedge_sys_path(path, "%s/type", ret->dir) || kedge_sys_number(path, &type) || type > UINT32_MAX) {
        return KEDGE_E_FORMAT;
    }
    if (kedge_sys_path(path, "%s/cpumask", ret->dir) || kedge_sys_text(path, text, sizeof text)
        || parse_cpus(text, ret->cpus, &ret->cpu_count)) {
        return KEDGE_E_FORMAT;
    }
    ret->type = (uint32_t)type;
    return KEDGE_OK;
}

/* Its number, and joules of one count; an event without a scale or in another unit is nothing that is known.
 */
static int find_event(const struct source *s, const char *name, uint64_t *ret_config, double *ret_unit)
{
    char path[KEDGE_PATH_MAX], text[TEXT_MAX];
    double unit = 0;
    if (kedge_sys_path(path, "%s/events/%s.unit", s->dir, name) || kedge_sys_text(path, text, sizeof text)
        || strcmp(text, "Joules") != 0) {
        return KEDGE_E_FORMAT;
    }
    if (kedge_sys_path(path, "%s/events/%s.scale", s->dir, name) || kedge_sys_text(path, text, sizeof text)
        || kedge_real_decode(kedge_view_str(text), &unit) || !(unit > 0 && unit <= 1)) {
        return KEDGE_E_FORMAT;
    }
    if (kedge_sys_path(path, "%s/events/%s", s->dir, name) || kedge_sys_text(path, text, sizeof text)) {
        return KEDGE_E_FORMAT;
    }
    *ret_unit = unit;
    return parse_config(text, ret_config);
}

/* Powercap tells this part, and may be read: then nothing is opened here, for both are one counter (trap 8).
 * Else how many zones of it cannot be, and the most that one may draw. */
static bool is_told(const struct kedge_meters *m, enum kedge_meter_part part, uint32_t *ret_closed,
                    double *ret_most)
{
    uint64_t value;
    bool told = false;
    *ret_closed = 0;
    *ret_most = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->meters[i].source == KEDGE_METER_RAPL && m->meters[i].part == part) {
            const bool reads = kedge_sys_number(m->places[i].path, &value) == KEDGE_OK;
            told = told || reads;
            *ret_closed += !reads;
            *ret_most = reads ? *ret_most : fmax(*ret_most, m->meters[i].power_max_w);
        }
    }
    return told;
}

static void close_all(const struct kedge_meters *m, const int *fds, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        m->perf->close(fds[i]);
    }
}

/* All packages or none: a sum without one of them would be too small. */
static int add_event(struct kedge_meters *m, const struct source *s, const char *name,
                     enum kedge_meter_part part)
{
    uint64_t config;
    double unit, most;
    uint32_t closed, opened = 0;
    int fds[CPUS_MAX], err = find_event(s, name, &config, &unit);
    if (err || is_told(m, part, &closed, &most) || m->count + s->cpu_count > KEDGE_METERS_MAX) {
        return KEDGE_OK;
    }
    for (; opened < s->cpu_count && !err; opened += !err) {
        fds[opened] = m->perf->open(s->type, config, s->cpus[opened]);
        err = fds[opened] < 0 ? fds[opened] : KEDGE_OK;
    }
    if (err) {
        close_all(m, fds, opened);
        return err;
    }
    for (uint32_t i = 0; i < m->count; i++) {
        const bool replaced = m->meters[i].source == KEDGE_METER_RAPL && m->meters[i].part == part;
        m->meters[i].part = replaced ? KEDGE_PART_NONE : m->meters[i].part;
    }
    for (uint32_t i = 0; i < s->cpu_count; i++) {
        struct kedge_meter *meter = kedgei_meter_add(m, KEDGE_METER_PERF, part, KEDGE_WAY_COUNTER, unit);
        KEDGE_ASSERT(meter);
        snprintf(meter->name, sizeof meter->name, "%.31s cpu%u", name, s->cpus[i]);
        meter->power_max_w = most > 0 ? most : meter->power_max_w;
        kedgei_place_of(m, meter)->fd = fds[i];
    }
    if (closed > 0) {
        m->hint[0] = '\0'; /* what powercap does not tell, this does */
    }
    return KEDGE_OK;
}

static void find_perf(struct kedge_meters *m, const struct kedge_meters_options *options)
{
    (void)options;
    static const struct {
        const char *name;
        enum kedge_meter_part part;
    } events[] = {{"energy-pkg", KEDGE_PART_CPU}, /* energy-cores and energy-gpu are in it (trap 7) */
                  {"energy-ram", KEDGE_PART_DRAM},
                  {"energy-psys", KEDGE_PART_DEVICE}};
    struct source s;
    if (!m->perf || find_source(m, &s) != KEDGE_OK) {
        return;
    }
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        if (add_event(m, &s, events[i].name, events[i].part) == KEDGE_E_DENIED) {
            const size_t len = strlen(m->hint);
            snprintf(m->hint + len, sizeof m->hint - len,
                     "%sperf's energy events are not permitted: give kedge-client CAP_PERFMON (containers "
                     "mostly forbid them)",
                     len ? "; " : "");
            return;
        }
    }
}

static void close_perf(struct kedge_meters *m, uint32_t i)
{
    m->perf->close(m->places[i].fd);
}

const struct kedgei_source kedgei_source_perf = {.find = find_perf, .read = read_perf, .close = close_perf};
