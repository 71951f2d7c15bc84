/* Every decision once more, from its recorded inputs, by the functions that the coordinator's workers call.
 * Results are only hashed. Decisions are independent of each other: the inputs of each are in the record. */
#include "chain/audit/facts/erased.h"
#include "chain/audit/files/prune.h"
#include "chain/audit/rounds/buffer.h"

#include <string.h>

#include "common/base/mem.h"
#include "coordinator/core/coord.h"
#include "round/beginning.h"
#include "round/compute.h"
#include "strategy/server.h"

/* ---- helpers ---- */

static int write_hash(void *arg, struct kedge_view bytes)
{
    kedge_hasher_update(arg, bytes);
    return KEDGE_OK;
}

int kedgei_replay_sink(struct kedge_hasher **ret_hasher, struct kedge_sink *ret_sink)
{
    int err = kedge_hasher_new(ret_hasher);
    *ret_sink = (struct kedge_sink){.write = write_hash, .arg = err ? NULL : *ret_hasher};
    return err;
}

void kedgei_replay_failed(const struct kedgei_replay *r, struct kedgei_decision *d, uint64_t index,
                          const char *what, int err, const struct kedge_diag *diag, struct kedgei_findings *f)
{
    f->nomem = f->nomem || err == KEDGE_E_NOMEM;
    if (err == KEDGE_E_NOT_FOUND && KEDGEI_SKIP(r->a, decisions)) {
        return;
    }
    if (err == KEDGE_E_NOT_FOUND && d->job->has_unmade) { /* files that should be here verify has missed */
        d->lacks_model = true;
        return;
    }
    if (err == KEDGE_E_SEALED) { /* nothing is wrong with it, as far as can be seen: counted and told at the
                                    end */
        d->sealed = true;
        return;
    }
    kedgei_error(f, KEDGE_AUDIT_REPLAY_FAILED, d->log ? d->log : &r->a->main, index, "job \"%s\": %s: %s",
                 d->job->id.s, what, diag->text[0] ? diag->text : kedge_strerror(err));
}

void kedgei_replay_compare(const struct kedgei_replay *r, const struct kedgei_decision *d,
                           enum kedge_audit_code code, uint64_t index, uint32_t group,
                           const struct kedge_hash *expected, const struct kedge_hash *recorded,
                           struct kedgei_findings *f)
{
    char is[KEDGE_HASH_HEX_LEN + 1], was[KEDGE_HASH_HEX_LEN + 1];
    if (kedge_hash_eq(expected, recorded)) {
        return;
    }
    kedge_hash_hex(expected, is);
    kedge_hash_hex(recorded, was);
    kedgei_error(f, code, &r->a->main, index,
                 "job \"%s\", round %u, group %u: recorded %s, the inputs give %s", d->job->id.s,
                 d->round ? d->round->number : 0, group, was, is);
}

void kedgei_replay_add(struct kedgei_decision *d, const void *bytes, size_t len)
{
    struct kedge_hash so_far = d->result;
    kedge_sha256_2(kedge_view_of(so_far.b, sizeof so_far.b), kedge_view_of(bytes, len), &d->result);
}

void kedgei_replay_add_number(struct kedgei_decision *d, uint64_t number)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(number >> (8 * i));
    }
    kedgei_replay_add(d, bytes, sizeof bytes);
}

/* ---- decisions ---- */

static void replay_initial(const struct kedgei_replay *r, struct kedgei_decision *d,
                           struct kedgei_findings *f)
{
    struct kedge_diag diag = {.err = KEDGE_OK};
    struct kedge_hasher *hasher = NULL;
    struct kedge_sink sink;
    struct kedge_hash digest;
    int err = kedgei_replay_sink(&hasher, &sink);
    err = err ? err : kedge_compute_beginning(&d->job->spec, d->group, sink, &diag);
    if (err) {
        kedgei_replay_failed(r, d, d->job->opened->index, "first model", err, &diag, f);
    } else {
        struct kedge_hash first = kedgei_first_model(d->job, d->group);
        kedge_hasher_final(hasher, &digest);
        kedgei_replay_add(d, digest.b, sizeof digest.b);
        kedgei_replay_compare(r, d, KEDGE_AUDIT_REPLAY_INITIAL, d->job->opened->index, d->group, &digest,
                              &first, f);
    }
    kedge_hasher_free(hasher);
}

