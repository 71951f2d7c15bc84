/* Decisions over updates that their tenant had erased: they are told, not replayed.
 *
 * A tenant may have its updates erased, and the record says by whose order. What was decided from them
 * cannot be repeated then, and must not count as wrong: the results are recorded, and later rounds start
 * from them. So those decisions are named by round and group, and the rest is replayed as ever. */
#include "chain/audit/rounds/erased_decisions.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chain/audit/facts/buffer.h"
#include "chain/audit/facts/erased.h"
#include "common/base/try.h"
#include "round/close/close.h"

/* Of an asynchronous job any may, for lists name updates of earlier rounds. Cheap test before the lists
 * are read: most rounds have no erased update. */
static bool touches_round(const struct kedgei_audit *a, const struct kedgei_job *job,
                          const struct kedgei_round *round)
{
    if (kedgei_job_is_asynchronous(job)) {
        return true;
    }
    for (size_t k = 0; k < round->update_count; k++) {
        const struct kedgei_update *u = kedgei_update_at(a, round->update_first + k);
        if (kedgei_erased(a, &a->tenants[u->tenant], &u->fact->subject)) {
            return true;
        }
    }
    return false;
}

/* How many of these are erased. Lists that cannot be read are named by verify; what they hold is not counted.
 * By sites: of the updates by which they are in their groups. */
static int mark_inputs(const struct kedgei_audit *a, struct kedgei_decision *d, uint32_t group, bool by_sites)
{
    struct kedgei_inputs in = {.items = NULL};
    int err = by_sites ? kedgei_members_of_close(a, d->job, d->round, group, true, &in)
                       : kedgei_inputs_of_close(a, d->job, d->round, group, &in);
    for (size_t i = 0; i < in.count; i++) {
        const struct kedgei_log *log = &a->tenants[d->job->tenants[in.items[i].place]];
        d->erased += kedgei_erased(a, log, &in.items[i].row.update) != NULL;
    }
    kedgei_inputs_deinit(&in);
    return err == KEDGE_E_NOMEM ? err : KEDGE_OK;
}

/* It was one part of a cut, which this close lets stay. */
static bool has_stayed(const struct kedgei_decision *d, uint32_t group)
{
    const struct kedgei_round *round = d->round;
    const struct kedge_st_step_group *was =
        round > d->job->rounds ? kedgei_step_group(round[-1].step, group) : NULL;
    const struct kedge_st_step_group *row = kedgei_step_group(round->step, group);
    const struct kedge_st_step_group *with =
        was && was->tried_with > 0 ? kedgei_step_group(round->step, was->tried_with - 1) : NULL;
    return row && with && kedge_hash_eq(&row->before, &with->before);
}

/* Whether the close looks for a cut of this group, in which somebody trained and which it does not join with
 * another one. Whether it was cut in the end says nothing: that updates do not fall in two is found from the
 * same updates. */
static bool may_be_cut(const struct kedgei_decision *d, uint32_t group)
{
    const struct kedge_job_spec *spec = &d->job->spec;
    const uint32_t round = d->round->number;
    return group < KEDGE_GROUPS_MAX && d->round->aggregates[group]
           && !kedgei_is_joined(d->job, d->round, group) && round < spec->rounds
           && (kedge_job_spec_cuts_after(spec, round) || has_stayed(d, group));
}

/* By the updates by which the sites of these groups are in them; where one was cut, its parts' trials are
 * made of the round's own. What sites found of trials are statements, which stay. */
static int mark_cuts(const struct kedgei_audit *a, struct kedgei_decision *d)
{
    struct kedgei_inputs in = {.items = NULL};
    int err = kedgei_members_of_close(a, d->job, d->round, KEDGE_GROUP_NONE, true, &in);
    for (size_t i = 0; i < in.count; i++) {
        const struct kedgei_log *log = &a->tenants[d->job->tenants[in.items[i].place]];
        d->erased += may_be_cut(d, in.items[i].row.group) && kedgei_erased(a, log, &in.items[i].row.update);
    }
    kedgei_inputs_deinit(&in);
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX && !err && touches_round(a, d->job, d->round); g++) {
        err = kedgei_part_of(d->round, g) > 0 ? mark_inputs(a, d, g, false) : KEDGE_OK;
    }
    return err == KEDGE_E_NOMEM ? err : KEDGE_OK;
}

/* Of a group that takes back the part which was cut off it. */
static int mark_parts(const struct kedgei_audit *a, struct kedgei_decision *d)
{
    const struct kedgei_round *round = d->round;
    const struct kedge_st_step_group *was =
        round > d->job->rounds ? kedgei_step_group(round[-1].step, d->group) : NULL;
    const struct kedge_st_step_group *with =
        was && was->tried_with > 0 ? kedgei_step_group(round[-1].step, was->tried_with - 1) : NULL;
    if (!with || !kedge_hash_eq(&was->after, &with->after)) {
        return KEDGE_OK;
    }
    int err = mark_inputs(a, d, d->group, false);
    return err ? err : mark_inputs(a, d, was->tried_with - 1, false);
}

