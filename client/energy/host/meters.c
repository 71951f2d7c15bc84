/* The meters of this device: found once, read at every tick. meters.h is the contract.
 *
 * Reading and judging are apart: this file only gets numbers from NVML, files and perf, and meter.c decides
 * what they mean, so that every trap can be tested with numbers alone. */
#include "client/energy/host/meters.h"

#include <stdio.h>
#include <string.h>

#include "client/energy/host/impl.h"
#include "client/energy/host/nvml.h"

#define KEDGE_METER_SOURCE(value, object, name) [KEDGE_METER_##value] = &kedgei_source_##object,
static const struct kedgei_source *const sources[KEDGE_METER_SOURCES] = {
#include "client/energy/sources.def"
};
#undef KEDGE_METER_SOURCE

int kedge_meters_open(struct kedge_meters *m, const struct kedge_meters_options *options)
{
    memset(m, 0, sizeof *m);
    const bool is_root = strcmp(options->root, "/") == 0;
    int err = kedge_sys_path(m->root, "%s", is_root ? "" : options->root);
    if (err) {
        return err;
    }
    if (options->nvml[0]) {
        err = kedge_nvml_open(options->nvml, &m->nvml);
        if (err == KEDGE_E_NOMEM) {
            return err;
        }
    }
    m->perf = options->perf;
    for (int s = 0; s < KEDGE_METER_SOURCES; s++) {
        if (sources[s]->find) {
            sources[s]->find(m, options);
        }
    }
    kedge_meters_choose(m->meters, m->count);
    return KEDGE_OK;
}

void kedge_meters_close(struct kedge_meters *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        const struct kedgei_source *source = sources[m->meters[i].source];
        if (source->close) {
            source->close(m, i);
        }
    }
    kedge_nvml_close(m->nvml);
    memset(m, 0, sizeof *m);
}

/* Products of two readings (mV times mA) are bounded before they are formed: a broken sensor must not become
 * a plausible number by wrapping. */
static int read_count(const struct kedge_meters *m, uint32_t i, uint64_t *ret)
{
    const struct kedge_meter_place *p = &m->places[i];
    const struct kedgei_source *source = sources[m->meters[i].source];
    uint64_t value = 0, times = 1;
    if (source->read) {
        return source->read(m, i, ret);
    }
    int err = kedge_sys_number(p->path, &value);
    err = err || !p->second[0] ? err : kedge_sys_number(p->second, &times);
    if (!err && (p->second[0] || p->factor > 1)) {
        if (value > 1000000000u || times > 1000000000u) {
            return KEDGE_E_FORMAT;
        }
        value = value * times * (uint64_t)p->factor;
    }
    if (!err) {
        *ret = value;
    }
    return err;
}

void kedge_meters_tick(struct kedge_meters *m, uint64_t now_ns)
{
    for (uint32_t i = 0; i < m->count; i++) {
        uint64_t count;
        if (m->meters[i].part != KEDGE_PART_NONE) {
            kedge_meter_see(&m->meters[i], now_ns, read_count(m, i, &count) == KEDGE_OK ? &count : NULL);
        }
    }
}

void kedge_meters_begin(struct kedge_meters *m, uint64_t now_ns)
{
    uint64_t all;
    for (uint32_t i = 0; i < m->count; i++) {
        kedge_meter_begin(&m->meters[i], now_ns);
    }
    m->begun_ns = now_ns;
    kedge_sys_cpu(m->root, &all, &m->begun_cpu_ns);
    kedge_meters_tick(m, now_ns);
}

/* As often as the meter that wraps soonest needs, but no more often than every 10 ms, or looking would cost
 * more energy than is measured. */
uint64_t kedge_meters_period_ns(const struct kedge_meters *m)
{
    uint64_t least = 1000000000u;
    for (uint32_t i = 0; i < m->count; i++) {
        const uint64_t p = kedge_meter_period_ns(&m->meters[i]);
        least = m->meters[i].counts && p < least ? p : least;
    }
    return least > 10000000u ? least : 10000000u;
}

void kedge_meters_finish(struct kedge_meters *m, uint64_t now_ns, struct kedge_joule_sum *ret_sum,
                         double *ret_load)
{
    uint64_t all, busy;
    kedge_meters_tick(m, now_ns);
    kedge_sys_cpu(m->root, &all, &busy);
    const uint64_t used = busy > m->begun_cpu_ns && m->begun_cpu_ns > 0 ? busy - m->begun_cpu_ns : 0;
    struct kedge_joule_sum sum = {.measured = 0};
    kedge_meters_end(m->meters, m->count, now_ns, used, &sum);
    *ret_sum = sum;
    *ret_load =
        m->begun_cpu_ns > 0 && now_ns > m->begun_ns ? (double)used / (double)(now_ns - m->begun_ns) : -1;
}

void kedge_meters_describe(const struct kedge_meters *m, char out[KEDGE_METER_HINT_MAX])
{
    size_t len = 0;
    out[0] = '\0';
    for (int s = 0; s < KEDGE_METER_SOURCES; s++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < m->count; i++) {
            n += m->meters[i].counts && (int)m->meters[i].source == s;
        }
        if (n > 0 && len < KEDGE_METER_HINT_MAX) {
            len += (size_t)snprintf(out + len, KEDGE_METER_HINT_MAX - len, "%s%s %u", len ? ", " : "",
                                    kedge_meter_source_name((enum kedge_meter_source)s), n);
        }
    }
    if (len == 0) {
        snprintf(out, KEDGE_METER_HINT_MAX, "none");
    }
}
