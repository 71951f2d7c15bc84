/* What a tenant's reader may see of the main chain: the policy, its own checkpoints, statements of
 * jobs that name its tenant, and blobs that these refer to.
 *
 * Judging an entry means decoding a statement, and readers fetch the chain again and again. Entries
 * never change and neither does the judgement, so answers are remembered: a bit for each entry of a
 * bundle, and whether a job names a tenant. Both tables have a fixed size; a place that is taken by
 * another simply loses what it knew.
 *
 * Statements of the main chain are the coordinator's own, so they are decoded here without being
 * verified again: an entry that says what it should not is for the audit, and at worst withheld. */
#include "coordinator/daemon/web/main_view.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/log/dsse.h"
#include "chain/log/tile.h"
#include "chain/statement/statement.h"
#include "common/base/mem.h"
#include "common/base/try.h"

enum { BUNDLES = 512, JOBS = 256, KEY_MAX = KEDGE_ID_MAX + 16 };

/* Answers for one viewer and one bundle of the chain: those for its first `known` entries. */
struct bundle {
    struct kedge_hash viewer;
    uint64_t index;
    uint16_t known;
    uint8_t may[KEDGE_TILE_WIDTH / 8];
};

/* Whether a job names a viewer. */
struct membership {
    struct kedge_hash viewer;
    struct kedge_id job;
    bool known, yes;
};

struct kedge_main_view {
    struct kedge_ledger *main;
    pthread_mutex_t mutex;
    struct bundle bundles[BUNDLES];
    struct membership jobs[JOBS];
};

int kedge_main_view_new(struct kedge_ledger *main, struct kedge_main_view **ret)
{
    struct kedge_main_view *v = kedge_mem_new(1, sizeof *v);
    if (!v) {
        return KEDGE_E_NOMEM;
    }
    v->main = main;
    pthread_mutex_init(&v->mutex, NULL);
    *ret = v;
    return KEDGE_OK;
}

void kedge_main_view_free(struct kedge_main_view *v)
{
    if (v) {
        pthread_mutex_destroy(&v->mutex);
        kedge_mem_free(v);
    }
}

/* ---- jobs ---- */

static int open_statement(struct kedge_view envelope, struct kedge_statement *ret)
{
    struct kedge_dsse_entry signatures[KEDGE_DSSE_SIGNATURES_MAX];
    struct kedge_buf payload KEDGE_CLEANUP(kedge_buf_deinit);
    uint32_t count;
    kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
    KEDGE_TRY(kedge_dsse_decode_all(envelope, &payload, signatures, &count));
    return kedge_statement_decode(kedge_buf_view(&payload), ret, NULL);
}

/* The job-opened of a job; KEDGE_E_NOT_FOUND. */
static int read_job_opened(struct kedge_main_view *v, const struct kedge_id *job, struct kedge_statement *ret)
{
    char key[KEY_MAX];
    uint64_t index;
    struct kedge_buf entry KEDGE_CLEANUP(kedge_buf_deinit);
    snprintf(key, sizeof key, "job-opened/%s", job->s);
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    KEDGE_TRY(kedge_ledger_find(v->main, kedge_view_str(key), &index));
    KEDGE_TRY(kedge_ledger_get(v->main, index, &entry));
    KEDGE_TRY(open_statement(kedge_buf_view(&entry), ret));
    const bool is_it = ret->kind == KEDGE_ST_JOB_OPENED && kedge_id_eq(&ret->u.job_opened.job, job);
    return is_it ? KEDGE_OK : KEDGE_E_CORRUPT;
}

static bool names_viewer(const struct kedge_st_job_opened *st, const struct kedge_hash *viewer)
{
    bool yes = false;
    for (uint32_t i = 0; i < st->tenant_count; i++) {
        yes = yes || kedge_hash_eq(&st->tenants[i], viewer);
    }
    return yes;
}

/* By a hash over tenant and job, so that jobs of one tenant do not all fall into one place. */
static struct membership *membership_slot(struct kedge_main_view *v, const struct kedge_hash *viewer,
                                          const struct kedge_id *job)
{
    struct kedge_hash h;
    kedge_sha256_2(kedge_view_of(viewer->b, sizeof viewer->b), kedge_view_str(job->s), &h);
    return &v->jobs[(h.b[0] << 8 | h.b[1]) % JOBS];
}

/* The mutex is held for a look and for an entry, never while the ledger is read: workers of other
 * readers go on. Two that judge the same thing at once come to the same answer. */
