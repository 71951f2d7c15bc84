/* What a step says of its groups, without files: the engine closes the round with every decision as it is
 * recorded, and has to come to the same step. Whether the decisions are right is replay's to find. */
#include <stddef.h>
#include <string.h>

#include "chain/audit/rounds/closing.h"
#include "common/base/mem.h"

struct check {
    struct kedgei_closing closing;
    struct kedge_st_step expected;
};

/* In the order in which they follow from each other. */
static const struct field {
    size_t at;
    enum kedge_audit_code code;
    const char *what;
} fields[] = {
    {offsetof(struct kedge_st_step_group, before), KEDGE_AUDIT_BASE, "does not start from its model"},
    {offsetof(struct kedge_st_step_group, aggregate), KEDGE_AUDIT_STEP, "its aggregate is another"},
    {offsetof(struct kedge_st_step_group, state_before), KEDGE_AUDIT_STEP,
     "the state of the server's optimiser does not go on from the step before"},
    {offsetof(struct kedge_st_step_group, state_after), KEDGE_AUDIT_STEP,
     "the state of the server's optimiser is missing, or changes without a step of it"},
    {offsetof(struct kedge_st_step_group, stepped), KEDGE_AUDIT_STEP,
     "a model between the server's step and what other groups add is missing, another, or stated where there "
     "is none"},
    {offsetof(struct kedge_st_step_group, after), KEDGE_AUDIT_STEP,
     "its model is not what this rule makes of its aggregate, or not that of the groups that it is one with"},
    {offsetof(struct kedge_st_step_group, direction), KEDGE_AUDIT_STEP,
     "its direction is missing, not that of the round before, or stated in a job without groups"},
    {offsetof(struct kedge_st_step_group, made), KEDGE_AUDIT_STEP,
     "\"made\" is not the direction with which it was made"},
    {offsetof(struct kedge_st_step_group, trial), KEDGE_AUDIT_STEP,
     "a model by which its sites judge is missing, or stated where no rule gives one"},
    {offsetof(struct kedge_st_step_group, whole), KEDGE_AUDIT_STEP,
     "the direction that it had before a cut is missing, or stated without one"},
};

static const struct kedge_hash *hash_at(const struct kedge_st_step_group *row, const struct field *field)
{
    return (const struct kedge_hash *)((const uint8_t *)row + field->at);
}

/* The fields are looked at in the order in which they follow from each other, so that the first finding
 * is the cause. */
static void check_group(struct kedgei_audit *a, const struct kedgei_round *round,
                        const struct kedge_st_step_group *is, const struct kedge_st_step_group *expected)
{
    struct kedgei_findings *f = &a->findings;
    const uint64_t at = round->step->index;
    if (is->group != expected->group) {
        kedgei_error(f, KEDGE_AUDIT_STEP, &a->main, at, "group %u where group %u was expected", is->group,
                     expected->group);
        return;
    }
    if (is->split_of != expected->split_of || is->merged_into != expected->merged_into
        || is->tried_with != expected->tried_with) {
        kedgei_error(
            f, KEDGE_AUDIT_STEP, &a->main, at,
            "group %u: it is cut off another one or part of one, or tried with one, in a way that no "
            "rule of this job gives",
            is->group);
    }
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (!kedge_hash_eq(hash_at(is, &fields[i]), hash_at(expected, &fields[i]))) {
            kedgei_error(f, fields[i].code, &a->main, at, "group %u: %s", is->group, fields[i].what);
        }
    }
}

static void compare(struct kedgei_audit *a, const struct kedgei_round *round, const struct kedge_st_step *is,
                    const struct kedge_st_step *expected)
{
    struct kedgei_findings *f = &a->findings;
    const uint64_t at = round->step->index;
    if (is->group_count != expected->group_count) {
        kedgei_error(f, KEDGE_AUDIT_STEP, &a->main, at, "%u groups, its cuts give %u", is->group_count,
                     expected->group_count);
    }
    if (strcmp(is->rule, expected->rule) != 0 || is->eta < expected->eta || is->eta > expected->eta) {
        kedgei_error(f, KEDGE_AUDIT_STEP, &a->main, at, "rule \"%s\", eta %g; expected \"%s\", %g", is->rule,
                     is->eta, expected->rule, expected->eta);
    }
    if (is->drift < expected->drift || is->drift > expected->drift) {
        kedgei_error(f, KEDGE_AUDIT_STEP, &a->main, at,
                     "round %u states a drift of %g, but estimates no directions", is->round, is->drift);
    }
    if (is->personal != expected->personal) {
        kedgei_error(f, KEDGE_AUDIT_STEP, &a->main, at,
                     "round %u changes whether sites' own models serve them best, but judges no trials",
                     is->round);
    }
    for (uint32_t g = 0; g < is->group_count && g < expected->group_count; g++) {
        check_group(a, round, &is->groups[g], &expected->groups[g]);
    }
}

/* A step to which no close can lead at all is one finding; otherwise every difference is named. */
void kedgei_check_step(struct kedgei_audit *a, const struct kedgei_job *job, const struct kedgei_round *round)
{
    struct kedgei_replay r = {.a = a};
    struct check *c = kedge_mem_new(1, sizeof *c);
    int err = c ? kedgei_closing_init_blind(&c->closing, &r, job, round) : KEDGE_E_NOMEM;
    if (!err) {
        err = kedgei_closing_state(&c->closing, &c->expected);
    }
    if (!err) {
        compare(a, round, round->step->body, &c->expected);
    } else if (err != KEDGE_E_NOMEM) {
        kedgei_error(&a->findings, KEDGE_AUDIT_STEP, &a->main, round->step->index,
                     "round %u: no close of job \"%s\" comes to such a step", round->number, job->id.s);
    }
    a->findings.nomem = a->findings.nomem || err == KEDGE_E_NOMEM;
    if (c) {
        kedgei_closing_deinit(&c->closing);
    }
    kedge_mem_free(c);
}