/* Which decisions have updates among their inputs, kind by kind. Decisions over models and statements
 * alone stay repeatable. */
static int mark(const struct kedgei_replay *r, struct kedgei_decision *d)
{
    const struct kedge_st_group_assigned *g = d->fact ? d->fact->body : NULL;
    const struct kedgei_fact *by;
    switch (d->kind) {
    case KEDGEI_AGGREGATE: /* of models, weighted by what the lists say, where groups are made anew */
        return kedgei_regroups(d->round) || !touches_round(r->a, d->job, d->round)
                   ? KEDGE_OK
                   : mark_inputs(r->a, d, d->group, false);
    case KEDGEI_SERVER: /* of models; of updates, too, where the server steps by what they carry */
        return kedge_close_steps_by_updates(&d->job->spec) && touches_round(r->a, d->job, d->round)
                   ? mark_inputs(r->a, d, d->group, false)
                   : KEDGE_OK;
    case KEDGEI_RESHAPE:
        return mark_inputs(r->a, d, KEDGE_GROUP_NONE, true);
    case KEDGEI_TRIALS: /* of what statements say, and of models, unless groups may be cut */
        return kedge_job_spec_begins_as_one(&d->job->spec) ? mark_cuts(r->a, d) : KEDGE_OK;
    case KEDGEI_JOINED: /* of models, unless a cut is taken back: then of the updates of both parts */
        return touches_round(r->a, d->job, d->round) ? mark_parts(r->a, d) : KEDGE_OK;
    case KEDGEI_DIRECTION:
        if (!d->round->pretrain) {
            return mark_inputs(r->a, d, d->group, true);
        }
        return touches_round(r->a, d->job, d->round) ? mark_inputs(r->a, d, d->group, false) : KEDGE_OK;
    case KEDGEI_SPLIT:
        return touches_round(r->a, d->job, d->round) ? mark_inputs(r->a, d, d->group, false) : KEDGE_OK;
    case KEDGEI_GROUPING:
        return touches_round(r->a, d->job, d->round) ? mark_inputs(r->a, d, KEDGE_GROUP_NONE, false)
                                                     : KEDGE_OK;
    case KEDGEI_NEAREST:
        by = kedgei_placed_by(r, d);
        d->erased = by && kedgei_erased(r->a, d->log, &by->subject) != NULL;
        return KEDGE_OK;
    case KEDGEI_ASSIGNED:
        d->erased = g && kedgei_erased(r->a, d->log, &g->update) != NULL;
        return KEDGE_OK;
    case KEDGEI_INITIAL:
    case KEDGEI_SELECTION:
    case KEDGEI_MIXING:
    case KEDGEI_DRIFT:
    case KEDGEI_MEETING: /* of models, weighted by what statements say */
        break;
    }
    return KEDGE_OK; /* no updates among its inputs */
}

int kedgei_decisions_marked(struct kedgei_replay *r)
{
    KEDGE_TRY(kedgei_decisions_collect(r));
    if (r->a->counts.statements[KEDGE_ST_ERASED] == 0) {
        return KEDGE_OK;
    }
    r->a->counts.decisions_erased = 0;
    for (size_t i = 0; i < r->count; i++) {
        KEDGE_TRY(mark(r, &r->items[i]));
        r->a->counts.decisions_erased += r->items[i].erased > 0;
    }
    return KEDGE_OK;
}

/* ---- telling ---- */

enum { RANGES_LEN = 120, RANGE_LEN = 24 };

/* "0-3, 7": numbers that come ascending. A note that is full is told and begun anew, so that each number is
 * in one. */
struct ranges {
    struct kedgei_audit *a;
    char where[KEDGE_AUDIT_WHERE_MAX];
    char before[140], after[160]; /* the note's text around them */
    char text[RANGES_LEN];
    size_t len;
    bool open;
    uint32_t from, to;
};

static void close_range(struct ranges *r)
{
    if (r->open) {
        const char *comma = r->len > 0 ? ", " : "";
        int n = r->to > r->from
                    ? snprintf(r->text + r->len, sizeof r->text - r->len, "%s%" PRIu32 "-%" PRIu32, comma,
                               r->from, r->to)
                    : snprintf(r->text + r->len, sizeof r->text - r->len, "%s%" PRIu32, comma, r->from);
        r->len += (size_t)n;
        r->open = false;
    }
}

static void end_ranges(struct ranges *r)
{
    close_range(r);
    if (r->len > 0) {
        kedgei_find(&r->a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_ERASED, r->where, "%s%s%s", r->before,
                    r->text, r->after);
        r->len = 0;
    }
}

/* A text that is full becomes a note and another one begins, so no round is left out of the report
 * however many there are. */
static void add_number(struct ranges *r, uint32_t number)
{
    if (r->open && number <= r->to + 1) {
        r->to = number;
        return;
    }
    close_range(r);
    if (r->len + RANGE_LEN >= sizeof r->text) {
        end_ranges(r);
    }
    r->open = true;
    r->from = r->to = number;
}