/* The root site's number among the candidates; their count: there is none, or it is missing (verify says so).
 */
static uint32_t root_of(const struct kedge_job_spec *spec, const struct kedgei_inputs *in)
{
    uint32_t i = 0;
    while (i < in->count && !kedge_job_spec_is_root(spec, in->items[i].place, &in->items[i].row.site)) {
        i++;
    }
    return i;
}

static void replay_selection(const struct kedgei_replay *r, struct kedgei_decision *d,
                             struct kedgei_findings *f)
{
    const struct kedge_job_spec *spec = &d->job->spec;
    struct kedge_diag diag = {.err = KEDGE_OK};
    struct kedgei_inputs in = {.items = NULL};
    uint64_t at = d->round->opened->index;
    int err = kedgei_candidates_read(r, d, &in, f);
    uint32_t *scratch = kedge_mem_new(3 * in.count + 1, sizeof *scratch);
    uint32_t *tenant = scratch ? scratch + 2 * in.count : NULL;
    bool *selected = kedge_mem_new(in.count + 1, sizeof *selected);
    if (!err && (!scratch || !selected)) {
        err = KEDGE_E_NOMEM;
    }
    if (err) {
        kedgei_replay_failed(r, d, at, "candidates", err, &diag, f);
    } else if (d->round->pretrain) {
        for (size_t i = 0; i < in.count; i++) {
            tenant[i] = in.items[i].place;
        }
        kedge_coord_select_by_quota(spec->seed, d->round->number, tenant, (uint32_t)in.count,
                                    spec->pretrain_sites, scratch, selected);
    } else if (kedgei_job_is_asynchronous(d->job)) {
        kedgei_replay_draw(spec, d->round->number, &in, scratch, selected);
    } else if (root_of(spec, &in) < in.count) {
        kedge_coord_select_root(spec->seed, d->round->number, (uint32_t)in.count, root_of(spec, &in),
                                spec->sites_per_round, scratch, selected);
    } else if (spec->by_charge) {
        kedgei_replay_charged(spec, d->round->number, &in, scratch, selected);
    } else {
        kedge_coord_select(spec->seed, d->round->number, (uint32_t)in.count, spec->sites_per_round, scratch,
                           selected);
    }
    for (size_t i = 0; i < in.count && !err; i++) {
        kedgei_replay_add_number(d, selected[i]);
        if (selected[i] != (in.items[i].row.use == KEDGE_USE_SELECTED)) {
            kedgei_error(
                f, KEDGE_AUDIT_REPLAY_SELECTION, &r->a->main, at,
                "job \"%s\", round %u: site \"%s\" of \"%s\" was%s selected, the seed says otherwise",
                d->job->id.s, d->round->number, in.items[i].row.site.s, spec->tenants[in.items[i].place].s,
                selected[i] ? " not" : "");
        }
    }
    kedge_mem_free(in.items);
    kedge_mem_free(scratch);
    kedge_mem_free(selected);
}

/* Whether the statement says the nearest group. Those whose updates made the groups are where these put them.
 */
static bool is_nearest(const struct kedgei_decision *d)
{
    const struct kedge_st_group_assigned *g = d->fact->body;
    return g->how == KEDGE_GROUP_NEWCOMER || g->how == KEDGE_GROUP_MIGRATION
           || (g->how == KEDGE_GROUP_RECLUSTER
               && !kedgei_log_find(d->log, "update/%s/%08u/pretrain/%s", g->job.s, g->round, g->site.s));
}

