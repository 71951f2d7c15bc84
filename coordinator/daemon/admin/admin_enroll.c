/* Enrolment: tokens handed out, devices that come with one, and those that wait for their admin's
 * signature.
 *
 * A token admits a device once. It does not enrol it: only a site-enrolled statement that the
 * tenant's admin signs does. The token binds a name to the first keys that come with it, so that
 * the admin signs the keys of the device that was given the token. Kept is the hash of its secret;
 * the coordinator itself cannot use the tokens that it has handed out. */
#include "coordinator/daemon/admin/admin.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/base/os/clock.h"
#include "common/base/os/entropy.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "common/wire/token.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/admin/quotas.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/members.h"
#include "coordinator/daemon/records.h"
#include "coordinator/daemon/sites/requests.h"

enum { TOKENS_MAX = 100000 };

/* KEDGE_E_TOKEN: there is none. */
static int token_read(struct kedge_host *h, const struct kedge_hash *id, struct kedge_token_record *ret,
                      struct kedge_diag *d)
{
    struct kedge_kv_tx *tx KEDGE_CLEANUP(kedge_kv_drop) = NULL;
    struct kedge_view value, key = kedge_view_of(id->b, KEDGE_HASH_LEN);
    KEDGE_TRY(kedge_kv_begin(h->kv, false, &tx, d));
    int err = kedge_kv_peek(tx, KEDGE_KV_TOKEN, key, &value);
    if (err == KEDGE_E_NOT_FOUND) {
        return kedge_diag_set(d, KEDGE_E_TOKEN, "%s", kedge_strerror(KEDGE_E_TOKEN));
    }
    return err ? kedge_diag_set(d, err, "coordinator.lmdb: cannot read a token: %s", kedge_strerror(err))
               : kedge_token_record_decode(key, value, ret, d);
}

static int put_token(struct kedge_kv_tx *tx, const struct kedge_hash *id, struct kedge_view record,
                     struct kedge_diag *d)
{
    uint64_t count = 0;
    int err = kedge_kv_count(tx, KEDGE_KV_TOKEN, &count);
    if (!err && count >= TOKENS_MAX) {
        return kedge_diag_set(d, KEDGE_E_FULL, "too many enrolment tokens");
    }
    if (!err) {
        err = kedge_kv_put(tx, KEDGE_KV_TOKEN, kedge_view_of(id->b, KEDGE_HASH_LEN), record, KEDGE_KV_PUT);
    }
    return err ? kedge_diag_set(d, err, "coordinator.lmdb: cannot store a token: %s", kedge_strerror(err))
               : KEDGE_OK;
}

static int token_write(struct kedge_host *h, const struct kedge_hash *id,
                       const struct kedge_token_record *record, struct kedge_diag *d)
{
    struct kedge_kv_tx *tx;
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_RECORD_MAX);
    int err = kedge_token_record_encode(record, &text);
    if (err) {
        return kedge_diag_set(d, err, "%s", kedge_strerror(err));
    }
    KEDGE_TRY(kedge_kv_begin(h->kv, true, &tx, d));
    return kedge_kv_end(tx, put_token(tx, id, kedge_buf_view(&text), d), d);
}

static int make_token(struct kedge_host *h, const json_t *args, struct kedge_token *ret,
                      char ret_text[KEDGE_TOKEN_TEXT_MAX], struct kedge_diag *d)
{
    struct kedge_hash id;
    struct kedge_admin_token said;
    KEDGE_TRY(kedge_admin_token_args(args, &said, d));
    uint32_t tenant = kedge_host_tenant_find(h, &said.tenant);
    if (tenant == KEDGE_COORD_NONE) {
        return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "no tenant \"%s\" here", said.tenant.s);
    }
    if (kedge_host_site_find(h, tenant, &said.site) != KEDGE_COORD_NONE) {
        return kedge_diag_set(d, KEDGE_E_EXISTS,
                              "site \"%s\" of tenant \"%s\" is enrolled already (names are not reused)",
                              said.site.s, said.tenant.s);
    }
    KEDGE_TRY(kedge_quota_check_token(h, tenant, d));
    ret->tenant = said.tenant;
    ret->site = said.site;
    snprintf(ret->address, sizeof ret->address, "%s",
             said.address ? said.address : kedge_net_server_url(h->server, 0));
    memcpy(ret->server_key, h->tls_key.public.b, sizeof ret->server_key);
    kedge_os_random(ret->secret, sizeof ret->secret);
    ret->expires = kedge_os_unix_ms() / 1000 + said.ttl_s;
    kedge_sha256(kedge_view_of(ret->secret, sizeof ret->secret), &id); /* the secret itself is not kept */
    struct kedge_token_record record = {.tenant = ret->tenant, .site = ret->site, .expiry_s = ret->expires};
    KEDGE_TRY(token_write(h, &id, &record, d));
    h->tenants[tenant].tokens++;
    return kedge_token_encode(ret, ret_text);
}

void kedge_admin_site_token(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_token token = {.expires = 0};
    char text[KEDGE_TOKEN_TEXT_MAX];
    int err = make_token(h, args, &token, text, &d);
    kedge_admin_answer(req, err, &d, err ? NULL : json_pack("{s:s}", "token", text));
    kedge_wipe(&token, sizeof token);
    kedge_wipe(text, sizeof text);
}

