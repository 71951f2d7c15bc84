/* Jobs over a frozen base (strategy "adapters"): a site trains some tensors of a model, all others stay as
 * the whole model that the spec names by its digest has them. That model is fetched once, and kept by its
 * digest in SITE/bases for all jobs that begin with it; the KEDGE_BASES_MAX used last stay. What travels in
 * each round is the shared tensors alone. On the work thread. */
#ifndef KEDGE_CLIENT_DAEMON_UPDATE_BASE_H
#define KEDGE_CLIENT_DAEMON_UPDATE_BASE_H

#include "client/daemon/host.h"

/* More than tasks at once: a base stays while the task that fetched it waits for its turn. */
enum { KEDGE_BASES_MAX = 2 * KEDGE_SITE_WORKS_MAX };

/* Of one task. */
struct kedge_client_base {
    char whole[KEDGE_PATH_MAX]; /* what the trainer begins with: the base with the shared tensors */
    char out[KEDGE_PATH_MAX];   /* and where it leaves what it made of that */
};

/* The coordinator's task names what the spec names, or nothing where the spec has no base. KEDGE_E_DENIED. */
KEDGE_NODISCARD int kedge_client_base_check(const struct kedge_client_work *w,
                                            const struct kedge_site_task *t, struct kedge_diag *d);
/* The job's whole model is no longer than the owner's "model_bytes_max" permits, also where a part of it
 * never travels: files and vectors of it are made here. KEDGE_E_DENIED. */
KEDGE_NODISCARD int kedge_client_whole_check(const struct kedge_client_work *w, struct kedge_diag *d);
/* Where the base of this digest is or will be; its folder is there. */
KEDGE_NODISCARD int kedge_client_base_path(const struct kedge_client_work *w,
                                           const struct kedge_site_digest *digest, char ret[KEDGE_PATH_MAX],
                                           struct kedge_diag *d);
/* The base at `path` is used: those that were not for the longest time go, if there are too many. */
void kedge_client_base_used(const struct kedge_client_work *w, const char *path);

/* Writes `whole`: the task's base with the tensors of the file `shared`. */
KEDGE_NODISCARD int kedge_client_base_join(struct kedge_client_work *w, const struct kedge_site_task *t,
                                           const char *shared, struct kedge_client_base *ret,
                                           struct kedge_diag *d);
/* After a training: the shared tensors of `out`, which may have them alone, go to the file `shared`.
 * KEDGE_E_TRAINER: another tensor is not as it was. */
KEDGE_NODISCARD int kedge_client_base_split(struct kedge_client_work *w, const struct kedge_client_base *b,
                                            const char *shared, struct kedge_diag *d);

#endif