static int is_member(struct kedge_main_view *v, const struct kedge_main_viewer *viewer,
                     const struct kedge_id *job, bool *ret)
{
    struct membership *m = membership_slot(v, viewer->salted, job);
    pthread_mutex_lock(&v->mutex);
    bool known = m->known && kedge_hash_eq(&m->viewer, viewer->salted) && kedge_id_eq(&m->job, job);
    bool yes = known && m->yes;
    pthread_mutex_unlock(&v->mutex);
    if (known) {
        *ret = yes;
        return KEDGE_OK;
    }
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    int err = st ? read_job_opened(v, job, st) : KEDGE_E_NOMEM;
    if (!err || err == KEDGE_E_NOT_FOUND) {
        yes = !err && names_viewer(&st->u.job_opened, viewer->salted);
        pthread_mutex_lock(&v->mutex);
        *m = (struct membership){.viewer = *viewer->salted, .job = *job, .known = !err, .yes = yes};
        pthread_mutex_unlock(&v->mutex);
        *ret = yes;
        err = KEDGE_OK;
    }
    kedge_mem_free(st);
    return err;
}

/* ---- entries ---- */

/* The job that a statement of the main chain belongs to; NULL: it is of no job, or of a kind that is not
 * known here, which nobody but auditors reads then. */
static const struct kedge_id *job_of(const struct kedge_statement *st)
{
    switch ((int)st->kind) {
    case KEDGE_ST_JOB_ADMITTED:
    case KEDGE_ST_JOB_REFUSED:
        return &st->u.job_admission.job;
    case KEDGE_ST_ROUND_OPENED:
        return &st->u.round_opened.job;
    case KEDGE_ST_AGGREGATE:
        return &st->u.aggregate.job;
    case KEDGE_ST_STEP:
        return &st->u.step.job;
    case KEDGE_ST_ROUND_TESTED:
        return &st->u.round_tested.job;
    case KEDGE_ST_RELEASE:
        return &st->u.release.job;
    case KEDGE_ST_JOB_CLOSED:
        return &st->u.job_closed.job;
    default:
        return NULL;
    }
}

/* A name that was refused may be another job's today: its tenants read the refusals of its own spec. Of a job
 * that was never opened nobody but auditors reads anything. */
static int is_of_its_spec(struct kedge_main_view *v, const struct kedge_statement *refused, bool *io)
{
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    KEDGE_TRY_MEM(st);
    KEDGE_TRY(read_job_opened(v, &refused->u.job_admission.job, st));
    *io = kedge_hash_eq(&st->subject, &refused->subject);
    return KEDGE_OK;
}

static int judge_statement(struct kedge_main_view *v, const struct kedge_main_viewer *viewer,
                           struct kedge_view envelope, bool *ret)
{
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    int err = st ? open_statement(envelope, st) : KEDGE_E_NOMEM;
    if (err == KEDGE_OK) {
        const struct kedge_id *job = job_of(st);
        *ret = st->kind == KEDGE_ST_POLICY || st->kind == KEDGE_ST_STATEMENT_KEY_ROTATED
               || st->kind == KEDGE_ST_POLICY_CHANGED
               || (st->kind == KEDGE_ST_QUOTA_SET && kedge_hash_eq(&st->u.quota_set.id, viewer->salted))
               || (st->kind == KEDGE_ST_JOB_OPENED && names_viewer(&st->u.job_opened, viewer->salted));
        err = job ? is_member(v, viewer, job, ret) : KEDGE_OK;
        err = !err && *ret && st->kind == KEDGE_ST_JOB_REFUSED ? is_of_its_spec(v, st, ret) : err;
    } else if (err != KEDGE_E_NOMEM) {
        *ret = false; /* not a statement that we know */
        err = KEDGE_OK;
    }
    kedge_mem_free(st);
    return err;
}

/* The note's first line is its log's origin. */
static bool is_of_log(struct kedge_view note, const char *origin)
{
    size_t len = strlen(origin);
    return note.len > len && memcmp(note.ptr, origin, len) == 0 && note.ptr[len] == '\n';
}

/* A kind that this program does not know is withheld: what it tells cannot be judged. */
static int judge(struct kedge_main_view *v, const struct kedge_main_viewer *viewer, struct kedge_view bytes,
                 bool *ret)
{
    struct kedge_main_entry entry;
    if (kedge_main_entry_decode(bytes, &entry) != KEDGE_OK) {
        *ret = false;
        return KEDGE_OK;
    }
    if (entry.kind == KEDGE_MAIN_CHECKPOINT) {
        *ret = is_of_log(entry.body, viewer->origin);
        return KEDGE_OK;
    }
    return judge_statement(v, viewer, entry.body, ret);
}

static struct bundle *bundle_slot(struct kedge_main_view *v, const struct kedge_hash *viewer, uint64_t bundle)
{
    uint64_t spread = ((uint64_t)viewer->b[0] << 8 | viewer->b[1]) + bundle;
    return &v->bundles[spread % BUNDLES];
}

/* Bits are added in order and without gaps, as bundles are read. `known` says how far they go, so a
 * bundle that is still growing goes on where it stopped. */
