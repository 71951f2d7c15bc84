/* Where the edges of a hierarchical job meet: one model of all of theirs. Coordinator and auditor share it.
 */
#ifndef KEDGE_ROUND_MEET_H
#define KEDGE_ROUND_MEET_H

#include "round/compute.h"

/* What the edges weigh, from what was added up for each since the last meeting
 * (kedge_job_spec_meeting_share): the same, but for the cap on a tenant's share, to which an edge is one. An
 * edge of 0 stays that. KEDGE_E_ARG: all are 0; KEDGE_E_OVERFLOW: they are above 2^43. */
KEDGE_NODISCARD int kedge_compute_meeting_weights(const struct kedge_job_spec *spec, const uint64_t *since,
                                                  size_t edges, uint64_t *ret_weight);

/* The mean of models by these weights (strategy/blend.h): where edges meet, groups are joined or made anew.
 */
KEDGE_NODISCARD int kedge_compute_blend(const struct kedge_layout *layout, const struct kedge_blob_at *of,
                                        const uint64_t *weight, size_t edges, struct kedge_sink sink,
                                        struct kedge_diag *reterr);

#endif
