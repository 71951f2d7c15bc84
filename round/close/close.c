/* The order of a close. What it computes from vectors is in operations_models.c and operations_groups.c;
 * what happens to the groups, and when, is the job's own object (grouping.h). Here only the order is fixed:
 * coordinator, simulators and auditor call these functions, so none of them can decide things in another
 * order than the record has them. */
#include "round/close/close.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"
#include "round/close/grouping.h"
#include "round/close/impl.h"

void kedge_round_result_free(struct kedge_round_result *r)
{
    if (r) {
        kedge_mem_free(r->aggregates);
        kedge_mem_free(r->assigned_sites);
        kedge_mem_free(r->assigned_groups);
        kedge_mem_free(r);
    }
}

/* ---- rounds ---- */

/* A coordinator must write input lists and models. Lists state what each input weighs. Where weights follow
 * from numbers of samples alone, and the close adds nothing to the rows, both can be written at the same
 * time by two workers; otherwise the lists wait until the models are there. */
bool kedge_close_needs_no_files(const struct kedge_job_spec *spec)
{
    return kedge_job_spec_weighs_samples(spec) && spec->rule->kind == KEDGE_RULE_MEAN
           && !kedgei_grouping_of(spec)->marks_inputs;
}

/* SCAFFOLD's server adds up what all updates say of their sites' control variates. An auditor to whom one
 * of these updates is gone can therefore not make the step again, even where the aggregate is known. */
bool kedge_close_steps_by_updates(const struct kedge_job_spec *spec)
{
    return kedge_job_spec_has_control(spec);
}

int kedge_close_weigh(struct kedge_close *c)
{
    for (uint32_t g = 0; g < c->result->groups; g++) {
        KEDGE_TRY(kedgei_weigh_group(c, g, false));
    }
    return KEDGE_OK;
}

/* Mixing follows only after the step of every group, since it moves each model towards those of the other
 * groups. With fewer than two groups that trained there is nothing to move: then the step names the plain
 * rule, and eta is 0. The job's way of grouping is last: it may move sites, and must see the final models. */
int kedge_close_train(struct kedge_close *c)
{
    const struct kedgei_grouping *grouping = kedgei_grouping_of(c->spec);
    struct kedge_round_result *r = c->result;
    uint32_t trained = 0;
    for (uint32_t g = 0; g < r->groups; g++) {
        KEDGE_TRY(kedgei_aggregate_group(c, g, false));
        trained += r->trained[g];
    }
    r->mixed = trained >= 2 && c->spec->mixing > 0;
    if (r->mixed) {
        KEDGE_TRY(kedgei_mix(c));
    }
    return grouping->close ? grouping->close(c) : KEDGE_OK;
}

int kedge_close_pretrain(struct kedge_close *c)
{
    const struct kedgei_grouping *grouping = kedgei_grouping_of(c->spec);
    return grouping->make ? grouping->make(c) : KEDGE_E_STATE;
}

/* Groups made anew of too few updates would rest on the sites that happened to be fast. So nothing changes,
 * and the updates that came are listed as left out: an auditor counts them, and sees whether groups had to be
 * made. */
void kedge_close_keep(struct kedge_close *c)
{
    struct kedge_round_result *r = c->result;
    r->kept = true;
    for (uint32_t g = 0; g < r->groups; g++) {
        r->aggregate[g] = r->stepped[g] = r->after[g] = r->before[g];
        r->state_after[g] = r->state_before[g];
    }
    for (size_t i = 0; i < c->input_count; i++) {
        c->inputs[i].left_out = true;
    }
}
