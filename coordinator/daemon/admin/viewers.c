/* Viewers of tenants. Memory has them all, so that the gate looks at no disk; the disk has them first.
 *
 * A key may be a viewer's of several tenants, or have another role somewhere: what it is elsewhere is not
 * looked at, or the answer would tell a tenant which keys others have. For the same reason no connection is
 * closed when a viewer is removed. Each request is judged anew, so the next one is refused. */
#include "coordinator/daemon/admin/viewers.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/records.h"
#include "coordinator/daemon/sites/known.h"
#include "coordinator/daemon/tenant_keys.h"

/* ---- the table ---- */

static uint32_t find(const struct kedge_tenant *t, const struct kedge_id *name)
{
    uint32_t i = 0;
    while (i < t->viewer_count && !kedge_id_eq(&t->viewers[i].name, name)) {
        i++;
    }
    return i;
}

/* Room for all that there may be: most tenants have none, and those that have one do not grow by steps. */
static int make_room(struct kedge_tenant *t)
{
    if (!t->viewers) {
        t->viewers = kedge_mem_new(KEDGE_VIEWERS_MAX, sizeof *t->viewers);
    }
    return t->viewers ? KEDGE_OK : KEDGE_E_NOMEM;
}

struct load {
    struct kedge_host *h;
    struct kedge_diag *d;
};

/* A tenant that is not here any more may have left some. */
static int load_one(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct load *l = arg;
    struct kedge_viewer_record r;
    KEDGE_TRY(kedge_viewer_record_decode(key, value, &r, l->d));
    uint32_t at = kedge_host_tenant_find(l->h, &r.tenant);
    struct kedge_tenant *t = at == KEDGE_COORD_NONE ? NULL : &l->h->tenants[at];
    if (!t) {
        return KEDGE_OK;
    }
    if (t->viewer_count >= KEDGE_VIEWERS_MAX) {
        return kedge_diag_set(l->d, KEDGE_E_CORRUPT, "coordinator.lmdb: tenant %s has more than %d viewers",
                              t->id.s, KEDGE_VIEWERS_MAX);
    }
    KEDGE_TRY(make_room(t));
    t->viewers[t->viewer_count++] = (struct kedge_viewer){r.name, r.key, r.since_s};
    return KEDGE_OK;
}

int kedge_host_viewers_load(struct kedge_host *h, struct kedge_diag *d)
{
    struct load l = {h, d};
    struct kedge_kv_tx *tx KEDGE_CLEANUP(kedge_kv_drop) = NULL;
    KEDGE_TRY(kedge_kv_begin(h->kv, false, &tx, d));
    int err = kedge_kv_scan(tx, KEDGE_KV_STATE, kedge_view_str(KEDGE_VIEWER_PREFIX),
                            (struct kedge_view){NULL, 0}, load_one, &l);
    return err && !d->text[0]
               ? kedge_diag_set(d, err, "coordinator.lmdb: cannot read viewers: %s", kedge_strerror(err))
               : err;
}

/* viewer NULL: it goes. */
static int store(struct kedge_host *h, const struct kedge_id *tenant, const struct kedge_id *name,
                 const struct kedge_viewer *viewer, struct kedge_diag *d)
{
    struct kedge_kv_tx *tx;
    struct kedge_buf key KEDGE_CLEANUP(kedge_buf_deinit), value KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&key, KEDGE_RECORD_KEY_MAX);
    kedge_buf_init(&value, KEDGE_RECORD_MAX);
    if (viewer) {
        const struct kedge_viewer_record r = {*tenant, *name, viewer->key, viewer->since_s};
        KEDGE_TRY(kedge_viewer_record_encode(&r, &key, &value));
    } else {
        kedge_viewer_record_key(tenant, name, &key);
        KEDGE_TRY(key.err);
    }
    KEDGE_TRY(kedge_kv_begin(h->kv, true, &tx, d));
    int err =
        viewer ? kedge_kv_put(tx, KEDGE_KV_STATE, kedge_buf_view(&key), kedge_buf_view(&value), KEDGE_KV_PUT)
               : kedge_kv_del(tx, KEDGE_KV_STATE, kedge_buf_view(&key));
    return kedge_kv_end(tx, err, d);
}

/* ---- verbs ---- */

/* NULL: there is none. */
static struct kedge_tenant *find_tenant(struct kedge_host *h, const struct kedge_id *id, struct kedge_diag *d)
{
    uint32_t at = kedge_host_tenant_find(h, id);
    if (at == KEDGE_COORD_NONE) {
        (void)kedge_diag_set(d, KEDGE_E_NOT_FOUND, "no tenant \"%s\" here", id->s);
        return NULL;
    }
    return &h->tenants[at];
}

