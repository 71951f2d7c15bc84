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

/* A source of readings: one object for each row of client/energy/sources.def, in a file of its own or beside
 * its like. i: place of the meter. */
struct kedgei_source {
    /* Adds what there is; NULL: another source's adds this one's, too. */
    void (*find)(struct kedge_meters *m, const struct kedge_meters_options *options);
    /* The count now; KEDGE_E_BUSY: it does not hold at the moment. NULL: it is the number in the place's
     * file.
     */
    int (*read)(const struct kedge_meters *m, uint32_t i, uint64_t *ret);
    void (*close)(struct kedge_meters *m, uint32_t i); /* NULL: nothing is open */
};
#define KEDGE_METER_SOURCE(value, object, name) extern const struct kedgei_source kedgei_source_##object;
#include "client/energy/sources.def"
#undef KEDGE_METER_SOURCE

#endif
