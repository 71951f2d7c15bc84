/* Witnesses enrolled and revoked by their tenant's admin. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "chain/log/checkpoint.h"
#include "chain/log/witness_policy.h"
#include "common/base/mem.h"
#include "common/base/os/log.h"
#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/admin/admin_append.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"
#include "coordinator/daemon/witness/witness.h"

static void enrolled(struct kedge_host *h, struct kedge_admin_append *a)
{
    const struct kedge_st_witness_enrolled *st = &a->st->u.witness_enrolled;
    if (kedge_host_witness_find(h, a->tenant, &st->witness) == KEDGE_COORD_NONE) {
        int err = kedge_host_witness_add(h, a->tenant, st);
        kedge_log(KEDGE_LOG_INFO, "witness enrolled", "tenant=%s witness=%s%s%s", st->tenant.s, st->witness.s,
                  err ? ": " : "", err ? kedge_strerror(err) : "");
    }
}

static int check(const struct kedge_host *h, uint32_t tenant, const struct kedge_st_witness_enrolled *st,
                 struct kedge_diag *d)
{
    if (!kedge_id_eq(&st->tenant, &h->tenants[tenant].id)) {
        return kedge_diag_set(d, KEDGE_E_DENIED, "the statement is about another tenant");
    }
    if (kedge_host_witness_find(h, tenant, &st->witness) != KEDGE_COORD_NONE) {
        return KEDGE_OK; /* said again; or the name is taken, which the ledger knows */
    }
    if (kedge_public_key_eq(&st->tls_key, &st->cosign_key) || !kedge_public_key_is_valid(&st->tls_key)
        || !kedge_public_key_is_valid(&st->cosign_key)) {
        return kedge_diag_set(d, KEDGE_E_KEY, "a witness needs two valid keys of its own");
    }
    int err = kedge_host_witness_check(h, tenant, &st->tls_key);
    if (err == KEDGE_E_FULL) {
        return kedge_diag_set(d, err, "a tenant has at most %d witnesses, all tenants %d; sign one out first",
                              KEDGE_TENANT_WITNESSES_MAX, KEDGE_HOST_WITNESSES_MAX);
    }
    return err ? kedge_diag_set(d, err, "a key of this witness is in use already") : KEDGE_OK;
}

static void witness_enroll(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_append *a = kedge_admin_append_new(req);
    int err = kedge_admin_append_open(h, args, KEDGE_ST_WITNESS_ENROLLED, a, &d);
    const struct kedge_st_witness_enrolled *st = err ? NULL : &a->st->u.witness_enrolled;
    err = st ? check(h, a->tenant, st, &d) : err;
    if (err) {
        kedge_admin_append_fail(a, err, &d);
        return;
    }
    char key[KEDGE_IDEM_KEY_MAX + 1];
    snprintf(key, sizeof key, "witness-enrolled/%s", st->witness.s);
    a->then = enrolled;
    kedge_admin_append_submit(h, a, args, key);
}

static void revoked(struct kedge_host *h, struct kedge_admin_append *a)
{
    unsigned closed = 0;
    uint32_t witness = kedge_host_witness_find(h, a->tenant, &a->st->u.witness_revoked.witness);
    const struct kedge_public_key *key = kedge_host_witness_tls_key(h, witness);
    closed = kedge_net_server_drop_key(h->server, key);
    kedge_log(KEDGE_LOG_INFO, "witness revoked", "tenant=%s witness=%s connections=%u",
              h->tenants[a->tenant].id.s, a->st->u.witness_revoked.witness.s, closed);
}

/* At once, like a site: a cosignature that comes while the statement is being written must not
 * count any more. */
