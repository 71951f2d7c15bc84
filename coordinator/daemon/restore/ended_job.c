/* An ended job takes no memory. What is asked of it (its state, models, rounds) is read from its
 * record in coordinator.lmdb and from the main chain whenever somebody asks, however long ago it
 * ended. */
#include "coordinator/daemon/restore/ended_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/restore/restore_walk.h"

/* ---- records ---- */

struct record_page {
    struct kedge_job_record *ret;
    size_t most, count;
    struct kedge_diag *d;
};
enum { STOP = 1 }; /* ends a scan */

/* One more than is wanted is read: whether there is another page, and with which name it begins. */
static int take_record(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct record_page *p = arg;
    KEDGE_TRY(kedge_job_record_decode(key, value, &p->ret[p->count], p->d));
    return p->count++ < p->most ? KEDGE_OK : STOP;
}

int kedge_job_records_page(struct kedge_host *h, const char *prefix, const struct kedge_id *from, size_t most,
                           struct kedge_job_record *ret, size_t *ret_count, bool *ret_more,
                           struct kedge_diag *d)
{
    struct record_page page = {.ret = ret, .most = most, .d = d};
    struct kedge_kv_tx *tx;
    KEDGE_TRY(kedge_kv_begin(h->kv, false, &tx, d));
    int err =
        kedge_kv_scan(tx, KEDGE_KV_JOB, kedge_view_str(prefix), kedge_view_str(from->s), take_record, &page);
    kedge_kv_abort(tx);
    if (err && err != STOP) {
        return d->text[0] ? err
                          : kedge_diag_set(d, err, "coordinator.lmdb: cannot read the jobs: %s",
                                           kedge_strerror(err));
    }
    *ret_more = err == STOP;
    *ret_count = page.count - (err == STOP);
    return KEDGE_OK;
}

int kedge_job_record_get(struct kedge_host *h, const struct kedge_id *name, struct kedge_job_record *ret,
                         struct kedge_diag *d)
{
    struct kedge_view key = kedge_view_str(name->s), text;
    struct kedge_kv_tx *tx KEDGE_CLEANUP(kedge_kv_drop) = NULL;
    KEDGE_TRY(kedge_kv_begin(h->kv, false, &tx, d));
    KEDGE_TRY(kedge_kv_peek(tx, KEDGE_KV_JOB, key, &text));
    return kedge_job_record_decode(key, text, ret, d);
}

/* ---- what the main chain says ---- */

static int find_closed(struct kedge_host *h, const struct kedge_id *name, uint64_t *ret_index)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    snprintf(key, sizeof key, "job-closed/%s", name->s);
    return kedge_ledger_find(h->main.ledger, kedge_view_str(key), ret_index);
}

bool kedge_ended_job_is_opened(struct kedge_host *h, const struct kedge_id *name, uint64_t *ret_index)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    snprintf(key, sizeof key, "job-opened/%s", name->s);
    return kedge_ledger_find(h->main.ledger, kedge_view_str(key), ret_index) == KEDGE_OK;
}

/* A job that was cancelled before it was opened stands in no chain, only in its record; its name is
 * taken all the same. */
bool kedge_ended_job_is_known(struct kedge_host *h, const struct kedge_id *name)
{
    struct kedge_job_record r;
    struct kedge_diag d;
    return kedge_ended_job_is_closed(h, name)
           || (kedge_job_record_get(h, name, &r, &d) == KEDGE_OK && r.state >= KEDGE_JOB_COMPLETED);
}

bool kedge_ended_job_is_closed(struct kedge_host *h, const struct kedge_id *name)
{
    uint64_t index;
    return find_closed(h, name, &index) == KEDGE_OK;
}

/* The spec is found by the digest in the record, and its name must be the record's: a record that
 * was swapped for another job's is noticed. */
int kedge_job_record_spec(struct kedge_host *h, const struct kedge_job_record *record,
                          struct kedge_job_spec **ret, struct kedge_diag *d)
{
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    int err = spec ? kedge_blobs_read(h->main.blobs, &record->spec, &text, d) : KEDGE_E_NOMEM;
    if (!err) {
        err = kedge_job_spec_parse(kedge_buf_view(&text), spec, d);
    }
    if (!err && !kedge_id_eq(&record->job, &spec->name)) {
        err = kedge_diag_set(d, KEDGE_E_CORRUPT,
                             "coordinator.lmdb: table job, key \"%s\": its spec is that of job \"%s\"",
                             record->job.s, spec->name.s);
    }
    if (err) {
        kedge_mem_free(spec);
        return err == KEDGE_E_NOT_FOUND ? KEDGE_E_CORRUPT : err;
    }
    *ret = spec;
    return KEDGE_OK;
}

