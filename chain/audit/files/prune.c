/* Models between the first and the last of a job can be given up to save space, because a replay makes
 * them again from the updates. Which ones may go is decided here and nowhere else: `kedge ledger prune`
 * asks before it removes any, and an audit asks whether what is missing was allowed to be. */
#include "chain/audit/files/prune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/audit/audit.h"
#include "chain/audit/rounds/closing.h"
#include "chain/audit/rounds/erased_decisions.h"
#include "chain/store/blob/pruned.h"

enum { DIGESTS_MAX = 1 << 27 };

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, KEDGE_HASH_LEN);
}

static void sort(struct kedge_buf *digests)
{
    size_t n = 0;
    if (digests->len > 0) {
        qsort(digests->ptr, digests->len / KEDGE_HASH_LEN, KEDGE_HASH_LEN, compare);
    }
    for (size_t at = 0; at < digests->len; at += KEDGE_HASH_LEN) {
        if (n == 0 || memcmp(digests->ptr + n - KEDGE_HASH_LEN, digests->ptr + at, KEDGE_HASH_LEN) != 0) {
            memmove(digests->ptr + n, digests->ptr + at, KEDGE_HASH_LEN);
            n += KEDGE_HASH_LEN;
        }
    }
    digests->len = n;
}

/* ---- which ---- */

static const struct kedgei_round *last_step(const struct kedgei_job *job)
{
    const struct kedgei_round *last = NULL;
    for (size_t k = 0; k < job->round_count; k++) {
        const struct kedgei_round *round = kedgei_round_at(job, k);
        last = round->step ? round : last;
    }
    return last;
}

/* First, released and last models and bases of all jobs, directions and states: each stays, whatever else it
 * is. */
static void collect_kept(const struct kedgei_audit *a, struct kedge_buf *ret)
{
    for (uint32_t j = 0; j < a->job_count; j++) {
        const struct kedgei_job *job = a->jobs[j];
        const struct kedge_st_job_opened *o = job->opened->body;
        const struct kedgei_round *last = last_step(job);
        kedge_buf_put(ret, o->initial_model.b, KEDGE_HASH_LEN);
        kedge_buf_put(ret, o->base_model.b, KEDGE_HASH_LEN);
        for (uint32_t i = 0; i < o->first_model_count; i++) {
            kedge_buf_put(ret, o->first_models[i].model.b, KEDGE_HASH_LEN);
        }
        for (uint32_t g = 0; g < KEDGE_GROUPS_MAX; g++) {
            if (job->releases[g]) {
                kedge_buf_put(ret, job->releases[g]->subject.b, KEDGE_HASH_LEN);
            }
        }
        const struct kedge_st_step *step = last ? last->step->body : NULL;
        for (uint32_t g = 0; step && g < step->group_count; g++) {
            kedge_buf_put(ret, step->groups[g].after.b, KEDGE_HASH_LEN);
        }
    }
    sort(ret);
}

/* The round's aggregate for the group is the model that goes on, and nothing is needed for it but the
 * updates and the model before. A model that a server's step, mixing or a meeting has changed needs more
 * than updates (states, other groups' models), and is kept. */
static bool is_made_of_updates(const struct kedgei_round *round, uint32_t g)
{
    const struct kedge_st_step_group *row = round->step ? kedgei_step_group(round->step, g) : NULL;
    return row && !round->pretrain && !round->kept && round->aggregates[g]
           && kedge_hash_is_zero(&row->stepped) && kedge_hash_eq(&row->after, &round->aggregates[g]->subject);
}

/* Only of jobs that are closed, and of which all ledgers are here: otherwise nobody could say that it can
 * be made again. */
static bool is_intermediate(const struct kedgei_decision *d)
{
    return d->kind == KEDGEI_AGGREGATE && d->job->closed && kedgei_job_whole(d->job)
           && is_made_of_updates(d->round, d->group);
}

/* erased_too: also those whose updates are erased. Nobody may give them up any more, but who gave them up
 * before the order came has done nothing wrong. */
static int collect(struct kedgei_audit *a, const struct kedge_id *job, uint32_t keep_every, bool erased_too,
                   struct kedge_buf *ret)
{
    struct kedgei_replay r = {.a = a};
    struct kedge_buf kept;
    kedge_buf_init(&kept, DIGESTS_MAX);
    collect_kept(a, &kept);
    int err = kept.err ? kept.err : kedgei_decisions_marked(&r);
    for (size_t i = 0; i < r.count && !err; i++) {
        const struct kedgei_decision *d = &r.items[i];
        if (is_intermediate(d) && (erased_too || d->erased == 0) && (!job || kedge_id_eq(job, &d->job->id))
            && (keep_every == 0 || d->round->number % keep_every != 0)
            && !kedge_pruned_has(kedge_buf_view(&kept), &d->fact->subject)) {
            kedge_buf_put(ret, d->fact->subject.b, KEDGE_HASH_LEN);
        }
        err = ret->err;
    }
    sort(ret);
    kedgei_scratch_free(&a->scratch, r.items);
    kedge_buf_deinit(&kept);
    return err;
}

int kedgei_intermediate(struct kedgei_audit *a, const struct kedge_id *job, uint32_t keep_every,
                        struct kedge_buf *ret)
{
    return collect(a, job, keep_every, false, ret);
}

/* The list in the record is its operator's word. It is taken only for models that may be pruned, so it
 * cannot excuse a missing release. */
