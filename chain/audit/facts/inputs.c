/* Per round and in parallel: input lists against statements. A round sees only its own updates, so that
 * tasks share nothing that they change.
 *
 * This is where the promise "every accepted update counts exactly once" is checked: each row of a list
 * must be a statement of that site for that round, each statement must stand in one row, and sums, totals
 * and weights follow from the rows. */
#include <stdlib.h>
#include <string.h>

#include "chain/audit/facts/buffer.h"
#include "chain/audit/facts/classes.h"
#include "chain/audit/rounds/replay_inputs.h"
#include "common/base/mem.h"

/* Rows of what sites found of trials. */
struct evaluated {
    uint64_t count, last; /* last: the highest entry */
};

/* One round under examination. */
struct round_check {
    struct kedgei_audit *a;
    const struct kedgei_job *job;
    const struct kedgei_round *round;
    struct kedgei_findings *f;
    bool incomplete; /* a list of ours is not in this copy: nothing can be missed in it */
    struct kedge_input_list opened[KEDGE_SPEC_TENANTS_MAX]; /* by place in the spec; rows NULL: none */
    bool missing[KEDGE_SPEC_TENANTS_MAX];                   /* … for its list is not here */
    struct kedgei_crew crews[KEDGE_SPEC_TENANTS_MAX];       /* asynchronous: who is at work, by place */
    struct evaluated evaluated[KEDGE_SPEC_TENANTS_MAX];     /* by place */
    struct kedgei_inputs inputs;                            /* whose weights follow from each other … */
    bool unlisted[KEDGE_GROUPS_MAX];                        /* … where a list of the group cannot be read */
};

static uint32_t place_of(const struct round_check *c, const struct kedgei_log *log)
{
    uint32_t i = 0;
    while (&c->a->tenants[c->job->tenants[i]] != log) { /* log is of the job */
        i++;
    }
    return i;
}

static struct kedgei_fact *joined_fact(const struct round_check *c, const struct kedgei_log *log)
{
    return kedgei_log_find(log, "job-joined/%s", c->job->id.s);
}

/* ---- round-opened ---- */

/* Compared with the checkpoints around round-opened: an entry counts as known only if the one before covers
 * it, as unknown only if the one after does not. Between them the coordinator may have seen either. */
static void check_candidate(const struct round_check *c, const struct kedgei_log *log,
                            const struct kedge_input_row *row)
{
    uint64_t at = c->round->opened->index;
    uint64_t before = kedgei_anchored_before(log, at), after = kedgei_anchored_after(log, at);
    const struct kedgei_fact *enrolled = kedgei_log_find(log, "site-enrolled/%s", row->site.s);
    const struct kedgei_fact *revoked = kedgei_log_find(log, "site-revoked/%s", row->site.s);
    const struct kedgei_fact *joined = joined_fact(c, log);
    const struct kedgei_fact *chosen = kedge_job_spec_grouped_by(&c->job->spec) == KEDGE_GROUPED_BY_UPDATE
                                           ? kedgei_trained_before(c->a, log, &c->job->id, &row->site, before)
                                           : NULL;
    if (!enrolled || enrolled->index >= after) {
        kedgei_error(c->f, KEDGE_AUDIT_SITE_UNKNOWN, &c->a->main, at,
                     "candidate \"%s\" of \"%s\" was not enrolled", row->site.s, log->name);
    }
    if (revoked && revoked->index < before) {
        kedgei_error(c->f, KEDGE_AUDIT_CANDIDATE, &c->a->main, at,
                     "candidate \"%s\" of \"%s\" was revoked before", row->site.s, log->name);
    }
    kedgei_check_needs(c->a, c->job, log, &row->site, at, c->f);
    if (!joined || joined->index >= after) {
        kedgei_error(c->f, KEDGE_AUDIT_NOT_JOINED, &c->a->main, at,
                     "\"%s\" has candidates, but had not joined job \"%s\"", log->name, c->job->id.s);
    }
    if (kedgei_has_left(log, &c->job->id, before)) {
        kedgei_error(c->f, KEDGE_AUDIT_NOT_JOINED, &c->a->main, at,
                     "\"%s\" has candidates, but had left job \"%s\" before", log->name, c->job->id.s);
    }
    bool group_fits = chosen
                          ? row->group == ((const struct kedge_st_update *)chosen->body)->group
                          : row->group == kedgei_first_group(c->a, c->job, log)
                                || kedgei_group_was(log, &c->job->id, &row->site, before, after, row->group);
    bool plain = row->leaf == 0 && row->to == 0 && row->reason[0] == '\0'
                 && kedge_hash_is_zero(&row->leaf_hash) && kedge_hash_is_zero(&row->update);
    if (!kedgei_opened_row_fits(c->job, c->round, row) || !plain || !group_fits) {
        kedgei_error(c->f, KEDGE_AUDIT_LIST, &c->a->main, at, "row of \"%s\" of \"%s\" is no candidate's",
                     row->site.s, log->name);
    }
}

