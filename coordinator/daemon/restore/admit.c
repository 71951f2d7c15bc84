/* A place is given in two steps, as to a job that is submitted: it is taken in the table, then a worker makes
 * the first models, where there are several, and the core hears of the job. In between the job is not told to
 * the core, and its row stays: if the disk is full the place is given back, and the job has its turn again.
 */
#include "coordinator/daemon/restore/admit.h"

#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/restore/ended_job.h"
#include "coordinator/daemon/restore/job_load.h"
#include "coordinator/daemon/rounds/first_models.h"

#define AGAIN_NS UINT64_C(1000000000)
enum { ENDS_AT_ONCE = 16 }; /* each is a write that the loop waits for */

int kedge_host_admit_later(struct kedge_host *h, const struct kedge_job_record *record, struct kedge_diag *d)
{
    struct kedge_job_spec *spec;
    struct kedge_waiting_job *w;
    KEDGE_TRY(kedge_job_record_spec(h, record, &spec, d));
    int err = kedge_waiting_add(h, spec, record->created_ms, &w);
    if (!err) {
        w->spec = record->spec;
        w->initial_model = record->initial_model;
        w->base = kedge_job_spec_has_base(spec) ? spec->initial_model : record->initial_model;
        kedge_waiting_set(h, w, NULL, record->state == KEDGE_JOB_HALTED && record->reason == KEDGE_OK);
    }
    kedge_mem_free(spec);
    return err;
}

/* ---- what becomes of one that has no place ---- */

/* Of the job as its record has it; it has no slot, and what is not needed to store its next state is empty.
 */
static int load(struct kedge_host *h, const struct kedge_waiting_job *w, struct kedge_job *job,
                struct kedge_diag *d)
{
    struct kedge_job_record record;
    KEDGE_TRY(kedge_job_record_get(h, &w->name, &record, d));
    kedge_job_load_record(job, &record);
    job->params.tenant_count = w->tenant_count;
    memcpy(job->params.tenants, w->tenants, w->tenant_count * sizeof w->tenants[0]);
    return kedge_job_load_moves(h, job, &record, record.state, d);
}

static int move(struct kedge_host *h, const struct kedge_waiting_job *w, enum kedge_job_state to, int reason,
                const char *actor, struct kedge_diag *d)
{
    struct kedge_job *job = kedge_mem_new(1, sizeof *job);
    KEDGE_TRY_MEM(job);
    job->slot = KEDGE_COORD_NONE;
    int err = load(h, w, job, d);
    if (!err) {
        const enum kedge_job_state from = job->state;
        job->state = to;
        job->reason = reason;
        snprintf(job->cancelled_by, sizeof job->cancelled_by, "%s", to == KEDGE_JOB_CANCELLED ? actor : "");
        h->acting = actor;
        h->acting_on = job;
        err = kedge_host_job_move(h, job, from) ? kedge_host_job_store(h, job, d) : KEDGE_E_BUG;
        h->acting = NULL;
    }
    if (!err) {
        kedge_log(KEDGE_LOG_INFO, "job", "job=%s %s while it waited%s%s", w->name.s, kedge_job_state_name(to),
                  reason ? ": " : "", reason ? kedge_strerror(reason) : "");
    }
    kedge_host_job_free(job);
    return err;
}

/* A job that cannot be taken up, or has waited for too long. A full disk: later. */
static void fail(struct kedge_host *h, struct kedge_waiting_job *w, int reason)
{
    struct kedge_diag d = {.text = ""};
    int err = move(h, w, KEDGE_JOB_FAILED, reason, NULL, &d);
    if (err == KEDGE_E_DISK_FULL || err == KEDGE_E_NOMEM) {
        h->waiting.again_ns = kedge_os_now_ns() + AGAIN_NS;
    } else if (err) {
        kedge_host_fail(h, err, d.text);
    } else {
        kedge_waiting_remove(h, w);
    }
}

int kedge_host_waiting_cancel(struct kedge_host *h, struct kedge_waiting_job *w, const char *actor,
                              struct kedge_diag *d)
{
    KEDGE_TRY(move(h, w, KEDGE_JOB_CANCELLED, KEDGE_OK, actor, d));
    kedge_waiting_remove(h, w);
    return KEDGE_OK;
}

int kedge_host_waiting_hold(struct kedge_host *h, struct kedge_waiting_job *w, bool is_held,
                            const char *actor, struct kedge_diag *d)
{
    KEDGE_TRY(is_held == w->is_held
                  ? KEDGE_OK
                  : move(h, w, is_held ? KEDGE_JOB_HALTED : KEDGE_JOB_QUEUED, KEDGE_OK, actor, d));
    kedge_waiting_set(h, w, NULL, is_held);
    return KEDGE_OK;
}

/* ---- places ---- */

struct admit_work {
    struct kedge_work work;
    struct kedge_waiting_job *waiting;
    struct kedge_job *job;
    int err;
    struct kedge_diag diag;
};

static void admit_run(struct kedge_host *h, struct kedge_work *work)
{
    struct admit_work *a = (struct admit_work *)work;
    a->err = kedge_first_models_make(h, a->job, &a->diag);
}

/* What passes is tried again, and keeps the others waiting, too: they would meet the same. All else is the
 * job's own fault, and it fails with it. One that was cancelled meanwhile (by whom; "": it was not) ends as
 * that; should this not be stored, it is as if nobody had asked. */
