/* Inside sim/learn: rounds are closed as those of jobs are (round/close), over vectors in memory. */
#ifndef KEDGE_SIM_LEARN_CLOSE_H
#define KEDGE_SIM_LEARN_CLOSE_H

#include "round/close/close.h"
#include "sim/learn/engine.h"

/* The job that closes see, once it is known how many sites there are. */
KEDGE_NODISCARD int kedgei_learn_close_init(struct kedgei_learn *l);
void kedgei_learn_close_deinit(struct kedgei_learn *l);
/* Whether groups are made from short pre-trainings; of what kind this round is. */
bool kedgei_learn_pretrains(const struct kedgei_learn *l);
enum kedge_task_kind kedgei_learn_kind(const struct kedgei_learn *l, uint32_t round);
/* The round's items become models, groups and what else a close makes. Its number is a job's. */
KEDGE_NODISCARD int kedgei_learn_close(struct kedgei_learn *l, enum kedge_task_kind kind, uint32_t job_round);
/* The group of a site, of those that there are: by its pre-training, or by its last model. */
KEDGE_NODISCARD int kedgei_learn_nearest(struct kedgei_learn *l, uint32_t site, const void *update,
                                         const float *last, uint32_t *ret_group);
/* The site's group from now on. */
void kedgei_learn_move(struct kedgei_learn *l, uint32_t site, uint32_t group);
/* The groups' models, where they are trained from and evaluated, from what is known between rounds. */
void kedgei_learn_take_models(struct kedgei_learn *l);

#endif
