/* A simulated federation that somebody describes: the coordinator's and the sites' own state machines in
 * virtual time, with faults drawn from a seed and checkers that look at what became durable. The same spec,
 * seed and program give the same digest. Models are stood for by hashes: this runs the protocol, not the
 * training. */
#ifndef KEDGE_SIM_SIM_H
#define KEDGE_SIM_SIM_H

#include <stdint.h>

#include "common/base/diag.h"
#include "common/base/limits.h"

enum {
    KEDGE_SIM_SEEDS_MAX = 10000,
    KEDGE_SIM_TENANTS_MAX = 100,
    KEDGE_SIM_SITES_MAX = 1000, /* all tenants together */
    KEDGE_SIM_ROUNDS_MAX = 1000,
    KEDGE_SIM_GROUPS_MAX = KEDGE_GROUPS_MAX,
    KEDGE_SIM_REAL_MAX =
        5000, /* sites times rounds with real signatures: they cost a thousand times a hash */
    KEDGE_SIM_WHY_MAX = 256,
};

struct kedge_sim_spec {
    uint32_t tenants;         /* 1…KEDGE_SIM_TENANTS_MAX */
    uint32_t sites;           /* per tenant; all together at most KEDGE_SIM_SITES_MAX */
    uint32_t rounds;          /* 1…KEDGE_SIM_ROUNDS_MAX */
    uint32_t groups;          /* 1: ungrouped, …KEDGE_SIM_GROUPS_MAX */
    uint32_t sites_per_round; /* 0: all */
    bool faults; /* messages lost, disks full, crashes …: which ones and when is drawn from the seed */
    bool real;   /* signatures, receipts and trees by chain/ */
};

/* KEDGE_OK, or KEDGE_E_FORMAT and the key that is out of range. */
KEDGE_NODISCARD int kedge_sim_spec_check(const struct kedge_sim_spec *spec, struct kedge_diag *reterr);

/* A round as the main chain has it. */
struct kedge_sim_round {
    uint32_t round;                      /* 0: the cold start of the groups */
    uint32_t groups, selected, accepted; /* accepted: updates in the input lists */
    uint32_t refused;                    /* sites whose part is recorded as turned away */
    uint32_t crashes;                    /* of either side while it was open */
    uint64_t opened_ns, closed_ns;       /* virtual time */
};

/* What a fault is called and how often it came. */
struct kedge_sim_count {
    const char *name, *what; /* "LOST", "message lost"; static */
    uint64_t count;
};

struct kedge_sim_outcome {
    bool holds;
    char why[KEDGE_SIM_WHY_MAX]; /* the rule that was broken */
    uint64_t statements, events, virtual_ns, digest;
    uint64_t lost, crashes; /* messages; crashes of either side */
    uint32_t round_count, fault_count;
    struct kedge_sim_round *rounds; /* owned, in their order */
    struct kedge_sim_count *faults; /* owned; every kind of fault there is */
};

/* Called now and then with the rounds closed so far. */
typedef void kedge_sim_progress(void *arg, uint32_t rounds);

/* Runs one seed to its end. KEDGE_OK also when a rule was broken: look at holds. Errors of
 * kedge_sim_spec_check; out of memory on the way ends the program. Free the outcome by
 * kedge_sim_outcome_deinit. */
KEDGE_NODISCARD int kedge_sim_run(const struct kedge_sim_spec *spec, uint64_t seed,
                                  kedge_sim_progress *progress, void *arg, struct kedge_sim_outcome *ret,
                                  struct kedge_diag *reterr);
void kedge_sim_outcome_deinit(struct kedge_sim_outcome *o);

#endif
