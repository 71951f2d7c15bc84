/* One decision at a time: the next one counts this one, so it waits until it is in the main chain. What is
 * known of other jobs is read there by a worker; the loop makes the statement durable. A crash before that
 * leaves nothing. One after it leaves a promise without a job: who submits again finds it and goes on, and if
 * nobody does it ends with its deadline. */
#include "coordinator/daemon/admin/promise.h"

#include <inttypes.h>
#include <stdio.h>

#include "chain/statement/entry_index.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/rounds/main_batch.h"
#include "coordinator/daemon/rounds/promised.h"

struct admission {
    struct kedge_work work;
    struct kedge_host *h;
    struct kedge_job *job;
    const char *spec_text;
    struct kedge_promised_source source;
    struct kedge_statement st;
    bool is_found; /* in the main chain, from before */
    int err;
    uint64_t end; /* of the main chain with it */
    struct kedge_diag diag;
    kedge_promise_decided *then;
    void *arg;
};

static void finish(struct kedge_host *h, struct admission *a, int err)
{
    h->admitting = false;
    if (err && !a->diag.text[0]) {
        (void)kedge_diag_set(&a->diag, err, "job \"%s\": whether it is admitted: %s", a->job->spec.name.s,
                             kedge_strerror(err));
    }
    a->then(h, a->arg, err, &a->diag);
    kedge_mem_free(a);
}

static void tell_refusal(struct admission *a)
{
    const struct kedge_st_job_admission *s = &a->st.u.job_admission;
    char nearest[64] = "no deadline can be kept";
    if (s->too_large) {
        (void)kedge_diag_set(
            &a->diag, KEDGE_E_FULL,
            "job \"%s\": takes more than twice what is usual, and %u other jobs were promised "
            "more than their sites do in %" PRIu64 " s; submit it when some have ended",
            s->job.s, s->queued, s->guard_ms / 1000);
        return;
    }
    if (s->earliest_ms > 0) {
        snprintf(nearest, sizeof nearest, "the nearest that can be kept is \"deadline_s\": %" PRIu64,
                 (s->earliest_ms - s->time_ms + 999) / 1000);
    }
    (void)kedge_diag_set(&a->diag, KEDGE_E_FULL,
                         "job \"%s\": %" PRIu32 " rounds of %" PRIu64 " ms do not end within %" PRIu32
                         " s beside %u other jobs with deadlines; %s",
                         s->job.s, a->job->spec.rounds, s->round_ms, a->job->spec.deadline_s, s->queued,
                         nearest);
}

/* The decision is durable. */
static void follow(struct kedge_host *h, struct admission *a)
{
    const struct kedge_st_job_admission *s = &a->st.u.job_admission;
    const bool is_in = a->st.kind == KEDGE_ST_JOB_ADMITTED;
    kedge_log(KEDGE_LOG_INFO, is_in ? "job admitted" : "job refused",
              "job=%s queued=%u round_ms=%" PRIu64 " share=%u/%u", s->job.s, s->queued, s->round_ms, s->share,
              (unsigned)KEDGE_ST_SHARES);
    if (is_in) {
        kedge_host_job_promise(a->job, s->deadline_ms);
        finish(h, a, KEDGE_OK);
    } else {
        tell_refusal(a);
        finish(h, a, KEDGE_E_FULL);
    }
}

static void stated_handle(struct kedge_host *h, struct kedge_item *item)
{
    struct admission *a = (struct admission *)item;
    if (a->err == KEDGE_E_IO || kedge_err_class(a->err) == KEDGE_CLASS_CORRUPT) {
        kedge_host_fail(h, a->err, "the main chain"); /* the next start sees what became durable */
    }
    kedge_main_batch_free(a->job->batch);
    a->job->batch = NULL;
    if (a->err) {
        finish(h, a, a->err);
    } else {
        h->main_known = a->end > h->main_known ? a->end : h->main_known;
        follow(h, a);
    }
}

