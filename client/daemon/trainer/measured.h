/* What else a site's test samples say where groups are tried. */
#ifndef KEDGE_CLIENT_DAEMON_TRAINER_MEASURED_H
#define KEDGE_CLIENT_DAEMON_TRAINER_MEASURED_H

#include "client/daemon/trainer/metrics.h"
#include "client/daemon/trainer/train.h"

struct kedge_client_work;

/* Adds to `m`, the evaluation of the group's model, that of the trial which the task names, and that of what
 * the training made of it (the file `trained`), each where it is asked for. On the work thread. An evaluation
 * counts without them: what fails is left out and logged. */
void kedge_client_measure_others(struct kedge_client_work *w, const struct kedge_train_item *item,
                                 const char *trained, struct kedge_metrics *m);

#endif
