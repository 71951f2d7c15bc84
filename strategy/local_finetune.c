/* What personal methods are held against: SGD; judged by the model given after another E epochs at the site.
 */
#include "strategy/local.h"

const struct kedge_local kedge_local_finetune = {.name = "finetune", .is_judged_tuned = true};
