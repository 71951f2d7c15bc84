/* Restart: everything is read from what was durable and told to the core before START. There is no
 * other recovery, so the start after a crash is the start after a clean end, and every start tests
 * it.
 *
 * The order matters. Tenants come first, for they have keys and sites; then the jobs, whose rounds
 * name sites; then what no statement names is swept, when all jobs are known that may still need
 * it. */
#include "coordinator/daemon/restore/restore.h"

#include <stdio.h>
#include <string.h>

#include "chain/statement/input_list.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/admin/quotas.h"
#include "coordinator/daemon/admin/viewers.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/members.h"
#include "coordinator/daemon/records.h"
#include "coordinator/daemon/restore/admit.h"
#include "coordinator/daemon/restore/ended_job.h"
#include "coordinator/daemon/restore/job_load.h"
#include "coordinator/daemon/restore/restore_rounds.h"
#include "coordinator/daemon/restore/restore_walk.h"
#include "coordinator/daemon/restore/tenant_folders.h"
#include "coordinator/daemon/restore/torn_copy.h"
#include "coordinator/daemon/rounds/classes.h"
#include "coordinator/daemon/rounds/first_models.h"
#include "coordinator/daemon/rounds/rounds.h"
#include "coordinator/daemon/sites/blobs.h"
#include "coordinator/daemon/sites/refusals.h"

enum {
    RECORDS_AT_ONCE = 256,    /* of all jobs that the coordinator ever had */
    SYNC_TOGETHER_LEAST = 32, /* tenants */
};

/* ---- members ---- */

/* A statement that cannot be taken is named in the log and left out. Ending here would let one
 * tenant's admin keep the whole federation from starting. */
static int load_site(struct kedge_walk *w, uint64_t index)
{
    uint32_t site;
    (void)index;
    int err = kedge_host_site_add(w->h, w->tenant, &w->st->u.site_enrolled, &site);
    if (err == KEDGE_E_FULL
        || err == KEDGE_E_EXISTS) { /* two admins at once; neither may keep us from starting */
        kedge_log(KEDGE_LOG_ERROR, "site left out", "tenant=%s site=%s: %s", w->st->u.site_enrolled.tenant.s,
                  w->st->u.site_enrolled.site.s, kedge_strerror(err));
        return KEDGE_OK;
    }
    return err ? kedge_diag_set(w->d, err, "site %s of tenant %s: %s", w->st->u.site_enrolled.site.s,
                                w->st->u.site_enrolled.tenant.s, kedge_strerror(err))
               : KEDGE_OK;
}

static int load_revoked(struct kedge_walk *w, uint64_t index)
{
    (void)index;
    uint32_t site = kedge_host_site_find(w->h, w->tenant, &w->st->u.site_revoked.site);
    if (site != KEDGE_COORD_NONE) {
        kedge_host_site_revoke(w->h, site);
    }
    return KEDGE_OK;
}

/* In the order of their numbers: the last one holds. */
static int load_labels(struct kedge_walk *w, uint64_t index)
{
    (void)index;
    uint32_t site = kedge_host_site_find(w->h, w->tenant, &w->st->u.site_labels.site);
    if (site != KEDGE_COORD_NONE) {
        kedge_host_site_label(w->h, site, &w->st->u.site_labels);
    }
    return KEDGE_OK;
}

/* What the ledger says of a witness that was revoked since needs no place; one for which there is none, or
 * whose key somebody else has by now, is said and left out: what a tenant's admin signed must not keep us
 * from starting. */
static int load_witness(struct kedge_walk *w, uint64_t index)
{
    (void)index;
    char key[KEDGE_IDEM_KEY_MAX + 1];
    const struct kedge_st_witness_enrolled *st = &w->st->u.witness_enrolled;
    snprintf(key, sizeof key, "witness-revoked/%s", st->witness.s);
    if (kedge_ledger_find(w->ledger, kedge_view_str(key), NULL) == KEDGE_OK) {
        return KEDGE_OK;
    }
    int err = kedge_host_witness_add(w->h, w->tenant, st);
    if (err) {
        kedge_log(KEDGE_LOG_ERROR, "witness left out", "tenant=%s witness=%s: %s", st->tenant.s,
                  st->witness.s, kedge_strerror(err));
    }
    return KEDGE_OK;
}

/* The last checkpoint of the tenant in the main chain gives its anchored size, by the digits of its
 * key, and is held against the ledger: a ledger that is shorter or has another root was put back
 * from elsewhere, and to go on with it would sign a fork. */
static int load_anchored(struct kedge_walk *w, struct kedge_tenant *t)
{
    KEDGE_TRY(kedge_walk_last(w, w->h->main.ledger, "checkpoint", t->id.s));
    if (!w->found) {
        return KEDGE_OK;
    }
    struct kedge_view digits = kedge_view_str(w->last_key + strlen("checkpoint/") + strlen(t->id.s) + 1);
    while (digits.len > 1 && digits.ptr[0] == '0') {
        digits.ptr++;
        digits.len--;
    }
    KEDGE_TRY(kedge_decimal_decode(digits, INT64_MAX, &t->anchored_size));
    return kedge_torn_check_anchored(w, t);
}

