/* Energy around the trainings of a site: meters, budgets, the choice of batch and power, what the statement
 * and the status tell of it. Opened before any thread begins; then begin, tick and end are the work threads',
 * one at a time, the rest is the loop's. They share the budget and what is shown, under one lock that is
 * never held over a write. Where several train at once each has its part of what the meters tell
 * (energy_window.c). */
#ifndef KEDGE_CLIENT_DAEMON_ENERGY_ENERGY_H
#define KEDGE_CLIENT_DAEMON_ENERGY_ENERGY_H

#include "client/daemon/energy/energy_stored.h"
#include "client/daemon/host.h"

/* What one task is trained with, and what that took. */
struct kedge_energy_plan {
    uint32_t batch, threads;
    double learning_rate;
    char choice[KEDGE_ST_HOW_MAX + 1];     /* why; "": there was nothing to choose */
    char energy_how[KEDGE_ST_HOW_MAX + 1]; /* what was read */
    struct kedge_joules joules;            /* of the task, whole joules; see kedge_client_energy_end */
    bool is_auto, wants_noise;
    bool probed;           /* gradients were asked for, too: the task took more than its training */
    uint8_t key[32];       /* of what is remembered … */
    uint32_t place, level; /* … and places in it */
    bool tries_level, has_level, sets_cap;
};

struct kedge_client_energy;

/* Finds meters, reads SITE/energy, puts back power caps that a former process left. A damaged file is said,
 * and stops the daemon: budgets would be forgotten. */
KEDGE_NODISCARD int kedge_client_energy_open(struct kedge_site_host *h, struct kedge_diag *d);
/* Puts power caps back. */
void kedge_client_energy_close(struct kedge_site_host *h);

/* Before a task is given to the trainer: KEDGE_E_DENIED with the reason when no budget is left for it.
 * Reserves what it may use, durably; sets the power cap; begins to meter. The spec of the task is w->spec.
 * KEDGE_E_BUSY: there would be enough, were it not reserved for others that train. */
KEDGE_NODISCARD int kedge_client_energy_begin(struct kedge_client_work *w, const struct kedge_site_task *t,
                                              struct kedge_energy_plan *ret, struct kedge_diag *d);
/* While it trains, as often as one likes. */
void kedge_client_energy_tick(struct kedge_client_work *w);
/* Behind it, whatever came of it: err and its diag. What was used is durable when this returns, and in plan:
 * whole joules, the rest is carried to the next task, so that no finer trace leaves the device. */
void kedge_client_energy_end(struct kedge_client_work *w, struct kedge_energy_plan *plan,
                             const struct kedge_metrics *m, int err, const struct kedge_diag *d);
/* The update went beyond the job's bound: the batch breaks convergence. */
void kedge_client_energy_diverged(struct kedge_client_work *w, const struct kedge_energy_plan *plan);
/* Squared lengths of gradients at two batches, of the model at `base`, to what is remembered; `request` is
 * that of the training (lent), which leaves its result at `out`, or at `left` where the trainer is the
 * owner's. Counts as part of the task; failures are only logged. energy_probe.c */
void kedge_client_energy_probe(struct kedge_client_work *w, uint64_t serial, const json_t *request,
                               const char *base, const char *out, const char *left,
                               struct kedge_energy_plan *plan);
/* What of it the probe needs: sizes of the two batches (large 0: there are no two), and where a pair goes. */
void kedge_client_energy_noise(struct kedge_client_work *w, const struct kedge_energy_plan *plan,
                               uint32_t *ret_small, uint32_t *ret_large);
void kedge_client_energy_saw_noise(struct kedge_client_work *w, struct kedge_energy_plan *plan, double small,
                                   double small_sq, double large, double large_sq);

/* On the loop, between two events: looks at battery, charger, clock and temperature when it is time, and
 * tells the core to rest or to go on. */
void kedge_client_energy_turn(struct kedge_site_host *h);
/* What polls tell of the battery: nothing, unless the owner lets them. */
enum kedge_battery_class kedge_client_energy_tells(const struct kedge_site_host *h);
uint64_t kedge_client_energy_deadline_ns(const struct kedge_site_host *h);
/* The owner's new rules, from h->policy. Meters stay those of the start. */
void kedge_client_energy_policy(struct kedge_site_host *h);

#endif
