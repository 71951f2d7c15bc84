/* What an operator asks about updates, and what a tenant's admin orders to be erased.
 *
 * The order is a statement in the tenant's ledger. It becomes durable first, then the file goes,
 * then the answer comes: a crash in between leaves an order without its deed, which the next start
 * carries out, and never a deed without its order. The record keeps the digest, so audits still add
 * up; only the bytes are gone. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/state/refused.h"
#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/admin/admin_append.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/erase.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/shred.h"
#include "coordinator/daemon/sites/refused.h"

enum { PAGE_ENTRIES = 1024 }; /* that one answer looks at; a row has less than 400 characters */

/* ---- ledger.updates ---- */

struct list_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    struct kedge_ledger *ledger;
    struct kedge_blobs *blobs;
    uint64_t from, next; /* next: 0 after the last page */
    json_t *rows;
    struct kedge_statement *st;
    int err;
};

/* Sizes come from the store, as far as the file is there: an update that was erased or is on a disk
 * that is not mounted has none. */
static int put_row(struct list_work *w, uint64_t index)
{
    const struct kedge_st_update *u = &w->st->u.update;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    uint64_t bytes, stored_ms;
    kedge_hash_hex(&w->st->subject, hex);
    json_t *row = json_pack("{s:I,s:s,s:s,s:i,s:s,s:s}", "entry", (json_int_t)index, "update", hex, "job",
                            u->job.s, "round", (int)u->round, "kind",
                            u->update_kind == KEDGE_TRAIN_PRETRAIN ? "pretrain" : "train", "site", u->site.s);
    if (kedge_blobs_stored(w->blobs, &w->st->subject, &bytes, &stored_ms) == KEDGE_OK) {
        json_object_set_new(row, "bytes", json_integer((json_int_t)bytes));
        json_object_set_new(row, "stored_ms", json_integer((json_int_t)stored_ms));
    }
    json_object_set_new(row, "erased", json_boolean(kedge_ledger_has_erased(w->ledger, &w->st->subject)));
    return json_array_append_new(w->rows, row) == 0 ? KEDGE_OK : KEDGE_E_NOMEM;
}

static void list_run(struct kedge_host *h, struct kedge_work *work)
{
    struct list_work *w = (struct list_work *)work;
    uint64_t size = kedge_ledger_size(w->ledger);
    uint64_t end = size < w->from || size - w->from <= PAGE_ENTRIES ? size : w->from + PAGE_ENTRIES;
    (void)h;
    for (uint64_t i = w->from; i < end && !w->err; i++) {
        w->err = kedge_host_read_own(w->ledger, i, w->st);
        if (!w->err && w->st->kind == KEDGE_ST_UPDATE) {
            w->err = put_row(w, i);
        }
    }
    w->next = end < size ? end : 0;
}

/* Whether a job still runs is known on the loop only, so it is added to the rows here. */
static void list_done(struct kedge_host *h, struct kedge_item *item)
{
    struct list_work *w = (struct list_work *)item;
    size_t i;
    json_t *row;
    json_array_foreach(w->rows, i, row)
    {
        struct kedge_id job;
        int err = kedge_id_from(kedge_view_str(json_string_value(json_object_get(row, "job"))), &job);
        json_object_set_new(row, "running", json_boolean(!err && kedge_host_job_find(h, &job, false)));
    }
    if (w->err) {
        struct kedge_diag d;
        (void)kedge_diag_set(&d, w->err, "the ledger cannot be read: %s", kedge_strerror(w->err));
        kedge_admin_error(w->req, w->err, &d);
        json_decref(w->rows);
    } else {
        kedge_admin_ok(w->req, json_pack("{s:o,s:I}", "updates", w->rows, "next", (json_int_t)w->next));
    }
    kedge_mem_free(w->st);
    kedge_mem_free(w);
}

int kedge_admin_updates_of(const struct kedge_host *h, const json_t *args, struct kedge_admin_updates *ret,
                           uint32_t *ret_tenant, struct kedge_diag *d)
{
    struct kedge_admin_updates asked;
    KEDGE_TRY(kedge_admin_updates_args(args, &asked, d));
    uint32_t tenant = kedge_host_tenant_find(h, &asked.tenant);
    if (tenant == KEDGE_COORD_NONE) {
        return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "no tenant \"%s\" here", asked.tenant.s);
    }
    *ret = asked;
    *ret_tenant = tenant;
    return KEDGE_OK;
}