int kedgei_pruned_load(struct kedgei_audit *a)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf listed, may;
    kedge_buf_init(&a->pruned, DIGESTS_MAX);
    kedge_buf_init(&listed, DIGESTS_MAX);
    kedge_buf_init(&may, DIGESTS_MAX);
    int err = kedge_path_join(path, a->state, "main");
    if (!err) {
        err = kedge_pruned_read(path, &listed, &a->diag);
    }
    if (err == KEDGE_E_CORRUPT) {
        kedgei_find(&a->findings, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_STRAY_FILE, "main/pruned.txt", "%s",
                    a->diag.text);
        err = KEDGE_OK;
        kedge_buf_clear(&listed);
    }
    if (!err && listed.len > 0) {
        err = collect(a, NULL, 0, true, &may);
    }
    for (size_t at = 0; at < may.len && !err; at += KEDGE_HASH_LEN) {
        struct kedge_hash digest;
        memcpy(digest.b, may.ptr + at, KEDGE_HASH_LEN);
        if (kedge_pruned_has(kedge_buf_view(&listed), &digest)) {
            kedge_buf_put(&a->pruned, digest.b, KEDGE_HASH_LEN);
        }
    }
    kedge_buf_deinit(&listed);
    kedge_buf_deinit(&may);
    return err ? err : a->pruned.err;
}

/* ---- made again ---- */

/* A blob store of its own in $TMPDIR, on which the record's store leans: all readers find the rebuilt
 * models without knowing of it, and the record itself is not written to. */
static int open_scratch(struct kedgei_audit *a)
{
    static const struct kedge_blobs_options options = {.pack = true, .sync_later = true};
    const char *tmp = getenv("TMPDIR");
    int n = snprintf(a->rebuilt_dir, sizeof a->rebuilt_dir, "%s/kedge-audit-XXXXXX",
                     tmp && tmp[0] == '/' ? tmp : "/tmp");
    if (n < 0 || (size_t)n >= sizeof a->rebuilt_dir || !mkdtemp(a->rebuilt_dir)) {
        a->rebuilt_dir[0] = '\0';
        return kedge_diag_set(
            &a->diag, KEDGE_E_DISK_FULL,
            "no folder can be made for models that are made again; TMPDIR names another place");
    }
    int err = kedge_blobs_open(a->rebuilt_dir, &options, &a->rebuilt, &a->diag);
    if (!err) {
        kedge_blobs_lean_on(a->main.blobs, a->rebuilt);
    }
    return err;
}

static void set_unmade(struct kedgei_audit *a, const struct kedgei_job *job)
{
    for (uint32_t j = 0; j < a->job_count; j++) {
        a->jobs[j]->has_unmade = a->jobs[j]->has_unmade || a->jobs[j] == job;
    }
}

/* In the order of rounds, since each model starts from the one before, which may have been pruned as
 * well. One by one and not in parallel for the same reason. */
int kedgei_rebuild(struct kedgei_replay *r)
{
    struct kedgei_audit *a = r->a;
    int err = a->pruned.len > 0 ? open_scratch(a) : KEDGE_OK;
    for (size_t i = 0; i < r->count && a->rebuilt && !err; i++) {
        struct kedgei_decision d = r->items[i]; /* its result counts when it is replayed */
        struct kedgei_findings ignored = {.items = NULL};
        struct kedge_hash made;
        if (!is_intermediate(&d) || !kedge_pruned_has(kedge_buf_view(&a->pruned), &d.fact->subject)
            || kedge_blobs_find(a->main.blobs, &d.fact->subject, NULL) == KEDGE_OK) {
            continue;
        }
        if (d.erased > 0) { /* given up first, and then its updates were erased: nobody makes it again */
            set_unmade(a, d.job);
            continue;
        }
        err = kedge_blob_writer_open(a->rebuilt, 0, &r->writer, &a->diag);
        if (err) {
            break;
        }
        kedgei_replay_close(r, &d, 1, true, &ignored); /* what is wrong with it, the replay says */
        err = ignored.nomem ? KEDGE_E_NOMEM : KEDGE_OK;
        if (err || ignored.errors > 0) {
            kedge_blob_writer_abort(r->writer);
        } else {
            err = kedge_blob_writer_finish(r->writer, &made, NULL, &a->diag);
            a->counts.rebuilt += !err && kedge_hash_eq(&made, &d.fact->subject);
        }
        r->writer = NULL;
        kedgei_findings_deinit(&ignored);
    }
    return err;
}

/* Counted with the erased ones: what is lacking is an input that was erased by order. */
void kedgei_tell_unmade(struct kedgei_replay *r)
{
    struct kedgei_audit *a = r->a;
    uint64_t count = 0;
    for (size_t i = 0; i < r->count; i++) {
        struct kedgei_decision *d = &r->items[i];
        if (d->lacks_model) {
            memset(&d->result, 0, sizeof d->result);
            count++;
        }
    }
    a->counts.decisions_erased += count;
    if (count > 0) {
        kedgei_find(&a->findings, KEDGE_AUDIT_NOTE, KEDGE_AUDIT_ERASED, a->main.name,
                    "not replayed: %llu decisions over models that were pruned and cannot be made again, for "
                    "updates that they were made of are erased since",
                    (unsigned long long)count);
    }
}

void kedgei_rebuild_end(struct kedgei_audit *a)
{
    if (a->rebuilt) {
        kedge_blobs_lean_on(a->main.blobs, NULL);
        kedge_blobs_close(a->rebuilt);
        a->rebuilt = NULL;
    }
    if (a->rebuilt_dir[0]) {
        (void)!kedge_dir_remove(a->rebuilt_dir);
        a->rebuilt_dir[0] = '\0';
    }
    kedge_buf_deinit(&a->pruned);
}
