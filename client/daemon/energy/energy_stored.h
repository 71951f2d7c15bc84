/* What of energy survives a restart, as the text in SITE/energy: what was used of the budgets, and what was
 * learnt of batches and power for the tasks trained last. Pure. */
#ifndef KEDGE_CLIENT_DAEMON_ENERGY_ENERGY_STORED_H
#define KEDGE_CLIENT_DAEMON_ENERGY_ENERGY_STORED_H

#include "client/energy/budget.h"
#include "client/energy/profile.h"
#include "client/energy/rounds.h"
#include "common/base/bytes.h"
#include "common/base/diag.h"

enum { KEDGE_ENERGY_TASKS_MAX = 8, KEDGE_ENERGY_TEXT_MAX = 400000 };

/* A model with its data on this device, with the learning rates and sizes that a job allows. */
struct kedge_energy_task {
    struct kedge_rounds rounds;
    struct kedge_profile profiles[KEDGE_BATCH_SIZES_MAX]; /* by size */
};

struct kedge_energy_stored {
    struct kedge_budget budget;
    uint32_t task_count; /* the one trained last is the last */
    struct kedge_energy_task tasks[KEDGE_ENERGY_TASKS_MAX];
};

/* Every number is within its range. KEDGE_E_FORMAT says what is wrong, KEDGE_E_TOO_LONG, KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedge_energy_stored_decode(struct kedge_view text, struct kedge_energy_stored *ret,
                                               struct kedge_diag *reterr);
/* What decode reads. KEDGE_E_NOMEM, KEDGE_E_TOO_LONG. */
KEDGE_NODISCARD int kedge_energy_stored_encode(const struct kedge_energy_stored *s, struct kedge_buf *out);

#endif
