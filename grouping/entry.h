/* How a site of a job with several groups comes to its first one: what a round needs before it can begin. */
#ifndef KEDGE_GROUPING_ENTRY_H
#define KEDGE_GROUPING_ENTRY_H

#include <stdbool.h>

enum kedge_entry {
    KEDGE_ENTRY_PRETRAIN, /* by a short pre-training: round 0 makes the groups, the first model is one for all
                           */
    KEDGE_ENTRY_TOGETHER, /* all sites, also newcomers, in group 0, which closes cut; one model to begin with
                           */
    KEDGE_ENTRY_TENANT,   /* for good: its tenant's place in the spec, modulo the number of groups */
    KEDGE_ENTRY_NEAREST,  /* before each training: the group whose model is nearest to the site's last one */
    KEDGE_ENTRY_CHOICE,   /* the site reads the models of all groups and trains the one it likes best */
};

/* All groups are there from the start, each with a model of its own, and no close changes who is in which. */
static inline bool kedge_entry_is_settled(enum kedge_entry entry)
{
    return entry == KEDGE_ENTRY_TENANT || entry == KEDGE_ENTRY_NEAREST || entry == KEDGE_ENTRY_CHOICE;
}

#endif