static void list_updates(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_updates asked = {.from = 0};
    uint32_t tenant = 0;
    int err = kedge_admin_updates_of(h, args, &asked, &tenant, &d);
    struct list_work *w = err ? NULL : kedge_mem_new(1, sizeof *w);
    struct kedge_statement *st = err ? NULL : kedge_mem_new(1, sizeof *st);
    json_t *rows = err ? NULL : json_array();
    if (!w || !st || !rows) {
        kedge_mem_free(w);
        kedge_mem_free(st);
        json_decref(rows);
        kedge_admin_error(req, err ? err : KEDGE_E_NOMEM, &d);
        return;
    }
    *w = (struct list_work){.work = {.item = {list_done}, .run = list_run},
                            .req = req,
                            .ledger = h->tenants[tenant].log.ledger,
                            .blobs = h->tenants[tenant].log.blobs,
                            .from = asked.from,
                            .rows = rows,
                            .st = st};
    kedge_host_work(h, &w->work);
}

/* ---- ledger.erase ---- */

/* Is an update of that tenant and digest on its way, or an input of a round that is open? */
static bool is_in_use(const struct kedge_host *h, uint32_t tenant, const struct kedge_hash *update)
{
    for (uint32_t i = 0; i < KEDGE_TICKETS_MAX; i++) {
        const struct kedge_ticket *t = &h->tickets[i];
        if (t->used && t->st && t->st->kind == KEDGE_ST_UPDATE && h->sites[t->site].tenant == tenant
            && kedge_hash_eq(&t->st->subject, update)) {
            return true;
        }
    }
    for (uint32_t j = 0; j < KEDGE_JOBS_MAX; j++) {
        if (!h->jobs[j].used || kedge_host_job_has_ended(&h->jobs[j])) {
            continue;
        }
        for (uint32_t s = 0; s < h->site_count; s++) {
            const struct kedge_coord_row *row =
                h->sites[s].tenant == tenant ? kedge_coord_row(h->coord, j, s) : NULL;
            if (row
                && (memcmp(row->pretrain.update.b, update->b, KEDGE_HASH_LEN) == 0
                    || memcmp(row->train.update.b, update->b, KEDGE_HASH_LEN) == 0)) {
                return true;
            }
        }
    }
    return false;
}

/* The update that the statement names, in the tenant's ledger; only lists, models and specs have no such
 * entry, and stay. */
static int check_update(const struct kedge_host *h, const struct kedge_admin_append *a,
                        struct kedge_statement *named, struct kedge_diag *d)
{
    const struct kedge_st_erased *e = &a->st->u.erased;
    struct kedge_ledger *l = h->tenants[a->tenant].log.ledger;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    uint64_t index = 0;
    kedge_hash_hex(&e->update, hex);
    int err = kedge_ledger_find_ref(l, &e->update, &index);
    if (!err) {
        err = kedge_host_read_own(l, index, named);
    }
    if (err == KEDGE_E_NOT_FOUND || (!err && named->kind != KEDGE_ST_UPDATE)) {
        return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "no update %s in the ledger of tenant %s", hex,
                              h->tenants[a->tenant].id.s);
    }
    if (err) {
        return kedge_diag_set(d, err, "ledger of tenant %s, entry %" PRIu64 ": %s",
                              h->tenants[a->tenant].id.s, index, kedge_strerror(err));
    }
    return index == e->entry ? KEDGE_OK
                             : kedge_diag_set(d, KEDGE_E_FORMAT,
                                              "the statement names entry %" PRIu64
                                              ", but update %s is that of entry %" PRIu64,
                                              e->entry, hex, index);
}

/* An update may be erased when no round needs it any more. Its job must have ended, and the same
 * bytes must not be an input of another job's open round, or on their way to become one: a tenant's
 * store has the same bytes once. */
static int check_order(struct kedge_host *h, const struct kedge_admin_append *a, struct kedge_diag *d)
{
    const struct kedge_st_erased *e = &a->st->u.erased;
    const struct kedge_tenant *t = &h->tenants[a->tenant];
    struct kedge_statement *named = kedge_mem_new(1, sizeof *named);
    int err = named ? check_update(h, a, named, d) : KEDGE_E_NOMEM;
    if (!err && kedge_host_job_find(h, &named->u.update.job, false)) {
        err =
            kedge_diag_set(d, KEDGE_E_STATE, "job \"%s\" has not ended: its rounds still need their updates",
                           named->u.update.job.s);
    } else if (!err && is_in_use(h, a->tenant, &e->update)) {
        err = kedge_diag_set(d, KEDGE_E_STATE,
                             "an open round of another job has this very update as an input: wait for its "
                             "end");
    } else if (!err && t->erasing) {
        err = kedge_diag_set(d, KEDGE_E_BUSY, "another erasure of tenant %s is being written", t->id.s);
    }
    kedge_mem_free(named);
    return err;
}

/* The blob, and the same file where it was refused under another statement. */
static int remove_file(const struct kedge_host *h, const struct kedge_admin_append *a, struct kedge_diag *d)
{
    const struct kedge_hash *update = &a->st->u.erased.update;
    KEDGE_TRY(kedge_blobs_remove(h->tenants[a->tenant].log.blobs, update, d));
    return kedge_host_refused_erase(h, a->tenant, update, d);
}

