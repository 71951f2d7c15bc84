/* Decisions that make models: weights, aggregates, servers' steps, and what several groups make of them. */
#include <string.h>

#include "chain/audit/rounds/judgement.h"

static void judge_weights(struct kedgei_closing *c, struct kedgei_decision *item,
                          const struct kedge_decision *io)
{
    const struct kedge_st_aggregate *agg = item->fact->body;
    for (uint32_t i = 0; i < io->count; i++) {
        const struct kedgei_input *in = &c->inputs.items[io->input[i]];
        kedgei_replay_add_number(item, io->weight[i]);
        if (io->weight[i] != in->row.weight) {
            kedgei_error(
                c->f, KEDGE_AUDIT_REPLAY_AGGREGATE, &c->r->a->main, item->fact->index,
                "job \"%s\", round %u: update of site \"%s\" of \"%s\" is recorded with weight %llu, the "
                "updates give %llu",
                c->job->id.s, c->round->number, in->row.site.s, c->job->spec.tenants[in->place].s,
                (unsigned long long)in->row.weight, (unsigned long long)io->weight[i]);
        }
    }
    kedgei_replay_add_number(item, io->divisor);
    struct kedge_rule_name name = kedge_job_spec_aggregate_rule(&c->job->spec, c->round->pretrain, io->rule);
    if (strcmp(name.s, agg->rule) != 0) {
        kedgei_error(c->f, KEDGE_AUDIT_REPLAY_AGGREGATE, &c->r->a->main, item->fact->index,
                     "job \"%s\", round %u: rule \"%s\" is recorded, with these updates it is \"%s\"",
                     c->job->id.s, c->round->number, agg->rule, name.s);
    }
}

/* Weights that follow from the sample counts alone verify has found already. When they are not judged,
 * the recorded weights are put in the engine's place, and the divisor is their sum, as the engine would
 * have made it. */
void kedgei_judge_weights(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const struct kedge_job_spec *spec = c->close.spec;
    bool plain = spec->rule->kind == KEDGE_RULE_MEAN && kedge_job_spec_weighs_samples(spec);
    if (!plain && kedgei_is_judged(item)) {
        judge_weights(c, item, io);
        return;
    }
    io->rule = spec->rule;
    io->divisor = 0;
    for (uint32_t i = 0; i < io->count; i++) {
        io->weight[i] = io->input[i] < c->inputs.count ? c->inputs.items[io->input[i]].row.weight : 0;
        io->divisor += io->weight[i];
    }
}

/* A model that differs is always reported as a cause of its own: it is what an audit is for. */
void kedgei_judge_aggregate(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const struct kedge_st_step_group *row = kedgei_judged_row(c, io->group);
    if (kedgei_is_judged(item)) {
        kedgei_judge_compare(c, item, KEDGE_AUDIT_REPLAY_AGGREGATE, io->group, &io->vector,
                             &item->fact->subject);
    }
    if (c->is_blind) {
        const struct kedgei_fact *fact = c->round->aggregates[io->group];
        io->vector = fact ? fact->subject : io->vector;
    } else if (row) {
        io->vector = row->aggregate;
        c->result.before[io->group] = row->before;
    } else if (item) {
        io->vector = item->fact->subject;
    }
}

/* A step states the model between server and mixing only where the two differ. */
static const struct kedge_hash *stepped_of(const struct kedge_st_step_group *row)
{
    return kedge_hash_is_zero(&row->stepped) ? &row->after : &row->stepped;
}

/* Model and optimiser state together: a coordinator that changed only the state would steer the next
 * round with it. */
void kedgei_judge_step(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const struct kedge_st_step_group *row = kedgei_judged_row(c, io->group);
    if (row && kedgei_is_judged(item)) {
        kedgei_judge_compare(c, item, KEDGE_AUDIT_REPLAY_STEP, io->group, &io->vector, stepped_of(row));
        kedgei_judge_compare(c, item, KEDGE_AUDIT_REPLAY_STEP, io->group, &io->state, &row->state_after);
    }
    if (row) {
        io->vector = *stepped_of(row);
        io->state = row->state_after;
    }
    io->state.b[0] |= c->is_blind && kedge_hash_is_zero(&io->state); /* there is one after a step */
}

/* Of mixing, meeting, joining: what becomes of the group's model. */
void kedgei_judge_after(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const struct kedge_st_step_group *row = kedgei_judged_row(c, io->group);
    if (row && kedgei_is_judged(item)) {
        for (uint32_t i = 0; i < io->count && io->kind == KEDGE_DECISION_MEET; i++) {
            kedgei_replay_add_number(item, io->weight[i]);
        }
        kedgei_judge_compare(c, item, KEDGE_AUDIT_REPLAY_STEP, io->group, &io->vector, &row->after);
    }
    if (row) {
        io->vector = row->after;
    }
}

void kedgei_judge_weight(struct kedgei_closing *c, const struct kedgei_input *in, uint32_t group,
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

/* For verify: weights that follow from statements alone are judged without a single file. NOT_FOUND says
 * that the rule needs the updates themselves; then only its name is compared. */
void kedgei_judge_listed(struct kedgei_closing *c, const struct kedge_decision *io)
{
    const struct kedgei_fact *aggregate = c->round->aggregates[io->group];
    const struct kedge_st_aggregate *g = aggregate ? aggregate->body : NULL;
    for (uint32_t i = 0; i < io->count; i++) {
        if (io->input[i] >= c->inputs.count) {
            return; /* a list of this group is not here */
        }
    }
    if (!g) {
        return;
    }
    if (io->err && io->err != KEDGE_E_NOT_FOUND) {
        kedgei_error(c->f, KEDGE_AUDIT_ROW, &c->r->a->main, aggregate->index, "%s", c->diag.text);
        return;
    }
    const struct kedge_rule_name name =
        kedge_job_spec_aggregate_rule(&c->job->spec, c->round->pretrain, io->rule);
    if (strcmp(name.s, g->rule) != 0) {
        kedgei_error(c->f, KEDGE_AUDIT_AGGREGATE, &c->r->a->main, aggregate->index,
                     "rule \"%s\"; with these updates it is \"%s\"", g->rule, name.s);
    }
    for (uint32_t i = 0; i < io->count && !io->err; i++) { /* not found: files decide, replay looks */
        kedgei_judge_weight(c, &c->inputs.items[io->input[i]], io->group, io->weight[i]);
    }
}
