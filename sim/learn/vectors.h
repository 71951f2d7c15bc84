/* Vectors that closes read and make (round/close), in memory and under names that no two of them have had.
 * Names count up: nothing is hashed, for nobody looks for a vector by its content here. */
#ifndef KEDGE_SIM_LEARN_VECTORS_H
#define KEDGE_SIM_LEARN_VECTORS_H

#include "round/state.h"

struct kedgei_vector {
    uint64_t number;
    const void *values;
    void *owned; /* NULL: lent */
};
struct kedgei_vectors {
    struct kedgei_vector *items; /* owned */
    uint32_t count, max;
    uint64_t numbers; /* given so far */
};

/* Values of somebody else, which are there until the next sweep. KEDGE_E_NOMEM. */
KEDGE_NODISCARD int kedgei_vectors_lend(struct kedgei_vectors *v, const void *values, struct kedge_hash *ret);
/* These become v's, also after an error; memory of kedge_mem_new. */
KEDGE_NODISCARD int kedgei_vectors_give(struct kedgei_vectors *v, void *values, struct kedge_hash *ret);
/* NULL: there is none of this name. */
const void *kedgei_vectors_find(const struct kedgei_vectors *v, const struct kedge_hash *name);
/* Nothing is left but what the state names. */
void kedgei_vectors_sweep(struct kedgei_vectors *v, const struct kedge_round_state *state);
void kedgei_vectors_deinit(struct kedgei_vectors *v);

#endif
