/* Inside of energy.c, energy_turn.c and energy_memory.c. */
#ifndef KEDGE_CLIENT_DAEMON_ENERGY_IMPL_H
#define KEDGE_CLIENT_DAEMON_ENERGY_IMPL_H

#include "client/daemon/energy.h"
#include "client/energy/host/caps.h"
#include "client/energy/host/state.h"

struct kedge_client_energy {
    struct kedge_meters meters;
    struct kedge_energy_stored stored; /* the work thread's, but its budget */
    uint64_t sequence;                 /* of the file's last write */
    uint64_t begun_ns, ticked_ns, started_cpu_ns;
    double begun_busy_s;
    double carry; /* joules that were not told yet */
    double used;  /* of the window, until the last tick */
    pid_t metered_pid;
    bool is_metering;
    struct kedge_caps caps;
    bool has_caps;
    struct kedge_rng rng;
    /* Under the lock. */
    pthread_mutex_t lock;
    struct kedge_energy_policy policy;
    struct kedge_budget budget; /* the one that counts; `stored` has it as it is on the disk */
    int64_t refused_day;        /* nothing is begun before another one: its joules are used up; 0: none */
    struct kedge_joule_sum sum; /* of all tasks since the start */
    char last_choice[KEDGE_ST_HOW_MAX + 1], last_how[KEDGE_ST_HOW_MAX + 1], refused[KEDGE_BUDGET_TEXT_MAX];
    struct kedge_joules last;
    bool shown; /* what is above is in the status */
    /* The loop's. */
    bool rests;
    uint64_t look_ns;                 /* when to look again */
    enum kedge_battery_class battery; /* as the coordinator may be told */
    json_t *status;
};

/* energy_memory.c: SITE/energy, on the work thread or before it begins. */
KEDGE_NODISCARD int kedgei_energy_read(struct kedge_site_host *h, struct kedge_diag *d);
/* With the budget as given. Durable. */
KEDGE_NODISCARD int kedgei_energy_write(struct kedge_site_host *h, const struct kedge_budget *b,
                                        struct kedge_diag *d);
/* The place of what is remembered of the task (model, data, sizes, rates), which is made where there is
 * nothing. */
KEDGE_NODISCARD int kedgei_energy_task(struct kedge_site_host *h, uint32_t *ret, struct kedge_diag *d);
struct kedge_budget_clock kedgei_energy_clock(void);
/* Watts of all that counts, at most; NaN: not known. */
double kedgei_energy_most_w(const struct kedge_client_energy *e, const struct kedge_energy_policy *p);

#endif
