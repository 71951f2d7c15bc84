/* Every decision once more, from its recorded inputs, by the functions that the coordinator's workers call. Results
 * are only hashed. Decisions are independent of each other: the inputs of each are in the record. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregation/flexcfl.h"
#include "chain/audit/record.h"
#include "chain/compute/compute.h"
#include "common/base/mem.h"
#include "coordinator/core/coord.h"

enum decision_kind { INITIAL, SELECTION, GROUPING, DIRECTION, ASSIGNED, AGGREGATE, MIXING };

struct decision {
    enum decision_kind kind;
    const struct kedgei_job *job;
    const struct kedgei_round *round;
    const struct kedgei_log *log;   /* ASSIGNED: whose ledger */
    const struct kedgei_fact *fact; /* ASSIGNED, AGGREGATE */
    uint32_t group;                 /* DIRECTION, AGGREGATE */
};

struct replay {
    struct kedgei_audit *a;
    struct decision *items;
    size_t count, cap;
    bool nomem;
};

/* ---- helpers ---- */

static int write_hash(void *arg, struct kedge_view bytes)
{
    kedge_hasher_update(arg, bytes);
    return KEDGE_OK;
}

static int sink_open(struct kedge_hasher **ret_hasher, struct kedge_sink *ret_sink)
{
    int err = kedge_hasher_new(ret_hasher);
    *ret_sink = (struct kedge_sink){write_hash, err ? NULL : *ret_hasher};
    return err;
}

static void failed(const struct replay *r, const struct decision *d, uint64_t index, const char *what, int err,
                   const struct kedge_diag *diag, struct kedgei_findings *f)
{
    f->nomem = f->nomem || err == KEDGE_E_NOMEM;
    kedgei_error(f, KEDGE_AUDIT_REPLAY_FAILED, d->log ? d->log : &r->a->main, index, "job \"%s\": %s: %s", d->job->id.s,
                 what, diag->text[0] ? diag->text : kedge_strerror(err));
}

static void compare(const struct replay *r, const struct decision *d, enum kedge_audit_code code, uint64_t index,
                    uint32_t group, const struct kedge_hash *expected, const struct kedge_hash *recorded,
                    struct kedgei_findings *f)
{
    char is[KEDGE_HASH_HEX_LEN + 1], was[KEDGE_HASH_HEX_LEN + 1];
    if (kedge_hash_eq(expected, recorded)) {
        return;
    }
    kedge_hash_hex(expected, is);
    kedge_hash_hex(recorded, was);
    kedgei_error(f, code, &r->a->main, index, "job \"%s\", round %u, group %u: recorded %s, the inputs give %s",
                 d->job->id.s, d->round ? d->round->number : 0, group, was, is);
}

/* One input of a decision. */
struct input {
    struct kedge_input_row row;
    uint32_t place; /* of its tenant in the spec */
    char path[KEDGE_PATH_MAX];
};
struct inputs {
    struct input *items; /* in site order */
    size_t count, cap;
};

static int add_input(struct inputs *in, const struct kedgei_audit *a, const struct kedgei_job *job, uint32_t place,
                     const struct kedge_input_row *row)
{
    if (in->count == in->cap) {
        size_t cap = in->cap ? 2 * in->cap : 32;
        struct input *items = kedge_mem_resize(in->items, cap, sizeof *items);
        if (!items) {
            return KEDGE_E_NOMEM;
        }
        in->items = items;
        in->cap = cap;
    }
    struct input *item = &in->items[in->count++];
    item->row = *row;
    item->place = place;
    return kedge_blobs_path(a->tenants[job->tenants[place]].blobs, &row->update, item->path);
}

static int compare_inputs(const void *pa, const void *pb)
{
    const struct input *a = pa, *b = pb;
    int c = (a->place > b->place) - (a->place < b->place);
    return c ? c : kedge_input_row_cmp(&a->row, &b->row);
}

static bool is_wanted(const struct decision *d, const struct kedge_input_row *row)
{
    bool left_out = row->use == KEDGE_USE_REFUSED && !kedge_hash_is_zero(&row->leaf_hash)
                    && strcmp(row->reason, kedge_err_code(KEDGE_E_ARG)) == 0;
    switch (d->kind) {
    case GROUPING:
        return row->use == KEDGE_USE_GROUPED || left_out;
    case DIRECTION:
        return row->use == KEDGE_USE_GROUPED && row->group == d->group;
    case AGGREGATE:
        return row->use == (d->round->number == 0 ? KEDGE_USE_GROUPED : KEDGE_USE_AGGREGATED)
               && row->group == d->group;
    case INITIAL:
    case SELECTION:
    case ASSIGNED:
    case MIXING:
        break;
    }
    return false;
}