static int load_tenant(struct kedge_walk *w, const struct kedge_id *id)
{
    struct kedge_host *h = w->h;
    int err = kedge_host_tenant_load(h, id, w->d);
    if (err == KEDGE_E_NOT_FOUND) { /* a crash within tenant.add; the next tenant.add goes on with it */
        kedge_log(KEDGE_LOG_WARN, "tenant is not whole yet", "tenant=%s", id->s);
        return KEDGE_OK;
    }
    if (err) {
        return err;
    }
    w->tenant = h->tenant_count - 1;
    struct kedge_tenant *t = &h->tenants[w->tenant];
    KEDGE_TRY(load_anchored(w, t));
    KEDGE_TRY(kedge_walk_all(w, t->log.ledger, KEDGE_ST_SITE_ENROLLED, "", KEDGE_WALK_ALL, load_site));
    KEDGE_TRY(kedge_walk_all(w, t->log.ledger, KEDGE_ST_SITE_REVOKED, "", KEDGE_WALK_ALL, load_revoked));
    KEDGE_TRY(kedge_walk_all(w, t->log.ledger, KEDGE_ST_SITE_LABELS, "", KEDGE_WALK_ALL, load_labels));
    return kedge_walk_all(w, t->log.ledger, KEDGE_ST_WITNESS_ENROLLED, "", KEDGE_WALK_ALL, load_witness);
}

/* ---- jobs ---- */

/* The core needs the last evaluation of each site, so that the site is not asked again, and its
 * envelope, so that a repetition gets the same receipt. */
static int load_evaluation(struct kedge_walk *w, uint64_t index)
{
    const struct kedge_st_evaluation *e = &w->st->u.evaluation;
    uint32_t site = kedge_host_site_find(w->h, w->tenant, &e->site);
    kedge_job_metric_add(w->job, e);
    struct kedge_coord_job_view view;
    if (site != KEDGE_COORD_NONE && kedge_coord_job(w->h->coord, w->job->slot, &view)) {
        struct kedge_coord_event ev = {.type = KEDGE_EV_LOAD_EVALUATED,
                                       .job = w->job->slot,
                                       .site = site,
                                       .round = e->round,
                                       .leaf = index};
        kedge_job_evaluated(w->job, site, e, index);
        KEDGE_TRY(kedge_restore_envelope(w, index, &ev.envelope));
        kedge_host_step(w->h, &ev);
    }
    return KEDGE_OK;
}

/* The rows of the closed rounds that `job show` can tell of; what evaluations add comes with load_evaluation.
 */
static int load_history(struct kedge_walk *w)
{
    struct kedge_job *job = w->job;
    struct kedge_history_log *logs = kedge_mem_new(KEDGE_SPEC_TENANTS_MAX, sizeof *logs);
    struct kedge_history_page page = {.most = KEDGE_HISTORY_PAGE_MAX, .without_evaluations = true};
    page.next = job->round < KEDGE_HISTORY_MAX ? 0 : job->round - KEDGE_HISTORY_MAX + 1;
    page.rows = kedge_history_rows_new(page.most, kedge_job_spec_groups_most(&job->spec));
    int err = logs && page.rows ? KEDGE_OK : KEDGE_E_NOMEM;
    while (!err && page.next != KEDGE_HISTORY_END) {
        const struct kedge_history_source source = kedge_restore_source(w->h, job, logs);
        err = kedge_history_read(&source, page.next, job->round, &page, w->d);
        for (uint32_t i = 0; i < page.count && !err; i++) {
            kedge_history_copy(kedge_job_history(job, page.rows[i].round, true), &page.rows[i]);
        }
    }
    kedge_mem_free(page.rows);
    kedge_mem_free(logs);
    return err;
}

/* ---- where a job stands ----
 * The core begins where the history ends, so that it tells nothing twice. Two things the main chain knows
 * better: that the job is opened, when the process died before it could say so; and that a job which was
 * halted before its first round waits for that round, for why it was halted is found anew. */

static bool has_round(struct kedge_host *h, const struct kedge_job *job)
{
    char key[KEDGE_IDEM_KEY_MAX + 1];
    snprintf(key, sizeof key, "round-opened/%s/%08u", job->spec.name.s,
             (unsigned)kedge_coord_first_round(&job->params));
    return kedge_ledger_find(h->main.ledger, kedge_view_str(key), NULL) == KEDGE_OK;
}

/* The state in which the core takes the job up. */
static enum kedge_job_state state_to_begin(struct kedge_host *h, const struct kedge_job *job)
{
    const bool is_halted = job->state == KEDGE_JOB_HALTED && job->reason != KEDGE_OK;
    return job->state == KEDGE_JOB_QUEUED || (is_halted && !has_round(h, job)) ? KEDGE_JOB_ENROLLING
                                                                               : job->state;
}

static int load_live_job(struct kedge_walk *w)
{
    kedge_job_load_tell(w->h, w->job, KEDGE_EV_LOAD_JOB);
    KEDGE_TRY(kedge_restore_rounds(w));
    return kedge_torn_check_rounds(w);
}

