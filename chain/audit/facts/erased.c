#include "chain/audit/facts/erased.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"

enum { RANGES_LEN = 120, RANGE_LEN = 24 };

const struct kedgei_fact *kedgei_erased(const struct kedgei_audit *a, const struct kedgei_log *log,
                                        const struct kedge_hash *update)
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    if (a->counts.statements[KEDGE_ST_ERASED] == 0) {
        return NULL;
    }
    kedge_hash_hex(update, hex);
    return kedgei_log_find(log, "erased/%s", hex);
}

/* ---- the statements ---- */

static void check_statement(struct kedgei_audit *a, const struct kedgei_log *log,
                            const struct kedgei_fact *fact)
{
    const struct kedge_st_erased *e = fact->body;
    const struct kedgei_fact *named = e->entry < fact->index ? kedgei_fact_at(log, e->entry) : NULL;
    if (!named || named->kind != KEDGE_ST_UPDATE || !kedge_hash_eq(&named->subject, &fact->subject)) {
        kedgei_error(&a->findings, KEDGE_AUDIT_ERASED, log, fact->index,
                     "names entry %" PRIu64 ", which is no update before it of that file", e->entry);
    }
}

static void check_update(struct kedgei_audit *a, const struct kedgei_log *log, const struct kedgei_fact *fact)
{
    const struct kedgei_fact *by = kedgei_erased(a, log, &fact->subject);
    const struct kedge_st_erased *e = by ? by->body : NULL;
    if (by && fact->index > by->index) {
        kedgei_error(&a->findings, KEDGE_AUDIT_ERASED, log, fact->index,
                     "an update whose file was erased by entry %" PRIu64 " before", by->index);
    } else if (by && fact->index < e->entry) {
        kedgei_error(&a->findings, KEDGE_AUDIT_ERASED, log, by->index,
                     "names entry %" PRIu64 ", but the first update of that file is entry %" PRIu64, e->entry,
                     fact->index);
    }
}

void kedgei_check_erased(struct kedgei_audit *a)
{
    for (uint32_t t = 0; t < a->tenant_count && a->counts.statements[KEDGE_ST_ERASED] > 0; t++) {
        const struct kedgei_log *log = &a->tenants[t];
        for (uint64_t i = 0; i < log->count; i++) {
            const struct kedgei_fact *fact = kedgei_fact_at(log, i);
            if (fact->kind == KEDGE_ST_ERASED) {
                check_statement(a, log, fact);
            } else if (fact->kind == KEDGE_ST_UPDATE) {
                check_update(a, log, fact);
            }
        }
    }
}

/* ---- what cannot be replayed ---- */

static bool touches_round(const struct kedgei_audit *a, const struct kedgei_round *round)
{
    for (size_t k = 0; k < round->update_count; k++) {
        const struct kedgei_update *u = kedgei_update_at(a, round->update_first + k);
        if (kedgei_erased(a, &a->tenants[u->tenant], &u->fact->subject)) {
            return true;
        }
    }
    return false;
}

/* Lists that cannot be read are named by verify; what they hold is then not counted. */
static int mark_inputs(const struct kedgei_replay *r, struct kedgei_decision *d)
{
    struct kedgei_inputs in = {.items = NULL};
    struct kedgei_findings ignored = {.items = NULL};
    int err = kedgei_inputs_read(r, d, &in, &ignored);
    for (size_t i = 0; i < in.count; i++) {
        const struct kedgei_log *log = &r->a->tenants[d->job->tenants[in.items[i].place]];
        d->erased += kedgei_erased(r->a, log, &in.items[i].row.update) != NULL;
    }
    bool nomem = err == KEDGE_E_NOMEM || ignored.nomem;
    kedge_mem_free(in.items);
    kedgei_findings_deinit(&ignored);
    return nomem ? KEDGE_E_NOMEM : KEDGE_OK;
}

static int mark_round(const struct kedgei_replay *r, struct kedgei_decision *d)
{
    bool touched = touches_round(r->a, d->round) || kedgei_refreshes(d->job, d->round);
    return touched ? mark_inputs(r, d) : KEDGE_OK;
}

int kedgei_mark_erased(struct kedgei_replay *r)
{
    int err = KEDGE_OK;
    if (r->a->counts.statements[KEDGE_ST_ERASED] == 0) {
        return KEDGE_OK;
    }
    r->a->counts.decisions_erased = 0;
    for (size_t i = 0; i < r->count && !err; i++) {
        struct kedgei_decision *d = &r->items[i];
        switch (d->kind) {
        case KEDGEI_AGGREGATE: /* of models, weighted by what the lists say, where groups are made anew */
            err = kedgei_regroups(d->round) ? KEDGE_OK : mark_round(r, d);
            break;
        case KEDGEI_GROUPING:
        case KEDGEI_DIRECTION:
        case KEDGEI_RESHAPE:
        case KEDGEI_SPLIT:
            err = mark_round(r, d);
            break;
        case KEDGEI_NEAREST: {
            const struct kedgei_fact *by = kedgei_nearest_by(r, d);
            d->erased = by && kedgei_erased(r->a, d->log, &by->subject) != NULL;
            break;
        }
        case KEDGEI_ASSIGNED:
            d->erased =
                kedgei_erased(r->a, d->log, &((const struct kedge_st_group_assigned *)d->fact->body)->update)
                != NULL;
            break;
        case KEDGEI_SERVER: /* of models; where updates carry control variates, of updates, too */
            if (kedge_job_spec_has_control(&d->job->spec) && touches_round(r->a, d->round)) {
                struct kedgei_decision as = kedgei_as_aggregate(d);
                err = mark_inputs(r, &as);
                d->erased = as.erased;
            }
            break;
        case KEDGEI_INITIAL:
        case KEDGEI_SELECTION:
        case KEDGEI_MIXING:
        case KEDGEI_DRIFT:
        case KEDGEI_JOINED:
        case KEDGEI_MEETING: /* of models, weighted by what statements say */
            break;           /* no updates among their inputs */
        }
        r->a->counts.decisions_erased += d->erased > 0;
    }
    return err;
}

/* ---- telling ---- */

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
    tell_count(r, job, KEDGEI_ASSIGNED, "which group a site is given");
    tell_count(r, job, KEDGEI_NEAREST, "which model is nearest to a site's last one");
}

int kedgei_tell_erased(struct kedgei_audit *a)
{
    struct kedgei_replay r = {.a = a};
    if (a->counts.statements[KEDGE_ST_ERASED] == 0) {
        return KEDGE_OK;
    }
    int err = kedgei_decisions_collect(&r);
    err = err ? err : kedgei_mark_erased(&r);
    for (uint32_t j = 0; j < a->job_count && !err; j++) {
        for (uint32_t t = 0; t < a->tenant_count; t++) {
            tell_updates(a, j, t);
        }
        tell_job(&r, a->jobs[j]);
    }
    kedgei_scratch_free(&a->scratch, r.items);
    return err;
}
