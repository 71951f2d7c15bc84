/* Inside sim/learn: sites at work in an asynchronous run. */
#ifndef KEDGE_SIM_LEARN_FLIGHT_H
#define KEDGE_SIM_LEARN_FLIGHT_H

#include "sim/learn/engine.h"

/* Nothing where the strategy is not asynchronous. */
KEDGE_NODISCARD int kedgei_learn_flight_init(struct kedgei_learn *l);
void kedgei_learn_flight_deinit(struct kedgei_learn *l);
/* What of it a run's state has. */
void kedgei_learn_flight_visit(struct kedgei_learn *l, void (*visit)(void *arg, void *value, size_t len),
                               void *arg);
/* The items of a round: the updates that fill the server's buffer. Virtual time goes on to the last of them.
 */
KEDGE_NODISCARD int kedgei_learn_fly(struct kedgei_learn *l, uint32_t round);

#endif
