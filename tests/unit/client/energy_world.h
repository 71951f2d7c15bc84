/* The world of test_energy_life.c: a machine as files below a folder, a clock that the test sets, and the
 * daemon's part of energy (energy.c, energy_memory.c, energy_turn.c) with its own file on the disk. The test
 * links it with the clock, the seeds and fdatasync of the operating system replaced, and with
 * kedge_client_step, which the turn calls. */
#ifndef KEDGE_TESTS_UNIT_CLIENT_ENERGY_WORLD_H
#define KEDGE_TESTS_UNIT_CLIENT_ENERGY_WORLD_H

#include "client/daemon/energy/energy_impl.h"

enum { SIZES = 7, START = 2 };
extern const uint32_t sizes[SIZES]; /* the batches that the job allows */

/* A step of b samples takes t0 + b / mu seconds, power saturates with b, gradients have the noise phi. */
struct device {
    double t0, mu, phi, idle, most, half;
};
struct world {
    struct device device;
    uint64_t now_ns, unix_ms;
    double joules, battery_j; /* drawn so far, left */
    bool charging;
    double celsius;
    uint32_t diverges_above; /* larger batches do; 0: none does */
    bool burns;              /* this process uses its processor while time passes, as a trainer */
    struct kedge_rng rng;
    uint64_t seeds;
};
extern struct world world;
extern struct kedge_site_host host;
extern struct kedge_job_spec spec;
struct told { /* to the core: */
    bool rests;
    uint32_t changes;
};
extern struct told told;

/* `energy`: keys of policy.json's object. */
void begin_world(const struct device *device, const char *energy);
void end_world(void);
void open_site(const char *energy);
void close_site(void);
/* So much time, in which the machine draws so much. */
void pass(double seconds, double watts);
double percent(void); /* of the battery */

double seconds_of(double batch); /* of a round */
/* Zeus's cost of a round with the size, for as much as a round with the start teaches. */
double cost_of(double batch, double eta);
uint32_t best_of(double eta);

enum ending { ENDS, IS_KILLED };
struct round {
    bool was_begun, asked_noise, diverged;
    uint32_t size, threads;
    double cost, joules; /* η 0.5; as drawn, not as metered */
    struct kedge_joules told;
    char how[KEDGE_ST_HOW_MAX + 1]; /* they were read */
    char why[KEDGE_DIAG_TEXT_MAX];
};
/* One round of the job as the work thread has it; `left_s` is what the coordinator gave it. */
struct round one_round(const char *job, double left_s, enum ending ending);

#endif