static void tell_updates(struct kedgei_audit *a, uint32_t job, uint32_t tenant)
{
    const struct kedgei_log *log = &a->tenants[tenant];
    struct ranges r = {.a = a};
    uint64_t count = 0, first = KEDGEI_NEVER, last = 0;
    for (size_t i = 0; i < a->update_count; i++) { /* ascending by round */
        const struct kedgei_update *u = kedgei_update_at(a, i);
        const struct kedgei_fact *by =
            u->job == job && u->tenant == tenant ? kedgei_erased(a, log, &u->fact->subject) : NULL;
        if (by) {
            count++;
            first = by->index < first ? by->index : first;
            last = by->index > last ? by->index : last;
        }
    }
    if (count == 0) {
        return;
    }
    snprintf(r.where, sizeof r.where, "%s[%" PRIu64 "]", log->name, first);
    snprintf(r.before, sizeof r.before, "job \"%s\": rounds ", a->jobs[job]->id.s);
    snprintf(r.after, sizeof r.after,
             ": %" PRIu64 " updates are erased by order of the tenant (up to entry %" PRIu64
             "); their statements, weights and rows hold",
             count, last);
    for (size_t i = 0; i < a->update_count; i++) {
        const struct kedgei_update *u = kedgei_update_at(a, i);
        if (u->job == job && u->tenant == tenant && kedgei_erased(a, log, &u->fact->subject)) {
            add_number(&r, u->round);
        }
    }
    end_ranges(&r);
}

static void tell_numbers(const struct kedgei_replay *r, const struct kedgei_job *job,
                         enum kedgei_decision_kind kind, uint32_t group, const char *before,
                         const char *after)
{
    struct ranges out = {.a = r->a, .where = "main"};
    snprintf(out.before, sizeof out.before, "%s", before);
    snprintf(out.after, sizeof out.after, "%s", after);
    for (size_t i = 0; i < r->count; i++) {
        const struct kedgei_decision *d = &r->items[i];
        if (d->job == job && d->kind == kind && d->erased > 0 && d->group == group) {
            add_number(&out, d->round->number);
        }
    }
    end_ranges(&out);
}

/* Decisions about one site each; a site may have many. */
static void tell_count(const struct kedgei_replay *r, const struct kedgei_job *job,
                       enum kedgei_decision_kind kind, const char *what)
{
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++) {
        count += r->items[i].job == job && r->items[i].kind == kind && r->items[i].erased > 0;
    }
    if (count > 0) {
        kedgei_find(&r->a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_ERASED, "main",
                    "job \"%s\": %s, %zu time%s, cannot be replayed: updates are erased", job->id.s, what,
                    count, count == 1 ? "" : "s");
    }
}

static void tell_job(const struct kedgei_replay *r, const struct kedgei_job *job)
{
    char before[140];
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        snprintf(before, sizeof before, "job \"%s\", group %u: the aggregates of rounds ", job->id.s, g);
        tell_numbers(r, job, KEDGEI_AGGREGATE, g, before,
                     " cannot be replayed: updates in them are erased; their results are recorded and hold");
        snprintf(before, sizeof before, "job \"%s\", group %u: the directions of rounds ", job->id.s, g);
        tell_numbers(r, job, KEDGEI_DIRECTION, g, before, " cannot be replayed: updates are erased");
        snprintf(before, sizeof before, "job \"%s\", group %u: the cuts of rounds ", job->id.s, g);
        tell_numbers(r, job, KEDGEI_SPLIT, g, before, " cannot be replayed: updates are erased");
    }
    snprintf(before, sizeof before, "job \"%s\": the server's steps of rounds ", job->id.s);
    tell_numbers(r, job, KEDGEI_SERVER, 0, before, " cannot be replayed: updates are erased");
    snprintf(before, sizeof before, "job \"%s\": the groupings of rounds ", job->id.s);
    tell_numbers(r, job, KEDGEI_GROUPING, 0, before, " cannot be replayed: updates are erased");
    snprintf(before, sizeof before, "job \"%s\": which groups are alike or hold two kinds behind rounds ",
             job->id.s);
    tell_numbers(r, job, KEDGEI_RESHAPE, KEDGE_GROUP_NONE, before, " cannot be replayed: updates are erased");
    snprintf(before, sizeof before, "job \"%s\": which groups are joined, tried or cut after rounds ",
             job->id.s);
    tell_numbers(r, job, KEDGEI_TRIALS, KEDGE_GROUP_NONE, before, " cannot be replayed: updates are erased");
    tell_count(r, job, KEDGEI_ASSIGNED, "which group a site is given");
    tell_count(r, job, KEDGEI_NEAREST, "which model is nearest to a site's last one");
}

int kedgei_tell_erased(struct kedgei_audit *a)
{
    struct kedgei_replay r = {.a = a};
    if (a->counts.statements[KEDGE_ST_ERASED] == 0) {
        return KEDGE_OK;
    }
    int err = kedgei_decisions_marked(&r);
    for (uint32_t j = 0; j < a->job_count && !err; j++) {
        for (uint32_t t = 0; t < a->tenant_count; t++) {
            tell_updates(a, j, t);
        }
        tell_job(&r, a->jobs[j]);
    }
    kedgei_scratch_free(&a->scratch, r.items);
    return err;
}