static void give_up(struct kedge_host *h, struct kedge_waiting_job *w, int err, const struct kedge_diag *d,
                    const char *cancelled_by)
{
    const enum kedge_err_class class = kedge_err_class(err);
    struct kedge_diag unstored = {.text = ""};
    if (cancelled_by[0] && kedge_host_waiting_cancel(h, w, cancelled_by, &unstored) == KEDGE_OK) {
        return;
    }
    kedge_log(KEDGE_LOG_WARN, "job has no place yet", "job=%s %s", w->name.s,
              d->text[0] ? d->text : kedge_strerror(err));
    if (class == KEDGE_CLASS_FULL || class == KEDGE_CLASS_RETRY) {
        h->waiting.again_ns = kedge_os_now_ns() + AGAIN_NS;
    } else {
        fail(h, w, err);
    }
}

static void admit_done(struct kedge_host *h, struct kedge_item *item)
{
    struct admit_work *a = (struct admit_work *)item;
    struct kedge_waiting_job *w = a->waiting;
    struct kedge_job *job = a->job;
    if (a->err) { /* without its models it cannot be opened, not even to be closed as cancelled */
        char by[KEDGE_ACTOR_MAX + 1] = "";
        memcpy(by, job->cancelled_by, job->cancelled_early ? sizeof by : 0);
        kedge_waiting_set(h, w, NULL, false);
        kedge_host_job_free(job);
        give_up(h, w, a->err, &a->diag, by);
    } else {
        kedge_waiting_remove(h, w);
        kedge_host_job_keep(h, job); /* where its history was led on */
        kedge_job_load_begin(h, job);
    }
    kedge_mem_free(a);
}

static int take_up(struct kedge_host *h, struct kedge_waiting_job *w, struct kedge_job **ret,
                   struct kedge_diag *d)
{
    struct kedge_job_record record;
    struct kedge_job *job;
    KEDGE_TRY(kedge_job_record_get(h, &w->name, &record, d));
    KEDGE_TRY(kedge_job_load(h, &record, &job, d));
    int err = kedge_job_load_moves(h, job, &record, KEDGE_JOB_QUEUED, d);
    if (err) {
        kedge_host_job_free(job);
        return err;
    }
    job->unopened = true;
    *ret = job;
    return KEDGE_OK;
}

static void admit(struct kedge_host *h, struct kedge_waiting_job *w)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_job *job = NULL;
    struct admit_work *a = kedge_mem_new(1, sizeof *a);
    int err = a ? take_up(h, w, &job, &d) : KEDGE_E_NOMEM;
    if (err) {
        kedge_mem_free(a);
        give_up(h, w, err, &d, "");
        return;
    }
    kedge_waiting_set(h, w, job, false);
    *a = (struct admit_work){.work = {.item = {admit_done}, .run = admit_run}, .waiting = w, .job = job};
    kedge_host_work_own(h, &a->work);
}

/* Not while an operator halts it, as with a job that has a place. */
static void end_overdue(struct kedge_host *h, uint64_t now_ms)
{
    struct kedge_waiting *t = &h->waiting;
    uint32_t ended = 0, i = 0;
    uint64_t next_ms = UINT64_MAX;
    while (i < t->count && !h->stop) {
        struct kedge_waiting_job *w = t->jobs[i];
        const uint32_t before = t->count;
        if (!w->coming && !w->is_held && w->until_ms <= now_ms && ended < ENDS_AT_ONCE) {
            ended++;
            fail(h, w, KEDGE_E_ENROL_TIME);
        }
        if (t->count == before) { /* it is there still */
            next_ms = !w->coming && !w->is_held && w->until_ms < next_ms ? w->until_ms : next_ms;
            i++;
        }
    }
    t->until_ms = next_ms;
}

void kedge_host_admit(struct kedge_host *h, uint64_t now_ns)
{
    const struct kedge_waiting *t = &h->waiting;
    if (t->count == 0 || !h->begun || h->stop || now_ns < t->again_ns) {
        return;
    }
    if (t->until_ms <= kedge_os_unix_ms()) {
        end_overdue(h, kedge_os_unix_ms());
    }
    while (t->ready > 0 && !h->stop && now_ns >= t->again_ns && kedge_host_job_has_room(h)) {
        struct kedge_waiting_job *w = kedge_waiting_next(h);
        if (!w) { /* memory is short */
            h->waiting.again_ns = now_ns + AGAIN_NS;
            return;
        }
        admit(h, w);
    }
}

uint64_t kedge_host_admit_due_ns(const struct kedge_host *h, uint64_t now_ns)
{
    const struct kedge_waiting *t = &h->waiting;
    const uint64_t now_ms = kedge_os_unix_ms();
    if (t->count == 0 || t->ready == 0 || !h->begun) {
        return KEDGE_TIME_NEVER;
    }
    if (t->again_ns > now_ns) {
        return t->again_ns;
    }
    const uint64_t left_ms = t->until_ms > now_ms ? t->until_ms - now_ms : 0;
    return left_ms < (UINT64_MAX - now_ns) / 1000000u ? now_ns + left_ms * 1000000u : KEDGE_TIME_NEVER;
}
