/* job.groups: the groups of a job as the record tells them. Read by a worker: with a picture it goes through
 * updates. */
#include "coordinator/daemon/admin/admin.h"

#include <jansson.h>
#include <string.h>

#include "chain/view/groups_view.h"
#include "common/base/mem.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"

enum { SITES_MAX = 3000, MOVES_MAX = 1000 }; /* of one answer, which has a limit; the record has them all */

struct groups_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    struct kedge_id job;
    bool picture;
    struct kedge_groups_log main, *tenants;
    size_t tenant_count;
    struct kedge_buf json;
    int err;
    struct kedge_diag diag;
};

/* The JSON is made by chain/view, by the code that tells the groups of a record without a
 * coordinator, so both say the same. */
static void groups_run(struct kedge_host *h, struct kedge_work *work)
{
    (void)h;
    struct groups_work *w = (struct groups_work *)work;
    struct kedge_groups_view view;
    w->err =
        kedge_groups_view_read(&w->main, w->tenants, w->tenant_count, &w->job, w->picture, &view, &w->diag);
    if (!w->err) {
        kedge_groups_view_json(&view, SITES_MAX, MOVES_MAX, &w->json);
        kedge_groups_view_deinit(&view);
        w->err = w->json.err ? kedge_diag_set(&w->diag, w->json.err, "the answer does not fit") : KEDGE_OK;
    }
}

static void groups_done(struct kedge_host *h, struct kedge_item *item)
{
    struct groups_work *w = (struct groups_work *)item;
    json_error_t at;
    (void)h;
    json_t *o = w->err ? NULL : json_loadb((const char *)w->json.ptr, w->json.len, 0, &at);
    if (o) {
        kedge_admin_ok(w->req, o);
    } else {
        kedge_admin_error(w->req, w->err ? w->err : KEDGE_E_NOMEM, &w->diag);
    }
    kedge_buf_deinit(&w->json);
    kedge_mem_free(w->tenants);
    kedge_mem_free(w);
}

void kedge_admin_job_groups(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d;
    struct kedge_id id;
    const char *name = json_string_value(json_object_get(args, "job"));
    const json_t *picture = json_object_get(args, "picture");
    if (!name || kedge_id_from(kedge_view_str(name), &id) != KEDGE_OK
        || (picture && !json_is_boolean(picture))) {
        (void)kedge_diag_set(&d, KEDGE_E_FORMAT, "job.groups: expected a job's name and true or false");
        kedge_admin_error(req, KEDGE_E_FORMAT, &d);
        return;
    }
    struct groups_work *w = kedge_mem_new(1, sizeof *w);
    struct kedge_groups_log *tenants = kedge_mem_new(h->tenant_count + 1, sizeof *tenants);
    if (!w || !tenants) {
        kedge_mem_free(w);
        kedge_mem_free(tenants);
        (void)kedge_diag_set(&d, KEDGE_E_NOMEM, "out of memory");
        kedge_admin_error(req, KEDGE_E_NOMEM, &d);
        return;
    }
    *w = (struct groups_work){.work = {.item = {groups_done}, .run = groups_run},
                              .req = req,
                              .job = id,
                              .picture = json_is_true(picture),
                              .main = {.ledger = h->main.ledger, .blobs = h->main.blobs},
                              .tenants = tenants,
                              .tenant_count = h->tenant_count};
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        const struct kedge_tenant *t = &h->tenants[i];
        tenants[i] = (struct kedge_groups_log){t->id, t->log.ledger, t->log.blobs};
    }
    kedge_buf_init(&w->json, KEDGE_ADMIN_JSON_MAX - 1024);
    kedge_host_work(h, &w->work);
}