static int check_new(const struct kedge_tenant *t, const struct kedge_admin_viewer *a, struct kedge_diag *d)
{
    if (t->viewer_count >= KEDGE_VIEWERS_MAX) {
        return kedge_diag_set(d, KEDGE_E_FULL, "tenant %s has %d viewers already: remove one first", t->id.s,
                              KEDGE_VIEWERS_MAX);
    }
    return kedge_tenant_shows_to(t, &a->key)
               ? kedge_diag_set(d, KEDGE_E_EXISTS, "this key sees tenant %s already", t->id.s)
               : KEDGE_OK;
}

/* The same one again is no error: an answer may have been lost. */
static int add(struct kedge_host *h, const json_t *args, json_t **ret, struct kedge_diag *d)
{
    struct kedge_admin_viewer a;
    KEDGE_TRY(kedge_admin_viewer_args(args, true, &a, d));
    struct kedge_tenant *t = find_tenant(h, &a.tenant, d);
    if (!t) {
        return KEDGE_E_NOT_FOUND;
    }
    const uint32_t at = find(t, &a.name);
    const struct kedge_viewer viewer = {a.name, a.key, kedge_os_unix_ms() / 1000};
    if (at < t->viewer_count && !kedge_public_key_eq(&t->viewers[at].key, &a.key)) {
        return kedge_diag_set(d, KEDGE_E_EXISTS, "viewer \"%s\" has another key: remove it first", a.name.s);
    }
    if (at == t->viewer_count) {
        KEDGE_TRY(check_new(t, &a, d));
        KEDGE_TRY(make_room(t));
        KEDGE_TRY(store(h, &t->id, &a.name, &viewer, d));
        t->viewers[t->viewer_count++] = viewer;
        kedge_host_known_refresh(h);
        kedge_log(KEDGE_LOG_INFO, "viewer", "tenant=%s name=%s added", t->id.s, a.name.s);
    }
    *ret = json_pack("{s:s,s:s}", "tenant", t->id.s, "name", a.name.s);
    return KEDGE_OK;
}

static int list(struct kedge_host *h, const json_t *args, json_t **ret, struct kedge_diag *d)
{
    struct kedge_admin_viewer a;
    KEDGE_TRY(kedge_admin_viewer_tenant(args, &a.tenant, d));
    struct kedge_tenant *t = find_tenant(h, &a.tenant, d);
    if (!t) {
        return KEDGE_E_NOT_FOUND;
    }
    json_t *rows = json_array();
    for (uint32_t i = 0; i < t->viewer_count; i++) {
        const struct kedge_viewer *v = &t->viewers[i];
        json_array_append_new(rows, json_pack("{s:s,s:o,s:I}", "name", v->name.s, "key",
                                              kedgei_json_hex(v->key.b, KEDGE_KEY_LEN), "since_s",
                                              (json_int_t)v->since_s));
    }
    *ret = json_pack("{s:s,s:o}", "tenant", t->id.s, "viewers", rows);
    return KEDGE_OK;
}

static int drop(struct kedge_host *h, const json_t *args, json_t **ret, struct kedge_diag *d)
{
    struct kedge_admin_viewer a;
    KEDGE_TRY(kedge_admin_viewer_args(args, false, &a, d));
    struct kedge_tenant *t = find_tenant(h, &a.tenant, d);
    if (!t) {
        return KEDGE_E_NOT_FOUND;
    }
    const uint32_t at = find(t, &a.name);
    if (at == t->viewer_count) {
        return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "tenant %s has no viewer \"%s\"", t->id.s, a.name.s);
    }
    KEDGE_TRY(store(h, &t->id, &a.name, NULL, d));
    t->viewers[at] = t->viewers[--t->viewer_count];
    kedge_host_known_refresh(h);
    kedge_log(KEDGE_LOG_INFO, "viewer", "tenant=%s name=%s removed", t->id.s, a.name.s);
    *ret = json_pack("{s:s,s:s}", "tenant", t->id.s, "name", a.name.s);
    return KEDGE_OK;
}

void kedge_admin_viewers(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                         const json_t *args)
{
    static const struct {
        const char *verb;
        int (*run)(struct kedge_host *h, const json_t *args, json_t **ret, struct kedge_diag *d);
    } verbs[] = {{"viewer.add", add}, {"viewer.list", list}, {"viewer.remove", drop}};
    struct kedge_diag d = {.text = ""};
    json_t *answer = NULL;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].verb, verb) == 0) {
            int err = verbs[i].run(h, args, &answer, &d);
            kedge_admin_answer(req, err, &d, answer);
            return;
        }
    }
    (void)kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "unknown verb \"%.40s\"", verb);
    kedge_admin_error(req, KEDGE_E_NOT_FOUND, &d);
}
