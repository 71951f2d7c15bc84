/* Turns readings of a meter into joules, or says why it cannot. Meters wrap, stand still, jump when the
 * machine slept, and cover each other's parts; each of these gives a plausible wrong figure (the traps are
 * listed in the tests by number). So a jump breaks the whole measurement instead of being repaired, a gap
 * is told as coverage, and with less than half of the time covered there is no figure at all.
 *
 * Of several meters of one part the best counts and the others are left out; a meter of the whole device
 * counts alone or not at all. */
#include "client/energy/meter.h"

#include <math.h>
#include <string.h>

#include "common/base/text.h"

static const uint64_t second = 1000000000u, shortest_ns = 5000000u, power_gap_ns = 5000000000u;
static const double cover_least = 0.95, over = 2, battery_steps = 10, gauge_error = 0.2;

const char *kedge_meter_source_name(enum kedge_meter_source s)
{
#define KEDGE_METER_SOURCE(value, object, name) name,
    static const char *const names[] = {
#include "client/energy/sources.def"
    };
#undef KEDGE_METER_SOURCE
    return (size_t)s < sizeof names / sizeof names[0] ? names[s] : "unknown";
}

static double seconds_of(uint64_t ns)
{
    return (double)ns / 1e9;
}

void kedge_meter_begin(struct kedge_meter *m, uint64_t now_ns)
{
    m->begun_ns = now_ns;
    m->first_ns = m->last_ns = m->last = m->first = 0;
    m->seen = 0;
    m->joules = m->covered_s = 0;
    m->broken = NULL;
}

/* A counter: what it went up by, modulo its range (traps 1, 2, 3). */
static void see_counter(struct kedge_meter *m, uint64_t count, double dt)
{
    uint64_t delta = count - m->last;
    if (count < m->last) {
        if (m->range == 0 || m->last > m->range) {
            m->broken = "the counter began again";
            return;
        }
        delta = m->range - m->last + count;
    }
    const double joules = (double)delta * m->unit;
    if (m->range > 0 && dt * m->power_max_w > (double)m->range * m->unit) {
        m->broken = "the counter may have begun again more than once between two readings";
    } else if (joules > over * m->power_max_w * dt) {
        m->broken = "the counter jumped: it was set back, or the machine slept";
    } else {
        m->joules += joules;
        m->covered_s += dt;
    }
}

/* Power: the mean of two readings; what cannot be is left out, and so is a gap. */
static void see_power(struct kedge_meter *m, uint64_t count, uint64_t dt_ns)
{
    const double before = (double)m->last * m->unit, now = (double)count * m->unit;
    if (dt_ns <= power_gap_ns && before <= over * m->power_max_w && now <= over * m->power_max_w) {
        m->joules += (before + now) / 2 * seconds_of(dt_ns);
        m->covered_s += seconds_of(dt_ns);
    }
}

static void see_charge(struct kedge_meter *m, uint64_t count, double dt)
{
    if (count > m->last) {
        m->broken = "the battery was charged";
        return;
    }
    const double step = (double)(m->last - count);
    m->step = step > 0 && (m->step <= 0 || step < m->step) ? step : m->step;
    m->joules = (double)(m->first - count) * m->unit;
    m->covered_s += dt;
    if (m->joules > over * m->power_max_w * m->covered_s + (m->step > 0 ? m->step * m->unit : 0)) {
        m->broken = "the battery's gauge jumped";
    }
}

void kedge_meter_see(struct kedge_meter *m, uint64_t now_ns, const uint64_t *count)
{
    if (m->way == KEDGE_WAY_CHARGE && !count) {
        m->broken = "the battery was charged, or could not be read"; /* trap 19 */
        return;
    }
    if (!count || m->broken || (m->seen > 0 && now_ns < m->last_ns + shortest_ns)) { /* trap 6 */
        return;
    }
    if (m->seen == 0) { /* nothing before it: no value yet (trap 5) */
        m->first_ns = now_ns;
        m->first = *count;
    } else if (m->way == KEDGE_WAY_COUNTER) {
        see_counter(m, *count, seconds_of(now_ns - m->last_ns));
    } else if (m->way == KEDGE_WAY_POWER) {
        see_power(m, *count, now_ns - m->last_ns);
    } else {
        see_charge(m, *count, seconds_of(now_ns - m->last_ns));
    }
    m->seen++;
    m->last = *count;
    m->last_ns = now_ns;
}

