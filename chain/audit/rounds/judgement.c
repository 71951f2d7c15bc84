/* Each decision of a close as the engine makes it, against the record; and the record's word in its place. */
#include <string.h>

#include "chain/audit/rounds/closing.h"
#include "grouping/flexcfl.h"

/* ---- which decision of the list it answers ---- */

static struct kedgei_decision *find_item(const struct kedgei_closing *c, enum kedgei_decision_kind kind,
                                         uint32_t group)
{
    for (size_t i = 0; i < c->item_count; i++) {
        if (c->items[i].kind == kind && c->items[i].group == group) {
            return &c->items[i];
        }
    }
    return NULL;
}

static struct kedgei_decision *item_of(const struct kedgei_closing *c, const struct kedge_decision *io)
{
    switch (io->kind) {
    case KEDGE_DECISION_WEIGHTS:
    case KEDGE_DECISION_AGGREGATE:
    case KEDGE_DECISION_BLEND:
        return find_item(c, KEDGEI_AGGREGATE, io->group);
    case KEDGE_DECISION_STEP:
        return find_item(c, KEDGEI_SERVER, io->group);
    case KEDGE_DECISION_MIX:
        return find_item(c, KEDGEI_MIXING, 0);
    case KEDGE_DECISION_MEET:
        return find_item(c, KEDGEI_MEETING, 0);
    case KEDGE_DECISION_JOIN:
        return find_item(c, KEDGEI_JOINED, io->group);
    case KEDGE_DECISION_CLUSTER:
        return find_item(c, KEDGEI_GROUPING, 0);
    case KEDGE_DECISION_DIRECTION:
        return c->parts > 0 ? find_item(c, KEDGEI_RESHAPE, KEDGE_GROUP_NONE)
                            : find_item(c, KEDGEI_DIRECTION, io->group);
    case KEDGE_DECISION_DRIFT:
        return find_item(c, KEDGEI_DRIFT, 0);
    case KEDGE_DECISION_CUT:
        if (kedge_job_spec_splits(c->close.spec)) {
            return find_item(c, KEDGEI_SPLIT, io->group);
        }
        break;
    case KEDGE_DECISION_NEAREST:
    case KEDGE_DECISION_MERGES:
        break;
    }
    return find_item(c, KEDGEI_RESHAPE, KEDGE_GROUP_NONE);
}

static uint64_t place_of(const struct kedgei_closing *c, const struct kedgei_decision *item)
{
    return item->kind == KEDGEI_AGGREGATE ? item->fact->index : c->round->step->index;
}

static const char *name_of(const struct kedgei_closing *c, enum kedgei_decision_kind kind)
{
    static const char *const names[] = {
        [KEDGEI_GROUPING] = "grouping",      [KEDGEI_DIRECTION] = "direction",
        [KEDGEI_AGGREGATE] = "aggregate",    [KEDGEI_MIXING] = "mixing",
        [KEDGEI_SERVER] = "server's step",   [KEDGEI_MEETING] = "meeting of the edges",
        [KEDGEI_DRIFT] = "drift of groups",  [KEDGEI_RESHAPE] = "groups cut and joined",
        [KEDGEI_SPLIT] = "a cut of a group", [KEDGEI_JOINED] = "model of joined groups"};
    return kind == KEDGEI_AGGREGATE && kedgei_regroups(c->round) ? "model of a new group" : names[kind];
}

/* It went wrong: the record's word is taken for all of it. */
static void fail(struct kedgei_closing *c, struct kedgei_decision *item, int err)
{
    item->is_taken = true;
    kedgei_replay_failed(c->r, item, place_of(c, item), name_of(c, item->kind), err, &c->diag, c->f);
    c->diag = (struct kedge_diag){.err = KEDGE_OK};
}

static void compare(struct kedgei_closing *c, struct kedgei_decision *item, enum kedge_audit_code code,
                    uint32_t group, const struct kedge_hash *expected, const struct kedge_hash *recorded)
{
    kedgei_replay_add(item, expected->b, sizeof expected->b);
    kedgei_replay_compare(c->r, item, code, place_of(c, item), group, expected, recorded, c->f);
}