/* A round without its list in a tenant's copy is counted as incomplete: updates of it are then not judged
 * as missing. */
static void check_opened(struct round_check *c)
{
    const struct kedge_st_round_opened *o = c->round->opened->body;
    uint64_t at = c->round->opened->index;
    for (uint32_t t = 0; t < o->tenant_count; t++) {
        const struct kedgei_log *log = kedgei_job_tenant(c->a, c->job, &o->tenants[t].id);
        if (!log && kedgei_job_names(c->job, &o->tenants[t].id) && KEDGEI_SKIP(c->a, lists)) {
            continue;
        }
        if (!log) {
            kedgei_error(c->f, KEDGE_AUDIT_ROUND, &c->a->main, at, "tenant %u of the round is not of its job",
                         t);
            continue;
        }
        struct kedge_input_list *list = &c->opened[place_of(c, log)];
        if (!kedgei_list_read(c->a, log, &o->tenants[t].list, at, list, c->f)) {
            list->rows = NULL;
            list->count = 0;
            c->missing[place_of(c, log)] = true;
            c->incomplete = c->a->skipped != NULL;
            continue;
        }
        uint32_t selected = 0;
        for (uint32_t i = 0; i < list->count; i++) {
            selected += list->rows[i].use == KEDGE_USE_SELECTED;
            check_candidate(c, log, &list->rows[i]);
            if (i > 0 && kedge_id_eq(&list->rows[i - 1].site, &list->rows[i].site)) {
                kedgei_error(c->f, KEDGE_AUDIT_ROW_DOUBLED, &c->a->main, at,
                             "candidate \"%s\" of \"%s\" stands twice", list->rows[i].site.s, log->name);
            }
        }
        if (list->count != o->tenants[t].candidates || selected != o->tenants[t].selected
            || list->count == 0) {
            kedgei_error(c->f, KEDGE_AUDIT_TOTALS, &c->a->main, at,
                         "\"%s\": states %u of %u candidates selected, its list has %u of %u", log->name,
                         o->tenants[t].selected, o->tenants[t].candidates, selected, list->count);
        }
    }
}

/* ---- aggregates ---- */

/* Reasons are codes of errors, so that no text of the coordinator's choice stands in a list that others
 * read. */
static bool is_known_reason(const char *reason)
{
    return reason[0] != '\0'
           && (kedge_err_find(reason) != KEDGE_E_UNKNOWN
               || strcmp(reason, kedge_err_code(KEDGE_E_UNKNOWN)) == 0);
}

/* The use and group of a row, and whether it stands in the right list. A row stands in the list of its
 * group, or in the round's first list where its group has none. So an update has one place, and none can
 * hide in a list that nobody looks at. */
static void check_place(const struct round_check *c, const struct kedgei_fact *aggregate,
                        const struct kedge_input_row *row)
{
    const struct kedge_st_aggregate *g = aggregate->body;
    bool used = row->use == KEDGE_USE_AGGREGATED || row->use == KEDGE_USE_GROUPED;
    bool grouped = kedge_job_spec_grouped_by(&c->job->spec) == KEDGE_GROUPED_BY_PRETRAIN;
    const bool tried = row->use == KEDGE_USE_EVALUATED && kedgei_tries(c->job, c->round);
    bool use_fits = row->use == KEDGE_USE_REFUSED || tried
                    || (row->use == KEDGE_USE_AGGREGATED && !c->round->pretrain)
                    || (row->use == KEDGE_USE_GROUPED && grouped && !c->round->kept);
    bool reason_fits = used || tried ? row->reason[0] == '\0' : is_known_reason(row->reason);
    uint32_t list = 0; /* whose list the row belongs into: its group's, else the round's first */
    if (row->group < KEDGE_GROUPS_MAX && c->round->aggregates[row->group]) {
        list = row->group;
    } else {
        while (!c->round->aggregates[list]) { /* ends: `aggregate` is one of them */
            list++;
        }
    }
    if (!use_fits || !reason_fits || list != g->group || !kedgei_closed_row_fits(c->job, c->round, row)
        || row->group >= kedgei_groups_after(c->job, c->round->number)) {
        kedgei_error(c->f, KEDGE_AUDIT_LIST, &c->a->main, aggregate->index,
                     "row of \"%s\" (%s, group %u, reason \"%s\") does not belong into the list of group %u",
                     row->site.s, kedge_input_use_name(row->use), row->group, row->reason, g->group);
    }
    if (row->use == KEDGE_USE_AGGREGATED && row->group != g->group) {
        kedgei_error(c->f, KEDGE_AUDIT_GROUP, &c->a->main, aggregate->index,
                     "\"%s\" of group %u is aggregated into group %u", row->site.s, row->group, g->group);
    }
}