/* Cold start: the cosine to the site's own group. Newcomer, migration: also that no other group is nearer. */
static void replay_assigned(const struct kedgei_replay *r, struct kedgei_decision *d,
                            struct kedgei_findings *f)
{
    const struct kedge_st_group_assigned *g = d->fact->body;
    struct kedge_diag diag = {.err = KEDGE_OK};
    char update[KEDGE_PATH_MAX], paths[KEDGE_GROUPS_MAX][KEDGE_PATH_MAX];
    struct kedge_blob_at directions[KEDGE_GROUPS_MAX];
    bool chosen = is_nearest(d);
    uint32_t groups = kedgei_groups_after(d->job, d->round->number);
    uint32_t among[KEDGE_GROUPS_MAX], count = kedgei_chosen_among(d, chosen ? groups : 0, among), nearest = 0;
    double cosine = 0;
    bool absent = false;
    struct kedge_blob_at at;
    int err = kedge_blobs_at(d->log->blobs, &g->update, update, &at);
    for (uint32_t i = 0; i < count && !err; i++) {
        const struct kedge_hash *direction = kedgei_direction_of(d->round->step, among[i]);
        directions[i] = (struct kedge_blob_at){.path = paths[i]};
        err = direction ? kedge_blobs_path(r->a->main.blobs, direction, paths[i]) : KEDGE_E_NOT_FOUND;
        if (!err && !kedge_blob_exists(paths[i])) {
            err = KEDGE_E_IO; /* NOT_FOUND would read as an update that points nowhere */
            absent = true;
        }
    }
    if (!err) {
        absent = !kedge_blob_exists(update);
        err = !absent
                  ? kedge_compute_nearest(&d->job->layout, &at, directions, count, &nearest, &cosine, &diag)
                  : KEDGE_E_IO;
        if (err == KEDGE_E_NOT_FOUND) { /* all zero: group 0, similarity 0 */
            nearest = 0;
            cosine = 0;
            err = KEDGE_OK;
        }
    }
    if (err) {
        kedgei_replay_failed(r, d, d->fact->index, "group of a site", absent ? KEDGE_E_NOT_FOUND : err, &diag,
                             f);
        return;
    }
    uint64_t bits;
    memcpy(&bits, &cosine, sizeof bits);
    kedgei_replay_add_number(d, among[nearest]);
    kedgei_replay_add_number(d, bits);
    if (among[nearest] != g->group || cosine < g->similarity || cosine > g->similarity) {
        kedgei_error(
            f, KEDGE_AUDIT_REPLAY_NEWCOMER, d->log, d->fact->index,
            "job \"%s\": site \"%s\" given group %u with similarity %.17g, its update gives %u with %.17g",
            d->job->id.s, g->site.s, g->group, g->similarity, among[nearest], cosine);
    }
}

/* ---- the list of decisions ---- */

static void add(struct kedgei_replay *r, struct kedgei_decision d)
{
    if (r->count == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 64;
        struct kedgei_decision *items =
            kedgei_scratch_grow(&r->a->scratch, r->items, r->count, cap, sizeof *items);
        if (!items) {
            r->nomem = true;
            return;
        }
        r->items = items;
        r->cap = cap;
    }
    r->items[r->count++] = d;
}