static void add_real(struct kedgei_decision *item, double real)
{
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    kedgei_replay_add_number(item, bits);
}

/* Something about a group of this round. */
static void other(struct kedgei_closing *c, uint32_t group, const char *what)
{
    kedgei_error(c->f, KEDGE_AUDIT_REPLAY_GROUPING, &c->r->a->main, c->round->step->index,
                 "job \"%s\", round %u, group %u: %s", c->job->id.s, c->round->number, group, what);
}

static const struct kedge_st_step_group *row_of(const struct kedgei_closing *c, uint32_t group)
{
    return c->step && group < c->step->group_count ? &c->step->groups[group] : NULL;
}

static bool is_judged(const struct kedgei_decision *item)
{
    return item && !item->is_taken;
}

/* ---- models ---- */

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

/* Weights that follow from the sample counts alone verify has found already. */
static void weights(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const struct kedge_job_spec *spec = c->close.spec;
    bool plain = spec->rule->kind == KEDGE_RULE_MEAN && kedge_job_spec_weighs_samples(spec);
    if (!plain && is_judged(item)) {
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

static void aggregate(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const struct kedge_st_step_group *row = row_of(c, io->group);
    if (is_judged(item)) {
        compare(c, item, KEDGE_AUDIT_REPLAY_AGGREGATE, io->group, &io->vector, &item->fact->subject);
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

static const struct kedge_hash *stepped_of(const struct kedge_st_step_group *row)
{
    return kedge_hash_is_zero(&row->stepped) ? &row->after : &row->stepped;
}

static void step(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const struct kedge_st_step_group *row = row_of(c, io->group);
    if (row && is_judged(item)) {
        compare(c, item, KEDGE_AUDIT_REPLAY_STEP, io->group, &io->vector, stepped_of(row));
        compare(c, item, KEDGE_AUDIT_REPLAY_STEP, io->group, &io->state, &row->state_after);
    }
    if (row) {
        io->vector = *stepped_of(row);
        io->state = row->state_after;
    }
    io->state.b[0] |= c->is_blind && kedge_hash_is_zero(&io->state); /* there is one after a step */
}

/* Of mixing, meeting, joining: what becomes of the group's model. */
static void after(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const struct kedge_st_step_group *row = row_of(c, io->group);
    if (row && is_judged(item)) {
        for (uint32_t i = 0; i < io->count && io->kind == KEDGE_DECISION_MEET; i++) {
            kedgei_replay_add_number(item, io->weight[i]);
        }
        compare(c, item, KEDGE_AUDIT_REPLAY_STEP, io->group, &io->vector, &row->after);
    }
    if (row) {
        io->vector = row->after;
    }
}

/* ---- groups ---- */

/* How many groups the close has made, as far as it is recorded. */
static uint32_t groups_of(const struct kedgei_closing *c)
{
    uint32_t groups = 0;
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        groups = c->round->aggregates[g] ? g + 1 : groups;
    }
    return c->is_blind ? groups > 0 ? groups : 1 : c->step ? c->step->group_count : groups;
}

static void cluster(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const uint32_t stated = groups_of(c);
    for (uint32_t i = 0; i < io->count && i < c->inputs.count; i++) {
        const struct kedge_input_row *row = &c->inputs.items[i].row;
        const uint32_t given = io->index[i];
        bool used = row->use == KEDGE_USE_GROUPED;
        if (is_judged(item)) {
            kedgei_replay_add_number(item, given);
        }
        if (is_judged(item) && (used ? given != row->group : given != KEDGE_GROUP_NONE)) {
            kedgei_error(
                c->f, KEDGE_AUDIT_REPLAY_GROUPING, &c->r->a->main, place_of(c, item),
                "job \"%s\": site \"%s\" of \"%s\" is recorded in group %d, its update gives group %d",
                c->job->id.s, row->site.s, c->job->spec.tenants[c->inputs.items[i].place].s,
                used ? (int)row->group : -1, given == KEDGE_GROUP_NONE ? -1 : (int)given);
        }
        io->index[i] = used && row->group < stated ? row->group : KEDGE_GROUP_NONE;
    }
    for (uint32_t i = (uint32_t)c->inputs.count; i < io->count; i++) { /* of a tenant that is not here */
        const uint32_t group = c->close.inputs[i].group;
        io->index[i] = group < stated ? group : KEDGE_GROUP_NONE;
    }
    if (is_judged(item) && io->groups != stated) {
        kedgei_error(c->f, KEDGE_AUDIT_REPLAY_GROUPING, &c->r->a->main, place_of(c, item),
                     "job \"%s\": %u groups, the updates give %u", c->job->id.s, stated, io->groups);
    }
    io->groups = stated;
}

static void judge_part(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const struct kedge_st_step_group *row = row_of(c, io->group);
    c->parts--;
    if (row && c->judge_parts && is_judged(item)) {
        compare(c, item, KEDGE_AUDIT_REPLAY_DIRECTION, io->group, &io->vector, &row->direction);
    }
    if (c->parts == 0 && c->judge_parts && is_judged(item)) {
        kedgei_replay_add_number(item, true); /* that it was cut */
    }
    if (row) {
        io->vector = row->direction;
    }
}

static void direction(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const struct kedge_st_step_group *row = row_of(c, io->group);
    if (c->parts > 0) {
        judge_part(c, item, io);
        return;
    }
    const struct kedge_hash *recorded =
        c->round->pretrain ? row ? &row->direction : NULL : kedgei_estimate_of(c->job, c->round, io->group);
    const struct kedge_hash found = /* none: the group keeps its own */
        kedge_hash_is_zero(&io->vector) ? c->result.directions[io->group] : io->vector;
    if (recorded && is_judged(item)) {
        compare(c, item, KEDGE_AUDIT_REPLAY_DIRECTION, io->group, &found, recorded);
    }
    io->vector = recorded ? *recorded : (struct kedge_hash){{0}};
    io->vector.b[0] |= !c->step; /* nothing is recorded: no direction would end the close */
}

static void drift(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const double recorded = c->step ? c->step->drift : 0;
    if (is_judged(item)) {
        add_real(item, io->drift);
        if (io->drift < recorded || io->drift > recorded) {
            kedgei_error(c->f, KEDGE_AUDIT_REPLAY_DIRECTION, &c->r->a->main, place_of(c, item),
                         "job \"%s\", round %u: a drift of %.17g is recorded, the directions give %.17g",
                         c->job->id.s, c->round->number, recorded, io->drift);
        }
    }
    io->drift = recorded;
}

/* ---- groups that are joined or cut ---- */

/* What the group became part of in this close, itself where it stayed. */
static uint32_t target_of(const struct kedgei_closing *c, uint32_t group)
{
    const struct kedge_st_step_group *row = row_of(c, group);
    bool merges = row && row->merged_into > 0 && row->merged_into <= group && !c->result.merged_into[group];
    if (!merges) {
        return group;
    }
    const uint32_t into = row->merged_into - 1;
    const bool is_part = row_of(c, into)->merged_into > 0;
    const bool may = !is_part && c->close.spec->options.merge < 1;
    return c->is_blind && !may ? group : into;
}

static void merges(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    bool any = false;
    for (uint32_t g = 0; g < io->count; g++) {
        const struct kedge_st_step_group *row = row_of(c, g);
        const uint32_t into = io->index[g];
        any = any || into != g;
        if (is_judged(item)) {
            kedgei_replay_add_number(item, into);
        }
        if (row && is_judged(item) && kedgei_estimate_of(c->job, c->round, g)
            && (into != g ? into + 1 : 0) != row->merged_into) {
            other(c, g, "it is recorded as part of other groups than the directions give");
        }
        io->index[g] = target_of(c, g);
    }
    for (uint32_t g = io->count; is_judged(item) && c->step && g < c->step->group_count; g++) {
        kedgei_replay_add_number(item, g); /* a part that is cut off afterwards is itself */
    }
    c->asks_cuts = !any && c->last && c->close.spec->options.silhouette < 1;
}

/* The part that this step cuts off the group, 0: none. */
static uint32_t part_of(const struct kedgei_closing *c, uint32_t group)
{
    uint32_t part = 0;
    for (uint32_t k = 0; c->step && k < c->step->group_count; k++) {
        part = c->step->groups[k].split_of == group + 1 ? k : part;
    }
    return part;
}

/* Groups before this one that there was no number for, or no update of. */
static void skip_cuts(struct kedgei_closing *c, struct kedgei_decision *item, uint32_t group)
{
    for (; c->cuts < group; c->cuts++) {
        if (kedgei_estimate_of(c->job, c->round, c->cuts)) {
            kedgei_replay_add_number(item, false);
        }
    }
    c->cuts = group + 1;
}

static void cut(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const uint32_t to = part_of(c, io->group);
    c->judge_parts = io->is_cut && to > 0;
    if (is_judged(item)) {
        skip_cuts(c, item, io->group);
        if (io->is_cut != (to > 0)) {
            other(c, io->group,
                  io->is_cut ? "its sites' updates cut it in two, which is not recorded"
                             : "it is recorded as cut in two, its sites' updates do not give that");
        }
        if (!c->judge_parts) {
            kedgei_replay_add_number(item, io->is_cut);
        }
    }
    io->is_cut = to > 0;
    c->parts = io->is_cut ? 2 : 0;
}

/* Which of the close's inputs the round's n-th one of the group is. */
static const struct kedgei_input *input_of(const struct kedgei_closing *c, uint32_t group, uint32_t n)
{
    for (size_t i = 0; i < c->inputs.count; i++) {
        if (!c->close.inputs[i].left_out && c->close.inputs[i].group == group && n-- == 0) {
            return &c->inputs.items[i];
        }
    }
    return NULL;
}

static void judge_split(struct kedgei_closing *c, struct kedgei_decision *item, uint32_t group,
                        const struct kedge_decision *io)
{
    const uint32_t to = part_of(c, group);
    bool is_cut = io && io->is_cut;
    if (is_cut != (to > 0)) {
        other(c, group,
              is_cut ? "its updates cut it in two, which is not recorded"
                     : "it is recorded as cut in two, its updates do not give that");
    }
    kedgei_replay_add_number(item, is_cut);
    for (uint32_t i = 0; is_cut && i < io->count; i++) {
        const struct kedgei_input *in = input_of(c, group, i);
        const uint32_t expected = io->index[i] == 1 ? to : 0;
        kedgei_replay_add_number(item, io->index[i]);
        if (in && to > 0 && in->row.to != expected) {
            kedgei_error(
                c->f, KEDGE_AUDIT_REPLAY_GROUPING, &c->r->a->main, c->round->step->index,
                "job \"%s\", round %u: site \"%s\" of \"%s\" is recorded in group %u behind the cut of "
                "group %u, the updates give group %u",
                c->job->id.s, c->round->number, in->row.site.s, c->job->spec.tenants[in->place].s,
                in->row.to > 0 ? in->row.to : group, group, expected > 0 ? expected : group);
        }
    }
}

static void split(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    const uint32_t to = part_of(c, io->group);
    if (is_judged(item)) {
        judge_split(c, item, io->group, io);
    }
    io->is_cut = to > 0;
    for (uint32_t i = 0; i < io->count; i++) {
        const struct kedgei_input *in = input_of(c, io->group, i);
        io->index[i] = to > 0 && in && in->row.to == to;
    }
}

/* ---- the hook ---- */

static void answer(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    switch (io->kind) {
    case KEDGE_DECISION_WEIGHTS:
        weights(c, item, io);
        break;
    case KEDGE_DECISION_AGGREGATE:
    case KEDGE_DECISION_BLEND:
        aggregate(c, item, io);
        break;
    case KEDGE_DECISION_STEP:
        step(c, item, io);
        break;
    case KEDGE_DECISION_MIX:
    case KEDGE_DECISION_MEET:
    case KEDGE_DECISION_JOIN:
        after(c, item, io);
        break;
    case KEDGE_DECISION_CLUSTER:
        cluster(c, item, io);
        break;
    case KEDGE_DECISION_DIRECTION:
        direction(c, item, io);
        break;
    case KEDGE_DECISION_DRIFT:
        drift(c, item, io);
        break;
    case KEDGE_DECISION_MERGES:
        merges(c, item, io);
        break;
    case KEDGE_DECISION_CUT:
        (kedge_job_spec_splits(c->close.spec) ? split : cut)(c, item, io);
        break;
    case KEDGE_DECISION_NEAREST: /* where it goes is for its statement to say right */
        break;
    }
}

int kedgei_closing_decided(void *arg, struct kedge_decision *io, struct kedge_diag *d)
{
    struct kedgei_closing *c = arg;
    struct kedgei_decision *item = item_of(c, io);
    bool is_about_site = io->kind == KEDGE_DECISION_NEAREST;
    (void)d; /* the closing's */
    if (c->is_blind && c->inputs.count > 0 && io->kind == KEDGE_DECISION_WEIGHTS
        && io->err != KEDGE_E_NOMEM) {
        kedgei_closing_weighs(c, io);
        return KEDGE_OK;
    }
    if (io->err == KEDGE_E_NOMEM) {
        return io->err;
    }
    if (io->kind == KEDGE_DECISION_WEIGHTS && !io->err && c->unlisted
        && !(c->close.spec->rule->kind == KEDGE_RULE_MEAN && kedge_job_spec_weighs_samples(c->close.spec))) {
        io->err = KEDGE_E_CORRUPT;
    }
    if (io->kind == KEDGE_DECISION_MEET && c->since_err) {
        io->err = c->since_err;
    }
    if (io->err && item && !item->is_taken && !(is_about_site && io->err == KEDGE_E_NOT_FOUND)) {
        fail(c, item, io->err);
    }
    c->diag = (struct kedge_diag){.err = KEDGE_OK};
    if (item) {
        item->is_answered = true;
    }
    answer(c, item, io);
    bool done = c->one && io->kind == KEDGE_DECISION_AGGREGATE;
    return c->f->nomem ? KEDGE_E_NOMEM : done ? KEDGE_E_STATE : KEDGE_OK;
}

/* ---- afterwards ---- */

/* Sites that a close moves have a statement of it. Where they go is that statement's to say right. */
static void check_moves(struct kedgei_closing *c)
{
    bool next = c->round + 1 < c->job->rounds + c->job->round_count;
    for (uint32_t k = 0; next && k < c->result.assigned_count; k++) {
        const struct kedgei_input *in = &c->members.items[c->result.assigned_sites[k] - c->inputs.count];
        const struct kedgei_log *log = &c->r->a->tenants[c->job->tenants[in->place]];
        const struct kedgei_fact *then = kedgei_group_behind(log, &c->job->id, &in->row.site, in->row.leaf);
        const struct kedge_st_group_assigned *moved = then ? then->body : NULL;
        bool has = moved && moved->round == c->round->number
                   && (moved->how == KEDGE_GROUP_SPLIT || moved->how == KEDGE_GROUP_MERGE);
        if (!has) {
            other(c, in->row.group, "a site of it was not given the group to which the close moves it");
        }
    }
}

void kedgei_closing_end(struct kedgei_closing *c, int err)
{
    c->f->nomem = c->f->nomem || err == KEDGE_E_NOMEM;
    for (size_t i = 0; i < c->item_count && !c->f->nomem; i++) {
        struct kedgei_decision *item = &c->items[i];
        if (item->is_taken) {
            continue;
        }
        if (!item->is_answered && !err && item->kind == KEDGEI_SPLIT) { /* there is no number for a part */
            judge_split(c, item, item->group, NULL);
        } else if (!item->is_answered) {
            fail(c, item, err ? err : KEDGE_E_NOT_FOUND);
        } else if (item->kind == KEDGEI_RESHAPE) {
            if (c->asks_cuts) {
                skip_cuts(c, item, KEDGE_GROUPS_MAX);
            }
            check_moves(c);
        }
    }
}
