/* A round's sites trained together on a device, where the spec asks for one and there is one. Inside of
 * sim/learn. */
#ifndef KEDGE_SIM_LEARN_TOGETHER_H
#define KEDGE_SIM_LEARN_TOGETHER_H

#include "sim/learn/engine.h"

/* What training an item came to. */
struct kedgei_learn_taken {
    int err; /* KEDGE_OK, or KEDGE_E_NOT_FINITE */
    uint64_t steps;
    double loss;
};

/* Sets l->together, or leaves it NULL: the spec does not ask for a device, or there is none, which is said.
 */
void kedgei_learn_together_init(struct kedgei_learn *l);
void kedgei_learn_together_deinit(struct kedgei_learn *l);
/* Trains those of the run's items that are this process's, in the order of l->item_order. A device that fails
 * is said and given up; what it has not done is not there to be taken. */
void kedgei_learn_train_together(struct kedgei_learn *l);
/* The training of one of the run's items, or of its site's own model, if it was done: weights to w, d values.
 * Any thread. */
bool kedgei_learn_take(const struct kedgei_learn *l, const struct kedgei_learn_item *item, bool own, float *w,
                       struct kedgei_learn_taken *ret);

#endif