static void add_round(struct kedgei_replay *r, const struct kedgei_job *job, const struct kedgei_round *round)
{
    add(r, (struct kedgei_decision){.kind = KEDGEI_SELECTION, .job = job, .round = round});
    if (round->kept || round->replaced) {
        return; /* nothing was computed */
    }
    for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
        if (round->aggregates[g]) {
            add(r, (struct kedgei_decision){.kind = KEDGEI_AGGREGATE,
                                            .job = job,
                                            .round = round,
                                            .fact = round->aggregates[g],
                                            .group = g});
        }
    }
    const struct kedge_st_step *step = round->step ? round->step->body : NULL;
    if (!step) {
        return;
    }
    if (round->pretrain) {
        add(r, (struct kedgei_decision){.kind = KEDGEI_GROUPING, .job = job, .round = round});
        for (uint32_t g = 0; g < step->group_count; g++) {
            add(r,
                (struct kedgei_decision){.kind = KEDGEI_DIRECTION, .job = job, .round = round, .group = g});
        }
        return;
    }
    for (uint32_t g = 0; g < step->group_count; g++) {
        if (round->aggregates[g] && kedge_server_states(job->spec.server) > 0) {
            add(r, (struct kedgei_decision){.kind = KEDGEI_SERVER, .job = job, .round = round, .group = g});
        }
    }
    for (uint32_t g = 0; g < step->group_count && kedgei_refreshes(job, round); g++) {
        if (kedgei_estimate_of(job, round, g)) {
            add(r,
                (struct kedgei_decision){.kind = KEDGEI_DIRECTION, .job = job, .round = round, .group = g});
        }
    }
    if (kedgei_refreshes(job, round)) {
        add(r, (struct kedgei_decision){.kind = KEDGEI_DRIFT, .job = job, .round = round});
    }
    if (kedgei_refreshes(job, round) && !kedgei_drifted(round)) {
        add(r, (struct kedgei_decision){
                   .kind = KEDGEI_RESHAPE, .job = job, .round = round, .group = KEDGE_GROUP_NONE});
    }
    for (uint32_t g = 0; g < step->group_count; g++) {
        if (!step->groups[g].merged_into && kedgei_is_joined(job, round, round->step, g)) {
            add(r, (struct kedgei_decision){.kind = KEDGEI_JOINED, .job = job, .round = round, .group = g});
        }
    }
    kedgei_split_decisions(r, job, round, add);
    if (kedgei_meets(job, round)) {
        add(r, (struct kedgei_decision){.kind = KEDGEI_MEETING, .job = job, .round = round});
    }
    if (job->spec.mixing > 0 && round->aggregate_count >= 2) {
        add(r, (struct kedgei_decision){.kind = KEDGEI_MIXING, .job = job, .round = round});
    }
}

/* The round whose directions a group was found by: it made them, or it is the last one closed before. */
static const struct kedgei_round *directions_of(const struct kedgei_job *job,
                                                const struct kedge_st_group_assigned *g)
{
    bool made = g->how != KEDGE_GROUP_NEWCOMER && g->how != KEDGE_GROUP_MIGRATION;
    const struct kedgei_round *round = made           ? kedgei_round_find(job, g->round)
                                       : g->round > 0 ? kedgei_round_closed(job, g->round - 1)
                                                      : NULL;
    return round && round->step ? round : NULL;
}

static void add_assigned(struct kedgei_replay *r, const struct kedgei_log *log)
{
    for (uint64_t i = 0; i < log->count; i++) {
        const struct kedgei_fact *fact = kedgei_fact_at(log, i);
        const struct kedge_st_group_assigned *g = fact->body;
        if (fact->kind != KEDGE_ST_GROUP_ASSIGNED) {
            continue;
        }
        const struct kedgei_job *job = kedgei_job_find(r->a, &g->job);
        const struct kedgei_round *round =
            job && job->usable && job->round_count && kedgei_round_at(job, 0)->number == 0
                ? directions_of(job, g)
                : NULL;
        if (round && g->group < kedgei_groups_after(job, round->number)) {
            add(r, (struct kedgei_decision){
                       .kind = KEDGEI_ASSIGNED, .job = job, .round = round, .log = log, .fact = fact});
        }
    }
}

int kedgei_decisions_collect(struct kedgei_replay *r)
{
    for (uint32_t j = 0; j < r->a->job_count; j++) {
        const struct kedgei_job *job = r->a->jobs[j];
        if (!job->usable || (!r->a->skipped && !kedgei_job_whole(job))) {
            continue; /* said already */
        }
        const struct kedge_st_job_opened *o = job->opened->body;
        for (uint32_t g = 0; !job->spec.has_initial_model && g <= o->first_model_count; g++) {
            add(r, (struct kedgei_decision){.kind = KEDGEI_INITIAL, .job = job, .group = g});
        }
        for (size_t k = 0; k < kedgei_opening_count(job); k++) {
            add_round(r, job, kedgei_opening_at(job, k));
        }
    }
    for (uint32_t t = 0; t < r->a->tenant_count; t++) {
        add_assigned(r, &r->a->tenants[t]);
        kedgei_nearest_decisions(r, &r->a->tenants[t], add);
    }
    return r->nomem ? kedgei_scratch_error(&r->a->scratch, &r->a->diag) : KEDGE_OK;
}