static void row_error(const struct round_check *c, const struct kedgei_fact *aggregate,
                      const struct kedgei_log *log, const struct kedge_input_row *row, const char *what)
{
    kedgei_error(c->f, KEDGE_AUDIT_ROW, &c->a->main, aggregate->index,
                 "row of \"%s\" of \"%s\", leaf %llu: %s", row->site.s, log->name,
                 (unsigned long long)row->leaf, what);
}

static enum kedge_input_use counted_use(const struct round_check *c)
{
    return c->round->pretrain ? KEDGE_USE_GROUPED : KEDGE_USE_AGGREGATED;
}

/* Such weights are judged all together in rounds/weights.c. */
static bool is_derived(const struct round_check *c, const struct kedge_input_row *row)
{
    return row->use == counted_use(c) && kedgei_weighs_together(c->job, c->round);
}

/* What a site found of a trial, in time for this close. */
static void check_evaluated(const struct round_check *c, const struct kedgei_fact *aggregate,
                            const struct kedgei_log *log, const struct kedge_input_row *row,
                            struct kedgei_fact *fact)
{
    const char *fault = kedgei_trial_row_fault(c->job, c->round, log, row);
    if (fault) {
        row_error(c, aggregate, log, row, fault);
        return;
    }
    if (row->leaf >= kedgei_anchored_before(log, aggregate->index)) {
        row_error(c, aggregate, log, row, "no checkpoint before the aggregate covers it");
    }
    if (fact->listed++ > 0) {
        kedgei_error(c->f, KEDGE_AUDIT_ROW_DOUBLED, &c->a->main, aggregate->index,
                     "the evaluation in %s[%llu] stands in a second row", log->name,
                     (unsigned long long)row->leaf);
    }
}

/* A row that names a statement. The row's leaf hash is compared first: it ties the list, which is a blob,
 * to the entry of the ledger. A refused row with a statement is allowed only where the update was left
 * out by rule (zero, or alone in a round that keeps its groups); everything else that was accepted has
 * its place in the sum. `listed` counts rows of an entry over all lists. */
