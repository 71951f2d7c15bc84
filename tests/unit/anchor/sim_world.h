/* The anchoring machine, its disk and a simulated node in one world with one clock; what the machine promises
 * is checked from outside at every step: durable before sent, one number of the account per number of the
 * log, the interval, an eighth more for a replacement. */
#ifndef KEDGE_TESTS_UNIT_ANCHOR_SIM_WORLD_H
#define KEDGE_TESTS_UNIT_ANCHOR_SIM_WORLD_H

#include "tests/unit/anchor/sim_node.h"

enum { HOUR = 3600 * 1000, RECORDS = 512 };

struct world {
    struct kedge_evm_config config;
    struct kedge_secp_secret key;
    struct kedge_evm_anchor machine, durable;
    struct sim_node node;
    struct kedge_buf disk;
    uint64_t now_ms, main_size, grow_ms;
    struct kedge_evm_point recorded[RECORDS]; /* evidence written, by seq */
    uint64_t recorded_count, planned_last_ms, crashes, replaced;
    bool crash_faults, stopped;
    int stop_err;
    char said[KEDGE_EVM_TEXT_MAX];
};

/* Aborts the test when out of memory. The main chain has three entries; root of n entries = SHA-256(n). */
struct world *world_new(uint64_t seed);
void world_free(struct world *w);
/* The process dies and comes back with what is on its disk. */
void world_restart(struct world *w);
/* Until the machine waits, stops (w->stopped) or dies. */
void world_round(struct world *w);
void world_run_until(struct world *w, uint64_t end_ms);
/* What the chain holds in the end: no gaps, no step back, the budget of every 24 hours, evidence of each. */
void world_check_chain(const struct world *w);

#endif