/* The outcome is the one that the main chain states, not the one in the record: the record may be
 * older, from before the crash that came after job-closed. */
int kedge_ended_job_read(struct kedge_host *h, const struct kedge_job_record *record,
                         struct kedge_ended_job *ret, struct kedge_diag *d)
{
    uint64_t index;
    int err = find_closed(h, &record->job, &index);
    bool closed = !err;
    if (err == KEDGE_E_NOT_FOUND && record->state >= KEDGE_JOB_COMPLETED) { /* it was never opened */
        err = KEDGE_OK;
    }
    if (err) {
        return err;
    }
    struct kedge_ended_job job = {.record = *record, .unopened = !closed};
    struct kedge_walk w = {.h = h, .d = d, .st = kedge_mem_new(1, sizeof *w.st)};
    err = w.st ? KEDGE_OK : KEDGE_E_NOMEM;
    err = err || !closed ? err : kedge_walk_read(&w, h->main.ledger, index, KEDGE_ST_JOB_CLOSED);
    if (!err && closed) {
        const struct kedge_st_job_closed *c = &w.st->u.job_closed;
        job.round = c->rounds;
        job.ended_ms = c->time_ms;
        job.record.state = c->outcome == KEDGE_OUTCOME_COMPLETED   ? KEDGE_JOB_COMPLETED
                           : c->outcome == KEDGE_OUTCOME_CANCELLED ? KEDGE_JOB_CANCELLED
                                                                   : KEDGE_JOB_FAILED;
        memcpy(job.reason, c->reason, sizeof job.reason);
    }
    kedge_mem_free(w.st);
    if (err) {
        return err;
    }
    KEDGE_TRY(kedge_job_record_spec(h, record, &job.spec, d));
    *ret = job;
    return KEDGE_OK;
}

int kedge_ended_job_find(struct kedge_host *h, const struct kedge_id *name, struct kedge_ended_job *ret,
                         struct kedge_diag *d)
{
    struct kedge_job_record record;
    KEDGE_TRY(kedge_job_record_get(h, name, &record, d));
    return kedge_ended_job_read(h, &record, ret, d);
}

static int put_end(struct kedge_host *h, struct kedge_kv_tx *tx, const struct kedge_job_record *record,
                   const struct kedge_ended_job *job, struct kedge_diag *d)
{
    const int reason = kedge_job_reason_of(job->reason);
    const bool is_cancelled = job->record.state == KEDGE_JOB_CANCELLED;
    const struct kedge_job_move move = {.to = job->record.state,
                                        .reason = job->record.state == KEDGE_JOB_FAILED ? reason : KEDGE_OK,
                                        .cause = is_cancelled ? KEDGE_CAUSE_USER : kedge_job_cause_of(reason),
                                        .ms = job->ended_ms,
                                        .actor = "coordinator"};
    struct kedge_job_record ended = job->record;
    struct kedge_job_moves moves;
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_RECORD_MAX);
    ended.reason = move.reason;
    KEDGE_TRY(kedge_job_moves_load(tx, record, job->ended_ms, &moves, d));
    if (!kedge_job_moves_lead(&moves, &move)) {
        return kedge_diag_set(d, KEDGE_E_CORRUPT, "coordinator.lmdb: job %s was %s, and has ended as %s",
                              record->job.s, kedge_job_state_name(record->state),
                              kedge_job_state_name(move.to));
    }
    KEDGE_TRY(kedge_job_moves_put(tx, &record->job, h->epoch, &moves, d));
    KEDGE_TRY(kedge_job_record_encode(&ended, &text));
    return kedge_kv_put(tx, KEDGE_KV_JOB, kedge_view_str(record->job.s), kedge_buf_view(&text), KEDGE_KV_PUT);
}