static void check_named(const struct round_check *c, const struct kedgei_fact *aggregate,
                        const struct kedgei_log *log, const struct kedge_input_row *row)
{
    if (row->leaf >= log->count || !kedge_hash_eq(kedgei_hash_at(log, 0, row->leaf), &row->leaf_hash)) {
        row_error(c, aggregate, log, row, "that entry has another hash");
        return;
    }
    struct kedgei_fact *fact = kedgei_fact_at(log, row->leaf);
    const struct kedge_st_update *u = fact->body;
    if (row->use == KEDGE_USE_EVALUATED) {
        check_evaluated(c, aggregate, log, row, fact);
        return;
    }
    if (fact->kind != KEDGE_ST_UPDATE || !kedge_id_eq(&u->job, &c->job->id)
        || u->round != kedgei_row_round(c->round, row) || !kedge_id_eq(&u->site, &row->site)) {
        row_error(c, aggregate, log, row, "that entry is no update of this site for this round");
        return;
    }
    enum kedge_train_kind kind = row->use == KEDGE_USE_AGGREGATED ? KEDGE_TRAIN_TRAIN : KEDGE_TRAIN_PRETRAIN;
    uint64_t weight = row->use == KEDGE_USE_AGGREGATED ? u->samples : row->use == KEDGE_USE_GROUPED ? 1 : 0;
    if (row->use != KEDGE_USE_REFUSED && u->update_kind != kind) {
        row_error(c, aggregate, log, row, "its update is of another kind");
    }
    /* What is durable was checked before: left out is a pre-training that is zero, or came alone. */
    const char *why = kedge_err_code(c->round->kept ? KEDGE_E_TIMEOUT : KEDGE_E_ARG);
    if (row->use == KEDGE_USE_REFUSED
        && (u->update_kind != KEDGE_TRAIN_PRETRAIN || strcmp(row->reason, why) != 0)) {
        row_error(c, aggregate, log, row, "it leaves out an accepted update that has its place in the sum");
    }
    if (row->use == KEDGE_USE_AGGREGATED && u->group != row->group) {
        row_error(c, aggregate, log, row, "its update is of another group");
    }
    if (!kedge_hash_eq(&fact->subject, &row->update)) {
        row_error(c, aggregate, log, row, "its update has another digest");
    }
    if (row->weight != weight && !is_derived(c, row)) {
        row_error(c, aggregate, log, row, "its weight is not what its statement gives");
    }
    if (row->leaf >= kedgei_anchored_before(log, aggregate->index)) {
        row_error(c, aggregate, log, row, "no checkpoint before the aggregate covers it");
    }
    if (kedgei_is_overdue(c->job, c->round, log, row->leaf)) {
        row_error(c, aggregate, log, row, "it belongs in the list of an earlier close, which covers it");
    }
    const char *not_given = kedgei_assignment_matches_row(c->job, c->round, log, fact, row);
    if (not_given) {
        row_error(c, aggregate, log, row, not_given);
    }
    if (fact->listed++ > 0) {
        kedgei_error(c->f, KEDGE_AUDIT_ROW_DOUBLED, &c->a->main, aggregate->index,
                     "the update in %s[%llu] stands in a second row", log->name,
                     (unsigned long long)row->leaf);
    }
}

static void check_row(const struct round_check *c, const struct kedgei_fact *aggregate,
                      const struct kedgei_log *log, const struct kedge_input_row *row)
{
    check_place(c, aggregate, row);
    if (!kedge_hash_is_zero(&row->leaf_hash)) {
        check_named(c, aggregate, log, row);
    } else if (row->use != KEDGE_USE_REFUSED || row->leaf != 0 || row->weight != 0 || row->to != 0) {
        row_error(c, aggregate, log, row, "names no statement, but is no refusal at the door");
    }
}

static void add_input(struct round_check *c, const struct kedgei_log *log, const struct kedge_input_row *row)
{
    if (kedgei_inputs_add(&c->inputs, place_of(c, log), row) == KEDGE_E_NOMEM) {
        c->f->nomem = true;
    }
}

static void note_evaluated(struct evaluated *io, const struct kedge_input_row *row)
{
    if (row->use == KEDGE_USE_EVALUATED) {
        io->count++;
        io->last = row->leaf > io->last ? row->leaf : io->last;
    }
}

/* Of no tenant an evaluation is left out that came before one that counts. Otherwise the coordinator
 * could leave out evaluations until a trial comes out as it likes. */
static void check_evaluated_all(const struct round_check *c)
{
    for (uint32_t t = 0; t < c->job->spec.tenant_count && c->round->step; t++) {
        const struct kedgei_log *log = &c->a->tenants[c->job->tenants[t]];
        const struct evaluated *e = &c->evaluated[t];
        if (e->count > 0 && !c->incomplete
            && !kedgei_trial_rows_whole(c->job, c->round, log, e->count, e->last)) {
            kedgei_error(
                c->f, KEDGE_AUDIT_UNLISTED, &c->a->main, c->round->step->index,
                "round %u does not count all that sites of \"%s\" had found of its trials by entry %llu",
                c->round->number, log->name, (unsigned long long)e->last);
        }
    }
}

/* Totals are added up from the rows here and compared with what the aggregate states per tenant; the
 * aggregate's own sums are compared with its tenants' in rounds.c. Together no update can be in one and
 * not in the other. */
