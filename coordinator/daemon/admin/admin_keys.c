/* Keys of tenants: added, rotated, revoked and recovered by statements that their holders signed. */
#include <jansson.h>
#include <string.h>

#include "chain/statement/entry_index.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/admin/admin_append.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/host.h"

static bool is_site_rotation(const struct kedge_admin_append *a)
{
    return a->st->kind == KEDGE_ST_KEY_ROTATED && a->st->u.key_rotated.role == KEDGE_ROLE_SITE
           && !a->repeated;
}

/* A site's new statement key counts from the moment when its rotation is on its way: what the old
 * key signs from here on would come after the rotation in the ledger. If the append fails the old
 * key is put back. */
static void set_site_key(struct kedge_host *h, const struct kedge_admin_append *a,
                         const struct kedge_public_key *key)
{
    uint32_t site = kedge_host_site_find(h, a->tenant, &a->st->u.key_rotated.site);
    h->sites[site].statement_key = *key;
}

static bool is_tls_rotation(const struct kedge_admin_append *a)
{
    return a->st->kind == KEDGE_ST_KEY_ROTATED && a->st->u.key_rotated.role == KEDGE_ROLE_SITE_TLS
           && !a->repeated;
}

/* Durable: from here on the site comes with the new key, and connections under the old one end. */
static void change_tls(struct kedge_host *h, struct kedge_admin_append *a)
{
    const struct kedge_st_key_rotated *r = &a->st->u.key_rotated;
    kedge_host_site_rekey(h, kedge_host_site_find(h, a->tenant, &r->site), &r->new_key);
    unsigned closed = kedge_net_server_drop_key(h->server, &r->old_key);
    kedge_log(KEDGE_LOG_INFO, "keys", "tenant=%s site=%s comes with another TLS key, connections=%u",
              h->tenants[a->tenant].id.s, r->site.s, closed);
}

static void changed(struct kedge_host *h, struct kedge_admin_append *a)
{
    kedge_log(KEDGE_LOG_INFO, "keys", "tenant=%s %s entry=%llu admins=%u%s", h->tenants[a->tenant].id.s,
              kedge_statement_kind_name(a->st->kind), (unsigned long long)a->index,
              kedge_keybook_admins(&h->tenants[a->tenant].keys), a->repeated ? " (repeated)" : "");
    if (is_tls_rotation(a)) {
        change_tls(h, a);
    }
}

static void keep_site_key(struct kedge_host *h, struct kedge_admin_append *a)
{
    set_site_key(h, a, &a->st->u.key_rotated.old_key);
}

/* What a site signed with the key that goes must stand before the rotation: nothing of it may be on its
 * way, and from here on nothing more of it is taken. */
static int start_site_rotation(struct kedge_host *h, struct kedge_admin_append *a, struct kedge_diag *d)
{
    uint32_t site = kedge_host_site_find(h, a->tenant, &a->st->u.key_rotated.site);
    if (site == KEDGE_COORD_NONE || !h->sites[site].active) {
        return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "no site \"%s\" here", a->st->u.key_rotated.site.s);
    }
    for (uint32_t i = 0; i < KEDGE_TICKETS_MAX; i++) {
        if (h->tickets[i].used && h->tickets[i].site == site) {
            return kedge_diag_set(d, KEDGE_E_BUSY, "site %s has a submission on its way",
                                  h->sites[site].id.s);
        }
    }
    set_site_key(h, a, &a->st->u.key_rotated.new_key);
    a->undo = keep_site_key;
    return KEDGE_OK;
}

/* The site may be enrolled still; the key itself was looked at with all keys that come. */
static int check_tls_rotation(const struct kedge_host *h, const struct kedge_admin_append *a,
                              struct kedge_diag *d)
{
    uint32_t site = kedge_host_site_find(h, a->tenant, &a->st->u.key_rotated.site);
    return site == KEDGE_COORD_NONE || !h->sites[site].active
               ? kedge_diag_set(d, KEDGE_E_NOT_FOUND, "no site \"%s\" here", a->st->u.key_rotated.site.s)
               : KEDGE_OK;
}