/* A full disk keeps nobody from starting: the next start settles it. */
int kedge_ended_job_settle(struct kedge_host *h, const struct kedge_job_record *record, struct kedge_diag *d)
{
    struct kedge_ended_job job;
    struct kedge_kv_tx *tx;
    KEDGE_TRY(kedge_ended_job_read(h, record, &job, d));
    int err = kedge_kv_begin(h->kv, true, &tx, d);
    if (!err) {
        err = kedge_kv_end(tx, put_end(h, tx, record, &job, d), d);
    }
    kedge_ended_job_deinit(&job);
    return err == KEDGE_E_DISK_FULL ? KEDGE_OK : err;
}

void kedge_ended_job_deinit(struct kedge_ended_job *job)
{
    kedge_mem_free(job->spec);
    job->spec = NULL;
}

/* ---- models ---- */

static int read_named(struct kedge_walk *w, const char *key, enum kedge_statement_kind kind)
{
    uint64_t index;
    KEDGE_TRY(kedge_ledger_find(w->h->main.ledger, kedge_view_str(key), &index));
    return kedge_walk_read(w, w->h->main.ledger, index, kind);
}

/* Of the step of that round. KEDGE_E_NOT_FOUND. */
static int models_of_step(struct kedge_walk *w, const struct kedge_id *job, uint32_t round,
                          struct kedge_hash *ret, uint32_t *ret_count)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    *ret_count = 0;
    snprintf(key, sizeof key, "step/%s/%08" PRIu32, job->s, round);
    KEDGE_TRY(read_named(w, key, KEDGE_ST_STEP));
    for (uint32_t g = 0; g < w->st->u.step.group_count; g++) {
        ret[g] = w->st->u.step.groups[g].after;
    }
    *ret_count = w->st->u.step.group_count;
    return KEDGE_OK;
}

static int models_at_start(struct kedge_walk *w, const struct kedge_ended_job *job, struct kedge_hash *ret,
                           uint32_t *ret_count)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    *ret_count = 0;
    snprintf(key, sizeof key, "job-opened/%s", job->record.job.s);
    int err = read_named(w, key, KEDGE_ST_JOB_OPENED);
    if (err) { /* not found: it was cancelled before it was opened */
        return err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
    }
    const struct kedge_st_job_opened *o = &w->st->u.job_opened;
    *ret_count = kedge_job_spec_models(job->spec);
    for (uint32_t g = 0; g < *ret_count; g++) {
        ret[g] = g > 0 && g - 1 < o->first_model_count ? o->first_models[g - 1].model : o->initial_model;
    }
    return KEDGE_OK;
}

/* job-closed says the last round. If that one was still open its models do not exist, so the step
 * before it is asked, and without any step the models that the job began with. */
int kedge_ended_job_models(struct kedge_host *h, const struct kedge_ended_job *job, struct kedge_hash *ret,
                           uint32_t *ret_count, struct kedge_diag *d)
{
    struct kedge_walk w = {.h = h, .d = d, .st = kedge_mem_new(1, sizeof *w.st)};
    int err = w.st ? models_of_step(&w, &job->record.job, job->round, ret, ret_count) : KEDGE_E_NOMEM;
    if (err == KEDGE_E_NOT_FOUND && job->round > 0) { /* it ended while this round was open */
        err = models_of_step(&w, &job->record.job, job->round - 1, ret, ret_count);
    }
    err = err == KEDGE_E_NOT_FOUND ? models_at_start(&w, job, ret, ret_count) : err;
    kedge_mem_free(w.st);
    return err;
}

int kedge_job_tested_read(struct kedge_host *h, const struct kedge_id *job, struct kedge_job_test *ret,
                          struct kedge_diag *d)
{
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    struct kedge_walk w = {.h = h, .d = d, .st = st};
    *ret = (struct kedge_job_test){.round = 0};
    KEDGE_TRY_MEM(st);
    KEDGE_TRY(kedge_walk_last(&w, h->main.ledger, "round-tested", job->s));
    if (w.found) {
        KEDGE_TRY(kedge_walk_read(&w, h->main.ledger, w.last_index, KEDGE_ST_ROUND_TESTED));
        const struct kedge_st_round_tested *t = &st->u.round_tested;
        *ret = (struct kedge_job_test){
            .round = t->round, .tier = t->tier, .held = {.times = {t->held, t->held_last}}};
    }
    return KEDGE_OK;
}
