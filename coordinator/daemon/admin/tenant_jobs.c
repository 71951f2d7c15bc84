/* job.list for a tenant's admin. The operators' list goes through all jobs, and says by name where to go on;
 * here that would name jobs of others, and take longer the more of them there are. So the tenant's own ledger
 * is the index: it has a job-joined of every job that the tenant joined, under the job's name. Jobs that run,
 * or wait for a place, come from the loop's tables: the tenant may not have joined them yet. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/admin/tenant_verbs.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/restore/ended_job.h"

enum { LOOKS_MAX = 256 }; /* jobs looked at for one answer: of the ledger, and of those that wait */

static const char joined[] = "job-joined/";

struct tenant_list {
    struct kedge_work work;
    struct kedge_net_request *req;
    struct kedge_admin_list args;
    struct kedge_ledger *ledger;
    json_t *running;                    /* by name: the tenant's jobs that run */
    struct kedge_waiting_view *waiting; /* the tenant's */
    uint32_t waiting_count;
    struct kedge_id names[2 * LOOKS_MAX + KEDGE_JOBS_MAX];
    uint32_t count;
    struct kedge_id last; /* the last name that was looked at; empty: all were */
    json_t *list;
    struct kedge_id next; /* empty: there are no more */
    int err;
    struct kedge_diag diag;
};

static bool comes_before(const struct tenant_list *w, const char *name)
{
    int c = strcmp(name, w->args.from.s);
    return w->args.from.s[0] && (c < 0 || (c == 0 && w->args.after));
}

static bool has_prefix(const struct tenant_list *w, const char *name)
{
    return strncmp(name, w->args.prefix.s, strlen(w->args.prefix.s)) == 0;
}

static int note_name(void *arg, struct kedge_view key, uint64_t index)
{
    struct tenant_list *w = arg;
    struct kedge_id *name = &w->names[w->count];
    const size_t start = sizeof joined - 1;
    (void)index;
    if (kedge_id_from(kedge_view_of(key.ptr + start, key.len - start), name) != KEDGE_OK
        || comes_before(w, name->s) || !has_prefix(w, name->s)) {
        return 0;
    }
    w->count++;
    return w->count == LOOKS_MAX;
}

static int compare(const void *a, const void *b)
{
    return kedge_id_cmp(a, b);
}

/* Beyond the last name of a list that was cut nothing may be told: what that list has there was not looked
 * at, and would be passed over for good. */
static void cut_at(struct tenant_list *w, const struct kedge_id *name)
{
    if (!w->last.s[0] || kedge_id_cmp(name, &w->last) < 0) {
        w->last = *name;
    }
}

static void collect_waiting(struct tenant_list *w)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->waiting_count && count < LOOKS_MAX; i++) {
        const struct kedge_id *name = &w->waiting[i].job;
        if (!comes_before(w, name->s) && has_prefix(w, name->s)) {
            w->names[w->count++] = *name;
            count++;
        }
    }
    if (count == LOOKS_MAX) {
        cut_at(w, &w->names[w->count - 1]);
    }
}

static void collect_running(struct tenant_list *w)
{
    const char *name;
    json_t *row;
    json_object_foreach(w->running, name, row)
    {
        if (!comes_before(w, name) && has_prefix(w, name)
            && kedge_id_from(kedge_view_str(name), &w->names[w->count]) == KEDGE_OK) {
            w->count++;
        }
    }
}

/* In order, each once, none beyond the last. */
static void order_names(struct tenant_list *w)
{
    uint32_t count = 0;
    qsort(w->names, w->count, sizeof w->names[0], compare);
    for (uint32_t i = 0; i < w->count; i++) {
        const bool is_beyond = w->last.s[0] && kedge_id_cmp(&w->names[i], &w->last) > 0;
        if (!is_beyond && (count == 0 || !kedge_id_eq(&w->names[count - 1], &w->names[i]))) {
            w->names[count++] = w->names[i];
        }
    }
    w->count = count;
}

static int collect_names(struct tenant_list *w)
{
    char from[sizeof joined + KEDGE_ID_MAX];
    snprintf(from, sizeof from, "%s%s", joined, w->args.from.s);
    KEDGE_TRY(
        kedge_ledger_scan_keys_from(w->ledger, kedge_view_str(joined), kedge_view_str(from), note_name, w));
    if (w->count == LOOKS_MAX) {
        cut_at(w, &w->names[w->count - 1]);
    }
    collect_waiting(w);
    collect_running(w);
    order_names(w);
    return KEDGE_OK;
}

static bool fits(const struct tenant_list *w, enum kedge_job_state state, uint64_t created_ms)
{
    return (w->args.states & 1u << state) != 0 && created_ms >= w->args.since_ms;
}

