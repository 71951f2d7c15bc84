/* A token is found by the hash of its secret: what a wrong guess costs in time tells nothing about a right
 * one. */
#include "coordinator/daemon/web/read_tokens.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/base/os/clock.h"
#include "common/base/os/entropy.h"
#include "common/base/os/log.h"
#include "common/base/try.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/records.h"

static const char token_start[] = "kedge-read-1.";
static_assert(sizeof token_start - 1 + 64 == KEDGE_READ_TOKEN_LEN, "what the header says");

enum { PREFIX_LEN = sizeof KEDGE_READ_TOKEN_PREFIX - 1 };

static struct kedge_view prefix(void)
{
    return kedge_view_of(KEDGE_READ_TOKEN_PREFIX, PREFIX_LEN);
}

static uint64_t now_s(void)
{
    return kedge_os_unix_ms() / 1000;
}

/* ---- checking ---- */

static bool decode_text(struct kedge_view text, uint8_t ret_secret[KEDGE_HASH_LEN])
{
    size_t start = sizeof token_start - 1;
    return text.len == KEDGE_READ_TOKEN_LEN
           && kedge_view_eq(kedge_view_of(text.ptr, start), kedge_view_str(token_start))
           && kedge_hex_decode(kedge_view_of(text.ptr + start, 64), ret_secret, KEDGE_HASH_LEN) == KEDGE_OK;
}

/* Every reason for a refusal (malformed, unknown, revoked, expired, its tenant gone) is the same
 * DENIED, and all of them make the same look-up. */
int kedge_read_token_check(struct kedge_host *h, struct kedge_view text, struct kedge_log_reader *ret)
{
    uint8_t secret[KEDGE_HASH_LEN] = {0}, key[KEDGE_READ_TOKEN_KEY_LEN];
    struct kedge_read_token_record r;
    struct kedge_view value;
    struct kedge_kv_tx *tx KEDGE_CLEANUP(kedge_kv_drop) = NULL;
    struct kedge_diag d = {.text = ""};
    bool formed = decode_text(text, secret); /* an unformed one is looked up all the same, and never found */
    kedge_read_token_key(secret, key);
    kedge_wipe(secret, sizeof secret);
    KEDGE_TRY(kedge_kv_begin(h->kv, false, &tx, &d));
    int err = kedge_kv_peek(tx, KEDGE_KV_STATE, kedge_view_of(key, sizeof key), &value);
    if (!err) {
        err = kedge_read_token_record_decode(kedge_view_of(key, sizeof key), value, &r, &d);
    }
    if (err && err != KEDGE_E_NOT_FOUND) {
        kedge_log(KEDGE_LOG_ERROR, "reader's token", "%s", d.text[0] ? d.text : kedge_strerror(err));
        return err;
    }
    if (err || !formed || r.revoked_s != 0 || r.expiry_s <= now_s()) {
        return KEDGE_E_DENIED;
    }
    *ret = (struct kedge_log_reader){.auditor = r.auditor, .tenant = KEDGE_COORD_NONE};
    if (!r.auditor) {
        ret->tenant = kedge_host_tenant_find(h, &r.tenant);
    }
    return r.auditor || ret->tenant != KEDGE_COORD_NONE ? KEDGE_OK : KEDGE_E_DENIED;
}

/* ---- the table ---- */

struct walk {
    struct kedge_diag *d;
    json_t *list;                /* read.list: where to; may be NULL */
    const char *tenant;          /* of whose readers alone it is; NULL: of all */
    const struct kedge_id *name; /* looked for; may be NULL */
    uint64_t now, count, dead;
    uint64_t valid, namesakes; /* of the tenant; and of these, those of that name */
    bool found, alive;         /* a token of that name; one that is neither expired nor revoked */
    uint8_t key[KEDGE_READ_TOKEN_KEY_LEN], dead_key[KEDGE_READ_TOKEN_KEY_LEN];
    struct kedge_read_token_record record;
};

static const char *state_of(const struct kedge_read_token_record *r, uint64_t now)
{
    return r->revoked_s ? "revoked" : r->expiry_s <= now ? "expired" : "valid";
}

static void list_one(json_t *list, const struct kedge_read_token_record *r, uint64_t now)
{
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(r->name.s));
    json_object_set_new(o, "auditor", json_boolean(r->auditor));
    json_object_set_new(o, "tenant", r->auditor ? json_null() : json_string(r->tenant.s));
    json_object_set_new(o, "created_s", json_integer((json_int_t)r->created_s));
    json_object_set_new(o, "expires_s", json_integer((json_int_t)r->expiry_s));
    json_object_set_new(o, "state", json_string(state_of(r, now)));
    json_array_append_new(list, o);
}

