/* Ways in which sites come to groups: what each asks of those who run it. What a round's close does about its
 * groups stands in round/close (grouping.h there). Pure. */
#ifndef KEDGE_STRATEGY_GROUPING_H
#define KEDGE_STRATEGY_GROUPING_H

#include <stdbool.h>

#include "grouping/entry.h"
#include "strategy/strategy.h"

struct kedge_grouping_row {
    const char *name;
    enum kedge_entry entry; /* of no account where there is one model */
    bool in_jobs; /* else for comparisons in simulations: no statement tells how its sites come to groups */
    bool by_last_layer;      /* sites are told apart by what they did to the model's last layer alone */
    bool each_makes_one;     /* every pre-training that comes is a group (for comparison) */
    bool by_chance;          /* a newcomer goes to any group (for comparison) */
    const char *needs_whole; /* why its updates cannot come compact; NULL: they can */
};

/* It makes groups from short pre-trainings. */
bool kedge_grouping_pretrains(enum kedge_grouping_kind kind);
/* Static. */
const struct kedge_grouping_row *kedge_grouping_row(enum kedge_grouping_kind kind);

#endif
