/* Stands in for the engine of the learning simulator where what is around it is tested: a few hundred
 * arithmetic steps in place of training, with everything that host and exchange promise. */
#ifndef KEDGE_TESTS_UNIT_SIM_FAKE_ENGINE_H
#define KEDGE_TESTS_UNIT_SIM_FAKE_ENGINE_H

#include <stdint.h>

extern uint32_t fake_runs;   /* of kedge_learn_run so far */
extern uint32_t fake_began;  /* the round that the last one began with */
extern uint32_t fake_die_at; /* the process dies by SIGKILL before this round; 0: never */

#endif
