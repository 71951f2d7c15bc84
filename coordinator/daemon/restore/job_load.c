#include "coordinator/daemon/restore/job_load.h"

#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/rounds/first_models.h"
#include "coordinator/daemon/rounds/promised.h"

/* ---- from the record ---- */

void kedge_job_load_record(struct kedge_job *job, const struct kedge_job_record *record)
{
    job->spec.name = record->job;
    job->spec_digest = record->spec;
    job->initial_model = record->initial_model;
    job->state = record->state;
    job->stored_state = (int)record->state;
    job->reason = record->reason;
    job->created_ms = record->created_ms;
    memcpy(job->token_hash, record->token, sizeof job->token_hash);
}

static int read_job(struct kedge_host *h, const struct kedge_job_record *record, struct kedge_job **ret,
                    struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    KEDGE_TRY(kedge_blobs_read(h->main.blobs, &record->spec, &text, d));
    return kedge_host_job_make(h, kedge_buf_view(&text), ret, d);
}

/* What it was promised, if it has a deadline. */
static int load_promise(struct kedge_host *h, struct kedge_job *job, struct kedge_diag *d)
{
    bool is_found = false;
    if (job->spec.deadline_s == 0) {
        return KEDGE_OK;
    }
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    KEDGE_TRY_MEM(st);
    KEDGE_TRY(kedge_promised_find(h->main.ledger, &job->spec.name, &job->spec_digest, st, &is_found, d));
    if (!is_found) {
        return kedge_diag_set(d, KEDGE_E_CORRUPT,
                              "job %s has a deadline, and the main chain does not say that it was admitted",
                              job->spec.name.s);
    }
    kedge_host_job_promise(job, st->u.job_admission.deadline_ms);
    return KEDGE_OK;
}

int kedge_job_load(struct kedge_host *h, const struct kedge_job_record *record, struct kedge_job **ret,
                   struct kedge_diag *d)
{
    struct kedge_job *job;
    int err = read_job(h, record, &job, d);
    if (err) {
        return kedge_diag_wrap(d, err, "coordinator.lmdb: table job, key \"%s\"", record->job.s);
    }
    if (!kedge_id_eq(&record->job, &job->spec.name)) {
        err = kedge_diag_set(d, KEDGE_E_CORRUPT,
                             "coordinator.lmdb: table job, key \"%s\": its spec is that of job \"%s\"",
                             record->job.s, job->spec.name.s);
        kedge_host_job_free(job);
        return err;
    }
    kedge_job_load_record(job, record);
    err = load_promise(h, job, d);
    if (err) {
        kedge_host_job_free(job);
        return err;
    }
    *ret = job;
    return KEDGE_OK;
}

int kedge_job_load_moves(struct kedge_host *h, struct kedge_job *job, const struct kedge_job_record *record,
                         enum kedge_job_state to, struct kedge_diag *d)
{
    struct kedge_kv_tx *tx KEDGE_CLEANUP(kedge_kv_drop) = NULL;
    KEDGE_TRY(kedge_kv_begin(h->kv, false, &tx, d));
    KEDGE_TRY(kedge_job_moves_load(tx, record, kedge_os_unix_ms(), &job->moves, d));
    const struct kedge_job_move move = {.to = to, .ms = kedge_os_unix_ms(), .actor = "coordinator"};
    if (to == job->state) {
        return KEDGE_OK;
    }
    if (!kedge_job_moves_lead(&job->moves, &move)) {
        return kedge_diag_set(d, KEDGE_E_CORRUPT,
                              "coordinator.lmdb: job %s is %s, where the main chain says that it is %s",
                              job->spec.name.s, kedge_job_state_name(job->state), kedge_job_state_name(to));
    }
    job->state = to;
    job->reason = KEDGE_OK;
    return KEDGE_OK;
}

/* ---- to the core ---- */

/* By the wall clock: the time for which nothing ran counts, too. enrol_within is a promise to
 * people, and to them a coordinator that was switched off was waiting as well. */
static uint64_t waited_ns(const struct kedge_job *job)
{
    uint64_t now_ms = kedge_os_unix_ms();
    return now_ms > job->created_ms ? (now_ms - job->created_ms) * 1000000u : 0;
}

/* Where the tenant stands, by its own ledger. */
static void tell_member(struct kedge_host *h, struct kedge_job *job, uint32_t tenant)
{
    struct kedge_ledger *ledger = h->tenants[tenant].log.ledger;
    struct kedge_coord_event ev = {.type = KEDGE_EV_JOB_JOINED, .job = job->slot, .tenant = tenant};
    char joined[KEDGE_IDEM_KEY_MAX + 1], left[KEDGE_IDEM_KEY_MAX + 1];
    uint64_t index;
    snprintf(joined, sizeof joined, "job-joined/%s", job->spec.name.s);
    snprintf(left, sizeof left, "job-left/%s", job->spec.name.s);
    if (kedge_ledger_find(ledger, kedge_view_str(joined), &index) != KEDGE_OK) {
        return;
    }
    job->joined[tenant] = true;
    kedge_host_step(h, &ev);
    if (kedge_ledger_find(ledger, kedge_view_str(left), &index) == KEDGE_OK) {
        job->left[tenant] = true;
        ev.type = KEDGE_EV_JOB_LEFT;
        kedge_host_step(h, &ev);
    }
}

void kedge_job_load_tell(struct kedge_host *h, struct kedge_job *job, enum kedge_coord_event_type type)
{
    struct kedge_digest models[KEDGE_GROUPS_MAX];
    struct kedge_coord_event ev = {.type = type,
                                   .job = job->slot,
                                   .params = &job->params,
                                   .waited_ns = waited_ns(job),
                                   .state = job->state,
                                   .err = job->reason};
    kedge_first_models_tell(job, models, &ev);
    kedge_host_step(h, &ev);
    for (uint32_t i = 0; i < job->params.tenant_count; i++) {
        tell_member(h, job, job->params.tenants[i]);
    }
}

void kedge_job_load_begin(struct kedge_host *h, struct kedge_job *job)
{
    job->unopened = false;
    kedge_first_models_begin(job);
    kedge_job_load_tell(h, job, KEDGE_EV_JOB_SUBMIT);
    if (job->cancelled_early) {
        struct kedge_coord_event ev = {.type = KEDGE_EV_JOB_CANCEL, .job = job->slot};
        kedge_host_step(h, &ev);
    }
}
