/* What the sites of a job have said that training costs them, from the update statements in the ledgers of a
 * folder. */
#ifndef KEDGE_CLI_JOB_JOB_COSTS_H
#define KEDGE_CLI_JOB_JOB_COSTS_H

#include "cli/local.h"

struct kedge_cli_costs {
    const char *state; /* a state folder */
    struct kedge_id job;
    uint32_t rounds; /* the last so many of training */
};
/* A kedge_cli_gather, arg a struct kedge_cli_costs: {"rounds": [{"round", "seconds": of the slowest site's
 * training}, …], "sites": [{"tenant", "site", "updates", "samples": in a round, "seconds_per_sample",
 * "joules_per_sample" or null, "energy_quality": of these joules, "energy_updates": with such}, …]}, numbers
 * without a unit as decimal strings. A site's joules are of one quality: measured where any update has such,
 * else modelled. KEDGE_E_NOT_FOUND: nobody has trained yet. */
int kedge_cli_costs(void *arg, json_t **ret, struct kedge_diag *d);

#endif
