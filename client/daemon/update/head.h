/* Jobs whose sites keep a head (strategies "fedper", "fedrep"): the model that arrives and the update that
 * leaves are of the shared tensors alone. The trainer is given both parts as one model, and what it has made
 * of it is taken apart again. The head is kept with the update (kept.h, "head"); a site without one begins
 * with that which the job's seed gives, the same at every site. On the work thread. */
#ifndef KEDGE_CLIENT_DAEMON_UPDATE_HEAD_H
#define KEDGE_CLIENT_DAEMON_UPDATE_HEAD_H

#include "client/daemon/host.h"
#include "client/daemon/update/kept.h"

/* Of one task. */
struct kedge_client_head {
    struct kedge_kept kept;    /* count 0: the job's sites keep none */
    char base[KEDGE_PATH_MAX]; /* the whole model that the trainer begins with */
    char out[KEDGE_PATH_MAX];  /* and where it leaves what it made of that */
};

/* Reads the head that belongs to the update in_force and writes `base`: it with the shared model. Close after
 * success. */
KEDGE_NODISCARD int kedge_client_head_open(struct kedge_client_work *w, const struct kedge_id *job,
                                           const struct kedge_site_digest *in_force, const char *shared,
                                           struct kedge_client_head *ret, struct kedge_diag *d);
/* After a training: the head of `out` is what is kept, the rest goes to the file `shared`. */
KEDGE_NODISCARD int kedge_client_head_split(struct kedge_client_work *w, struct kedge_client_head *h,
                                            const char *shared, struct kedge_diag *d);
void kedge_client_head_close(struct kedge_client_head *h);

#endif