static void change(struct kedge_host *h, struct kedge_net_request *req, const json_t *args,
                   enum kedge_statement_kind kind)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_append *a = kedge_admin_append_new(req);
    struct kedge_buf key;
    int err = kedge_admin_append_open(h, args, kind, a, &d);
    if (!err && is_site_rotation(a)) {
        err = start_site_rotation(h, a, &d);
    }
    if (!err && is_tls_rotation(a)) {
        err = check_tls_rotation(h, a, &d);
    }
    if (err) {
        kedge_admin_append_fail(a, err, &d);
        return;
    }
    kedge_buf_init(&key, KEDGE_IDEM_KEY_MAX + 1);
    kedge_statement_key(a->st->kind, &a->st->u, &key);
    kedge_buf_put_u8(&key, 0);
    KEDGE_ASSERT(!key.err); /* at most 80 bytes */
    a->then = changed;
    kedge_admin_append_submit(h, a, args, (const char *)key.ptr);
    kedge_buf_deinit(&key);
}

static json_t *key_row(const struct kedge_book_key *k)
{
    char hex[2 * KEDGE_KEY_LEN + 1];
    json_t *o = json_object();
    kedge_hex_encode(k->key.b, KEDGE_KEY_LEN, hex);
    json_object_set_new(o, "role", json_string(k->role == KEDGE_ROLE_ADMIN ? "admin" : "recovery"));
    json_object_set_new(o, "key", json_string(hex));
    json_object_set_new(o, "from", json_integer((json_int_t)k->from));
    json_object_set_new(o, "state",
                        json_string(kedge_book_key_in_force(k) ? "in force"
                                    : k->revoked               ? "revoked"
                                                               : "rotated"));
    if (!kedge_book_key_in_force(k)) {
        json_object_set_new(o, "until", json_integer((json_int_t)k->until));
    }
    return o;
}

static void list(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_admin_filter wanted = {.tenant = NULL};
    struct kedge_diag d = {.text = ""};
    struct kedge_id id;
    int err = kedge_admin_filter_args(args, &wanted, &d);
    uint32_t t = !err && wanted.tenant && kedge_id_from(kedge_view_str(wanted.tenant), &id) == KEDGE_OK
                     ? kedge_host_tenant_find(h, &id)
                     : KEDGE_COORD_NONE;
    if (!err && t == KEDGE_COORD_NONE) {
        err = kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "no tenant \"%.63s\" here",
                             wanted.tenant ? wanted.tenant : "");
    }
    if (err) {
        kedge_admin_error(req, err, &d);
        return;
    }
    const struct kedge_keybook *book = &h->tenants[t].keys;
    json_t *keys = json_array(), *o = json_object();
    for (uint32_t i = 0; i < book->count; i++) {
        if (book->keys[i].role == KEDGE_ROLE_ADMIN || book->keys[i].role == KEDGE_ROLE_RECOVERY) {
            json_array_append_new(keys, key_row(&book->keys[i]));
        }
    }
    json_object_set_new(o, "tenant", json_string(h->tenants[t].id.s));
    json_object_set_new(o, "admins", json_integer(kedge_keybook_admins(book)));
    json_object_set_new(o, "quorum", json_integer(kedge_keybook_quorum(book)));
    json_object_set_new(o, "recovery", json_boolean(kedge_keybook_recovery(book)));
    json_object_set_new(o, "keys", keys);
    kedge_admin_ok(req, o);
}

bool kedge_admin_keys(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                      const json_t *args)
{
    static const struct {
        const char *verb;
        enum kedge_statement_kind kind;
    } verbs[] = {
        {"key.add", KEDGE_ST_KEY_ADDED},
        {"key.rotate", KEDGE_ST_KEY_ROTATED},
        {"key.revoke", KEDGE_ST_KEY_REVOKED},
        {"key.recover", KEDGE_ST_KEY_RECOVERED},
    };
    if (strcmp(verb, "key.list") == 0) {
        list(h, req, args);
        return true;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].verb, verb) == 0) {
            change(h, req, args, verbs[i].kind);
            return true;
        }
    }
    return false;
}