/* The inputs of a decision from the lists of its round's aggregates. */
static int read_inputs(const struct replay *r, const struct decision *d, struct inputs *ret, struct kedgei_findings *f)
{
    struct kedgei_findings ignored = {.items = NULL}; /* verify names what is wrong with lists */
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        const struct kedgei_fact *fact = d->round->aggregates[g];
        const struct kedge_st_aggregate *agg = fact ? fact->body : NULL;
        for (uint32_t t = 0; agg && t < agg->tenant_count && !err; t++) {
            const struct kedgei_log *log = kedgei_job_tenant(r->a, d->job, &agg->tenants[t].id);
            struct kedge_input_list list;
            uint32_t place = 0;
            if (!log || !kedgei_list_read(r->a, log, &agg->tenants[t].list, fact->index, &list, &ignored)) {
                err = KEDGE_E_NOT_FOUND;
                continue;
            }
            while (&r->a->tenants[d->job->tenants[place]] != log) {
                place++;
            }
            for (uint32_t i = 0; i < list.count && !err; i++) {
                if (is_wanted(d, &list.rows[i])) {
                    err = add_input(ret, r->a, d->job, place, &list.rows[i]);
                }
            }
            kedge_input_list_deinit(&list);
        }
    }
    f->nomem = f->nomem || ignored.nomem;
    kedgei_findings_deinit(&ignored);
    if (ret->count > 1) {
        qsort(ret->items, ret->count, sizeof *ret->items, compare_inputs);
    }
    return !err && ret->count == 0 ? KEDGE_E_NOT_FOUND : err;
}

static const char **paths_of(const struct inputs *in)
{
    const char **paths = kedge_mem_new(in->count, sizeof *paths);
    for (size_t i = 0; paths && i < in->count; i++) {
        paths[i] = in->items[i].path;
    }
    return paths;
}

/* ---- decisions ---- */

static void replay_initial(const struct replay *r, const struct decision *d, struct kedgei_findings *f)
{
    struct kedge_diag diag = {.err = KEDGE_OK};
    struct kedge_hasher *hasher = NULL;
    struct kedge_sink sink;
    struct kedge_hash digest;
    int err = sink_open(&hasher, &sink);
    err = err ? err : kedge_compute_initial(&d->job->spec, sink, &diag);
    if (err) {
        failed(r, d, d->job->opened->index, "first model", err, &diag, f);
    } else {
        const struct kedge_st_job_opened *o = d->job->opened->body;
        kedge_hasher_final(hasher, &digest);
        compare(r, d, KEDGE_AUDIT_REPLAY_INITIAL, d->job->opened->index, 0, &digest, &o->initial_model, f);
    }
    kedge_hasher_free(hasher);
}

/* Candidates of all tenants in the order (tenant id, site id); true when all lists could be read. */
static int read_candidates(const struct replay *r, const struct decision *d, struct inputs *ret,
                           struct kedgei_findings *f)
{
    const struct kedge_st_round_opened *o = d->round->opened->body;
    struct kedgei_findings ignored = {.items = NULL};
    int err = KEDGE_OK;
    for (uint32_t place = 0; place < d->job->spec.tenant_count && !err; place++) {
        const struct kedgei_log *log = &r->a->tenants[d->job->tenants[place]];
        for (uint32_t t = 0; t < o->tenant_count && !err; t++) {
            struct kedge_input_list list;
            if (!kedge_hash_eq(&log->salted, &o->tenants[t].id)) {
                continue;
            }
            if (!kedgei_list_read(r->a, log, &o->tenants[t].list, d->round->opened->index, &list, &ignored)) {
                err = KEDGE_E_NOT_FOUND;
                break;
            }
            for (uint32_t i = 0; i < list.count && !err; i++) {
                err = add_input(ret, r->a, d->job, place, &list.rows[i]);
            }
            kedge_input_list_deinit(&list);
        }
    }
    f->nomem = f->nomem || ignored.nomem;
    kedgei_findings_deinit(&ignored);
    return err;
}

