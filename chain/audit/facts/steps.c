/* What a round's step says of its groups, as far as others ask: how they change, and which direction counts.
 */
#include <string.h>

#include "chain/audit/record.h"

bool kedgei_rule_keeps(const char *rule)
{
    return strcmp(rule, KEDGE_RULE_KEPT) == 0;
}

bool kedgei_meets(const struct kedgei_job *job, const struct kedgei_round *round)
{
    return kedge_job_spec_meets(&job->spec, round->number);
}

bool kedgei_refreshes(const struct kedgei_job *job, const struct kedgei_round *round)
{
    return !round->pretrain && kedge_job_spec_refreshes(&job->spec, round->number);
}

bool kedgei_tries(const struct kedgei_job *job, const struct kedgei_round *round)
{
    return !round->pretrain && kedge_job_spec_tries(&job->spec);
}

bool kedgei_drifted(const struct kedgei_round *round)
{
    return round->step && kedge_job_spec_drifted(((const struct kedge_st_step *)round->step->body)->drift);
}

/* Before this round the group was part of another one. Groups that are just made are part of none.
 * Without this, groups that were joined once would be joined again in every later round's judgement. */
static bool was_merged(const struct kedgei_job *job, const struct kedgei_round *round, uint32_t group)
{
    bool is_first = kedgei_makes_groups(round) || round == job->rounds;
    const struct kedge_st_step_group *last = is_first ? NULL : kedgei_step_group(round[-1].step, group);
    return last && last->merged_into > 0;
}

bool kedgei_merges(const struct kedgei_job *job, const struct kedgei_round *round, uint32_t group)
{
    const struct kedge_st_step_group *row = kedgei_step_group(round->step, group);
    return row && row->merged_into > 0 && !was_merged(job, round, group);
}

bool kedgei_is_joined(const struct kedgei_job *job, const struct kedgei_round *round, uint32_t group)
{
    const struct kedge_st_step *step = round->step ? round->step->body : NULL;
    bool is_joined = kedgei_merges(job, round, group);
    for (uint32_t k = 0; step && k < step->group_count; k++) {
        is_joined = is_joined || (step->groups[k].merged_into == group + 1 && kedgei_merges(job, round, k));
    }
    return is_joined;
}

uint32_t kedgei_part_of(const struct kedgei_round *round, uint32_t group)
{
    const struct kedge_st_step *step = round->step ? round->step->body : NULL;
    uint32_t part = 0;
    for (uint32_t k = 0; step && k < step->group_count; k++) {
        part = step->groups[k].split_of == group + 1 ? k : part;
    }
    return part;
}

/* A joined group has the direction of the group that it is part of. */
const struct kedge_hash *kedgei_direction_of(const struct kedgei_fact *step, uint32_t group)
{
    const struct kedge_st_step_group *row = kedgei_step_group(step, group);
    const struct kedge_st_step_group *with =
        row && row->merged_into > 0 ? kedgei_step_group(step, row->merged_into - 1) : row;
    return with ? &with->direction : NULL;
}

/* The direction that was estimated before a cut is stated by itself (`whole`), for afterwards the group
 * has that of its part. Parts and joined groups have no estimate of their own. */
const struct kedge_hash *kedgei_estimate_of(const struct kedgei_job *job, const struct kedgei_round *round,
                                            uint32_t group)
{
    const struct kedge_st_step_group *row = kedgei_step_group(round->step, group);
    if (!row || row->split_of || was_merged(job, round, group)) {
        return NULL;
    }
    return kedge_hash_is_zero(&row->whole) ? &row->direction : &row->whole;
}