/* Of tokens with one name the valid one is found, or else one that is expired or revoked. */
static int walk_one(void *arg, struct kedge_view key, struct kedge_view value)
{
    struct walk *w = arg;
    struct kedge_read_token_record r;
    KEDGE_TRY(kedge_read_token_record_decode(key, value, &r, w->d));
    bool alive = strcmp(state_of(&r, w->now), "valid") == 0;
    w->count++;
    if (!alive) {
        w->dead++;
        memcpy(w->dead_key, key.ptr, sizeof w->dead_key);
    }
    if (w->tenant && (r.auditor || strcmp(w->tenant, r.tenant.s) != 0)) {
        return KEDGE_OK;
    }
    w->valid += alive;
    w->namesakes += alive && w->name && kedge_id_eq(w->name, &r.name);
    if (w->list) {
        list_one(w->list, &r, w->now);
    }
    if (w->name && kedge_id_eq(w->name, &r.name) && !w->alive) {
        w->found = true;
        w->alive = alive;
        w->record = r;
        memcpy(w->key, key.ptr, sizeof w->key);
    }
    return KEDGE_OK;
}

static int walk(struct kedge_kv_tx *tx, struct walk *w)
{
    w->now = now_s();
    int err = kedge_kv_scan(tx, KEDGE_KV_STATE, prefix(), (struct kedge_view){NULL, 0}, walk_one, w);
    return err && !w->d->text[0]
               ? kedge_diag_set(w->d, err, "coordinator.lmdb: cannot read tokens: %s", kedge_strerror(err))
               : err;
}

static int put(struct kedge_kv_tx *tx, const uint8_t key[KEDGE_READ_TOKEN_KEY_LEN],
               const struct kedge_read_token_record *r, struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGE_RECORD_MAX);
    int err = kedge_read_token_record_encode(r, &text);
    if (!err) {
        err = kedge_kv_put(tx, KEDGE_KV_STATE, kedge_view_of(key, KEDGE_READ_TOKEN_KEY_LEN),
                           kedge_buf_view(&text), KEDGE_KV_PUT);
    }
    return err ? kedge_diag_set(d, err, "coordinator.lmdb: cannot store a token: %s", kedge_strerror(err))
               : KEDGE_OK;
}

/* ---- verbs ---- */

static int add_new(struct kedge_kv_tx *tx, const uint8_t key[KEDGE_READ_TOKEN_KEY_LEN],
                   const struct kedge_read_token_record *r, struct kedge_diag *d)
{
    struct walk w = {.d = d, .name = &r->name, .tenant = r->auditor ? NULL : r->tenant.s};
    KEDGE_TRY(walk(tx, &w));
    if (!r->auditor && !w.alive && w.valid >= KEDGE_READ_TOKENS_TENANT_MAX) {
        return kedge_diag_set(d, KEDGE_E_FULL, "%d tokens of this tenant are valid: revoke some first",
                              KEDGE_READ_TOKENS_TENANT_MAX);
    }
    if (w.alive) {
        return kedge_diag_set(d, KEDGE_E_EXISTS, "there is a valid token \"%s\" already", r->name.s);
    }
    if (w.found) { /* the dead one of that name makes room */
        KEDGE_TRY(kedge_kv_del(tx, KEDGE_KV_STATE, kedge_view_of(w.key, sizeof w.key)));
    } else if (w.count >= KEDGE_READ_TOKENS_MAX) {
        KEDGE_TRY(w.dead ? kedge_kv_del(tx, KEDGE_KV_STATE, kedge_view_of(w.dead_key, sizeof w.dead_key))
                         : kedge_diag_set(d, KEDGE_E_FULL, "%d tokens are valid: revoke some first",
                                          KEDGE_READ_TOKENS_MAX));
    }
    return put(tx, key, r, d);
}

/* In one transaction, so that two requests at once cannot both take a name. When the table is full,
 * tokens that are expired or revoked make room; valid ones never. */
static int add(struct kedge_host *h, const uint8_t key[KEDGE_READ_TOKEN_KEY_LEN],
               const struct kedge_read_token_record *r, struct kedge_diag *d)
{
    struct kedge_kv_tx *tx;
    KEDGE_TRY(kedge_kv_begin(h->kv, true, &tx, d));
    return kedge_kv_end(tx, add_new(tx, key, r, d), d);
}

