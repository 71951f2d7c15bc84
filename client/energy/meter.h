/* One source of energy readings over one window, and which of many sources count. Pure: the host reads, this
 * judges. Traps by number are those of the project's list of meters (docs/modules/client-energy.md). */
#ifndef KEDGE_CLIENT_ENERGY_METER_H
#define KEDGE_CLIENT_ENERGY_METER_H

#include "client/energy/joules.h"

/* In order of trust: sources.def. */
#define KEDGE_METER_SOURCE(value, object, name) KEDGE_METER_##value,
enum kedge_meter_source {
#include "client/energy/sources.def"
    KEDGE_METER_SOURCES
};
#undef KEDGE_METER_SOURCE
/* What it covers. */
enum kedge_meter_part {
    KEDGE_PART_CPU,
    KEDGE_PART_DRAM,
    KEDGE_PART_GPU,
    KEDGE_PART_MODULE, /* GPU with the processor beside it (Grace Hopper, trap 16) */
    KEDGE_PART_DEVICE,
    KEDGE_PART_NONE, /* part of another one, or of nothing that is known */
};
enum kedge_meter_way {
    KEDGE_WAY_COUNTER, /* counts up, and may begin again at `range` */
    KEDGE_WAY_POWER,   /* is integrated */
    KEDGE_WAY_CHARGE,  /* what is left in a battery */
};
enum { KEDGE_METER_NAME_MAX = 63 };
const char *kedge_meter_source_name(enum kedge_meter_source s); /* static */

struct kedge_meter {
    enum kedge_meter_source source;
    enum kedge_meter_part part;
    enum kedge_meter_way way;
    char name[KEDGE_METER_NAME_MAX + 1]; /* "package-0/dram", a GPU's UUID */
    double unit;                         /* joules, or watts with WAY_POWER, of one count */
    uint64_t range;                      /* counts after which the counter begins again; 0: it does not */
    double power_max_w;                  /* largest power of the part, above 0 */
    uint64_t window_min_ns;              /* shorter windows tell nothing */
    double step;                         /* WAY_CHARGE: one step of the gauge, in counts */
    bool counts;                         /* set by kedge_meters_choose */
    /* Of the window. */
    uint64_t begun_ns, first_ns, last_ns, last;
    uint64_t first;
    uint32_t seen;
    double joules, covered_s;
    const char *broken; /* why the window is unknown, NULL: it is not */
};

void kedge_meter_begin(struct kedge_meter *m, uint64_t now_ns);
/* now_ns: monotonic, when the count was read; count NULL: it could not be. Call it at least every
 * kedge_meter_period_ns. */
void kedge_meter_see(struct kedge_meter *m, uint64_t now_ns, const uint64_t *count);
/* Takes nothing more. cpu_ns: processor time that passed on the machine, 0: not known; a counter that stands
 * still while it passes is broken (trap 13). */
struct kedge_joules kedge_meter_end(const struct kedge_meter *m, uint64_t now_ns, uint64_t cpu_ns);
/* Half of the time in which the counter could begin again, at most 1 s (trap 1). */
uint64_t kedge_meter_period_ns(const struct kedge_meter *m);

/* What a RAPL zone covers, by its name (traps 7, 9): "package-0", "package-0-die-1", "dram", "psys", "core".
 */
enum kedge_meter_part kedge_rapl_part(struct kedge_view name);
/* The rail that everything else hangs on of a Jetson (trap 22). */
bool kedge_jetson_is_total(struct kedge_view rail);
/* Sets `counts`: at most one meter per part (traps 7, 8, 14, 16). */
void kedge_meters_choose(struct kedge_meter *meters, size_t n);
/* Ends the windows of all that count, into *sum. A chip's own counter that does not agree with its power is
 * not believed (trap 18): the power counts instead. Of a battery whose charge has moved by too few steps its
 * power counts, as modelled (trap 20). */
void kedge_meters_end(const struct kedge_meter *meters, size_t n, uint64_t now_ns, uint64_t cpu_ns,
                      struct kedge_joule_sum *sum);
/* An energy counter is held against the power that the same chip tells over at least 0.5 s (trap 18): false
 * when they are more than a factor of 2 apart. */
bool kedge_meter_agrees(double counter_j, double power_j, double seconds);

/* One number as the kernel writes it: digits, then nothing or one newline. KEDGE_E_FORMAT (trap 4). */
KEDGE_NODISCARD int kedge_reading_parse(struct kedge_view text, uint64_t *ret);
/* The same with a sign, without it (trap 19). */
KEDGE_NODISCARD int kedge_reading_parse_size(struct kedge_view text, uint64_t *ret);

#endif