static void replay_selection(const struct replay *r, const struct decision *d, struct kedgei_findings *f)
{
    const struct kedge_job_spec *spec = &d->job->spec;
    struct kedge_diag diag = {.err = KEDGE_OK};
    struct inputs in = {.items = NULL};
    uint64_t at = d->round->opened->index;
    int err = read_candidates(r, d, &in, f);
    uint32_t *scratch = kedge_mem_new(in.count + 1, sizeof *scratch);
    bool *selected = kedge_mem_new(in.count + 1, sizeof *selected);
    if (!err && (!scratch || !selected)) {
        err = KEDGE_E_NOMEM;
    }
    if (err) {
        failed(r, d, at, "candidates", err, &diag, f);
    } else {
        kedge_coord_select(spec->seed, d->round->number, (uint32_t)in.count,
                           d->round->number == 0 ? spec->pretrain_sites : spec->sites_per_round, scratch, selected);
    }
    for (size_t i = 0; i < in.count && !err; i++) {
        if (selected[i] != (in.items[i].row.use == KEDGE_USE_SELECTED)) {
            kedgei_error(f, KEDGE_AUDIT_REPLAY_SELECTION, &r->a->main, at,
                         "job \"%s\", round %u: site \"%s\" of \"%s\" was%s selected, the seed says otherwise",
                         d->job->id.s, d->round->number, in.items[i].row.site.s, spec->tenants[in.items[i].place].s,
                         selected[i] ? " not" : "");
        }
    }
    kedge_mem_free(in.items);
    kedge_mem_free(scratch);
    kedge_mem_free(selected);
}

static void replay_grouping(const struct replay *r, const struct decision *d, struct kedgei_findings *f)
{
    struct kedge_diag diag = {.err = KEDGE_OK};
    struct inputs in = {.items = NULL};
    uint64_t at = d->round->step->index;
    uint32_t groups = 0;
    int err = read_inputs(r, d, &in, f);
    const char **paths = paths_of(&in);
    uint32_t *group = kedge_mem_new(in.count + 1, sizeof *group);
    if (!err && (!paths || !group)) {
        err = KEDGE_E_NOMEM;
    }
    err = err ? err
              : kedge_compute_groups(&d->job->layout, paths, in.count, &d->job->spec, group, &groups, &diag);
    if (err) {
        failed(r, d, at, "grouping", err, &diag, f);
    }
    for (size_t i = 0; i < in.count && !err; i++) {
        const struct kedge_input_row *row = &in.items[i].row;
        bool used = row->use == KEDGE_USE_GROUPED;
        if (used ? group[i] != row->group : group[i] != KEDGE_GROUP_NONE) {
            kedgei_error(f, KEDGE_AUDIT_REPLAY_GROUPING, &r->a->main, at,
                         "job \"%s\": site \"%s\" of \"%s\" is recorded in group %d, its update gives group %d",
                         d->job->id.s, row->site.s, d->job->spec.tenants[in.items[i].place].s,
                         used ? (int)row->group : -1, group[i] == KEDGE_GROUP_NONE ? -1 : (int)group[i]);
        }
    }
    if (!err && groups != d->job->groups) {
        kedgei_error(f, KEDGE_AUDIT_REPLAY_GROUPING, &r->a->main, at, "job \"%s\": %u groups, the updates give %u",
                     d->job->id.s, d->job->groups, groups);
    }
    kedge_mem_free(in.items);
    kedge_mem_free(paths);
    kedge_mem_free(group);
}

static void replay_direction(const struct replay *r, const struct decision *d, struct kedgei_findings *f)
{
    struct kedge_diag diag = {.err = KEDGE_OK};
    struct inputs in = {.items = NULL};
    struct kedge_hasher *hasher = NULL;
    struct kedge_sink sink;
    struct kedge_hash digest;
    uint64_t at = d->round->step->index;
    int err = read_inputs(r, d, &in, f);
    const char **paths = paths_of(&in);
    err = err ? err : paths ? sink_open(&hasher, &sink) : KEDGE_E_NOMEM;
    err = err ? err : kedge_compute_direction(&d->job->layout, paths, in.count, sink, &diag);
    if (err) {
        failed(r, d, at, "direction", err, &diag, f);
    } else {
        kedge_hasher_final(hasher, &digest);
        compare(r, d, KEDGE_AUDIT_REPLAY_DIRECTION, at, d->group, &digest,
                &kedgei_step_group(d->round->step, d->group)->direction, f);
    }
    kedge_hasher_free(hasher);
    kedge_mem_free(in.items);
    kedge_mem_free(paths);
}

