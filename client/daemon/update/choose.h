/* Jobs whose sites choose between the models of all groups: the one of least loss on the site's own training
 * data. */
#ifndef KEDGE_CLIENT_DAEMON_UPDATE_CHOOSE_H
#define KEDGE_CLIENT_DAEMON_UPDATE_CHOOSE_H

#include <jansson.h>

#include "client/daemon/trainer/metrics.h"

struct kedge_client_work;
struct kedge_site_task;

/* Has the trainer measure all of the task's models and makes the best the task's base and group, ties to the
 * lowest number; the files of the others go. */
KEDGE_NODISCARD int kedge_client_choose(struct kedge_client_work *w, uint64_t serial,
                                        struct kedge_site_task *task, double *ret_loss, struct kedge_diag *d);

/* Has the trainer evaluate the model at `path`: the test's part of *ret. */
KEDGE_NODISCARD int kedge_client_measure(struct kedge_client_work *w, uint64_t serial,
                                         const struct kedge_site_task *task, const char *classes,
                                         const char *path, struct kedge_metrics *ret, struct kedge_diag *d);

#endif
