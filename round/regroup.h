/* Groups made anew while a job trains: new groups from fresh pre-training updates, under the numbers of the
 * groups that they continue, and what their models begin with. Coordinator and auditor share it. */
#ifndef KEDGE_ROUND_REGROUP_H
#define KEDGE_ROUND_REGROUP_H

#include "round/compute.h"

/* As kedge_compute_groups. then[i]: the group that the site of update i is in, KEDGE_GROUP_NONE: none. The n
 * groups are numbered from 0 so that the most sites keep their number (grouping/merge.h); numbers from n on
 * are free afterwards. */
KEDGE_NODISCARD int kedge_compute_regroup(const struct kedge_layout *layout,
                                          const struct kedge_compute_sites *sites,
                                          const struct kedge_job_spec *spec, uint32_t round,
                                          const uint32_t *then, uint32_t *ret_group, uint32_t *ret_groups,
                                          struct kedge_diag *reterr);

/* What the site of each update with group[i] == g counts in the model of that group; the other items of
 * `weight` stay. Those that were in a group (then[i] < former_count) count, all tenants of them alike,
 * however many sites they have, so that no cap on a tenant's share is exceeded; the others weigh 0. Where
 * nobody was, all of them count so. Updates of a tenant in the order of its sites' names. KEDGE_E_NOMEM,
 * KEDGE_E_ARG. */
KEDGE_NODISCARD int kedge_compute_regroup_weigh(const uint32_t *tenant, const uint32_t *then,
                                                const uint32_t *group, size_t count, size_t former_count,
                                                uint32_t g, uint64_t *weight);

/* Whose models a new group's is the mean of (strategy/blend.h), those of update i with group[i] == g, by the
 * weights above: returns how many former groups there are in ret_from, ascending, with their weights; 0: no
 * member was in one, and the model is the initial one. */
uint32_t kedge_compute_regroup_from(const uint32_t *then, const uint32_t *group, const uint64_t *weight,
                                    size_t count, size_t former_count, uint32_t g,
                                    uint32_t ret_from[KEDGE_GROUPS_MAX],
                                    uint64_t ret_weight[KEDGE_GROUPS_MAX]);

#endif
