/* The table of jobs and their records in coordinator.lmdb. What decides a job's models is in the main
 * chain; the record holds only what is not: its token, and whether the operator halted it.
 *
 * A record is written only over the state that this process wrote last. Another one means that a second
 * coordinator or an old copy of the store is at work; then this one stops. */
#include <stdio.h>
#include <string.h>

#include "aggregation/quantise.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "common/tensor/safetensors.h"
#include "coordinator/daemon/events/events.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/records.h"
#include "coordinator/daemon/rounds/main_batch.h"
#include "coordinator/daemon/rounds/rounds.h"
#include "coordinator/daemon/sites/refusals.h"
#include "round/close/params.h"

#define STORE_AGAIN_NS UINT64_C(1000000000)

/* Sizes of files and the largest quantised value follow from the spec alone. They are computed
 * once, because every piece of every upload is checked against them. */
static int set_sizes(struct kedge_job *job, struct kedge_diag *d)
{
    int err = kedge_job_spec_layout(&job->spec, &job->layout, d);
    if (!err) {
        job->model_len = kedge_safetensors_file_len(&job->layout, KEDGE_DTYPE_F32);
        err = kedge_job_spec_update_layout(&job->spec, &job->layout, &job->update_layout, d);
    }
    if (!err) {
        job->update_len = kedge_safetensors_file_len(&job->update_layout, KEDGE_DTYPE_I32);
        err = kedge_scale_limit(job->spec.bound, job->spec.scale, &job->limit);
    }
    const bool has_base = kedge_job_spec_has_base(&job->spec);
    if (!err && (has_base || kedge_job_spec_has_control(&job->spec))) {
        struct kedge_layout beside;
        KEDGE_TRY(has_base ? kedge_job_spec_whole_layout(&job->spec, &beside, d)
                           : kedge_job_spec_control_layout(&job->layout, &beside, d));
        job->control_len = kedge_safetensors_file_len(&beside, KEDGE_DTYPE_F32);
        kedge_layout_deinit(&beside);
    }
    return err;
}

static int set_params(struct kedge_host *h, struct kedge_job *job, struct kedge_diag *d)
{
    uint32_t tenants[KEDGE_SPEC_TENANTS_MAX];
    for (uint32_t i = 0; i < job->spec.tenant_count; i++) {
        tenants[i] = kedge_host_tenant_find(h, &job->spec.tenants[i]);
        if (tenants[i] == KEDGE_COORD_NONE) {
            return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "job spec: \"tenants\": no tenant \"%s\" here",
                                  job->spec.tenants[i].s);
        }
    }
    kedge_close_params(&job->spec, tenants, &job->params);
    job->params.turn_weight = job->spec.target_count > 1 ? h->config.target_weight : 1;
    return KEDGE_OK;
}

/* The core has a clock of its own. One that has passed is none. */
void kedge_host_job_promise(struct kedge_job *job, uint64_t deadline_ms)
{
    const uint64_t now_ms = kedge_os_unix_ms();
    job->deadline_ms = deadline_ms;
    job->params.due_ns =
        deadline_ms > now_ms ? kedge_os_now_ns() + (deadline_ms - now_ms) * UINT64_C(1000000) : 0;
}

bool kedge_host_job_has_room(const struct kedge_host *h)
{
    bool has = false;
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX && !has; i++) {
        has = !h->jobs[i].used || kedge_host_job_has_ended(&h->jobs[i]);
    }
    return has;
}

/* A free slot, or that of the job which ended first: ended jobs stay visible as long as there is room. */
static struct kedge_job *slot_find(struct kedge_host *h)
{
    struct kedge_job *oldest = NULL;
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX; i++) {
        struct kedge_job *job = &h->jobs[i];
        if (!job->used) {
            return job;
        }
        /* Whether the core knows it says nothing: it does not know one that is being submitted or restored,
         * and forgets one that has ended only when its next event begins, which may be the submission. */
        if (kedge_host_job_has_ended(job) && (!oldest || job->created_ms < oldest->created_ms)) {
            oldest = job;
        }
    }
    if (oldest) {
        kedge_host_job_free(oldest);
    }
    return oldest;
}

static int read_spec(struct kedge_host *h, struct kedge_job *job, struct kedge_view spec_text,
                     struct kedge_diag *d)
{
    job->used = true;
    job->spec_len = (uint32_t)spec_text.len;
    kedge_sha256(spec_text, &job->spec_digest);
    job->state = KEDGE_JOB_PENDING;
    job->stored_state = -1;
    kedge_job_moves_begin(&job->moves);
    job->created_ms = kedge_os_unix_ms();
    KEDGE_TRY(kedge_job_spec_parse(spec_text, &job->spec, d));
    KEDGE_TRY(set_params(h, job, d));
    return set_sizes(job, d);
}