static void witness_revoke(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_admin_append *a = kedge_admin_append_new(req);
    int err = kedge_admin_append_open(h, args, KEDGE_ST_WITNESS_REVOKED, a, &d);
    const struct kedge_st_witness_revoked *st = err ? NULL : &a->st->u.witness_revoked;
    uint32_t witness = st ? kedge_host_witness_find(h, a->tenant, &st->witness) : KEDGE_COORD_NONE;
    if (st
        && (witness == KEDGE_COORD_NONE || !kedge_id_eq(&st->tenant, &h->tenants[a->tenant].id)
            || !kedge_host_witness_has_key(h, witness, &st->cosign_key))) {
        err = kedge_diag_set(&d, KEDGE_E_NOT_FOUND, "no witness \"%s\" with that key in this tenant",
                             st->witness.s);
    }
    if (err) {
        kedge_admin_append_fail(a, err, &d);
        return;
    }
    char key[KEDGE_IDEM_KEY_MAX + 1];
    snprintf(key, sizeof key, "witness-revoked/%s", st->witness.s);
    kedge_host_witness_revoke(h, witness); /* at once, before the statement is durable */
    a->then = revoked;
    kedge_admin_append_submit(h, a, args, key);
}

static void witness_list(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    json_t *list = json_array();
    (void)args;
    kedge_host_witness_rows(h, list);
    kedge_admin_ok(req, json_pack("{s:o,s:I,s:I}", "witnesses", list, "main_size",
                                  (json_int_t)kedge_ledger_size(h->main.ledger), "final_size",
                                  (json_int_t)kedge_host_final_size(h)));
}

static void witness_proposal(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_buf note KEDGE_CLEANUP(kedge_buf_deinit), policy KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_note *parsed = kedge_mem_new(1, sizeof *parsed);
    struct kedge_checkpoint c = {.size = 0};
    (void)args;
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    kedge_buf_init(&policy, KEDGE_WITNESS_POLICY_MAX);
    kedge_host_outside_proposal(h, &note);
    kedge_host_witness_policy(h, &policy);
    if (parsed && kedge_note_parse(kedge_buf_view(&note), parsed) == KEDGE_OK) {
        (void)!kedge_checkpoint_parse(parsed->text, &c);
    }
    kedge_mem_free(parsed);
    kedge_admin_ok(req,
                   json_pack("{s:s%,s:s%,s:I,s:I}", "note", note.ptr ? (const char *)note.ptr : "", note.len,
                             "policy", policy.ptr ? (const char *)policy.ptr : "", policy.len, "size",
                             (json_int_t)c.size, "final_size", (json_int_t)kedge_host_final_size(h)));
}

/* What the operator's companion brings can show that this coordinator is an old copy. Then the
 * answer goes out first and the process ends after it. */
static void witness_cosign(struct kedge_host *h, struct kedge_net_request *req, const json_t *args)
{
    struct kedge_diag d = {.text = ""};
    const char *note = json_string_value(json_object_get(args, "note"));
    int err = note && strlen(note) <= KEDGE_NOTE_MAX
                  ? kedge_host_outside_cosign(h, kedge_view_str(note), &d)
                  : kedge_diag_set(&d, KEDGE_E_FORMAT, "\"note\": expected a cosigned checkpoint");
    if (err) {
        kedge_host_reply_error(req, err, 0, d.text[0] ? d.text : kedge_strerror(err));
    } else {
        kedge_admin_ok(req, json_pack("{s:I}", "final_size", (json_int_t)kedge_host_final_size(h)));
    }
    if (err == KEDGE_E_CORRUPT || err == KEDGE_E_FORK) {
        kedge_log(KEDGE_LOG_ERROR, "stopping", "%s (shown by the operator)", d.text);
        kedge_host_fail(h, err, "more of a log was seen elsewhere than there is");
    }
}

bool kedge_admin_witnesses(struct kedge_host *h, struct kedge_net_request *req, const char *verb,
                           const json_t *args)
{
    static const struct {
        const char *verb;
        void (*run)(struct kedge_host *h, struct kedge_net_request *req, const json_t *args);
    } verbs[] = {
        {"witness.enroll", witness_enroll}, {"witness.revoke", witness_revoke},
        {"witness.list", witness_list},     {"witness.proposal", witness_proposal},
        {"witness.cosign", witness_cosign},
    };
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].verb, verb) == 0) {
            verbs[i].run(h, req, args);
            return true;
        }
    }
    return false;
}
