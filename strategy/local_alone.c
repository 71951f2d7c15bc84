/* What federation is held against: SGD on the site's own model; nothing is shared. */
#include "strategy/local.h"

const struct kedge_local kedge_local_alone = {
    .name = "alone", .kept = "personal", .has_own_model = true, .sends_nothing = true};