static int make_rows(struct kedge_job *job, struct kedge_diag *d)
{
    job->joined = kedge_mem_new(KEDGE_TENANTS_MAX, sizeof *job->joined);
    job->left = kedge_mem_new(KEDGE_TENANTS_MAX, sizeof *job->left);
    job->sites = kedge_mem_new(KEDGE_SITES_MAX, sizeof *job->sites);
    job->evaluations = kedge_mem_new(KEDGE_SITES_MAX, sizeof *job->evaluations);
    job->at.round = KEDGE_ROUND_NONE;
    uint64_t rounds = (uint64_t)job->spec.rounds + 1;
    job->history = kedge_history_rows_new(rounds < KEDGE_HISTORY_MAX ? (size_t)rounds : KEDGE_HISTORY_MAX,
                                          kedge_job_spec_groups_most(&job->spec));
    return job->joined && job->left && job->sites && job->evaluations && job->history
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for a job");
}

int kedge_host_job_make(struct kedge_host *h, struct kedge_view spec_text, struct kedge_job **ret,
                        struct kedge_diag *d)
{
    struct kedge_job *job = slot_find(h);
    if (!job) {
        return kedge_diag_set(d, KEDGE_E_FULL, "%d jobs are running, no more can be taken", KEDGE_JOBS_MAX);
    }
    *job = (struct kedge_job){.slot = (uint32_t)(job - h->jobs)};
    int err = read_spec(h, job, spec_text, d);
    err = err ? err : make_rows(job, d);
    if (err) {
        kedge_host_job_free(job);
        return err;
    }
    *ret = job;
    return KEDGE_OK;
}

int kedge_host_job_make_waiting(struct kedge_host *h, struct kedge_view spec_text, struct kedge_job **ret,
                                struct kedge_diag *d)
{
    struct kedge_job *job = kedge_mem_new(1, sizeof *job);
    KEDGE_TRY_MEM(job);
    job->slot = KEDGE_COORD_NONE;
    int err = read_spec(h, job, spec_text, d);
    if (err) {
        kedge_host_job_free(job);
        return err;
    }
    *ret = job;
    return KEDGE_OK;
}

void kedge_host_job_free(struct kedge_job *job)
{
    const uint32_t slot = job->slot;
    kedge_layout_deinit(&job->layout);
    kedge_layout_deinit(&job->update_layout);
    kedge_mem_free(job->joined);
    kedge_mem_free(job->left);
    kedge_mem_free(job->sites);
    kedge_mem_free(job->evaluations);
    kedge_mem_free(job->history);
    kedge_round_result_free(job->result);
    kedge_main_batch_free(job->batch);
    kedge_troubles_free(&job->troubles);
    if (slot == KEDGE_COORD_NONE) {
        kedge_mem_free(job);
        return;
    }
    *job = (struct kedge_job){.slot = slot};
}

/* -1 stands for "no record": the first write expects none, and a record that is there nevertheless
 * belongs to another job of that name. */
static int stored_state(struct kedge_kv_tx *tx, const struct kedge_job *job, int *ret_state,
                        struct kedge_diag *d)
{
    struct kedge_view key = kedge_view_str(job->spec.name.s), text;
    struct kedge_job_record r;
    int err = kedge_kv_peek(tx, KEDGE_KV_JOB, key, &text);
    if (err == KEDGE_E_NOT_FOUND) {
        *ret_state = -1;
        return KEDGE_OK;
    }
    err = err ? kedge_diag_set(d, err, "record of job %s: %s", job->spec.name.s, kedge_strerror(err))
              : kedge_job_record_decode(key, text, &r, d);
    *ret_state = err ? -1 : (int)r.state;
    return err;
}

static int put_record(struct kedge_kv_tx *tx, const struct kedge_job *job)
{
    struct kedge_job_record r = {.job = job->spec.name,
                                 .spec = job->spec_digest,
                                 .initial_model = job->initial_model,
                                 .state = job->state,
                                 .reason = job->reason,
                                 .created_ms = job->created_ms};
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    memcpy(r.token, job->token_hash, sizeof r.token);
    kedge_buf_init(&text, KEDGE_RECORD_MAX);
    KEDGE_TRY(kedge_job_record_encode(&r, &text));
    return kedge_kv_put(tx, KEDGE_KV_JOB, kedge_view_str(r.job.s), kedge_buf_view(&text), KEDGE_KV_PUT);
}

/* By which a submission that is repeated finds its job, however long ago that ended. */
static int put_token(struct kedge_kv_tx *tx, const struct kedge_job *job)
{
    struct kedge_buf key;
    kedge_buf_init(&key, KEDGE_RECORD_KEY_MAX);
    kedge_job_token_key(job->token_hash, &key);
    int err = key.err ? key.err
                      : kedge_kv_put(tx, KEDGE_KV_STATE, kedge_buf_view(&key),
                                     kedge_view_str(job->spec.name.s), KEDGE_KV_PUT);
    kedge_buf_deinit(&key);
    return err;
}

