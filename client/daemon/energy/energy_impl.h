/* Inside of energy.c and the other energy_*.c. */
#ifndef KEDGE_CLIENT_DAEMON_ENERGY_ENERGY_IMPL_H
#define KEDGE_CLIENT_DAEMON_ENERGY_ENERGY_IMPL_H

#include "client/daemon/energy/energy.h"
#include "client/energy/host/caps.h"
#include "client/energy/host/state.h"

/* A training under way. */
struct kedge_energy_window {
    bool is_open, shared; /* shared: another one was open meanwhile */
    struct kedge_id job;
    uint64_t begun_ns, ticked_ns;
    pid_t pid;                  /* of its trainer … */
    uint64_t cpu_ns;            /* … and what that had used when the span began, or it joined, … */
    uint64_t seen_ns;           /* … when it was looked at last: one that has ended tells nothing more */
    uint64_t spent_ns;          /* in this span, of trainers before that one */
    struct kedge_joule_sum sum; /* its parts of the spans that have ended */
};

struct kedge_client_energy {
    struct kedge_meters meters;
    struct kedge_energy_stored stored; /* but its budget */
    uint64_t sequence;                 /* of the file's last write */
    struct kedge_energy_window windows[KEDGE_SITE_WORKS_MAX];
    uint64_t span_ns, ticked_ns; /* since when the meters count, and when they were looked at */
    double span_busy_s;          /* processor time of all processes then */
    double seen_w;               /* mean power of the dearest training that was measured; 0: none was */
    double last_power_w;         /* of the span before, 0: not known */
    double carry;                /* joules that were not told yet */
    struct kedge_caps caps;
    bool has_caps;
    struct kedge_rng rng;
    pthread_mutex_t work_lock; /* of all above, once threads run; taken before … */
    pthread_mutex_t lock;      /* … that of what is below */
    struct kedge_energy_policy policy;
    struct kedge_budget budget; /* the one that counts; `stored` has it as it is on the disk */
    int64_t refused_day;        /* nothing is begun before another one: its joules are used up; 0: none */
    struct kedge_joule_sum sum; /* of all tasks since the start */
    double assumed_w,
        last_upper; /* what budgets count by where no reading tells; of the last task that began */
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
/* The key of what is remembered of the task (model, data, sizes, rates), which is made where there is
 * nothing. */
KEDGE_NODISCARD int kedgei_energy_task(struct kedge_client_work *w, uint8_t ret_key[32],
                                       struct kedge_diag *d);
/* NULL: it was forgotten for others since. */
struct kedge_energy_task *kedgei_energy_find(struct kedge_client_energy *e, const uint8_t key[32]);

/* energy_window.c: joules of trainings that run beside each other, under work_lock. */
void kedgei_energy_window_open(struct kedge_client_work *w, const struct kedge_id *job);
/* Looks at the meters when it is time: true, and the joules of this training until now, as the meters have
 * them, or at most. */
bool kedgei_energy_window_tick(struct kedge_client_work *w, double *ret_used);
struct kedge_joules kedgei_energy_window_close(struct kedge_client_work *w, double *ret_seconds,
                                               bool *ret_shared);
struct kedge_budget_clock kedgei_energy_clock(void);
/* energy_estimate.c. Joules that the task may use, before anything was measured of its job. */
double kedgei_energy_first(const struct kedge_client_work *w, const struct kedge_site_task *t);
/* Seconds that reading so many bytes of data takes at most. */
double kedgei_energy_reading_s(double bytes);
/* Watts while something trains, where no reading tells: the owner's power_max_w, else what trainings drew
 * before, else what a device like this draws. Above 0. */
double kedgei_energy_assumed_w(const struct kedge_client_energy *e, const struct kedge_site_policy *p);
/* Watts of all that counts, at most; NaN: not known. */
double kedgei_energy_most_w(const struct kedge_client_energy *e, const struct kedge_energy_policy *p);

#endif
