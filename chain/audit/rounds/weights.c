/* What the updates of a round weigh, where that follows from all their statements together: the engine weighs
 * them, or makes the groups that they weigh in, without files. */
#include "aggregation/share_cap.h"
#include "chain/audit/rounds/judgement.h"
#include "common/base/mem.h"

/* A plain mean weighs each update by its own statement, which facts/inputs.c checks row by row. With a
 * cap on tenants, a robust rule or a strategy, a weight depends on all the others. */
bool kedgei_weighs_together(const struct kedgei_job *job, const struct kedgei_round *round)
{
    const struct kedge_job_spec *spec = &job->spec;
    return kedgei_regroups(round) || spec->tenant_share_max < KEDGE_SHARE_ONE
           || spec->rule->kind != KEDGE_RULE_MEAN || !kedge_job_spec_weighs_samples(spec);
}

/* Groups that are made anew: what a site counts in its group's model is known after the close. */
static void check_members(struct kedgei_closing *c)
{
    for (size_t i = 0; i < c->inputs.count; i++) {
        const struct kedge_close_input *in = &c->close.inputs[i];
        if (!in->left_out && !c->lacks[in->group]) {
            kedgei_judge_weight(c, &c->inputs.items[i], in->group, in->weight);
        }
    }
}

/* Takes the inputs over in every case. A list with a row that names no statement is not weighed: the row
 * is the finding. */
void kedgei_check_weights(struct kedgei_audit *a, const struct kedgei_job *job,
                          const struct kedgei_round *round, struct kedgei_inputs *inputs,
                          const bool *unlisted, struct kedgei_findings *f)
{
    struct kedgei_replay r = {.a = a};
    if (inputs->count == 0 || round->kept) {
        kedgei_inputs_deinit(inputs);
        return;
    }
    struct kedgei_closing *c = kedge_mem_new(1, sizeof *c);
    int err = c ? kedgei_closing_init_listed(c, &r, job, round, inputs, unlisted) : KEDGE_E_NOMEM;
    if (!err && !c->unlisted) {
        c->f = f;
        err = round->pretrain ? kedge_close_pretrain(&c->close) : kedge_close_weigh(&c->close);
        if (!err && kedgei_regroups(round)) {
            check_members(c);
        }
    }
    f->nomem = f->nomem || err == KEDGE_E_NOMEM;
    if (c) {
        kedgei_closing_deinit(c);
    }
    kedge_mem_free(c);
    kedgei_inputs_deinit(inputs);
}
