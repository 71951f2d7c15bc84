/* Inside of client/energy/host. */
#ifndef KEDGE_CLIENT_ENERGY_HOST_IMPL_H
#define KEDGE_CLIENT_ENERGY_HOST_IMPL_H

#include "client/energy/host/meters.h"

enum { KEDGEI_NAME_MAX = 64, KEDGEI_ENTRIES_MAX = 64 };
/* The entries of a folder but hidden ones, in order; more than KEDGEI_ENTRIES_MAX or with long names are left
 * out. */
struct kedgei_entries {
    uint32_t count;
    char names[KEDGEI_ENTRIES_MAX][KEDGEI_NAME_MAX];
};
void kedgei_entries(const char *dir, struct kedgei_entries *ret);

/* A place for one more meter, with window and largest power by its part; NULL: there is none. */
struct kedge_meter *kedgei_meter_add(struct kedge_meters *m, enum kedge_meter_source source,
                                     enum kedge_meter_part part, enum kedge_meter_way way, double unit);
struct kedge_meter_place *kedgei_place_of(struct kedge_meters *m, const struct kedge_meter *meter);

/* Each adds what it finds. */
void kedgei_find_rapl(struct kedge_meters *m);
void kedgei_find_perf(struct kedge_meters *m); /* after kedgei_find_rapl */
void kedgei_find_hwmon(struct kedge_meters *m);
void kedgei_find_jetson(struct kedge_meters *m);
void kedgei_find_batteries(struct kedge_meters *m);
/* µWh in all batteries, or power in µW; KEDGE_E_BUSY: one is being charged, or none is in use. */
KEDGE_NODISCARD int kedgei_battery_charge(const struct kedge_meters *m, uint64_t *ret);
KEDGE_NODISCARD int kedgei_battery_power(const struct kedge_meters *m, uint64_t *ret);

/* KEDGE_E_BUSY: others had the counter, too. */
KEDGE_NODISCARD int kedgei_perf_read(const struct kedge_meters *m, const struct kedge_meter_place *p,
                                     uint64_t *ret);
void kedgei_perf_close(struct kedge_meters *m);

#endif