struct kedge_joules kedge_meter_end(const struct kedge_meter *m, uint64_t now_ns, uint64_t cpu_ns)
{
    const uint64_t window = now_ns - m->begun_ns;
    if (m->broken) {
        return kedge_joules_unknown(m->broken);
    }
    if (m->seen == 0) {
        return kedge_joules_unknown("it could not be read");
    }
    if (now_ns <= m->begun_ns || window < m->window_min_ns || m->seen < 2) {
        return kedge_joules_unknown("too short a time");
    }
    if (m->way == KEDGE_WAY_COUNTER && !(m->joules > 0) && cpu_ns > 0) {
        return kedge_joules_unknown("the counter stands still"); /* trap 13 */
    }
    if (m->way == KEDGE_WAY_CHARGE && m->joules < battery_steps * m->step * m->unit) {
        return kedge_joules_unknown("too few steps of the battery's gauge"); /* trap 20 */
    }
    const double covered = m->covered_s / seconds_of(window);
    if (covered >= cover_least) {
        return kedge_joules_measured(m->joules);
    }
    if (covered < 0.5) {
        return kedge_joules_unknown("it covers too little of the time");
    }
    const double rest = seconds_of(window) - m->covered_s;
    return kedge_joules_modelled(m->joules / covered, m->joules,
                                 fmax(m->joules / covered, m->joules + rest * m->power_max_w));
}

uint64_t kedge_meter_period_ns(const struct kedge_meter *m)
{
    if (m->way != KEDGE_WAY_COUNTER || m->range == 0 || !(m->power_max_w > 0)) {
        return second;
    }
    const double half = (double)m->range * m->unit / (2 * m->power_max_w);
    return half < 1 ? (uint64_t)(half * 1e9) : second;
}

static bool begins(struct kedge_view v, const char *prefix)
{
    const size_t len = strlen(prefix);
    return v.len >= len && memcmp(v.ptr, prefix, len) == 0;
}

static bool is(struct kedge_view v, const char *text)
{
    return v.len == strlen(text) && begins(v, text);
}

enum kedge_meter_part kedge_rapl_part(struct kedge_view name)
{
    return begins(name, "package-") ? KEDGE_PART_CPU
           : is(name, "dram")       ? KEDGE_PART_DRAM
           : is(name, "psys")       ? KEDGE_PART_DEVICE
                                    : KEDGE_PART_NONE; /* core, uncore: parts of the package */
}

bool kedge_jetson_is_total(struct kedge_view rail)
{
    return is(rail, "VDD_IN") || is(rail, "POM_5V_IN") || is(rail, "5V_IN") || is(rail, "VDD_TOTAL");
}

static bool same(const struct kedge_meter *a, const struct kedge_meter *b)
{
    return a->part == b->part && strcmp(a->name, b->name) == 0;
}

/* There is a better or an earlier one of the same thing: of one GPU or zone by its name, of the processor,
 * its memory and the whole device also from another source. */
static bool is_doubled(const struct kedge_meter *meters, size_t n, size_t at)
{
    const struct kedge_meter *m = &meters[at];
    const bool by_name = m->part == KEDGE_PART_GPU || m->part == KEDGE_PART_MODULE;
    for (size_t i = 0; i < n; i++) {
        const bool before = meters[i].source < m->source || (meters[i].source == m->source && i < at);
        if (before
            && (same(&meters[i], m)
                || (!by_name && meters[i].part == m->part && meters[i].source != m->source))) {
            return true;
        }
    }
    return false;
}

static bool has_part(const struct kedge_meter *meters, size_t n, enum kedge_meter_part part,
                     enum kedge_meter_source source)
{
    for (size_t i = 0; i < n; i++) {
        if (meters[i].part == part && meters[i].source == source) {
            return true;
        }
    }
    return false;
}