int kedge_main_view_entry(struct kedge_main_view *v, const struct kedge_main_viewer *viewer, uint64_t index,
                          struct kedge_view entry, bool *ret_may)
{
    uint64_t number = index / KEDGE_TILE_WIDTH;
    unsigned at = (unsigned)(index % KEDGE_TILE_WIDTH), bit = 1u << (at % 8);
    struct bundle *b = bundle_slot(v, viewer->salted, number);
    pthread_mutex_lock(&v->mutex);
    bool same = b->known > 0 && b->index == number && kedge_hash_eq(&b->viewer, viewer->salted);
    bool known = same && at < b->known, may = known && (b->may[at / 8] & bit) != 0;
    pthread_mutex_unlock(&v->mutex);
    if (known) {
        *ret_may = may;
        return KEDGE_OK;
    }
    KEDGE_TRY(judge(v, viewer, entry, &may));
    pthread_mutex_lock(&v->mutex);
    same = b->known > 0 && b->index == number && kedge_hash_eq(&b->viewer, viewer->salted);
    if (at == 0 && !same) {
        *b = (struct bundle){.viewer = *viewer->salted, .index = number};
        same = true;
    }
    if (same && b->known == at) { /* in order, without gaps */
        b->may[at / 8] = (uint8_t)(b->may[at / 8] | (may ? bit : 0));
        b->known++;
    }
    pthread_mutex_unlock(&v->mutex);
    *ret_may = may;
    return KEDGE_OK;
}

/* ---- blobs ---- */

struct search {
    struct kedge_main_view *v;
    const struct kedge_main_viewer *viewer;
    const struct kedge_hash *digest;
    struct kedge_statement *st;
    bool found;
    int err;
};

static bool is_first_model(const struct kedge_st_job_opened *o, const struct kedge_hash *digest)
{
    bool found = kedge_hash_eq(&o->initial_model, digest)
                 || (!kedge_hash_is_zero(&o->base_model) && kedge_hash_eq(&o->base_model, digest));
    for (uint32_t i = 0; i < o->first_model_count && !found; i++) {
        found = kedge_hash_eq(&o->first_models[i].model, digest);
    }
    return found;
}

static int look_into_job(void *arg, struct kedge_view key, uint64_t index)
{
    struct search *s = arg;
    struct kedge_id job;
    size_t start = sizeof "job-joined/" - 1;
    (void)index;
    if (key.len <= start
        || kedge_id_from(kedge_view_of(key.ptr + start, key.len - start), &job) != KEDGE_OK) {
        return 0;
    }
    int err = read_job_opened(s->v, &job, s->st);
    if (err == KEDGE_E_NOT_FOUND) {
        return 0; /* joined, and not opened yet */
    }
    s->err = err;
    s->found =
        !err && names_viewer(&s->st->u.job_opened, s->viewer->salted)
        && (kedge_hash_eq(&s->st->subject, s->digest) || is_first_model(&s->st->u.job_opened, s->digest));
    return err || s->found ? 1 : 0;
}

/* The same spec or first model may belong to several jobs, and the store knows the first reference only. */
static int is_of_joined_job(struct kedge_main_view *v, const struct kedge_main_viewer *viewer,
                            const struct kedge_hash *digest, bool *ret)
{
    struct search s = {.v = v, .viewer = viewer, .digest = digest, .st = kedge_mem_new(1, sizeof *s.st)};
    if (!s.st) {
        return KEDGE_E_NOMEM;
    }
    int err = kedge_ledger_scan_keys(viewer->own, kedge_view_str("job-joined/"), look_into_job, &s);
    err = s.err ? s.err : err == 1 ? KEDGE_OK : err;
    kedge_mem_free(s.st);
    if (!err) {
        *ret = s.found;
    }
    return err;
}

/* The ledger knows the first entry that refers to a blob. If that one is of a job of others, the
 * same file may still be the spec or first model of a job of this tenant, so its own jobs are
 * looked through. */
int kedge_main_view_blob(struct kedge_main_view *v, const struct kedge_main_viewer *viewer,
                         const struct kedge_hash *digest, bool *ret_may)
{
    uint64_t index;
    struct kedge_buf entry KEDGE_CLEANUP(kedge_buf_deinit);
    bool may = false;
    kedge_buf_init(&entry, KEDGE_ENTRY_MAX);
    int err = kedge_ledger_find_ref(v->main, digest, &index);
    if (err == KEDGE_E_NOT_FOUND) {
        *ret_may = false;
        return KEDGE_OK;
    }
    KEDGE_TRY(err);
    KEDGE_TRY(kedge_ledger_get(v->main, index, &entry));
    KEDGE_TRY(judge(v, viewer, kedge_buf_view(&entry), &may));
    KEDGE_TRY(may ? KEDGE_OK : is_of_joined_job(v, viewer, digest, &may));
    *ret_may = may;
    return KEDGE_OK;
}
