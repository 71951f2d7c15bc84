/* job.list. A job that runs is told from the tables of the loop, one that waits for a place from its record
 * and from where it stands in line, one that has ended from the record, by a worker: there may be very many
 * of them.
 *
 * Lists come in pages, in the order of names: "next" is the name to go on from. A list is of one moment: jobs
 * that run or wait are those that did when it was asked for, and each of them stands in its place among the
 * ended ones. */
#include <jansson.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/restore/ended_job.h"

enum {
    LIST_LOOKS_MAX = 1024, /* records looked at for one answer … */
    LIST_SPECS_MAX = 256,  /* … and specs, where they have to be */
};

struct list_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    struct kedge_admin_list args;
    json_t *running; /* by name: its row, or null where it does not fit */
    struct kedge_waiting_view *waiting;
    uint32_t waiting_count;
    struct kedge_job_record *records;
    json_t *list;
    struct kedge_id next; /* empty: there are no more */
    int err;
    struct kedge_diag diag;
};

static bool is_of_tenant(const struct kedge_job_spec *spec, const struct kedge_id *tenant)
{
    bool is = tenant->s[0] == '\0';
    for (uint32_t i = 0; i < spec->tenant_count && !is; i++) {
        is = kedge_id_eq(&spec->tenants[i], tenant);
    }
    return is;
}

/* Of what the record says, without a look at the spec. */
static bool fits(const struct kedge_admin_list *a, enum kedge_job_state state, uint64_t created_ms)
{
    return (a->states & 1u << state) != 0 && created_ms >= a->since_ms;
}

static json_t *waiting_row(struct kedge_host *h, struct list_work *w, const struct kedge_job_record *record,
                           const struct kedge_waiting_view *view)
{
    struct kedge_job_spec *spec;
    if (!fits(&w->args, view->is_held ? KEDGE_JOB_HALTED : KEDGE_JOB_QUEUED, record->created_ms)) {
        return NULL;
    }
    w->err = kedge_job_record_spec(h, record, &spec, &w->diag);
    if (w->err) {
        return NULL;
    }
    json_t *row =
        is_of_tenant(spec, &w->args.tenant) ? kedge_admin_waiting_summary(record, spec, view) : NULL;
    kedge_mem_free(spec);
    return row;
}

/* The job's row: as it ran or waited when the list was asked for, else as the record tells it. NULL: it came
 * later, or does not fit. A job can end between the question and the reading of its record; it is told as it
 * ran, so the list is of one moment. */
static json_t *list_row(struct kedge_host *h, struct list_work *w, const struct kedge_job_record *record)
{
    json_t *row = json_object_get(w->running, record->job.s);
    const struct kedge_waiting_view *view =
        kedge_waiting_view_find(w->waiting, w->waiting_count, &record->job);
    struct kedge_ended_job job;
    if (row) {
        return json_is_null(row) ? NULL : json_incref(row);
    }
    if (view) {
        return waiting_row(h, w, record, view);
    }
    if (!fits(&w->args, record->state, record->created_ms)) {
        return NULL;
    }
    int err = kedge_ended_job_read(h, record, &job, &w->diag);
    if (err) {
        w->err = err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
        return NULL;
    }
    row = is_of_tenant(job.spec, &w->args.tenant) ? kedge_admin_ended_summary(&job) : NULL;
    kedge_ended_job_deinit(&job);
    return row;
}

/* One page ends with enough jobs, or with as many looked at as fit a bounded time: then it may have few or
 * none, and says where to go on. */
static int list_page(struct kedge_host *h, struct list_work *w)
{
    const struct kedge_admin_list *a = &w->args;
    size_t count = 0;
    bool more = false;
    KEDGE_TRY(kedge_job_records_page(h, a->prefix.s, &a->from, LIST_LOOKS_MAX, w->records, &count, &more,
                                     &w->diag));
    size_t i = count > 0 && a->after && kedge_id_eq(&w->records[0].job, &a->from) ? 1 : 0;
    const size_t spec_looks = a->tenant.s[0] ? i + LIST_SPECS_MAX : SIZE_MAX;
    while (i < count && i < spec_looks && json_array_size(w->list) < a->limit) {
        json_t *row = list_row(h, w, &w->records[i++]);
        KEDGE_TRY(w->err);
        if (row) {
            json_array_append_new(w->list, row);
        }
    }
    w->next = i < count || more ? w->records[i].job : (struct kedge_id){.s = ""};
    return KEDGE_OK;
}

static void list_run(struct kedge_host *h, struct kedge_work *work)
{
    struct list_work *w = (struct list_work *)work;
    w->records = kedge_mem_new(LIST_LOOKS_MAX + 1, sizeof *w->records);
    w->list = json_array();
    kedge_waiting_views_sort(w->waiting, w->waiting_count);
    w->err = w->records && w->list ? list_page(h, w) : KEDGE_E_NOMEM;
}

static void list_done(struct kedge_host *h, struct kedge_item *item)
{
    struct list_work *w = (struct list_work *)item;
    (void)h;
    json_t *answer = json_pack("{s:o}", "jobs", w->list);
    if (w->next.s[0]) {
        json_object_set_new(answer, "next", json_string(w->next.s));
    }
    kedge_admin_answer(w->req, w->err, &w->diag, answer);
    json_decref(w->running);
    kedge_mem_free(w->waiting);
    kedge_mem_free(w->records);
    kedge_mem_free(w);
}

void kedge_admin_job_list(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d;
    struct kedge_admin_list a;
    int err = kedge_admin_list_args(args, &a, &d);
    struct list_work *w = err ? NULL : kedge_mem_new(1, sizeof *w);
    struct kedge_waiting_view *waiting;
    uint32_t waiting_count;
    if (!w || kedge_waiting_views(h, KEDGE_COORD_NONE, &waiting, &waiting_count) != KEDGE_OK) {
        kedge_mem_free(w);
        kedge_admin_error(req, err ? err : KEDGE_E_NOMEM, err ? &d : NULL);
        return;
    }
    *w = (struct list_work){.work = {.item = {list_done}, .run = list_run},
                            .req = req,
                            .args = a,
                            .running = json_object(),
                            .waiting = waiting,
                            .waiting_count = waiting_count};
    for (uint32_t i = 0; i < KEDGE_JOBS_MAX; i++) {
        const struct kedge_job *job = &h->jobs[i];
        if (job->used && !kedge_host_job_has_ended(job)) {
            const bool is_wanted =
                fits(&a, job->state, job->created_ms) && is_of_tenant(&job->spec, &a.tenant);
            json_object_set_new(w->running, job->spec.name.s,
                                is_wanted ? kedge_admin_job_summary(h, job) : json_null());
        }
    }
    kedge_host_work(h, &w->work);
}