static json_t *waiting_row(struct kedge_host *h, struct tenant_list *w, const struct kedge_waiting_view *view)
{
    struct kedge_job_record r;
    struct kedge_job_spec *spec;
    w->err = kedge_job_record_get(h, &view->job, &r, &w->diag);
    if (w->err || !fits(w, view->is_held ? KEDGE_JOB_HALTED : KEDGE_JOB_QUEUED, r.created_ms)) {
        return NULL;
    }
    w->err = kedge_job_record_spec(h, &r, &spec, &w->diag);
    json_t *row = w->err ? NULL : kedge_admin_waiting_summary(&r, spec, view);
    if (!w->err) {
        kedge_mem_free(spec);
    }
    return row;
}

/* NULL: it does not fit, or came to its end between the question and now without a record that says so. */
static json_t *list_row(struct kedge_host *h, struct tenant_list *w, const struct kedge_id *name)
{
    struct kedge_ended_job job;
    json_t *row = json_object_get(w->running, name->s);
    const struct kedge_waiting_view *view = kedge_waiting_view_find(w->waiting, w->waiting_count, name);
    if (row) {
        return json_is_null(row) ? NULL : json_incref(row);
    }
    if (view) {
        return waiting_row(h, w, view);
    }
    int err = kedge_ended_job_find(h, name, &job, &w->diag);
    if (err) {
        w->err = err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
        return NULL;
    }
    const struct kedge_job_record *r = &job.record;
    row = fits(w, r->state, r->created_ms) ? kedge_admin_ended_summary(&job) : NULL;
    kedge_ended_job_deinit(&job);
    return row;
}

static void list_run(struct kedge_host *h, struct kedge_work *work)
{
    struct tenant_list *w = (struct tenant_list *)work;
    uint32_t i = 0;
    w->list = json_array();
    kedge_waiting_views_sort(w->waiting, w->waiting_count);
    w->err = w->list ? collect_names(w) : KEDGE_E_NOMEM;
    const uint32_t end = w->last.s[0] ? w->count - 1 : w->count; /* the last one begins the next page */
    while (!w->err && i < end && json_array_size(w->list) < w->args.limit) {
        json_t *row = list_row(h, w, &w->names[i++]);
        if (row) {
            json_array_append_new(w->list, row);
        }
    }
    w->next = i < w->count ? w->names[i] : (struct kedge_id){.s = ""};
}

static void list_done(struct kedge_host *h, struct kedge_item *item)
{
    struct tenant_list *w = (struct tenant_list *)item;
    (void)h;
    json_t *answer = json_pack("{s:o}", "jobs", w->list);
    if (w->next.s[0]) {
        json_object_set_new(answer, "next", json_string(w->next.s));
    }
    kedge_admin_answer(w->req, w->err, &w->diag, answer);
    json_decref(w->running);
    kedge_mem_free(w->waiting);
    kedge_mem_free(w);
}

/* As a row of the operators' list, but for how many sites are connected, of which some are others'. */
static json_t *running_row(struct kedge_host *h, const struct kedge_admin_list *a,
                           const struct kedge_job *job)
{
    if ((a->states & 1u << job->state) == 0 || job->created_ms < a->since_ms) {
        return json_null();
    }
    json_t *row = kedge_admin_job_summary(h, job);
    json_object_del(row, "sites_online");
    return row;
}

void kedge_admin_tenant_jobs(struct kedge_host *h, struct kedge_net_request *req, const json_t *args,
                             uint32_t tenant)
{
    struct kedge_diag d;
    struct kedge_admin_list a;
    int err = kedge_admin_list_args(args, &a, &d);
    struct tenant_list *w = err ? NULL : kedge_mem_new(1, sizeof *w);
    struct kedge_waiting_view *waiting;
    uint32_t waiting_count;
    if (!w || kedge_waiting_views(h, tenant, &waiting, &waiting_count) != KEDGE_OK) {
        kedge_mem_free(w);
        kedge_admin_error(req, err ? err : KEDGE_E_NOMEM, err ? &d : NULL);
        return;
    }
    *w = (struct tenant_list){.work = {.item = {list_done}, .run = list_run},
                              .req = req,
                              .args = a,
                              .ledger = h->tenants[tenant].log.ledger,
                              .running = json_object(),
                              .waiting = waiting,
                              .waiting_count = waiting_count};
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX; i++) {
        const struct kedge_job *job = &h->jobs[i];
        if (job->used && !kedge_host_job_has_ended(job) && kedge_host_job_names(job, tenant)) {
            json_object_set_new(w->running, job->spec.name.s, running_row(h, &a, job));
        }
    }
    kedge_host_work(h, &w->work);
}
