/* Inside sim/learn: a run's state as bytes. */
#ifndef KEDGE_SIM_LEARN_STATE_H
#define KEDGE_SIM_LEARN_STATE_H

#include "sim/learn/engine.h"

/* Calls host->save with the state before round `next`. */
KEDGE_NODISCARD int kedgei_learn_save(struct kedgei_learn *l, uint32_t next);
/* Takes the state of host->resume and brings the data to where they were. KEDGE_E_FORMAT: it is of another
 * run. */
KEDGE_NODISCARD int kedgei_learn_resume(struct kedgei_learn *l, uint32_t *ret_next);

#endif
