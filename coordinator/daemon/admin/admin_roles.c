/* The verbs role.*: what the owner of the state folder asks about the federation's authority. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/json/json.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/admin/admin_args.h"
#include "coordinator/daemon/host.h"

static struct kedge_statement *new_statement(enum kedge_statement_kind kind)
{
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    KEDGE_ASSERT(st);
    st->kind = kind;
    return st;
}

static void grant(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_role said;
    int err = kedge_admin_role_args(args, true, &said, &d);
    if (!err
        && (kedge_host_site_by_key(h, &said.key) != KEDGE_COORD_NONE
            || kedge_host_witness_by_key(h, &said.key) != KEDGE_COORD_NONE)) {
        err = kedge_diag_set(&d, KEDGE_E_KEY, "this key has or had another role here; one key, one role");
    }
    if (err) {
        kedge_admin_error(req, err, &d);
        return;
    }
    struct kedge_statement *st = new_statement(KEDGE_ST_ROLE_GRANTED);
    st->u.role_granted.role = said.auditor ? KEDGE_CHAIN_AUDITOR : KEDGE_CHAIN_OPERATOR;
    st->u.role_granted.name = said.name;
    st->u.role_granted.public_key = said.key;
    kedge_authority_change(h, req, st, NULL, said.propose);
}

static void revoke(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_role said;
    const struct kedge_main_role *has = NULL;
    int err = kedge_admin_role_args(args, false, &said, &d);
    if (!err && !(has = kedge_mainbook_role(&h->authority.book, &said.key))) {
        err = kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "this key has no role here now");
    }
    if (err) {
        kedge_admin_error(req, err, &d);
        return;
    }
    struct kedge_statement *st = new_statement(KEDGE_ST_ROLE_REVOKED);
    st->u.role_revoked.role = has->role;
    st->u.role_revoked.public_key = said.key;
    snprintf(st->u.role_revoked.reason, sizeof st->u.role_revoked.reason, "%s",
             said.reason ? said.reason : "");
    kedge_authority_change(h, req, st, NULL, said.propose);
}

static void quorum(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_quorum said;
    int err = kedge_admin_quorum_args(args, &said, &d);
    if (!err && said.quorum > h->tenant_count) {
        err = kedge_diag_set(&d, KEDGE_E_DENIED, "a quorum of %u organisations; there are %u here",
                             said.quorum, h->tenant_count);
    }
    if (err) {
        kedge_admin_error(req, err, &d);
        return;
    }
    struct kedge_statement *st = new_statement(KEDGE_ST_POLICY_CHANGED);
    st->u.policy_changed.number = h->authority.book.changes + 1;
    st->u.policy_changed.admin_quorum = said.quorum;
    kedge_authority_change(h, req, st, NULL, said.propose);
}

static void rotate(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_rotate said;
    int err = kedge_admin_rotate_args(args, &said, &d);
    if (err) {
        kedge_admin_error(req, err, &d);
    } else {
        kedge_authority_rotate(h, req, said.reason, said.propose);
    }
}

static void submit(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_view envelope;
    int err = kedge_admin_envelope_args(args, &envelope, &d);
    if (err) {
        kedge_admin_error(req, err, &d);
    } else {
        kedge_authority_submit(h, req, envelope);
    }
}

static void list(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    const struct kedge_mainbook *book = &h->authority.book;
    json_t *roles = json_array(), *keys = json_array();
    (void)args;
    for (uint32_t i = 0; i < book->role_count; i++) {
        const struct kedge_main_role *r = &book->roles[i];
        json_array_append_new(roles,
                              json_pack("{s:s,s:s,s:o,s:s,s:I}", "role",
                                        r->role == KEDGE_CHAIN_AUDITOR ? "auditor" : "operator", "name",
                                        r->name.s, "key", kedgei_json_hex(r->key.b, KEDGE_KEY_LEN), "state",
                                        r->until == KEDGE_MAINBOOK_ALWAYS ? "in force" : "revoked", "from",
                                        (json_int_t)r->from));
    }
    for (uint32_t i = 0; i < book->key_count; i++) {
        json_array_append_new(
            keys, json_pack("{s:o,s:s,s:I}", "key", kedgei_json_hex(book->keys[i].key.b, KEDGE_KEY_LEN),
                            "state", book->keys[i].until == KEDGE_MAINBOOK_ALWAYS ? "in force" : "rotated",
                            "from", (json_int_t)book->keys[i].from));
    }
    kedge_admin_ok(req, json_pack("{s:o,s:o,s:i}", "roles", roles, "statement_keys", keys, "quorum",
                                  (int)book->admin_quorum));
}

bool kedge_admin_roles(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                       const json_t *args)
{
    static const struct {
        const char *verb;
        void (*run)(struct kedge_host *h, struct kedge_net_request *req, const json_t *args);
    } verbs[] = {
        {"role.grant", grant},   {"role.revoke", revoke}, {"role.quorum", quorum},
        {"role.rotate", rotate}, {"role.submit", submit}, {"role.list", list},
    };
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].verb, verb) == 0) {
            verbs[i].run(h, req, args);
            return true;
        }
    }
    return false;
}
