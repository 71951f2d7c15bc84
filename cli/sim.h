/* kedge sim: a simulated federation that a spec describes, where sim/ draws everything from the seed. */
#ifndef KEDGE_CLI_SIM_H
#define KEDGE_CLI_SIM_H

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "sim/world.h"

enum { KEDGE_SIM_SEEDS_MAX = 10000, KEDGE_SIM_ROUNDS_MAX = 50 };

/* SPEC.json, all keys optional:
 * {"seed":"1","seeds":20,"tenants":3,"sites":4,"rounds":10,"groups":3,"faults":"all"|"none"} */
struct kedge_sim_spec {
    uint64_t seed;    /* the first one; text in JSON, because 64 bits do not fit a number there */
    uint32_t seeds;   /* 1…KEDGE_SIM_SEEDS_MAX: one run each */
    uint32_t tenants; /* 1…SIM_TENANTS_MAX */
    uint32_t sites;   /* per tenant; all together at most SIM_SITES_MAX */
    uint32_t rounds;  /* 1…KEDGE_SIM_ROUNDS_MAX */
    uint32_t groups;  /* 1: ungrouped, at most SIM_GROUPS_MAX - 1 */
    bool faults;
};

/* Strict: unknown keys, wrong types and numbers out of range are KEDGE_E_FORMAT and named. */
KEDGE_NODISCARD int kedge_sim_spec_parse(struct kedge_view json, struct kedge_sim_spec *ret,
                                         struct kedge_diag *reterr);

/* What a script put into the run. */
struct kedge_sim_faults {
    uint32_t server_crashes, device_crashes, halts;
    uint32_t loss, duplicate, disk_fail; /* permille */
};
/* A world as the spec says, ready for sim_run; which faults come when is drawn from the seed. NULL without
 * memory. Free it with sim_free. */
struct sim *kedge_sim_world(const struct kedge_sim_spec *spec, uint64_t seed, struct kedge_sim_faults *ret);

#endif
