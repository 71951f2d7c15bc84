/* What the updates of a round weigh, where that follows from all their statements together: the engine weighs
 * them, or makes the groups that they weigh in, without files. */
#include <string.h>

#include "aggregation/share_cap.h"
#include "chain/audit/rounds/closing.h"
#include "common/base/mem.h"

bool kedgei_weighs_together(const struct kedgei_job *job, const struct kedgei_round *round)
{
    const struct kedge_job_spec *spec = &job->spec;
    return kedgei_regroups(round) || spec->tenant_share_max < KEDGE_SHARE_ONE
           || spec->rule->kind != KEDGE_RULE_MEAN || !kedge_job_spec_weighs_samples(spec);
}

static void check_row(struct kedgei_closing *c, const struct kedgei_input *in, uint32_t group,
                      uint64_t expected)
{
    const struct kedgei_fact *aggregate = c->round->aggregates[group];
    if (aggregate && in->row.weight != expected) {
        kedgei_error(c->f, KEDGE_AUDIT_ROW, &c->r->a->main, aggregate->index,
                     "row of \"%s\" of \"%s\", leaf %llu: its weight is %llu, its rule gives %llu",
                     in->row.site.s, c->job->spec.tenants[in->place].s, (unsigned long long)in->row.leaf,
                     (unsigned long long)in->row.weight, (unsigned long long)expected);
    }
}

void kedgei_closing_weighs(struct kedgei_closing *c, const struct kedge_decision *io)
{
    const struct kedgei_fact *aggregate = c->round->aggregates[io->group];
    for (uint32_t i = 0; i < io->count; i++) {
        if (io->input[i] >= c->inputs.count) {
            return; /* a list of this group is not here */
        }
    }
    if (!aggregate || (io->err && io->err != KEDGE_E_NOT_FOUND)) {
        if (aggregate) {
            kedgei_error(c->f, KEDGE_AUDIT_ROW, &c->r->a->main, aggregate->index, "%s", c->diag.text);
        }
        return;
    }
    const struct kedge_st_aggregate *g = aggregate->body;
    const struct kedge_rule_name name =
        kedge_job_spec_aggregate_rule(&c->job->spec, c->round->pretrain, io->rule);
    if (strcmp(name.s, g->rule) != 0) {
        kedgei_error(c->f, KEDGE_AUDIT_AGGREGATE, &c->r->a->main, aggregate->index,
                     "rule \"%s\"; with these updates it is \"%s\"", g->rule, name.s);
    }
    for (uint32_t i = 0; i < io->count && !io->err; i++) { /* not found: files decide, replay looks */
        check_row(c, &c->inputs.items[io->input[i]], io->group, io->weight[i]);
    }
}

/* Groups that are made anew: what a site counts in its group's model is known behind the close. */
static void check_members(struct kedgei_closing *c)
{
    for (size_t i = 0; i < c->inputs.count; i++) {
        const struct kedge_close_input *in = &c->close.inputs[i];
        if (!in->left_out && !c->lacks[in->group]) {
            check_row(c, &c->inputs.items[i], in->group, in->weight);
        }
    }
}

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
