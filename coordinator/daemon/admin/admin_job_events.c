/* job.events: the status history of a job, in pages. Read by a worker from what is durable, and from nothing
 * else: what was told once is told for ever. A job of which a version before kept no moves has none. */
#include "coordinator/daemon/admin/admin.h"

#include <jansson.h>
#include <string.h>

#include "common/base/mem.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/job_moves.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/restore/ended_job.h"

struct events_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    struct kedge_admin_events args;
    struct kedge_job_record record;
    struct kedge_job_move *moves;
    uint32_t count;
    bool more;
    int err;
    struct kedge_diag diag;
};

/* The record is read first: a job that ends meanwhile then has moves beyond its record's state, never a state
 * without the move that led there. */
static void events_run(struct kedge_host *h, struct kedge_work *work)
{
    struct events_work *w = (struct events_work *)work;
    w->moves = kedge_mem_new(w->args.limit, sizeof *w->moves);
    w->err = w->moves ? kedge_job_record_get(h, &w->args.job, &w->record, &w->diag) : KEDGE_E_NOMEM;
    if (w->err == KEDGE_E_NOT_FOUND) {
        w->err = kedge_diag_set(&w->diag, KEDGE_E_NOT_FOUND, "no job \"%s\"", w->args.job.s);
    }
    if (!w->err) {
        w->err = kedge_job_moves_page(h->kv, &w->args.job, w->args.from, w->args.limit, w->moves, &w->count,
                                      &w->more, &w->diag);
    }
}

static json_t *event_json(const struct kedge_job_move *m)
{
    json_t *o = json_pack("{s:I,s:I,s:s,s:s,s:s,s:s,s:I}", "sequence", (json_int_t)m->sequence, "epoch",
                          (json_int_t)m->epoch, "from", kedge_job_state_name(m->from), "to",
                          kedge_job_state_name(m->to), "cause", kedge_job_cause_name(m->cause), "actor",
                          m->actor, "ms", (json_int_t)m->ms);
    if (m->reason) {
        json_object_set_new(o, "reason", json_string(kedge_err_code(m->reason)));
        json_object_set_new(o, "reason_text", json_string(kedge_strerror(m->reason)));
    }
    return o;
}

static void events_done(struct kedge_host *h, struct kedge_item *item)
{
    struct events_work *w = (struct events_work *)item;
    json_t *events = json_array();
    (void)h;
    for (uint32_t i = 0; i < w->count; i++) {
        json_array_append_new(events, event_json(&w->moves[i]));
    }
    json_t *o = json_pack("{s:s,s:s,s:b,s:o}", "job", w->args.job.s, "state",
                          kedge_job_state_name(w->record.state), "more", (int)w->more, "events", events);
    kedge_admin_answer(w->req, w->err, &w->diag, o);
    kedge_mem_free(w->moves);
    kedge_mem_free(w);
}

void kedge_admin_job_events(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d;
    struct kedge_admin_events a;
    int err = kedge_admin_events_args(args, &a, &d);
    struct events_work *w = err ? NULL : kedge_mem_new(1, sizeof *w);
    if (!w) {
        kedge_admin_error(req, err ? err : KEDGE_E_NOMEM, err ? &d : NULL);
        return;
    }
    *w = (struct events_work){.work = {.item = {events_done}, .run = events_run}, .req = req, .args = a};
    kedge_host_work(h, &w->work);
}