static void stated(void *arg, const struct kedge_commit_result *result)
{
    struct admission *a = arg;
    a->err = kedge_host_commit_err(a->h->main.ledger, result);
    a->end = result->err ? 0 : result->items[result->count - 1].index + 1;
    a->work.item.handle = stated_handle;
    kedge_host_post(a->h, &a->work.item);
}

static int state(struct kedge_host *h, struct admission *a)
{
    struct kedge_buf key KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&key, KEDGE_IDEM_KEY_MAX);
    kedge_statement_key(a->st.kind, &a->st.u, &key);
    kedge_buf_put(&key, "", 1);
    KEDGE_TRY(key.err);
    if (kedge_host_authority_holds(h)) {
        return kedge_diag_set(&a->diag, KEDGE_E_BUSY, "the statement key is being changed; submit it again");
    }
    KEDGE_TRY(kedge_main_batch_new(&a->job->batch));
    KEDGE_TRY(kedge_main_batch_statement(a->job->batch, &a->st, &a->diag, "%s", (const char *)key.ptr));
    return kedge_main_batch_hand_over(h, a->job->batch, stated, a);
}

static void decided_handle(struct kedge_host *h, struct kedge_item *item)
{
    struct admission *a = (struct admission *)item;
    if (!a->err && a->is_found) {
        follow(h, a);
        return;
    }
    const int err = a->err ? a->err : state(h, a);
    if (err) { /* else it is the committer's */
        kedge_main_batch_free(a->job->batch);
        a->job->batch = NULL;
        finish(h, a, err);
    }
}

static int decide(struct kedge_host *h, struct admission *a)
{
    const struct kedge_view text = kedge_view_str(a->spec_text);
    struct kedge_hash digest;
    KEDGE_TRY(kedge_promised_find(a->source.main, &a->job->spec.name, &a->job->spec_digest, &a->st,
                                  &a->is_found, &a->diag));
    if (a->is_found) {
        return KEDGE_OK;
    }
    KEDGE_TRY(kedge_promised_decide(&a->source, &a->job->spec, &a->job->spec_digest, &a->st, &a->diag));
    return kedge_blobs_put(h->main.blobs, &text, 1, &digest, &a->diag);
}

static void decide_run(struct kedge_host *h, struct kedge_work *work)
{
    struct admission *a = (struct admission *)work;
    a->err = decide(h, a);
}

int kedge_host_promise_check(struct kedge_host *h, const struct kedge_id *name,
                             const struct kedge_hash *spec_digest, struct kedge_diag *d)
{
    bool is_found;
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    KEDGE_TRY_MEM(st);
    return kedge_promised_find(h->main.ledger, name, spec_digest, st, &is_found, d);
}

void kedge_host_decide_promise(struct kedge_host *h, struct kedge_job *job, const char *spec_text,
                               kedge_promise_decided *then, void *arg)
{
    struct kedge_diag d = {.text = ""};
    if (h->admitting) {
        (void)kedge_diag_set(&d, KEDGE_E_BUSY,
                             "another job with a deadline is being decided on; submit this one again");
        then(h, arg, KEDGE_E_BUSY, &d);
        return;
    }
    struct admission *a = kedge_mem_new(1, sizeof *a);
    if (!a) {
        (void)kedge_diag_set(&d, KEDGE_E_NOMEM, "out of memory for a decision");
        then(h, arg, KEDGE_E_NOMEM, &d);
        return;
    }
    *a = (struct admission){.work = {.item = {decided_handle}, .run = decide_run},
                            .h = h,
                            .job = job,
                            .spec_text = spec_text,
                            .source = {h->main.ledger, h->main.blobs, kedge_os_unix_ms(),
                                       h->config.deadline_guard_s * UINT64_C(1000)},
                            .then = then,
                            .arg = arg};
    h->admitting = true;
    kedge_host_work(h, &a->work);
}
