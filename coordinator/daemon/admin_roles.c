/* Roles granted and revoked, by whoever owns the state folder. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/entry_index.h"
#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/admin.h"
#include "coordinator/daemon/admin_args.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"

struct role_append {
    struct kedge_item item;
    struct kedge_host *h;
    struct kedge_net_request *req;
    struct kedge_statement *st;
    uint64_t index;
    int err;
    char why[KEDGE_DIAG_TEXT_MAX];
};

static void free_append(struct role_append *a)
{
    kedge_mem_free(a->st);
    kedge_mem_free(a);
}

static void take_granted(struct kedge_host *h, const struct role_append *a)
{
    const struct kedge_st_role_granted *g = &a->st->u.role_granted;
    struct kedge_roles *r = h->roles;
    KEDGE_ASSERT(r->count < KEDGE_ROLES_MAX);
    r->rows[r->count].granted = *g;
    r->rows[r->count].from = a->index;
    r->rows[r->count].active = true;
    r->count++;
}

static void take_revoked(struct kedge_host *h, const struct role_append *a)
{
    const struct kedge_public_key *key = &a->st->u.role_revoked.public_key;
    for (uint32_t i = 0; i < h->roles->count; i++) {
        if (kedge_public_key_eq(&h->roles->rows[i].granted.public_key, key)) {
            h->roles->rows[i].active = false;
        }
    }
    (void)kedge_net_server_drop_key(h->server, key);
}

static void append_handle(struct kedge_host *h, struct kedge_item *item)
{
    struct role_append *a = (struct role_append *)item;
    h->roles->pending = false;
    if (a->err) {
        struct kedge_diag d;
        (void)kedge_diag_set(&d, a->err, "main chain: %s", a->why[0] ? a->why : kedge_strerror(a->err));
        kedge_admin_error(a->req, a->err, &d);
    } else {
        if (a->st->kind == KEDGE_ST_ROLE_GRANTED) {
            take_granted(h, a);
        } else {
            take_revoked(h, a);
        }
        kedge_log(KEDGE_LOG_INFO, "roles", "%s entry=%llu", kedge_statement_kind_name(a->st->kind),
                  (unsigned long long)a->index);
        kedge_admin_ok(a->req, json_pack("{s:I}", "leaf_index", (json_int_t)a->index));
    }
    free_append(a);
}

static void append_done(void *arg, const struct kedge_commit_result *result)
{
    struct role_append *a = arg;
    kedge_host_log_commit(result);
    a->err = result->err;
    snprintf(a->why, sizeof a->why, "%s", result->err && result->diag ? result->diag->text : "");
    a->index = result->err ? 0 : result->items[0].index;
    kedge_host_post(a->h, &a->item);
}

/* Signs as the coordinator and appends; afterwards the table and the answer. */
static void append(struct kedge_host *h, struct role_append *a)
{
    struct kedge_buf envelope, idem;
    struct kedge_diag d = {.text = ""};
    kedge_buf_init(&envelope, KEDGE_ENTRY_MAX);
    kedge_buf_init(&idem, KEDGE_IDEM_KEY_MAX);
    kedge_statement_key(a->st->kind, &a->st->u, &idem);
    a->item.handle = append_handle;
    a->h = h;
    int err = kedge_statement_sign(a->st, &h->statement_key, &envelope, &d);
    if (err) {
        kedge_admin_error(a->req, err, &d);
        free_append(a);
    } else {
        struct kedge_ledger_append item = {.entry = kedge_buf_view(&envelope),
                                           .idem_key = kedge_buf_view(&idem)};
        h->roles->pending = true;
        err = kedge_committer_submit(h->main_committer, &item, 1, append_done, a);
        if (err) { /* else `a` is the committer's */
            a->err = err;
            kedge_host_post(h, &a->item);
        }
    }
    kedge_buf_deinit(&envelope);
    kedge_buf_deinit(&idem);
}