/* The statement is durable: now the file. When it cannot be removed the answer says so; the next start, or
 * the same order once more, tries again. */
static void erased(struct kedge_host *h, struct kedge_admin_append *a)
{
    struct kedge_tenant *t = &h->tenants[a->tenant];
    struct kedge_diag d = {.text = ""};
    char hex[KEDGE_HASH_HEX_LEN + 1];
    kedge_hash_hex(&a->st->u.erased.update, hex);
    t->erasing = false;
    a->err = remove_file(h, a, &d);
    if (a->err) {
        snprintf(a->why, sizeof a->why, "the order stands in entry %" PRIu64 ", but %.200s", a->index,
                 d.text);
        kedge_log(KEDGE_LOG_ERROR, "not erased", "tenant=%s update=%s: %s", t->id.s, hex, d.text);
        return;
    }
    kedge_log(KEDGE_LOG_INFO, "erased", "tenant=%s update=%s entry=%" PRIu64, t->id.s, hex, a->index);
}

static void not_erased(struct kedge_host *h, struct kedge_admin_append *a)
{
    h->tenants[a->tenant].erasing = false;
}

/* Ordered before, by this statement or another: what counts is that it is so. */
static void answer_known(struct kedge_host *h, struct kedge_admin_append *a, uint64_t index)
{
    const struct kedge_tenant *t = &h->tenants[a->tenant];
    struct kedge_diag d = {.text = ""};
    int err = remove_file(h, a, &d);
    if (err) {
        kedge_admin_append_fail(a, err, &d);
        return;
    }
    kedge_admin_ok(a->req, json_pack("{s:s,s:I,s:b}", "tenant", t->id.s, "leaf_index", (json_int_t)index,
                                     "repeated", true));
    kedge_admin_append_free(a);
}

static void erase(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_append *a = kedge_admin_append_new(req);
    int err = kedge_admin_append_open(h, args, KEDGE_ST_ERASED, a, &d);
    if (!err && !kedge_id_eq(&a->st->u.erased.tenant, &h->tenants[a->tenant].id)) {
        err = kedge_diag_set(&d, KEDGE_E_DENIED, "the statement is about another tenant");
    }
    uint64_t index;
    if (!err && kedge_ledger_find_erased(h->tenants[a->tenant].log.ledger, &a->st->u.erased.update, &index)) {
        answer_known(h, a, index);
        return;
    }
    if (!err) {
        err = check_order(h, a, &d);
    }
    if (err) {
        kedge_admin_append_fail(a, err, &d);
        return;
    }
    struct kedge_tenant *t = &h->tenants[a->tenant];
    char key[KEDGE_IDEM_KEY_MAX + 1];
    kedge_erased_key(&a->st->u.erased.update, key);
    t->erasing = true; /* from now on no site can bring these bytes again */
    t->erased = a->st->u.erased.update;
    a->undo = not_erased;
    a->then = erased;
    kedge_admin_append_submit(h, a, args, key);
}

/* ---- ledger.shred ---- */

struct shred_work {
    struct kedge_work work;
    struct kedge_net_request *req;
    struct kedge_shred shred;
    size_t done;
    int err;
    struct kedge_diag diag;
};

static void shred_run(struct kedge_host *h, struct kedge_work *work)
{
    struct shred_work *w = (struct shred_work *)work;
    (void)h;
    w->err = kedge_shred_run(&w->shred, &w->done, &w->diag);
}

static void shred_done(struct kedge_host *h, struct kedge_item *item)
{
    struct shred_work *w = (struct shred_work *)item;
    (void)h;
    if (w->err) {
        kedge_admin_error(w->req, w->err, &w->diag);
    } else {
        kedge_admin_ok(w->req, json_pack("{s:I}", "keys_destroyed", (json_int_t)w->done));
    }
    kedge_shred_end(&w->shred);
    kedge_mem_free(w);
}

static void shred(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_updates asked = {.from = 0};
    uint32_t tenant = 0;
    struct shred_work *w = kedge_mem_new(1, sizeof *w);
    int err = w ? kedge_admin_updates_of(h, args, &asked, &tenant, &d) : KEDGE_E_NOMEM;
    if (!err) {
        err = kedge_shred_begin(h, tenant, &w->shred);
    }
    if (err) {
        kedge_mem_free(w);
        kedge_admin_error(req, err, &d);
        return;
    }
    w->work = (struct kedge_work){.item = {shred_done}, .run = shred_run};
    w->req = req;
    kedge_host_work(h, &w->work);
}

bool kedge_admin_erase(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                       const json_t *args)
{
    if (strcmp(verb, "ledger.updates") == 0) {
        list_updates(h, req, args);
    } else if (strcmp(verb, "ledger.erase") == 0) {
        erase(h, req, args);
    } else if (strcmp(verb, "ledger.shred") == 0) {
        shred(h, req, args);
    } else {
        return false;
    }
    return true;
}
