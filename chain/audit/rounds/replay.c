/* Every decision once more, from its recorded inputs, by the functions that the coordinator's workers call.
 * Results are only hashed. Decisions are independent of each other: the inputs of each are in the record. */
#include <string.h>

#include "chain/audit/files/prune.h"
#include "chain/audit/rounds/closing.h"
#include "chain/audit/rounds/erased_decisions.h"
#include "common/base/try.h"
#include "round/beginning.h"
#include "round/shared_part.h"

/* What the job says to begin with: made from its seed, or the shared part of its base. */
static int make_initial(const struct kedgei_replay *r, const struct kedgei_decision *d,
                        struct kedge_sink sink, struct kedge_diag *diag)
{
    const struct kedge_job_spec *spec = &d->job->spec;
    char path[KEDGE_PATH_MAX];
    struct kedge_blob_at at;
    if (!kedge_job_spec_has_base(spec)) {
        return kedge_compute_beginning(spec, d->group, sink, diag);
    }
    KEDGE_TRY(kedge_blobs_at(r->a->main.blobs, &spec->initial_model, path, &at));
    return kedge_compute_shared_part(spec, &at, sink, diag);
}

static void replay_initial(const struct kedgei_replay *r, struct kedgei_decision *d,
                           struct kedgei_findings *f)
{
    struct kedge_diag diag = {.err = KEDGE_OK};
    struct kedge_hasher *hasher = NULL;
    struct kedge_sink sink;
    struct kedge_hash digest;
    int err = kedgei_replay_sink(&hasher, &sink);
    if (!err) {
        err = make_initial(r, d, sink, &diag);
    }
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

typedef void decision_fn(const struct kedgei_replay *r, struct kedgei_decision *d, struct kedgei_findings *f);

/* All others are of a close. */
static decision_fn *const by_itself[] = {[KEDGEI_INITIAL] = replay_initial,
                                         [KEDGEI_SELECTION] = kedgei_replay_selection,
                                         [KEDGEI_ASSIGNED] = kedgei_replay_place,
                                         [KEDGEI_NEAREST] = kedgei_replay_place,
                                         [KEDGEI_TRIALS] = NULL};

static bool is_of_close(const struct kedgei_decision *d)
{
    return by_itself[d->kind] == NULL;
}

/* What a close decided is answered together, in the place of the first of them. The parallel pass calls
 * this for each item; the first of a round's answers for all of them, and the others return. So items of
 * one close must stand together in the list, which add_round sees to. */
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
        return; /* told: erased_decisions.c; over candidates of tenants that are not here */
    }
    by_itself[d->kind](r, d, f);
}

/* Decisions over updates whose keys are not here say nothing of the record: they are counted, and nothing
 * that was computed before the update was met is part of the digest. A result that was half computed when
 * the sealed update was met would make the digest depend on the order of work. */
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

/* One digest of all results, in the order of the list. Decisions that were not repeated enter with zeros,
 * so the digest of a record whose keys are missing differs from that of the whole one, and is still the
 * same each time. */
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

static int replay_all(struct kedgei_replay *r)
{
    struct kedgei_audit *a = r->a;
    KEDGE_TRY(kedgei_decisions_marked(r));
    KEDGE_TRY(kedgei_rebuild(r));
    KEDGE_TRY(kedgei_parallel(a, "decisions", r->count, run_decision, r));
    count_sealed(r);
    kedgei_tell_unmade(r);
    KEDGE_TRY(digest_results(r, &a->results));
    a->counts.decisions = r->count - a->counts.decisions_erased - a->counts.decisions_sealed
                          - (a->skipped ? a->skipped->decisions : 0);
    return KEDGE_OK;
}

int kedgei_replay(struct kedgei_audit *a)
{
    struct kedgei_replay r = {.a = a};
    int err = replay_all(&r);
    kedgei_scratch_free(&a->scratch, r.items);
    return err;
}
