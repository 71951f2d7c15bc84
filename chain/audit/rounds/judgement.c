/* The host of a close that is judged: which decision of the list each one of the engine answers, and what
 * the list has that the engine did not come to.
 *
 * The engine asks after each decision. The answer given here is always the recorded one, after it was
 * compared: so a wrong decision is found where it was made, and what follows from it is judged by what
 * the record says and not by a corrected past. */
#include "chain/audit/rounds/judgement.h"

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

/* Groups are cut where directions are estimated again, or to be tried. */
static struct kedgei_decision *item_of_cut(const struct kedgei_closing *c)
{
    return find_item(c, kedgei_tries(c->job, c->round) ? KEDGEI_TRIALS : KEDGEI_RESHAPE, KEDGE_GROUP_NONE);
}

/* The engine's kinds and the list's differ: several questions of the engine (pairs, trials, merges, cuts
 * of a refresh) are one decision of the list, whose result takes them in the order in which they are
 * asked. */
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
        return c->parts > 0 ? item_of_cut(c) : find_item(c, KEDGEI_DIRECTION, io->group);
    case KEDGE_DECISION_DRIFT:
        return find_item(c, KEDGEI_DRIFT, 0);
    case KEDGE_DECISION_SPLIT:
        return find_item(c, KEDGEI_SPLIT, io->group);
    case KEDGE_DECISION_VERDICTS:
    case KEDGE_DECISION_PAIRS:
    case KEDGE_DECISION_TRIAL:
    case KEDGE_DECISION_PERSONAL:
        return find_item(c, KEDGEI_TRIALS, KEDGE_GROUP_NONE);
    case KEDGE_DECISION_MERGES:
    case KEDGE_DECISION_CUT:
    case KEDGE_DECISION_NEAREST:
        break;
    }
    return item_of_cut(c);
}

static const char *name_of(const struct kedgei_closing *c, enum kedgei_decision_kind kind)
{
    static const char *const names[] = {
        [KEDGEI_GROUPING] = "grouping",      [KEDGEI_DIRECTION] = "direction",
        [KEDGEI_AGGREGATE] = "aggregate",    [KEDGEI_MIXING] = "mixing",
        [KEDGEI_SERVER] = "server's step",   [KEDGEI_MEETING] = "meeting of the edges",
        [KEDGEI_DRIFT] = "drift of groups",  [KEDGEI_RESHAPE] = "groups cut and joined",
        [KEDGEI_SPLIT] = "a cut of a group", [KEDGEI_JOINED] = "model of joined groups",
        [KEDGEI_TRIALS] = "trials of groups"};
    return kind == KEDGEI_AGGREGATE && kedgei_regroups(c->round) ? "model of a new group" : names[kind];
}

/* It went wrong: the record's word is taken for all of it. */
static void fail(struct kedgei_closing *c, struct kedgei_decision *item, int err)
{
    item->is_taken = true;
    kedgei_replay_failed(c->r, item, kedgei_judged_at(c, item), name_of(c, item->kind), err, &c->diag, c->f);
    c->diag = (struct kedge_diag){.err = KEDGE_OK};
}

/* ---- the hook ---- */

static void answer(struct kedgei_closing *c, struct kedgei_decision *item, struct kedge_decision *io)
{
    static kedgei_judge *const by_kind[] = {
        [KEDGE_DECISION_WEIGHTS] = kedgei_judge_weights,
        [KEDGE_DECISION_AGGREGATE] = kedgei_judge_aggregate,
        [KEDGE_DECISION_BLEND] = kedgei_judge_aggregate,
        [KEDGE_DECISION_STEP] = kedgei_judge_step,
        [KEDGE_DECISION_MIX] = kedgei_judge_after,
        [KEDGE_DECISION_MEET] = kedgei_judge_after,
        [KEDGE_DECISION_JOIN] = kedgei_judge_after,
        [KEDGE_DECISION_CLUSTER] = kedgei_judge_cluster,
        [KEDGE_DECISION_DIRECTION] = kedgei_judge_direction,
        [KEDGE_DECISION_DRIFT] = kedgei_judge_drift,
        [KEDGE_DECISION_MERGES] = kedgei_judge_merges,
        [KEDGE_DECISION_VERDICTS] = kedgei_judge_merges,
        [KEDGE_DECISION_PAIRS] = kedgei_judge_pairs,
        [KEDGE_DECISION_TRIAL] = kedgei_judge_trial,
        [KEDGE_DECISION_PERSONAL] = kedgei_judge_personal_models,
        [KEDGE_DECISION_CUT] = kedgei_judge_cut,
        [KEDGE_DECISION_SPLIT] = kedgei_judge_split,
        [KEDGE_DECISION_NEAREST] = kedgei_judge_nearest,
    };
    kedgei_judge *judge = by_kind[io->kind];
    if (judge) {
        judge(c, item, io);
    }
}

/* Errors of the engine are judged here as well. A file that is not here or is sealed makes the decision
 * one that could not be repeated; anything else means that no such decision could have been made from
 * these inputs. `one` ends the close after the aggregate that was asked for. */
int kedgei_closing_decided(void *arg, struct kedge_decision *io, struct kedge_diag *d)
{
    struct kedgei_closing *c = arg;
    struct kedgei_decision *item = item_of(c, io);
    bool is_about_site = io->kind == KEDGE_DECISION_NEAREST;
    (void)d; /* the closing's */
    if (c->is_blind && c->inputs.count > 0 && io->kind == KEDGE_DECISION_WEIGHTS
        && io->err != KEDGE_E_NOMEM) {
        kedgei_judge_listed(c, io);
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

/* A decision of the list that the engine did not come to is a contradiction: the record claims something
 * that this round did not decide. Two exceptions are named, where "nothing" is a possible result. */
void kedgei_closing_end(struct kedgei_closing *c, int err)
{
    c->f->nomem = c->f->nomem || err == KEDGE_E_NOMEM;
    for (size_t i = 0; i < c->item_count && !c->f->nomem; i++) {
        struct kedgei_decision *item = &c->items[i];
        if (item->is_taken) {
            continue;
        }
        if (!item->is_answered && !err && item->kind == KEDGEI_SPLIT) { /* there is no number for a part */
            kedgei_judge_uncut(c, item);
        } else if (!item->is_answered && !err && item->kind == KEDGEI_TRIALS) {
            continue; /* there was nothing to judge, and no round for new ones */
        } else if (!item->is_answered) {
            fail(c, item, err ? err : KEDGE_E_NOT_FOUND);
        } else if (item->kind == KEDGEI_RESHAPE || item->kind == KEDGEI_TRIALS) {
            kedgei_judge_reshaped(c, item);
        }
    }
}