static void check_aggregate(struct round_check *c, const struct kedgei_fact *aggregate)
{
    const struct kedge_st_aggregate *g = aggregate->body;
    enum kedge_input_use counted = counted_use(c);
    for (uint32_t t = 0; t < g->tenant_count; t++) {
        const struct kedge_st_aggregate_tenant *line = &g->tenants[t];
        const struct kedgei_log *log = kedgei_job_tenant(c->a, c->job, &line->id);
        struct kedge_input_list list;
        if (!log || !kedgei_list_read(c->a, log, &line->list, aggregate->index, &list, c->f)) {
            c->unlisted[g->group] = true;
            c->incomplete = c->incomplete || (log && c->a->skipped);
            if (!log) {
                (void)KEDGEI_SKIP(c->a, lists);
            }
            continue;
        }
        uint64_t accepted = 0, weight = 0, refused = 0;
        for (uint32_t i = 0; i < list.count; i++) {
            const struct kedge_input_row *row = &list.rows[i];
            accepted += row->use == counted;
            weight += row->use == counted ? row->weight : 0;
            refused += row->use == KEDGE_USE_REFUSED;
            check_row(c, aggregate, log, row);
            note_evaluated(&c->evaluated[place_of(c, log)], row);
            kedgei_crew_settle(&c->crews[place_of(c, log)], &row->site);
            if (is_derived(c, row)) {
                add_input(c, log, row);
            }
        }
        if (accepted != line->accepted || weight != line->weight_sum || refused != line->refused
            || list.count == 0) {
            kedgei_error(
                c->f, KEDGE_AUDIT_TOTALS, &c->a->main, aggregate->index,
                "\"%s\": states %u inputs of weight %llu and %u refused; its list has %llu, %llu, %llu",
                log->name, line->accepted, (unsigned long long)line->weight_sum, line->refused,
                (unsigned long long)accepted, (unsigned long long)weight, (unsigned long long)refused);
        }
        kedge_input_list_deinit(&list);
    }
}

/* ---- updates ---- */

/* The row that selected the site; NULL: none did. A site may stand twice in a damaged list, so all its rows
 * are looked at. */