/* Cold start: the cosine to the site's own group. Newcomer: also that no other group is nearer. */
static void replay_assigned(const struct replay *r, const struct decision *d, struct kedgei_findings *f)
{
    const struct kedge_st_group_assigned *g = d->fact->body;
    struct kedge_diag diag = {.err = KEDGE_OK};
    char update[KEDGE_PATH_MAX], paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *directions[KEDGE_GROUPS_MAX];
    bool newcomer = g->how == KEDGE_GROUP_NEWCOMER;
    uint32_t first = newcomer ? 0 : g->group, count = newcomer ? d->job->groups : 1, nearest = 0;
    double cosine = 0;
    int err = kedge_blobs_path(d->log->blobs, &g->update, update);
    for (uint32_t i = 0; i < count && !err; i++) {
        const struct kedge_st_step_group *group = kedgei_step_group(d->round->step, first + i);
        directions[i] = paths[i];
        err = group ? kedge_blobs_path(r->a->main.blobs, &group->direction, paths[i]) : KEDGE_E_NOT_FOUND;
        if (!err && !kedge_file_exists(paths[i])) {
            err = KEDGE_E_IO; /* NOT_FOUND would read as an update that points nowhere */
        }
    }
    if (!err) {
        err = kedge_file_exists(update)
                  ? kedge_compute_nearest(&d->job->layout, update, directions, count, &nearest, &cosine, &diag)
                  : KEDGE_E_IO;
        if (err == KEDGE_E_NOT_FOUND) { /* all zero: group 0, similarity 0 */
            nearest = 0;
            cosine = 0;
            err = KEDGE_OK;
        }
    }
    if (err) {
        failed(r, d, d->fact->index, "group of a site", err, &diag, f);
    } else if (first + nearest != g->group || cosine < g->similarity || cosine > g->similarity) {
        kedgei_error(f, KEDGE_AUDIT_REPLAY_NEWCOMER, d->log, d->fact->index,
                     "job \"%s\": site \"%s\" given group %u with similarity %.17g, its update gives %u with %.17g",
                     d->job->id.s, g->site.s, g->group, g->similarity, first + nearest, cosine);
    }
}

static void replay_aggregate(const struct replay *r, const struct decision *d, struct kedgei_findings *f)
{
    const struct kedge_st_aggregate *agg = d->fact->body;
    struct kedge_diag diag = {.err = KEDGE_OK};
    struct inputs in = {.items = NULL};
    struct kedge_hasher *hasher = NULL;
    struct kedge_sink sink;
    struct kedge_hash digest;
    char base[KEDGE_PATH_MAX];
    uint64_t weight_sum = 0;
    int err = read_inputs(r, d, &in, f);
    struct kedge_compute_source *sources = kedge_mem_new(in.count + 1, sizeof *sources);
    for (size_t i = 0; sources && i < in.count; i++) {
        sources[i] = (struct kedge_compute_source){in.items[i].path, in.items[i].row.weight};
    }
    err = err ? err : sources ? sink_open(&hasher, &sink) : KEDGE_E_NOMEM;
    err = err ? err : kedge_blobs_path(r->a->main.blobs, &agg->base, base);
    err = err ? err
              : kedge_compute_mean(&d->job->layout, base, sources, in.count, d->job->spec.scale, d->job->limit, sink,
                                   &weight_sum, &diag);
    if (err) {
        failed(r, d, d->fact->index, "aggregate", err, &diag, f);
    } else {
        kedge_hasher_final(hasher, &digest);
        compare(r, d, KEDGE_AUDIT_REPLAY_AGGREGATE, d->fact->index, d->group, &digest, &d->fact->subject, f);
    }
    kedge_hasher_free(hasher);
    kedge_mem_free(in.items);
    kedge_mem_free(sources);
}

static void replay_mixing(const struct replay *r, const struct decision *d, struct kedgei_findings *f)
{
    const struct kedge_st_step *step = d->round->step->body;
    struct kedge_diag diag = {.err = KEDGE_OK};
    char paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    const char *models[KEDGE_GROUPS_MAX];
    bool trained[KEDGE_GROUPS_MAX];
    struct kedge_hasher *hashers[KEDGE_GROUPS_MAX] = {NULL};
    struct kedge_sink sinks[KEDGE_GROUPS_MAX];
    int err = KEDGE_OK;
    for (uint32_t g = 0; g < step->group_count && !err; g++) {
        models[g] = paths[g];
        trained[g] = d->round->aggregates[g] != NULL;
        err = kedge_blobs_path(r->a->main.blobs, &step->groups[g].aggregate, paths[g]);
        err = err ? err : sink_open(&hashers[g], &sinks[g]);
    }
    err = err ? err
              : kedge_compute_mixing(&d->job->layout, models, trained, step->group_count, d->job->spec.mixing, sinks,
                                     &diag);
    if (err) {
        failed(r, d, d->round->step->index, "mixing", err, &diag, f);
    }
    for (uint32_t g = 0; g < step->group_count; g++) {
        struct kedge_hash digest;
        if (!err && trained[g]) {
            kedge_hasher_final(hashers[g], &digest);
            compare(r, d, KEDGE_AUDIT_REPLAY_STEP, d->round->step->index, g, &digest, &step->groups[g].after, f);
        }
        kedge_hasher_free(hashers[g]);
    }
}

