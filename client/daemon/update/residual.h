/* What compression has left of a site's updates (error feedback): read for a training, added to its update,
 * kept beside the former one until the update that it comes from is known to be accepted. On the work thread.
 *
 *   SITE/left/JOB        what is in force, or a former one that is not yet replaced
 *   SITE/left/JOB.next   what the update signed last has left
 *
 * As with control variates each file names its update, and controls.h says which update counts: what an
 * update has left that was not taken is forgotten with it, for the whole of it is lost. Unlike those nothing
 * depends on it: where the file that counts is not there or damaged, the site goes on with nothing left, and
 * says so. */
#ifndef KEDGE_CLIENT_DAEMON_UPDATE_RESIDUAL_H
#define KEDGE_CLIENT_DAEMON_UPDATE_RESIDUAL_H

#include "client/daemon/host.h"

/* Of one training. */
struct kedge_client_residual {
    uint64_t count; /* values of a model */
    uint32_t group; /* whose model was trained: nothing is carried over from another group's */
    uint8_t *file;  /* owned: what the file holds, … */
    int32_t *values; /* … and in it the values, in units of the job's scale: what was left, then what is to be
                        sent, then what is left of that */
};

/* Reads what is left in the group by the update in_force (zero: by none). KEDGE_E_NOMEM; KEDGE_E_IO. Close
 * after success. */
KEDGE_NODISCARD int kedge_client_residual_open(struct kedge_client_work *w, const struct kedge_id *job,
                                               uint32_t group, const struct kedge_site_digest *in_force,
                                               struct kedge_client_residual *ret, struct kedge_diag *d);
void kedge_client_residual_close(struct kedge_client_residual *l);
/* Makes what is now in `values` durable as that which this update has left. */
KEDGE_NODISCARD int kedge_client_residual_keep(struct kedge_client_work *w, const struct kedge_id *job,
                                               const struct kedge_site_digest *update,
                                               struct kedge_client_residual *l, struct kedge_diag *d);

#endif