static const struct kedge_input_row *find_selected(const struct round_check *c, const struct kedgei_log *log,
                                                   const struct kedge_id *site)
{
    const struct kedge_input_list *list = &c->opened[place_of(c, log)];
    uint32_t lo = 0, hi = list->count;
    while (lo < hi) { /* rows ascend by site */
        uint32_t mid = (lo + hi) / 2;
        if (kedge_id_cmp(&list->rows[mid].site, site) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    for (; lo < list->count && kedge_id_eq(&list->rows[lo].site, site); lo++) {
        if (list->rows[lo].use == KEDGE_USE_SELECTED) {
            return &list->rows[lo];
        }
    }
    return NULL;
}

/* A job with a root site has it in every round (coordinator/core/root.c). */
static void check_root(const struct round_check *c)
{
    const struct kedge_job_spec *spec = &c->job->spec;
    if (!spec->rule->needs_root || c->incomplete || !kedgei_job_whole(c->job)) {
        return;
    }
    const struct kedgei_log *log = &c->a->tenants[c->job->tenants[spec->root_tenant]];
    if (!find_selected(c, log, &spec->root_site)) {
        kedgei_error(c->f, KEDGE_AUDIT_NOT_SELECTED, &c->a->main, c->round->opened->index,
                     "the root site \"%s\" of \"%s\" was not selected for round %u", spec->root_site.s,
                     log->name, c->round->number);
    }
}

/* A site trains from its group's model: the group in force by the ledger's order, or the one it chose
 * where sites choose. An update from another base would be a difference to something else and would spoil
 * the mean. */
static void check_update_base(const struct round_check *c, const struct kedgei_log *log,
                              const struct kedgei_fact *fact)
{
    const struct kedge_st_update *u = fact->body;
    struct kedge_hash base;
    if (u->update_kind == KEDGE_TRAIN_PRETRAIN) {
        base = ((const struct kedge_st_job_opened *)c->job->opened->body)->initial_model;
        if (u->group != 0 || kedge_job_spec_grouped_by(&c->job->spec) != KEDGE_GROUPED_BY_PRETRAIN) {
            kedgei_error(c->f, KEDGE_AUDIT_UPDATE, log, fact->index,
                         "a pretrain update with group %u in job \"%s\"", u->group, c->job->id.s);
        }
    } else {
        if (c->round->pretrain) {
            kedgei_error(c->f, KEDGE_AUDIT_UPDATE, log, fact->index,
                         "a train update in round %u, which groups", u->round);
        }
        const enum kedge_grouped_by by = kedge_job_spec_grouped_by(&c->job->spec);
        bool grouped = by == KEDGE_GROUPED_BY_PRETRAIN || by == KEDGE_GROUPED_BY_TASK;
        const struct kedgei_fact *assigned =
            kedge_job_spec_states_groups(&c->job->spec)
                ? kedgei_group_before(log, &c->job->id, &u->site, fact->index)
                : NULL;
        const struct kedge_st_group_assigned *last = assigned ? assigned->body : NULL;
        bool known = !grouped || (last && last->round >= kedgei_grouped_in(c->job, c->round->number));
        bool chosen = by == KEDGE_GROUPED_BY_UPDATE && u->group < c->job->spec.groups;
        uint32_t group = last ? last->group : chosen ? u->group : kedgei_first_group(c->a, c->job, log);
        if (!known || u->group != group) {
            kedgei_error(c->f, KEDGE_AUDIT_GROUP, log, fact->index, "site \"%s\" trained for group %u, %s",
                         u->site.s, u->group,
                         known  ? "which is not its group"
                         : last ? "but had been given none since groups were made anew"
                                : "but had not been given a group");
        }
        if (!kedgei_model_before(c->job, c->round, u->group, &base)) {
            return;
        }
    }
    if (!kedge_hash_eq(&base, &u->base)) {
        kedgei_error(c->f, KEDGE_AUDIT_BASE, log, fact->index,
                     "site \"%s\" started from another model than its group's", u->site.s);
    }
}

/* Everything that the coordinator checked when it accepted the update is checked once more, because it
 * may not have. An update that is older than its round's opening was made for another draw. */
static void check_update(const struct round_check *c, const struct kedgei_update *row)
{
    const struct kedgei_log *log = &c->a->tenants[row->tenant];
    const struct kedgei_fact *fact = row->fact;
    const struct kedge_st_update *u = fact->body;
    const struct kedgei_fact *joined = joined_fact(c, log);
    if (!joined || joined->index > fact->index) {
        kedgei_error(c->f, KEDGE_AUDIT_NOT_JOINED, log, fact->index,
                     "update for job \"%s\", which \"%s\" had not joined", c->job->id.s, log->name);
    }
    if (kedgei_has_left(log, &c->job->id, fact->index)) {
        kedgei_error(c->f, KEDGE_AUDIT_NOT_JOINED, log, fact->index,
                     "update for job \"%s\", which \"%s\" had left before", c->job->id.s, log->name);
    }
    bool migrates = u->update_kind == KEDGE_TRAIN_PRETRAIN && !c->round->pretrain
                    && c->job->spec.shift != KEDGE_SHIFT_TEST_NONE
                    && kedgei_group_before(log, &c->job->id, &u->site, fact->index);
    if (!migrates && !find_selected(c, log, &u->site)) {
        kedgei_error(c->f, KEDGE_AUDIT_NOT_SELECTED, log, fact->index,
                     "site \"%s\" was not selected for round %u", u->site.s, u->round);
    }
    if (u->samples < 1 || u->samples > c->job->spec.weight_max) {
        kedgei_error(c->f, KEDGE_AUDIT_UPDATE, log, fact->index, "%llu samples, expected 1 to %llu",
                     (unsigned long long)u->samples, (unsigned long long)c->job->spec.weight_max);
    }
    const struct kedge_job_spec *spec = &c->job->spec;
    if (u->update_kind == KEDGE_TRAIN_TRAIN
        && !(kedge_job_spec_takes(spec, u->samples, u->steps, u->loss)
             && kedge_job_spec_takes_batch(spec, u->samples, u->steps, u->batch, u->learning_rate))) {
        kedgei_error(c->f, KEDGE_AUDIT_UPDATE, log, fact->index,
                     "%llu steps of batch %llu, rate %g, loss %g: strategy \"%s\" cannot weigh that",
                     (unsigned long long)u->steps, (unsigned long long)u->batch, u->learning_rate, u->loss,
                     spec->strategy->name);
    }
    if (!c->missing[place_of(c, log)]) {
        kedgei_check_part(c->job, log, fact, find_selected(c, log, &u->site), c->f);
    }
    if (fact->has_classes != kedge_job_spec_asks_classes(spec, u->round)) {
        kedgei_error(c->f, KEDGE_AUDIT_UPDATE, log, fact->index, "names of classes are %s",
                     fact->has_classes ? "stated where the round asks for none" : "missing");
    }
    if (fact->index < kedgei_anchored_before(log, c->round->opened->index)) {
        kedgei_error(c->f, KEDGE_AUDIT_UPDATE, log, fact->index, "older than round %u, for which it is",
                     u->round);
    }
    check_update_base(c, log, fact);
    if (c->round->step && fact->listed == 0 && !kedgei_job_is_asynchronous(c->job)) {
        kedgei_error_if_settled(c->a, c->f, KEDGE_AUDIT_UNLISTED, log, fact->index,
                                "update of site \"%s\" for round %u, which closed without it", u->site.s,
                                u->round);
    }
}

struct round_ref {
    const struct kedgei_job *job;
    const struct kedgei_round *round; /* asynchronous: the first of all */
};
struct rounds_task {
    struct kedgei_audit *a;
    struct round_ref *rounds;
};

/* Weights, classes and groups are judged after all rows, since they follow from all of them. */
static void check_round(struct round_check *c)
{
    memset(c->missing, 0, sizeof c->missing);
    memset(c->unlisted, 0, sizeof c->unlisted);
    memset(c->evaluated, 0, sizeof c->evaluated);
    c->inputs = (struct kedgei_inputs){.items = NULL};
    check_opened(c);
    check_root(c);
    for (uint32_t t = 0; kedgei_job_is_asynchronous(c->job) && t < c->job->spec.tenant_count; t++) {
        kedgei_crew_opened(c->a, c->round, c->job, &c->a->tenants[c->job->tenants[t]],
                           c->missing[t] ? NULL : &c->opened[t], &c->crews[t], c->f);
    }
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        if (c->round->aggregates[g]) {
            check_aggregate(c, c->round->aggregates[g]);
        }
    }
    kedgei_check_weights(c->a, c->job, c->round, &c->inputs, c->unlisted, c->f);
    check_evaluated_all(c);
    kedgei_check_buffer(c->a, c->job, c->round, c->f);
    kedgei_check_enough(c->a, c->job, c->round, c->f);
    kedgei_check_classes(c->a, c->job, c->round, c->incomplete || !kedgei_job_whole(c->job), c->f);
    for (size_t k = 0; k < c->round->update_count && !c->incomplete; k++) {
        check_update(c, kedgei_update_at(c->a, c->round->update_first + k));
    }
    for (uint32_t t = 0; t < c->job->spec.tenant_count; t++) {
        kedge_input_list_deinit(&c->opened[t]);
    }
}

/* Lists of an asynchronous job's rounds name updates of earlier ones: they are looked at one behind the
 * other. A synchronous job's rounds are tasks of their own; the `listed` counters of its updates are
 * touched by its own round only. */
static void check_rounds(void *arg, uint64_t i, struct kedgei_findings *f)
{
    const struct rounds_task *task = arg;
    const struct kedgei_job *job = task->rounds[i].job;
    struct round_check c = {.a = task->a, .job = job, .f = f};
    size_t count = kedgei_job_is_asynchronous(job) ? job->round_count : 1;
    bool complete = true;
    if (!task->a->skipped && !kedgei_job_whole(job)) {
        return;
    }
    for (size_t r = 0; r < count; r++) {
        c.round = task->rounds[i].round + r;
        c.incomplete = false;
        check_round(&c);
        complete = complete && !c.incomplete;
    }
    if (kedgei_job_is_asynchronous(job) && complete) {
        kedgei_check_unlisted(task->a, job, f);
    }
    for (uint32_t t = 0; t < job->spec.tenant_count; t++) {
        kedgei_crew_deinit(&c.crews[t]);
    }
}

int kedgei_check_inputs(struct kedgei_audit *a)
{
    struct rounds_task task = {.a = a};
    size_t count = 0;
    for (uint32_t j = 0; j < a->job_count; j++) {
        count += kedgei_opening_count(a->jobs[j]);
    }
    task.rounds = kedgei_scratch_new(&a->scratch, count + 1, sizeof *task.rounds);
    if (!task.rounds) {
        return kedgei_scratch_error(&a->scratch, &a->diag);
    }
    count = 0;
    for (uint32_t j = 0; j < a->job_count; j++) {
        bool together = kedgei_job_is_asynchronous(a->jobs[j]);
        for (size_t r = 0; r < kedgei_opening_count(a->jobs[j]) && (r == 0 || !together); r++) {
            task.rounds[count++] = (struct round_ref){a->jobs[j], kedgei_opening_at(a->jobs[j], r)};
        }
    }
    int err = kedgei_parallel(a, "rounds", count, check_rounds, &task);
    kedgei_scratch_free(&a->scratch, task.rounds);
    return err;
}
