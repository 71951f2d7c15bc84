/* job.spec and job.costs: what a job was told to do, and what its rounds cost. Both are read from the record
 * by a worker, of a job that runs as of one that has ended: the update statements are many, and in no table.
 */
#include "coordinator/daemon/admin/admin.h"

#include <jansson.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/admin/job_logs.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/restore/ended_job.h"

struct costs_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    struct kedge_id job;
    bool only_spec;
    uint32_t from, last; /* last: of a job that runs its round; KEDGE_COORD_NONE: it does not run */
    struct kedge_job_logs logs;
    json_t *o; /* the answer */
    int err;
    struct kedge_diag diag;
};

/* The text is the one that was submitted, byte for byte: its digest is what tenants signed. */
static int put_spec_text(struct kedge_host *h, const struct kedge_job_record *record, json_t *o,
                         struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    KEDGE_TRY(kedge_blobs_read(h->main.blobs, &record->spec, &text, d));
    json_object_set_new(o, "digest", kedgei_json_hex(record->spec.b, KEDGE_HASH_LEN));
    return json_object_set_new(o, "spec", json_stringn((const char *)text.ptr, text.len)) ? KEDGE_E_FORMAT
                                                                                          : KEDGE_OK;
}

static json_t *costs_row(const struct kedge_round_history *row)
{
    const struct kedge_round_costs *c = &row->costs;
    json_t *o = json_pack("{s:i,s:I,s:I,s:I,s:o}", "round", (int)row->round, "updates",
                          (json_int_t)c->updates, "upload_bytes", (json_int_t)c->bytes, "erased",
                          (json_int_t)c->erased, "site_seconds", kedgei_json_number(c->site_seconds));
    json_object_set_new(o, "untold", json_integer((json_int_t)c->untold));
    if (c->measured > 0) {
        json_object_set_new(o, "joules_measured", kedgei_json_number(c->joules_measured));
    }
    if (c->modelled > 0) {
        json_object_set_new(o, "joules_modelled", kedgei_json_number(c->joules_modelled));
    }
    if (c->data > 0) {
        json_object_set_new(o, "trained_samples", json_integer((json_int_t)c->trained));
        json_object_set_new(o, "data_samples", json_integer((json_int_t)c->data));
    }
    return o;
}

static int put_costs(struct kedge_host *h, struct costs_work *w, const struct kedge_job_spec *spec,
                     uint32_t last)
{
    const struct kedge_history_source source = {.spec = spec,
                                                .main = h->main.ledger,
                                                .tenants = w->logs.logs,
                                                .tenant_count = kedge_job_logs_choose(&w->logs, spec)};
    const uint32_t groups = kedge_job_spec_groups_most(spec);
    struct kedge_history_page page = {
        .most = kedge_history_page_rounds(groups), .without_evaluations = true, .with_costs = true};
    json_t *rounds = json_array();
    page.rows = kedge_history_rows_new(page.most, groups);
    int err =
        page.rows && rounds ? kedge_history_read(&source, w->from, last, &page, &w->diag) : KEDGE_E_NOMEM;
    for (uint32_t i = 0; i < page.count && !err; i++) {
        json_array_append_new(rounds, costs_row(&page.rows[i]));
    }
    json_object_set_new(w->o, "costs", rounds);
    if (!err && page.next != KEDGE_HISTORY_END) {
        json_object_set_new(w->o, "next_round", json_integer(page.next));
    }
    kedge_mem_free(page.rows);
    return err;
}

/* A job that has ended says its last round in its job-closed. */
static int read_costs(struct kedge_host *h, struct costs_work *w, const struct kedge_job_record *record)
{
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    struct kedge_ended_job ended = {.spec = NULL};
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    int err = spec ? kedge_blobs_read(h->main.blobs, &record->spec, &text, &w->diag) : KEDGE_E_NOMEM;
    err = err ? err : kedge_job_spec_parse(kedge_buf_view(&text), spec, &w->diag);
    uint32_t last = w->last;
    if (!err && last == KEDGE_COORD_NONE) {
        err = kedge_ended_job_read(h, record, &ended, &w->diag);
        last = ended.round;
        kedge_ended_job_deinit(&ended);
    }
    err = err ? err : put_costs(h, w, spec, last);
    kedge_mem_free(spec);
    return err;
}

static void costs_run(struct kedge_host *h, struct kedge_work *work)
{
    struct costs_work *w = (struct costs_work *)work;
    struct kedge_job_record record;
    w->o = json_pack("{s:s}", "job", w->job.s);
    w->err = kedge_job_record_get(h, &w->job, &record, &w->diag);
    if (w->err == KEDGE_E_NOT_FOUND) {
        w->err = kedge_diag_set(&w->diag, KEDGE_E_NOT_FOUND, "no job \"%s\"", w->job.s);
        return;
    }
    if (!w->err) {
        w->err = w->only_spec ? put_spec_text(h, &record, w->o, &w->diag) : read_costs(h, w, &record);
        w->err = w->err == KEDGE_E_NOT_FOUND ? KEDGE_E_CORRUPT : w->err; /* the job is there, this is not */
    }
}

static void costs_done(struct kedge_host *h, struct kedge_item *item)
{
    struct costs_work *w = (struct costs_work *)item;
    (void)h;
    kedge_admin_answer(w->req, w->err, &w->diag, w->o);
    kedge_mem_free(w->logs.logs);
    kedge_mem_free(w);
}

static void ask(struct kedge_host *h, struct kedge_net_request *req, const json_t *args, bool only_spec)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id id;
    uint32_t from;
    const char *name = json_string_value(json_object_get(args, "job"));
    int err = kedge_admin_from_round(args, &from, &d);
    if (!err && (!name || kedge_id_from(kedge_view_str(name), &id) != KEDGE_OK)) {
        err = kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "no job \"%.63s\"", name ? name : "");
    }
    struct costs_work *w = err ? NULL : kedge_mem_new(1, sizeof *w);
    if (!w) {
        kedge_admin_error(req, err ? err : KEDGE_E_NOMEM, &d);
        return;
    }
    const struct kedge_job *job = kedge_host_job_find(h, &id, false);
    const uint32_t none = kedge_waiting_find(h, &id) ? 0 : KEDGE_COORD_NONE; /* without a round; ended */
    *w = (struct costs_work){.work = {.item = {costs_done}, .run = costs_run},
                             .req = req,
                             .job = id,
                             .only_spec = only_spec,
                             .from = from,
                             .last = job ? job->round : none};
    err = kedge_job_logs_copy(h, &w->logs);
    if (err) {
        kedge_mem_free(w);
        kedge_admin_error(req, err, NULL);
        return;
    }
    kedge_host_work(h, &w->work);
}

void kedge_admin_job_spec(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    ask(h, req, args, true);
}

void kedge_admin_job_costs(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    ask(h, req, args, false);
}
