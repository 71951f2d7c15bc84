/* One gate, then the operators' verbs.
 *
 * Each verb of the table is about one tenant: the one that the request names, or, where it names none, the
 * one that this key sees. The gate looks whether the key is an admin's or a viewer's there. If not, the
 * answer is the same whether such a tenant exists or not, after the same look at the same tables, so nobody
 * learns from it who else is here. A viewer gets no further with a verb that changes something. After the
 * gate the request always names the tenant, and the verb runs as for an operator who named it; a verb that
 * could tell of more than the tenant that it is given does not belong in the table.
 *
 * What changes something is written to disk, and the loop waits for some of it, so such verbs have a rate per
 * tenant, besides the rate per key that the network holds: a tenant with many admin keys has no more. */
#include "coordinator/daemon/admin/tenant_verbs.h"

#include <jansson.h>
#include <string.h>

#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/tenant_keys.h"

/* Enrolling a thousand sites in one go takes the most: two changes each, in some minutes. */
static const struct kedge_rate changes = {.interval_ns = UINT64_C(250000000), .burst = 256};

enum { RETRY_MS = 1000 };

static const struct verb {
    const char *verb, *names; /* names: the member of the request that says which tenant */
    bool changes;
} verbs[] = {
    {"status", "tenant", false},
    {"trust", "tenant", false},
    {"tenant.list", "tenant", false},
    {"tenant.join", "tenant", true},
    {"site.list", "tenant", false},
    {"site.pending", "tenant", false},
    {"site.token", "tenant", true},
    {"site.enroll", "tenant", true},
    {"site.revoke", "tenant", true},
    {"site.label", "tenant", true},
    {"contact.set", "tenant", true},
    {"key.list", "tenant", false},
    {"key.add", "tenant", true},
    {"key.rotate", "tenant", true},
    {"key.revoke", "tenant", true},
    {"ledger.position", "tenant", false},
    {"ledger.receipt", "log", false},
    {"ledger.updates", "tenant", false},
    {"ledger.refusals", "tenant", false},
    {"ledger.erase", "tenant", true},
    {"ledger.erase-refused", "tenant", true},
    {"witness.enroll", "tenant", true},
    {"witness.revoke", "tenant", true},
    {"read.token", "tenant", true},
    {"read.list", "tenant", false},
    {"read.revoke", "tenant", true},
    {"event.own", "tenant", false},
    {"job.list", "tenant", false},
    {"viewer.add", "tenant", true},
    {"viewer.list", "tenant", false},
    {"viewer.remove", "tenant", true},
    {"tenant.leave", "tenant", true},
    {"tenant.show", "tenant", false},
};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].verb, name) == 0) {
            return &verbs[i];
        }
    }
    return NULL;
}

enum seen_as { AS_ADMIN, AS_VIEWER };

static bool is_seen(const struct kedge_tenant *t, const struct kedge_public_key *key, enum seen_as as)
{
    const bool is_admin = kedge_tenant_has_admin(t, key);
    return as == AS_ADMIN ? is_admin : !is_admin && kedge_tenant_shows_to(t, key);
}

/* The names of the key's tenants: one key may be an admin's or a viewer's of several. */
static json_t *own_names(const struct kedge_host *h, const struct kedge_public_key *key, enum seen_as as)
{
    json_t *names = json_array();
    for (uint32_t i = 0; i < h->tenant_count; i++) {
        if (is_seen(&h->tenants[i], key, as)) {
            json_array_append_new(names, json_string(h->tenants[i].id.s));
        }
    }
    return names;
}

static json_t *who_is(const struct kedge_host *h, const struct kedge_public_key *key)
{
    json_t *admins = own_names(h, key, AS_ADMIN), *views = own_names(h, key, AS_VIEWER);
    if (json_array_size(admins) == 0) {
        json_decref(admins);
        return json_pack("{s:s,s:o}", "role", "tenant-viewer", "tenants", views);
    }
    json_t *o = json_pack("{s:s,s:o}", "role", "tenant-admin", "tenants", admins);
    if (json_array_size(views) > 0) {
        json_object_set(o, "views", views);
    }
    json_decref(views);
    return o;
}

/* Names the tenant where the request does not. Any tenant may make any key its viewer, so that does not
 * change what an admin who names none means. */
