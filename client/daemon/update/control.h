/* A site's control variate in a "scaffold" job: read for a training, changed by it, and kept (kept.h,
 * "control") with the update that carries the change. Where what is in force is missing or damaged, the site
 * does not train for the job: the server's variate is the mean of what the sites have. On the work thread. */
#ifndef KEDGE_CLIENT_DAEMON_UPDATE_CONTROL_H
#define KEDGE_CLIENT_DAEMON_UPDATE_CONTROL_H

#include "client/daemon/host.h"
#include "client/daemon/update/kept.h"

/* Of one training. */
struct kedge_client_control {
    struct kedge_kept kept; /* the site's, … */
    int32_t *own;           /* … its values, in units of the job's scale: before, then after the training */
    struct kedge_map map;   /* of the server's; none: it is zero */
    const float *server;    /* NULL: zeros */
    char drift[KEDGE_PATH_MAX]; /* a model file: own − server, which each step's gradient is freed from */
};

/* Reads both and writes the drift. in_force: the update that the site's belongs to. KEDGE_E_CORRUPT: the
 * file that belongs to it is not there or damaged. Close after success. */
KEDGE_NODISCARD int kedge_client_control_open(struct kedge_client_work *w, const struct kedge_site_task *t,
                                              const struct kedge_site_digest *in_force,
                                              struct kedge_client_control *ret, struct kedge_diag *d);
void kedge_client_control_close(struct kedge_client_control *c);

/* The change of values first … first + n − 1 that training from base to out in `steps` steps gives (option II
 * of the paper): (base − out) / (steps · lr) − server, in units of the job's scale, into q; `own` has it
 * added. KEDGE_E_BOUND: beyond the job's bound; KEDGE_E_NOT_FINITE. n at most KEDGE_CONTROL_TILE. */
enum { KEDGE_CONTROL_TILE = 65536 };
KEDGE_NODISCARD int kedge_client_control_change(const struct kedge_job_spec *spec,
                                                struct kedge_client_control *c, const float *base,
                                                const float *out, uint64_t steps, uint64_t first, size_t n,
                                                int32_t *q, struct kedge_diag *d);

#endif