static int check_new(const struct kedge_host *h, const struct kedge_public_key *key, struct kedge_diag *d)
{
    if (h->roles->pending) {
        return kedge_diag_set(d, KEDGE_E_BUSY, "another role is being written");
    }
    if (h->roles->count == KEDGE_ROLES_MAX) {
        return kedge_diag_set(d, KEDGE_E_FULL, "no more than %d roles were ever granted", KEDGE_ROLES_MAX);
    }
    bool taken =
        kedge_public_key_eq(key, &h->tls_key.public) || kedge_public_key_eq(key, &h->statement_key.public)
        || kedge_public_key_eq(key, &h->main.key.public) || kedge_host_site_by_key(h, key) != KEDGE_COORD_NONE
        || kedge_host_witness_by_key(h, key) != KEDGE_COORD_NONE;
    for (uint32_t i = 0; i < h->roles->count; i++) {
        taken = taken || kedge_public_key_eq(&h->roles->rows[i].granted.public_key, key);
    }
    return taken ? kedge_diag_set(d, KEDGE_E_KEY, "this key has or had another role here; one key, one role")
                 : KEDGE_OK;
}

static void grant(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_role said;
    struct role_append *a = kedge_mem_new(1, sizeof *a);
    KEDGE_ASSERT(a);
    a->req = req;
    a->st = kedge_mem_new(1, sizeof *a->st);
    int err = kedge_admin_role_args(args, true, &said, &d);
    err = err ? err : check_new(h, &said.key, &d);
    err = err || a->st ? err : KEDGE_E_NOMEM;
    if (err) {
        kedge_admin_error(req, err, &d);
        free_append(a);
        return;
    }
    a->st->kind = KEDGE_ST_ROLE_GRANTED;
    a->st->u.role_granted = (struct kedge_st_role_granted){
        said.auditor ? KEDGE_CHAIN_AUDITOR : KEDGE_CHAIN_OPERATOR, said.name, said.key};
    append(h, a);
}

static void revoke(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_role said;
    struct role_append *a = kedge_mem_new(1, sizeof *a);
    KEDGE_ASSERT(a);
    a->req = req;
    a->st = kedge_mem_new(1, sizeof *a->st);
    int err = kedge_admin_role_args(args, false, &said, &d);
    if (!err && h->roles->pending) {
        err = kedge_diag_set(&d, KEDGE_E_BUSY, "another role is being written");
    }
    bool found = false;
    enum kedge_chain_role role = KEDGE_CHAIN_OPERATOR;
    for (uint32_t i = 0; !err && i < h->roles->count; i++) {
        if (h->roles->rows[i].active
            && kedge_public_key_eq(&h->roles->rows[i].granted.public_key, &said.key)) {
            found = true;
            role = h->roles->rows[i].granted.role;
        }
    }
    if (!err && !found) {
        err = kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "this key has no role here now");
    }
    err = err || a->st ? err : KEDGE_E_NOMEM;
    if (err) {
        kedge_admin_error(req, err, &d);
        free_append(a);
        return;
    }
    a->st->kind = KEDGE_ST_ROLE_REVOKED;
    a->st->u.role_revoked = (struct kedge_st_role_revoked){.role = role, .public_key = said.key};
    snprintf(a->st->u.role_revoked.reason, sizeof a->st->u.role_revoked.reason, "%s",
             said.reason ? said.reason : "");
    append(h, a);
}

static void list(struct kedge_host *h, struct kedge_net_request *req)
{
    json_t *roles = json_array();
    for (uint32_t i = 0; i < h->roles->count; i++) {
        const struct kedge_st_role_granted *g = &h->roles->rows[i].granted;
        char hex[2 * KEDGE_KEY_LEN + 1];
        kedge_hex_encode(g->public_key.b, KEDGE_KEY_LEN, hex);
        json_array_append_new(roles, json_pack("{s:s,s:s,s:s,s:s,s:I}", "role",
                                               g->role == KEDGE_CHAIN_AUDITOR ? "auditor" : "operator",
                                               "name", g->name.s, "key", hex, "state",
                                               h->roles->rows[i].active ? "in force" : "revoked", "from",
                                               (json_int_t)h->roles->rows[i].from));
    }
    kedge_admin_ok(req, json_pack("{s:o}", "roles", roles));
}

bool kedge_admin_roles(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                       const json_t *args)
{
    if (strcmp(verb, "role.grant") == 0) {
        grant(h, req, args);
    } else if (strcmp(verb, "role.revoke") == 0) {
        revoke(h, req, args);
    } else if (strcmp(verb, "role.list") == 0) {
        list(h, req);
    } else {
        return false;
    }
    return true;
}