/* ---- the list of decisions ---- */

static void add(struct replay *r, struct decision d)
{
    if (r->count == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 64;
        struct decision *items = kedge_mem_resize(r->items, cap, sizeof *items);
        if (!items) {
            r->nomem = true;
            return;
        }
        r->items = items;
        r->cap = cap;
    }
    r->items[r->count++] = d;
}

static void add_round(struct replay *r, const struct kedgei_job *job, const struct kedgei_round *round)
{
    add(r, (struct decision){.kind = SELECTION, .job = job, .round = round});
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        if (round->aggregates[g]) {
            add(r, (struct decision){
                       .kind = AGGREGATE, .job = job, .round = round, .fact = round->aggregates[g], .group = g});
        }
    }
    const struct kedge_st_step *step = round->step ? round->step->body : NULL;
    if (!step) {
        return;
    }
    if (round->number == 0) {
        add(r, (struct decision){.kind = GROUPING, .job = job, .round = round});
        for (uint32_t g = 0; g < step->group_count; g++) {
            add(r, (struct decision){.kind = DIRECTION, .job = job, .round = round, .group = g});
        }
    } else if (strcmp(step->rule, KEDGE_RULE_MIXING) == 0) {
        add(r, (struct decision){.kind = MIXING, .job = job, .round = round});
    }
}

static void add_assigned(struct replay *r, const struct kedgei_log *log)
{
    for (uint64_t i = 0; i < log->count; i++) {
        const struct kedge_st_group_assigned *g = log->facts[i].body;
        if (log->facts[i].kind != KEDGE_ST_GROUP_ASSIGNED) {
            continue;
        }
        const struct kedgei_job *job = kedgei_job_find(r->a, &g->job);
        if (job && job->usable && job->round_count && job->rounds[0].number == 0 && job->rounds[0].step
            && g->group < job->groups) {
            add(r, (struct decision){
                       .kind = ASSIGNED, .job = job, .round = &job->rounds[0], .log = log, .fact = &log->facts[i]});
        }
    }
}

static void collect(struct replay *r)
{
    for (uint32_t j = 0; j < r->a->job_count; j++) {
        const struct kedgei_job *job = r->a->jobs[j];
        bool whole = job->usable;
        for (uint32_t i = 0; i < job->spec.tenant_count; i++) {
            whole = whole && job->tenants[i] != UINT32_MAX;
        }
        if (!whole) {
            continue; /* said already */
        }
        if (!job->spec.has_initial_model) {
            add(r, (struct decision){.kind = INITIAL, .job = job});
        }
        for (size_t k = 0; k < job->round_count; k++) {
            add_round(r, job, &job->rounds[k]);
        }
    }
    for (uint32_t t = 0; t < r->a->tenant_count; t++) {
        add_assigned(r, &r->a->tenants[t]);
    }
}

static void run_decision(void *arg, uint64_t i, struct kedgei_findings *f)
{
    static void (*const by_kind[])(const struct replay *, const struct decision *, struct kedgei_findings *) = {
        [INITIAL] = replay_initial,     [SELECTION] = replay_selection, [GROUPING] = replay_grouping,
        [DIRECTION] = replay_direction, [ASSIGNED] = replay_assigned,   [AGGREGATE] = replay_aggregate,
        [MIXING] = replay_mixing,
    };
    const struct replay *r = arg;
    by_kind[r->items[i].kind](r, &r->items[i], f);
}

int kedgei_replay(struct kedgei_audit *a)
{
    struct replay r = {.a = a};
    collect(&r);
    int err = r.nomem ? KEDGE_E_NOMEM : kedgei_parallel(a, "decisions", r.count, run_decision, &r);
    a->counts.decisions = r.count;
    kedge_mem_free(r.items);
    return err;
}
