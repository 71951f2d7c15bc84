/* What is kept of a tenant's refused updates (chain/state/refused.h): who asks is shown it, and what somebody
 * has been shown may go when its time is over. Their files go by order of the tenant's admin, as those of the
 * ledger do; but no ledger names them, so that the order is checked and not appended. */
#include <jansson.h>
#include <string.h>

#include "chain/state/refused.h"
#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/admin/admin_append.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/erase.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/sites/refused.h"

enum { PAGE = 256 }; /* rows of an answer; one has less than 1,400 characters */

struct list_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    char dir[KEDGE_PATH_MAX];
    uint64_t from, at; /* rows to pass over, rows that were met */
    bool unnoted;      /* a command counts them, nobody reads them */
    json_t *rows;
    int err;
    struct kedge_diag diag;
};

static json_t *row_of(const struct kedge_refused_row *row)
{
    const struct kedge_st_refused *r = &row->st.u.refused;
    char update[KEDGE_HASH_HEX_LEN + 1], subject[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(&r->update, update);
    kedge_hash_hex(&row->st.subject, subject);
    json_t *o =
        json_pack("{s:s,s:s,s:s,s:i,s:i,s:s,s:s,s:s,s:b,s:s,s:s,s:I,s:b,s:b,s:b,s:s}", "tenant", r->tenant.s,
                  "site", r->site.s, "job", r->job.s, "round", (int)r->round, "group", (int)r->group, "kind",
                  r->update_kind == KEDGE_TRAIN_PRETRAIN ? "pretrain" : "train", "code", r->code, "reason",
                  r->reason, "listed", r->listed == 1, "update", update, "envelope_sha256", subject,
                  "kept_until_s", (json_int_t)r->kept_until_s, "has_envelope", row->has_envelope,
                  "has_update", row->has_update, "was_shown", row->was_shown, "path", row->path);
    if (row->has_update) {
        json_object_set_new(o, "bytes", json_integer((json_int_t)row->bytes));
        json_object_set_new(o, "stored_ms", json_integer((json_int_t)row->stored_ms));
    }
    return o;
}

/* A page shows a part, but all rows are counted, so the caller learns whether there are more. What
 * somebody has been shown may go when its time is over, what nobody has seen stays; a mark that
 * cannot be written keeps the files for longer, no more. */
static int list_one(void *arg, const struct kedge_refused_row *row)
{
    struct list_work *w = arg;
    if (!row->is_refusal || w->at++ < w->from || json_array_size(w->rows) == PAGE) {
        return KEDGE_OK;
    }
    int err = row->was_shown || w->unnoted ? KEDGE_OK : kedge_refused_mark(w->dir, row);
    if (err) {
        kedge_log(KEDGE_LOG_WARN, "refused updates", "%s: %s", row->path, kedge_strerror(err));
    }
    return json_array_append_new(w->rows, row_of(row)) == 0 ? KEDGE_OK : KEDGE_E_NOMEM;
}

static void list_run(struct kedge_host *h, struct kedge_work *work)
{
    struct list_work *w = (struct list_work *)work;
    (void)h;
    w->err = kedge_refused_each(w->dir, list_one, w, &w->diag);
}

static void list_done(struct kedge_host *h, struct kedge_item *item)
{
    struct list_work *w = (struct list_work *)item;
    (void)h;
    uint64_t next = w->from + json_array_size(w->rows);
    if (w->err) {
        kedge_admin_error(w->req, w->err, &w->diag);
        json_decref(w->rows);
    } else {
        kedge_admin_ok(w->req, json_pack("{s:o,s:I}", "refusals", w->rows, "next",
                                         (json_int_t)(next < w->at ? next : 0)));
    }
    kedge_mem_free(w);
}

static void list(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_updates asked = {.from = 0};
    uint32_t tenant = 0;
    int err = kedge_admin_updates_of(h, args, &asked, &tenant, &d);
    struct list_work *w = err ? NULL : kedge_mem_new(1, sizeof *w);
    json_t *rows = w ? json_array() : NULL;
    err = err     ? err
          : !rows ? KEDGE_E_NOMEM
                  : kedge_refused_dir(w->dir, NULL, h->state, &h->tenants[tenant].id);
    if (err) {
        json_decref(rows);
        kedge_mem_free(w);
        kedge_admin_error(req, err, &d);
        return;
    }
    w->work = (struct kedge_work){.item = {list_done}, .run = list_run};
    w->req = req;
    w->from = asked.from;
    w->unnoted = json_is_true(json_object_get(args, "unnoted"));
    w->rows = rows;
    kedge_host_work(h, &w->work);
}

/* The order is what kedge_admin_append_open takes for an `erased` statement: signed by an admin in
 * force, for this ledger, here and now. It must not be one for an update that the ledger names:
 * that order has to stand in the ledger, or the erasure would leave no trace in the record. */
static int check_order(struct kedge_host *h, const json_t *args, struct kedge_admin_append *a,
                       struct kedge_diag *d)
{
    const json_t *order = json_object_get(args, "order");
    json_t *signed_args =
        json_pack("{s:O?,s:O?}", "tenant", json_object_get(args, "tenant"), "envelope", order);
    int err = signed_args ? kedge_admin_append_open(h, signed_args, KEDGE_ST_ERASED, a, d) : KEDGE_E_NOMEM;
    json_decref(signed_args);
    if (err) {
        return err;
    }
    if (!kedge_id_eq(&a->st->u.erased.tenant, &h->tenants[a->tenant].id)) {
        return kedge_diag_set(d, KEDGE_E_DENIED, "the statement is about another tenant");
    }
    return kedge_ledger_find_ref(h->tenants[a->tenant].log.ledger, &a->st->u.erased.update, NULL)
                   == KEDGE_E_NOT_FOUND
               ? KEDGE_OK
               : kedge_diag_set(d, KEDGE_E_STATE,
                                "the ledger names this update: its order must stand in the ledger, too");
}

static void erase(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    char hex[KEDGE_HASH_HEX_LEN + 1];
    struct kedge_admin_append *a = kedge_admin_append_new(req);
    int err = check_order(h, args, a, &d);
    if (!err) {
        err = kedge_host_refused_erase(h, a->tenant, &a->st->u.erased.update, &d);
    }
    if (err) {
        kedge_admin_append_fail(a, err, &d);
        return;
    }
    kedge_hash_hex(&a->st->u.erased.update, hex);
    kedge_log(KEDGE_LOG_INFO, "erased", "tenant=%s refused update=%s", h->tenants[a->tenant].id.s, hex);
    kedge_admin_ok(req, json_pack("{s:s,s:s}", "tenant", h->tenants[a->tenant].id.s, "update", hex));
    kedge_admin_append_free(a);
}

bool kedge_admin_refusals(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                          const json_t *args)
{
    if (strcmp(verb, "ledger.refusals") == 0) {
        list(h, req, args);
    } else if (strcmp(verb, "ledger.erase-refused") == 0) {
        erase(h, req, args);
    } else {
        return false;
    }
    return true;
}