typedef void decision_fn(const struct kedgei_replay *r, struct kedgei_decision *d, struct kedgei_findings *f);

/* All others are of a close. */
static decision_fn *const by_itself[] = {[KEDGEI_INITIAL] = replay_initial,
                                         [KEDGEI_SELECTION] = replay_selection,
                                         [KEDGEI_ASSIGNED] = replay_assigned,
                                         [KEDGEI_NEAREST] = kedgei_replay_nearest,
                                         [KEDGEI_SPLIT] = NULL};

static bool is_of_close(const struct kedgei_decision *d)
{
    return by_itself[d->kind] == NULL;
}

/* What a close decided is answered together, in the place of the first of them. */
static void run_close(const struct kedgei_replay *r, size_t first, struct kedgei_findings *f)
{
    const struct kedgei_round *round = r->items[first].round;
    size_t count = 1;
    if (first > 0 && is_of_close(&r->items[first - 1]) && r->items[first - 1].round == round) {
        return;
    }
    while (first + count < r->count && is_of_close(&r->items[first + count])
           && r->items[first + count].round == round) {
        count++;
    }
    kedgei_replay_close(r, &r->items[first], count, false, f);
}

static void run_decision(void *arg, uint64_t i, struct kedgei_findings *f)
{
    struct kedgei_replay *r = arg; /* each call writes to its own decisions only */
    struct kedgei_decision *d = &r->items[i];
    if (is_of_close(d)) {
        run_close(r, i, f);
        return;
    }
    bool of_all = d->kind == KEDGEI_SELECTION;
    if (d->erased > 0 || (of_all && !kedgei_job_whole(d->job) && KEDGEI_SKIP(r->a, decisions))) {
        return; /* told: erased.c; over candidates of tenants that are not here */
    }
    by_itself[d->kind](r, d, f);
}

/* Decisions over updates whose keys are not here say nothing of the record: they are counted, and nothing
 * that was computed before the update was met is part of the digest. */
static void count_sealed(const struct kedgei_replay *r)
{
    struct kedgei_audit *a = r->a;
    a->counts.decisions_sealed = 0;
    for (size_t i = 0; i < r->count; i++) {
        struct kedgei_decision *d = &r->items[i];
        if (d->sealed) {
            memset(&d->result, 0, sizeof d->result);
            a->counts.decisions_sealed++;
        }
    }
    if (a->counts.decisions_sealed > 0) {
        kedgei_find(
            &a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_SEALED, a->main.name,
            "not replayed: %llu decisions over updates that are encrypted under keys that are not here "
            "(--blob-key TENANT=FILE)",
            (unsigned long long)a->counts.decisions_sealed);
    }
}

/* One digest of all results, in the order of the list. */
static int digest_results(const struct kedgei_replay *r, struct kedge_hash *ret)
{
    struct kedge_hasher *hasher = NULL;
    int err = kedge_hasher_new(&hasher);
    for (size_t i = 0; i < r->count && !err; i++) {
        const struct kedgei_decision *d = &r->items[i];
        const uint8_t kind = (uint8_t)d->kind;
        kedge_hasher_update(hasher, kedge_view_of(&kind, 1));
        kedge_hasher_update(hasher, kedge_view_of(d->result.b, sizeof d->result.b));
    }
    if (!err) {
        kedge_hasher_final(hasher, ret);
    }
    kedge_hasher_free(hasher);
    return err;
}

int kedgei_replay(struct kedgei_audit *a)
{
    struct kedgei_replay r = {.a = a};
    int err = kedgei_decisions_collect(&r);
    err = err ? err : kedgei_mark_erased(&r);
    err = err ? err : kedgei_rebuild(&r);
    err = err ? err : kedgei_parallel(a, "decisions", r.count, run_decision, &r);
    count_sealed(&r);
    kedgei_tell_unmade(&r);
    err = err ? err : digest_results(&r, &a->results);
    a->counts.decisions = r.count - a->counts.decisions_erased - a->counts.decisions_sealed
                          - (a->skipped ? a->skipped->decisions : 0);
    kedgei_scratch_free(&a->scratch, r.items);
    return err;
}
