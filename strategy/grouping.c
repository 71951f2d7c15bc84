#include "strategy/grouping.h"

/* One row for each way in which sites come to their groups. `needs_whole` is the reason why compression is
 * refused, in the words of the message. */
static const struct kedge_grouping_row rows[] = {
    [KEDGE_GROUPING_KIND_NONE] = {.name = "none", .entry = KEDGE_ENTRY_PRETRAIN, .in_jobs = true},
    [KEDGE_GROUPING_KIND_FLEXCFL] = {.name = "flexcfl", .entry = KEDGE_ENTRY_PRETRAIN, .in_jobs = true},
    [KEDGE_GROUPING_KIND_CHOICE] = {.name = "choice", .entry = KEDGE_ENTRY_CHOICE, .in_jobs = true},
    [KEDGE_GROUPING_KIND_NEAREST] =
        {.name = "nearest",
         .entry = KEDGE_ENTRY_NEAREST,
         .in_jobs = true,
         .needs_whole =
             "a site's group is the one nearest to its last model, which a compressed update does not tell"},
    [KEDGE_GROUPING_KIND_SPLIT] = {.name = "parting",
                                   .entry = KEDGE_ENTRY_TOGETHER,
                                   .in_jobs = true,
                                   .needs_whole =
                                       "groups are cut by the lengths and angles of whole updates"},
    [KEDGE_GROUPING_KIND_ONESHOT] = {.name = "oneshot",
                                     .entry = KEDGE_ENTRY_PRETRAIN,
                                     .in_jobs = true,
                                     .by_last_layer = true},
    [KEDGE_GROUPING_KIND_EDGE] = {.name = "edges", .entry = KEDGE_ENTRY_TENANT, .in_jobs = true},
    [KEDGE_GROUPING_KIND_RANDOM] = {.name = "random", .entry = KEDGE_ENTRY_PRETRAIN, .by_chance = true},
    [KEDGE_GROUPING_KIND_CENTRES] = {.name = "centres",
                                     .entry = KEDGE_ENTRY_PRETRAIN,
                                     .each_makes_one = true},
};

const struct kedge_grouping_row *kedge_grouping_row(enum kedge_grouping_kind kind)
{
    return &rows[kind];
}

bool kedge_grouping_pretrains(enum kedge_grouping_kind kind)
{
    return kind != KEDGE_GROUPING_KIND_NONE && rows[kind].entry == KEDGE_ENTRY_PRETRAIN;
}
