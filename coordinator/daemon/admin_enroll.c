/* Enrolment: tokens handed out, devices that come with one, and those that wait for their admin's signature.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/entropy.h"
#include "common/base/os/log.h"
#include "common/wire/token.h"
#include "coordinator/daemon/admin_args.h"
#include "coordinator/daemon/host.h"

enum { TOKENS_MAX = 100000 };

/* A token's record: {"tenant","site","expiry_s","tls_key","statement_key"}; the keys once the site has used
 * it. */
static int token_read(struct kedge_host *h, const struct kedge_hash *id, json_t **ret, struct kedge_diag *d)
{
    struct kedge_kv_tx *tx;
    struct kedge_view value;
    json_error_t at;
    int err = kedge_kv_begin(h->kv, false, &tx, d);
    if (err) {
        return err;
    }
    err = kedge_kv_peek(tx, KEDGE_KV_TOKEN, kedge_view_of(id->b, KEDGE_HASH_LEN), &value);
    json_t *o = err ? NULL : json_loadb((const char *)value.ptr, value.len, 0, &at);
    kedge_kv_abort(tx);
    if (!o) {
        return kedge_diag_set(d, KEDGE_E_TOKEN, "%s", kedge_strerror(KEDGE_E_TOKEN));
    }
    *ret = o;
    return KEDGE_OK;
}

static int token_write(struct kedge_host *h, const struct kedge_hash *id, const json_t *record,
                       struct kedge_diag *d)
{
    struct kedge_kv_tx *tx;
    char text[1024];
    size_t len = json_dumpb(record, text, sizeof text, JSON_COMPACT);
    if (len == 0 || len > sizeof text) {
        return kedge_diag_set(d, KEDGE_E_BUG, "an enrolment record is too long");
    }
    int err = kedge_kv_begin(h->kv, true, &tx, d);
    if (err) {
        return err;
    }
    uint64_t count = 0;
    err = kedge_kv_count(tx, KEDGE_KV_TOKEN, &count);
    if (!err && count >= TOKENS_MAX) {
        err = kedge_diag_set(d, KEDGE_E_FULL, "too many enrolment tokens");
    }
    err = err ? err
              : kedge_kv_put(tx, KEDGE_KV_TOKEN, kedge_view_of(id->b, KEDGE_HASH_LEN),
                             kedge_view_of(text, len), KEDGE_KV_PUT);
    if (err) {
        kedge_kv_abort(tx);
        return err;
    }
    return kedge_kv_commit(tx, d);
}

void kedge_admin_site_token(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_token token = {.expires = 0};
    struct kedge_hash id;
    char text[KEDGE_TOKEN_TEXT_MAX];
    struct kedge_admin_token said;
    int err = kedge_admin_token_args(args, &said, &d);
    uint32_t tenant = err ? KEDGE_COORD_NONE : kedge_host_tenant_find(h, &said.tenant);
    if (!err && tenant == KEDGE_COORD_NONE) {
        err = kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "no tenant \"%s\" here", said.tenant.s);
    }
    if (!err && kedge_host_site_find(h, tenant, &said.site) != KEDGE_COORD_NONE) {
        err = kedge_diag_set(&d, KEDGE_E_EXISTS,
                             "site \"%s\" of tenant \"%s\" is enrolled already (names are not reused)",
                             said.site.s, said.tenant.s);
    }
    if (!err) {
        token.tenant = said.tenant;
        token.site = said.site;
        snprintf(token.address, sizeof token.address, "%s",
                 said.address ? said.address : kedge_net_server_url(h->server, 0));
        memcpy(token.server_key, h->tls_key.public.b, sizeof token.server_key);
        kedge_os_random(token.secret, sizeof token.secret);
        token.expires = kedge_os_unix_ms() / 1000 + said.ttl_s;
        kedge_sha256(kedge_view_of(token.secret, sizeof token.secret),
                     &id); /* the secret itself is not kept */
        json_t *record = json_pack("{s:s,s:s,s:I}", "tenant", token.tenant.s, "site", token.site.s,
                                   "expiry_s", (json_int_t)token.expires);
        err = token_write(h, &id, record, &d);
        json_decref(record);
    }
    err = err ? err : kedge_token_encode(&token, text);
    if (err) {
        kedge_admin_error(req, err, &d);
    } else {
        kedge_admin_ok(req, json_pack("{s:s}", "token", text));
    }
    kedge_wipe(&token, sizeof token);
    kedge_wipe(text, sizeof text);
}

/* Does the record wait for these keys, or have them already? */
static int check_token(struct kedge_host *h, const json_t *record, const struct kedge_msg_enroll *msg,
                       const char *tls_hex, const char *statement_hex, struct kedge_diag *d)
{
    const char *tenant = json_string_value(json_object_get(record, "tenant"));
    const char *site = json_string_value(json_object_get(record, "site"));
    const char *tls = json_string_value(json_object_get(record, "tls_key"));
    const char *statement = json_string_value(json_object_get(record, "statement_key"));
    uint64_t expiry_s = (uint64_t)json_integer_value(json_object_get(record, "expiry_s"));
    (void)h;
    bool same = tls && statement && strcmp(tls, tls_hex) == 0 && strcmp(statement, statement_hex) == 0;
    bool fresh = !tls && expiry_s > kedge_os_unix_ms() / 1000;
    if (!tenant || !site || strcmp(tenant, msg->tenant.s) != 0 || strcmp(site, msg->site.s) != 0
        || (!same && !fresh)) {
        return kedge_diag_set(d, KEDGE_E_TOKEN, "%s", kedge_strerror(KEDGE_E_TOKEN));
    }
    return KEDGE_OK;
}