/* One that has not ended, and that the main chain knows. */
static int load_job(struct kedge_walk *w, const struct kedge_job_record *record, uint64_t opened)
{
    struct kedge_host *h = w->h;
    KEDGE_TRY(kedge_job_load(h, record, &w->job, w->d));
    KEDGE_TRY(kedge_job_load_moves(h, w->job, record, state_to_begin(h, w->job), w->d));
    KEDGE_TRY(kedge_walk_read(w, h->main.ledger, opened, KEDGE_ST_JOB_OPENED));
    kedge_first_models_take(w->job, &w->st->u.job_opened);
    kedge_first_models_begin(w->job);
    KEDGE_TRY(load_live_job(w));
    KEDGE_TRY(load_history(w));
    return kedge_walk_tenants(w, KEDGE_ST_EVALUATION, KEDGE_WALK_ALL, load_evaluation);
}

/* Ended jobs stay where they are: in the record. The job's own record says what the main chain does
 * not; both must agree on whether it has ended, but for one that was never opened, of which the
 * main chain says nothing. A record that says "ended" without a job-closed is damage: the main
 * chain decides, and it cannot have lost an entry. */
static int load_record(struct kedge_walk *w, const struct kedge_job_record *r)
{
    uint64_t opened;
    if (kedge_ended_job_is_closed(w->h, &r->job)) {
        return r->state < KEDGE_JOB_COMPLETED ? kedge_ended_job_settle(w->h, r, w->d) : KEDGE_OK;
    }
    const bool is_opened = kedge_ended_job_is_opened(w->h, &r->job, &opened);
    if (r->state < KEDGE_JOB_COMPLETED) {
        return is_opened ? load_job(w, r, opened) : kedge_host_admit_later(w->h, r, w->d);
    }
    return is_opened ? kedge_diag_set(
               w->d, KEDGE_E_CORRUPT,
               "coordinator.lmdb: table job, key \"%s\": it says %s, the main chain has no job-closed",
               r->job.s, kedge_job_state_name(r->state))
                     : KEDGE_OK;
}

/* Page by page, so that a coordinator that has had thousands of jobs starts with bounded memory and
 * one read transaction is not held open over all of them. */
static int load_jobs(struct kedge_walk *w)
{
    struct kedge_job_record *records = kedge_mem_new(RECORDS_AT_ONCE + 1, sizeof *records);
    struct kedge_id from = {.s = ""};
    bool more = true;
    int err = records ? KEDGE_OK : KEDGE_E_NOMEM;
    while (!err && more) {
        size_t count;
        err = kedge_job_records_page(w->h, "", &from, RECORDS_AT_ONCE, records, &count, &more, w->d);
        for (size_t i = 0; !err && i < count; i++) {
            err = load_record(w, &records[i]);
        }
        from = !err && more ? records[count].job : from;
    }
    kedge_mem_free(records);
    return err;
}

/* Once all tenants are there. */
static int load_rest(struct kedge_walk *w)
{
    KEDGE_TRY(kedge_host_seen_load(w->h, w->d));
    KEDGE_TRY(kedge_host_viewers_load(w->h, w->d));
    KEDGE_TRY(kedge_host_quotas_load(w->h, w->d));
    KEDGE_TRY(load_jobs(w));
    KEDGE_TRY(kedge_host_refusals_sweep(w->h, w->d));
    return kedge_host_sweep(w->h, w->d);
}

/* After a kill each ledger is to be made durable before it counts. Few of them are synced one by one: a whole
 * file system is synced with all that other programs wrote to it, which may be gigabytes. */
static int load_tenants(struct kedge_walk *w, const struct kedge_id *ids, size_t count)
{
    int err = KEDGE_OK;
    if (count >= SYNC_TOGETHER_LEAST) {
        kedge_kv_lmdb_sync_together_begin();
    }
    for (size_t i = 0; i < count && !err; i++) {
        err = load_tenant(w, &ids[i]);
    }
    int sync_err = kedge_kv_lmdb_sync_together_end(err ? NULL : w->d);
    return err ? err : sync_err;
}

int kedge_host_restore(struct kedge_host *h, struct kedge_diag *d)
{
    struct kedge_id *ids = NULL;
    size_t count = 0;
    struct kedge_walk w = {.h = h, .d = d, .st = kedge_mem_new(1, sizeof *w.st)};
    int err = w.st ? kedge_host_tenant_folders(h, &ids, &count, d) : KEDGE_E_NOMEM;
    if (!err) {
        err = load_tenants(&w, ids, count);
    }
    if (!err) {
        err = load_rest(&w);
    }
    kedge_mem_free(ids);
    kedge_mem_free(w.st);
    return err;
}

/* Jobs whose job-opened is not durable wait for a place, as they may have done before: admit.h. */
void kedge_host_begin(struct kedge_host *h)
{
    struct kedge_coord_event ev = {.type = KEDGE_EV_START};
    kedge_host_step(h, &ev);
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX; i++) {
        if (h->jobs[i].used) {
            kedge_host_job_keep(h, &h->jobs[i]); /* where its history was led on */
        }
    }
}