/* The secret leaves the process in this one answer and is wiped; from then on only its holder has
 * it. */
static void token_add(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_reader said;
    uint8_t secret[KEDGE_HASH_LEN], key[KEDGE_READ_TOKEN_KEY_LEN];
    char text[KEDGE_READ_TOKEN_LEN + 1], name[2 * 8 + 1];
    struct kedge_read_token_record r = {.auditor = false};
    int err = kedge_admin_reader_args(args, &said, &d);
    if (!err && !said.auditor && kedge_host_tenant_find(h, &said.tenant) == KEDGE_COORD_NONE) {
        err = kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "no tenant \"%s\" here", said.tenant.s);
    }
    if (!err) {
        kedge_os_random(secret, sizeof secret);
        kedge_read_token_key(secret, key);
        kedge_hex_encode(key + PREFIX_LEN, 8, name);
        r = (struct kedge_read_token_record){
            .name = said.name, .auditor = said.auditor, .tenant = said.tenant};
        r.created_s = now_s();
        r.expiry_s = r.created_s + said.ttl_s;
        if (!r.name.s[0]) {
            snprintf(r.name.s, sizeof r.name.s, "%s", name);
        }
        err = add(h, key, &r, &d);
    }
    if (err) {
        kedge_admin_error(req, err, &d);
        return;
    }
    snprintf(text, sizeof text, "%s", token_start);
    kedge_hex_encode(secret, sizeof secret, text + sizeof token_start - 1);
    kedge_log(KEDGE_LOG_INFO, "reader's token", "name=%s %s%s", r.name.s,
              r.auditor ? "auditor" : "tenant=", r.tenant.s);
    kedge_admin_ok(req, json_pack("{s:s,s:s,s:I}", "token", text, "name", r.name.s, "expires_s",
                                  (json_int_t)r.expiry_s));
    kedge_wipe(secret, sizeof secret);
    kedge_wipe(text, sizeof text);
}

static void token_list(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct walk w = {
        .d = &d, .list = json_array(), .tenant = json_string_value(json_object_get(args, "tenant"))};
    struct kedge_kv_tx *tx;
    int err = kedge_kv_begin(h->kv, false, &tx, &d);
    if (!err) {
        err = walk(tx, &w);
        kedge_kv_abort(tx);
    }
    kedge_admin_answer(req, err, &d, json_pack("{s:o}", "tokens", w.list));
}

/* Names are a tenant's own: two tenants may have readers of one name and do not learn it. */
static int revoke(struct kedge_kv_tx *tx, const struct kedge_id *name, const char *tenant,
                  struct kedge_diag *d)
{
    struct walk w = {.d = d, .name = name, .tenant = tenant};
    KEDGE_TRY(walk(tx, &w));
    if (w.namesakes > 1) {
        return kedge_diag_set(d, KEDGE_E_STATE,
                              "%llu tenants have a token \"%s\": say whose is meant (--tenant)",
                              (unsigned long long)w.namesakes, name->s);
    }
    if (!w.found) {
        return kedge_diag_set(d, KEDGE_E_NOT_FOUND, "no token \"%s\"", name->s);
    }
    if (w.record.revoked_s != 0) {
        return KEDGE_OK;
    }
    w.record.revoked_s = w.now;
    return put(tx, w.key, &w.record, d);
}

static void token_revoke(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id name = {.s = ""};
    struct kedge_kv_tx *tx;
    int err = kedge_admin_reader_name(args, &name, &d);
    if (!err) {
        err = kedge_kv_begin(h->kv, true, &tx, &d);
    }
    if (!err) {
        err = kedge_kv_end(tx, revoke(tx, &name, json_string_value(json_object_get(args, "tenant")), &d), &d);
    }
    if (!err) {
        kedge_log(KEDGE_LOG_INFO, "reader's token revoked", "name=%s", name.s);
    }
    kedge_admin_answer(req, err, &d, json_pack("{s:s,s:s}", "name", name.s, "state", "revoked"));
}

void kedge_admin_read(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                      const json_t *args)
{
    static const struct {
        const char *verb;
        void (*run)(struct kedge_host *h, struct kedge_net_request *req, const json_t *args);
    } verbs[] = {{"read.token", token_add}, {"read.list", token_list}, {"read.revoke", token_revoke}};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].verb, verb) == 0) {
            verbs[i].run(h, req, args);
            return;
        }
    }
    struct kedge_diag d;
    (void)kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "unknown verb \"%.40s\"", verb);
    kedge_admin_error(req, KEDGE_E_NOT_FOUND, &d);
}