static int name_tenant(const struct kedge_host *h, const struct kedge_public_key *key, const char *member,
                       json_t *io_args, struct kedge_diag *d)
{
    json_auto_t *admins = own_names(h, key, AS_ADMIN), *views = own_names(h, key, AS_VIEWER);
    const json_t *names = json_array_size(admins) > 0 ? admins : views;
    if (json_array_size(names) != 1) {
        return kedge_diag_set(
            d, KEDGE_E_FORMAT, "this key is %s of %zu tenants, %s and %s among them: name one of them",
            names == admins ? "an admin's" : "a viewer's", json_array_size(names),
            json_string_value(json_array_get(names, 0)), json_string_value(json_array_get(names, 1)));
    }
    json_object_set(io_args, member, json_array_get(names, 0));
    return KEDGE_OK;
}

static int find_tenant(const struct kedge_host *h, const struct kedge_public_key *key, const char *member,
                       json_t *io_args, uint32_t *ret, struct kedge_diag *d)
{
    struct kedge_id id;
    if (!json_object_get(io_args, member)) {
        KEDGE_TRY(name_tenant(h, key, member, io_args, d));
    }
    const char *name = json_string_value(json_object_get(io_args, member));
    uint32_t t = name && kedge_id_from(kedge_view_str(name), &id) == KEDGE_OK ? kedge_host_tenant_find(h, &id)
                                                                              : KEDGE_COORD_NONE;
    if (t == KEDGE_COORD_NONE || !kedge_tenant_shows_to(&h->tenants[t], key)) {
        return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "this key sees no tenant of that name");
    }
    *ret = t;
    return KEDGE_OK;
}

/* What ends a right of somebody, or takes back what the tenant gave: that stays the tenant's when it is
 * suspended, for a key that was stolen waits for nobody. */
static bool takes_back(const char *verb)
{
    static const char *const verbs_back[] = {"site.revoke",  "key.revoke",          "witness.revoke",
                                             "read.revoke",  "viewer.remove",       "tenant.leave",
                                             "ledger.erase", "ledger.erase-refused"};
    for (size_t i = 0; i < sizeof verbs_back / sizeof verbs_back[0]; i++) {
        if (strcmp(verbs_back[i], verb) == 0) {
            return true;
        }
    }
    return false;
}

/* What changes something is an admin's. */
static int check_change(const struct kedge_tenant *t, const struct kedge_public_key *key, const char *verb,
                        struct kedge_diag *d)
{
    if (kedge_tenant_has_admin(t, key)) {
        return t->quota.suspended && !takes_back(verb)
                   ? kedge_diag_set(d, KEDGE_E_STATE,
                                    "tenant %s is suspended by the operator and can only revoke, leave and "
                                    "erase until it is resumed: %s",
                                    t->id.s, t->quota.reason[0] ? t->quota.reason : "no reason is given")
                   : KEDGE_OK;
    }
    (void)kedge_diag_set(d, KEDGE_E_DENIED, "this key is a viewer's of tenant %s: it may not ask \"%s\"",
                         t->id.s, verb);
    return KEDGE_E_DENIED;
}

bool kedge_admin_tenant_verb(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                             json_t *io_args)
{
    const struct kedge_public_key *key = &kedge_net_request_peer(req)->key;
    const struct verb *row = find_verb(verb);
    struct kedge_diag d = {.text = ""};
    uint32_t tenant = 0;
    if (strcmp(verb, "whoami") == 0) {
        kedge_admin_ok(req, who_is(h, key));
        return true;
    }
    if (!row) {
        return false;
    }
    int err = find_tenant(h, key, row->names, io_args, &tenant, &d);
    if (!err && row->changes) {
        err = check_change(&h->tenants[tenant], key, verb, &d);
    }
    if (err) {
        kedge_admin_error(req, err, &d);
    } else if (row->changes
               && !kedge_bucket_take(&h->tenants[tenant].changes, &changes, 1, kedge_os_now_ns())) {
        kedge_host_reply_error(req, KEDGE_E_BUSY, RETRY_MS,
                               "this tenant asks for changes faster than four a second");
    } else if (strcmp(verb, "status") == 0) {
        kedge_admin_tenant_status(h, req, tenant);
    } else if (strcmp(verb, "trust") == 0) {
        kedge_admin_tenant_trust(h, req, tenant);
    } else if (strcmp(verb, "job.list") == 0) {
        kedge_admin_tenant_jobs(h, req, io_args, tenant);
    } else {
        kedge_admin_dispatch(h, req, verb, io_args);
    }
    return true;
}