static int put_all(const struct kedge_host *h, struct kedge_kv_tx *tx, struct kedge_job *job,
                   struct kedge_diag *d)
{
    int now = -1;
    KEDGE_TRY(stored_state(tx, job, &now, d));
    if (now != job->stored_state) {
        return kedge_diag_set(d, KEDGE_E_EXISTS, "job %s: its record says state %d where %d was expected",
                              job->spec.name.s, now, job->stored_state);
    }
    KEDGE_TRY(put_record(tx, job));
    KEDGE_TRY(kedge_job_moves_put(tx, &job->spec.name, h->epoch, &job->moves, d));
    KEDGE_TRY(job->stored_state < 0 && job->token_hash[0] ? put_token(tx, job) : KEDGE_OK);
    /* the rounds of one that has ended are in the record now, with what they refused */
    return kedge_host_job_has_ended(job) ? kedge_host_refusals_drop(tx, &job->spec.name, KEDGE_COORD_NONE)
                                         : KEDGE_OK;
}

/* One transaction: the comparison with what was stored last, the new record with the moves that led to it,
 * the token at the first time, and at the end of the job the removal of its refusals. A crash leaves all of
 * it or nothing, so no refusal can come back for a job that has ended. */
int kedge_host_job_store(struct kedge_host *h, struct kedge_job *job, struct kedge_diag *d)
{
    struct kedge_kv_tx *tx;
    KEDGE_TRY(kedge_kv_begin(h->kv, true, &tx, d));
    int err = put_all(h, tx, job, d);
    if (err) {
        kedge_kv_abort(tx);
        return d->text[0] ? err
                          : kedge_diag_set(d, err, "coordinator.lmdb: record of job %s: %s", job->spec.name.s,
                                           kedge_strerror(err));
    }
    KEDGE_TRY(kedge_kv_commit(tx, d));
    job->stored_state = (int)job->state;
    kedge_host_event_job_moved(h, job);
    kedge_job_moves_settle(&job->moves);
    return KEDGE_OK;
}

static bool is_stored(const struct kedge_job *job)
{
    return job->stored_state == (int)job->state && job->moves.waiting_count == 0;
}

/* A full disk does not end the process: the state is also derivable from the main chain, and the job halts
 * for want of room anyway. Any other failure does: a record that says something else than this process
 * believes would be acted on at the next start. */
void kedge_host_job_keep(struct kedge_host *h, struct kedge_job *job)
{
    struct kedge_diag d = {.text = ""};
    int err = is_stored(job) ? KEDGE_OK : kedge_host_job_store(h, job, &d);
    if (err == KEDGE_E_DISK_FULL) {
        if (h->moves_due_ns == 0) {
            kedge_log(KEDGE_LOG_WARN, "job record", "%s", d.text);
        }
        h->moves_due_ns = kedge_os_now_ns() + STORE_AGAIN_NS;
    } else if (err) {
        kedge_host_fail(h, err, d.text);
    }
}

/* Where the disk was full: the record follows when there is room. The main chain knows what matters. */
void kedge_host_jobs_store_again(struct kedge_host *h, uint64_t now_ns)
{
    if (h->moves_due_ns == 0 || now_ns < h->moves_due_ns) {
        return;
    }
    h->moves_due_ns = 0;
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX; i++) {
        if (h->jobs[i].used && h->jobs[i].state != KEDGE_JOB_PENDING) {
            kedge_host_job_keep(h, &h->jobs[i]);
        }
    }
}

/* An operator halts, resumes, submits and cancels; all else that happens to the job meanwhile is its own. */
static const char *asked_by(const struct kedge_host *h, const struct kedge_job *job,
                            enum kedge_job_state from)
{
    const bool is_halt = job->state == KEDGE_JOB_HALTED;
    const bool is_asked =
        is_halt ? job->reason == KEDGE_OK : from == KEDGE_JOB_HALTED || from == KEDGE_JOB_PENDING;
    if (job->state == KEDGE_JOB_CANCELLED) {
        return job->cancelled_by;
    }
    return h->acting && h->acting_on == job && is_asked ? h->acting : "";
}

/* Who asked stands in the history where somebody did. */
bool kedge_host_job_move(struct kedge_host *h, struct kedge_job *job, enum kedge_job_state from)
{
    struct kedge_job_move move = {
        .from = from, .to = job->state, .reason = job->reason, .ms = kedge_os_unix_ms()};
    const char *asked = asked_by(h, job, from);
    move.cause =
        asked[0] || job->state == KEDGE_JOB_CANCELLED ? KEDGE_CAUSE_USER : kedge_job_cause_of(job->reason);
    snprintf(move.actor, sizeof move.actor, "%s", asked[0] ? asked : "coordinator");
    const enum kedge_job_move_outcome outcome = kedge_job_moves_take(&job->moves, &move);
    if (outcome == KEDGE_JOB_MOVE_TAKEN || outcome == KEDGE_JOB_MOVE_REPEATED) {
        return true;
    }
    kedge_log(KEDGE_LOG_ERROR, "move refused", "job=%s %s -> %s: %s", job->spec.name.s,
              kedge_job_state_name(from), kedge_job_state_name(job->state),
              outcome == KEDGE_JOB_MOVE_ILLEGAL ? "its history ends elsewhere, or there is no such way"
                                                : "too many moves wait for room on the disk");
    return false;
}