void kedge_host_enroll(struct kedge_host *h, struct kedge_net_request *req,
                       const struct kedge_msg_enroll *msg)
{
    const struct kedge_net_peer *peer = kedge_net_request_peer(req);
    struct kedge_diag d = {.text = ""};
    struct kedge_hash id;
    struct kedge_public_key statement_key;
    char tls_hex[2 * KEDGE_KEY_LEN + 1], statement_hex[2 * KEDGE_KEY_LEN + 1];
    json_t *record = NULL;
    uint32_t site = kedge_host_site_by_key(h, &peer->key);
    struct kedge_msg ok = {.type = KEDGE_MSG_ENROLL_OK};
    if (site != KEDGE_COORD_NONE) {
        ok.u.enroll_ok.state = KEDGE_ENROLL_ACTIVE;
        if (h->sites[site].active) {
            kedge_host_reply(req, &ok);
        } else {
            kedge_host_reply_error(req, KEDGE_E_REVOKED, 0, kedge_strerror(KEDGE_E_REVOKED));
        }
        return;
    }
    memcpy(statement_key.b, msg->statement_key, KEDGE_KEY_LEN);
    kedge_hex_encode(peer->key.b, KEDGE_KEY_LEN, tls_hex);
    kedge_hex_encode(statement_key.b, KEDGE_KEY_LEN, statement_hex);
    kedge_sha256(kedge_view_of(msg->token_secret, sizeof msg->token_secret), &id);
    int err = kedge_public_key_is_valid(&statement_key) && !kedge_public_key_eq(&statement_key, &peer->key)
                  ? token_read(h, &id, &record, &d)
                  : kedge_diag_set(&d, KEDGE_E_KEY, "the statement key must be a valid key of its own");
    err = err ? err : check_token(h, record, msg, tls_hex, statement_hex, &d);
    if (!err && !json_object_get(record, "tls_key")) {
        json_object_set_new(record, "tls_key", json_string(tls_hex));
        json_object_set_new(record, "statement_key", json_string(statement_hex));
        err = token_write(h, &id, record, &d);
        kedge_log(KEDGE_LOG_INFO, "enrolment", "tenant=%s site=%s waits for its admin's signature",
                  msg->tenant.s, msg->site.s);
    }
    json_decref(record);
    if (err) {
        kedge_host_reply_error(req, err, 0, d.text);
    } else {
        ok.u.enroll_ok.state = KEDGE_ENROLL_PENDING;
        kedge_host_reply(req, &ok);
    }
}

struct pending {
    struct kedge_host *h;
    struct kedge_admin_filter wanted;
    json_t *list;
};

static int list_pending(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct pending *p = arg;
    json_error_t at;
    struct kedge_id tenant_id, site_id;
    (void)key;
    json_t *record = json_loadb((const char *)value.ptr, value.len, 0, &at);
    const char *tenant = json_string_value(json_object_get(record, "tenant"));
    const char *site = json_string_value(json_object_get(record, "site"));
    bool wanted = tenant && site && json_object_get(record, "tls_key")
                  && (!p->wanted.tenant || strcmp(p->wanted.tenant, tenant) == 0)
                  && (!p->wanted.site || strcmp(p->wanted.site, site) == 0)
                  && kedge_id_from(kedge_view_str(tenant), &tenant_id) == KEDGE_OK
                  && kedge_id_from(kedge_view_str(site), &site_id) == KEDGE_OK;
    if (wanted) {
        uint32_t t = kedge_host_tenant_find(p->h, &tenant_id);
        wanted = t != KEDGE_COORD_NONE && kedge_host_site_find(p->h, t, &site_id) == KEDGE_COORD_NONE;
    }
    if (wanted) {
        json_array_append(p->list, record);
    }
    json_decref(record);
    return KEDGE_OK;
}

void kedge_admin_site_pending(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct pending p = {.h = h, .list = json_array()};
    struct kedge_diag d = {.text = ""};
    struct kedge_kv_tx *tx;
    int err = kedge_admin_filter_args(args, &p.wanted, &d);
    err = err ? err : kedge_kv_begin(h->kv, false, &tx, &d);
    if (!err) {
        err = kedge_kv_scan(tx, KEDGE_KV_TOKEN, (struct kedge_view){NULL, 0}, (struct kedge_view){NULL, 0},
                            list_pending, &p);
        kedge_kv_abort(tx);
    }
    if (err) {
        json_decref(p.list);
        kedge_admin_error(req, err, &d);
    } else {
        kedge_admin_ok(req, json_pack("{s:o}", "sites", p.list));
    }
}