void kedge_meters_choose(struct kedge_meter *meters, size_t n)
{
    const bool rail = has_part(meters, n, KEDGE_PART_DEVICE, KEDGE_METER_JETSON);
    bool module = false, parts = false;
    for (size_t i = 0; i < n; i++) {
        module = module || meters[i].part == KEDGE_PART_MODULE;
        parts = parts || meters[i].part == KEDGE_PART_CPU || meters[i].part == KEDGE_PART_MODULE;
    }
    for (size_t i = 0; i < n; i++) {
        struct kedge_meter *m = &meters[i];
        m->counts = m->part != KEDGE_PART_NONE && !is_doubled(meters, n, i);
        if (m->part == KEDGE_PART_DEVICE) { /* all in one: alone, or not at all */
            m->counts = m->counts && (rail ? m->source == KEDGE_METER_JETSON : !parts);
        } else if (rail || (module && (m->part == KEDGE_PART_CPU || m->part == KEDGE_PART_DRAM))) {
            m->counts = false;
        }
    }
    for (size_t i = 0; i < n && !parts && !rail; i++) { /* a whole device has its GPU in it */
        bool whole = false;
        for (size_t k = 0; k < n; k++) {
            whole = whole || (meters[k].counts && meters[k].part == KEDGE_PART_DEVICE);
        }
        meters[i].counts = meters[i].counts && (!whole || meters[i].part == KEDGE_PART_DEVICE);
    }
}

/* The power sensor beside a counter of the same chip, or of the same battery. */
static const struct kedge_meter *twin_of(const struct kedge_meter *meters, size_t n,
                                         const struct kedge_meter *m)
{
    const bool has =
        (m->source == KEDGE_METER_HWMON || m->source == KEDGE_METER_BATTERY) && m->way != KEDGE_WAY_POWER;
    for (size_t i = 0; i < n && has; i++) {
        if (meters[i].source == m->source && meters[i].way == KEDGE_WAY_POWER && same(&meters[i], m)) {
            return &meters[i];
        }
    }
    return NULL;
}

/* What the power sensor makes of the counter's number. */
static struct kedge_joules judge(const struct kedge_meter *m, struct kedge_joules j,
                                 struct kedge_joules power, double seconds)
{
    const bool both = j.quality != KEDGE_QUALITY_UNKNOWN && power.quality != KEDGE_QUALITY_UNKNOWN;
    if (m->source == KEDGE_METER_HWMON) {
        return both && kedge_meter_agrees(j.joules, power.joules, seconds) ? j : power;
    }
    if (j.quality != KEDGE_QUALITY_UNKNOWN || power.quality == KEDGE_QUALITY_UNKNOWN) {
        return j;
    }
    return kedge_joules_modelled(power.joules, power.low * (1 - gauge_error), power.high * (1 + gauge_error));
}

void kedge_meters_end(const struct kedge_meter *meters, size_t n, uint64_t now_ns, uint64_t cpu_ns,
                      struct kedge_joule_sum *sum)
{
    for (size_t i = 0; i < n; i++) {
        if (!meters[i].counts) {
            continue;
        }
        struct kedge_joules j = kedge_meter_end(&meters[i], now_ns, cpu_ns);
        const struct kedge_meter *twin = twin_of(meters, n, &meters[i]);
        if (twin) {
            j = judge(&meters[i], j, kedge_meter_end(twin, now_ns, cpu_ns),
                      seconds_of(now_ns - meters[i].begun_ns));
        }
        kedge_joules_add(sum, &j);
    }
}

bool kedge_meter_agrees(double counter_j, double power_j, double seconds)
{
    return seconds >= 0.5 && counter_j > 0 && power_j > 0 && counter_j <= 2 * power_j
           && power_j <= 2 * counter_j;
}

int kedge_reading_parse(struct kedge_view text, uint64_t *ret)
{
    if (text.len > 0 && text.ptr[text.len - 1] == '\n') {
        text.len--;
    }
    return kedge_decimal_decode(text, UINT64_MAX, ret);
}

int kedge_reading_parse_size(struct kedge_view text, uint64_t *ret)
{
    if (text.len > 1 && text.ptr[0] == '-') {
        text = kedge_view_of(text.ptr + 1, text.len - 1);
    }
    return kedge_reading_parse(text, ret);
}
