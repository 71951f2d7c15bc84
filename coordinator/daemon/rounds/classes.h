/* The names of classes that a job has learnt from its sites, in its record. */
#ifndef KEDGE_COORDINATOR_DAEMON_ROUNDS_CLASSES_H
#define KEDGE_COORDINATOR_DAEMON_ROUNDS_CLASSES_H

#include "common/base/diag.h"
#include "common/base/text.h"
#include "common/tensor/class_names.h"

struct kedge_host;

/* As the step of the round says that asked for them; none where there is no such step yet. Any thread. */
KEDGE_NODISCARD int kedge_learnt_classes(struct kedge_host *h, const struct kedge_id *job,
                                         char ret[KEDGE_CLASS_NAMES_ROOM], struct kedge_diag *reterr);

#endif