/* Does the record wait for these keys, or have them already? A device that repeats itself, because
 * the answer was lost, comes with the same keys and gets the same answer, also after the token's
 * time. Every mismatch has one text: a sender who guesses does not learn which part was wrong. */
static int check_token(const struct kedge_token_record *record, const struct kedge_msg_enroll *msg,
                       const struct kedge_public_key *tls_key, const struct kedge_public_key *statement_key,
                       struct kedge_diag *d)
{
    bool same = record->used && kedge_public_key_eq(&record->tls_key, tls_key)
                && kedge_public_key_eq(&record->statement_key, statement_key);
    bool fresh = !record->used && record->expiry_s > kedge_os_unix_ms() / 1000;
    bool named = kedge_id_eq(&record->tenant, &msg->tenant) && kedge_id_eq(&record->site, &msg->site);
    return named && (same || fresh) ? KEDGE_OK
                                    : kedge_diag_set(d, KEDGE_E_TOKEN, "%s", kedge_strerror(KEDGE_E_TOKEN));
}

/* Gives the token's site its keys, once. What is wrong with our own record is our affair: it is logged, and
 * the device is told to ask for another token. */
static int use_token(struct kedge_host *h, const struct kedge_msg_enroll *msg,
                     const struct kedge_public_key *tls_key, const struct kedge_public_key *statement_key,
                     struct kedge_diag *d)
{
    struct kedge_hash id;
    struct kedge_token_record record;
    kedge_sha256(kedge_view_of(msg->token_secret, sizeof msg->token_secret), &id);
    int err = token_read(h, &id, &record, d);
    if (err && err != KEDGE_E_TOKEN) {
        kedge_log(KEDGE_LOG_ERROR, "token", "tenant=%s site=%s: %s", msg->tenant.s, msg->site.s, d->text);
    }
    if (err == KEDGE_E_CORRUPT) {
        return kedge_diag_set(d, KEDGE_E_TOKEN,
                              "the coordinator's record of this token is damaged; ask for another token");
    }
    if (!err) {
        err = check_token(&record, msg, tls_key, statement_key, d);
    }
    if (err || record.used) {
        return err;
    }
    record.used = true;
    record.tls_key = *tls_key;
    record.statement_key = *statement_key;
    KEDGE_TRY(token_write(h, &id, &record, d));
    kedge_log(KEDGE_LOG_INFO, "enrolment", "tenant=%s site=%s waits for its admin's signature", msg->tenant.s,
              msg->site.s);
    return KEDGE_OK;
}

/* TLS and statement keys must differ: the one is used by the connection, the other signs what
 * lasts, and a signature by one must never be taken for one by the other. */
void kedge_host_enroll(struct kedge_host *h, struct kedge_net_request *req,
                       const struct kedge_msg_enroll *msg)
{
    const struct kedge_net_peer *peer = kedge_net_request_peer(req);
    struct kedge_diag d = {.text = ""};
    struct kedge_public_key statement_key;
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
    int err = kedge_public_key_is_valid(&statement_key) && !kedge_public_key_eq(&statement_key, &peer->key)
                  ? use_token(h, msg, &peer->key, &statement_key, &d)
                  : kedge_diag_set(&d, KEDGE_E_KEY, "the statement key must be a valid key of its own");
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
    struct kedge_diag *d;
    json_t *list;
};

/* A damaged record is named in the whole list, where the operator looks for it, and only logged
 * where somebody asks about one site, whose answer it must not spoil. */
static int list_pending(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct pending *p = arg;
    struct kedge_token_record r;
    char tls[2 * KEDGE_KEY_LEN + 1], statement[2 * KEDGE_KEY_LEN + 1];
    int err = kedge_token_record_decode(key, value, &r, p->d);
    if (err == KEDGE_E_CORRUPT && (p->wanted.tenant || p->wanted.site)) { /* the whole list tells of it */
        kedge_log(KEDGE_LOG_ERROR, "token", "%s", p->d->text);
        *p->d = (struct kedge_diag){.text = ""};
        return KEDGE_OK;
    }
    if (err) {
        return err;
    }
    bool wanted = r.used && (!p->wanted.tenant || strcmp(p->wanted.tenant, r.tenant.s) == 0)
                  && (!p->wanted.site || strcmp(p->wanted.site, r.site.s) == 0);
    uint32_t t = wanted ? kedge_host_tenant_find(p->h, &r.tenant) : KEDGE_COORD_NONE;
    if (t != KEDGE_COORD_NONE && kedge_host_site_find(p->h, t, &r.site) == KEDGE_COORD_NONE) {
        kedge_hex_encode(r.tls_key.b, KEDGE_KEY_LEN, tls);
        kedge_hex_encode(r.statement_key.b, KEDGE_KEY_LEN, statement);
        json_array_append_new(p->list, json_pack("{s:s,s:s,s:I,s:s,s:s}", "tenant", r.tenant.s, "site",
                                                 r.site.s, "expiry_s", (json_int_t)r.expiry_s, "tls_key", tls,
                                                 "statement_key", statement));
    }
    return KEDGE_OK;
}

void kedge_admin_site_pending(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct pending p = {.h = h, .d = &d, .list = json_array()};
    int err = kedge_admin_filter_args(args, &p.wanted, &d);
    if (!err) {
        err = kedge_kv_scan_once(h->kv, KEDGE_KV_TOKEN, kedge_view_of(NULL, 0), list_pending, &p, &d);
    }
    kedge_admin_answer(req, err, &d, json_pack("{s:o}", "sites", p.list));
}
