#include "round/close/grouping.h"

static const struct kedgei_grouping nothing = {.make = NULL};

/* FlexCFL's close serves every kind whose groups begin with pre-trainings: only how updates are clustered
 * differs, and round/cluster.c decides that. A spec may also group by FlexCFL under a strategy of one model
 * ("grouping"). Jobs that try groups begin like it but join by other evidence, so they are asked for
 * first. */
const struct kedgei_grouping *kedgei_grouping_of(const struct kedge_job_spec *spec)
{
    static const struct kedgei_grouping *const by_kind[] = {
        [KEDGE_GROUPING_KIND_FLEXCFL] = &kedgei_flexcfl,
        [KEDGE_GROUPING_KIND_ONESHOT] = &kedgei_flexcfl,
        [KEDGE_GROUPING_KIND_EDGE] = &kedgei_edges,
        [KEDGE_GROUPING_KIND_SPLIT] = &kedgei_parting,
        [KEDGE_GROUPING_KIND_RANDOM] = &kedgei_flexcfl,
        [KEDGE_GROUPING_KIND_CENTRES] = &kedgei_flexcfl, /* the last kind */
    };
    const enum kedge_grouping_kind kind =
        spec->grouping == KEDGE_GROUPING_FLEXCFL ? KEDGE_GROUPING_KIND_FLEXCFL : spec->strategy->grouping;
    if (kedge_job_spec_tries(spec)) {
        return &kedgei_evidence;
    }
    return by_kind[kind] ? by_kind[kind] : &nothing;
}
