/* kedge sim: SPEC.json as people write it. The simulation itself is sim/. */
#ifndef KEDGE_CLI_SIM_SIM_H
#define KEDGE_CLI_SIM_SIM_H

#include "common/base/bytes.h"
#include "common/base/diag.h"
#include "sim/crowd.h"
#include "sim/sim.h"

/* SPEC.json, all keys optional; docs/cli.md has the table:
 * {"seed":"1","seeds":20,"tenants":3,"sites":4,"rounds":10,"groups":3,"sites_per_round":0,
 *  "faults":"all"|"none","signatures":"keyed"|"real"} */
struct kedge_cli_sim {
    uint64_t seed;  /* the first one; text in JSON, because 64 bits do not fit a number there */
    uint32_t seeds; /* 1…KEDGE_SIM_SEEDS_MAX: one run each */
    struct kedge_sim_spec spec;
    bool is_crowd; /* has the key "crowd": {"crowd":1000000,"tenants":100,"rounds":100,"sites_per_round":1000,
                      "seed":"1"}; seeds, spec are nothing then */
    struct kedge_crowd_spec crowd;
};

/* Strict: unknown keys, wrong types and numbers out of range are KEDGE_E_FORMAT and named. */
KEDGE_NODISCARD int kedge_cli_sim_parse(struct kedge_view json, struct kedge_cli_sim *ret,
                                        struct kedge_diag *reterr);

/* Runs a crowd with a progress bar and says how long a round took. Exit code. */
struct kedge_cli;
int kedge_cli_sim_crowd(struct kedge_cli *c, const struct kedge_crowd_spec *spec);

#endif
